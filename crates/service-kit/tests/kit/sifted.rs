//! Conditions that PostgreSQL does not plan for.

use crate::database::{
    Backend::{self, Postgres, Sqlite},
    TestDatabase,
};
use diesel::{prelude::*, sql_query};
use rstest::rstest;
use service_kit::{database::sifted, with_connection};

diesel::table! {
    marbles (number) { number -> BigInt, }
}

#[rstest]
fn postgres_sends_only_what_counts(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    let mut conn = database.connect();
    sql_query("CREATE TABLE marbles (number BIGINT PRIMARY KEY)").execute(&mut conn).unwrap();
    let all: Vec<_> = (1..=9).map(|number| marbles::number.eq(number)).collect();
    with_connection!(&mut conn, c => diesel::insert_into(marbles::table).values(&all).execute(c)).unwrap();
    let query = marbles::table.select((marbles::number.gt(6), marbles::number)).order(marbles::number);
    let found: Vec<(bool, i64)> = with_connection!(&mut conn, c => sifted(query).load(c)).unwrap();
    let first = if database.url.is_postgres() { 7 } else { 1 };
    assert_eq!(found, (first..=9).map(|number| (number > 6, number)).collect::<Vec<_>>());
}
