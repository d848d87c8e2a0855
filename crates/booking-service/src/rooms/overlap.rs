//! The rule against double booking: which uses of a place exclude each other, and when a room is free (contract, "No
//! double booking").
//!
//! Only this module decides this. Callers load the events and the verified rooms of a place during some time;
//! additional ones do no harm. `GET /rooms` and bookings both use this module, so every free time can be booked, and no
//! refused time is shown as free.

use std::collections::HashMap;

use common::time::Timestamp;
use service_kit::database::types::{DbTimestamp, DbUuid};

/// A half-open span of time, `[start, end)`: touching spans do not overlap.
///
/// Every function here expects `start < end`, which [`Span::new`] guarantees. Spans order by start, then end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first instant inside the span.
    pub start: Timestamp,
    /// The first instant after the span.
    pub end: Timestamp,
}

impl Span {
    /// The span `[start, end)`; `None` unless `start < end` (contract, Time).
    pub fn new(start: Timestamp, end: Timestamp) -> Option<Self> {
        (start < end).then_some(Self { start, end })
    }

    /// The span between two times of a row or of a valid request. `starts_at < ends_at` is not checked.
    pub fn between(starts_at: DbTimestamp, ends_at: DbTimestamp) -> Self {
        Self { start: starts_at.0, end: ends_at.0 }
    }

    /// Whether some instant lies in both spans.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// The time that both spans have in common.
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        Self::new(self.start.max(other.start), self.end.min(other.end))
    }

    /// Whether every instant of `inner` lies in this span; a span contains itself.
    pub fn contains(&self, inner: &Self) -> bool {
        self.start <= inner.start && inner.end <= self.end
    }
}

/// An event's use of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Use {
    /// The room of the event.
    pub room: DbUuid,
    /// When the event takes place.
    pub span: Span,
    /// Whether other shared events may use the place at the same time (`sharedRoom` on the wire).
    pub shared: bool,
}

/// Whether two uses of one place exclude each other. `verified` are the periods of the place's verified rooms.
///
/// Two uses conflict when they overlap, not both are shared, and they are in the same room or a verified room overlaps
/// the time that they have in common. An event lies inside its room's period, so an event in a verified room conflicts
/// with any other that overlaps it.
pub fn conflicts(a: &Use, b: &Use, verified: &[Span]) -> bool {
    a.span.intersection(&b.span).is_some_and(|common| {
        !(a.shared && b.shared) && (a.room == b.room || verified.iter().any(|period| period.overlaps(&common)))
    })
}

/// The indexes of the uses that conflict with another one only because a verified room covers `period`.
pub fn conflicts_made_by_verifying(period: Span, uses: &[Use]) -> Vec<usize> {
    let mut by_start: Vec<usize> = (0..uses.len()).collect();
    by_start.sort_unstable_by_key(|n| uses[*n].span);
    let mut conflicting = vec![false; uses.len()];
    for (n, &a) in by_start.iter().enumerate() {
        for &b in by_start[n + 1..].iter().take_while(|&&b| uses[b].span.start < uses[a].span.end) {
            if conflicts(&uses[a], &uses[b], &[period]) && !conflicts(&uses[a], &uses[b], &[]) {
                (conflicting[a], conflicting[b]) = (true, true);
            }
        }
    }
    (0..uses.len()).filter(|n| conflicting[*n]).collect()
}

/// The uses of a place, arranged to answer when each of its rooms is free.
#[derive(Debug, Clone, Default)]
pub struct Occupancy {
    by_any: BusyTimes,
    by_exclusive: BusyTimes,
}

impl Occupancy {
    /// Arranges the uses of a place; `verified` are the periods of its verified rooms. Both may be in any order.
    pub fn new(uses: &[Use], verified: &[Span]) -> Self {
        let verified = union(verified.to_vec());
        Self {
            by_any: BusyTimes::new(uses.iter(), &verified),
            by_exclusive: BusyTimes::new(uses.iter().filter(|usage| !usage.shared), &verified),
        }
    }

    /// When an exclusive event can use `room` during `period`: `freeTimes` on the wire.
    ///
    /// The spans are ordered, non-empty, and maximal: no two touch.
    pub fn free_times(&self, room: DbUuid, period: Span) -> Vec<Span> {
        self.by_any.gaps(room, period)
    }

    /// When a shared event can use `room` during `period`: `sharedTimes` on the wire.
    ///
    /// Ordered, non-empty and maximal, as [`free_times`](Self::free_times).
    pub fn shared_times(&self, room: DbUuid, period: Span) -> Vec<Span> {
        self.by_exclusive.gaps(room, period)
    }
}

/// The times that some uses take from the rooms of a place.
#[derive(Debug, Clone, Default)]
struct BusyTimes {
    /// Taken from every room: the parts of the uses that a verified room covers. Ordered and disjoint.
    everywhere: Vec<Span>,
    /// Taken from the room of the use: the complete span.
    in_room: HashMap<DbUuid, Vec<Span>>,
}

impl BusyTimes {
    fn new<'a>(uses: impl Iterator<Item = &'a Use>, verified: &[Span]) -> Self {
        let mut in_room: HashMap<DbUuid, Vec<Span>> = HashMap::new();
        for usage in uses {
            in_room.entry(usage.room).or_default().push(usage.span);
        }
        let everywhere = intersections(&union(in_room.values().flatten().copied().collect()), verified);
        Self { everywhere, in_room }
    }

    fn gaps(&self, room: DbUuid, period: Span) -> Vec<Span> {
        let first = self.everywhere.partition_point(|span| span.end <= period.start);
        let everywhere = self.everywhere[first..].iter().take_while(|span| span.start < period.end);
        let in_room = self.in_room.get(&room).into_iter().flatten();
        gaps(period, everywhere.chain(in_room).copied().collect())
    }
}

/// The times that lie in at least one of the spans, ordered and disjoint.
fn union(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    spans.dedup_by(|next, last| {
        let touches = next.start <= last.end;
        if touches {
            last.end = last.end.max(next.end);
        }
        touches
    });
    spans
}

/// The times that lie in a span of each list, both of which are ordered and disjoint.
fn intersections(a: &[Span], b: &[Span]) -> Vec<Span> {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    let mut result = Vec::new();
    while let (Some(first), Some(second)) = (a.peek(), b.peek()) {
        result.extend(first.intersection(second));
        if first.end <= second.end {
            a.next()
        } else {
            b.next()
        };
    }
    result
}

/// The parts of `period` outside all of `busy`: ordered, non-empty and maximal.
pub fn gaps(period: Span, mut busy: Vec<Span>) -> Vec<Span> {
    busy.retain(|span| span.overlaps(&period));
    let mut gaps = Vec::new();
    let mut start = period.start;
    for span in union(busy) {
        gaps.extend(Span::new(start, span.start));
        start = span.end;
    }
    gaps.extend(Span::new(start, period.end));
    gaps
}

#[cfg(test)]
mod tests;
