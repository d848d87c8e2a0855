//! What a request is about: the objects in its path, and what it changes, as the caller is shown it (contract,
//! "Conditional requests and retries").

use actix_web::HttpRequest;
use common::{input::Id, problem::Problem};
use service_kit::{
    database::{AnyConnection, types::DbUuid},
    error::Error,
    http::{Reply, exchange::Resource, resources::Resources},
};

use crate::auth::Caller;

/// The identifiers in the path of a request, by name.
#[derive(Debug, Clone, Default)]
pub struct Ids(Vec<(String, DbUuid)>);

impl Ids {
    /// Of a request. What is no identifier is left out; the operation itself refuses it.
    #[must_use]
    pub fn of(req: &HttpRequest) -> Self {
        let ids = req.match_info().iter();
        Self(ids.filter_map(|(name, value)| Some((name.to_owned(), value.parse::<Id>().ok()?.into()))).collect())
    }

    /// The one of this name.
    ///
    /// # Errors
    /// 500 when the path has none.
    pub fn get(&self, name: &str) -> Result<DbUuid, Error> {
        let found = self.0.iter().find(|(of, _)| of == name).map(|(_, id)| *id);
        found.ok_or_else(|| Problem::internal(format!("the path has no parameter {name}")).into())
    }
}

/// Shows the resource with these ids to a caller as its `GET` does.
pub type Show = fn(&mut AnyConnection, &Caller, &Ids) -> Result<Reply, Error>;

/// What a request changes.
pub struct Target {
    name: String,
    ids: Ids,
    show: Show,
}

impl Target {
    /// Of a request, or `None` for one that makes something new.
    ///
    /// # Errors
    /// 500 in an app that lacks a part.
    pub fn of(req: &HttpRequest) -> Result<Option<Self>, Problem> {
        let absent = || Problem::internal("the app has no resources");
        let all = req.app_data::<Resources<Show>>().ok_or_else(absent)?;
        Ok(all.changed_by(req).map(|(show, name)| Self { name, ids: Ids::of(req), show }))
    }

    /// What is changed, as this caller is shown it.
    #[must_use]
    pub fn resource<'a>(&'a self, me: &'a Caller) -> Resource<'a> {
        let shown = move |conn: &mut AnyConnection| (self.show)(conn, me, &self.ids);
        Resource { name: self.name.clone(), shown: Box::new(shown) }
    }
}
