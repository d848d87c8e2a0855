//! Backups, restoring them, moving to PostgreSQL, and databases of other versions. Both services include this file in
//! their tests, by its path.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use diesel::{
    Connection, PgConnection, QueryableByName, RunQueryDsl, SqliteConnection, connection::SimpleConnection,
    migration::MigrationSource, pg::Pg, sql_query, sql_types::Text, sqlite::Sqlite,
};
use diesel_migrations::MigrationHarness as _;
use serde_json::Value;
use service_kit::database::{AnyConnection, Url, migrate::Migrations};
use tempfile::TempDir;

use super::{COMMANDS, MIGRATIONS, PROGRAM, add_old_rows, make, old_rows_are_there, start};
use crate::harness::{ALICE, Answer, Backend, Club, DOCUMENT, postgres_schema};

/// The standard output, the standard error and the exit status of a command.
pub fn run(url: &str, arguments: &[&str]) -> (String, String, Option<i32>) {
    let mut program = Command::new(PROGRAM);
    // Only the portfolio-service has administrators of its own, and warns if there is none.
    program.env_clear().env("ADMINS", "alice").args(["--log", "warn", "--database-url", url]).args(arguments);
    let output = program.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

/// Runs a command that must succeed, and returns its output.
#[track_caller]
pub fn done(url: &str, arguments: &[&str]) -> String {
    let (out, err, status) = run(url, arguments);
    assert_eq!((err.as_str(), status), ("", Some(0)), "{arguments:?}");
    out
}

/// Runs a command that must fail with one line that has `word`.
#[track_caller]
fn refused(url: &str, arguments: &[&str], word: &str) {
    let (out, err, status) = run(url, arguments);
    assert_eq!((err.lines().count(), status), (1, Some(1)), "{arguments:?}: {out}{err}");
    assert!(err.contains(word), "{arguments:?}: {word:?} in {err}");
}

/// Runs a command that must fail because of its options, with one line that has `word`.
#[track_caller]
fn faulty(url: &str, arguments: &[&str], word: &str) {
    let (out, err, status) = run(url, arguments);
    assert_eq!((out.as_str(), err.lines().count(), status), ("", 1, Some(78)), "{arguments:?}: {err}");
    assert!(err.contains(word), "{arguments:?}: {word:?} in {err}");
}

/// The successful answers to Alice for all GETs without parameters in the path.
pub fn answers(club: &Club) -> Vec<(String, Answer)> {
    let paths = DOCUMENT["paths"].as_object().unwrap().iter();
    let paths = paths.filter(|(path, item)| item["get"].is_object() && !path.contains('{'));
    let answers: Vec<_> = paths
        .map(|(path, _)| (path.clone(), club.by(ALICE).get(path)))
        .filter(|(_, answer)| answer.status == 200)
        .collect();
    assert!(answers.len() >= 8, "{answers:?}");
    answers
}

#[track_caller]
pub fn same(found: &[(String, Answer)], expected: &[(String, Answer)]) {
    for ((path, found), (_, expected)) in found.iter().zip(expected) {
        assert_eq!(found.text(), expected.text(), "{path}");
    }
    assert_eq!(found.len(), expected.len());
}

/// Creates an object with this name, with an idempotency key.
pub fn keyed(club: &Club, name: &str) -> Answer {
    let (path, body): (&str, Value) = make(name);
    club.by(ALICE).header("idempotency-key", name).post(path, body)
}

pub fn is_replayed(answer: &Answer) -> bool {
    answer.header("idempotency-replayed") == Some("true")
}

fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

/// The files in the folder of a database whose names begin with its name and `end`.
fn beside(url: &str, end: &str) -> Vec<PathBuf> {
    let file = Path::new(url.strip_prefix("sqlite://").unwrap());
    let begin = format!("{}{end}", file.file_name().unwrap().to_str().unwrap());
    let files = fs::read_dir(file.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(&begin)).collect()
}

/// Stops a club and waits until its database is not in use. Workers end a moment after their service, and a process
/// that another test has forked holds the open files of this one until it executes its program.
fn stop(club: &mut Club) {
    club.stop_all();
    let lock = fs::File::open(&beside(club.url(), ".lock")[0]).unwrap();
    let since = Instant::now();
    while lock.try_lock().is_err() {
        assert!(since.elapsed() < Duration::from_mins(1), "somebody uses the database");
        std::thread::yield_now();
    }
    lock.unlock().unwrap();
}

#[test]
fn a_restored_database_answers_as_it_did_when_it_was_backed_up() {
    let mut club = start(Backend::Sqlite);
    let url = club.url().to_owned();
    let file = club.folder().join("a backup's file");
    let file = file.to_str().unwrap();
    keyed(&club, "kept").expect(201);
    answers(&club);
    let then = answers(&club);
    let said = done(&url, &["backup", file]);
    assert!(said.contains("users: ") && said.contains("schema version 2026"), "{said}");
    let (bytes, about) = (fs::read(file).unwrap(), fs::metadata(file).unwrap());
    assert_eq!(about.permissions().mode() & 0o777, 0o600);
    refused(&url, &["backup", file], "already exists");
    assert_eq!(fs::read(file).unwrap(), bytes);
    assert_eq!(fs::read_dir(club.folder()).unwrap().filter(|it| format!("{it:?}").contains(".part")).count(), 0);

    keyed(&club, "lost").expect(201);
    let later = answers(&club);
    refused(&url, &["restore", file], "a program uses");
    same(&answers(&club), &later);
    stop(&mut club);
    let said = done(&url, &["restore", file]);
    assert!(said.starts_with(&format!("restored to {url}\n")), "{said}");
    let kept = beside(&url, ".before-");
    assert_eq!(kept.len(), 1, "{said}");
    assert!(said.contains(kept[0].to_str().unwrap()), "{said}");
    club.move_to(&url);
    same(&answers(&club), &then);
    assert_eq!(fs::read(file).unwrap(), bytes);

    // A tag of the lost state never matches again, neither now nor after the same number of changes.
    let count_changed = |club: &Club| {
        let differ = later.iter().zip(answers(club)).filter(|((_, later), (_, now))| later.body != now.body);
        let differ = differ.map(|((path, later), _)| {
            club.by(ALICE).header("if-none-match", later.header("etag").unwrap()).get(path).expect(200);
        });
        differ.count()
    };
    assert!(count_changed(&club) > 0);
    // A request before the backup is replayed, and a lost one is executed again.
    assert!(is_replayed(&keyed(&club, "kept").expect(201)));
    assert!(!is_replayed(&keyed(&club, "lost").expect(201)));
    assert!(count_changed(&club) > 0);

    // Restores the database that was replaced.
    stop(&mut club);
    done(&url, &["restore", kept[0].to_str().unwrap()]);
    club.move_to(&url);
    same(&answers(&club), &later);
    assert!(is_replayed(&keyed(&club, "lost").expect(201)));
}

#[test]
fn a_backup_goes_where_there_is_no_database_yet() {
    let folder = tempfile::tempdir().unwrap();
    let (old, file) = (format!("sqlite://{}", path(&folder, "old")), path(&folder, "backup"));
    let new = format!("sqlite://{}", path(&folder, "a folder/new"));
    done(&old, &["migrate"]);
    done(&old, &["backup", &file]);
    assert!(!done(&new, &["restore", &file]).contains("the former database"));
    assert_eq!(done(&new, &["backup", &path(&folder, "again")]), done(&old, &["backup", &path(&folder, "once more")]));
}

#[test]
fn an_invalid_backup_is_refused_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (database, good, bad) = (path(&folder, "database"), path(&folder, "good"), path(&folder, "bad"));
    let url = format!("sqlite://{database}");
    done(&url, &["migrate"]);
    done(&url, &["backup", &good]);
    let (before, bytes) = (fs::read(&database).unwrap(), fs::read(&good).unwrap());
    let damaged = |from: usize, to: usize| {
        let mut bytes = bytes.clone();
        bytes[from..to].fill(0xa5);
        bytes
    };
    let half = bytes.len() / 2 / 4096 * 4096;
    for (content, word) in [
        (b"hello".to_vec(), "not a database"),
        (Vec::new(), "no database of this service"),
        (damaged(half, half + 4096), ""),
        (bytes[..half].to_vec(), ""),
        (bytes[..bytes.len() - 100].to_vec(), ""),
    ] {
        fs::write(&bad, content).unwrap();
        refused(&url, &["restore", &bad], word);
    }
    let changes = [
        ("DELETE FROM __diesel_schema_migrations", "no database of this service"),
        ("DROP TABLE users", "no database of this service: "),
        ("DROP TRIGGER users_update_is_a_change", "users_update_is_a_change of users is missing"),
        ("INSERT INTO __diesel_schema_migrations (version) VALUES ('29990101000000')", "newer program"),
        (
            "INSERT INTO group_admins VALUES (x'00112233445566778899aabbccddeeff', x'00112233445566778899aabbccddeeff')",
            "a row of group_admins refers",
        ),
    ];
    for (change, word) in changes {
        fs::write(&bad, &bytes).unwrap();
        let mut conn = SqliteConnection::establish(&bad).unwrap();
        conn.batch_execute(&format!("PRAGMA foreign_keys = OFF; {change}")).unwrap();
        drop(conn);
        refused(&url, &["restore", &bad], word);
    }
    refused(&url, &["restore", &path(&folder, "none")], "cannot read");
    refused(&url, &["restore", "/dev"], "cannot read /dev: it is no file");
    refused(&url, &["restore", &database], "the database itself");
    let mut open = format!("sqlite://{good}").parse::<Url>().unwrap().connect().unwrap();
    sql_query("SELECT * FROM users").execute(&mut open).unwrap();
    refused(&url, &["restore", &good], "a database in use and no backup");
    drop(open);
    faulty("postgres://nobody@127.0.0.1:1/none", &["restore", &good], "pg_restore");
    assert_eq!(fs::read(&database).unwrap(), before);
    assert!(beside(&url, ".before-").is_empty() && beside(&url, ".restoring").is_empty());

    // Another program has it open.
    let mut other = url.parse::<Url>().unwrap().connect().unwrap();
    sql_query("SELECT * FROM users").execute(&mut other).unwrap();
    refused(&url, &["restore", &good], "a program uses");
    drop(other);
    // SQLite would apply a write-ahead log of another database to the restored one.
    fs::rename(&database, path(&folder, "away")).unwrap();
    fs::write(format!("{database}-wal"), "a log").unwrap();
    refused(&url, &["restore", &good], "belongs to another database");
    fs::remove_file(format!("{database}-wal")).unwrap();
    fs::write(&database, "hello, this is no database at all, but it stands where one should be").unwrap();
    refused(&url, &["restore", &good], "damaged");
    fs::remove_file(&database).unwrap();
    done(&url, &["restore", &good]);
}

#[test]
fn a_backup_that_cannot_be_made_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (url, file) = (format!("sqlite://{}", path(&folder, "database")), path(&folder, "file"));
    refused(&url, &["backup", &file], "there is no database at");
    done(&url, &["migrate"]);
    refused(&url, &["backup", &path(&folder, "nowhere/file")], "cannot write");
    // SQLite must not interpret the name as a URI.
    let odd = Command::new(PROGRAM)
        .env_clear()
        .current_dir(&folder)
        .args(["--database-url", &url, "backup", "file:odd?mode=memory"])
        .output()
        .unwrap();
    assert!(odd.status.success() && folder.path().join("file:odd?mode=memory").is_file(), "{odd:?}");
    faulty("postgres://nobody@127.0.0.1:1/none", &["backup", &file], "pg_dump");
    let mut conn = SqliteConnection::establish(&path(&folder, "database")).unwrap();
    conn.batch_execute(
        "PRAGMA foreign_keys = OFF; INSERT INTO group_admins VALUES (x'00112233445566778899aabbccddeeff', x'00')",
    )
    .unwrap();
    refused(&url, &["backup", &file], "a row of group_admins refers");
    fs::write(format!("{file}.part"), "").unwrap();
    refused(&url, &["backup", &file], "another backup is running");
    assert!(!Path::new(&file).exists());
}

#[derive(QueryableByName)]
struct Name {
    #[diesel(sql_type = Text)]
    name: String,
}

#[test]
fn a_killed_restore_leaves_the_old_or_the_new_database() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", path(&folder, "database"));
    done(&url, &["migrate"]);
    let mark = |name: &str| {
        let mut conn = url.parse::<Url>().unwrap().connect().unwrap();
        conn.batch_execute(&format!(
            "CREATE TABLE IF NOT EXISTS mark (name TEXT); DELETE FROM mark; INSERT INTO mark VALUES ('{name}')"
        ))
        .unwrap();
    };
    mark("new");
    let file = path(&folder, "backup");
    done(&url, &["backup", &file]);
    // The file that exists when the process is killed; with "\0" it is killed at once.
    let moments = ["\0", ".restoring", ".restoring-wal", ".before-", "\0", ".restoring", ".before-"];
    let mut seen = Vec::new();
    for moment in moments {
        for kept in beside(&url, ".before-") {
            fs::remove_file(kept).unwrap();
        }
        mark("old");
        let mut program = Command::new(PROGRAM);
        let program = program.env_clear().args(["--log", "off", "--database-url", &url, "restore", &file]);
        let mut program = program.stdout(Stdio::null()).spawn().unwrap();
        while moment != "\0" && beside(&url, moment).is_empty() && program.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        program.kill().unwrap();
        program.wait().unwrap();
        let mut conn = url.parse::<Url>().unwrap().connect().unwrap();
        let found = sql_query("SELECT name FROM mark UNION ALL SELECT integrity_check FROM pragma_integrity_check");
        let found: Vec<_> = found.load::<Name>(&mut conn).unwrap().into_iter().map(|row| row.name).collect();
        assert!(found == ["old", "ok"] || found == ["new", "ok"], "{moment}: {found:?}");
        seen.push(found[0].clone());
    }
    assert!(seen.contains(&"old".to_owned()), "{seen:?}");
    done(&url, &["restore", &file]);
    assert!(beside(&url, ".restoring").is_empty());
}

#[test]
fn after_copy_to_postgres_has_the_same_answers() {
    let mut club = start(Backend::Sqlite);
    let (url, target) = (club.url().to_owned(), postgres_schema());
    keyed(&club, "kept").expect(201);
    answers(&club);
    let then = answers(&club);
    faulty(&url, &["copy-to", "sqlite://elsewhere"], "copies to postgres://");
    faulty(&url, &["copy-to", "nowhere"], "the URL must be");
    faulty(&target, &["copy-to", &target], "copies from SQLite");
    refused(&format!("{url}x"), &["copy-to", &target], "there is no database");
    let said = done(&url, &["copy-to", &target]);
    assert!(said.starts_with("A program uses the database"), "{said}");
    assert!(said.contains("\nusers: ") && said.contains(" rows, checksum "), "{said}");
    refused(&url, &["copy-to", &target], "not empty: the table idempotency_keys has rows");
    stop(&mut club);
    let file = club.folder().join("url");
    fs::write(&file, postgres_schema()).unwrap();
    assert_eq!(done(&url, &["copy-to", "--url-file", file.to_str().unwrap()]), said.split_once('\n').unwrap().1);
    club.move_to(&target);
    same(&answers(&club), &then);
    assert!(is_replayed(&keyed(&club, "kept").expect(201)));
    assert!(!is_replayed(&keyed(&club, "new").expect(201)));
}

#[test]
fn a_target_that_is_not_empty_or_of_another_version_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let (url, target) = (format!("sqlite://{}", path(&folder, "database")), postgres_schema());
    done(&url, &["migrate"]);
    let mut conn = target.parse::<Url>().unwrap().connect().unwrap();
    conn.batch_execute("CREATE TABLE others (id integer)").unwrap();
    refused(&url, &["copy-to", &target], "it has others, which is not of this program");
    conn.batch_execute("DROP TABLE others").unwrap();
    apply(&mut conn, &MIGRATIONS, 1);
    refused(&url, &["copy-to", &target], "the target is of another version");
    let older = format!("sqlite://{}", path(&folder, "older"));
    apply(&mut older.parse::<Url>().unwrap().connect().unwrap(), &MIGRATIONS, 1);
    refused(&older, &["copy-to", &postgres_schema()], "of another version: run `migrate`");
    done(&target, &["migrate"]);
    done(&url, &["copy-to", &target]);
}

/// Applies the first migrations, as an older program would.
fn apply(conn: &mut AnyConnection, migrations: &Migrations, number: usize) {
    macro_rules! apply {
        ($conn:ident, $migrations:expr, $backend:ty) => {{
            let mut all = MigrationSource::<$backend>::migrations($migrations).unwrap();
            all.sort_by_key(|migration| migration.name().version().to_string());
            // Creates the table of the applied migrations.
            $conn.applied_migrations().unwrap();
            all[..number].iter().for_each(|migration| drop($conn.run_migration(migration).unwrap()));
        }};
    }
    match conn {
        AnyConnection::Postgresql(conn) => {
            let _: &mut PgConnection = conn;
            apply!(conn, &migrations.postgres, Pg);
        }
        AnyConnection::Sqlite(conn) => apply!(conn, &migrations.sqlite, Sqlite),
    }
}

fn database(backend: Backend, folder: &TempDir, name: &str) -> String {
    match backend {
        Backend::Sqlite => format!("sqlite://{}", path(folder, name)),
        Backend::Postgres => postgres_schema(),
    }
}

/// Takes seconds: a database is made with each number of migrations, and the service starts on each.
fn an_older_database_is_brought_up_to_date(backend: Backend) {
    let folder = tempfile::tempdir().unwrap();
    let all = MigrationSource::<Sqlite>::migrations(&MIGRATIONS.sqlite).unwrap().len();
    for number in 1..=all {
        let url = database(backend, &folder, &format!("database {number}"));
        let mut conn = url.parse::<Url>().unwrap().connect().unwrap();
        apply(&mut conn, &MIGRATIONS, number);
        add_old_rows(&mut conn);
        drop(conn);
        if backend == Backend::Sqlite {
            // A backup of the former version, which an upgrade may need.
            let (file, to) = (path(&folder, &format!("backup {number}")), database(backend, &folder, "restored"));
            done(&url, &["backup", &file]);
            let said = done(&to, &["restore", &file]);
            assert_eq!(said.matches("brought up to").count(), all - number, "{said}");
            old_rows_are_there(&Club::start_at(&to, tempfile::tempdir().unwrap(), &[]));
        }
        done(&url, &["migrate"]);
        old_rows_are_there(&Club::start_at(&url, tempfile::tempdir().unwrap(), &[]));
    }
}

fn a_newer_database_is_refused_by_every_command(backend: Backend) {
    let folder = tempfile::tempdir().unwrap();
    let url = database(backend, &folder, "database");
    done(&url, &["migrate"]);
    let file = path(&folder, "backup");
    let mut conn = url.parse::<Url>().unwrap().connect().unwrap();
    conn.batch_execute("INSERT INTO __diesel_schema_migrations (version) VALUES ('29990101000000')").unwrap();
    let backup = ["backup", &*file];
    let mut commands: Vec<&[&str]> = COMMANDS.to_vec();
    commands.push(&["serve", "--bind", "127.0.0.1:0", "--log", "error"]);
    if backend == Backend::Sqlite {
        commands.push(&backup);
        refused(&url, &["copy-to", &postgres_schema()], "of another version");
    }
    for command in commands {
        refused(&url, command, "schema version 29990101000000, which this version of the program does not know");
    }
    assert!(!Path::new(&file).exists());
}

mod sqlite {
    use crate::harness::Backend::Sqlite;

    #[test]
    fn an_older_database_is_brought_up_to_date() {
        super::an_older_database_is_brought_up_to_date(Sqlite);
    }

    #[test]
    fn a_newer_database_is_refused_by_every_command() {
        super::a_newer_database_is_refused_by_every_command(Sqlite);
    }
}

mod postgres {
    use crate::harness::Backend::Postgres;

    #[test]
    fn an_older_database_is_brought_up_to_date() {
        super::an_older_database_is_brought_up_to_date(Postgres);
    }

    #[test]
    fn a_newer_database_is_refused_by_every_command() {
        super::a_newer_database_is_refused_by_every_command(Postgres);
    }
}
