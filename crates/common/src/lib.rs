//! What both services must say in the same words: points in time, spans, academic semesters, the values a request
//! may carry, and the problem a failure becomes. Pure: no server, no SQL, no configuration.
//!
//! * [`time`]: RFC 3339 in and out, with the zone for output as a parameter, and the clock.
//! * [`semester`]: the academic half-years and their spans.
//! * [`duration`]: a span of time that may still be going on.
//! * [`input`]: the scalar types of request bodies and query parameters (contract, "JSON" and "Identifiers").
//! * [`problem`]: RFC 9457 problems, their stable codes and their status.

pub mod duration;
pub mod input;
pub mod problem;
pub mod semester;
pub mod time;
