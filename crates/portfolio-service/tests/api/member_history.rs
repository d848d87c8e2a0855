//! The history of projects and contests on pages, and the list of what was deleted.

use chrono::TimeDelta;
use portfolio_service::deletion::restorable;
use rstest::rstest;
use serde_json::json;
use service_kit::database::types::DbTimestamp;

use crate::{
    builders::{contest, member, project, semester, team},
    front_page::{
        forms::{HTML, fields, open, send},
        page,
    },
    harness::{
        ALICE, BOB,
        Backend::{self, Postgres, Sqlite},
        CAROL, Club, DAVE, id, real_name,
    },
    plans,
};

fn open_in_japanese(club: &Club, by: &str, path: &str) -> String {
    page::check(&club.by(by).header("accept", HTML).header("accept-language", "ja").get(path).expect(200))
}

#[rstest]
fn changes_are_sentences_in_both_languages(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    // What somebody does not publish is in no sentence.
    club.by(BOB).patch(&format!("/api/v1/users/{}", id(BOB)), json!({"check": true})).expect(204);
    let of_api = project(&club, CAROL, "<robot>");
    let path = of_api.replace("/api/v1", "");
    let change = json!({"name": "robots", "link": "https://club.example/?a=1&b=2", "description": "x\ny",
        "duration": {"since": semester((2024, 0)), "until": semester((2025, 1))}});
    club.by(CAROL).patch(&of_api, change).expect(204);
    let members = json!({"members": [member(BOB, (2024, 0), None), member(DAVE, (2024, 1), Some((2024, 1)))]});
    club.by(CAROL).put(&format!("{of_api}/members"), members).expect(204);
    club.by(BOB).put(&format!("{of_api}/members"), json!({"members": []})).expect(204);
    club.by(CAROL).delete(&of_api).expect(204);
    let history = format!("{path}/history");
    let shown = open(&club, CAROL, &history);
    for sentence in [
        "carol created it.",
        "renamed it from “&lt;robot&gt;” to “robots”",
        "changed its time from “since April 2024” to “April 2024 – March 2026”",
        "set the link to “https://club.example/?a=1&amp;b=2”",
        "changed the description",
        "added bob (April 2024 – March 2026), dave (October 2024 – March 2025) to the members.",
        "bob removed bob (April 2024 – March 2026), dave (October 2024 – March 2025) from the members.",
        "carol deleted it.",
    ] {
        assert!(shown.contains(sentence), "{sentence}: {shown}");
    }
    assert!(shown.contains("<h1>History of robots</h1>") && !shown.contains("real name of"), "{shown}");
    assert!(shown.contains(&format!("action=\"{path}/restore\"")), "{shown}");
    let japanese = open_in_japanese(&club, CAROL, &history);
    for sentence in [
        "carolさんが作成しました。",
        "名前を「&lt;robot&gt;」から「robots」に変更",
        "期間を「2024年4月～」から「2024年4月～2026年3月」に変更",
        "メンバーにbob(2024年4月～2026年3月)、dave(2024年10月～2025年3月)を追加しました。",
        "carolさんが削除しました。",
    ] {
        assert!(japanese.contains(sentence), "{sentence}: {japanese}");
    }
    // Only for whom the history of the operation is.
    club.by(DAVE).header("accept", HTML).get(&history).expect(403);
    club.anonymous().header("accept", HTML).get(&history).expect(401);
}

#[rstest]
fn what_was_deleted_comes_back_by_a_button(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let of_project = project(&club, CAROL, "robot");
    let members = json!({"members": [member(BOB, (2024, 0), None)]});
    club.by(CAROL).put(&format!("{of_project}/members"), members).expect(204);
    let of_contest = contest(&club, CAROL, "cup");
    team(&club, BOB, &of_contest, "the team");
    let days = json!({"duration": {"since": "2026-04-03T00:00:00Z", "until": "2026-04-04T20:00:00Z"}});
    club.by(CAROL).patch(&of_contest, days).expect(204);
    let before = [&of_project, &of_contest].map(|path| club.by(CAROL).get(path).expect(200).json());
    assert!(open(&club, CAROL, "/deleted").contains("<p>Nothing.</p>"));
    for path in [&of_project, &of_contest] {
        club.by(CAROL).delete(path).expect(204);
    }
    let paths = [&of_project, &of_contest].map(|path| path.replace("/api/v1", ""));
    for path in &paths {
        for by in [CAROL, ALICE] {
            let shown = open(&club, by, "/deleted");
            assert!(shown.contains(&format!("action=\"{path}/restore\"")) && shown.contains("Deleted on "), "{shown}");
        }
        assert!(open_in_japanese(&club, CAROL, "/deleted").contains("復元できます。"));
        assert!(!open(&club, DAVE, "/deleted").contains(path));
    }
    // A member of the project may read its history, but not restore it.
    let [path, of_cup] = &paths;
    let shown = open(&club, BOB, &format!("{path}/history"));
    assert!(shown.contains("Deleted on ") && !shown.contains("/restore\""), "{shown}");
    let (restore, other) = (format!("{path}/restore"), project(&club, DAVE, "robot"));
    let form = fields(&open(&club, CAROL, "/deleted"), &restore);
    send(&club, BOB, &restore, &form).expect(403);
    let refused = page::check(&send(&club, CAROL, &restore, &form).expect(409));
    assert!(refused.contains("<h2>This name is taken</h2>") && refused.contains("History of robot"));
    club.by(DAVE).delete(&other).expect(204);
    for _ in 0..2 {
        assert_eq!(send(&club, CAROL, &restore, &form).expect(303).header("location"), Some(path.as_str()));
    }
    let restore = format!("{of_cup}/restore");
    send(&club, CAROL, &restore, &fields(&open(&club, CAROL, &format!("{of_cup}/history")), &restore)).expect(303);
    let after = [&of_project, &of_contest].map(|path| club.by(CAROL).get(path).expect(200).json());
    assert_eq!(after, before);
    let shown = open(&club, CAROL, &format!("{of_cup}/history"));
    for sentence in ["carol brought it back.", "from “since 1 April 2026” to “3 April 2026 – 5 April 2026”"] {
        assert!(shown.contains(sentence), "{sentence}: {shown}");
    }
    club.by(CAROL).delete(&of_contest).expect(204);
    club.clock.advance(TimeDelta::days(30));
    assert!(open(&club, CAROL, "/deleted").contains("<p>Nothing.</p>"));
    let shown = open(&club, CAROL, &format!("{of_cup}/history"));
    assert!(shown.contains("Deleted on ") && !shown.contains("/restore\""), "{shown}");
}

#[rstest]
fn a_long_history_has_pages(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = project(&club, CAROL, "robot 0");
    for n in 1..=50 {
        club.by(CAROL).patch(&path, json!({"name": format!("robot {n}")})).expect(204);
    }
    let history = format!("{}/history", path.replace("/api/v1", ""));
    let first = open(&club, CAROL, &history);
    assert!(
        first.contains("to “robot 50”") && first.contains("to “robot 1”") && !first.contains("created it"),
        "{first}"
    );
    let next = first.split("<a href=\"").find(|link| link.starts_with(&format!("{history}?before="))).unwrap();
    let second = open(&club, CAROL, next.split('"').next().unwrap());
    assert!(second.contains("carol created it.") && !second.contains("renamed"), "{second}");
    open(&club, CAROL, &format!("{history}?before=x"));
}

#[rstest]
fn everything_that_was_deleted_is_on_a_page(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for n in 0..60 {
        let path = project(&club, CAROL, &format!("robot {n}"));
        club.by(CAROL).delete(&path).expect(204);
    }
    let first = open(&club, CAROL, "/deleted");
    let next = first.split("href=\"").find(|link| link.starts_with("/deleted?after=")).unwrap();
    let second = open(&club, CAROL, &next.split('"').next().unwrap().replace("&amp;", "&"));
    let count = |page: &str| page.matches("\">robot ").count();
    assert_eq!((count(&first), count(&second), second.contains("/deleted?after=")), (50, 10, false));
}

#[rstest]
fn queries_use_indexes(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = project(&club, CAROL, "robot");
    club.by(CAROL).delete(&path).expect(204);
    let now = DbTimestamp(club.clock.now());
    plans::check(&club, |conn| {
        assert_eq!(restorable(conn, Some(id(CAROL)), now, None, 200).unwrap().len(), 1);
        assert_eq!(
            restorable(conn, None, now, Some((DbTimestamp(now.plus(chrono::TimeDelta::hours(1))), id(CAROL))), 200)
                .unwrap()
                .len(),
            1
        );
    });
    assert!(!open(&club, CAROL, "/deleted").contains(&real_name(CAROL)));
}
