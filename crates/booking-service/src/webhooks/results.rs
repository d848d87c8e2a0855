//! What an attempt to send has led to.

use chrono::{DateTime, TimeDelta, Utc};
use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
};

use super::{
    changes::switch_off,
    kinds::{Status, WhyOff},
    outbox::insert,
    preparation::Prepared,
    queries::Webhook,
};
use crate::schema::{deliveries, webhooks};

/// The times between attempts. After the last one a delivery has failed.
const DELAYS: [TimeDelta; 9] = [
    TimeDelta::seconds(5),
    TimeDelta::minutes(5),
    TimeDelta::minutes(30),
    TimeDelta::hours(2),
    TimeDelta::hours(5),
    TimeDelta::hours(10),
    TimeDelta::hours(14),
    TimeDelta::hours(20),
    TimeDelta::hours(24),
];

/// Attempts are later by this share of the delay at most, so that they are not all at once after an outage.
const JITTER: f64 = 0.2;

/// After so long without a success a webhook is switched off.
const LONGEST_FAILURE: TimeDelta = TimeDelta::weeks(2);

/// How long deliveries are kept.
const KEPT: TimeDelta = TimeDelta::days(30);

/// The result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The status of the answer, if there is one.
    pub status: Option<u16>,
    /// The start of the answer, or why there is none.
    pub answer: String,
    /// The value of `Retry-After`.
    pub retry_after: Option<String>,
}

impl Outcome {
    /// Whether the receiver has accepted the delivery.
    pub fn is_success(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }

    /// When the receiver wants the next attempt (RFC 9110: seconds, or a date).
    fn retry_after(&self, now: DateTime<Utc>) -> Option<TimeDelta> {
        let text = self.retry_after.as_deref()?.trim();
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Some(TimeDelta::seconds(text.parse().unwrap_or(u32::MAX).into()));
        }
        Some(DateTime::parse_from_rfc2822(text).ok()?.to_utc() - now)
    }

    /// The time until the next attempt after this many; `None` if there is none. `random` is from 0 to 1.
    fn delay(&self, attempts: i16, now: DateTime<Utc>, random: f64) -> Option<TimeDelta> {
        let delay = *usize::try_from(attempts).ok().and_then(|number| DELAYS.get(number.checked_sub(1)?))?;
        #[expect(clippy::cast_possible_truncation, reason = "at most a fifth of a day in milliseconds")]
        let jitter = TimeDelta::milliseconds((delay.as_seconds_f64() * 1000.0 * JITTER * random) as i64);
        let longest = DELAYS[DELAYS.len() - 1];
        Some((delay + jitter).max(self.retry_after(now).unwrap_or_default().min(longest)))
    }
}

/// What an attempt has led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// The receiver has accepted the delivery.
    Delivered,
    /// It is sent again later.
    Later,
    /// It is not sent again.
    Failed,
    /// The webhook of this name has been switched off.
    SwitchedOff(String, WhyOff),
}

/// Postpones a delivery, and later ones about the same object, which follow it.
fn postpone(conn: &mut AnyConnection, prepared: &Prepared, due_at: DbTimestamp) -> Result<(), Error> {
    let waiting = deliveries::table
        .filter(deliveries::webhook_id.eq(prepared.webhook))
        .filter(deliveries::object_id.eq(prepared.object))
        .filter(deliveries::status.eq(Status::Waiting))
        .filter(deliveries::id.ge(prepared.id))
        .filter(deliveries::due_at.lt(due_at));
    diesel::update(waiting).set(deliveries::due_at.eq(due_at)).execute(conn)?;
    Ok(())
}

/// Notes the later deliveries that a delivery makes superfluous, also those that have not been inserted.
fn merge(conn: &mut AnyConnection, prepared: &Prepared) -> Result<(), Error> {
    if prepared.merged.is_empty() {
        return Ok(());
    }
    insert(conn, &prepared.merged)?;
    let causes = prepared.merged.iter().map(|new| &new.cause);
    let merged = deliveries::table
        .filter(deliveries::webhook_id.eq(prepared.webhook))
        .filter(deliveries::cause.eq_any(causes))
        .filter(deliveries::status.eq(Status::Waiting));
    diesel::update(merged).set(deliveries::status.eq(Status::Merged)).execute(conn)?;
    Ok(())
}

/// Notes that a delivery is not sent now: it waits until this time, or there is nothing to send.
pub fn record_unsent(
    conn: &mut AnyConnection,
    prepared: &Prepared,
    wait_until: Option<DbTimestamp>,
) -> Result<(), Error> {
    let waiting = deliveries::table.find(prepared.id).filter(deliveries::status.eq(Status::Waiting));
    let status = wait_until.is_none().then_some(deliveries::status.eq(Status::Dropped));
    diesel::update(waiting)
        .set((wait_until.map(|at| deliveries::due_at.eq(at)), status, deliveries::kind.eq(prepared.kind)))
        .execute(conn)?;
    merge(conn, prepared)
}

/// Notes the result of an attempt to send this body.
pub fn record(
    conn: &mut AnyConnection,
    prepared: &Prepared,
    body: Option<&str>,
    outcome: &Outcome,
    now: DbTimestamp,
) -> Result<Effect, Error> {
    let attempts = prepared.attempts.saturating_add(1);
    let delay = if outcome.is_success() { None } else { outcome.delay(attempts, now.utc(), rand::random()) };
    let (status, effect) = match (outcome.is_success(), delay) {
        (true, _) => (Status::Delivered, Effect::Delivered),
        (false, Some(_)) => (Status::Waiting, Effect::Later),
        (false, None) => (Status::Failed, Effect::Failed),
    };
    let waiting = deliveries::table.find(prepared.id).filter(deliveries::status.eq(Status::Waiting));
    diesel::update(waiting)
        .set((
            deliveries::status.eq(status),
            deliveries::kind.eq(prepared.kind),
            deliveries::body.eq(body),
            deliveries::attempts.eq(attempts),
            deliveries::tried_at.eq(now),
            deliveries::answer_status.eq(outcome.status.and_then(|status| i16::try_from(status).ok())),
            deliveries::answer.eq(&outcome.answer),
        ))
        .execute(conn)?;
    merge(conn, prepared)?;
    if let Some(delay) = delay {
        postpone(conn, prepared, DbTimestamp(now.plus(delay)))?;
    }
    let row = webhooks::table.find(prepared.webhook).filter(webhooks::is_on).select(Webhook::as_select()).first(conn);
    let Some(row): Option<Webhook> = row.optional()? else { return Ok(effect) };
    let failing_since = if outcome.is_success() { None } else { row.failing_since.or(Some(now)) };
    if failing_since != row.failing_since {
        diesel::update(webhooks::table.find(prepared.webhook))
            .set(webhooks::failing_since.eq(failing_since))
            .execute(conn)?;
    }
    let why = if outcome.status == Some(410) {
        Some(WhyOff::Gone)
    } else {
        failing_since.filter(|since| since.plus(LONGEST_FAILURE) <= *now).map(|_| WhyOff::Failing)
    };
    let Some(why) = why else { return Ok(effect) };
    switch_off(conn, prepared.webhook, Some(why))?;
    Ok(Effect::SwitchedOff(row.name, why))
}

/// Removes deliveries that are too old, at most `limit`, and returns how many.
pub fn remove_old(conn: &mut AnyConnection, now: DbTimestamp, limit: i64) -> Result<usize, Error> {
    let oldest = DbTimestamp(now.plus(-KEPT));
    let old = deliveries::table.filter(deliveries::at.lt(oldest)).order(deliveries::at).limit(limit);
    let old: Vec<DbUuid> = old.select(deliveries::id).load(conn)?;
    if old.is_empty() {
        return Ok(0);
    }
    Ok(diesel::delete(deliveries::table.filter(deliveries::id.eq_any(old))).execute(conn)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(retry_after: Option<&str>) -> Outcome {
        Outcome { status: Some(503), answer: String::new(), retry_after: retry_after.map(str::to_owned) }
    }

    #[test]
    fn attempts_are_ever_rarer_and_end() {
        let now = "2026-04-01T00:00:00Z".parse().unwrap();
        let seconds = |attempts, random| refused(None).delay(attempts, now, random).map(|delay| delay.num_seconds());
        assert_eq!((seconds(1, 0.0), seconds(1, 1.0), seconds(2, 0.0)), (Some(5), Some(6), Some(300)));
        assert_eq!((seconds(9, 0.5), seconds(10, 0.0), seconds(0, 0.0)), (Some(86400 * 11 / 10), None, None));
    }

    #[test]
    fn the_receiver_may_ask_for_more_time() {
        let now = "2026-04-01T00:00:00Z".parse().unwrap();
        let seconds = |text| refused(Some(text)).delay(1, now, 0.0).map(|delay| delay.num_seconds());
        for (text, expected) in [
            ("120", 120),
            ("1", 5),
            ("Wed, 01 Apr 2026 00:10:00 GMT", 600),
            ("Tue, 31 Mar 2026 00:10:00 GMT", 5),
            ("99999999", 86400),
            ("99999999999999999999", 86400),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 86400),
            ("soon", 5),
            ("", 5),
            ("-1", 5),
        ] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
    }
}
