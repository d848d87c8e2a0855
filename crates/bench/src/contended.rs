//! A contended place: many clients book one room at the same time, and others book elsewhere meanwhile.

use std::{path::Path, sync::Arc};

use bench::seed::Size;
use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::{
    Cli, Result,
    database::{Kind, Service, word},
    http::{Connection, Requests, load},
    measure::seeded,
    program::Running,
    report::Report,
    results::Contended,
    scenes::Facts,
};

/// Clients that want the same room.
const CLIENTS: usize = 64;

/// The hours for which the club holds the room: so few that they are taken soon, and all others are refused.
const HOURS: i64 = 200;

/// Measures it on one database.
pub async fn measure(cli: &Cli, kind: Kind, folder: &Path, report: &mut Report) -> Result<()> {
    let size = if cli.quick { cli.size } else { Size::Club };
    let database = seeded(Service::Booking, kind, size, folder, report)?;
    let running = database.serve(&[]).await?;
    let facts = Facts::find(&database, &running).await?;
    let room = verified_room(&facts, &running).await?;
    // Longer than a scene, as the slowest request counts.
    let time = cli.time() * 3;

    let booker = facts.clone();
    let hours = HOURS;
    let same_room: Requests = Arc::new(move |number| {
        // Each hour comes once before any comes again, in an order without one.
        let hour = i64::try_from(number).unwrap_or(0).wrapping_mul(7919).rem_euclid(hours);
        booker.booking(("roomId", &room), booker.today.plus(TimeDelta::days(500) + TimeDelta::hours(hour)))
    });
    let elsewhere: Requests = Arc::new(move |number| {
        let days = TimeDelta::days(500 + i64::try_from(number % 1000).unwrap_or(0));
        facts.booking(("place", "Elsewhere"), facts.today.plus(days))
    });
    load(&running.address, 1, time / 2, &elsewhere, &[201]).await?;
    let alone = load(&running.address, 1, time, &elsewhere, &[201]).await?;
    let (contended, meanwhile) = tokio::try_join!(
        load(&running.address, CLIENTS, time, &same_room, &[201, 409]),
        load(&running.address, 1, time, &elsewhere, &[201]),
    )?;
    let count = |status| contended.statuses.get(&status).copied().unwrap_or(0);
    report.contended.push(Contended {
        database: word(kind),
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

async fn verified_room(facts: &Facts, running: &Running) -> Result<String> {
    let begin = facts.today.plus(TimeDelta::days(500));
    let end = begin.plus(TimeDelta::hours(HOURS + 1));
    let body = json!({ "place": "Contended", "timeStart": begin, "timeEnd": end, "admins": [facts.me] });
    let mut connection = Connection::open(&running.address).await?;
    let made = connection.exchange(&facts.request("POST", "/api/rooms", &body.to_string()), true).await?;
    let room: Value = serde_json::from_slice(&made.body)?;
    let id = room["roomId"].as_str().ok_or("no room was made")?.to_owned();
    let verified = facts.request("POST", &format!("/api/rooms/{id}/verified"), "");
    let answer = connection.exchange(&verified, false).await?;
    if answer.status == 204 { Ok(id) } else { Err(format!("verifying was answered {}", answer.status).into()) }
}
