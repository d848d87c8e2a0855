//! Loads polls from the database. The number of statements does not depend on the number of polls or answers.

use std::collections::HashMap;

use common::problem::Problem;
use diesel::{
    OptionalExtension,
    dsl::{IntoBoxed, Nullable, auto_type, count_star, exists, not},
    prelude::*,
};
use service_kit::{
    after,
    database::{
        AnyConnection, MultiBackend, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    text_enum, with_connection,
};

use super::results::{Choice, Slot};
use crate::{
    auth::{ACTIVE, Caller},
    events::{event_tags::EventTag, selection::Relation},
    expressions::{UnionAll, in_subquery},
    schema::{
        draft_event_admins, draft_event_answers, draft_event_choices, draft_event_invitees, draft_event_slots,
        draft_event_tags, draft_events, events, tags, users,
    },
};

text_enum! {
    /// The state of a poll.
    pub enum DraftEventStatus {
        /// It takes answers.
        Open = "open",
        /// The deadline has passed.
        Closed = "closed",
        /// It has become an event.
        Confirmed = "confirmed",
    }
}

/// The columns of a poll.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = draft_events)]
pub struct Row {
    pub id: DbUuid,
    pub name: String,
    pub description: String,
    pub open: bool,
    pub deadline: DbTimestamp,
    /// The event that the poll was confirmed as, unless that is deleted.
    #[diesel(select_expression = events::id.nullable(), select_expression_type = Nullable<events::id>)]
    pub event_id: Option<DbUuid>,
    pub created_by: DbUuid,
    pub created_at: DbTimestamp,
    pub updated_at: DbTimestamp,
}

/// The polls that are not deleted, each with the event that it was confirmed as. The deletion of the event, in whichever way, undoes the
/// confirmation, so nothing that deletes events needs to know or lock polls.
#[auto_type]
fn polls_with_events() -> _ {
    let exists = events::id.nullable().eq(draft_events::event_id).and(events::deleted_at.is_null());
    draft_events::table.left_join(events::table.on(exists)).filter(draft_events::deleted_at.is_null())
}

impl Row {
    /// The state at a time.
    pub fn status(&self, now: DbTimestamp) -> DraftEventStatus {
        match self.event_id {
            Some(_) => DraftEventStatus::Confirmed,
            None if self.deadline <= now => DraftEventStatus::Closed,
            None => DraftEventStatus::Open,
        }
    }
}

/// A poll in a list.
#[derive(Debug, Clone)]
pub struct Poll {
    /// Its columns.
    pub row: Row,
    /// The number of active users who have answered.
    pub answers: i64,
    /// The number of active invitees, and of active users who have answered without an invitation.
    pub invitees: i64,
    /// By id.
    pub admins: Vec<DbUuid>,
}

/// A poll with its slots, invitees and tags.
#[derive(Debug, Clone)]
pub struct PollDetail {
    /// The poll as in a list.
    pub poll: Poll,
    /// By time.
    pub slots: Vec<Slot>,
    /// By id.
    pub invitees: Vec<DbUuid>,
    /// By name.
    pub tags: Vec<EventTag>,
}

/// The answer of a user to a poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserAnswer {
    /// Who answered.
    pub user: DbUuid,
    /// A remark.
    pub comment: Option<String>,
    /// The time of the last change.
    pub updated_at: DbTimestamp,
}

/// The sort key of lists of polls.
pub type Position = (DbTimestamp, DbUuid);

/// A selection of a user's polls.
#[derive(Debug, Clone, Copy)]
pub struct Selection {
    /// The user.
    pub user: DbUuid,
    /// How the user is related to them.
    pub relation: Relation,
    /// Only those in this state.
    pub status: Option<DraftEventStatus>,
}

/// One page of the selected polls, by deadline and id.
pub fn load(
    conn: &mut AnyConnection,
    selection: &Selection,
    now: DbTimestamp,
    page: &PageBounds<Position>,
) -> Result<Vec<Poll>, Error> {
    let rows = ordered(selection, now, page).select(Row::as_select()).load(conn)?;
    load_children(conn, rows)
}

/// The ids of a part of that list.
pub fn load_ids(
    conn: &mut AnyConnection,
    selection: &Selection,
    now: DbTimestamp,
    page: &PageBounds<Position>,
) -> Result<Vec<DbUuid>, Error> {
    Ok(ordered(selection, now, page).select(draft_events::id).load(conn)?)
}

/// The polls with these ids, at most a thousand, by deadline and id.
pub fn load_these(conn: &mut AnyConnection, ids: &[DbUuid]) -> Result<Vec<Poll>, Error> {
    let query = polls_with_events().filter(draft_events::id.eq_any(ids)).select(Row::as_select());
    let rows = query.order((draft_events::deadline, draft_events::id)).load(conn)?;
    load_children(conn, rows)
}

fn ordered(
    selection: &Selection,
    now: DbTimestamp,
    page: &PageBounds<Position>,
) -> IntoBoxed<'static, polls_with_events, MultiBackend> {
    let Selection { user, relation, status } = *selection;
    let mut ids = UnionAll::default();
    if matches!(relation, Relation::Belongs | Relation::BelongsOrAdmins) {
        let invitees = draft_event_invitees::table.filter(draft_event_invitees::user_id.eq(user));
        ids = ids.and(invitees.select(draft_event_invitees::draft_event_id));
    }
    if matches!(relation, Relation::Admins | Relation::BelongsOrAdmins) {
        let admins = draft_event_admins::table.filter(draft_event_admins::user_id.eq(user));
        ids = ids.and(admins.select(draft_event_admins::draft_event_id));
    }
    if relation == Relation::Attendees {
        let answers = draft_event_answers::table.filter(draft_event_answers::user_id.eq(user));
        ids = ids.and(answers.select(draft_event_answers::draft_event_id));
    }
    let mut query = polls_with_events().filter(in_subquery(draft_events::id, ids)).into_boxed();
    query = match status {
        None => query,
        Some(DraftEventStatus::Confirmed) => query.filter(events::id.is_not_null()),
        Some(DraftEventStatus::Open) => query.filter(events::id.is_null()).filter(draft_events::deadline.gt(now)),
        Some(DraftEventStatus::Closed) => query.filter(events::id.is_null()).filter(draft_events::deadline.le(now)),
    };
    if let Some((deadline, id)) = page.after {
        query = after!(query, draft_events::deadline; > deadline, draft_events::id; > id);
    }
    query.order((draft_events::deadline, draft_events::id)).limit(page.rows)
}

/// Loads the administrators and the numbers of answers and invitees of polls.
fn load_children(conn: &mut AnyConnection, rows: Vec<Row>) -> Result<Vec<Poll>, Error> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<DbUuid> = rows.iter().map(|row| row.id).collect();
    let mut admins: HashMap<DbUuid, Vec<DbUuid>> = HashMap::new();
    let links: Vec<(DbUuid, DbUuid)> = with_connection!(conn, c => draft_event_admins::table
        .filter(draft_event_admins::draft_event_id.eq_any(&ids))
        .order((draft_event_admins::draft_event_id, draft_event_admins::user_id))
        .load(c)?);
    for (poll, user) in links {
        admins.entry(poll).or_default().push(user);
    }
    macro_rules! count {
        ($table:ident) => {
            count!($table, $table::table)
        };
        ($table:ident, $rows:expr) => {
            with_connection!(conn, c => $rows
                .inner_join(users::table.on(users::id.eq($table::user_id)))
                .filter($table::draft_event_id.eq_any(&ids))
                .filter(users::state.eq(ACTIVE))
                .group_by($table::draft_event_id)
                .select(($table::draft_event_id, count_star()))
                .load::<(DbUuid, i64)>(c)?)
            .into_iter()
            .collect::<HashMap<_, _>>()
        };
    }
    let answers = count!(draft_event_answers);
    let invitees = count!(draft_event_invitees);
    let invitation = draft_event_invitees::table
        .filter(draft_event_invitees::draft_event_id.eq(draft_event_answers::draft_event_id))
        .filter(draft_event_invitees::user_id.eq(draft_event_answers::user_id));
    let uninvited = count!(draft_event_answers, draft_event_answers::table.filter(not(exists(invitation))));
    let number = |numbers: &HashMap<_, i64>, id| numbers.get(&id).copied().unwrap_or(0);
    let poll = |row: Row| Poll {
        answers: number(&answers, row.id),
        invitees: number(&invitees, row.id) + number(&uninvited, row.id),
        admins: admins.remove(&row.id).unwrap_or_default(),
        row,
    };
    Ok(rows.into_iter().map(poll).collect())
}

/// One poll as in a list.
pub fn get(conn: &mut AnyConnection, id: DbUuid) -> Result<Poll, Error> {
    let row = find(conn, id)?;
    load_children(conn, vec![row])?.pop().ok_or_else(not_found)
}

/// One poll with its slots, invitees and tags.
pub fn get_detail(conn: &mut AnyConnection, id: DbUuid) -> Result<PollDetail, Error> {
    let poll = get(conn, id)?;
    Ok(PollDetail { poll, slots: slots(conn, id)?, invitees: invitees(conn, id)?, tags: tags_of(conn, id)? })
}

/// The columns of one poll.
pub fn find(conn: &mut AnyConnection, id: DbUuid) -> Result<Row, Error> {
    let poll = polls_with_events().filter(draft_events::id.eq(id));
    with_connection!(conn, c => poll.select(Row::as_select()).first(c)).optional()?.ok_or_else(not_found)
}

fn not_found() -> Error {
    Problem::not_found("poll").into()
}

/// The slots of a poll, by time.
pub fn slots(conn: &mut AnyConnection, poll: DbUuid) -> Result<Vec<Slot>, Error> {
    let rows: Vec<(DbUuid, DbTimestamp, DbTimestamp)> = with_connection!(conn, c => draft_event_slots::table
        .filter(draft_event_slots::draft_event_id.eq(poll))
        .order((draft_event_slots::starts_at, draft_event_slots::ends_at))
        .select((draft_event_slots::id, draft_event_slots::starts_at, draft_event_slots::ends_at))
        .load(c)?);
    Ok(rows.into_iter().map(|(id, starts_at, ends_at)| Slot { id, starts_at, ends_at }).collect())
}

/// The active invitees of a poll, by id.
pub fn invitees(conn: &mut AnyConnection, poll: DbUuid) -> Result<Vec<DbUuid>, Error> {
    Ok(with_connection!(conn, c => draft_event_invitees::table
        .inner_join(users::table.on(users::id.eq(draft_event_invitees::user_id)))
        .filter(draft_event_invitees::draft_event_id.eq(poll))
        .filter(users::state.eq(ACTIVE))
        .order(draft_event_invitees::user_id)
        .select(draft_event_invitees::user_id)
        .load(c)?))
}

/// The tags of a poll, by name.
pub fn tags_of(conn: &mut AnyConnection, poll: DbUuid) -> Result<Vec<EventTag>, Error> {
    let rows: Vec<(DbUuid, String, bool)> = with_connection!(conn, c => draft_event_tags::table
        .inner_join(tags::table)
        .filter(draft_event_tags::draft_event_id.eq(poll))
        .select((tags::id, tags::name, draft_event_tags::locked))
        .order((tags::name, tags::id))
        .load(c)?);
    Ok(rows.into_iter().map(|(id, name, locked)| EventTag { id, name, locked }).collect())
}

/// One page of the answers of active users to a poll, by user.
pub fn answers(conn: &mut AnyConnection, poll: DbUuid, page: &PageBounds<DbUuid>) -> Result<Vec<UserAnswer>, Error> {
    let mut query = draft_event_answers::table
        .inner_join(users::table.on(users::id.eq(draft_event_answers::user_id)))
        .filter(draft_event_answers::draft_event_id.eq(poll))
        .filter(users::state.eq(ACTIVE))
        .into_boxed();
    if let Some(user) = page.after {
        query = query.filter(draft_event_answers::user_id.gt(user));
    }
    let columns = (draft_event_answers::user_id, draft_event_answers::comment, draft_event_answers::updated_at);
    let query = query.select(columns).order(draft_event_answers::user_id).limit(page.rows);
    let rows: Vec<(DbUuid, Option<String>, DbTimestamp)> = query.load(conn)?;
    Ok(rows.into_iter().map(|(user, comment, updated_at)| UserAnswer { user, comment, updated_at }).collect())
}

/// The answer of one user.
///
/// # Errors
/// 404 if the user has not answered.
pub fn answer_of(conn: &mut AnyConnection, poll: DbUuid, user: DbUuid) -> Result<UserAnswer, Error> {
    let columns = (draft_event_answers::comment, draft_event_answers::updated_at);
    let query = draft_event_answers::table.find((poll, user)).select(columns);
    let row: Option<(Option<String>, DbTimestamp)> = with_connection!(conn, c => query.first(c)).optional()?;
    let (comment, updated_at) = row.ok_or_else(|| Problem::not_found("answer"))?;
    Ok(UserAnswer { user, comment, updated_at })
}

/// The choices of these users, or of all active users for `None`, in no particular order.
pub fn choices(conn: &mut AnyConnection, poll: DbUuid, users: Option<&[DbUuid]>) -> Result<Vec<Choice>, Error> {
    use draft_event_choices as choices;
    let query = choices::table.filter(choices::draft_event_id.eq(poll));
    let columns = (choices::user_id, choices::slot_id, choices::maybe);
    let rows: Vec<(DbUuid, DbUuid, bool)> = with_connection!(conn, c => match users {
        None => query
            .inner_join(users::table.on(users::id.eq(choices::user_id)))
            .filter(users::state.eq(ACTIVE))
            .select(columns)
            .load(c)?,
        Some(users) => query.filter(choices::user_id.eq_any(users)).select(columns).load(c)?,
    });
    Ok(rows.into_iter().map(|(user, slot, maybe)| Choice { user, slot, maybe }).collect())
}

/// Whether a user is an administrator of a poll.
pub fn is_admin(conn: &mut AnyConnection, poll: DbUuid, user: DbUuid) -> Result<bool, Error> {
    let query = draft_event_admins::table.find((poll, user)).count();
    Ok(with_connection!(conn, c => query.get_result::<i64>(c))? > 0)
}

/// Whether a poll invites a user.
pub fn is_invited(conn: &mut AnyConnection, poll: DbUuid, user: DbUuid) -> Result<bool, Error> {
    let query = draft_event_invitees::table.find((poll, user)).count();
    Ok(with_connection!(conn, c => query.get_result::<i64>(c))? > 0)
}

/// Checks that the caller is an administrator of a poll or privileged.
pub fn check_admin_or_privileged(conn: &mut AnyConnection, poll: DbUuid, me: &Caller) -> Result<(), Error> {
    if me.privileged || is_admin(conn, poll, me.id)? {
        return Ok(());
    }
    Err(Problem::forbidden("an administrator of the poll, or a privileged user").into())
}

/// Checks that the caller may change a poll.
pub fn check_may_change(conn: &mut AnyConnection, poll: DbUuid, me: &Caller) -> Result<(), Error> {
    find(conn, poll)?;
    check_admin_or_privileged(conn, poll, me)
}

/// Checks that the caller may change a poll, deleted or not.
pub fn check_editor(conn: &mut AnyConnection, poll: DbUuid, me: &Caller) -> Result<(), Error> {
    let rows: i64 = draft_events::table.find(poll).count().get_result(conn)?;
    if rows == 0 { Err(not_found()) } else { check_admin_or_privileged(conn, poll, me) }
}
