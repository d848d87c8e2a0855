//! Invitations: links by which people become members.

use std::thread;

use booking_service::schema::invitations;
use chrono::TimeDelta;
use diesel::prelude::*;
use serde_json::{Value, json};
use service_kit::database::types::DbTimestamp;

use crate::{
    harness::{ALICE, Answer, BOB, Backend, CAROL, Club, id},
    issuer::{Issuer, PUBLIC, start},
    process::program,
    sign_in::{Browser, HTML, both, sign_in},
};

/// A club into which only an invitation leads.
fn closed(backend: Backend) -> (Club, Issuer) {
    let issuer = Issuer::start();
    let club = start(backend, &issuer.options(), &["--required-claim", "member=yes"]);
    (club, issuer)
}

/// The path of a new invitation's page.
fn invite(club: &Club, body: Value) -> String {
    let made = club.by(ALICE).post("/api/invitations", body).expect(201);
    let url = made.json()["url"].as_str().unwrap().to_owned();
    url.strip_prefix(PUBLIC).unwrap().to_owned()
}

/// Joins by a link, or not.
fn join(browser: &mut Browser, issuer: &Issuer, path: &str) -> Answer {
    let url = browser.get(&format!("{path}/sign-in")).expect(303).header("location").unwrap().to_owned();
    browser.get(&issuer.approve(&url))
}

fn listed(club: &Club) -> Vec<Value> {
    club.by(ALICE).get("/api/invitations").expect(200).json().as_array().unwrap().clone()
}

#[test]
fn who_is_invited_joins_and_stays() {
    both(|backend| {
        let (club, issuer) = closed(backend);
        issuer.is_now("newcomer", "newcomer");
        sign_in(&mut Browser::new(&club), &issuer).refused(403, "not-a-member");
        let path = invite(&club, json!({"uses": 2}));
        let mut browser = Browser { accept: HTML, ..Browser::new(&club) };
        let page = browser.get(&path).expect(200).text();
        assert!(page.contains("You are invited") && page.contains(&format!("href=\"{path}/sign-in\"")), "{page}");
        join(&mut browser, &issuer, &path).expect(302);
        assert_eq!(browser.who().as_deref(), Some("newcomer"));
        let list = listed(&club);
        assert_eq!((&list[0]["used"], &list[0]["uses"], &list[0]["privileged"]), (&json!(1), &json!(2), &json!(false)));
        assert_eq!(list[0]["createdBy"], json!(id(ALICE)));
        assert!(list[0].get("url").is_none());
        // Without the link as well, and once more with it: it is not used again.
        sign_in(&mut Browser::new(&club), &issuer).expect(302);
        join(&mut Browser::new(&club), &issuer, &path).expect(302);
        assert_eq!(listed(&club)[0]["used"], 1);
        // A member needs none.
        issuer.set(|now| now.user = json!({"sub": "bob", "preferred_username": BOB, "member": "yes"}));
        join(&mut Browser::new(&club), &issuer, &path).expect(302);
        assert_eq!(listed(&club)[0]["used"], 1);
        issuer.is_now("other", "other");
        join(&mut Browser::new(&club), &issuer, &path).expect(302);
        assert!(listed(&club).is_empty());
        issuer.is_now("third", "third");
        assert!(browser.get(&path).expect(404).text().contains("This invitation has ended"));
        join(&mut Browser::new(&club), &issuer, &path).refused(403, "not-a-member");
        // The history says who has joined, and no secret.
        let history = club.by(ALICE).get("/api/audit").expect(200).json();
        let rows: Vec<_> = history.as_array().unwrap().iter().filter(|row| row["objectType"] == "invitation").collect();
        assert_eq!(rows.iter().filter(|row| row["action"] == "changed").count(), 2, "{rows:?}");
        let secret = path.rsplit('/').next().unwrap();
        assert!(!history.to_string().contains(secret));
    });
}

#[test]
fn an_invitation_with_the_privilege_gives_it() {
    both(|backend| {
        let (club, issuer) = closed(backend);
        let path = invite(&club, json!({"privileged": true}));
        issuer.is_now("chief", "chief");
        let mut browser = Browser::new(&club);
        join(&mut browser, &issuer, &path).expect(302);
        assert_eq!(browser.get("/api/users/me").json()["privileged"], true);
        // Also to somebody who is a member already.
        let path = invite(&club, json!({"privileged": true}));
        issuer.set(|now| now.user = json!({"sub": "bob", "preferred_username": BOB, "member": "yes"}));
        let mut browser = Browser::new(&club);
        join(&mut browser, &issuer, &path).expect(302);
        assert_eq!(browser.get("/api/users/me").json()["privileged"], true);
        assert!(listed(&club).is_empty());
    });
}

#[test]
fn one_invitation_lets_in_as_many_as_it_says_at_the_same_time() {
    both(|backend| {
        let (club, issuer) = closed(backend);
        let path = invite(&club, json!({"uses": 3}));
        issuer.set(|now| now.keeps_users = true);
        let begun: Vec<_> = (0..8)
            .map(|number| {
                let user =
                    json!({"sub": number.to_string(), "preferred_username": format!("guest{number}"), "member": "no"});
                issuer.set(|now| now.user = user);
                let mut browser = Browser::new(&club);
                let url = browser.get(&format!("{path}/sign-in")).expect(303).header("location").unwrap().to_owned();
                (browser, issuer.approve(&url))
            })
            .collect();
        let mut statuses: Vec<u16> = thread::scope(|scope| {
            let finish = |(mut browser, callback): (Browser<'_>, String)| browser.get(&callback).status;
            let tasks: Vec<_> = begun.into_iter().map(|begun| scope.spawn(move || finish(begun))).collect();
            tasks.into_iter().map(|task| task.join().unwrap()).collect()
        });
        statuses.sort_unstable();
        assert_eq!(statuses, [302, 302, 302, 403, 403, 403, 403, 403]);
        assert!(listed(&club).is_empty());
    });
}

#[test]
fn an_invitation_that_is_guessed_old_deleted_or_of_a_former_privileged_user_leads_nowhere() {
    both(|backend| {
        let (club, issuer) = closed(backend);
        issuer.is_now("newcomer", "newcomer");
        let refused = |path: &str| {
            club.anonymous().get(path).expect(404);
            join(&mut Browser::new(&club), &issuer, path).refused(403, "not-a-member");
        };
        for guess in ["/join/guessed", "/join/%00", "/join/a%2Fb"] {
            refused(guess);
        }
        let deleted = invite(&club, json!({}));
        let invitation = listed(&club)[0]["invitationId"].as_str().unwrap().to_owned();
        club.by(ALICE).delete(&format!("/api/invitations/{invitation}")).expect(204);
        club.by(ALICE).delete(&format!("/api/invitations/{invitation}")).refused(404, "not-found");
        refused(&deleted);
        let path = invite(&club, json!({"uses": 9, "days": 30}));
        club.by(ALICE).patch(&format!("/api/users/{}/privileged", id(CAROL)), json!({"privileged": true})).expect(204);
        club.by(CAROL).patch(&format!("/api/users/{}/privileged", id(ALICE)), json!({"privileged": false})).expect(204);
        refused(&path);
        club.by(CAROL).patch(&format!("/api/users/{}/privileged", id(ALICE)), json!({"privileged": true})).expect(204);
        club.anonymous().get(&path).expect(200);
        let past = DbTimestamp(club.clock.now().plus(-TimeDelta::seconds(1)));
        diesel::update(invitations::table).set(invitations::expires_at.eq(past)).execute(&mut club.connect()).unwrap();
        refused(&path);
    });
}

#[test]
fn numbers_have_bounds_and_a_club_at_most_100_invitations() {
    both(|backend| {
        let (club, _issuer) = closed(backend);
        let alice = club.by(ALICE);
        for body in [json!({"uses": 0}), json!({"uses": 1001}), json!({"days": 0}), json!({"days": 91})] {
            alice.post("/api/invitations", body).refused(400, "invalid-body");
        }
        for body in [json!({"uses": "5"}), json!({"uses": 1.5}), json!({"uses": -1})] {
            alice.post("/api/invitations", body).refused(400, "invalid-body");
        }
        for _ in 0..100 {
            alice.post("/api/invitations", json!({})).expect(201);
        }
        alice.post("/api/invitations", json!({})).refused(409, "too-many-invitations");
        // Those that have ended do not count.
        club.clock.advance(TimeDelta::days(8));
        alice.post("/api/invitations", json!({})).expect(201);
        assert_eq!(listed(&club).len(), 1);
    });
}

#[test]
fn the_command_line_invites_the_first_privileged_user() {
    both(|backend| {
        let (club, issuer) = closed(backend);
        let invite = ["invite", "--privileged", "--public-url", PUBLIC, "--database-url", club.url(), "--log", "off"];
        let printed = program(&invite).output().unwrap();
        assert!(printed.status.success(), "{printed:?}");
        let printed = String::from_utf8(printed.stdout).unwrap();
        let path = printed.trim().strip_prefix(PUBLIC).unwrap().to_owned();
        issuer.is_now("chief", "chief");
        let mut browser = Browser::new(&club);
        join(&mut browser, &issuer, &path).expect(302);
        assert_eq!(browser.get("/api/users/me").json()["privileged"], true);
    });
}

#[test]
fn the_page_makes_a_link_with_a_code_and_deletes_it() {
    both(|backend| {
        let (club, _issuer) = closed(backend);
        let alice = club.by(ALICE).header("accept", HTML);
        let form = alice.clone().header("content-type", "application/x-www-form-urlencoded");
        let send = |path: &str, body: &str| form.send_bytes("POST", path, body.as_bytes().to_vec());
        let made = send("/invitations", "uses=20&days=7").expect(201).text();
        assert!(made.contains(&format!("value=\"{PUBLIC}/join/")) && made.contains("<svg"), "{made}");
        let refused = send("/invitations", "uses=many&days=7").expect(400).text();
        assert!(refused.contains("value=\"many\""), "{refused}");
        let page = alice.get("/invitations").expect(200).text();
        assert!(page.contains("0 of 20 have joined") && !page.contains("/join/"), "{page}");
        let delete =
            page.split("action=\"").find(|part| part.contains("/delete\"")).unwrap().split('"').next().unwrap();
        send(delete, "x=y").expect(303);
        assert!(listed(&club).is_empty());
        club.by(BOB).header("accept", HTML).get("/invitations").expect(403);
    });
}
