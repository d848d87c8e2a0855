//! Runs the services as processes of their own, from the same build as this program.

use std::{
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
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// The path of a program in the folder of this one.
pub fn path_of(name: &str) -> Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(name);
    if path.exists() { Ok(path) } else { Err(format!("{} is missing; see scripts/bench", path.display()).into()) }
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

    /// The number of SQL statements since the start.
    pub async fn statements(&self) -> Result<u64> {
        let mut connection = Connection::open(&self.address).await?;
        let answer = connection.exchange(&request("GET", "/metrics", &[], ""), true).await?;
        let text = String::from_utf8(answer.body)?;
        let line = text.lines().find_map(|line| line.strip_prefix("db_statements_total "));
        Ok(line.ok_or("no db_statements_total in /metrics")?.parse()?)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
