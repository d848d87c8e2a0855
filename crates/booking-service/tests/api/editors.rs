//! `If-Match` (contract, "Conditional requests and retries").

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};

use crate::{
    builders::{At, event, event_body, group, merge, room, text},
    conditions::tag,
    harness::{ALICE, Answer, BOB, CAROL, Client, Club, DOCUMENT, id},
};

/// The number of concurrent editors.
const EDITORS: usize = 50;

/// A client that sends this tag in `If-Match`.
fn of<'a>(client: Client<'a>, tag: &str) -> Client<'a> {
    client.header("if-match", tag)
}

/// Creates an event, and returns its path and a body that changes nothing.
fn create_event(club: &Club) -> (String, Value) {
    let path = format!("/api/events/{}", event(club, BOB, At::Place("x"), (1, 2)));
    (path, event_body(club, BOB, At::Place("x"), (1, 2)))
}

/// Repeats a request while the answer is 503.
fn until_served(send: impl Fn() -> Answer) -> Answer {
    loop {
        let answer = send();
        if answer.status != 503 {
            return answer;
        }
    }
}

/// Calls `run` with each number below `count`, on as many threads at once.
fn at_once<T: Send>(count: usize, run: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let barrier = std::sync::Barrier::new(count);
    std::thread::scope(|scope| {
        let (run, barrier) = (&run, &barrier);
        let start = move |n| {
            scope.spawn(move || {
                barrier.wait();
                run(n)
            })
        };
        let threads: Vec<_> = (0..count).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// The number of services: two on PostgreSQL, one on SQLite.
fn replicas(club: &mut Club) -> usize {
    if club.is_postgres() { club.start_another() + 1 } else { 1 }
}

/// The hash of the content in a tag. The fingerprint before it also changes with any other change of the database.
fn content(tag: &str) -> &str {
    tag.trim_matches('"').rsplit('.').next().unwrap()
}

/// Asserts that a change was refused with 412 and the current tag.
#[track_caller]
fn refused(answer: &Answer, current: &str) {
    assert_eq!(content(&tag(answer)), content(current));
    answer.clone().refused(412, "precondition-failed");
}

#[rstest]
fn the_second_of_two_editors_with_one_tag_is_refused(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (path, body) = create_event(&club);
    let named = |name: &str| merge([body.clone(), json!({ "name": name })]);
    let edit = |tag: &str, name: &str| of(club.by(BOB), tag).put(&path, named(name));
    let known = tag(&club.by(BOB).get(&path).expect(200));
    edit(&known, "first").expect(200);
    let late = edit(&known, "second");
    refused(&late, &tag(&club.by(BOB).get(&path)));
    assert_eq!(club.by(BOB).get(&path).json()["name"], "first");
    assert_eq!(edit(&tag(&late), "second").expect(200).json()["name"], "second");
    // The answer to a change has the tag of the changed resource.
    let third = edit(&tag(&club.by(BOB).get(&path)), "third").expect(200);
    club.by(BOB).header("if-none-match", &tag(&third)).get(&path).expect(304);
    assert_eq!(edit(&tag(&third), "fourth").expect(200).json()["name"], "fourth");
    // The header is optional.
    club.by(BOB).put(&path, body.clone()).expect(200);
    // A change of the members changes the group's tag.
    let back = json!({"description": "", "name": "g", "open": true, "admins": [id(BOB)], "members": [id(BOB)]});
    let group = format!("/api/groups/{}", group(&club, BOB, "g", &[BOB]));
    let before = club.by(BOB).put(&group, back.clone()).expect(200);
    club.by(CAROL).put(&format!("{group}/members/me"), json!({})).expect(204);
    refused(&of(club.by(BOB), &tag(&before)).put(&group, back), &tag(&club.by(BOB).get(&group)));
}

#[rstest]
fn valid_and_invalid_values_of_if_match(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (path, body) = create_event(&club);
    let edit = |sent: &str| of(club.by(BOB), sent).put(&path, body.clone());
    let present = || tag(&club.by(BOB).get(&path).expect(200));
    // Each change sets updatedAt, and so changes the tag.
    edit("*").expect(200);
    // An empty header counts as absent.
    edit("").expect(200);
    edit(&present()).expect(200);
    for coding in ["gzip", "br", "zstd"] {
        let packed = present();
        edit(&format!("{}:{coding}\"", packed.trim_end_matches('"'))).expect(200);
    }
    edit(&format!("\"no.such\", {}", present())).expect(200);
    for other in [format!("W/{}", present()), "\"no.such\"".to_owned(), "\"\"".to_owned()] {
        refused(&edit(&other), &present());
    }
    for unreadable in ["no tag", "\"open", "x, y"] {
        let before = present();
        assert_eq!(edit(unreadable).status, 400, "{unreadable:?}");
        assert_eq!(content(&present()), content(&before), "{unreadable:?}");
    }
    club.by(BOB).header("if-match", "\"a\"").header("if-match", &present()).put(&path, body.clone()).expect(200);
    // GET and POST ignore the header.
    of(club.by(BOB), "no tag").get(&path).expect(200);
    of(club.by(BOB), "\"x\"").post(&format!("{path}/tags"), json!({"name": "x"})).expect(204);
    // 401, 403 and 404 come before 412.
    of(club.anonymous(), "\"x\"").put(&path, body.clone()).refused(401, "not-signed-in");
    of(club.by(CAROL), &present()).put(&path, body.clone()).refused(403, "forbidden");
    let known = present();
    club.by(BOB).delete(&path).expect(204);
    edit("*").refused(404, "not-found");
    edit(&known).refused(404, "not-found");
}

#[rstest]
fn sub_resources_use_the_tag_of_their_resource(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (event, _) = create_event(&club);
    let group = format!("/api/groups/{}", group(&club, BOB, "g", &[BOB]));
    let open = json!({"name": "g", "description": "", "open": true, "members": [id(BOB)], "admins": [id(BOB)]});
    club.by(BOB).put(&group, open).expect(200);
    let room = format!("/api/rooms/{}", room(&club, BOB, "S516", (0, 9)));
    club.by(ALICE).post(&format!("{room}/verified"), json!({})).expect(204);
    let carol = format!("/api/users/{}", id(CAROL));
    club.by(BOB).post(&format!("{event}/tags"), json!({"name": "rust"})).expect(204);
    let answered = json!({"schedule": "attendance"});
    let grant = json!({"privileged": true});
    let changes: [(&str, &str, String, &str, Option<Value>); 7] = [
        (CAROL, "PUT", format!("{event}/attendees/me"), &event, Some(answered)),
        (CAROL, "DELETE", format!("{event}/tags/rust"), &event, None),
        (CAROL, "PUT", format!("{group}/members/me"), &group, None),
        (CAROL, "DELETE", format!("{group}/members/me"), &group, None),
        (ALICE, "DELETE", format!("{room}/verified"), &room, None),
        (ALICE, "PATCH", format!("{carol}/privileged"), &carol, Some(grant)),
        (BOB, "DELETE", room.clone(), &room, None),
    ];
    for (who, method, path, above, body) in changes {
        let present = tag(&club.by(who).get(above).expect(200));
        let refusal = of(club.by(who), "\"no.such\"").send(method, &path, body.clone());
        refused(&refusal, &present);
        assert!(of(club.by(who), &present).send(method, &path, body.clone()).status < 300, "{method} {path}");
        if method != "DELETE" || path != *above {
            let again = of(club.by(who), &present).send(method, &path, body);
            refused(&again, &tag(&club.by(who).get(above)));
        }
    }
    // Resources of the caller have no id in their path.
    let secret = tag(&club.by(BOB).get("/api/users/me/ical").expect(200));
    of(club.by(BOB), &secret).put("/api/users/me/ical", json!({})).expect(200);
    refused(
        &of(club.by(BOB), &secret).put("/api/users/me/ical", json!({})),
        &tag(&club.by(BOB).get("/api/users/me/ical")),
    );
    let new = json!({"name": "x", "scope": "read"});
    let tokens = [(); 2].map(|()| text(&club.by(BOB).post("/api/users/me/tokens", new.clone()).json()["tokenId"]));
    let list = tag(&club.by(BOB).get("/api/users/me/tokens").expect(200));
    let revoke = |token: &str| of(club.by(BOB), &list).delete(&format!("/api/users/me/tokens/{token}"));
    revoke(&tokens[0]).expect(204);
    refused(&revoke(&tokens[1]), &tag(&club.by(BOB).get("/api/users/me/tokens")));
}

#[rstest]
fn one_of_many_concurrent_changes_with_one_tag_succeeds(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let replicas = replicas(&mut club);
    let (path, body) = create_event(&club);
    let known = tag(&club.by(BOB).get(&path).expect(200));
    let statuses = at_once(EDITORS, |n| {
        let body = merge([body.clone(), json!({"name": format!("editor {n}")})]);
        until_served(|| of(club.by(BOB).at(n % replicas), &known).put(&path, body.clone())).status
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 412).count(), EDITORS - 1, "{statuses:?}");
}

/// Takes seconds: the editors try again until each has changed the event.
#[rstest]
fn no_editor_overwrites_another(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let replicas = replicas(&mut club);
    let (path, body) = create_event(&club);
    at_once(EDITORS, |n| {
        let client = || club.by(BOB).at(n % replicas);
        loop {
            let read = until_served(|| client().get(&path)).expect(200);
            let description = format!("{}<{n}>", text(&read.json()["description"]));
            let body = merge([body.clone(), json!({"description": description})]);
            match until_served(|| of(client(), &tag(&read)).put(&path, body.clone())).status {
                200 => break,
                status => assert_eq!(status, 412),
            }
        }
    });
    let description = text(&club.by(BOB).get(&path).json()["description"]);
    let names: BTreeSet<_> = description.split_inclusive('>').map(str::to_owned).collect();
    assert_eq!(names, (0..EDITORS).map(|n| format!("<{n}>")).collect(), "{description}");
}

#[rstest]
fn if_match_prevents_the_loss_of_concurrently_added_tags(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let replicas = replicas(&mut club);
    let (path, body) = create_event(&club);
    let remaining = AtomicUsize::new(19);
    at_once(20, |n| {
        if n > 0 {
            let (tags, tag) = (format!("{path}/tags"), json!({"name": format!("t{n}")}));
            until_served(|| club.by(CAROL).at(n % replicas).post(&tags, tag.clone())).expect(204);
            remaining.fetch_sub(1, Ordering::SeqCst);
            return;
        }
        // Replaces the whole event with the tags that were read. Without `If-Match` this removes tags added since.
        while remaining.load(Ordering::SeqCst) > 0 {
            let read = until_served(|| club.by(BOB).get(&path)).expect(200);
            let tags = read.json()["tags"].clone();
            let body = merge([body.clone(), json!({"tags": tags})]);
            let status = until_served(|| of(club.by(BOB), &tag(&read)).put(&path, body.clone())).status;
            assert!(matches!(status, 200 | 412), "{status}");
        }
    });
    let tags = crate::builders::each(&club.by(BOB).get(&path).json()["tags"], "name");
    assert_eq!(tags.into_iter().collect::<BTreeSet<_>>(), (1..20).map(|n| format!("t{n}")).collect());
}

#[rstest]
fn an_answer_has_a_tag_when_the_document_says_so(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (path, body) = create_event(&club);
    let group = format!("/api/groups/{}", group(&club, BOB, "g", &[BOB]));
    let room = format!("/api/rooms/{}", room(&club, BOB, "S516", (0, 9)));
    let renamed = json!({"name": "h", "description": "", "open": true, "admins": [id(BOB)]});
    for (template, method, path, body) in [
        ("/api/events/{eventID}", "PUT", &path, Some(body)),
        ("/api/groups/{groupID}", "PUT", &group, Some(renamed)),
        ("/api/users/me/ical", "PUT", &"/api/users/me/ical".to_owned(), None),
        // A deleted resource has no next version.
        ("/api/rooms/{roomID}", "DELETE", &room, None),
    ] {
        let described = &DOCUMENT["paths"][template][method.to_lowercase()]["responses"]["200"]["headers"];
        let answer = club.by(BOB).send(method, path, body).expect(200);
        assert_eq!(answer.header("etag").is_some(), !described["ETag"].is_null(), "{method} {template}");
    }
}

#[rstest]
fn one_user_can_be_read(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = format!("/api/users/{}", id(CAROL));
    let user = club.by(BOB).get(&path).expect(200);
    assert_eq!(user.json(), club.by(CAROL).get("/api/users/me").json());
    assert_eq!(club.by(BOB).get(&path.to_uppercase().replace("/API/USERS", "/api/users")).json(), user.json());
    club.anonymous().get(&path).refused(401, "not-signed-in");
    club.by(BOB).get(&format!("/api/users/{}", id("nobody"))).refused(404, "not-found");
    assert_eq!(club.by(BOB).get("/api/users/x").expect(400).pointers(), ["userID"]);
    let suspended = club.by(BOB).get(&format!("/api/users/{}", id(crate::harness::SUSAN))).expect(200).json();
    assert_eq!(suspended["state"], 2);
}
