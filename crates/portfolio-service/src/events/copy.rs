//! The background task: asks the booking-service again and again, and brings the copy up to date with what it has.
//! Whatever goes wrong, nothing is lost from the copy, and the next round tries again.
//!
//! * It reads page by page, and stores each before it asks for the next, so of all events only ids are in memory at once.
//!   What no page has goes from the copy with the last one. An event that moves in the list meanwhile may be on none: after
//!   a long reading of all events it asks what changed since, and only then says what is gone.
//! * At the start, every day, and after whatever went wrong it asks for all events. Only such an answer says of an
//!   event that it is gone by not having it.
//! * Otherwise it asks for what changed, and takes the events that are told to be deleted as deleted. It asks from some
//!   minutes before the latest change that it knows: what is being changed now may show later, with an earlier time.
//! * The latest change that it knows is told again each time. When it is not, the booking-service was set back to an
//!   earlier state, or does not tell of deleted events; then the next round asks for all.
//! * A list of all events that lacks more than half of the copy is believed the second time, an interval later (contract,
//!   booking "The club directory").
//! * A booking-service that tells more than changes does not know this, and is always asked for all.

use std::{pin::pin, sync::Arc};

use actix_web::web::Data;
use chrono::TimeDelta;
use common::time::Timestamp;
use service_kit::{
    copies::CopyStatus,
    database::{
        Database, JobOwner,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    state::AppState,
};
use tokio::sync::oneshot;

use super::{lease, reading::Reading, store};
use crate::booking::{EventChange, FetchError, NextPage, Page, Source};

/// For how many rounds a lease is: a holder that misses so many is taken for dead.
const LEASE_ROUNDS: i32 = 3;

/// From how long before the latest known change on to ask for changes: more than a change takes to show, and than the
/// clocks of two replicas of the booking-service differ.
const OVERLAP: TimeDelta = TimeDelta::minutes(5);

/// How often to ask for all events. The booking-service tells of a deleted one for 30 days.
const FULL_COPY_INTERVAL: TimeDelta = TimeDelta::days(1);

/// Drops a copy that was made while a booking-service was configured: without one there are no events (contract, "Where
/// the data comes from").
///
/// # Errors
/// When the database fails.
pub async fn forget(db: &Database) -> Result<(), Error> {
    db.write(JobOwner::Internal, store::forget).await
}

/// Copies until the service ends. Never waited for by a request.
pub async fn run(service: Data<AppState>, source: Source) {
    let copied = service.copies().status(store::SOURCE);
    let mut task = Copier {
        service: service.clone(),
        source: Arc::new(source),
        me: DbUuid::new(),
        copied,
        progress: None,
        tells_changes: true,
        was_suspicious: false,
        changed: store::Changed::default(),
    };
    let (db, me) = (service.database().clone(), task.me);
    service.on_shutdown(move || {
        let db = db.clone();
        async move {
            // So that another replica, or the next start of this one, need not wait for the lease to expire.
            if let Err(error) =
                db.write(JobOwner::Internal, move |conn| lease::give_back(conn, store::SOURCE, me)).await
            {
                db.log_failure("the lease of the copy of the events stays until it expires", error);
            }
        }
    });
    let mut worked = true;
    loop {
        let done = task.round().await;
        if service.is_draining() {
            // The lease is given back, so this may have failed.
            return;
        }
        let works = match done {
            Ok(()) => true,
            Err(cause) => {
                task.copied.fail();
                // Once, and not each round while it lasts. An outage of the database has records of its own.
                let is_outage = service.database().is_out_of_reach();
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
    copied: Arc<CopyStatus>,
    /// Unless the next round is to ask for all events.
    progress: Option<Progress>,
    /// Whether the booking-service can tell what changed, so far as is known.
    tells_changes: bool,
    /// Whether the last list of all events lacked most of the copy.
    was_suspicious: bool,
    /// What this round changed so far.
    changed: store::Changed,
}

/// How far this replica has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Progress {
    /// When it asked for all events.
    whole_at: Timestamp,
    /// Up to when it knows what changed, give or take the overlap.
    known_to: Timestamp,
    /// The latest change that it knows, and of which event.
    latest: (Timestamp, DbUuid),
}

impl Progress {
    /// After an answer to what was asked at this time. `None` when it says nothing of when things change, or has not even
    /// the latest change that was known.
    fn after(before: Option<Self>, told: &Reading, asked_at: Timestamp) -> Option<Self> {
        let latest = told.latest()?;
        // Neither clock need be right: the earlier time is asked for.
        let known_to = latest.0.min(asked_at);
        if told.is_complete() {
            return Some(Self { whole_at: asked_at, known_to, latest });
        }
        // Of another event there may be a later change, made since this one was lost.
        before.filter(|it| told.has(it.latest)).map(|it| Self { known_to: known_to.max(it.known_to), latest, ..it })
    }

    /// Since when to ask for changes now. `None` when all is to be asked for again.
    fn since(self, now: Timestamp) -> Option<Timestamp> {
        (now < self.whole_at.plus(FULL_COPY_INTERVAL)).then(|| self.known_to.plus(-OVERLAP))
    }
}

impl Copier {
    fn now(&self) -> Timestamp {
        self.service.clock().now()
    }

    /// Until when a lease is that is taken or kept now.
    fn term(&self) -> DbTimestamp {
        let interval = TimeDelta::from_std(self.source.interval).unwrap_or(TimeDelta::days(1));
        DbTimestamp(self.now().plus(interval * LEASE_ROUNDS))
    }

    /// One round, if it is for this replica to copy.
    async fn round(&mut self) -> Result<(), String> {
        if self.service.is_draining() {
            return Ok(());
        }
        let (is_held, is_there) = self.take_lease().await?;
        if !is_held {
            return Ok(());
        }
        let asked_at = self.now();
        // Should this round fail, nothing is known any more. The copy may also be gone: a replica without a
        // booking-service drops it.
        let progress = self.progress.take().filter(|_| is_there && self.tells_changes);
        let since = progress.and_then(|progress| progress.since(asked_at));
        self.changed = store::Changed::default();
        let (mut reading, mut rest) = self.read(since, asked_at).await?;
        let progress = Progress::after(progress, &reading, asked_at);
        if reading.is_complete()
            && reading.is_long()
            && self.tells_changes
            && let Some(since) = progress.and_then(|progress| progress.since(asked_at))
        {
            self.store(rest, None, asked_at).await?;
            let later = self.read(Some(since), asked_at).await?;
            reading.merge(later.0);
            rest = later.1;
        }
        self.store(rest, Some(reading), asked_at).await?;
        self.progress = progress;
        Ok(())
    }

    /// Reads page by page, and stores all but the last, which is left to be stored.
    async fn read(
        &mut self,
        since: Option<Timestamp>,
        asked_at: Timestamp,
    ) -> Result<(Reading, Vec<EventChange>), String> {
        let (mut reading, mut next) = (Reading::new(since), None);
        let rest = loop {
            let page = self.fetch(since, next).await?;
            let told = reading.take(page.changes)?;
            next = page.next;
            if next.is_none() {
                break told;
            }
            self.store(told, None, asked_at).await?;
        };
        if reading.ignores_since {
            log::info!("the booking-service cannot tell what changed, and is asked for all events each time");
            self.tells_changes = false;
        }
        Ok((reading, rest))
    }

    /// Takes the lease, and learns how old the copy is, whichever replica made it. Whether the lease is held, and whether
    /// there is a copy.
    async fn take_lease(&self) -> Result<(bool, bool), String> {
        let (service, me, now, until) = (self.service.clone(), self.me, DbTimestamp(self.now()), self.term());
        let done = self.service.database().write(JobOwner::Internal, move |conn| {
            // It is given back as soon as the service drains, and is not to be taken after that.
            let held = !service.is_draining() && lease::take(conn, store::SOURCE, me, now, until)?;
            Ok((held, store::noted(conn)?))
        });
        let (held, noted) = done.await.map_err(in_words)?;
        if let Some(at) = noted {
            self.copied.tell(at.0);
        }
        Ok((held, noted.is_some()))
    }

    /// A page of the booking-service; asked for once more if it says when, as one does that limits how often.
    async fn fetch(&self, since: Option<Timestamp>, next: Option<NextPage>) -> Result<Page, String> {
        let mut answer = self.ask(since, next.clone()).await?;
        if let Err(FetchError { retry_after: Some(wait), .. }) = &answer {
            self.keeping_the_lease(tokio::time::sleep(*wait)).await?;
            answer = self.ask(since, next).await?;
        }
        answer.map_err(|failed| failed.to_string())
    }

    async fn ask(&self, since: Option<Timestamp>, next: Option<NextPage>) -> Result<Result<Page, FetchError>, String> {
        let (answer, answered) = oneshot::channel();
        let source = self.source.clone();
        // A thread of its own: it may wait for long, and nothing waits for it when the service ends.
        std::thread::Builder::new()
            .name("booking".to_owned())
            .spawn(move || drop(answer.send(source.page(since, next.as_ref()))))
            .map_err(|error| error.to_string())?;
        let answer = self.keeping_the_lease(answered).await?;
        answer.map_err(|_| "asking the booking-service ended early".to_owned())
    }

    /// Waits for something long, and meanwhile keeps the lease. It is not taken again when it was lost or given back.
    async fn keeping_the_lease<F: Future>(&self, long: F) -> Result<F::Output, String> {
        let mut long = pin!(long);
        loop {
            tokio::select! {
                done = &mut long => return Ok(done),
                () = tokio::time::sleep(self.source.interval) => {}
            }
            let (me, until) = (self.me, self.term());
            let kept = self
                .service
                .database()
                .write(JobOwner::Internal, move |conn| lease::keep(conn, store::SOURCE, me, until));
            if !kept.await.map_err(in_words)? {
                return Err(TAKEN_OVER.to_owned());
            }
        }
    }

    /// Stores what was told; the last of it with what only then is known of the other events.
    async fn store(
        &mut self,
        told: Vec<EventChange>,
        ended: Option<Reading>,
        asked_at: Timestamp,
    ) -> Result<(), String> {
        let (me, until, now) = (self.me, self.term(), DbTimestamp(asked_at));
        let (has_ended, force) = (ended.is_some(), self.was_suspicious);
        let done = self.service.database().write(JobOwner::Internal, move |conn| {
            if !lease::keep(conn, store::SOURCE, me, until)? {
                return Ok(Err(TAKEN_OVER));
            }
            let mut changed = store::bring_up_to_date(conn, &told, now)?;
            let Some(reading) = &ended else { return Ok(Ok(changed)) };
            // A replica without a booking-service drops the copy, and so what was stored before.
            let others = if reading.is_complete() {
                store::keep_only(conn, &reading.existing_ids(), force)?
            } else {
                store::noted(conn)?.map(|_| 0).ok_or(store::DROPPED)
            };
            match others {
                Ok(others) => changed.deleted += others,
                Err(reason) => return Ok(Err(reason)),
            }
            store::note(conn, now)?;
            Ok(Ok(changed))
        });
        let done = done.await.map_err(in_words)?;
        if has_ended {
            self.was_suspicious = done == Err(store::SUSPICIOUS);
        }
        let changed = done?;
        self.changed.written += changed.written;
        self.changed.deleted += changed.deleted;
        if has_ended {
            self.copied.tell(asked_at);
            if self.changed != store::Changed::default() {
                let store::Changed { written, deleted } = self.changed;
                log::info!("copied the events: {written} new or changed, {deleted} gone");
            }
        }
        Ok(())
    }
}

/// Why a round ends when the lease is lost.
const TAKEN_OVER: &str = "another replica has taken over meanwhile";

fn in_words(error: Error) -> String {
    let problem = error.into_problem();
    problem.cause().map_or_else(|| problem.explanation(), str::to_owned)
}
