//! People in forms, by either of their names, and the list of members.

use booking_service::schema::users;
use diesel::prelude::*;
use rstest::rstest;
use service_kit::database::types::{DbTimestamp, DbUuid};

use crate::{
    builders::group,
    front_page::{
        forms::{Fields, fields, open, send, set},
        page,
    },
    harness::{
        ALICE, BOB,
        Backend::{self, Postgres, Sqlite},
        CAROL, Club, DAVE, id,
    },
};

/// Adds active members with these names: for sign-in and shown.
fn join(club: &Club, people: &[(&str, &str)]) {
    let now = DbTimestamp(club.clock.now());
    for (name, shown) in people {
        diesel::insert_into(users::table)
            .values((
                users::id.eq(DbUuid::new()),
                users::name.eq(*name),
                users::display_name.eq(*shown),
                users::icon.eq(""),
                users::state.eq(1_i16),
                users::privileged.eq(false),
                users::created_at.eq(now),
                users::updated_at.eq(now),
            ))
            .execute(&mut club.connect())
            .unwrap();
    }
}

/// The names that are chosen in a field of a form.
fn chosen(form: &Fields, field: &str) -> Vec<String> {
    form.iter().filter(|(name, value)| name == field && !value.is_empty()).map(|(_, value)| value.clone()).collect()
}

#[rstest]
fn people_are_chosen_by_either_name(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    join(&club, &[("zoe1", "Zoé"), ("zoe2", "ZOÉ"), ("smith", "Mary Smith")]);
    let members = |path: &str| {
        let shown = club.by(BOB).get(&format!("/api{path}")).expect(200).json();
        shown["members"].as_array().unwrap().len()
    };
    let shown = open(&club, BOB, "/groups/new");
    assert!(shown.contains("<option value=\"smith\">Mary Smith</option>"), "{shown}");
    let mut form = fields(&shown, "/groups/new");
    assert_eq!((chosen(&form, "members"), chosen(&form, "admins")), (vec![BOB.to_owned()], vec![BOB.to_owned()]));
    set(&mut form, "name", "Band");
    form.push(("members".to_owned(), "mary smith, zoé, @carol\nnix".to_owned()));
    let refused = page::check(&send(&club, BOB, "/groups/new", &form).expect(400));
    let message = "id=\"f-members-error\">Several members are called zoé. Please choose. There is no member nix.";
    assert!(refused.contains(message), "{refused}");
    // Both are offered, and what was found stays chosen.
    let mut form = fields(&refused, "/groups/new");
    assert_eq!(chosen(&form, "members"), [BOB, CAROL, "smith", "nix"]);
    assert!(
        refused.contains("name=\"members\" value=\"zoe1\"") && refused.contains("<small> @zoe2</small>"),
        "{refused}"
    );
    form.retain(|(_, value)| value != "nix");
    form.push(("members".to_owned(), "zoe2".to_owned()));
    set(&mut form, "admins", "bob, dave");
    let made = send(&club, BOB, "/groups/new", &form).expect(303);
    let path = made.header("location").unwrap();
    assert_eq!(members(path), 4);
    // A check box is taken away; a member who has left the club stays until then.
    let edit = format!("{path}/edit");
    let left = diesel::update(users::table.find(id(CAROL))).set(users::state.eq(0_i16));
    left.execute(&mut club.connect()).unwrap();
    let mut form = fields(&open(&club, DAVE, &edit), &edit);
    assert_eq!(chosen(&form, "members").len(), 4);
    form.retain(|(name, value)| name != "members" || value != "smith");
    send(&club, DAVE, &edit, &form).expect(303);
    assert_eq!(members(path), 3);
}

#[rstest]
fn names_that_no_database_takes_are_nobodys(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = format!("/groups/{}/edit", group(&club, ALICE, "Band", &[BOB]));
    let mut form = fields(&open(&club, ALICE, &path), &path);
    for name in ["\0", "a\0b", "%00", "'; --", "\u{202e}bob"] {
        form.push(("members".to_owned(), name.to_owned()));
    }
    let refused = send(&club, ALICE, &path, &form).expect(400);
    assert!(refused.text().contains("There is no member ';. There is no member --."), "{refused:?}");
    club.by(ALICE).header("accept", "text/html").get("/members?after=%00&search=%00").expect(200);
}

#[rstest]
fn all_members_are_listed_and_found(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let many: Vec<_> = (0..250).map(|n| (format!("m{n:03}"), format!("Member Nº {n}"))).collect();
    join(&club, &many.iter().map(|(name, shown)| (name.as_str(), shown.as_str())).collect::<Vec<_>>());
    let listed = |path: &str| {
        let shown = open(&club, BOB, path);
        let next = shown.split("href=\"/members?").nth(1).and_then(|rest| rest.split('"').next());
        (shown.matches("<li>").count(), next.map(|next| format!("/members?{}", next.replace("&amp;", "&"))))
    };
    let (first, next) = listed("/members");
    let (second, end) = listed(&next.unwrap());
    assert_eq!((first, first + second, end), (200, 250 + active(&club), None));
    assert_eq!(listed("/members?search=n%C2%BA+24").0, 11);
    assert_eq!(listed("/members?search=M249").0, 1);
    let nobody = open(&club, BOB, "/members?search=nobody+here");
    assert!(nobody.contains("Nobody is called so."), "{nobody}");
    assert!(open(&club, BOB, "/groups").contains("href=\"/members\""));
    // More than forms list.
    join(&club, &[("zoe1", "Zoé")]);
    let form = open(&club, BOB, "/groups/new");
    assert!(form.contains("value=\"zoe1\""), "{form}");
}

/// The active members of a new club.
fn active(club: &Club) -> usize {
    let users = club.by(BOB).get("/api/users").expect(200).json();
    users.as_array().unwrap().iter().filter(|user| !user["name"].as_str().unwrap().starts_with('m')).count()
}
