//! The rooms that forms offer: a chosen room stands for its place, whatever day or time is chosen afterwards.

use booking_service::schema::rooms;
use diesel::prelude::*;
use rstest::rstest;
use serde_json::json;
use service_kit::database::types::{DbTimestamp, DbUuid};

use crate::{
    board::start_at_noon,
    builders::{At, EVERYONE, event_body, landed, merge, poll, text, verified_room},
    front_page::{
        forms::{Fields, fields, open, send, set},
        page,
    },
    harness::{
        ALICE, BOB,
        Backend::{self, Postgres, Sqlite},
        Club,
    },
    series::{book_on, verified_on},
    sign_in::HTML,
};

/// An event of Bob in a room, from 18:00 to 20:00 on 1 January 2030.
fn event_in(club: &Club, room: &str) -> String {
    let times = json!({"timeStart": "2030-01-01T18:00:00+09:00", "timeEnd": "2030-01-01T20:00:00+09:00"});
    let body = merge([event_body(club, BOB, At::Room(room), (2, 4)), times, json!({"name": "Tea"})]);
    text(&club.by(BOB).post("/api/events", body).expect(201).json()["eventId"])
}

/// The form of an event at this time, after its rooms have been shown.
fn form_at(club: &Club, date: &str, from: &str, until: &str) -> (String, Fields) {
    let mut form = fields(&open(club, BOB, "/events/new"), "/events/new");
    let values = [("date", date), ("from", from), ("until", until), ("endDate", ""), ("name", "Tea"), ("place", "")];
    for (name, value) in values.into_iter().chain([("room", ""), ("groupId", EVERYONE), ("showRooms", "true")]) {
        set(&mut form, name, value);
    }
    let shown = page::check(&send(club, BOB, "/events/new", &form).expect(200));
    let form = fields(&shown, "/events/new");
    (shown, form)
}

/// The value that would be sent; nothing if none of several is chosen.
fn value<'a>(form: &'a Fields, name: &str) -> &'a str {
    form.iter().find(|(other, _)| other == name).map_or("", |(_, value)| value)
}

#[rstest]
fn an_event_that_moves_to_another_day_keeps_its_place(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let rooms = ["2030-01-01", "2030-01-08", "2030-01-22"].map(|day| verified_on(&club, "S517", day));
    let other = verified_on(&club, "S516", "2030-01-15");
    let event = event_in(&club, &rooms[0]);
    let (edit, api) = (format!("/events/{event}/edit"), format!("/api/events/{event}"));
    let room = || text(&club.by(BOB).get(&api).expect(200).json()["room"]["roomId"]);
    let moved = |date: &str| {
        let mut form = fields(&open(&club, BOB, &edit), &edit);
        set(&mut form, "date", date);
        form
    };
    send(&club, BOB, &edit, &moved("2030-01-08")).expect(303);
    assert_eq!(room(), rooms[1]);
    // The list of rooms that are free on another day has that of the place chosen.
    let mut form = moved("2030-01-01");
    set(&mut form, "showRooms", "true");
    let shown = page::check(&send(&club, BOB, &edit, &form).expect(200));
    assert_eq!(value(&fields(&shown, &edit), "room"), rooms[0]);
    assert!(!shown.contains("<small>taken</small>"), "{shown}");
    // A day on which the club does not hold the place.
    let refused = page::check(&send(&club, BOB, &edit, &moved("2030-01-15")).expect(400));
    assert!(refused.contains("The club does not hold S517 then") && !refused.contains("T18:00"), "{refused}");
    assert!(refused.contains(&format!("value=\"{other}\"><span><b>S516")), "{refused}");
    assert!(
        !refused.contains("<small>taken</small>") && value(&fields(&refused, &edit), "room").is_empty(),
        "{refused}"
    );
    let mut japanese = moved("2030-01-15");
    japanese.retain(|(name, _)| name != "_key");
    let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(&japanese).finish();
    let client = club.by(BOB).header("accept", HTML).header("accept-language", "ja");
    let client = client.header("content-type", "application/x-www-form-urlencoded");
    let refused = page::check(&client.send_bytes("POST", &edit, body.into_bytes()).expect(400));
    assert!(refused.contains("S517は、この時間には押さえていません"), "{refused}");
    // A day on which somebody else has it.
    book_on(&club, "S517", "2030-01-22");
    let refused = page::check(&send(&club, BOB, &edit, &moved("2030-01-22")).expect(409));
    assert!(refused.contains("Rust evening"), "{refused}");
    assert_eq!(room(), rooms[1]);
}

#[rstest]
fn a_form_that_is_sent_as_it_is_moves_no_event(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let [room, other] = ["S517", "S516"].map(|place| verified_on(&club, place, "2030-01-01"));
    let event = event_in(&club, &room);
    let edit = format!("/events/{event}/edit");
    // As an import may leave it: outside the time of its room.
    let id = DbUuid(room.parse().unwrap());
    let early = DbTimestamp("2030-01-01T09:30:00Z".parse().unwrap());
    let rows = diesel::update(rooms::table.find(id)).set(rooms::starts_at.eq(early)).execute(&mut club.connect());
    assert_eq!(rows.unwrap(), 1);
    let form = fields(&open(&club, BOB, &edit), &edit);
    assert_eq!(value(&form, "room"), room);
    send(&club, BOB, &edit, &form).expect(303);
    // Nor is another room chosen for whoever only looks what is free at another time.
    let mut form = fields(&open(&club, BOB, &edit), &edit);
    for (name, value) in [("from", "17:00"), ("until", "18:00"), ("showRooms", "true")] {
        set(&mut form, name, value);
    }
    let shown = page::check(&send(&club, BOB, &edit, &form).expect(200));
    assert!(shown.contains(&format!("value=\"{other}\"><span><b>S516")), "{shown}");
    assert_eq!(value(&fields(&shown, &edit), "room"), "");
}

#[rstest]
fn a_day_that_is_changed_after_the_rooms_were_shown_is_booked_at_the_same_place(
    #[values(Sqlite, Postgres)] backend: Backend,
) {
    let club = Club::start(backend);
    let rooms = ["2030-01-01", "2030-01-08"].map(|day| verified_on(&club, "S517", day));
    let (_, mut form) = form_at(&club, "2030-01-01", "18:00", "20:00");
    assert_eq!(value(&form, "room"), rooms[0]);
    set(&mut form, "date", "2030-01-08");
    let made = landed(&send(&club, BOB, "/events/new", &form).expect(303));
    let made = club.by(BOB).get(&format!("/api{made}")).expect(200).json();
    assert_eq!(text(&made["room"]["roomId"]), rooms[1]);
    // The same for the times of a poll.
    let rooms = [(47, 51), (71, 75)].map(|hours| verified_room(&club, ALICE, "S516", hours));
    let (api, slots) = poll(&club, ALICE, json!({"open": true}));
    let confirm = format!("/polls/{}/confirm", api.rsplit('/').next().unwrap());
    let mut form = fields(&open(&club, ALICE, &format!("{confirm}?slotId={}", slots[0])), &confirm);
    assert_eq!(value(&form, "room"), rooms[0]);
    set(&mut form, "slotId", &slots[1]);
    let made = landed(&send(&club, ALICE, &confirm, &form).expect(303));
    let made = club.by(BOB).get(&format!("/api{made}")).expect(200).json();
    assert_eq!(text(&made["room"]["roomId"]), rooms[1]);
}

#[rstest]
fn a_free_time_of_today_fills_in_what_it_says(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = start_at_noon(backend);
    let room = verified_room(&club, ALICE, "S517", (6, 9));
    let start = open(&club, BOB, "/");
    let button = start.split("<a ").find(|link| link.contains(&format!("room={room}")));
    let button = button.unwrap_or_else(|| panic!("{start}"));
    assert!(button.contains(">S517 <small>18:00–21:00</small>"), "{button}");
    let address = button.split("href=\"").nth(1).unwrap().split('"').next().unwrap().replace("&amp;", "&");
    let form = fields(&open(&club, BOB, &address), "/events/new");
    assert_eq!(["room", "from", "until"].map(|name| value(&form, name)), [room.as_str(), "18:00", "21:00"]);
}

#[rstest]
fn a_form_says_how_many_rooms_are_free_and_when_others_are(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    assert!(open(&club, BOB, "/events/new").contains("No room is free then."));
    let room = verified_on(&club, "S517", "2030-01-01");
    let (shown, _) = form_at(&club, "2030-01-01", "18:00", "20:00");
    assert!(shown.contains("1 room is free") && !shown.contains("No room is free then."), "{shown}");
    let (shown, mut form) = form_at(&club, "2030-01-01", "21:00", "22:00");
    assert!(shown.find("No room is free then.").unwrap() < shown.find("id=\"f-date\"").unwrap(), "{shown}");
    let offer = shown.split("<button name=\"take\" value=\"").nth(1).unwrap_or_else(|| panic!("{shown}"));
    let (offer, text_of) = offer.split_once("\" formnovalidate>").unwrap();
    // A part of what is free, from 17:00 on: the text says what the button fills in.
    assert!(text_of.starts_with("S517 20:00–21:00<"), "{text_of}");
    assert_eq!(offer, format!("{room} 2030-01-01 20:00 21:00"));
    // It is shown in the form before it is booked.
    set(&mut form, "take", offer);
    let shown = page::check(&send(&club, BOB, "/events/new", &form).expect(200));
    let form = fields(&shown, "/events/new");
    assert_eq!(["room", "from", "until"].map(|name| value(&form, name)), [room.as_str(), "20:00", "21:00"]);
    send(&club, BOB, "/events/new", &form).expect(303);
    // Nobody who has named another place is told so.
    let mut form = fields(&open(&club, BOB, "/events/new"), "/events/new");
    for (name, value) in [("place", "Park"), ("name", "")] {
        set(&mut form, name, value);
    }
    let refused = page::check(&send(&club, BOB, "/events/new", &form).expect(400));
    assert!(!refused.contains("No room is free then."), "{refused}");
}
