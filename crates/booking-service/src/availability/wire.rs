//! The request and the answer of the search for free times.

use chrono::TimeDelta;
use common::{
    input::{Flag, Id, IdSet, Number, parse_text},
    problem::{Problem, Rule, Violations},
    time::{Timestamp, Zoned},
};
use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use serde::Serialize;
use service_kit::{
    database::types::{DbTimestamp, DbUuid},
    error::Error,
};
use utoipa::{IntoParams, ToSchema};

use super::{hours::DailyHours, queries::People};
use crate::wall_clock::read_from_text;

/// The longest span: 31 days, one of which may have 25 hours when the clocks change.
const MAX_SPAN: TimeDelta = TimeDelta::hours(31 * 24 + 1);

/// The most ids in `userIds`.
const MAX_USERS: usize = 200;

/// A time when a room is free, as long as possible within the requested span and hours.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "place": "S516", "roomId": "0198c0de-0000-7000-8000-000000000010", "timeStart": "2026-04-04T18:00:00+09:00",
    "timeEnd": "2026-04-04T21:00:00+09:00", "freeUsers": 11, "busyUsers": 1
}))]
pub struct ResponseFreeTime {
    pub place: String,
    pub room_id: DbUuid,
    pub time_start: Zoned,
    pub time_end: Zoned,
    /// With `groupId` or `userIds`: how many of these users attend no event that overlaps this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub free_users: Option<usize>,
    /// With `groupId` or `userIds`: how many of these users attend an event that overlaps this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub busy_users: Option<usize>,
}

/// Ids separated by commas.
#[derive(Debug, Clone)]
pub struct UserIds(Vec<DbUuid>);

impl Deserr<Violations> for UserIds {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, at: ValuePointerRef<'_>) -> Result<Self, Violations> {
        let text: String = parse_text(value, at, Rule::Invalid)?;
        let ids = text.split(',').map(str::parse::<Id>).collect::<Result<Vec<_>, _>>();
        let ids = ids.map_err(|_| Violations::one(at, Rule::NotAUuid, "must be UUIDs separated by commas"))?;
        let ids = IdSet::<1>::new(ids.into_iter().map(|id| id.0)).into_inner();
        if ids.len() > MAX_USERS {
            return Err(Violations::one(at, Rule::Length, format!("must name {MAX_USERS} users at most")));
        }
        Ok(Self(ids.into_iter().map(DbUuid).collect()))
    }
}

read_from_text! { DailyHours }

/// Which free times to find.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations, rename_all = camelCase)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub struct FindQuery {
    /// The start of the span to search.
    #[param(example = "2026-04-04T00:00:00+09:00")]
    date_begin: Timestamp,
    /// The end of the span to search, at most 31 days and one hour after `dateBegin`: the clocks may change within them.
    #[param(example = "2026-04-11T00:00:00+09:00")]
    date_end: Timestamp,
    /// The least length of a free time in minutes.
    #[param(value_type = i32, minimum = 15, maximum = 1440, example = 60)]
    minutes: Number<15, 1440>,
    /// Find times for a shared event: other shared events may use the room.
    #[deserr(default)]
    #[param(value_type = Option<bool>, nullable = false)]
    pub shared: Flag,
    /// Only rooms that a privileged user has confirmed. Default true.
    #[deserr(default)]
    #[param(value_type = Option<bool>, nullable = false)]
    only_verified: Option<Flag>,
    /// Count the members of this group who attend an event at that time.
    #[deserr(default)]
    #[param(nullable = false)]
    group_id: Option<Id>,
    /// Count those of these users who attend an event at that time. At most 200 different ids, separated by commas.
    #[deserr(default)]
    #[param(value_type = Option<String>, nullable = false)]
    user_ids: Option<UserIds>,
    /// Only times within these hours of the day, `HH:mm-HH:mm` in the club's time zone. An end before the start is on
    /// the next day.
    #[deserr(default)]
    #[param(value_type = Option<String>, nullable = false)]
    pub between: Option<DailyHours>,
}

impl FindQuery {
    /// The span.
    ///
    /// # Errors
    /// 400 for a span that ends before it begins, or is longer than [`MAX_SPAN`].
    pub fn span(&self) -> Result<(DbTimestamp, DbTimestamp), Error> {
        crate::rooms::check_span(Some(self.date_begin), Some(self.date_end))?;
        if self.date_end - self.date_begin > MAX_SPAN {
            let message = "must be 31 days and one hour after dateBegin at most";
            return Err(Problem::parameter("dateEnd", Rule::Range, message).into());
        }
        Ok((DbTimestamp(self.date_begin), DbTimestamp(self.date_end)))
    }

    /// The people, if any.
    ///
    /// # Errors
    /// 400 for both a group and users.
    pub fn people(&self) -> Result<Option<People>, Error> {
        match (self.group_id, &self.user_ids) {
            (Some(_), Some(_)) => {
                Err(Problem::parameter("userIds", Rule::GivenTogether, "must not be given with groupId").into())
            }
            (Some(group), None) => Ok(Some(People::Group(group.into()))),
            (None, users) => Ok(users.clone().map(|users| People::Users(users.0))),
        }
    }

    /// The least length of a free time.
    pub fn length(&self) -> TimeDelta {
        TimeDelta::minutes(self.minutes.get().into())
    }

    /// Whether unverified rooms are left out.
    pub fn only_verified(&self) -> bool {
        self.only_verified.is_none_or(|flag| flag.0)
    }
}
