//! The search by time that rooms and events share.

/// The condition that a row of `rooms` or `events` overlaps `[from, to)`.
///
/// Written as two pieces of an index on `(is_long, starts_at)`: what is not long starts in the 24 hours before `from`
/// or later, and of what is long there is little.
macro_rules! overlapping {
    ($table:ident, $from:expr, $to:expr) => {{
        let (from, to): (service_kit::db::sql::Moment, service_kit::db::sql::Moment) = ($from, $to);
        let short = $table::is_long
            .eq(false)
            .and($table::starts_at.gt(crate::rooms::queries::reach(from)))
            .and($table::starts_at.lt(to))
            .and($table::ends_at.gt(from));
        let long = $table::is_long.eq(true).and($table::starts_at.lt(to)).and($table::ends_at.gt(from));
        short.or(long)
    }};
}
