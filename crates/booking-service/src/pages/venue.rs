//! Where the event of a form takes place. A chosen room stands for its place, whatever day and time are chosen
//! afterwards.

use common::{
    input::{Id, Text},
    problem::Problem,
    visible::is_blank,
};
use maud::{Markup, html};
use service_kit::{
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    http::Form,
    page::{Choice, FormPage, Input},
};

use super::visit::{Visit, span_of};
use crate::{
    codes,
    events::{
        changes::{Draft, Venue},
        queries::Row,
    },
    rooms::{
        overlap::Span,
        place::place_key,
        queries::{self as rooms, Room, Selection},
    },
};

/// The most rooms that a form offers.
const MAX_CHOICES: usize = 200;

/// The most free times of other hours that it offers.
const MAX_OTHER_TIMES: usize = 12;

/// The most rooms that are compared.
const MAX_COMPARED: i64 = 1000;

/// The button that puts another free time into a form: room, day and times. It saves nothing.
pub const TAKE: &str = "take";

/// A room as a form shows it.
struct Card {
    id: String,
    place: String,
    /// When the club holds it, and what is special about it.
    note: String,
}

/// What a form offers.
pub struct Rooms {
    /// The rooms that are free at its time, and the chosen one.
    cards: Vec<Card>,
    /// How many are free.
    free: usize,
    /// Free times of other hours of the day, if no room is free: the value and the text of each button.
    other_times: Vec<Choice>,
    /// The chosen one, or that of its place which is free at the time of the form.
    chosen: String,
    /// The place of the chosen one.
    place: String,
}

/// The rooms that are free at the time of a form, without regard to the event that it changes.
pub fn rooms_of(conn: &mut AnyConnection, values: &Form, visit: &Visit, event: Option<&Row>) -> Result<Rooms, Error> {
    let except = event.map(|event| event.id);
    let wanted = span_of(values, visit.zone).ok().and_then(|(start, end)| Span::new(start, end));
    let is_shared = values.has("sharedRoom", "true");
    let at_time = wanted.map_or_else(|| Ok(Vec::new()), |wanted| during(conn, &wanted, except))?;
    let contains = |room: &rooms::Row| wanted.is_some_and(|wanted| room.period().span().contains(&wanted));
    let mut free: Vec<&Room> = at_time
        .iter()
        .filter(|room| contains(&room.row) && wanted.is_some_and(|wanted| is_free(room, &wanted, is_shared)))
        .collect();
    free.sort_by(|a, b| (!a.row.verified, &a.row.place).cmp(&(!b.row.verified, &b.row.place)));
    let note = |room: &rooms::Row| {
        let hours = visit.hours(room.starts_at, room.ends_at);
        if room.verified { hours } else { format!("{hours} · {}", visit.text("not-confirmed")) }
    };
    let card = |room: &rooms::Row| Card { id: room.id.to_string(), place: room.place.clone(), note: note(room) };
    let mut cards: Vec<_> = free.iter().take(MAX_CHOICES).map(|room| card(&room.row)).collect();
    let (mut chosen, mut place) = (values.get("room").to_owned(), String::new());
    // An import may have left it outside the time of its room, and a room may be deleted.
    let stays = |event: &&Row| {
        let has_time = wanted == Some(Span::between(event.starts_at, event.ends_at));
        has_time && event.room_id.to_string() == chosen && cards.iter().all(|card| card.id != chosen)
    };
    if let Some(event) = event.filter(stays) {
        cards.push(Card { id: chosen.clone(), place: event.place.clone(), note: String::new() });
        place.clone_from(&event.place);
    } else if let Ok(id) = chosen.parse::<Id>()
        && let Some(room) = rooms::find(conn, id.into())?
    {
        if cards.iter().all(|card| card.id != chosen) {
            if let Some(same) = free.iter().find(|other| other.row.place_key == room.place_key) {
                chosen = same.row.id.to_string();
            } else if contains(&room) {
                // Shown although it is taken, so that a refusal is understood.
                let note = visit.text("not-free");
                cards.push(Card { id: chosen.clone(), place: room.place.clone(), note });
            } else {
                chosen.clear();
            }
        }
        place = room.place;
    }
    let other_times = match wanted.filter(|_| free.is_empty()) {
        Some(wanted) => other_times(&of_day(conn, visit, &wanted, except)?, visit, &wanted, is_shared),
        None => Vec::new(),
    };
    Ok(Rooms { cards, free: free.len(), other_times, chosen, place })
}

/// The rooms on the first day of a span.
fn of_day(conn: &mut AnyConnection, visit: &Visit, wanted: &Span, except: Option<DbUuid>) -> Result<Vec<Room>, Error> {
    let day = visit.local(DbTimestamp(wanted.start)).date();
    let [begin, end] = [day, day.succ_opt().unwrap_or(day)].map(|day| visit.midnight(day));
    during(conn, &Span::between(begin, end), except)
}

/// The rooms during a part of a span.
fn during(conn: &mut AnyConnection, span: &Span, except: Option<DbUuid>) -> Result<Vec<Room>, Error> {
    let (from, to) = (Some(DbTimestamp(span.start)), Some(DbTimestamp(span.end)));
    let selection = Selection { from, to, ..Selection::default() };
    rooms::load_page(conn, &selection, except, &PageBounds { after: None, rows: MAX_COMPARED })
}

/// The free times of rooms on the day of a span, as buttons that say and put into the form the part that is nearest to it.
fn other_times(rooms: &[Room], visit: &Visit, wanted: &Span, is_shared: bool) -> Vec<Choice> {
    let day = visit.local(DbTimestamp(wanted.start)).date();
    let [begin, end] = [day, day.succ_opt().unwrap_or(day)].map(|day| visit.midnight(day).0);
    let Some(rest) = Span::new(begin.max(visit.now.0), end) else { return Vec::new() };
    let mut times: Vec<(&Room, Span)> = Vec::new();
    for room in rooms.iter().filter(|room| room.row.verified) {
        let free = if is_shared { &room.shared_times } else { &room.free_times };
        times.extend(free.iter().filter_map(|free| Some((room, free.intersection(&rest)?))));
    }
    times.sort_by(|(a, a_free), (b, b_free)| (a_free.start, &a.row.place).cmp(&(b_free.start, &b.row.place)));
    let length = wanted.end - wanted.start;
    let choice = |(room, free): (&Room, Span)| {
        let start = wanted.start.min(free.end.plus(-length)).max(free.start);
        let [start, end] = [start, start.plus(length).min(free.end)].map(DbTimestamp);
        let times = visit.shown_times(start, end).join(" ");
        let text = format!("{} {}", room.row.place, visit.hours(start, end));
        (format!("{} {}", room.row.id, times.trim_end()), text)
    };
    times.into_iter().take(MAX_OTHER_TIMES).map(choice).collect()
}

fn is_free(room: &Room, wanted: &Span, is_shared: bool) -> bool {
    let free = if is_shared { &room.shared_times } else { &room.free_times };
    free.iter().any(|free| free.contains(wanted))
}

impl Rooms {
    /// The form with the chosen room; with the first one that is free, unless a room or another place was chosen.
    pub fn choose(&self, values: &Form, problem: Option<&Problem>) -> Form {
        let mut values = values.clone();
        if problem.is_none()
            && values.get("room").is_empty()
            && is_blank(values.get("place"))
            && let Some(card) = self.cards.first()
        {
            values.set("room", &card.id);
        } else {
            values.set("room", &self.chosen);
        }
        values
    }

    /// The rooms as cards, of which one is chosen, and another place with its name.
    pub fn fields(&self, form: &FormPage<'_>, visit: &Visit) -> Markup {
        let chosen = form.values.get("room");
        let is_elsewhere = chosen.is_empty() && (self.cards.is_empty() || !is_blank(form.values.get("place")));
        html! {
            fieldset #f-room tabindex="-1" {
                legend { (visit.text("room")) }
                @for message in form.errors_of("roomId") { p.error { (message) } }
                div.options {
                    @for card in &self.cards {
                        label {
                            input type="radio" name="room" value=(card.id) checked[card.id == chosen];
                            span { b { (card.place) } small { (card.note) } }
                        }
                    }
                    label {
                        input.if-other type="radio" name="room" value="" checked[is_elsewhere];
                        span { b { (visit.text("another-place")) } }
                    }
                }
                div.other {
                    (form.input(Input { name: "place", label: &visit.text("other-place"), max_length: Some(32),
                        hint: Some(&visit.text("other-place-hint")), ..Input::default() }))
                }
            }
        }
    }

    /// What is said about them at the top of the form.
    pub fn notice(&self, values: &Form, are_asked_for: bool, visit: &Visit) -> Markup {
        html! {
            @if self.free == 0 && (are_asked_for || is_blank(values.get("place"))) {
                div.note role="status" {
                    h2 { (visit.text("no-room-free")) }
                    @if !self.other_times.is_empty() {
                        p { (visit.text("free-at-other-times")) }
                        div.actions { @for (value, text) in &self.other_times {
                            button name=(TAKE) value=(value) formnovalidate { (text) }
                        } }
                    }
                }
            } @else if are_asked_for {
                p role="status" { a href="#f-room" { (visit.count("rooms-free", self.free)) } }
            }
        }
    }

    /// Why a form was refused; if the club does not hold the chosen room at its time, in words that say so.
    pub fn refusal(&self, form: &FormPage<'_>, visit: &Visit) -> Markup {
        let is_outside = form.problem.is_some_and(|problem| problem.code() == codes::OUTSIDE_ROOM_PERIOD);
        if !is_outside || self.place.is_empty() {
            return form.refusal();
        }
        html! {
            div.refusal role="alert" tabindex="-1" {
                h2 { (visit.format("place-not-held", &[("place", self.place.as_str().into())])) }
                @if self.free > 0 { p { a href="#f-room" { (visit.count("rooms-free", self.free)) } } }
            }
        }
    }
}

/// The form with the free time whose button was pressed, if it was one.
pub fn at_chosen_time(mut form: Form) -> Form {
    let taken = form.get(TAKE).to_owned();
    if let Some((room, times)) = taken.split_once(' ') {
        form.set("room", room);
        form.set("place", "");
        form.set("at", times);
    }
    let chosen: Vec<String> = form.get("at").split(' ').map(str::to_owned).collect();
    if let [date, from, until, end_date @ ..] = chosen.as_slice() {
        form.set("date", date);
        form.set("from", from);
        form.set("until", until);
        form.set("endDate", end_date.first().map_or("", |date| date));
    }
    form
}

/// A room, by its place, if it is the venue of an event.
fn room_of(conn: &mut AnyConnection, venue: &Venue) -> Result<Option<rooms::Row>, Error> {
    match venue {
        Venue::Room(room) => rooms::find(conn, *room),
        Venue::Place(_) => Ok(None),
    }
}

/// The place of a form: that of its room, or the one that is typed. `None` if there is none yet.
pub fn place_of(conn: &mut AnyConnection, form: &Form) -> Result<Option<String>, Error> {
    match form.get("room").parse::<Id>() {
        Ok(room) => Ok(rooms::find(conn, room.into())?.map(|room| room.place)),
        Err(_) => Ok(Text::<1, 32>::new(form.get("place").to_owned()).ok().map(Text::into_inner)),
    }
}

/// When the club holds a place during a span, confirmed or not.
pub fn held_times(conn: &mut AnyConnection, place: &str, span: &Span) -> Result<Vec<Span>, Error> {
    let (from, to) = (Some(DbTimestamp(span.start)), Some(DbTimestamp(span.end)));
    let selection = Selection { from, to, place_key: Some(place_key(place)), ..Selection::default() };
    let rooms = rooms::load_page_rows(conn, &selection, &PageBounds { after: None, rows: MAX_COMPARED })?;
    let held = rooms.iter().map(|(room, _)| room).filter(|room| !room.made_for_event);
    Ok(held.map(|room| room.period().span()).collect())
}

/// The event at the place of its room, which the club may hold at the first date of a series alone.
pub fn at_place(conn: &mut AnyConnection, mut draft: Draft) -> Result<Draft, Error> {
    if let Some(room) = room_of(conn, &draft.venue)? {
        draft.venue = Venue::Place(room.place);
    }
    Ok(draft)
}

/// The room at the place of a chosen one that contains a span; a free one, if there are several. The chosen one, if it
/// contains the span or none does.
pub fn room_at_place(
    conn: &mut AnyConnection,
    venue: Venue,
    (span, is_shared): (Span, bool),
    except: Option<DbUuid>,
) -> Result<Venue, Error> {
    let Some(room) = room_of(conn, &venue)?.filter(|room| !room.period().span().contains(&span)) else {
        return Ok(venue);
    };
    let (from, to) = (Some(DbTimestamp(span.start)), Some(DbTimestamp(span.end)));
    let selection = Selection { from, to, place_key: Some(room.place_key), ..Selection::default() };
    let rooms = rooms::load_page(conn, &selection, except, &PageBounds { after: None, rows: MAX_COMPARED })?;
    let others = rooms.iter().filter(|room| !room.row.made_for_event && room.row.period().span().contains(&span));
    let best = others.min_by_key(|room| (!is_free(room, &span, is_shared), !room.row.verified));
    Ok(best.map_or(venue, |room| Venue::Room(room.row.id)))
}

/// The event in the room of its place that contains its time. `present` is the event before the change: without another
/// time, it stays where it is.
pub fn in_room_of_place(conn: &mut AnyConnection, mut draft: Draft, present: Option<&Row>) -> Result<Draft, Error> {
    let stays = |event: &Row| draft.venue == Venue::Room(event.room_id) && draft.has_time_of(event);
    if present.is_none_or(|event| !stays(event)) {
        let span = Span::between(draft.starts_at, draft.ends_at);
        draft.venue = room_at_place(conn, draft.venue, (span, draft.shared), present.map(|event| event.id))?;
    }
    Ok(draft)
}
