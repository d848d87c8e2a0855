//! Projects and their members.

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::thread;

use chrono::TimeDelta;
use common::time::Clock;
use portfolio_service::projects::queries;
use serde_json::{Map, Value, json};
use service_kit::database::{PageBounds, types::DbTimestamp};

use crate::{
    builders::{NOBODY, each, made, member, project, project_body, span, text, with},
    harness::{ALICE, BOB, CAROL, Club, DAVE, DORA, SUSAN, id, real_name},
    objects::Objects,
    plans,
};

const PROJECTS: &str = "/api/v1/projects";

fn user(name: &str) -> Value {
    json!({"id": id(name), "name": name, "realName": ""})
}

fn put(club: &Club, by: &str, path: &str, members: Value) -> crate::harness::Answer {
    club.by(by).put(&format!("{path}/members"), Map::from_iter([("members".to_owned(), members)]).into())
}

#[rstest]
fn a_project_is_made_read_changed_and_deleted(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let body = json!({
        "name": " 講義ロボット ", "link": "https://club.example/robot", "description": "reads\nthe timetable",
        "duration": span((2024, 1), Some((2025, 0))), "extra": {"unknown": null}
    });
    let answer = club.by(BOB).post(PROJECTS, body.clone()).expect(201);
    let detail = answer.json();
    let path = format!("{PROJECTS}/{}", text(&detail["id"]));
    assert_eq!(answer.header("location"), Some(&*path));
    let mut expected = with(body, json!({"id": detail["id"], "members": []}));
    expected.as_object_mut().unwrap().remove("extra");
    assert_eq!(detail, expected);
    assert_eq!(club.anonymous().get(&path).expect(200).json(), expected);
    let listed = json!([{"id": detail["id"], "name": detail["name"], "duration": detail["duration"]}]);
    assert_eq!(club.anonymous().get(PROJECTS).expect(200).json(), listed);

    // What is left out stays; a span without an end takes the end away.
    assert!(club.by(BOB).patch(&path, json!({})).expect(204).body.is_empty());
    assert_eq!(club.anonymous().get(&path).json(), expected);
    club.by(BOB).patch(&path, json!({"duration": span((2024, 1), None)})).expect(204);
    expected["duration"] = span((2024, 1), None);
    assert_eq!(club.anonymous().get(&path).json(), expected);
    for (field, value) in [
        ("name", json!("robot")),
        ("link", json!("")),
        ("description", json!("shouts")),
        ("duration", span((2023, 0), Some((2023, 0)))),
    ] {
        club.by(BOB).patch(&path, json!({ field: value })).expect(204);
        expected[field] = value;
        assert_eq!(club.anonymous().get(&path).json(), expected);
    }
    // A rename to its own name is none.
    club.by(BOB).patch(&path, json!({"name": "robot"})).expect(204);

    put(&club, BOB, &path, json!([member(CAROL, (2023, 0), None)])).expect(204);
    club.by(BOB).delete(&path).expect(204);
    club.anonymous().get(&path).refused(404, "not-found");
    club.by(BOB).delete(&path).refused(404, "not-found");
    assert_eq!(club.anonymous().get(&format!("/api/v1/users/{}/projects", id(CAROL))).expect(200).json(), json!([]));
    // The name is free again.
    project(&club, CAROL, "robot");
}

#[rstest]
fn a_name_of_invisible_characters_is_blank(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for blank in ["\u{200b}", "\u{2800} \u{fe0f}", "\u{3164}"] {
        let body = with(project_body("x"), json!({"name": blank}));
        let refused = club.by(BOB).post(PROJECTS, body).refused(400, "invalid-body");
        assert_eq!(refused["violations"][0]["code"], "blank");
    }
}

#[rstest]
fn link_may_be_left_out(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = project(&club, BOB, "robot");
    assert_eq!(club.anonymous().get(&path).json()["link"], "");
}

#[rstest]
fn the_newest_come_first_and_ties_end_in_the_id(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let since = [(2024, 0), (2025, 1), (1970, 0), (2025, 0), (2024, 0), (2025, 1)];
    let mut made: Vec<_> = since
        .iter()
        .enumerate()
        .map(|(n, since)| {
            let body = with(project_body(&format!("p{n}")), json!({"duration": span(*since, None)}));
            let path = made(&club, BOB, PROJECTS, body);
            put(&club, BOB, &path, json!([member(CAROL, (2020, 0), None)])).expect(204);
            (std::cmp::Reverse(*since), path.rsplit('/').next().unwrap().to_owned())
        })
        .collect();
    made.sort();
    let expected: Vec<_> = made.into_iter().map(|(_, id)| id).collect();
    assert_eq!(each(&club.anonymous().get(PROJECTS).expect(200).json(), "id"), expected);
    let of_carol = format!("/api/v1/users/{}/projects", id(CAROL));
    assert_eq!(each(&club.anonymous().get(&of_carol).expect(200).json(), "id"), expected);
    let limited = |limit: &str| club.anonymous().get(&format!("{PROJECTS}?limit={limit}"));
    assert_eq!(each(&limited("3").expect(200).json(), "id"), expected[..3]);
    assert_eq!(each(&limited("1000").expect(200).json(), "id"), expected);
    for bad in ["0", "1001", "-1", "x"] {
        assert_eq!(limited(bad).expect(400).pointers(), ["limit"], "{bad}");
        let path = format!("{of_carol}?limit={bad}");
        assert_eq!(club.anonymous().get(&path).expect(400).pointers(), ["limit"], "{bad}");
    }
    assert_eq!(each(&club.anonymous().get(&format!("{of_carol}?limit=2")).expect(200).json(), "id"), expected[..2]);
}

#[rstest]
fn members_are_shown_by_name_with_their_part_of_the_span(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = project(&club, BOB, "robot");
    club.by(BOB).patch(&path, json!({"duration": span((2020, 0), Some((2021, 1)))})).expect(204);
    let members = json!([
        member(SUSAN, (2019, 0), None),
        member(DORA, (2022, 0), Some((2023, 0))),
        member(CAROL, (2020, 1), Some((2021, 0))),
        member(BOB, (2021, 1), Some((2025, 1))),
    ]);
    put(&club, BOB, &path, members).expect(204);
    let shown = |spans: [Value; 4]| {
        let names = [BOB, CAROL, DORA, SUSAN];
        let users = names.iter().zip(spans).map(|(name, span)| with(user(name), json!({ "duration": span })));
        Value::from(users.collect::<Vec<_>>())
    };
    let check = |spans: [Value; 4]| {
        let of_susan = spans[3].clone();
        let expected = shown(spans);
        assert_eq!(club.anonymous().get(&format!("{path}/members")).expect(200).json(), expected);
        assert_eq!(club.anonymous().get(&path).expect(200).json()["members"], expected);
        let of_user = club.anonymous().get(&format!("/api/v1/users/{}/projects", id(SUSAN))).expect(200).json();
        assert_eq!(of_user[0]["userDuration"], of_susan);
        assert_eq!(of_user.as_array().unwrap().len(), 1);
    };
    // Where the two do not meet, as stored.
    check([
        span((2021, 1), Some((2021, 1))),
        span((2020, 1), Some((2021, 0))),
        span((2022, 0), Some((2023, 0))),
        span((2020, 0), Some((2021, 1))),
    ]);
    // Stored as sent: what was cut off before is there again when the project's span grows.
    club.by(BOB).patch(&path, json!({"duration": span((2018, 0), None)})).expect(204);
    check([
        span((2021, 1), Some((2025, 1))),
        span((2020, 1), Some((2021, 0))),
        span((2022, 0), Some((2023, 0))),
        span((2019, 0), None),
    ]);
    let first = club.anonymous().get(&format!("{path}/members?limit=1")).expect(200).json();
    assert_eq!(each(&first, "name"), [BOB]);
    // The whole new list.
    put(&club, BOB, &path, json!([member(DAVE, (2020, 0), None)])).expect(204);
    assert_eq!(each(&club.anonymous().get(&format!("{path}/members")).json(), "name"), [DAVE]);
    put(&club, BOB, &path, json!([])).expect(204);
    assert_eq!(club.anonymous().get(&format!("{path}/members")).json(), json!([]));
}

#[rstest]
fn who_may_edit(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = project(&club, BOB, "robot");
    put(&club, BOB, &path, json!([member(CAROL, (2024, 0), None), member(SUSAN, (2024, 0), None)])).expect(204);
    let body = || json!({"description": "changed"});
    let members = || json!([member(CAROL, (2024, 0), None), member(SUSAN, (2024, 0), None)]);
    for who in [BOB, CAROL, ALICE] {
        club.by(who).patch(&path, body()).expect(204);
        put(&club, who, &path, members()).expect(204);
    }
    for problem in [
        club.by(DAVE).patch(&path, body()).refused(403, "forbidden"),
        put(&club, DAVE, &path, members()).refused(403, "forbidden"),
    ] {
        assert_eq!(problem["detail"], "This needs the creator of the project, one of its members, or an admin.");
    }
    for who in [CAROL, DAVE] {
        let problem = club.by(who).delete(&path).refused(403, "forbidden");
        assert_eq!(problem["detail"], "This needs the creator of the project, or an admin.");
    }
    for who in [SUSAN, DORA] {
        club.by(who).post(PROJECTS, project_body("x")).refused(403, "account-inactive");
        club.by(who).patch(&path, body()).refused(403, "account-inactive");
        put(&club, who, &path, members()).refused(403, "account-inactive");
        club.by(who).delete(&path).refused(403, "account-inactive");
    }
    club.by("stranger").post(PROJECTS, project_body("x")).refused(403, "forbidden");
    club.anonymous().post(PROJECTS, project_body("x")).refused(401, "not-signed-in");
    club.anonymous().patch(&path, body()).refused(401, "not-signed-in");
    club.anonymous().put(&format!("{path}/members"), json!({"members": []})).refused(401, "not-signed-in");
    club.anonymous().delete(&path).refused(401, "not-signed-in");
    club.by(ALICE).delete(&path).expect(204);
}

#[rstest]
fn what_is_not_there_is_404_and_what_is_no_id_is_400(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let nowhere = format!("{PROJECTS}/{NOBODY}");
    club.anonymous().get(&nowhere).refused(404, "not-found");
    club.anonymous().get(&format!("{nowhere}/members")).refused(404, "not-found");
    club.anonymous().get(&format!("/api/v1/users/{NOBODY}/projects")).refused(404, "not-found");
    for who in [BOB, ALICE] {
        club.by(who).patch(&nowhere, json!({})).refused(404, "not-found");
        club.by(who).delete(&nowhere).refused(404, "not-found");
        put(&club, who, &nowhere, json!([])).refused(404, "not-found");
    }
    for bad in ["x", "00000000-0000-0000-0000-000000000000"] {
        let path = format!("{PROJECTS}/{bad}");
        assert_eq!(club.anonymous().get(&path).expect(400).pointers(), ["projectId"]);
        assert_eq!(club.anonymous().get(&format!("{path}/members")).expect(400).pointers(), ["projectId"]);
        assert_eq!(club.by(BOB).patch(&path, json!({})).expect(400).pointers(), ["projectId"]);
        assert_eq!(put(&club, BOB, &path, json!([])).expect(400).pointers(), ["projectId"]);
        assert_eq!(club.by(BOB).delete(&path).expect(400).pointers(), ["projectId"]);
        let of_user = format!("/api/v1/users/{bad}/projects");
        assert_eq!(club.anonymous().get(&of_user).expect(400).pointers(), ["userId"]);
    }
    let path = project(&club, BOB, "robot");
    let upper = format!("{PROJECTS}/{}", path.rsplit('/').next().unwrap().to_uppercase());
    club.anonymous().get(&upper).expect(200);
}

#[rstest]
fn every_broken_rule_is_named(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = project(&club, BOB, "robot");
    let long = |length: usize| "五".repeat(length);
    let bad = [
        ("name", json!("")),
        ("name", json!(" \u{3000}")),
        ("name", json!(long(33))),
        ("name", json!("a\0")),
        ("name", json!(5)),
        ("description", json!("")),
        ("description", json!(long(257))),
        ("link", json!("club.example")),
        ("link", json!("javascript:alert(1)")),
        ("link", json!(["https://a.example"])),
        ("duration/until", span((2024, 1), Some((2024, 0)))),
        ("duration/since/year", span((1969, 1), None)),
        ("duration/since/semester", span((2024, 2), None)),
        ("duration/since", json!({})),
        ("duration", json!("2024")),
    ];
    for (pointer, value) in bad {
        let change = json!({ pointer.split('/').next().unwrap(): value });
        let pointers = [format!("/{pointer}")];
        let answer = club.by(BOB).post(PROJECTS, with(project_body("new"), change.clone())).expect(400);
        assert_eq!(answer.pointers(), pointers, "{change}");
        assert_eq!(club.by(BOB).patch(&path, change.clone()).expect(400).pointers(), pointers, "{change}");
    }
    let missing = club.by(BOB).post(PROJECTS, json!({"link": 1})).expect(400).pointers();
    assert_eq!(missing, ["/description", "/duration", "/link", "/name"]);
    let limits = json!({"name": long(32), "description": long(256)});
    club.by(BOB).post(PROJECTS, with(project_body("new"), limits)).expect(201);
    assert_eq!(club.anonymous().get(PROJECTS).json().as_array().unwrap().len(), 2);
    club.by(BOB)
        .header("content-type", "text/plain")
        .send_bytes("POST", PROJECTS, b"{}".to_vec())
        .refused(415, "unsupported-media-type");
    let whole = vec![b' '; (1 << 20) + 1];
    club.by(BOB)
        .header("content-type", "application/json")
        .send_bytes("POST", PROJECTS, whole)
        .refused(413, "payload-too-large");
}

#[rstest]
fn a_list_of_members_is_taken_as_a_whole_or_not_at_all(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = project(&club, BOB, "robot");
    put(&club, BOB, &path, json!([member(BOB, (2024, 0), None)])).expect(204);
    let before = club.anonymous().get(&path).text();
    let one = || member(CAROL, (2024, 0), None);
    let other = member(CAROL, (2025, 0), Some((2025, 0)));
    assert_eq!(put(&club, BOB, &path, json!([one(), other])).expect(400).pointers(), ["/members/1/userId"]);
    let unknown = || with(one(), json!({"userId": NOBODY}));
    let problem = put(&club, BOB, &path, json!([one(), unknown(), member(DAVE, (2024, 0), None)]));
    assert_eq!(problem.expect(400).pointers(), ["/members/1/userId"]);
    let wrong = json!([
        with(one(), json!({"userId": "x"})),
        with(one(), json!({"duration": span((2024, 1), Some((2024, 0)))})),
        {},
        5
    ]);
    assert_eq!(
        put(&club, BOB, &path, wrong).expect(400).pointers(),
        ["/members/0/userId", "/members/1/duration/until", "/members/2/duration", "/members/2/userId", "/members/3"]
    );
    assert_eq!(club.by(BOB).put(&format!("{path}/members"), json!({})).expect(400).pointers(), ["/members"]);
    assert_eq!(club.anonymous().get(&path).text(), before);
    // Suspended and deactivated ones stay in the history, and can be put there.
    put(&club, BOB, &path, json!([member(SUSAN, (2024, 0), None), member(DORA, (2024, 0), None)])).expect(204);
}

#[rstest]
fn a_taken_name_is_409(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = project(&club, BOB, "robot");
    let other = project(&club, CAROL, "Robot");
    club.by(CAROL).post(PROJECTS, project_body("robot")).refused(409, "duplicate-name");
    let body = json!({"name": "robot", "description": "not stored"});
    club.by(CAROL).patch(&other, body).refused(409, "duplicate-name");
    assert_eq!(club.anonymous().get(&other).json()["name"], "Robot");
    assert_eq!(club.anonymous().get(&other).json()["description"], "about it");
    club.by(BOB).patch(&path, json!({"name": "arm"})).expect(204);
    club.by(CAROL).patch(&other, json!({"name": "robot"})).expect(204);
}

#[rstest]
fn of_two_creates_at_once_one_wins(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let second = club.start_another();
    for round in 0..50 {
        let body = project_body(&format!("p{round}"));
        let mut statuses = thread::scope(|scope| {
            let attempt = |service| {
                let (club, body) = (&club, body.clone());
                scope.spawn(move || club.by(BOB).at(service).post(PROJECTS, body).status)
            };
            let attempts = [attempt(0), attempt(second), attempt(0)];
            attempts.map(|attempt| attempt.join().unwrap())
        });
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 409, 409], "round {round}");
    }
}

#[rstest]
fn of_two_renames_to_one_name_at_once_one_wins(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let second = club.start_another();
    let paths = ["a", "b"].map(|name| project(&club, BOB, name));
    for round in 0..50 {
        let body = json!({"name": format!("p{round}")});
        let mut statuses = thread::scope(|scope| {
            let attempts = [(0, &paths[0]), (second, &paths[1])].map(|(service, path)| {
                let (club, body) = (&club, body.clone());
                scope.spawn(move || club.by(BOB).at(service).patch(path, body).status)
            });
            attempts.map(|attempt| attempt.join().unwrap())
        });
        statuses.sort_unstable();
        assert_eq!(statuses, [204, 409], "round {round}");
    }
}

#[rstest]
fn null_is_as_if_it_were_left_out(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = project(&club, BOB, "robot");
    let ended = span((2024, 0), Some((2024, 1)));
    club.by(BOB).patch(&path, json!({"duration": ended, "link": "https://a.example"})).expect(204);
    let before = club.anonymous().get(&path).json();
    let nothing = json!({"name": null, "link": null, "description": null, "duration": null});
    club.by(BOB).patch(&path, nothing).expect(204);
    assert_eq!(club.anonymous().get(&path).json(), before);
    let open = json!({"duration": {"since": {"year": 2024, "semester": 0}, "until": null}});
    club.by(BOB).patch(&path, open).expect(204);
    assert_eq!(club.anonymous().get(&path).json()["duration"], span((2024, 0), None));
    for required in ["name", "description", "duration"] {
        let body = with(project_body("new"), json!({ required: null }));
        assert_eq!(club.by(BOB).post(PROJECTS, body).expect(400).pointers(), [format!("/{required}")]);
    }
}

#[rstest]
fn a_change_of_the_span_and_of_the_members_at_once_end_as_asked(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let second = club.start_another();
    let path = project(&club, BOB, "robot");
    put(&club, BOB, &path, json!([member(BOB, (2024, 0), None)])).expect(204);
    for round in 0..200 {
        // From round to round the two spans move so that the new members do not fit the old span, nor the other
        // way round; the project goes on for ever, or does not.
        let year = if round % 2 == 0 { 2000 } else { 2030 };
        let until = (round % 3 == 0).then_some((year + 2, 1));
        let change = json!({"duration": span((year, 0), until), "description": format!("round {round}")});
        let present = [BOB, CAROL, DAVE].map(|name| member(name, (year, 1), Some((year + 1, 0))));
        let members = json!({"members": present[..=round % 3]});
        let other = if round % 5 == 0 { Some(json!({"members": [member(ALICE, (year, 0), None)]})) } else { None };
        thread::scope(|scope| {
            let send = |method: &'static str, path: String, body: Value, service| {
                let club = &club;
                scope.spawn(move || club.by(BOB).at(service).send(method, &path, Some(body)).expect(204));
            };
            let members_path = format!("{path}/members");
            if round % 4 < 2 {
                send("PUT", members_path.clone(), members.clone(), round % 2 * second);
                send("PATCH", path.clone(), change.clone(), second);
            } else {
                send("PATCH", path.clone(), change.clone(), round % 2 * second);
                send("PUT", members_path.clone(), members.clone(), second);
            }
            if let Some(other) = other.clone() {
                send("PUT", members_path, other, 0);
            }
        });
        let shown = club.anonymous().get(&path).expect(200).json();
        assert_eq!(shown["duration"], change["duration"], "round {round}");
        assert_eq!(shown["description"], change["description"], "round {round}");
        let asked = |members: &Value| {
            let mut list: Vec<_> = members["members"]
                .as_array()
                .unwrap()
                .iter()
                .map(|member| (text(&member["userId"]), member["duration"].clone()))
                .collect();
            list.sort_by(|a, b| a.0.cmp(&b.0));
            list
        };
        let mut found: Vec<_> = shown["members"]
            .as_array()
            .unwrap()
            .iter()
            .map(|member| (text(&member["id"]), member["duration"].clone()))
            .collect();
        found.sort_by(|a, b| a.0.cmp(&b.0));
        // Of two lists one wins as a whole; they never mix.
        let clipped = |other: &Value| {
            let mut list = asked(other);
            list[0].1 = change["duration"].clone();
            list
        };
        assert!(found == asked(&members) || other.is_some_and(|other| found == clipped(&other)), "round {round}");
    }
}

#[rstest]
fn names_in_real_life_are_not_shown(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = project(&club, BOB, "robot");
    put(&club, BOB, &path, json!([member(BOB, (2024, 0), None)])).expect(204);
    for who in [ALICE, BOB, CAROL] {
        for path in [path.clone(), format!("{path}/members")] {
            assert!(!club.by(who).get(&path).expect(200).text().contains(&real_name(BOB)));
        }
    }
}

#[rstest]
fn an_edge_like_the_projects_follows_it(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = project(&club, BOB, "robot");
    let move_to = |since, until| club.by(BOB).patch(&path, json!({"duration": span(since, until)})).expect(204);
    let shown = || {
        let members = club.anonymous().get(&format!("{path}/members")).expect(200).json();
        let of_user = club.anonymous().get(&format!("/api/v1/users/{}/projects", id(BOB))).expect(200).json();
        assert_eq!(of_user[0]["userDuration"], members[0]["duration"]);
        members.as_array().unwrap().iter().map(|member| member["duration"].clone()).collect::<Vec<_>>()
    };
    move_to((2022, 0), Some((2024, 1)));
    // Both edges, the first, the last, and none.
    let list = json!([
        member(BOB, (2022, 0), Some((2024, 1))),
        member(CAROL, (2022, 0), Some((2024, 0))),
        member(DAVE, (2022, 1), Some((2024, 1))),
        member(SUSAN, (2022, 1), Some((2024, 0))),
    ]);
    put(&club, BOB, &path, list.clone()).expect(204);
    let as_sent = || list.as_array().unwrap().iter().map(|member| member["duration"].clone()).collect::<Vec<_>>();
    assert_eq!(shown(), as_sent());
    move_to((2020, 0), Some((2026, 1)));
    let (early, late) = ((2020, 0), Some((2026, 1)));
    let expected =
        [span(early, late), span(early, Some((2024, 0))), span((2022, 1), late), span((2022, 1), Some((2024, 0)))];
    assert_eq!(shown(), expected);
    // Narrower than what was sent, and back.
    move_to((2023, 0), Some((2023, 1)));
    assert_eq!(shown(), vec![span((2023, 0), Some((2023, 1))); 4]);
    // An edge that the project comes to have by itself is none that was sent as the project's.
    move_to((2022, 1), Some((2024, 0)));
    move_to((2020, 0), Some((2026, 1)));
    assert_eq!(shown(), expected);
    move_to((2020, 0), None);
    assert_eq!(shown()[0], span((2020, 0), None));
    assert_eq!(shown()[2], span((2022, 1), None));
    // Where the two do not meet, as sent.
    move_to((2030, 0), None);
    assert_eq!(shown(), [span((2030, 0), None), as_sent()[1].clone(), span((2030, 0), None), as_sent()[3].clone()]);
    move_to((2010, 0), Some((2011, 0)));
    assert_eq!(
        shown(),
        [
            span((2010, 0), Some((2011, 0))),
            span((2010, 0), Some((2011, 0))),
            as_sent()[2].clone(),
            as_sent()[3].clone()
        ]
    );
    // The form sends back what it was shown.
    move_to((2022, 0), Some((2024, 1)));
    put(&club, BOB, &path, json!([member(BOB, (2022, 0), Some((2024, 1)))])).expect(204);
    move_to((2021, 0), Some((2024, 1)));
    assert_eq!(shown(), [span((2021, 0), Some((2024, 1)))]);
}

#[rstest]
fn a_member_leaves_and_changes_the_project_at_once(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut club = Club::start(backend);
    let second = club.start_another();
    let path = project(&club, BOB, "robot");
    for round in 0..30 {
        put(&club, BOB, &path, json!([member(CAROL, (2024, 0), None), member(DAVE, (2024, 0), None)])).expect(204);
        let change = json!({"description": format!("round {round}")});
        let list = json!({"members": [member(DAVE, (2024, 0), None)]});
        thread::scope(|scope| {
            let club = &club;
            let leave = || drop(club.by(CAROL).put(&format!("{path}/members"), list.clone()).expect(204));
            let patch = || drop(club.by(CAROL).at(second).patch(&path, change.clone()).expect(204));
            if round % 2 == 0 {
                scope.spawn(leave);
                scope.spawn(patch);
            } else {
                scope.spawn(patch);
                scope.spawn(leave);
            }
        });
        let shown = club.anonymous().get(&path).expect(200).json();
        assert_eq!(
            (&shown["description"], each(&shown["members"], "name")),
            (&change["description"], vec![DAVE.into()])
        );
    }
}

#[rstest]
fn who_left_may_change_the_project_for_a_minute(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start_by(Clock::stopped(), backend, &[]);
    let path = project(&club, BOB, "robot");
    let other = project(&club, BOB, "another");
    let both = || json!([member(CAROL, (2024, 0), None), member(DAVE, (2024, 0), None)]);
    let patch = |who: &str| club.by(who).patch(&path, json!({"link": ""}));
    put(&club, BOB, &path, both()).expect(204);
    put(&club, CAROL, &path, json!([member(DAVE, (2024, 0), None)])).expect(204);
    patch(CAROL).expect(204);
    // This project, this change, and nobody else.
    put(&club, CAROL, &path, both()).refused(403, "forbidden");
    club.by(CAROL).delete(&path).refused(403, "forbidden");
    club.by(CAROL).patch(&other, json!({"link": ""})).refused(403, "forbidden");
    club.clock.advance(TimeDelta::seconds(59));
    patch(CAROL).expect(204);
    club.clock.advance(TimeDelta::seconds(2));
    patch(CAROL).refused(403, "forbidden");
    // Who is taken off by somebody else has left nothing to finish.
    put(&club, BOB, &path, json!([])).expect(204);
    patch(DAVE).refused(403, "forbidden");
    // Again on the list, and off it.
    put(&club, BOB, &path, both()).expect(204);
    put(&club, CAROL, &path, json!([])).expect(204);
    patch(CAROL).expect(204);
}

#[rstest]
fn queries_use_indexes(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut objects = Objects::new();
    objects.grow(&club, 2);
    let (bob, project) = (id(BOB), objects.first("projectId"));
    let position = queries::list(&mut club.connect(), &PageBounds::all()).unwrap()[0].position();
    plans::check_page(&club, |conn| {
        for page in plans::pages(position) {
            queries::list(conn, &page).unwrap();
        }
    });
    plans::check(&club, |conn| {
        queries::get(conn, project).unwrap();
        queries::get_with_members(conn, project).unwrap();
        for page in plans::pages(position) {
            queries::of_user(conn, bob, &page).unwrap();
        }
        for page in plans::pages((String::new(), bob)).into_iter().chain([PageBounds::all()]) {
            queries::members(conn, project, &page).unwrap();
        }
        queries::put_members(conn, project, &[], bob, DbTimestamp(club.clock.now())).unwrap();
    });
}
