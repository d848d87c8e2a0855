//! The real program as a separate process.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    time::{Duration, Instant},
};

use crate::harness::Club;

/// Longer than any step of a test. A step that takes longer hangs.
pub const LONG: Duration = Duration::from_mins(1);

/// The path of the program.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_booking-service");

/// The program, without the environment of this process.
pub fn program(arguments: &[&str]) -> Command {
    program_at(Path::new(PROGRAM), arguments)
}

fn program_at(file: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(file);
    command.env_clear().args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Waits until the condition is true.
#[track_caller]
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    let (_keep, never) = mpsc::channel::<()>();
    while !condition() {
        assert!(begun.elapsed() < LONG, "not so in time: {what}");
        let _ = never.recv_timeout(Duration::from_millis(5));
    }
}

/// A process that serves.
pub struct Process {
    child: Child,
    lines: Receiver<String>,
    log: Vec<String>,
    /// `127.0.0.1:PORT`.
    pub address: String,
}

impl Process {
    /// Starts the program without waiting.
    pub fn spawn(arguments: &[&str]) -> Self {
        Self::spawn_at(Path::new(PROGRAM), arguments)
    }

    /// Starts a copy of the program without waiting.
    pub fn spawn_at(file: &Path, arguments: &[&str]) -> Self {
        let base = ["--bind", "127.0.0.1:0", "--workers", "1", "--database-connections", "2"];
        let mut child = program_at(file, &[&base, arguments].concat()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (send, lines) = mpsc::channel();
        std::thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
        Self { child, lines, log: Vec::new(), address: String::new() }
    }

    /// Starts the program and waits until it listens.
    pub fn start(arguments: &[&str]) -> Self {
        let mut process = Self::spawn(arguments);
        process.until_it_listens();
        process
    }

    /// Starts another replica on the database of a club.
    pub fn beside(club: &Club, arguments: &[&str]) -> Self {
        let url = club.config.database.url.as_ref().unwrap().reveal();
        Self::start(&[&["--database-url", url], arguments].concat())
    }

    pub fn until_it_listens(&mut self) {
        let line = self.until_it_logs("listens on http://");
        let address = line.split("http://").nth(1).and_then(|rest| rest.split([',', '"']).next()).unwrap();
        address.clone_into(&mut self.address);
    }

    /// Waits for a line of the log.
    #[track_caller]
    pub fn until_it_logs(&mut self, text: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(LONG);
            let line = line.unwrap_or_else(|_| panic!("never logs {text:?}, but {:#?}", self.log));
            self.log.push(line.clone());
            if line.contains(text) {
                return line;
            }
        }
    }

    /// The most memory that it has had, in MiB.
    pub fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix(" kB")).unwrap();
        peak.trim().parse::<u64>().unwrap() / 1024
    }

    /// The bytes that it has read, from files and connections.
    pub fn bytes_read(&self) -> i64 {
        let io = std::fs::read_to_string(format!("/proc/{}/io", self.child.id())).unwrap();
        io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
    }

    /// The environment of the process, each variable with a zero byte at its end.
    pub fn environment(&self) -> Vec<u8> {
        std::fs::read(format!("/proc/{}/environ", self.child.id())).unwrap()
    }

    /// Sends a signal, such as `TERM`.
    pub fn signal(&self, name: &str) {
        // `kill` is built into the shell; not every machine has the program.
        let sent = Command::new("sh").args(["-c", &format!("kill -{name} {}", self.child.id())]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits until the process ends.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        let begun = Instant::now();
        loop {
            match self.lines.recv_timeout(LONG.saturating_sub(begun.elapsed())) {
                Ok(line) => self.log.push(line),
                Err(RecvTimeoutError::Disconnected) => return self.child.wait().unwrap(),
                Err(RecvTimeoutError::Timeout) => panic!("does not end; its log: {:#?}", self.log),
            }
        }
    }

    /// The lines of standard error that have been read so far.
    pub fn log(&self) -> &[String] {
        &self.log
    }

    pub fn connect(&self) -> Wire {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        Wire(stream)
    }

    /// Sends a GET on a new connection. Returns the status and the whole answer.
    pub fn get(&self, path: &str) -> (u16, String) {
        let mut wire = self.connect();
        wire.write(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
        wire.read_to_end()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection for raw bytes.
pub struct Wire(TcpStream);

impl Wire {
    pub fn write(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).unwrap();
    }

    /// Reads this number of bytes.
    pub fn read(&mut self, length: usize) -> String {
        let mut bytes = vec![0; length];
        self.0.read_exact(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// Reads until the other side closes. Returns the status and the whole answer.
    #[track_caller]
    pub fn read_to_end(&mut self) -> (u16, String) {
        let mut text = String::new();
        self.0.read_to_string(&mut text).unwrap();
        let status = text.split(' ').nth(1).unwrap_or_else(|| panic!("no answer: {text:?}"));
        (status.parse().unwrap(), text)
    }
}
