//! Identity providers.
//!
//! A provider has an address to which the browser is sent, and exchanges the code of the callback for a user. The page
//! "choose who you are" of development mode works in the same way, so that the rest of the sign-in is the same.
//!
//! * Codes and tokens are sent only to configured addresses and those of the issuer's metadata, over https or within
//!   this machine. The answers of a provider are shown to nobody.
//! * A request waits at most 10 seconds for a provider that does not answer; other requests do not wait
//!   ([`http::Http`]).

mod claims;
pub mod development;
pub mod exchange;
mod http;
mod oauth;
mod openid;
mod people;
mod token_answer;

use std::time::Duration;

use actix_web::HttpRequest;
use common::{problem::Problem, time::Timestamp};

use self::exchange::{AuthorizationResponse, Principal};
use crate::{
    config::{ProviderKind, ProviderSettings},
    failure::unavailable,
    pending::PendingSignIn,
    site::Site,
};

/// The longest time that one request waits for a provider.
const TIMEOUT: Duration = Duration::from_secs(10);

/// An identity provider.
#[derive(Debug)]
pub enum Provider {
    /// None: nobody can sign in. Only tests start such a service.
    Missing,
    /// None: everybody who can reach the service chooses a user. Only on loopback.
    Development,
    /// A plain OAuth 2.0 server.
    OAuth(Box<oauth::OAuth>),
    /// An OpenID Connect issuer.
    OpenId(Box<openid::OpenId>),
}

impl Provider {
    /// The provider of these settings. Sends no request yet.
    pub fn new(settings: Option<ProviderSettings>, is_development: bool) -> Self {
        match settings {
            Some(settings) => match settings.kind.clone() {
                ProviderKind::OpenId { issuer } => Self::OpenId(Box::new(openid::OpenId::new(issuer, settings))),
                ProviderKind::OAuth(addresses) => Self::OAuth(Box::new(oauth::OAuth::new(*addresses, settings))),
            },
            None if is_development => Self::Development,
            None => Self::Missing,
        }
    }

    /// Logs what must agree with the registration at the provider, and fetches the metadata of an issuer, so that a
    /// wrong option shows before anybody signs in.
    pub async fn check_at_start(&self, public_url: &str) {
        let (settings, description) = match self {
            Self::Missing | Self::Development => return log::info!("public URL {public_url}"),
            Self::OAuth(provider) => (provider.settings(), "a plain OAuth 2.0 provider".to_owned()),
            Self::OpenId(provider) => (provider.settings(), format!("the issuer {}", provider.issuer())),
        };
        log::info!("public URL {public_url}, redirect address {}, sign-in at {description}", settings.redirect_url);
        if let Self::OpenId(provider) = self {
            provider.fetch_metadata().await;
        }
    }

    /// Asks the provider, and returns what may be wrong with the options, one line each. The log says if an issuer does
    /// not answer.
    pub async fn doubts(&self) -> Vec<String> {
        match self {
            Self::Missing | Self::Development => Vec::new(),
            Self::OAuth(provider) => provider.doubts().await,
            Self::OpenId(provider) => provider.doubts().await,
        }
    }

    /// The address to send the browser to.
    ///
    /// # Errors
    /// 503 when there is no provider, or its metadata cannot be fetched.
    pub async fn address(&self, site: &Site, req: &HttpRequest, login: &PendingSignIn) -> Result<String, Problem> {
        match self {
            Self::Missing => Err(unavailable("there is no sign-in provider")),
            Self::Development => Ok(development::address(site, req, login)),
            Self::OAuth(provider) => Ok(provider.address(&site.keys, login)),
            Self::OpenId(provider) => in_time(provider.address(&site.keys, login)).await,
        }
    }

    /// Exchanges the code of a callback for its user.
    ///
    /// # Errors
    /// 400 `bad-login` for a code of another sign-in or an expired one, and for an answer that is not proven to be the
    /// provider's; 503 for a provider that does not answer, or whose answer
    /// is not understood.
    pub async fn exchange(
        &self,
        site: &Site,
        response: AuthorizationResponse,
        login: &PendingSignIn,
        now: Timestamp,
    ) -> Result<Principal, Problem> {
        match self {
            Self::Missing => Err(unavailable("there is no sign-in provider")),
            Self::Development => development::exchange(site, &response.code, login, now).map(Principal::User),
            Self::OAuth(provider) => {
                in_time(provider.exchange(&site.keys, response.code, login)).await.map(Principal::Identity)
            }
            Self::OpenId(provider) => {
                in_time(provider.exchange(&site.keys, response, login, now)).await.map(Principal::Identity)
            }
        }
    }
}

async fn in_time<T>(work: impl Future<Output = Result<T, Problem>>) -> Result<T, Problem> {
    let late = |_| unavailable("the sign-in provider takes too long");
    tokio::time::timeout(TIMEOUT, work).await.map_err(late)?
}
