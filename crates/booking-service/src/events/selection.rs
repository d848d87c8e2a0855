//! Which events: one description, from which every statement that loads them takes its condition.

use diesel::{
    dsl::{not, sql},
    prelude::*,
    sql_types::Bool,
};
use service_kit::{
    db::{
        MultiBackend,
        sql::{Moment, Uid},
    },
    text_enum,
};

use super::{
    filter::{Attribute, Filter},
    queries::Schedule,
};
use crate::{
    groups,
    schema::{attendees, event_admins, event_tags, events, group_members},
};

text_enum! {
    /// How a user is related to the events of a list.
    pub enum Relation {
        /// The user is in the event's group.
        Belongs = "belongs",
        /// The user administers the event.
        Admins = "admins",
        /// One of the two.
        BelongsOrAdmins = "belongs-or-admins",
        /// The user has answered to attend.
        Attendees = "attendees",
    }
}

/// Which events.
#[derive(Debug, Clone)]
pub enum Which {
    /// Each.
    All,
    /// The one with this id.
    One(Uid),
    /// Those in a room.
    InRoom(Uid),
    /// Those of a group.
    OfGroup(Uid),
    /// Those of a user.
    OfUser {
        /// The user.
        user: Uid,
        /// How they are related.
        relation: Relation,
        /// Whether the user is active and so belongs to the everyone group.
        is_active: bool,
    },
    /// Those the user belongs to, administers or has answered: the feed of an active user.
    ForFeed(Uid),
    /// Those that match a `q` filter.
    Matching(Filter),
    /// Those created, changed or deleted after this.
    ChangedAfter(Moment),
}

/// Whether deleted events are among them.
#[derive(Debug, Clone, Copy)]
pub enum Deleted {
    /// No.
    No,
    /// Those deleted after this.
    After(Moment),
    /// All that are still kept.
    All,
}

/// A set of events.
#[derive(Debug, Clone)]
pub struct Selection {
    /// Which.
    pub which: Which,
    /// Only those that end after this.
    pub from: Option<Moment>,
    /// Only those that begin before this.
    pub to: Option<Moment>,
    /// Whether deleted ones are among them.
    pub deleted: Deleted,
}

type Condition = Box<dyn BoxableExpression<events::table, MultiBackend, SqlType = Bool>>;

impl Selection {
    /// Events that are not deleted, at any time.
    #[must_use]
    pub fn of(which: Which) -> Self {
        Self { which, from: None, to: None, deleted: Deleted::No }
    }

    /// The same, overlapping a span that may be open at either end.
    #[must_use]
    pub fn within(self, (from, to): (Option<Moment>, Option<Moment>)) -> Self {
        Self { from, to, ..self }
    }

    /// The query for them, without an order.
    #[must_use]
    pub fn query(&self) -> events::BoxedQuery<'static, MultiBackend> {
        let query = match &self.which {
            Which::All => events::table.into_boxed(),
            Which::One(id) => events::table.filter(events::id.eq(*id)).into_boxed(),
            Which::InRoom(room) => events::table.filter(events::room_id.eq(*room)).into_boxed(),
            Which::OfGroup(group) => events::table.filter(events::group_id.eq(*group)).into_boxed(),
            Which::OfUser { user, relation, is_active } => {
                events::table.filter(related(*user, *relation, *is_active)).into_boxed()
            }
            Which::ForFeed(user) => events::table.filter(for_feed(*user)).into_boxed(),
            // Its text is the caller's: as a literal it keeps the statement out of the connection's cache, which has
            // no bound.
            Which::Matching(filter) => events::table.filter(matching(filter)).filter(sql::<Bool>("1 = 1")).into_boxed(),
            Which::ChangedAfter(since) => events::table.filter(events::updated_at.gt(*since)).into_boxed(),
        };
        let query = match self.deleted {
            Deleted::No => query.filter(events::deleted_at.is_null()),
            Deleted::After(since) => query.filter(events::deleted_at.is_null().or(events::deleted_at.gt(since))),
            Deleted::All => query,
        };
        match (self.from, self.to) {
            (Some(from), Some(to)) => query.filter(overlapping!(events, from, to)),
            (Some(from), None) => query.filter(events::ends_at.gt(from)),
            (None, Some(to)) => query.filter(events::starts_at.lt(to)),
            (None, None) => query,
        }
    }
}

fn belongs(user: Uid, is_active: bool) -> Condition {
    let groups = group_members::table.filter(group_members::user_id.eq(user)).select(group_members::group_id);
    let member = events::group_id.eq_any(groups);
    if is_active { Box::new(member.or(events::group_id.eq(groups::EVERYONE))) } else { Box::new(member) }
}

fn administers(user: Uid) -> Condition {
    let ids = event_admins::table.filter(event_admins::user_id.eq(user)).select(event_admins::event_id);
    Box::new(events::id.eq_any(ids))
}

fn related(user: Uid, relation: Relation, is_active: bool) -> Condition {
    match relation {
        Relation::Belongs => belongs(user, is_active),
        Relation::Admins => administers(user),
        Relation::BelongsOrAdmins => Box::new(belongs(user, is_active).or(administers(user))),
        Relation::Attendees => {
            let attends = attendees::user_id.eq(user).and(attendees::schedule.eq(Schedule::Attendance));
            Box::new(events::id.eq_any(attendees::table.filter(attends).select(attendees::event_id)))
        }
    }
}

fn for_feed(user: Uid) -> Condition {
    let answered = attendees::user_id.eq(user).and(attendees::schedule.ne(Schedule::Pending));
    let answered = events::id.eq_any(attendees::table.filter(answered).select(attendees::event_id));
    Box::new(related(user, Relation::BelongsOrAdmins, true).or(answered))
}

/// The condition of a `q` filter; `!=` is the complement of `==`.
fn matching(filter: &Filter) -> Condition {
    match filter {
        Filter::Everything => Box::new(events::id.eq(events::id)),
        Filter::And(left, right) => Box::new(matching(left).and(matching(right))),
        Filter::Or(left, right) => Box::new(matching(left).or(matching(right))),
        Filter::Compare { attribute, equal, id } => {
            let same = equals(*attribute, Uid(*id));
            if *equal { same } else { Box::new(not(same)) }
        }
    }
}

fn equals(attribute: Attribute, id: Uid) -> Condition {
    match attribute {
        Attribute::Event => Box::new(events::id.eq(id)),
        Attribute::Group => Box::new(events::group_id.eq(id)),
        Attribute::User => {
            let attends = attendees::user_id.eq(id).and(attendees::schedule.ne(Schedule::Absent));
            Box::new(events::id.eq_any(attendees::table.filter(attends).select(attendees::event_id)))
        }
        Attribute::Tag => {
            let tagged = event_tags::table.filter(event_tags::tag_id.eq(id)).select(event_tags::event_id);
            Box::new(events::id.eq_any(tagged))
        }
    }
}
