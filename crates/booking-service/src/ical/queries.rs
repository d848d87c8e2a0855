//! The events of a feed, and the nonces that feed addresses are made from.

use std::collections::HashMap;

use chrono::TimeDelta;
use common::time::Timestamp;
use diesel::{OptionalExtension, prelude::*, sql_types::Bool};
use service_kit::{
    db::{
        AnyConnection, MultiBackend,
        sql::{Moment, Uid},
        within,
    },
    error::Error,
};
use uuid::Uuid;

use super::feed::{FeedEvent, Participation, Person};
use crate::{
    auth::ACTIVE,
    events::filter::{Attribute, Filter},
    schema::{attendees, event_admins, event_tags, events, group_members, tags, users},
};

/// How long an event stays after its end.
const PAST: TimeDelta = TimeDelta::days(90);

/// How long a deleted event stays, as cancelled.
const CANCELLED: TimeDelta = TimeDelta::days(30);

/// What is not long (`events.is_long`) starts at most so long before it ends.
const REACH: TimeDelta = TimeDelta::hours(24);

/// The group that everybody is in (contract, "Groups").
const EVERYONE: Uid = Uid(Uuid::from_u128(0x1111_1111_1111_1111_1111_1111_1111_1111));

/// Which events a feed shows.
#[derive(Debug, Clone)]
pub enum Selection {
    /// Those that the user belongs to, administers or has answered.
    OfUser(Uid),
    /// Those that a filter matches.
    Matching(Filter),
}

type Condition = Box<dyn BoxableExpression<events::table, MultiBackend, SqlType = Bool>>;

/// The nonce of a user's feed, or `None` before its first use.
///
/// # Errors
/// When the database fails.
pub fn nonce(conn: &mut AnyConnection, user: Uid) -> Result<Option<String>, Error> {
    Ok(users::table.find(user).select(users::feed_nonce).first(conn)?)
}

/// The nonce of an active user's feed, or `None` when there is no such user or feed.
///
/// # Errors
/// When the database fails.
pub fn nonce_of_active(conn: &mut AnyConnection, user: Uid) -> Result<Option<String>, Error> {
    let user = users::table.find(user).filter(users::state.eq(ACTIVE));
    Ok(user.select(users::feed_nonce).first(conn).optional()?.flatten())
}

/// Sets the nonce of a user's feed unless there is one already.
///
/// # Errors
/// When the database fails.
pub fn set_first_nonce(conn: &mut AnyConnection, user: Uid, nonce: &str) -> Result<(), Error> {
    let without = users::table.find(user).filter(users::feed_nonce.is_null());
    diesel::update(without).set(users::feed_nonce.eq(nonce)).execute(conn)?;
    Ok(())
}

/// Sets the nonce of a user's feed.
///
/// # Errors
/// When the database fails.
pub fn replace_nonce(conn: &mut AnyConnection, user: Uid, nonce: &str) -> Result<(), Error> {
    diesel::update(users::table.find(user)).set(users::feed_nonce.eq(nonce)).execute(conn)?;
    Ok(())
}

/// The selected events: those of the last 90 days and to come, by start and id.
fn selected(selection: &Selection, now: Timestamp) -> events::BoxedQuery<'static, MultiBackend> {
    let (since, kept) = (now.plus(-PAST), Moment(now.plus(-CANCELLED)));
    // Each of the three is a piece of an index.
    let present = || events::deleted_at.is_null();
    let short = present().and(events::is_long.eq(false)).and(events::starts_at.gt(Moment(since.plus(-REACH))));
    let long = present().and(events::is_long.eq(true));
    let cancelled = events::updated_at.gt(kept).and(events::deleted_at.gt(kept));
    let chosen = match selection {
        Selection::OfUser(user) => of_user(*user),
        Selection::Matching(filter) => matching(filter),
    };
    events::table
        .filter(short.or(long).or(cancelled))
        .filter(events::ends_at.gt(Moment(since)))
        .filter(chosen)
        .into_boxed()
}

fn of_user(user: Uid) -> Condition {
    let groups = group_members::table.filter(group_members::user_id.eq(user)).select(group_members::group_id);
    let administered = event_admins::table.filter(event_admins::user_id.eq(user)).select(event_admins::event_id);
    let answered = attendees::table
        .filter(attendees::user_id.eq(user))
        .filter(attendees::schedule.ne("pending"))
        .select(attendees::event_id);
    let condition = events::group_id
        .eq(EVERYONE)
        .or(within(events::group_id, groups))
        .or(within(events::id, administered))
        .or(within(events::id, answered));
    Box::new(condition)
}

fn matching(filter: &Filter) -> Condition {
    match filter {
        Filter::Everything => Box::new(true.into_sql::<Bool>()),
        Filter::And(a, b) => Box::new(matching(a).and(matching(b))),
        Filter::Or(a, b) => Box::new(matching(a).or(matching(b))),
        Filter::Compare { attribute, equal: true, id } => equals(*attribute, Uid(*id)),
        Filter::Compare { attribute, equal: false, id } => Box::new(diesel::dsl::not(equals(*attribute, Uid(*id)))),
    }
}

fn equals(attribute: Attribute, id: Uid) -> Condition {
    match attribute {
        Attribute::Event => Box::new(events::id.eq(id)),
        Attribute::Group => Box::new(events::group_id.eq(id)),
        Attribute::User => {
            let attended = attendees::table.filter(attendees::user_id.eq(id)).filter(attendees::schedule.ne("absent"));
            Box::new(within(events::id, attended.select(attendees::event_id)))
        }
        Attribute::Tag => {
            let tagged = event_tags::table.filter(event_tags::tag_id.eq(id));
            Box::new(within(events::id, tagged.select(event_tags::event_id)))
        }
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = events)]
struct Row {
    id: Uid,
    name: String,
    description: String,
    place: String,
    starts_at: Moment,
    ends_at: Moment,
    created_at: Moment,
    updated_at: Moment,
    sequence: i32,
    created_by: Uid,
    deleted_at: Option<Moment>,
}

/// What a feed shows, by start and id, in four statements whatever its length.
///
/// # Errors
/// When the database fails.
pub fn events(conn: &mut AnyConnection, selection: &Selection, now: Timestamp) -> Result<Vec<FeedEvent>, Error> {
    let rows: Vec<Row> =
        selected(selection, now).order((events::starts_at, events::id)).select(Row::as_select()).load(conn)?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let ids = || selected(selection, now).select(events::id);
    let tags: Vec<(Uid, String)> = event_tags::table
        .inner_join(tags::table)
        .filter(within(event_tags::event_id, ids()))
        .order((tags::name, tags::id))
        .select((event_tags::event_id, tags::name))
        .load(conn)?;
    let mut tags = by_event(tags);
    let answers: Vec<(Uid, (Uid, String, String))> = attendees::table
        .inner_join(users::table.on(users::id.eq(attendees::user_id)))
        .filter(within(attendees::event_id, ids()))
        .order((users::name, users::id))
        .select((attendees::event_id, (users::id, users::display_name, attendees::schedule)))
        .load(conn)?;
    let mut answers = by_event(answers);
    let makers: HashMap<Uid, String> = users::table
        .filter(within(users::id, selected(selection, now).select(events::created_by)))
        .select((users::id, users::display_name))
        .load(conn)?
        .into_iter()
        .collect();
    let shown = rows.into_iter().map(|row| {
        let organizer = makers.get(&row.created_by).cloned().unwrap_or_default();
        let (tags, answers) = (tags.remove(&row.id), answers.remove(&row.id));
        row.shown(organizer, tags.unwrap_or_default(), answers.unwrap_or_default())
    });
    Ok(shown.collect())
}

fn by_event<T>(rows: Vec<(Uid, T)>) -> HashMap<Uid, Vec<T>> {
    let mut grouped: HashMap<Uid, Vec<T>> = HashMap::new();
    for (event, item) in rows {
        grouped.entry(event).or_default().push(item);
    }
    grouped
}

impl Row {
    fn shown(self, organizer: String, tags: Vec<String>, answers: Vec<(Uid, String, String)>) -> FeedEvent {
        let attendee = |(user, name, schedule): (Uid, String, String)| {
            let participation = match schedule.as_str() {
                "attendance" => Participation::Accepted,
                "absent" => Participation::Declined,
                _ => Participation::NeedsAction,
            };
            (Person { id: user.0, name }, participation)
        };
        FeedEvent {
            id: self.id.0,
            name: self.name,
            description: self.description,
            place: self.place,
            start: self.starts_at.utc(),
            end: self.ends_at.utc(),
            created_at: self.created_at.utc(),
            updated_at: self.updated_at.utc(),
            sequence: u32::try_from(self.sequence).unwrap_or_default(),
            cancelled: self.deleted_at.is_some(),
            tags,
            organizer: Person { id: self.created_by.0, name: organizer },
            attendees: answers.into_iter().map(attendee).collect(),
        }
    }
}
