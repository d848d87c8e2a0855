//! Rendering of the calendar feed as iCalendar, RFC 5545 (contract, booking, "The calendar feed").
//!
//! The same input gives the same bytes: every time comes from the events, so an unchanged feed keeps its `ETag`.

use chrono::{DateTime, TimeDelta, Utc};
use icalendar::{Calendar, Component, Event, EventLike, EventStatus, Property};
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
    pub name: String,
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

/// Renders `events`, in this order, as one `VCALENDAR`.
///
/// `calendar_name` is what calendars show for the feed; `web_origin` is the origin of the front end
/// (`https://booking.example`), which serves events at `/events/{id}`. Text may be anything: line breaks become
/// `\n`, other control characters besides tabs are left out, the rest is escaped.
#[must_use]
pub fn render(calendar_name: &str, web_origin: &str, events: &[FeedEvent]) -> String {
    let name = printable(calendar_name);
    let mut calendar = Calendar::empty();
    calendar
        .append_property(("VERSION", "2.0"))
        .append_property(("PRODID", "-//booking-service//Room bookings//EN"))
        .append_property(("CALSCALE", "GREGORIAN"))
        // The crate takes properties newer than RFC 5545 for values of another type than text.
        .append_property(Property::new("NAME", escape(&name)))
        .append_property(Property::new("X-WR-CALNAME", name))
        .append_property(Property::new("REFRESH-INTERVAL", REFRESH_INTERVAL).add_parameter("VALUE", "DURATION").done())
        .append_property(("X-PUBLISHED-TTL", REFRESH_INTERVAL));
    let web_origin = web_origin.trim_end_matches('/');
    calendar.extend(events.iter().map(|event| vevent(web_origin, event)));
    fold_again(&calendar.to_string())
}

/// Sets `UID` and `DTSTAMP` in any case: where they are missing the crate makes them up anew each time.
fn vevent(web_origin: &str, event: &FeedEvent) -> Event {
    let address = format!("{web_origin}/events/{}", event.id);
    let mut description = printable(&event.description);
    if !description.is_empty() {
        description += "\n\n";
    }
    description += &address;

    let mut vevent = Event::new();
    vevent
        .uid(&event.id.to_string())
        .timestamp(event.updated_at)
        .last_modified(event.updated_at)
        .created(event.created_at)
        .sequence(event.sequence)
        .status(if event.cancelled { EventStatus::Cancelled } else { EventStatus::Confirmed })
        .starts(event.start)
        // Within one second both ends would read alike, and an event must not end when it starts.
        .ends(event.end.max(event.start + TimeDelta::seconds(1)))
        .summary(&printable(&event.name))
        .description(&description)
        .location(&printable(&event.place))
        .url(&address)
        .append_property(calendar_address("ORGANIZER", &event.organizer));
    if !event.tags.is_empty() {
        vevent.categories(event.tags.iter().map(|tag| printable(tag)));
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

/// A person as a property. Users have no mail address here, and their ids make URIs that name them for ever.
fn calendar_address(key: &str, person: &Person) -> Property {
    // A parameter value has no escapes of its own, and the crate quotes but does not encode: RFC 6868.
    let common_name = printable(&person.name).replace('^', "^^").replace('\n', "^n").replace('"', "^'");
    Property::new(key, format!("urn:uuid:{}", person.id)).add_parameter("CN", &common_name).done()
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

/// Folds every content line at [`LINE_OCTETS`], between characters.
///
/// The crate forgets the space before a continuation when it measures the last part of a line, which so may have 76
/// octets. No other carriage return is in `rendered`, see [`printable`], so its folds are plain to undo.
fn fold_again(rendered: &str) -> String {
    let mut folded = String::with_capacity(rendered.len());
    for line in rendered.replace("\r\n ", "").split_terminator("\r\n") {
        let mut octets = 0;
        for character in line.chars() {
            if octets + character.len_utf8() > LINE_OCTETS {
                folded.push_str("\r\n ");
                octets = 1;
            }
            folded.push(character);
            octets += character.len_utf8();
        }
        folded.push_str("\r\n");
    }
    folded
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().expect("RFC 3339")
    }

    fn person(id: u128, name: &str) -> Person {
        Person { id: Uuid::from_u128(id), name: name.to_owned() }
    }

    fn event() -> FeedEvent {
        FeedEvent {
            id: "01890a5d-ac96-774b-bcce-b302099a8057".parse().expect("a UUID"),
            name: "進捗部屋; week 1".to_owned(),
            description: "Bring:\r\n- a laptop, charged\n- C:\\notes".to_owned(),
            place: "S516, S517".to_owned(),
            start: at("2026-04-01T09:00:00Z"),
            end: at("2026-04-01T12:30:00Z"),
            created_at: at("2026-03-20T01:02:03.456789Z"),
            updated_at: at("2026-03-21T04:05:06Z"),
            sequence: 2,
            cancelled: false,
            tags: vec!["進捗".to_owned(), "a,b;c".to_owned()],
            organizer: person(1, "Ann \"Admin\" O'Neil"),
            attendees: vec![
                (person(2, "Bob; ^the, builder"), Participation::Accepted),
                (person(3, "キャロル"), Participation::NeedsAction),
                (person(4, "Dan"), Participation::Declined),
            ],
        }
    }

    #[test]
    fn one_event_reads_like_this() {
        let expected = "\
BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//booking-service//Room bookings//EN
CALSCALE:GREGORIAN
NAME:Bookings\\, mine
X-WR-CALNAME:Bookings\\, mine
REFRESH-INTERVAL;VALUE=DURATION:PT1H
X-PUBLISHED-TTL:PT1H
BEGIN:VEVENT
CREATED:20260320T010203Z
DESCRIPTION:Bring:\\n- a laptop\\, charged\\n- C:\\\\notes\\n\\nhttps://booking.ex
 ample/events/01890a5d-ac96-774b-bcce-b302099a8057
DTEND:20260401T123000Z
DTSTAMP:20260321T040506Z
DTSTART:20260401T090000Z
LAST-MODIFIED:20260321T040506Z
LOCATION:S516\\, S517
ORGANIZER;CN=Ann ^'Admin^' O'Neil:urn:uuid:00000000-0000-0000-0000-00000000
 0001
SEQUENCE:2
STATUS:CONFIRMED
SUMMARY:進捗部屋\\; week 1
UID:01890a5d-ac96-774b-bcce-b302099a8057
URL:https://booking.example/events/01890a5d-ac96-774b-bcce-b302099a8057
ATTENDEE;CN=\"Bob; ^^the, builder\";PARTSTAT=ACCEPTED:urn:uuid:00000000-0000-
 0000-0000-000000000002
ATTENDEE;CN=キャロル;PARTSTAT=NEEDS-ACTION:urn:uuid:00000000-0000-0000-
 0000-000000000003
ATTENDEE;CN=Dan;PARTSTAT=DECLINED:urn:uuid:00000000-0000-0000-0000-00000000
 0004
CATEGORIES:進捗,a\\,b\\;c
END:VEVENT
END:VCALENDAR
";
        let rendered = render("Bookings, mine", "https://booking.example/", &[event()]);
        assert_eq!(rendered.replace("\r\n", "\n"), expected);
    }

    #[test]
    fn a_cancelled_event_says_so() {
        let rendered = render("x", "https://booking.example", &[FeedEvent { cancelled: true, ..event() }]);
        assert_eq!(text(&read(&rendered).events[0], "STATUS"), "CANCELLED");
    }

    #[test]
    fn an_event_without_tags_has_no_categories() {
        let rendered = render("x", "https://booking.example", &[FeedEvent { tags: vec![], ..event() }]);
        assert!(!rendered.contains("CATEGORIES"));
    }

    #[test]
    fn an_event_within_one_second_still_ends_after_its_start() {
        let short = FeedEvent { end: at("2026-04-01T09:00:00.5Z"), ..event() };
        let rendered = render("x", "https://booking.example", &[short]);
        assert_eq!(one(&read(&rendered).events[0], "DTEND").value, "20260401T090001Z");
    }

    #[test]
    fn a_feed_without_events_is_a_calendar() {
        assert_eq!(read(&render("", "https://booking.example", &[])).events, [] as [Vec<Line>; 0]);
    }

    #[test]
    fn lines_have_at_most_75_octets_whatever_their_length() {
        for length in 0..400 {
            let rendered = render(&"a".repeat(length), "https://booking.example", &[]);
            assert_eq!(text(&read(&rendered).calendar, "NAME").len(), length);
        }
    }

    /// A content line, read as strictly as RFC 5545 allows; parameters decoded after RFC 6868.
    #[derive(Debug, PartialEq)]
    struct Line {
        name: String,
        parameters: Vec<(String, String)>,
        value: String,
    }

    /// The properties of the calendar itself, and those of each event.
    struct Parsed {
        calendar: Vec<Line>,
        events: Vec<Vec<Line>>,
    }

    fn read(feed: &str) -> Parsed {
        let physical: Vec<&str> = feed.strip_suffix("\r\n").expect("CRLF at the end").split("\r\n").collect();
        assert!(physical.iter().all(|line| (1..=75).contains(&line.len())), "line length in {feed:?}");
        assert!(!physical.concat().contains(['\r', '\n']), "bare line break in {feed:?}");

        let mut unfolded: Vec<String> = Vec::new();
        for line in physical {
            match line.strip_prefix([' ', '\t']) {
                Some(more) => unfolded.last_mut().expect("a line to continue").push_str(more),
                None => unfolded.push(line.to_owned()),
            }
        }

        let mut lines = unfolded.iter().map(|line| content_line(line));
        let delimiter = |line: Option<Line>, name: &str, value: &str| {
            let line = line.expect("more lines");
            assert_eq!((line.name.as_str(), line.parameters.len(), line.value.as_str()), (name, 0, value));
        };
        delimiter(lines.next(), "BEGIN", "VCALENDAR");
        let mut parsed = Parsed { calendar: Vec::new(), events: Vec::new() };
        loop {
            let line = lines.next().expect("more lines");
            match line.name.as_str() {
                "BEGIN" => {
                    delimiter(Some(line), "BEGIN", "VEVENT");
                    let properties: Vec<Line> = lines.by_ref().take_while(|line| line.name != "END").collect();
                    assert!(properties.iter().all(|line| line.name != "BEGIN"));
                    parsed.events.push(properties);
                }
                "END" => {
                    delimiter(Some(line), "END", "VCALENDAR");
                    assert_eq!(lines.next(), None);
                    return parsed;
                }
                _ => {
                    assert!(parsed.events.is_empty(), "properties come before components");
                    parsed.calendar.push(line);
                }
            }
        }
    }

    fn content_line(line: &str) -> Line {
        assert!(line.chars().all(|c| c == '\t' || !c.is_control()), "{line:?}");
        let (name, mut rest) = line.split_at(line.find([';', ':']).expect("a value"));
        assert!(!name.is_empty() && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'-'), "{line:?}");

        let mut parameters = Vec::new();
        while let Some(parameter) = rest.strip_prefix(';') {
            let (key, after) = parameter.split_once('=').expect("a parameter value");
            let (value, after) = if let Some(quoted) = after.strip_prefix('"') {
                quoted.split_once('"').expect("a closing quote")
            } else {
                let value = after.split_at(after.find([';', ':', ',', '"']).expect("a value"));
                assert!(!value.1.starts_with([',', '"']), "{line:?}");
                value
            };
            parameters.push((key.to_owned(), decode_parameter(value)));
            rest = after;
        }
        let value = rest.strip_prefix(':').expect("a colon").to_owned();
        Line { name: name.to_owned(), parameters, value }
    }

    fn decode_parameter(value: &str) -> String {
        let mut decoded = String::new();
        let mut characters = value.chars();
        while let Some(character) = characters.next() {
            decoded.push(match character {
                '^' => match characters.next() {
                    Some('^') => '^',
                    Some('n') => '\n',
                    Some('\'') => '"',
                    other => panic!("^{other:?} in {value:?}"),
                },
                other => other,
            });
        }
        decoded
    }

    /// The items of a list of TEXT values; a single value is a list of one.
    fn text_list(value: &str) -> Vec<String> {
        let mut items = vec![String::new()];
        let mut characters = value.chars();
        while let Some(character) = characters.next() {
            let item = items.last_mut().expect("never empty");
            match character {
                '\\' => item.push(match characters.next() {
                    Some('n') => '\n',
                    Some(escaped @ ('\\' | ';' | ',')) => escaped,
                    other => panic!("\\{other:?} in {value:?}"),
                }),
                ';' => panic!("bare semicolon in {value:?}"),
                ',' => items.push(String::new()),
                other => item.push(other),
            }
        }
        items
    }

    fn all<'a>(lines: &'a [Line], name: &str) -> Vec<&'a Line> {
        lines.iter().filter(|line| line.name == name).collect()
    }

    fn one<'a>(lines: &'a [Line], name: &str) -> &'a Line {
        let [line] = all(lines, name)[..] else { panic!("not exactly one {name}") };
        line
    }

    fn text(lines: &[Line], name: &str) -> String {
        let list = text_list(&one(lines, name).value);
        assert_eq!(list.len(), 1, "bare comma in {name}");
        list.concat()
    }

    fn nasty() -> impl Strategy<Value = String> {
        let pieces = [
            "\\",
            ";",
            ",",
            ":",
            "\"",
            "\n",
            "\r",
            "\r\n",
            "\t",
            " ",
            "^",
            "^n",
            "\\n",
            "=",
            "\u{0}",
            "\u{1b}",
            "\u{7f}",
            "\u{85}",
            "\u{2028}",
            "漢字",
            "😀",
            "e\u{301}",
            "BEGIN:VEVENT",
            "\r\n END:VCALENDAR",
            "a",
            "some more words",
        ];
        let piece = prop_oneof![4 => prop::sample::select(pieces.to_vec()).prop_map(str::to_owned), 1 => ".{0,40}"];
        prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
    }

    /// What is left of a text once it has been through the feed.
    fn survives(text: &str) -> String {
        text.replace("\r\n", "\n")
            .replace('\r', "\n")
            .chars()
            .filter(|c| "\n\t".contains(*c) || !c.is_control())
            .collect()
    }

    fn any_person() -> impl Strategy<Value = Person> {
        (any::<u128>(), nasty()).prop_map(|(id, name)| person(id, &name))
    }

    fn any_event() -> impl Strategy<Value = FeedEvent> {
        let participation =
            prop::sample::select(vec![Participation::NeedsAction, Participation::Accepted, Participation::Declined]);
        let people = prop::collection::vec((any_person(), participation), 0..4);
        let texts = (nasty(), nasty(), nasty(), prop::collection::vec(nasty(), 0..4));
        (any::<u128>(), texts, any_person(), people, any::<bool>(), 0_u32..1 << 31).prop_map(
            |(id, (name, description, place, tags), organizer, attendees, cancelled, sequence)| {
                let id = Uuid::from_u128(id);
                FeedEvent { id, name, description, place, sequence, cancelled, tags, organizer, attendees, ..event() }
            },
        )
    }

    fn assert_shows(lines: &[Line], event: &FeedEvent) {
        let address = format!("https://booking.example/events/{}", event.id);
        assert_eq!(text(lines, "UID"), event.id.to_string());
        assert_eq!(text(lines, "SUMMARY"), survives(&event.name));
        assert_eq!(text(lines, "LOCATION"), survives(&event.place));
        assert_eq!(one(lines, "URL").value, address);
        assert_eq!(text(lines, "STATUS"), if event.cancelled { "CANCELLED" } else { "CONFIRMED" });
        assert_eq!(one(lines, "SEQUENCE").value, event.sequence.to_string());
        for (name, value) in [
            ("CREATED", "20260320T010203Z"),
            ("DTSTAMP", "20260321T040506Z"),
            ("LAST-MODIFIED", "20260321T040506Z"),
            ("DTSTART", "20260401T090000Z"),
            ("DTEND", "20260401T123000Z"),
        ] {
            assert_eq!((one(lines, name).parameters.len(), one(lines, name).value.as_str()), (0, value));
        }

        let description = text(lines, "DESCRIPTION");
        let before = description.strip_suffix(&address).expect("the address at the end");
        assert_eq!(before.strip_suffix("\n\n").unwrap_or_default(), survives(&event.description));

        let categories: Vec<String> = all(lines, "CATEGORIES").iter().flat_map(|it| text_list(&it.value)).collect();
        assert_eq!(categories, event.tags.iter().map(|tag| survives(tag)).collect::<Vec<_>>());

        let common_name = |person: &Person| ("CN".to_owned(), survives(&person.name));
        let organizer = one(lines, "ORGANIZER");
        assert_eq!(organizer.parameters, [common_name(&event.organizer)]);
        assert_eq!(organizer.value, event.organizer.id.urn().to_string());

        let attendees = all(lines, "ATTENDEE");
        assert_eq!(attendees.len(), event.attendees.len());
        for (line, (person, participation)) in attendees.into_iter().zip(&event.attendees) {
            let status = match participation {
                Participation::NeedsAction => "NEEDS-ACTION",
                Participation::Accepted => "ACCEPTED",
                Participation::Declined => "DECLINED",
            };
            assert_eq!(line.parameters, [common_name(person), ("PARTSTAT".to_owned(), status.to_owned())]);
            assert_eq!(line.value, person.id.urn().to_string());
        }
    }

    proptest! {
        #[test]
        fn a_strict_reader_gets_back_what_went_in(
            name in nasty(),
            events in prop::collection::vec(any_event(), 0..3),
        ) {
            let rendered = render(&name, "https://booking.example", &events);
            prop_assert_eq!(&render(&name, "https://booking.example", &events), &rendered);

            let parsed = read(&rendered);
            prop_assert_eq!(text(&parsed.calendar, "NAME"), survives(&name));
            prop_assert_eq!(text(&parsed.calendar, "X-WR-CALNAME"), survives(&name));
            prop_assert_eq!(text(&parsed.calendar, "VERSION"), "2.0");
            prop_assert_eq!(parsed.events.len(), events.len());
            for (lines, event) in parsed.events.iter().zip(&events) {
                assert_shows(lines, event);
            }
        }
    }
}
