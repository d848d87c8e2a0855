use proptest::prelude::*;

use super::*;

fn at(text: &str) -> DateTime<Utc> {
    text.parse().expect("RFC 3339")
}

fn render(name: &str, web_origin: &str, events: &[FeedEvent]) -> String {
    let mut feed = Feed::new(name, web_origin);
    for event in events {
        feed.add(event);
    }
    feed.end()
}

fn person(id: u128, name: &str) -> Person {
    Person { id: Uuid::from_u128(id), name: name.into() }
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
        declined: false,
        series: None,
        tags: vec!["進捗".to_owned(), "a,b;c".to_owned()],
        organizer: Some(person(1, "Ann \"Admin\" O'Neil")),
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
ORGANIZER;CN=\"Ann ^'Admin^' O'Neil\":urn:uuid:00000000-0000-0000-0000-000000
 000001
SEQUENCE:2
STATUS:CONFIRMED
SUMMARY:進捗部屋\\; week 1
UID:01890a5d-ac96-774b-bcce-b302099a8057
URL:https://booking.example/events/01890a5d-ac96-774b-bcce-b302099a8057
ATTENDEE;CN=\"Bob; ^^the, builder\";PARTSTAT=ACCEPTED:urn:uuid:00000000-0000-
 0000-0000-000000000002
ATTENDEE;CN=\"キャロル\";PARTSTAT=NEEDS-ACTION:urn:uuid:00000000-0000-000
 0-0000-000000000003
ATTENDEE;CN=\"Dan\";PARTSTAT=DECLINED:urn:uuid:00000000-0000-0000-0000-000000
 000004
CATEGORIES:進捗
CATEGORIES:a\\,b\\;c
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
fn a_declined_event_takes_no_time() {
    let rendered = render("x", "https://booking.example", &[FeedEvent { declined: true, ..event() }, event()]);
    let events = read(&rendered).events;
    assert_eq!(one(&events[0], "TRANSP").value, "TRANSPARENT");
    assert!(all(&events[1], "TRANSP").is_empty());
}

#[test]
fn a_backslash_at_the_end_is_neither_before_a_comma_nor_before_a_colon() {
    let named =
        FeedEvent { tags: vec!["a\\".to_owned(), "b".to_owned()], organizer: Some(person(1, "Ann\\")), ..event() };
    let rendered = render("x", "https://booking.example", &[named]);
    assert!(rendered.contains("\r\nCATEGORIES:a\\\\\r\nCATEGORIES:b\r\n"), "{rendered}");
    assert!(rendered.contains("ORGANIZER;CN=\"Ann\\\":urn"), "{rendered}");
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
    text.replace("\r\n", "\n").replace('\r', "\n").chars().filter(|c| "\n\t".contains(*c) || !c.is_control()).collect()
}

fn any_person() -> impl Strategy<Value = Person> {
    (any::<u128>(), nasty()).prop_map(|(id, name)| person(id, &name))
}

fn any_event() -> impl Strategy<Value = FeedEvent> {
    let participation =
        prop::sample::select(vec![Participation::NeedsAction, Participation::Accepted, Participation::Declined]);
    let people = prop::collection::vec((any_person(), participation), 0..4);
    let texts = (nasty(), nasty(), nasty(), prop::collection::vec(nasty(), 0..4));
    (any::<u128>(), texts, prop::option::of(any_person()), people, any::<bool>(), 0_u32..1 << 31).prop_map(
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
    let organizers = all(lines, "ORGANIZER").into_iter().map(|line| (line.parameters.clone(), line.value.clone()));
    let expected = event.organizer.iter().map(|person| (vec![common_name(person)], person.id.urn().to_string()));
    assert!(organizers.eq(expected));

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
