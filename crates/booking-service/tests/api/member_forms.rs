//! The forms of the pages: they do what the operations do, and a refusal loses nothing.

use common::time::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    builders::{At, EVERYONE, answer_poll, event, event_body, group, merge, poll, span, text, verified_room},
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
    assert!(offered.contains(&format!("<option value=\"{room}\"")), "{offered}");
    let mut form = fields(&offered, "/events/new");
    for (name, value) in
        [("room", room.as_str()), ("name", "Tea & cake"), ("description", "1\r\n2"), ("tags", "#tea, cake")]
    {
        set(&mut form, name, value);
    }
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
    ];
    for (name, value) in typed {
        set(&mut form, name, value);
    }
    let mut refused = send(&club, BOB, "/events/new", &form).expect(400);
    let again = fields(&page::check(&refused), "/events/new");
    for (name, value) in typed {
        assert!(again.contains(&(name.to_owned(), value.to_owned())), "{name} in {again:?}");
    }
    assert!(refused.text().contains("id=\"f-admins-error\">There is no such member."), "{refused:?}");
    set(&mut form, "admins", "@BOB");
    refused = send(&club, BOB, "/events/new", &form).expect(400);
    assert!(refused.text().contains("id=\"f-until-error\">This cannot be read."), "{refused:?}");
    set_time(&club, &mut form, (2, 3));
    refused = send(&club, BOB, "/events/new", &form).expect(400);
    assert!(refused.text().contains("id=\"f-name-error\">Please write something."), "{refused:?}");
    set(&mut form, "name", "Tea");
    send(&club, BOB, "/events/new", &form).expect(303);
}

#[rstest]
fn a_conflict_offers_the_free_times(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let room = verified_room(&club, ALICE, "S516", (1, 9));
    event(&club, CAROL, At::Room(&room), (2, 4));
    let mut form = fields(&open(&club, BOB, "/events/new"), "/events/new");
    set_time(&club, &mut form, (3, 5));
    set(&mut form, "room", &room);
    set(&mut form, "name", "Tea");
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
    assert_eq!(send(&club, BOB, &path, &answer("attendance")).expect(303).header("location"), Some("/"));
    let mine = || {
        let event = club.by(BOB).get(&format!("/api/events/{event}")).expect(200).json();
        let attendees = event["attendees"].as_array().unwrap().clone();
        text(&attendees.iter().find(|attendee| attendee["userId"] == id(BOB).to_string()).unwrap()["schedule"])
    };
    assert_eq!(mine(), "attendance");
    let shown = open(&club, BOB, "/");
    assert!(shown.contains("aria-pressed=\"true\">I come"), "{shown}");
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
    let mut choices = fields(&open(&club, BOB, &path), &answer);
    let slots: Vec<_> = choices.iter().map(|(name, _)| name.clone()).filter(|name| name.starts_with("slot-")).collect();
    set(&mut choices, &slots[0], "maybe");
    set(&mut choices, &slots[1], "yes");
    set(&mut choices, "comment", "<late>");
    send(&club, BOB, &answer, &choices).expect(303);
    let shown = open(&club, BOB, &path);
    assert!(
        shown.contains("&lt;late&gt;") && shown.contains("Change my answer") && shown.contains("<b>Best</b>"),
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
    let made = send(&club, ALICE, &confirm, &event).expect(303).header("location").unwrap().to_owned();
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
    let upload = |by: &str, fields: &[(&str, &str)]| {
        let parts = fields.iter().map(|(name, value)| {
            let file = if *name == "table" { "; filename=\"rooms.csv\"\r\nContent-Type: text/csv" } else { "" };
            format!("--frontier\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n{value}\r\n")
        });
        let body = parts.collect::<String>() + "--frontier--\r\n";
        let client =
            club.by(by).header("accept", HTML).header("content-type", "multipart/form-data; boundary=frontier");
        client.send_bytes("POST", "/rooms/import", body.into_bytes())
    };
    let rooms = || club.by(BOB).get("/api/rooms").expect(200).json().as_array().unwrap().len();
    let head = "Subject,Start date,End date,Start time,End time,Location\n";
    let good =
        format!("{head}club,2099/04/04,2099/04/04,18:00,21:00,S516\nclub,2099/04/05,2099/04/05,18:00,21:00,<S>\n");
    let bad = format!("{head}club,2099/04/04,2099/04/04,18:00,21:00,S516\nclub,2099/04/31,2099/04/04,18:00,21:00,X\n");
    open(&club, ALICE, "/rooms/import");
    let marked = page::check(&upload(ALICE, &[("table", &bad)]).expect(400));
    assert!(marked.contains("Row 2") && marked.contains("2099/04/31"), "{marked}");
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
