//! Whether a request may be carried out, as far as that is known without its body.

use actix_web::{HttpMessage, HttpRequest};
use common::problem::Problem;
use futures_util::future::LocalBoxFuture;

use super::{client_ip::ClientIp, rate_limit::RateLimitKey};

/// Looks up the caller of a request and checks the rights that need no body, once for each request, and returns the
/// party for whom the body counts. In the extensions of the request until its operation runs, which checks both itself.
#[derive(Clone, Copy)]
pub struct Admission(pub fn(HttpRequest) -> LocalBoxFuture<'static, Result<RateLimitKey, Problem>>);

impl Admission {
    /// Admits or refuses a request. An operation without a guard admits everybody.
    ///
    /// # Errors
    /// 401, 403 and 404 of the operation's guard; 429; 503.
    pub async fn wait(request: &HttpRequest) -> Result<RateLimitKey, Problem> {
        let admission = request.extensions().get::<Self>().copied();
        match admission {
            Some(Self(admit)) => admit(request.clone()).await,
            None => Ok(ClientIp::extract(request).into()),
        }
    }
}
