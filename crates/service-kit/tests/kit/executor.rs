//! The door to the database.

use crate::database::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    time::{Duration, Instant},
};

use common::problem::{Problem, code};
use diesel::{QueryableByName, prelude::*, sql_query, sql_types::Text};
use futures_util::{FutureExt, future::join_all};
use service_kit::{
    database::{AnyConnection, Database, Limits},
    error::Error,
};

use crate::database::TestDatabase;

diesel::table! {
    items (id) { id -> BigInt, }
}

/// How long a caller may wait for an answer at most, whatever the database does.
const PATIENCE: Duration = Duration::from_secs(3);

fn door(database: &TestDatabase) -> Database {
    sql_query("CREATE TABLE items (id BIGINT PRIMARY KEY)").execute(&mut database.connect()).unwrap();
    open(database)
}

fn open(database: &TestDatabase) -> Database {
    let limits = Limits { connections: Some(2), checkout: Duration::from_millis(2500), work: Duration::from_secs(5) };
    Database::open(&database.url, limits)
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn insert(conn: &mut AnyConnection, id: i64) -> Result<(), Error> {
    diesel::insert_into(items::table).values(items::id.eq(id)).execute(conn)?;
    Ok(())
}

fn count(conn: &mut AnyConnection) -> Result<i64, Error> {
    Ok(items::table.count().get_result(conn)?)
}

/// Runs a future, and asserts that it does not take too long.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    let begun = Instant::now();
    let done = future.await;
    assert!(begun.elapsed() < PATIENCE, "took {:?}", begun.elapsed());
    done
}

fn status<T>(result: Result<T, Error>) -> u16 {
    result.map_or_else(|error| error.into_problem().status(), |_| 200)
}

fn one_connection(database: &TestDatabase) -> Database {
    drop(door(database));
    let limits = Limits { connections: Some(1), checkout: Duration::from_millis(2500), work: Duration::from_secs(5) };
    Database::open(&database.url, limits)
}

/// Work that has its snapshot and then waits.
fn held() -> (impl FnMut(&mut AnyConnection) -> Result<i64, Error> + Send + 'static, Hold) {
    let ((begun, has_begun), (end, ended)) = (channel(), channel());
    let work = move |conn: &mut AnyConnection| {
        let seen = count(conn)?;
        begun.send(()).unwrap();
        ended.recv_timeout(Duration::from_secs(5)).unwrap();
        Ok(seen)
    };
    (work, Hold { has_begun, end })
}

/// The same future, which is in the queue now.
fn asked<T>(read: impl Future<Output = T>) -> impl Future<Output = T> {
    let mut read = Box::pin(read);
    assert!((&mut read).now_or_never().is_none());
    read
}

struct Hold {
    has_begun: Receiver<()>,
    end: Sender<()>,
}

impl Hold {
    fn has_begun(&self) {
        self.has_begun.recv_timeout(Duration::from_secs(5)).unwrap();
    }

    fn end(&self) {
        self.end.send(()).unwrap();
    }
}

#[rstest]
fn a_stale_write_runs_again_from_its_start(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    let db = door(database);
    let runs = Arc::new(AtomicUsize::new(0));
    let seen = runs.clone();
    let written = db.write(move |conn| {
        insert(conn, 1)?;
        if seen.fetch_add(1, Ordering::Relaxed) < 2 { Err(Error::Stale) } else { Ok(()) }
    });
    block_on(written).unwrap();
    assert_eq!(runs.load(Ordering::Relaxed), 3);
    assert_eq!(block_on(db.read(count)).unwrap(), 1);
}

#[rstest]
fn a_write_that_stays_stale_ends_as_503(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    let db = door(database);
    let runs = Arc::new(AtomicUsize::new(0));
    let seen = runs.clone();
    let written = db.write(move |conn| {
        insert(conn, 1)?;
        seen.fetch_add(1, Ordering::Relaxed);
        Err::<(), _>(Error::Stale)
    });
    assert_eq!(status(block_on(written)), 503);
    assert!((2..10).contains(&runs.load(Ordering::Relaxed)));
    assert_eq!(block_on(db.read(count)).unwrap(), 0);
}

#[rstest]
fn a_failed_write_leaves_nothing_and_runs_once(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    let db = door(database);
    let runs = Arc::new(AtomicUsize::new(0));
    let seen = runs.clone();
    let written = db.write(move |conn| {
        insert(conn, 1)?;
        seen.fetch_add(1, Ordering::Relaxed);
        Err::<(), _>(Problem::new(code::CONFLICT).into())
    });
    assert_eq!(status(block_on(written)), 409);
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    assert_eq!(block_on(db.read(count)).unwrap(), 0);
    assert_eq!(
        status(block_on(db.write(|conn| {
            insert(conn, 1)?;
            insert(conn, 1)
        }))),
        500
    );
    assert_eq!(block_on(db.read(count)).unwrap(), 0);
}

#[rstest]
fn a_panic_costs_one_request_only(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    let db = door(database);
    block_on(async {
        // More often than there are connections, in both lanes.
        for _ in 0..4 {
            let panicked: Result<(), _> = db
                .write(|conn| {
                    insert(conn, 1)?;
                    panic!("on purpose")
                })
                .await;
            assert_eq!(status(panicked), 500);
            let panicked: Result<(), _> = db.read(|_| panic!("on purpose")).await;
            assert_eq!(status(panicked), 500);
        }
        assert_eq!(soon(db.read(count)).await.unwrap(), 0);
        soon(db.write(|conn| insert(conn, 1))).await.unwrap();
        assert_eq!(db.read(count).await.unwrap(), 1);
        assert_eq!(db.connections().0, 0);
    });
}

#[rstest]
fn a_read_is_one_snapshot(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    let db = door(database);
    let url = database.url.clone();
    let counts = block_on(db.read(move |conn| {
        let before = count(conn)?;
        insert(&mut url.connect().unwrap(), 1)?;
        Ok((before, count(conn)?))
    }));
    assert_eq!(counts.unwrap(), (0, 0));
    assert_eq!(block_on(db.read(count)).unwrap(), 1);
}

#[rstest]
fn a_read_cannot_write_on_postgres_and_never_blocks_a_write(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    let db = door(database);
    if database.url.is_postgres() {
        assert_eq!(status(block_on(db.read(|conn| insert(conn, 1)))), 503);
    }
    let other = db.clone();
    let read = db.read(move |conn| {
        count(conn)?;
        let other = other.clone();
        std::thread::spawn(move || block_on(soon(other.write(|conn| insert(conn, 2))))).join().unwrap()
    });
    block_on(read).unwrap();
}

#[rstest]
fn whoever_waits_for_a_lock_is_told_503_in_time(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    let db = door(database);
    let mut holder = database.connect();
    let lock = match &holder {
        AnyConnection::Postgresql(_) => "BEGIN; LOCK TABLE items IN SHARE ROW EXCLUSIVE MODE",
        AnyConnection::Sqlite(_) => "BEGIN IMMEDIATE",
    };
    let batch = |conn: &mut AnyConnection, sql| diesel::connection::SimpleConnection::batch_execute(conn, sql);
    batch(&mut holder, lock).unwrap();
    block_on(async {
        // More than there are connections: some wait for the lock, others for those.
        let writes = (0..5).map(|id| soon(db.write(move |conn| insert(conn, id))));
        let (writes, read) = tokio::join!(join_all(writes), soon(db.read(count)));
        assert!(writes.into_iter().all(|written| status(written) == 503));
        if !database.url.is_postgres() {
            assert_eq!(read.unwrap(), 0);
        }
        batch(&mut holder, "COMMIT").unwrap();
        soon(db.write(|conn| insert(conn, 1))).await.unwrap();
        assert_eq!(db.read(count).await.unwrap(), 1);
    });
}

#[rstest]
fn all_writers_at_once_get_through(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    let db = door(database);
    block_on(async {
        let writes = (0..200).map(|id| db.write(move |conn| insert(conn, id)));
        let (written, waiting) = tokio::join!(join_all(writes), async { db.waits().waiting.get() });
        assert!(written.into_iter().all(|written| written.is_ok()));
        assert!(waiting > 2, "{waiting}");
        assert_eq!((db.waits().waiting.get(), db.waits().refused.get()), (0, 0));
        assert_eq!(db.read(count).await.unwrap(), 200);
    });
}

#[rstest]
fn those_who_waited_share_a_snapshot(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    let db = one_connection(database);
    let (first, hold) = held();
    block_on(async {
        db.read(count).await.unwrap();
        let before = db.statements();
        let first = asked(db.read(first));
        hold.has_begun();
        let others: Vec<_> = (0..5).map(|_| asked(db.read(count))).collect();
        hold.end();
        first.await.unwrap();
        assert!(join_all(others).await.into_iter().all(|count| count.unwrap() == 0));
        // One transaction for the first, who was alone, and one for the others, beside what each has asked.
        assert_eq!(db.statements() - before, 2 + 2 + 6);
        assert_eq!(db.connections().0, 0);
    });
}

#[rstest]
fn whoever_comes_later_sees_what_was_written_before(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    let db = one_connection(database);
    let ((first, before), (second, meanwhile)) = (held(), held());
    block_on(async {
        let first = asked(db.read(first));
        before.has_begun();
        let (second, third) = (asked(db.read(second)), asked(db.read(count)));
        before.end();
        // It has its snapshot, and leaves it to the third.
        meanwhile.has_begun();
        insert(&mut database.connect(), 1).unwrap();
        let late = asked(db.read(count));
        meanwhile.end();
        let (first, second, third, late) = tokio::join!(first, second, third, late);
        assert_eq!([first, second, third, late].map(Result::unwrap), [0, 0, 0, 1]);
    });
}

#[rstest]
fn who_fails_leaves_those_alone_who_waited_as_well(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    let db = one_connection(database);
    let (first, hold) = held();
    block_on(async {
        let first = asked(db.read(first));
        hold.has_begun();
        let before = asked(db.read(count));
        let wrong = asked(db.read(|conn| Ok(sql_query("SELECT 1 FROM nowhere").execute(conn)?)));
        let between = asked(db.read(count));
        let panics = asked(db.read(|conn| if count(conn)? == 0 { panic!("on purpose") } else { Ok(()) }));
        let after = asked(db.read(count));
        hold.end();
        let (first, before, wrong, between, panics, after) = tokio::join!(first, before, wrong, between, panics, after);
        assert_eq!([first, before, between, after].map(Result::unwrap), [0; 4]);
        assert_eq!([status(wrong), status(panics)], [500; 2]);
        db.write(|conn| insert(conn, 1)).await.unwrap();
        assert_eq!(db.read(count).await.unwrap(), 1);
    });
}

#[rstest]
fn an_answer_that_has_begun_waits_when_a_new_one_is_refused(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    drop(door(database));
    let limits = Limits { connections: Some(1), checkout: Duration::from_millis(200), work: Duration::from_secs(10) };
    let db = Database::open(&database.url, limits);
    let (end, ended) = std::sync::mpsc::channel();
    block_on(async {
        let long = db.read(move |_| {
            ended.recv_timeout(Duration::from_secs(5)).unwrap();
            Ok(())
        });
        let others = async {
            // The second of them when the first has waited in vain, so that the rest has waited longer than that.
            let refused = [status(soon(db.read(count)).await), status(soon(db.read(count)).await)];
            end.send(()).unwrap();
            refused
        };
        let (long, rest, refused) = tokio::join!(long, db.read_on(count), others);
        long.unwrap();
        assert_eq!((rest.unwrap(), refused), (0, [503; 2]));
    });
}

#[rstest]
fn a_read_costs_its_statements_and_two_for_the_snapshot(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    let db = door(database);
    block_on(db.read(count)).unwrap();
    let before = db.statements();
    block_on(db.read(count)).unwrap();
    assert_eq!(db.statements() - before, 3);
    let before = db.statements();
    block_on(db.write(|conn| insert(conn, 1))).unwrap();
    assert_eq!(db.statements() - before, 3);
}

#[rstest]
fn an_unreachable_database_is_503_in_time(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    let missing = match database.url.file() {
        // A folder is no database.
        Some(file) => format!("sqlite://{}", file.parent().unwrap().display()),
        None => "postgres://nobody@127.0.0.1:1/none".to_owned(),
    };
    let limits = Limits { connections: Some(2), checkout: Duration::from_millis(500), work: Duration::from_secs(5) };
    let db = Database::open(&missing.parse().unwrap(), limits);
    block_on(async {
        assert_eq!(status(soon(db.read(count)).await), 503);
        assert!(!soon(db.ping()).await);
        // The callers are told in time, whatever the threads still do.
        let begun = std::time::Instant::now();
        while (db.waits().waiting.get(), db.waits().refused.get()) != (0, 2) {
            assert!(begun.elapsed() < Duration::from_secs(10));
            tokio::task::yield_now().await;
        }
    });
}

#[derive(QueryableByName)]
struct Setting {
    #[diesel(sql_type = Text)]
    value: String,
}

/// Asks through the door, so that it is the connections of the pool that are looked at.
fn settings(db: &Database, queries: &'static [&'static str]) -> Vec<String> {
    let asked = db.write(move |conn| {
        queries.iter().map(|query| Ok(sql_query(*query).get_result::<Setting>(conn)?.value)).collect()
    });
    block_on(asked).unwrap()
}

#[test]
fn sqlite_is_set_up_to_survive_a_power_cut_and_to_keep_its_references() {
    let db = open(&TestDatabase::sqlite());
    let found = settings(
        &db,
        &[
            "SELECT journal_mode AS value FROM pragma_journal_mode",
            "SELECT CAST(synchronous AS TEXT) AS value FROM pragma_synchronous",
            "SELECT CAST(foreign_keys AS TEXT) AS value FROM pragma_foreign_keys",
        ],
    );
    assert_eq!(found, ["wal", "2", "1"]);
}

#[test]
fn postgres_ends_by_itself_what_nobody_waits_for_any_more() {
    let db = open(&TestDatabase::postgres());
    let found = settings(
        &db,
        &[
            "SELECT current_setting('statement_timeout') AS value",
            "SELECT current_setting('idle_in_transaction_session_timeout') AS value",
            "SELECT current_setting('TimeZone') AS value",
            "SELECT current_setting('transaction_isolation') AS value",
        ],
    );
    assert_eq!(found, ["5s", "5s", "UTC", "read committed"]);
    let wait = settings(&db, &["SELECT setting AS value FROM pg_settings WHERE name = 'lock_timeout'"]);
    assert!((100..=2500).contains(&wait[0].parse::<u64>().unwrap()), "{wait:?}");
}
