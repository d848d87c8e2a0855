//! Invitations: the pending attendees of events. They follow the members of an event's group (contract, "Groups").
//!
//! Every way into a group calls [`join`], and every way out of it [`leave`]: the operations on groups, the copy of the
//! directory, and the first sign-in of a person. Callers have locked the group against new events and other members.
//! An answer is never touched.

use diesel::{
    dsl::{exists, not},
    prelude::*,
    sql_types::{Bool, Text},
    upsert::excluded,
};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    with_connection,
};
use uuid::uuid;

use crate::{
    auth::ACTIVE,
    schedule::Schedule,
    schema::{
        attendees, draft_event_answers, draft_event_invitees, draft_events, events, group_members, users,
        withdrawn_invitations,
    },
};

/// The everyone group (contract, "Groups").
pub const EVERYONE: DbUuid = DbUuid(uuid!("11111111-1111-1111-1111-111111111111"));

/// Users and events of one statement.
const CHUNK: usize = 1000;

/// Inserts pending attendees. Who is listed already stays as they are; a concurrent answer may just have been given.
macro_rules! insert_pending {
    ($conn:expr, $rows:expr) => {{
        let columns = (attendees::user_id, attendees::event_id, attendees::schedule, attendees::changed_at);
        with_connection!($conn, c => diesel::insert_into(attendees::table)
            .values($rows)
            .into_columns(columns)
            .on_conflict_do_nothing()
            .execute(c)?);
    }};
}

/// Invites the active members of a group to an event.
pub fn invite(conn: &mut AnyConnection, event: DbUuid, group: DbUuid, now: DbTimestamp) -> Result<(), Error> {
    let event = event.into_sql::<DbUuid>();
    let (pending, now) = (Schedule::Pending.into_sql::<Text>(), now.into_sql::<DbTimestamp>());
    let active = users::table.filter(users::state.eq(ACTIVE));
    if group == EVERYONE {
        insert_pending!(conn, active.select((users::id, event, pending, now)));
    } else {
        let members = active.inner_join(group_members::table.on(group_members::user_id.eq(users::id)));
        let members = members.filter(group_members::group_id.eq(group));
        insert_pending!(conn, members.select((users::id, event, pending, now)));
    }
    Ok(())
}

/// Invites the active members of a group to several new events.
pub fn invite_to_all(conn: &mut AnyConnection, new: &[DbUuid], group: DbUuid, now: DbTimestamp) -> Result<(), Error> {
    let (pending, now) = (Schedule::Pending.into_sql::<Text>(), now.into_sql::<DbTimestamp>());
    for new in new.chunks(CHUNK) {
        let active = users::table.filter(users::state.eq(ACTIVE));
        let invited = active.inner_join(events::table.on(events::id.eq_any(new)));
        if group == EVERYONE {
            insert_pending!(conn, invited.select((users::id, events::id, pending, now)));
        } else {
            let members = invited.inner_join(group_members::table.on(group_members::user_id.eq(users::id)));
            let members = members.filter(group_members::group_id.eq(group));
            insert_pending!(conn, members.select((users::id, events::id, pending, now)));
        }
    }
    Ok(())
}

/// Invites users to the coming events of a group that they have joined, or of all their groups, because they have
/// become active. Their membership must be stored already; who is not active is not invited.
pub fn join(conn: &mut AnyConnection, joined: &[DbUuid], group: Option<DbUuid>, now: DbTimestamp) -> Result<(), Error> {
    if joined.is_empty() {
        return Ok(());
    }
    let coming = coming_events(conn, group, now)?;
    let (pending, now) = (Schedule::Pending.into_sql::<Text>(), now.into_sql::<DbTimestamp>());
    for joined in joined.chunks(CHUNK) {
        for coming in coming.chunks(CHUNK) {
            let active = || users::table.filter(users::id.eq_any(joined)).filter(users::state.eq(ACTIVE));
            if group != Some(EVERYONE) {
                let invited = active()
                    .inner_join(group_members::table.on(group_members::user_id.eq(users::id)))
                    .inner_join(events::table.on(events::group_id.eq(group_members::group_id)))
                    .filter(events::id.eq_any(coming));
                insert_pending!(conn, invited.select((users::id, events::id, pending, now)));
            }
            if group.is_none_or(|group| group == EVERYONE) {
                let invited = active()
                    .inner_join(events::table.on(events::group_id.eq(EVERYONE)))
                    .filter(events::id.eq_any(coming));
                insert_pending!(conn, invited.select((users::id, events::id, pending, now)));
            }
        }
    }
    Ok(())
}

/// Withdraws the invitations of users to the coming events of a group that they have left, except to events that were
/// confirmed from a poll which asks them or which they answered. With `None`, they are no longer active: withdraws all
/// their invitations to coming events.
pub fn leave(conn: &mut AnyConnection, left: &[DbUuid], group: Option<DbUuid>, now: DbTimestamp) -> Result<(), Error> {
    if left.is_empty() {
        return Ok(());
    }
    let invited = draft_event_invitees::table
        .inner_join(draft_events::table.on(draft_events::id.eq(draft_event_invitees::draft_event_id)))
        .filter(draft_events::event_id.eq(attendees::event_id.nullable()))
        .filter(draft_events::deleted_at.is_null())
        .filter(draft_event_invitees::user_id.eq(attendees::user_id));
    let answered = draft_event_answers::table
        .inner_join(draft_events::table.on(draft_events::id.eq(draft_event_answers::draft_event_id)))
        .filter(draft_events::event_id.eq(attendees::event_id.nullable()))
        .filter(draft_events::deleted_at.is_null())
        .filter(draft_event_answers::user_id.eq(attendees::user_id));
    let even_if_asked = group.is_none().into_sql::<Bool>();
    let is_withdrawn = not(exists(invited)).and(not(exists(answered))).or(even_if_asked);
    let coming = coming_events(conn, group, now)?;
    for left in left.chunks(CHUNK) {
        for coming in coming.chunks(CHUNK) {
            let withdrawn = attendees::table
                .filter(attendees::event_id.eq_any(coming))
                .filter(attendees::user_id.eq_any(left))
                .filter(attendees::schedule.eq(Schedule::Pending))
                .filter(is_withdrawn);
            let rows =
                withdrawn.clone().select((attendees::event_id, attendees::user_id, now.into_sql::<DbTimestamp>()));
            with_connection!(conn, c => diesel::insert_into(withdrawn_invitations::table)
                .values(rows)
                .into_columns((
                    withdrawn_invitations::event_id,
                    withdrawn_invitations::user_id,
                    withdrawn_invitations::withdrawn_at,
                ))
                .on_conflict((withdrawn_invitations::event_id, withdrawn_invitations::user_id))
                .do_update()
                .set(withdrawn_invitations::withdrawn_at.eq(excluded(withdrawn_invitations::withdrawn_at)))
                .execute(c)?);
            diesel::delete(withdrawn).execute(conn)?;
        }
    }
    Ok(())
}

/// The events that have not ended, of one group or of all.
fn coming_events(conn: &mut AnyConnection, group: Option<DbUuid>, now: DbTimestamp) -> Result<Vec<DbUuid>, Error> {
    let query = events::table.filter(events::deleted_at.is_null()).select(events::id).into_boxed();
    let query = match group {
        Some(group) => query.filter(events::group_id.eq(group)),
        None => query,
    };
    Ok(during!(query, events, Some(now), None).load(conn)?)
}
