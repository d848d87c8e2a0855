//! The dates of a series in its form: which are booked and where, what is in their way, and the rooms that are free
//! instead.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;
use common::{
    input::{Id, Text},
    time::Timestamp,
};
use maud::{Markup, html};
use serde_json::Value;
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    http::Form,
    page::hidden,
};

use super::{
    choices::{events_by_id, in_new_tab},
    venue::held_times,
    visit::Visit,
};
use crate::{
    rooms::{
        booking::{Booking, RoomPeriod, VerifiedRoom, conflicts_of_all, load_verified},
        overlap::Span,
        place::place_key,
    },
    series::rule::Times,
};

/// The lists of rooms that are free on single dates. A value is a date and a place.
const ROOM_ON: &str = "roomOn";

/// The hidden fields that say of which dates the form has said that the club does not hold their place: date and place.
const NOT_HELD: &str = "notHeld";

/// The most rooms that are offered for one date.
const MAX_OFFERS: usize = 6;

/// Where the dates of a form are to be.
#[derive(Default)]
pub struct Places {
    /// The place of the series, if it is known.
    pub place: Option<String>,
    /// The dates with a tick for which another place was chosen.
    pub chosen: BTreeMap<NaiveDate, String>,
    /// When the club holds the place of the series, confirmed or not. `None` if no room was chosen, so that it need not.
    held: Option<Vec<Span>>,
    /// The confirmed rooms of all places.
    verified: Vec<VerifiedRoom>,
}

impl Places {
    /// The places of these dates of a form, whose own place is given.
    pub fn load(conn: &mut AnyConnection, form: &Form, place: Option<String>, dates: &[Times]) -> Result<Self, Error> {
        let (Some(first), Some(last)) = (dates.first(), dates.last()) else { return Ok(Self::default()) };
        let all = Span { start: first.starts_at, end: last.ends_at };
        let has_room = form.get("room").parse::<Id>().is_ok();
        let held = match place.as_deref().filter(|_| has_room) {
            Some(place) => Some(held_times(conn, place, &all)?),
            None => None,
        };
        let chosen = form.all(ROOM_ON).filter_map(|value| {
            let (date, place) = value.split_once(' ')?;
            let place = Text::<1, 32>::new(place.to_owned()).ok()?;
            Some((date.parse::<NaiveDate>().ok().filter(|_| form.has("on", date))?, place.into_inner()))
        });
        let verified = load_verified(conn, DbTimestamp(all.start), DbTimestamp(all.end))?;
        Ok(Self { place, chosen: chosen.collect(), held, verified })
    }

    /// The place of a date.
    fn place_on(&self, date: NaiveDate) -> &str {
        self.chosen.get(&date).or(self.place.as_ref()).map_or("", |place| place)
    }

    /// Whether the club holds the place of a date then, if it is that of a room.
    fn is_held(&self, times: &Times) -> bool {
        let span = span(times);
        match (self.chosen.get(&times.date), &self.held) {
            (Some(place), _) => {
                let key = place_key(place);
                self.verified.iter().any(|room| room.place_key == key && room.span().contains(&span))
            }
            (None, Some(held)) => held.iter().any(|held| held.contains(&span)),
            (None, None) => true,
        }
    }

    /// The value that a form has in [`NOT_HELD`] after it has said so of this date.
    fn mark(&self, date: NaiveDate) -> String {
        format!("{date} {}", self.place_on(date))
    }

    /// Whether the club does not hold the place of a date that is to be booked, and the form has not said so yet.
    pub fn must_be_shown(&self, form: &Form, dates: &[Times]) -> bool {
        let left_out = left_out(form);
        let mut booked = dates.iter().filter(|times| !left_out.contains(&times.date));
        booked.any(|times| !self.is_held(times) && !form.has(NOT_HELD, &self.mark(times.date)))
    }

    /// The places of the confirmed rooms that are free on these dates, first that which was chosen. Nothing is locked: a
    /// booking checks it again.
    fn free(
        &self,
        conn: &mut AnyConnection,
        dates: &[&Times],
        shared: bool,
    ) -> Result<BTreeMap<NaiveDate, Vec<&str>>, Error> {
        let mut rooms: Vec<(&Times, &VerifiedRoom)> = Vec::new();
        for times in dates {
            let of_date = self.verified.iter().filter(|room| room.span().contains(&span(times)));
            rooms.extend(of_date.map(|room| (*times, room)));
        }
        let bookings = rooms.iter().map(|(times, room)| {
            let (starts_at, ends_at) = (DbTimestamp(times.starts_at), DbTimestamp(times.ends_at));
            let room = RoomPeriod { room: room.id, place_key: &room.place_key, starts_at, ends_at };
            Booking { room, starts_at, ends_at, shared, except: None }
        });
        let conflicts = conflicts_of_all(conn, &bookings.collect::<Vec<_>>(), &self.verified)?;
        let mut free: BTreeMap<NaiveDate, Vec<&str>> = BTreeMap::new();
        for ((times, room), _) in rooms.iter().zip(&conflicts).filter(|(_, conflicts)| conflicts.is_empty()) {
            free.entry(times.date).or_default().push(&room.place);
        }
        for (date, places) in &mut free {
            let chosen = self.chosen.get(date).map(String::as_str);
            places.sort_unstable_by_key(|place| (chosen != Some(*place), *place));
            places.dedup();
            places.truncate(MAX_OFFERS);
        }
        Ok(free)
    }
}

fn span(times: &Times) -> Span {
    Span { start: times.starts_at, end: times.ends_at }
}

/// The dates of a form that are not to be booked: those that were listed and have no tick.
pub fn left_out(form: &Form) -> BTreeSet<NaiveDate> {
    let ticked: BTreeSet<_> = form.all("on").collect();
    form.all("listed").filter(|date| !ticked.contains(date)).filter_map(|date| date.parse().ok()).collect()
}

/// What is in the way of a date, of the dates in a `series-conflict`.
fn obstacle<'a>(refused: &'a [Value], times: &Times) -> Option<&'a Value> {
    let start = |date: &Value| date["timeStart"].as_str().and_then(|at| at.parse::<Timestamp>().ok());
    refused.iter().find(|date| start(date) == Some(times.starts_at))
}

/// That nothing has been booked yet, because the dates come first. `refused` are dates as in `series-conflict`.
pub fn notice(visit: &Visit, dates: &[Times], places: &Places, refused: &[Value]) -> Markup {
    let not_held = dates.iter().filter(|times| !places.is_held(times) && obstacle(refused, times).is_none()).count();
    let are_taken = refused.iter().all(|date| date["code"] == "room-conflict");
    let why = match (not_held, refused.len()) {
        (0, _) if are_taken => "taken",
        (0, _) => "other",
        (_, 0) => "not-held",
        _ => "several",
    };
    let number = refused.len() + not_held;
    let arguments = [("n", dates.len().into()), ("refused", number.into()), ("why", why.into())];
    html! {
        div.refusal role="alert" { a href="#dates" { (visit.format("series-check-dates", &arguments)) } }
    }
}

/// The dates, each with a tick, with what is in its way and with the rooms that are free instead. `refused` are dates as
/// in `series-conflict`.
pub fn list(
    conn: &mut AnyConnection,
    visit: &Visit,
    form: &Form,
    dates: &[Times],
    places: &Places,
    refused: &[Value],
) -> Result<Markup, Error> {
    let ids_of = |date: &Value| -> Vec<DbUuid> {
        let conflicts = date["conflicts"].as_array().into_iter().flatten();
        conflicts.filter_map(|event| event["eventId"].as_str()?.parse::<Id>().ok()).map(DbUuid::from).collect()
    };
    let taken = events_by_id(conn, refused.iter().flat_map(ids_of).collect())?;
    let needs_choice = |times: &&Times| {
        let is_in_room = places.is_held(times) && !places.chosen.contains_key(&times.date);
        times.exist && (!is_in_room || obstacle(refused, times).is_some())
    };
    let to_choose: Vec<&Times> = dates.iter().filter(needs_choice).collect();
    let free = places.free(conn, &to_choose, form.has("sharedRoom", "true"))?;
    let left_out = left_out(form);
    let not_held = |times: &Times| !places.is_held(times) && obstacle(refused, times).is_none();
    Ok(html! {
        fieldset id="dates" tabindex="-1" {
            legend { (visit.count("series-dates", dates.len())) }
            ul.rows.named { @for times in dates {
                @let obstacle = obstacle(refused, times);
                @let mark = Some(places.mark(times.date)).filter(|_| not_held(times));
                @let is_known = mark.as_ref().is_none_or(|mark| form.has(NOT_HELD, mark));
                @let is_on = obstacle.is_none() && is_known && !left_out.contains(&times.date);
                li {
                    (hidden("listed", times.date.to_string()))
                    label.check {
                        input type="checkbox" name="on" value=(times.date) checked[is_on];
                        " " (visit.span(DbTimestamp(times.starts_at), DbTimestamp(times.ends_at)))
                    }
                    div {
                        @if let Some(date) = obstacle {
                            span.error {
                                (visit.text(&format!("series-{}", date["code"].as_str().unwrap_or_default())))
                                @for id in ids_of(date) { @if let Some(event) = taken.iter().find(|event| event.id == id) {
                                    " " (in_new_tab(event))
                                } }
                            }
                        }
                        @if let Some(mark) = &mark {
                            (hidden(NOT_HELD, mark))
                            span.error { (visit.format("place-not-held", &[("place", places.place_on(times.date).into())])) }
                        }
                        @if let Some(free) = free.get(&times.date) {
                            " " (offers(visit, times, places, free, obstacle.is_some()))
                        }
                    }
                }
            } }
            p.mute { (visit.text("series-dates-hint")) }
            @if dates.iter().any(not_held) { p.mute { (visit.text("series-not-held-hint")) } }
        }
    })
}

/// The rooms of which one can be chosen for a date.
fn offers(visit: &Visit, times: &Times, places: &Places, free: &[&str], is_taken: bool) -> Markup {
    let chosen = places.chosen.get(&times.date).map(String::as_str);
    let label = visit.format("series-room-on", &[("day", visit.language.short_day(times.date).into())]);
    let own = places.place.as_deref().filter(|_| !is_taken);
    html! {
        select name=(ROOM_ON) aria-label=(label) {
            @if let Some(own) = own {
                option value="" {
                    (own) @if !places.is_held(times) { " · " (visit.text("not-confirmed")) }
                }
            }
            @for place in free {
                option value={ (times.date) " " (place) } selected[chosen == Some(*place)] {
                    (visit.format("series-room-free", &[("place", (*place).into())]))
                }
            }
        }
    }
}
