//! Start and graceful shutdown of a service.

use std::{io, net::SocketAddr, time::Duration};

use actix_cors::Cors;
use actix_web::{
    App, HttpServer,
    dev::ServerHandle,
    middleware::{Condition, from_fn},
    rt::net::TcpStream,
    web::{self, Data},
};
use socket2::SockRef;
use tokio::signal::unix::{SignalKind, signal};
use utoipa_actix_web::AppExt;

use crate::{
    config::ServerOptions,
    front_page,
    guard::idempotency,
    http::{body::Bodies, client_ip::TrustedProxies, query::path_config},
    middleware::{
        access_log::access_log, allowed_methods::allowed_methods, authenticate_first::authenticate_first,
        compression::compression, head::head_as_get, loopback_host::loopback_host, parameter_names::parameter_names,
        problem_responses::problem_responses, rate_limit::rate_limit, request_id::request_id,
        response_headers::response_headers, time_limit::time_limit,
    },
    retention, routes,
    state::AppState,
};

/// A service that listens.
pub struct Running {
    /// The address, with the actual port if the option says port 0.
    pub address: SocketAddr,
    state: Data<AppState>,
    server: actix_web::dev::Server,
    shutdown_timeout: Duration,
}

/// Threads of each worker that compress answers, read files and talk to other servers, started when needed. Other
/// servers take at most four of them (two the sign-in provider, one the directory, one the keys of a token issuer), so
/// four remain if all of these hang.
const BLOCKING_THREADS: usize = 8;

/// How long sent data may remain unacknowledged before the kernel closes the connection (`TCP_USER_TIMEOUT`).
const SEND_TIMEOUT: Duration = Duration::from_secs(30);

/// The headers that scripts of other origins may read, besides those of a 401.
const EXPOSED_HEADERS: [&str; 7] =
    ["Date", "ETag", "Idempotency-Replayed", "Link", "Location", "Retry-After", "X-Request-Id"];

/// The receive buffer of a connection. The kernel would let it grow to megabytes, and the server reads as much of a body
/// at once as is there, before it knows whether the body is wanted.
const RECEIVE_BUFFER: usize = 32 * 1024;

/// The most bytes of an answer in the buffer of a connection, besides the chunk of a body that is being sent.
const WRITE_BUFFER: usize = 64 * 1024;

/// The most connections of all workers, and of a single worker. Each takes up to 14 kB, which the allocator keeps when it
/// is closed; `deploy/` gives 64 MB to a service with a single worker, else 256 MB. Further clients wait until a
/// connection is closed, as idle ones are after 5 seconds.
const CONNECTIONS: usize = 12_000;
const SINGLE_WORKER_CONNECTIONS: usize = 2_000;

/// Opens the port. `configure` adds what only this service needs to each worker's app.
pub fn listen(
    state: Data<AppState>,
    options: &ServerOptions,
    configure: impl Fn(&mut web::ServiceConfig) + Clone + Send + 'static,
) -> io::Result<Running> {
    let allowed_origins = options.allowed_origins.clone();
    let trusted_proxies = Data::new(TrustedProxies(options.trusted_proxies.clone()));
    // Shorter than the request time-out, so that a client whose body is too slow gets 408 and not 503.
    let timeout = state.request_timeout.mul_f32(0.7);
    let bodies = Data::new(Bodies { timeout, budget: state.metrics.bodies.clone() });
    let shared = state.clone();
    actix_web::rt::spawn(idempotency::delete_expired_keys(state.clone()));
    actix_web::rt::spawn(retention::run(state.clone()));
    let workers = options
        .workers
        .map_or_else(|| std::thread::available_parallelism().map_or(2, std::num::NonZeroUsize::get), usize::from);
    let shutdown_timeout = Duration::from_secs(options.shutdown_timeout);
    let server = HttpServer::new(move || {
        App::new()
            .app_data(shared.clone())
            .app_data(trusted_proxies.clone())
            .app_data(bodies.clone())
            .app_data(path_config())
            .configure(configure.clone())
            .into_utoipa_app()
            .configure(shared.info.routes)
            .into_app()
            .configure(shared.info.pages)
            .configure(|app| {
                if shared.static_files.is_none() {
                    app.configure(shared.info.front_pages).configure(front_page::pages);
                }
            })
            .configure(routes::routes)
            .default_service(web::to(routes::no_route))
            // The last one is the outermost.
            .wrap(from_fn(parameter_names))
            .wrap(from_fn(authenticate_first))
            .wrap(from_fn(rate_limit))
            .wrap(from_fn(allowed_methods))
            .wrap(from_fn(loopback_host))
            .wrap(from_fn(problem_responses))
            .wrap(Condition::new(!allowed_origins.is_empty(), cors(&allowed_origins, shared.info.unauthorized_headers)))
            .wrap(from_fn(compression))
            .wrap(from_fn(time_limit))
            .wrap(from_fn(head_as_get))
            // Again, for the answers of the middlewares in between.
            .wrap(from_fn(problem_responses))
            .wrap(from_fn(response_headers))
            .wrap(from_fn(access_log))
            .wrap(from_fn(request_id))
    })
    .on_connect(|connection, _| {
        let Some(stream) = connection.downcast_ref::<TcpStream>() else { return };
        let socket = SockRef::from(stream);
        let set = socket.set_tcp_user_timeout(Some(SEND_TIMEOUT)).and(socket.set_recv_buffer_size(RECEIVE_BUFFER));
        if let Err(error) = set {
            log::debug!("a connection has no limits: {error}");
        }
    })
    .h1_write_buffer_size(WRITE_BUFFER)
    .workers(workers)
    .max_connections(if workers <= 1 { SINGLE_WORKER_CONNECTIONS } else { (CONNECTIONS / workers).max(1) })
    .worker_max_blocking_threads(BLOCKING_THREADS)
    .shutdown_timeout(options.shutdown_timeout)
    // A streamed list ends in small segments, each of which would wait for the acknowledgement of the one before.
    .tcp_nodelay(true)
    .disable_signals()
    .bind(options.bind.addresses())
    .map_err(|error| io::Error::new(error.kind(), format!("cannot listen on {}: {error}", options.bind)))?;
    let addresses = server.addrs();
    if addresses.len() < options.bind.addresses().len() {
        log::warn!("{} has more addresses, but the service listens only on {addresses:?}", options.bind);
    }
    let address = addresses.first().copied().ok_or_else(|| io::Error::other("there is no address to listen on"))?;
    Ok(Running { address, state, server: server.run(), shutdown_timeout })
}

/// Contract, "CORS". A request that times out or panics does not come back through this middleware, so its answer lacks
/// these headers.
fn cors(allowed_origins: &[String], unauthorized_headers: &[(&str, &str)]) -> Cors {
    let mut cors = Cors::default()
        .allow_any_header()
        .allowed_methods(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])
        .expose_headers(EXPOSED_HEADERS.into_iter().chain(unauthorized_headers.iter().map(|(name, _)| *name)))
        .supports_credentials()
        .block_on_origin_mismatch(false)
        .max_age(3600);
    for origin in allowed_origins {
        cors = cors.allowed_origin(origin);
    }
    cors
}

/// A handle that stops a running service from another task.
#[derive(Clone)]
pub struct Stop {
    state: Data<AppState>,
    handle: ServerHandle,
}

impl Stop {
    /// Makes `/readyz` answer 503; closes the port and idle connections after the drain delay; returns when the
    /// requests in flight are finished or the shutdown time-out has passed.
    pub async fn drain(self) {
        self.state.drain().await;
        self.handle.stop(true).await;
    }
}

impl Running {
    /// A handle to stop it.
    pub fn stop(&self) -> Stop {
        Stop { state: self.state.clone(), handle: self.server.handle() }
    }

    /// Serves until SIGTERM, SIGINT or [`Stop::drain`], then until the service has drained. A second signal stops it at
    /// once.
    pub async fn serve(self) -> io::Result<()> {
        let stop = self.stop();
        let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let signals = async move {
            tokio::select! { _ = term.recv() => {}, _ = int.recv() => {} }
            let drained = async {
                stop.drain().await;
                std::future::pending::<()>().await;
            };
            tokio::select! { () = drained => {}, _ = term.recv() => {}, _ = int.recv() => {} }
            Err(io::Error::other("stopped by a second signal: requests in flight were cut off"))
        };
        log::info!(
            "{} {} listens on http://{}, drains for {} s at most",
            self.state.info.name,
            env!("CARGO_PKG_VERSION"),
            self.address,
            self.shutdown_timeout.as_secs()
        );
        tokio::select! { ended = self.server => ended?, second_signal = signals => return second_signal };
        // Requests cut off by the shutdown time-out are logged when their worker ends, shortly after this.
        for _ in 0..100 {
            if self.state.metrics.in_flight.get() == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.state.database.close().await;
        Ok(())
    }
}
