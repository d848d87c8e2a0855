//! Rendering of the calendar feed as iCalendar, RFC 5545 (contract, booking, "The calendar feed").
//!
//! The same input gives the same bytes: every time comes from the events, so an unchanged feed keeps its `ETag`.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use icalendar::{Calendar, Component, Event, EventLike, EventStatus, Property, ValueType};
use uuid::Uuid;

/// How often clients should fetch the feed again, as an RFC 5545 duration.
const REFRESH_INTERVAL: &str = "PT1H";

/// The most octets of a content line, its CRLF not counted (RFC 5545, section 3.1).
const LINE_OCTETS: usize = 75;

/// One event as the feed shows it. Times are cut to seconds, the resolution of iCalendar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedEvent {
    /// The permanent `UID`, and the last part of the event's web address.
    pub id: Uuid,
    /// `SUMMARY`.
    pub name: String,
    /// `DESCRIPTION`, before the event's web address; may be empty.
    pub description: String,
    /// `LOCATION`.
    pub place: String,
    /// `DTSTART`.
    pub start: DateTime<Utc>,
    /// `DTEND`, exclusive.
    pub end: DateTime<Utc>,
    /// `CREATED`.
    pub created_at: DateTime<Utc>,
    /// The last change of anything that the entry shows: `DTSTAMP` and `LAST-MODIFIED`.
    pub updated_at: DateTime<Utc>,
    /// How often time, place or status changed: `SEQUENCE`, at most 2,147,483,647.
    pub sequence: u32,
    /// `STATUS`: cancelled, or else confirmed.
    pub cancelled: bool,
    /// Whether the owner of the feed has declined it: `TRANSP`.
    pub declined: bool,
    /// `RELATED-TO`: the series that it belongs to, if it does.
    pub series: Option<Uuid>,
    /// One `CATEGORIES` each, in this order.
    pub tags: Vec<String>,
    /// `ORGANIZER`, if known.
    pub organizer: Option<Person>,
    /// One `ATTENDEE` each, in this order.
    pub attendees: Vec<(Person, Participation)>,
}

/// A user in the feed: the address `urn:uuid:{id}` and the common name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The user's id.
    pub id: Uuid,
    /// The name to show.
    pub name: Arc<str>,
}

/// An attendee's answer: `PARTSTAT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Participation {
    /// `pending` on the wire.
    NeedsAction,
    /// `attendance` on the wire.
    Accepted,
    /// `absent` on the wire.
    Declined,
}

/// A `VCALENDAR` that is rendered event by event: as a tree of the crate, a long feed takes ten times its size.
///
/// Text may be anything: line breaks become `\n`, other control characters besides tabs are left out, the rest is
/// escaped.
pub struct Feed<'a> {
    web_origin: &'a str,
    text: String,
    last_modified: Option<DateTime<Utc>>,
}

impl<'a> Feed<'a> {
    /// A feed without events. `name` is what calendars show for the feed; `web_origin` is the origin of this service
    /// (`https://booking.example`), where events are at `/events/{id}`.
    pub fn new(name: &str, web_origin: &'a str) -> Self {
        let name = printable(name);
        let mut calendar = Calendar::empty();
        calendar
            .append_property(("VERSION", "2.0"))
            .append_property(("PRODID", "-//booking-service//Room bookings//EN"))
            .append_property(("CALSCALE", "GREGORIAN"))
            // The crate does not know the type of properties newer than RFC 5545, and does not escape them.
            .append_property(Property::new("NAME", escape(&name)))
            .append_property(Property::new("X-WR-CALNAME", name))
            .append_property(
                Property::new("REFRESH-INTERVAL", REFRESH_INTERVAL).add_parameter("VALUE", "DURATION").done(),
            )
            .append_property(("X-PUBLISHED-TTL", REFRESH_INTERVAL));
        let mut text = "BEGIN:VCALENDAR\r\n".to_owned();
        calendar.properties.iter().for_each(|property| write_line(property, &mut text));
        Self { web_origin: web_origin.trim_end_matches('/'), text, last_modified: None }
    }

    /// Appends an event.
    pub fn add(&mut self, event: &FeedEvent) {
        self.last_modified = self.last_modified.max(Some(event.updated_at));
        let vevent = vevent(self.web_origin, event);
        self.text.push_str("BEGIN:VEVENT\r\n");
        let properties = vevent.properties().values().chain(vevent.multi_properties().values().flatten());
        properties.for_each(|property| write_line(property, &mut self.text));
        self.text.push_str("END:VEVENT\r\n");
    }

    /// The latest change of an event that it has: the header `Last-Modified`. `None` without events.
    pub fn last_modified(&self) -> Option<DateTime<Utc>> {
        self.last_modified
    }

    /// The complete calendar.
    pub fn end(mut self) -> String {
        self.text.push_str(END);
        self.text
    }
}

/// How a calendar ends.
const END: &str = "END:VCALENDAR\r\n";

/// Always sets `UID` and `DTSTAMP`: without them, the crate generates new ones each time.
fn vevent(web_origin: &str, event: &FeedEvent) -> Event {
    let address = format!("{web_origin}/events/{}", event.id);
    let description = Some(printable(&event.description)).filter(|text| !text.is_empty());
    let description: Vec<_> = description.into_iter().chain([address.clone()]).collect();

    let mut vevent = Event::new();
    vevent
        .uid(&event.id.to_string())
        .timestamp(event.updated_at)
        .last_modified(event.updated_at)
        .created(event.created_at)
        .sequence(event.sequence)
        .status(if event.cancelled { EventStatus::Cancelled } else { EventStatus::Confirmed })
        .starts(event.start)
        // Cut to seconds, both ends may be equal, and an event must end after it starts.
        .ends(event.end.max(event.start + TimeDelta::seconds(1)))
        .summary(&printable(&event.name))
        .description(&description.join("\n\n"))
        .location(&printable(&event.place));
    if let Some(organizer) = &event.organizer {
        vevent.append_property(calendar_address("ORGANIZER", organizer));
    }
    vevent.url(&address);
    if let Some(series) = event.series {
        vevent.append_property(("RELATED-TO", series.to_string().as_str()));
    }
    if event.declined {
        vevent.append_property(("TRANSP", "TRANSPARENT"));
    }
    for tag in &event.tags {
        // A line each: some programs do not find the comma after a backslash.
        vevent.categories([printable(tag)]);
    }
    for (person, participation) in &event.attendees {
        let status = match participation {
            Participation::NeedsAction => "NEEDS-ACTION",
            Participation::Accepted => "ACCEPTED",
            Participation::Declined => "DECLINED",
        };
        let mut attendee = calendar_address("ATTENDEE", person);
        vevent.append_multi_property(attendee.add_parameter("PARTSTAT", status).done());
    }
    vevent
}

/// A person as a property. Users have no mail address here; the URIs of their ids are permanent.
fn calendar_address(key: &str, person: &Person) -> Property {
    // A parameter value has no escapes of its own, and the crate does not encode: RFC 6868. Always quoted, because some
    // programs take a backslash at the end for an escape.
    let common_name = printable(&person.name).replace('^', "^^").replace('\n', "^n").replace('"', "^'");
    Property::new(key, format!("urn:uuid:{}", person.id)).add_parameter("CN", &format!("\"{common_name}\"")).done()
}

/// `text` with `\n` for each line break and no other control character but tabs, which no escape can express.
fn printable(text: &str) -> String {
    let mut text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.retain(|character| !character.is_control() || matches!(character, '\n' | '\t'));
    text
}

/// Escapes a value of type TEXT (RFC 5545, section 3.3.11).
fn escape(text: &str) -> String {
    text.replace('\\', r"\\").replace(';', r"\;").replace(',', r"\,").replace('\n', r"\n")
}

/// Writes a content line, folded at [`LINE_OCTETS`] between characters: the crate gives the last part of a line 76 octets.
/// Parameters are written as they are; see [`calendar_address`].
fn write_line(property: &Property, text: &mut String) {
    let mut line = property.key().to_owned();
    for parameter in property.params().values() {
        line.extend([";", parameter.key(), "=", parameter.value()]);
    }
    line.push(':');
    // The crate keeps the values of `CATEGORIES` escaped.
    if property.value_type() == Some(ValueType::Text) && property.key() != "CATEGORIES" {
        line.push_str(&escape(property.value()));
    } else {
        line.push_str(property.value());
    }
    let (mut rest, mut octets) = (line.as_str(), LINE_OCTETS);
    while rest.len() > octets {
        let part = rest.floor_char_boundary(octets);
        text.extend([&rest[..part], "\r\n "]);
        (rest, octets) = (&rest[part..], LINE_OCTETS - 1);
    }
    text.extend([rest, "\r\n"]);
}

#[cfg(test)]
mod tests;
