//! What handlers know of this installation.

use std::future::{Ready, ready};

use actix_web::{FromRequest, HttpRequest, dev::Payload, web::Data};
use chrono_tz::Tz;
use common::problem::Problem;
use service_kit::{credentials::Keys, directory::Source, error::Failure, state::Installation};

use crate::config::{Config, SignInPolicy};

/// The installation: as an argument of a handler, a clone of it.
#[derive(Debug, Clone)]
pub struct Club {
    /// Zone in which times are shown and an import reads them.
    pub zone: Tz,
    /// Scheme and authority of the web address, without a slash at the end.
    pub origin: String,
    /// Whether cookies must be `Secure`.
    pub is_https: bool,
    /// Whether anybody may choose who they are: there is no provider, and only this machine can reach the service.
    pub is_development: bool,
    /// Name of the everyone group.
    pub everyone_group: String,
    /// The keys of this installation.
    pub keys: Keys,
    /// Where users and groups come from.
    pub directory: Option<Source>,
    /// Who becomes a member by signing in.
    pub sign_in_policy: SignInPolicy,
}

impl Club {
    /// The installation of a configuration.
    ///
    /// # Errors
    /// One line saying what is wrong with the options.
    pub fn new(config: &Config) -> Result<Self, String> {
        Ok(Self {
            zone: config.time_zone,
            origin: config.server.public_origin(),
            is_https: config.server.is_https(),
            is_development: config.is_development(),
            everyone_group: config.everyone_group.clone(),
            keys: config.keys()?,
            directory: config.directory()?,
            sign_in_policy: config.sign_in_policy()?,
        })
    }

    /// The installation that a request is for.
    ///
    /// # Errors
    /// 500 in an app without one.
    pub fn of(req: &HttpRequest) -> Result<Self, Problem> {
        let club = req.app_data::<Data<Self>>().map(|club| club.as_ref().clone());
        club.ok_or_else(|| Problem::internal("the app has no club"))
    }

    /// The configuration that answers depend on.
    #[must_use]
    pub fn installation(&self) -> Installation {
        Installation {
            options: format!("{} {}", self.zone, self.origin),
            vary: "Cookie, Authorization".to_owned(),
            keys: Some(self.keys.clone()),
            is_development: self.is_development,
        }
    }
}

impl FromRequest for Club {
    type Error = Failure;
    type Future = Ready<Result<Self, Failure>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Self::of(req).map_err(Failure::from))
    }
}

/// The zone alone, for the many handlers that need nothing else.
#[derive(Debug, Clone, Copy)]
pub struct Zone(pub Tz);

impl FromRequest for Zone {
    type Error = Failure;
    type Future = Ready<Result<Self, Failure>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        let zone = req.app_data::<Data<Club>>().map(|club| Self(club.zone));
        ready(zone.ok_or_else(|| Problem::internal("the app has no club").into()))
    }
}
