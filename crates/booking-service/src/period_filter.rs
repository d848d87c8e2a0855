//! Conditions for the rows of `rooms` and `events` that overlap a span of time.
//!
//! With an index on the start alone, a search reads all rows that start before its span; with one on the end, all that
//! end after it. So each row also says whether it is long (`is_long`). A row that is not long and overlaps a span
//! starts inside the span or in the 24 hours before it, and long rows are few. Each condition here has one part for
//! short rows and one for long rows. Each part reads one range of an index on `(is_long, starts_at)`.

use chrono::TimeDelta;
use service_kit::{
    database::{PageBounds, types::DbTimestamp},
    error::Error,
};

/// Rows that last longer than this are long.
const LONG: TimeDelta = TimeDelta::hours(24);

/// Whether a row is long: the value of its column `is_long`.
pub fn is_long(starts_at: DbTimestamp, ends_at: DbTimestamp) -> bool {
    *ends_at - *starts_at > LONG
}

/// The earliest start of a row that is not long and ends after `at`: 24 hours before `at`, or the first representable
/// time.
pub fn earliest_start(at: DbTimestamp) -> DbTimestamp {
    DbTimestamp(at.plus(-LONG))
}

/// The conditions that a short row of `rooms` or `events` overlaps `[from, to)`, and that a long row does.
macro_rules! overlapping_by_length {
    ($table:ident, $from:expr, $to:expr) => {{
        use crate::expressions::{IsFalse, IsTrue};
        let (from, to): (service_kit::database::types::DbTimestamp, service_kit::database::types::DbTimestamp) =
            ($from, $to);
        let short = IsFalse::new($table::is_long)
            .and($table::starts_at.ge(crate::period_filter::earliest_start(from)))
            .and($table::starts_at.lt(to))
            .and($table::ends_at.gt(from));
        let long = IsTrue::new($table::is_long).and($table::starts_at.lt(to)).and($table::ends_at.gt(from));
        (short, long)
    }};
}

/// The condition that a row of `rooms` or `events` overlaps `[from, to)`.
macro_rules! overlapping {
    ($table:ident, $from:expr, $to:expr) => {{
        let (short, long) = overlapping_by_length!($table, $from, $to);
        short.or(long)
    }};
}

/// Which rows of a span a query selects, by their length.
#[derive(Debug, Clone, Copy, Default)]
pub enum Lengths {
    /// All.
    #[default]
    All,
    /// Those that are not long, from this start on.
    Short(Option<DbTimestamp>),
    /// Those that are long.
    Long,
}

/// A page of the rows of a span, in the order of `position`. The short rows and the long ones are each read in the order of
/// an index, up to the end of the page; read together, all rows of the span would have to be sorted.
pub fn load_page_of_span<R, P, K: Ord>(
    bounds: &PageBounds<P>,
    start: impl Fn(&P) -> DbTimestamp,
    position: impl FnMut(&R) -> K,
    mut load: impl FnMut(Lengths) -> Result<Vec<R>, Error>,
) -> Result<Vec<R>, Error> {
    let mut rows = load(Lengths::Short(bounds.after.as_ref().map(start)))?;
    rows.extend(load(Lengths::Long)?);
    rows.sort_by_cached_key(position);
    rows.truncate(usize::try_from(bounds.rows).unwrap_or(usize::MAX));
    Ok(rows)
}

/// Restricts a boxed query on `rooms` or `events` to the rows that overlap a span. Either end of the span may be open.
/// With [`IsFalseByRow`](crate::expressions::IsFalseByRow) and `IsTrueByRow`, SQLite does not start from the span.
macro_rules! during {
    ($query:expr, $table:ident, $from:expr, $to:expr) => {
        during!($query, $table, $from, $to, Lengths::All)
    };
    ($query:expr, $table:ident, $from:expr, $to:expr, $lengths:expr) => {
        during!($query, $table, $from, $to, $lengths, IsFalse, IsTrue)
    };
    ($query:expr, $table:ident, $from:expr, $to:expr, $lengths:expr, $is_false:ident, $is_true:ident) => {{
        use crate::{
            expressions::{$is_false, $is_true},
            period_filter::{Lengths, earliest_start},
        };
        type Time = Option<service_kit::database::types::DbTimestamp>;
        type Condition = Box<
            dyn diesel::BoxableExpression<
                    $table::table,
                    service_kit::database::MultiBackend,
                    SqlType = diesel::sql_types::Bool,
                >,
        >;
        let (query, from, to, lengths): (_, Time, Time, Lengths) = ($query, $from, $to, $lengths);
        let within = |condition: Condition, first: Time| {
            let condition = match first {
                Some(first) => Box::new(condition.and($table::starts_at.ge(first))),
                None => condition,
            };
            let condition = match to {
                Some(to) => Box::new(condition.and($table::starts_at.lt(to))),
                None => condition,
            };
            match from {
                Some(from) => Box::new(condition.and($table::ends_at.gt(from))) as Condition,
                None => condition,
            }
        };
        let short = |first| within(Box::new($is_false::new($table::is_long)), from.map(earliest_start).max(first));
        let long = || within(Box::new($is_true::new($table::is_long)), None);
        match lengths {
            Lengths::All if from.is_none() && to.is_none() => query,
            Lengths::All => query.filter(short(None).or(long())),
            Lengths::Short(first) => query.filter(short(first)),
            Lengths::Long => query.filter(long()),
        }
    }};
}

/// The condition of the partial indexes `rooms_list` and `events_list`. The CHECK constraints of the tables make it
/// true for every row. A query with this condition can read a page in list order from the index. A query for a span of
/// time must not have it: in list order it would read all rows before the span.
macro_rules! readable_in_list_order {
    ($table:ident) => {
        $table::starts_at.lt($table::ends_at)
    };
}
