//! Loads events from the database. A list takes two statements for each thousand rows.

use common::problem::Problem;
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    after,
    database::{
        AnyConnection, MultiBackend, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    with_connection,
};

use super::{
    event_tags::{EventTag, TagNames, load_tags},
    selection::Selection,
};
pub use crate::schedule::Schedule;
use crate::{
    auth::Caller,
    expressions::{FlaggedIds, IdList, folded_flagged_ids, folded_ids},
    groups::{
        EVERYONE,
        queries::{self as groups, Group},
    },
    period_filter::{Lengths, load_page_of_span},
    rooms::queries::{self as rooms, Room},
    schema::{
        attendees, event_admins, event_tags, events, group_admins, group_members, groups as group_rows, room_admins,
        rooms as room_rows, withdrawn_invitations,
    },
    users::queries::active_ids,
};

/// The most events that an answer to a search compares, without those that last longer than a day.
pub(super) const MAX_COMPARED: i64 = 1000;

/// The columns of an event.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = events)]
#[expect(clippy::struct_excessive_bools, reason = "columns")]
pub struct Row {
    pub id: DbUuid,
    pub name: String,
    pub description: String,
    pub shared: bool,
    pub starts_at: DbTimestamp,
    pub ends_at: DbTimestamp,
    pub place: String,
    pub place_key: String,
    pub room_id: DbUuid,
    pub owns_room: bool,
    pub group_id: DbUuid,
    pub open: bool,
    pub sequence: i32,
    /// `None` for an imported event whose creator is not known.
    pub created_by: Option<DbUuid>,
    pub created_at: DbTimestamp,
    pub updated_at: DbTimestamp,
    pub deleted_at: Option<DbTimestamp>,
    pub series_id: Option<DbUuid>,
    pub occurrence: Option<i32>,
    pub changed_by_itself: bool,
}

/// An event of a list, with its administrators, tags and attendees.
#[derive(Debug, Clone)]
pub struct Event {
    /// Its columns.
    pub row: Row,
    /// By id.
    pub admins: Vec<DbUuid>,
    /// By name.
    pub tags: Vec<EventTag>,
    /// By id.
    pub attendees: Vec<DbUuid>,
}

/// An event with its room, its group and all answers.
#[derive(Debug, Clone)]
pub struct EventDetail {
    /// Its columns.
    pub row: Row,
    /// Its room, which may be deleted.
    pub room: Room,
    /// Its group, which may be deleted.
    pub group: Group,
    /// By id.
    pub admins: Vec<DbUuid>,
    /// By name.
    pub tags: Vec<EventTag>,
    /// Each user once, by id.
    pub answers: Vec<(DbUuid, Schedule)>,
}

impl EventDetail {
    /// The event as lists show it, without its attendees.
    pub fn without_attendees(&self) -> Event {
        let (row, admins, tags) = (self.row.clone(), self.admins.clone(), self.tags.clone());
        Event { row, admins, tags, attendees: Vec::new() }
    }
}

/// The sort key of a list of events.
pub type Position = (DbTimestamp, DbUuid);

/// The order of a list; events with equal times are ordered by id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// By start.
    Start,
    /// The newest change first.
    Change,
}

impl Order {
    /// The sort key of a row in a list with this order.
    pub fn position(self, row: &Row) -> Position {
        match self {
            Self::Start => (row.starts_at, row.id),
            Self::Change => (row.updated_at, row.id),
        }
    }
}

/// A column of a query on `events`: the tags of each event.
macro_rules! folded_tags {
    () => {
        event_tags::table
            .filter(event_tags::event_id.eq(events::id))
            .select(folded_flagged_ids(event_tags::tag_id, event_tags::locked))
            .single_value()
    };
}

/// One page of the selected events.
pub fn load_page(
    conn: &mut AnyConnection,
    selection: &Selection,
    order: Order,
    bounds: &PageBounds<Position>,
) -> Result<Vec<Event>, Error> {
    let rows = page_of(
        selection,
        order,
        bounds,
        |columns: &Columns| &columns.0,
        |part| load_columns(conn, part, order, bounds),
    )?;
    load_tag_names(conn, rows)
}

/// The first part of a list of the selected events, which is usually all of it.
pub fn load_first(
    conn: &mut AnyConnection,
    selection: &Selection,
    order: Order,
    bounds: &PageBounds<Position>,
) -> Result<Vec<Event>, Error> {
    let rows = load_columns(conn, selection, order, bounds)?;
    load_tag_names(conn, rows)
}

/// An event whose tags have no names yet: its columns, administrators, attendees and tags.
type Columns = (Row, Option<IdList>, Option<IdList>, Option<FlaggedIds>);

fn load_columns(
    conn: &mut AnyConnection,
    selection: &Selection,
    order: Order,
    bounds: &PageBounds<Position>,
) -> Result<Vec<Columns>, Error> {
    let admins = event_admins::table.filter(event_admins::event_id.eq(events::id));
    let admins = admins.select(folded_ids(event_admins::user_id)).single_value();
    let attendees = attendees::table.filter(attendees::event_id.eq(events::id));
    let attendees = attendees.select(folded_ids(attendees::user_id)).single_value();
    let columns = (Row::as_select(), admins, attendees, folded_tags!());
    Ok(ordered(selection, order, bounds).select(columns).load(conn)?)
}

fn load_tag_names(conn: &mut AnyConnection, rows: Vec<Columns>) -> Result<Vec<Event>, Error> {
    let names = TagNames::load(conn, rows.iter().filter_map(|(.., tags)| tags.as_ref()))?;
    let event = |(row, admins, attendees, tags): Columns| Event {
        row,
        admins: admins.unwrap_or_default().0,
        tags: names.of(tags),
        attendees: attendees.unwrap_or_default().0,
    };
    Ok(rows.into_iter().map(event).collect())
}

/// The columns of a part of the selected events.
pub fn load_rows(
    conn: &mut AnyConnection,
    selection: &Selection,
    order: Order,
    bounds: &PageBounds<Position>,
) -> Result<Vec<Row>, Error> {
    let load = |selection: &Selection| Ok(ordered(selection, order, bounds).select(Row::as_select()).load(conn)?);
    page_of(selection, order, bounds, |row| row, load)
}

/// The columns of a part of the selected events, with their tags.
pub fn load_tagged_rows(
    conn: &mut AnyConnection,
    selection: &Selection,
    order: Order,
    bounds: &PageBounds<Position>,
) -> Result<Vec<(Row, Vec<EventTag>)>, Error> {
    type Columns = (Row, Option<FlaggedIds>);
    let columns = (Row::as_select(), folded_tags!());
    let load = |selection: &Selection| Ok(ordered(selection, order, bounds).select(columns).load::<Columns>(conn)?);
    let rows = page_of(selection, order, bounds, |(row, _)| row, load)?;
    let names = TagNames::load(conn, rows.iter().filter_map(|(_, tags)| tags.as_ref()))?;
    Ok(rows.into_iter().map(|(row, tags)| (row, names.of(tags))).collect())
}

/// A page of the selected events; a page of a span in two parts, see [`load_page_of_span`].
fn page_of<R>(
    selection: &Selection,
    order: Order,
    bounds: &PageBounds<Position>,
    row: impl Fn(&R) -> &Row,
    mut load: impl FnMut(&Selection) -> Result<Vec<R>, Error>,
) -> Result<Vec<R>, Error> {
    if bounds.is_page() && order == Order::Start && selection.is_of_span() {
        let load = |lengths| load(&Selection { lengths, ..selection.clone() });
        return load_page_of_span(bounds, |(at, _)| *at, |columns| order.position(row(columns)), load);
    }
    load(selection)
}

/// The ids of a part of the selected events.
pub fn load_ids(
    conn: &mut AnyConnection,
    selection: &Selection,
    order: Order,
    bounds: &PageBounds<Position>,
) -> Result<Vec<DbUuid>, Error> {
    Ok(ordered(selection, order, bounds).select(events::id).load(conn)?)
}

/// What changes with everything that lists show of an event: the time of its last change, which covers all but the
/// invitations and answers, their number, and when an invitation was last withdrawn.
pub type Version = (DbTimestamp, Option<i64>, Option<DbTimestamp>);

/// The ids of a part of the selected events, each with its version.
pub fn load_versions(
    conn: &mut AnyConnection,
    selection: &Selection,
    order: Order,
    bounds: &PageBounds<Position>,
) -> Result<Vec<(DbUuid, Version)>, Error> {
    let answers = attendees::table.filter(attendees::event_id.eq(events::id)).count().single_value();
    let withdrawn = withdrawn_invitations::table.filter(withdrawn_invitations::event_id.eq(events::id));
    let withdrawn = withdrawn.select(withdrawn_invitations::withdrawn_at);
    let withdrawn = withdrawn.order(withdrawn_invitations::withdrawn_at.desc()).limit(1).single_value();
    Ok(ordered(selection, order, bounds).select((events::id, (events::updated_at, answers, withdrawn))).load(conn)?)
}

/// The part of a search that one answer is about: of the events after a position, as many as it compares. A selection
/// without words stays as it is.
pub fn searched_part(
    conn: &mut AnyConnection,
    search: &Selection,
    after: Option<Position>,
) -> Result<Selection, Error> {
    if search.words.is_empty() {
        return Ok(search.clone());
    }
    let lengths = if search.is_of_span() { Lengths::Short(after.map(|(at, _)| at)) } else { search.lengths };
    let all = Selection { lengths, words: Vec::new(), ..search.clone() };
    let last = ordered(&all, Order::Start, &PageBounds { after, rows: 1 }).offset(MAX_COMPARED - 1);
    let until = last.select((events::starts_at, events::id)).first(conn).optional()?;
    Ok(Selection { until, ..search.clone() })
}

fn ordered(
    selection: &Selection,
    order: Order,
    bounds: &PageBounds<Position>,
) -> events::BoxedQuery<'static, MultiBackend> {
    let mut rows = selection.query().limit(bounds.rows);
    if let Some((at, id)) = bounds.after {
        rows = match order {
            Order::Start => after!(rows, events::starts_at; > at, events::id; > id),
            Order::Change => after!(rows, events::updated_at; < at, events::id; > id),
        };
    }
    if let Some((at, id)) = selection.until {
        rows = rows.filter(events::starts_at.le(at)).filter(events::starts_at.lt(at).or(events::id.le(id)));
    }
    match order {
        Order::Start => rows.order((events::starts_at, events::id)),
        Order::Change => rows.order((events::updated_at.desc(), events::id)),
    }
}

/// One event. Takes three statements, and one more for the everyone group.
pub fn get(conn: &mut AnyConnection, id: DbUuid) -> Result<EventDetail, Error> {
    type Ids = Option<IdList>;
    type JoinedRow = (Row, rooms::Row, groups::Row, (Ids, Ids, Ids, Ids), (Ids, Ids, Ids));
    let admins = event_admins::table.filter(event_admins::event_id.eq(events::id));
    let room_admins = room_admins::table.filter(room_admins::room_id.eq(events::room_id));
    let group_admins = group_admins::table.filter(group_admins::group_id.eq(events::group_id));
    let members = group_members::table.filter(group_members::group_id.eq(events::group_id));
    let answers = |schedule: Schedule| {
        let attendees = attendees::table.filter(attendees::event_id.eq(events::id));
        attendees.filter(attendees::schedule.eq(schedule)).select(folded_ids(attendees::user_id)).single_value()
    };
    let answers = (answers(Schedule::Pending), answers(Schedule::Absent), answers(Schedule::Attendance));
    let people = (
        admins.select(folded_ids(event_admins::user_id)).single_value(),
        room_admins.select(folded_ids(room_admins::user_id)).single_value(),
        group_admins.select(folded_ids(group_admins::user_id)).single_value(),
        members.select(folded_ids(group_members::user_id)).single_value(),
    );
    let event = events::table.inner_join(room_rows::table).inner_join(group_rows::table);
    let event = event.filter(events::id.eq(id)).filter(events::deleted_at.is_null());
    let joined: Option<JoinedRow> = with_connection!(conn, c => event
        .select((Row::as_select(), rooms::Row::as_select(), groups::Row::as_select(), people, answers))
        .first(c))
    .optional()?;
    let (row, room, group, people, (pending, absent, attending)) = joined.ok_or_else(not_found)?;
    let (admins, room_admins, group_admins, members) = people;
    let ids = |list: Ids| list.unwrap_or_default().0;
    let answers = [(pending, Schedule::Pending), (absent, Schedule::Absent), (attending, Schedule::Attendance)];
    let mut answers: Vec<_> = answers
        .into_iter()
        .flat_map(|(users, schedule)| ids(users).into_iter().map(move |id| (id, schedule)))
        .collect();
    answers.sort_unstable_by_key(|(user, _)| *user);
    let members = if group.id == EVERYONE { active_ids(conn)? } else { ids(members) };
    Ok(EventDetail {
        room: rooms::load_times(conn, vec![(room, ids(room_admins))], None)?.pop().ok_or_else(not_found)?,
        group: Group { row: group, members, admins: ids(group_admins) },
        admins: ids(admins),
        tags: load_tags(conn, id)?,
        answers,
        row,
    })
}

/// One event as lists show it, without its attendees, whom the history does not record.
pub fn get_without_attendees(conn: &mut AnyConnection, id: DbUuid) -> Result<Event, Error> {
    let row = find(conn, id)?;
    let admins = with_connection!(conn, c => event_admins::table
        .filter(event_admins::event_id.eq(id))
        .select(event_admins::user_id)
        .order(event_admins::user_id)
        .load(c)?);
    Ok(Event { row, admins, tags: load_tags(conn, id)?, attendees: Vec::new() })
}

/// The columns of one event.
pub fn find(conn: &mut AnyConnection, id: DbUuid) -> Result<Row, Error> {
    let event = events::table.find(id).filter(events::deleted_at.is_null());
    let row = with_connection!(conn, c => event.select(Row::as_select()).first(c)).optional()?;
    row.ok_or_else(not_found)
}

pub(super) fn not_found() -> Error {
    Problem::not_found("event").into()
}

/// Checks that the caller is an administrator of an event or privileged.
pub fn check_admin_or_privileged(conn: &mut AnyConnection, event: DbUuid, me: &Caller) -> Result<(), Error> {
    let is_admin = || event_admins::table.find((event, me.id)).select(event_admins::user_id);
    if me.privileged || is_admin().first::<DbUuid>(conn).optional()?.is_some() {
        return Ok(());
    }
    Err(Problem::forbidden("an administrator of the event, or a privileged user").into())
}

/// Checks that the caller may change an event, deleted or not.
pub fn check_editor(conn: &mut AnyConnection, event: DbUuid, me: &Caller) -> Result<(), Error> {
    let rows: i64 = events::table.find(event).count().get_result(conn)?;
    if rows == 0 { Err(not_found()) } else { check_admin_or_privileged(conn, event, me) }
}
