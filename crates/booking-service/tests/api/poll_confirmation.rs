//! The confirmation of polls, and dry runs of bookings.

use crate::harness::Backend::{self, Postgres, Sqlite};
use chrono::TimeDelta;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    builders::{
        At, EVERYONE, answer_poll, each, event, event_body, group, merge, poll, room, span, text, verified_room,
    },
    harness::{ALICE, BOB, CAROL, Club, DAVE, SUSAN, id},
};

fn confirmation(slot: &str, at: Value) -> Value {
    merge([json!({"slotId": slot, "groupId": EVERYONE}), at])
}

fn schedule(event: &Value, user: &str) -> Option<String> {
    let attendees = event["attendees"].as_array().unwrap();
    attendees.iter().find(|it| it["userId"] == json!(id(user))).map(|it| text(&it["schedule"]))
}

#[rstest]
fn a_slot_becomes_an_event(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let group = group(&club, ALICE, "graphics", &[SUSAN, DAVE]);
    let members = json!({
        "description": "Pizza.", "invitees": [id(ALICE), id(CAROL), id(DAVE)], "admins": [id(BOB), id(CAROL)],
        "tags": [{"name": "rust", "locked": true}],
    });
    let (path, slots) = poll(&club, BOB, members);
    answer_poll(&club, ALICE, &path, &[&slots[1]]).expect(201);
    let maybe = json!({"slotIds": [slots[0]], "maybeSlotIds": [slots[1]]});
    club.by(BOB).post(&format!("{path}/availability"), maybe).expect(201);
    answer_poll(&club, CAROL, &path, &[&slots[0]]).expect(201);
    let body =
        merge([confirmation(&slots[1], json!({"place": "S516"})), json!({"groupId": group, "sharedRoom": true})]);
    let confirmed = club.by(CAROL).post(&format!("{path}/confirm"), body.clone()).expect(201);
    let location = confirmed.header("location").unwrap().to_owned();
    let event = confirmed.json();
    assert_eq!(location, format!("/api/events/{}", text(&event["eventId"])));
    assert_eq!(club.by(DAVE).get(&location).expect(200).json(), event);
    let detail = club.by(BOB).get(&path).json();
    assert_eq!((&detail["status"], &detail["eventId"]), (&json!("confirmed"), &event["eventId"]));
    for member in ["name", "description", "admins", "tags"] {
        assert_eq!(event[member], detail[member], "{member}");
    }
    assert_eq!(event["timeStart"], detail["candidateSlots"][1]["timeStart"]);
    assert_eq!(event["timeEnd"], detail["candidateSlots"][1]["timeEnd"]);
    assert_eq!(
        (&event["createdBy"], &event["sharedRoom"], &event["open"]),
        (&json!(id(CAROL)), &json!(true), &json!(false))
    );
    let answers = [ALICE, BOB, CAROL, DAVE].map(|user| schedule(&event, user).unwrap());
    assert_eq!(answers, ["attendance", "pending", "absent", "pending"]);
    assert_eq!(schedule(&event, SUSAN), None, "who is suspended is not invited");

    let problem = club.by(CAROL).post(&format!("{path}/confirm"), body).refused(409, "poll-confirmed");
    assert_eq!(problem["eventId"], event["eventId"]);
    answer_poll(&club, DAVE, &path, &[]).refused(403, "poll-closed");
    club.by(BOB).put(&path, json!({"name": "New"})).refused(403, "poll-closed");
    // The event can be changed like any other, and stays when the poll is deleted.
    club.by(DAVE).put(&format!("{location}/attendees/me"), json!({"schedule": "absent"})).expect(204);
    club.by(BOB).delete(&path).expect(204);
    club.by(BOB).get(&location).expect(200);
}

#[rstest]
fn the_deletion_of_its_event_undoes_a_confirmation(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let room = verified_room(&club, ALICE, "S516", (48, 74));
    let group = group(&club, BOB, "graphics", &[DAVE]);
    let (path, slots) = poll(&club, BOB, json!({"invitees": [id(CAROL)], "open": true}));
    answer_poll(&club, CAROL, &path, &[&slots[0]]).expect(201);
    let before = club.by(BOB).get(&path).json();
    let results = club.by(BOB).get(&format!("{path}/results")).json();
    let body = json!({"slotId": slots[0], "groupId": group, "roomId": room});
    let confirm = || club.by(BOB).post(&format!("{path}/confirm"), body.clone());
    let listed = |status: &str| {
        let list = club.by(BOB).get(&format!("/api/users/me/draft-events?relation=admins&status={status}"));
        list.expect(200).json().as_array().unwrap().len()
    };
    let last_way = format!("/api/rooms/{room}?force=true");
    for way in ["/api/events/EVENT", &format!("/api/groups/{group}?force=true"), &last_way] {
        let body = if way == last_way { merge([body.clone(), json!({"groupId": EVERYONE})]) } else { body.clone() };
        let event = club.by(BOB).post(&format!("{path}/confirm"), body).expect(201).json();
        assert_eq!((listed("open"), listed("closed"), listed("confirmed")), (0, 0, 1), "{way}");
        let confirmed = club.by(BOB).get(&path);
        answer_poll(&club, DAVE, &path, &[]).refused(403, "poll-closed");
        let deleted = club.by(ALICE).delete(&way.replace("EVENT", event["eventId"].as_str().unwrap()));
        assert!(matches!(deleted.status, 200 | 204), "{way}: {}", deleted.status);
        let tag = confirmed.header("etag").unwrap();
        let after = club.by(BOB).header("if-none-match", tag).get(&path).expect(200).json();
        assert_eq!(merge([after.clone(), json!({"updatedAt": before["updatedAt"]})]), before, "{way}");
        assert_eq!(club.by(BOB).get(&format!("{path}/results")).json(), results, "{way}");
        assert_eq!((listed("open"), listed("closed"), listed("confirmed")), (1, 0, 0), "{way}");
    }
    // The poll takes answers, changes and another confirmation; after the deadline it is closed.
    answer_poll(&club, DAVE, &path, &[&slots[1]]).expect(201);
    club.by(BOB).put(&path, json!({"name": "Again"})).expect(200);
    confirm().expect(400);
    let elsewhere = json!({"slotId": slots[1], "groupId": EVERYONE, "place": "x"});
    let event = club.by(BOB).post(&format!("{path}/confirm"), elsewhere).expect(201).json();
    club.clock.advance(TimeDelta::hours(25));
    club.by(BOB).delete(&format!("/api/events/{}", text(&event["eventId"]))).expect(204);
    assert_eq!(club.by(BOB).get(&path).json()["status"], "closed");
    answer_poll(&club, ALICE, &path, &[]).refused(403, "poll-closed");
}

#[rstest]
fn a_poll_is_confirmed_once_at_a_time(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for round in 0..10 {
        let group = group(&club, BOB, "g", &[BOB]);
        let (path, slots) = poll(&club, BOB, json!({"open": true}));
        let confirm = |place: &str| {
            let body = json!({"slotId": slots[0], "groupId": group, "place": format!("{place} {round}")});
            club.by(BOB).post(&format!("{path}/confirm"), body)
        };
        let event = confirm("first").expect(201).json();
        let delete = match round % 3 {
            0 => format!("/api/events/{}", text(&event["eventId"])),
            1 => format!("/api/rooms/{}?force=true", text(&event["room"]["roomId"])),
            _ => format!("/api/groups/{group}?force=true"),
        };
        let (deleted, confirmed, answered) = std::thread::scope(|scope| {
            let deleted = scope.spawn(|| club.by(BOB).delete(&delete).status);
            let confirm = &confirm;
            let confirmed = ["a", "b"].map(|place| scope.spawn(move || confirm(place)));
            let answered = scope.spawn(|| answer_poll(&club, CAROL, &path, &[&slots[0]]).status);
            (deleted.join().unwrap(), confirmed.map(|run| run.join().unwrap()), answered.join().unwrap())
        });
        // A group that is deleted by then refuses the new event (400), or has one more event that goes with it.
        assert!(matches!(deleted, 200 | 204), "{deleted}");
        assert!(matches!(answered, 201 | 403), "{answered}");
        let made: Vec<_> = confirmed.iter().filter(|answer| answer.status == 201).collect();
        assert!(confirmed.iter().all(|answer| matches!(answer.status, 201 | 400 | 409)), "round {round}");
        let there: Vec<_> = made
            .iter()
            .map(|answer| text(&answer.json()["eventId"]))
            .filter(|event| club.by(BOB).get(&format!("/api/events/{event}")).status == 200)
            .collect();
        let poll = club.by(BOB).get(&path).expect(200).json();
        assert!(there.len() <= 1, "round {round}: {there:?}");
        assert_eq!(poll.get("eventId").map(text), there.first().cloned(), "round {round}");
    }
}

#[rstest]
fn a_second_confirmation_sees_the_one_that_it_waited_for(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for round in 0..5 {
        let (path, slots) = poll(&club, BOB, json!({}));
        let confirm = |place: usize| {
            let body = json!({"slotId": slots[0], "groupId": EVERYONE, "place": format!("{round} {place}")});
            club.by(BOB).post(&format!("{path}/confirm"), body).status
        };
        let mut statuses = std::thread::scope(|scope| {
            let confirm = &confirm;
            let runs = [0, 1, 2].map(|place| scope.spawn(move || confirm(place)));
            runs.map(|run| run.join().unwrap())
        });
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 409, 409]);
    }
}

#[rstest]
fn a_conflict_leaves_the_poll_unchanged(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let room = verified_room(&club, ALICE, "S516", (48, 60));
    let taken = event(&club, DAVE, At::Room(&room), (49, 51));
    let (path, slots) = poll(&club, BOB, json!({"invitees": [id(CAROL)]}));
    answer_poll(&club, CAROL, &path, &[&slots[0]]).expect(201);
    let confirm = |by: &str, body: Value| club.by(by).post(&format!("{path}/confirm"), body);
    let before = club.by(BOB).get(&path).json();
    for at in [json!({ "roomId": room }), json!({"place": "ｓ516"})] {
        let problem = confirm(BOB, confirmation(&slots[0], at)).refused(409, "room-conflict");
        assert_eq!(each(&problem["conflicts"], "eventId"), [&*taken]);
        assert!(!problem["freeTimes"].as_array().unwrap().is_empty());
    }
    let outside = confirm(BOB, confirmation(&slots[1], json!({ "roomId": room }))).refused(400, "outside-room-window");
    assert!(outside["detail"].as_str().is_some());
    assert_eq!(club.by(BOB).get(&path).json(), before);
    assert_eq!(club.by(BOB).get("/api/events").json().as_array().unwrap().len(), 1);
    // When the room is free, the poll can be confirmed, also after the deadline.
    club.by(DAVE).delete(&format!("/api/events/{taken}")).expect(204);
    club.clock.advance(TimeDelta::hours(30));
    let event = confirm(BOB, confirmation(&slots[0], json!({ "roomId": room }))).expect(201).json();
    assert_eq!(event["room"]["roomId"], json!(room));
    assert_eq!(schedule(&event, CAROL).unwrap(), "attendance");
}

#[rstest]
fn an_invalid_confirmation_is_refused(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (path, slots) = poll(&club, BOB, json!({"invitees": [id(CAROL)]}));
    let (_, others) = poll(&club, BOB, json!({}));
    let nobody = "0198c0de-0000-7000-8000-000000000099";
    let confirm = |by: &str, body: Value| club.by(by).post(&format!("{path}/confirm"), body);
    let good = confirmation(&slots[0], json!({"place": "x"}));
    confirm(CAROL, good.clone()).refused(403, "forbidden");
    for (body, pointers) in [
        (json!({"place": "x"}), vec!["/groupId", "/slotId"]),
        (confirmation(&slots[0], json!({})), vec!["/place"]),
        (confirmation(&slots[0], json!({"place": "x", "roomId": nobody})), vec!["/place"]),
        (confirmation(&slots[0], json!({"place": " "})), vec!["/place"]),
        (confirmation(&others[0], json!({"place": "x"})), vec!["/slotId"]),
        (confirmation(&slots[0], json!({"roomId": nobody, "groupId": nobody})), vec!["/groupId", "/roomId"]),
    ] {
        assert_eq!(confirm(BOB, body.clone()).expect(400).pointers(), pointers, "{body}");
    }
    assert_eq!(club.by(BOB).get(&path).json()["status"], "open");
    let key = "once";
    let first = club.by(BOB).header("idempotency-key", key).post(&format!("{path}/confirm"), good.clone()).expect(201);
    let again = club.by(BOB).header("idempotency-key", key).post(&format!("{path}/confirm"), good).expect(201);
    assert_eq!((again.header("idempotency-replayed"), &again.body), (Some("true"), &first.body));
}

/// The lists that a booking changes.
fn state(club: &Club) -> Vec<Value> {
    let lists = ["/api/events", "/api/rooms", "/api/tags", "/api/users/me/draft-events?relation=admins"];
    lists.iter().map(|path| club.by(BOB).get(path).expect(200).json()).collect()
}

/// An answer without the fields that differ between two equal requests.
fn without_ids(mut answer: Value) -> Value {
    for pointer in ["", "/room"] {
        let object = answer.pointer_mut(pointer).unwrap().as_object_mut().unwrap();
        for member in ["eventId", "roomId", "createdAt", "updatedAt"] {
            object.remove(member);
        }
    }
    for tag in answer["tags"].as_array_mut().unwrap() {
        tag.as_object_mut().unwrap().remove("tagId");
    }
    answer
}

#[rstest]
fn a_dry_run_answers_as_the_change_would_and_stores_nothing(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let room = verified_room(&club, ALICE, "S516", (0, 9));
    let stays = event(&club, BOB, At::Room(&room), (4, 5));
    let (path, slots) = poll(&club, BOB, json!({"candidateSlots": [span(&club, 6, 7)], "invitees": [id(CAROL)]}));
    let tags = json!({"tags": [{"name": "new"}]});
    let body = |at: At<'_>, hours| merge([event_body(&club, BOB, at, hours), tags.clone()]);
    let confirm = confirmation(&slots[0], json!({ "roomId": room }));
    let runs = [
        ("POST", "/api/events".to_owned(), body(At::Room(&room), (1, 3)), 201),
        ("POST", "/api/events".to_owned(), body(At::Place("Discord"), (1, 3)), 201),
        ("PUT", format!("/api/events/{stays}"), body(At::Place("Elsewhere"), (5, 6)), 200),
        ("POST", format!("{path}/confirm"), confirm.clone(), 201),
    ];
    for (method, path, body, status) in runs {
        let before = state(&club);
        for value in ["true", "1"] {
            let dry = club.by(BOB).send(method, &format!("{path}?dryRun={value}"), Some(body.clone())).expect(200);
            assert_eq!(dry.header("location"), None);
            assert_eq!(state(&club), before, "{method} {path}");
            if value == "1" {
                let made =
                    club.by(BOB).send(method, &format!("{path}?dryRun=false"), Some(body.clone())).expect(status);
                assert_eq!(without_ids(dry.json()), without_ids(made.json()), "{method} {path}");
            }
        }
    }
    // A dry run is refused for the same reasons.
    let before = state(&club);
    let room_body = |hours| event_body(&club, CAROL, At::Room(&room), hours);
    let dry = |by: &str, method: &str, path: &str, body: Value| {
        club.by(by).send(method, &format!("{path}?dryRun=true"), Some(body))
    };
    let problem = dry(CAROL, "POST", "/api/events", room_body((2, 4))).refused(409, "room-conflict");
    assert!(!problem["conflicts"].as_array().unwrap().is_empty());
    dry(CAROL, "POST", "/api/events", room_body((8, 10))).refused(400, "outside-room-window");
    dry(CAROL, "PUT", &format!("/api/events/{stays}"), room_body((8, 9))).refused(403, "forbidden");
    dry(BOB, "PUT", &format!("/api/events/{stays}"), room_body((2, 4))).refused(409, "room-conflict");
    dry(BOB, "POST", &format!("{path}/confirm"), confirm).refused(409, "poll-confirmed");
    dry(CAROL, "POST", "/api/events", json!({})).refused(400, "invalid-body");
    club.by(CAROL).post("/api/events?dryRun=x", room_body((8, 9))).refused(400, "invalid-parameter");
    let tag = club.by(BOB).get(&format!("/api/events/{stays}")).header("etag").unwrap().to_owned();
    let put = |tag: &str| {
        let path = format!("/api/events/{stays}?dryRun=true");
        club.by(BOB).header("if-match", tag).put(&path, event_body(&club, BOB, At::Place("y"), (5, 6)))
    };
    put("\"stale\"").refused(412, "precondition-failed");
    put(&tag).expect(200);
    // A key has no effect on a dry run.
    let keyed = |query: &str| {
        club.by(CAROL).header("idempotency-key", "dry").post(&format!("/api/events{query}"), room_body((8, 9)))
    };
    let dry = || keyed("?dryRun=true").expect(200);
    let [first, second] = [dry(), dry()];
    assert_ne!(first.json()["eventId"], second.json()["eventId"]);
    assert_eq!(second.header("idempotency-replayed"), None);
    assert_eq!(state(&club), before);
    keyed("").expect(201);
    keyed("?dryRun=true").refused(409, "room-conflict");
}

#[rstest]
fn a_dry_run_without_the_right_is_refused(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let room = room(&club, BOB, "S516", (0, 9));
    let body = event_body(&club, BOB, At::Room(&room), (1, 2));
    club.anonymous().post("/api/events?dryRun=true", body.clone()).refused(401, "not-signed-in");
    club.by(SUSAN).post("/api/events?dryRun=true", body).refused(403, "account-inactive");
}
