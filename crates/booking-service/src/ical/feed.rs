//! Rendering of the calendar feed as iCalendar, RFC 5545 (contract, booking, "The calendar feed").
//!
//! The same input gives the same bytes: every time comes from the events, so an unchanged feed keeps its `ETag`.

use std::{
    borrow::Cow,
    fmt::{self, Display, Write as _},
    sync::Arc,
};

use chrono::{DateTime, Datelike, TimeDelta, Timelike, Utc};
use uuid::Uuid;

/// How often clients should fetch the feed again, as an RFC 5545 duration.
const REFRESH_INTERVAL: &str = "PT1H";

/// The most octets of a content line, its CRLF not counted (RFC 5545, section 3.1).
const LINE_OCTETS: usize = 75;

/// One event as the feed shows it. Times are cut to whole seconds, the finest that iCalendar knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedEvent {
    /// The `UID` for ever, and the last part of the event's web address.
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
    /// The last change: `DTSTAMP` and `LAST-MODIFIED`.
    pub updated_at: DateTime<Utc>,
    /// How often time, place or status changed: `SEQUENCE`, at most 2,147,483,647.
    pub sequence: u32,
    /// `STATUS`: cancelled, or else confirmed.
    pub cancelled: bool,
    /// `CATEGORIES`, in this order.
    pub tags: Vec<String>,
    /// `ORGANIZER`.
    pub organizer: Person,
    /// One `ATTENDEE` each, in this order.
    pub attendees: Vec<(Person, Participation)>,
}

/// A user as the feed names one: the address `urn:uuid:{id}` and the common name.
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

/// One `VCALENDAR` in the making, written event by event.
///
/// Text may be anything: line breaks become `\n`, other control characters besides tabs are left out, the rest is
/// escaped.
pub struct Feed<'a> {
    web_origin: &'a str,
    text: String,
    /// The present content line, before it is folded.
    line: String,
}

impl<'a> Feed<'a> {
    /// Without events yet. `name` is what calendars show for the feed; `web_origin` is the origin of the front end
    /// (`https://booking.example`), which serves events at `/events/{id}`.
    #[must_use]
    pub fn new(name: &str, web_origin: &'a str) -> Self {
        let web_origin = web_origin.trim_end_matches('/');
        let mut feed = Self { web_origin, text: String::new(), line: String::new() };
        let name = escape(name);
        feed.add_line(format_args!("BEGIN:VCALENDAR"));
        feed.add_line(format_args!("VERSION:2.0"));
        feed.add_line(format_args!("PRODID:-//booking-service//Room bookings//EN"));
        feed.add_line(format_args!("CALSCALE:GREGORIAN"));
        feed.add_line(format_args!("NAME:{name}"));
        feed.add_line(format_args!("X-WR-CALNAME:{name}"));
        feed.add_line(format_args!("REFRESH-INTERVAL;VALUE=DURATION:{REFRESH_INTERVAL}"));
        feed.add_line(format_args!("X-PUBLISHED-TTL:{REFRESH_INTERVAL}"));
        feed
    }

    /// Adds an event behind those that are there.
    pub fn add(&mut self, event: &FeedEvent) {
        let address = format!("{}/events/{}", self.web_origin, event.id);
        let description = escape(&event.description);
        let separator = if description.is_empty() { "" } else { r"\n\n" };
        // Within one second both ends would read alike, and an event must not end when it starts.
        let end = event.end.max(event.start + TimeDelta::seconds(1));
        self.add_line(format_args!("BEGIN:VEVENT"));
        self.add_line(format_args!("CREATED:{}", UtcTime(event.created_at)));
        self.add_line(format_args!("DESCRIPTION:{description}{separator}{address}"));
        self.add_line(format_args!("DTEND:{}", UtcTime(end)));
        self.add_line(format_args!("DTSTAMP:{}", UtcTime(event.updated_at)));
        self.add_line(format_args!("DTSTART:{}", UtcTime(event.start)));
        self.add_line(format_args!("LAST-MODIFIED:{}", UtcTime(event.updated_at)));
        self.add_line(format_args!("LOCATION:{}", escape(&event.place)));
        let Person { id, name } = &event.organizer;
        self.add_line(format_args!("ORGANIZER;CN={}:urn:uuid:{id}", common_name(name)));
        self.add_line(format_args!("SEQUENCE:{}", event.sequence));
        self.add_line(format_args!("STATUS:{}", if event.cancelled { "CANCELLED" } else { "CONFIRMED" }));
        self.add_line(format_args!("SUMMARY:{}", escape(&event.name)));
        self.add_line(format_args!("UID:{}", event.id));
        self.add_line(format_args!("URL:{address}"));
        for (Person { id, name }, participation) in &event.attendees {
            let status = match participation {
                Participation::NeedsAction => "NEEDS-ACTION",
                Participation::Accepted => "ACCEPTED",
                Participation::Declined => "DECLINED",
            };
            let name = common_name(name);
            self.add_line(format_args!("ATTENDEE;CN={name};PARTSTAT={status}:urn:uuid:{id}"));
        }
        if !event.tags.is_empty() {
            let tags: Vec<_> = event.tags.iter().map(|tag| escape(tag)).collect();
            self.add_line(format_args!("CATEGORIES:{}", tags.join(",")));
        }
        self.add_line(format_args!("END:VEVENT"));
    }

    /// The whole calendar.
    #[must_use]
    pub fn end(mut self) -> String {
        self.add_line(format_args!("END:VCALENDAR"));
        self.text
    }

    /// Adds a content line, folded at [`LINE_OCTETS`] between characters.
    fn add_line(&mut self, content: fmt::Arguments<'_>) {
        self.line.clear();
        // Writing to a String does not fail.
        let _ = self.line.write_fmt(content);
        let (mut rest, mut octets) = (self.line.as_str(), LINE_OCTETS);
        while rest.len() > octets {
            let end = (0..=octets).rfind(|end| rest.is_char_boundary(*end)).unwrap_or(octets);
            let (part, more) = rest.split_at(end);
            self.text.push_str(part);
            self.text.push_str("\r\n ");
            (rest, octets) = (more, LINE_OCTETS - 1);
        }
        self.text.push_str(rest);
        self.text.push_str("\r\n");
    }
}

/// A point in time as RFC 5545 writes it in UTC (section 3.3.5).
struct UtcTime(DateTime<Utc>);

impl Display for UtcTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.0;
        write!(
            f,
            "{:04}{:02}{:02}T{:02}{:02}{:02}Z",
            at.year(),
            at.month(),
            at.day(),
            at.hour(),
            at.minute(),
            at.second()
        )
    }
}

/// A value of type TEXT (RFC 5545, section 3.3.11).
fn escape(text: &str) -> Cow<'_, str> {
    replace(text, |character| match character {
        '\\' => Some(r"\\"),
        ';' => Some(r"\;"),
        ',' => Some(r"\,"),
        '\n' => Some(r"\n"),
        _ => None,
    })
}

/// The value of the parameter `CN`, in quotes if it needs them (RFC 5545, section 3.2; RFC 6868).
fn common_name(name: &str) -> Cow<'_, str> {
    let name = replace(name, |character| match character {
        '^' => Some("^^"),
        '\n' => Some("^n"),
        '"' => Some("^'"),
        _ => None,
    });
    if name.contains([':', ';', ',']) { format!("\"{name}\"").into() } else { name }
}

/// `text` with some characters replaced, `\n` for each line break and no other control character but tabs, which no
/// escape can express.
fn replace(text: &str, escape: impl Fn(char) -> Option<&'static str>) -> Cow<'_, str> {
    let is_plain = |character: char| escape(character).is_none() && (!character.is_control() || character == '\t');
    if text.chars().all(is_plain) {
        return text.into();
    }
    let mut replaced = String::with_capacity(text.len() + 16);
    for character in text.replace("\r\n", "\n").replace('\r', "\n").chars() {
        match escape(character) {
            Some(escaped) => replaced.push_str(escaped),
            None if is_plain(character) => replaced.push(character),
            None => {}
        }
    }
    replaced.into()
}

#[cfg(test)]
mod tests;
