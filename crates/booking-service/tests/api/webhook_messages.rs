//! The messages of webhooks to chats (contract, "Webhooks").

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;

use std::sync::LazyLock;

use chrono::{Datelike as _, NaiveDate, NaiveTime, TimeDelta};
use chrono_tz::Asia::Tokyo;
use jsonschema::Validator;
use ring::hmac;
use serde_json::{Value, json};
use service_kit::http::language::Language;

use crate::{
    builders::{EVERYONE, group, merge, poll, room, text},
    harness::{ALICE, BOB, CAROL, Club, DAVE, hours_from_now, id},
    process::until,
    receiver::{Arrived, Receiver},
};

const JAPANESE: Language = Language::Japanese;
const SECRET: &str = "the secret that traQ has as well";
const CHANNEL: &str = "0198c0de-0000-7000-8000-0000000000c1";

/// Creates a webhook, and returns its path.
pub fn create(club: &Club, receiver: &Receiver, format: &str, more: Value) -> String {
    let mut body = json!({
        "name": "channel", "url": format!("{}/webhooks/1", receiver.address), "format": format, "language": "ja",
        // Not the digest: it may be eight o'clock during a test.
        "types": ["announcement", "cancellation", "reminder"],
    });
    if format == "traq" {
        body = merge([body, json!({"secret": SECRET, "channelId": CHANNEL})]);
    }
    let made = club.by(ALICE).post("/api/webhooks", merge([body, more])).expect(201);
    made.header("location").unwrap().to_owned()
}

/// What traQ takes: a text for a channel, signed with the secret of the webhook.
#[track_caller]
pub fn checked_by_traq(arrived: &Arrived) -> String {
    assert_eq!(arrived.path, "/webhooks/1?embed=1");
    assert_eq!(arrived.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(arrived.header("x-traq-channel-id"), Some(CHANNEL));
    let signature = arrived.header("x-traq-signature").unwrap();
    let bytes: Vec<u8> = (0..20).map(|n| u8::from_str_radix(&signature[2 * n..2 * n + 2], 16).unwrap()).collect();
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, SECRET.as_bytes());
    hmac::verify(&key, arrived.body.as_bytes(), &bytes).unwrap();
    assert!(signature.len() == 40 && arrived.body.chars().count() <= 10_000);
    arrived.body.clone()
}

/// The body of an event of BOB at this place, from so many hours to so many.
pub fn event_body(club: &Club, (from, to): (i64, i64), more: Value) -> Value {
    let (from, to) = (hours_from_now(club, from).to_string(), hours_from_now(club, to).to_string());
    let body = json!({
        "name": "Rust evening", "description": "Bring a laptop.\n- and a cable", "sharedRoom": true, "place": "S516",
        "timeStart": from, "timeEnd": to, "groupId": EVERYONE, "admins": [id(BOB)],
    });
    merge([body, more])
}

pub fn event(club: &Club, hours: (i64, i64), more: Value) -> String {
    text(&club.by(BOB).post("/api/events", event_body(club, hours, more)).expect(201).json()["eventId"])
}

pub fn minute(club: &Club) {
    club.clock.advance(TimeDelta::seconds(61));
}

pub fn statuses(club: &Club, path: &str) -> Vec<String> {
    let deliveries = club.by(ALICE).get(&format!("{path}/deliveries")).expect(200).json();
    deliveries.as_array().unwrap().iter().map(|delivery| text(&delivery["status"])).collect()
}

/// A span of hours from now as messages show it, in Japanese.
fn shown(club: &Club, (from, to): (i64, i64)) -> String {
    let [from, to] = [from, to].map(|hours| hours_from_now(club, hours));
    let (day, today) = (from.utc().with_timezone(&Tokyo), club.clock.now().utc().with_timezone(&Tokyo));
    let day = JAPANESE.day_of_year(day.date_naive(), today.year());
    format!("{day}, {}", booking_service::wall_clock::hours(JAPANESE, Tokyo, from, to))
}

#[rstest]
fn an_event_is_announced_and_cancelled(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, receiver) = (Club::start(backend), Receiver::start());
    let origin = club.config.server.public_origin();
    let own = group(&club, BOB, "guitar_band", &[BOB, CAROL, DAVE]);
    let path = create(&club, &receiver, "traq", json!({"mentionGroups": ["26B", "25B"]}));
    let made = event(&club, (30, 32), json!({"groupId": own}));
    let answered = format!("/api/events/{made}/attendees/me");
    club.by(CAROL).put(&answered, json!({"schedule": "absent"})).expect(204);
    minute(&club);
    let facts = |place: &str| {
        format!("- 主催: [guitar\\_band]({origin}/groups/{own})\n- 日時: {}\n- 場所: {place}", shown(&club, (30, 32)))
    };
    let heading = format!("[Rust evening]({origin}/events/{made})");
    let rest =
        "\n\n以下の方は参加予定の入力をお願いします\n@bob @dave\n\n> \u{200b}Bring a laptop.\n> \u{200b}- and a cable";
    let expected = format!("## イベントが作成されました\n{heading}\n{}{rest}", facts("S516"));
    assert_eq!(checked_by_traq(&receiver.wait_for(1)[0]), expected);

    // A changed description alone is not announced.
    let change = |more: Value| {
        let body = event_body(&club, (30, 32), merge([json!({"groupId": own}), more]));
        club.by(BOB).put(&format!("/api/events/{made}"), body).expect(200);
    };
    change(json!({"description": "Bring two."}));
    minute(&club);
    change(json!({"description": "Bring two.", "place": "S517"}));
    change(json!({"description": "Bring two.", "place": "S518"}));
    minute(&club);
    let arrived = receiver.wait_for(2);
    let rest = "\n\n以下の方は参加予定の入力をお願いします\n@bob @dave\n\n> \u{200b}Bring two.";
    assert_eq!(arrived[1].body, format!("## イベントが更新されました\n{heading}\n{}{rest}", facts("S518")));

    club.by(ALICE).patch(&path, json!({"mentions": "silent"})).expect(200);
    event(&club, (40, 41), json!({"description": " "}));
    minute(&club);
    assert!(receiver.wait_for(3)[2].body.ends_with("以下の方は参加予定の入力をお願いします\n@.26B @.25B"));
    club.by(ALICE).patch(&path, json!({"mentions": "off", "language": "en"})).expect(200);
    club.by(BOB).delete(&format!("/api/events/{made}")).expect(204);
    minute(&club);
    let cancelled = receiver.wait_for(4)[3].body.clone();
    assert!(
        cancelled.starts_with("## An event is cancelled\n\u{200b}Rust evening\n- Group: [guitar\\_band]("),
        "{cancelled}"
    );
    club.by(BOB).post(&format!("/api/events/{made}/restore"), json!({})).expect(200);
    minute(&club);
    let restored = receiver.wait_for(5)[4].body.clone();
    assert!(restored.starts_with("## An event takes place after all\n") && !restored.contains('@'), "{restored}");
    for arrived in &arrived {
        checked_by_traq(arrived);
    }
}

#[rstest]
fn what_is_too_late_is_dropped(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, receiver) = (Club::start(backend), Receiver::start());
    let path = create(&club, &receiver, "traq", json!({"types": ["announcement", "cancellation"]}));
    // It ends within the minute in which changes are collected.
    let now = club.clock.now();
    let span = json!({"timeStart": now.to_string(), "timeEnd": now.plus(TimeDelta::seconds(30)).to_string()});
    event(&club, (0, 1), merge([json!({"place": "x"}), span]));
    let gone = event(&club, (-3, -2), json!({}));
    club.by(BOB).delete(&format!("/api/events/{gone}")).expect(204);
    until("the first waits", || statuses(&club, &path) == ["waiting"]);
    minute(&club);
    until("it is dropped", || statuses(&club, &path) == ["dropped"]);
    event(&club, (-1, 3), json!({}));
    minute(&club);
    let arrived = receiver.wait_for(1);
    assert!(!arrived[0].body.contains("以下の方は"), "it has begun: {}", arrived[0].body);
}

/// The schema of the requests that a chat takes, made by `scripts/real-components` of the types that are published for it.
static SCHEMAS: LazyLock<[Validator; 2]> = LazyLock::new(|| {
    ["Slack", "Discord"].map(|name| {
        let file = format!("real/{name}.schema.json");
        let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name(file);
        let text = std::fs::read_to_string(&file);
        let text = text.unwrap_or_else(|error| panic!("{}: {error}: run scripts/real-components", file.display()));
        jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap()
    })
});

/// What is wrong with the body of a message to Slack or Discord.
fn faults(format: &str, body: &Value) -> Vec<String> {
    let [slack, discord] = &*SCHEMAS;
    let (schema, field, most) = match format {
        // https://docs.slack.dev/changelog/2018-04-truncating-really-long-messages: longer ones are truncated at 40,000, and
        // should have at most 4000.
        "slack" => (slack, "text", 4000),
        // https://docs.discord.com/developers/resources/webhook#execute-webhook
        _ => (discord, "content", 2000),
    };
    let mut faults: Vec<_> = schema.iter_errors(body).map(|error| error.to_string()).collect();
    // The types say neither how long a text may be nor that there has to be one.
    if !(1..=most).contains(&body[field].as_str().unwrap_or_default().encode_utf16().count()) {
        faults.push(format!("the length of {field}"));
    }
    faults
}

/// The text of a message that traQ, Slack or Discord takes.
#[track_caller]
pub fn taken(format: &str, arrived: &Arrived) -> String {
    if format == "traq" {
        return checked_by_traq(arrived);
    }
    assert_eq!(arrived.header("content-type"), Some("application/json"));
    let body = arrived.json();
    assert_eq!(faults(format, &body), [""; 0], "{body}");
    text(&body[if format == "slack" { "text" } else { "content" }])
}

#[test]
fn the_published_schemas_refuse_other_bodies() {
    let slack = json!({"text": "x"});
    let discord = json!({"content": "x", "allowed_mentions": {"parse": [], "roles": ["123456789012345678"]}});
    assert_eq!((faults("slack", &slack), faults("discord", &discord)), (Vec::new(), Vec::new()));
    let [by_slack, by_discord] = &*SCHEMAS;
    for bad in [
        discord,
        json!({"text": ["x"]}),
        json!({"text": "x", "unfurl_link": true}),
        json!({"text": "x", "blocks": [{"kind": "divider"}]}),
    ] {
        assert!(!by_slack.is_valid(&bad), "{bad}");
    }
    for bad in [
        slack,
        json!({"content": 1}),
        json!({"content": "x", "allowed_mention": {}}),
        json!({"content": "x", "allowed_mentions": {"parse": ["everybody"]}}),
        json!({"content": "x", "allowed_mentions": {"roles": [1]}}),
        json!({"content": "x", "allowed_mentions": {"role": []}}),
    ] {
        assert!(!by_discord.is_valid(&bad), "{bad}");
    }
    let one = |field: &str, length| json!({field: "x".repeat(length)});
    for length in [0, 2001, 4001] {
        assert_eq!(faults("slack", &one("text", length)).is_empty(), length == 2001, "{length}");
        assert!(!faults("discord", &one("content", length)).is_empty(), "{length}");
    }
}

#[rstest]
fn slack_and_discord_get_bodies_of_their_schemas(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let origin = club.config.server.public_origin();
    for format in ["slack", "discord"] {
        let receiver = Receiver::start();
        let roles = json!({"mentionGroups": ["123456789012345678", "S0123ABCD", "here"]});
        let path = create(&club, &receiver, format, roles);
        assert_eq!(club.by(ALICE).get(&path).expect(200).json()["url"], format!("{}/…", receiver.address));
        let long = "<@U1> @everyone 長い説明 *x*\n".repeat(350);
        let made = event(&club, (30, 32), json!({"description": long}));
        minute(&club);
        let arrived = receiver.wait_for(1).remove(0);
        let (text, body) = (taken(format, &arrived), arrived.json());
        let address = format!("{origin}/events/{made}");
        if format == "slack" {
            assert!(text.starts_with(&format!(
                "*イベントが作成されました*\n<{address}|Rust evening>\n• 主催: <{origin}/groups/"
            )));
            assert!(text.contains("\n@123456789012345678 <!subteam^S0123ABCD> <!here>\n\n> "), "{text}");
            assert!(text.ends_with(&format!("\n\n<{address}|続きはこちら>")) && text.len() > 4000, "{text}");
            assert!(!text.contains("<@U1>") && !text.contains("@everyone") && !text.contains("*x*"), "{text}");
        } else {
            assert!(
                text.starts_with(&format!("## イベントが作成されました\n[Rust evening](<{address}>)\n- 主催: ")),
                "{text}"
            );
            assert!(text.contains("\n<@&123456789012345678> @"), "{text}");
            assert!(text.ends_with(&format!("\n\n[続きはこちら](<{address}>)")), "{text}");
            assert!(!text.contains(" <@U1>") && !text.contains("@everyone"), "{text}");
            assert_eq!(body["allowed_mentions"], json!({"parse": [], "roles": ["123456789012345678"]}));
            club.by(ALICE).patch(&path, json!({"mentions": "silent"})).expect(200);
            event(&club, (40, 41), json!({}));
            minute(&club);
            let silent = receiver.wait_for(2).remove(1);
            taken(format, &silent);
            assert_eq!(silent.json()["allowed_mentions"], json!({"parse": [], "roles": []}));
        }
        club.by(ALICE).delete(&path).expect(204);
    }
}

/// No text of a member becomes a mention or markup, wherever it stands.
#[rstest]
fn texts_of_members_stay_texts(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let nasty = "@all [a](b)<@U1>|`*#c!{\"x\":1}";
    let own = group(&club, BOB, nasty, &[BOB]);
    for format in ["traq", "slack", "discord"] {
        let receiver = Receiver::start();
        let path = create(&club, &receiver, format, json!({}));
        let fields =
            json!({"name": nasty, "place": nasty, "groupId": own, "description": format!("{nasty}\n# {nasty}")});
        let made = event(&club, (30, 32), fields);
        minute(&club);
        let announced = receiver.wait_for(1)[0].clone();
        club.by(BOB).delete(&format!("/api/events/{made}")).expect(204);
        minute(&club);
        for arrived in [announced, receiver.wait_for(2)[1].clone()] {
            let text = taken(format, &arrived);
            let foreign = text.replace("@bob", "");
            assert!(!foreign.replace("@\u{200b}", "").contains('@'), "{format}: {text}");
            for markup in ["[a](b)", "<@U1", "!{", " #c", "`*", "\"x\""] {
                let is_there = match markup {
                    // Slack has no escape, and nothing of this there.
                    "\"x\"" => format != "slack" && text.contains(markup),
                    _ => text.contains(markup),
                };
                assert!(!is_there, "{format}: {markup} in {text}");
            }
        }
        club.by(ALICE).delete(&path).expect(204);
    }
}

/// Nobody has heard of an event that is deleted within the minute in which it was made.
#[rstest]
fn what_is_deleted_at_once_is_not_announced(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, receiver) = (Club::start(backend), Receiver::start());
    let path = create(&club, &receiver, "traq", json!({"language": "en"}));
    let delete = |event: &str| {
        club.by(BOB).delete(&format!("/api/events/{event}")).expect(204);
    };
    delete(&event(&club, (30, 32), json!({})));
    let moved = event(&club, (40, 42), json!({"name": "moved"}));
    let back = event(&club, (50, 52), json!({"name": "back"}));
    delete(&back);
    club.by(BOB).post(&format!("/api/events/{back}/restore"), json!({})).expect(200);
    minute(&club);
    until("both have arrived", || receiver.arrived().len() >= 2);
    let change = event_body(&club, (40, 43), json!({"name": "moved"}));
    club.by(BOB).put(&format!("/api/events/{moved}"), change).expect(200);
    delete(&moved);
    minute(&club);
    let heading = |arrived: &Arrived| checked_by_traq(arrived).lines().take(2).collect::<Vec<_>>().join(" ");
    let mut arrived: Vec<_> = receiver.wait_for(3).iter().map(heading).collect();
    for text in &mut arrived {
        text.truncate(text.find("](").unwrap_or(text.len()));
    }
    assert_eq!(arrived[2], "## An event is cancelled \u{200b}moved");
    arrived.sort();
    assert_eq!(arrived[..2], ["## A new event [back", "## A new event [moved"]);
    let waits = |path: &str| statuses(&club, path).contains(&"waiting".to_owned());
    until("nothing waits", || !waits(&path));
}

/// A series is announced, moved and cancelled as one.
#[rstest]
fn a_series_is_one_message(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, receiver) = (Club::start(backend), Receiver::start());
    let origin = club.config.server.public_origin();
    create(&club, &receiver, "slack", json!({"language": "en"}));
    let (path, made) = crate::series::series(&club, BOB, "S516", "FREQ=WEEKLY;COUNT=14");
    minute(&club);
    let first = |time: &str| {
        format!(
            "<{origin}/events/{}|Rust evening>\n• Group: <{origin}/groups/{EVERYONE}|Everyone>\n\
             • Time: every Tuesday, 14 dates, first Tue 1 Jan 2030, {time}\n• Place: S516",
            text(&made["events"][0]["eventId"])
        )
    };
    let arrived = taken("slack", &receiver.wait_for(1)[0]);
    assert_eq!(arrived, format!("*A new series of events*\n{}", first("18:00–20:00")));
    club.by(BOB).patch(&path, json!({"description": "Bring a laptop."})).expect(200);
    minute(&club);
    club.by(BOB).patch(&path, json!({"startTime": "18:30"})).expect(200);
    minute(&club);
    let arrived = taken("slack", &receiver.wait_for(2)[1]);
    let quotation = "\n\n> \u{200b}Bring a laptop.";
    assert_eq!(arrived, format!("*A series of events has changed*\n{}{quotation}", first("18:30–20:00")));
    club.by(BOB).delete(&path).expect(204);
    minute(&club);
    let arrived = taken("slack", &receiver.wait_for(3)[2]);
    let time = "• Time: every Tuesday, 14 dates, first Tue 1 Jan 2030, 18:30–20:00";
    assert!(arrived.starts_with("*A series of events is cancelled*\n") && arrived.contains(time), "{arrived}");
    // Made and deleted within the minute.
    let (path, _) = crate::series::series(&club, BOB, "S516", "FREQ=DAILY;COUNT=2");
    club.by(BOB).delete(&path).expect(204);
    minute(&club);
    let event = event(&club, (30, 32), json!({"name": "alone"}));
    minute(&club);
    assert!(receiver.wait_for(4)[3].body.contains(&event));
}

/// Sets the clock to the next time of this day, and returns the day.
pub fn advance_to(club: &Club, time: &str) -> NaiveDate {
    let now = club.clock.now().utc().with_timezone(&Tokyo).naive_local();
    let time: NaiveTime = time.parse().unwrap();
    let day = if now.time() < time { now.date() } else { now.date().succ_opt().unwrap() };
    club.clock.advance(day.and_time(time) - now);
    day
}

/// A time of a day as requests have it.
fn at(day: NaiveDate, time: &str) -> String {
    format!("{day}T{time}:00+09:00")
}

#[rstest]
fn the_digest_shows_rooms_and_events_of_the_day(#[values(Sqlite, Postgres)] backend: Backend) {
    let (mut club, receiver) = (Club::start(backend), Receiver::start());
    let origin = club.config.server.public_origin();
    let path = create(&club, &receiver, "traq", json!({"types": ["digest"]}));
    let day = advance_to(&club, "07:30:00");
    for (place, from, to) in
        [("S516", "10:45", "12:25"), ("S517", "11:00", "15:00"), ("S516", "12:30", "13:00"), ("S|5", "20:00", "22:00")]
    {
        let body = json!({"place": place, "admins": [id(BOB)], "timeStart": at(day, from), "timeEnd": at(day, to)});
        let made = club.by(BOB).post("/api/rooms", body).expect(201).json();
        club.by(ALICE).post(&format!("/api/rooms/{}/verified", text(&made["roomId"])), json!({})).expect(204);
    }
    room(&club, BOB, "not verified", (0, 3));
    let made =
        event(&club, (0, 1), json!({"timeStart": at(day, "11:00"), "timeEnd": at(day, "12:00"), "place": "S 9"}));
    // A second replica, which starts at the same time.
    if club.is_postgres() {
        club.start_another();
    }
    club.clock.advance(TimeDelta::minutes(30));
    let digest = checked_by_traq(&receiver.wait_for(1)[0]);
    let shown = JAPANESE.short_day(day);
    let expected = format!(
        "## {shown}に使える部屋\n| 時間 | S516 | S517 | S\\|5 |\n| :---: | :---: | :---: | :---: |\n| 1-2 |  |  |  |\n\
         | 3-4 | ○ | 11:00– |  |\n| noon | 12:30–13:00 | ○ |  |\n| 5-6 |  | –15:00 |  |\n| 7-8 |  |  |  |\n\
         | 9-10 |  |  |  |\n| 夜 |  |  | 20:00–22:00 |\n\n\n## {shown} 開催予定のイベント\n\
         - [Rust evening]({origin}/events/{made}) {shown}, 11:00–12:00 S 9 (併用可)",
    );
    assert_eq!(digest, expected);
    until("it is noted", || statuses(&club, &path) == ["delivered"]);
    // Not again when the service starts again, nor after the lease of the replica that has sent it.
    club.start_another();
    club.clock.advance(TimeDelta::minutes(2));
    let late = create(&club, &receiver, "slack", json!({"types": ["digest"]}));
    club.by(ALICE).post(&format!("{path}/test"), json!({})).expect(201);
    assert_eq!(receiver.wait_for(2)[1].body, "これはテストです。メッセージはここに届きます。");
    assert!(statuses(&club, &late).is_empty(), "it was made after the time of the digest");

    club.by(ALICE).patch(&path, json!({"isOn": false})).expect(200);
    advance_to(&club, "08:00:01");
    let arrived = receiver.wait_for(3);
    let nothing = taken("slack", &arrived[2]);
    assert!(
        nothing.contains("本日は部屋の予約を取っていないようです。\n\n*")
            && nothing.ends_with("\n本日開催予定のイベントはありません。"),
        "{nothing}"
    );
    until("it is noted", || statuses(&club, &late) == ["delivered"]);
}

/// Also on the day without its time of day, which is the one after the gap, and on the day that has it twice.
#[rstest]
fn each_day_has_one_digest(#[values(Sqlite, Postgres)] backend: Backend) {
    for (time, day, due) in [("02:30", "2027-03-14", "07:00"), ("01:30", "2027-11-07", "05:30")] {
        let options = ["--time-zone", "America/New_York", "--digest-time", time];
        let (club, receiver) = (Club::start_with(backend, &options), Receiver::start());
        let path = create(&club, &receiver, "traq", json!({"types": ["digest"], "language": "en"}));
        let test = |number| {
            club.by(ALICE).post(&format!("{path}/test"), json!({})).expect(201);
            receiver.wait_for(number)
        };
        let due: common::time::Timestamp = format!("{day}T{due}:00Z").parse().unwrap();
        club.clock.advance(due.plus(TimeDelta::minutes(-10)) - club.clock.now());
        test(1);
        club.clock.advance(TimeDelta::minutes(11));
        receiver.wait_for(2);
        for later in [10, 60, 120] {
            club.clock.advance(TimeDelta::minutes(later));
            receiver.wait_for(2);
        }
        let arrived = test(3);
        assert!(arrived[1].body.starts_with("## "), "{}", arrived[1].body);
    }
}

#[rstest]
fn a_digest_after_noon_is_not_sent(#[values(Sqlite, Postgres)] backend: Backend) {
    let (mut club, receiver) = (Club::start(backend), Receiver::start());
    let path = create(&club, &receiver, "traq", json!({"types": ["digest"]}));
    until("the webhook is known", || club.anonymous().get("/readyz").status == 200);
    club.stop_all();
    advance_to(&club, "12:00:01");
    club.start_another();
    club.by(ALICE).post(&format!("{path}/test"), json!({})).expect(201);
    receiver.wait_for(1);
    assert_eq!(statuses(&club, &path).len(), 1);
}

#[rstest]
fn those_who_have_not_answered_are_reminded_once(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, receiver) = (Club::start(backend), Receiver::start());
    let own = group(&club, BOB, "g", &[BOB, CAROL]);
    let path = create(&club, &receiver, "slack", json!({"types": ["reminder"], "language": "en"}));
    let made = event(&club, (30, 32), json!({"groupId": own}));
    club.by(BOB).put(&format!("/api/events/{made}/attendees/me"), json!({"schedule": "attendance"})).expect(204);
    // Whoever is invited less than a day before has the announcement.
    event(&club, (20, 22), json!({"groupId": own, "place": "S517"}));
    let deadline = hours_from_now(&club, 33).to_string();
    let (ending, _) = poll(&club, BOB, json!({"invitees": [id(CAROL), id(DAVE)], "deadline": deadline}));
    club.clock.advance(TimeDelta::hours(7));
    let arrived = receiver.wait_for(1);
    let reminded = taken("slack", &arrived[0]);
    assert!(reminded.starts_with("*An event begins soon, and some have not answered*\n<"), "{reminded}");
    assert!(reminded.contains(&made) && reminded.ends_with("\n\nPlease say whether you come:\n@carol"), "{reminded}");
    club.clock.advance(TimeDelta::hours(2));
    let reminded = taken("slack", &receiver.wait_for(2)[1]);
    assert!(reminded.contains(ending.rsplit('/').next().unwrap()), "{reminded}");
    assert!(reminded.ends_with("\n\nPlease say when you can come:\n@carol @dave"), "{reminded}");
    club.clock.advance(TimeDelta::hours(1));
    club.by(ALICE).post(&format!("{path}/test"), json!({})).expect(201);
    receiver.wait_for(3);
}

#[rstest]
fn bad_channels_are_refused(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let body = json!({"name": "c", "url": "http://127.0.0.1:9/", "format": "traq", "types": ["digest"]});
    for (more, pointer) in [
        (json!({}), "/channelId"),
        (json!({"channelId": CHANNEL, "types": ["event.created"]}), "/types"),
        (json!({"format": "standard"}), "/types"),
        (json!({"format": "slack", "secret": SECRET}), "/secret"),
        (json!({"format": "discord", "mentionGroups": [""]}), "/mentionGroups/0"),
    ] {
        let refused = club.by(ALICE).post("/api/webhooks", merge([body.clone(), more.clone()])).expect(400);
        assert_eq!(refused.pointers(), [pointer], "{more}");
    }
    let made = club.by(ALICE).post("/api/webhooks", merge([body, json!({"format": "slack"})])).expect(201);
    assert!(made.json().get("secret").is_none());
    let path = made.header("location").unwrap();
    club.by(ALICE).post(&format!("{path}/secret"), json!({})).refused(409, "no-secret");
}

/// What `import` prints for the settings of the former system.
#[rstest]
fn the_commands_of_the_import_make_its_webhooks(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, receiver) = (Club::start(backend), Receiver::start());
    let settings = |name: &str| match name {
        "WEBHOOK_ID" => Some("0198c0de-0000-7000-8000-0000000000a1".to_owned()),
        "ACTIVITY_CHANNEL_ID" => Some(CHANNEL.to_owned()),
        _ => None,
    };
    let lines = booking_service::import::webhooks::commands(Some(&receiver.address.parse().unwrap()), settings);
    let [_, line] = lines.as_slice() else { panic!("{lines:?}") };
    let mut shell = std::process::Command::new("sh");
    let program = crate::process::PROGRAM;
    let script = line.replace("booking-service", &format!("{program} --database-url '{}'", club.url()));
    let script = format!("{script} --secret-key {}", crate::harness::KEY);
    let environment = [("WEBHOOK_SECRET", SECRET), ("PATH", "/usr/bin:/bin")];
    let (out, err, status) = crate::commands::outcome(shell.args(["-c", &script]).env_clear().envs(environment));
    assert_eq!((status, out.lines().count()), (Some(0), 1), "{err}");
    let path = format!("/api/webhooks/{}", out.trim());
    assert_eq!(club.by(ALICE).get(&path).expect(200).json()["types"], json!(["announcement"]));
    // The service looks once a minute, or when somebody tries a webhook.
    club.by(ALICE).post(&format!("{path}/test"), json!({})).expect(201);
    let arrived = receiver.wait_for(1).remove(0);
    assert_eq!(arrived.path, "/webhooks/0198c0de-0000-7000-8000-0000000000a1?embed=1");
    checked_by_traq(&Arrived { path: "/webhooks/1?embed=1".to_owned(), ..arrived });
}
