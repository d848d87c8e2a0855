//! Selections of events, and their conversion into queries.

use chrono::TimeDelta;
use diesel::{
    dsl::{IntoBoxed, Select, exists, not},
    prelude::*,
    sql_types::Bool,
};
use service_kit::{
    database::{
        MultiBackend,
        types::{DbTimestamp, DbUuid},
    },
    text_enum,
};

use super::{
    filter::{Attribute, Filter},
    search::{Condition, Word},
};
use crate::{
    expressions::{IsTrueByRow, UnionAll, in_subquery, uncached},
    groups::EVERYONE,
    period_filter::{Lengths, earliest_start},
    schedule::Schedule,
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

/// A query for the ids of the events that a user attends or is invited to.
macro_rules! of_attendee {
    ($user:expr) => {
        attendees::table
            .filter(attendees::user_id.eq($user).and(attendees::schedule.ne(Schedule::Absent)))
            .select(attendees::event_id)
    };
}

/// A query for the ids of the events with a tag.
macro_rules! of_tag {
    ($tag:expr) => {
        event_tags::table.filter(event_tags::tag_id.eq($tag)).select(event_tags::event_id)
    };
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
        /// Whether the user administers so many events that they are looked for among those of the span.
        by_span: bool,
    },
    /// The events that a user belongs to, administers or has answered, for the feed of an active user.
    ForFeed(DbUuid),
    /// The events that match a `q` filter.
    Matching(Filter),
    /// The events created, changed or deleted after this time.
    ChangedAfter(DbTimestamp),
    /// The events of a series.
    OfSeries(DbUuid),
    /// The events with these ids, at most a thousand.
    These(Vec<DbUuid>),
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
    /// Only events that contain all of these.
    pub words: Vec<Word>,
    /// Only events of these lengths.
    pub lengths: Lengths,
    /// Only events up to this one, by start and id.
    pub until: Option<(DbTimestamp, DbUuid)>,
}

impl Selection {
    /// These events without those that are deleted, at any time.
    pub fn new(criterion: Criterion) -> Self {
        let (changed_after, words, lengths) = (None, Vec::new(), Lengths::All);
        Self { criterion, from: None, to: None, changed_after, deleted: Deleted::No, words, lengths, until: None }
    }

    /// Restricts the selection to events that overlap a span. Either end may be missing.
    pub fn between(self, (from, to): (Option<DbTimestamp>, Option<DbTimestamp>)) -> Self {
        Self { from, to, ..self }
    }

    /// With a time, restricts the selection to events created, changed or deleted after it, and includes deleted
    /// events: the changes that a client with a copy needs.
    pub fn since(self, changed_after: Option<DbTimestamp>) -> Self {
        match changed_after {
            Some(_) => Self { changed_after, deleted: Deleted::All, ..self },
            None => self,
        }
    }

    /// Restricts the selection to events that contain all words of a search.
    pub fn containing(self, words: Vec<Word>) -> Self {
        Self { words, ..self }
    }

    /// The events with these ids, at most a thousand, that are still shown. They have been selected before.
    pub fn these(&self, ids: Vec<DbUuid>) -> Self {
        Self { deleted: self.deleted, ..Self::new(Criterion::These(ids)) }
    }

    fn is_unbounded(&self) -> bool {
        self.from.is_none() && self.to.is_none() && self.changed_after.is_none()
    }

    /// Whether the events are found by a span, and not by something narrower.
    pub(super) fn is_of_span(&self) -> bool {
        let is_narrower = match &self.criterion {
            Criterion::All | Criterion::ChangedAfter(_) => false,
            Criterion::Matching(filter) => Bound::of(filter).is_some(),
            _ => true,
        };
        !is_narrower && (self.from.is_some() || self.to.is_some())
    }

    /// Whether the selection is limited to a span of at most a year.
    fn is_short(&self) -> bool {
        self.from.zip(self.to).is_some_and(|(from, to)| *to - *from <= TimeDelta::days(366))
    }

    /// The query for them, without an order.
    pub fn query(&self) -> events::BoxedQuery<'static, MultiBackend> {
        let query = match &self.criterion {
            Criterion::All if self.is_unbounded() => events::table.filter(readable_in_list_order!(events)).into_boxed(),
            Criterion::All => events::table.into_boxed(),
            Criterion::InRoom(room) => events::table.filter(events::room_id.eq(*room)).into_boxed(),
            Criterion::OfGroup(group) if self.from.is_none() => {
                events::table.filter(events::group_id.eq(*group)).into_boxed()
            }
            Criterion::OfGroup(group) => with_ids(self.of_group(UnionAll::default(), *group)),
            Criterion::OfUser { user, relation, is_active, by_span } => {
                with_ids(self.related(*user, *relation, *is_active, *by_span))
            }
            Criterion::ForFeed(user) => {
                let answered = attendees::user_id.eq(*user).and(attendees::schedule.ne(Schedule::Pending));
                let answered = attendees::table.filter(answered).select(attendees::event_id);
                with_ids(self.related(*user, Relation::BelongsOrAdmins, true, false).and(answered))
            }
            Criterion::Matching(filter) => match Bound::of(filter) {
                Some(bound) => {
                    let ids = bound.comparisons.into_iter();
                    let ids = ids.fold(UnionAll::default(), |ids, (attribute, id)| self.equal(ids, attribute, id));
                    let query = with_ids(ids).filter(uncached());
                    match bound.rest {
                        Some(rest) => query.filter(unjoinable(rest)),
                        None => query,
                    }
                }
                None => events::table.filter(condition(filter, self.is_short())).filter(uncached()).into_boxed(),
            },
            Criterion::ChangedAfter(since) => events::table.filter(events::updated_at.gt(*since)).into_boxed(),
            Criterion::OfSeries(series) => events::table.filter(events::series_id.eq(*series)).into_boxed(),
            Criterion::These(ids) => events::table.filter(events::id.eq_any(ids.clone())).into_boxed(),
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
        let query = self.words.iter().fold(query, |query, word| query.filter(word.condition()).filter(uncached()));
        if self.is_of_span() {
            during!(query, events, self.from, self.to, self.lengths)
        } else {
            // The condition that an index on the time serves would make SQLite read all events of the span instead. A
            // tag may have more events than the span, so PostgreSQL chooses by its statistics.
            during!(query, events, self.from, self.to, self.lengths, IsFalseByRow, IsTrueByRow)
        }
    }

    /// The queries for the ids of a user's events. They form a union, because neither database uses its indexes if the
    /// same conditions are joined by `OR`.
    fn related(&self, user: DbUuid, relation: Relation, is_active: bool, by_span: bool) -> UnionAll {
        let mut ids = UnionAll::default();
        if matches!(relation, Relation::Belongs | Relation::BelongsOrAdmins) {
            let groups = group_members::table.filter(group_members::user_id.eq(user)).select(group_members::group_id);
            ids = self.of_groups(ids, || {
                events::table.select(events::id).filter(events::group_id.eq_any(groups)).into_boxed()
            });
            if is_active {
                ids = self.of_group(ids, EVERYONE);
            }
        }
        if matches!(relation, Relation::Admins | Relation::BelongsOrAdmins) {
            let admins = event_admins::table.filter(event_admins::user_id.eq(user));
            ids = if by_span {
                // With `EXISTS`, PostgreSQL would join all rows of the user.
                let admin = admins.filter(event_admins::event_id.eq(events::id)).select(event_admins::user_id);
                let all = events::table.select(events::id).filter(admin.single_value().is_not_null()).into_boxed();
                ids.and(during!(all, events, self.from, self.to))
            } else {
                ids.and(admins.select(event_admins::event_id))
            };
        }
        if relation == Relation::Attendees {
            let attends = attendees::user_id.eq(user).and(attendees::schedule.eq(Schedule::Attendance));
            ids = ids.and(attendees::table.filter(attends).select(attendees::event_id));
        }
        ids
    }

    /// Adds the queries for those events that are equal to, or have, what a comparison of a filter names.
    fn equal(&self, ids: UnionAll, attribute: Attribute, id: DbUuid) -> UnionAll {
        match attribute {
            Attribute::Event => ids.and(events::table.find(id).select(events::id)),
            Attribute::Group => self.of_group(ids, id),
            Attribute::User => ids.and(of_attendee!(id)),
            Attribute::Tag => ids.and(of_tag!(id)),
            Attribute::Series => ids.and(events::table.select(events::id).filter(events::series_id.eq(id))),
        }
    }

    /// Adds the queries for those events of a group that overlap the span.
    fn of_group(&self, ids: UnionAll, group: DbUuid) -> UnionAll {
        self.of_groups(ids, || events::table.select(events::id).filter(events::group_id.eq(group)).into_boxed())
    }

    /// Adds the queries for those events of some groups that overlap the span. Those that start late enough are found by
    /// the index on group and start. Earlier ones overlap the span only if they are long; those have an index of their own.
    fn of_groups(&self, ids: UnionAll, events_of_groups: impl Fn() -> IdQuery) -> UnionAll {
        let query = || match self.to {
            Some(to) => events_of_groups().filter(events::starts_at.lt(to)),
            None => events_of_groups(),
        };
        let Some(from) = self.from else { return ids.and(query()) };
        let (query, earliest) = (|| query().filter(events::ends_at.gt(from)), earliest_start(from));
        ids.and(query().filter(events::starts_at.ge(earliest)))
            .and(query().filter(events::starts_at.lt(earliest)).filter(IsTrueByRow::new(events::is_long)))
    }
}

/// A query for the ids of events.
type IdQuery = IntoBoxed<'static, Select<events::table, events::id>, MultiBackend>;

/// The events with these ids.
fn with_ids(ids: UnionAll) -> events::BoxedQuery<'static, MultiBackend> {
    events::table.filter(in_subquery(events::id, ids)).into_boxed()
}

/// A part of a filter from which a search starts.
struct Bound {
    /// At least one of these comparisons with `==` holds for every event that matches the filter.
    comparisons: Vec<(Attribute, DbUuid)>,
    /// The other conditions of the filter, to be checked for each of those events.
    rest: Option<Condition>,
}

impl Bound {
    /// The narrowest bound of a filter. It has none if events match that no comparison with `==` names.
    fn of(filter: &Filter) -> Option<Self> {
        match filter {
            Filter::Everything | Filter::Compare { equal: false, .. } => None,
            Filter::Compare { attribute, id, .. } => {
                Some(Self { comparisons: vec![(*attribute, DbUuid(*id))], rest: None })
            }
            Filter::And(left, right) => {
                let (bound, other) = match (Self::of(left), Self::of(right)) {
                    (Some(a), Some(b)) if b.width() < a.width() => (b, left),
                    (Some(bound), _) => (bound, right),
                    (None, bound) => (bound?, left),
                };
                let other = condition(other, true);
                let rest: Condition = match bound.rest {
                    Some(rest) => Box::new(rest.and(other)),
                    None => other,
                };
                Some(Self { rest: Some(rest), ..bound })
            }
            Filter::Or(left, right) => {
                let (a, b) = (Self::of(left)?, Self::of(right)?);
                let is_complete = a.rest.is_none() && b.rest.is_none();
                let rest = (!is_complete).then(|| condition(filter, true));
                Some(Self { comparisons: [a.comparisons, b.comparisons].concat(), rest })
            }
        }
    }

    /// Less for a bound that presumably has fewer events.
    fn width(&self) -> (Option<u8>, usize) {
        let width = |(attribute, _): &(Attribute, DbUuid)| match attribute {
            Attribute::Event => 0,
            Attribute::User | Attribute::Series => 1,
            Attribute::Tag => 2,
            // The everyone group may have most events.
            Attribute::Group => 3,
        };
        (self.comparisons.iter().map(width).max(), self.comparisons.len())
    }
}

/// The condition of a `q` filter; `!=` is the complement of `==`. For `few` events, each comparison is checked row by row
/// (a correlated `EXISTS`); otherwise it is `id IN (subquery)`.
fn condition(filter: &Filter, few: bool) -> Condition {
    match filter {
        Filter::Everything => Box::new(true.into_sql::<Bool>()),
        Filter::And(left, right) => Box::new(condition(left, few).and(condition(right, few))),
        Filter::Or(left, right) => Box::new(condition(left, few).or(condition(right, few))),
        Filter::Compare { attribute, equal, id } => {
            let equals = if few {
                correlated_condition(*attribute, DbUuid(*id))
            } else {
                subquery_condition(*attribute, DbUuid(*id))
            };
            if *equal { equals } else { Box::new(not(equals)) }
        }
    }
}

/// The same condition in a form that PostgreSQL does not convert to joins. With many joins, planning takes longer than
/// the query.
fn unjoinable(condition: Condition) -> Condition {
    Box::new(not(not(condition)))
}

/// A comparison with `==` as a subquery for the ids of all matching events, if it needs another table.
fn subquery_condition(attribute: Attribute, id: DbUuid) -> Condition {
    match attribute {
        Attribute::Event => Box::new(events::id.eq(id)),
        Attribute::Group => Box::new(events::group_id.eq(id)),
        Attribute::User => Box::new(events::id.eq_any(of_attendee!(id))),
        Attribute::Tag => Box::new(events::id.eq_any(of_tag!(id))),
        // Never NULL, so that `!=` is the complement.
        Attribute::Series => Box::new(events::series_id.is_not_null().and(events::series_id.assume_not_null().eq(id))),
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
        Attribute::Event | Attribute::Group | Attribute::Series => subquery_condition(attribute, id),
    }
}
