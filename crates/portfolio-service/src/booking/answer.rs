//! Reads a list of events while it arrives. Neither a long text nor a long list that a faulty booking-service sends
//! fills the memory: each event may have [`EVENT_BYTES`], and what is kept of all of them [`KEPT_BYTES`].

use std::{
    cell::Cell,
    fmt,
    io::{self, BufReader, Read},
};

use common::{
    input::{Id, MAX_IDS},
    time::Timestamp,
};
use serde::{
    Deserialize,
    de::{DeserializeSeed, Deserializer, Error as _, SeqAccess, Visitor},
};
use service_kit::database::types::{DbTimestamp, DbUuid};

/// The most bytes of an event in an answer, with thousands of attendees.
const EVENT_BYTES: usize = 1 << 20;

/// The most bytes of the texts and hosts of an answer that are kept. A page has less; older versions of the
/// booking-service send the whole list.
const KEPT_BYTES: usize = 16 << 20;

/// The longest name and place, and the longest description, in characters (contract, booking "Types").
const NAME_LENGTH: usize = 32;
const DESCRIPTION_LENGTH: usize = 10_000;

/// An event of the booking-service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BookingEvent {
    pub id: DbUuid,
    pub name: String,
    pub description: String,
    pub place: String,
    pub since: DbTimestamp,
    pub until: DbTimestamp,
    /// The ids of its administrators, sorted, without repeats.
    pub hosts: Vec<DbUuid>,
}

/// The state of an event in a list of the booking-service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventChange {
    /// The id of the event.
    pub id: DbUuid,
    /// When the event was last changed, by the clock of the booking-service. Older versions do not send it.
    pub changed_at: Option<Timestamp>,
    /// The event, or `None` when it is deleted.
    pub event: Option<BookingEvent>,
}

/// The fields of an event in the booking-service's JSON that the copy needs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResponseEvent {
    event_id: Id,
    name: String,
    description: String,
    place: String,
    time_start: String,
    time_end: String,
    admins: Vec<Id>,
    updated_at: Option<String>,
    deleted_at: Option<String>,
}

/// Reads the list of an answer.
pub fn read(body: impl Read) -> Result<Vec<EventChange>, serde_json::Error> {
    let left = Cell::new(EVENT_BYTES);
    let mut json = serde_json::Deserializer::from_reader(Bounded { body: BufReader::new(body), left: &left });
    let changes = List(&left).deserialize(&mut json)?;
    json.end()?;
    Ok(changes)
}

/// A body of which only so many bytes are read.
struct Bounded<'a, R> {
    body: R,
    left: &'a Cell<usize>,
}

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.body.read(buffer)?;
        let left = self.left.get().checked_sub(length).ok_or_else(|| io::Error::other("an event is too long"))?;
        self.left.set(left);
        Ok(length)
    }
}

/// The list. It allows as many bytes again after each event.
struct List<'a>(&'a Cell<usize>);

impl<'de> DeserializeSeed<'de> for List<'_> {
    type Value = Vec<EventChange>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List<'_> {
    type Value = Vec<EventChange>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let (mut changes, mut kept) = (Vec::new(), 0);
        while let Some(event) = list.next_element::<ResponseEvent>()? {
            let change = event_change(event).ok_or_else(|| A::Error::custom("an event is invalid"))?;
            kept += kept_bytes(&change);
            if kept > KEPT_BYTES {
                return Err(A::Error::custom("the list is too long"));
            }
            changes.push(change);
            self.0.set(EVENT_BYTES);
        }
        Ok(changes)
    }
}

fn kept_bytes(change: &EventChange) -> usize {
    let of_event = |event: &BookingEvent| {
        event.name.len() + event.description.len() + event.place.len() + size_of_val(event.hosts.as_slice())
    };
    size_of::<EventChange>() + change.event.as_ref().map_or(0, of_event)
}

/// Converts an event of a list. `None` when it is invalid.
fn event_change(event: ResponseEvent) -> Option<EventChange> {
    let id = event.event_id.into();
    let changed_at = event.updated_at.as_deref().and_then(|at| at.parse().ok());
    let event = if event.deleted_at.is_some() { None } else { Some(booking_event(event)?) };
    Some(EventChange { id, changed_at, event })
}

/// Converts an event that is not deleted. `None` when it ends before it begins, or when a time cannot be parsed or a
/// text has U+0000, which PostgreSQL cannot store.
fn booking_event(event: ResponseEvent) -> Option<BookingEvent> {
    let (since, until): (Timestamp, Timestamp) = (event.time_start.parse().ok()?, event.time_end.parse().ok()?);
    let texts = [&event.name, &event.description, &event.place];
    if since > until || texts.iter().any(|text| text.contains('\0')) {
        return None;
    }
    let mut hosts: Vec<_> = event.admins.into_iter().map(DbUuid::from).collect();
    hosts.sort_unstable();
    hosts.dedup();
    hosts.truncate(MAX_IDS);
    Some(BookingEvent {
        id: event.event_id.into(),
        name: cut(event.name, NAME_LENGTH),
        description: cut(event.description, DESCRIPTION_LENGTH),
        place: cut(event.place, NAME_LENGTH),
        since: DbTimestamp(since),
        until: DbTimestamp(until),
        hosts,
    })
}

/// The first characters of a text. The booking-service may have imported longer ones.
fn cut(mut text: String, length: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(length) {
        text.truncate(end);
        text.shrink_to_fit();
    }
    text
}
