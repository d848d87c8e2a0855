//! A PostgreSQL server that writes its messages in Japanese. `scripts/postgres` makes the locale.

use std::{
    sync::{Arc, Barrier},
    time::Duration,
};

use diesel::{connection::SimpleConnection, prelude::*, sql_query};
use service_kit::{
    database::{AnyConnection, Database, JobOwner, Limits, Url},
    error::Error,
};

use crate::{copy_to::MIGRATIONS, database::TestDatabase};

const LIMITS: Limits =
    Limits { connections: Some(8), checkout: Duration::from_millis(1500), work: Duration::from_secs(5) };

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// A database with two rows, and its URL with Japanese messages by default.
fn japanese() -> (TestDatabase, Url) {
    let database = TestDatabase::postgres();
    database.connect().batch_execute("CREATE TABLE items (id BIGINT PRIMARY KEY, n BIGINT NOT NULL)").unwrap();
    database.connect().batch_execute("INSERT INTO items VALUES (1, 0), (2, 0)").unwrap();
    let url = format!("{}%20-clc_messages%3Dja_JP.UTF-8", database.url_text);
    // Without Japanese messages, the tests below would show nothing.
    let mut plain = PgConnection::establish(&url).unwrap();
    let error = plain.batch_execute("SELECT * FROM nowhere").unwrap_err().to_string();
    assert!(error.contains("リレーション"), "the server has no Japanese messages: {error}");
    (database, url.parse().unwrap())
}

fn add(conn: &mut AnyConnection, id: i64) -> Result<usize, Error> {
    Ok(sql_query(format!("UPDATE items SET n = n + 1 WHERE id = {id}")).execute(conn)?)
}

#[test]
fn a_lock_timeout_is_503_whatever_the_language_of_the_server() {
    let (database, url) = japanese();
    let db = Database::open(&url, LIMITS);
    let mut holder = database.connect();
    holder.batch_execute("BEGIN; UPDATE items SET n = 7").unwrap();
    let refused = block_on(db.write(JobOwner::Internal, |conn| add(conn, 1))).unwrap_err();
    assert_eq!(refused.into_problem().status(), 503);
}

#[test]
fn a_deadlock_is_retried_whatever_the_language_of_the_server() {
    let (_database, url) = japanese();
    // PostgreSQL looks for deadlocks after a second. The time-out of a lock must be longer.
    let db =
        Database::open(&url, Limits { checkout: Duration::from_secs(10), work: Duration::from_secs(20), ..LIMITS });
    let together = Arc::new(Barrier::new(2));
    let write = |owner, first, second| {
        let (together, mut is_first_attempt) = (together.clone(), true);
        db.write(JobOwner::Credential(owner), move |conn| {
            add(conn, first)?;
            if std::mem::take(&mut is_first_attempt) {
                together.wait();
            }
            add(conn, second)
        })
    };
    let (one, other) = block_on(async { tokio::join!(write(1, 1, 2), write(2, 2, 1)) });
    assert_eq!((one.unwrap(), other.unwrap()), (1, 1));
}

#[test]
fn a_role_that_may_not_change_the_language_is_refused_at_start() {
    let (database, _) = japanese();
    let role = format!("reader_{}", std::process::id());
    let mut admin = database.connect();
    admin
        .batch_execute(&format!("CREATE ROLE {role} LOGIN; ALTER ROLE {role} SET lc_messages = 'ja_JP.UTF-8'"))
        .unwrap();
    let url: Url = database.url_text.replace("user=postgres", &format!("user={role}")).parse().unwrap();
    let error = block_on(Database::start(&url, &MIGRATIONS, LIMITS)).err().unwrap().to_string();
    assert!(error.contains(&format!("ALTER ROLE {role} SET lc_messages = 'C'")), "{error}");
    let read = block_on(Database::open(&url, LIMITS).read(JobOwner::Internal, |conn| add(conn, 1)));
    assert_eq!(read.unwrap_err().into_problem().status(), 503);

    // The statement of the message solves the problem.
    admin.batch_execute(&format!("ALTER ROLE {role} SET lc_messages = 'C'")).unwrap();
    assert!(block_on(Database::open(&url, LIMITS).ping()));
    admin.batch_execute(&format!("DROP ROLE {role}")).unwrap();
}
