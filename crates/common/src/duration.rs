//! A span of time that may still be going on (contract, portfolio "Types": Duration).

use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    problem::{Rule, Violations},
    time::Timestamp,
};

/// A half-open span of time, `[since, until)`. Without `until` it is still going on. `until` may equal `since`; such a
/// span contains no instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
pub struct Duration {
    /// When it begins.
    since: Timestamp,
    /// When it ends; absent while it is going on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    until: Option<Timestamp>,
}

impl Duration {
    /// The span, or `None` when `until` is before `since`.
    pub fn new(since: Timestamp, until: Option<Timestamp>) -> Option<Self> {
        until.is_none_or(|until| until >= since).then_some(Self { since, until })
    }

    /// When it begins.
    pub fn since(self) -> Timestamp {
        self.since
    }

    /// When it ends, if it does.
    pub fn until(self) -> Option<Timestamp> {
        self.until
    }

    /// Whether the instant is in the span.
    pub fn contains(self, at: Timestamp) -> bool {
        self.since <= at && self.until.is_none_or(|until| at < until)
    }

    /// Whether the spans have an instant in common.
    pub fn overlaps(self, other: Self) -> bool {
        let start = self.since.max(other.since);
        self.contains(start) && other.contains(start)
    }
}

/// The violation `out-of-order` of the span at this place: `until` is before `since`.
pub fn out_of_order(at: ValuePointerRef<'_>) -> Violations {
    Violations::one(at.push_key("until"), Rule::OutOfOrder, "must not be before since")
}

impl Deserr<Violations> for Duration {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, at: ValuePointerRef<'_>) -> Result<Self, Violations> {
        #[derive(Deserr)]
        #[deserr(error = Violations)]
        struct Fields {
            since: Timestamp,
            #[deserr(default)]
            until: Option<Timestamp>,
        }
        let Fields { since, until } = Fields::deserialize_from_value(value, at)?;
        Self::new(since, until).ok_or_else(|| out_of_order(at))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_micros(second * 1_000_000).unwrap()
    }

    fn span() -> impl Strategy<Value = Duration> {
        (0..20_i64, prop::option::of(0..20_i64))
            .prop_map(|(since, length)| Duration::new(at(since), length.map(|length| at(since + length))).unwrap())
    }

    #[test]
    fn json_is_utc_without_a_missing_end() {
        let read = |body| deserr::deserialize::<Duration, serde_json::Value, Violations>(body);
        let span = read(json!({"since": "2026-04-01T18:00:00+09:00"})).unwrap();
        assert_eq!(serde_json::to_value(span).unwrap(), json!({"since": "2026-04-01T09:00:00Z"}));
        let wrong = read(json!({"since": "2026-04-01T00:00:00Z", "until": "2026-03-01T00:00:00Z"})).unwrap_err();
        assert_eq!(serde_json::to_value(&wrong.0).unwrap()[0]["pointer"], "/until");
    }

    proptest! {
        #[test]
        fn spans_agree_with_the_set_of_their_seconds(a in span(), b in span()) {
            let both = (0..50).any(|second| a.contains(at(second)) && b.contains(at(second)));
            prop_assert_eq!(a.overlaps(b), both);
            prop_assert_eq!(a.overlaps(b), b.overlaps(a));
        }

        #[test]
        fn until_is_not_before_since(since in 0..20_i64, until in 0..20_i64) {
            prop_assert_eq!(Duration::new(at(since), Some(at(until))).is_some(), since <= until);
            let open = Duration::new(at(since), None).unwrap();
            prop_assert!(open.contains(at(since + 1_000)) && !open.contains(at(since - 1)));
        }
    }
}
