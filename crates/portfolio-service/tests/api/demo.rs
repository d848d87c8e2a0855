//! The made-up club.

use club_directory::demo::{member_id, members};
use portfolio_service::account_type::AccountType;
use serde_json::Value;

use crate::harness::{Backend, Club};

fn list(club: &Club, path: &str) -> Vec<Value> {
    club.anonymous().get(&format!("/api/v1{path}")).expect(200).json().as_array().unwrap().clone()
}

fn the_demo_has_data_of_every_kind(backend: Backend) {
    let mut club = Club::start_empty(backend, &["--demo"]);
    let replica = club.start_another();
    let users = list(&club, "/users?includeSuspended=true");
    assert_eq!(users.len(), 60);
    let mut accounts = 0;
    for user in &users {
        let name = user["name"].as_str().unwrap();
        assert_eq!(user["id"], member_id(name).to_string(), "as in the booking-service");
        let detail = club.anonymous().get(&format!("/api/v1/users/{}", member_id(name))).expect(200).json();
        for account in detail["accounts"].as_array().unwrap() {
            let type_ = AccountType::from_number(account["type"].as_i64().unwrap()).unwrap();
            assert!(type_.accepts(account["url"].as_str().unwrap()), "{account}");
            accounts += 1;
        }
    }
    assert!(accounts > 60, "{accounts}");
    assert!(members().all(|name| users.iter().any(|user| user["name"] == name)));
    assert!(users.iter().any(|user| user["realName"] != "") && users.iter().any(|user| user["realName"] == ""));

    let groups = list(&club, "/groups");
    assert_eq!(groups.len(), 8);
    for group in groups {
        let group =
            club.anonymous().get(&format!("/api/v1/groups/{}", group["id"].as_str().unwrap())).expect(200).json();
        let spans: Vec<_> = group["members"].as_array().unwrap().iter().map(|member| &member["duration"]).collect();
        assert!(spans.iter().any(|span| span["until"].is_object()) && spans.iter().any(|span| span["until"].is_null()));
        assert!(!group["admin"].as_array().unwrap().is_empty());
    }

    let projects = list(&club, "/projects");
    assert_eq!(projects.len(), 40);
    assert!(projects.iter().any(|project| project["duration"]["until"].is_object()));
    let mut semesters: Vec<_> = projects.iter().map(|project| project["duration"]["since"].to_string()).collect();
    semesters.dedup();
    assert!(semesters.len() >= 6, "{semesters:?}");
    for project in projects {
        let members = list(&club, &format!("/projects/{}/members", project["id"].as_str().unwrap()));
        assert!(members.len() >= 2, "{project}");
    }
    let contests = list(&club, "/contests");
    assert_eq!(contests.len(), 15);
    let mut results = 0;
    for contest in contests {
        let teams = list(&club, &format!("/contests/{}/teams", contest["id"].as_str().unwrap()));
        assert!(!teams.is_empty() && teams.iter().all(|team| team["members"].as_array().unwrap().len() == 3));
        results += teams.iter().filter(|team| team["result"] != "").count();
    }
    assert!(results > 20, "{results}");

    // A sync does not change the demo data.
    let alice = format!("/users/{}/groups", member_id("alice"));
    let before = list(&club, &alice);
    assert!(!before.is_empty());
    let admin = club.by("alice").at(replica);
    admin.send("POST", "/api/v1/users/sync", None).expect(204);
    assert_eq!(list(&club, &alice), before);
}

#[test]
fn sqlite() {
    the_demo_has_data_of_every_kind(Backend::Sqlite);
}

#[test]
fn postgres() {
    the_demo_has_data_of_every_kind(Backend::Postgres);
}
