//! What a writing request changes, as the caller is shown it (contract, "Conditional requests and retries").

use actix_web::HttpRequest;
use common::{input::Id, problem::Problem, time::Timestamp};
use service_kit::{
    database::{AnyConnection, types::DbUuid},
    error::Error,
    http::{Reply, exchange::Resource, resources::Resources},
};

use crate::{auth::Caller, club::Club};

/// What is asked to be shown, to whom and when.
pub struct Asked<'a> {
    /// To whom.
    pub me: &'a Caller,
    /// Where.
    pub club: &'a Club,
    /// The id in the path; nil when there is none, and it is the caller's own.
    pub id: DbUuid,
    /// When.
    pub now: Timestamp,
}

/// Shows a resource as its `GET` does.
pub type Show = fn(&mut AnyConnection, &Asked<'_>) -> Result<Reply, Error>;

/// What a request changes.
pub struct Target {
    name: String,
    id: DbUuid,
    show: Show,
    club: Club,
    now: Timestamp,
}

impl Target {
    /// Of a request, or `None` for one that makes something new.
    ///
    /// # Errors
    /// 500 in an app that lacks a part.
    pub fn of(req: &HttpRequest, now: Timestamp) -> Result<Option<Self>, Problem> {
        let absent = || Problem::internal("the app has no resources");
        let all = req.app_data::<Resources<Show>>().ok_or_else(absent)?;
        let Some((show, name)) = all.changed_by(req) else { return Ok(None) };
        let in_words = name.starts_with("/api/users/me/");
        let id = req.match_info().iter().find_map(|(_, value)| value.parse::<Id>().ok()).filter(|_| !in_words);
        Ok(Some(Self { name, id: id.map_or_else(DbUuid::nil, DbUuid::from), show, club: Club::of(req)?, now }))
    }

    /// What is changed, as this caller is shown it.
    #[must_use]
    pub fn resource<'a>(&'a self, me: &'a Caller) -> Resource<'a> {
        let shown = move |conn: &mut AnyConnection| {
            (self.show)(conn, &Asked { me, club: &self.club, id: self.id, now: self.now })
        };
        let name = if self.id == DbUuid::nil() { format!("{} {}", self.name, me.id) } else { self.name.clone() };
        Resource { name, shown: Box::new(shown) }
    }
}
