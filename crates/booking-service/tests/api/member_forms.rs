//! The forms of the pages: they do what the operations do, and a refusal loses nothing.

use common::time::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    builders::{At, EVERYONE, answer_poll, event, event_body, group, landed, merge, poll, span, text, verified_room},
    front_page::{
        forms::{Fields, attribute, fields, open, send, set},
        page,
    },
    harness::{
        ALICE, BOB,
        Backend::{self, Postgres, Sqlite},
        CAROL, Club, DAVE, id,
    },
    sign_in::HTML,
};

/// Day and times of a span of hours from now, as the club's clocks (`Asia/Tokyo`) show them.
fn local(club: &Club, from: i64, to: i64) -> [String; 3] {
    let span = span(club, from, to);
    let at = |name: &str| {
        span[name].as_str().unwrap().parse::<Timestamp>().unwrap().in_zone(chrono_tz::Tz::Asia__Tokyo).to_string()
    };
    let (start, end) = (at("timeStart"), at("timeEnd"));
    [start[..10].to_owned(), start[11..16].to_owned(), end[11..16].to_owned()]
}

fn set_time(club: &Club, fields: &mut Fields, (from, to): (i64, i64)) {
    let [date, from, until] = local(club, from, to);
    for (name, value) in [("date", date), ("from", from), ("until", until), ("endDate", String::new())] {
        set(fields, name, &value);
    }
}

fn events(club: &Club) -> Vec<Value> {
    club.by(BOB).get("/api/events").expect(200).json().as_array().unwrap().clone()
}

#[rstest]
fn a_member_books_a_room_once_however_often_the_button_is_pressed(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let room = verified_room(&club, ALICE, "S516", (1, 9));
    let mut form = fields(&open(&club, BOB, "/events/new"), "/events/new");
    set_time(&club, &mut form, (2, 4));
    // The rooms that are free then.
    set(&mut form, "showRooms", "true");
    let offered = page::check(&send(&club, BOB, "/events/new", &form).expect(200));
    assert!(offered.contains(&format!("name=\"room\" value=\"{room}\"")), "{offered}");
    let mut form = fields(&offered, "/events/new");
    for (name, value) in
        [("room", room.as_str()), ("name", "Tea & cake"), ("description", "1\r\n2"), ("tags", "#tea, cake")]
    {
        set(&mut form, name, value);
    }
    set(&mut form, "groupId", EVERYONE);
    let booked = send(&club, BOB, "/events/new", &form).expect(303);
    let path = booked.header("location").unwrap();
    for _ in 0..3 {
        assert_eq!(send(&club, BOB, "/events/new", &form).expect(303).header("location"), Some(path));
    }
    let all = events(&club);
    assert_eq!(all.len(), 1);
    let event = &all[0];
    assert_eq!((text(&event["name"]), text(&event["description"])), ("Tea & cake".to_owned(), "1\n2".to_owned()));
    assert_eq!((text(&event["roomId"]), text(&event["groupId"])), (room, EVERYONE.to_owned()));
    assert_eq!((&event["admins"], event["tags"].as_array().unwrap().len()), (&json!([id(BOB)]), 2));
    assert_eq!(
        event["timeStart"].as_str().unwrap().parse::<Timestamp>(),
        span(&club, 2, 4)["timeStart"].as_str().unwrap().parse()
    );
    let shown = open(&club, BOB, path);
    assert!(shown.contains("<h1>Tea &amp; cake</h1>") && shown.contains("#cake") && shown.contains("BOB"), "{shown}");
    // The page says so once, not whenever it is opened, and there is nothing to take back.
    assert!(shown.contains("<div class=\"flash\" role=\"status\">Booked.</div>"), "{shown}");
    assert!(!open(&club, BOB, &landed(&booked)).contains("Booked."));
    let listed = |query: &str| open(&club, BOB, &format!("/events?{query}")).contains("Tea &amp; cake");
    let month = &event["timeStart"].as_str().unwrap()[..7];
    assert!(listed(&format!("month={month}&tag=cake")) && listed(&format!("month={month}&group={EVERYONE}")));
    assert!(!listed("month=2020-01"));
    assert!(listed("search=TEA") && listed("search=tea+s516+cake&tag=tea") && !listed("search=coffee"));
    assert!(!listed("tag=nothing"));
    let wrong = club.by(BOB).header("accept", HTML).get("/events?search=a+b+c+d+e+f+g+h+i").expect(400);
    assert!(page::check(&wrong).contains("id=\"f-search-error\""), "{wrong:?}");
    // The same form with other values is asked about, and then sent once more.
    set(&mut form, "name", "Another");
    set_time(&club, &mut form, (4, 5));
    let asked = page::check(&send(&club, BOB, "/events/new", &form).expect(422));
    send(&club, BOB, "/events/new", &fields(&asked, "/events/new")).expect(303);
    assert_eq!(events(&club).len(), 2);
}

#[rstest]
fn a_refusal_keeps_what_was_typed(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut form = fields(&open(&club, BOB, "/events/new"), "/events/new");
    let typed = [
        ("name", "\u{2800}"),
        ("description", "<b>&\nlong"),
        ("place", "Room <1>"),
        ("tags", "a b"),
        ("admins", "bob nobody"),
        ("open", "true"),
        ("sharedRoom", "true"),
        ("until", "x"),
        ("groupId", EVERYONE),
    ];
    for (name, value) in typed {
        set(&mut form, name, value);
    }
    let mut refused = send(&club, BOB, "/events/new", &form).expect(400);
    let again = fields(&page::check(&refused), "/events/new");
    // Who was found is chosen.
    for (name, value) in
        typed.into_iter().filter(|(name, _)| *name != "admins").chain([("admins", "bob"), ("admins", "nobody")])
    {
        assert!(again.contains(&(name.to_owned(), value.to_owned())), "{name} in {again:?}");
    }
    assert!(refused.text().contains("id=\"f-admins-error\">There is no member nobody."), "{refused:?}");
    set(&mut form, "admins", "@BOB");
    refused = send(&club, BOB, "/events/new", &form).expect(400);
    assert!(refused.text().contains("id=\"f-until-error\">Please write the time like 18:30."), "{refused:?}");
    set_time(&club, &mut form, (2, 3));
    refused = send(&club, BOB, "/events/new", &form).expect(400);
    assert!(refused.text().contains("id=\"f-name-error\">Please write something."), "{refused:?}");
    set(&mut form, "name", "Tea");
    send(&club, BOB, "/events/new", &form).expect(303);
}

#[rstest]
fn nobody_is_invited_before_a_group_is_chosen(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    group(&club, BOB, "mine", &[BOB, CAROL]);
    let shown = open(&club, BOB, "/events/new");
    let of = |shown: &str| fields(shown, "/events/new").into_iter().find(|(name, _)| name == "groupId").unwrap().1;
    assert_eq!(of(&shown), "");
    let field = shown.split("<select id=\"f-groupId\" name=\"groupId\" required").nth(1);
    assert!(field.unwrap_or_else(|| panic!("{shown}")).contains("<option value=\"\" selected>Please choose</option>"));
    let mut form = fields(&shown, "/events/new");
    for (name, value) in [("name", "Tea"), ("place", "Park"), ("room", "")] {
        set(&mut form, name, value);
    }
    let refused = page::check(&send(&club, BOB, "/events/new", &form).expect(400));
    assert!(refused.contains("id=\"f-groupId-error\">Please choose a group."), "{refused}");
    assert!(events(&club).is_empty());
    // That of a link or of another event stays chosen.
    assert_eq!(of(&open(&club, BOB, &format!("/events/new?groupId={EVERYONE}"))), EVERYONE);
    let other = event(&club, CAROL, At::Place("Park"), (2, 4));
    assert_eq!(of(&open(&club, BOB, &format!("/events/new?copy={other}"))), EVERYONE);
}

#[rstest]
fn an_end_that_is_not_after_the_start_books_no_night(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let booked = |values: &[(&str, &str)]| {
        let mut form = fields(&open(&club, BOB, "/events/new"), "/events/new");
        for (name, value) in [("name", "Tea"), ("place", "Park"), ("date", "2031-05-10"), ("endDate", "")] {
            set(&mut form, name, value);
        }
        set(&mut form, "groupId", EVERYONE);
        for (name, value) in values {
            set(&mut form, name, value);
        }
        let answer = send(&club, BOB, "/events/new", &form);
        if answer.status != 303 {
            let shown = page::check(&answer.expect(400));
            let wrong = ["date", "from", "until", "endDate"].into_iter();
            return Err(wrong.filter(|name| shown.contains(&format!("id=\"f-{name}-error\""))).collect::<Vec<_>>());
        }
        let path = landed(&answer);
        let event = club.by(BOB).get(&format!("/api{path}")).expect(200).json();
        club.by(BOB).delete(&format!("/api{path}")).expect(204);
        // Saved as it is, it would stay the same.
        Ok(["timeStart", "timeEnd"].map(|name| text(&event[name])[8..16].to_owned()))
    };
    let span = |start: &str, end: &str| Ok([start.to_owned(), end.to_owned()]);
    for until in ["17:00", "18:00", "06:01"] {
        assert_eq!(booked(&[("from", "18:00"), ("until", until)]), Err(vec!["until"]), "{until}");
    }
    assert_eq!(booked(&[("from", "18:00"), ("until", "06:00")]), span("10T18:00", "11T06:00"));
    assert_eq!(booked(&[("from", "18:00"), ("until", "24:00")]), span("10T18:00", "11T00:00"));
    assert_eq!(
        booked(&[("from", "18:00"), ("until", "17:00"), ("endDate", "2031-05-11")]),
        span("10T18:00", "11T17:00")
    );
    assert_eq!(booked(&[("from", "18:00"), ("until", "17:00"), ("endDate", "2031-05-10")]), Err(vec!["until"]));
    // What is clear is read.
    let typed = [("date", "２０３１/５/１０"), ("from", "午後6:00"), ("until", "８:30 PM"), ("endDate", "\u{3000}")];
    assert_eq!(booked(&typed), span("10T18:00", "10T20:30"));
    for date in ["1969-12-31", "9999-01-01", "10.5.2031"] {
        assert_eq!(booked(&[("from", "18:00"), ("until", "20:00"), ("date", date)]), Err(vec!["date"]), "{date}");
    }
    assert_eq!(booked(&[("from", "1800"), ("until", "25:00")]), Err(vec!["from", "until"]));
    // A long event keeps its end when it is changed.
    let mut form = fields(&open(&club, BOB, "/events/new"), "/events/new");
    let night = [("name", "Night"), ("place", "Park"), ("date", "2031-05-10"), ("from", "18:00"), ("until", "18:00")];
    for (name, value) in night.into_iter().chain([("endDate", "2031-05-11"), ("groupId", EVERYONE)]) {
        set(&mut form, name, value);
    }
    let path = landed(&send(&club, BOB, "/events/new", &form).expect(303));
    let saved = || club.by(BOB).get(&format!("/api{path}")).expect(200).json();
    let (before, edit) = (saved(), format!("{path}/edit"));
    send(&club, BOB, &edit, &fields(&open(&club, BOB, &edit), &edit)).expect(303);
    assert_eq!(saved(), before);
}

#[rstest]
fn a_conflict_offers_the_free_times(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let room = verified_room(&club, ALICE, "S516", (1, 9));
    event(&club, CAROL, At::Room(&room), (2, 4));
    let mut form = fields(&open(&club, BOB, "/events/new"), "/events/new");
    set_time(&club, &mut form, (3, 5));
    for (name, value) in [("room", room.as_str()), ("name", "Tea"), ("groupId", EVERYONE)] {
        set(&mut form, name, value);
    }
    let refused = send(&club, BOB, "/events/new", &form).expect(409);
    let shown = page::check(&refused);
    assert!(shown.contains("Rust evening"), "who is there: {shown}");
    let [date, from, until] = local(&club, 4, 6);
    assert!(shown.contains(&format!("<button name=\"at\" value=\"{date} {from} {until}\">")), "{shown}");
    let mut again = fields(&shown, "/events/new");
    set(&mut again, "at", &format!("{date} {from} {until}"));
    send(&club, BOB, "/events/new", &again).expect(303);
    let booked = events(&club).into_iter().find(|event| event["name"] == "Tea").unwrap();
    let wanted = span(&club, 4, 6)["timeStart"].as_str().unwrap().parse::<Timestamp>();
    assert_eq!(booked["timeStart"].as_str().unwrap().parse::<Timestamp>(), wanted);
}

#[rstest]
fn a_change_of_somebody_else_is_shown_beside_ones_own(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let event = event(&club, BOB, At::Place("Discord"), (2, 4));
    let path = format!("/events/{event}/edit");
    let saved = || club.by(BOB).get(&format!("/api/events/{event}")).expect(200).json();
    // Saved as it is, it does not change.
    let before = saved();
    send(&club, BOB, &path, &fields(&open(&club, BOB, &path), &path)).expect(303);
    assert_eq!(saved(), before);
    let (mut mine, mut theirs) = (fields(&open(&club, BOB, &path), &path), fields(&open(&club, ALICE, &path), &path));
    set(&mut theirs, "name", "Theirs");
    send(&club, ALICE, &path, &theirs).expect(303);
    set(&mut mine, "name", "Mine");
    let shown = page::check(&send(&club, BOB, &path, &mine).expect(412));
    assert!(shown.contains("Somebody has changed this meanwhile") && shown.contains("Theirs"), "{shown}");
    assert_eq!(saved()["name"], "Theirs");
    send(&club, BOB, &path, &fields(&shown, &path)).expect(303);
    assert_eq!(saved()["name"], "Mine");
    // Neither the form nor its target is for others.
    club.by(CAROL).header("accept", HTML).get(&path).expect(403);
    set(&mut mine, "_tag", "");
    send(&club, CAROL, &path, &mine).expect(403);
    let delete = format!("/events/{event}/delete");
    send(&club, BOB, &delete, &fields(&open(&club, BOB, &delete), &delete)).expect(303);
    club.by(BOB).get(&format!("/api/events/{event}")).refused(404, "not-found");
}

#[rstest]
fn members_answer_and_another_site_cannot(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let event = event(&club, ALICE, At::Place("Discord"), (2, 4));
    let path = format!("/events/{event}/answer");
    let answer = |schedule: &str| vec![("schedule".to_owned(), schedule.to_owned()), ("to".to_owned(), "/".to_owned())];
    for shown in [open(&club, BOB, "/"), open(&club, BOB, &format!("/events/{event}"))] {
        assert!(shown.contains("class=\"card todo\"") && !shown.contains("aria-pressed=\"true\""), "{shown}");
    }
    assert_eq!(send(&club, BOB, &path, &answer("attendance")).expect(303).header("location"), Some("/"));
    assert!(!open(&club, BOB, "/").contains("class=\"card todo\""));
    let mine = || {
        let event = club.by(BOB).get(&format!("/api/events/{event}")).expect(200).json();
        let attendees = event["attendees"].as_array().unwrap().clone();
        text(&attendees.iter().find(|attendee| attendee["userId"] == id(BOB).to_string()).unwrap()["schedule"])
    };
    assert_eq!(mine(), "attendance");
    assert!(open(&club, BOB, "/").contains("<span class=\"badge good\">Going</span>"));
    // The month says which events are dark.
    let month = format!("/events?month={}", &local(&club, 2, 4)[0][..7]);
    let (own, other) = (open(&club, BOB, &month), open(&club, CAROL, &month));
    assert!(own.contains(" title=\"Going\">") && own.contains("Events of this colour"), "{own}");
    assert!(!other.contains(" title=\"Going\">") && !other.contains("Events of this colour"), "{other}");
    let shown = open(&club, BOB, &format!("/events/{event}"));
    assert!(shown.contains("aria-pressed=\"true\">Going"), "{shown}");
    send(&club, BOB, &path, &answer("perhaps")).expect(400);
    let other = club
        .by(BOB)
        .header("content-type", "application/x-www-form-urlencoded")
        .header("origin", "https://evil.example");
    other.send_bytes("POST", &path, b"schedule=absent".to_vec()).refused(403, "cross-site-request");
    assert_eq!(mine(), "attendance");
    let calendar = club.by(BOB).get(&format!("/events/{event}/calendar.ics")).expect(200);
    assert!(calendar.text().contains(&format!("UID:{event}")) && calendar.text().contains("/events/"), "{calendar:?}");
}

#[rstest]
fn a_poll_is_made_answered_and_confirmed(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut form = fields(&open(&club, ALICE, "/polls/new"), "/polls/new");
    set(&mut form, "times", "18:00-20:00 23:00-1:00");
    set(&mut form, "days", "2");
    set(&mut form, "showGrid", "true");
    let grid = page::check(&send(&club, ALICE, "/polls/new", &form).expect(200));
    let mut form = fields(&grid, "/polls/new");
    assert_eq!(form.iter().filter(|(name, _)| name == "slot").count(), 4, "{form:?}");
    set(&mut form, "name", "Kick-off");
    set(&mut form, "groupId", EVERYONE);
    let path = send(&club, ALICE, "/polls/new", &form).expect(303).header("location").unwrap().to_owned();
    assert!(open(&club, BOB, "/").contains(&path) && open(&club, BOB, "/polls").contains(&path));
    let answer = format!("{path}/answer");
    let shown = open(&club, BOB, &path);
    let mut choices = fields(&shown, &answer);
    // Nothing is chosen before an answer, so a browser would send none of them.
    let mut slots: Vec<_> = shown.split(" name=\"slot-").skip(1).map(|name| format!("slot-{}", &name[..36])).collect();
    slots.dedup();
    set(&mut choices, &slots[0], "maybe");
    set(&mut choices, &slots[1], "yes");
    set(&mut choices, "comment", "<late>");
    send(&club, BOB, &answer, &choices).expect(303);
    let shown = open(&club, BOB, &path);
    assert!(
        shown.contains("&lt;late&gt;")
            && shown.contains("Change my answer")
            && shown.contains("<span class=\"badge good\">Best</span>"),
        "{shown}"
    );
    assert!(!open(&club, BOB, "/").contains(&path));
    let mut again = fields(&shown, &answer);
    set(&mut again, &slots[0], "yes");
    send(&club, BOB, &answer, &again).expect(303);
    let confirm = format!("{path}/confirm");
    club.by(BOB).header("accept", HTML).get(&confirm).expect(403);
    let mut event = fields(&open(&club, ALICE, &confirm), &confirm);
    assert_eq!(event.iter().find(|(name, _)| name == "slotId").unwrap().1, slots[0]["slot-".len()..]);
    assert!(page::check(&send(&club, ALICE, &confirm, &event).expect(400)).contains("id=\"f-place-error\""));
    set(&mut event, "place", "Discord");
    let made = landed(&send(&club, ALICE, &confirm, &event).expect(303));
    assert!(open(&club, BOB, &made).contains("<h1>Kick-off</h1>"));
    assert!(open(&club, BOB, &path).contains(&made));
    let (other, _) = poll(&club, ALICE, json!({}));
    let other = format!("/polls/{}", other.rsplit('/').next().unwrap());
    let delete = format!("{other}/delete");
    send(&club, ALICE, &delete, &fields(&open(&club, ALICE, &delete), &delete)).expect(303);
    club.by(BOB).header("accept", HTML).get(&other).expect(404);
    // Whoever is not invited may answer an open one.
    let (own, slots) = poll(&club, ALICE, json!({"invitees": [id(CAROL)]}));
    answer_poll(&club, CAROL, &own, &[&slots[0]]).expect(201);
    let (of_all, slots) = poll(&club, ALICE, json!({"open": true, "invitees": [id(CAROL)]}));
    answer_poll(&club, BOB, &of_all, &[&slots[0]]).expect(201);
    for (path, answered) in [(own, "1 of 1 have answered"), (of_all, "1 answered")] {
        let path = format!("/polls/{}", path.rsplit('/').next().unwrap());
        assert!(open(&club, ALICE, &path).contains(answered), "{answered}");
        assert!(open(&club, ALICE, "/polls").contains(answered), "{answered}");
    }
}

#[rstest]
fn a_poll_asks_somebody_and_its_event_is_of_its_group(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    group(&club, ALICE, "aardvark", &[ALICE, DAVE]);
    let asked = group(&club, ALICE, "zebra", &[BOB, CAROL]);
    let mut form = fields(&open(&club, ALICE, "/polls/new"), "/polls/new");
    for (name, value) in [("name", "Trip"), ("groupId", "")] {
        set(&mut form, name, value);
    }
    let refused = page::check(&send(&club, ALICE, "/polls/new", &form).expect(400));
    let nobody = "Nobody could answer this poll.";
    assert!(refused.contains(&format!("id=\"f-invitees-error\">{nobody}")), "{refused}");
    let mut form = fields(&refused, "/polls/new");
    set(&mut form, "groupId", &asked);
    let path = send(&club, ALICE, "/polls/new", &form).expect(303).header("location").unwrap().to_owned();
    let confirm = format!("{path}/confirm");
    let event = fields(&open(&club, ALICE, &confirm), &confirm);
    assert!(event.contains(&("groupId".to_owned(), asked)), "{event:?}");
    // Whoever is asked cannot all be taken away either.
    let edit = format!("{path}/edit");
    let mut form = fields(&open(&club, ALICE, &edit), &edit);
    set(&mut form, "invitees", "");
    let refused = page::check(&send(&club, ALICE, &edit, &form).expect(400));
    assert!(refused.contains(&format!("id=\"f-invitees-error\">{nobody}")), "{refused}");
    let mut form = fields(&refused, &edit);
    set(&mut form, "open", "true");
    send(&club, ALICE, &edit, &form).expect(303);
}

/// The times of a poll, on the clocks of the club.
fn times(club: &Club, path: &str) -> Vec<String> {
    let poll =
        club.by(ALICE).get(&format!("/api/draft-events/{}", path.rsplit('/').next().unwrap())).expect(200).json();
    let slots = poll["candidateSlots"].as_array().unwrap().clone();
    let at = |value: &Value| text(value)[..16].to_owned();
    slots.iter().map(|slot| format!("{} {}", at(&slot["timeStart"]), at(&slot["timeEnd"]))).collect()
}

#[rstest]
fn a_poll_asks_about_the_days_that_are_typed(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let typed = [("name", "Trip"), ("groupId", EVERYONE), ("deadlineDay", "２０３１年5月1日"), ("deadline", "午後9時")];
    let days = [("firstDay", "2031/5/10"), ("days", "２"), ("times", "13-15、２２：００〜２４：００")];
    let expected = [
        "2031-05-10T13:00 2031-05-10T15:00",
        "2031-05-10T22:00 2031-05-11T00:00",
        "2031-05-11T13:00 2031-05-11T15:00",
        "2031-05-11T22:00 2031-05-12T00:00",
    ];
    let mut form = fields(&open(&club, ALICE, "/polls/new"), "/polls/new");
    for (name, value) in typed.into_iter().chain(days) {
        set(&mut form, name, value);
    }
    // Without the button, and after a refusal of something else.
    let path = send(&club, ALICE, "/polls/new", &form).expect(303).header("location").unwrap().to_owned();
    assert_eq!(times(&club, &path), expected);
    form.retain(|(name, _)| name != "_key");
    let mut nameless = form.clone();
    set(&mut nameless, "name", "");
    let mut again = fields(&page::check(&send(&club, ALICE, "/polls/new", &nameless).expect(400)), "/polls/new");
    set(&mut again, "name", "Trip");
    let path = send(&club, ALICE, "/polls/new", &again).expect(303).header("location").unwrap().to_owned();
    assert_eq!(times(&club, &path), expected);
    // With it, those with a tick.
    set(&mut form, "showGrid", "true");
    let mut ticked = fields(&page::check(&send(&club, ALICE, "/polls/new", &form).expect(200)), "/polls/new");
    let first = ticked.iter().position(|(name, _)| name == "slot").unwrap();
    ticked.remove(first);
    let path = send(&club, ALICE, "/polls/new", &ticked).expect(303).header("location").unwrap().to_owned();
    assert_eq!(times(&club, &path), expected[1..]);
    // It is the same when it is edited; what is there already is not added again.
    let edit = format!("{path}/edit");
    let mut more = fields(&open(&club, ALICE, &edit), &edit);
    for (name, value) in days {
        set(&mut more, name, value);
    }
    send(&club, ALICE, &edit, &more).expect(303);
    assert_eq!(times(&club, &path), expected);
    // What cannot be read is refused at its field, by both buttons.
    for (name, value) in [
        ("times", "1-3pm"),
        ("times", "18-17"),
        ("times", "1-2 2-3 3-4 4-5 5-6 6-7 7-8 8-9 9-10 10-11 11-12"),
        ("days", "22"),
        ("days", "x"),
        ("firstDay", "10.5."),
        ("firstDay", "1969-05-10"),
        ("deadline", "late"),
        ("deadlineDay", "soon"),
    ] {
        for path in ["/polls/new", edit.as_str()] {
            let mut form = fields(&open(&club, ALICE, path), path);
            set(&mut form, "name", "Trip");
            set(&mut form, name, value);
            let refused = page::check(&send(&club, ALICE, path, &form).expect(400));
            assert!(refused.contains(&format!("id=\"f-{name}-error\"")), "{name} {value}: {refused}");
            set(&mut form, "showGrid", "true");
            let is_grid = !name.starts_with("deadline");
            page::check(&send(&club, ALICE, path, &form).expect(if is_grid { 400 } else { 200 }));
        }
    }
}

#[rstest]
fn groups_are_made_joined_changed_and_deleted(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut form = fields(&open(&club, BOB, "/groups/new"), "/groups/new");
    set(&mut form, "name", "guitar");
    set(&mut form, "open", "true");
    set(&mut form, "members", "bob\r\ncarol");
    let path = send(&club, BOB, "/groups/new", &form).expect(303).header("location").unwrap().to_owned();
    let group_id = path.rsplit('/').next().unwrap();
    let members = || club.by(BOB).get(&format!("/api{path}")).expect(200).json()["members"].as_array().unwrap().len();
    assert_eq!(members(), 2);
    let join = format!("{path}/join");
    send(&club, DAVE, &join, &fields(&open(&club, DAVE, &path), &join)).expect(303);
    assert_eq!(members(), 3);
    let leave = format!("{path}/leave");
    send(&club, DAVE, &leave, &fields(&open(&club, DAVE, &path), &leave)).expect(303);
    assert_eq!(members(), 2);
    let edit = format!("{path}/edit");
    let mut changed = fields(&open(&club, BOB, &edit), &edit);
    set(&mut changed, "members", "bob");
    send(&club, BOB, &edit, &changed).expect(303);
    assert_eq!(members(), 1);
    club.by(CAROL).header("accept", HTML).get(&edit).expect(403);
    let mut meeting = fields(&open(&club, BOB, "/events/new"), "/events/new");
    for (name, value) in [("name", "Practice"), ("place", "Park"), ("room", ""), ("groupId", group_id)] {
        set(&mut meeting, name, value);
    }
    send(&club, BOB, "/events/new", &meeting).expect(303);
    let delete = format!("{path}/delete");
    let refused = send(&club, BOB, &delete, &fields(&open(&club, BOB, &delete), &delete)).expect(409);
    let mut forced = fields(&page::check(&refused), &delete);
    set(&mut forced, "force", "true");
    send(&club, BOB, &delete, &forced).expect(303);
    assert!(events(&club).is_empty());
    group(&club, BOB, "other", &[]);
    assert!(open(&club, BOB, "/groups").contains("other"));
}

#[rstest]
fn members_manage_their_feed_tokens_and_sessions(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    send(&club, BOB, "/me/feed", &fields(&open(&club, BOB, "/me"), "/me/feed")).expect(303);
    let feed = |shown: &str| {
        let address = attribute(shown.split_once("id=\"feed\"").unwrap().1, "value").unwrap().to_owned();
        assert!(shown.contains(&address.replacen("http", "webcal", 1)), "{shown}");
        address.split_once("/api/").unwrap().1.to_owned()
    };
    let first = feed(&open(&club, BOB, "/me"));
    club.anonymous().get(&format!("/api/{first}")).expect(200);
    send(&club, BOB, "/me/feed", &fields(&open(&club, BOB, "/me"), "/me/feed")).expect(303);
    club.anonymous().get(&format!("/api/{first}")).refused(404, "not-found");
    club.anonymous().get(&format!("/api/{}", feed(&open(&club, BOB, "/me")))).expect(200);

    let mut form = fields(&open(&club, BOB, "/me"), "/me/tokens");
    assert!(page::check(&send(&club, BOB, "/me/tokens", &form).expect(400)).contains("id=\"f-name-error\""));
    set(&mut form, "name", "bot");
    let made = send(&club, BOB, "/me/tokens", &form).expect(201);
    assert_eq!(made.header("cache-control"), Some("no-store"));
    let shown = page::check(&made);
    let token = attribute(shown.split_once("id=\"token\"").unwrap().1, "value").unwrap().to_owned();
    let bot = || club.anonymous().header("authorization", &format!("Bearer {token}")).get("/api/users/me");
    bot().expect(200);
    let own = open(&club, BOB, "/me");
    let revoke = attribute(own.split("<form").find(|form| form.contains("/revoke\"")).unwrap(), "action").unwrap();
    send(&club, BOB, revoke, &fields(&own, revoke)).expect(303);
    bot().refused(401, "bad-credentials");
    // A token may not see this page's secrets of its owner's sessions, nor end them.
    assert!(own.contains("Here"), "{own}");
}

#[rstest]
fn privileged_users_upload_rooms_and_give_the_privilege(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let uploads = std::cell::Cell::new(0);
    let upload = |by: &str, fields: &[(&str, &str)]| {
        // A browser takes another boundary each time.
        let boundary = format!("frontier{}", uploads.replace(uploads.get() + 1));
        let parts = fields.iter().map(|(name, value)| {
            let file = if *name == "table" { "; filename=\"rooms.csv\"\r\nContent-Type: text/csv" } else { "" };
            format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n{value}\r\n")
        });
        let body = format!("{}--{boundary}--\r\n", parts.collect::<String>());
        let content_type = format!("multipart/form-data; boundary={boundary}");
        let client = club.by(by).header("accept", HTML).header("content-type", &content_type);
        client.send_bytes("POST", "/rooms/import", body.into_bytes())
    };
    let rooms = || club.by(BOB).get("/api/rooms").expect(200).json().as_array().unwrap().len();
    let head = "Subject,Start date,End date,Start time,End time,Location\n";
    let good =
        format!("{head}club,2099/04/04,2099/04/04,18:00,21:00,S516\nclub,2099/04/05,2099/04/05,18:00,21:00,<S>\n");
    let bad = format!("{head}club,2099/04/04,2099/04/04,18:00,21:00,S516\nclub,2099/04/31,2099/04/04,18:00,21:00,X\n");
    open(&club, ALICE, "/rooms/import");
    let marked = page::check(&upload(ALICE, &[("table", &bad)]).expect(400));
    assert!(marked.contains("Row 3") && marked.contains("2099/04/31"), "{marked}");
    let preview = page::check(&upload(ALICE, &[("table", &good)]).expect(200));
    assert!(preview.contains("&lt;S&gt;") && preview.contains("2 rooms"), "{preview}");
    assert_eq!(rooms(), 0);
    let confirmed = fields(&preview, "/rooms/import");
    let confirmed: Vec<_> = confirmed.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    upload(BOB, &confirmed).expect(403);
    upload(ALICE, &confirmed).expect(303);
    assert_eq!(rooms(), 2);
    upload(ALICE, &confirmed).expect(303);
    assert_eq!(rooms(), 2);
    let room = verified_room(&club, BOB, "Park", (1, 3));
    let path = format!("/rooms/{room}/verified");
    send(&club, ALICE, &path, &vec![("verified".to_owned(), "false".to_owned())]).expect(303);
    assert_eq!(club.by(BOB).get(&format!("/api/rooms/{room}")).expect(200).json()["verified"], false);
    let delete = format!("/rooms/{room}/delete");
    send(&club, BOB, &delete, &fields(&open(&club, BOB, &delete), &delete)).expect(303);
    let mut grant = fields(&open(&club, ALICE, "/privileges"), "/privileges");
    grant.retain(|(name, _)| name != "userId");
    set(&mut grant, "name", "nobody");
    assert!(page::check(&send(&club, ALICE, "/privileges", &grant).expect(400)).contains("id=\"f-name-error\""));
    set(&mut grant, "name", "@carol");
    send(&club, ALICE, "/privileges", &grant).expect(303);
    assert_eq!(club.by(CAROL).get("/api/users/me").expect(200).json()["privileged"], true);
    let revoke = vec![("userId".to_owned(), id(CAROL).to_string())];
    send(&club, ALICE, "/privileges", &revoke).expect(303);
    assert_eq!(club.by(CAROL).get("/api/users/me").expect(200).json()["privileged"], false);
    let last = vec![("userId".to_owned(), id(ALICE).to_string())];
    send(&club, ALICE, "/privileges", &last).expect(409);
}

/// What a member makes of the parts of a test club by forms, each of which is sent twice.
#[rstest]
fn a_form_that_is_sent_twice_does_one_thing(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let changes = || club.by(ALICE).get("/api/audit").expect(200).json().as_array().unwrap().len();
    let twice = |by: &str, shown: &str, action: &str, values: &[(&str, &str)]| {
        let mut form = fields(&open(&club, by, shown), action);
        for (name, value) in values {
            set(&mut form, name, value);
        }
        let first = send(&club, by, action, &form);
        assert!([201, 303].contains(&first.status), "{first:?}");
        let made = changes();
        let second = send(&club, by, action, &form);
        assert_eq!((second.status, second.header("location")), (first.status, first.header("location")), "{action}");
        assert_eq!((second.body, changes()), (first.body.clone(), made), "{action}");
        if first.status == 303 { landed(&first) } else { String::new() }
    };
    let tea = [("name", "Tea"), ("place", "Park"), ("room", ""), ("groupId", EVERYONE)];
    let event = twice(BOB, "/events/new", "/events/new", &tea);
    let of = |object: &str, action: &str| format!("{object}/{action}");
    twice(BOB, &of(&event, "edit"), &of(&event, "edit"), &[("name", "Coffee")]);
    twice(BOB, &event, &of(&event, "tags"), &[("name", "warm")]);
    twice(CAROL, &event, &of(&event, "answer"), &[]);
    twice(BOB, &of(&event, "delete"), &of(&event, "delete"), &[]);
    twice(BOB, "/deleted", &of(&event, "restore"), &[]);
    let series = [("name", "Club"), ("place", "Hall"), ("room", ""), ("repeat", "weekly"), ("times", "3")];
    let mut form = fields(&open(&club, BOB, "/events/new"), "/events/new");
    for (name, value) in series.into_iter().chain([("groupId", EVERYONE)]) {
        set(&mut form, name, value);
    }
    let dates = fields(&page::check(&send(&club, BOB, "/events/new", &form).expect(200)), "/events/new");
    let booked =
        [0, 1].map(|_| send(&club, BOB, "/events/new", &dates).expect(303).header("location").map(str::to_owned));
    assert_eq!((booked[0].is_some(), &booked[0], events(&club).len()), (true, &booked[1], 4));
    let poll = twice(BOB, "/polls/new", "/polls/new", &[("name", "Trip"), ("groupId", EVERYONE)]);
    twice(CAROL, &poll, &of(&poll, "answer"), &[("comment", "late")]);
    twice(BOB, &of(&poll, "edit"), &of(&poll, "edit"), &[("name", "Travel")]);
    twice(BOB, &of(&poll, "confirm"), &of(&poll, "confirm"), &[("place", "Park")]);
    twice(BOB, &of(&poll, "delete"), &of(&poll, "delete"), &[]);
    let group = twice(BOB, "/groups/new", "/groups/new", &[("name", "guitar"), ("open", "true")]);
    twice(CAROL, &group, &of(&group, "join"), &[]);
    twice(CAROL, &group, &of(&group, "leave"), &[]);
    twice(BOB, &of(&group, "edit"), &of(&group, "edit"), &[("name", "bass")]);
    twice(BOB, &of(&group, "delete"), &of(&group, "delete"), &[]);
    twice(BOB, "/me", "/me/feed", &[]);
    twice(BOB, "/me", "/me/tokens", &[("name", "bot")]);
    let room = format!("/rooms/{}", verified_room(&club, BOB, "S516", (200, 201)));
    twice(ALICE, &room, &of(&room, "verified"), &[]);
    twice(BOB, &of(&room, "delete"), &of(&room, "delete"), &[]);
    let mut grant = fields(&open(&club, ALICE, "/privileges"), "/privileges");
    grant.retain(|(name, _)| name != "userId");
    set(&mut grant, "name", "carol");
    let grants = [0, 1].map(|_| {
        send(&club, ALICE, "/privileges", &grant).expect(303);
        changes()
    });
    assert_eq!(grants[0], grants[1]);
}

/// The page of an event that only Bob may answer.
fn group_event(club: &Club) -> String {
    let group = group(club, BOB, "bass", &[BOB]);
    let body = merge([event_body(club, BOB, At::Place("Hall"), (2, 4)), json!({ "groupId": group })]);
    format!("/events/{}", text(&club.by(BOB).post("/api/events", body).expect(201).json()["eventId"]))
}

#[rstest]
fn who_may_not_is_told_so_whatever_is_wrong_besides(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let event = format!("/events/{}", event(&club, BOB, At::Place("Park"), (2, 4)));
    let (poll, _) = poll(&club, BOB, json!({}));
    let poll = format!("/polls/{}", poll.rsplit('/').next().unwrap());
    let group = format!("/groups/{}", group(&club, BOB, "guitar", &[]));
    let room = format!("/rooms/{}", verified_room(&club, BOB, "S516", (200, 201)));
    let cases: [(String, &[(&str, &str)]); 16] = [
        (format!("{event}/edit"), &[("until", "x")]),
        (format!("{event}/edit"), &[("admins", "nobody")]),
        (format!("{event}/edit"), &[("showRooms", "true")]),
        (format!("{poll}/edit"), &[("times", "x")]),
        (format!("{poll}/edit"), &[("showGrid", "true")]),
        (format!("{poll}/confirm"), &[("slotId", "x")]),
        (format!("{group}/edit"), &[("members", "nobody")]),
        (format!("{group}/edit"), &[("name", "")]),
        (format!("{event}/edit"), &[("_tag", "x")]),
        (format!("{poll}/edit"), &[("_tag", "x")]),
        (format!("{group}/edit"), &[("_tag", "x")]),
        (format!("{event}/delete"), &[("_tag", "x")]),
        (format!("{poll}/delete"), &[("_tag", "x")]),
        (format!("{group}/delete"), &[("_tag", "x")]),
        (format!("{room}/delete"), &[("_tag", "x")]),
        (format!("{room}/delete"), &[("force", "x")]),
    ];
    for (path, wrong) in cases {
        let mut form = fields(&open(&club, BOB, &path), &path);
        for (name, value) in wrong {
            set(&mut form, name, value);
        }
        send(&club, DAVE, &path, &form).expect(403);
        let own = send(&club, BOB, &path, &form);
        assert_ne!(own.status, 403, "{path}");
        if wrong.contains(&("_tag", "x")) {
            // What has changed meanwhile is shown before it is deleted.
            let again = page::check(&own.expect(412));
            assert!(
                again.contains("Somebody has changed this meanwhile") && !fields(&again, &path).is_empty(),
                "{again}"
            );
        }
    }
    // Forms that are only a button or a part of a page.
    let mine = group_event(&club);
    let (asked, _) = crate::builders::poll(&club, BOB, json!({"invitees": [id(CAROL)]}));
    let asked = format!("/polls/{}", asked.rsplit('/').next().unwrap());
    let buttons: [(String, &[(&str, &str)]); 9] = [
        (format!("{mine}/revert"), &[("to", "x")]),
        (format!("{mine}/revert"), &[("to", "1"), ("_tag", "x")]),
        (format!("{mine}/restore"), &[("groupId", "x")]),
        (format!("{mine}/answer"), &[("schedule", "perhaps")]),
        (format!("{asked}/answer"), &[("slot-x", "yes")]),
        (format!("{room}/verified"), &[("_tag", "x")]),
        ("/privileges".to_owned(), &[("name", "nobody")]),
        ("/rooms/import".to_owned(), &[("encoded", "?")]),
        (format!("/webhooks/{}/test", id(BOB)), &[]),
    ];
    for (path, values) in buttons {
        let form: Fields = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let refused = send(&club, DAVE, &path, &form);
        assert!([403, 415].contains(&refused.status), "{path}: {refused:?}");
    }
}

/// Forms show no seconds, and not which of the two times it is to which the clocks are set back.
#[rstest]
fn a_time_that_was_not_touched_stays_exactly_as_it_was(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start_with(backend, &["--time-zone", "Europe/Berlin"]);
    let year = 2031;
    // 2:15:30 for the second time.
    let (start, end) = (format!("{year}-10-26T01:15:30.5Z"), format!("{year}-10-26T01:45:10Z"));
    let body = merge([
        event_body(&club, BOB, At::Place("Discord"), (2, 4)),
        json!({"timeStart": start, "timeEnd": end, "name": "Night"}),
    ]);
    let made = text(&club.by(BOB).post("/api/events", body).expect(201).json()["eventId"]);
    let path = format!("/events/{made}/edit");
    let times = || {
        let event = club.by(BOB).get(&format!("/api/events/{made}")).expect(200).json();
        ["timeStart", "timeEnd"].map(|name| text(&event[name]).parse::<Timestamp>().unwrap())
    };
    let before = times();
    assert_eq!(before, [start.parse().unwrap(), end.parse().unwrap()]);
    let mut form = fields(&open(&club, BOB, &path), &path);
    set(&mut form, "name", "Long night");
    send(&club, BOB, &path, &form).expect(303);
    assert_eq!(times(), before);
    let mut form = fields(&open(&club, BOB, &path), &path);
    set(&mut form, "until", "02:50");
    send(&club, BOB, &path, &form).expect(400);
    set(&mut form, "until", "03:00");
    send(&club, BOB, &path, &form).expect(303);
    assert_eq!(times(), [before[0], format!("{year}-10-26T02:00:00Z").parse().unwrap()]);
}

#[rstest]
fn a_poll_is_changed_by_its_administrators(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let deadline = Timestamp::from_micros(crate::harness::hours_from_now(&club, 24).micros() + 17_000_000).unwrap();
    let (api, slots) = poll(&club, BOB, json!({"invitees": [id(CAROL)], "deadline": deadline.to_string()}));
    let page_path = format!("/polls/{}", api.rsplit('/').next().unwrap());
    let edit = format!("{page_path}/edit");
    let saved = || club.by(BOB).get(&api).expect(200).json();
    let before = saved();
    // Saved as it is, it does not change.
    send(&club, BOB, &edit, &fields(&open(&club, BOB, &edit), &edit)).expect(303);
    assert_eq!(saved(), before);
    assert!(open(&club, BOB, &page_path).contains(&edit) && !open(&club, DAVE, &page_path).contains(&edit));
    club.by(DAVE).header("accept", HTML).get(&edit).expect(403);

    let mut form = fields(&open(&club, BOB, &edit), &edit);
    assert!(!form.iter().any(|(name, _)| name == "slot"));
    set(&mut form, "times", "8:00-9:30 23:00-1:00");
    set(&mut form, "days", "2");
    set(&mut form, "showGrid", "true");
    set(&mut form, "name", "Trip");
    let grid = page::check(&send(&club, BOB, &edit, &form).expect(200));
    let mut form = fields(&grid, &edit);
    assert_eq!(form.iter().filter(|(name, _)| name == "slot").count(), 4, "{form:?}");
    set(&mut form, "invitees", "carol nobody");
    let refused = page::check(&send(&club, BOB, &edit, &form).expect(400));
    assert!(refused.contains("id=\"f-invitees-error\""), "{refused}");
    let mut form = fields(&refused, &edit);
    set(&mut form, "invitees", "carol dave");
    let stale = form.clone();
    send(&club, DAVE, &edit, &form).expect(403);
    send(&club, BOB, &edit, &form).expect(303);
    let after = saved();
    assert_eq!((&after["name"], &after["deadline"]), (&json!("Trip"), &before["deadline"]));
    assert_eq!(after["candidateSlots"].as_array().unwrap().len(), slots.len() + 4);
    assert_eq!(after["invitees"].as_array().unwrap().len(), 2);
    let mut stale = stale;
    stale.retain(|(name, _)| name != "_key");
    let shown = page::check(&send(&club, BOB, &edit, &stale).expect(412));
    assert!(shown.contains("Somebody has changed this meanwhile") && shown.contains("DAVE"), "{shown}");

    // After the deadline, a change opens it again.
    club.clock.advance(chrono::TimeDelta::hours(30));
    let closed = open(&club, BOB, &edit);
    assert!(closed.contains("Saving opens the poll again"), "{closed}");
    send(&club, BOB, &edit, &fields(&closed, &edit)).expect(303);
    assert_eq!(saved()["status"], "open");
}
