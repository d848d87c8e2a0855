//! Backups, restoring them, moving to PostgreSQL, and databases of other versions.

#[path = "../../../service-kit/tests/shared/backup.rs"]
pub mod rules;

use diesel::prelude::*;
use portfolio_service::schema::users;
pub use portfolio_service::server::MIGRATIONS;
use serde_json::Value;
use service_kit::database::{
    AnyConnection,
    types::{DbTimestamp, DbUuid},
};

use crate::{
    booking::{Booking, until},
    builders::{contest_body, each},
    harness::{ALICE, BOB, Backend, Club},
};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_portfolio-service");

/// Commands that need the database, besides those that every service has.
pub const COMMANDS: [&[&str]; 1] = [&["migrate"]];

/// A club with rows of every kind.
pub fn start(backend: Backend) -> Club {
    Club::start_empty(backend, &["--demo"])
}

/// A request that creates an object with this name.
pub fn make(name: &str) -> (&'static str, Value) {
    ("/api/v1/contests", contest_body(name))
}

/// Inserts a member, with the columns of the first version of the schema.
pub fn add_old_rows(conn: &mut AnyConnection) {
    let then = DbTimestamp("2026-01-02T03:04:05.678901Z".parse().unwrap());
    diesel::insert_into(users::table)
        .values((
            (users::id.eq(DbUuid::new()), users::name.eq("xenia"), users::real_name.eq("Ольга '\"\\ 🦀")),
            (users::publishes_real_name.eq(true), users::state.eq(1)),
            (users::created_at.eq(then), users::updated_at.eq(then)),
        ))
        .execute(conn)
        .unwrap();
}

pub fn old_rows_are_there(club: &Club) {
    let made: DbTimestamp = users::table.select(users::created_at).first(&mut club.connect()).unwrap();
    assert_eq!(made.to_string(), "2026-01-02T03:04:05.678901Z");
    let me = club.by("xenia").get("/api/v1/users/me").expect(200).json();
    assert_eq!(me["realName"], "Ольга '\"\\ 🦀");
    club.by("xenia").post("/api/v1/contests", contest_body("new")).expect(201);
}

#[test]
fn the_copy_follows_a_restored_booking_service() {
    let mut booking = Booking::start();
    let options = booking.options();
    let options: Vec<_> = options.iter().map(String::as_str).collect();
    let club = Club::start_with(Backend::Sqlite, &options);
    let names = |expected: &[&str]| {
        until(&format!("the events are {expected:?}"), || {
            let mut found = each(&club.by(ALICE).get("/api/v1/events").expect(200).json(), "name");
            found.sort();
            found == expected
        });
    };
    booking.declare("kept", &[BOB]);
    names(&["kept"]);
    booking.run_command(&["backup", "file"]);
    booking.declare("lost", &[BOB]);
    names(&["kept", "lost"]);
    booking.stop();
    booking.run_command(&["restore", "file"]);
    booking.resume();
    booking.declare("new", &[BOB]);
    names(&["kept", "new"]);
}
