//! Availability polls: creating, reading, changing and deleting them, and the lists of a user.

use crate::harness::Backend::{self, Postgres, Sqlite};
use booking_service::{
    events::selection::Relation,
    polls::queries::{self, DraftEventStatus},
};
use chrono::TimeDelta;
use rstest::rstest;
use serde_json::{Value, json};
use service_kit::database::{
    PageBounds,
    types::{DbTimestamp, DbUuid},
};

use crate::{
    builders::{EVERYONE, answer_poll, each, group, merge, poll, poll_body, span, text},
    conditions::statements,
    harness::{ALICE, Answer, BOB, CAROL, Club, DAVE, hours_from_now, id},
    plans,
    sign_in::set_state,
};

fn make(club: &Club, members: Value) -> Answer {
    club.by(BOB).post("/api/draft-events", merge([poll_body(club, BOB), members]))
}

fn sorted<const N: usize>(members: [&str; N]) -> Value {
    let mut ids = members.map(id).to_vec();
    ids.sort();
    json!(ids)
}

#[rstest]
fn a_poll_is_made_and_shown(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let group = group(&club, CAROL, "graphics", &[CAROL, DAVE]);
    let members = json!({
        "description": "Pizza.", "open": true, "invitees": [id(BOB), id(CAROL)], "inviteGroups": [group],
        "tags": [{"name": "rust", "locked": true}], "admins": [id(BOB), id(DAVE)],
    });
    let made = make(&club, members).expect(201);
    let location = made.header("location").unwrap().to_owned();
    let made = made.json();
    assert_eq!(location, format!("/api/draft-events/{}", text(&made["draftEventId"])));
    assert_eq!(
        (&made["status"], &made["respondedCount"], &made["totalInvitees"]),
        (&json!("open"), &json!(0), &json!(3))
    );
    let mut detail = club.by(CAROL).get(&location).expect(200).json();
    let slots = detail["candidateSlots"].clone();
    assert_eq!(slots[0]["timeStart"].as_str().unwrap().len(), "2026-04-04T18:00:00+09:00".len());
    for (member, value) in [
        ("description", json!("Pizza.")),
        ("open", json!(true)),
        ("invitees", sorted([BOB, CAROL, DAVE])),
        ("admins", sorted([BOB, DAVE])),
        ("createdBy", json!(id(BOB))),
    ] {
        assert_eq!(detail[member], value, "{member}");
    }
    assert_eq!((&detail["tags"][0]["name"], &detail["tags"][0]["locked"]), (&json!("rust"), &json!(true)));
    assert!(detail.get("eventId").is_none());
    // The detail contains all fields of the list.
    for (member, value) in made.as_object().unwrap() {
        assert_eq!(detail.as_object_mut().unwrap().remove(member).unwrap(), *value, "{member}");
    }
    club.by(BOB).get(&format!("/api/draft-events/{}", id(BOB))).refused(404, "not-found");
}

#[rstest]
fn an_invalid_poll_is_refused(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let nobody = "0198c0de-0000-7000-8000-000000000099";
    let one = span(&club, 48, 50);
    let slots = |count: i64| -> Vec<_> { (0..count).map(|n| span(&club, 48 + n, 49 + n)).collect() };
    let date = |date: &str, start: &str, end: &str| json!({"date": date, "startTime": start, "endTime": end});
    let times = |start: &str, end: &str| json!({"timeStart": start, "timeEnd": end});
    for (members, pointers) in [
        (json!({"name": " "}), vec!["/name"]),
        (json!({"name": "x".repeat(33)}), vec!["/name"]),
        (json!({"description": "x".repeat(10_001)}), vec!["/description"]),
        (json!({"admins": []}), vec!["/admins"]),
        (json!({"deadline": hours_from_now(&club, -1).to_string()}), vec!["/deadline"]),
        (json!({"candidateSlots": []}), vec!["/candidateSlots"]),
        (json!({"candidateSlots": slots(101)}), vec!["/candidateSlots"]),
        (json!({"candidateSlots": [one, span(&club, 72, 74), one]}), vec!["/candidateSlots/2"]),
        (json!({"candidateSlots": [span(&club, 50, 50)]}), vec!["/candidateSlots/0/timeEnd"]),
        (json!({"candidateSlots": [date("2030-04-04", "18:00", "18:00")]}), vec!["/candidateSlots/0/endTime"]),
        (json!({"candidateSlots": [date("2030-04-04", "22:00", "02:00")]}), vec!["/candidateSlots/0/endTime"]),
        (
            json!({"candidateSlots": [date("2030-02-30", "9:00", "25:00")]}),
            vec!["/candidateSlots/0/date", "/candidateSlots/0/endTime"],
        ),
        (
            json!({"candidateSlots": [{"date": "2030-04-04"}]}),
            vec!["/candidateSlots/0/endTime", "/candidateSlots/0/startTime"],
        ),
        (json!({"candidateSlots": [{"timeStart": "2030-04-04T00:00:00Z"}]}), vec!["/candidateSlots/0/timeEnd"]),
        (
            json!({"candidateSlots": [merge([date("2030-04-04", "9:00", "10:00"), one.clone()])]}),
            vec!["/candidateSlots/0"],
        ),
        // The same slot in two forms.
        (
            json!({"candidateSlots": [
                date("2030-04-04", "9:05", "10:00"), times("2030-04-04T00:05:00Z", "2030-04-04T01:00:00Z")
            ]}),
            vec!["/candidateSlots/1"],
        ),
        (
            json!({"admins": [id(BOB), nobody], "invitees": [nobody], "inviteGroups": [EVERYONE, nobody]}),
            vec!["/admins/1", "/inviteGroups/1", "/invitees/0"],
        ),
        (json!({"tags": [{"name": ""}]}), vec!["/tags/0/name"]),
    ] {
        let answer = make(&club, members.clone()).expect(400);
        assert_eq!(answer.pointers(), pointers, "{members}");
    }
    make(&club, json!({ "candidateSlots": slots(100) })).expect(201);
    assert_eq!(club.by(BOB).get("/api/users/me/draft-events?relation=admins").json().as_array().unwrap().len(), 1);
}

#[rstest]
fn slots_are_in_the_zone_of_the_club(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start_with(backend, &["--time-zone", "Europe/Berlin"]);
    let slot = |date: &str, start: &str, end: &str| json!({"date": date, "startTime": start, "endTime": end});
    let shown = |slots: Value| {
        let (path, _) = poll(&club, BOB, json!({ "candidateSlots": slots }));
        let slots = club.by(BOB).get(&path).json()["candidateSlots"].clone();
        let times = slots.as_array().unwrap().iter().map(|slot| (text(&slot["timeStart"]), text(&slot["timeEnd"])));
        times.collect::<Vec<_>>()
    };
    let times = |start: &str, end: &str| (start.to_owned(), end.to_owned());
    // Slots on the days on which summer time begins and ends, in the past and over midnight. They are ordered by time.
    let slots = json!([
        slot("2030-03-31", "1:30", "03:30"),
        slot("2030-10-27", "02:30", "03:30"),
        slot("2020-01-01", "9:05", "10:00"),
        {"timeStart": "2030-04-04T22:00:00+02:00", "timeEnd": "2030-04-05T02:00:00+02:00"},
    ]);
    assert_eq!(
        shown(slots),
        [
            times("2020-01-01T09:05:00+01:00", "2020-01-01T10:00:00+01:00"),
            times("2030-03-31T01:30:00+01:00", "2030-03-31T03:30:00+02:00"),
            times("2030-04-04T22:00:00+02:00", "2030-04-05T02:00:00+02:00"),
            times("2030-10-27T02:30:00+02:00", "2030-10-27T03:30:00+01:00"),
        ]
    );
    let skipped = make(
        &club,
        json!({"candidateSlots": [slot("2030-03-31", "02:30", "04:00"), slot("2030-03-31", "1:00", "2:15")]}),
    );
    let problem = skipped.expect(400);
    assert_eq!(problem.pointers(), ["/candidateSlots/0/startTime", "/candidateSlots/1/endTime"]);
    assert_eq!(problem.json()["violations"][0]["code"], "nonexistent-time");
    let outside = ["0000-02-20", "0001-01-01", "9999-12-31"].map(|date| slot(date, "0:10", "1:00"));
    let problem = make(&club, json!({"candidateSlots": outside})).expect(400);
    assert_eq!(problem.pointers(), [0, 1, 2].map(|n| format!("/candidateSlots/{n}/date")));
    assert_eq!(problem.json()["violations"][0]["code"], "range");
}

#[rstest]
fn a_poll_is_changed_by_its_administrators_until_the_deadline(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (path, slots) = poll(&club, BOB, json!({"invitees": [id(CAROL)], "description": "Pizza."}));
    let put = |by: &str, body: Value| club.by(by).put(&path, body);
    let before = club.by(BOB).get(&path).json();
    put(CAROL, json!({"name": "New"})).refused(403, "forbidden");
    let same = put(BOB, json!({})).expect(200).json();
    assert_eq!(merge([same.clone(), json!({"updatedAt": before["updatedAt"]})]), before);
    let more = json!([span(&club, 60, 61)]);
    let body = json!({
        "name": "New", "description": null, "open": true, "deadline": hours_from_now(&club, 30).to_string(),
        "additionalCandidateSlots": more, "invitees": [id(DAVE), id(BOB)], "admins": [id(CAROL)],
    });
    let changed = put(BOB, body).expect(200).json();
    assert_eq!(
        (&changed["name"], &changed["description"], &changed["open"]),
        (&json!("New"), &json!("Pizza."), &json!(true))
    );
    assert_eq!((&changed["invitees"], &changed["admins"]), (&sorted([BOB, DAVE]), &json!([id(CAROL)])));
    let found = each(&changed["candidateSlots"], "slotId");
    assert_eq!((&found[0], &found[2], found.len()), (&slots[0], &slots[1], 3));
    put(BOB, json!({"name": "Newer"})).refused(403, "forbidden");

    let nobody = "0198c0de-0000-7000-8000-000000000099";
    let many: Vec<_> = (0..98).map(|n| span(&club, 100 + n, 101 + n)).collect();
    for (body, pointers) in [
        (json!({"name": ""}), vec!["/name"]),
        (json!({"deadline": hours_from_now(&club, -1).to_string()}), vec!["/deadline"]),
        (json!({ "additionalCandidateSlots": more }), vec!["/additionalCandidateSlots/0"]),
        (
            json!({"additionalCandidateSlots": [span(&club, 1, 2), span(&club, 1, 2)]}),
            vec!["/additionalCandidateSlots/1"],
        ),
        (json!({ "additionalCandidateSlots": many }), vec!["/additionalCandidateSlots"]),
        (json!({"admins": []}), vec!["/admins"]),
        (json!({"admins": [nobody], "invitees": [id(BOB), nobody]}), vec!["/admins/0", "/invitees/1"]),
    ] {
        assert_eq!(put(CAROL, body.clone()).expect(400).pointers(), pointers, "{body}");
    }
    put(CAROL, json!({ "additionalCandidateSlots": many[1..] })).expect(200);

    // The deadline passes between reading and writing.
    let tag = club.by(CAROL).get(&path).header("etag").unwrap().to_owned();
    club.clock.advance(TimeDelta::hours(31));
    put(CAROL, json!({"name": "Newer"})).refused(403, "poll-closed");
    let closed = club.by(CAROL).header("if-none-match", &tag).get(&path).expect(200).json();
    assert_eq!(closed["status"], "closed");
}

#[rstest]
fn a_new_deadline_reopens_a_closed_poll(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (path, slots) = poll(&club, BOB, json!({"invitees": [id(CAROL)]}));
    let put = |by: &str, body: Value| club.by(by).put(&path, body);
    let deadline = |hours| json!({"deadline": hours_from_now(&club, hours).to_string()});
    club.clock.advance(TimeDelta::hours(25));
    let before = club.by(BOB).get(&path).json();
    for body in [json!({}), json!({"name": "New"}), json!({"deadline": null}), deadline(0), deadline(-1)] {
        put(BOB, body).refused(403, "poll-closed");
    }
    put(CAROL, deadline(40)).refused(403, "forbidden");
    assert_eq!(club.by(BOB).get(&path).json(), before);
    answer_poll(&club, CAROL, &path, &[&slots[0]]).refused(403, "poll-closed");
    let reopened = put(BOB, merge([deadline(40), json!({"name": "New"})])).expect(200).json();
    assert_eq!((&reopened["status"], &reopened["name"]), (&json!("open"), &json!("New")));
    answer_poll(&club, CAROL, &path, &[&slots[0]]).expect(201);
    // A confirmed poll has no new deadline.
    let body = json!({"slotId": slots[0], "groupId": EVERYONE, "place": "x"});
    club.by(BOB).post(&format!("{path}/confirm"), body).expect(201);
    put(BOB, deadline(41)).refused(403, "poll-closed");
}

#[rstest]
fn a_privileged_user_takes_care_of_a_poll_whose_administrators_are_gone(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (path, slots) = poll(&club, BOB, json!({"admins": [id(BOB), id(DAVE)], "invitees": [id(CAROL)]}));
    let (other, other_slots) = poll(&club, BOB, json!({"admins": [id(BOB), id(CAROL)]}));
    set_state(&club, BOB, 2);
    set_state(&club, DAVE, 0);
    for (path, slot, admins) in
        [(&path, &slots[1], &[BOB, DAVE, ALICE][..]), (&other, &other_slots[0], &[BOB, CAROL][..])]
    {
        club.clock.advance(TimeDelta::hours(25));
        let body = json!({
            "deadline": hours_from_now(&club, 10).to_string(), "name": "New", "invitees": [id(ALICE)],
            "additionalCandidateSlots": [span(&club, 200, 201)],
        });
        club.by(ALICE).put(path, body).expect(200);
        let confirmation = json!({"slotId": slot, "groupId": EVERYONE, "place": "x"});
        let event = club.by(ALICE).post(&format!("{path}/confirm"), confirmation).expect(201).json();
        // Somebody can change the event.
        let mut expected: Vec<_> = admins.iter().map(|admin| id(admin)).collect();
        expected.sort();
        assert_eq!(event["admins"], json!(expected));
    }
}

#[rstest]
fn a_poll_is_deleted_with_its_answers(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for by in [BOB, ALICE] {
        let (path, slots) = poll(&club, BOB, json!({"invitees": [id(CAROL)], "tags": [{"name": "rust"}]}));
        answer_poll(&club, CAROL, &path, &[&slots[0]]).expect(201);
        club.by(CAROL).delete(&path).refused(403, "forbidden");
        club.by(by).delete(&path).expect(204);
        club.by(BOB).get(&path).refused(404, "not-found");
        club.by(BOB).delete(&path).refused(404, "not-found");
        answer_poll(&club, CAROL, &path, &[]).refused(404, "not-found");
        let confirm = json!({"slotId": slots[0], "place": "x", "groupId": EVERYONE});
        club.by(BOB).post(&format!("{path}/confirm"), confirm).refused(404, "not-found");
        for part in ["results", "availability", "availability/all"] {
            club.by(BOB).get(&format!("{path}/{part}")).refused(404, "not-found");
        }
        assert_eq!(club.by(CAROL).get("/api/users/me/draft-events").json(), json!([]));
    }
}

#[rstest]
fn a_user_has_lists_of_polls(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let deadline = |hours| json!({"deadline": hours_from_now(&club, hours).to_string()});
    let named = |name: &str, hours, members| merge([json!({ "name": name }), deadline(hours), members]);
    let invited = |name: &str, hours| named(name, hours, json!({"invitees": [id(CAROL), id(DAVE)]}));
    let (_, _) = poll(&club, BOB, invited("third", 30));
    let (first, slots) = poll(&club, BOB, invited("first", 2));
    let (second, second_slots) = poll(&club, BOB, invited("second", 20));
    poll(&club, BOB, named("open", 25, json!({"open": true})));
    poll(&club, CAROL, named("own", 10, json!({})));
    answer_poll(&club, CAROL, &first, &[&slots[0]]).expect(201);
    let names = |by: &str, query: &str| {
        let mine = club.by(by).get(&format!("/api/users/me/draft-events{query}")).expect(200).json();
        let theirs = club.by(BOB).get(&format!("/api/users/{}/draft-events{query}", id(by))).expect(200).json();
        assert_eq!(mine, theirs, "{query}");
        each(&mine, "name")
    };
    assert_eq!(names(CAROL, ""), ["first", "second", "third"]);
    assert_eq!(names(CAROL, "?relation=belongs"), ["first", "second", "third"]);
    assert_eq!(names(CAROL, "?relation=admins"), ["own"]);
    assert_eq!(names(CAROL, "?relation=belongs-or-admins"), ["first", "own", "second", "third"]);
    assert_eq!(names(CAROL, "?relation=attendees"), ["first"]);
    club.clock.advance(TimeDelta::hours(3));
    let confirmation = json!({"slotId": second_slots[0], "place": "x", "groupId": EVERYONE});
    club.by(BOB).post(&format!("{second}/confirm"), confirmation).expect(201);
    assert_eq!(names(CAROL, "?status=open"), ["third"]);
    assert_eq!(names(CAROL, "?status=closed"), ["first"]);
    assert_eq!(names(CAROL, "?status=confirmed"), ["second"]);
    assert_eq!(names(BOB, "?relation=admins&status=open"), ["open", "third"]);
    let listed = club.by(CAROL).get("/api/users/me/draft-events").json();
    assert_eq!(each(&listed, "status"), ["closed", "confirmed", "open"]);
    assert_eq!((&listed[0]["respondedCount"], &listed[0]["totalInvitees"]), (&json!(1), &json!(2)));
    for bad in ["relation=x", "status=x"] {
        club.by(BOB).get(&format!("/api/users/me/draft-events?{bad}")).refused(400, "invalid-parameter");
    }
    club.by(BOB).get("/api/users/0198c0de-0000-7000-8000-000000000099/draft-events").refused(404, "not-found");
}

#[rstest]
fn lists_and_results_take_a_fixed_number_of_statements(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (path, slots) = poll(&club, BOB, json!({"open": true}));
    let count = |path: &str| {
        let before = statements(&club);
        club.by(BOB).get(path).expect(200);
        statements(&club) - before
    };
    let paths = [
        path.clone(),
        format!("{path}/results"),
        format!("{path}/availability/all"),
        "/api/users/me/draft-events?relation=admins".to_owned(),
    ];
    answer_poll(&club, BOB, &path, &[&slots[0]]).expect(201);
    let small = paths.each_ref().map(|path| count(path));
    for by in [ALICE, CAROL, DAVE] {
        answer_poll(&club, by, &path, &[&slots[0], &slots[1]]).expect(201);
    }
    let more: Vec<_> = (0..40).map(|n| span(&club, 100 + n, 101 + n)).collect();
    club.by(BOB).put(&path, json!({ "additionalCandidateSlots": more })).expect(200);
    for _ in 0..5 {
        poll(&club, BOB, json!({"invitees": [id(CAROL)]}));
    }
    assert_eq!(paths.each_ref().map(|path| count(path)), small);
    // BEGIN, COMMIT, the caller, the poll, its slots, invitees, answers and choices.
    assert_eq!(small[1], 8);
}

#[rstest]
fn queries_use_indexes(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (path, slots) = poll(&club, BOB, json!({"invitees": [id(BOB), id(ALICE)]}));
    answer_poll(&club, BOB, &path, &[&slots[0]]).expect(201);
    let one = DbUuid(path.rsplit('/').next().unwrap().parse().unwrap());
    let (user, now) = (id(BOB), DbTimestamp(club.clock.now()));
    let relations = [Relation::Belongs, Relation::Admins, Relation::BelongsOrAdmins, Relation::Attendees];
    let states = [None, Some(DraftEventStatus::Open)];
    for (relation, status) in relations.into_iter().flat_map(|relation| states.map(|status| (relation, status))) {
        let selection = queries::Selection { user, relation, status };
        plans::check(&club, |conn| {
            assert_eq!(queries::load(conn, &selection, now, &PageBounds::all()).unwrap().len(), 1);
        });
    }
    plans::check(&club, |conn| {
        queries::get_detail(conn, one).unwrap();
        queries::is_admin(conn, one, user).unwrap();
        queries::is_invited(conn, one, user).unwrap();
    });
    plans::check(&club, |conn| {
        queries::answers(conn, one, &PageBounds::all()).unwrap();
        queries::answers(conn, one, &PageBounds { after: Some(user), rows: 2 }).unwrap();
        queries::answer_of(conn, one, user).unwrap();
        queries::choices(conn, one, None).unwrap();
        queries::choices(conn, one, Some(&[user])).unwrap();
    });
}
