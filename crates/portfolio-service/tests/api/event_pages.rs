//! More events than one page of the booking-service has.

use crate::harness::Backend::{self, Postgres, Sqlite};
use diesel::prelude::*;
use portfolio_service::schema::events;
use rstest::rstest;
use serde_json::{Value, json};
use service_kit::database::types::DbUuid;

use crate::{
    booking::{Booking, False, Manner, answered, changed, options, until},
    event_copy::{detail, start},
    harness::{BOB, CAROL, Club},
};

/// Events, all changed at the same time.
fn many_changed(count: usize) -> Vec<Value> {
    let event = |n| changed(answered(DbUuid::new(), &format!("e{n}"), &[BOB]), "2026-03-01T09:00:00Z");
    (0..count).map(event).collect()
}

/// The ids of the events that are here, sorted.
fn copied(club: &Club) -> Vec<DbUuid> {
    events::table.select(events::id).order(events::id).load(&mut club.connect()).unwrap()
}

#[rstest]
fn one_that_knows_no_pages_answers_all_at_once(#[values(Sqlite, Postgres)] backend: Backend) {
    let many: Vec<_> = (0..2500).map(|n| answered(DbUuid::new(), &format!("e{n}"), &[BOB, CAROL])).collect();
    let booking = False::start(Manner::json(&Value::from(many.clone())));
    let club = start(backend, &options(&booking.address, "t"));
    until("all are copied", || copied(&club).len() == 2500);
    booking.now(Manner::json(&Value::from(many[1200..].to_vec())));
    until("those that are gone are", || copied(&club).len() == 1300);
    assert_eq!(detail(&club, many[2000]["eventId"].as_str().unwrap())["hostname"].as_array().unwrap().len(), 2);
}

#[rstest]
fn many_events_of_the_real_booking_service_come_page_by_page(#[values(Sqlite, Postgres)] backend: Backend) {
    let booking = Booking::start_large();
    let kept = booking.declare("kept", &[BOB]);
    let gone = booking.declare("gone", &[BOB]);
    let mut club = start(backend, &booking.options());
    let expected = booking.events();
    assert_eq!(expected.len(), 2002);
    until("all are copied", || copied(&club) == expected);
    // While nobody copies: so it is for all events that are asked for at the start to tell.
    club.stop_all();
    booking.delete(&gone);
    booking.change(&kept, "changed", "S517", &[BOB]);
    club.start_another();
    let expected = booking.events();
    assert_eq!(expected.len(), 2001);
    until("what is gone is", || copied(&club) == expected);
    until("the change is copied", || detail(&club, &kept)["name"] == "changed");
}

#[rstest]
fn a_page_that_cannot_be_had_loses_nothing(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut events = many_changed(450);
    let booking = False::start(Manner::Pages(events.clone(), None));
    let club = start(backend, &options(&booking.address, "t"));
    until("all are copied", || copied(&club).len() == 450);
    let other = False::start(Manner::Pages(events.clone(), None));
    let bad = [
        b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 2\r\n\r\n[]".to_vec(),
        Manner::page(&json!([{}]), ""),
        // In a circle.
        Manner::page(&json!([events[0]]), ""),
        Manner::page(&json!([events[300]]), &format!("Link: <{}/api/events?limit=200>; rel=next\r\n", other.address)),
    ];
    let name = |event: &Value| detail(&club, event["eventId"].as_str().unwrap())["name"].clone();
    for (n, bytes) in bad.into_iter().enumerate() {
        // The first is newer each time; the others are gone.
        events[0]["name"] = format!("version {n}").into();
        booking.now(Manner::Pages(events[..1].iter().chain(&events[100..]).cloned().collect(), Some((200, bytes))));
        // Changes, then all events at least once.
        booking.until_asked(8);
        assert_eq!((copied(&club).len(), name(&events[0])), (450, events[0]["name"].clone()));
        assert!(booking.questions().iter().rev().take(4).all(|asked| asked.from < 400), "nothing follows a bad page");
    }
    assert!(other.asked().is_empty(), "nobody else learns the token");
    events.drain(1..100);
    booking.now(Manner::Pages(events, None));
    until("what is gone is", || copied(&club).len() == 351);
}

#[rstest]
fn a_copy_that_is_dropped_between_two_pages_is_made_anew(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut events = many_changed(450);
    events[449]["updatedAt"] = "2026-04-01T09:00:00Z".into();
    let wait = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n".to_vec();
    let booking = False::start(Manner::Pages(events.clone(), Some((200, wait))));
    let club = start(backend, &options(&booking.address, "t"));
    until("the second page is asked for", || booking.questions().iter().any(|asked| asked.from == 200));
    // As a replica without a booking-service does. Of the first page nothing is told as changed.
    assert_eq!(diesel::delete(events::table).execute(&mut club.connect()).unwrap(), 200);
    booking.now(Manner::Pages(events, None));
    until("all are copied", || copied(&club).len() == 450);
}

#[rstest]
fn one_that_moves_while_all_are_read_is_not_missed(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut events = many_changed(450);
    events[300]["moves"] = true.into();
    let booking = False::start(Manner::Pages(events, None));
    // With only the first round in the time of the test.
    let club = start(backend, &options(&booking.address, "t")[..4]);
    until("all are copied", || copied(&club).len() == 450);
}

#[rstest]
fn one_that_limits_how_often_is_asked_again_for_the_same_page(#[values(Sqlite, Postgres)] backend: Backend) {
    let booking = False::start(Manner::Busy(many_changed(450)));
    let club = start(backend, &options(&booking.address, "t"));
    until("all are copied", || copied(&club).len() == 450);
    let asked: Vec<_> = booking.questions().iter().take(6).map(|asked| (asked.since.is_some(), asked.from)).collect();
    assert_eq!(asked, [0, 0, 200, 200, 400, 400].map(|from| (false, from)));
}
