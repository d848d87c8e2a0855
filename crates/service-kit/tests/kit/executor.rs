//! Reads and writes through the executor.

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
use rstest::rstest;
use service_kit::{
    database::{AnyConnection, Database, JobOwner, Limits, QueueKey},
    error::Error,
};

use crate::database::{
    Backend::{self, Postgres, Sqlite},
    TestDatabase,
};
use crate::freezing_proxy::FreezingProxy;

diesel::table! {
    items (id) { id -> BigInt, }
}

/// Longer than any step of a test, on a machine with other work. A step that takes longer hangs.
const MAX_WAIT: Duration = Duration::from_mins(1);

/// Limits that no job reaches.
const LIMITS: Limits = Limits { connections: Some(2), checkout: MAX_WAIT, work: MAX_WAIT };

/// The owner of jobs in tests that do not depend on owners.
const OWNER: JobOwner = JobOwner::Internal;

fn owner(number: u64) -> JobOwner {
    JobOwner::Credential(number)
}

fn with_items(database: &TestDatabase) -> Database {
    sql_query("CREATE TABLE items (id BIGINT PRIMARY KEY)").execute(&mut database.connect()).unwrap();
    open(database)
}

fn open(database: &TestDatabase) -> Database {
    Database::open(&database.url, LIMITS)
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

/// Runs a future, and asserts that it takes less than [`MAX_WAIT`].
async fn soon<T>(future: impl Future<Output = T>) -> T {
    let begun = Instant::now();
    let done = future.await;
    assert!(begun.elapsed() < MAX_WAIT, "took {:?}", begun.elapsed());
    done
}

fn status<T>(result: Result<T, Error>) -> u16 {
    result.map_or_else(|error| error.into_problem().status(), |_| 200)
}

fn one_connection(database: &TestDatabase) -> Database {
    drop(with_items(database));
    Database::open(&database.url, Limits { connections: Some(1), ..LIMITS })
}

/// Eight connections on PostgreSQL, four and a writer on SQLite.
fn with_default_size(database: &TestDatabase) -> Database {
    drop(with_items(database));
    Database::open(&database.url, Limits { connections: None, ..LIMITS })
}

/// A read that takes its snapshot and then waits.
fn paused_read() -> (impl FnMut(&mut AnyConnection) -> Result<i64, Error> + Send + 'static, Pause) {
    let ((begun, has_begun), (end, ended)) = (channel(), channel());
    let work = move |conn: &mut AnyConnection| {
        let seen = count(conn)?;
        begun.send(()).unwrap();
        ended.recv_timeout(MAX_WAIT).unwrap();
        Ok(seen)
    };
    (work, Pause { has_begun, end })
}

/// Polls a future once, so that its job is queued.
fn queued<T>(read: impl Future<Output = T>) -> impl Future<Output = T> {
    let mut read = Box::pin(read);
    assert!((&mut read).now_or_never().is_none());
    read
}

struct Pause {
    has_begun: Receiver<()>,
    end: Sender<()>,
}

impl Pause {
    fn has_begun(&self) {
        self.has_begun.recv_timeout(MAX_WAIT).unwrap();
    }

    fn end(&self) {
        self.end.send(()).unwrap();
    }
}

#[rstest]
fn a_stale_write_runs_again_from_its_start(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    let db = with_items(database);
    let runs = Arc::new(AtomicUsize::new(0));
    let seen = runs.clone();
    let written = db.write(OWNER, move |conn| {
        insert(conn, 1)?;
        if seen.fetch_add(1, Ordering::Relaxed) < 2 { Err(Error::Stale) } else { Ok(()) }
    });
    block_on(written).unwrap();
    assert_eq!(runs.load(Ordering::Relaxed), 3);
    assert_eq!(block_on(db.read(OWNER, count)).unwrap(), 1);
}

#[rstest]
fn a_write_that_stays_stale_ends_as_503(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    let db = with_items(database);
    let runs = Arc::new(AtomicUsize::new(0));
    let seen = runs.clone();
    let written = db.write(OWNER, move |conn| {
        insert(conn, 1)?;
        seen.fetch_add(1, Ordering::Relaxed);
        Err::<(), _>(Error::Stale)
    });
    assert_eq!(status(block_on(written)), 503);
    assert!((2..10).contains(&runs.load(Ordering::Relaxed)));
    assert_eq!(block_on(db.read(OWNER, count)).unwrap(), 0);
}

#[rstest]
fn a_failed_write_leaves_nothing_and_runs_once(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    let db = with_items(database);
    let runs = Arc::new(AtomicUsize::new(0));
    let seen = runs.clone();
    let written = db.write(OWNER, move |conn| {
        insert(conn, 1)?;
        seen.fetch_add(1, Ordering::Relaxed);
        Err::<(), _>(Problem::new(code::CONFLICT).into())
    });
    assert_eq!(status(block_on(written)), 409);
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    assert_eq!(block_on(db.read(OWNER, count)).unwrap(), 0);
    assert_eq!(
        status(block_on(db.write(OWNER, |conn| {
            insert(conn, 1)?;
            insert(conn, 1)
        }))),
        500
    );
    assert_eq!(block_on(db.read(OWNER, count)).unwrap(), 0);
}

#[rstest]
fn a_panic_costs_one_request_only(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    let db = with_items(database);
    block_on(async {
        // More often than there are connections, reading and writing.
        for _ in 0..4 {
            let panicked: Result<(), _> = db
                .write(OWNER, |conn| {
                    insert(conn, 1)?;
                    panic!("on purpose")
                })
                .await;
            assert_eq!(status(panicked), 500);
            let panicked: Result<(), _> = db.read(OWNER, |_| panic!("on purpose")).await;
            assert_eq!(status(panicked), 500);
        }
        assert_eq!(soon(db.read(OWNER, count)).await.unwrap(), 0);
        soon(db.write(OWNER, |conn| insert(conn, 1))).await.unwrap();
        assert_eq!(db.read(OWNER, count).await.unwrap(), 1);
        assert_eq!(db.connections().0, 0);
    });
}

#[rstest]
fn a_read_is_one_snapshot(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    let db = with_items(database);
    let url = database.url.clone();
    let counts = block_on(db.read(OWNER, move |conn| {
        let before = count(conn)?;
        insert(&mut url.connect().unwrap(), 1)?;
        Ok((before, count(conn)?))
    }));
    assert_eq!(counts.unwrap(), (0, 0));
    assert_eq!(block_on(db.read(OWNER, count)).unwrap(), 1);
}

#[rstest]
fn a_read_cannot_write_on_postgres_and_never_blocks_a_write(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    let db = with_items(database);
    if database.url.is_postgres() {
        assert_eq!(status(block_on(db.read(OWNER, |conn| insert(conn, 1)))), 503);
    }
    let other = db.clone();
    let read = db.read(OWNER, move |conn| {
        count(conn)?;
        let other = other.clone();
        std::thread::spawn(move || block_on(soon(other.write(owner(1), |conn| insert(conn, 2))))).join().unwrap()
    });
    block_on(read).unwrap();
}

#[rstest]
fn a_writer_that_waits_for_a_lock_is_503_in_time_and_reads_go_on(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    let patient = with_items(database);
    let impatient = Database::open(&database.url, Limits { checkout: Duration::from_millis(500), ..LIMITS });
    let mut holder = database.connect();
    let lock = match &holder {
        AnyConnection::Postgresql(_) => "BEGIN; LOCK TABLE items IN SHARE ROW EXCLUSIVE MODE",
        AnyConnection::Sqlite(_) => "BEGIN IMMEDIATE",
    };
    let batch = |conn: &mut AnyConnection, sql| diesel::connection::SimpleConnection::batch_execute(conn, sql);
    batch(&mut holder, lock).unwrap();
    block_on(async {
        // More writes than connections: some wait for the lock, others for a connection.
        let waiting: Vec<_> = (0..5).map(|id| queued(patient.write(OWNER, move |conn| insert(conn, id)))).collect();
        let refused = soon(join_all((0..5).map(|id| impatient.write(OWNER, move |conn| insert(conn, id))))).await;
        assert!(refused.into_iter().all(|written| status(written) == 503));
        assert_eq!(patient.read(owner(1), count).await.unwrap(), 0);
        batch(&mut holder, "COMMIT").unwrap();
        assert!(soon(join_all(waiting)).await.into_iter().all(|written| written.is_ok()));
        assert_eq!(impatient.read(OWNER, count).await.unwrap(), 5);
    });
}

#[rstest]
fn all_writers_at_once_get_through(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    let db = with_items(database);
    block_on(async {
        let writes = (0..200).map(|id| db.write(OWNER, move |conn| insert(conn, id)));
        let (written, waiting) = tokio::join!(join_all(writes), async { db.queue_metrics().waiting.get() });
        assert!(written.into_iter().all(|written| written.is_ok()));
        assert!(waiting > 2, "{waiting}");
        assert_eq!((db.queue_metrics().waiting.get(), db.queue_metrics().refused.get()), (0, 0));
        assert_eq!(db.read(OWNER, count).await.unwrap(), 200);
    });
}

#[rstest]
fn a_read_sees_what_was_written_before_it_was_queued(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    let db = one_connection(database);
    let ((first, before), (second, meanwhile)) = (paused_read(), paused_read());
    block_on(async {
        let first = queued(db.read(OWNER, first));
        before.has_begun();
        let second = queued(db.read(OWNER, second));
        before.end();
        meanwhile.has_begun();
        insert(&mut database.connect(), 1).unwrap();
        let late = queued(db.read(OWNER, count));
        meanwhile.end();
        let (first, second, late) = tokio::join!(first, second, late);
        assert_eq!([first, second, late].map(Result::unwrap), [0, 0, 1]);
    });
}

#[rstest]
fn a_failure_does_not_touch_other_jobs_on_the_same_connection(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    let db = one_connection(database);
    let (first, pause) = paused_read();
    block_on(async {
        let first = queued(db.read(OWNER, first));
        pause.has_begun();
        let before = queued(db.read(OWNER, count));
        let wrong = queued(db.read(OWNER, |conn| Ok(sql_query("SELECT 1 FROM nowhere").execute(conn)?)));
        let between = queued(db.read(OWNER, count));
        let panics = queued(db.read(OWNER, |conn| if count(conn)? == 0 { panic!("on purpose") } else { Ok(()) }));
        let after = queued(db.read(OWNER, count));
        pause.end();
        let (first, before, wrong, between, panics, after) = tokio::join!(first, before, wrong, between, panics, after);
        assert_eq!([first, before, between, after].map(Result::unwrap), [0; 4]);
        assert_eq!([status(wrong), status(panics)], [500; 2]);
        db.write(OWNER, |conn| insert(conn, 1)).await.unwrap();
        assert_eq!(db.read(OWNER, count).await.unwrap(), 1);
    });
}

#[rstest]
fn a_later_page_waits_when_a_new_request_is_refused(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    drop(with_items(database));
    let limits = Limits { connections: Some(1), checkout: Duration::from_millis(500), work: MAX_WAIT };
    let db = Database::open(&database.url, limits);
    let (end, ended) = std::sync::mpsc::channel();
    block_on(async {
        let long = db.read(OWNER, move |_| {
            ended.recv_timeout(MAX_WAIT).unwrap();
            Ok(())
        });
        let others = async {
            // One after the other, so that the next page has waited longer than the first one.
            let refused = [status(soon(db.read(OWNER, count)).await), status(soon(db.read(OWNER, count)).await)];
            end.send(()).unwrap();
            refused
        };
        let (long, rest, refused) = tokio::join!(long, db.read_next_page(OWNER, false, count), others);
        long.unwrap();
        assert_eq!((rest.unwrap(), refused), (0, [503; 2]));
    });
}

#[rstest]
fn a_transaction_costs_two_statements(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    let db = with_items(database);
    block_on(db.read(OWNER, count)).unwrap();
    let before = db.statements().get();
    block_on(db.read(OWNER, count)).unwrap();
    assert_eq!(db.statements().get() - before, 3);
    let before = db.statements().get();
    block_on(db.write(OWNER, |conn| insert(conn, 1))).unwrap();
    assert_eq!(db.statements().get() - before, 3);
}

#[rstest]
fn a_shortcut_makes_the_transaction_unnecessary(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    let db = one_connection(database);
    let shortcut = |conn: &mut AnyConnection| Some(count(conn));
    let no_shortcut = |conn: &mut AnyConnection| count(conn).err().map(Err);
    let work = |conn: &mut AnyConnection| Ok(count(conn)? + 100);
    let read = |shortcut: fn(&mut AnyConnection) -> Option<Result<i64, Error>>| {
        let before = db.statements().get();
        let result = block_on(db.read_with_shortcut(OWNER, shortcut, work)).unwrap();
        (result, db.statements().get() - before)
    };
    assert_eq!(read(shortcut), (0, 1));
    assert_eq!(read(no_shortcut), (100, 4));
}

#[rstest]
fn a_read_without_transaction_gets_one_only_after_a_failure(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    let db = one_connection(database);
    let before = db.statements().get();
    assert_eq!(block_on(db.read_without_transaction(OWNER, count)).unwrap(), 0);
    assert_eq!(db.statements().get() - before, 1);
    let refused = |_: &mut AnyConnection| Err::<i64, _>(Problem::not_found("item").into());
    assert_eq!(status(block_on(db.read_without_transaction(OWNER, refused))), 404);
    assert_eq!(db.statements().get() - before, 1);
    let mut attempts = 0;
    let fails_first = move |conn: &mut AnyConnection| {
        attempts += 1;
        if attempts == 1 { Ok(i64::try_from(sql_query("SELECT missing").execute(conn)?).unwrap()) } else { count(conn) }
    };
    assert_eq!(block_on(db.read_without_transaction(OWNER, fails_first)).unwrap(), 0);
    assert_eq!(db.statements().get() - before, 5);
}

#[test]
fn a_read_without_transaction_survives_a_lost_connection() {
    let database = &TestDatabase::postgres();
    let db = one_connection(database);
    let process = settings(&db, &["SELECT pg_backend_pid()::text AS value"]).remove(0);
    sql_query(format!("SELECT pg_terminate_backend({process})")).execute(&mut database.connect()).unwrap();
    assert_eq!(block_on(db.read_without_transaction(OWNER, count)).unwrap(), 0);
}

/// The statement that a shortcut begins with may be the first to notice that a connection is lost.
#[test]
fn a_shortcut_on_a_lost_connection_is_no_failure() {
    let database = &TestDatabase::postgres();
    let db = one_connection(database);
    let process = settings(&db, &["SELECT pg_backend_pid()::text AS value"]).remove(0);
    sql_query(format!("SELECT pg_terminate_backend({process})")).execute(&mut database.connect()).unwrap();
    let read = db.read_with_shortcut(OWNER, |conn| count(conn).ok().map(Ok), |conn| Ok(count(conn)? + 100));
    assert_eq!(block_on(read).unwrap(), 100);
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
        assert_eq!(status(soon(db.read(OWNER, count)).await), 503);
        assert!(!soon(db.ping()).await);
        // The callers have their answers in time, while the threads may still wait.
        let begun = std::time::Instant::now();
        while (db.queue_metrics().waiting.get(), db.queue_metrics().refused.get()) != (0, 2) {
            assert!(begun.elapsed() < MAX_WAIT);
            tokio::task::yield_now().await;
        }
    });
}

#[derive(QueryableByName)]
struct Setting {
    #[diesel(sql_type = Text)]
    value: String,
}

/// Settings of a connection of the executor.
fn settings(db: &Database, queries: &'static [&'static str]) -> Vec<String> {
    let values = db.write(OWNER, move |conn| {
        queries.iter().map(|query| Ok(sql_query(*query).get_result::<Setting>(conn)?.value)).collect()
    });
    block_on(values).unwrap()
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
fn postgres_ends_statements_and_transactions_that_take_too_long() {
    let limits = Limits { work: Duration::from_secs(5), ..LIMITS };
    let db = Database::open(&TestDatabase::postgres().url, limits);
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
    assert!((100..=60_000).contains(&wait[0].parse::<u64>().unwrap()), "{wait:?}");
}

#[rstest]
fn sixteen_expensive_reads_of_one_owner_do_not_delay_another(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    let db = with_default_size(database);
    let half = if database.url.is_postgres() { 4 } else { 2 };
    let (begun, has_begun) = channel();
    block_on(async {
        // They end when the others have their answers, so that no speed makes a difference.
        let (expensive, ends): (Vec<_>, Vec<_>) = (0..16)
            .map(|number| {
                let (begun, (end, ended)) = (begun.clone(), channel::<()>());
                let read = queued(db.read(owner(1), move |_| {
                    begun.send(number).unwrap();
                    // Until the test drops the other end.
                    ended.recv().unwrap_err();
                    Ok(number)
                }));
                (read, end)
            })
            .unzip();
        let mut running: Vec<_> = (0..half).map(|_| has_begun.recv_timeout(MAX_WAIT).unwrap()).collect();
        for _ in 0..100 {
            assert_eq!(db.read(owner(2), count).await.unwrap(), 0);
        }
        assert!(has_begun.try_recv().is_err(), "they run on more than half of the threads");
        drop(ends);
        let ended = join_all(expensive).await.into_iter().map(Result::unwrap);
        assert!(ended.eq(0..16));
        running.extend(has_begun.try_iter());
        running.sort_unstable();
        assert!(running.into_iter().eq(0..16));
    });
}

#[rstest]
fn the_queue_alternates_between_owners(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    let db = one_connection(database);
    let (first, pause) = paused_read();
    let (runs, order) = channel();
    let job = |number| {
        let runs = runs.clone();
        queued(db.read(owner(number), move |_| {
            runs.send(number).unwrap();
            Ok(())
        }))
    };
    block_on(async {
        let first = queued(db.read(OWNER, first));
        pause.has_begun();
        let jobs = [1, 1, 1, 2, 2, 3].map(job);
        pause.end();
        first.await.unwrap();
        join_all(jobs).await;
    });
    drop((db, runs));
    assert_eq!(order.iter().collect::<Vec<_>>(), [1, 2, 3, 1, 2, 1]);
}

#[rstest]
fn writers_that_wait_leave_connections_for_reads_and_for_other_keys(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    let db = with_default_size(database);
    let mut holder = database.connect();
    insert(&mut holder, 1).unwrap();
    let lock = match &holder {
        AnyConnection::Postgresql(_) => "BEGIN; UPDATE items SET id = 1",
        AnyConnection::Sqlite(_) => "BEGIN IMMEDIATE",
    };
    let batch = |conn: &mut AnyConnection, sql| diesel::connection::SimpleConnection::batch_execute(conn, sql);
    batch(&mut holder, lock).unwrap();
    let update = |conn: &mut AnyConnection| Ok(sql_query("UPDATE items SET id = 1 WHERE id = 1").execute(conn)?);
    // What waited for the lock would fail.
    block_on(async {
        // Each has its own owner, so that only the share of writers limits them.
        let writers: Vec<_> = (0..12).map(|number| queued(db.write(owner(number), update))).collect();
        for number in 100..120 {
            assert_eq!(db.read(owner(number), count).await.unwrap(), 1);
        }
        batch(&mut holder, "COMMIT").unwrap();
        assert!(join_all(writers).await.into_iter().all(|written| written.is_ok()));

        // Writers with one key hold one connection.
        batch(&mut holder, lock).unwrap();
        let key = Some(QueueKey::new(&"place"));
        let writers: Vec<_> = (0..12).map(|number| queued(db.write_keyed(owner(number), key, update))).collect();
        if database.url.is_postgres() {
            db.write_keyed(owner(100), Some(QueueKey::new(&"elsewhere")), |conn| insert(conn, 2)).await.unwrap();
        }
        batch(&mut holder, "COMMIT").unwrap();
        assert!(join_all(writers).await.into_iter().all(|written| written.is_ok()));
    });
}

/// On PostgreSQL no commit ends, because its standby is away; on SQLite another program writes.
#[rstest]
fn writes_whose_callers_have_given_up_leave_the_queue(#[values(Sqlite, Postgres)] backend: Backend) {
    let database = &TestDatabase::new(backend);
    drop(with_items(database));
    let mut other = database.connect();
    let (url, release) = if database.url.is_postgres() {
        let waiting = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
        (format!("{}%20-csynchronous_commit%3Don", database.url_text).parse().unwrap(), waiting)
    } else {
        sql_query("BEGIN IMMEDIATE").execute(&mut other).unwrap();
        (database.url.clone(), "COMMIT")
    };
    let limits = Limits { connections: None, checkout: Duration::from_secs(2), work: Duration::from_secs(1) };
    let db = Database::open(&url, limits);
    block_on(async {
        for round in 0..2 {
            // Half of them of one owner, whose reads go on as well, and some with one key.
            let writes = (0..500_i64).map(|number| {
                let id = round * 500 + number;
                let owner = if id % 2 == 0 { OWNER } else { owner(number.unsigned_abs()) };
                let key = (id % 4 == 0).then(|| QueueKey::new(&"place"));
                db.write_keyed(owner, key, move |conn| insert(conn, id))
            });
            let (writes, read) = tokio::join!(join_all(writes), db.read(OWNER, count));
            assert!(writes.into_iter().all(|written| status(written) == 503));
            assert_eq!(read.unwrap(), 0);
            assert!(db.ping().await);
            assert_eq!(db.read(owner(1), count).await.unwrap(), 0);
            // Nothing waits but what runs.
            assert!(db.queue_metrics().waiting.get() <= i64::from(db.connections().1));
        }
        // The standby is there, or the other program has written.
        let begun = Instant::now();
        while db.queue_metrics().waiting.get() > 0 || db.connections().0 > 0 {
            assert!(begun.elapsed() < MAX_WAIT, "the queue is not empty");
            sql_query(release).execute(&mut other).ok();
            tokio::task::yield_now().await;
        }
    });
}

/// Takes seconds: it waits for the time limits of frozen connections.
#[test]
fn frozen_connections_are_replaced_up_to_a_bound() {
    let database = TestDatabase::postgres();
    drop(with_items(&database));
    let (proxy, url) = FreezingProxy::before(&database.url_text);
    // In this time eight connections can be made at once, also on a machine with other work.
    let limit = Duration::from_secs(2);
    let db = Database::open(&url.parse().unwrap(), Limits { connections: Some(8), checkout: limit, work: limit });
    let all_at_once = || join_all((0..8).map(|number| soon(db.read(owner(number), count))));
    // Eight at the same time, so that there are eight connections.
    let connect = || {
        let together = Arc::new(std::sync::Barrier::new(8));
        join_all((0..8).map(|number| {
            let together = together.clone();
            db.read(owner(number), move |_| {
                together.wait();
                Ok(())
            })
        }))
    };
    let recovers = async || {
        let started = Instant::now();
        while db.read(OWNER, count).await.is_err() {
            assert!(started.elapsed() < MAX_WAIT, "no other connection was made");
        }
    };
    block_on(async {
        assert!(connect().await.into_iter().all(|read| read.is_ok()));
        proxy.freeze();
        assert!(all_at_once().await.into_iter().all(|read| status(read) == 503));
        // The former connections are still frozen.
        recovers().await;
        assert!(connect().await.into_iter().all(|read| read.is_ok()));
        assert_eq!(proxy.connections(), 16);

        // No more threads are replaced.
        proxy.freeze();
        assert!(all_at_once().await.into_iter().all(|read| status(read) == 503));
        let begun = Instant::now();
        loop {
            let started = Instant::now();
            assert_eq!(status(db.read(OWNER, count).await), 503);
            if started.elapsed() < Duration::from_millis(100) {
                break;
            }
            assert!(begun.elapsed() < MAX_WAIT, "not refused at once");
        }
        assert_eq!(proxy.connections(), 16);

        proxy.thaw();
        recovers().await;
    });
}
