//! The overlap arithmetic behind "no double booking": which uses of a place conflict, and what is left of a room.
//!
//! `GET /rooms` and a booking both decide with this file, so what is offered and what is refused cannot drift apart.

use chrono::{DateTime, Utc};

/// A half-open span of time, `[start, end)`: touching spans do not overlap.
///
/// Every function here expects `start < end`, which [`Span::new`] guarantees. Spans order by start, then end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first instant inside the span.
    pub start: DateTime<Utc>,
    /// The first instant after the span.
    pub end: DateTime<Utc>,
}

impl Span {
    /// The span `[start, end)`; `None` unless `start < end` (contract, Time).
    #[must_use]
    pub fn new(start: DateTime<Utc>, end: DateTime<Utc>) -> Option<Self> {
        (start < end).then_some(Self { start, end })
    }

    /// Whether some instant lies in both spans.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// Whether every instant of `inner` lies in this span; a span contains itself.
    #[must_use]
    pub fn contains(&self, inner: &Self) -> bool {
        self.start <= inner.start && inner.end <= self.end
    }
}

/// An event's use of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Use {
    /// When the place is used.
    pub span: Span,
    /// Whether others may share the place meanwhile (`sharedRoom` on the wire).
    pub shared: bool,
}

/// Whether two uses of one place exclude each other: their spans overlap and not both are shared.
#[must_use]
pub fn conflicts(a: &Use, b: &Use) -> bool {
    a.span.overlaps(&b.span) && !(a.shared && b.shared)
}

/// The parts of `window` that no use covers: `freeTimes` on the wire.
///
/// Ordered, non-empty, and maximal: no two touch. `uses` may come in any order, overlap, and reach beyond the window.
#[must_use]
pub fn free_times(window: Span, uses: &[Use]) -> Vec<Span> {
    gaps(window, uses.iter().map(|it| it.span).collect())
}

/// The parts of `window` that no exclusive use covers, free ones included: `sharedTimes` on the wire.
///
/// The same promises as [`free_times`].
#[must_use]
pub fn shared_times(window: Span, uses: &[Use]) -> Vec<Span> {
    gaps(window, uses.iter().filter(|it| !it.shared).map(|it| it.span).collect())
}

/// What is left of `window` when all of `taken` is cut out.
fn gaps(window: Span, mut taken: Vec<Span>) -> Vec<Span> {
    taken.retain(|span| span.overlaps(&window));
    taken.sort_unstable();

    let mut gaps = Vec::new();
    let mut reached = window.start;
    for span in taken {
        gaps.extend(Span::new(reached, span.start));
        reached = reached.max(span.end);
    }
    gaps.extend(Span::new(reached, window.end));
    gaps
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use proptest::prelude::*;

    use super::*;

    /// Minutes after the epoch; the properties below live on this grid.
    fn at(minute: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::minutes(minute)
    }

    fn span(start: i64, end: i64) -> Span {
        Span::new(at(start), at(end)).expect("start < end")
    }

    fn exclusive(start: i64, end: i64) -> Use {
        Use { span: span(start, end), shared: false }
    }

    fn shared(start: i64, end: i64) -> Use {
        Use { span: span(start, end), shared: true }
    }

    #[test]
    fn a_span_needs_a_start_before_its_end() {
        assert!(Span::new(at(1), at(1)).is_none());
        assert!(Span::new(at(2), at(1)).is_none());
        assert_eq!(Span::new(at(1), at(2)), Some(Span { start: at(1), end: at(2) }));
    }

    #[test]
    fn touching_spans_do_not_overlap() {
        assert!(!span(0, 10).overlaps(&span(10, 20)));
        assert!(!span(10, 20).overlaps(&span(0, 10)));
        assert!(span(0, 11).overlaps(&span(10, 20)));
        assert!(span(0, 30).overlaps(&span(10, 20)));
    }

    #[test]
    fn a_span_contains_itself_and_nothing_that_sticks_out() {
        assert!(span(0, 10).contains(&span(0, 10)));
        assert!(span(0, 10).contains(&span(3, 4)));
        assert!(!span(0, 10).contains(&span(0, 11)));
        assert!(!span(1, 10).contains(&span(0, 5)));
    }

    #[test]
    fn only_two_shared_uses_may_overlap() {
        assert!(conflicts(&exclusive(0, 10), &exclusive(5, 15)));
        assert!(conflicts(&exclusive(0, 10), &shared(5, 15)));
        assert!(conflicts(&shared(0, 10), &exclusive(5, 15)));
        assert!(!conflicts(&shared(0, 10), &shared(5, 15)));
        assert!(!conflicts(&exclusive(0, 10), &exclusive(10, 15)));
    }

    #[test]
    fn an_unused_window_is_free_whole() {
        assert_eq!(free_times(span(0, 60), &[]), [span(0, 60)]);
        assert_eq!(shared_times(span(0, 60), &[]), [span(0, 60)]);
    }

    #[test]
    fn a_covered_window_has_nothing_left() {
        assert_eq!(free_times(span(10, 20), &[exclusive(0, 15), shared(15, 90)]), []);
        assert_eq!(shared_times(span(10, 20), &[exclusive(0, 90)]), []);
    }

    #[test]
    fn shared_uses_are_cut_from_the_free_times_only() {
        let uses = [shared(40, 50), exclusive(10, 20)];
        assert_eq!(free_times(span(0, 60), &uses), [span(0, 10), span(20, 40), span(50, 60)]);
        assert_eq!(shared_times(span(0, 60), &uses), [span(0, 10), span(20, 60)]);
    }

    #[test]
    fn a_long_use_hides_a_short_one_within() {
        let uses = [exclusive(10, 50), exclusive(20, 30)];
        assert_eq!(free_times(span(0, 60), &uses), [span(0, 10), span(50, 60)]);
    }

    #[test]
    fn instants_finer_than_the_grid_stay_exact() {
        let micro = TimeDelta::microseconds(1);
        let window = span(0, 60);
        let used = Use { span: Span::new(at(0) + micro, at(60) - micro).expect("ordered"), shared: false };
        let left = [Span { start: at(0), end: at(0) + micro }, Span { start: at(60) - micro, end: at(60) }];
        assert_eq!(free_times(window, &[used]), left);
    }

    fn any_span() -> impl Strategy<Value = Span> {
        (-20_i64..80, 1_i64..40).prop_map(|(start, length)| span(start, start + length))
    }

    fn any_use() -> impl Strategy<Value = Use> {
        (any_span(), any::<bool>()).prop_map(|(span, shared)| Use { span, shared })
    }

    /// The maximal runs of the window's minutes that satisfy `open`, minute by minute.
    fn runs(window: Span, open: impl Fn(Span) -> bool) -> Vec<Span> {
        let mut runs: Vec<Span> = Vec::new();
        let mut start = window.start;
        while start < window.end {
            let minute = Span { start, end: start + TimeDelta::minutes(1) };
            if open(minute) {
                match runs.last_mut() {
                    Some(last) if last.end == start => last.end = minute.end,
                    _ => runs.push(minute),
                }
            }
            start = minute.end;
        }
        runs
    }

    proptest! {
        #[test]
        fn free_times_match_the_minute_grid(window in any_span(), uses in prop::collection::vec(any_use(), 0..8)) {
            let covered = |minute: Span| uses.iter().any(|it| it.span.contains(&minute));
            prop_assert_eq!(free_times(window, &uses), runs(window, |minute| !covered(minute)));
        }

        #[test]
        fn shared_times_match_the_minute_grid(window in any_span(), uses in prop::collection::vec(any_use(), 0..8)) {
            let covered = |minute: Span| uses.iter().any(|it| !it.shared && it.span.contains(&minute));
            prop_assert_eq!(shared_times(window, &uses), runs(window, |minute| !covered(minute)));
        }

        /// What is offered can be booked, and what is refused was not offered: inside the window, a use conflicts
        /// with nothing exactly when it lies in one of the times offered to its kind.
        #[test]
        fn offers_and_refusals_agree(
            uses in prop::collection::vec(any_use(), 0..8),
            (start, end) in (0_i64..60).prop_flat_map(|start| (Just(start), start + 1..=60)),
        ) {
            let window = span(0, 60);
            let wanted = span(start, end);
            let within = |offers: &[Span]| offers.iter().any(|offer| offer.contains(&wanted));
            let refused = |shared| uses.iter().any(|it| conflicts(&Use { span: wanted, shared }, it));

            prop_assert_eq!(within(&free_times(window, &uses)), !refused(false));
            prop_assert_eq!(within(&shared_times(window, &uses)), !refused(true));
        }

        #[test]
        fn every_offer_can_be_taken_whole(window in any_span(), uses in prop::collection::vec(any_use(), 0..8)) {
            let possible = |wanted: Use| window.contains(&wanted.span) && uses.iter().all(|it| !conflicts(&wanted, it));
            let free = free_times(window, &uses).into_iter().map(|span| Use { span, shared: false });
            let shared = shared_times(window, &uses).into_iter().map(|span| Use { span, shared: true });
            prop_assert!(free.chain(shared).all(possible));
        }

        #[test]
        fn conflicts_are_mutual(a in any_use(), b in any_use()) {
            prop_assert_eq!(conflicts(&a, &b), conflicts(&b, &a));
        }
    }
}
