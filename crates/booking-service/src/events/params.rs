//! The query parameters of the operations on events.

use common::{
    problem::{Problem, Violation, Violations},
    time::Timestamp,
};
use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use serde_json::json;
use service_kit::{db::sql::Moment, error::Error};
use utoipa::IntoParams;

use super::{
    filter::{self, Filter},
    selection::Relation,
    wire::word,
};
use crate::codes;

impl Deserr<Violations> for Relation {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, at: ValuePointerRef<'_>) -> Result<Self, Violations> {
        word(value, at)
    }
}

/// A span of time.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations, rename_all = camelCase)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub struct SpanQuery {
    /// Events that end after this.
    #[deserr(default)]
    #[param(value_type = Option<chrono::DateTime<chrono::Utc>>, nullable = false)]
    date_begin: Option<Timestamp>,
    /// Events that begin before this.
    #[deserr(default)]
    #[param(value_type = Option<chrono::DateTime<chrono::Utc>>, nullable = false)]
    date_end: Option<Timestamp>,
}

/// Which events to list.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations, rename_all = camelCase)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub struct ListQuery {
    /// Events that end after this.
    #[deserr(default)]
    #[param(value_type = Option<chrono::DateTime<chrono::Utc>>, nullable = false)]
    date_begin: Option<Timestamp>,
    /// Events that begin before this.
    #[deserr(default)]
    #[param(value_type = Option<chrono::DateTime<chrono::Utc>>, nullable = false)]
    date_end: Option<Timestamp>,
    /// Comparisons such as `user==UUID`, joined by `&&` and `||` from the left, in parentheses where needed; the
    /// attributes are `event`, `user`, `group` and `tag`. 4096 characters and 32 levels at most.
    #[deserr(default)]
    #[param(nullable = false, max_length = 4096)]
    q: Option<String>,
}

/// Which events of a user to list.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations, rename_all = camelCase)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub struct UserQuery {
    /// Events that end after this.
    #[deserr(default)]
    #[param(value_type = Option<chrono::DateTime<chrono::Utc>>, nullable = false)]
    date_begin: Option<Timestamp>,
    /// Events that begin before this.
    #[deserr(default)]
    #[param(value_type = Option<chrono::DateTime<chrono::Utc>>, nullable = false)]
    date_end: Option<Timestamp>,
    /// How the user is related to them. Default `belongs`.
    #[deserr(default)]
    #[param(inline, nullable = false)]
    relation: Option<Relation>,
}

/// Both ends of a span, each of which may be open.
type Span = (Option<Moment>, Option<Moment>);

impl SpanQuery {
    /// The span.
    ///
    /// # Errors
    /// 400 when it does not begin before it ends.
    pub fn span(&self) -> Result<Span, Error> {
        crate::rooms::span(self.date_begin, self.date_end)
    }
}

impl ListQuery {
    /// The span and the filter.
    ///
    /// # Errors
    /// 400 when the span does not begin before it ends or the filter cannot be read.
    pub fn into_parts(self) -> Result<(Span, Filter), Error> {
        let span = crate::rooms::span(self.date_begin, self.date_end)?;
        Ok((span, parse_filter(self.q.as_deref().unwrap_or_default())?))
    }
}

impl UserQuery {
    /// The span and the relation.
    ///
    /// # Errors
    /// 400 when the span does not begin before it ends.
    pub fn parts(&self) -> Result<(Span, Relation), Error> {
        let span = crate::rooms::span(self.date_begin, self.date_end)?;
        Ok((span, self.relation.unwrap_or(Relation::Belongs)))
    }
}

/// A `q` filter.
///
/// # Errors
/// 400 `bad-filter` with the position of the first character that does not fit.
pub fn parse_filter(text: &str) -> Result<Filter, Error> {
    filter::parse(text).map_err(|error| {
        let violation = Violation::parameter("q", codes::BAD_FILTER.name, error.to_string());
        let problem = Problem::new(codes::BAD_FILTER).violations(vec![violation]);
        problem.member("position", json!(error.position)).into()
    })
}
