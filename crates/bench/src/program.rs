//! Runs the services as processes of their own.

use std::{
    error::Error,
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::{
    Result,
    http::{Connection, request},
};

/// The longest time that a service may take to start.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// The programs of one build.
#[derive(Debug, Clone)]
pub struct Build {
    folder: PathBuf,
    /// The first part of the names of its databases.
    pub name: &'static str,
}

impl Build {
    /// The build of this program.
    pub fn this() -> Result<Self> {
        let folder = std::env::current_exe()?.parent().ok_or("the folder of this program")?.to_owned();
        Ok(Self { folder, name: "this" })
    }

    /// Another build, whose programs are in `folder`.
    pub fn other(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), name: "other" }
    }

    /// The path of a program.
    pub fn program(&self, name: &str) -> Result<PathBuf> {
        let path = self.folder.join(name);
        if path.exists() { Ok(path) } else { Err(format!("{} is missing; see scripts/bench", path.display()).into()) }
    }
}

/// Runs a program to its end and returns its output.
pub fn run(program: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program).env_clear().args(arguments).output()?;
    if !output.status.success() {
        return Err(format!("{}: {}", program.display(), String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// A service that runs until this is dropped.
pub struct Running {
    child: Child,
    pub address: String,
    /// The time from the start to the first 200 of `/readyz`.
    pub ready_after: Duration,
}

impl Running {
    /// Starts a program with `--bind` and waits until it is ready.
    pub async fn start(program: &Path, arguments: &[&str]) -> Result<Self> {
        // The port is free; another program is unlikely to take it before the service does.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        let started = Instant::now();
        let child = Command::new(program)
            .env_clear()
            .args(arguments)
            .args(["--bind", &address])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()?;
        let mut running = Self { child, address, ready_after: Duration::ZERO };
        while !running.is_ready().await {
            if started.elapsed() > START_TIMEOUT || running.child.try_wait()?.is_some() {
                return Err(format!("{} does not start", program.display()).into());
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        running.ready_after = started.elapsed();
        Ok(running)
    }

    async fn is_ready(&self) -> bool {
        let Ok(mut connection) = Connection::open(&self.address).await else { return false };
        connection.exchange(&request("GET", "/readyz", &[], ""), false).await.is_ok_and(|answer| answer.status == 200)
    }

    /// Resets the peak of resident memory.
    pub fn reset_peak_memory(&self) {
        // Without the permission, the peak since the start remains, which is not lower.
        let _ = fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5");
    }

    /// The peak of resident memory in bytes.
    pub fn peak_memory(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")).ok_or("no VmHWM in /proc")?;
        Ok(kilobytes.trim().parse::<u64>()? * 1024)
    }

    /// The processor time of the process since its start, in seconds.
    pub fn processor_time(&self) -> Result<f64> {
        Ok(ProcessTimes::read(self.child.id())?.own)
    }

    /// The number of SQL statements since the start.
    pub async fn statements(&self) -> Result<u64> {
        let mut connection = Connection::open(&self.address).await?;
        let answer = connection.exchange(&request("GET", "/metrics", &[], ""), true).await?;
        let text = String::from_utf8(answer.body)?;
        let line = text.lines().find_map(|line| line.strip_prefix("db_statements_total "));
        Ok(line.ok_or("no db_statements_total in /metrics")?.parse()?)
    }
}

/// A PostgreSQL server on this machine.
#[derive(Debug, Clone, Copy)]
pub struct PostgresServer {
    postmaster: u32,
}

impl PostgresServer {
    /// The server of one of its backends.
    pub fn of_backend(process: u32) -> Result<Self> {
        Ok(Self { postmaster: ProcessTimes::read(process)?.parent })
    }

    /// The processor time of all its backends since the start of the server, in seconds.
    pub fn processor_time(self) -> Result<f64> {
        let mut time = ProcessTimes::read(self.postmaster)?.ended_children;
        for entry in fs::read_dir("/proc")? {
            let Some(process) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            // A process may have ended since the folder was read.
            time += ProcessTimes::read(process)
                .ok()
                .filter(|times| times.parent == self.postmaster)
                .map_or(0.0, |times| times.own);
        }
        Ok(time)
    }
}

/// The fields of `/proc/PID/stat` (`proc_pid_stat(5)`), with times in seconds.
struct ProcessTimes {
    parent: u32,
    own: f64,
    ended_children: f64,
}

impl ProcessTimes {
    /// Units of the times in a second, on every Linux that these services run on.
    const TICKS: f64 = 100.0;

    fn read(process: u32) -> Result<Self> {
        let text = fs::read_to_string(format!("/proc/{process}/stat"))?;
        // The name of the program, in parentheses, may contain spaces.
        let (_, text) = text.rsplit_once(") ").ok_or("no name in /proc/PID/stat")?;
        let fields: Vec<_> = text.split(' ').collect();
        let field = |n: usize| fields.get(n - 3).ok_or("too few fields in /proc/PID/stat");
        let seconds = |n| {
            Ok::<_, Box<dyn Error + Send + Sync>>(
                (field(n)?.parse::<f64>()? + field(n + 1)?.parse::<f64>()?) / Self::TICKS,
            )
        };
        Ok(Self { parent: field(4)?.parse()?, own: seconds(14)?, ended_children: seconds(16)? })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
