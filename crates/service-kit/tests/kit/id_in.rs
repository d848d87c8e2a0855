//! Conditions on many identifiers, in statements that are kept.

use crate::database::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use diesel::{connection::InstrumentationEvent, prelude::*, sql_query, sql_types::BigInt};
use proptest::prelude::*;
use service_kit::{
    database::{AnyConnection, id_in, types::DbUuid},
    with_connection,
};
use uuid::Uuid;

use crate::database::TestDatabase;

diesel::table! {
    use diesel::sql_types::BigInt;
    use service_kit::database::types::DbUuid;
    things (id) { id -> DbUuid, number -> BigInt, }
}

/// So many that PostgreSQL takes the index, and a longer list for dearer.
const THINGS: i64 = 5000;

fn id(number: i64) -> DbUuid {
    DbUuid(Uuid::from_u128(u128::from(number.unsigned_abs()) << 64))
}

fn filled(database: &TestDatabase) -> AnyConnection {
    let mut conn = database.connect();
    let kind = if database.url.is_postgres() { "UUID" } else { "BLOB" };
    sql_query(format!("CREATE TABLE things (id {kind} PRIMARY KEY, number BIGINT NOT NULL)"))
        .execute(&mut conn)
        .unwrap();
    let rows: Vec<_> = (0..THINGS).map(|number| (things::id.eq(id(number)), things::number.eq(number))).collect();
    for rows in rows.chunks(1000) {
        with_connection!(&mut conn, c => diesel::insert_into(things::table).values(rows).execute(c)).unwrap();
    }
    sql_query("ANALYZE things").execute(&mut conn).unwrap();
    conn
}

fn found(conn: &mut AnyConnection, ids: &[DbUuid]) -> Vec<i64> {
    let query = things::table.filter(id_in(things::id, ids)).order(things::number).select(things::number);
    with_connection!(conn, c => query.load(c)).unwrap()
}

#[rstest]
fn it_finds_what_a_list_of_any_length_names(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    let conn = RefCell::new(filled(database));
    let lists = prop::collection::vec(0..THINGS * 2, 0..200);
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) };
    proptest::test_runner::TestRunner::new(config)
        .run(&lists, |numbers| {
            let ids: Vec<_> = numbers.iter().copied().map(id).collect();
            let mut wanted: Vec<_> = numbers.into_iter().filter(|number| *number < THINGS).collect();
            wanted.sort_unstable();
            wanted.dedup();
            prop_assert_eq!(found(&mut conn.borrow_mut(), &ids), wanted);
            Ok(())
        })
        .unwrap();
}

#[test]
fn sqlite_prepares_three_statements_for_up_to_64_and_keeps_no_other() {
    let database = TestDatabase::sqlite();
    let mut conn = filled(&database);
    let kept = Arc::new(AtomicUsize::new(0));
    let seen = kept.clone();
    conn.set_instrumentation(move |event: InstrumentationEvent<'_>| {
        if matches!(event, InstrumentationEvent::CacheQuery { .. }) {
            seen.fetch_add(1, Ordering::Relaxed);
        }
    });
    let ids: Vec<_> = (0..100).map(id).collect();
    for count in 1..=100 {
        assert_eq!(found(&mut conn, &ids[..count]).len(), count);
    }
    assert_eq!(kept.load(Ordering::Relaxed), 3);
}

#[test]
fn postgres_keeps_its_plan_for_few() {
    #[derive(QueryableByName)]
    struct Plans {
        #[diesel(sql_type = BigInt)]
        custom: i64,
    }
    let database = TestDatabase::postgres();
    let mut conn = filled(&database);
    for count in [1, 3] {
        let ids: Vec<_> = (0..count).map(id).collect();
        for _ in 0..20 {
            found(&mut conn, &ids);
        }
    }
    let plans = sql_query(
        "SELECT max(custom_plans) AS custom FROM pg_prepared_statements WHERE statement LIKE '%things%number%id%'",
    );
    // It makes five to see what they cost. (PostgreSQL 14 and newer say so.)
    assert_eq!(plans.get_result::<Plans>(&mut conn).unwrap().custom, 5);
}
