//! What only pages read.

use std::collections::{BTreeSet, HashMap, HashSet};

use diesel::{
    OptionalExtension,
    dsl::{count_star, exists},
    prelude::*,
};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    http::Form,
    page::{Person, Roster, name_words},
    with_connection,
};

use crate::{
    auth::ACTIVE,
    events::queries::{Position, Schedule},
    expressions::lower,
    groups::{EVERYONE, queries::MADE_HERE},
    schema::{
        attendees, draft_event_admins, draft_event_answers, draft_events, event_admins, events, group_admins,
        group_members, groups, room_admins, rooms, tags, users,
    },
    users::queries::active_ids,
};

/// The most groups in a list of choices.
const MAX_GROUPS: i64 = 500;

/// More events than a series can have.
const MAX_DATES: i64 = 1000;

/// The most deleted objects of one kind on a page.
pub const MAX_DELETED: i64 = 50;

/// Sign-in names and display names of users.
pub fn names(conn: &mut AnyConnection, ids: &[DbUuid]) -> Result<HashMap<DbUuid, (String, String)>, Error> {
    let mut names = HashMap::new();
    for ids in ids.chunks(1000) {
        let rows: Vec<(DbUuid, String, String)> = with_connection!(conn, c => users::table
            .filter(users::id.eq_any(ids))
            .select((users::id, users::name, users::display_name))
            .load(c)?);
        names.extend(rows.into_iter().map(|(id, name, display)| (id, (name, display))));
    }
    Ok(names)
}

/// The active users, and those whom fields of a form name by their sign-in names.
pub fn roster(conn: &mut AnyConnection, form: &Form, fields: &[&str]) -> Result<Roster, Error> {
    type Columns = (DbUuid, String, String, i16);
    let columns = (users::id, users::name, users::display_name, users::state);
    let mut rows: Vec<Columns> = users::table.filter(users::state.eq(ACTIVE)).select(columns).load(conn)?;
    let words = fields.iter().flat_map(|field| form.all(field)).flat_map(name_words);
    let words: BTreeSet<String> = words.map(str::to_ascii_lowercase).collect();
    for words in Vec::from_iter(words).chunks(1000) {
        let others = users::table.filter(users::state.ne(ACTIVE)).filter(lower(users::name).eq_any(words));
        rows.extend(others.select(columns).load::<Columns>(conn)?);
    }
    let person = |(id, name, shown, state)| Person { id, name, shown, is_active: state == ACTIVE };
    Ok(Roster::new(rows.into_iter().map(person).collect()))
}

/// A user's answers to events.
pub fn answers_of(
    conn: &mut AnyConnection,
    user: DbUuid,
    events: &[DbUuid],
) -> Result<HashMap<DbUuid, Schedule>, Error> {
    let answers = attendees::table.filter(attendees::user_id.eq(user)).filter(attendees::event_id.eq_any(events));
    let rows: Vec<(DbUuid, Schedule)> =
        with_connection!(conn, c => answers.select((attendees::event_id, attendees::schedule)).load(c)?);
    Ok(rows.into_iter().collect())
}

/// How many users have given each answer to some events.
pub fn answer_counts(conn: &mut AnyConnection, events: &[DbUuid]) -> Result<HashMap<(DbUuid, Schedule), i64>, Error> {
    let answers = attendees::table.filter(attendees::event_id.eq_any(events));
    let answers = answers.group_by((attendees::event_id, attendees::schedule));
    let rows: Vec<(DbUuid, Schedule, i64)> = with_connection!(conn, c => answers
        .select((attendees::event_id, attendees::schedule, count_star()))
        .load(c)?);
    Ok(rows.into_iter().map(|(event, schedule, number)| ((event, schedule), number)).collect())
}

/// Whether a user administers more events than this, deleted ones included.
pub fn administers_more_than(conn: &mut AnyConnection, user: DbUuid, number: i64) -> Result<bool, Error> {
    let events = event_admins::table.filter(event_admins::user_id.eq(user)).select(event_admins::event_id);
    let next: Option<DbUuid> = events.offset(number).limit(1).first(conn).optional()?;
    Ok(next.is_some())
}

/// Ids and names of all groups, by name.
pub fn groups(conn: &mut AnyConnection) -> Result<Vec<(DbUuid, String)>, Error> {
    let groups = groups::table.filter(groups::deleted_at.is_null()).order((groups::kind, groups::name, groups::id));
    Ok(groups.select((groups::id, groups::name)).limit(MAX_GROUPS).load(conn)?)
}

/// Which of these polls a user has answered.
pub fn answered_polls(conn: &mut AnyConnection, user: DbUuid, polls: &[DbUuid]) -> Result<HashSet<DbUuid>, Error> {
    let answers = draft_event_answers::table.filter(draft_event_answers::user_id.eq(user));
    let answers = answers.filter(draft_event_answers::draft_event_id.eq_any(polls));
    Ok(answers.select(draft_event_answers::draft_event_id).load::<DbUuid>(conn)?.into_iter().collect())
}

/// The group that has most in common with the invitees of a poll, which keeps only their ids; the one that was asked, unless
/// many have joined or left it since.
pub fn group_of_invitees(conn: &mut AnyConnection, invitees: &[DbUuid]) -> Result<DbUuid, Error> {
    let asked = i64::try_from(invitees.len()).unwrap_or(i64::MAX);
    let mut common = HashMap::<DbUuid, i64>::new();
    for invitees in invitees.chunks(1000) {
        let members = group_members::table.filter(group_members::user_id.eq_any(invitees));
        let live = groups::table.filter(groups::deleted_at.is_null()).select(groups::id);
        let rows: Vec<(DbUuid, i64)> = with_connection!(conn, c => members
            .filter(group_members::group_id.eq_any(live))
            .group_by(group_members::group_id)
            .select((group_members::group_id, count_star()))
            .load(c)?);
        for (group, number) in rows {
            *common.entry(group).or_default() += number;
        }
    }
    let mut groups = Vec::new();
    let ids: Vec<_> = common.keys().copied().collect();
    for ids in ids.chunks(1000) {
        let rows: Vec<(DbUuid, i64)> = with_connection!(conn, c => group_members::table
            .filter(group_members::group_id.eq_any(ids))
            .group_by(group_members::group_id)
            .select((group_members::group_id, count_star()))
            .load(c)?);
        groups.extend(rows.into_iter().map(|(group, members)| (group, common[&group], members)));
    }
    let everyone = i64::try_from(active_ids(conn)?.len()).unwrap_or(i64::MAX);
    groups.push((EVERYONE, asked, everyone));
    // The share of those who are both members and asked, among those who are either.
    let share = |(_, common, members): &(DbUuid, i64, i64)| (*common, asked + members - common);
    let best = groups.iter().max_by(|a, b| {
        let ((a_common, a_all), (b_common, b_all)) = (share(a), share(b));
        (i128::from(a_common) * i128::from(b_all)).cmp(&(i128::from(b_common) * i128::from(a_all)))
    });
    Ok(best.filter(|_| asked > 0).map_or(EVERYONE, |(group, ..)| *group))
}

/// The privileged users, by id.
pub fn privileged(conn: &mut AnyConnection) -> Result<Vec<DbUuid>, Error> {
    Ok(users::table.filter(users::privileged.eq(true)).order(users::id).select(users::id).load(conn)?)
}

/// The tag with this name, if there is one.
pub fn tag_called(conn: &mut AnyConnection, name: &str) -> Result<Option<DbUuid>, Error> {
    let tag = tags::table.filter(tags::name_key.eq(crate::tags::key(name))).select(tags::id);
    Ok(tag.first(conn).optional()?)
}

/// The kinds of objects that have a history and can be restored.
#[derive(Debug, Clone, Copy)]
pub enum Subject {
    /// Events.
    Event,
    /// Rooms.
    Room,
    /// Groups.
    Group,
    /// Polls.
    Poll,
}

/// An object, deleted or not, in a few words.
#[derive(Debug, Clone, Queryable)]
pub struct Summary {
    /// Its id.
    pub id: DbUuid,
    /// Its name; the place of a room.
    pub name: String,
    /// When it was deleted, if it was.
    pub deleted_at: Option<DbTimestamp>,
    /// That of an event or a room.
    pub span: Option<(DbTimestamp, DbTimestamp)>,
}

impl Summary {
    fn without_span((id, name, deleted_at): (DbUuid, String, Option<DbTimestamp>)) -> Self {
        Self { id, name, deleted_at, span: None }
    }
}

macro_rules! columns {
    (events) => {
        (events::id, events::name, events::deleted_at, (events::starts_at, events::ends_at).nullable())
    };
    (rooms) => {
        (rooms::id, rooms::place, rooms::deleted_at, (rooms::starts_at, rooms::ends_at).nullable())
    };
    ($table:ident) => {
        ($table::id, $table::name, $table::deleted_at)
    };
}

/// An object, deleted or not, if there is one with this id.
pub fn summary(conn: &mut AnyConnection, subject: Subject, id: DbUuid) -> Result<Option<Summary>, Error> {
    Ok(match subject {
        Subject::Event => events::table.find(id).select(columns!(events)).first(conn).optional()?,
        Subject::Room => rooms::table.find(id).select(columns!(rooms)).first(conn).optional()?,
        Subject::Group => {
            let group = groups::table.find(id).select(columns!(groups)).first(conn).optional()?;
            group.map(Summary::without_span)
        }
        Subject::Poll => {
            let poll = draft_events::table.find(id).select(columns!(draft_events)).first(conn).optional()?;
            poll.map(Summary::without_span)
        }
    })
}

/// The objects of a kind that were deleted after a time, the last ones first; of those with an administrator, if one is
/// given. Without rooms that come back with their event, and without groups of the directory. One more than a page shows,
/// of those that follow `position`.
pub fn deleted_after(
    conn: &mut AnyConnection,
    subject: Subject,
    after: DbTimestamp,
    admin: Option<DbUuid>,
    position: Option<Position>,
) -> Result<Vec<Summary>, Error> {
    macro_rules! deleted {
        ($table:ident, $admins:ident, $object:ident) => {{
            let query = $table::table.filter($table::deleted_at.gt(after));
            let query = query.order(($table::deleted_at.desc(), $table::id));
            let mut query = query.limit(MAX_DELETED + 1).select(columns!($table)).into_boxed();
            if let Some((at, id)) = position {
                query = query.filter($table::deleted_at.le(at));
                query = query.filter($table::deleted_at.lt(at).or($table::id.gt(id)));
            }
            if let Some(admin) = admin {
                let admins = $admins::table.filter($admins::$object.eq($table::id));
                query = query.filter(exists(admins.filter($admins::user_id.eq(admin))));
            }
            query
        }};
    }
    Ok(match subject {
        Subject::Event => deleted!(events, event_admins, event_id).load(conn)?,
        Subject::Room => deleted!(rooms, room_admins, room_id).filter(rooms::made_for_event.eq(false)).load(conn)?,
        Subject::Group => {
            let groups = deleted!(groups, group_admins, group_id).filter(groups::kind.eq(MADE_HERE)).load(conn)?;
            groups.into_iter().map(Summary::without_span).collect()
        }
        Subject::Poll => {
            let polls = deleted!(draft_events, draft_event_admins, draft_event_id).load(conn)?;
            polls.into_iter().map(Summary::without_span).collect()
        }
    })
}

/// Those of these ids that are groups or events, deleted or not, with their names.
pub fn object_names(conn: &mut AnyConnection, ids: &[DbUuid]) -> Result<Vec<(DbUuid, String)>, Error> {
    let mut names = Vec::new();
    for ids in ids.chunks(1000) {
        names.extend(groups::table.filter(groups::id.eq_any(ids)).select((groups::id, groups::name)).load(conn)?);
        names.extend(events::table.filter(events::id.eq_any(ids)).select((events::id, events::name)).load(conn)?);
    }
    Ok(names)
}

/// Those of these ids that are rooms, deleted or not, with place and span.
pub fn rooms_called(
    conn: &mut AnyConnection,
    ids: &[DbUuid],
) -> Result<Vec<(DbUuid, String, DbTimestamp, DbTimestamp)>, Error> {
    let mut found = Vec::new();
    for ids in ids.chunks(1000) {
        let rooms = rooms::table.filter(rooms::id.eq_any(ids));
        found.extend(rooms.select((rooms::id, rooms::place, rooms::starts_at, rooms::ends_at)).load(conn)?);
    }
    Ok(found)
}

/// The events of the series of an event, by start: ids, starts and ends.
pub fn dates_of_series(
    conn: &mut AnyConnection,
    event: &crate::events::queries::Row,
) -> Result<Vec<(DbUuid, DbTimestamp, DbTimestamp)>, Error> {
    let Some(series) = event.series_id else { return Ok(Vec::new()) };
    let dates = events::table.filter(events::series_id.eq(series)).filter(events::deleted_at.is_null());
    let dates = dates.order((events::starts_at, events::id)).limit(MAX_DATES);
    Ok(dates.select((events::id, events::starts_at, events::ends_at)).load(conn)?)
}
