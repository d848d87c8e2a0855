//! The list of all changes (contract, "History").

use std::future::{Ready, ready};

use actix_web::{FromRequest, HttpRequest, dev::Payload, http::header};
use chrono::TimeDelta;
use chrono_tz::Tz;
use common::{
    input::Id,
    problem::{Problem, Rule, Violations},
    time::Timestamp,
};
use deserr::Deserr;
use utoipa::IntoParams;

use crate::{
    database::types::{DbTimestamp, DbUuid},
    error::{Error, Failure},
    guard::{Authenticator, Guard},
    history::{Action, ResponseHistory, Selection, load_selected},
    http::{Page, Reply, notes::RequestNotes},
};

/// Which changes to list.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations, rename_all = camelCase)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub struct AuditQuery {
    /// Only changes by this user.
    #[deserr(default)]
    #[param(value_type = Option<uuid::Uuid>, nullable = false)]
    actor: Option<Id>,
    /// Only changes of the object with this id.
    #[deserr(default)]
    #[param(value_type = Option<uuid::Uuid>, nullable = false)]
    object: Option<Id>,
    /// Only these changes.
    #[deserr(default)]
    #[param(inline, nullable = false)]
    action: Option<Action>,
    /// Only changes at this time or later.
    #[deserr(default)]
    #[param(value_type = Option<chrono::DateTime<chrono::Utc>>, nullable = false)]
    date_begin: Option<Timestamp>,
    /// Only changes before this time.
    #[deserr(default)]
    #[param(value_type = Option<chrono::DateTime<chrono::Utc>>, nullable = false)]
    date_end: Option<Timestamp>,
}

impl AuditQuery {
    /// The rows that it selects.
    ///
    /// # Errors
    /// 400 when the span ends before it begins.
    pub fn selection(&self) -> Result<Selection, Error> {
        let mut to = self.date_end;
        if let (Some(begin), Some(end)) = (self.date_begin, self.date_end) {
            if end < begin {
                return Err(Problem::parameter("dateEnd", Rule::OutOfOrder, "must not be before dateBegin").into());
            }
            // An empty span asks for its instant.
            to = Some(end.plus(TimeDelta::microseconds(i64::from(end == begin))));
        }
        Ok(Selection {
            actor: self.actor.map(DbUuid::from),
            object: self.object.map(DbUuid::from),
            action: self.action,
            from: self.date_begin.map(DbTimestamp),
            to: to.map(DbTimestamp),
        })
    }
}

/// Whether a request asks for a list as lines (`Accept: application/x-ndjson`).
pub struct AsLines(bool);

impl FromRequest for AsLines {
    type Error = Failure;
    type Future = Ready<Result<Self, Failure>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        let accept = req.headers().get_all(header::ACCEPT).filter_map(|value| value.to_str().ok());
        let mut types = accept.flat_map(|value| value.split(',')).filter_map(|part| part.split(';').next());
        let is_asked = types.any(|media_type| media_type.trim().eq_ignore_ascii_case("application/x-ndjson"));
        if is_asked {
            // The fingerprint is that of the other form, so these answers have none.
            RequestNotes::change(req, |notes| notes.is_time_dependent = true);
        }
        ready(Ok(Self(is_asked)))
    }
}

/// A page of the selected rows of all objects, the newest first, as an array or as lines.
///
/// # Errors
/// Those of the guard; 400 for a bad query.
pub async fn audit<A: Authenticator>(
    who: Guard<A>,
    zone: Tz,
    page: Page,
    query: &AuditQuery,
    as_lines: &AsLines,
) -> Result<Reply, Failure> {
    let selection = query.selection()?;
    let reply = who.list(page.as_lines(as_lines.0), move |conn, _, page| {
        let rows = load_selected(conn, &selection, &page.bounds()?)?;
        page.rows(rows, |row| (row.at, row.id), |row| ResponseHistory::new(row, zone))
    });
    Ok(reply.await?.with(header::VARY, "accept"))
}
