//! A connection to the source that is bounded in time and size. The client library trusts the server: it reserves
//! memory for as many columns as the server announces, and collects rows as long as they come. So the client connects
//! to this relay on the loopback interface, which forwards packets within limits and says why it ended the connection.
#![expect(clippy::disallowed_types, reason = "threads of a command, and no actix worker, take the locks")]

use std::{
    io::{self, ErrorKind, Read, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// The bounds of an answer of the server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// How long to wait for a connection.
    pub(crate) connect: Duration,
    /// How long to wait for the next bytes of an answer.
    pub(crate) silence: Duration,
    /// How long an answer may take.
    pub(crate) duration: Duration,
    /// Packets of an answer. Each row is one.
    pub(crate) packets: u64,
    /// Bytes of an answer.
    pub(crate) bytes: u64,
}

impl Limits {
    pub(crate) const DEFAULT: Self = Self {
        connect: Duration::from_secs(10),
        silence: Duration::from_secs(30),
        duration: Duration::from_mins(5),
        packets: 1_000_000,
        bytes: 256 << 20,
    };
}

/// The most columns that a table of MariaDB or MySQL can have.
const MOST_COLUMNS: u64 = 4096;

/// The size of a packet that continues in the next one.
const FULL_PACKET: usize = 0xff_ffff;

/// A running relay. Dropping it ends both connections.
pub(crate) struct Relay {
    /// Where the client connects.
    pub(crate) address: SocketAddr,
    state: Arc<State>,
    server: TcpStream,
}

struct State {
    limits: Limits,
    answer: Mutex<Answer>,
    failure: Mutex<Option<String>>,
}

/// The present answer of the server.
struct Answer {
    /// When the client asked.
    asked_at: Instant,
    /// When the client or the server last sent something.
    last_at: Instant,
    /// Whether it answers a command. The others belong to the authentication.
    is_to_command: bool,
    packets: u64,
    bytes: u64,
}

impl Answer {
    fn new(is_to_command: bool) -> Self {
        Self { asked_at: Instant::now(), last_at: Instant::now(), is_to_command, packets: 0, bytes: 0 }
    }
}

impl Relay {
    /// Connects to the server and waits for one client.
    pub(crate) fn start(host: &str, port: u16, limits: Limits) -> io::Result<Self> {
        let server = connect(host, port, limits.connect)?;
        server.set_nodelay(true)?;
        server.set_write_timeout(Some(limits.silence))?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let state = Arc::new(State { limits, answer: Mutex::new(Answer::new(false)), failure: Mutex::new(None) });
        let relay = Self { address: listener.local_addr()?, state: state.clone(), server: server.try_clone()? };
        thread::spawn(move || {
            let Ok((client, _)) = listener.accept() else { return };
            drop(listener);
            let _ = state.forward(&server, &client);
            let _ = client.shutdown(Shutdown::Both);
            let _ = server.shutdown(Shutdown::Both);
        });
        Ok(relay)
    }

    /// Why the client cannot read, if the server is the cause: the end of the sentence "the source …".
    pub(crate) fn failure(&self) -> Option<String> {
        let silence = self.state.limits.silence;
        let is_silent = lock(&self.state.answer).last_at.elapsed() >= silence;
        let no_answer =
            || format!("has not answered for {} s; is it a MariaDB or MySQL server?", silence.as_secs_f32());
        lock(&self.state.failure).clone().or_else(|| is_silent.then(no_answer))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // Ends both threads.
        let _ = self.server.shutdown(Shutdown::Both);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn connect(host: &str, port: u16, timeout: Duration) -> io::Result<TcpStream> {
    let mut failure = io::Error::other("the name of the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

impl State {
    /// Forwards in both directions until one side ends or the server breaks a limit.
    fn forward(self: &Arc<Self>, server: &TcpStream, client: &TcpStream) -> io::Result<()> {
        client.set_nodelay(true)?;
        let (state, mut from, mut to) = (self.clone(), client.try_clone()?, server.try_clone()?);
        let requests = thread::spawn(move || {
            let mut buffer = [0; 16_384];
            while let Ok(size @ 1..) = from.read(&mut buffer) {
                state.request(&buffer[..size]);
                if to.write_all(&buffer[..size]).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Both);
        });
        if let Err(cause) = self.answers(server, client) {
            lock(&self.failure).get_or_insert(cause);
        }
        client.shutdown(Shutdown::Both)?;
        let _ = requests.join();
        Ok(())
    }

    /// Notes a part of a request. The first part after an answer begins the next answer.
    fn request(&self, bytes: &[u8]) {
        let mut answer = lock(&self.answer);
        if answer.packets > 0 {
            // The fourth byte is the number of the packet, which is 0 in a command.
            *answer = Answer::new(bytes.get(3) == Some(&0));
        }
    }

    /// Forwards the packets of the server. The error is the end of the sentence "the source …".
    fn answers(&self, server: &TcpStream, mut client: &TcpStream) -> Result<(), String> {
        let mut payload = Vec::new();
        let mut continues = false;
        loop {
            let mut header = [0; 4];
            self.read(server, &mut header)?;
            let size = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
            payload.resize(size, 0);
            self.read(server, &mut payload)?;
            self.check(&payload, continues)?;
            continues = size == FULL_PACKET;
            if client.write_all(&header).and_then(|()| client.write_all(&payload)).is_err() {
                return Ok(());
            }
        }
    }

    /// Fills the buffer.
    fn read(&self, mut server: &TcpStream, buffer: &mut [u8]) -> Result<(), String> {
        let mut filled = 0;
        while filled < buffer.len() {
            match server.read(&mut buffer[filled..]) {
                Ok(0) => return Err("has ended the connection".to_owned()),
                Ok(size) => filled += size,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("has ended the connection: {error}")),
            }
            let (asked_at, longest) = (lock(&self.answer).asked_at, self.limits.duration);
            if filled < buffer.len() && asked_at.elapsed() > longest {
                return Err(format!("has not completed an answer within {} s", longest.as_secs_f32()));
            }
        }
        Ok(())
    }

    /// Checks a packet against the limits. `continues`: it is a further part of a large packet.
    fn check(&self, payload: &[u8], continues: bool) -> Result<(), String> {
        let mut answer = lock(&self.answer);
        answer.last_at = Instant::now();
        answer.packets += 1;
        answer.bytes += payload.len() as u64;
        let is_first = answer.packets == 1;
        if answer.packets > self.limits.packets || answer.bytes > self.limits.bytes {
            return Err("answers with more than any database of these systems holds".to_owned());
        }
        let Some(kind) = payload.first() else {
            let empty = "sends what is no answer of a MariaDB or MySQL server";
            return if continues { Ok(()) } else { Err(empty.to_owned()) };
        };
        if is_first && answer.is_to_command {
            // https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_dt_integers.html
            let number =
                |bytes: usize| payload.iter().skip(1).take(bytes).rev().fold(0, |n, byte| n << 8 | u64::from(*byte));
            let columns = match kind {
                0xfb => return Err("asks for a file, which no query here does".to_owned()),
                0xfc => number(2),
                0xfd => number(3),
                0xfe => number(8),
                _ => 0,
            };
            if columns > MOST_COLUMNS {
                return Err(format!("answers with {columns} columns"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the fake servers are threads that wait")]
mod tests {
    use super::*;

    const SHORT: Limits = Limits {
        connect: Duration::from_secs(10),
        silence: Duration::from_mins(1),
        duration: Duration::from_mins(1),
        packets: 1000,
        bytes: 1_000_000,
    };

    /// A relay to a server that does this, and a client that has sent a command.
    fn relay(limits: Limits, server: impl FnOnce(TcpStream) + Send + 'static) -> (Relay, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let greeting = [1, 0, 0, 0, 10];
            stream.write_all(&greeting).unwrap();
            stream.read_exact(&mut [0; 6]).unwrap();
            server(stream);
        });
        let relay = Relay::start("127.0.0.1", port, limits).unwrap();
        let mut client = TcpStream::connect(relay.address).unwrap();
        // As a client does, it gives up some time after the server should have answered.
        client.set_read_timeout(Some(limits.silence * 2)).unwrap();
        client.read_exact(&mut [0; 5]).unwrap();
        client.write_all(&[2, 0, 0, 0, 3, 0]).unwrap();
        (relay, client)
    }

    /// What the relay says when the client cannot read on, and how many bytes the client has read.
    fn failure(server: impl FnOnce(TcpStream) + Send + 'static) -> (String, usize) {
        failure_within(SHORT, server)
    }

    fn failure_within(limits: Limits, server: impl FnOnce(TcpStream) + Send + 'static) -> (String, usize) {
        let (relay, mut client) = relay(limits, server);
        let (mut bytes, mut buffer) = (0, [0; 4096]);
        while let Ok(size @ 1..) = client.read(&mut buffer) {
            bytes += size;
        }
        (relay.failure().unwrap(), bytes)
    }

    /// A packet of the server.
    fn packet(payload: &[u8]) -> Vec<u8> {
        let size = u32::try_from(payload.len()).unwrap().to_le_bytes();
        [&size[..3], &[1], payload].concat()
    }

    #[test]
    fn a_server_that_stops_answering_is_named_as_the_cause() {
        let limits = Limits { silence: Duration::from_millis(300), ..SHORT };
        let wait = || thread::sleep(Duration::from_secs(10));
        let silent = "has not answered for 0.3 s; is it a MariaDB or MySQL server?";
        assert_eq!(failure_within(limits, move |_stream| wait()), (silent.to_owned(), 0));
        // In the middle of an answer, and of a packet.
        for part in [packet(b"\x01"), vec![5, 0, 0, 1, 1]] {
            let (said, _) = failure_within(limits, move |mut stream| {
                stream.write_all(&part).unwrap();
                wait();
            });
            assert_eq!(said, silent);
        }
        let (said, _) = failure(drop);
        assert!(said.starts_with("has ended the connection"), "{said}");
        let (said, _) = failure(|mut stream| stream.write_all(&[200, 0, 0]).unwrap());
        assert!(said.starts_with("has ended the connection"), "{said}");
    }

    #[test]
    fn an_answer_that_never_ends_is_cut_off() {
        let limits = Limits { duration: Duration::from_millis(100), ..SHORT };
        let (said, bytes) = failure_within(limits, |mut stream| {
            stream.write_all(&[255, 255, 0, 1]).unwrap();
            while stream.write_all(&[1]).is_ok() {
                thread::sleep(Duration::from_millis(10));
            }
        });
        assert_eq!((said.as_str(), bytes), ("has not completed an answer within 0.1 s", 0));
    }

    #[test]
    fn an_answer_is_bounded() {
        let endless =
            |payload: Vec<u8>| move |mut stream: TcpStream| while stream.write_all(&packet(&payload)).is_ok() {};
        let more = "answers with more than any database of these systems holds";
        let (said, bytes) = failure(endless(vec![1]));
        assert_eq!((said.as_str(), bytes), (more, 5 * 1000));
        let (said, bytes) = failure(endless(vec![1; 100_000]));
        assert!(said == more && bytes <= 1_000_100, "{said}, {bytes}");
        for (kind, size, columns) in [(0xfc, 2, 4097_u64), (0xfd, 3, 1 << 20), (0xfe, 8, 1 << 40), (0xfe, 8, u64::MAX)]
        {
            let (said, bytes) = failure(endless([&[kind][..], &columns.to_le_bytes()[..size]].concat()));
            assert_eq!((said, bytes), (format!("answers with {columns} columns"), 0));
        }
        let (said, bytes) = failure(endless(Vec::new()));
        assert_eq!((said.as_str(), bytes), ("sends what is no answer of a MariaDB or MySQL server", 0));
        let (said, _) = failure(endless(b"\xfb/etc/passwd".to_vec()));
        assert!(said.starts_with("asks for a file"), "{said}");
    }
}
