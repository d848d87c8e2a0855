use chrono::TimeDelta;
use proptest::prelude::*;

use super::*;

/// Minutes after the epoch; the properties below use this grid.
fn at(minute: i64) -> Timestamp {
    Timestamp::from_micros(minute * 60_000_000).expect("in range")
}

fn span(start: i64, end: i64) -> Span {
    Span::new(at(start), at(end)).expect("start < end")
}

/// One of a few rooms of the place.
fn room(number: u128) -> DbUuid {
    DbUuid(uuid::Uuid::from_u128(number))
}

fn exclusive(start: i64, end: i64) -> Use {
    Use { room: room(0), span: span(start, end), shared: false }
}

fn shared(start: i64, end: i64) -> Use {
    Use { shared: true, ..exclusive(start, end) }
}

fn in_other_room(usage: Use) -> Use {
    Use { room: room(1), ..usage }
}

fn free_times(period: Span, uses: &[Use]) -> Vec<Span> {
    Occupancy::new(uses, &[]).free_times(room(0), period)
}

fn shared_times(period: Span, uses: &[Use]) -> Vec<Span> {
    Occupancy::new(uses, &[]).shared_times(room(0), period)
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
fn a_span_contains_itself_and_only_spans_inside() {
    assert!(span(0, 10).contains(&span(0, 10)));
    assert!(span(0, 10).contains(&span(3, 4)));
    assert!(!span(0, 10).contains(&span(0, 11)));
    assert!(!span(1, 10).contains(&span(0, 5)));
}

#[test]
fn only_two_shared_uses_of_a_room_may_overlap() {
    assert!(conflicts(&exclusive(0, 10), &exclusive(5, 15), &[]));
    assert!(conflicts(&exclusive(0, 10), &shared(5, 15), &[]));
    assert!(conflicts(&shared(0, 10), &exclusive(5, 15), &[]));
    assert!(!conflicts(&shared(0, 10), &shared(5, 15), &[]));
    assert!(!conflicts(&exclusive(0, 10), &exclusive(10, 15), &[]));
}

#[test]
fn uses_of_two_rooms_conflict_only_where_a_verified_room_covers_both() {
    let (here, there) = (exclusive(0, 10), in_other_room(exclusive(5, 15)));
    assert!(!conflicts(&here, &there, &[]));
    assert!(!conflicts(&here, &there, &[span(0, 5), span(10, 15)]));
    assert!(conflicts(&here, &there, &[span(0, 5), span(9, 15)]));
    assert!(conflicts(&here, &in_other_room(shared(5, 15)), &[span(6, 7)]));
    assert!(!conflicts(&shared(0, 10), &in_other_room(shared(5, 15)), &[span(0, 20)]));
}

#[test]
fn a_use_of_another_room_takes_the_times_that_a_verified_room_covers() {
    let uses = [in_other_room(exclusive(10, 30)), in_other_room(shared(40, 60))];
    let occupancy = Occupancy::new(&uses, &[span(20, 50)]);
    assert_eq!(occupancy.free_times(room(0), span(0, 90)), [span(0, 20), span(30, 40), span(50, 90)]);
    assert_eq!(occupancy.shared_times(room(0), span(0, 90)), [span(0, 20), span(30, 90)]);
    assert_eq!(occupancy.free_times(room(1), span(0, 90)), [span(0, 10), span(30, 40), span(60, 90)]);
}

#[test]
fn an_unused_period_is_free() {
    assert_eq!(free_times(span(0, 60), &[]), [span(0, 60)]);
    assert_eq!(shared_times(span(0, 60), &[]), [span(0, 60)]);
}

#[test]
fn a_covered_period_has_no_free_times() {
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
fn a_short_use_inside_a_long_one_changes_nothing() {
    let uses = [exclusive(10, 50), exclusive(20, 30)];
    assert_eq!(free_times(span(0, 60), &uses), [span(0, 10), span(50, 60)]);
}

#[test]
fn instants_finer_than_the_grid_stay_exact() {
    let micro = TimeDelta::microseconds(1);
    let period = span(0, 60);
    let inner = Span::new(at(0).plus(micro), at(60).plus(-micro)).expect("ordered");
    let gaps = [Span { start: at(0), end: at(0).plus(micro) }, Span { start: at(60).plus(-micro), end: at(60) }];
    assert_eq!(free_times(period, &[Use { span: inner, ..exclusive(0, 60) }]), gaps);
}

fn any_span() -> impl Strategy<Value = Span> {
    (-20_i64..80, 1_i64..40).prop_map(|(start, length)| span(start, start + length))
}

fn any_use() -> impl Strategy<Value = Use> {
    (0..3_u128, any_span(), any::<bool>()).prop_map(|(number, span, shared)| Use { room: room(number), span, shared })
}

fn uses() -> impl Strategy<Value = Vec<Use>> {
    prop::collection::vec(any_use(), 0..8)
}

/// Periods of verified rooms. They may overlap here, which must not matter.
fn periods() -> impl Strategy<Value = Vec<Span>> {
    prop::collection::vec(any_span(), 0..4)
}

/// The maximal spans of consecutive minutes of the period that satisfy `is_open`.
fn runs(period: Span, is_open: impl Fn(Span) -> bool) -> Vec<Span> {
    let mut runs: Vec<Span> = Vec::new();
    for minute in minutes(period).filter(|minute| is_open(*minute)) {
        match runs.last_mut() {
            Some(last) if last.end == minute.start => last.end = minute.end,
            _ => runs.push(minute),
        }
    }
    runs
}

fn minutes(span: Span) -> impl Iterator<Item = Span> {
    let minute = |start: Timestamp| Span { start, end: start.plus(TimeDelta::minutes(1)) };
    (0..(span.end - span.start).num_minutes()).map(move |n| minute(span.start.plus(TimeDelta::minutes(n))))
}

/// The rule for one minute: a use takes the minute from a room if it is in that room, or a verified room covers the
/// minute.
fn takes(usage: &Use, room: DbUuid, minute: Span, verified: &[Span]) -> bool {
    usage.span.contains(&minute) && (usage.room == room || verified.iter().any(|period| period.contains(&minute)))
}

proptest! {
    #[test]
    fn times_match_the_minute_grid(period in any_span(), uses in uses(), verified in periods()) {
        let occupancy = Occupancy::new(&uses, &verified);
        for room in (0..4).map(room) {
            let taken = |minute: Span| uses.iter().any(|usage| takes(usage, room, minute, &verified));
            prop_assert_eq!(occupancy.free_times(room, period), runs(period, |minute| !taken(minute)));
            let taken = |minute: Span| uses.iter().any(|usage| !usage.shared && takes(usage, room, minute, &verified));
            prop_assert_eq!(occupancy.shared_times(room, period), runs(period, |minute| !taken(minute)));
        }
    }

    #[test]
    fn conflicts_match_the_minute_grid(a in any_use(), b in any_use(), verified in periods()) {
        let overlaps = minutes(a.span).any(|minute| takes(&b, a.room, minute, &verified));
        prop_assert_eq!(conflicts(&a, &b, &verified), overlaps && !(a.shared && b.shared));
        prop_assert_eq!(conflicts(&a, &b, &verified), conflicts(&b, &a, &verified));
    }

    /// Inside the period, a booking conflicts with no use if and only if it lies in one of the free times (or shared
    /// times, for a shared booking).
    #[test]
    fn free_times_and_refusals_agree(
        uses in uses(),
        verified in periods(),
        room in (0..4_u128).prop_map(room),
        (start, end) in (0_i64..60).prop_flat_map(|start| (Just(start), start + 1..=60)),
    ) {
        let period = span(0, 60);
        let booking = span(start, end);
        let one_contains = |times: &[Span]| times.iter().any(|time| time.contains(&booking));
        let refused =
            |shared| uses.iter().any(|usage| conflicts(&Use { room, span: booking, shared }, usage, &verified));

        let occupancy = Occupancy::new(&uses, &verified);
        prop_assert_eq!(one_contains(&occupancy.free_times(room, period)), !refused(false));
        prop_assert_eq!(one_contains(&occupancy.shared_times(room, period)), !refused(true));
    }

    #[test]
    fn every_free_time_can_be_booked(period in any_span(), uses in uses(), verified in periods()) {
        let occupancy = Occupancy::new(&uses, &verified);
        let possible = |booking: Use| {
            period.contains(&booking.span) && uses.iter().all(|usage| !conflicts(&booking, usage, &verified))
        };
        for room in (0..4).map(room) {
            let free = occupancy.free_times(room, period).into_iter().map(|span| Use { room, span, shared: false });
            let shared = occupancy.shared_times(room, period).into_iter().map(|span| Use { room, span, shared: true });
            prop_assert!(free.chain(shared).all(possible));
        }
    }

    #[test]
    fn verifying_makes_only_new_conflicts(period in any_span(), uses in uses()) {
        let made = |a: &Use, b: &Use| conflicts(a, b, &[period]) && !conflicts(a, b, &[]);
        let has_made = |n: usize| (0..uses.len()).any(|other| other != n && made(&uses[n], &uses[other]));
        let expected: Vec<_> = (0..uses.len()).filter(|n| has_made(*n)).collect();
        prop_assert_eq!(conflicts_made_by_verifying(period, &uses), expected);
    }
}
