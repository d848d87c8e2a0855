//! The page of a series: its dates and answers, what adds and deletes dates, and what takes a deletion back.

use chrono::TimeDelta;
use common::time::Timestamp;
use rstest::rstest;

use crate::{
    builders::{each, text},
    front_page::{
        forms::{Fields, fields, open, send, set},
        page,
    },
    harness::{
        ALICE, BOB,
        Backend::{self, Postgres, Sqlite},
        CAROL, Club, id,
    },
    series::{book_on, series, verified_on},
    sign_in::HTML,
};

/// A series of BOB on Tuesdays from 1 January 2030.
struct Made {
    /// Of the operation.
    path: String,
    id: String,
    /// Of the page.
    page: String,
    /// Those of its events.
    dates: Vec<String>,
}

fn weekly(club: &Club, number: usize) -> Made {
    let (path, made) = series(club, BOB, "S516", &format!("FREQ=WEEKLY;COUNT={number}"));
    let id = text(&made["seriesId"]);
    Made { path, page: format!("/series/{id}"), id, dates: each(&made["events"], "eventId") }
}

impl Made {
    /// The ids of its events.
    fn left(&self, club: &Club) -> Vec<String> {
        each(&club.by(BOB).get(&self.path).expect(200).json()["events"], "eventId")
    }

    /// The days of its events.
    fn days(&self, club: &Club) -> Vec<String> {
        let starts = each(&club.by(BOB).get(&self.path).expect(200).json()["events"], "timeStart");
        starts.iter().map(|start| start[..10].to_owned()).collect()
    }
}

#[rstest]
fn the_page_shows_all_dates_and_answers(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let Made { page, id, dates, .. } = weekly(&club, 5);
    let shown = open(&club, CAROL, &format!("/events/{}", dates[1]));
    assert!(shown.contains("Date 2 of 5 of a series"), "{shown}");
    assert!(shown.contains(&format!("<a href=\"{page}\">All dates (5)</a>")), "{shown}");
    let path = format!("/events/{}/answer", dates[0]);
    let mut one = fields(&open(&club, CAROL, &format!("/events/{}", dates[0])), &path);
    set(&mut one, "schedule", "attendance");
    send(&club, CAROL, &path, &one).expect(303);
    let shown = open(&club, CAROL, &page);
    assert!(dates.iter().all(|date| shown.contains(&format!("href=\"/events/{date}\""))), "{shown}");
    assert!(shown.contains("5 dates, 5 to come") && shown.contains("Tue 8 Jan 2030"), "{shown}");
    assert_eq!(shown.matches("1 going, 0 not going, ").count(), 1, "{shown}");
    assert_eq!(shown.matches("<span class=\"badge good\">Going</span>").count(), 1, "{shown}");
    // One answer to all. It leads back.
    let mut all = fields(&shown, &path);
    set(&mut all, "schedule", "absent");
    assert_eq!(send(&club, CAROL, &path, &all).expect(303).header("location"), Some(page.as_str()));
    let shown = open(&club, CAROL, &page);
    assert_eq!(shown.matches("0 going, 1 not going, ").count(), 5, "{shown}");
    assert_eq!(shown.matches("<span class=\"badge\">Not going</span>").count(), 5, "{shown}");
    // Whoever may not change it sees no way to.
    for part in ["/delete\"", "/edit", "id=\"add\"", "Last day", "Recently deleted"] {
        assert!(!shown.contains(part), "{part} in {shown}");
    }
    club.by(CAROL).header("accept", HTML).get(&format!("{page}/delete")).expect(403);
    let japanese = club.by(BOB).header("accept", HTML).header("accept-language", "ja").get(&page).expect(200);
    assert!(page::check(&japanese).contains("全5回・残り5回"), "{japanese:?}");
    // Whoever signs in returns to it.
    let nobody = page::check(&club.anonymous().header("accept", HTML).get(&page).expect(401));
    assert!(nobody.contains(&format!("href=\"/sign-in?to=%2Fseries%2F{id}\"")), "{nobody}");
    // A date that was changed alone says so.
    let edit = format!("/events/{}/edit", dates[3]);
    let mut form = fields(&open(&club, BOB, &edit), &edit);
    set(&mut form, "name", "Night");
    send(&club, BOB, &edit, &form).expect(303);
    let first: Timestamp = "2030-01-09T00:00:00Z".parse().unwrap();
    club.clock.advance(first - club.clock.now());
    let shown = open(&club, BOB, &page);
    assert!(shown.contains("5 dates, 3 to come") && shown.contains("2 past dates"), "{shown}");
    assert!(shown.contains("<small>Night</small>") && shown.matches("changed alone").count() == 1, "{shown}");
    // The form of later dates is that of the next one.
    let edit = format!("/events/{}/edit", dates[2]);
    assert!(shown.contains(&format!("href=\"{edit}?scope=later\"")), "{shown}");
    let form = fields(&open(&club, BOB, &format!("{edit}?scope=later")), &edit);
    assert!(form.contains(&("scope".to_owned(), "later".to_owned())), "{form:?}");
}

#[rstest]
fn the_longest_series_is_on_a_page(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (_, made) = series(&club, BOB, "S516", "FREQ=DAILY;COUNT=100");
    let path = format!("/series/{}", text(&made["seriesId"]));
    for language in ["en", "ja"] {
        let by = club.by(BOB).header("accept", HTML).header("accept-language", language);
        let shown = page::check(&by.get(&path).expect(200));
        assert_eq!(shown.matches("<th scope=\"row\">").count(), 100, "{shown}");
    }
}

#[rstest]
fn a_deletion_of_several_dates_is_taken_back_at_once(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let made = weekly(&club, 5);
    let (page, dates, restore) = (&made.page, &made.dates, format!("{}/restore", made.page));
    let rows = || {
        let rows = club.by(ALICE).get(&format!("/api/audit?object={}&action=deleted", made.id)).expect(200).json();
        rows.as_array().unwrap().len()
    };
    // From the page of a date, which says how many there are.
    let path = format!("/events/{}/delete", dates[2]);
    let shown = open(&club, BOB, &path);
    for text in ["Only this date", "This and all later dates (3)", "All dates (5)"] {
        assert!(shown.contains(text), "{text} in {shown}");
    }
    let mut form = fields(&shown, &path);
    set(&mut form, "scope", "later");
    let landed = send(&club, BOB, &path, &form).expect(303);
    assert_eq!(landed.header("location"), Some(format!("{page}?notice=deleted&deleted={}", made.id).as_str()));
    assert_eq!((made.left(&club), rows()), (dates[..2].to_vec(), 1));
    let shown = open(&club, BOB, landed.header("location").unwrap());
    assert!(shown.contains("Deleted.") && shown.contains("Undo"), "{shown}");
    let undo = fields(&shown, &restore);
    send(&club, CAROL, &restore, &undo).expect(403);
    assert_eq!(send(&club, BOB, &restore, &undo).expect(303).header("location"), Some(page.as_str()));
    assert_eq!(&made.left(&club), dates);
    send(&club, BOB, &restore, &Fields::new()).expect(404);

    // From the page of the series, by whoever has seen which dates there are.
    let path = format!("{page}/delete");
    let shown = open(&club, BOB, &path);
    assert!(shown.contains("Dates to come (5)") && shown.contains("All dates (5)"), "{shown}");
    let mut stale = fields(&shown, &path);
    club.by(BOB).delete(&format!("/api/events/{}", dates[0])).expect(204);
    set(&mut stale, "scope", "all");
    page::check(&send(&club, BOB, &path, &stale).expect(412));
    let mut form = fields(&open(&club, BOB, &path), &path);
    set(&mut form, "scope", "all");
    send(&club, CAROL, &path, &form).expect(403);
    send(&club, BOB, &path, &form).expect(303);
    assert_eq!((made.left(&club), rows()), (Vec::new(), 2));
    // Without dates it is there for those who may restore them, deletion by deletion.
    club.by(CAROL).header("accept", HTML).get(page).expect(404);
    let shown = open(&club, BOB, page);
    assert!(shown.contains("No dates.") && shown.contains("4 dates, Deleted on"), "{shown}");
    let last = fields(&shown, &restore);
    assert!(last.iter().any(|(name, _)| name == "at"), "{last:?}");
    send(&club, BOB, &restore, &last).expect(303);
    assert_eq!(made.left(&club), dates[1..]);
    let first = fields(&open(&club, BOB, page), &restore);
    send(&club, BOB, &restore, &first).expect(303);
    assert_eq!(&made.left(&club), dates);

    // Nothing comes back if one date is taken, and after a month nothing at all.
    let mut form = fields(&open(&club, BOB, &path), &path);
    set(&mut form, "scope", "later");
    send(&club, BOB, &path, &form).expect(303);
    verified_on(&club, "S516", "2030-01-15");
    book_on(&club, "S516", "2030-01-15");
    let last = fields(&open(&club, BOB, page), &restore);
    let refused = page::check(&send(&club, BOB, &restore, &last).expect(409));
    assert!(refused.contains("Already there at that time:"), "{refused}");
    assert_eq!(made.left(&club), Vec::<String>::new());
    club.clock.advance(TimeDelta::days(31));
    send(&club, BOB, &restore, &last).expect(404);
    club.by(BOB).header("accept", HTML).get(page).expect(404);
}

#[rstest]
fn a_date_is_added_and_the_last_day_is_another(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let made = weekly(&club, 3);
    let (add, until) = (format!("{}/dates", made.page), format!("{}/until", made.page));
    let new = |name: &str, value: &str| {
        let mut form = fields(&open(&club, BOB, &made.page), &add);
        assert!(form.contains(&("from".to_owned(), "18:00".to_owned())), "{form:?}");
        set(&mut form, "date", "2030-01-03");
        set(&mut form, name, value);
        form
    };
    let form = new("endDate", "");
    send(&club, CAROL, &add, &form).expect(403);
    let saved = Some(format!("{}?notice=saved", made.page));
    assert_eq!(send(&club, BOB, &add, &form).expect(303).header("location").map(str::to_owned), saved);
    assert_eq!(made.days(&club), ["2030-01-01", "2030-01-03", "2030-01-08", "2030-01-15"]);
    let refused = page::check(&send(&club, BOB, &add, &new("from", "17:00")).expect(400));
    assert!(refused.contains("Another date of the series is at that time.") && refused.contains("id=\"f-from-error\""));
    assert!(refused.contains("value=\"2030-01-03\""), "what was typed: {refused}");
    let refused = page::check(&send(&club, BOB, &add, &new("endDate", "2030-01-02")).expect(400));
    assert!(refused.contains("id=\"f-until-error\""), "{refused}");

    let end = |day: &str| {
        let mut form = fields(&open(&club, BOB, &made.page), &until);
        set(&mut form, "lastDay", day);
        form
    };
    send(&club, CAROL, &until, &end("2030-01-29")).expect(403);
    let stale = end("2030-01-08");
    assert_eq!(send(&club, BOB, &until, &end("2030-01-29")).expect(303).header("location").map(str::to_owned), saved);
    let longer = ["2030-01-01", "2030-01-03", "2030-01-08", "2030-01-15", "2030-01-22", "2030-01-29"];
    assert_eq!(made.days(&club), longer);
    page::check(&send(&club, BOB, &until, &stale).expect(412));
    let shorter = send(&club, BOB, &until, &end("2030-01-08")).expect(303);
    assert_eq!(made.days(&club), longer[..3]);
    assert!(open(&club, BOB, shorter.header("location").unwrap()).contains("Undo"));
    let refused = page::check(&send(&club, BOB, &until, &end("2020-01-01")).expect(400));
    assert!(refused.contains("Choose today or a later day.") && refused.contains("id=\"f-lastDay-error\""));
    // What is in the way.
    verified_on(&club, "S516", "2030-01-15");
    book_on(&club, "S516", "2030-01-15");
    let refused = page::check(&send(&club, BOB, &until, &end("2030-01-15")).expect(409));
    assert!(refused.contains("The room is taken.") && refused.contains("value=\"2030-01-15\""), "{refused}");
    assert_eq!(made.days(&club), longer[..3]);
}

#[rstest]
fn there_is_no_page_of_an_unknown_series(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let page = format!("/series/{}", id("nothing"));
    for by in [ALICE, BOB] {
        for path in ["", "/delete"] {
            club.by(by).header("accept", HTML).get(&format!("{page}{path}")).expect(404);
        }
        for path in ["/dates", "/until", "/delete", "/restore"] {
            send(&club, by, &format!("{page}{path}"), &Fields::new()).expect(404);
        }
    }
}
