//! The pages on which members act: they do what the operations do, and a refusal loses nothing.

use std::{collections::BTreeSet, path::Path};

use diesel::prelude::*;
use portfolio_service::{account_type::AccountType, server::INFO};
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    builders::{NOBODY, contest, member, project, semester, span, team},
    front_page::{
        forms::{HTML, attribute, fields, open, send, set},
        page,
    },
    harness::{
        ALICE, BOB,
        Backend::{self, Postgres, Sqlite},
        CAROL, Club, DAVE, SUSAN, id, real_name,
    },
    real_issuer::real::chromium,
};

fn of_api(club: &Club, path: &str) -> Value {
    club.by(ALICE).get(&format!("/api/v1{path}")).expect(200).json()
}

fn profile(club: &Club, name: &str) -> Value {
    of_api(club, &format!("/users/{}", id(name)))
}

/// The number of changes that the history has.
fn changes(club: &Club) -> usize {
    club.by(ALICE).get("/api/v1/audit").expect(200).json().as_array().unwrap().len()
}

/// Creates a project with carol and dave, and returns its path.
fn with_members(club: &Club) -> String {
    let path = project(club, CAROL, "robot");
    let members = [member(CAROL, (2024, 0), None), member(DAVE, (2023, 0), Some((2024, 1)))];
    club.by(CAROL).put(&format!("{path}/members"), json!({"members": members})).expect(204);
    path.replace("/api/v1", "")
}

/// The paths of the pages, with objects that carol may change.
fn paths(club: &Club) -> Vec<String> {
    let project = with_members(club);
    let contest = contest(club, CAROL, "cup");
    let team = team(club, CAROL, &contest, "the team");
    let accounts = format!("/api/v1/users/{}/accounts", id(CAROL));
    let account = json!({"type": 5, "url": "https://github.com/carol", "displayName": "Carol"});
    let account = club.by(CAROL).post(&accounts, account).expect(201).json();
    let last = |path: &str| path.rsplit('/').next().unwrap().to_owned();
    let mut paths = with_values(&[
        ("projectId", &last(&project)),
        ("contestId", &last(&contest)),
        ("teamId", &last(&team)),
        ("accountId", account["id"].as_str().unwrap()),
        ("userId", &id(CAROL).to_string()),
        ("name", CAROL),
    ]);
    paths.retain(|path| !path.starts_with("/groups/"));
    paths
}

/// The paths of the pages, with values for what is in them.
fn with_values(values: &[(&str, &str)]) -> Vec<String> {
    let fill = |path: &&str| {
        values.iter().fold((*path).to_owned(), |path, (name, value)| path.replace(&format!("{{{name}}}"), value))
    };
    INFO.front_page_paths.iter().map(fill).collect()
}

/// Whether everybody may read a page.
fn is_public(path: &str) -> bool {
    let depth = path.matches('/').count();
    !["/me", "/deleted"].contains(&path) && (depth == 1 || depth == 2 && !path.ends_with("/new"))
}

#[rstest]
fn every_page_is_there_in_both_languages_and_only_for_whom_it_is(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let paths = paths(&club);
    assert!(paths.len() > 20);
    for path in paths {
        for language in ["en", "ja"] {
            let by = club.by(CAROL).header("accept", HTML).header("accept-language", language);
            let shown = page::check(&by.get(&path).expect(200));
            assert!(shown.contains(&format!("<html lang=\"{language}\">")), "{shown}");
            assert_eq!(shown.matches("<h1>").count(), 1, "{shown}");
            assert!(!shown.contains(&real_name(CAROL)), "{shown}");
        }
        let nobody = club.anonymous().header("accept", HTML).get(&path);
        if is_public(&path) {
            nobody.expect(200);
            continue;
        }
        let shown = page::check(&nobody.expect(401));
        assert!(
            shown.contains("Please sign in") && shown.contains("<a class=\"button primary\" href=\"/dev/sign-in?to="),
            "{shown}"
        );
        club.anonymous().get(&path).refused(401, "not-signed-in");
        club.by(SUSAN).get(&path).refused(403, "account-inactive");
        let by_dave = club.by(DAVE).header("accept", HTML).get(&path).status;
        let may = ["/me", "/deleted"].contains(&&*path) || path.ends_with("/new") && !path.starts_with("/people");
        // Dave is a member of the project.
        let may = may || path.starts_with("/projects/") && !path.ends_with("/delete");
        assert_eq!(by_dave, if may { 200 } else { 403 }, "{path}");
    }
}

#[rstest]
fn a_member_says_about_themself_what_they_like(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = format!("/people/{}/profile", id(BOB));
    let mut form = fields(&open(&club, BOB, "/me"), &path);
    // Saved as it is, nothing changes.
    let before = changes(&club);
    assert_eq!(send(&club, BOB, &path, &form).expect(303).header("location"), Some("/me?notice=saved"));
    assert!(open(&club, BOB, "/me?notice=saved").contains("Saved."));
    assert_eq!(changes(&club), before);
    form = fields(&open(&club, BOB, "/me"), &path);
    set(&mut form, "bio", "I <draw>.\r\nAnd sing.");
    set(&mut form, "check", "true");
    for _ in 0..2 {
        send(&club, BOB, &path, &form).expect(303);
    }
    assert_eq!(changes(&club), before + 1);
    let shown = profile(&club, BOB);
    assert_eq!((&shown["bio"], &shown["realName"]), (&json!("I <draw>.\nAnd sing."), &json!(real_name(BOB))));
    let mut form = fields(&open(&club, BOB, "/me"), &path);
    set(&mut form, "bio", &"x".repeat(257));
    let refused = page::check(&send(&club, BOB, &path, &form).expect(400));
    assert!(refused.contains("id=\"f-bio-error\">This is too short or too long."), "{refused}");
    assert!(fields(&refused, &path).contains(&("bio".to_owned(), "x".repeat(257))), "{refused}");
    // Not for others, and not from another site.
    send(&club, CAROL, &path, &vec![("bio".to_owned(), "x".to_owned())]).expect(403);
    send(&club, "unknown", &path, &vec![]).expect(403);
    let other = club.by(BOB).header("content-type", "application/x-www-form-urlencoded");
    let other = other.header("origin", "https://evil.example").send_bytes("POST", &path, b"bio=x".to_vec());
    other.refused(403, "cross-site-request");
    assert_eq!(profile(&club, BOB), shown);
    // An admin may.
    assert_eq!(
        send(&club, ALICE, &path, &vec![("bio".to_owned(), "y".to_owned())]).expect(303).header("location"),
        Some("/people?notice=saved")
    );
    assert_eq!(profile(&club, BOB)["realName"], "");
}

#[rstest]
fn members_add_change_and_delete_accounts(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let accounts = || profile(&club, BOB)["accounts"].as_array().unwrap().clone();
    let new = format!("/people/{}/accounts/new", id(BOB));
    let shown = open(&club, BOB, "/me");
    for type_ in AccountType::all() {
        assert!(shown.contains(&format!("href=\"{new}?type={}\"", type_.number())), "{shown}");
        let form = open(&club, BOB, &format!("{new}?type={}", type_.number()));
        assert!(form.contains(&format!("Such as {}</span>", type_.form())), "{form}");
    }
    let mut form = fields(&open(&club, BOB, &format!("{new}?type=5")), &new);
    set(&mut form, "url", "https://example.com/bob");
    set(&mut form, "displayName", "<Bob>");
    let refused = page::check(&send(&club, BOB, &new, &form).expect(400));
    assert!(refused.contains("id=\"f-url-error\">This address does not fit the kind of account."), "{refused}");
    let mut form = fields(&refused, &new);
    assert!(form.contains(&("displayName".to_owned(), "<Bob>".to_owned())), "{form:?}");
    set(&mut form, "url", " https://github.com/bob ");
    for _ in 0..2 {
        send(&club, BOB, &new, &form).expect(303);
    }
    let made = accounts();
    assert_eq!(made.len(), 1);
    assert_eq!((&made[0]["url"], &made[0]["type"]), (&json!("https://github.com/bob"), &json!(5)));
    let second = fields(&open(&club, BOB, &format!("{new}?type=5")), &new);
    let mut second: Vec<_> = second.into_iter().filter(|(name, _)| name != "url" && name != "displayName").collect();
    second.extend([("url", "https://github.com/b"), ("displayName", "b")].map(|(a, b)| (a.to_owned(), b.to_owned())));
    let conflict = page::check(&send(&club, BOB, &new, &second).expect(409));
    assert!(conflict.contains("<h2>There is an account of this kind already</h2>"), "{conflict}");
    assert!(conflict.contains("value=\"https://github.com/b\""), "{conflict}");
    let path = format!("/people/{}/accounts/{}", id(BOB), made[0]["id"].as_str().unwrap());
    let (mut mine, mut theirs) = (fields(&open(&club, BOB, &path), &path), fields(&open(&club, ALICE, &path), &path));
    set(&mut theirs, "displayName", "Theirs");
    send(&club, ALICE, &path, &theirs).expect(303);
    set(&mut mine, "displayName", "Mine");
    let stale = page::check(&send(&club, BOB, &path, &mine).expect(412));
    assert!(stale.contains("Somebody has changed this meanwhile") && stale.contains("(Theirs)"), "{stale}");
    send(&club, BOB, &path, &fields(&stale, &path)).expect(303);
    assert_eq!(accounts()[0]["displayName"], "Mine");
    club.by(CAROL).header("accept", HTML).get(&path).expect(403);
    let delete = format!("{path}/delete");
    send(&club, CAROL, &delete, &vec![]).expect(403);
    send(&club, BOB, &delete, &fields(&open(&club, BOB, &path), &delete)).expect(303);
    assert_eq!(accounts(), Vec::<Value>::new());
    club.by(BOB).header("accept", HTML).get(&path).expect(404);
}

#[rstest]
fn what_an_import_left_keeps_nobody_from_changing_the_rest(#[values(Sqlite, Postgres)] backend: Backend) {
    use portfolio_service::schema::{accounts, projects};
    let club = Club::start(backend);
    let made = project(&club, BOB, "robot");
    let account = json!({"type": 5, "url": "https://github.com/bob", "displayName": "b"});
    let account = club.by(BOB).post(&format!("/api/v1/users/{}/accounts", id(BOB)), account).expect(201).json();
    let conn = &mut club.connect();
    let long = "x".repeat(300);
    diesel::update(projects::table).set(projects::description.eq(&long)).execute(conn).unwrap();
    let columns = (accounts::url.eq("https://gitlab.com/bob"), accounts::display_name.eq(&long));
    diesel::update(accounts::table).set(columns).execute(conn).unwrap();
    let edit = format!("/projects/{}/edit", made.rsplit_once('/').unwrap().1);
    let mut form = fields(&open(&club, BOB, &edit), &edit);
    set(&mut form, "name", "robots");
    send(&club, BOB, &edit, &form).expect(303);
    let shown = club.anonymous().get(&made).expect(200).json();
    assert_eq!((&shown["name"], &shown["description"]), (&json!("robots"), &json!(long)));
    let path = format!("/people/{}/accounts/{}", id(BOB), account["id"].as_str().unwrap());
    let mut form = fields(&open(&club, BOB, &path), &path);
    set(&mut form, "displayName", "Bob");
    send(&club, BOB, &path, &form).expect(303);
    let mut form = fields(&open(&club, BOB, &path), &path);
    set(&mut form, "url", "https://gitlab.com/robert");
    send(&club, BOB, &path, &form).expect(400);
}

#[rstest]
fn projects_are_made_changed_and_deleted(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut form = fields(&open(&club, BOB, "/projects/new"), "/projects/new");
    for (name, value) in [("name", "robot"), ("description", "1\r\n2"), ("link", "club.example"), ("since", "2025-1")] {
        set(&mut form, name, value);
    }
    let refused = page::check(&send(&club, BOB, "/projects/new", &form).expect(400));
    assert!(refused.contains("id=\"f-link-error\">"), "{refused}");
    let mut form = fields(&refused, "/projects/new");
    assert!(form.contains(&("since".to_owned(), "2025-1".to_owned())), "{form:?}");
    set(&mut form, "link", "https://club.example/robot");
    set(&mut form, "until", "2024-0");
    let refused = page::check(&send(&club, BOB, "/projects/new", &form).expect(400));
    assert!(refused.contains("id=\"f-until-error\">The end must be after the start."), "{refused}");
    set(&mut form, "until", "2026-1");
    let made = send(&club, BOB, "/projects/new", &form).expect(303);
    let members = made.header("location").unwrap().to_owned();
    let path = members.strip_suffix("/members").unwrap();
    assert_eq!(send(&club, BOB, "/projects/new", &form).expect(303).header("location"), Some(&*members));
    let saved = || of_api(&club, path);
    assert_eq!((&saved()["description"], &saved()["duration"]), (&json!("1\n2"), &span((2025, 1), Some((2026, 1)))));
    // Oneself first.
    let form = fields(&open(&club, BOB, &members), &members);
    assert!(form.contains(&("names".to_owned(), BOB.to_owned())), "{form:?}");
    send(&club, BOB, &members, &form).expect(303);
    assert_eq!(saved()["members"][0]["duration"], span((2025, 1), Some((2026, 1))));
    let edit = format!("{path}/edit");
    let before = (saved(), changes(&club));
    let unchanged = send(&club, BOB, &edit, &fields(&open(&club, BOB, &edit), &edit)).expect(303);
    assert_eq!((saved(), changes(&club)), before);
    assert!(open(&club, BOB, unchanged.header("location").unwrap()).contains("Saved."));
    let (mut mine, mut theirs) = (fields(&open(&club, BOB, &edit), &edit), fields(&open(&club, ALICE, &edit), &edit));
    set(&mut theirs, "name", "theirs");
    send(&club, ALICE, &edit, &theirs).expect(303);
    set(&mut mine, "name", "mine");
    set(&mut mine, "until", "");
    let stale = page::check(&send(&club, BOB, &edit, &mine).expect(412));
    assert!(stale.contains("<b>theirs</b> October 2025 – March 2027"), "{stale}");
    send(&club, BOB, &edit, &fields(&stale, &edit)).expect(303);
    assert_eq!((&saved()["name"], &saved()["duration"]), (&json!("mine"), &span((2025, 1), None)));
    // The member's end followed that of the project.
    assert_eq!(saved()["members"][0]["duration"], span((2025, 1), None));
    club.by(CAROL).header("accept", HTML).get(&edit).expect(403);
    mine.retain(|(name, _)| name != "_tag");
    send(&club, CAROL, &edit, &mine).expect(403);
    let delete = format!("{path}/delete");
    let form = fields(&open(&club, BOB, &delete), &delete);
    send(&club, CAROL, &delete, &form).expect(403);
    let deleted = send(&club, BOB, &delete, &form).expect(303);
    club.by(BOB).get(path).refused(404, "not-found");
    // The button pressed twice.
    assert_eq!(send(&club, BOB, &delete, &form).expect(303).header("location"), deleted.header("location"));
    let landed = open(&club, BOB, deleted.header("location").unwrap());
    let restore = format!("{path}/restore");
    assert!(landed.contains("Deleted."), "{landed}");
    send(&club, BOB, &restore, &fields(&landed, &restore)).expect(303);
    of_api(&club, path);
}

#[rstest]
fn who_may_not_is_told_so_whatever_is_wrong_besides(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    // Forms that carol may send, and dave or bob may not.
    for path in paths(&club) {
        let by = if path.starts_with("/projects/") { BOB } else { DAVE };
        let is_form = ["/edit", "/delete", "/members"].iter().any(|end| path.ends_with(end))
            || path.contains("/accounts/")
            || path.contains("/members/")
            || path.contains("/teams/") && !path.ends_with("/new");
        if !is_form {
            continue;
        }
        for wrong in [&[("_tag", "x")][..], &[("since", "x"), ("until", "x"), ("names", "nix"), ("type", "x")]] {
            let form = wrong.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            send(&club, by, &path, &form).expect(403);
        }
    }
    let profile = format!("/people/{}/profile", id(CAROL));
    send(&club, BOB, &profile, &vec![("_tag".to_owned(), "x".to_owned())]).expect(403);
}

#[rstest]
fn the_span_of_one_member_changes_no_other(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let project = with_members(&club);
    let of = |name: &str| {
        let members = of_api(&club, &format!("{project}/members"));
        members
            .as_array()
            .unwrap()
            .iter()
            .find(|member| member["name"] == name)
            .map(|member| member["duration"].clone())
    };
    assert!(open(&club, DAVE, "/me").contains(&format!("href=\"{project}/members/{}\"", id(DAVE))));
    let path = format!("{project}/members/{}", id(DAVE));
    let mut form = fields(&open(&club, DAVE, &path), &path);
    // Dave's span is shown within the project's.
    assert!(form.contains(&("since".to_owned(), "2024-0".to_owned())), "{form:?}");
    let before = (of_api(&club, &project), changes(&club));
    set(&mut form, "until", "2023-0");
    let refused = page::check(&send(&club, DAVE, &path, &form).expect(400));
    assert!(refused.contains("id=\"f-until-error\">"), "{refused}");
    assert_eq!((of_api(&club, &project), changes(&club)), before);
    set(&mut form, "until", "");
    send(&club, DAVE, &path, &form).expect(303);
    assert_eq!((of(DAVE), of(CAROL)), (Some(span((2024, 0), None)), Some(span((2024, 0), None))));
    // Both follow the project.
    let ended = json!({"duration": {"since": semester((2024, 0)), "until": semester((2025, 1))}});
    club.by(CAROL).patch(&format!("/api/v1{project}"), ended).expect(204);
    assert_eq!((of(DAVE), of(CAROL)), (Some(span((2024, 0), Some((2025, 1)))), Some(span((2024, 0), Some((2025, 1))))));
    set(&mut form, "_key", "another");
    let stale = page::check(&send(&club, DAVE, &path, &form).expect(412));
    assert!(stale.contains("April 2024 – March 2026"), "{stale}");
    let members = format!("{project}/members");
    let mut form = fields(&open(&club, CAROL, &members), &members);
    set(&mut form, "names", "@Bob, nobody, nix");
    let refused = page::check(&send(&club, CAROL, &members, &form).expect(400));
    assert!(refused.contains("id=\"f-names-error\">There is no member nobody. There is no member nix."), "{refused}");
    let again = fields(&refused, &members);
    assert!(again.contains(&("names".to_owned(), BOB.to_owned())), "{again:?}");
    assert!(again.contains(&("names".to_owned(), "nobody, nix".to_owned())), "{again:?}");
    set(&mut form, "names", "@Bob");
    send(&club, CAROL, &members, &form).expect(303);
    assert!(of(BOB).is_some());
    let leave = format!("{path}/remove");
    send(&club, DAVE, &leave, &fields(&open(&club, DAVE, &path), &leave)).expect(303);
    assert!(of(DAVE).is_none() && of(CAROL).is_some());
    club.by(CAROL).header("accept", HTML).get(&path).expect(404);
    club.by(CAROL).header("accept", HTML).get(&format!("{project}/members/{NOBODY}")).expect(404);
}

#[rstest]
fn contests_and_teams_are_made_changed_and_deleted(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut form = fields(&open(&club, BOB, "/contests/new"), "/contests/new");
    for (name, value) in [("name", "cup"), ("description", "x"), ("since", "2026-04-04T09:00"), ("until", "tomorrow")] {
        set(&mut form, name, value);
    }
    let refused = page::check(&send(&club, BOB, "/contests/new", &form).expect(400));
    assert!(refused.contains("id=\"f-until-error\">Please write the time like 18:30."), "{refused}");
    set(&mut form, "until", "2026-04-03T09:00");
    let refused = page::check(&send(&club, BOB, "/contests/new", &form).expect(400));
    assert!(refused.contains("id=\"f-until-error\">The end must be after the start."), "{refused}");
    let mut form = fields(&refused, "/contests/new");
    set(&mut form, "until", "2026-04-05T18:30");
    let path = send(&club, BOB, "/contests/new", &form).expect(303).header("location").unwrap().to_owned();
    let saved = || of_api(&club, &path);
    let days = json!({"since": "2026-04-04T00:00:00Z", "until": "2026-04-05T09:30:00Z"});
    assert_eq!(saved()["duration"], days);
    // A form keeps the seconds that it does not show.
    let odd = json!({"duration": {"since": "2026-04-04T00:00:07Z", "until": "2026-04-05T09:30:00.5Z"}});
    club.by(BOB).patch(&format!("/api/v1{path}"), odd).expect(204);
    let (edit, before) = (format!("{path}/edit"), (saved(), changes(&club)));
    let mut form = fields(&open(&club, BOB, &edit), &edit);
    send(&club, BOB, &edit, &form).expect(303);
    assert_eq!((saved(), changes(&club)), before);
    set(&mut form, "_key", "another");
    set(&mut form, "until", "");
    send(&club, BOB, &edit, &form).expect(303);
    assert_eq!(saved()["duration"], json!({"since": "2026-04-04T00:00:07Z"}));
    club.by(CAROL).header("accept", HTML).get(&edit).expect(403);

    let new = format!("{path}/teams/new");
    let mut form = fields(&open(&club, CAROL, &new), &new);
    assert!(form.contains(&("members".to_owned(), CAROL.to_owned())), "{form:?}");
    for (name, value) in [("name", "club A"), ("description", "We came."), ("members", "carol nobody")] {
        set(&mut form, name, value);
    }
    let refused = page::check(&send(&club, CAROL, &new, &form).expect(400));
    assert!(refused.contains("id=\"f-members-error\">There is no member nobody."), "{refused}");
    set(&mut form, "members", "carol dave");
    for _ in 0..2 {
        send(&club, CAROL, &new, &form).expect(303);
    }
    let teams = saved()["teams"].as_array().unwrap().clone();
    assert_eq!((teams.len(), teams[0]["members"].as_array().unwrap().len()), (1, 2));
    let team = format!("{path}/teams/{}", teams[0]["id"].as_str().unwrap());
    assert!(open(&club, DAVE, "/me").contains(&format!("href=\"{team}\"")));
    let (mut mine, mut theirs) = (fields(&open(&club, DAVE, &team), &team), fields(&open(&club, BOB, &team), &team));
    set(&mut theirs, "members", "carol dave bob");
    send(&club, BOB, &team, &theirs).expect(303);
    set(&mut mine, "result", "3rd");
    let before = changes(&club);
    let stale = page::check(&send(&club, DAVE, &team, &mine).expect(412));
    send(&club, DAVE, &team, &fields(&stale, &team)).expect(303);
    assert_eq!(changes(&club), before + 1, "one row for the team and its members");
    let shown = saved();
    assert_eq!(
        (&shown["teams"][0]["result"], shown["teams"][0]["members"].as_array().unwrap().len()),
        (&json!("3rd"), 2)
    );
    let delete = format!("{team}/delete");
    club.by(DAVE).header("accept", HTML).get(&delete).expect(403);
    send(&club, BOB, &delete, &fields(&open(&club, BOB, &delete), &delete)).expect(303);
    let delete = format!("{path}/delete");
    send(&club, BOB, &delete, &fields(&open(&club, BOB, &delete), &delete)).expect(303);
    club.by(BOB).get(&path).refused(404, "not-found");
}

#[test]
fn a_front_end_takes_the_place_of_the_pages() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("index.html"), "the front end").unwrap();
    let club = Club::start_with(Sqlite, &["--static", folder.path().to_str().unwrap()]);
    for path in paths(&club) {
        assert_eq!(club.by(CAROL).header("accept", HTML).get(&path).expect(200).text(), "the front end", "{path}");
    }
    for path in INFO.front_form_paths {
        let path = path.replace("{userId}", &id(CAROL).to_string());
        assert!(club.by(CAROL).post(&path, json!({})).status >= 400, "{path}");
    }
}

/// Takes seconds: every path is called with every method, some thousand requests.
#[rstest]
fn no_refusal_to_a_person_is_raw(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start_with(backend, &["--rate-limit", "0"]);
    assert_eq!(page::refusals(&club, BOB, &INFO), BTreeSet::from([400, 401, 403, 404, 405, 415]));
    let person = |language: &str| club.by(BOB).header("accept", HTML).header("accept-language", language);
    let account = json!({"type": 5, "url": "https://github.com/bob", "displayName": "Bob"});
    let accounts = format!("/api/v1/users/{}/accounts", id(BOB));
    person("ja").post(&accounts, account.clone()).expect(201);
    assert!(page::check(&person("ja").post(&accounts, account).expect(409)).contains("すでにあります"));
}

#[test]
fn every_page_is_listed() {
    page::check_lists(include_str!("../../src/pages/mod.rs"), &INFO);
}

#[test]
fn every_page_can_be_read_on_each_screen() {
    let club = Club::start_empty(Sqlite, &["--demo", "--club-name", "Tea club"]);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let first = |path: &str| text(&of_api(&club, path)[0]["id"]);
    let (project, contest, group) = (first("/projects"), first("/contests"), first("/groups"));
    let team = first(&format!("/contests/{contest}/teams"));
    let members = of_api(&club, &format!("/projects/{project}"))["members"].as_array().unwrap().clone();
    let has_page = |member: &&Value| {
        let user = of_api(&club, &format!("/users/{}", member["id"].as_str().unwrap()));
        user["state"] == 1 && user["accounts"] != json!([])
    };
    let member = members.iter().find(has_page).unwrap();
    let (user, name) = (text(&member["id"]), text(&member["name"]));
    let account = first(&format!("/users/{user}/accounts"));
    let mut pages: Vec<_> = with_values(&[
        ("projectId", &project),
        ("contestId", &contest),
        ("teamId", &team),
        ("accountId", &account),
        ("userId", &user),
        ("name", &name),
        ("groupId", &group),
    ])
    .into_iter()
    .chain(["/developers", "/problems"].map(str::to_owned))
    .map(|path| (path, 200))
    .collect();
    for (path, status) in [("/nowhere", 404), ("/projects/x", 400), ("/people/nobody", 404), ("/api/v1/users/x", 400)] {
        pages.push((path.to_owned(), status));
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("screenshots").join("portfolio-pages");
    let variables = [
        ("ORIGIN", club.origin(0)),
        ("COOKIE", "development_user=alice"),
        ("PAGES", &json!(pages).to_string()),
        ("FOLDER", folder.to_str().unwrap()),
    ];
    let wrong = chromium(include_str!("../../../service-kit/tests/real/pages.mjs"), &variables);
    assert_eq!(wrong, json!([]), "pictures are in {}", folder.display());
}

#[test]
fn a_form_goes_only_where_there_is_one() {
    let club = Club::start(Sqlite);
    for (method, path) in
        [("POST", "/me"), ("POST", "/projects"), ("DELETE", "/projects/new"), ("PUT", "/contests/new")]
    {
        let answer = club.by(BOB).header("accept", HTML).send(method, path, None).expect(405);
        assert!(answer.header("allow").unwrap().contains("GET"), "{method} {path}");
        page::check(&answer);
    }
    // Each form has a key of its own.
    let key = || {
        let shown = open(&club, BOB, "/projects/new");
        attribute(shown.split_once("name=\"_key\"").unwrap().1, "value").unwrap().to_owned()
    };
    assert_ne!(key(), key());
}
