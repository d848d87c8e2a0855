//! Candidate slots in requests.

use std::collections::HashSet;

use chrono::Datelike;
use chrono_tz::Tz;
use common::{
    input::bounded_list,
    problem::{Rule, Violations, pointer},
    time::Timestamp,
    typed_time::YEARS,
};
use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use serde_json::json;
use service_kit::database::types::DbTimestamp;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{OneOfBuilder, Ref, RefOr, schema::Schema},
};

use super::changes::{MAX_SLOTS, NewSlot};
use crate::{
    rooms::out_of_order,
    wall_clock::{CalendarDate, ClockTime, instant},
};

/// A proposed span of time: on one date in the club's time zone, or from one instant to another.
#[derive(Debug, Clone, Copy)]
pub enum RequestCandidateSlot {
    /// Wall-clock times of one day.
    OnDate {
        /// The day.
        date: CalendarDate,
        /// The start.
        start: ClockTime,
        /// The end, exclusive.
        end: ClockTime,
    },
    /// Two instants.
    Span(NewSlot),
}

/// The fields of both forms.
#[derive(Deserr)]
#[deserr(error = Violations, rename_all = camelCase)]
struct SlotFields {
    #[deserr(default)]
    date: Option<CalendarDate>,
    #[deserr(default)]
    start_time: Option<ClockTime>,
    #[deserr(default)]
    end_time: Option<ClockTime>,
    #[deserr(default)]
    time_start: Option<Timestamp>,
    #[deserr(default)]
    time_end: Option<Timestamp>,
}

impl Deserr<Violations> for RequestCandidateSlot {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, at: ValuePointerRef<'_>) -> Result<Self, Violations> {
        let fields = SlotFields::deserialize_from_value(value, at)?;
        let mut violations = Violations::default();
        let has_date = fields.date.is_some() || fields.start_time.is_some() || fields.end_time.is_some();
        let has_span = fields.time_start.is_some() || fields.time_end.is_some();
        let required: &[(&str, bool)] = if has_span {
            &[("timeStart", fields.time_start.is_some()), ("timeEnd", fields.time_end.is_some())]
        } else {
            &[
                ("date", fields.date.is_some()),
                ("startTime", fields.start_time.is_some()),
                ("endTime", fields.end_time.is_some()),
            ]
        };
        for (name, _) in required.iter().filter(|(_, is_given)| !is_given) {
            violations.push(pointer(at.push_key(name)), Rule::Required, "is required");
        }
        if has_date && has_span {
            let message = "must have date, startTime and endTime, or timeStart and timeEnd, not both";
            violations.push(pointer(at), Rule::DateOrSpan, message);
        }
        let slot = match fields {
            SlotFields { date: Some(date), start_time: Some(start), end_time: Some(end), .. } if !has_span => {
                if start >= end {
                    violations.push(pointer(at.push_key("endTime")), Rule::OutOfOrder, "must be after startTime");
                }
                Some(Self::OnDate { date, start, end })
            }
            SlotFields { time_start: Some(start), time_end: Some(end), .. } => {
                if start >= end {
                    violations.0.extend(out_of_order(at).0);
                }
                Some(Self::Span(NewSlot { starts_at: DbTimestamp(start), ends_at: DbTimestamp(end) }))
            }
            _ => None,
        };
        slot.filter(|_| violations.0.is_empty()).ok_or(violations)
    }
}

/// A slot on one date in the club's time zone.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase", example = json!({"date": "2027-04-04", "startTime": "18:00", "endTime": "20:00"}))]
#[expect(dead_code, reason = "only for the OpenAPI document")]
struct RequestCandidateSlotOnDate {
    #[schema(format = Date)]
    date: String,
    /// `HH:mm`; the hour may have one digit.
    #[schema(pattern = r"^([01]?[0-9]|2[0-3]):[0-5][0-9]$")]
    start_time: String,
    /// After startTime.
    #[schema(pattern = r"^([01]?[0-9]|2[0-3]):[0-5][0-9]$")]
    end_time: String,
}

/// A slot between two instants, which may be on different dates.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase", example = json!({
    "timeStart": "2027-04-04T22:00:00+09:00", "timeEnd": "2027-04-05T02:00:00+09:00"
}))]
#[expect(dead_code, reason = "only for the OpenAPI document")]
struct RequestCandidateSlotSpan {
    time_start: chrono::DateTime<chrono::Utc>,
    time_end: chrono::DateTime<chrono::Utc>,
}

impl PartialSchema for RequestCandidateSlot {
    fn schema() -> RefOr<Schema> {
        OneOfBuilder::new()
            .item(Ref::from_schema_name("RequestCandidateSlotOnDate"))
            .item(Ref::from_schema_name("RequestCandidateSlotSpan"))
            .description(Some("On one date in the club's time zone, or from one instant to another."))
            .examples([json!({"date": "2027-04-04", "startTime": "18:00", "endTime": "20:00"})])
            .into()
    }
}

impl ToSchema for RequestCandidateSlot {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push(("RequestCandidateSlotOnDate".to_owned(), RequestCandidateSlotOnDate::schema()));
        schemas.push(("RequestCandidateSlotSpan".to_owned(), RequestCandidateSlotSpan::schema()));
    }
}

/// `MIN` to 100 slots.
#[derive(Debug, Clone, Default)]
pub struct RequestSlots<const MIN: usize>(Vec<RequestCandidateSlot>);

impl<const MIN: usize> Deserr<Violations> for RequestSlots<MIN> {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, at: ValuePointerRef<'_>) -> Result<Self, Violations> {
        let slots = match value {
            Value::Null if MIN == 0 => Vec::new(),
            value => bounded_list(value, at, MAX_SLOTS)?,
        };
        if slots.len() < MIN {
            return Err(Violations::one(at, Rule::Length, format!("must have {MIN} to {MAX_SLOTS} elements")));
        }
        Ok(Self(slots))
    }
}

impl<const MIN: usize> RequestSlots<MIN> {
    /// The slots as instants; `field` is the pointer of the list.
    ///
    /// # Errors
    /// For duplicate slots, dates outside of [`YEARS`], and local times that the clocks skip.
    pub fn to_slots(&self, field: &str, zone: Tz) -> Result<Vec<NewSlot>, Violations> {
        let (mut slots, mut distinct, mut violations) = (Vec::new(), HashSet::new(), Violations::default());
        for (n, slot) in self.0.iter().enumerate() {
            let slot = match *slot {
                RequestCandidateSlot::Span(slot) => Some(slot),
                RequestCandidateSlot::OnDate { date, .. } if !YEARS.contains(&date.0.year()) => {
                    violations.push(format!("{field}/{n}/date"), Rule::Range, "must be in the years 1970 to 9998");
                    None
                }
                RequestCandidateSlot::OnDate { date, start, end } => {
                    let mut at = |time: ClockTime, name: &str| {
                        let at = instant(date.0, time.0, zone);
                        if at.is_none() {
                            let message = "is no time on this date: the clocks skip it";
                            violations.push(format!("{field}/{n}/{name}"), Rule::NonexistentTime, message);
                        }
                        at.map(DbTimestamp)
                    };
                    let (start, end) = (at(start, "startTime"), at(end, "endTime"));
                    start.zip(end).map(|(starts_at, ends_at)| NewSlot { starts_at, ends_at })
                }
            };
            let Some(slot) = slot else { continue };
            if !distinct.insert((slot.starts_at, slot.ends_at)) {
                violations.push(format!("{field}/{n}"), Rule::Duplicate, "is in the list already");
            }
            slots.push(slot);
        }
        if violations.0.is_empty() { Ok(slots) } else { Err(violations) }
    }
}
