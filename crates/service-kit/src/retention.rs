//! Removes what is kept for a time only: old rows of the history, and what was deleted more than 30 days ago.

use std::time::Duration;

use actix_web::web::Data;
use chrono::TimeDelta;
use common::time::Timestamp;

use crate::{
    database::{
        AnyConnection, JobOwner,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    history, lease,
    state::AppState,
};

/// How long after its deletion an object can be restored.
pub const RESTORABLE: TimeDelta = TimeDelta::days(30);

/// The lease of the task.
const TASK: &str = "retention";

/// The time between two runs.
const INTERVAL: Duration = Duration::from_mins(10);

/// How long a replica holds the lease after a step.
const LEASE: TimeDelta = TimeDelta::minutes(1);

/// The most rows of each kind that one transaction removes, so that no request waits long for it.
const BATCH: i64 = 200;

/// Removes in small transactions, on one replica at a time, until the service ends.
pub(crate) async fn run(state: Data<AppState>) {
    let me = DbUuid::new();
    loop {
        tokio::time::sleep(INTERVAL).await;
        let mut may_have_more = true;
        while may_have_more {
            let (step, now) = (state.clone(), state.clock.now());
            let removed = state.database.write(JobOwner::Internal, move |conn| {
                let holds_lease = lease::take(conn, TASK, me, DbTimestamp(now), DbTimestamp(now.plus(LEASE)))?;
                if holds_lease { remove(conn, &step, now, BATCH) } else { Ok(0) }
            });
            may_have_more = removed.await.unwrap_or_else(|error| {
                state.database.log_failure("what has expired could not be removed", error);
                0
            }) > 0;
        }
    }
}

/// Removes at most `limit` rows of each kind, and returns how many.
pub fn remove(conn: &mut AnyConnection, state: &AppState, now: Timestamp, limit: i64) -> Result<usize, Error> {
    let oldest = DbTimestamp(now.plus(-TimeDelta::days(state.history_days.into())));
    let rows = history::remove_before(conn, oldest, limit)?;
    Ok(rows + (state.info.purge)(conn, DbTimestamp(now), limit)?)
}
