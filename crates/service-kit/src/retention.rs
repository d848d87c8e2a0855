//! The background task that removes what is kept for a time only: old rows of the history, and what was deleted more
//! than 30 days ago.
//!
//! SQLite has one writer, so each transaction is short and a pause follows. What is removed is searched in transactions
//! that only read, page by page, so an object that something refers to is looked at once in a run.

use std::time::Duration;

use actix_web::web::Data;
use chrono::TimeDelta;

use crate::{
    database::{
        AnyConnection, JobOwner,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    lease,
    removal::{first_place, remove_history},
    state::AppState,
};

/// How long after its deletion an object can be restored.
pub const RESTORABLE: TimeDelta = TimeDelta::days(30);

/// The lease of the task.
const TASK: &str = "retention";

/// The time between two runs.
const INTERVAL: Duration = Duration::from_mins(10);

/// How long a replica holds the lease after a transaction.
const LEASE: TimeDelta = TimeDelta::minutes(1);

/// The pause after each transaction: writes wait for one of a hundred at most.
const PAUSE: Duration = Duration::from_millis(500);

/// Removes what has expired, on one replica at a time, until the service ends.
pub(crate) async fn run(state: Data<AppState>) {
    let task = Task { state, me: DbUuid::new() };
    loop {
        tokio::time::sleep(INTERVAL).await;
        if let Err(error) = task.remove_all().await {
            task.state.database.log_failure("what has expired could not be removed", error);
        }
    }
}

struct Task {
    state: Data<AppState>,
    me: DbUuid,
}

impl Task {
    async fn remove_all(&self) -> Result<(), Error> {
        let now = self.state.clock.now();
        let oldest = DbTimestamp(now.plus(-TimeDelta::days(self.state.history_days.into())));
        while self.step(move |conn| remove_history(conn, oldest)).await?.unwrap_or_default() {}
        let oldest = DbTimestamp(now.plus(-RESTORABLE));
        for removal in self.state.info.removals {
            let mut after = first_place();
            let page =
                |after| self.state.database.read(JobOwner::Internal, move |conn| removal.page(conn, oldest, after));
            while let Some((last, mut ids)) = page(after).await? {
                after = last;
                while !ids.is_empty() {
                    let next = ids.clone();
                    let Some(done) = self.step(move |conn| removal.remove_some(conn, &next)).await? else {
                        return Ok(());
                    };
                    ids.drain(..done);
                }
            }
        }
        Ok(())
    }

    /// One transaction and the pause after it. `None` if another replica has the lease.
    async fn step<T: Send + 'static>(
        &self,
        work: impl Fn(&mut AnyConnection) -> Result<T, Error> + Send + 'static,
    ) -> Result<Option<T>, Error> {
        let (me, now) = (self.me, self.state.clock.now());
        let result = self.state.database.write(JobOwner::Internal, move |conn| {
            let holds_lease = lease::take(conn, TASK, me, DbTimestamp(now), DbTimestamp(now.plus(LEASE)))?;
            if holds_lease { work(conn).map(Some) } else { Ok(None) }
        });
        let result = result.await;
        tokio::time::sleep(PAUSE).await;
        result
    }
}
