//! The query parameters of the operations on events.

use common::{
    input::{Flag, Id, Text},
    problem::{Problem, Rule, Violation, Violations},
    time::Timestamp,
};
use deserr::Deserr;
use serde_json::json;
use service_kit::{database::types::DbTimestamp, error::Error};
use utoipa::IntoParams;

use super::{
    filter::{self, Filter},
    search,
    selection::{Criterion, Relation, Selection},
};
use crate::codes;

/// How to make a change.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations, rename_all = camelCase)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub struct ChangeQuery {
    /// Only check the request and change nothing. The answer is that of the change, with status 200.
    #[deserr(default)]
    #[param(value_type = Option<bool>, nullable = false)]
    pub dry_run: Flag,
}

/// How to restore an event.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations, rename_all = camelCase)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub struct RestoreQuery {
    /// Another group for the event.
    #[deserr(default)]
    #[param(nullable = false)]
    pub group_id: Option<Id>,
}

/// Which events to answer.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations, rename_all = camelCase)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub struct AnswerQuery {
    /// Also the later events of its series that the caller may answer.
    #[deserr(default)]
    #[param(value_type = Option<bool>, nullable = false)]
    pub series: Flag,
}

/// A span of time.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations, rename_all = camelCase)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub struct SpanQuery {
    /// Only events that end after this time.
    #[deserr(default)]
    #[param(nullable = false)]
    date_begin: Option<Timestamp>,
    /// Only events that begin before this time.
    #[deserr(default)]
    #[param(nullable = false)]
    date_end: Option<Timestamp>,
    /// Only events created, changed or deleted after this time, including deleted ones with `deletedAt`, for clients
    /// that keep a copy. A deleted event is listed for at least 30 days. A change becomes visible when its transaction
    /// ends, which may be some seconds after its time. So ask from a minute before the previous request.
    #[deserr(default)]
    #[param(nullable = false)]
    updated_since: Option<Timestamp>,
}

/// Which events to list.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations, rename_all = camelCase)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub struct ListQuery {
    /// Only events that end after this time.
    #[deserr(default)]
    #[param(nullable = false)]
    date_begin: Option<Timestamp>,
    /// Only events that begin before this time.
    #[deserr(default)]
    #[param(nullable = false)]
    date_end: Option<Timestamp>,
    /// Comparisons such as `user==UUID` and `tag!=UUID`, joined by `&&` and `||`, which have equal precedence and
    /// associate to the left; and parentheses. The attributes are `event`, `user`, `group`, `tag` and `series`. At most 4096
    /// characters, 32 levels and 32 comparisons.
    #[deserr(default)]
    #[param(nullable = false, max_length = 4096)]
    q: Option<String>,
    /// Only events whose name, description, place, group or tags contain each of these words, at most 8. Case and width
    /// of letters, kinds of dashes and invisible characters do not matter. An answer compares at most 1000 events, not
    /// counting those longer than a day. `Link` leads to the others, even without `limit`.
    #[deserr(default)]
    #[param(value_type = Option<String>, nullable = false, max_length = 64)]
    search: Option<Text<0, 64>>,
    /// Only events created, changed or deleted after this time, including deleted ones with `deletedAt`, for clients
    /// that keep a copy. A deleted event is listed for at least 30 days. A change becomes visible when its transaction
    /// ends, which may be some seconds after its time. So ask from a minute before the previous request.
    #[deserr(default)]
    #[param(nullable = false)]
    updated_since: Option<Timestamp>,
}

/// Which events of a user to list.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations, rename_all = camelCase)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub struct UserQuery {
    /// Only events that end after this time.
    #[deserr(default)]
    #[param(nullable = false)]
    date_begin: Option<Timestamp>,
    /// Only events that begin before this time.
    #[deserr(default)]
    #[param(nullable = false)]
    date_end: Option<Timestamp>,
    /// How the user is related to them. Default `belongs`.
    #[deserr(default)]
    #[param(inline, nullable = false)]
    relation: Option<Relation>,
    /// Only events created, changed or deleted after this time, including deleted ones with `deletedAt`, for clients
    /// that keep a copy. A deleted event is listed for at least 30 days. A change becomes visible when its transaction
    /// ends, which may be some seconds after its time. So ask from a minute before the previous request.
    #[deserr(default)]
    #[param(nullable = false)]
    updated_since: Option<Timestamp>,
}

/// Which recent changes to list.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations, rename_all = camelCase)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub struct ActivityQuery {
    /// Only changes after this time, if it is less than 7 days ago.
    #[deserr(default)]
    #[param(nullable = false)]
    updated_since: Option<Timestamp>,
}

impl ActivityQuery {
    /// The time after which to list changes, not before `earliest`.
    pub fn after(&self, earliest: Timestamp) -> DbTimestamp {
        DbTimestamp(self.updated_since.map_or(earliest, |since| since.max(earliest)))
    }
}

/// Conditions on the time of events and of their last change. Each may be missing.
#[derive(Debug, Clone, Copy)]
pub struct TimeFilter {
    span: (Option<DbTimestamp>, Option<DbTimestamp>),
    changed_after: Option<DbTimestamp>,
}

impl TimeFilter {
    fn new(begin: Option<Timestamp>, end: Option<Timestamp>, since: Option<Timestamp>) -> Result<Self, Error> {
        Ok(Self { span: crate::rooms::check_span(begin, end)?, changed_after: since.map(DbTimestamp) })
    }

    /// The selection of these events with these conditions.
    pub fn selection(self, criterion: Criterion) -> Selection {
        Selection::new(criterion).between(self.span).since(self.changed_after)
    }
}

impl SpanQuery {
    /// The conditions on time.
    ///
    /// # Errors
    /// 400 when the span ends before it begins.
    pub fn time(&self) -> Result<TimeFilter, Error> {
        TimeFilter::new(self.date_begin, self.date_end, self.updated_since)
    }
}

impl ListQuery {
    /// The conditions on time, and the filter.
    ///
    /// # Errors
    /// 400 when the span ends before it begins or the filter cannot be read.
    pub fn time_and_filter(&self) -> Result<(TimeFilter, Filter), Error> {
        let time = TimeFilter::new(self.date_begin, self.date_end, self.updated_since)?;
        Ok((time, parse_filter(self.q.as_deref().unwrap_or_default())?))
    }

    /// The words of the search.
    ///
    /// # Errors
    /// 400 for too many words.
    pub fn words(&self) -> Result<Vec<String>, Error> {
        search::words(self.search.as_deref().unwrap_or_default())
    }
}

impl UserQuery {
    /// The conditions on time, and the relation.
    ///
    /// # Errors
    /// 400 when the span ends before it begins.
    pub fn time_and_relation(&self) -> Result<(TimeFilter, Relation), Error> {
        let time = TimeFilter::new(self.date_begin, self.date_end, self.updated_since)?;
        Ok((time, self.relation.unwrap_or(Relation::Belongs)))
    }
}

/// Parses a `q` filter.
///
/// # Errors
/// 400 `filter-too-long` for too many characters, levels or comparisons, otherwise `bad-filter`; both with the position
/// of the error.
pub fn parse_filter(text: &str) -> Result<Filter, Error> {
    filter::parse(text).map_err(|error| {
        let (code, rule) = if error.is_too_long {
            (codes::FILTER_TOO_LONG, Rule::FilterTooLong)
        } else {
            (codes::BAD_FILTER, Rule::BadFilter)
        };
        let violation = Violation::parameter("q", rule, error.to_string());
        let problem = Problem::new(code).violations(vec![violation]);
        problem.member("position", json!(error.position)).into()
    })
}
