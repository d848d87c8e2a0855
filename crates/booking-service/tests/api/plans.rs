//! Query plans: no list and no check for conflicts scans a whole table that grows.

use crate::harness::Backend::{self, Postgres, Sqlite};
use chrono_tz::Tz::UTC;
use rstest::rstest;
use std::sync::mpsc;

use booking_service::{
    availability::queries::{self as availability, People},
    board::queries as board,
    events::{
        filter::parse,
        queries::{self as events, Order, load_page},
        selection::{Criterion, Deleted, Relation, Selection},
    },
    groups::queries as groups,
    polls::queries::{self as polls, DraftEventStatus},
    rooms::{
        booking::{Booking, RoomPeriod, refuse_conflicts, refuse_conflicts_of_verified},
        queries as rooms,
    },
    tags,
    users::queries as users,
};
use diesel::{
    Connection, PgConnection, QueryableByName, RunQueryDsl,
    connection::{InstrumentationEvent, SimpleConnection},
    sql_query,
    sql_types::Text,
};
use serde_json::json;
use service_kit::database::{
    AnyConnection, PageBounds,
    types::{DbTimestamp, DbUuid},
};

use crate::{
    builders::{At, EVERYONE, answer_poll, event, group, poll, verified_room},
    harness::{ALICE, BOB, Club, hours_from_now, id},
};

/// The tables that grow.
const GROWING: [&str; 11] = [
    "events",
    "rooms",
    "attendees",
    "event_tags",
    "event_admins",
    "draft_events",
    "draft_event_slots",
    "draft_event_admins",
    "draft_event_invitees",
    "draft_event_answers",
    "draft_event_choices",
];

/// The generic plan of a statement, one line for each step.
fn plan(conn: &mut AnyConnection, sql: &str) -> Vec<String> {
    #[derive(QueryableByName)]
    struct Sqlite {
        #[diesel(sql_type = Text)]
        detail: String,
    }
    match conn {
        AnyConnection::Sqlite(conn) => {
            let steps: Vec<Sqlite> = sql_query(format!("EXPLAIN QUERY PLAN {sql}")).load(conn).unwrap();
            steps.into_iter().map(|step| step.detail).collect()
        }
        AnyConnection::Postgresql(conn) => {
            // The tables are small, so the planner must not choose plans that are only good for small tables.
            conn.batch_execute("SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan").unwrap();
            conn.batch_execute(&format!("PREPARE explained AS {sql}")).unwrap();
            let highest = (1..100).take_while(|n| sql.contains(&format!("${n}"))).count();
            let nulls = if highest == 0 { String::new() } else { format!("({})", vec!["NULL"; highest].join(", ")) };
            let lines = run_explain(conn, &format!("EXPLAIN EXECUTE explained{nulls}"));
            conn.batch_execute("DEALLOCATE explained").unwrap();
            lines
        }
    }
}

/// The output of PostgreSQL for an `EXPLAIN`, one line for each step.
fn run_explain(conn: &mut PgConnection, explain: &str) -> Vec<String> {
    #[derive(QueryableByName)]
    struct Line {
        #[diesel(sql_type = Text, column_name = "QUERY PLAN")]
        line: String,
    }
    let lines: Vec<Line> = sql_query(explain).load(conn).unwrap();
    lines.into_iter().map(|line| line.line.trim_start_matches([' ', '-', '>']).to_owned()).collect()
}

/// Whether a step reads a whole table that grows, or a whole index of such a table.
fn reads_everything(step: &str) -> bool {
    let scanned_table = step.strip_prefix("SCAN ").or_else(|| step.strip_prefix("Seq Scan on "));
    // A scan in list order is right for pages, but for a span of time it reads all rows before the span.
    let scans_list_index =
        step.starts_with("Index") && ["events_list on", "rooms_list on"].iter().any(|index| step.contains(index));
    scans_list_index || scanned_table.is_some_and(|rest| GROWING.contains(&rest.split(' ').next().unwrap()))
}

/// Whether a join starts with all rows that are not long, which are nearly all rows. As a branch of an OR, the same
/// step reads the few long rows.
fn begins_with_everything(before: Option<&String>, step: &str) -> bool {
    let is_branch = before.is_some_and(|before| before.starts_with("INDEX "));
    step.starts_with("SEARCH ") && step.ends_with("(is_long=?)") && !is_branch
}

/// The `SELECT` statements that `run` sends.
fn statements(club: &Club, run: impl FnOnce(&mut AnyConnection)) -> Vec<String> {
    let (sink, seen) = mpsc::channel();
    let mut conn = club.connect();
    conn.set_instrumentation(move |event: InstrumentationEvent<'_>| {
        if let InstrumentationEvent::StartQuery { query, .. } = event {
            let text = query.to_string();
            sink.send(text.split(" -- binds").next().unwrap().to_owned()).unwrap();
        }
    });
    run(&mut conn);
    drop(conn);
    let statements: Vec<String> = seen.iter().collect();
    assert!(!statements.is_empty());
    statements.into_iter().filter(|sql| sql.trim_start().starts_with("SELECT")).collect()
}

/// Asserts that a page is read in order from its start, without sorting the whole list.
fn check_page(club: &Club, what: &str, sql: &str) {
    let mut conn = club.connect();
    if let AnyConnection::Postgresql(conn) = &mut conn {
        conn.batch_execute("SET enable_sort = off; SET enable_bitmapscan = off").unwrap();
    }
    let plan = plan(&mut conn, sql);
    // An incremental sort of the few rows with equal starts or names is allowed.
    let sorts = |step: &String| step.starts_with("Sort") || step.ends_with("TEMP B-TREE FOR ORDER BY");
    assert!(
        !plan.iter().any(|step| sorts(step) && !step.starts_with("Sort Key")),
        "{what}: {sql}\n{}",
        plan.join("\n")
    );
}

fn check(club: &Club, what: &str, run: impl FnOnce(&mut AnyConnection)) {
    for sql in &statements(club, run) {
        let plan = plan(&mut club.connect(), sql);
        assert!(!plan.is_empty());
        let is_bad = |n: usize| {
            let before = n.checked_sub(1).map(|before| &plan[before]);
            reads_everything(&plan[n]) || begins_with_everything(before, &plan[n])
        };
        assert!(!(0..plan.len()).any(is_bad), "{what}: {sql}\n{}", plan.join("\n"));
    }
}

#[rstest]
fn lists_and_conflicts_are_found_by_index(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let room = verified_room(&club, ALICE, "S516", (0, 9));
    // Lists have more than one row.
    event(&club, BOB, At::Room(&verified_room(&club, ALICE, "S517", (0, 9))), (1, 2));
    let event = DbUuid(event(&club, BOB, At::Room(&room), (1, 2)).parse().unwrap());
    let room = DbUuid(room.parse().unwrap());
    let group = DbUuid(EVERYONE.parse().unwrap());
    let at = |hours| DbTimestamp(hours_from_now(&club, hours));
    let week = (Some(at(-10)), Some(at(100)));
    let user = id(BOB);
    let of_user = |relation| Criterion::OfUser { user, relation, is_active: true };
    let filter = parse(&format!("user=={user} && tag!={user} || group=={user}")).unwrap();
    let long_filter = parse(&vec![format!("user!={user}"); 9].join(" && ")).unwrap();
    let selections = [
        ("week", Selection::new(Criterion::All).between(week)),
        ("from", Selection::new(Criterion::All).between((week.0, None))),
        ("to", Selection::new(Criterion::All).between((None, week.1))),
        ("since", Selection::new(Criterion::All).since(Some(at(-10)))),
        ("since, in a week", Selection::new(Criterion::All).since(Some(at(-10))).between(week)),
        ("room", Selection::new(Criterion::InRoom(room))),
        ("group", Selection::new(Criterion::OfGroup(group)).between(week)),
        ("belongs", Selection::new(of_user(Relation::Belongs))),
        ("admins", Selection::new(of_user(Relation::Admins))),
        ("both", Selection::new(of_user(Relation::BelongsOrAdmins))),
        ("attends", Selection::new(of_user(Relation::Attendees))),
        ("filter", Selection::new(Criterion::Matching(filter.clone())).between(week)),
        ("filter, from", Selection::new(Criterion::Matching(filter)).between((week.0, None))),
        ("long filter", Selection::new(Criterion::Matching(long_filter)).between(week)),
        ("activity", Selection { deleted: Deleted::All, ..Selection::new(Criterion::ChangedAfter(at(-10))) }),
        (
            "feed",
            Selection {
                deleted: Deleted::After(at(-700)),
                ..Selection::new(Criterion::ForFeed(user)).between((Some(at(-2160)), None))
            },
        ),
    ];
    for (what, selection) in selections {
        check(&club, what, |conn| {
            load_page(conn, &selection, Order::Start, &PageBounds::all()).unwrap();
        });
    }
    let period = |place_key| RoomPeriod { room, place_key, starts_at: at(0), ends_at: at(9) };
    let booking = Booking { room: period("s516"), starts_at: at(1), ends_at: at(2), shared: false, except: None };
    check(&club, "booking", |conn| {
        refuse_conflicts(conn, &booking, UTC).unwrap_err();
    });
    check(&club, "verification", |conn| {
        refuse_conflicts_of_verified(conn, &[period("s516")], UTC).unwrap();
    });
    check(&club, "import", |conn| {
        refuse_conflicts_of_verified(conn, &[period("s516"), period("s517")], UTC).unwrap();
    });
    for (from, to) in [week, (week.0, None), (None, week.1)] {
        let selection = rooms::Selection { from, to, ..rooms::Selection::default() };
        check(&club, "rooms", |conn| {
            rooms::load(conn, &selection, None).unwrap();
        });
    }
    check(&club, "event", |conn| {
        events::get(conn, event).unwrap();
    });
    check(&club, "room", |conn| {
        rooms::get(conn, room, None).unwrap();
    });
}

#[rstest]
fn polls_and_free_times_are_found_by_index(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (path, slots) = poll(&club, BOB, json!({"invitees": [id(BOB), id(ALICE)]}));
    answer_poll(&club, BOB, &path, &[&slots[0]]).expect(201);
    let one = DbUuid(path.rsplit('/').next().unwrap().parse().unwrap());
    let (user, now) = (id(BOB), DbTimestamp(club.clock.now()));
    let relations = [Relation::Belongs, Relation::Admins, Relation::BelongsOrAdmins, Relation::Attendees];
    let states = [None, Some(DraftEventStatus::Open)];
    for (relation, status) in relations.into_iter().flat_map(|relation| states.map(|status| (relation, status))) {
        let selection = polls::Selection { user, relation, status };
        check(&club, "polls of a user", |conn| {
            assert_eq!(polls::load(conn, &selection, now, &PageBounds::all()).unwrap().len(), 1);
        });
    }
    check(&club, "poll", |conn| {
        polls::get_detail(conn, one).unwrap();
        polls::is_admin(conn, one, user).unwrap();
        polls::is_invited(conn, one, user).unwrap();
    });
    check(&club, "answers", |conn| {
        polls::answers(conn, one, &PageBounds::all()).unwrap();
        polls::answers(conn, one, &PageBounds { after: Some(user), rows: 2 }).unwrap();
        polls::answer_of(conn, one, user).unwrap();
        polls::choices(conn, one, None).unwrap();
        polls::choices(conn, one, Some(&[user])).unwrap();
    });
    event(&club, BOB, At::Room(&verified_room(&club, ALICE, "S516", (0, 9))), (1, 2));
    let at = |hours| DbTimestamp(hours_from_now(&club, hours));
    let group = DbUuid(group(&club, BOB, "few", &[BOB]).parse().unwrap());
    for people in [People::Users(vec![user]), People::Group(group), People::Group(DbUuid(EVERYONE.parse().unwrap()))] {
        check(&club, "busy people", |conn| {
            availability::busy_times(conn, &people, at(-10), at(100)).unwrap();
        });
    }
    for only_verified in [true, false] {
        let selection =
            rooms::Selection { from: Some(at(-10)), to: Some(at(100)), only_verified, ..rooms::Selection::default() };
        check(&club, "free rooms", |conn| {
            assert_eq!(availability::free_rooms(conn, &selection, false).unwrap().len(), 1);
        });
    }
    for place_key in [None, Some("s516")] {
        check(&club, "board", |conn| {
            let content = board::load(conn, (at(-10), at(100)), place_key).unwrap();
            assert_eq!((content.rooms.len(), content.events.len()), (1, 1));
        });
    }
}

#[rstest]
fn pages_are_not_sorted_out_of_whole_lists(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (at, id) = (DbTimestamp(club.clock.now()), id(BOB));
    let group = DbUuid(EVERYONE.parse().unwrap());
    let first = |sql: Vec<String>| sql.into_iter().find(|sql| sql.contains("LIMIT")).unwrap();
    for is_first in [true, false] {
        let after = || Some((at, id)).filter(|_| !is_first);
        let recent = Selection { deleted: Deleted::All, ..Selection::new(Criterion::ChangedAfter(at)) };
        let selections = [
            ("events", Selection::new(Criterion::All), Order::Start),
            ("events of a group", Selection::new(Criterion::OfGroup(group)), Order::Start),
            ("activity", recent, Order::Change),
        ];
        for (what, selection, order) in selections {
            let load = |conn: &mut AnyConnection| {
                load_page(conn, &selection, order, &PageBounds { after: after(), rows: 51 }).unwrap();
            };
            check_page(&club, what, &first(statements(&club, load)));
        }
        let after = || Some((at, "S516".to_owned(), id)).filter(|_| !is_first);
        let load = |conn: &mut AnyConnection| {
            let slice = PageBounds { after: after(), rows: 51 };
            rooms::load_page(conn, &rooms::Selection::default(), None, &slice).unwrap();
        };
        check_page(&club, "rooms", &first(statements(&club, load)));
        let after = || Some((0, "graphics".to_owned(), id)).filter(|_| !is_first);
        let load = |conn: &mut AnyConnection| {
            groups::list(conn, &PageBounds { after: after(), rows: 51 }).unwrap();
        };
        check_page(&club, "groups", &first(statements(&club, load)));
        let after = || Some(("alice".to_owned(), id)).filter(|_| !is_first);
        for all in [true, false] {
            let load = |conn: &mut AnyConnection| {
                users::list(conn, all, &PageBounds { after: after(), rows: 51 }).unwrap();
            };
            check_page(&club, "users", &first(statements(&club, load)));
        }
        let load = |conn: &mut AnyConnection| {
            tags::load(conn, &PageBounds { after: after(), rows: 51 }).unwrap();
        };
        check_page(&club, "tags", &first(statements(&club, load)));
    }
}

/// SQLite has no statistics here, so it has one plan for any number of rows.
#[test]
fn sqlite_finds_the_events_of_a_feed_by_user_and_group_and_not_by_time() {
    let club = Club::start_with(Sqlite, &[]);
    let after = Some(DbTimestamp(club.clock.now()));
    let selection = Selection::new(Criterion::ForFeed(id(BOB))).between((after, None));
    let sent = statements(&club, |conn| {
        load_page(conn, &selection, Order::Start, &PageBounds::all()).unwrap();
    });
    let plan = plan(&mut club.connect(), &sent[0]);
    let steps = |text: &str| plan.iter().filter(|step| step.contains(text)).count();
    assert_eq!(steps("events_by_group (group_id=? AND starts_at>?)"), 2, "{plan:#?}");
    assert_eq!(steps("events_by_start (is_long=? AND starts_at<?)"), 2, "the long ones: {plan:#?}");
    assert_eq!(steps("SEARCH events"), 5, "and the events with these ids: {plan:#?}");
}

/// SQLite does not turn subqueries into joins.
#[test]
fn postgres_plans_a_filter_of_many_comparisons_without_joins() {
    let club = Club::start_with(Backend::Postgres, &[]);
    let user = id(BOB);
    let joins = |comparisons| {
        let filter = parse(&vec![format!("user=={user}"); comparisons].join(" && ")).unwrap();
        let sent = statements(&club, |conn| {
            load_page(conn, &Selection::new(Criterion::Matching(filter)), Order::Start, &PageBounds::all()).unwrap();
        });
        let plan = plan(&mut club.connect(), &sent[0]);
        plan.iter().filter(|step| step.contains("Join") || step.starts_with("Nested Loop")).count()
    };
    assert_ne!(joins(8), 0);
    assert_eq!(joins(9), 0);
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

#[rstest]
fn a_full_scan_is_detected(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut conn = club.connect();
    let plan = plan(&mut conn, "SELECT name FROM events WHERE description = 'x'");
    assert!(plan.iter().any(|step| reads_everything(step)), "{plan:?}");
}

#[rstest]
fn postgres_does_not_compile_queries(#[values(Sqlite, Postgres)] backend: Backend) {
    #[derive(QueryableByName)]
    struct Setting {
        #[diesel(sql_type = Text)]
        jit: String,
    }
    let club = Club::start(backend);
    if let AnyConnection::Postgresql(conn) = &mut club.connect() {
        let setting: Setting = sql_query("SELECT current_setting('jit') AS jit").get_result(conn).unwrap();
        assert_eq!(setting.jit, "off", "a long filter would take seconds to compile");
    }
}

/// SQLite has no statistics here, so it has one plan for any number of rows.
#[test]
fn postgres_scans_no_table_for_some_of_many_rooms() {
    #[derive(QueryableByName)]
    struct Ids {
        #[diesel(sql_type = Text)]
        value: String,
    }
    #[derive(QueryableByName)]
    struct Times {
        #[diesel(sql_type = Text)]
        first: String,
        #[diesel(sql_type = Text)]
        last: String,
    }
    let club = Club::start_with(Backend::Postgres, &[]);
    let room = verified_room(&club, ALICE, "S516", (0, 9));
    event(&club, BOB, At::Room(&room), (1, 2));
    let AnyConnection::Postgresql(mut conn) = club.connect() else { panic!("no PostgreSQL") };
    // One room a day for thirteen years, with four events each.
    let copies = "WITH copies AS (
            INSERT INTO rooms SELECT (jsonb_populate_record(room, jsonb_build_object(
                'id', gen_random_uuid(), 'starts_at', starts_at + day * interval '1 day',
                'ends_at', ends_at + day * interval '1 day', 'reach_from', reach_from + day * interval '1 day'
            ))).* FROM rooms room, generate_series(1, 5000) day RETURNING id, starts_at
        )
        INSERT INTO events SELECT (jsonb_populate_record(event, jsonb_build_object(
            'id', gen_random_uuid(), 'room_id', copies.id, 'starts_at', copies.starts_at + hour * interval '1 hour',
            'ends_at', copies.starts_at + (hour + 1) * interval '1 hour'
        ))).* FROM events event, generate_series(1, 4) hour, copies";
    conn.batch_execute(copies).unwrap();
    conn.batch_execute("ANALYZE rooms, events").unwrap();
    for count in [1, 16, 64, 1000] {
        let ids: Ids = sql_query(format!(
            "SELECT array_agg(id)::text AS value FROM (SELECT id FROM rooms ORDER BY starts_at LIMIT {count}) AS room"
        ))
        .get_result(&mut conn)
        .unwrap();
        let uids: Vec<_> =
            ids.value.trim_matches(['{', '}']).split(',').map(|id| DbUuid(id.parse().unwrap())).collect();
        let sent = statements(&club, |conn| {
            rooms::load_listed(conn, &uids).unwrap();
        });
        let (list, one) = (format!("'{}'", ids.value), format!("'{}'", uids[0]));
        let times: Times = sql_query(format!(
            "SELECT min(starts_at)::text AS first, max(ends_at)::text AS last FROM rooms WHERE id = ANY('{}')",
            ids.value
        ))
        .get_result(&mut conn)
        .unwrap();
        let (start, end) = (format!("'{}'::timestamptz", times.first), format!("'{}'", times.last));
        let overlapping = format!("false, {start} - interval '24 hours', {end}, {start}, true, {end}, {start}");
        for sql in &sent {
            let ids = if sql.contains(" = ANY(") { &list } else { &one };
            let values = match sql {
                sql if sql.contains("FROM \"events\"") => format!("{overlapping}, 's516'"),
                sql if sql.contains("\"rooms\".\"is_long\" = $2") => format!("true, {overlapping}"),
                // The administrators of each room are one value, which Diesel selects with a limit of 1.
                sql if sql.contains("LIMIT $3") => format!("1, {ids}, 1000"),
                _ => ids.clone(),
            };
            for mode in ["force_custom_plan", "force_generic_plan"] {
                conn.batch_execute(&format!("SET plan_cache_mode = {mode}; PREPARE explained AS {sql}")).unwrap();
                let plan = run_explain(&mut conn, &format!("EXPLAIN EXECUTE explained({values})"));
                conn.batch_execute("DEALLOCATE explained").unwrap();
                // A scan is allowed if a thousand of the five thousand rooms are selected.
                let is_allowed = |step: &String| count == 1000 && step.starts_with("Seq Scan on rooms  (");
                let is_bad = |step: &String| reads_everything(step) && !is_allowed(step);
                assert!(!plan.iter().any(is_bad), "{count}, {mode}: {sql}\n{}", plan.join("\n"));
            }
        }
        // Nothing but the room itself uses the place of a single room, so the verified rooms do not matter.
        assert_eq!(sent.len(), if count == 1 { 2 } else { 3 }, "{sent:?}");
    }
}
