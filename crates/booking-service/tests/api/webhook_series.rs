//! What webhooks say of a series and of its events when something is undone within the minute (contract, "Webhooks").

use crate::harness::Backend::{self, Postgres, Sqlite};
use chrono::TimeDelta;
use common::time::Clock;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    builders::{each, merge, text, verified_room},
    harness::{ALICE, BOB, Club},
    process::until,
    receiver::{Arrived, Receiver},
    series::series,
    webhook_messages::taken,
    webhooks::statuses,
};

const RULE: &str = "FREQ=WEEKLY;COUNT=3";

/// A program and a channel that hear of everything.
struct Ears {
    club: Club,
    program: Receiver,
    chat: Receiver,
    hooks: [String; 2],
    heard: [usize; 2],
}

impl Ears {
    fn new(backend: Backend) -> Self {
        let (club, program, chat) =
            (Club::start_by(Clock::stopped(), backend, &[]), Receiver::start(), Receiver::start());
        let body = crate::webhooks::body(&program.address);
        let hook = club.by(ALICE).post("/api/webhooks", body).expect(201).header("location").unwrap().to_owned();
        let channel = crate::webhook_messages::create(&club, &chat, "slack", json!({"language": "en"}));
        Self { club, program, chat, hooks: [hook, channel], heard: [0, 0] }
    }

    /// What they hear of what has been done so far: the types and the changes, and the texts without markup.
    fn hear(&mut self) -> (Vec<(String, Value)>, Vec<String>) {
        self.club.clock.advance(TimeDelta::seconds(61));
        // Sent at once, so all that was done before is waiting or sent by then.
        verified_room(&self.club, BOB, &format!("room {}", self.heard[0]), (1, 2));
        let is_last = |arrived: &Arrived| arrived.json()["type"] == "room.verified";
        until("the last has arrived", || self.program.arrived()[self.heard[0]..].iter().any(is_last));
        let waits = |hook: &String| statuses(&self.club, hook).contains(&"waiting".to_owned());
        until("nothing waits", || !self.hooks.iter().any(waits));
        let (program, chat) = (self.program.arrived(), self.chat.arrived());
        let told = program[self.heard[0]..].iter().filter(|arrived| !is_last(arrived)).map(Arrived::json);
        let told = told.map(|told| (text(&told["type"]), told["data"]["changes"].clone())).collect();
        let said = chat[self.heard[1]..].iter().map(|arrived| taken("slack", arrived)).collect();
        self.heard = [program.len(), chat.len()];
        (told, said)
    }

    /// Like `hear`, but only the types and the headings.
    fn headings(&mut self) -> (Vec<String>, Vec<String>) {
        let (told, said) = self.hear();
        let heading = |text: String| text.lines().next().unwrap().trim_matches('*').to_owned();
        (told.into_iter().map(|(kind, _)| kind).collect(), said.into_iter().map(heading).collect())
    }

    fn series(&mut self, place: &str) -> (String, Vec<Value>) {
        let (path, made) = series(&self.club, BOB, place, RULE);
        (path, made["events"].as_array().unwrap().clone())
    }

    fn add(&self, series: &str, day: &str) -> String {
        let date = json!({"timeStart": format!("{day}T18:00:00+09:00"), "timeEnd": format!("{day}T20:00:00+09:00")});
        let made = self.club.by(BOB).post(&format!("{series}/occurrences"), date).expect(201).json();
        path(&made)
    }

    fn delete(&self, path: &str) {
        self.club.by(BOB).delete(path).expect(204);
    }

    fn restore(&self, event: &str) {
        self.club.by(BOB).post(&format!("{event}/restore"), json!({})).expect(200);
    }

    fn rename(&self, event: &Value, name: &str) {
        let fields = ["description", "sharedRoom", "timeStart", "timeEnd", "place", "groupId", "admins"];
        let body = merge(fields.map(|field| json!({ field: event[field] })));
        self.club.by(BOB).put(&path(event), merge([body, json!({ "name": name })])).expect(200);
    }
}

fn path(event: &Value) -> String {
    format!("/api/events/{}", text(&event["eventId"]))
}

fn nothing() -> (Vec<String>, Vec<String>) {
    (Vec::new(), Vec::new())
}

#[rstest]
fn what_is_undone_is_not_sent(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut ears = Ears::new(backend);
    let (old, events) = ears.series("S516");
    assert_eq!(ears.headings(), (vec!["series.created".to_owned()], vec!["A new series of events".to_owned()]));

    let added = ears.add(&old, "2030-02-01");
    ears.delete(&added);
    assert_eq!(ears.headings(), nothing(), "added and deleted");

    ears.delete(&old);
    for event in &events {
        ears.restore(&path(event));
    }
    assert_eq!(ears.headings(), nothing(), "deleted as one and restored one by one");

    let (new, events) = ears.series("S517");
    ears.rename(&events[1], "alone");
    ears.delete(&new);
    assert_eq!(ears.headings(), nothing(), "made, changed and deleted");

    let (_, events) = ears.series("S518");
    for event in &events {
        ears.delete(&path(event));
    }
    assert_eq!(ears.headings(), nothing(), "made as one and deleted one by one");
}

#[rstest]
fn the_rest_of_what_is_undone_is_sent(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut ears = Ears::new(backend);
    let (path_of_series, events) = ears.series("S516");
    ears.rename(&events[1], "alone");
    ears.rename(&events[2], "gone");
    ears.club.by(BOB).patch(&path_of_series, json!({"until": "2030-01-08"})).expect(200);
    let (told, said) = ears.hear();
    let of = |kind: &str, told: &[(String, Value)]| {
        told.iter().find(|(other, _)| other == kind).map(|(_, changes)| changes.clone()).unwrap_or_default()
    };
    let mut kinds: Vec<_> = told.iter().map(|(kind, _)| kind.clone()).collect();
    kinds.sort();
    assert_eq!(kinds, ["event.changed", "series.created"]);
    assert_eq!(of("event.changed", &told), json!({"name": ["Rust evening", "alone"]}));
    let ids = each(&json!(events), "eventId");
    assert_eq!(of("series.created", &told)["events"], json!({"added": ids[..2], "removed": []}));
    assert_eq!(said.len(), 2, "{said:?}");

    // Half of a deletion.
    ears.delete(&path_of_series);
    ears.restore(&path(&events[0]));
    let (told, said) = ears.hear();
    assert_eq!(of("series.deleted", &told)["events"], json!({"added": [], "removed": [ids[1]]}));
    assert_eq!((told.len(), said.len()), (1, 1), "{told:?} {said:?}");
    assert!(said[0].contains(", 1 date: Tue 8 Jan 2030"), "{}", said[0]);

    // Part of a series that nobody has heard of.
    let (part, _) = ears.series("S517");
    ears.delete(&format!("{part}?from=2030-01-10T00:00:00Z"));
    let (told, said) = ears.hear();
    assert_eq!(of("series.created", &told)["events"]["added"].as_array().map(Vec::len), Some(2), "{told:?}");
    assert!(told.len() == 1 && said.len() == 1 && said[0].contains(", 2 dates,"), "{said:?}");

    // A series and one of its other dates.
    let (two, of_two) = ears.series("S518");
    ears.hear();
    ears.delete(&format!("{two}?from=2030-01-05T00:00:00Z"));
    ears.club.clock.advance(TimeDelta::seconds(1));
    ears.delete(&path(&of_two[0]));
    let (told, said) = ears.hear();
    assert_eq!(of("series.deleted", &told)["events"]["removed"].as_array().map(Vec::len), Some(2), "{told:?}");
    assert_eq!(of("event.deleted", &told), json!({"deleted": [false, true]}));
    assert!(said.iter().any(|said| said.contains(", 2 dates, first Tue 8 Jan 2030")), "{said:?}");
    assert_eq!(said.len(), 2, "{said:?}");
}

/// The minute of a series and that of its event are not the same one.
#[rstest]
fn what_was_said_is_taken_back(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut ears = Ears::new(backend);
    let (path_of_series, _) = ears.series("S516");
    ears.hear();
    ears.club.by(BOB).patch(&path_of_series, json!({"name": "Zig evening"})).expect(200);
    ears.club.clock.advance(TimeDelta::seconds(30));
    let added = ears.add(&path_of_series, "2030-02-01");
    ears.club.clock.advance(TimeDelta::seconds(35));
    ears.delete(&added);
    let (told, said) = ears.hear();
    let kinds: Vec<_> = told.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["series.changed", "event.deleted"], "{told:?}");
    assert_eq!(told[0].1["events"]["added"].as_array().map(Vec::len), Some(1), "{told:?}");
    assert!(said.iter().any(|said| said.starts_with("*An event is cancelled*")), "{said:?}");

    // After the minute, each date that takes place after all is one.
    ears.delete(&path_of_series);
    ears.hear();
    ears.restore(&added);
    assert_eq!(ears.headings().0, ["event.restored"]);
}
