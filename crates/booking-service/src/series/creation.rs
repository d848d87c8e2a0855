//! New series.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;
use chrono_tz::Tz;
use common::problem::{Location, Problem, Rule as BrokenRule, Violation};
use diesel::prelude::*;
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    history::Author,
    with_connection,
};

use super::{
    changes::set_admins,
    queries::as_text,
    refused::Refused,
    rule::{FirstTimes, Rule, Times, expand},
    wire::{SkippedDate, series_conflict},
};
use crate::{
    events::{
        creation::{Draft, Venue, check_references, unknown_room},
        queries::Row as EventRow,
        several::{self, Choice, Wish},
    },
    rooms::{booking::lock_places, place::place_key, queries as room_queries},
    schema::{event_series, skipped_occurrences},
};

/// A series as in the body of a request.
#[derive(Debug, Clone)]
pub struct NewSeries {
    /// The first occurrence.
    pub draft: Draft,
    /// When it repeats.
    pub rule: Rule,
    /// Dates to leave out.
    pub exdates: BTreeSet<NaiveDate>,
    /// Whether to leave out dates that cannot be booked.
    pub skips_conflicts: bool,
    /// Dates that are at another place than that of the draft, if it has one.
    pub places: BTreeMap<NaiveDate, String>,
}

/// A date with its number.
#[derive(Debug, Clone, Copy)]
pub struct Date {
    /// From 1.
    pub number: i32,
    /// When it is.
    pub times: Times,
}

/// A date that can be booked.
pub type Bookable = (i32, (DbTimestamp, DbTimestamp), Choice);

/// The dates of a series, numbered from 1.
///
/// # Errors
/// 400.
pub fn dates(new: &NewSeries, zone: Tz) -> Result<Vec<Date>, Error> {
    let first = FirstTimes::of(*new.draft.starts_at, *new.draft.ends_at, zone);
    let out_of_order = || {
        Problem::invalid("/event/timeEnd", BrokenRule::OutOfOrder, "must be after timeStart by the clocks on the wall")
    };
    let times = expand(&new.rule, &first.ok_or_else(out_of_order)?, zone);
    let times = times.map_err(|refusal| Problem::invalid("/rrule", BrokenRule::Range, refusal.to_string()))?;
    let times = times.into_iter().filter(|times| !new.exdates.contains(&times.date));
    let dates: Vec<_> = times.zip(1..).map(|(times, number)| Date { number, times }).collect();
    if dates.is_empty() {
        return Err(Problem::invalid("/exdates", BrokenRule::Length, "must leave a date of the rule").into());
    }
    Ok(dates)
}

/// Finds a room for an event with the values of a draft on each of these dates. The places must be locked.
pub fn find_rooms(
    conn: &mut AnyConnection,
    draft: &Draft,
    like: Option<&EventRow>,
    dates: &[Date],
) -> Result<(Vec<Bookable>, Vec<Refused>), Error> {
    find_rooms_at(conn, draft, like, dates, &BTreeMap::new())
}

/// The same, but some dates are at other places.
fn find_rooms_at(
    conn: &mut AnyConnection,
    draft: &Draft,
    like: Option<&EventRow>,
    dates: &[Date],
    places: &BTreeMap<NaiveDate, String>,
) -> Result<(Vec<Bookable>, Vec<Refused>), Error> {
    let (existing, skipped): (Vec<&Date>, Vec<_>) = dates.iter().partition(|date| date.times.exist);
    let span = |date: &Date| (DbTimestamp(date.times.starts_at), DbTimestamp(date.times.ends_at));
    let mut refused: Vec<_> = skipped.into_iter().map(|date| Refused::nonexistent(date.number, span(date))).collect();
    let wishes = existing.iter().map(|date| {
        let (starts_at, ends_at) = span(date);
        let place = places.get(&date.times.date).cloned();
        let venue = place.map_or_else(|| draft.venue.clone(), Venue::Place);
        Wish { draft: Draft { starts_at, ends_at, venue, ..draft.clone() }, event: None, like }
    });
    let choices = several::find_rooms(conn, &wishes.collect::<Vec<_>>())?;
    let mut bookable = Vec::new();
    for (date, choice) in existing.into_iter().zip(choices) {
        match choice {
            Ok(choice) => bookable.push((date.number, span(date), choice)),
            Err(obstacle) => refused.push(Refused::new(date.number, span(date), obstacle)),
        }
    }
    refused.sort_unstable_by_key(|date| (date.starts_at, date.number));
    Ok((bookable, refused))
}

/// The dates of a series with the rooms that they can be in, and those that cannot be booked. Their places are locked.
///
/// # Errors
/// 400 as for an event, and for a rule with too many dates.
pub fn check(conn: &mut AnyConnection, new: &NewSeries, zone: Tz) -> Result<(Vec<Bookable>, Vec<Refused>), Error> {
    let dates = dates(new, zone)?;
    check_references(conn, &new.draft, None).map_err(in_event)?;
    find_locked_rooms(conn, new, &dates)
}

/// The same for the dates and places alone: the group and the administrators of the draft do not matter.
///
/// # Errors
/// 400 for an unknown room, and for a rule with too many dates.
pub fn check_dates(
    conn: &mut AnyConnection,
    new: &NewSeries,
    zone: Tz,
) -> Result<(Vec<Bookable>, Vec<Refused>), Error> {
    let dates = dates(new, zone)?;
    find_locked_rooms(conn, new, &dates)
}

/// Locks the places of a series, and finds a room for each of these dates.
fn find_locked_rooms(
    conn: &mut AnyConnection,
    new: &NewSeries,
    dates: &[Date],
) -> Result<(Vec<Bookable>, Vec<Refused>), Error> {
    match &new.draft.venue {
        Venue::Place(place) => {
            let places = new.places.values().chain([place]);
            lock_places(conn, places.map(|place| place_key(place)).collect())?;
            find_rooms_at(conn, &new.draft, None, dates, &new.places)
        }
        Venue::Room(id) => {
            room_queries::find_locked(conn, *id)?.ok_or_else(|| in_event(unknown_room()))?;
            find_rooms(conn, &new.draft, None, dates)
        }
    }
}

/// Creates a series with its events, and invites the members of its group. Returns its id and the dates that were left
/// out.
///
/// # Errors
/// Those of [`check`]; 409 `series-conflict`.
pub fn create(
    conn: &mut AnyConnection,
    new: &NewSeries,
    by: &Author,
    zone: Tz,
    now: DbTimestamp,
) -> Result<(DbUuid, Vec<SkippedDate>), Error> {
    let draft = &new.draft;
    let (bookable, refused) = check(conn, new, zone)?;
    if bookable.is_empty() || (!refused.is_empty() && !new.skips_conflicts) {
        return Err(series_conflict(&refused, zone));
    }
    let id = DbUuid::new();
    diesel::insert_into(event_series::table)
        .values((
            (event_series::id.eq(id), event_series::rrule.eq(new.rule.to_string())),
            (event_series::time_zone.eq(zone.name()), event_series::exdates.eq(as_text(&new.exdates))),
            (event_series::starts_at.eq(draft.starts_at), event_series::ends_at.eq(draft.ends_at)),
            event_series::next_occurrence.eq(i32::try_from(bookable.len() + refused.len()).unwrap_or(i32::MAX - 1) + 1),
            (event_series::created_by.eq(by.actor), event_series::created_at.eq(now), event_series::updated_at.eq(now)),
        ))
        .execute(conn)?;
    set_admins(conn, id, &draft.admins)?;
    let row = |date: &Refused| {
        (
            (skipped_occurrences::series_id.eq(id), skipped_occurrences::occurrence.eq(date.number)),
            (skipped_occurrences::starts_at.eq(date.starts_at), skipped_occurrences::ends_at.eq(date.ends_at)),
            skipped_occurrences::code.eq(date.code),
        )
    };
    let rows: Vec<_> = refused.iter().map(row).collect();
    for rows in rows.chunks(1000) {
        with_connection!(conn, c => diesel::insert_into(skipped_occurrences::table).values(rows).execute(c)?);
    }
    several::create_all(conn, draft, id, &bookable, by, now)?;
    Ok((id, refused.iter().map(|date| SkippedDate::refused(date, zone)).collect()))
}

/// The violations of an event that is a member of the body.
fn in_event(error: Error) -> Error {
    let Error::Problem(problem) = error else { return error };
    let below = |violation: &Violation| match &violation.location {
        Location::Pointer { pointer } => {
            Violation::at(format!("/event{pointer}"), violation.code, violation.message.clone())
        }
        _ => violation.clone(),
    };
    let violations = problem.broken_rules().iter().map(below).collect();
    problem.violations(violations).into()
}
