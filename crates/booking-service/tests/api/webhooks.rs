//! Webhooks (contract, "Webhooks").

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;

use base64::{Engine, prelude::BASE64_STANDARD};
use booking_service::{
    schema::{deliveries, webhooks},
    webhooks::{happened, outbox, queries, results, timed},
};
use chrono::TimeDelta;
use common::time::Clock;
use diesel::prelude::*;
use ring::hmac;
use serde_json::{Value, json};
use service_kit::database::{
    PageBounds,
    schema::history,
    types::{DbTimestamp, DbUuid},
};

use crate::{
    builders::{self, At, EVERYONE, event, event_body, group, merge, poll, text, verified_room},
    front_page::forms,
    harness::{ALICE, BOB, CAROL, Club, DAVE, id},
    plans,
    process::{Process, until},
    receiver::{Arrived, Reaction, Receiver},
};

/// All types that a program can be told of.
const ALL: [&str; 17] = [
    "event.created",
    "event.changed",
    "event.deleted",
    "event.restored",
    "series.created",
    "series.changed",
    "series.deleted",
    "room.verified",
    "room.unverified",
    "room.deleted",
    "poll.created",
    "poll.closed",
    "poll.confirmed",
    "group.created",
    "group.changed",
    "group.deleted",
    "group.restored",
];

/// The body of a webhook of all types.
pub fn body(receiver: &str) -> Value {
    json!({"name": "hook", "url": format!("{receiver}/hook?key=of-the-query"), "format": "standard", "types": ALL})
}

/// Creates a webhook of all types, and returns its path and its secret.
fn create(club: &Club, receiver: &Receiver, more: Value) -> (String, String) {
    let made = club.by(ALICE).post("/api/webhooks", merge([body(&receiver.address), more])).expect(201);
    (made.header("location").unwrap().to_owned(), text(&made.json()["secret"]))
}

/// Makes what waits for more changes due.
fn minute(club: &Club) {
    club.clock.advance(TimeDelta::seconds(61));
}

fn kinds(arrived: &[Arrived]) -> Vec<String> {
    arrived.iter().map(|arrived| text(&arrived.json()["type"])).collect()
}

fn deliveries_of(club: &Club, path: &str) -> Vec<Value> {
    club.by(ALICE).get(&format!("{path}/deliveries")).expect(200).json().as_array().unwrap().clone()
}

/// The statuses of the deliveries, the newest first.
pub fn statuses(club: &Club, path: &str) -> Vec<String> {
    deliveries_of(club, path).iter().map(|delivery| text(&delivery["status"])).collect()
}

fn is_signed_by(arrived: &Arrived, secret: &str) -> bool {
    let key = BASE64_STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let (id, at) = (arrived.header("webhook-id").unwrap(), arrived.header("webhook-timestamp").unwrap());
    let signed = format!("{id}.{at}.{}", arrived.body);
    arrived.header("webhook-signature").unwrap().split(' ').any(|signature| {
        let tag = BASE64_STANDARD.decode(signature.strip_prefix("v1,").unwrap()).unwrap();
        hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, &key), signed.as_bytes(), &tag).is_ok()
    })
}

#[rstest]
fn a_change_is_sent_once_and_signed(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, receiver) = (Club::start(backend), Receiver::start());
    let before = event(&club, BOB, At::Place("before"), (1, 2));
    let (path, secret) = create(&club, &receiver, json!({}));
    let made = event(&club, BOB, At::Place("S516"), (1, 2));
    let changed = merge([event_body(&club, BOB, At::Place("S517"), (1, 2)), json!({"name": "Zig"})]);
    club.by(BOB).put(&format!("/api/events/{made}"), changed.clone()).expect(200);
    let room = verified_room(&club, BOB, "S518", (1, 2));
    // What is not about an event is sent at once.
    let [arrived] = receiver.wait_for(1).try_into().unwrap();
    assert!(is_signed_by(&arrived, &secret) && !is_signed_by(&arrived, "whsec_AAAA"));
    assert_eq!(arrived.path, "/hook?key=of-the-query");
    assert_eq!(arrived.header("content-type"), Some("application/json"));
    let told = arrived.json();
    assert_eq!(told["type"], "room.verified");
    assert_eq!(told["data"]["url"], format!("{}/api/rooms/{room}", club.config.server.public_origin()));
    assert_eq!(told["data"]["changes"], json!({"verified": [false, true]}));

    minute(&club);
    let arrived = receiver.wait_for(2)[1].clone();
    let told = arrived.json();
    assert_eq!((&told["type"], &told["data"]["id"]), (&json!("event.created"), &json!(made)));
    let changes = &told["data"]["changes"];
    assert_eq!((&changes["name"], &changes["place"]), (&json!([null, "Zig"]), &json!([null, "S517"])));
    until("both changes of the event are sent together", || {
        statuses(&club, &path) == ["delivered", "merged", "delivered"]
    });

    // Later changes are messages of their own, those of a minute one.
    club.by(BOB).put(&format!("/api/events/{made}"), merge([changed, json!({"name": "Go"})])).expect(200);
    club.by(BOB).delete(&format!("/api/events/{made}")).expect(204);
    club.by(BOB).post(&format!("/api/events/{made}/restore"), json!({})).expect(200);
    minute(&club);
    assert_eq!(receiver.wait_for(3)[2].json()["data"]["changes"], json!({"name": ["Zig", "Go"]}));
    club.by(BOB).delete(&format!("/api/events/{made}")).expect(204);
    minute(&club);
    receiver.wait_for(4);
    club.by(BOB).post(&format!("/api/events/{made}/restore"), json!({})).expect(200);
    minute(&club);
    let arrived = receiver.wait_for(5);
    assert_eq!(kinds(&arrived[2..]), ["event.changed", "event.deleted", "event.restored"]);
    assert!(arrived.iter().all(|arrived| !arrived.body.contains(&before)), "before there was a webhook");
    let told = club.by(ALICE).get(&path).expect(200).json();
    assert!(told.get("failingSince").is_none() && told.get("secret").is_none());
    assert_eq!(told["url"], format!("{}/…", receiver.address));
}

#[rstest]
fn each_type_is_sent(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, receiver) = (Club::start(backend), Receiver::start());
    create(&club, &receiver, json!({}));
    let room = verified_room(&club, BOB, "S516", (1, 2));
    club.by(ALICE).delete(&format!("/api/rooms/{room}/verified")).expect(204);
    club.by(BOB).delete(&format!("/api/rooms/{room}")).expect(200);
    let (closed, _) = poll(&club, BOB, json!({"invitees": [id(CAROL)]}));
    let (confirmed, slots) = poll(&club, BOB, json!({"name": "other", "invitees": [id(CAROL)]}));
    let body = json!({"slotId": slots[0], "place": "S517", "groupId": EVERYONE});
    club.by(BOB).post(&format!("{confirmed}/confirm"), body).expect(201);
    let expected =
        ["room.verified", "room.unverified", "room.deleted", "poll.created", "poll.created", "poll.confirmed"];
    assert_eq!(kinds(&receiver.wait_for(6)), expected);
    let made = group(&club, BOB, "g", &[BOB]);
    minute(&club);
    receiver.wait_for(8);
    let fields = json!({"name": "h", "description": "", "open": false, "admins": [id(BOB)]});
    club.by(BOB).put(&format!("/api/groups/{made}"), fields).expect(200);
    minute(&club);
    receiver.wait_for(9);
    club.by(BOB).delete(&format!("/api/groups/{made}")).expect(204);
    minute(&club);
    receiver.wait_for(10);
    club.by(BOB).post(&format!("/api/groups/{made}/restore"), json!({})).expect(200);
    minute(&club);
    let mut told = kinds(&receiver.wait_for(11)[6..]);
    told.sort();
    assert_eq!(told, ["event.created", "group.changed", "group.created", "group.deleted", "group.restored"]);
    // The deadlines are in a day. Nothing says so but the clock.
    club.clock.advance(TimeDelta::hours(25));
    let arrived = receiver.wait_for(12);
    assert_eq!(kinds(&arrived[11..]), ["poll.closed"]);
    let told = arrived.iter().find(|arrived| arrived.body.contains("poll.closed")).unwrap().json();
    assert_eq!(closed, format!("/api/draft-events/{}", text(&told["data"]["id"])));
    assert!(told["data"].get("changes").is_none());
}

#[rstest]
fn only_events_of_some_groups_and_only_what_is_asked_for(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, receiver) = (Club::start(backend), Receiver::start());
    let own = group(&club, BOB, "own", &[BOB]);
    let (path, _) = create(&club, &receiver, json!({"groups": [own], "types": ["event.created", "room.verified"]}));
    event(&club, BOB, At::Place("x"), (1, 2));
    let body = merge([event_body(&club, BOB, At::Place("y"), (1, 2)), json!({"groupId": own})]);
    let made = text(&club.by(BOB).post("/api/events", body).expect(201).json()["eventId"]);
    minute(&club);
    assert_eq!(receiver.wait_for(1)[0].json()["data"]["id"], made);
    club.by(ALICE).patch(&path, json!({"types": ["event.deleted"], "groups": []})).expect(200);
    verified_room(&club, BOB, "S516", (1, 2));
    let other = event(&club, BOB, At::Place("z"), (1, 2));
    minute(&club);
    club.by(BOB).delete(&format!("/api/events/{other}")).expect(204);
    minute(&club);
    let told = receiver.wait_for(2)[1].json();
    assert_eq!((&told["type"], &told["data"]["id"]), (&json!("event.deleted"), &json!(other)));
}

#[rstest]
fn operations_on_a_series_are_one_message_each(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, receiver) = (Club::start(backend), Receiver::start());
    create(&club, &receiver, json!({}));
    let (path, made) = crate::series::series(&club, BOB, "S516", "FREQ=WEEKLY;COUNT=3");
    minute(&club);
    let told = receiver.wait_for(1).remove(0).json();
    assert_eq!((&told["type"], &told["data"]["id"]), (&json!("series.created"), &made["seriesId"]));
    assert_eq!(told["data"]["url"], format!("{}{path}", club.config.server.public_origin()));
    club.by(BOB).patch(&path, json!({"name": "Zig evening"})).expect(200);
    club.by(BOB).patch(&path, json!({"name": "Rust evening"})).expect(200);
    minute(&club);
    club.by(BOB).patch(&path, json!({"name": "Zig evening"})).expect(200);
    minute(&club);
    receiver.wait_for(2);
    club.by(BOB).delete(&path).expect(204);
    minute(&club);
    assert_eq!(kinds(&receiver.wait_for(3)[1..]), ["series.changed", "series.deleted"]);
}

#[rstest]
fn a_failed_attempt_is_made_again(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, receiver) = (Club::start(backend), Receiver::start());
    let (path, secret) = create(&club, &receiver, json!({}));
    let target = "location: http://127.0.0.1:9/\n";
    receiver.react([
        Reaction::Status(500, ""),
        Reaction::Status(302, target),
        Reaction::Close,
        Reaction::Status(429, "retry-after: 7200\n"),
        Reaction::Huge,
    ]);
    let deliver = |number: usize, status: Value| {
        let arrived = receiver.wait_for(number);
        until("the answer is noted", || deliveries_of(&club, &path)[0]["attempts"] == number);
        let delivery = deliveries_of(&club, &path)[0].clone();
        assert_eq!(delivery.get("answerStatus").cloned().unwrap_or_default(), status);
        (arrived.last().unwrap().clone(), delivery)
    };
    club.by(ALICE).post(&format!("{path}/test"), json!({})).expect(201);
    let (first, delivery) = deliver(1, json!(500));
    assert_eq!(delivery["answer"], "answer  of the receiver");
    let failing = club.by(ALICE).get(&path).expect(200).json();
    assert!(failing["failingSince"].is_string());
    club.clock.advance(TimeDelta::seconds(6));
    let (_, delivery) = deliver(2, json!(302));
    assert_eq!(delivery["status"], "waiting", "redirects are not followed");
    club.clock.advance(TimeDelta::minutes(6));
    let (_, delivery) = deliver(3, json!(null));
    assert!(!delivery["answer"].as_str().unwrap().is_empty());
    club.clock.advance(TimeDelta::minutes(36));
    let (_, delivery) = deliver(4, json!(429));
    let wait = text(&delivery["nextTry"]).parse::<common::time::Timestamp>().unwrap() - club.clock.now();
    assert!((7100..9000).contains(&wait.num_seconds()), "{delivery}");
    club.clock.advance(wait);
    let (last, delivery) = deliver(5, json!(200));
    assert_eq!((&delivery["status"], delivery["answer"].as_str().unwrap().len()), (&json!("delivered"), 1024));
    assert_eq!((first.header("webhook-id"), &first.body), (last.header("webhook-id"), &last.body));
    assert_ne!(first.header("webhook-timestamp"), last.header("webhook-timestamp"));
    assert!(is_signed_by(&last, &secret));
    assert!(club.by(ALICE).get(&path).expect(200).json().get("failingSince").is_none());

    let again = format!("{path}/deliveries/{}/retry", text(&delivery["deliveryId"]));
    club.by(ALICE).post(&again, json!({})).expect(200);
    assert_eq!(receiver.wait_for(6)[5].header("webhook-id"), first.header("webhook-id"));
    let metrics = club.anonymous().get("/metrics").expect(200).text();
    assert!(metrics.contains("webhook_attempts_total{result=\"failed\"} 4"), "{metrics}");
}

/// A receiver that does not answer holds up neither other webhooks nor requests.
/// Takes seconds: it waits for the time-out of an attempt.
#[rstest]
fn a_receiver_that_hangs_holds_up_nobody(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, slow, fast) = (Club::start(backend), Receiver::start(), Receiver::start());
    slow.react([Reaction::Hang]);
    let (path, _) = create(&club, &slow, json!({"name": "slow"}));
    create(&club, &fast, json!({}));
    let room = verified_room(&club, BOB, "S516", (1, 2));
    slow.wait_for(1);
    fast.wait_for(1);
    club.by(ALICE).delete(&format!("/api/rooms/{room}/verified")).expect(204);
    fast.wait_for(2);
    until("the attempt ends", || deliveries_of(&club, &path)[1]["attempts"] == 1);
    assert_eq!(deliveries_of(&club, &path)[1]["answer"], "no complete answer in time");
    assert_eq!(slow.arrived().len(), 1, "the second one is about the same room and waits for the first");
    club.clock.advance(TimeDelta::seconds(6));
    assert_eq!(kinds(&slow.wait_for(3)[1..]), ["room.verified", "room.unverified"]);

    // Nor is anything sent later because of it.
    slow.react(vec![Reaction::Hang; 10]);
    let mut is_sent_at_once = |n: usize| {
        verified_room(&club, BOB, &format!("S52{n}"), (1, 2));
        let begun = std::time::Instant::now();
        fast.wait_for(3 + n);
        until("the slow one is busy", || slow.arrived().len() > 3);
        begun.elapsed().as_secs_f64() < 2.0
    };
    // The machine may be busy for a while.
    assert!((0..10).any(&mut is_sent_at_once), "all are sent later");
}

/// An attempt ends, whatever the receiver sends. What it has answered is shown, without the secrets of the address.
/// Takes seconds: it waits for the time-out of an attempt.
#[rstest]
fn an_answer_without_end_is_cut_off(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let begin = |reaction: Reaction| {
        let receiver = Receiver::start();
        receiver.react([reaction]);
        let (path, _) = create(&club, &receiver, json!({}));
        club.by(ALICE).post(&format!("{path}/test"), json!({})).expect(201);
        path
    };
    let head = begin(Reaction::Trickle("HTTP/1.1 200 X\r\nx-"));
    let body = begin(Reaction::Trickle("HTTP/1.1 200 X\r\ncontent-length: 100\r\n\r\n"));
    let (chunks, echo) = (begin(Reaction::Chunks), begin(Reaction::Echo));
    let outcome = |path: &str| {
        until("an attempt has ended", || deliveries_of(&club, path)[0]["attempts"] == 1);
        let delivery = deliveries_of(&club, path)[0].clone();
        (text(&delivery["status"]), text(&delivery["answer"]))
    };
    assert_eq!(outcome(&echo), ("waiting".to_owned(), "/…?key=of-the-…".to_owned()));
    assert_eq!(outcome(&chunks), ("delivered".to_owned(), "x".repeat(1024)));
    assert_eq!(outcome(&head), ("waiting".to_owned(), "no complete answer in time".to_owned()));
    let (status, answer) = outcome(&body);
    assert!(status == "delivered" && (10..=16).contains(&answer.len()), "{answer}");
}

/// A webhook can be changed and deleted while something is sent to it.
#[rstest]
fn a_webhook_changes_while_something_is_sent(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, old, new) = (Club::start(backend), Receiver::start(), Receiver::start());
    let own = group(&club, BOB, "own", &[BOB]);
    minute(&club);
    let (path, _) = create(&club, &old, json!({"groups": [own]}));
    old.react([Reaction::Hang]);
    club.by(ALICE).post(&format!("{path}/test"), json!({})).expect(201);
    old.wait_for(1);
    // It is sent to the new address when the old one has not taken it.
    club.by(ALICE).patch(&path, json!({"url": new.address})).expect(200);
    old.fail_now();
    until("the failure is noted", || deliveries_of(&club, &path)[0]["attempts"] == 1);
    club.clock.advance(TimeDelta::seconds(7));
    new.wait_for(1);

    // A filter keeps a group that is deleted, and what is shown can be sent back.
    club.by(BOB).delete(&format!("/api/groups/{own}")).expect(204);
    minute(&club);
    assert_eq!(kinds(&new.wait_for(2)[1..]), ["group.deleted"]);
    let shown = club.by(ALICE).get(&path).expect(200).json();
    let body = json!({"name": "renamed", "groups": shown["groups"]});
    club.by(ALICE).patch(&path, body.clone()).expect(200);
    let other = merge([body, json!({"groups": [own, DbUuid::new()]})]);
    assert_eq!(club.by(ALICE).patch(&path, other).expect(400).pointers(), ["/groups/1"]);

    new.react([Reaction::Hang]);
    club.by(ALICE).post(&format!("{path}/test"), json!({})).expect(201);
    new.wait_for(3);
    club.by(ALICE).delete(&path).expect(204);
    new.fail_now();
    let (path, _) = create(&club, &old, json!({}));
    club.by(ALICE).post(&format!("{path}/test"), json!({})).expect(201);
    old.wait_for(2);
}

#[rstest]
fn a_webhook_is_switched_off_when_nothing_arrives(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, receiver) = (Club::start(backend), Receiver::start());
    let (gone, _) = create(&club, &receiver, json!({"name": "gone"}));
    receiver.react([Reaction::Status(410, "")]);
    club.by(ALICE).post(&format!("{gone}/test"), json!({})).expect(201);
    let is_off = |path: &str| club.by(ALICE).get(path).expect(200).json()["isOn"] == false;
    until("it is switched off", || is_off(&gone));
    assert_eq!(club.by(ALICE).get(&gone).expect(200).json()["whyOff"], "gone");
    assert_eq!(statuses(&club, &gone), ["dropped"]);
    for path in ["test", "deliveries/x/retry"] {
        let delivery = text(&deliveries_of(&club, &gone)[0]["deliveryId"]);
        club.by(ALICE).post(&format!("{gone}/{}", path.replace('x', &delivery)), json!({})).refused(409, "webhook-off");
    }
    verified_room(&club, BOB, "S516", (1, 2));
    let on = club.by(ALICE).patch(&gone, json!({"isOn": true})).expect(200).json();
    assert!(on.get("whyOff").is_none());
    club.by(ALICE).post(&format!("{gone}/test"), json!({})).expect(201);
    assert_eq!(kinds(&receiver.wait_for(2)), ["test", "test"], "what happened while it was off is not sent");

    receiver.react([Reaction::Status(500, ""), Reaction::Status(500, "")]);
    club.by(ALICE).post(&format!("{gone}/test"), json!({})).expect(201);
    receiver.wait_for(3);
    until("the failure is noted", || {
        statuses(&club, &gone)[0] == "waiting" && deliveries_of(&club, &gone)[0]["attempts"] == 1
    });
    club.clock.advance(TimeDelta::days(14));
    until("it is switched off", || is_off(&gone));
    assert_eq!(club.by(ALICE).get(&gone).expect(200).json()["whyOff"], "failing");
    let metrics = club.anonymous().get("/metrics").expect(200).text();
    assert!(metrics.contains("webhooks_switched_off_total 2"), "{metrics}");
}

#[rstest]
fn both_secrets_sign_for_a_day(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, receiver) = (Club::start(backend), Receiver::start());
    let (path, first) = create(&club, &receiver, json!({}));
    let second = text(&club.by(ALICE).post(&format!("{path}/secret"), json!({})).expect(200).json()["secret"]);
    let test = |number: usize| {
        club.by(ALICE).post(&format!("{path}/test"), json!({})).expect(201);
        receiver.wait_for(number)[number - 1].clone()
    };
    let arrived = test(1);
    assert!(first != second && is_signed_by(&arrived, &first) && is_signed_by(&arrived, &second));
    club.clock.advance(TimeDelta::hours(25));
    let arrived = test(2);
    assert!(!is_signed_by(&arrived, &first) && is_signed_by(&arrived, &second));
    let own = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let answer = club.by(ALICE).post(&format!("{path}/secret"), json!({"secret": own})).expect(200);
    assert_eq!((&answer.json()["secret"], answer.header("cache-control")), (&json!(own), Some("no-store")));
    assert!(is_signed_by(&test(3), own));
    for bad in ["whsec_c2hvcnQ=", "no prefix but long enough", "whsec_*****************************"] {
        club.by(ALICE).post(&format!("{path}/secret"), json!({"secret": bad})).refused(400, "invalid-body");
    }
    let rows = club.by(ALICE).get("/api/audit").expect(200).text();
    assert!(!rows.contains(own) && !rows.contains(&second) && !rows.contains("of-the-query"), "{rows}");
    let stored: Vec<(String, Option<String>)> =
        webhooks::table.select((webhooks::url, webhooks::secret)).load(&mut club.connect()).unwrap();
    assert!(!format!("{stored:?}").contains("of-the-query") && !format!("{stored:?}").contains("whsec"));
}

#[rstest]
fn bad_webhooks_are_refused(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let post = |more: Value| club.by(ALICE).post("/api/webhooks", merge([body("http://127.0.0.1:9"), more]));
    for (more, pointer) in [
        (json!({"url": "http://club.example/"}), "/url"),
        (json!({"url": "https://10.0.0.1/"}), "/url"),
        (json!({"url": "https://169.254.169.254/"}), "/url"),
        (json!({"url": "https://[fd00:ec2::254]/"}), "/url"),
        (json!({"url": "https://2886729729/"}), "/url"),
        (json!({"url": "club.example"}), "/url"),
        (json!({"types": []}), "/types"),
        (json!({"types": ["test"]}), "/types"),
        (json!({"types": ["event.moved"]}), "/types/0"),
        (json!({"groups": [id(BOB)]}), "/groups/0"),
        (json!({"secret": "whsec_AAAAAAAAAAAAAA"}), "/secret"),
        (json!({"name": ""}), "/name"),
        (json!({"format": "fax"}), "/format"),
    ] {
        assert_eq!(post(more.clone()).expect(400).pointers(), [pointer], "{more}");
    }
    let path = post(json!({})).expect(201).header("location").unwrap().to_owned();
    for (change, pointer) in [
        (json!({"url": "https://192.168.0.1/"}), "/url"),
        (json!({"types": ["test"]}), "/types"),
        (json!({"groups": [EVERYONE, id(BOB)]}), "/groups/1"),
    ] {
        assert_eq!(club.by(ALICE).patch(&path, change.clone()).expect(400).pointers(), [pointer], "{change}");
    }
    let shown = club.by(ALICE).get(&path).expect(200).json();
    club.by(ALICE).patch(&path, json!({"url": shown["url"], "name": "renamed"})).expect(200);
    let history: Vec<Value> = club.by(ALICE).get("/api/audit").expect(200).json().as_array().unwrap().clone();
    assert_eq!(history[0]["changes"], json!({"name": ["hook", "renamed"]}), "the shown address changes nothing");
    for by in [BOB, DAVE] {
        club.by(by).get(&path).refused(403, "forbidden");
    }
    club.by(ALICE).delete(&path).expect(204);
    club.by(ALICE).get(&path).refused(404, "not-found");
    for _ in 0..100 {
        post(json!({"isOn": false})).expect(201);
    }
    post(json!({})).refused(409, "too-many-webhooks");
}

/// The networks are also checked after a name has been resolved.
#[rstest]
fn a_name_of_a_private_address_is_not_reached(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, receiver) = (Club::start(backend), Receiver::start());
    let port = receiver.address.rsplit(':').next().unwrap();
    // In development mode, names of this machine may be reached. Another service on the same database has another mode.
    let (path, _) = create(&club, &receiver, json!({"url": format!("http://localhost:{port}/")}));
    club.by(ALICE).post(&format!("{path}/test"), json!({})).expect(201);
    receiver.wait_for(1);
    let networks = booking_service::webhooks::networks::Networks { listed: Vec::new(), is_development: false };
    let limits = club_issuer::outbound::Limits {
        connect: std::time::Duration::from_secs(5),
        request: std::time::Duration::from_secs(5),
        bytes: 10,
    };
    let client = club_issuer::outbound::Client::restricted(limits, move |address| networks.allow(address));
    let hosts = ["localhost", "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "2130706433"];
    for host in hosts.into_iter().chain(["0x7f.1", "0177.0.0.1", "127.1"]) {
        let request = ureq::http::Request::post(format!("http://{host}:{port}/")).body(b"x".to_vec()).unwrap();
        let refused = client.send_and_read_start(request).unwrap_err();
        assert!(refused.to_string().ends_with("is not allowed"), "{host}: {refused}");
    }
    assert_eq!(receiver.arrived().len(), 1);
}

/// What is committed is sent, whenever the service ends.
#[rstest]
fn a_killed_service_loses_nothing(#[values(Sqlite, Postgres)] backend: Backend) {
    let (mut club, receiver) = (Club::start(backend), Receiver::start());
    let (path, _) = create(&club, &receiver, json!({}));
    let secret = ["--secret-key", crate::harness::KEY, "--time-zone", "Asia/Tokyo"];
    club.stop_all();
    let process = Process::beside(&club, &secret);
    let send = |path: &str, body: &Value| {
        let (mut wire, body) = (process.connect(), body.to_string());
        wire.write(&format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nCookie: session=session-of-alice\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len(),
        ));
        wire.read_to_end()
    };
    let span = builders::span(&club, 1, 2);
    let (status, answer) = send("/api/rooms", &merge([span, json!({"place": "S516", "admins": [id(ALICE)]})]));
    assert_eq!(status, 201, "{answer}");
    let made: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(send(&format!("/api/rooms/{}/verified", text(&made["roomId"])), &json!({})).0, 204);
    process.signal("KILL");
    drop(process);
    club.start_another();
    club.clock.advance(TimeDelta::seconds(31));
    until("it arrives", || !receiver.arrived().is_empty());
    assert_eq!(kinds(&receiver.arrived()[..1]), ["room.verified"]);
    until("it is noted", || statuses(&club, &path) == ["delivered"]);
}

#[rstest]
fn two_replicas_send_once(#[values(Postgres)] backend: Backend) {
    let (mut club, receiver) = (Club::start(backend), Receiver::start());
    let other = club.start_another();
    let (path, _) = create(&club, &receiver, json!({}));
    for number in 0..5 {
        let room = builders::room(&club, BOB, &format!("place {number}"), (1, 2));
        let service = if number % 2 == 0 { other } else { 0 };
        club.by(ALICE).at(service).post(&format!("/api/rooms/{room}/verified"), json!({})).expect(204);
    }
    receiver.wait_for(5);
    until("all are noted", || statuses(&club, &path) == ["delivered"; 5]);
    club.by(ALICE).at(other).post(&format!("{path}/test"), json!({})).expect(201);
    receiver.wait_for(6);
}

/// PostgreSQL may commit a row after others with greater ids.
#[rstest]
fn a_row_that_is_committed_late_is_sent(#[values(Postgres)] backend: Backend) {
    let (club, receiver) = (Club::start(backend), Receiver::start());
    create(&club, &receiver, json!({}));
    let at = DbTimestamp(club.clock.now());
    let row = (
        (history::at.eq(at), history::origin.eq("session"), history::action.eq("confirmed")),
        (history::object_type.eq("poll"), history::object_id.eq(id(BOB)), history::changes.eq("{}")),
    );
    club.connect()
        .transaction(|conn| {
            diesel::insert_into(history::table).values(row).execute(conn)?;
            verified_room(&club, BOB, "S516", (1, 2));
            receiver.wait_for(1);
            verified_room(&club, BOB, "S517", (1, 2));
            receiver.wait_for(2);
            Ok::<_, diesel::result::Error>(())
        })
        .unwrap();
    assert_eq!(kinds(&receiver.wait_for(3)), ["room.verified", "room.verified", "poll.confirmed"]);
}

/// SQLite gives ids again after all rows have been removed.
#[rstest]
fn the_history_may_begin_again(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, receiver) = (Club::start(backend), Receiver::start());
    create(&club, &receiver, json!({}));
    verified_room(&club, BOB, "S516", (1, 2));
    receiver.wait_for(1);
    diesel::delete(history::table).execute(&mut club.connect()).unwrap();
    diesel::delete(deliveries::table).execute(&mut club.connect()).unwrap();
    verified_room(&club, BOB, "S517", (1, 2));
    receiver.wait_for(2);
}

/// 99 receivers that never answer, and one that does.
#[rstest]
fn slow_receivers_do_not_delay_others(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, slow, fast) = (Club::start(backend), Receiver::start(), Receiver::start());
    slow.react(vec![Reaction::Hang; 2000]);
    for _ in 0..99 {
        create(&club, &slow, json!({"types": ["room.verified"]}));
    }
    create(&club, &fast, json!({"types": ["room.verified"]}));
    let mut place = 0;
    let mut verify = |rooms: usize| {
        for _ in 0..rooms {
            place += 1;
            verified_room(&club, BOB, &format!("S{place}"), (1, 2));
        }
    };
    verify(5);
    fast.wait_for(5);
    until("all are busy", || slow.arrived().len() >= 99);
    let mut are_sent_at_once = |round: usize| {
        let begun = std::time::Instant::now();
        verify(10);
        fast.wait_for(15 + 10 * round);
        // Half of the time that a slow receiver may take.
        begun.elapsed() < std::time::Duration::from_secs(8)
    };
    // The machine may be busy for a while.
    assert!((0..5).any(&mut are_sent_at_once), "all wait for a slow receiver");
}

/// The cause of a failure may have been mended.
#[rstest]
fn what_waits_is_sent_when_a_webhook_has_been_mended(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, wrong, right) = (Club::start(backend), Receiver::start(), Receiver::start());
    let (path, _) = create(&club, &wrong, json!({}));
    let mut expected = 0;
    for mend in ["url", "secret", "isOn"] {
        let receiver = if mend == "url" { &wrong } else { &right };
        receiver.react([Reaction::Status(500, "")]);
        club.by(ALICE).post(&format!("{path}/test"), json!({})).expect(201);
        until("it fails", || deliveries_of(&club, &path)[0]["attempts"] == 1);
        match mend {
            "url" => drop(club.by(ALICE).patch(&path, json!({"url": right.address})).expect(200)),
            "secret" => drop(club.by(ALICE).post(&format!("{path}/secret"), json!({})).expect(200)),
            _ => drop(club.by(ALICE).patch(&path, json!({"isOn": true})).expect(200)),
        }
        expected += if mend == "url" { 1 } else { 2 };
        right.wait_for(expected);
        until("it is noted", || statuses(&club, &path)[0] == "delivered");
    }
}

/// Messages cannot be led elsewhere without a trace, and no row has an address, which may be secret.
#[rstest]
fn a_changed_address_is_recorded_without_it(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, receiver) = (Club::start(backend), Receiver::start());
    let body = json!({"url": format!("{}/hooks/abc", receiver.address)});
    for format in ["standard", "slack", "discord"] {
        let types = if format == "standard" { "room.verified" } else { "digest" };
        let request = merge([self::body(""), body.clone(), json!({"format": format, "types": [types]})]);
        let path = club.by(ALICE).post("/api/webhooks", request).expect(201).header("location").unwrap().to_owned();
        let other = json!({"url": format!("{}/hooks/xyz?k=v", receiver.address)});
        let changed = club.by(ALICE).patch(&path, other.clone()).expect(200).json();
        assert_eq!(changed["url"], format!("{}/…", receiver.address));
        let audit = || club.by(ALICE).get("/api/audit").expect(200).json().as_array().unwrap().clone();
        let changes = audit()[0]["changes"].as_object().unwrap().clone();
        assert_eq!(changes.keys().collect::<Vec<_>>(), ["urlChangedAt"], "{format}");
        assert!(changes["urlChangedAt"][1].is_string());
        let rows = audit().len();
        club.by(ALICE).patch(&path, other).expect(200);
        assert_eq!(audit().len(), rows, "the address that it has changes nothing");
    }
    let audit = club.by(ALICE).get("/api/audit").expect(200).text();
    assert!(!audit.contains("http") && !audit.contains("hooks"), "{audit}");
}

/// Whatever a webhook wants to hear of.
#[rstest]
fn nothing_is_sent_when_nothing_happened(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, receiver) = (Club::start_by(Clock::stopped(), backend, &[]), Receiver::start());
    let types = [&ALL[..], &["event.deleted"], &["event.changed"], &["event.restored"]];
    let hooks: Vec<_> = types.iter().map(|types| create(&club, &receiver, json!({"types": types})).0).collect();
    let body = |place| event_body(&club, BOB, At::Place(place), (1, 2));
    let old = event(&club, BOB, At::Place("S516"), (1, 2));
    let path = format!("/api/events/{old}");
    minute(&club);
    receiver.wait_for(1);
    for place in ["S517", "S516"] {
        club.by(BOB).put(&path, body(place)).expect(200);
    }
    club.by(BOB).delete(&path).expect(204);
    club.by(BOB).post(&format!("{path}/restore"), json!({})).expect(200);
    let new = event(&club, BOB, At::Place("S518"), (1, 2));
    club.by(BOB).delete(&format!("/api/events/{new}")).expect(204);
    let made = group(&club, BOB, "g", &[BOB]);
    club.by(BOB).delete(&format!("/api/groups/{made}")).expect(204);
    minute(&club);
    let is_done = |(number, hook): (usize, &String)| {
        let statuses = statuses(&club, hook);
        statuses.len() > usize::from(number == 0) && !statuses.contains(&"waiting".to_owned())
    };
    until("nothing waits", || hooks.iter().enumerate().all(is_done));
    receiver.wait_for(1);
    // A deletion waits for its minute.
    club.by(BOB).delete(&path).expect(204);
    until("the deletion waits", || statuses(&club, &hooks[0])[0] == "waiting");
    club.clock.advance(TimeDelta::seconds(50));
    club.by(BOB).post(&format!("{path}/restore"), json!({})).expect(200);
    minute(&club);
    until("nothing waits", || !statuses(&club, &hooks[0]).contains(&"waiting".to_owned()));
    receiver.wait_for(1);
}

/// A copy of an installation sends nothing to the receivers of the club.
#[rstest]
fn a_copy_of_the_database_sends_nothing(#[values(Sqlite, Postgres)] backend: Backend) {
    let (mut club, receiver) = (Club::start(backend), Receiver::start());
    let (path, _) = create(&club, &receiver, json!({}));
    receiver.react([Reaction::Status(500, "")]);
    club.by(ALICE).post(&format!("{path}/test"), json!({})).expect(201);
    until("it waits", || deliveries_of(&club, &path)[0]["attempts"] == 1);
    let url = club.url().to_owned();
    let run = |arguments: &[&str]| crate::backup::rules::done(&url, arguments);
    let file = club.folder().join("backup").to_str().unwrap().to_owned();
    club.stop_all();
    if club.is_postgres() {
        crate::backup::as_documented("silence-postgres", club.folder(), "", &url);
    } else {
        run(&["backup", &file]);
        let said = run(&["restore", &file]);
        assert!(said.contains("webhooks are off (1)"), "{said}");
    }
    club.start_another();
    club.clock.advance(TimeDelta::hours(1));
    let shown = club.by(ALICE).get(&path).expect(200).json();
    assert_eq!(shown["isOn"], false);
    if !club.is_postgres() {
        let row = club.by(ALICE).get("/api/audit").expect(200).json()[0].clone();
        assert_eq!((&row["by"], &row["changes"]), (&json!("command"), &json!({"isOn": [true, false]})));
    }
    club.by(ALICE).patch(&path, json!({"isOn": true})).expect(200);
    assert_eq!(statuses(&club, &path), ["dropped"]);
    club.by(ALICE).post(&format!("{path}/test"), json!({})).expect(201);
    receiver.wait_for(2);
}

#[rstest]
fn old_deliveries_are_removed(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, receiver) = (Club::start(backend), Receiver::start());
    let (path, _) = create(&club, &receiver, json!({}));
    club.by(ALICE).post(&format!("{path}/test"), json!({})).expect(201);
    receiver.wait_for(1);
    until("it is noted", || statuses(&club, &path) == ["delivered"]);
    club.clock.advance(TimeDelta::days(31));
    until("it is removed", || deliveries_of(&club, &path).is_empty());
}

#[rstest]
fn queries_use_indexes(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, receiver) = (Club::start(backend), Receiver::start());
    let (path, _) = create(&club, &receiver, json!({"isOn": false}));
    event(&club, BOB, At::Place("x"), (1, 2));
    poll(&club, BOB, json!({"invitees": [id(CAROL)]}));
    verified_room(&club, BOB, "S516", (1, 2));
    let now = DbTimestamp(club.clock.now());
    let webhook = DbUuid(path.rsplit('/').next().unwrap().parse().unwrap());
    let mut hook = queries::get(&mut club.connect(), webhook).unwrap();
    hook.types = format!("{} digest reminder announcement", hook.types);
    for cause in ["a", "b"] {
        let kind = booking_service::webhooks::kinds::Type::Test;
        let new = outbox::NewDelivery::now(webhook, cause.to_owned(), kind, webhook, now);
        outbox::insert(&mut club.connect(), &[new]).unwrap();
    }
    let later = DbTimestamp(now.plus(TimeDelta::days(2)));
    let mut delivery = queries::deliveries_of(&mut club.connect(), webhook, &PageBounds::all()).unwrap().remove(0);
    let row = history::table.filter(history::object_type.eq("event")).select((history::id, history::object_id));
    let row: (i64, DbUuid) = row.first(&mut club.connect()).unwrap();
    (delivery.history_id, delivery.object_id) = (Some(row.0), row.1);
    let (_, made) = crate::series::series(&club, BOB, "S517", "FREQ=WEEKLY;COUNT=3");
    let of_series = [&made["seriesId"], &made["events"][0]["eventId"]].map(|object| {
        let mut delivery = delivery.clone();
        delivery.object_id = DbUuid(text(object).parse().unwrap());
        let row = history::table.filter(history::object_id.eq(delivery.object_id)).select((history::id, history::at));
        let row: (i64, DbTimestamp) = row.first(&mut club.connect()).unwrap();
        (delivery.history_id, delivery.at) = (Some(row.0), row.1);
        delivery
    });
    diesel::update(webhooks::table).set(webhooks::is_on.eq(true)).execute(&mut club.connect()).unwrap();
    let texts = service_kit::http::texts::Texts::new(&booking_service::server::INFO.texts);
    plans::check(&club, |conn| {
        queries::deliveries_of(conn, webhook, &PageBounds { after: Some(DbUuid::new()), rows: 10 }).unwrap();
        queries::next_due(conn, webhook, now).unwrap();
        queries::earlier_due(conn, &delivery).unwrap();
        happened::collect(conn, &delivery, &hook).unwrap();
        for delivery in &of_series {
            happened::collect(conn, delivery, &hook).unwrap();
        }
        outbox::Position::default().read(conn, std::slice::from_ref(&hook), now).unwrap();
        timed::due(conn, std::slice::from_ref(&hook), &timed::Timed::default(), &club_of(&club), later).unwrap();
        booking_service::webhooks::changes::switch_off(conn, webhook, None).unwrap();
        let prepared = booking_service::webhooks::preparation::next(conn, webhook, &club_of(&club), &texts, now);
        let failed = results::Outcome { status: None, answer: String::new(), retry_after: None };
        if let Some(prepared) = prepared.unwrap() {
            results::record(conn, &prepared, None, &failed, now).unwrap();
        }
        results::remove_old(conn, now, 10).unwrap();
    });
}

fn club_of(club: &Club) -> booking_service::club::Club {
    booking_service::club::Club::new(&club.config).unwrap()
}

#[rstest]
fn the_page_shows_what_was_sent_and_sends_again(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, receiver) = (Club::start(backend), Receiver::start());
    let (path, _) = create(&club, &receiver, json!({"name": "<b>"}));
    let page = |language: &str| {
        let by = club.by(ALICE).header("accept", "text/html").header("accept-language", language);
        by.get("/webhooks").expect(200).text()
    };
    let here = path.strip_prefix("/api").unwrap();
    let send = |action: &str| {
        let address = format!("{here}/{action}");
        forms::send(&club, ALICE, &address, &forms::fields(&page("en"), &address)).expect(303);
    };
    club.by(BOB).get("/webhooks").expect(403);
    receiver.react([Reaction::Status(410, "")]);
    send("test");
    until("it is switched off", || page("en").contains("Off: the receiver says"));
    assert!(page("en").contains("&lt;b&gt;") && !page("en").contains("<b><b>") && !page("en").contains("of-the-query"));
    assert!(page("en").contains("410") && page("ja").contains("受信側"));
    send("on");
    let delivery = text(&deliveries_of(&club, &path)[0]["deliveryId"]);
    send(&format!("deliveries/{delivery}/retry"));
    receiver.wait_for(2);
    until("it has arrived", || page("en").contains("has arrived"));
}

/// A former key can be removed after a start with it and the present one.
#[rstest]
fn webhooks_outlive_the_key_of_the_installation(#[values(Sqlite, Postgres)] backend: Backend) {
    let (mut club, receiver) = (Club::start(backend), Receiver::start());
    let (path, secret) = create(&club, &receiver, json!({}));
    let new = "zyxwvutsrqponmlkjihgfedcba-9876543210";
    for (number, key) in [format!("{new}\n{}", crate::harness::KEY), new.to_owned()].into_iter().enumerate() {
        club.stop_all();
        club.config.key.secret_key = Some(key.parse().unwrap());
        club.start_another();
        club.clock.advance(TimeDelta::minutes(1));
        club.by(ALICE).post(&format!("{path}/test"), json!({})).expect(201);
        assert!(is_signed_by(&receiver.wait_for(number + 1)[number], &secret));
        until("it is noted", || statuses(&club, &path)[0] == "delivered");
    }
    club.stop_all();
    club.config.key.secret_key = Some("0123456789-another-key-of-an-installation".parse().unwrap());
    club.start_another();
    club.by(ALICE).post(&format!("{path}/test"), json!({})).expect(201);
    until("it cannot be sent", || deliveries_of(&club, &path)[0]["attempts"] == 1);
    let answer = &deliveries_of(&club, &path)[0]["answer"];
    assert_eq!(answer, "the key that encrypted the address has been removed from the service");
}
