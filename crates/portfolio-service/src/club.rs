//! The settings of the club that handlers use.

use std::{
    collections::BTreeSet,
    future::{Ready, ready},
};

use actix_web::{FromRequest, HttpRequest, dev::Payload, http::header::HeaderName, web::Data};
use chrono_tz::Tz;
use club_directory::Source;
use common::{problem::Problem, semester::YearWithSemester, time::Timestamp};
use service_kit::{error::Failure, state::AnswerOptions};

use crate::{config::Config, identity::Identity};

/// The settings of the club. As an argument of a handler, it is a clone of the shared ones.
#[derive(Debug, Clone)]
pub struct Club {
    /// The time zone in which semesters begin.
    pub zone: Tz,
    /// Scheme and authority of the web address, without a slash at the end.
    pub origin: String,
    /// Sign-in names of the admins.
    pub admins: BTreeSet<String>,
    /// Who else is one: `users.admin` counts only if something keeps it up to date.
    pub stored_admins: StoredAdmins,
    /// Whether the name of a session says who somebody is: not where everybody may choose a name at the provider.
    pub proves_names: bool,
    /// The source of users and groups.
    pub directory: Option<Source>,
}

/// What says who is an admin besides `--admins` and `--admin-claim`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredAdmins {
    /// Nothing.
    None,
    /// The sign-in provider, at each sign-in (`--privileged-claim`).
    OfProvider,
    /// The booking-service, at each sync: its privileged users.
    OfBooking,
}

impl Club {
    /// The settings of a configuration.
    pub fn new(config: &Config) -> Result<Self, String> {
        let mut admins: BTreeSet<_> = config.admins.iter().cloned().collect();
        if config.demo && admins.is_empty() {
            admins.extend(club_directory::demo::members().next().map(str::to_owned));
        }
        let directory = config.directory()?;
        Ok(Self {
            zone: config.time_zone,
            origin: config.server.public_origin(),
            admins,
            stored_admins: match &directory {
                _ if config.sign_in.privileged_claim.is_some() => StoredAdmins::OfProvider,
                Some(Source::Booking { .. }) => StoredAdmins::OfBooking,
                _ => StoredAdmins::None,
            },
            proves_names: config.provider().ok().flatten().is_none_or(|settings| settings.trusts_names),
            directory,
        })
    }

    /// The settings that cached answers depend on. Admin rights, which differ by caller, are part of the caller's
    /// [`view`](service_kit::guard::Caller::view).
    pub fn answer_options(&self, identity: &Identity) -> AnswerOptions {
        // An authenticating proxy identifies users by its own cookies or credentials. A cache in front of it must not
        // mix the answers to different users.
        let headers = identity.proxies.headers.iter().map(HeaderName::as_str);
        let vary = ["Authorization", "Cookie"].into_iter().chain(headers).collect::<Vec<_>>().join(", ");
        let options = format!("{} {}", self.zone, self.origin);
        AnswerOptions {
            options,
            vary,
            keys: None,
            is_development: identity.is_development,
            sign_in: identity.sign_in.clone(),
            has_sign_out: identity.is_development || identity.signs_in,
        }
    }

    /// The semester of an instant in the club's time zone.
    pub fn semester(&self, at: Timestamp) -> YearWithSemester {
        YearWithSemester::containing(at.utc().with_timezone(&self.zone).date_naive())
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
