//! Lists of events with more than one page.

use crate::harness::Backend::{self, Postgres, Sqlite};
use diesel::prelude::*;
use portfolio_service::schema::events;
use rstest::rstest;
use serde_json::{Value, json};
use service_kit::database::types::DbUuid;

use crate::{
    booking::{Behavior, Booking, FakeBooking, changed_event, event_json, options, until},
    event_copy::{detail, start},
    harness::{BOB, CAROL, Club},
};

/// Events, all changed at the same time.
fn many_changed(count: usize) -> Vec<Value> {
    let event = |n| changed_event(event_json(DbUuid::new(), &format!("e{n}"), &[BOB]), "2026-03-01T09:00:00Z");
    (0..count).map(event).collect()
}

/// The ids of the copied events, sorted.
fn copied(club: &Club) -> Vec<DbUuid> {
    events::table.select(events::id).order(events::id).load(&mut club.connect()).unwrap()
}

#[rstest]
fn a_booking_service_without_pages_is_copied(#[values(Sqlite, Postgres)] backend: Backend) {
    let many: Vec<_> = (0..2500).map(|n| event_json(DbUuid::new(), &format!("e{n}"), &[BOB, CAROL])).collect();
    let booking = FakeBooking::start(Behavior::json(&Value::from(many.clone())));
    let club = start(backend, &options(&booking.address, "t"));
    until("all are copied", || copied(&club).len() == 2500);
    booking.set_behavior(Behavior::json(&Value::from(many[1200..].to_vec())));
    until("those that are gone are", || copied(&club).len() == 1300);
    assert_eq!(detail(&club, many[2000]["eventId"].as_str().unwrap())["hostname"].as_array().unwrap().len(), 2);
}

/// Takes seconds: 2,002 events are copied twice and compared one by one.
#[rstest]
fn many_events_of_the_real_booking_service_are_copied_page_by_page(#[values(Sqlite, Postgres)] backend: Backend) {
    let booking = Booking::start_large();
    let kept = booking.declare("kept", &[BOB]);
    let gone = booking.declare("gone", &[BOB]);
    let mut club = start(backend, &booking.options());
    let expected = booking.events();
    assert_eq!(expected.len(), 2002);
    until("all are copied", || copied(&club) == expected);
    // Changes while the service is stopped are copied with the list of all events after its start.
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
fn a_failed_page_deletes_nothing(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut events = many_changed(450);
    let booking = FakeBooking::start(Behavior::Pages(events.clone(), None));
    let club = start(backend, &options(&booking.address, "t"));
    until("all are copied", || copied(&club).len() == 450);
    let other = FakeBooking::start(Behavior::Pages(events.clone(), None));
    let bad = [
        b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 2\r\n\r\n[]".to_vec(),
        Behavior::page(&json!([{}]), ""),
        // An event that the first page has as well.
        Behavior::page(&json!([events[0]]), ""),
        Behavior::page(&json!([events[300]]), &format!("Link: <{}/api/events?limit=200>; rel=next\r\n", other.address)),
    ];
    let name = |event: &Value| detail(&club, event["eventId"].as_str().unwrap())["name"].clone();
    for (n, bytes) in bad.into_iter().enumerate() {
        // The first event changes each time; other events of the first page are missing.
        events[0]["name"] = format!("version {n}").into();
        booking.set_behavior(Behavior::Pages(
            events[..1].iter().chain(&events[100..]).cloned().collect(),
            Some((200, bytes)),
        ));
        // Requests of changes, and at least one of all events.
        booking.wait_for_requests(8);
        assert_eq!((copied(&club).len(), name(&events[0])), (450, events[0]["name"].clone()));
        assert!(
            booking.requests().iter().rev().take(4).all(|request| request.from < 400),
            "nothing follows a bad page"
        );
    }
    assert!(other.tokens().is_empty(), "nobody else learns the token");
    events.drain(1..100);
    booking.set_behavior(Behavior::Pages(events, None));
    until("what is gone is", || copied(&club).len() == 351);
}

#[rstest]
fn a_copy_that_is_deleted_between_two_pages_is_created_again(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut events = many_changed(450);
    events[449]["updatedAt"] = "2026-04-01T09:00:00Z".into();
    let wait = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n".to_vec();
    let booking = FakeBooking::start(Behavior::Pages(events.clone(), Some((200, wait))));
    let club = start(backend, &options(&booking.address, "t"));
    until("the second page is asked for", || booking.requests().iter().any(|request| request.from == 200));
    // A replica without a booking-service deletes the copy. No event of the first page is listed as changed.
    assert_eq!(diesel::delete(events::table).execute(&mut club.connect()).unwrap(), 200);
    booking.set_behavior(Behavior::Pages(events, None));
    until("all are copied", || copied(&club).len() == 450);
}

#[rstest]
fn an_event_that_moves_while_the_list_is_read_is_not_missed(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut events = many_changed(450);
    events[300]["moves"] = true.into();
    let booking = FakeBooking::start(Behavior::Pages(events, None));
    // With the default interval, so that the test sees only the first round.
    let club = start(backend, &options(&booking.address, "t")[..4]);
    until("all are copied", || copied(&club).len() == 450);
}

#[rstest]
fn a_page_is_requested_again_after_a_rate_limit(#[values(Sqlite, Postgres)] backend: Backend) {
    let booking = FakeBooking::start(Behavior::RateLimited(many_changed(450)));
    let club = start(backend, &options(&booking.address, "t"));
    until("all are copied", || copied(&club).len() == 450);
    let requests: Vec<_> =
        booking.requests().iter().take(6).map(|request| (request.since.is_some(), request.from)).collect();
    assert_eq!(requests, [0, 0, 200, 200, 400, 400].map(|from| (false, from)));
}
