//! The events of a feed, and the nonces that feed addresses are made from.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use chrono::TimeDelta;
use common::time::Timestamp;
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    database::{
        AnyConnection, DataVersion, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    http::pagination::CHUNK,
    with_connection,
};

use super::feed::{FeedEvent, Participation, Person};
use crate::{
    auth::ACTIVE,
    events::{
        event_tags::EventTag,
        queries::{Order, Row, Schedule, load_ids, load_tagged_rows},
        selection::{Criterion, Deleted, Selection},
    },
    schema::{attendees, users, withdrawn_invitations},
};

/// How long an event stays in the feed after its end.
const PAST: TimeDelta = TimeDelta::days(90);

/// How long a deleted event stays, as cancelled.
const CANCELLED: TimeDelta = TimeDelta::days(30);

/// The nonce of a user's feed, or `None` before its first use.
pub fn nonce(conn: &mut AnyConnection, user: DbUuid) -> Result<Option<String>, Error> {
    Ok(users::table.find(user).select(users::feed_nonce).first(conn)?)
}

/// What the feed addresses of a user are checked against, and the version of the database.
#[derive(Debug, Default, Queryable)]
pub struct FeedSecrets {
    /// The nonce that the present address is derived from.
    pub nonce: Option<String>,
    /// Hash of an imported address.
    pub imported_hash: Option<Vec<u8>>,
    /// The version of the database.
    pub data_version: Option<String>,
}

/// The feed secrets of an active user; none when there is no such user.
pub fn secrets_of_active(conn: &mut AnyConnection, user: DbUuid) -> Result<FeedSecrets, Error> {
    let user = users::table.find(user).filter(users::state.eq(ACTIVE));
    let columns = (users::feed_nonce, users::imported_feed_hash, DataVersion.nullable());
    let secrets = with_connection!(conn, c => user.select(columns).first(c)).optional()?;
    Ok(secrets.unwrap_or_default())
}

/// Sets the nonce of a user's feed unless there is one already.
pub fn set_first_nonce(conn: &mut AnyConnection, user: DbUuid, nonce: &str) -> Result<(), Error> {
    let without = users::table.find(user).filter(users::feed_nonce.is_null());
    diesel::update(without).set(users::feed_nonce.eq(nonce)).execute(conn)?;
    Ok(())
}

/// Sets the nonce of a user's feed. An imported address ends as well.
pub fn replace_nonce(conn: &mut AnyConnection, user: DbUuid, nonce: &str) -> Result<(), Error> {
    diesel::update(users::table.find(user))
        .set((users::feed_nonce.eq(nonce), users::imported_feed_hash.eq(None::<Vec<u8>>)))
        .execute(conn)?;
    Ok(())
}

/// The answers that a feed shows.
#[derive(Debug, Clone, Copy)]
pub struct Answers {
    /// The owner of the feed, whose answers it always shows.
    pub owner: DbUuid,
    /// Whether it shows the answers of all others.
    pub all: bool,
}

/// The events of a feed on the day that began at `today`.
pub fn selection(criterion: Criterion, today: Timestamp) -> Selection {
    let deleted = Deleted::After(DbTimestamp(today.plus(-CANCELLED)));
    Selection { from: Some(DbTimestamp(today.plus(-PAST))), deleted, ..Selection::new(criterion) }
}

/// Calls `show` with each of these events as the feed shows it, by start and id, a
/// [chunk](CHUNK) in memory at a time. Takes four statements for a chunk, one for the ids of all chunks but the first,
/// and one for each thousand users that are new in a chunk.
pub fn each(
    conn: &mut AnyConnection,
    selection: &Selection,
    answers: Answers,
    mut show: impl FnMut(&FeedEvent),
) -> Result<(), Error> {
    let first = PageBounds { after: None, rows: i64::try_from(CHUNK).unwrap_or(i64::MAX) };
    let mut rows = load_tagged_rows(conn, selection, Order::Start, &first)?;
    // The search for more would be done again for each chunk, so it finds all their ids at once.
    let rest = match rows.last() {
        Some((last, _)) if rows.len() == CHUNK => {
            let after = Some(Order::Start.position(last));
            load_ids(conn, selection, Order::Start, &PageBounds { after, ..PageBounds::all() })?
        }
        _ => Vec::new(),
    };
    let (mut names, mut rest) = (HashMap::new(), rest.chunks(CHUNK));
    loop {
        let ids: Vec<_> = rows.iter().map(|(row, _)| row.id).collect();
        let mut attendees = load_answers(conn, &ids, answers)?;
        let withdrawn = load_withdrawals(conn, &ids, answers)?;
        add_names(conn, &rows, &attendees, &mut names)?;
        for (row, tags) in rows {
            let attendees = attendees.remove(&row.id).unwrap_or_default();
            let row =
                Row { updated_at: withdrawn.get(&row.id).map_or(row.updated_at, |at| row.updated_at.max(*at)), ..row };
            show(&feed_event(row, tags, attendees, answers.owner, &names));
        }
        let Some(ids) = rest.next() else { return Ok(()) };
        rows = load_tagged_rows(conn, &selection.these(ids.to_vec()), Order::Start, &PageBounds::all())?;
    }
}

/// A user's answer to an event, and when it last changed.
type Answer = (DbUuid, Schedule, DbTimestamp);

/// The answers to these events, by user.
fn load_answers(
    conn: &mut AnyConnection,
    events: &[DbUuid],
    answers: Answers,
) -> Result<HashMap<DbUuid, Vec<Answer>>, Error> {
    let query = attendees::table
        .filter(attendees::event_id.eq_any(events))
        .select((attendees::event_id, (attendees::user_id, attendees::schedule, attendees::changed_at)))
        .order((attendees::event_id, attendees::user_id));
    let rows: Vec<(DbUuid, Answer)> = with_connection!(conn, c => match answers {
        Answers { all: true, .. } => query.load(c)?,
        Answers { owner, .. } => query.filter(attendees::user_id.eq(owner)).load(c)?,
    });
    let mut by_event: HashMap<DbUuid, Vec<Answer>> = HashMap::new();
    for (event, answer) in rows {
        by_event.entry(event).or_default().push(answer);
    }
    Ok(by_event)
}

/// When an invitation to each of these events was last withdrawn, from the users whose answers the feed shows.
fn load_withdrawals(
    conn: &mut AnyConnection,
    events: &[DbUuid],
    answers: Answers,
) -> Result<HashMap<DbUuid, DbTimestamp>, Error> {
    let query = withdrawn_invitations::table
        .filter(withdrawn_invitations::event_id.eq_any(events))
        .select((withdrawn_invitations::event_id, withdrawn_invitations::withdrawn_at))
        .order(withdrawn_invitations::withdrawn_at);
    let rows: Vec<(DbUuid, DbTimestamp)> = with_connection!(conn, c => match answers {
        Answers { all: true, .. } => query.load(c)?,
        Answers { owner, .. } => query.filter(withdrawn_invitations::user_id.eq(owner)).load(c)?,
    });
    // The last one of an event stays in the map.
    Ok(rows.into_iter().collect())
}

/// A display name, and when it last changed.
type Name = (Arc<str>, DbTimestamp);

/// Adds the names of the organizers and attendees of these events.
fn add_names(
    conn: &mut AnyConnection,
    rows: &[(Row, Vec<EventTag>)],
    answers: &HashMap<DbUuid, Vec<Answer>>,
    names: &mut HashMap<DbUuid, Name>,
) -> Result<(), Error> {
    let attendees = answers.values().flatten().map(|(user, ..)| *user);
    let people = attendees.chain(rows.iter().filter_map(|(row, _)| row.created_by));
    let new: BTreeSet<DbUuid> = people.filter(|user| !names.contains_key(user)).collect();
    for ids in Vec::from_iter(new).chunks(CHUNK) {
        let columns = (users::id, (users::display_name, users::display_name_changed_at));
        let users = users::table.filter(users::id.eq_any(ids)).select(columns);
        let users = users.load::<(DbUuid, (String, DbTimestamp))>(conn)?.into_iter();
        names.extend(users.map(|(id, (name, changed_at))| (id, (name.into(), changed_at))));
    }
    Ok(())
}

fn feed_event(
    row: Row,
    tags: Vec<EventTag>,
    answers: Vec<Answer>,
    owner: DbUuid,
    names: &HashMap<DbUuid, Name>,
) -> FeedEvent {
    let person =
        |id: DbUuid| Person { id: id.0, name: names.get(&id).map(|(name, _)| name.clone()).unwrap_or_default() };
    let people = answers.iter().map(|(user, ..)| user).chain(&row.created_by);
    let renamed = people.filter_map(|user| names.get(user)).map(|(_, changed_at)| *changed_at);
    let answered = answers.iter().map(|(.., changed_at)| *changed_at);
    let updated_at = answered.chain(renamed).fold(row.updated_at, DbTimestamp::max);
    let attendee = |(user, schedule, _)| {
        let participation = match schedule {
            Schedule::Pending => Participation::NeedsAction,
            Schedule::Absent => Participation::Declined,
            Schedule::Attendance => Participation::Accepted,
        };
        (person(user), participation)
    };
    FeedEvent {
        id: row.id.0,
        start: row.starts_at.utc(),
        end: row.ends_at.utc(),
        created_at: row.created_at.utc(),
        updated_at: updated_at.utc(),
        sequence: u32::try_from(row.sequence).unwrap_or_default(),
        cancelled: row.deleted_at.is_some(),
        declined: answers.iter().any(|(user, schedule, _)| *user == owner && *schedule == Schedule::Absent),
        series: row.series_id.map(|series| series.0),
        tags: tags.into_iter().map(|tag| tag.name).collect(),
        organizer: row.created_by.map(person),
        attendees: answers.into_iter().map(attendee).collect(),
        name: row.name,
        description: row.description,
        place: row.place,
    }
}
