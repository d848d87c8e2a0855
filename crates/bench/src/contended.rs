//! A contended room: many clients book one room at the same time, while another client books other places.

use std::{path::Path, sync::Arc};

use bench::seed::Size;
use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::{
    Cli, Result,
    database::{Kind, Service, option_value},
    http::{Connection, Requests, load},
    measure::seeded,
    program::{Build, Running},
    report::Report,
    results::Contended,
    scenes::Facts,
};

/// The number of clients that book the same room.
const CLIENTS: usize = 64;

/// The hours for which the room is verified: so few that they are soon booked, and later bookings are refused.
const HOURS: i64 = 200;

/// Measures a contended room on one database.
pub async fn measure(cli: &Cli, kind: Kind, folder: &Path, report: &mut Report) -> Result<()> {
    let size = if cli.quick { cli.size } else { Size::Club };
    let database = seeded(&Build::this()?, Service::Booking, kind, size, folder, report)?;
    let running = database.serve(&[]).await?;
    let facts = Facts::find(&database, &running).await?;
    let room = verified_room(&facts, &running).await?;
    // Longer than a scene, because the slowest request is reported.
    let time = cli.duration() * 3;

    let room_facts = facts.clone();
    let same_room: Requests = Arc::new(move |number| {
        // 7919 and `HOURS` have no common divisor, so consecutive numbers are different hours in a mixed order.
        let hour = i64::try_from(number).unwrap_or(0).wrapping_mul(7919).rem_euclid(HOURS);
        room_facts.booking(("roomId", &room), room_facts.today.plus(TimeDelta::days(500) + TimeDelta::hours(hour)), "")
    });
    let elsewhere: Requests = Arc::new(move |number| {
        let days = TimeDelta::days(500 + i64::try_from(number % 1000).unwrap_or(0));
        facts.booking(("place", "Elsewhere"), facts.today.plus(days), "")
    });
    load(&running.address, 1, time / 2, &elsewhere, &[201]).await?;
    let alone = load(&running.address, 1, time, &elsewhere, &[201]).await?;
    let (contended, meanwhile) = tokio::try_join!(
        load(&running.address, CLIENTS, time, &same_room, &[201, 409]),
        load(&running.address, 1, time, &elsewhere, &[201]),
    )?;
    let count = |status| contended.statuses.get(&status).copied().unwrap_or(0);
    report.contended.push(Contended {
        database: option_value(kind),
        booked: count(201),
        refused: count(409),
        per_second: contended.per_second(),
        slowest_ms: contended.quantile(1000),
        fewest: contended.shares.iter().copied().min().unwrap_or(0),
        most: contended.shares.iter().copied().max().unwrap_or(0),
        elsewhere_alone_ms: alone.quantile(500),
        elsewhere_meanwhile_ms: meanwhile.quantile(500),
    });
    Ok(())
}

/// Creates and verifies the room, and returns its id.
async fn verified_room(facts: &Facts, running: &Running) -> Result<String> {
    let begin = facts.today.plus(TimeDelta::days(500));
    let end = begin.plus(TimeDelta::hours(HOURS + 1));
    let body = json!({ "place": "Contended", "timeStart": begin, "timeEnd": end, "admins": [facts.me] });
    let mut connection = Connection::open(&running.address).await?;
    let answer = connection.exchange(&facts.request("POST", "/api/rooms", &body.to_string()), true).await?;
    let room: Value = serde_json::from_slice(&answer.body)?;
    let id = room["roomId"].as_str().ok_or("the room was not created")?.to_owned();
    let request = facts.request("POST", &format!("/api/rooms/{id}/verified"), "");
    let answer = connection.exchange(&request, false).await?;
    if answer.status == 204 { Ok(id) } else { Err(format!("the verification was answered {}", answer.status).into()) }
}
