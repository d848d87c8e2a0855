//! The dates of a new series in its form: on which the club does not hold the chosen room, and which rooms are free then.

use rstest::rstest;
use serde_json::json;

use crate::{
    builders::{each, text},
    front_page::{
        forms::{Fields, HTML, fields, send, set},
        page,
    },
    harness::{
        BOB,
        Backend::{self, Postgres, Sqlite},
        Club,
    },
    member_series::{listed, new_form, starts},
    series::{book_on, verified_on},
};

const DATES: [&str; 4] = ["2030-01-01", "2030-01-08", "2030-01-15", "2030-01-22"];

/// The form of a series in a room, each week from 1 January 2030, as it is before its dates are shown.
fn weekly_in(club: &Club, room: &str, times: &str) -> Fields {
    let mut form = new_form(club);
    for (name, value) in [("place", ""), ("room", room), ("repeat", "weekly"), ("times", times)] {
        set(&mut form, name, value);
    }
    form
}

/// Sends the form, and returns its page and what that would send.
#[track_caller]
fn again(club: &Club, form: &Fields, status: u16) -> (String, Fields) {
    let shown = page::check(&send(club, BOB, "/events/new", form).expect(status));
    let form = fields(&shown, "/events/new");
    (shown, form)
}

/// The same with a tick at this date.
fn ticked(form: &Fields, date: &str) -> Fields {
    let mut form = form.clone();
    form.push(("on".to_owned(), date.to_owned()));
    form
}

/// The events of the form.
fn booked(club: &Club, member: &str) -> Vec<String> {
    let mut all = club.by(BOB).get("/api/events").expect(200).json();
    all.as_array_mut().unwrap().retain(|event| event["name"] == "Evening");
    each(&all, member)
}

#[rstest]
fn a_date_on_which_the_club_does_not_hold_the_room_is_booked_only_with_a_tick(
    #[values(Sqlite, Postgres)] backend: Backend,
) {
    let club = Club::start(backend);
    let rooms = [0, 1].map(|n| verified_on(&club, "S517", DATES[n]));
    let form = weekly_in(&club, &rooms[0], "4");
    // Without the button, too.
    let (shown, form) = again(&club, &form, 200);
    assert_eq!(starts(&club), Vec::<String>::new());
    assert_eq!(listed(&form), (DATES.to_vec(), DATES[..2].to_vec()));
    assert_eq!(shown.matches("The club does not hold S517 then.").count(), 2, "{shown}");
    let notice = "Nothing is booked yet. Check the 4 dates below; on 2 of them the club does not hold the room.";
    assert!(shown.contains(notice) && shown.contains("booked if you tick it, but not confirmed"), "{shown}");
    let mut japanese = form.clone();
    japanese.retain(|(name, _)| name != "_key");
    set(&mut japanese, "showDates", "true");
    let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(&japanese).finish();
    let client = club.by(BOB).header("accept", HTML).header("accept-language", "ja");
    let client = client.header("content-type", "application/x-www-form-urlencoded");
    let shown = page::check(&client.send_bytes("POST", "/events/new", body.into_bytes()).expect(200));
    assert!(shown.contains("S517は、この時間には押さえていません。"), "{shown}");
    // Nobody can book no date.
    let mut none = form.clone();
    none.retain(|(name, _)| name != "on");
    let (refused, none) = again(&club, &none, 400);
    assert!(refused.contains("Tick at least one date."), "{refused}");
    assert_eq!(listed(&none), (DATES.to_vec(), Vec::new()));
    // What has a tick stays so, and is booked.
    let mut form = ticked(&form, DATES[2]);
    set(&mut form, "showDates", "true");
    let (_, form) = again(&club, &form, 200);
    assert_eq!(listed(&form).1, DATES[..3]);
    send(&club, BOB, "/events/new", &form).expect(303);
    assert_eq!(starts(&club), DATES[..3]);
    let booked = booked(&club, "roomId");
    assert_eq!(booked[..2], rooms);
    let own = club.by(BOB).get(&format!("/api/rooms/{}", booked[2])).expect(200).json();
    assert_eq!((text(&own["place"]), &own["verified"]), ("S517".to_owned(), &json!(false)));
}

#[rstest]
fn another_room_after_the_dates_were_shown_books_no_date_on_which_it_is_not_held(
    #[values(Sqlite, Postgres)] backend: Backend,
) {
    let club = Club::start(backend);
    let first = DATES.map(|date| verified_on(&club, "S516", date));
    let second = verified_on(&club, "S517", DATES[0]);
    let (shown, mut form) = again(&club, &weekly_in(&club, &first[0], "4"), 200);
    assert!(!shown.contains("does not hold"), "{shown}");
    assert_eq!(listed(&form).1, DATES);
    set(&mut form, "room", &second);
    let (refused, form) = again(&club, &form, 409);
    assert_eq!(refused.matches("The club does not hold S517 then.").count(), 3, "{refused}");
    assert_eq!(starts(&club), Vec::<String>::new());
    assert_eq!(listed(&form).1, DATES[..1]);
    send(&club, BOB, "/events/new", &form).expect(303);
    assert_eq!(booked(&club, "roomId"), [second]);
}

#[rstest]
fn the_dates_are_shown_before_anything_else_is_typed(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut form = new_form(&club);
    for (name, value) in [("repeat", "weekly"), ("times", "3"), ("name", ""), ("place", ""), ("groupId", "")] {
        set(&mut form, name, value);
    }
    set(&mut form, "description", "Bring a laptop");
    let (refused, _) = again(&club, &form, 400);
    assert!(refused.contains("id=\"f-name-error\""), "{refused}");
    set(&mut form, "showDates", "true");
    let (shown, typed) = again(&club, &form, 200);
    assert!(shown.contains("<button name=\"showDates\" value=\"true\" formnovalidate>"), "{shown}");
    assert!(!shown.contains("-error\"") && typed.contains(&("description".to_owned(), "Bring a laptop".to_owned())));
    assert_eq!(listed(&typed), (DATES[..3].to_vec(), DATES[..3].to_vec()));
    for place in ["a\0", &"a".repeat(33)] {
        set(&mut form, "place", place);
        assert_eq!(listed(&again(&club, &form, 200).1).1, DATES[..3], "{place}");
    }
    // The dates are those of the room that the form shows as chosen.
    let room = verified_on(&club, "S516", DATES[0]);
    set(&mut form, "place", "");
    let (shown, typed) = again(&club, &form, 200);
    assert!(typed.contains(&("room".to_owned(), room)), "{typed:?}");
    assert_eq!(shown.matches("The club does not hold S516 then.").count(), 2, "{shown}");
    assert_eq!(listed(&typed).1, DATES[..1]);
}

#[rstest]
fn another_room_can_be_chosen_for_a_date(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let first = [0, 1].map(|n| verified_on(&club, "S516", DATES[n]));
    let second = [1, 2].map(|n| verified_on(&club, "S517", DATES[n]));
    verified_on(&club, "S518", DATES[2]);
    book_on(&club, "S516", DATES[1]);
    book_on(&club, "S518", DATES[2]);
    let (shown, form) = again(&club, &weekly_in(&club, &first[0], "3"), 200);
    assert_eq!(listed(&form).1, DATES[..1]);
    assert!(shown.contains("Check the 3 dates below; 2 of them need a choice."), "{shown}");
    // The unfinished form stays open.
    assert!(shown.contains(" target=\"_blank\" rel=\"noopener\">Rust evening</a>"), "{shown}");
    // The date on which the room is taken has no other choice; it can be booked where the club does not hold it.
    let offers = |shown: &str| {
        let lists = shown.split("<select name=\"roomOn\"").skip(1).map(|list| list.split("</select>").next().unwrap());
        lists.map(|list| list.split("<option ").skip(1).map(str::to_owned).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    let offered = offers(&shown);
    assert_eq!(offered.len(), 2, "{shown}");
    assert_eq!(offered[0], ["value=\"2030-01-08 S517\">S517, free</option>"]);
    assert_eq!(
        offered[1],
        ["value=\"\">S516 · not confirmed</option>", "value=\"2030-01-15 S517\">S517, free</option>"]
    );
    let mut form = ticked(&ticked(&form, DATES[1]), DATES[2]);
    form.retain(|(name, _)| name != "roomOn");
    for date in &DATES[1..3] {
        form.push(("roomOn".to_owned(), format!("{date} S517")));
    }
    set(&mut form, "showDates", "true");
    let (shown, mut form) = again(&club, &form, 200);
    assert!(shown.contains("Check the 3 dates below.<") && !shown.contains("does not hold"), "{shown}");
    assert_eq!(listed(&form).1, DATES[..3]);
    // A place that the club does not hold then is no choice.
    let mut elsewhere = form.clone();
    elsewhere.retain(|(name, _)| name != "roomOn");
    elsewhere.push(("roomOn".to_owned(), format!("{} S519", DATES[1])));
    let (refused, _) = again(&club, &elsewhere, 409);
    assert!(refused.contains("The club does not hold S519 then."), "{refused}");
    form.retain(|(name, _)| name != "showDates");
    send(&club, BOB, "/events/new", &form).expect(303);
    assert_eq!(booked(&club, "place"), ["S516", "S517", "S517"]);
    assert_eq!(booked(&club, "roomId"), [&first[0], &second[0], &second[1]].map(String::as_str));
}
