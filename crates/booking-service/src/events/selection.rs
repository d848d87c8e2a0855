//! Which events: one description, from which every statement that loads them takes its condition.

use chrono::TimeDelta;
use diesel::{
    dsl::{exists, not, sql},
    expression::SqlLiteral,
    prelude::*,
    sql_types::Bool,
};
use service_kit::{
    database::{
        MultiBackend, UnionAll, in_subquery,
        types::{DbTimestamp, DbUuid},
    },
    text_enum,
};

use super::{
    filter::{Attribute, Filter},
    schedule::Schedule,
};
use crate::{
    groups::EVERYONE,
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
    /// Those in a room.
    InRoom(DbUuid),
    /// Those of a group.
    OfGroup(DbUuid),
    /// Those of a user.
    OfUser {
        /// The user.
        user: DbUuid,
        /// How they are related.
        relation: Relation,
        /// Whether the user is active and so belongs to the everyone group.
        is_active: bool,
    },
    /// Those the user belongs to, administers or has answered: the feed of an active user.
    ForFeed(DbUuid),
    /// Those that match a `q` filter.
    Matching(Filter),
    /// Those created, changed or deleted after this.
    ChangedAfter(DbTimestamp),
}

/// Whether deleted events are among them.
#[derive(Debug, Clone, Copy)]
pub enum Deleted {
    /// No.
    No,
    /// Those deleted after this.
    After(DbTimestamp),
    /// All that are still kept.
    All,
}

/// A set of events.
#[derive(Debug, Clone)]
pub struct Selection {
    /// Which.
    pub which: Which,
    /// Only those that end after this.
    pub from: Option<DbTimestamp>,
    /// Only those that begin before this.
    pub to: Option<DbTimestamp>,
    /// Only those that were created, changed or deleted after this.
    pub changed_after: Option<DbTimestamp>,
    /// Whether deleted ones are among them.
    pub deleted: Deleted,
}

type Condition = Box<dyn BoxableExpression<events::table, MultiBackend, SqlType = Bool>>;

impl Selection {
    /// Events that are not deleted, at any time.
    #[must_use]
    pub fn of(which: Which) -> Self {
        Self { which, from: None, to: None, changed_after: None, deleted: Deleted::No }
    }

    /// The same, overlapping a span that may be open at either end.
    #[must_use]
    pub fn between(self, (from, to): (Option<DbTimestamp>, Option<DbTimestamp>)) -> Self {
        Self { from, to, ..self }
    }

    /// The same, and of them only what changed after this, deleted ones included: what a copy has to learn.
    #[must_use]
    pub fn since(self, changed_after: Option<DbTimestamp>) -> Self {
        match changed_after {
            Some(_) => Self { changed_after, deleted: Deleted::All, ..self },
            None => self,
        }
    }

    fn is_of_all_time(&self) -> bool {
        self.from.is_none() && self.to.is_none() && self.changed_after.is_none()
    }

    /// Whether it is of a span of a year at most.
    fn is_short(&self) -> bool {
        self.from.zip(self.to).is_some_and(|(from, to)| to.utc() - from.utc() <= TimeDelta::days(366))
    }

    /// The query for them, without an order.
    #[must_use]
    pub fn query(&self) -> events::BoxedQuery<'static, MultiBackend> {
        let query = match &self.which {
            Which::All if self.is_of_all_time() => events::table.filter(readable_in_list_order!(events)).into_boxed(),
            Which::All => events::table.into_boxed(),
            Which::InRoom(room) => events::table.filter(events::room_id.eq(*room)).into_boxed(),
            Which::OfGroup(group) => events::table.filter(events::group_id.eq(*group)).into_boxed(),
            Which::OfUser { user, relation, is_active } => {
                let ids = self.related(UnionAll::default(), *user, *relation, *is_active);
                events::table.filter(in_subquery(events::id, ids)).into_boxed()
            }
            Which::ForFeed(user) => {
                let answered = attendees::user_id.eq(*user).and(attendees::schedule.ne(Schedule::Pending));
                let answered = attendees::table.filter(answered).select(attendees::event_id);
                let ids = self.related(UnionAll::default().and(answered), *user, Relation::BelongsOrAdmins, true);
                events::table.filter(in_subquery(events::id, ids)).into_boxed()
            }
            Which::Matching(filter) => {
                let joinable = comparisons(filter) <= MOST_JOINS;
                let few = joinable && self.is_short();
                events::table.filter(matching(filter, joinable, few)).filter(uncached()).into_boxed()
            }
            Which::ChangedAfter(since) => events::table.filter(events::updated_at.gt(*since)).into_boxed(),
        };
        let query = match self.deleted {
            Deleted::No => query.filter(events::deleted_at.is_null()),
            Deleted::After(since) => query.filter(events::deleted_at.is_null().or(events::deleted_at.gt(since))),
            Deleted::All => query,
        };
        let query = match self.changed_after {
            Some(since) => query.filter(events::updated_at.gt(since)),
            None => query,
        };
        during!(query, events, self.from, self.to)
    }

    /// Adds queries for the ids of a user's events. A union, because no database finds the rows of "in my groups or in
    /// my hands" by index when it is one condition.
    fn related(&self, ids: UnionAll, user: DbUuid, relation: Relation, is_active: bool) -> UnionAll {
        let mut ids = ids;
        if matches!(relation, Relation::Belongs | Relation::BelongsOrAdmins) {
            let groups = group_members::table.filter(group_members::user_id.eq(user)).select(group_members::group_id);
            let of_groups = events::table.filter(events::group_id.eq_any(groups)).select(events::id).into_boxed();
            ids = ids.and(during!(of_groups, events, self.from, self.to));
            if is_active {
                let of_all = events::table.filter(events::group_id.eq(EVERYONE)).select(events::id).into_boxed();
                ids = ids.and(during!(of_all, events, self.from, self.to));
            }
        }
        if matches!(relation, Relation::Admins | Relation::BelongsOrAdmins) {
            let administered = event_admins::table.filter(event_admins::user_id.eq(user));
            ids = ids.and(administered.select(event_admins::event_id));
        }
        if relation == Relation::Attendees {
            let attends = attendees::user_id.eq(user).and(attendees::schedule.eq(Schedule::Attendance));
            ids = ids.and(attendees::table.filter(attends).select(attendees::event_id));
        }
        ids
    }
}

/// The comparisons that PostgreSQL may turn into joins; beyond that its planner takes longer than the query.
const MOST_JOINS: usize = 8;

/// The condition of a `q` filter; `!=` is the complement of `==`. A comparison is either answered by a set of events, or,
/// where a span of time leaves a `few` and there are not many comparisons, asked of each of these, but for those that a
/// search may begin with.
fn matching(filter: &Filter, joinable: bool, few: bool) -> Condition {
    match filter {
        Filter::Everything => Box::new(true.into_sql::<Bool>()),
        Filter::And(left, right) => Box::new(matching(left, joinable, few).and(matching(right, joinable, few))),
        Filter::Or(left, right) => {
            let joinable = joinable && !few;
            Box::new(matching(left, joinable, few).or(matching(right, joinable, few)))
        }
        Filter::Compare { attribute, equal, id } => {
            let may_begin = *equal && joinable;
            let same = if few && !may_begin {
                matches_itself(*attribute, DbUuid(*id))
            } else {
                in_matching_set(*attribute, DbUuid(*id))
            };
            match (equal, joinable || few) {
                (false, _) => Box::new(not(same)),
                (true, true) => same,
                (true, false) => unjoinable(same),
            }
        }
    }
}

/// The same condition in a form that PostgreSQL does not turn into a join: with more joins than [`MOST_JOINS`] its
/// planner takes longer than the query.
fn unjoinable(condition: Condition) -> Condition {
    Box::new(not(not(condition)))
}

/// A condition that is always true and keeps its statement out of the connection's cache. That cache has no limit, and
/// the text of a `q` filter is the client's.
fn uncached() -> SqlLiteral<Bool> {
    sql("1 = 1")
}

fn comparisons(filter: &Filter) -> usize {
    match filter {
        Filter::Everything => 0,
        Filter::Compare { .. } => 1,
        Filter::And(left, right) | Filter::Or(left, right) => comparisons(left) + comparisons(right),
    }
}

/// The condition that an event is in the set that a comparison finds.
fn in_matching_set(attribute: Attribute, id: DbUuid) -> Condition {
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

/// The same, asked of one event.
fn matches_itself(attribute: Attribute, id: DbUuid) -> Condition {
    match attribute {
        Attribute::User => {
            let answers = attendees::table.filter(attendees::event_id.eq(events::id).and(attendees::user_id.eq(id)));
            Box::new(exists(answers.filter(attendees::schedule.ne(Schedule::Absent))))
        }
        Attribute::Tag => {
            let tags = event_tags::table.filter(event_tags::event_id.eq(events::id).and(event_tags::tag_id.eq(id)));
            Box::new(exists(tags))
        }
        Attribute::Event | Attribute::Group => in_matching_set(attribute, id),
    }
}
