//! The search backwards: the last of the events that begin before a position.

use std::cmp::Reverse;

use chrono::TimeDelta;
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    database::{
        AnyConnection, MultiBackend,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
};

use super::{
    queries::{MAX_COMPARED, Position, Row},
    selection::Selection,
};
use crate::{period_filter::Lengths, schema::events};

/// The resolution of times.
const MICROSECOND: TimeDelta = TimeDelta::microseconds(1);

/// Events of a selection, the last first.
#[derive(Debug, Clone)]
pub struct Latest {
    /// At most as many as were asked for.
    pub rows: Vec<Row>,
    /// The event at which the search stopped, if it did not compare all of the selection.
    pub end: Option<Position>,
}

/// The last of the selected events before a position. Compares as many as a search forwards does (`searched_part`), and
/// reads the same index from its other end.
pub fn load_latest(
    conn: &mut AnyConnection,
    search: &Selection,
    before: Option<Position>,
    limit: i64,
) -> Result<Latest, Error> {
    // The index is entered at the position, not at the end of the span.
    let next = before.map(|(at, _)| DbTimestamp(at.plus(MICROSECOND)));
    let to = search.to.into_iter().chain(next).min();
    let search = Selection { to, ..search.clone() };
    let is_of_span = search.is_of_span();
    let lengths = if is_of_span { Lengths::Short(None) } else { search.lengths };
    let all = Selection { lengths, words: Vec::new(), ..search.clone() };
    let last = backwards(&all, before).offset(MAX_COMPARED - 1).limit(1).select((events::starts_at, events::id));
    let end: Option<(DbTimestamp, DbUuid)> = last.first(conn).optional()?;
    // What begins then or later also ends later.
    let from = search.from.map(|from| end.map_or(from, |(at, _)| from.max(at)));
    let part = Selection { from, ..search };
    let parts = if is_of_span { vec![Lengths::Short(None), Lengths::Long] } else { vec![part.lengths] };
    let mut rows = Vec::new();
    for lengths in parts {
        let mut query = backwards(&Selection { lengths, ..part.clone() }, before).limit(limit);
        if let Some((at, id)) = end {
            query = query.filter(events::starts_at.ge(at)).filter(events::starts_at.gt(at).or(events::id.ge(id)));
        }
        rows.extend(query.select(Row::as_select()).load::<Row>(conn)?);
    }
    rows.sort_unstable_by_key(|row| Reverse((row.starts_at, row.id)));
    rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(Latest { rows, end })
}

fn backwards(selection: &Selection, before: Option<Position>) -> events::BoxedQuery<'static, MultiBackend> {
    let mut rows = selection.query();
    if let Some((at, id)) = before {
        rows = rows.filter(events::starts_at.le(at)).filter(events::starts_at.lt(at).or(events::id.lt(id)));
    }
    rows.order((events::starts_at.desc(), events::id.desc()))
}
