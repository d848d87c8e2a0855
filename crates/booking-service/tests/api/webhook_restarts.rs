//! What webhooks send when the service starts again at the very moment.

use std::time::Duration;

use booking_service::schema::webhooks;
use chrono::{TimeDelta, Timelike};
use common::time::Clock;
use diesel::prelude::*;
use rstest::rstest;
use serde_json::json;
use service_kit::database::types::DbTimestamp;

use crate::{
    harness::{
        ALICE,
        Backend::{self, Postgres, Sqlite},
        Club,
    },
    process::{Process, until},
    receiver::{Reaction, Receiver},
    webhook_messages::{advance_to, checked_by_traq, create, statuses},
};

/// The replicas that a database allows: two processes on a file would only wait for each other.
fn replicas(club: &Club) -> usize {
    if club.is_postgres() { 2 } else { 1 }
}

/// All replicas start again at 08:00, and again and again, the first time while the digest is on its way.
#[rstest]
fn replicas_that_restart_at_the_time_of_the_digest_send_one(#[values(Sqlite, Postgres)] backend: Backend) {
    let (mut club, receiver) = (Club::start(backend), Receiver::start());
    let (path, replicas) = (create(&club, &receiver, "traq", json!({"types": ["digest"]})), replicas(&club));
    club.stop_all();
    advance_to(&club, "08:00:00");
    receiver.react([Reaction::Hang]);
    club.start_at_once(replicas);
    receiver.wait_for(1);
    // Each replica looks at once whether there is something to send.
    let test = |club: &Club, replica| {
        club.by(ALICE).at(replica).post(&format!("{path}/test"), json!({})).expect(201);
    };
    for replica in 0..replicas {
        test(&club, replica);
    }
    receiver.answer_in(Duration::from_millis(300));
    for round in 1..=4 {
        club.stop_all();
        club.start_at_once(replicas);
        // A digest of this round would arrive before.
        test(&club, round % replicas);
        receiver.wait_for(1 + replicas + round);
    }
    until("all is noted", || statuses(&club, &path) == vec!["delivered"; 5 + replicas]);
    let is_digest = |body: &String| body.starts_with("## ");
    let bodies: Vec<_> = receiver.arrived().iter().map(checked_by_traq).collect();
    assert!(is_digest(&bodies[0]) && !bodies[1..].iter().any(is_digest), "{bodies:?}");
}

/// A time zone in which it is past eight now.
fn zone_of_the_morning() -> String {
    let ahead = 8 - i64::from(Clock::default().now().utc().hour());
    let ahead = if ahead < -12 { ahead + 24 } else { ahead };
    // The names have the sign of POSIX.
    format!("Etc/GMT{:+}", -ahead)
}

/// Replicas that are killed at the time of the digest, after it has been sent and before that has been noted, send it
/// again: twice rather than never.
#[rstest]
fn a_digest_that_may_not_have_been_sent_is_sent_again(#[values(Sqlite, Postgres)] backend: Backend) {
    let zone = zone_of_the_morning();
    let time = format!("08:{:02}", Clock::default().now().utc().minute());
    let options = ["--time-zone", &zone, "--digest-time", &time];
    let (mut club, receiver) = (Club::start_with(backend, &options), Receiver::start());
    let replicas = replicas(&club);
    let path = create(&club, &receiver, "traq", json!({"types": ["digest"]}));
    club.stop_all();
    let before = DbTimestamp(club.clock.now().plus(-TimeDelta::hours(2)));
    diesel::update(webhooks::table).set(webhooks::since.eq(before)).execute(&mut club.connect()).unwrap();
    receiver.react([Reaction::Hang]);
    let options = [&options[..], &["--secret-key", crate::harness::KEY]].concat();
    let processes: Vec<_> = (0..replicas).map(|_| Process::beside(&club, &options)).collect();
    receiver.wait_for(1);
    for process in &processes {
        process.signal("KILL");
    }
    drop(processes);
    // Nobody gives the lease of a killed replica back.
    club.clock.advance(TimeDelta::seconds(31));
    club.start_at_once(replicas);
    let arrived = receiver.wait_for(2);
    assert_eq!(checked_by_traq(&arrived[0]), checked_by_traq(&arrived[1]));
    until("it is noted", || statuses(&club, &path) == ["delivered"]);
    club.stop_all();
    club.start_at_once(replicas);
    club.by(ALICE).post(&format!("{path}/test"), json!({})).expect(201);
    receiver.wait_for(3);
}
