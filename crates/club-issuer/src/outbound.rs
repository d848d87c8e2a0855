//! The HTTP client for other servers: directory, provider, booking-service.
//!
//! * Each request has a time limit, each answer a size limit.
//! * Redirects are not followed, so that tokens, codes and secrets go only to the configured addresses.
//! * A loopback address is never asked through a proxy of the environment, which could only reach its own loopback.
//! * Errors quote neither the answer nor the request: both may hold secrets.

use std::{
    fmt,
    io::{self, Read},
    net::IpAddr,
    sync::Arc,
    time::Duration,
};

use common::address::is_loopback;
pub use ureq::http;
use ureq::{
    Agent, AsSendBody, Error, Timeout,
    config::Config,
    http::{Request, Response, Uri, header},
    unversioned::{
        resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver},
        transport::{DefaultConnector, NextTimeout},
    },
};
use url::Url;

/// The limits of one request.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Until connected, TLS included.
    pub connect: Duration,
    /// From the name lookup to the last byte of the answer.
    pub request: Duration,
    /// The most bytes of the answer's body.
    pub bytes: u64,
}

/// A client. Clones share their connections.
#[derive(Debug, Clone)]
pub struct Client {
    agent: Agent,
    limits: Limits,
}

impl Client {
    /// A client with these limits.
    pub fn new(limits: Limits) -> Self {
        let config = Agent::config_builder()
            .timeout_connect(Some(limits.connect))
            .timeout_global(Some(limits.request))
            .http_status_as_error(false)
            .max_redirects(0);
        Self { agent: config.build().new_agent(), limits }
    }

    /// A client for addresses that users choose. It connects only to addresses of the network that `allows` accepts: each
    /// request looks its name up once and connects to what was found. It uses no proxy of the environment, which would
    /// look the name up again.
    pub fn restricted(limits: Limits, allows: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Self {
        let config = Agent::config_builder()
            .timeout_connect(Some(limits.connect))
            .timeout_global(Some(limits.request))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_idle_connections(0)
            .proxy(None);
        let resolver = Restricted { resolver: DefaultResolver::default(), allows: Arc::new(allows) };
        Self { agent: Agent::with_parts(config.build(), DefaultConnector::default(), resolver), limits }
    }

    /// Requests JSON, with a bearer token (RFC 6750) if there is one. Blocks like [`send`](Self::send).
    pub fn get(&self, address: &Url, token: Option<&str>) -> Result<Response<Vec<u8>>, RequestError> {
        self.send(json_request(address, token)?)
    }

    /// Like [`get`](Self::get), but leaves the body to be read, for which the limits hold too. An error of reading it is
    /// one for [`reading_error`](Self::reading_error).
    ///
    /// # Errors
    /// When there is no answer within the limits.
    pub fn get_unread(&self, address: &Url, token: Option<&str>) -> Result<Response<impl Read + use<>>, RequestError> {
        let request = json_request(address, token)?.map(|_| ());
        let answer = self.run(request, is_loopback(address)).map_err(|error| self.error(&error))?;
        Ok(answer.map(|body| body.into_with_config().limit(self.limits.bytes).reader()))
    }

    /// Why a body could not be read.
    pub fn reading_error(&self, error: io::Error) -> RequestError {
        self.error(&error.into())
    }

    /// Sends a request and waits for the complete answer, whatever its status. This blocks, at most for the time limit.
    ///
    /// # Errors
    /// When there is no complete answer within the limits.
    pub fn send(&self, request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, RequestError> {
        let address = Url::parse(&request.uri().to_string()).map_err(|_| RequestError::Unsendable)?;
        let is_loopback = is_loopback(&address);
        let answer = if request.body().is_empty() {
            self.run(request.map(|_| ()), is_loopback)
        } else {
            self.run(request, is_loopback)
        };
        let (parts, mut body) = answer.map_err(|error| self.error(&error))?.into_parts();
        let body = body.with_config().limit(self.limits.bytes).read_to_vec().map_err(|error| self.error(&error))?;
        Ok(Response::from_parts(parts, body))
    }

    /// Like [`send`](Self::send), but reads at most the allowed bytes of the answer's body and ignores the rest. A body that
    /// breaks off or is late counts as far as it came.
    ///
    /// # Errors
    /// When there is no answer within the limits.
    pub fn send_and_read_start(&self, request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, RequestError> {
        let (parts, body) = self.agent.run(request).map_err(|error| self.error(&error))?.into_parts();
        let mut start = Vec::new();
        // The status is known already.
        let _ = body.into_reader().take(self.limits.bytes).read_to_end(&mut start);
        Ok(Response::from_parts(parts, start))
    }

    fn run<B: AsSendBody>(&self, request: Request<B>, is_loopback: bool) -> Result<Response<ureq::Body>, Error> {
        if is_loopback {
            self.agent.run(self.agent.configure_request(request).proxy(None).build())
        } else {
            self.agent.run(request)
        }
    }

    fn error(&self, error: &Error) -> RequestError {
        match error {
            Error::BodyExceedsLimit(_) => RequestError::TooLarge(self.limits.bytes),
            Error::Timeout(Timeout::Connect) => RequestError::NotConnected("no connection in time".to_owned()),
            Error::Timeout(_) => RequestError::Late,
            Error::Io(cause) => RequestError::NotConnected(cause.to_string()),
            Error::HostNotFound => RequestError::NotConnected("host not found".to_owned()),
            Error::ConnectionFailed | Error::ConnectProxyFailed(_) => {
                RequestError::NotConnected("connection failed".to_owned())
            }
            Error::Rustls(cause) => RequestError::Tls(cause.to_string()),
            Error::Http(_) | Error::BadUri(_) => RequestError::Unsendable,
            _ => RequestError::NotHttp,
        }
    }
}

/// A request for JSON, with a bearer token if there is one.
fn json_request(address: &Url, token: Option<&str>) -> Result<Request<Vec<u8>>, RequestError> {
    let mut request = Request::get(address.as_str()).header(header::ACCEPT, "application/json");
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    request.body(Vec::new()).map_err(|_| RequestError::Unsendable)
}

/// Resolves names, and refuses those with an address that is not allowed.
struct Restricted<R> {
    resolver: R,
    allows: Arc<dyn Fn(IpAddr) -> bool + Send + Sync>,
}

impl<R: Resolver> Resolver for Restricted<R> {
    fn resolve(&self, uri: &Uri, config: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let addresses = self.resolver.resolve(uri, config, timeout)?;
        match addresses.iter().find(|address| !(self.allows)(address.ip())) {
            None => Ok(addresses),
            Some(refused) => {
                let why = format!("the address {} is not allowed", refused.ip().to_canonical());
                Err(Error::Io(io::Error::new(io::ErrorKind::PermissionDenied, why)))
            }
        }
    }
}

impl<R> fmt::Debug for Restricted<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Restricted")
    }
}

/// Why there is no answer that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestError {
    /// The server cannot be reached, or closes the connection.
    NotConnected(String),
    /// TLS fails.
    Tls(String),
    /// The answer is not complete within the time limit.
    Late,
    /// The answer is larger than this number of bytes, the limit.
    TooLarge(u64),
    /// The address or the token cannot be sent in a request.
    Unsendable,
    /// The answer is not HTTP.
    NotHttp,
    /// The answer has a status that the caller cannot use.
    Status(u16),
}

impl RequestError {
    /// Whether the same request may succeed a moment later. One that has used up its time limit is not worth it,
    /// because that would multiply the longest wait.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::NotConnected(_) => true,
            Self::Status(status) => *status == 429 || *status >= 500,
            _ => false,
        }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotConnected(cause) | Self::Tls(cause) => f.write_str(cause),
            Self::Late => f.write_str("no complete answer in time"),
            Self::TooLarge(bytes) => write!(f, "the answer is larger than {bytes} bytes"),
            Self::Unsendable => f.write_str("the configured address or token cannot be sent"),
            Self::NotHttp => f.write_str("the answer is not HTTP"),
            Self::Status(status) => write!(f, "it answered status {status}"),
        }
    }
}

impl std::error::Error for RequestError {}

#[cfg(test)]
mod tests {
    use std::{
        net::{SocketAddr, TcpListener},
        sync::atomic::{AtomicUsize, Ordering},
    };

    use super::*;

    /// Knows one name, whose address changes with each look-up.
    #[derive(Debug)]
    struct Changing(Arc<AtomicUsize>, Vec<SocketAddr>);

    impl Resolver for Changing {
        fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
            let mut found = self.empty();
            found.push(self.1[self.0.fetch_add(1, Ordering::Relaxed)]);
            Ok(found)
        }
    }

    #[test]
    fn a_name_is_looked_up_once_and_its_address_checked() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let private = SocketAddr::new("10.0.0.1".parse().unwrap(), address.port());
        let (lookups, limits) = (
            Arc::<AtomicUsize>::default(),
            Limits { connect: Duration::from_secs(5), request: Duration::from_secs(5), bytes: 4 },
        );
        let resolver = Restricted {
            resolver: Changing(lookups.clone(), vec![address, private]),
            allows: Arc::new(|address: IpAddr| address.is_loopback()),
        };
        let agent = Agent::with_parts(Config::default(), DefaultConnector::default(), resolver);
        let client = Client { agent, limits };
        let answering = std::thread::spawn(move || {
            use std::io::Write as _;
            let mut connection = server.accept().unwrap().0;
            let _ = connection.read(&mut [0; 1024]).unwrap();
            // Declares 10 GB and sends some.
            connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10000000000\r\n\r\nabcdefgh").unwrap();
        });
        let send = || client.send_and_read_start(Request::post("http://name.example/").body(b"x".to_vec()).unwrap());
        let answer = send().unwrap();
        assert_eq!((answer.status().as_u16(), answer.body().as_slice()), (200, b"abcd".as_slice()));
        assert_eq!(lookups.load(Ordering::Relaxed), 1);
        let refused = RequestError::NotConnected("the address 10.0.0.1 is not allowed".to_owned());
        assert_eq!(send().unwrap_err(), refused);
        answering.join().unwrap();
    }
}
