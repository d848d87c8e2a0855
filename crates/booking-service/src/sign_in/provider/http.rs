//! The HTTP client for sign-in providers: few threads, short time-outs, and requests to configured addresses only.

use std::{fmt, sync::Arc, time::Duration};

use common::address::{is_loopback, is_safe};
use common::problem::Problem;
use openidconnect::{HttpRequest, HttpResponse, http::Response};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use ureq::Agent;
use url::Url;

use crate::sign_in::failure::unavailable;

/// Until connected, TLS included.
const CONNECT: Duration = Duration::from_secs(2);

/// From the name lookup to the last byte of one answer.
const REQUEST: Duration = Duration::from_secs(5);

/// The most bytes of one answer.
const MOST_BYTES: u64 = 1 << 20;

/// The most threads that wait for the provider, so that a slow provider does not occupy all of them.
const MOST_THREADS: usize = 2;

/// Why there is no answer, in our own words, because those of the other server may contain anything.
#[derive(Debug)]
pub struct NoAnswer(String);

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoAnswer {}

/// A client for one provider. Clones share its threads.
#[derive(Debug, Clone)]
pub struct Http {
    agent: Agent,
    threads: Arc<Semaphore>,
}

impl Http {
    pub fn new() -> Self {
        let config = Agent::config_builder()
            .timeout_connect(Some(CONNECT))
            .timeout_global(Some(REQUEST))
            .http_status_as_error(false)
            // No redirects: codes, tokens and the client secret go only to the configured addresses.
            .max_redirects(0);
        Self { agent: config.build().new_agent(), threads: Arc::new(Semaphore::new(MOST_THREADS)) }
    }

    /// Runs work that waits for the provider, on a blocking thread.
    ///
    /// # Errors
    /// Those of the work.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let permit = self.threads.clone().acquire_owned().await.map_err(Problem::internal)?;
        let http = self.clone();
        let task = tokio::task::spawn_blocking(move || {
            // Released by the thread, also when the caller has given up.
            let _permit = permit;
            work(&http)
        });
        task.await.map_err(Problem::internal)?
    }

    /// Sends a request and waits for the complete answer.
    ///
    /// # Errors
    /// When there is none, it is too large or too late, its status is 5xx, or the address is not safe.
    pub fn send(&self, request: HttpRequest) -> Result<HttpResponse, NoAnswer> {
        let address = Url::parse(&request.uri().to_string()).map_err(|error| NoAnswer(error.to_string()))?;
        is_safe(&address).map_err(NoAnswer)?;
        let response = if request.body().is_empty() {
            self.agent.run(self.without_proxy_to_loopback(&address, request.map(|_| ())))
        } else {
            self.agent.run(self.without_proxy_to_loopback(&address, request))
        };
        let mut answer = response.map_err(|error| NoAnswer(words(&error)))?;
        if answer.status().is_server_error() {
            return Err(NoAnswer(format!("it answers with status {}", answer.status().as_u16())));
        }
        let body = answer.body_mut().with_config().limit(MOST_BYTES).read_to_vec();
        let (parts, _) = answer.into_parts();
        Ok(Response::from_parts(parts, body.map_err(|error| NoAnswer(words(&error)))?))
    }

    /// Uses no proxy of the environment for a loopback address: it could only reach its own loopback.
    fn without_proxy_to_loopback<B: ureq::AsSendBody>(
        &self,
        address: &Url,
        request: ureq::http::Request<B>,
    ) -> ureq::http::Request<B> {
        if is_loopback(address) { self.agent.configure_request(request).proxy(None).build() } else { request }
    }

    /// The JSON object at an address that requires a bearer token (RFC 6750).
    ///
    /// # Errors
    /// 503 when there is none.
    pub fn object(&self, address: &Url, token: &str) -> Result<Map<String, Value>, Problem> {
        let failed = |why: &dyn fmt::Display| unavailable(format!("the user cannot be fetched: {why}"));
        let request = ureq::http::Request::get(address.as_str())
            .header("accept", "application/json")
            .header("authorization", format!("Bearer {token}"))
            .body(Vec::new())
            // Not the error's text, which may contain the token.
            .map_err(|_| failed(&"the token cannot be sent"))?;
        let answer = self.send(request).map_err(|error| failed(&error))?;
        if answer.status() != 200 {
            return Err(failed(&format!("it answers with status {}", answer.status().as_u16())));
        }
        serde_json::from_slice(answer.body()).map_err(|_| failed(&"the answer is no JSON object"))
    }
}

fn words(error: &ureq::Error) -> String {
    use ureq::Error;
    match error {
        Error::BodyExceedsLimit(_) => format!("the answer has more than {MOST_BYTES} bytes"),
        Error::Timeout(ureq::Timeout::Connect) => "no connection in time".to_owned(),
        Error::Timeout(_) => "no complete answer in time".to_owned(),
        Error::Io(cause) => cause.to_string(),
        Error::Rustls(cause) => cause.to_string(),
        Error::HostNotFound => "host not found".to_owned(),
        Error::ConnectionFailed | Error::ConnectProxyFailed(_) => "connection failed".to_owned(),
        _ => "the answer is not HTTP".to_owned(),
    }
}
