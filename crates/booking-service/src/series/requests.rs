//! What requests for series have.

use std::collections::{BTreeMap, BTreeSet};

use common::{
    input::{Flag, Id, IdSet, Text, bounded_list},
    problem::Violations,
    time::Timestamp,
};
use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use service_kit::{database::types::DbTimestamp, text_enum};
use utoipa::{IntoParams, ToSchema};

use super::{
    creation::NewSeries,
    revision::SeriesChange,
    rule::{MAX_DATES, Rule},
};
use crate::{
    events::{RequestEvent, RequestEventTag, RequestEventTags},
    rooms::out_of_order,
    wall_clock::{CalendarDate, ClockTime, read_from_text},
};

text_enum! {
    /// What happens to dates that cannot be booked.
    pub enum OnConflict {
        /// Nothing is booked.
        Fail = "fail",
        /// The others are booked.
        Skip = "skip",
    }
}

read_from_text! { Rule }

/// Dates to leave out.
#[derive(Debug, Clone, Default)]
pub struct ExcludedDates(Vec<CalendarDate>);

impl Deserr<Violations> for ExcludedDates {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, at: ValuePointerRef<'_>) -> Result<Self, Violations> {
        match value {
            Value::Null => Ok(Self::default()),
            value => bounded_list(value, at, MAX_DATES).map(Self),
        }
    }
}

/// A new series.
#[derive(Debug, Clone, Deserr, ToSchema)]
#[deserr(error = Violations, rename_all = camelCase)]
#[schema(rename_all = "camelCase", example = json!({
    "event": {
        "name": "Rust evening", "description": "Bring a laptop.", "sharedRoom": false,
        "timeStart": "2999-04-02T18:00:00+09:00", "timeEnd": "2999-04-02T20:00:00+09:00",
        "place": "S516", "groupId": "11111111-1111-1111-1111-111111111111", "open": true,
        "admins": ["f4626cad-abe0-5cf0-9f8a-af69cd254c29"], "tags": [{"name": "rust"}]
    },
    "rrule": "FREQ=WEEKLY;COUNT=3", "exdates": [], "onConflict": "fail"
}))]
pub struct RequestEventSeries {
    /// The event; its times are those of the first occurrence.
    event: RequestEvent,
    /// A recurrence rule (RFC 5545) with FREQ (`DAILY`, `WEEKLY`, `MONTHLY`), INTERVAL, BYDAY, BYMONTHDAY, BYSETPOS, WKST,
    /// and COUNT or UNTIL. It has at most 100 dates in 2 years, and the first occurrence is on one of them.
    #[schema(value_type = String, max_length = 300)]
    rrule: Rule,
    /// Dates to leave out.
    #[deserr(default)]
    #[schema(value_type = Option<Vec<chrono::NaiveDate>>, max_items = 100)]
    exdates: ExcludedDates,
    /// `fail` (default): nothing is booked unless all dates can be. `skip`: the others are booked.
    #[deserr(default)]
    #[schema(inline)]
    on_conflict: Option<OnConflict>,
}

impl RequestEventSeries {
    /// The series as [`creation`](super::creation) takes it.
    pub fn into_new(self) -> NewSeries {
        NewSeries {
            draft: self.event.into_draft(),
            rule: self.rrule,
            exdates: self.exdates.0.into_iter().map(|date| date.0).collect::<BTreeSet<_>>(),
            skips_conflicts: self.on_conflict == Some(OnConflict::Skip),
            places: BTreeMap::new(),
        }
    }
}

/// A change of the occurrences of a series. Fields that are left out stay as they are.
#[derive(Debug, Clone, Deserr, ToSchema)]
#[deserr(error = Violations, rename_all = camelCase)]
#[schema(rename_all = "camelCase", example = json!({"name": "Rust night", "startTime": "19:00", "endTime": "21:00"}))]
pub struct RequestEventSeriesUpdate {
    /// Only occurrences that begin at this time or later. Default now.
    #[deserr(default)]
    from: Option<Timestamp>,
    #[deserr(default)]
    #[schema(inline)]
    name: Option<Text<1, 32>>,
    #[deserr(default)]
    #[schema(inline)]
    description: Option<Text<0, 10000>>,
    #[deserr(default)]
    #[schema(inline)]
    place: Option<Text<1, 32>>,
    /// Whether other shared events may use the room at the same time.
    #[deserr(default)]
    shared_room: Option<bool>,
    /// Whether anybody may attend, not only members of the group.
    #[deserr(default)]
    open: Option<bool>,
    #[deserr(default)]
    group_id: Option<Id>,
    #[deserr(default)]
    #[schema(inline)]
    admins: Option<IdSet<1>>,
    /// All tags.
    #[deserr(default)]
    #[schema(value_type = Option<Vec<RequestEventTag>>, max_items = 1000)]
    tags: Option<RequestEventTags>,
    /// When each begins, on the same day.
    #[deserr(default)]
    #[schema(value_type = Option<String>, pattern = r"^([01]?\d|2[0-3]):[0-5]\d$")]
    start_time: Option<ClockTime>,
    /// When each ends, on the same day as before.
    #[deserr(default)]
    #[schema(value_type = Option<String>, pattern = r"^([01]?\d|2[0-3]):[0-5]\d$")]
    end_time: Option<ClockTime>,
    /// The last day of the rule. Later occurrences are deleted, or missing ones added.
    #[deserr(default)]
    #[schema(value_type = Option<chrono::NaiveDate>)]
    until: Option<CalendarDate>,
}

impl RequestEventSeriesUpdate {
    /// The change as [`revision`](super::revision) takes it.
    pub fn into_change(self, include_changed: bool, now: DbTimestamp) -> SeriesChange {
        let Self {
            from,
            name,
            description,
            place,
            shared_room,
            open,
            group_id,
            admins,
            tags,
            start_time,
            end_time,
            until,
        } = self;
        SeriesChange {
            from: from.map_or(now, DbTimestamp),
            include_changed,
            name: name.map(Text::into_inner),
            description: description.map(Text::into_inner),
            place: place.map(Text::into_inner),
            shared: shared_room,
            open,
            group: group_id.map(Into::into),
            admins,
            tags: tags.map(RequestEventTags::into_pairs),
            start: start_time.map(|time| time.0),
            end: end_time.map(|time| time.0),
            until: until.map(|date| date.0),
        }
    }
}

/// A date for a series.
#[derive(Debug, Clone, Copy, Deserr, ToSchema)]
#[deserr(error = Violations, rename_all = camelCase, validate = in_order -> Violations)]
#[schema(rename_all = "camelCase", example = json!({
    "timeStart": "2999-05-07T18:00:00+09:00", "timeEnd": "2999-05-07T20:00:00+09:00"
}))]
pub struct RequestOccurrence {
    time_start: Timestamp,
    time_end: Timestamp,
}

fn in_order(date: RequestOccurrence, at: ValuePointerRef<'_>) -> Result<RequestOccurrence, Violations> {
    if date.time_start < date.time_end { Ok(date) } else { Err(out_of_order(at)) }
}

impl RequestOccurrence {
    /// Its start and end.
    pub fn span(self) -> (DbTimestamp, DbTimestamp) {
        (DbTimestamp(self.time_start), DbTimestamp(self.time_end))
    }
}

/// How to change a series.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations, rename_all = camelCase)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub struct UpdateQuery {
    /// Also the occurrences that were changed by themselves.
    #[deserr(default)]
    #[param(value_type = Option<bool>, nullable = false)]
    pub include_changed: Flag,
    /// Only check the request and change nothing. The answer is that of the change, with status 200.
    #[deserr(default)]
    #[param(value_type = Option<bool>, nullable = false)]
    pub dry_run: Flag,
}

/// Which occurrences to delete.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations, rename_all = camelCase)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub struct DeleteQuery {
    /// Only occurrences that begin at this time or later. Default now.
    #[deserr(default)]
    #[param(nullable = false)]
    pub from: Option<Timestamp>,
}
