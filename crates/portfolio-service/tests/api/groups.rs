//! Groups. The tests of the copy are in `sync`.

use crate::harness::Backend::{self, Postgres, Sqlite};
use portfolio_service::groups::queries;
use rstest::rstest;

use crate::{
    harness::{BOB, Club, id},
    objects::Objects,
    plans,
};

#[rstest]
fn queries_use_indexes(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut objects = Objects::new();
    objects.grow(&club, 2);
    plans::check_page(&club, |conn| {
        for page in plans::pages((String::new(), id(BOB))) {
            queries::list(conn, &page).unwrap();
        }
    });
    plans::check(&club, |conn| {
        queries::get(conn, objects.first("groupId")).unwrap();
        queries::of_user(conn, id(BOB)).unwrap();
    });
}
