//! The history on the pages: sentences, and the buttons that take changes and deletions back.

use booking_service::{
    objects::{EVENT, GROUP, POLL, ROOM},
    pages::queries::{Subject, deleted_after, summary},
    server::INFO,
};
use rstest::rstest;
use serde_json::{Value, json};
use service_kit::{
    database::types::DbTimestamp,
    history::Kind,
    http::{Language, texts::Texts},
};

use crate::{
    builders::{At, EVERYONE, event, event_body, group, merge, poll, room, text, verified_room},
    front_page::{
        forms::{Fields, fields, open, send},
        page,
    },
    harness::{
        ALICE, BOB,
        Backend::{self, Postgres, Sqlite},
        CAROL, Club, DAVE, DOCUMENT, hours_from_now, id,
    },
    history::of,
    plans,
    sign_in::HTML,
};

fn open_in(club: &Club, by: &str, language: &str, path: &str) -> String {
    let client = club.by(by).header("accept", HTML).header("accept-language", language);
    page::check(&client.get(path).expect(200))
}

/// The form of the button that leads back to a change.
fn back_to(page: &str, path: &str, change: &Value) -> Fields {
    let form = page.split("<form").find(|form| form.contains(&format!("name=\"to\" value=\"{change}\"")));
    let form = form.unwrap_or_else(|| panic!("no way back to {change} in {page}"));
    fields(&format!("<form{form}"), &format!("{path}/revert"))
}

#[rstest]
fn changes_of_an_event_are_told_and_taken_back(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let made = event(&club, BOB, At::Place("S516"), (1, 2));
    let (page_path, api) = (format!("/events/{made}"), format!("/api/events/{made}"));
    let place = || text(&club.by(BOB).get(&api).expect(200).json()["place"]);
    assert!(open(&club, BOB, &page_path).contains("<div>BOB created it.<small>"), "{}", open(&club, BOB, &page_path));
    let art = group(&club, CAROL, "art <1>", &[]);
    let body = event_body(&club, BOB, At::Place("S517"), (1, 2));
    let changes = json!({
        "name": "Zig", "admins": [id(BOB), id(CAROL)], "groupId": art, "open": true, "sharedRoom": true,
        "description": "Bring\nit", "tags": [{"name": "zig", "locked": true}],
    });
    club.by(BOB).put(&api, merge([body, changes])).expect(200);
    let english = open(&club, CAROL, &page_path);
    for part in [
        "<div>BOB ",
        "moved it from S516 to S517",
        "renamed it from “Rust evening” to “Zig”",
        "added CAROL to those who may change it",
        "instead of",
        "art &lt;1&gt;",
        "changed the description",
        "opened it to everybody",
        "shared the room",
        "added #zig (locked) to the tags",
    ] {
        assert!(english.contains(part), "{part} in {english}");
    }
    assert!(!english.contains("from the room"), "the place says that: {english}");
    let japanese = open_in(&club, BOB, "ja", &page_path);
    for part in
        ["<div>BOBさんが", "場所をS516からS517に変更", "編集できる人にCAROLを追加", "しました。", "この時点に戻す"]
    {
        assert!(japanese.contains(part), "{part} in {japanese}");
    }

    // Not for others.
    assert!(!open(&club, DAVE, &page_path).contains("History"));
    club.by(DAVE).header("accept", HTML).get(&format!("{page_path}/history")).expect(403);
    let rows = of(&club, &api);
    let (newest, first) = (&rows[0]["historyId"], &rows[1]["historyId"]);
    assert!(!english.contains(&format!("value=\"{newest}\"")), "there is nothing to take back: {english}");

    let (mut button, stale) = (back_to(&english, &page_path, first), back_to(&english, &page_path, first));
    let revert = format!("{page_path}/revert");
    send(&club, DAVE, &revert, &button).expect(403);
    assert_eq!(send(&club, BOB, &revert, &button).expect(303).header("location"), Some(page_path.as_str()));
    assert_eq!(place(), "S516");
    assert!(open(&club, BOB, &page_path).contains("BOB went back to an earlier version, "));
    // A double click is answered again; another page that is out of date is refused.
    send(&club, BOB, &revert, &button).expect(303);
    button = stale;
    button.retain(|(name, _)| name != "_key");
    let refused = page::check(&send(&club, BOB, &revert, &button).expect(412));
    assert!(
        refused.contains("Somebody has changed this meanwhile") && refused.contains("BOB created it."),
        "{refused}"
    );

    // The room is taken.
    club.by(BOB).put(&api, event_body(&club, BOB, At::Place("S517"), (1, 2))).expect(200);
    let taken = verified_room(&club, CAROL, "S516", (0, 5));
    event(&club, CAROL, At::Room(&taken), (1, 3));
    let button = back_to(&open(&club, BOB, &page_path), &page_path, first);
    let refused = page::check(&send(&club, BOB, &revert, &button).expect(409));
    assert!(refused.contains("Already there at that time:") && refused.contains("Rust evening"), "{refused}");
    assert_eq!(place(), "S517");
}

#[rstest]
fn what_is_deleted_has_a_page_from_which_it_comes_back(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let made = event(&club, BOB, At::Place("S516"), (1, 2));
    let group = group(&club, BOB, "graphics", &[CAROL]);
    let stock = room(&club, BOB, "S517", (1, 5));
    let (poll, _) = poll(&club, BOB, json!({}));
    let poll = text(&json!(poll.rsplit('/').next().unwrap()));
    let objects = [
        ("events", "events", &made),
        ("groups", "groups", &group),
        ("rooms", "rooms", &stock),
        ("polls", "draft-events", &poll),
    ];
    for (_, segment, id) in objects {
        club.by(BOB).send("DELETE", &format!("/api/{segment}/{id}"), None);
    }
    for (segment, api, id) in objects {
        let (path, restore) = (format!("/{segment}/{id}"), format!("/{segment}/{id}/restore"));
        club.by(CAROL).header("accept", HTML).get(&path).expect(404);
        assert!(!open(&club, CAROL, "/deleted").contains(&path));
        assert!(open(&club, ALICE, "/deleted").contains(&restore));
        assert!(open_in(&club, BOB, "ja", &path).contains("BOBさんが削除しました。"));
        let shown = open(&club, BOB, &path);
        assert!(shown.contains("BOB deleted it.") && shown.contains("It can be restored until"), "{shown}");
        let button = fields(&open(&club, BOB, "/deleted"), &restore);
        send(&club, CAROL, &restore, &button).expect(403);
        assert_eq!(send(&club, BOB, &restore, &button).expect(303).header("location"), Some(path.as_str()));
        club.by(BOB).get(&format!("/api/{api}/{id}")).expect(200);
        assert!(open(&club, BOB, &path).contains("BOB brought it back."));
        assert!(!open(&club, ALICE, "/deleted").contains(&path));
    }
    // Its group is deleted: the page offers another one.
    let of_group = merge([event_body(&club, BOB, At::Place("S518"), (1, 2)), json!({ "groupId": group })]);
    let of_group = text(&club.by(BOB).post("/api/events", of_group).expect(201).json()["eventId"]);
    club.by(BOB).send("DELETE", &format!("/api/groups/{group}?force=true"), None).expect(204);
    let restore = format!("/events/{of_group}/restore");
    let button = fields(&open(&club, BOB, &format!("/events/{of_group}")), &restore);
    let refused = page::check(&send(&club, BOB, &restore, &button).expect(409));
    assert!(refused.contains("Another group"), "{refused}");
    send(&club, BOB, &restore, &vec![("groupId".to_owned(), EVERYONE.to_owned())]).expect(303);
    club.by(BOB).get(&format!("/api/events/{of_group}")).expect(200);
    // Somebody has taken the room, and then the time is over.
    let path = format!("/events/{made}");
    club.by(BOB).delete(&format!("/api{path}")).expect(204);
    let verified = verified_room(&club, CAROL, "S516", (0, 5));
    event(&club, CAROL, At::Room(&verified), (1, 3));
    let restore = format!("{path}/restore");
    let button = fields(&open(&club, BOB, &path), &restore);
    let refused = page::check(&send(&club, BOB, &restore, &button).expect(409));
    assert!(refused.contains("Already there at that time:"), "{refused}");
    club.clock.advance(chrono::TimeDelta::days(30));
    club.by(BOB).header("accept", HTML).get(&path).expect(404);
    assert!(open(&club, BOB, "/deleted").contains("Nothing."));
}

#[rstest]
fn what_was_deleted_by_mistake_comes_back_at_once(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let made = event(&club, BOB, At::Place("S516"), (1, 2));
    let group = group(&club, BOB, "graphics", &[CAROL]);
    let stock = room(&club, BOB, "S517", (1, 5));
    let (poll, _) = poll(&club, BOB, json!({}));
    let poll = text(&json!(poll.rsplit('/').next().unwrap()));
    for (segment, id) in [("events", made), ("groups", group), ("rooms", stock), ("polls", poll)] {
        let (path, delete) = (format!("/{segment}/{id}"), format!("/{segment}/{id}/delete"));
        let deleted = send(&club, BOB, &delete, &fields(&open(&club, BOB, &delete), &delete)).expect(303);
        let landed = open(&club, BOB, deleted.header("location").unwrap());
        assert!(landed.contains("Deleted.") && landed.contains(">Undo</button>"), "{landed}");
        let restore = format!("{path}/restore");
        send(&club, BOB, &restore, &fields(&landed, &restore)).expect(303);
        assert!(open(&club, BOB, &path).contains("BOB brought it back."));
    }
    // One lands in the month of the event, which is another one.
    let hours = 24 * 70;
    let far = event(&club, BOB, At::Place("S516"), (hours, hours + 1));
    let delete = format!("/events/{far}/delete");
    let deleted = send(&club, BOB, &delete, &fields(&open(&club, BOB, &delete), &delete)).expect(303);
    let month = hours_from_now(&club, hours).in_zone(chrono_tz::Tz::Asia__Tokyo).to_string()[..7].to_owned();
    let address = format!("/events?month={month}&notice=deleted&deleted={far}");
    assert_eq!(deleted.header("location"), Some(address.as_str()));
    let (landed, restore) = (open(&club, BOB, &address), format!("/events/{far}/restore"));
    send(&club, BOB, &restore, &fields(&landed, &restore)).expect(303);
    // Only what pages say.
    let other = open(&club, BOB, "/events?notice=%3Cb%3E&deleted=%3Cb%3E");
    assert!(!other.contains("class=\"flash\"") && !other.contains("Undo"), "{other}");
    let japanese = open_in(&club, BOB, "ja", "/events?notice=deleted&deleted=x");
    assert!(japanese.contains("削除しました。") && !japanese.contains("元に戻す"), "{japanese}");
}

#[rstest]
fn everything_that_was_deleted_is_on_a_page(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    // Two thirds at the same time.
    let group = group(&club, BOB, "graphics", &[]);
    for n in 0..120 {
        let of_group = json!({"name": format!("Event {n}"), "groupId": if n < 80 { &group } else { EVERYONE }});
        let body = merge([event_body(&club, BOB, At::Place(&format!("Hall {n}")), (1, 2)), of_group]);
        let made = text(&club.by(BOB).post("/api/events", body).expect(201).json()["eventId"]);
        if n >= 80 {
            club.by(BOB).delete(&format!("/api/events/{made}")).expect(204);
        }
    }
    club.by(BOB).send("DELETE", &format!("/api/groups/{group}?force=true"), None).expect(204);
    let (mut page, mut found) = (open(&club, BOB, "/deleted"), std::collections::BTreeSet::new());
    assert!(page.contains("graphics"));
    for pages in 1.. {
        found.extend(page.split("\">Event ").skip(1).map(|rest| rest.split('<').next().unwrap().to_owned()));
        let Some(next) = page.split("href=\"").find(|link| link.contains("kind=events")) else {
            assert_eq!(pages, 3);
            break;
        };
        page = open(&club, BOB, &next.split('"').next().unwrap().replace("&amp;", "&"));
        assert!(!page.contains("graphics"), "only events: {page}");
    }
    assert_eq!(found.len(), 120);
}

/// Each field that the history of a kind of objects may have is named in each language.
#[test]
fn every_field_has_a_text() {
    let texts = Texts::new(&INFO.texts);
    let schemas = &DOCUMENT["components"]["schemas"];
    let fields_of = |name: &str| -> Vec<String> {
        let schema = &schemas[name];
        let parts = schema["allOf"].as_array().cloned().unwrap_or_else(|| vec![schema.clone()]);
        let parts = parts.into_iter().map(|part| match part["$ref"].as_str() {
            Some(path) => schemas[path.rsplit('/').next().unwrap()].clone(),
            None => part,
        });
        parts.flat_map(|part| part["properties"].as_object().unwrap().keys().cloned().collect::<Vec<_>>()).collect()
    };
    let kinds: [(&Kind, &str, usize); 4] = [
        (&EVENT, "ResponseEvent", 11),
        (&ROOM, "ResponseRoom", 5),
        (&GROUP, "ResponseGroup", 5),
        (&POLL, "ResponseDraftEventDetail", 9),
    ];
    for (kind, schema, number) in kinds {
        let is_shown = |field: &&String| {
            !kind.hidden.contains(&field.as_str()) && !["createdAt", "createdBy", "updatedAt"].contains(&field.as_str())
        };
        let all = fields_of(schema);
        let shown: Vec<_> = all.iter().filter(is_shown).collect();
        assert!(shown.len() >= number, "{schema}: {shown:?}");
        for (field, language) in shown.iter().flat_map(|field| Language::ALL.map(|language| (field, language))) {
            assert!(
                texts.find(language, &format!("field-{field}"), &[]).is_some(),
                "{language:?} has no field-{field}"
            );
        }
    }
}

#[rstest]
fn groups_polls_and_rooms_tell_their_changes(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let made = group(&club, BOB, "graphics", &[CAROL]);
    let body = json!({"name": "art", "description": "", "open": true, "members": [id(DAVE)], "admins": [id(BOB)]});
    club.by(BOB).put(&format!("/api/groups/{made}"), body).expect(200);
    let shown = open(&club, BOB, &format!("/groups/{made}"));
    for part in ["let anybody join", "added DAVE to the members", "removed CAROL from the members", "to “art”"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let (path, slots) = poll(&club, BOB, json!({}));
    let page_path = format!("/polls/{}", path.rsplit('/').next().unwrap());
    club.by(BOB).put(&path, json!({"invitees": [id(CAROL)], "open": true})).expect(200);
    let confirmation = json!({"slotId": slots[0], "place": "Discord", "groupId": EVERYONE});
    club.by(BOB).post(&format!("{path}/confirm"), confirmation).expect(201);
    let shown = open(&club, BOB, &page_path);
    for part in ["BOB made an event of it.", "added CAROL to those who are asked", "let everybody answer"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let stock = verified_room(&club, BOB, "S516", (1, 5));
    let shown = open(&club, BOB, &format!("/rooms/{stock}"));
    assert!(shown.contains("ALICE confirmed it.") && shown.contains("BOB created it."), "{shown}");
    // An event moves from one room to another of the same place.
    let (first, second) = (room(&club, BOB, "S600", (10, 20)), room(&club, BOB, "S600", (15, 30)));
    let moved = event(&club, BOB, At::Room(&first), (16, 17));
    club.by(BOB).put(&format!("/api/events/{moved}"), event_body(&club, BOB, At::Room(&second), (16, 17))).expect(200);
    assert!(open(&club, BOB, &format!("/events/{moved}")).contains("moved it from the room S600 ("));
}

#[rstest]
fn a_long_history_has_pages(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let made = event(&club, BOB, At::Place("S516"), (1, 2));
    for n in 0..60 {
        let tag = if n % 2 == 0 { "POST" } else { "DELETE" };
        let path = format!("/api/events/{made}/tags{}", if n % 2 == 0 { "" } else { "/x" });
        let body = (n % 2 == 0).then(|| json!({"name": "x"}));
        club.by(BOB).send(tag, &path, body).expect(204);
    }
    let shown = open(&club, BOB, &format!("/events/{made}"));
    let path = format!("/events/{made}/history");
    assert!(shown.contains(&format!("href=\"{path}\"")), "{shown}");
    let first = open(&club, BOB, &path);
    assert_eq!((first.matches("<li>").count(), first.contains("created it.")), (50, false));
    let next = first.split(&format!("{path}?before=")).nth(1).unwrap().split('"').next().unwrap();
    let second = open(&club, BOB, &format!("{path}?before={next}"));
    assert_eq!((second.matches("<li>").count(), second.contains("created it.")), (11, true));
    assert!(first.len() < 60_000, "{}", first.len());
}

#[rstest]
fn queries_use_indexes(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let made = event(&club, BOB, At::Place("S516"), (1, 2));
    club.by(BOB).delete(&format!("/api/events/{made}")).expect(204);
    let long_ago = DbTimestamp(club.clock.now().plus(-chrono::TimeDelta::days(30)));
    for subject in Subject::ALL {
        for admin in [None, Some(id(BOB))] {
            plans::check_page(&club, |conn| {
                deleted_after(conn, subject, long_ago, admin, None).unwrap();
                deleted_after(conn, subject, long_ago, admin, Some((long_ago, id(BOB)))).unwrap();
            });
        }
        plans::check(&club, |conn| {
            summary(conn, subject, id(BOB)).unwrap();
        });
    }
    assert_eq!(deleted_after(&mut club.connect(), Subject::Event, long_ago, Some(id(BOB)), None).unwrap().len(), 1);
}
