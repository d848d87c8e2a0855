//! Series on the pages: the dates are listed before anything is booked, changes reach later dates, one answer for all.

use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    builders::{EVERYONE, each, text},
    front_page::{
        forms::{Fields, fields, open, send, set},
        page,
    },
    harness::{
        ALICE, BOB,
        Backend::{self, Postgres, Sqlite},
        CAROL, Club, id,
    },
    series::{book_on, series, verified_on},
};

/// The form of an event on 1 January 2030, a Tuesday.
pub fn new_form(club: &Club) -> Fields {
    let mut form = fields(&open(club, BOB, "/events/new"), "/events/new");
    for (name, value) in [
        ("date", "2030-01-01"),
        ("from", "18:00"),
        ("until", "20:00"),
        ("endDate", ""),
        ("name", "Evening"),
        ("place", "S516"),
        ("groupId", EVERYONE),
    ] {
        set(&mut form, name, value);
    }
    form
}

/// The days of the events of the form.
pub fn starts(club: &Club) -> Vec<String> {
    let events = club.by(BOB).get("/api/events").expect(200).json();
    let mine = events.as_array().unwrap().iter().filter(|event| event["name"] == "Evening");
    mine.map(|event| text(&event["timeStart"])[..10].to_owned()).collect()
}

/// The dates that a form lists, and those with a tick.
pub fn listed(form: &Fields) -> (Vec<&str>, Vec<&str>) {
    let of = |name| form.iter().filter(|(other, _)| other == name).map(|(_, value)| value.as_str()).collect();
    (of("listed"), of("on"))
}

#[rstest]
fn the_dates_are_listed_with_what_is_in_the_way(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    verified_on(&club, "S516", "2030-01-15");
    book_on(&club, "S516", "2030-01-15");
    let mut form = new_form(&club);
    for (name, value) in [("repeat", "weekly"), ("times", "4")] {
        set(&mut form, name, value);
    }
    // Even without the button, the dates come first.
    let shown = page::check(&send(&club, BOB, "/events/new", &form).expect(200));
    assert_eq!(starts(&club), Vec::<String>::new());
    assert!(shown.contains("The room is taken."), "{shown}");
    assert!(shown.contains(" target=\"_blank\" rel=\"noopener\">Rust evening</a>"), "{shown}");
    let notice = shown.split("<div class=\"refusal\" role=\"alert\">").nth(1).unwrap_or_else(|| panic!("{shown}"));
    let said = "Nothing is booked yet. Check the 4 dates below; 1 of them is taken.";
    assert!(notice.split("</div>").next().unwrap().contains(said), "{notice}");
    assert!(notice.contains("href=\"#dates\"") && shown.contains("id=\"dates\""), "{shown}");
    let mut form = fields(&shown, "/events/new");
    let (all, on) = listed(&form);
    assert_eq!(all, ["2030-01-01", "2030-01-08", "2030-01-15", "2030-01-22"]);
    assert_eq!(on, ["2030-01-01", "2030-01-08", "2030-01-22"]);
    // Another rule has other dates, which are listed first.
    set(&mut form, "times", "5");
    let mut form = fields(&page::check(&send(&club, BOB, "/events/new", &form).expect(200)), "/events/new");
    assert_eq!(listed(&form).0.len(), 5);
    // Dates of which none is taken.
    let mut free = new_form(&club);
    for (name, value) in [("repeat", "daily"), ("times", "3")] {
        set(&mut free, name, value);
    }
    let free = page::check(&send(&club, BOB, "/events/new", &free).expect(200));
    assert!(free.contains("Nothing is booked yet. Check the 3 dates below.<"), "{free}");
    form.retain(|field| *field != ("on".to_owned(), "2030-01-08".to_owned()));
    let mut again = form.clone();
    set(&mut again, "showDates", "true");
    let again = fields(&page::check(&send(&club, BOB, "/events/new", &again).expect(200)), "/events/new");
    assert_eq!(listed(&again).1, ["2030-01-01", "2030-01-22", "2030-01-29"], "ticks stay as they are");
    // Who ticks a date that is taken is told so.
    let mut taken = form.clone();
    taken.push(("on".to_owned(), "2030-01-15".to_owned()));
    let refused = page::check(&send(&club, BOB, "/events/new", &taken).expect(409));
    assert!(refused.contains("The room is taken."), "{refused}");
    let booked = send(&club, BOB, "/events/new", &form).expect(303);
    assert_eq!(starts(&club), ["2030-01-01", "2030-01-22", "2030-01-29"]);
    let shown = open(&club, BOB, booked.header("location").unwrap());
    assert!(shown.contains("Booked.") && shown.contains("Date 1 of 3 of a series"), "{shown}");
}

#[rstest]
fn a_chosen_room_stands_for_its_place(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let rooms = ["2030-01-01", "2030-01-08", "2030-01-15"].map(|day| verified_on(&club, "S516", day));
    book_on(&club, "S516", "2030-01-15");
    let mut form = new_form(&club);
    set(&mut form, "place", "");
    set(&mut form, "showRooms", "true");
    // The first free room is chosen.
    let mut form = fields(&page::check(&send(&club, BOB, "/events/new", &form).expect(200)), "/events/new");
    assert!(form.contains(&("room".to_owned(), rooms[0].clone())), "{form:?}");
    for (name, value) in [("repeat", "weekly"), ("times", "3")] {
        set(&mut form, name, value);
    }
    let shown = page::check(&send(&club, BOB, "/events/new", &form).expect(200));
    assert!(shown.contains("The room is taken.") && !shown.contains("does not hold"), "{shown}");
    let form = fields(&shown, "/events/new");
    assert_eq!(listed(&form).1, ["2030-01-01", "2030-01-08"]);
    send(&club, BOB, "/events/new", &form).expect(303);
    assert_eq!(starts(&club), ["2030-01-01", "2030-01-08"]);
    let all = club.by(BOB).get("/api/events").expect(200).json();
    let booked = all.as_array().unwrap().iter().filter(|event| event["name"] == "Evening");
    assert_eq!(booked.map(|event| text(&event["roomId"])).collect::<Vec<_>>(), rooms[..2]);
    // A room and another place are one too many.
    let mut both = new_form(&club);
    set(&mut both, "room", &rooms[0]);
    let refused = page::check(&send(&club, BOB, "/events/new", &both).expect(400));
    assert!(refused.contains("id=\"f-place-error\""), "{refused}");
    // Enter presses the first button of a form.
    let shown = open(&club, BOB, "/events/new");
    let first = shown.split("action=\"/events/new\"").nth(1).unwrap().split("<button").nth(1).unwrap();
    assert!(first.starts_with(" hidden>Book</button>"), "{first}");
}

/// The values of a form, and its dates.
type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);

#[rstest]
fn every_kind_of_rule_can_be_chosen(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let cases: [Case<'_>; 5] = [
        (&[("repeat", "daily"), ("every", "2"), ("times", "3")], &["2030-01-01", "2030-01-03", "2030-01-05"]),
        (&[("repeat", "weekly"), ("day", "TH"), ("times", "3")], &["2030-01-01", "2030-01-03", "2030-01-08"]),
        (&[("repeat", "monthly"), ("repeatUntil", "2030-03-01")], &["2030-01-01", "2030-02-01", "2030-03-01"]),
        (&[("repeat", "weekday"), ("times", "3")], &["2030-01-01", "2030-02-05", "2030-03-05"]),
        (&[("repeat", "weekday"), ("times", "2"), ("date", "2030-01-29")], &["2030-01-29", "2030-02-26"]),
    ];
    for (values, expected) in cases {
        let mut form = new_form(&club);
        for (name, value) in values {
            set(&mut form, name, value);
        }
        let shown = page::check(&send(&club, BOB, "/events/new", &form).expect(200));
        assert_eq!(listed(&fields(&shown, "/events/new")).0, expected, "{values:?}");
    }
    for values in [
        &[("repeat", "weekly")][..],
        &[("repeat", "weekly"), ("times", "x")],
        &[("repeat", "daily"), ("times", "101")],
        &[("repeat", "weekly"), ("repeatUntil", "2029-01-01")],
    ] {
        let mut form = new_form(&club);
        for (name, value) in values {
            set(&mut form, name, value);
        }
        page::check(&send(&club, BOB, "/events/new", &form).expect(400));
    }
}

#[rstest]
fn a_change_and_an_answer_reach_all_later_dates(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (path, made) = series(&club, BOB, "S516", "FREQ=WEEKLY;COUNT=4");
    let ids = each(&made["events"], "eventId");
    let edit = format!("/events/{}/edit", ids[1]);
    let mut stale = fields(&open(&club, BOB, &edit), &edit);
    let mut form = fields(&open(&club, BOB, &edit), &edit);
    for (name, value) in [("scope", "later"), ("name", "Night"), ("from", "19:00"), ("place", "S517")] {
        set(&mut form, name, value);
    }
    send(&club, BOB, &edit, &form).expect(303);
    let shown = club.by(BOB).get(&path).expect(200).json();
    assert_eq!(each(&shown["events"], "name"), ["Rust evening", "Night", "Night", "Night"]);
    assert_eq!(each(&shown["events"], "place"), ["S516", "S517", "S517", "S517"]);
    assert_eq!(text(&shown["events"][3]["timeStart"]), "2030-01-22T19:00:00+09:00");
    // Whoever has not seen the change is asked, and only one date moves to another day.
    set(&mut stale, "scope", "later");
    page::check(&send(&club, BOB, &edit, &stale).expect(412));
    let mut form = fields(&open(&club, BOB, &edit), &edit);
    set(&mut form, "scope", "later");
    set(&mut form, "date", "2030-01-09");
    page::check(&send(&club, BOB, &edit, &form).expect(400));
    set(&mut form, "scope", "one");
    send(&club, BOB, &edit, &form).expect(303);
    let alone = open(&club, BOB, &edit);
    assert!(!alone.contains("name=\"scope\""), "it is left out by changes of the series");
    // What is in the way of a later date.
    verified_on(&club, "S518", "2030-01-22");
    book_on(&club, "S518", "2030-01-22");
    let edit = format!("/events/{}/edit", ids[2]);
    let mut form = fields(&open(&club, BOB, &edit), &edit);
    set(&mut form, "scope", "later");
    set(&mut form, "place", "S518");
    let refused = page::check(&send(&club, BOB, &edit, &form).expect(409));
    assert!(refused.contains("The room is taken."), "{refused}");
    page::check(&send(&club, CAROL, &edit, &form).expect(403));
    // One answer.
    let event = format!("/events/{}", ids[2]);
    assert!(open(&club, CAROL, &event).contains("This and all later dates"));
    let answer =
        |series: &str| vec![("schedule".to_owned(), "attendance".to_owned()), ("series".to_owned(), series.to_owned())];
    send(&club, CAROL, &format!("{event}/answer"), &answer("true")).expect(303);
    send(&club, ALICE, &format!("{event}/answer"), &answer("")).expect(303);
    let comes = |by: &str| -> Vec<bool> {
        let detail = |event: &String| club.by(BOB).get(&format!("/api/events/{event}")).expect(200).json();
        let answered = |event: Value| {
            let answers = event["attendees"].as_array().unwrap().clone();
            answers.iter().any(|one| one["userId"] == json!(id(by)) && one["schedule"] == "attendance")
        };
        ids.iter().map(|event| answered(detail(event))).collect()
    };
    assert_eq!(comes(CAROL), [false, false, true, true]);
    assert_eq!(comes(ALICE), [false, false, true, false]);
}

#[rstest]
fn one_date_the_later_ones_or_all_are_deleted(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (_, made) = series(&club, BOB, "S516", "FREQ=WEEKLY;COUNT=5");
    let ids = each(&made["events"], "eventId");
    let left = || {
        let all = club.by(BOB).get("/api/events").expect(200).json();
        let all = each(&all, "eventId");
        ids.iter().map(|id| all.contains(id)).collect::<Vec<_>>()
    };
    let delete = |by: &str, date: usize, scope: &str, status: u16| {
        let path = format!("/events/{}/delete", ids[date]);
        let mut form = fields(&open(&club, BOB, &path), &path);
        assert!(form.contains(&("scope".to_owned(), "one".to_owned())), "{form:?}");
        set(&mut form, "scope", scope);
        send(&club, by, &path, &form).expect(status)
    };
    delete(CAROL, 3, "later", 403);
    delete(BOB, 1, "one", 303);
    assert_eq!(left(), [true, false, true, true, true]);
    let landed = delete(BOB, 3, "later", 303);
    assert_eq!(left(), [true, false, true, false, false]);
    // They can be restored where one lands, and each by itself.
    let shown = open(&club, BOB, landed.header("location").unwrap());
    let restore = format!("/series/{}/restore", text(&made["seriesId"]));
    assert!(shown.contains("Deleted.") && shown.contains(&restore), "{shown}");
    assert!(open(&club, BOB, "/deleted").contains(&format!("/events/{}/restore", ids[4])));
    // Somebody has changed the date meanwhile.
    let path = format!("/events/{}/delete", ids[2]);
    let mut stale = fields(&open(&club, BOB, &path), &path);
    let edit = format!("/events/{}/edit", ids[2]);
    let mut changed = fields(&open(&club, BOB, &edit), &edit);
    set(&mut changed, "name", "Night");
    send(&club, BOB, &edit, &changed).expect(303);
    set(&mut stale, "scope", "all");
    page::check(&send(&club, BOB, &path, &stale).expect(412));
    assert_eq!(left(), [true, false, true, false, false]);
    delete(BOB, 2, "all", 303);
    assert_eq!(left(), [false; 5]);
}
