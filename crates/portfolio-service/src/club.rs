//! What handlers know of this installation.

use std::{
    collections::BTreeSet,
    future::{Ready, ready},
};

use actix_web::{FromRequest, HttpRequest, dev::Payload, http::header::HeaderName, web::Data};
use chrono_tz::Tz;
use common::{problem::Problem, semester::YearWithSemester, time::Timestamp};
use service_kit::{
    directory::{self, Source},
    error::Failure,
    http::proxy::Proxies,
    state::Installation,
};

use crate::config::Config;

/// The installation: as an argument of a handler, a clone of it.
#[derive(Debug, Clone)]
pub struct Club {
    /// Zone of the days on which semesters begin.
    pub zone: Tz,
    /// Scheme and authority of the web address, without a slash at the end.
    pub origin: String,
    /// Sign-in names of those who may do everything.
    pub admins: BTreeSet<String>,
    /// Where users and groups come from.
    pub directory: Option<Source>,
}

impl Club {
    /// The installation of a configuration.
    ///
    /// # Errors
    /// One line saying what is wrong with the options.
    pub fn new(config: &Config) -> Result<Self, String> {
        let mut admins: BTreeSet<_> = config.admins.iter().cloned().collect();
        if config.demo && admins.is_empty() {
            admins.extend(directory::demo::members().next().map(str::to_owned));
        }
        Ok(Self {
            zone: config.time_zone,
            origin: config.server.public_origin(),
            admins,
            directory: config.directory()?,
        })
    }

    /// The configuration that answers depend on. What each caller sees is part of their
    /// [`view`](service_kit::guard::Caller::view).
    #[must_use]
    pub fn installation(&self, proxies: &Proxies, is_development: bool) -> Installation {
        // An authenticating proxy recognizes users by cookies or credentials of its own; so must a cache in front of it.
        let headers = proxies.headers.iter().map(HeaderName::as_str);
        let vary = ["Authorization", "Cookie"].into_iter().chain(headers).collect::<Vec<_>>().join(", ");
        let options = format!("{} {}", self.zone, self.origin);
        Installation { options, vary, is_development, keys: None }
    }

    /// The semester of an instant, where the club is.
    #[must_use]
    pub fn semester(&self, at: Timestamp) -> YearWithSemester {
        YearWithSemester::of(at.utc().with_timezone(&self.zone).date_naive())
    }
}

impl FromRequest for Club {
    type Error = Failure;
    type Future = Ready<Result<Self, Failure>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        let club = req.app_data::<Data<Self>>().map(|club| club.as_ref().clone());
        ready(club.ok_or_else(|| Problem::internal("the app has no club").into()))
    }
}
