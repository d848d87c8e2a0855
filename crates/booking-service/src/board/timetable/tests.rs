use chrono::TimeZone as _;
use proptest::prelude::*;
use service_kit::database::types::DbTimestamp;

use super::*;

const ZONE: Tz = Tz::Europe__Berlin;

fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

fn at(text: &str) -> Timestamp {
    let local = NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M").unwrap();
    Timestamp::new(ZONE.from_local_datetime(&local).earliest().unwrap().to_utc()).unwrap()
}

fn event_during(place: &str, span: Span) -> BoardEvent {
    BoardEvent {
        id: DbUuid::new(),
        name: "Rust".to_owned(),
        shared: true,
        starts_at: DbTimestamp(span.start),
        ends_at: DbTimestamp(span.end),
        place: place.to_owned(),
        place_key: place.to_lowercase(),
        room_id: DbUuid::new(),
        owns_room: false,
        group: "all".to_owned(),
    }
}

fn event(place: &str, from: &str, to: &str) -> BoardEvent {
    event_during(place, Span::new(at(from), at(to)).unwrap())
}

fn content(events: Vec<BoardEvent>) -> Content {
    Content { rooms: Vec::new(), all_rooms: 0, all_events: events.len(), events }
}

/// Days on a board, all of them in the future.
fn days(first: &str, number: u32) -> Days {
    Days { first: date(first), number, is_one_table: false, zone: ZONE, now: at("2026-01-01 12:00") }
}

fn board<'a>(content: &'a Content, first: &str, number: u32) -> Timetable<'a> {
    Timetable::new(content, days(first, number), None)
}

/// The first and the last hour of a day.
fn hours_of(day: &Day<'_>) -> (String, String) {
    let hour = |at| local(at, ZONE).format("%H:%M").to_string();
    let Span { start, end } = day.scale.span;
    (hour(start), hour(end))
}

/// The first and the last hour of the first day.
fn hours(timetable: &Timetable<'_>) -> (String, String) {
    hours_of(&timetable.days[0])
}

#[test]
fn events_that_overlap_stand_in_lanes_of_their_own() {
    let content = content(vec![
        event("S1", "2026-04-04 09:00", "2026-04-04 12:00"),
        event("S1", "2026-04-04 10:00", "2026-04-04 11:00"),
        event("s1", "2026-04-04 11:00", "2026-04-04 13:00"),
        event("S1", "2026-04-04 12:00", "2026-04-04 13:00"),
        event("S0", "2026-04-04 12:00", "2026-04-04 13:00"),
    ]);
    let timetable = board(&content, "2026-04-04", 1);
    let day = &timetable.days[0];
    let lanes = |row: &Row<'_>| row.lanes.iter().map(Vec::len).collect::<Vec<_>>();
    let rows: Vec<_> = day.rows.iter().map(|row| (row.place, lanes(row))).collect();
    assert_eq!(rows, [("S0", vec![1]), ("S1", vec![2, 2])]);
    assert_eq!(hours(&timetable), ("09:00".to_owned(), "15:00".to_owned()));
    let piece = day.rows[1].lanes[0][0].piece;
    assert_eq!((piece.x, piece.width, piece.is_begun, piece.goes_on), (0, 5000, false, false));
    assert_eq!(day.scale.position(at("2026-04-04 09:30")), Some(833));
    assert_eq!(day.scale.position(at("2026-04-04 08:30")), None);
    assert_eq!(day.scale.position(at("2026-04-05 09:30")), None);
}

#[test]
fn an_event_reaches_the_edge_of_each_day_on_which_it_goes_on() {
    let content = content(vec![
        event("S1", "2026-03-27 21:00", "2026-03-29 09:30"),
        event("S1", "2026-03-28 12:00", "2026-03-28 13:00"),
    ]);
    let timetable = Timetable::new(&content, Days { is_one_table: true, ..days("2026-03-27", 7) }, None);
    let pieces: Vec<_> = timetable.days.iter().filter_map(|day| Some(day.rows.first()?.lanes[0][0].piece)).collect();
    let edges: Vec<_> =
        pieces.iter().map(|piece| (piece.is_begun, piece.x, piece.x + piece.width, piece.goes_on)).collect();
    // The clocks change in the night to Sunday, so its first nine and a half hours are eight and a half of 23.
    assert_eq!(edges, [(false, 8750, WIDTH, true), (true, 0, WIDTH, true), (true, 0, 3695, false)]);
    assert_eq!(
        timetable.days.iter().map(|day| day.scale.minutes() / 60).collect::<Vec<_>>(),
        [24, 24, 23, 24, 24, 24, 24]
    );
    // A complete day shows the hours of what is short.
    assert_eq!(hours(&board(&content, "2026-03-28", 1)), ("12:00".to_owned(), "18:00".to_owned()));
    // Tables of their own begin by themselves; one without anything shows the hours of all.
    let shown: Vec<_> = board(&content, "2026-03-27", 4).days.iter().map(hours_of).collect();
    let is = [("18:00", "00:00"), ("12:00", "18:00"), ("00:00", "11:00"), ("00:00", "00:00")];
    assert_eq!(shown, is.map(|(from, to)| (from.to_owned(), to.to_owned())));
}

#[test]
fn the_present_day_begins_now_at_the_latest() {
    let content = content(vec![
        event("S1", "2026-04-03 18:00", "2026-04-03 21:00"),
        event("S1", "2026-04-04 18:00", "2026-04-04 21:00"),
    ]);
    let first = |now, is_one_table| {
        let days = Days { now: at(now), is_one_table, ..days("2026-04-03", 2) };
        Timetable::new(&content, days, None).days.iter().map(|day| hours_of(day).0).collect::<Vec<_>>()
    };
    assert_eq!(first("2026-04-04 15:30", false), ["18:00", "15:00"]);
    assert_eq!(first("2026-04-04 20:30", false), ["18:00", "18:00"]);
    assert_eq!(first("2026-04-04 15:30", true), ["15:00", "15:00"]);
    assert_eq!(first("2026-04-05 15:30", true), ["18:00", "18:00"]);
}

#[test]
fn a_day_on_which_the_clocks_are_set_back_has_an_hour_twice() {
    let (first, second): (Timestamp, Timestamp) =
        ("2026-10-25T00:30:00Z".parse().unwrap(), "2026-10-25T01:15:00Z".parse().unwrap());
    let content = content(vec![event_during("S1", Span::new(first, second).unwrap())]);
    let timetable = board(&content, "2026-10-25", 1);
    let day = &timetable.days[0];
    assert_eq!((hours(&timetable), day.scale.minutes()), (("02:00".to_owned(), "08:00".to_owned()), 7 * 60));
    let labels: Vec<_> = day.scale.hours().iter().map(|(_, at)| local(*at, ZONE).hour()).collect();
    assert_eq!(labels, [2, 2, 3, 4, 5, 6, 7]);
    let piece = day.rows[0].lanes[0][0].piece;
    assert_eq!((piece.x, piece.width), (714, 1071));
}

#[test]
fn a_day_shows_the_hours_that_it_needs() {
    let shown = |from, to| hours(&board(&content(vec![event("S1", from, to)]), "2026-04-04", 1));
    let is = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    assert_eq!(shown("2026-04-04 10:00", "2026-04-04 11:00"), is("10:00", "16:00"));
    assert_eq!(shown("2026-04-04 06:40", "2026-04-04 22:10"), is("06:00", "00:00"));
    assert_eq!(shown("2026-04-03 23:00", "2026-04-04 00:30"), is("00:00", "06:00"));
    assert_eq!(shown("2026-04-04 21:00", "2026-04-05 01:00"), is("18:00", "00:00"));
    assert_eq!(shown("2026-04-05 21:00", "2026-04-05 22:00"), is("08:00", "22:00"));
}

#[test]
fn texts_have_room_at_the_right_edge_too() {
    let content = content(vec![
        event("S1", "2026-04-04 09:00", "2026-04-04 09:15"),
        event("S1", "2026-04-04 09:30", "2026-04-04 10:00"),
        event("S1", "2026-04-04 23:45", "2026-04-05 00:00"),
    ]);
    let timetable = Timetable::new(&content, days("2026-04-04", 1), Some(2000));
    let lanes = &timetable.days[0].rows[0].lanes;
    assert_eq!(lanes.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
    assert_eq!((lanes[0][1].space, lanes[0][1].piece.x), ((7833, 2167), 9833));
}

proptest! {
    /// Nothing in a lane lies over anything else, and nothing leaves the day.
    #[test]
    fn lanes_have_no_overlap(times in prop::collection::vec((0_u32..3000, 1_u32..2000), 1..40), text in 0_u32..3000) {
        let start = at("2026-04-03 12:00");
        let minutes = |n: u32| start.plus(TimeDelta::minutes(n.into()));
        let events = times.iter().map(|(from, length)| {
            event_during("S1", Span::new(minutes(*from), minutes(from + length)).unwrap())
        });
        let content = content(events.collect());
        let timetable = Timetable::new(&content, days("2026-04-03", 3), Some(text));
        for row in timetable.days.iter().flat_map(|day| &day.rows) {
            for lane in &row.lanes {
                for pair in lane.windows(2) {
                    prop_assert!(pair[0].space.0 + pair[0].space.1 <= pair[1].space.0);
                }
                for Item { piece, space, .. } in lane {
                    prop_assert!(space.0 <= piece.x && piece.x + piece.width <= space.0 + space.1 && space.0 + space.1 <= WIDTH);
                }
            }
        }
        let shown: usize = timetable.days.iter().flat_map(|day| &day.rows).flat_map(|row| &row.lanes).map(Vec::len).sum();
        prop_assert!(shown >= 1);
    }
}
