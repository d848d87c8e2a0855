//! Types and rules that both services share: timestamps, durations, academic semesters, values in requests, and
//! problems. No HTTP server, no SQL, no configuration.
//!
//! * [`address`]: the addresses to which secrets may be sent.
//! * [`mod@file`]: the reading of files that options name.
//! * [`time`]: RFC 3339 timestamps, their output in a time zone, and the clock.
//! * [`semester`]: academic half-years and spans of them.
//! * [`duration`]: a span of time that may still be going on.
//! * [`input`]: the scalar types of request bodies and query parameters (contract, "JSON" and "Identifiers").
//! * [`problem`]: RFC 9457 problems with their stable codes and HTTP statuses.
//! * [`typed_time`]: dates and times of day as people type them.
//! * [`visible`]: the characters of names that can be seen.

pub mod address;
pub mod duration;
pub mod file;
pub mod input;
pub mod kept;
pub mod problem;
pub mod semester;
pub mod time;
pub mod typed_time;
pub mod visible;
