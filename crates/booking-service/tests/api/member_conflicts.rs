//! Forms of several people at once: a form is stale only if somebody has changed what it shows, and then says what.

use rstest::rstest;
use serde_json::json;

use crate::{
    builders::{At, answer_poll, event, event_body, group, merge, poll, text, verified_room},
    front_page::{
        forms::{fields, open, send, set},
        page,
    },
    harness::{
        ALICE, BOB,
        Backend::{self, Postgres, Sqlite},
        CAROL, Club, DAVE, id,
    },
};

#[rstest]
fn answers_and_other_bookings_make_no_form_stale(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let room = verified_room(&club, ALICE, "S516", (1, 9));
    let of_group = group(&club, BOB, "Band", &[BOB, CAROL]);
    let band = merge([event_body(&club, BOB, At::Room(&room), (2, 3)), json!({"groupId": of_group})]);
    let own = text(&club.by(BOB).post("/api/events", band).expect(201).json()["eventId"]);
    let (edit, delete) = (format!("/events/{own}/edit"), format!("/events/{own}/delete"));
    let mut edited = fields(&open(&club, BOB, &edit), &edit);
    let deleted = fields(&open(&club, BOB, &delete), &delete);
    club.by(CAROL).put(&format!("/api/events/{own}/attendees/me"), json!({"schedule": "attendance"})).expect(204);
    event(&club, CAROL, At::Room(&room), (5, 6));
    club.by(ALICE).send("DELETE", &format!("/api/rooms/{room}/verified"), None).expect(204);
    set(&mut edited, "name", "Tea & cake");
    send(&club, BOB, &edit, &edited).expect(303);
    // The name has changed now, so what was seen is gone.
    send(&club, BOB, &delete, &deleted).expect(412);
    let (asked, slots) = poll(&club, BOB, json!({"invitees": [id(BOB), id(CAROL)]}));
    let edit = format!("/polls/{}/edit", asked.rsplit('/').next().unwrap());
    let form = fields(&open(&club, BOB, &edit), &edit);
    answer_poll(&club, CAROL, &asked, &[&slots[0]]).expect(201);
    send(&club, BOB, &edit, &form).expect(303);
}

#[rstest]
fn a_stale_form_shows_all_that_saving_would_change(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let stale = |path: &str, change: &dyn Fn()| {
        let edit = format!("{path}/edit");
        let mut form = fields(&open(&club, BOB, &edit), &edit);
        set(&mut form, "name", "Mine");
        change();
        let refused = page::check(&send(&club, BOB, &edit, &form).expect(412));
        refused.split("As it is now").nth(1).unwrap().split("</div>").next().unwrap().to_owned()
    };
    let own = event(&club, BOB, At::Place("Hall"), (2, 3));
    let change = || {
        let new = json!({"admins": [id(BOB), id(DAVE)], "open": true, "sharedRoom": true});
        let new = merge([event_body(&club, BOB, At::Place("Hall"), (2, 3)), new]);
        club.by(BOB).put(&format!("/api/events/{own}"), new).expect(200);
    };
    let shown = stale(&format!("/events/{own}"), &change);
    assert!(shown.contains("DAVE") && shown.contains("Open to everybody") && shown.contains("Shared"), "{shown}");
    let band = group(&club, BOB, "Band", &[BOB]);
    let change = || {
        let new = json!({"name": "Band", "description": "", "open": true, "members": [id(BOB)], "admins": [id(BOB), id(CAROL)]});
        club.by(BOB).put(&format!("/api/groups/{band}"), new).expect(200);
    };
    let shown = stale(&format!("/groups/{band}"), &change);
    assert!(shown.contains("CAROL") && shown.contains("Anybody may join and leave"), "{shown}");
}

#[rstest]
fn only_the_service_says_that_something_was_deleted(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let own = event(&club, BOB, At::Place("Hall"), (2, 3));
    let undo = format!("action=\"/events/{own}/restore\"");
    let path = format!("/events?notice=deleted&deleted={own}");
    let seen = |path: &str, site: &str| {
        let answer = club.by(BOB).header("accept", "text/html").header("sec-fetch-site", site).get(path).expect(200);
        answer.text()
    };
    assert!(open(&club, BOB, &path).contains(&undo) && seen(&path, "same-origin").contains(&undo));
    assert!(!seen(&path, "cross-site").contains("restore") && !seen(&path, "none").contains("restore"));
    let start = open(&club, BOB, &format!("/?notice=deleted&deleted={own}"));
    assert!(!start.contains("restore"), "{start}");
}

#[rstest]
fn a_refusal_names_twenty_of_many(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut form = fields(&open(&club, BOB, "/groups/new"), "/groups/new");
    let many: Vec<_> = (0..40_000).map(|n| format!("b{n:x}")).collect();
    set(&mut form, "name", "Band");
    set(&mut form, "members", &many.join(" "));
    let refused = send(&club, BOB, "/groups/new", &form).expect(400);
    let shown = refused.text();
    assert_eq!(shown.matches("There is no member").count(), 40, "in the summary and beside the field");
}

#[rstest]
fn what_was_typed_about_something_deleted_is_shown(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let own = event(&club, BOB, At::Place("Hall"), (2, 3));
    let edit = format!("/events/{own}/edit");
    let mut form = fields(&open(&club, BOB, &edit), &edit);
    set(&mut form, "description", "Bring <cups>\nand tea.");
    club.by(BOB).send("DELETE", &format!("/api/events/{own}"), None).expect(204);
    let gone = page::check(&send(&club, BOB, &edit, &form).expect(404));
    assert!(gone.contains("<pre>Bring &lt;cups&gt;\nand tea.</pre>"), "{gone}");
}
