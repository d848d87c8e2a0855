//! A real `PgBouncer` between the service and PostgreSQL. `scripts/real-components` has to have run before.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    process::{Child, Command, Stdio},
};

use diesel::{RunQueryDsl, sql_query};
use tempfile::TempDir;

use crate::{
    commands::outcome,
    harness::{Backend, Club},
    process::{program, until},
};

/// A running `PgBouncer`, which stops when this is dropped.
struct Pooler {
    running: Child,
    folder: TempDir,
}

impl Pooler {
    /// Starts it before the server whose socket is in a folder.
    fn start(server: &str, mode: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let path = folder.path().display();
        let config = format!(
            "[databases]\n* = host={server}\n[pgbouncer]\nunix_socket_dir = {path}\nlisten_port = 5432\n\
             auth_type = trust\nauth_file = {path}/users\npool_mode = {mode}\n"
        );
        fs::write(folder.path().join("pgbouncer.ini"), config).unwrap();
        fs::write(folder.path().join("users"), "\"postgres\" \"\"\n").unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM"]);
        if fs::metadata("/proc/self").unwrap().uid() == 0 {
            // It refuses to run as root. Only the server's own user may enter the folder of its socket.
            let owner = fs::metadata(server).unwrap().uid().to_string();
            command.args(["--reuid", &owner, "--clear-groups"]);
        }
        command.arg("pgbouncer").arg(folder.path().join("pgbouncer.ini")).stderr(Stdio::null());
        command.env("PATH", format!("{}:/usr/sbin", std::env::var("PATH").unwrap()));
        let mut running = command.spawn().unwrap();
        until("PgBouncer listens", || {
            assert!(running.try_wait().unwrap().is_none(), "PgBouncer has ended; has scripts/real-components run?");
            folder.path().join(".s.PGSQL.5432").exists()
        });
        Self { running, folder }
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        self.running.kill().ok();
        self.running.wait().ok();
    }
}

#[test]
fn a_pooler_of_transactions_is_named_and_one_of_sessions_works() {
    let club = Club::start(Backend::Postgres);
    let server = club.url().split("host=").nth(1).unwrap().split('&').next().unwrap();
    let database = format!("pooled_{}", std::process::id());
    sql_query(format!("CREATE DATABASE {database}")).execute(&mut club.connect()).unwrap();
    for (mode, expected) in [("transaction", Some(1)), ("statement", Some(1)), ("session", Some(0))] {
        let pooler = Pooler::start(server, mode);
        let url = format!("postgres:///{database}?host={}&user=postgres", pooler.folder.path().display());
        let (_, error, status) = outcome(&mut program(&["--database-url", &url, "migrate"]));
        assert_eq!(status, expected, "{mode}: {error}");
        assert_eq!(error.contains("PgBouncer must use pool_mode = session"), expected == Some(1), "{mode}: {error}");
    }
}
