//! Events in the database, as callers see them.

use common::{duration::Duration, problem::Problem};
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    after,
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    with_connection,
};

use crate::{
    auth::Caller,
    rights::PRIVATE,
    schema::{event_hosts, event_levels, events, users},
    users::Person,
};

/// `event_levels.level` of an event whose hosts are not shown. It is also the level of an event without a row.
pub const ANONYMOUS: i16 = 0;

/// `event_levels.level` of an event that is shown with its hosts.
const PUBLIC: i16 = 1;

/// An event as listed.
#[derive(Debug, Clone)]
pub struct Event {
    pub id: DbUuid,
    pub name: String,
    pub duration: Duration,
    pub level: i16,
}

/// The columns that lists of events are ordered by.
pub type Position = (DbTimestamp, DbUuid);

impl Event {
    /// The values of the columns that lists are ordered by.
    pub fn position(&self) -> Position {
        (DbTimestamp(self.duration.since()), self.id)
    }
}

type Columns = (DbUuid, String, DbTimestamp, DbTimestamp, Option<i16>);

fn event((id, name, since, until, level): Columns) -> Result<Event, Error> {
    let duration = Duration::new(since.0, Some(until.0));
    let duration = duration.ok_or_else(|| Problem::internal("an event ends before it begins"))?;
    Ok(Event { id, name, duration, level: level.unwrap_or(ANONYMOUS) })
}

/// The events that the caller may see, ordered by start and id.
pub fn list(
    conn: &mut AnyConnection,
    caller: Option<&Caller>,
    bounds: &PageBounds<Position>,
) -> Result<Vec<Event>, Error> {
    let level = event_levels::level.nullable();
    let is_shown = level.is_null().or(level.ne(PRIVATE));
    let query = events::table
        .left_join(event_levels::table)
        .select((events::id, events::name, events::since, events::until, level))
        .order((events::since, events::id))
        .limit(bounds.rows)
        .into_boxed();
    let mut query = match caller {
        Some(caller) if caller.admin => query,
        Some(caller) => {
            let own = event_hosts::table.filter(event_hosts::user_id.eq(caller.id)).select(event_hosts::event_id);
            query.filter(is_shown.or(events::id.eq_any(own)))
        }
        None => query.filter(is_shown),
    };
    if let Some((since, id)) = bounds.after {
        query = after!(query, events::since; > since, events::id; > id);
    }
    query.load::<Columns>(conn)?.into_iter().map(event).collect()
}

/// The events that a user hosts, ordered by start and id. Private and anonymous ones are listed only for admins and for
/// their hosts.
pub fn of_user(
    conn: &mut AnyConnection,
    user: DbUuid,
    caller: Option<&Caller>,
    bounds: &PageBounds<Position>,
) -> Result<Vec<Event>, Error> {
    let level = event_levels::level.nullable();
    let query = event_hosts::table
        .inner_join(events::table.left_join(event_levels::table))
        .filter(event_hosts::user_id.eq(user))
        .select((events::id, events::name, events::since, events::until, level))
        .order((events::since, events::id))
        .limit(bounds.rows)
        .into_boxed();
    let mut query = match caller {
        Some(caller) if caller.admin || caller.id == user => query,
        Some(caller) => {
            let other = diesel::alias!(event_hosts as other);
            let own = other
                .filter(other.field(event_hosts::user_id).eq(caller.id))
                .select(other.field(event_hosts::event_id));
            query.filter(level.eq(PUBLIC).or(events::id.nullable().eq_any(own.nullable())))
        }
        None => query.filter(level.eq(PUBLIC)),
    };
    if let Some((since, id)) = bounds.after {
        query = after!(query, events::since; > since, events::id; > id);
    }
    query.load::<Columns>(conn)?.into_iter().map(event).collect()
}

/// All fields of an event.
#[derive(Debug, Clone)]
pub struct Detail {
    pub event: Event,
    pub description: String,
    pub place: String,
    /// Ordered by name; empty when the caller may not see them.
    pub hosts: Vec<Person>,
}

/// One event.
///
/// # Errors
/// 404 when there is none that the caller may see.
pub fn get(conn: &mut AnyConnection, id: DbUuid, caller: Option<&Caller>) -> Result<Detail, Error> {
    let row: Option<(Columns, String, String)> = events::table
        .left_join(event_levels::table)
        .filter(events::id.eq(id))
        .select((
            (events::id, events::name, events::since, events::until, event_levels::level.nullable()),
            events::description,
            events::place,
        ))
        .first(conn)
        .optional()?;
    let hosts: Vec<Person> = event_hosts::table
        .inner_join(users::table)
        .filter(event_hosts::event_id.eq(id))
        .select(Person::as_select())
        .order((users::name, users::id))
        .load(conn)?;
    let (columns, description, place) = row.ok_or_else(not_found)?;
    let event = event(columns)?;
    let is_host_or_admin = caller.is_some_and(|caller| caller.admin || hosts.iter().any(|host| host.id == caller.id));
    match event.level {
        PRIVATE if !is_host_or_admin => Err(not_found()),
        ANONYMOUS if !is_host_or_admin => Ok(Detail { event, description, place, hosts: Vec::new() }),
        _ => Ok(Detail { event, description, place, hosts }),
    }
}

/// The level of an event.
pub fn level(conn: &mut AnyConnection, id: DbUuid) -> Result<i16, Error> {
    let level = event_levels::table.find(id).select(event_levels::level);
    Ok(level.first(conn).optional()?.unwrap_or(ANONYMOUS))
}

/// Sets the level of an event.
pub fn set_level(conn: &mut AnyConnection, id: DbUuid, level: i16) -> Result<(), Error> {
    let row = (event_levels::event_id.eq(id), event_levels::level.eq(level));
    with_connection!(conn, c => diesel::insert_into(event_levels::table)
        .values(row)
        .on_conflict(event_levels::event_id)
        .do_update()
        .set(event_levels::level.eq(level))
        .execute(c)?);
    Ok(())
}

fn not_found() -> Error {
    Problem::not_found("event").into()
}
