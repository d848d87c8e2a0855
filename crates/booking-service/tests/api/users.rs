//! Users.

use crate::harness::{ALICE, BOB, SUSAN, on_both};

on_both! {
    the_list_is_ordered_by_name_and_leaves_suspended_users_out_by_default(club) {
        let names = |path: &str| -> Vec<String> {
            let users = club.by(BOB).get(path).expect(200).json();
            users.as_array().unwrap().iter().map(|user| user["name"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names("/api/users"), ["alice", "bob", "carol", "dave"]);
        assert_eq!(names("/api/users?include-suspended=true"), ["alice", "bob", "carol", "dave", "susan"]);
        assert_eq!(club.by(BOB).get("/api/users?include-suspended=1").expect(400).pointers(), ["include-suspended"]);
    }

    everything_needs_sign_in(club) {
        club.anonymous().get("/api/users").refused(401, "not-signed-in");
        club.anonymous().header("cookie", "session=wrong").get("/api/users/me").refused(401, "bad-credentials");
        club.by(SUSAN).get("/api/users/me").refused(403, "account-inactive");
        assert_eq!(club.by(ALICE).get("/api/users/me").expect(200).json()["privileged"], true);
        club.by(ALICE).get("/api/nowhere").refused(404, "not-found");
        assert_eq!(club.by(ALICE).delete("/api/users").expect(405).header("allow"), Some("GET, HEAD"));
        let icon = club.by(BOB).get("/api/users/me").json()["icon"].as_str().unwrap().to_owned();
        assert!(icon.ends_with("/icons/bob.svg"), "{icon}");
    }
}
