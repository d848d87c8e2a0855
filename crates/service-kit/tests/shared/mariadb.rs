//! A database of the system that a service replaces, in the MariaDB of `scripts/test`. Both services include this file
//! in their tests, by its path.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use mysql::{
    Conn, Opts,
    prelude::{FromRow, Queryable},
};

/// The password of the read-only user, which must not appear in any output.
pub const PASSWORD: &str = "canary-of-the-reader-4f0b77";

/// A database, and a user who may only read it.
pub struct SourceDatabase {
    conn: Conn,
    name: String,
    port: u16,
    folder: tempfile::TempDir,
}

impl SourceDatabase {
    /// A database after these statements.
    pub fn new(statements: &[&str]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let url = std::env::var("TEST_MARIADB_URL").expect(
            "TEST_MARIADB_URL is not set: run the tests by scripts/test, or by `scripts/mariadb run scripts/postgres run cargo test`",
        );
        let opts = Opts::from_url(&url).unwrap();
        let (port, mut conn) = (opts.get_tcp_port(), Conn::new(opts).unwrap());
        let name = format!("t{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        conn.query_drop(format!(
            "CREATE DATABASE {name} CHARACTER SET utf8mb4; USE {name}; \
             CREATE USER {name}@'127.0.0.1' IDENTIFIED BY '{PASSWORD}'; GRANT SELECT ON {name}.* TO {name}@'127.0.0.1'"
        ))
        .unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("password"), format!("{PASSWORD}\n")).unwrap();
        let mut database = Self { conn, name, port, folder };
        for statement in statements {
            database.run(statement);
        }
        database
    }

    /// Runs statements, one after the other.
    pub fn run(&mut self, statements: &str) {
        let mut results = self.conn.query_iter(statements).unwrap_or_else(|error| panic!("{error}: {statements}"));
        // Each statement has a result, or an error.
        while let Some(rows) = results.iter() {
            rows.for_each(|row| drop(row.unwrap_or_else(|error| panic!("{error}: {statements}"))));
        }
    }

    /// All rows of a query.
    pub fn rows<T: FromRow>(&mut self, query: &str) -> Vec<T> {
        self.conn.query(query).unwrap()
    }

    /// The URL for an import.
    pub fn url(&self) -> String {
        self.url_at(self.port)
    }

    /// The URL with another port.
    pub fn url_at(&self, port: u16) -> String {
        format!("mysql://{0}@127.0.0.1:{port}/{0}", self.name)
    }

    /// The file with the password of the read-only user.
    pub fn password_file(&self) -> String {
        self.folder.path().join("password").to_str().unwrap().to_owned()
    }

    /// The port of a proxy that forwards so many bytes of answers and then closes the connection.
    pub fn behind_a_proxy_that_breaks_off_after(&self, bytes: usize) -> u16 {
        let (listener, port) = (TcpListener::bind("127.0.0.1:0").unwrap(), self.port);
        let at = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut server = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut from, &mut to));
            let (mut left, mut buffer) = (bytes, [0; 4096]);
            while left > 0 {
                let room = left.min(buffer.len());
                let Ok(read @ 1..) = server.read(&mut buffer[..room]) else { break };
                client.write_all(&buffer[..read]).unwrap();
                left -= read;
            }
            let _ = client.shutdown(std::net::Shutdown::Both);
            let _ = server.shutdown(std::net::Shutdown::Both);
        });
        at
    }
}

impl Drop for SourceDatabase {
    fn drop(&mut self) {
        let name = &self.name;
        let _ = self.conn.query_drop(format!("DROP DATABASE {name}; DROP USER {name}@'127.0.0.1'"));
    }
}

/// The port of a server that lets everybody in, says that it is MariaDB 10.11, and answers a query of the schema with so
/// many columns, or with endless rows.
pub fn server_without_bounds(columns: Option<u64>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let packet = |number: u8, payload: &[u8]| {
            let size = u32::try_from(payload.len()).unwrap().to_le_bytes();
            [&size[..3], &[number], payload].concat()
        };
        let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
        let column = [
            text("def"),
            text(""),
            text("t"),
            text("t"),
            text("a"),
            text("a"),
            vec![12, 45, 0, 255, 0, 0, 0, 253, 0, 0, 0, 0, 0],
        ];
        let (column, end) = (column.concat(), [0xfe, 0, 0, 2, 0]);
        let rows_of = |columns: u8, rows: &[u8]| {
            let definitions = (0..columns).flat_map(|number| packet(number + 2, &column));
            [packet(1, &[columns]), definitions.collect(), packet(columns + 2, &end), rows.to_vec()].concat()
        };
        // Protocol 10, the version, an id, the challenge, and what the server can do: protocol 4.1 and authentication.
        let capabilities = [0x08, 0x82, 45, 2, 0, 0x08, 0, 21];
        let greeting = [&b"\x0a10.11.6-MariaDB\0\x01\0\0\0abcdefgh\0"[..], &capabilities, &[0; 10], b"abcdefghijkl\0"];
        let native = b"mysql_native_password\0";
        client.write_all(&packet(0, &[greeting.concat(), native.to_vec()].concat())).unwrap();
        let mut buffer = vec![0; 65_536];
        let ok = |number| packet(number, &[0, 0, 0, 2, 0, 0, 0]);
        assert!(client.read(&mut buffer).unwrap() > 0);
        client.write_all(&ok(2)).unwrap();
        while let Ok(size @ 1..) = client.read(&mut buffer) {
            let query = String::from_utf8_lossy(&buffer[..size]).into_owned();
            let answer = if query.contains("VERSION()") {
                let row = packet(4, &text("10.11.6-MariaDB"));
                rows_of(1, &[row, packet(5, &end)].concat())
            } else if !query.contains("information_schema") {
                ok(1)
            } else if let Some(columns) = columns {
                packet(1, &[&[0xfe][..], &columns.to_le_bytes()].concat())
            } else {
                rows_of(2, &[])
            };
            client.write_all(&answer).unwrap();
            if query.contains("information_schema") {
                let row = [text("events"), text("a")].concat();
                // The number of a packet has one byte. These follow the four before them.
                let rows: Vec<u8> = (0..=u8::MAX).flat_map(|n| packet(n.wrapping_add(5), &row)).collect();
                while client.write_all(&rows).is_ok() {}
            }
        }
    });
    port
}

/// The output of a command.
pub struct Printed {
    pub out: String,
    pub err: String,
    pub status: Option<i32>,
}

impl Printed {
    /// Runs a command to its end, and asserts that its output does not have the password.
    pub fn by(command: &mut Command) -> Self {
        let done = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let printed = Self { out: text(done.stdout), err: text(done.stderr), status: done.status.code() };
        assert!(!printed.out.contains(PASSWORD) && !printed.err.contains(PASSWORD));
        printed
    }

    /// Asserts that it succeeded.
    #[track_caller]
    pub fn done(self) -> Self {
        assert_eq!(self.status, Some(0), "{}{}", self.out, self.err);
        self
    }

    /// Asserts that it failed with one line that has these words.
    #[track_caller]
    pub fn failed(&self, status: i32, words: &str) {
        assert_eq!(self.status, Some(status), "{}{}", self.out, self.err);
        // On a slow machine, the command also says what it is doing.
        let is_progress = |line: &&str| line.contains(": database ") || line.starts_with("connecting to the source");
        let lines: Vec<_> = self.err.lines().filter(|line| !is_progress(line)).collect();
        assert!(self.out.is_empty() && lines.len() == 1 && lines[0].contains(words), "{}{}", self.out, self.err);
    }

    /// The counts of a table: read, added, updated, same, kept, left out, over a limit.
    #[track_caller]
    pub fn counts(&self, table: &str) -> Vec<u64> {
        let line = self.out.lines().find_map(|line| line.strip_prefix(&format!("{table}\t")));
        let line = line.unwrap_or_else(|| panic!("{table} is not in {}", self.out));
        line.split('\t').map(|number| number.parse().unwrap()).collect()
    }

    /// The lines below the heading that begins with this text.
    pub fn notes(&self, heading: &str) -> Vec<&str> {
        let lines = self.out.lines().skip_while(|line| !line.starts_with(heading)).skip(1);
        lines.take_while(|line| line.starts_with("  ")).map(str::trim).collect()
    }
}

/// Writes a directory file with users of these ids and names.
pub fn directory_file(folder: &Path, users: &[(String, String)]) -> String {
    let entry = |(id, name): &(String, String)| format!("[[users]]\nid = \"{id}\"\nname = \"{name}\"\n");
    let path = folder.join("directory.toml");
    fs::write(&path, users.iter().map(entry).collect::<String>()).unwrap();
    path.to_str().unwrap().to_owned()
}
