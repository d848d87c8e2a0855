//! The fragments of SQL that Diesel lacks.

use booking_service::expressions::{FlaggedIds, IdList, folded_flagged_ids, folded_ids};
use diesel::{prelude::*, sql_query};
use rstest::rstest;
use service_kit::{database::types::DbUuid, with_connection};
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

#[rstest]
fn folded_ids_are_the_ids_of_each_group_in_order(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut conn = club.connect();
    let kind = if club.is_postgres() { "UUID" } else { "BLOB" };
    sql_query(format!("CREATE TABLE things (id {kind} PRIMARY KEY, number BIGINT NOT NULL)"))
        .execute(&mut conn)
        .unwrap();
    // Any bytes: zeros, and what is no UTF-8.
    let mut ids = [u128::MAX, 1 << 8, 0xff, 0x80].map(|number| DbUuid(Uuid::from_u128(number)));
    let (nil, row) = (DbUuid::nil(), |id: DbUuid, number: i64| (things::id.eq(id), things::number.eq(number)));
    let rows: Vec<_> = ids.iter().map(|id| row(*id, 1)).chain([row(nil, 2)]).collect();
    with_connection!(&mut conn, c => diesel::insert_into(things::table).values(rows).execute(c)).unwrap();
    let query = things::table.group_by(things::number).order(things::number);
    let query = query.select((things::number, folded_ids(things::id)));
    let found: Vec<(i64, IdList)> = with_connection!(&mut conn, c => query.load(c)).unwrap();
    ids.sort_unstable();
    assert_eq!(found, [(1, IdList(ids.to_vec())), (2, IdList(vec![nil]))]);
    let query = things::table.select(folded_flagged_ids(things::id, things::number.gt(1)));
    let flagged: FlaggedIds = with_connection!(&mut conn, c => query.get_result(c)).unwrap();
    assert_eq!(flagged.0, [(nil, true), (ids[0], false), (ids[1], false), (ids[2], false), (ids[3], false)]);
    let none = things::table.filter(things::number.lt(1)).select(folded_ids(things::id)).single_value();
    let none: Option<IdList> = diesel::select(none).get_result(&mut conn).unwrap();
    assert_eq!(none, None);
}
