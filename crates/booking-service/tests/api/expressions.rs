//! The SQL fragments for query planners.

use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use booking_service::expressions::{IdList, folded_ids, id_in};
use diesel::{
    connection::InstrumentationEvent,
    pg::Pg,
    prelude::*,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    sql_query,
    sql_types::{BigInt, Text},
};
use proptest::prelude::*;
use rstest::rstest;
use service_kit::{
    database::{AnyConnection, types::DbUuid},
    with_connection,
};
use uuid::Uuid;

use crate::harness::{
    Backend::{self, Postgres, Sqlite},
    Club,
};

diesel::table! {
    use diesel::sql_types::BigInt;
    use service_kit::database::types::DbUuid;
    things (id) { id -> DbUuid, number -> BigInt, }
}

/// Enough rows for PostgreSQL to use the index, and to estimate higher costs for longer lists.
const THINGS: i64 = 5000;

fn id(number: i64) -> DbUuid {
    DbUuid(Uuid::from_u128(u128::from(number.unsigned_abs()) << 64))
}

fn filled(club: &Club) -> AnyConnection {
    let mut conn = club.connect();
    let kind = if club.is_postgres() { "UUID" } else { "BLOB" };
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
fn id_in_finds_the_rows_of_a_list_of_any_length(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let conn = RefCell::new(filled(&club));
    let lists = prop::collection::vec(0..THINGS * 2, 0..200);
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) };
    proptest::test_runner::TestRunner::new(config)
        .run(&lists, |numbers| {
            let ids: Vec<_> = numbers.iter().copied().map(id).collect();
            let mut expected: Vec<_> = numbers.into_iter().filter(|number| *number < THINGS).collect();
            expected.sort_unstable();
            expected.dedup();
            prop_assert_eq!(found(&mut conn.borrow_mut(), &ids), expected);
            Ok(())
        })
        .unwrap();
}

#[rstest]
fn folded_ids_are_the_ids_of_each_group_in_order(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut conn = filled(&Club::start(backend));
    // Any bytes: zeros, and what is no UTF-8.
    let ids = [u128::MAX, 1 << 8, 0xff, 0x80].map(|number| DbUuid(Uuid::from_u128(number)));
    let rows = ids.map(|id| (things::id.eq(id), things::number.eq(-1)));
    with_connection!(&mut conn, c => diesel::insert_into(things::table).values(rows.as_slice()).execute(c)).unwrap();
    let query = things::table.filter(things::number.lt(2)).group_by(things::number).order(things::number);
    let query = query.select((things::number, folded_ids(things::id)));
    let found: Vec<(i64, IdList)> = with_connection!(&mut conn, c => query.load(c)).unwrap();
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    assert_eq!(found, [(-1, IdList(ids)), (0, IdList(vec![id(0)])), (1, IdList(vec![id(1)]))]);
    let none = things::table.filter(things::number.lt(-1)).select(folded_ids(things::id)).single_value();
    let none: Option<IdList> = with_connection!(&mut conn, c => diesel::select(none).get_result(c)).unwrap();
    assert_eq!(none, None);
}

#[test]
fn sqlite_caches_three_statements_for_up_to_64_ids_and_no_other() {
    let mut conn = filled(&Club::start(Sqlite));
    let cached = Arc::new(AtomicUsize::new(0));
    let counter = cached.clone();
    conn.set_instrumentation(move |event: InstrumentationEvent<'_>| {
        if matches!(event, InstrumentationEvent::CacheQuery { .. }) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    });
    let ids: Vec<_> = (0..100).map(id).collect();
    for count in 1..=100 {
        assert_eq!(found(&mut conn, &ids[..count]).len(), count);
    }
    assert_eq!(cached.load(Ordering::Relaxed), 3);
}

#[test]
fn postgres_has_one_plan_for_few_ids() {
    #[derive(QueryableByName)]
    struct Plans {
        #[diesel(sql_type = BigInt)]
        custom: i64,
    }
    let mut conn = filled(&Club::start(Postgres));
    for count in [1, 3] {
        let ids: Vec<_> = (0..count).map(id).collect();
        for _ in 0..20 {
            found(&mut conn, &ids);
        }
    }
    let plans = sql_query(
        "SELECT max(custom_plans) AS custom FROM pg_prepared_statements WHERE statement LIKE '%things%number%id%'",
    );
    // It makes five custom plans to compare their costs with the generic plan. (The column exists since PostgreSQL 14.)
    assert_eq!(plans.get_result::<Plans>(&mut conn).unwrap().custom, 5);
}

/// `EXPLAIN` of a query, with the values bound as in the query itself.
struct Explain<Q>(Q);

impl<Q> Query for Explain<Q> {
    type SqlType = (Text,);
}

impl<Q, C> RunQueryDsl<C> for Explain<Q> {}

impl<Q> QueryId for Explain<Q> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<Q: QueryFragment<Pg>> QueryFragment<Pg> for Explain<Q> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("EXPLAIN (COSTS OFF) ");
        self.0.walk_ast(out)
    }
}

/// `EXPLAIN QUERY PLAN` of a query. The answer has four columns, of which the last one is the text.
struct SqlitePlan<Q>(Q);

impl<Q> Query for SqlitePlan<Q> {
    type SqlType = (BigInt, BigInt, BigInt, Text);
}

impl<Q, C> RunQueryDsl<C> for SqlitePlan<Q> {}

impl<Q> QueryId for SqlitePlan<Q> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<Q: QueryFragment<diesel::sqlite::Sqlite>> QueryFragment<diesel::sqlite::Sqlite> for SqlitePlan<Q> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, diesel::sqlite::Sqlite>) -> QueryResult<()> {
        out.push_sql("EXPLAIN QUERY PLAN ");
        self.0.walk_ast(out)
    }
}

fn plan<Q: QueryFragment<Pg> + QueryFragment<diesel::sqlite::Sqlite>>(conn: &mut AnyConnection, query: Q) -> String {
    match conn {
        AnyConnection::Postgresql(pg) => {
            Explain(query).load::<(String,)>(pg).unwrap().into_iter().map(|row| row.0).collect()
        }
        AnyConnection::Sqlite(sqlite) => {
            SqlitePlan(query).load::<(i64, i64, i64, String)>(sqlite).unwrap().into_iter().map(|row| row.3).collect()
        }
    }
}

#[rstest]
fn id_in_uses_the_index_for_every_length(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut conn = filled(&Club::start(backend));
    for length in [1, 2, 16, 50] {
        let ids: Vec<_> = (0..length).map(id).collect();
        let plan = plan(&mut conn, things::table.filter(id_in(things::id, &ids)).select(things::number));
        let index = if backend == Postgres { "things_pkey" } else { "sqlite_autoindex_things_1 (id=?)" };
        assert!(plan.contains(index) && !plan.contains("Seq Scan") && !plan.contains("SCAN"), "{length}: {plan}");
    }
}
