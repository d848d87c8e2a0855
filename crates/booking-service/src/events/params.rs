//! The query parameters of the operations on events.

use common::{
    input::{Flag, parse_text},
    problem::{Problem, Violation, Violations},
    time::Timestamp,
};
use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use serde_json::json;
use service_kit::{database::types::DbTimestamp, error::Error};
use utoipa::IntoParams;

use super::{
    filter::{self, Filter},
    selection::{Relation, Selection, Which},
};
use crate::codes;

impl Deserr<Violations> for Relation {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, at: ValuePointerRef<'_>) -> Result<Self, Violations> {
        parse_text(value, at)
    }
}

/// How to make a change.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations, rename_all = camelCase)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub struct ChangeQuery {
    /// Check only, change nothing: the answer is that of the change, with status 200.
    #[deserr(default)]
    #[param(value_type = Option<bool>, nullable = false)]
    pub dry_run: Flag,
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
    /// Only events created, changed or deleted after this, deleted ones with `deletedAt`: for copies, and bots that
    /// poll. Deleted events are kept for 30 days. Ask from a minute before your last question: a change shows when it is
    /// complete, which may be some seconds after its time.
    #[deserr(default)]
    #[param(value_type = Option<chrono::DateTime<chrono::Utc>>, nullable = false)]
    updated_since: Option<Timestamp>,
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
    /// attributes are `event`, `user`, `group` and `tag`. At most 4096 characters, 32 levels and 32 comparisons.
    #[deserr(default)]
    #[param(nullable = false, max_length = 4096)]
    q: Option<String>,
    /// Only events created, changed or deleted after this, deleted ones with `deletedAt`: for copies, and bots that
    /// poll. Deleted events are kept for 30 days. Ask from a minute before your last question: a change shows when it is
    /// complete, which may be some seconds after its time.
    #[deserr(default)]
    #[param(value_type = Option<chrono::DateTime<chrono::Utc>>, nullable = false)]
    updated_since: Option<Timestamp>,
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
    /// Only events created, changed or deleted after this, deleted ones with `deletedAt`: for copies, and bots that
    /// poll. Deleted events are kept for 30 days. Ask from a minute before your last question: a change shows when it is
    /// complete, which may be some seconds after its time.
    #[deserr(default)]
    #[param(value_type = Option<chrono::DateTime<chrono::Utc>>, nullable = false)]
    updated_since: Option<Timestamp>,
}

/// Which recent changes to list.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations, rename_all = camelCase)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub struct ActivityQuery {
    /// Only what changed after this, if that is less than 7 days ago.
    #[deserr(default)]
    #[param(value_type = Option<chrono::DateTime<chrono::Utc>>, nullable = false)]
    updated_since: Option<Timestamp>,
}

impl ActivityQuery {
    /// Changes after this, which is not before `earliest`.
    #[must_use]
    pub fn after(&self, earliest: Timestamp) -> DbTimestamp {
        DbTimestamp(self.updated_since.map_or(earliest, |since| since.max(earliest)))
    }
}

/// When events are, and since when they changed: each may be open.
#[derive(Debug, Clone, Copy)]
pub struct Time {
    span: (Option<DbTimestamp>, Option<DbTimestamp>),
    changed_after: Option<DbTimestamp>,
}

impl Time {
    fn new(begin: Option<Timestamp>, end: Option<Timestamp>, since: Option<Timestamp>) -> Result<Self, Error> {
        Ok(Self { span: crate::rooms::span(begin, end)?, changed_after: since.map(DbTimestamp) })
    }

    /// These events, of that time.
    #[must_use]
    pub fn of(self, which: Which) -> Selection {
        Selection::of(which).between(self.span).since(self.changed_after)
    }
}

impl SpanQuery {
    /// The time.
    ///
    /// # Errors
    /// 400 when the span does not begin before it ends.
    pub fn time(&self) -> Result<Time, Error> {
        Time::new(self.date_begin, self.date_end, self.updated_since)
    }
}

impl ListQuery {
    /// The time and the filter.
    ///
    /// # Errors
    /// 400 when the span does not begin before it ends or the filter cannot be read.
    pub fn into_parts(self) -> Result<(Time, Filter), Error> {
        let time = Time::new(self.date_begin, self.date_end, self.updated_since)?;
        Ok((time, parse_filter(self.q.as_deref().unwrap_or_default())?))
    }
}

impl UserQuery {
    /// The time and the relation.
    ///
    /// # Errors
    /// 400 when the span does not begin before it ends.
    pub fn parts(&self) -> Result<(Time, Relation), Error> {
        let time = Time::new(self.date_begin, self.date_end, self.updated_since)?;
        Ok((time, self.relation.unwrap_or(Relation::Belongs)))
    }
}

/// A `q` filter.
///
/// # Errors
/// 400 `filter-too-long` for too many comparisons, otherwise `bad-filter`, with the position of the first character that
/// does not fit.
pub fn parse_filter(text: &str) -> Result<Filter, Error> {
    filter::parse(text).map_err(|error| {
        let code = if error.is_too_long { codes::FILTER_TOO_LONG } else { codes::BAD_FILTER };
        let violation = Violation::parameter("q", code.name, error.to_string());
        let problem = Problem::new(code).violations(vec![violation]);
        problem.member("position", json!(error.position)).into()
    })
}
