//! Points in time (contract, "Time"): RFC 3339 in JSON, UTC with microseconds in memory and in the database.

use std::{
    fmt,
    ops::Sub,
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use chrono::{DateTime, Datelike, Offset, TimeDelta, TimeZone, Timelike, Utc};
use chrono_tz::Tz;
use deserr::{DeserializeError, Deserr, ErrorKind, IntoValue, Value, ValueKind, ValuePointerRef, take_cf_content};
use serde::{Serialize, Serializer};

/// A point in time in the years 1 to 9999, as microseconds since 1970-01-01T00:00:00Z. Finer digits of the input are
/// truncated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// 0001-01-01T00:00:00Z: the first instant of the year 1.
const FIRST_MICROS: i64 = -62_135_596_800_000_000;
/// 9999-12-31T23:59:59.999999Z: the last instant of the year 9999.
const LAST_MICROS: i64 = 253_402_300_799_999_999;

impl Timestamp {
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Self = Self(0);

    /// The instant truncated to microseconds, or `None` outside the years 1 to 9999.
    pub fn new(at: DateTime<Utc>) -> Option<Self> {
        Self::from_micros(at.timestamp_micros())
    }

    /// The instant this many microseconds after 1970-01-01T00:00:00Z, or `None` outside the years 1 to 9999.
    pub fn from_micros(micros: i64) -> Option<Self> {
        (FIRST_MICROS..=LAST_MICROS).contains(&micros).then_some(Self(micros))
    }

    /// Microseconds since 1970-01-01T00:00:00Z.
    pub fn micros(self) -> i64 {
        self.0
    }

    /// The instant as chrono's type.
    pub fn utc(self) -> DateTime<Utc> {
        // chrono's range is larger.
        DateTime::from_timestamp_micros(self.0).unwrap_or_default()
    }

    /// This instant moved by `delta`, clamped to the years 1 to 9999.
    pub fn plus(self, delta: TimeDelta) -> Self {
        let micros = delta.num_microseconds().unwrap_or(if delta < TimeDelta::zero() { i64::MIN } else { i64::MAX });
        Self(self.0.saturating_add(micros).clamp(FIRST_MICROS, LAST_MICROS))
    }

    /// The beginning of this instant's day, UTC.
    pub fn midnight(self) -> Self {
        Self(self.0 - self.0.rem_euclid(86_400_000_000))
    }

    /// This instant in the JSON form of a time zone.
    pub fn in_zone(self, zone: Tz) -> Zoned {
        Zoned { at: self, zone }
    }
}

impl Sub for Timestamp {
    type Output = TimeDelta;

    fn sub(self, earlier: Self) -> TimeDelta {
        TimeDelta::microseconds(self.0 - earlier.0)
    }
}

impl FromStr for Timestamp {
    type Err = &'static str;

    /// Parses an RFC 3339 date-time with any offset and up to 9 fractional digits.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.split_once('.').map_or(0, |(_, rest)| rest.bytes().take_while(u8::is_ascii_digit).count());
        let parsed = DateTime::parse_from_rfc3339(text).ok().filter(|_| digits <= 9).map(|at| at.to_utc());
        // chrono takes a second 60 in any minute; leap seconds are at the end of a day of UTC.
        let exists = |at: &DateTime<Utc>| at.nanosecond() < 1_000_000_000 || (at.hour(), at.minute()) == (23, 59);
        parsed.filter(exists).and_then(Self::new).ok_or(if digits > 9 {
            "must have 9 fractional digits at most"
        } else if text.contains(' ') {
            "must be an RFC 3339 date-time without spaces; in a query, write the + of an offset as %2B"
        } else {
            "must be an RFC 3339 date-time, such as 2026-04-01T18:00:00+09:00, within the years 1 to 9999"
        })
    }
}

impl From<Timestamp> for DateTime<Utc> {
    fn from(timestamp: Timestamp) -> Self {
        timestamp.utc()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.in_zone(Tz::UTC).fmt(f)
    }
}

/// UTC with `Z`.
impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.in_zone(Tz::UTC).serialize(serializer)
    }
}

impl<E: DeserializeError> Deserr<E> for Timestamp {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, E> {
        let error = match value {
            Value::String(text) => match text.parse() {
                Ok(at) => return Ok(at),
                Err(message) => ErrorKind::Unexpected { msg: message.to_owned() },
            },
            actual => ErrorKind::IncorrectValueKind { actual, accepted: &[ValueKind::String] },
        };
        Err(take_cf_content(E::error::<V>(None, error, location)))
    }
}

/// A [`Timestamp`] in the JSON form of a time zone: `Z` for UTC, a numeric offset for any other zone, and fractional
/// seconds only when they are not zero. An instant whose local year is outside 1 to 9999 is shown in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zoned {
    at: Timestamp,
    zone: Tz,
}

impl Zoned {
    /// Writes the text into `buffer`. chrono's own writer allocates and takes three times as long, and lists consist of
    /// times to a large part.
    fn write<'b>(&self, buffer: &'b mut [u8; 32]) -> &'b str {
        let utc = self.at.utc().naive_utc();
        // Local mean times, used before standard time, have offsets with seconds, which RFC 3339 cannot express. The
        // offset is rounded down to a minute; the instant stays exact.
        let offset = self.zone.offset_from_utc_datetime(&utc).fix().local_minus_utc().div_euclid(60);
        let local = utc + TimeDelta::minutes(offset.into());
        let is_utc = self.zone == Tz::UTC || !(1..=9999).contains(&local.year());
        let shown = if is_utc { utc } else { local };

        *buffer = *b"0000-00-00T00:00:00.000000+00:00";
        write_digits(&mut buffer[0..4], shown.year().unsigned_abs());
        write_digits(&mut buffer[5..7], shown.month());
        write_digits(&mut buffer[8..10], shown.day());
        write_digits(&mut buffer[11..13], shown.hour());
        write_digits(&mut buffer[14..16], shown.minute());
        write_digits(&mut buffer[17..19], shown.second());
        let micros = utc.and_utc().timestamp_subsec_micros();
        write_digits(&mut buffer[20..26], micros);
        let mut length = match micros {
            0 => 19,
            _ if micros.is_multiple_of(1000) => 23,
            _ => 26,
        };
        if is_utc {
            buffer[length] = b'Z';
            length += 1;
        } else {
            let minutes = offset.unsigned_abs();
            buffer[length] = if offset < 0 { b'-' } else { b'+' };
            write_digits(&mut buffer[length + 1..length + 3], minutes / 60);
            buffer[length + 3] = b':';
            write_digits(&mut buffer[length + 4..length + 6], minutes % 60);
            length += 6;
        }
        str::from_utf8(&buffer[..length]).unwrap_or_default()
    }
}

/// Writes the last decimal digits of a number, as many as `digits` has room for.
fn write_digits(digits: &mut [u8], mut number: u32) {
    for digit in digits.iter_mut().rev() {
        *digit = b"0123456789"[(number % 10) as usize];
        number /= 10;
    }
}

impl fmt::Display for Zoned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.write(&mut [0; 32]))
    }
}

impl Serialize for Zoned {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.write(&mut [0; 32]))
    }
}

/// The source of the current time. Tests move it forward with [`advance`](Self::advance).
#[derive(Debug, Clone)]
pub struct Clock {
    created_at: Instant,
    offset_micros: Arc<AtomicI64>,
    /// The time of a stopped clock, without its offset.
    stopped_at: Option<DateTime<Utc>>,
}

impl Default for Clock {
    fn default() -> Self {
        Self { created_at: Instant::now(), offset_micros: Arc::default(), stopped_at: None }
    }
}

impl Clock {
    /// A clock that only [`advance`](Self::advance) moves, for tests whose result must not depend on their own speed.
    pub fn stopped() -> Self {
        Self { stopped_at: Some(system_time()), ..Self::default() }
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        let offset = TimeDelta::microseconds(self.offset_micros.load(Ordering::Relaxed));
        Timestamp::new(self.stopped_at.unwrap_or_else(system_time) + offset).unwrap_or(Timestamp(0))
    }

    /// The time since this clock was created. It never decreases, even when the system clock is set back.
    pub fn elapsed(&self) -> Duration {
        let offset = u64::try_from(self.offset_micros.load(Ordering::Relaxed)).unwrap_or(0);
        let measured = if self.stopped_at.is_some() { Duration::ZERO } else { self.created_at.elapsed() };
        measured + Duration::from_micros(offset)
    }

    /// Moves this clock and its clones forward by `delta`.
    pub fn advance(&self, delta: TimeDelta) {
        self.offset_micros.fetch_add(delta.num_microseconds().unwrap_or(0), Ordering::Relaxed);
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the system clock")]
fn system_time() -> DateTime<Utc> {
    Utc::now()
}

#[cfg(test)]
mod tests {
    use chrono::SecondsFormat;
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn any_offset_and_up_to_nine_digits_are_read() {
        for text in [
            "2026-04-01T09:00:00Z",
            "2026-04-01T18:00:00+09:00",
            "2026-04-01T09:00:00.0000000Z",
            "2026-04-01T09:00:00.000000999+00:00",
        ] {
            assert_eq!(at(text).to_string(), "2026-04-01T09:00:00Z", "{text}");
        }
        assert_eq!(at("2026-04-01T09:00:00.1234567Z").to_string(), "2026-04-01T09:00:00.123456Z");
    }

    #[test]
    fn other_texts_are_not_timestamps() {
        for text in [
            "",
            "2026-04-01",
            "2026-04-01T09:00:00",
            "2026-04-01T25:00:00Z",
            "2026-02-30T09:00:00Z",
            "2026-04-01T09:00:00.1234567890Z",
            "0000-01-01T00:00:00Z",
            "+12026-04-01T09:00:00Z",
            "2026-04-01T09:00:00Z ",
        ] {
            assert!(text.parse::<Timestamp>().is_err(), "{text}");
        }
    }

    /// RFC 3339, section 5.7.
    #[test]
    fn a_leap_second_is_at_the_end_of_a_day_of_utc() {
        for text in ["2016-12-31T23:59:60Z", "2017-01-01T08:59:60+09:00", "2016-12-31T15:29:60.5-08:30"] {
            assert_eq!(at(text).midnight(), at("2017-01-01T00:00:00Z"), "{text}");
        }
        for text in [
            "2027-01-01T12:30:60.5Z",
            "2016-12-31T23:58:60Z",
            "2016-12-31T23:59:60+09:00",
            "2017-01-01T00:59:60Z",
            "2017-01-01T08:59:61+09:00",
            "9999-12-31T23:59:60Z",
        ] {
            assert!(text.parse::<Timestamp>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_first_and_the_last_second_of_the_range_can_be_read_in_any_zone() {
        for text in ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"] {
            for zone in [Tz::UTC, Tz::Asia__Tokyo, Tz::America__New_York] {
                assert_eq!(at(&at(text).in_zone(zone).to_string()), at(text), "{text} in {zone}");
            }
        }
    }

    #[test]
    fn a_zone_other_than_utc_has_a_numeric_offset() {
        let noon = at("2026-04-01T09:00:00Z");
        assert_eq!(noon.in_zone(Tz::Asia__Tokyo).to_string(), "2026-04-01T18:00:00+09:00");
        assert_eq!(at("2026-01-01T00:00:00Z").in_zone(Tz::Europe__London).to_string(), "2026-01-01T00:00:00+00:00");
        assert_eq!(noon.in_zone(Tz::Europe__London).to_string(), "2026-04-01T10:00:00+01:00");
    }

    #[test]
    fn the_clock_can_be_moved_and_its_clones_follow() {
        let clock = Clock::default();
        let other = clock.clone();
        let before = clock.now();
        other.advance(TimeDelta::days(31));
        assert!(clock.now() >= before.plus(TimeDelta::days(31)));
        assert!(clock.elapsed() >= Duration::from_hours(31 * 24));
    }

    #[test]
    fn a_stopped_clock_moves_only_when_it_is_moved() {
        let clock = Clock::stopped();
        let (before, running) = (clock.now(), Clock::default());
        while running.elapsed() < Duration::from_millis(1) {}
        assert_eq!((clock.now(), clock.elapsed()), (before, Duration::ZERO));
        clock.clone().advance(TimeDelta::seconds(20));
        assert_eq!((clock.now(), clock.elapsed()), (before.plus(TimeDelta::seconds(20)), Duration::from_secs(20)));
    }

    proptest! {
        #[test]
        fn the_output_is_that_of_chrono(
            micros in FIRST_MICROS + 86_400_000_000..=LAST_MICROS - 86_400_000_000,
            digits in 0..=6_u32,
            zone in prop::sample::select(chrono_tz::TZ_VARIANTS.to_vec()),
        ) {
            let unit = 10_i64.pow(digits);
            let instant = Timestamp::from_micros(micros / unit * unit).unwrap();
            let local = instant.utc().with_timezone(&zone).fixed_offset();
            // Others are local mean times.
            if local.offset().local_minus_utc() % 60 == 0 {
                let expected = local.to_rfc3339_opts(SecondsFormat::AutoSi, zone == Tz::UTC);
                prop_assert_eq!(instant.in_zone(zone).to_string(), expected);
            }
        }

        #[test]
        fn the_output_in_any_zone_is_parsed_as_the_same_instant(
            micros in FIRST_MICROS..=LAST_MICROS,
            zone in prop::sample::select(chrono_tz::TZ_VARIANTS.to_vec()),
        ) {
            let instant = Timestamp::from_micros(micros).unwrap();
            let text = instant.in_zone(zone).to_string();
            prop_assert_eq!(at(&text), instant, "{}", text);
            prop_assert_eq!(at(&instant.to_string()), instant);
            prop_assert_eq!(text.find('T'), Some(10));
        }

        #[test]
        fn plus_never_leaves_the_range(micros in FIRST_MICROS..=LAST_MICROS, by in any::<i64>()) {
            let moved = Timestamp::from_micros(micros).unwrap().plus(TimeDelta::microseconds(by));
            prop_assert!((FIRST_MICROS..=LAST_MICROS).contains(&moved.micros()));
        }
    }
}
