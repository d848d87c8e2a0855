//! The background task that copies the events of the booking-service at intervals. A failed round deletes nothing, and
//! the next one tries again.
//!
//! * It requests page after page and stores each before it requests the next, so only the ids of all events are in
//!   memory at once. With the last page, it deletes the copies of events that were on no page. An event that moves in
//!   the list meanwhile may be on no page, so after a list of several pages it requests the changes since the start of
//!   the round before it deletes anything.
//! * At the start, once an hour, after a failure, and when its clock was set back, it requests all events. Only from such
//!   a list it deletes the events that are missing. It also finds what the times of changes hide, because the clock of
//!   the booking-service was wrong.
//! * Otherwise it requests changes with `updatedSince` and deletes the events that are marked as deleted. It requests
//!   them from some minutes before the latest change of the copy, because a change becomes visible later than its time.
//! * The latest change of the copy must be in the answer again. If it is missing, the booking-service was restored to
//!   an earlier state or does not list deleted events, and the next round requests all events.
//! * A list of all events that lacks more than half of the copy is accepted only the second time, an interval later
//!   (contract, booking "The club directory").
//! * A booking-service that ignores `updatedSince` is asked for all events each time.

use std::{pin::pin, sync::Arc};

use actix_web::web::Data;
use chrono::TimeDelta;
use common::time::Timestamp;
use service_kit::{
    database::{
        Database, JobOwner,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    lease,
    state::AppState,
};
use tokio::sync::oneshot;

use super::{reading::Reading, store};
use crate::booking::{EventChange, FetchError, NextPage, Page, Source};

/// The duration of a lease in rounds. Another replica takes over after that.
const LEASE_ROUNDS: i32 = 3;

/// How long before the latest change of the copy the requested changes begin: longer than a change takes to become
/// visible, and than the clocks of two replicas of the booking-service differ.
const OVERLAP: TimeDelta = TimeDelta::minutes(5);

/// How often to request all events: the longest time for which a wrong clock hides a change.
const FULL_COPY_INTERVAL: TimeDelta = TimeDelta::hours(1);

/// Drops the copy of a booking-service that is no longer configured: without one there are no events (contract, "Where
/// the data comes from").
pub async fn drop_copy(db: &Database) -> Result<(), Error> {
    db.write(JobOwner::Internal, store::drop_copy).await
}

/// Copies until the service ends. No request waits for this.
pub async fn run(service: Data<AppState>, source: Source) {
    service.copies.add(store::SOURCE);
    let mut task = Copier {
        service: service.clone(),
        source: Arc::new(source),
        me: DbUuid::new(),
        progress: None,
        supports_since: true,
        was_suspicious: false,
        counts: store::ChangeCounts::default(),
    };
    let (db, me) = (service.database.clone(), task.me);
    service.on_shutdown(move || {
        let db = db.clone();
        async move {
            // So that another replica, or the next start of this one, need not wait for the lease to expire.
            if let Err(error) = db.write(JobOwner::Internal, move |conn| lease::release(conn, store::SOURCE, me)).await
            {
                db.log_failure("the lease of the copy of the events stays until it expires", error);
            }
        }
    });
    let mut worked = true;
    loop {
        let result = task.round().await;
        if service.is_draining() {
            // The lease is released, so the round may have failed.
            return;
        }
        let works = match result {
            Ok(()) => true,
            Err(cause) => {
                service.copies.record_failure(store::SOURCE);
                // Once, and not each round while it lasts. An outage of the database has records of its own.
                let is_outage = service.database.is_out_of_reach();
                let level = if worked && !is_outage { log::Level::Warn } else { log::Level::Debug };
                log::log!(level, "the copy of the events stays as it is: {cause}");
                worked && is_outage
            }
        };
        if works && !worked {
            log::info!("the events are copied again");
        }
        worked = works;
        tokio::time::sleep(task.source.interval).await;
    }
}

struct Copier {
    service: Data<AppState>,
    source: Arc<Source>,
    /// This replica, as the holder of the lease.
    me: DbUuid,
    /// The state after the last round; `None` if the next round requests all events.
    progress: Option<Progress>,
    /// Whether the booking-service supports `updatedSince`. False after an answer that ignored it.
    supports_since: bool,
    /// Whether the last list of all events lacked most of the copy.
    was_suspicious: bool,
    /// The changes of this round.
    counts: store::ChangeCounts,
}

/// The state of the copy after a round of this replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Progress {
    /// When it last requested all events.
    full_copy_at: Timestamp,
    /// The time up to which the copy has all changes, apart from the overlap.
    complete_until: Timestamp,
    /// The latest change in the copy, and its event.
    latest: (Timestamp, DbUuid),
}

impl Progress {
    /// The state after a reading that began at `requested_at`. `None` if the reading has no times of changes, or lacks
    /// the latest change of the copy.
    fn after(before: Option<Self>, reading: &Reading, requested_at: Timestamp) -> Option<Self> {
        let latest = reading.latest()?;
        // The clocks may differ, so the earlier time is used.
        let complete_until = latest.0.min(requested_at);
        if reading.is_complete() {
            return Some(Self { full_copy_at: requested_at, complete_until, latest });
        }
        // The latest change must be found for its own event: another event may have a later change.
        before.filter(|before| reading.has(before.latest)).map(|before| Self {
            complete_until: complete_until.max(before.complete_until),
            latest,
            ..before
        })
    }

    /// The time from which to request changes now; `None` to request all events.
    fn since(self, now: Timestamp) -> Option<Timestamp> {
        let is_recent = (self.full_copy_at..self.full_copy_at.plus(FULL_COPY_INTERVAL)).contains(&now);
        is_recent.then(|| self.complete_until.min(now).plus(-OVERLAP))
    }
}

impl Copier {
    fn now(&self) -> Timestamp {
        self.service.clock.now()
    }

    /// When a lease expires that is taken or extended now.
    fn term(&self) -> DbTimestamp {
        let interval = TimeDelta::from_std(self.source.interval).unwrap_or(TimeDelta::days(1));
        DbTimestamp(self.now().plus(interval * LEASE_ROUNDS))
    }

    /// One round, if this replica holds the lease.
    async fn round(&mut self) -> Result<(), String> {
        if self.service.is_draining() {
            return Ok(());
        }
        let (holds_lease, has_copy) = self.take_lease().await?;
        if !holds_lease {
            return Ok(());
        }
        let requested_at = self.now();
        // If this round fails, the next one requests all events. A replica without a booking-service may have dropped
        // the copy.
        let progress = self.progress.take().filter(|_| has_copy && self.supports_since);
        let since = progress.and_then(|progress| progress.since(requested_at));
        self.counts = store::ChangeCounts::default();
        let (mut reading, mut rest) = self.read(since, requested_at).await?;
        let progress = Progress::after(progress, &reading, requested_at);
        if reading.is_complete()
            && reading.is_long()
            && self.supports_since
            && let Some(since) = progress.and_then(|progress| progress.since(requested_at))
        {
            self.store(rest, None, requested_at).await?;
            let later = self.read(Some(since), requested_at).await?;
            reading.merge(later.0);
            rest = later.1;
        }
        self.store(rest, Some(reading), requested_at).await?;
        self.progress = progress;
        Ok(())
    }

    /// Reads page after page and stores all but the last, which it returns.
    async fn read(
        &mut self,
        since: Option<Timestamp>,
        requested_at: Timestamp,
    ) -> Result<(Reading, Vec<EventChange>), String> {
        let (mut reading, mut next) = (Reading::new(since), None);
        let rest = loop {
            let page = self.fetch(since, next).await?;
            let changes = reading.take(page.changes)?;
            next = page.next;
            if next.is_none() {
                break changes;
            }
            self.store(changes, None, requested_at).await?;
        };
        if reading.ignores_since {
            log::info!("the booking-service ignores `updatedSince`, so all events are requested each time");
            self.supports_since = false;
        }
        Ok((reading, rest))
    }

    /// Takes the lease and updates the age of the copy, which another replica may have written. Returns whether this
    /// replica holds the lease and whether there is a copy.
    async fn take_lease(&self) -> Result<(bool, bool), String> {
        let (service, me, now, until) = (self.service.clone(), self.me, DbTimestamp(self.now()), self.term());
        let result = self.service.database.write(JobOwner::Internal, move |conn| {
            // A draining service has released the lease and must not take it again.
            let holds_lease = !service.is_draining() && lease::take(conn, store::SOURCE, me, now, until)?;
            Ok((holds_lease, store::copied_at(conn)?))
        });
        let (holds_lease, copied_at) = result.await.map_err(describe)?;
        if let Some(at) = copied_at {
            self.service.copies.record_success(store::SOURCE, at.0);
        }
        Ok((holds_lease, copied_at.is_some()))
    }

    /// A page of the booking-service. A request that is refused with `Retry-After` is sent once more.
    async fn fetch(&self, since: Option<Timestamp>, next: Option<NextPage>) -> Result<Page, String> {
        let mut answer = self.request_page(since, next.clone()).await?;
        if let Err(FetchError { retry_after: Some(wait), .. }) = &answer {
            self.while_extending_lease(tokio::time::sleep(*wait)).await?;
            answer = self.request_page(since, next).await?;
        }
        answer.map_err(|error| error.to_string())
    }

    async fn request_page(
        &self,
        since: Option<Timestamp>,
        next: Option<NextPage>,
    ) -> Result<Result<Page, FetchError>, String> {
        let (sender, receiver) = oneshot::channel();
        let source = self.source.clone();
        // A separate thread, because the request may take long and must not delay the end of the service.
        std::thread::Builder::new()
            .name("booking".to_owned())
            .spawn(move || drop(sender.send(source.page(since, next.as_ref()))))
            .map_err(|error| error.to_string())?;
        let answer = self.while_extending_lease(receiver).await?;
        answer.map_err(|_| "the request to the booking-service ended early".to_owned())
    }

    /// Waits for a future and extends the lease meanwhile. Does not take a lost or released lease again.
    async fn while_extending_lease<F: Future>(&self, work: F) -> Result<F::Output, String> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                output = &mut work => return Ok(output),
                () = tokio::time::sleep(self.source.interval) => {}
            }
            let (me, until) = (self.me, self.term());
            let extended = self
                .service
                .database
                .write(JobOwner::Internal, move |conn| lease::extend(conn, store::SOURCE, me, until));
            if !extended.await.map_err(describe)? {
                return Err(TAKEN_OVER.to_owned());
            }
        }
    }

    /// Stores changes. With the last ones, deletes the copies of events that are not in the reading `last`.
    async fn store(
        &mut self,
        changes: Vec<EventChange>,
        last: Option<Reading>,
        requested_at: Timestamp,
    ) -> Result<(), String> {
        let (me, until, now) = (self.me, self.term(), DbTimestamp(requested_at));
        let (is_last, force) = (last.is_some(), self.was_suspicious);
        let result = self.service.database.write(JobOwner::Internal, move |conn| {
            if !lease::extend(conn, store::SOURCE, me, until)? {
                return Ok(Err(TAKEN_OVER));
            }
            let mut counts = store::update(conn, &changes, now)?;
            let Some(reading) = &last else { return Ok(Ok(counts)) };
            // A replica without a booking-service drops the copy, and so what was stored before.
            let others = if reading.is_complete() {
                store::delete_others(conn, &reading.existing_ids(), force)?
            } else {
                store::copied_at(conn)?.map(|_| 0).ok_or(store::DROPPED)
            };
            match others {
                Ok(others) => counts.deleted += others,
                Err(reason) => return Ok(Err(reason)),
            }
            store::record_copy(conn, now)?;
            Ok(Ok(counts))
        });
        let result = result.await.map_err(describe)?;
        if is_last {
            self.was_suspicious = result == Err(store::SUSPICIOUS);
        }
        let counts = result?;
        self.counts.written += counts.written;
        self.counts.deleted += counts.deleted;
        if is_last {
            self.service.copies.record_success(store::SOURCE, requested_at);
            if self.counts != store::ChangeCounts::default() {
                let store::ChangeCounts { written, deleted } = self.counts;
                log::info!("copied the events: {written} new or changed, {deleted} deleted");
            }
        }
        Ok(())
    }
}

/// Why a round ends when the lease is lost.
const TAKEN_OVER: &str = "another replica has taken over meanwhile";

fn describe(error: Error) -> String {
    let problem = error.into_problem();
    problem.cause().map_or_else(|| problem.explanation(), str::to_owned)
}
