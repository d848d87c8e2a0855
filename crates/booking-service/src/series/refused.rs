//! Dates of a series that cannot be booked.

use service_kit::database::types::DbTimestamp;

use super::queries::SkipCode;
use crate::{events::several::Obstacle, rooms::booking::EventUse};

/// A date that cannot be booked.
#[derive(Debug)]
pub struct Refused {
    /// Its number.
    pub number: i32,
    /// The first instant.
    pub starts_at: DbTimestamp,
    /// The first instant after it.
    pub ends_at: DbTimestamp,
    /// Why it cannot be booked.
    pub code: SkipCode,
    /// The events that exclude it.
    pub conflicts: Vec<EventUse>,
}

impl Refused {
    /// A time that does not exist.
    pub fn nonexistent(number: i32, (starts_at, ends_at): (DbTimestamp, DbTimestamp)) -> Self {
        Self { number, starts_at, ends_at, code: SkipCode::NonexistentTime, conflicts: Vec::new() }
    }

    /// An event with an obstacle.
    pub fn new(number: i32, (starts_at, ends_at): (DbTimestamp, DbTimestamp), obstacle: Obstacle) -> Self {
        let (code, conflicts) = match obstacle {
            Obstacle::Conflicts(conflicts) => (SkipCode::RoomConflict, conflicts),
            Obstacle::OutsideRoomPeriod => (SkipCode::OutsideRoomPeriod, Vec::new()),
        };
        Self { number, starts_at, ends_at, code, conflicts }
    }
}
