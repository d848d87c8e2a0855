//! The search by time that rooms and events share.
//!
//! An index on the start alone would be read from its beginning, and one on the end to its end: the more there is, the
//! longer either takes. What is not long, however, starts in the 24 hours before the span or in it, and of what is
//! long there is little; so each condition is written as two pieces of an index on `(is_long, starts_at)`.

/// The condition that a row of `rooms` or `events` overlaps `[from, to)`.
macro_rules! overlapping {
    ($table:ident, $from:expr, $to:expr) => {{
        let (from, to): (service_kit::database::types::DbTimestamp, service_kit::database::types::DbTimestamp) =
            ($from, $to);
        let short = $table::is_long
            .eq(false)
            .and($table::starts_at.ge(crate::rooms::queries::reach(from)))
            .and($table::starts_at.lt(to))
            .and($table::ends_at.gt(from));
        let long = $table::is_long.eq(true).and($table::starts_at.lt(to)).and($table::ends_at.gt(from));
        short.or(long)
    }};
}

/// A boxed query on `rooms` or `events`, for the rows that overlap a span that may be open at either end.
macro_rules! during {
    ($query:expr, $table:ident, $from:expr, $to:expr) => {{
        let (query, from, to): (_, Option<service_kit::database::types::DbTimestamp>, _) = ($query, $from, $to);
        match (from, to) {
            (Some(from), Some(to)) => query.filter(overlapping!($table, from, to)),
            (Some(from), None) => {
                let recent = $table::starts_at.ge(crate::rooms::queries::reach(from)).and($table::ends_at.gt(from));
                let short = $table::is_long.eq(false).and(recent);
                query.filter(short.or($table::is_long.eq(true).and($table::ends_at.gt(from))))
            }
            (None, Some(to)) => {
                let short = $table::is_long.eq(false).and($table::starts_at.lt(to));
                query.filter(short.or($table::is_long.eq(true).and($table::starts_at.lt(to))))
            }
            (None, None) => query,
        }
    }};
}
