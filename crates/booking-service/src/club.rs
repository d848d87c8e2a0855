//! The configuration of the service that handlers use.

use std::future::{Ready, ready};

use actix_web::{FromRequest, HttpRequest, dev::Payload, web::Data};
use chrono_tz::Tz;
use club_directory::Source;
use common::problem::Problem;
use service_kit::{credentials::Keys, error::Failure, state::AnswerOptions};

use crate::config::{Config, WebhookOptions};

/// The configuration of the service. As an argument of a handler it is a clone.
#[derive(Debug, Clone)]
pub struct Club {
    /// Time zone in which answers show times and imports read them.
    pub zone: Tz,
    /// Scheme and authority of the web address, without a slash at the end.
    pub origin: String,
    /// Whether the service runs in development mode ([`Config::is_development`]).
    pub is_development: bool,
    /// Name of the everyone group. Empty before the start has looked it up.
    pub everyone_group: String,
    /// The keys of this service.
    pub keys: Keys,
    /// The club directory, if there is one.
    pub directory: Option<Source>,
    /// What webhooks may reach and when they send messages.
    pub messages: WebhookOptions,
}

impl Club {
    /// The values that the options configure.
    pub fn new(config: &Config) -> Result<Self, String> {
        Ok(Self {
            zone: config.time_zone,
            origin: config.server.public_origin(),
            is_development: config.is_development(),
            everyone_group: String::new(),
            keys: config.keys()?,
            directory: config.directory()?,
            messages: config.webhooks.clone(),
        })
    }

    /// The value registered in the app that handles a request.
    ///
    /// # Errors
    /// 500 in an app without one.
    pub fn extract(req: &HttpRequest) -> Result<Self, Problem> {
        let club = req.app_data::<Data<Self>>().map(|club| club.as_ref().clone());
        club.ok_or_else(|| Problem::internal("the app has no club"))
    }

    /// The configuration that answers depend on.
    pub fn answer_options(&self) -> AnswerOptions {
        AnswerOptions {
            options: format!("{} {}", self.zone, self.origin),
            vary: "Cookie, Authorization".to_owned(),
            keys: Some(self.keys.clone()),
            is_development: self.is_development,
            sign_in: Some("/sign-in?to={to}".to_owned()),
            has_sign_out: true,
        }
    }
}

impl FromRequest for Club {
    type Error = Failure;
    type Future = Ready<Result<Self, Failure>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Self::extract(req).map_err(Failure::from))
    }
}

/// The club's time zone, for the many handlers that need nothing else of [`Club`].
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
