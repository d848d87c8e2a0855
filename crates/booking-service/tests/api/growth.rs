//! What a request reads does not grow with the events of other people, and grows with the length of a list alone.

use booking_service::{
    events::{
        filter::parse,
        latest::load_latest,
        queries::{Order, load_ids, load_page, searched_part},
        search::{find, words},
        selection::{Criterion, Relation, Selection},
    },
    schema::{attendees, event_tags, events, tags},
};
use chrono::TimeDelta;
use diesel::{QueryableByName, RunQueryDsl, connection::SimpleConnection, prelude::*, sql_query, sql_types::BigInt};
use rstest::rstest;
use serde_json::json;
use service_kit::{
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    with_connection,
};

use crate::{
    builders::{At, declare, each, event, group, room},
    harness::{
        ALICE, Answer, BOB,
        Backend::{self, Postgres, Sqlite},
        CAROL, Club, hours_from_now, id,
    },
    plans,
};

/// The events of Bob, and at first of others. Later others have ten times as many.
const OWN: i64 = 40;
pub const OTHERS: i64 = 400;

/// What the events of one person have in common.
pub struct Owner {
    pub user: DbUuid,
    room: DbUuid,
    group: DbUuid,
    tag: DbUuid,
    /// The groups of the events.
    groups: Vec<DbUuid>,
}

impl Owner {
    pub fn new(club: &Club, user: &str, groups: usize) -> Self {
        let now = DbTimestamp(club.clock.now());
        let group = |n| DbUuid(group(club, user, &format!("{user} {n}"), &[user]).parse().unwrap());
        let groups: Vec<_> = (0..groups).map(group).collect();
        let room = DbUuid(room(club, user, user, (1, 2)).parse().unwrap());
        let tag = DbUuid::new();
        let row = (
            (tags::id.eq(tag), tags::name.eq(user), tags::name_key.eq(user)),
            (tags::created_at.eq(now), tags::updated_at.eq(now)),
        );
        diesel::insert_into(tags::table).values(row).execute(&mut club.connect()).unwrap();
        Self { user: id(user), room, group: groups[0], tag, groups }
    }

    /// Inserts events of an hour each, spread over two hundred days around now. One in fifty is long.
    fn insert(&self, club: &Club, number: i64) {
        self.insert_between(club, number, (-2400, 2400));
    }

    /// The same, between two times in hours from now.
    pub fn insert_between(&self, club: &Club, number: i64, (first, last): (i64, i64)) {
        let now = DbTimestamp(club.clock.now());
        let new = |n: i64| {
            let start = hours_from_now(club, (last - first) * n / number + first);
            let length = if n % 50 == 0 { TimeDelta::hours(30) } else { TimeDelta::hours(1) };
            let group = self.groups[usize::try_from(n).unwrap() % self.groups.len()];
            let (id, is_long) = (DbUuid::new(), length > TimeDelta::hours(24));
            let event = (
                (events::id.eq(id), events::name.eq("x"), events::description.eq("x".repeat(300))),
                (events::starts_at.eq(DbTimestamp(start)), events::ends_at.eq(DbTimestamp(start.plus(length)))),
                (events::shared.eq(true), events::is_long.eq(is_long), events::open.eq(true)),
                (events::place.eq("bob"), events::place_key.eq("bob"), events::room_id.eq(self.room)),
                (events::owns_room.eq(false), events::group_id.eq(group), events::sequence.eq(0)),
                (events::created_by.eq(self.user), events::created_at.eq(now), events::updated_at.eq(now)),
            );
            let attendee = (
                (attendees::event_id.eq(id), attendees::user_id.eq(self.user)),
                (attendees::schedule.eq("attendance"), attendees::changed_at.eq(now)),
            );
            let tag = (event_tags::event_id.eq(id), event_tags::tag_id.eq(self.tag), event_tags::locked.eq(false));
            (event, attendee, tag)
        };
        let mut conn = club.connect();
        for from in (0..number).step_by(500) {
            let rows = (from..number.min(from + 500)).map(new);
            let ((rows, people), tagged): ((Vec<_>, Vec<_>), Vec<_>) = rows.map(|(e, a, t)| ((e, a), t)).unzip();
            with_connection!(&mut conn, c => {
                diesel::insert_into(events::table).values(rows).execute(c).unwrap();
                diesel::insert_into(attendees::table).values(people).execute(c).unwrap();
                diesel::insert_into(event_tags::table).values(tagged).execute(c).unwrap()
            });
        }
        if let AnyConnection::Postgresql(conn) = &mut conn {
            conn.batch_execute("VACUUM ANALYZE events, attendees, event_tags").unwrap();
        }
    }
}

/// The rows that PostgreSQL reads for `run`, or the bytes that SQLite reads when it can keep hardly a page.
fn work(club: &Club, run: impl FnOnce(&mut AnyConnection)) -> i64 {
    #[derive(QueryableByName)]
    struct Read {
        #[diesel(sql_type = BigInt)]
        rows: i64,
    }
    let mut conn = club.connect();
    match &mut conn {
        AnyConnection::Sqlite(sqlite) => sqlite.batch_execute("PRAGMA cache_size = 1").unwrap(),
        // The tables are small, so the planner must not choose plans that are only good for small tables.
        AnyConnection::Postgresql(pg) => pg.batch_execute("BEGIN; SET LOCAL enable_seqscan = off").unwrap(),
    }
    let before = bytes_read();
    run(&mut conn);
    let bytes = bytes_read() - before;
    match &mut conn {
        AnyConnection::Sqlite(_) => bytes,
        AnyConnection::Postgresql(pg) => {
            let read =
                "SELECT coalesce(sum(seq_tup_read + idx_tup_fetch), 0)::bigint AS rows FROM pg_stat_xact_user_tables";
            sql_query(read).get_result::<Read>(pg).unwrap().rows
        }
    }
}

/// The bytes that this thread has read from files.
fn bytes_read() -> i64 {
    let io = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

/// Selections of Bob's events, each with the index that finds them.
fn bounded(club: &Club, bob: &Owner, carol: &Owner) -> Vec<(String, Selection, &'static str)> {
    let (user, tag, group, other) = (bob.user, bob.tag, bob.group, carol.tag);
    let filters = [
        (format!("user=={user}"), "attendees_user_id"),
        (format!("tag=={tag}"), "event_tags_tag_id"),
        (format!("group=={group}"), "events_by_group"),
        (format!("event=={user} || user=={user}"), "attendees_user_id"),
        (format!("user=={user} && tag!={other}"), "attendees_user_id"),
        (format!("tag!={other} && (group=={group} || tag=={tag})"), "event_tags_tag_id"),
        (format!("(user!={other} || tag!={other}) && user=={user}"), "attendees_user_id"),
        (format!("tag=={other} && user=={user}"), "attendees_user_id"),
        (format!("group=={} && user=={user} && tag=={tag}", carol.group), "attendees_user_id"),
        (format!("user=={user} && user!={other} || tag=={tag}"), "event_tags_tag_id"),
    ];
    let filters = filters.into_iter().map(|(q, index)| (Criterion::Matching(parse(&q).unwrap()), q, index));
    let of_user = |relation| Criterion::OfUser { user, relation, is_active: true, by_span: false };
    let lists = [
        (Criterion::OfGroup(group), "the group", "events_by_group"),
        (Criterion::InRoom(bob.room), "the room", "events_by_room"),
        (of_user(Relation::Attendees), "attended", "attendees_user_id"),
        (of_user(Relation::BelongsOrAdmins), "belongs", "events_by_group"),
        (Criterion::ForFeed(user), "the feed", "events_by_group"),
    ];
    let lists = lists.into_iter().map(|(criterion, name, index)| (criterion, name.to_owned(), index));
    let at = |days: i64| Some(DbTimestamp(hours_from_now(club, 24 * days)));
    let spans = [(None, None), (at(-90), None), (None, at(90)), (at(-90), at(90)), (at(10), at(40))];
    let all = filters.chain(lists).flat_map(|(criterion, name, index)| {
        spans.map(|span| (format!("{name} in {span:?}"), Selection::new(criterion.clone()).between(span), index))
    });
    all.collect()
}

/// Takes seconds: ten times the events are inserted, and each selection is counted before and after.
#[rstest]
fn a_bounded_selection_reads_no_more_for_ten_times_the_events_of_others(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (bob, carol) = (Owner::new(&club, BOB, 1), Owner::new(&club, CAROL, 40));
    bob.insert(&club, OWN);
    carol.insert(&club, OTHERS);
    let selections = bounded(&club, &bob, &carol);
    let load = |conn: &mut AnyConnection, selection: &Selection| {
        load_page(conn, selection, Order::Start, &PageBounds::all()).unwrap().len()
    };
    let measure = || -> Vec<_> {
        let each = selections.iter().map(|(_, selection, _)| {
            let mut found = 0;
            (work(&club, |conn| found = load(conn, selection)), found)
        });
        each.collect()
    };
    let few = measure();
    carol.insert(&club, 9 * OTHERS);
    let many = measure();
    let mut grown = Vec::new();
    for (((name, selection, index), (few, found)), (many, found_later)) in selections.iter().zip(few).zip(many) {
        assert_eq!(found, found_later, "{name}");
        let sent = plans::statements(&club, |conn| {
            load(conn, selection);
        });
        let plan = plans::plan(&mut club.connect(), &sent[0]);
        // Within a span, PostgreSQL may prefer to check each event, if that promises to be less.
        let is_free = club.is_postgres() && selection.from.is_some() && selection.to.is_some();
        let uses_index = is_free || plan.iter().any(|step| step.contains(index));
        // A B-tree of ten times the rows is a level deeper.
        if !uses_index || many * 10 > few * 15 + 1000 {
            grown.push(format!("{name}: {few} became {many}\n{}\n{}", sent[0], plan.join("\n")));
        }
    }
    assert!(grown.is_empty(), "{}", grown.join("\n\n"));
}

#[rstest]
fn a_page_of_a_span_reads_no_more_for_ten_times_the_events_behind_it(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let bob = Owner::new(&club, BOB, 1);
    bob.insert(&club, OTHERS);
    let at = |hours| DbTimestamp(hours_from_now(&club, hours));
    let spans = [(Some(at(-2000)), Some(at(2000))), (Some(at(-2000)), None), (None, Some(at(2000)))];
    let measure = || -> Vec<i64> {
        let pages = spans.iter().flat_map(|span| [None, Some(at(100))].map(|after| (*span, after)));
        let each = pages.map(|(span, after)| {
            let selection = Selection::new(Criterion::All).between(span);
            let bounds = PageBounds { after: after.map(|at| (at, DbUuid::nil())), rows: 21 };
            work(&club, |conn| {
                let rows = load_page(conn, &selection, Order::Start, &bounds).unwrap();
                assert_eq!(rows.len(), 21);
            })
        });
        each.collect()
    };
    let few = measure();
    bob.insert(&club, 9 * OTHERS);
    let many = measure();
    for (few, many) in few.iter().zip(&many) {
        // A B-tree of ten times the rows is a level deeper. Read as a whole, the span would take seven times as much.
        assert!(*many < 3 * few, "{few} became {many}");
    }
}

/// The ids of a group's events, in the order of lists.
fn ids(club: &Club, group: DbUuid) -> Vec<String> {
    let ids = events::table.filter(events::group_id.eq(group).and(events::deleted_at.is_null())).select(events::id);
    let ids: Vec<DbUuid> = ids.order((events::starts_at, events::id)).load(&mut club.connect()).unwrap();
    ids.iter().map(ToString::to_string).collect()
}

#[rstest]
fn a_list_of_any_length_is_complete_and_in_order(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let bob = Owner::new(&club, BOB, 1);
    let paths = [
        format!("/api/groups/{}/events", bob.group),
        format!("/api/events?q=user%3D%3D{}&dateBegin={}", bob.user, hours_from_now(&club, -3000)),
    ];
    let mut length = 0;
    for longer in [255, 256, 257, 1000, 1001, 1500] {
        bob.insert(&club, longer - length);
        length = longer;
        for path in &paths {
            let answer = club.by(CAROL).get(path).expect(200);
            assert_eq!(each(&answer.json(), "eventId"), ids(&club, bob.group), "{path} with {length}");
            let tag = answer.header("etag").unwrap();
            assert!(!tag.ends_with(".\""), "{path} with {length} has the tag {tag}");
            club.by(CAROL).header("if-none-match", tag).get(path).expect(304);
        }
    }
}

/// Changes a long list.
type Change<'a> = Box<dyn Fn() -> Answer + 'a>;

#[rstest]
fn the_tag_of_a_long_list_changes_with_its_rows_only(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let bob = Owner::new(&club, BOB, 1);
    bob.insert(&club, 1100);
    let path =
        format!("/api/events?dateBegin={}&dateEnd={}", hours_from_now(&club, -3000), hours_from_now(&club, 3000));
    let tag = |answer: &Answer| answer.header("etag").unwrap().to_owned();
    let get = || club.by(CAROL).get(&path).expect(200);
    let known = tag(&get());
    let other = event(&club, CAROL, At::Place("elsewhere"), (4000, 4001));
    club.by(CAROL).delete(&format!("/api/events/{other}")).expect(204);
    club.by(CAROL).header("if-none-match", &known).get(&path).expect(304);

    // The last rows are not read before the answer begins.
    let all = ids(&club, bob.group);
    let [one, two, three] = [1097, 1098, 1099].map(|n: usize| format!("/api/events/{}", all[n]));
    let changes: [(&str, Change<'_>); 5] = [
        (
            "an answer",
            Box::new(|| club.by(CAROL).put(&format!("{one}/attendees/me"), json!({"schedule": "attendance"}))),
        ),
        ("a tag", Box::new(|| club.by(CAROL).post(&format!("{two}/tags"), json!({"name": "new"})))),
        ("no tag", Box::new(|| club.by(CAROL).delete(&format!("{two}/tags/new")))),
        ("deleted", Box::new(|| club.by(ALICE).delete(&three))),
        ("a new one", Box::new(|| declare(&club, CAROL, At::Place("elsewhere"), (2900, 2901)))),
    ];
    for (what, change) in changes {
        let before = get();
        assert!(change().status < 300, "{what}");
        let after = club.by(CAROL).header("if-none-match", &tag(&before)).get(&path).expect(200);
        assert_ne!(after.body, before.body, "{what}");
    }
}

#[rstest]
fn a_chunk_of_a_long_list_reads_its_rows_only(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let bob = Owner::new(&club, BOB, 1);
    bob.insert(&club, OTHERS);
    let selection = Selection::new(Criterion::Matching(parse(&format!("user=={}", bob.user)).unwrap()));
    let load = |conn: &mut AnyConnection| load_ids(conn, &selection, Order::Start, &PageBounds::all()).unwrap();
    let some: Vec<_> = load(&mut club.connect()).into_iter().take(50).collect();
    let measure = || {
        work(&club, |conn| {
            let rows = load_page(conn, &selection.these(some.clone()), Order::Start, &PageBounds::all()).unwrap();
            assert_eq!(rows.len(), 50);
        })
    };
    let few = measure();
    bob.insert(&club, 9 * OTHERS);
    let many = measure();
    assert!(many * 10 <= few * 15, "{few} became {many}");
}

/// Long events are few, and all earlier ones are read.
pub fn delete_long(club: &Club) {
    sql_query("DELETE FROM events WHERE is_long IS TRUE").execute(&mut club.connect()).unwrap();
}

/// Makes the creators of all events their administrators.
pub fn administer_all(club: &Club) {
    let administer = "INSERT INTO event_admins (event_id, user_id) SELECT id, created_by FROM events WHERE true \
        ON CONFLICT DO NOTHING";
    sql_query(administer).execute(&mut club.connect()).unwrap();
    if club.is_postgres() {
        club.connect().batch_execute("ANALYZE").unwrap();
    }
}

#[rstest]
fn a_week_reads_no_more_for_ten_times_the_events_that_its_reader_administers(
    #[values(Sqlite, Postgres)] backend: Backend,
) {
    let club = Club::start(backend);
    let bob = Owner::new(&club, BOB, 1);
    let (user, relation) = (bob.user, Relation::BelongsOrAdmins);
    let week = Selection::new(Criterion::OfUser { user, relation, is_active: true, by_span: true });
    let at = |hours| Some(DbTimestamp(hours_from_now(&club, hours)));
    let week = week.between((at(3000), at(3168)));
    let measure = |number| {
        bob.insert(&club, number);
        delete_long(&club);
        administer_all(&club);
        work(&club, |conn| {
            load_page(conn, &week, Order::Start, &PageBounds::all()).unwrap();
        })
    };
    let (few, many) = (measure(OTHERS), measure(9 * OTHERS));
    assert!(many * 10 <= few * 15 + 1000, "{few} became {many}");
}

#[rstest]
fn a_search_compares_a_bounded_number_of_events_and_goes_on(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let bob = Owner::new(&club, BOB, 1);
    bob.insert(&club, 1200);
    delete_long(&club);
    let found = find(&mut club.connect(), &words("nothing").unwrap()).unwrap();
    let at = |hours| Some(DbTimestamp(hours_from_now(&club, hours)));
    let spans = [(None, None), (at(-2400), None), (at(-2400), at(2400))];
    let searches = spans.map(|span| Selection::new(Criterion::All).between(span).containing(found.clone()));
    let measure = || {
        searches.each_ref().map(|selection| {
            work(&club, |conn| {
                let part = searched_part(conn, selection, None).unwrap();
                load_page(conn, &part, Order::Start, &PageBounds { after: None, rows: 21 }).unwrap();
            }) + work(&club, |conn| {
                load_latest(conn, selection, None, 21).unwrap();
            })
        })
    };
    let from = hours_from_now(&club, -2400);
    for (query, pages) in [("search=nothing".to_owned(), 2), (format!("search=BOB&limit=500&dateBegin={from}"), 3)] {
        let (mut next, mut seen, mut number) = (Some(format!("/api/events?{query}")), Vec::new(), 0);
        while let Some(path) = next {
            let page = club.by(CAROL).get(&path).expect(200);
            seen.extend(each(&page.json(), "eventId"));
            let link = page.header("link").map(str::to_owned);
            next = link.and_then(|link| Some(link.split_once('<')?.1.split_once('>')?.0.to_owned()));
            number += 1;
        }
        assert_eq!(number, pages, "{query}");
        assert!(seen.is_empty() || seen == ids(&club, bob.group), "{query} finds {}", seen.len());
    }
    // The same backwards.
    let found = find(&mut club.connect(), &words("BOB").unwrap()).unwrap();
    let bobs = Selection::new(Criterion::All).between((at(-2400), None)).containing(found);
    let (mut before, mut seen, mut number) = (None, Vec::new(), 0);
    loop {
        let part = load_latest(&mut club.connect(), &bobs, before, 5000).unwrap();
        seen.extend(part.rows.iter().map(|row| row.id.to_string()));
        number += 1;
        before = part.end;
        if before.is_none() {
            break;
        }
    }
    seen.reverse();
    assert!(number == 2 && seen == ids(&club, bob.group), "{} in {number} parts", seen.len());
    // From here on, events that follow one another lie in different pages of the file.
    bob.insert(&club, 5000);
    delete_long(&club);
    let few = measure();
    bob.insert(&club, 15_000);
    delete_long(&club);
    for ((few, many), span) in few.into_iter().zip(measure()).zip(spans) {
        assert!(many * 10 <= few * 15 + 1000, "{span:?}: {few} became {many}");
    }
}
