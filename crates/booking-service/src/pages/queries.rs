//! What only pages read.

use std::collections::{HashMap, HashSet};

use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    database::{AnyConnection, types::DbUuid},
    error::Error,
    with_connection,
};

use crate::{
    events::queries::Schedule,
    expressions::lower,
    schema::{attendees, draft_event_answers, groups, tags, users},
};

/// The most groups in a list of choices.
const MAX_GROUPS: i64 = 500;

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

/// The users with these sign-in names, by their names in lower case.
pub fn ids_of_names(conn: &mut AnyConnection, names: &[String]) -> Result<HashMap<String, DbUuid>, Error> {
    let mut ids = HashMap::new();
    for names in names.chunks(1000) {
        let names: Vec<_> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
        let users = users::table.filter(lower(users::name).eq_any(names));
        let rows: Vec<(String, DbUuid)> = users.select((users::name, users::id)).load(conn)?;
        ids.extend(rows.into_iter().map(|(name, id)| (name.to_ascii_lowercase(), id)));
    }
    Ok(ids)
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

/// The privileged users, by id.
pub fn privileged(conn: &mut AnyConnection) -> Result<Vec<DbUuid>, Error> {
    Ok(users::table.filter(users::privileged.eq(true)).order(users::id).select(users::id).load(conn)?)
}

/// The tag with this name, if there is one.
pub fn tag_called(conn: &mut AnyConnection, name: &str) -> Result<Option<DbUuid>, Error> {
    let tag = tags::table.filter(tags::name_key.eq(crate::tags::key(name))).select(tags::id);
    Ok(tag.first(conn).optional()?)
}
