//! Requests to sign-in providers: on few threads, and to safe addresses only.

use std::{fmt, sync::Arc};

use club_issuer::{
    Claims,
    issuer::LIMITS,
    outbound::{
        Client, RequestError,
        http::{Request, Response},
    },
};
use common::{address::is_safe, problem::Problem};
use serde_json::Value;
use tokio::sync::Semaphore;
use url::Url;

use crate::failure::unavailable;

/// The most threads that wait for the provider, so that a slow provider does not occupy all of them.
const MOST_THREADS: usize = 2;

/// Why there is no answer. Quotes nothing of the provider.
#[derive(Debug)]
pub struct NoAnswer(String);

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoAnswer {}

impl From<RequestError> for NoAnswer {
    fn from(error: RequestError) -> Self {
        Self(error.to_string())
    }
}

/// A client for one provider. Clones share its threads.
#[derive(Debug, Clone)]
pub struct Http {
    client: Client,
    threads: Arc<Semaphore>,
}

impl Http {
    pub fn new() -> Self {
        Self { client: Client::new(LIMITS), threads: Arc::new(Semaphore::new(MOST_THREADS)) }
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
    /// When there is none, its status is 5xx, or the address is not safe.
    pub fn send(&self, request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, NoAnswer> {
        let address = Url::parse(&request.uri().to_string()).map_err(|error| NoAnswer(error.to_string()))?;
        is_safe(&address).map_err(NoAnswer)?;
        let answer = self.client.send(request)?;
        match answer.status() {
            status if status.is_server_error() => Err(RequestError::Status(status.as_u16()).into()),
            _ => Ok(answer),
        }
    }

    /// Whether an address answers at all.
    ///
    /// # Errors
    /// When it does not, with 5xx, or is not safe.
    pub fn ask(&self, address: &Url) -> Result<(), NoAnswer> {
        let request = Request::get(address.as_str()).body(Vec::new()).map_err(|error| NoAnswer(error.to_string()))?;
        self.send(request).map(drop)
    }

    /// The JSON object at an address that requires a bearer token (RFC 6750).
    ///
    /// # Errors
    /// 503 when there is none.
    pub fn object(&self, address: &Url, token: &str) -> Result<Claims, Problem> {
        match self.json_if_found(address, token)? {
            Some(Value::Object(claims)) => Ok(claims),
            Some(_) => Err(not_fetched("the answer is no JSON object")),
            None => Err(not_fetched("the provider has none")),
        }
    }

    /// The JSON at an address that requires a bearer token, or `None` if the provider says that there is none for this
    /// user (403 and 404).
    ///
    /// # Errors
    /// 503 when there is no such answer.
    pub fn json_if_found(&self, address: &Url, token: &str) -> Result<Option<Value>, Problem> {
        is_safe(address).map_err(not_fetched)?;
        let answer = self.client.get(address, Some(token)).map_err(not_fetched)?;
        match answer.status().as_u16() {
            200 => serde_json::from_slice(answer.body()).map(Some).map_err(|_| not_fetched("the answer is no JSON")),
            403 | 404 => Ok(None),
            status => Err(not_fetched(RequestError::Status(status))),
        }
    }
}

fn not_fetched(why: impl fmt::Display) -> Problem {
    unavailable(format!("the user cannot be fetched: {why}"))
}
