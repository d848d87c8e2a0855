//! Answers to polls, and the results.

use crate::harness::Backend::{self, Postgres, Sqlite};
use chrono::TimeDelta;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    builders::{EVERYONE, answer_poll, each, poll, span},
    harness::{ALICE, BOB, CAROL, Club, DAVE, id},
};

#[rstest]
fn an_answer_is_given_changed_and_shown(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (path, slots) = poll(&club, BOB, json!({"invitees": [id(CAROL)]}));
    let (own, all) = (format!("{path}/availability"), format!("{path}/availability/all"));
    club.by(CAROL).get(&own).refused(404, "not-found");
    club.by(CAROL).put(&own, json!({"slotIds": []})).refused(404, "not-found");
    let body = json!({"slotIds": [slots[1], slots[0], slots[1]], "maybeSlotIds": null, "comment": "Late."});
    let made = club.by(CAROL).post(&own, body).expect(201).json();
    assert_eq!(
        (&made["userId"], &made["slotIds"], &made["maybeSlotIds"]),
        (&json!(id(CAROL)), &json!(slots), &json!([]))
    );
    assert_eq!(
        (&made["comment"], &made["draftEventId"]),
        (&json!("Late."), &club.by(BOB).get(&path).json()["draftEventId"])
    );
    assert_eq!(club.by(CAROL).get(&own).expect(200).json(), made);
    answer_poll(&club, CAROL, &path, &[]).refused(409, "already-answered");
    assert_eq!(club.by(CAROL).get(&own).json(), made);
    let changed = club.by(CAROL).put(&own, json!({"slotIds": [], "maybeSlotIds": [slots[0]]})).expect(200).json();
    assert_eq!((&changed["slotIds"], &changed["maybeSlotIds"]), (&json!([]), &json!([slots[0]])));
    assert!(changed.get("comment").is_none());
    // An administrator who is not invited.
    answer_poll(&club, BOB, &path, &[&slots[0]]).expect(201);
    let listed = club.by(BOB).get(&all).expect(200).json();
    let mut users = [id(BOB), id(CAROL)];
    users.sort();
    assert_eq!(each(&listed, "userId"), users.map(|user| user.to_string()));
    assert_eq!(club.by(ALICE).get(&all).expect(200).json(), listed);
    club.by(CAROL).get(&all).refused(403, "forbidden");
}

#[rstest]
fn an_invalid_answer_changes_nothing(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (path, slots) = poll(&club, BOB, json!({"invitees": [id(CAROL)]}));
    let (_, others) = poll(&club, BOB, json!({}));
    let own = format!("{path}/availability");
    answer_poll(&club, DAVE, &path, &[&slots[0]]).refused(403, "forbidden");
    club.by(DAVE).put(&own, json!({"slotIds": []})).refused(403, "forbidden");
    let bad = [
        (json!({}), vec!["/slotIds"]),
        (json!({"slotIds": null}), vec!["/slotIds"]),
        (json!({"slotIds": [slots[0], others[0]]}), vec!["/slotIds/1"]),
        (json!({"slotIds": [], "maybeSlotIds": [others[0], "x"]}), vec!["/maybeSlotIds/1"]),
        (json!({"slotIds": [others[0]], "maybeSlotIds": [slots[0], others[1]]}), vec!["/maybeSlotIds/1", "/slotIds/0"]),
        (json!({"slotIds": [slots[0]], "maybeSlotIds": [slots[1], slots[0]]}), vec!["/maybeSlotIds/1"]),
        (json!({"slotIds": [], "comment": "x".repeat(501)}), vec!["/comment"]),
    ];
    for (body, pointers) in &bad {
        assert_eq!(club.by(CAROL).post(&own, body.clone()).expect(400).pointers(), *pointers, "{body}");
    }
    club.by(CAROL).get(&own).refused(404, "not-found");
    answer_poll(&club, CAROL, &path, &[&slots[0]]).expect(201);
    let before = club.by(CAROL).get(&own).json();
    for (body, pointers) in &bad {
        assert_eq!(club.by(CAROL).put(&own, body.clone()).expect(400).pointers(), *pointers, "{body}");
    }
    assert_eq!(club.by(CAROL).get(&own).json(), before);
}

#[rstest]
fn answers_end_with_the_deadline(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (path, slots) = poll(&club, BOB, json!({"open": true}));
    let own = format!("{path}/availability");
    // Anybody may answer an open poll.
    answer_poll(&club, CAROL, &path, &[&slots[0]]).expect(201);
    let before = club.by(CAROL).get(&own).json();
    // The deadline passes between reading and answering.
    assert_eq!(club.by(DAVE).get(&path).json()["status"], "open");
    club.clock.advance(TimeDelta::hours(25));
    answer_poll(&club, DAVE, &path, &[&slots[0]]).refused(403, "poll-closed");
    club.by(CAROL).put(&own, json!({"slotIds": []})).refused(403, "poll-closed");
    assert_eq!(club.by(CAROL).get(&own).expect(200).json(), before);
    assert_eq!(club.by(DAVE).get(&path).json()["status"], "closed");
}

#[rstest]
fn a_removed_invitee_keeps_the_answer(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (path, slots) = poll(&club, BOB, json!({"invitees": [id(CAROL), id(DAVE)]}));
    answer_poll(&club, CAROL, &path, &[&slots[0]]).expect(201);
    club.by(BOB).put(&path, json!({"invitees": [id(DAVE)]})).expect(200);
    let results = club.by(DAVE).get(&format!("{path}/results")).expect(200).json();
    assert_eq!(each(&results["respondents"], "userId"), [id(CAROL).to_string()]);
    assert_eq!(results["nonRespondents"], json!([id(DAVE)]));
    club.by(CAROL).put(&format!("{path}/availability"), json!({"slotIds": []})).refused(403, "forbidden");
}

#[rstest]
fn results_count_every_answer(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let slots = json!([span(&club, 72, 74), span(&club, 48, 50), span(&club, 60, 61)]);
    let invitees = json!([id(ALICE), id(BOB), id(CAROL), id(DAVE)]);
    let (path, slots) = poll(&club, BOB, json!({"candidateSlots": slots, "invitees": invitees}));
    let results = |by: &str| club.by(by).get(&format!("{path}/results")).expect(200).json();
    let empty = results(DAVE);
    assert_eq!(each(&empty["results"], "slotId"), slots);
    assert!(empty["results"].as_array().unwrap().iter().all(|slot| slot["isTopChoice"] == false));
    assert_eq!(empty["results"][0]["availabilityRate"], 0.0);
    for (by, yes, maybe, comment) in [
        (ALICE, vec![&slots[0], &slots[1]], vec![], Some("Late.")),
        (BOB, vec![&slots[0], &slots[1]], vec![&slots[2]], None),
        (CAROL, vec![], vec![&slots[0], &slots[1], &slots[2]], None),
    ] {
        let body = json!({"slotIds": yes, "maybeSlotIds": maybe, "comment": comment});
        club.by(by).post(&format!("{path}/availability"), body).expect(201);
    }
    let shown = results(DAVE);
    let of_slots: Vec<_> = shown["results"].as_array().unwrap().iter().collect();
    let summary = |slot: &Value| {
        (slot["availableCount"].as_u64().unwrap(), slot["maybeCount"].as_u64().unwrap(), slot["isTopChoice"] == true)
    };
    assert_eq!(
        of_slots.iter().map(|slot| summary(slot)).collect::<Vec<_>>(),
        [(2, 1, true), (2, 1, true), (0, 2, false)]
    );
    let mut both = [id(ALICE), id(BOB)];
    both.sort();
    assert_eq!((&of_slots[0]["availableUsers"], &of_slots[0]["maybeUsers"]), (&json!(both), &json!([id(CAROL)])));
    assert!((of_slots[0]["availabilityRate"].as_f64().unwrap() - 2.0 / 3.0).abs() < 1e-9);
    assert_eq!(shown["nonRespondents"], json!([id(DAVE)]));
    let respondents = shown["respondents"].as_array().unwrap();
    assert_eq!(respondents.len(), 3);
    let comment =
        |user: &str| respondents.iter().find(|it| it["userId"] == json!(id(user))).unwrap().get("comment").cloned();
    assert_eq!((comment(ALICE), comment(BOB)), (Some(json!("Late.")), None));
    assert_eq!(club.by(BOB).get(&path).json()["respondedCount"], 3);
    // Who answers without an invitation counts as asked.
    let (open, slots) = poll(&club, BOB, json!({"open": true, "invitees": [id(ALICE), id(DAVE)]}));
    for by in [ALICE, BOB, CAROL] {
        answer_poll(&club, by, &open, &[&slots[0]]).expect(201);
    }
    let shown = club.by(BOB).get(&open).json();
    assert_eq!((&shown["respondedCount"], &shown["totalInvitees"]), (&json!(3), &json!(4)));
}

/// Runs both at the same time.
fn together<A: Send, B: Send>(a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B + Send) -> (A, B) {
    let barrier = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            barrier.wait();
            a()
        });
        barrier.wait();
        let second = b();
        (first.join().unwrap(), second)
    })
}

#[rstest]
fn one_of_two_concurrent_answers_is_stored(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for _ in 0..10 {
        let (path, slots) = poll(&club, BOB, json!({"invitees": [id(CAROL)]}));
        let answer = |slot: usize| answer_poll(&club, CAROL, &path, &[&slots[slot]]).status;
        let (one, other) = together(|| answer(0), || answer(1));
        let winner = usize::from(one != 201);
        assert_eq!((one.min(other), one.max(other)), (201, 409));
        let shown = club.by(CAROL).get(&format!("{path}/availability")).expect(200).json();
        assert_eq!(shown["slotIds"], json!([slots[winner]]));
    }
}

#[rstest]
fn an_answer_during_a_confirmation_is_counted_or_refused(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for round in 0..15 {
        let (path, slots) = poll(&club, BOB, json!({"invitees": [id(CAROL), id(DAVE)]}));
        let confirmation = json!({"slotId": slots[0], "place": format!("place {round}"), "groupId": EVERYONE});
        let (answered, event) = together(
            || answer_poll(&club, CAROL, &path, &[&slots[0]]),
            || club.by(BOB).post(&format!("{path}/confirm"), confirmation).expect(201).json(),
        );
        let attendees = event["attendees"].as_array().unwrap();
        let carol = attendees.iter().find(|it| it["userId"] == json!(id(CAROL))).unwrap();
        if answered.status == 201 {
            assert_eq!(carol["schedule"], "attendance", "round {round}");
        } else {
            answered.refused(403, "poll-closed");
            assert_eq!(carol["schedule"], "pending", "round {round}");
        }
    }
}
