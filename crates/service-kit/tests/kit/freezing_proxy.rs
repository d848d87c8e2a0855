//! A proxy in front of PostgreSQL whose connections can freeze, like those of a stopped server process.
#![expect(clippy::disallowed_types, reason = "no worker is involved")]

use std::{
    io::{Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::PathBuf,
    sync::{Arc, Condvar, Mutex},
};

use tempfile::TempDir;

const SOCKET: &str = ".s.PGSQL.5432";

#[derive(Default)]
struct State {
    connections: usize,
    /// The number of frozen connections, which are the oldest ones.
    frozen: usize,
}

type Shared = Arc<(Mutex<State>, Condvar)>;

/// Forwards bytes between clients and the server, except for frozen connections.
pub struct FreezingProxy {
    shared: Shared,
    _folder: TempDir,
}

impl FreezingProxy {
    /// A proxy for a URL with a folder of sockets, and the URL through the proxy.
    pub fn before(url: &str) -> (Self, String) {
        let server = url.split("host=").nth(1).unwrap().split('&').next().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let through = url.replace(&format!("host={server}"), &format!("host={}", folder.path().display()));
        let listener = UnixListener::bind(folder.path().join(SOCKET)).unwrap();
        let (server, shared) = (PathBuf::from(server).join(SOCKET), Shared::default());
        let state = shared.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = UnixStream::connect(&server).unwrap();
                let number = {
                    let mut state = state.0.lock().unwrap();
                    state.connections += 1;
                    state.connections
                };
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (from, to, state) = (from.try_clone().unwrap(), to.try_clone().unwrap(), state.clone());
                    std::thread::spawn(move || forward(from, to, number, &state));
                }
            }
        });
        (Self { shared, _folder: folder }, through)
    }

    /// Freezes all present connections. New ones work.
    pub fn freeze(&self) {
        let mut state = self.shared.0.lock().unwrap();
        state.frozen = state.connections;
    }

    /// Forwards on all connections again.
    pub fn thaw(&self) {
        self.shared.0.lock().unwrap().frozen = 0;
        self.shared.1.notify_all();
    }

    /// The number of connections so far.
    pub fn connections(&self) -> usize {
        self.shared.0.lock().unwrap().connections
    }
}

fn forward(mut from: UnixStream, mut to: UnixStream, number: usize, (state, changed): &(Mutex<State>, Condvar)) {
    let mut bytes = [0; 8192];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        drop(changed.wait_while(state.lock().unwrap(), |state| number <= state.frozen).unwrap());
        if to.write_all(&bytes[..length]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(std::net::Shutdown::Both), to.shutdown(std::net::Shutdown::Both));
}
