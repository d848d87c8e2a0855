//! A real nginx in front of a service. Tests include this file by its path, as a module of theirs.
//! `scripts/real-components` has to have run before.

use std::{
    env, fs,
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// A running nginx, which stops when this is dropped.
pub struct Nginx {
    pub address: SocketAddr,
    running: Child,
    _folder: TempDir,
}

impl Nginx {
    /// Starts nginx with this configuration inside `server { … }`, and with these files in the folder of relative
    /// paths.
    pub fn start(server: &str, files: &[(&str, &str)]) -> Self {
        Self::start_with("", server, files)
    }

    /// Also with this configuration inside `http { … }`.
    pub fn start_with(http: &str, server: &str, files: &[(&str, &str)]) -> Self {
        // Another process may take the free port before nginx does.
        (0..5).find_map(|_| Self::try_start(http, server, files)).expect("nginx starts")
    }

    fn try_start(http: &str, server: &str, files: &[(&str, &str)]) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        // If the master runs as root, the worker runs as an unprivileged user.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        let config = format!(
            "daemon off; worker_processes 1; pid nginx.pid; error_log stderr error;
            events {{ worker_connections 64; }}
            http {{
                access_log off;
                client_body_temp_path body; proxy_temp_path proxy;
                fastcgi_temp_path fastcgi; scgi_temp_path scgi; uwsgi_temp_path uwsgi;
                {http}
                server {{ listen {address}; {server} }}
            }}"
        );
        fs::write(folder.path().join("nginx.conf"), config).unwrap();
        drop(free);
        // nginx also stops when this process is killed. `PATH` may lack /usr/sbin, where nginx is.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", "nginx", "-e", "stderr", "-c", "nginx.conf", "-p"]).arg(folder.path());
        command.env("PATH", format!("{}:/usr/sbin", env::var("PATH").unwrap())).stderr(Stdio::null());
        let running = command.spawn().expect("scripts/real-components has run");
        let mut nginx = Self { address, running, _folder: folder };
        let (begun, mut is_up, mut has_ended) = (Instant::now(), false, false);
        while !is_up && !has_ended {
            assert!(begun.elapsed() < Duration::from_mins(1), "nginx neither listens nor ends");
            std::thread::yield_now();
            is_up = TcpStream::connect(address).is_ok();
            has_ended = nginx.running.try_wait().unwrap().is_some();
        }
        // If nginx has ended, another process listens at the address.
        (is_up && nginx.running.try_wait().unwrap().is_none()).then_some(nginx)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // SIGTERM, on which the master also stops its worker.
        Command::new("kill").arg(self.running.id().to_string()).status().ok();
        self.running.wait().ok();
    }
}
