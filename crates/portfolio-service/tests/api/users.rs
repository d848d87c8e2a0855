//! Users.

use serde_json::json;

use crate::harness::{ALICE, SUSAN, id, on_both};

on_both! {
    the_list_is_ordered_by_name_and_has_active_users_only_unless_asked(club) {
        let names = |query: &str| -> Vec<String> {
            let users = club.anonymous().get(&format!("/api/v1/users{query}")).expect(200).json();
            users.as_array().unwrap().iter().map(|user| user["name"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names(""), ["alice", "bob", "carol", "dave"]);
        assert_eq!(names("?includeSuspended=false"), ["alice", "bob", "carol", "dave"]);
        assert_eq!(names("?includeSuspended=true"), ["alice", "bob", "carol", "dave", "dora", "susan"]);
        assert_eq!(names("?limit=2"), ["alice", "bob"]);
        assert_eq!(names("?name=susan"), ["susan"]);
        assert_eq!(names("?name=Susan"), [""; 0]);
        let bad = |query: &str| club.anonymous().get(&format!("/api/v1/users{query}")).expect(400).pointers();
        assert_eq!(bad("?name=bob&includeSuspended=true"), ["name"]);
        assert_eq!(bad("?name=bob&includeSuspended=false"), ["name"]);
        assert_eq!(bad("?limit=0&includeSuspended=1"), ["includeSuspended", "limit"]);
        assert_eq!(bad("?limit=1001"), ["limit"]);
        let alice = club.by(SUSAN).get("/api/v1/users?name=alice").expect(200).json();
        assert_eq!(alice, json!([{"id": id(ALICE), "name": ALICE, "realName": ""}]));
    }
}
