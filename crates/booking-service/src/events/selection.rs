//! Selections of events, and their conversion into queries.

use chrono::TimeDelta;
use diesel::{
    dsl::{IntoBoxed, Select, exists, not, sql},
    expression::SqlLiteral,
    prelude::*,
    sql_types::Bool,
};
use service_kit::database::{
    MultiBackend,
    types::{DbTimestamp, DbUuid},
};

use super::filter::{Attribute, Filter};
use crate::{
    expressions::{IsTrue, UnionAll, in_subquery},
    groups::EVERYONE,
    overlapping::earliest_start,
    schedule::Schedule,
    schema::{attendees, event_admins, event_tags, events, group_members, groups as group_rows},
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

/// The events of a selection, before its conditions on time.
#[derive(Debug, Clone)]
pub enum Criterion {
    /// All events.
    All,
    /// The events in a room.
    InRoom(DbUuid),
    /// The events of a group.
    OfGroup(DbUuid),
    /// The events of a user.
    OfUser {
        /// The user.
        user: DbUuid,
        /// How the user is related to them.
        relation: Relation,
        /// Whether the user is active and so belongs to the everyone group.
        is_active: bool,
    },
    /// The events that a user belongs to, administers or has answered, for the feed of an active user.
    ForFeed(DbUuid),
    /// The events that match a `q` filter.
    Matching(Filter),
    /// The events created, changed or deleted after this time.
    ChangedAfter(DbTimestamp),
}

/// The deleted events that a selection contains.
#[derive(Debug, Clone, Copy)]
pub enum Deleted {
    /// None.
    No,
    /// Those deleted after this time.
    After(DbTimestamp),
    /// All of them.
    All,
}

/// A set of events.
#[derive(Debug, Clone)]
pub struct Selection {
    /// The events, before the other conditions.
    pub criterion: Criterion,
    /// Only events that end after this time.
    pub from: Option<DbTimestamp>,
    /// Only events that begin before this time.
    pub to: Option<DbTimestamp>,
    /// Only events created, changed or deleted after this time.
    pub changed_after: Option<DbTimestamp>,
    /// The deleted events to include.
    pub deleted: Deleted,
}

type Condition = Box<dyn BoxableExpression<events::table, MultiBackend, SqlType = Bool>>;

impl Selection {
    /// These events without those that are deleted, at any time.
    #[must_use]
    pub fn new(criterion: Criterion) -> Self {
        Self { criterion, from: None, to: None, changed_after: None, deleted: Deleted::No }
    }

    /// Restricts the selection to events that overlap a span. Either end may be missing.
    #[must_use]
    pub fn between(self, (from, to): (Option<DbTimestamp>, Option<DbTimestamp>)) -> Self {
        Self { from, to, ..self }
    }

    /// With a time, restricts the selection to events created, changed or deleted after it, and includes deleted
    /// events: the changes that a client with a copy needs.
    #[must_use]
    pub fn since(self, changed_after: Option<DbTimestamp>) -> Self {
        match changed_after {
            Some(_) => Self { changed_after, deleted: Deleted::All, ..self },
            None => self,
        }
    }

    fn is_unbounded(&self) -> bool {
        self.from.is_none() && self.to.is_none() && self.changed_after.is_none()
    }

    /// Whether the selection is limited to a span of at most a year.
    fn is_short(&self) -> bool {
        self.from.zip(self.to).is_some_and(|(from, to)| *to - *from <= TimeDelta::days(366))
    }

    /// The query for them, without an order.
    #[must_use]
    pub fn query(&self) -> events::BoxedQuery<'static, MultiBackend> {
        let query = match &self.criterion {
            Criterion::All if self.is_unbounded() => events::table.filter(readable_in_list_order!(events)).into_boxed(),
            Criterion::All => events::table.into_boxed(),
            Criterion::InRoom(room) => events::table.filter(events::room_id.eq(*room)).into_boxed(),
            Criterion::OfGroup(group) => events::table.filter(events::group_id.eq(*group)).into_boxed(),
            Criterion::OfUser { user, relation, is_active } => {
                let ids = self.related(UnionAll::default(), *user, *relation, *is_active);
                events::table.filter(in_subquery(events::id, ids)).into_boxed()
            }
            Criterion::ForFeed(user) => {
                let answered = attendees::user_id.eq(*user).and(attendees::schedule.ne(Schedule::Pending));
                let answered = attendees::table.filter(answered).select(attendees::event_id);
                let ids = self.related(UnionAll::default().and(answered), *user, Relation::BelongsOrAdmins, true);
                events::table.filter(in_subquery(events::id, ids)).into_boxed()
            }
            Criterion::Matching(filter) => {
                let joinable = count_comparisons(filter) <= MAX_JOINS;
                let few = joinable && self.is_short();
                events::table.filter(matching(filter, joinable, few)).filter(uncached()).into_boxed()
            }
            Criterion::ChangedAfter(since) => events::table.filter(events::updated_at.gt(*since)).into_boxed(),
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
        match &self.criterion {
            // The ids already limit the rows. The condition that an index on the time serves would make SQLite read all
            // events of the span instead.
            Criterion::OfUser { .. } | Criterion::ForFeed(_) => {
                let query = match self.from {
                    Some(from) => query.filter(events::ends_at.gt(from)),
                    None => query,
                };
                match self.to {
                    Some(to) => query.filter(events::starts_at.lt(to)),
                    None => query,
                }
            }
            _ => during!(query, events, self.from, self.to),
        }
    }

    /// Adds queries for the ids of a user's events. They form a union, because neither database uses its indexes if the
    /// same conditions are joined by `OR`.
    fn related(&self, mut ids: UnionAll, user: DbUuid, relation: Relation, is_active: bool) -> UnionAll {
        if matches!(relation, Relation::Belongs | Relation::BelongsOrAdmins) {
            let groups = group_members::table.filter(group_members::user_id.eq(user)).select(group_members::group_id);
            ids = self.of_groups(ids, || {
                events::table.select(events::id).filter(events::group_id.eq_any(groups)).into_boxed()
            });
            if is_active {
                // A subquery, because with `= EVERYONE` SQLite looks for the long events by group, and this group may
                // have most events.
                let everyone = group_rows::table.find(EVERYONE).select(group_rows::id);
                ids = self.of_groups(ids, || {
                    events::table.select(events::id).filter(events::group_id.eq_any(everyone)).into_boxed()
                });
            }
        }
        if matches!(relation, Relation::Admins | Relation::BelongsOrAdmins) {
            let admins = event_admins::table.filter(event_admins::user_id.eq(user));
            ids = ids.and(admins.select(event_admins::event_id));
        }
        if relation == Relation::Attendees {
            let attends = attendees::user_id.eq(user).and(attendees::schedule.eq(Schedule::Attendance));
            ids = ids.and(attendees::table.filter(attends).select(attendees::event_id));
        }
        ids
    }

    /// Adds the queries for those events of some groups that overlap the span. Those that start late enough are found by
    /// the index on group and start. Earlier ones overlap the span only if they are long, and long events are few.
    fn of_groups(&self, ids: UnionAll, events_of_groups: impl Fn() -> IdQuery) -> UnionAll {
        let query = || match self.to {
            Some(to) => events_of_groups().filter(events::starts_at.lt(to)),
            None => events_of_groups(),
        };
        let Some(from) = self.from else { return ids.and(query()) };
        let (query, earliest) = (|| query().filter(events::ends_at.gt(from)), earliest_start(from));
        ids.and(query().filter(events::starts_at.ge(earliest)))
            .and(query().filter(events::starts_at.lt(earliest)).filter(IsTrue::new(events::is_long)))
    }
}

/// A query for the ids of events.
type IdQuery = IntoBoxed<'static, Select<events::table, events::id>, MultiBackend>;

/// The most comparisons of a filter that PostgreSQL may convert to joins. With more joins, planning takes longer than
/// the query.
const MAX_JOINS: usize = 8;

/// The condition of a `q` filter; `!=` is the complement of `==`.
///
/// A comparison is `id IN (subquery)`, or a correlated `EXISTS`, which is tested row by row. `EXISTS` is better if the
/// selection is limited to `few` rows. But a comparison with `==` that is not below an `||` may itself limit the rows,
/// so it stays an `IN`, from which the planner may start. `joinable` says whether PostgreSQL may convert an `IN` to a
/// join.
fn matching(filter: &Filter, joinable: bool, few: bool) -> Condition {
    match filter {
        Filter::Everything => Box::new(true.into_sql::<Bool>()),
        Filter::And(left, right) => Box::new(matching(left, joinable, few).and(matching(right, joinable, few))),
        Filter::Or(left, right) => {
            let joinable = joinable && !few;
            Box::new(matching(left, joinable, few).or(matching(right, joinable, few)))
        }
        Filter::Compare { attribute, equal, id } => {
            let may_limit_rows = *equal && joinable;
            let equals = if few && !may_limit_rows {
                correlated_condition(*attribute, DbUuid(*id))
            } else {
                subquery_condition(*attribute, DbUuid(*id))
            };
            match (equal, joinable || few) {
                (false, _) => Box::new(not(equals)),
                (true, true) => equals,
                (true, false) => unjoinable(equals),
            }
        }
    }
}

/// The same condition in a form that PostgreSQL does not convert to a join; see [`MAX_JOINS`].
fn unjoinable(condition: Condition) -> Condition {
    Box::new(not(not(condition)))
}

/// A condition that is always true. As raw SQL, it keeps the statement out of the connection's cache of prepared
/// statements, which has no limit: clients choose the text of a `q` filter.
fn uncached() -> SqlLiteral<Bool> {
    sql("1 = 1")
}

fn count_comparisons(filter: &Filter) -> usize {
    match filter {
        Filter::Everything => 0,
        Filter::Compare { .. } => 1,
        Filter::And(left, right) | Filter::Or(left, right) => count_comparisons(left) + count_comparisons(right),
    }
}

/// A comparison with `==` as a subquery for the ids of all matching events, if it needs another table.
fn subquery_condition(attribute: Attribute, id: DbUuid) -> Condition {
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

/// A comparison with `==` as a correlated subquery on the row of one event, if it needs another table.
fn correlated_condition(attribute: Attribute, id: DbUuid) -> Condition {
    match attribute {
        Attribute::User => {
            let answers = attendees::table.filter(attendees::event_id.eq(events::id).and(attendees::user_id.eq(id)));
            Box::new(exists(answers.filter(attendees::schedule.ne(Schedule::Absent))))
        }
        Attribute::Tag => {
            let tags = event_tags::table.filter(event_tags::event_id.eq(events::id).and(event_tags::tag_id.eq(id)));
            Box::new(exists(tags))
        }
        Attribute::Event | Attribute::Group => subquery_condition(attribute, id),
    }
}
