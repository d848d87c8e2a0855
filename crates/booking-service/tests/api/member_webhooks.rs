//! The forms of webhooks.

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;

use serde_json::{Value, json};

use crate::{
    builders::text,
    front_page::forms::{Fields, fields, open, send, set},
    harness::{ALICE, BOB, Club},
    receiver::Receiver,
};

/// The only webhook.
fn only(club: &Club) -> Value {
    let all = club.by(ALICE).get("/api/webhooks").expect(200).json();
    assert_eq!(all.as_array().unwrap().len(), 1, "{all}");
    all[0].clone()
}

fn new_form(club: &Club, format: &str, receiver: &Receiver) -> Fields {
    let mut form = fields(&open(club, ALICE, &format!("/webhooks/new?format={format}")), "/webhooks/new");
    set(&mut form, "url", &format!("{}/hook?key=of-the-query", receiver.address));
    set(&mut form, "name", "#rooms");
    form
}

fn without(form: &mut Fields, name: &str, value: &str) {
    form.retain(|field| field != &(name.to_owned(), value.to_owned()));
}

#[rstest]
fn messages_to_a_chat_are_set_up_tested_changed_and_deleted(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, receiver) = (Club::start(backend), Receiver::start());
    let mut form = new_form(&club, "slack", &receiver);
    without(&mut form, "on", "reminders");
    set(&mut form, "test", "true");
    send(&club, BOB, "/webhooks/new", &form).expect(403);
    assert_eq!(
        send(&club, ALICE, "/webhooks/new", &form).expect(303).header("location"),
        Some("/webhooks?notice=saved")
    );
    assert_eq!(receiver.wait_for(1)[0].path, "/hook?key=of-the-query");
    let made = only(&club);
    assert_eq!(made["types"], json!(["announcement", "cancellation", "digest"]));
    assert_eq!((&made["name"], &made["format"], &made["language"]), (&json!("#rooms"), &json!("slack"), &json!("en")));
    let id = text(&made["webhookId"]);
    let path = format!("/webhooks/{id}/edit");
    assert!(open(&club, ALICE, "/webhooks").contains(&path));

    // The shown address stands for the present one, and what is not a choice of the form stays.
    let stay = json!({"types": ["announcement"], "language": "ja", "mentions": "off"});
    club.by(ALICE).patch(&format!("/api/webhooks/{id}"), stay).expect(200);
    let shown = open(&club, ALICE, &path);
    assert!(!shown.contains("of-the-query"), "{shown}");
    let mut form = fields(&shown, &path);
    // What stands for the secret part is no address.
    let shown_url = form.iter().find(|(name, _)| name == "url").unwrap().1.clone();
    let mut moved = form.clone();
    set(&mut moved, "url", &shown_url.replace("127.0.0.1", "localhost"));
    let refused = send(&club, ALICE, &path, &moved).expect(400);
    assert_eq!(refused.header("cache-control"), Some("no-store"));
    assert!(refused.text().contains("id=\"f-url-error\">This must be the whole address"), "{refused:?}");
    set(&mut form, "name", "#events");
    form.push(("on".to_owned(), "reminders".to_owned()));
    send(&club, BOB, &path, &form).expect(403);
    send(&club, ALICE, &path, &form).expect(303);
    let changed = only(&club);
    assert_eq!((&changed["name"], &changed["types"]), (&json!("#events"), &json!(["announcement", "reminder"])));
    assert_eq!((&changed["language"], &changed["mentions"]), (&json!("ja"), &json!("off")));
    assert_eq!(changed["urlChangedAt"], Value::Null);
    // It has changed since this form was opened.
    set(&mut form, "_key", "another-key-of-the-form");
    let stale = send(&club, ALICE, &path, &form).expect(412).text();
    assert!(stale.split("As it is now").nth(1).unwrap().split("</div>").next().unwrap().contains("#events"), "{stale}");

    let path = format!("/webhooks/{id}/delete");
    let form = fields(&open(&club, ALICE, &path), &path);
    send(&club, BOB, &path, &form).expect(403);
    send(&club, ALICE, &path, &form).expect(303);
    assert_eq!(club.by(ALICE).get("/api/webhooks").expect(200).json(), json!([]));
}

#[rstest]
fn a_program_gets_its_secret_once(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, receiver) = (Club::start(backend), Receiver::start());
    let mut form = new_form(&club, "standard", &receiver);
    without(&mut form, "on", "groups");
    let made = send(&club, ALICE, "/webhooks/new", &form).expect(201);
    assert!(
        made.text().contains("value=\"whsec_") && made.header("cache-control").unwrap().contains("no-store"),
        "{made:?}"
    );
    // Some of what one choice stands for stays some of it.
    let id = text(&only(&club)["webhookId"]);
    let part = json!({"types": ["event.created", "room.deleted"]});
    club.by(ALICE).patch(&format!("/api/webhooks/{id}"), part.clone()).expect(200);
    let path = format!("/webhooks/{id}/edit");
    send(&club, ALICE, &path, &fields(&open(&club, ALICE, &path), &path)).expect(303);
    assert_eq!(only(&club)["types"], part["types"]);
    let secret = format!("/webhooks/{id}/secret");
    let form = fields(&open(&club, ALICE, &path), &secret);
    send(&club, BOB, &secret, &form).expect(403);
    let again = send(&club, ALICE, &secret, &form).expect(201);
    assert!(again.text().contains("value=\"whsec_") && again.text() != made.text(), "{again:?}");
}

#[rstest]
fn a_refused_form_keeps_what_was_typed(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, receiver) = (Club::start(backend), Receiver::start());
    let mut form = new_form(&club, "traq", &receiver);
    set(&mut form, "url", "nowhere");
    let refused = send(&club, ALICE, "/webhooks/new", &form).expect(400).text();
    assert!(refused.contains("value=\"nowhere\"") && refused.contains("value=\"#rooms\""), "{refused}");
    assert!(refused.contains("href=\"#f-url\"") && refused.contains("href=\"#f-channelId\""), "{refused}");
    form.retain(|(name, _)| name != "on");
    let refused = send(&club, ALICE, "/webhooks/new", &form).expect(400).text();
    assert_eq!(refused.matches("class=\"error\"").count(), 1, "{refused}");
    club.by(ALICE).header("accept", "text/html").get("/webhooks/new?format=carrier-pigeon").expect(404);
    club.by(BOB).header("accept", "text/html").get("/webhooks/new?format=slack").expect(403);
    assert_eq!(club.by(ALICE).get("/api/webhooks").expect(200).json(), json!([]));
}
