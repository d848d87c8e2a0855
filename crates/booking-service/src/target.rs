//! What a writing request changes, as the caller is shown it (contract, "Conditional requests and retries").

use actix_web::HttpRequest;
use common::{input::Id, problem::Problem};
use service_kit::{
    db::{AnyConnection, sql::Uid},
    error::Error,
    http::{Reply, exchange::Resource, resources::Resources},
};

use crate::{auth::Caller, club::Club};

/// Shows the resource with this id, or that of the caller when its path has none, as its `GET` does.
pub type Show = fn(&mut AnyConnection, &Caller, &Club, Uid) -> Result<Reply, Error>;

/// What a request changes.
pub struct Target {
    name: String,
    id: Uid,
    show: Show,
    club: Club,
}

impl Target {
    /// Of a request, or `None` for one that makes something new.
    ///
    /// # Errors
    /// 500 in an app that lacks a part.
    pub fn of(req: &HttpRequest) -> Result<Option<Self>, Problem> {
        let absent = || Problem::internal("the app has no resources");
        let all = req.app_data::<Resources<Show>>().ok_or_else(absent)?;
        let Some((show, name)) = all.changed_by(req) else { return Ok(None) };
        let id = req.match_info().iter().find_map(|(_, value)| value.parse::<Id>().ok());
        Ok(Some(Self { name, id: id.map_or_else(Uid::nil, Uid::from), show, club: Club::of(req)? }))
    }

    /// What is changed, as this caller is shown it.
    #[must_use]
    pub fn resource<'a>(&'a self, me: &'a Caller) -> Resource<'a> {
        let shown = move |conn: &mut AnyConnection| (self.show)(conn, me, &self.club, self.id);
        // What has no id in its path is the caller's own.
        let name = if self.id == Uid::nil() { format!("{} {}", self.name, me.id) } else { self.name.clone() };
        Resource { name, shown: Box::new(shown) }
    }
}
