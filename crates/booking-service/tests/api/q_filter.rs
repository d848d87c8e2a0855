//! The `q` filter: for random expressions, the answer agrees with an evaluation by the rules of the contract.

use crate::harness::Backend::{self, Postgres, Sqlite};
use booking_service::events::{
    filter::{Attribute, Filter, parse},
    queries::{Order, load_page},
    selection::{Criterion, Selection},
};
use diesel::{Connection, connection::InstrumentationEvent};
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use rstest::rstest;
use serde_json::{Value, json};
use service_kit::database::{PageBounds, types::DbTimestamp};
use std::sync::mpsc;
use uuid::Uuid;

use crate::{
    builders::{At, event, event_body, group, merge, text},
    harness::{ALICE, BOB, CAROL, Club, DAVE, hours_from_now, id},
    plans,
};

/// Whether an event matches by the rules of the contract, from its detail.
fn matches(filter: &Filter, event: &Value) -> bool {
    match filter {
        Filter::Everything => true,
        Filter::And(a, b) => matches(a, event) && matches(b, event),
        Filter::Or(a, b) => matches(a, event) || matches(b, event),
        Filter::Compare { attribute, equal, id } => {
            let is = |value: &Value| value.as_str() == Some(&id.to_string());
            let found = match attribute {
                Attribute::Event => is(&event["eventId"]),
                Attribute::Group => is(&event["group"]["groupId"]),
                Attribute::Series => is(&event["seriesId"]),
                Attribute::Tag => event["tags"].as_array().unwrap().iter().any(|tag| is(&tag["tagId"])),
                Attribute::User => {
                    let attendees = event["attendees"].as_array().unwrap();
                    attendees.iter().any(|answer| is(&answer["userId"]) && answer["schedule"] != "absent")
                }
            };
            found == *equal
        }
    }
}

/// Random expressions with these ids.
fn expression(ids: Vec<Uuid>) -> impl Strategy<Value = String> {
    let attribute = prop::sample::select(vec!["event", "user", "group", "tag", "series"]);
    let operator = prop::sample::select(vec!["==", "!=", " == ", "\n!= "]);
    let comparison = (attribute, operator, prop::sample::select(ids), any::<bool>()).prop_map(|(a, o, id, upper)| {
        let id = if upper { id.to_string().to_uppercase() } else { id.to_string() };
        format!("{a}{o}{id}")
    });
    comparison.prop_recursive(4, 12, 2, |inner| {
        (inner.clone(), prop::sample::select(vec!["&&", "||", " && ", " || "]), inner, any::<bool>()).prop_map(
            |(a, operator, b, group)| if group { format!("({a}{operator}{b})") } else { format!("{a}{operator}({b})") },
        )
    })
}

fn encode(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

fn get(club: &Club, q: &str) -> crate::harness::Answer {
    club.by(DAVE).get(&format!("/api/events?q={}", encode(q)))
}

#[rstest]
fn random_filters_pick_what_the_contract_says(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let groups = [group(&club, BOB, "a", &[BOB, CAROL]), group(&club, BOB, "b", &[CAROL, DAVE])];
    let mut ids = vec![id("nothing").0, id(ALICE).0, id(BOB).0, id(CAROL).0];
    let mut events = Vec::new();
    for (n, hour) in (0..8).enumerate() {
        let tags: Vec<_> = ["x", "y", "z"][..n % 4].iter().map(|name| json!({ "name": name })).collect();
        let body = merge([
            event_body(&club, BOB, At::Place("Discord"), (hour, hour + 1)),
            json!({
                "groupId": groups[n % 2], "tags": tags, "open": true,
            }),
        ]);
        let event = text(&club.by(BOB).post("/api/events", body).expect(201).json()["eventId"]);
        let schedule = ["attendance", "absent", "pending"][n % 3];
        let answer = json!({ "schedule": schedule });
        club.by(CAROL).put(&format!("/api/events/{event}/attendees/me"), answer).expect(204);
        let detail = club.by(BOB).get(&format!("/api/events/{event}")).json();
        ids.extend(detail["tags"].as_array().unwrap().iter().map(|tag| uuid(&tag["tagId"])));
        ids.push(uuid(&detail["eventId"]));
        ids.push(uuid(&detail["group"]["groupId"]));
        events.push(detail);
    }
    let mut runner = TestRunner::new(Config { cases: 250, failure_persistence: None, ..Config::default() });
    // The events follow each other without a gap, so a span from one to another contains exactly the events between.
    let span = prop::option::of((0..events.len(), 0..events.len()).prop_map(|(a, b)| (a.min(b), a.max(b))));
    let outcome = runner.run(&(expression(ids), span), |(q, span)| {
        let filter = parse(&q).unwrap();
        let (first, last) = span.unwrap_or((0, events.len() - 1));
        let expected = events[first..=last].iter().filter(|event| matches(&filter, event));
        let expected: Vec<_> = expected.map(|event| text(&event["eventId"])).collect();
        let (from, to) = (text(&events[first]["timeStart"]), text(&events[last]["timeEnd"]));
        let within = format!("&dateBegin={}&dateEnd={}", encode(&from), encode(&to));
        let url = format!("/api/events?q={}{}", encode(&q), span.map_or("", |_| &within));
        let found = crate::builders::each(&club.by(DAVE).get(&url).expect(200).json(), "eventId");
        prop_assert_eq!(found, expected, "{} {:?}", q, span);
        Ok(())
    });
    outcome.unwrap();
}

#[rstest]
fn an_invalid_filter_is_refused_with_the_position(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    event(&club, BOB, At::Place("x"), (1, 2));
    for empty in ["", "  \n"] {
        assert_eq!(get(&club, empty).expect(200).json().as_array().unwrap().len(), 1);
    }
    let problem = get(&club, "user==1").refused(400, "bad-filter");
    assert_eq!(problem["position"], 6);
    assert_eq!(problem["violations"][0]["parameter"], "q");
    get(&club, &format!("user=={}&&", id(BOB))).refused(400, "bad-filter");
    get(&club, &"(".repeat(33)).refused(400, "filter-too-long");
    get(&club, &" ".repeat(4097)).refused(400, "filter-too-long");
}

#[rstest]
fn the_longest_filters_work(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    event(&club, BOB, At::Place("x"), (1, 2));
    let flat = vec![format!("user=={}", id(BOB)); 32].join("&&");
    assert_eq!(get(&club, &flat).expect(200).json().as_array().unwrap().len(), 1);
    let mixed: Vec<_> = (0..32).map(|n| format!("user=={}{}", id(BOB), ["&&", "||"][n % 2])).collect();
    let mixed = mixed.concat();
    assert_eq!(get(&club, mixed.trim_end_matches(['&', '|'])).expect(200).json().as_array().unwrap().len(), 1);
    let deep = format!("{}user!={}{}", "(".repeat(32), id(BOB), ")".repeat(32));
    assert_eq!(get(&club, &deep).expect(200).json(), json!([]));
}

#[rstest]
fn a_filter_has_at_most_32_comparisons(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let comparison = format!("user=={}", id(BOB));
    let filter = |comparisons| vec![&*comparison; comparisons].join("||");
    get(&club, &filter(32)).expect(200);
    let problem = get(&club, &filter(33)).refused(400, "filter-too-long");
    assert_eq!(problem["position"], 32 * (comparison.len() + 2));
    assert_eq!(problem["violations"][0]["parameter"], "q");
    // Parentheses and later errors make no difference.
    let nested = format!("({})&&({})", filter(16), filter(17));
    get(&club, &nested).refused(400, "filter-too-long");
    get(&club, &format!("{}||user", filter(32))).refused(400, "filter-too-long");
    get(&club, &format!("{}||", filter(32))).refused(400, "bad-filter");
    let secret = text(&club.by(BOB).get("/api/users/me/ical").expect(200).json()["secret"]);
    let feed = |comparisons| format!("/api/ical/v1/{}{secret}?q={}", id(BOB), encode(&filter(comparisons)));
    club.anonymous().get(&feed(32)).expect(200);
    club.anonymous().get(&feed(33)).refused(400, "filter-too-long");
}

fn uuid(value: &Value) -> Uuid {
    value.as_str().unwrap().parse().unwrap()
}

#[rstest]
fn queries_use_indexes(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for place in ["S516", "S517"] {
        event(&club, BOB, At::Place(place), (1, 2));
    }
    let at = |hours| DbTimestamp(hours_from_now(&club, hours));
    let week = (Some(at(-10)), Some(at(100)));
    let user = id(BOB);
    let filter = parse(&format!("user=={user} && tag!={user} || group=={user}")).unwrap();
    let long_filter = parse(&vec![format!("user!={user}"); 9].join(" && ")).unwrap();
    let selections = [
        Selection::new(Criterion::Matching(filter.clone())).between(week),
        Selection::new(Criterion::Matching(filter)).between((week.0, None)),
        Selection::new(Criterion::Matching(long_filter)).between(week),
    ];
    for selection in selections {
        plans::check(&club, |conn| {
            load_page(conn, &selection, Order::Start, &PageBounds::all()).unwrap();
        });
    }
}

/// SQLite does not turn subqueries into joins.
#[test]
fn postgres_plans_a_filter_of_many_comparisons_without_joins() {
    let club = Club::start_with(Backend::Postgres, &[]);
    let user = id(BOB);
    let joins = |comparisons| {
        let filter = parse(&vec![format!("user=={user}"); comparisons].join(" && ")).unwrap();
        let sent = plans::statements(&club, |conn| {
            load_page(conn, &Selection::new(Criterion::Matching(filter)), Order::Start, &PageBounds::all()).unwrap();
        });
        let plan = plans::plan(&mut club.connect(), &sent[0]);
        plan.iter().filter(|step| step.contains("Join") || step.starts_with("Nested Loop")).count()
    };
    assert_eq!(joins(1), 1);
    assert_eq!(joins(32), 1);
}

/// On SQLite, diesel does not report its cache to this instrumentation.
#[test]
fn postgres_keeps_the_text_of_a_filter_out_of_the_statement_cache() {
    let club = Club::start_with(Backend::Postgres, &[]);
    let cached = |criterion: Criterion| {
        let (sink, seen) = mpsc::channel();
        let mut conn = club.connect();
        conn.set_instrumentation(move |event: InstrumentationEvent<'_>| {
            if let InstrumentationEvent::CacheQuery { sql, .. } = event {
                sink.send(sql.to_owned()).unwrap();
            }
        });
        load_page(&mut conn, &Selection::new(criterion), Order::Start, &PageBounds::all()).unwrap();
        drop(conn);
        seen.iter().filter(|sql| sql.contains("\"events\"")).count()
    };
    assert_eq!(cached(Criterion::Matching(parse(&format!("user=={}", id(BOB))).unwrap())), 0);
    assert_eq!(cached(Criterion::InRoom(id(BOB))), 1);
}
