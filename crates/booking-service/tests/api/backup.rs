//! Backups, restores, the move to PostgreSQL, and databases of other versions.

#[path = "../../../service-kit/tests/shared/backup.rs"]
pub mod rules;

use std::{
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

use booking_service::schema::{event_admins, events, sessions, users};
pub use booking_service::server::MIGRATIONS;
use diesel::{connection::SimpleConnection, prelude::*};
use serde_json::{Value, json};
use service_kit::database::{
    AnyConnection, DataVersion, Url,
    types::{DbTimestamp, DbUuid},
};

pub use crate::process::PROGRAM;
use crate::{
    builders::{At, event_body, merge},
    harness::{ALICE, BOB, Backend, Club, id},
    process::until,
};

/// The commands of this service that need the database, without the common ones.
pub const COMMANDS: [&[&str]; 3] = [&["migrate"], &["token", "list"], &["user", "grant-privilege", "alice"]];

/// A club with data in every table.
pub fn start(backend: Backend) -> Club {
    Club::start_with(backend, &["--demo"])
}

/// A request that creates a row with this name.
pub fn make(name: &str) -> (&'static str, Value) {
    ("/api/tags", json!({"name": name}))
}

/// Adds the rows of a user who signed in with the first version of the schema.
pub fn add_old_rows(conn: &mut AnyConnection) {
    let (id, then) = (DbUuid::new(), DbTimestamp("2026-01-02T03:04:05.678901Z".parse().unwrap()));
    diesel::insert_into(users::table)
        .values((
            (users::id.eq(id), users::name.eq("xenia"), users::display_name.eq("Ольга '\"\\ 🦀"), users::icon.eq("")),
            (users::state.eq(1), users::privileged.eq(true), users::created_at.eq(then), users::updated_at.eq(then)),
        ))
        .execute(conn)
        .unwrap();
    diesel::insert_into(sessions::table)
        .values((
            (sessions::id.eq(DbUuid::new()), sessions::token_hash.eq(vec![0, 1, 255]), sessions::user_id.eq(id)),
            (sessions::created_at.eq(then), sessions::expires_at.eq(then)),
        ))
        .execute(conn)
        .unwrap();
    // Where there is that column already.
    let _ = diesel::update(sessions::table).set(sessions::last_used_at.eq(sessions::created_at)).execute(conn);
}

pub fn old_rows_are_there(club: &Club) {
    let conn = &mut club.connect();
    let (hash, made, used): (Vec<u8>, DbTimestamp, DbTimestamp) = sessions::table
        .select((sessions::token_hash, sessions::created_at, sessions::last_used_at))
        .first(conn)
        .unwrap();
    assert_eq!((hash, made.to_string(), used), (vec![0, 1, 255], "2026-01-02T03:04:05.678901Z".to_owned(), made));
    diesel::update(sessions::table)
        .set((
            sessions::token_hash.eq(service_kit::credentials::hash("session-of-xenia")),
            sessions::expires_at.eq(DbTimestamp(club.clock.now().plus(chrono::TimeDelta::days(1)))),
            sessions::last_used_at.eq(DbTimestamp(club.clock.now())),
        ))
        .execute(conn)
        .unwrap();
    let me = club.by("xenia").get("/api/users/me").expect(200).json();
    assert_eq!((&me["displayName"], &me["privileged"]), (&json!("Ольга '\"\\ 🦀"), &json!(true)));
    club.by("xenia").post("/api/tags", json!({"name": "new"})).expect(201);
}

#[test]
fn a_backup_has_all_acknowledged_writes_and_no_partial_ones() {
    let club = Club::start(Backend::Sqlite);
    let (acknowledged, stop) = (RwLock::new(Vec::new()), AtomicBool::new(false));
    let known = || acknowledged.read().unwrap().clone();
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (acknowledged, stop, club) = (&acknowledged, &stop, &club);
            scope.spawn(move || {
                for number in (0..).take_while(|_| !stop.load(Ordering::Relaxed)) {
                    let place = format!("place {writer} {number}");
                    let name = json!({"name": place, "admins": [id(BOB), id(ALICE)]});
                    let body = merge([event_body(club, BOB, At::Place(&place), (1, 2)), name]);
                    club.by(BOB).post("/api/events", body).expect(201);
                    acknowledged.write().unwrap().push(place);
                }
            });
        }
        // Also set if an assertion fails.
        let _stop = Stop(&stop);
        for round in 0..3 {
            until("something was written", || known().len() > 20 * (round + 1));
            let before = known();
            let file = club.folder().join(format!("backup {round}"));
            rules::done(club.url(), &["backup", file.to_str().unwrap()]);
            let url: Url = format!("sqlite://{}", file.display()).parse().unwrap();
            let conn = &mut url.connect().unwrap();
            let names: Vec<String> = events::table.select(events::name).load(conn).unwrap();
            let missing: Vec<_> = before.iter().filter(|name| !names.contains(name)).collect();
            assert!(missing.is_empty(), "{missing:?}");
            let admins: i64 = event_admins::table.count().get_result(conn).unwrap();
            assert_eq!(usize::try_from(admins).unwrap(), 2 * names.len());
        }
    });
}

/// Sets the flag when it is dropped.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A separate PostgreSQL server with the databases `club` and `restored`, which is empty. Their owner has no other
/// rights.
struct Server {
    process: Child,
    url: String,
}

impl Server {
    fn start() -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/postgres");
        let mut process = Command::new(script).stdout(Stdio::piped()).spawn().unwrap();
        let line = BufReader::new(process.stdout.take().unwrap()).lines().next().unwrap().unwrap();
        let url = line.split('\'').nth(1).unwrap().to_owned();
        let server = Self { process, url };
        let mut conn = server.url.parse::<Url>().unwrap().connect().unwrap();
        for statement in ["CREATE DATABASE club", "CREATE ROLE owner LOGIN", "CREATE DATABASE restored OWNER owner"] {
            conn.batch_execute(statement).unwrap();
        }
        server
    }

    /// The address of one of its databases, for its owner.
    fn url(&self, database: &str) -> String {
        let url = self.url.replace(":///postgres?", &format!(":///{database}?"));
        if database == "restored" { url.replace("user=postgres", "user=owner") } else { url }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let ended = Command::new("kill").arg(self.process.id().to_string()).status();
        assert!(ended.is_ok_and(|status| status.success()));
        self.process.wait().unwrap();
    }
}

/// Runs a block of docs/backups.md.
pub fn as_documented(name: &str, folder: &Path, from: &str, to: &str) {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/backups.md")).unwrap();
    let block = page.split(&format!("\n```sh {name}\n")).nth(1).unwrap().split("\n```").next().unwrap();
    let mut shell = Command::new("bash");
    shell.args(["-euo", "pipefail", "-c", block]).current_dir(folder);
    let done = shell.env("DATABASE_URL", from).env("NEW_DATABASE_URL", to).output().unwrap();
    assert!(done.status.success() && done.stderr.is_empty(), "{block}\n{done:?}");
}

/// The data version of a database, and the server's snapshot of transactions.
fn versions(url: &str) -> (String, String) {
    let mut conn = url.parse::<Url>().unwrap().connect().unwrap();
    let snapshot = diesel::dsl::sql::<diesel::sql_types::Text>("pg_current_snapshot()::text");
    diesel::select((DataVersion, snapshot)).get_result(&mut conn).unwrap()
}

/// Takes seconds: it has a PostgreSQL server of its own, and runs `pg_dump`.
#[test]
fn postgres_is_backed_up_and_restored_as_documented() {
    let server = Server::start();
    let (url, restored) = (server.url("club"), server.url("restored"));
    let mut club = Club::start_at(&url, tempfile::tempdir().unwrap(), &["--demo"]);
    add_old_rows(&mut club.connect());
    old_rows_are_there(&club);
    let make = |club: &Club, name: &str| {
        club.by("xenia").header("idempotency-key", name).post("/api/tags", json!({"name": name})).expect(201)
    };
    make(&club, "kept");
    let ask = |club: &Club| club.by("xenia").get("/api/events").text() + &club.by("xenia").get("/api/tags").text();
    let then = ask(&club);
    as_documented("backup-postgres", club.folder(), &url, "");
    let mode = std::fs::metadata(club.folder().join("booking.dump")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    make(&club, "lost");
    as_documented("restore-postgres", club.folder(), "", &restored);

    // Both databases have the same snapshot, but different rows.
    until("both see the same", || {
        let [(here, seen), (there, too), (again, still)] = [&url, &restored, &url].map(|url| versions(url));
        assert!(here != there && again != there, "{here} {there}");
        seen == too && too == still && here == again
    });
    let tag = club.by("xenia").get("/api/tags").header("etag").unwrap().to_owned();
    club.move_to(&restored);
    assert_eq!(ask(&club), then);
    club.by("xenia").header("if-none-match", &tag).get("/api/tags").expect(200);
    assert!(rules::is_replayed(&make(&club, "kept")));
    assert!(!rules::is_replayed(&make(&club, "lost")));

    // The same on another server.
    let another = Server::start();
    as_documented("restore-postgres", club.folder(), "", &another.url("restored"));
    club.move_to(&another.url("restored"));
    assert_eq!(ask(&club), then);
    club.by("xenia").header("if-none-match", &tag).get("/api/tags").expect(200);
}

#[test]
fn a_terminal_shows_what_a_command_is_doing() {
    let club = Club::start(Backend::Sqlite);
    let file = club.folder().join("copy.db");
    let command = format!("{PROGRAM} backup {} --database-url {}", file.display(), club.url());
    let mut terminal = Command::new("script");
    terminal
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        .env("TERM", "xterm")
        .stdin(Stdio::null());
    let done = terminal.output().unwrap();
    let shown = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success() && shown.contains("copying the database"), "{shown}");
    // Without a terminal, nothing is shown before ten seconds have passed.
    std::fs::remove_file(&file).unwrap();
    let done = Command::new("sh").args(["-c", &command]).output().unwrap();
    assert!(done.status.success() && done.stderr.is_empty(), "{}", String::from_utf8_lossy(&done.stderr));
}
