//! What users look like on the wire.

use common::{
    input::{Flag, Limit},
    problem::{Problem, Violations},
};
use deserr::Deserr;
use serde::Serialize;
use service_kit::{db::sql::Uid, error::Error};
use utoipa::{IntoParams, ToSchema};

use super::queries::{Person, Selection};

/// A member of the club.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({"id": "0198c0de-0000-7000-8000-000000000001", "name": "alice", "realName": ""}))]
pub struct User {
    id: Uid,
    /// The sign-in name.
    #[schema(pattern = "^[a-zA-Z0-9_-]{1,32}$")]
    name: String,
    /// Empty unless its owner publishes it.
    real_name: String,
}

impl From<Person> for User {
    fn from(person: Person) -> Self {
        Self { id: person.id, name: person.name.clone(), real_name: person.into_real_name() }
    }
}

/// Which users to list.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations, rename_all = camelCase)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub struct ListQuery {
    /// Also those who are suspended or deactivated. Not together with `name`.
    #[deserr(default)]
    #[param(value_type = Option<bool>, nullable = false)]
    include_suspended: Option<Flag>,
    /// Only the user of exactly this sign-in name, in any state. Not together with `includeSuspended`.
    #[deserr(default)]
    #[param(nullable = false)]
    name: Option<String>,
    /// At most so many.
    #[deserr(default)]
    #[param(value_type = Option<u16>, nullable = false, minimum = 1, maximum = 1000)]
    limit: Limit,
}

impl ListQuery {
    /// What to select, and how many at most.
    ///
    /// # Errors
    /// 400 when both filters are given.
    pub fn into_selection(self) -> Result<(Selection, i64), Error> {
        let selection = match (self.include_suspended, self.name) {
            (Some(_), Some(_)) => {
                let message = "must not be given together with includeSuspended";
                return Err(Problem::parameter("name", "given-together", message).into());
            }
            (None, Some(name)) => Selection::Named(name),
            (Some(Flag(true)), None) => Selection::All,
            (Some(Flag(false)) | None, None) => Selection::Active,
        };
        Ok((selection, self.limit.rows()))
    }
}
