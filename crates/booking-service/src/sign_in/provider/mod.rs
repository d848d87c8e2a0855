//! Who says who somebody is.
//!
//! A provider does two things: it has an address to which the browser is sent, and it exchanges the code with which the
//! browser comes back for a person. The page "choose who you are" of a development installation works like any other,
//! so that the rest of the sign-in is the same for all.
//!
//! * Codes and tokens go to addresses that are configured or that the issuer's metadata names, by https only (this
//!   machine's own aside), and nothing of what comes back is shown to anybody.
//! * A provider that is away costs its caller 10 seconds at most, and other requests nothing ([`http::Http`]).

mod claims;
pub mod development;
pub mod exchange;
mod http;
mod oauth;
mod openid;

use std::time::Duration;

use actix_web::HttpRequest;
use common::{problem::Problem, time::Timestamp};

use self::exchange::{Returned, Who};
use super::{failure::unavailable, pending::Pending};
use crate::{
    club::Club,
    config::{Config, ProviderKind},
};

/// How long a provider may take for all that one request needs of it.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Who says who somebody is.
#[derive(Debug)]
pub enum Provider {
    /// Nobody: nobody can sign in. Such a service does not start but in tests.
    Missing,
    /// Nobody: whoever can reach the service chooses. Only on loopback.
    Development,
    /// A plain OAuth 2.0 server.
    OAuth(Box<oauth::OAuth>),
    /// An OpenID Connect issuer.
    OpenId(Box<openid::OpenId>),
}

impl Provider {
    /// The provider of a configuration. Nobody is asked anything yet.
    ///
    /// # Errors
    /// One line saying what is wrong with the options.
    pub fn new(config: &Config) -> Result<Self, String> {
        let settings = config.sign_in.provider(&config.server).map_err(|faults| faults.join("; "))?;
        Ok(match settings {
            Some(settings) => match settings.kind.clone() {
                ProviderKind::OpenId { issuer } => Self::OpenId(Box::new(openid::OpenId::new(issuer, settings)?)),
                ProviderKind::OAuth(addresses) => Self::OAuth(Box::new(oauth::OAuth::new(*addresses, settings))),
            },
            None if config.is_development() => Self::Development,
            None => Self::Missing,
        })
    }

    /// Logs what must agree with the registration at the provider, and fetches the metadata of an issuer, so that a wrong
    /// option shows before anybody signs in.
    pub async fn check_at_start(&self, public_url: &str) {
        let (settings, whom) = match self {
            Self::Missing | Self::Development => return log::info!("public URL {public_url}"),
            Self::OAuth(provider) => (provider.settings(), "a plain OAuth 2.0 provider".to_owned()),
            Self::OpenId(provider) => (provider.settings(), format!("the issuer {}", provider.issuer())),
        };
        log::info!("public URL {public_url}, redirect address {}, sign-in at {whom}", settings.redirect_url);
        if let Self::OpenId(provider) = self {
            provider.fetch_metadata().await;
        }
    }

    /// The address to send the browser to.
    ///
    /// # Errors
    /// 503 when there is no provider, or its metadata cannot be had.
    pub async fn address(&self, club: &Club, req: &HttpRequest, login: &Pending) -> Result<String, Problem> {
        match self {
            Self::Missing => Err(unavailable("there is no sign-in provider")),
            Self::Development => Ok(development::address(club, req, login)),
            Self::OAuth(provider) => Ok(provider.address(&club.keys, login)),
            Self::OpenId(provider) => in_time(provider.address(&club.keys, login)).await,
        }
    }

    /// Exchanges the code of a callback for the person that it stands for.
    ///
    /// # Errors
    /// 400 `bad-login` for a code that was not given for this sign-in, or too long ago, and for an answer that is not
    /// proven to be the provider's; 403 for an account without a name that can be used; 503 for a provider that does
    /// not answer, or not in a way that can be understood.
    pub async fn exchange(
        &self,
        club: &Club,
        returned: Returned,
        login: &Pending,
        now: Timestamp,
    ) -> Result<Who, Problem> {
        match self {
            Self::Missing => Err(unavailable("there is no sign-in provider")),
            Self::Development => development::exchange(club, &returned.code, login, now).map(Who::User),
            Self::OAuth(provider) => {
                in_time(provider.exchange(&club.keys, returned.code, login)).await.map(Who::Person)
            }
            Self::OpenId(provider) => {
                in_time(provider.exchange(&club.keys, returned, login, now)).await.map(Who::Person)
            }
        }
    }
}

async fn in_time<T>(work: impl Future<Output = Result<T, Problem>>) -> Result<T, Problem> {
    let late = |_| unavailable("the sign-in provider takes too long");
    tokio::time::timeout(TIMEOUT, work).await.map_err(late)?
}
