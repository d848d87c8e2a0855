//! The background task: asks the booking-service again and again, and brings the copy up to date with what it has.
//! Whatever goes wrong, the copy stays as it was, and the next round tries again.

use std::sync::Arc;

use actix_web::web::Data;
use chrono::TimeDelta;
use common::time::Timestamp;
use service_kit::{
    copies::Copied,
    db::{
        Db,
        sql::{Moment, Uid},
    },
    error::Error,
    server::Service,
};
use tokio::sync::oneshot;

use super::{lease, store};
use crate::booking::{Failed, Original, Source};

/// For how many rounds a lease is: a holder that misses so many is taken for dead.
const LEASE_ROUNDS: i32 = 3;

/// Drops a copy that was made while a booking-service was configured: without one there are no events (contract, "Where
/// the data comes from").
///
/// # Errors
/// When the database fails.
pub async fn forget(db: &Db) -> Result<(), Error> {
    db.write(store::forget).await
}

/// Copies until the service ends. Never waited for by a request.
pub async fn run(service: Data<Service>, source: Source) {
    let copied = service.copies().of(store::SOURCE);
    let task = Copier { service: service.clone(), source: Arc::new(source), me: Uid::new(), copied };
    let (db, me) = (service.db().clone(), task.me);
    service.at_drain(move || {
        let db = db.clone();
        async move {
            // So that another replica, or the next start of this one, need not wait for the lease to expire.
            if let Err(error) = db.write(move |conn| lease::give_back(conn, store::SOURCE, me)).await {
                log::warn!("the lease of the copy of the events stays until it expires: {error:?}");
            }
        }
    });
    let mut worked = true;
    loop {
        let works = match task.round().await {
            Ok(()) => true,
            Err(cause) => {
                // Once, and not each round while it lasts.
                let level = if worked { log::Level::Warn } else { log::Level::Debug };
                log::log!(level, "the copy of the events stays as it is: {cause}");
                false
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
    service: Data<Service>,
    source: Arc<Source>,
    /// This replica, as the holder of the lease.
    me: Uid,
    copied: Arc<Copied>,
}

impl Copier {
    fn now(&self) -> Timestamp {
        self.service.clock().now()
    }

    /// Until when a lease is that is taken or kept now.
    fn term(&self) -> Moment {
        let interval = TimeDelta::from_std(self.source.interval).unwrap_or(TimeDelta::days(1));
        Moment(self.now().plus(interval * LEASE_ROUNDS))
    }

    /// One round, if it is for this replica to copy.
    async fn round(&self) -> Result<(), String> {
        if self.service.is_draining() || !self.take_lease().await? {
            return Ok(());
        }
        let asked_at = self.now();
        let originals = self.fetch().await?.map_err(|failed: Failed| failed.to_string())?;
        self.store(originals, asked_at).await
    }

    /// Takes or keeps the lease, and learns how old the copy is, whichever replica made it.
    async fn take_lease(&self) -> Result<bool, String> {
        let (me, now, until) = (self.me, Moment(self.now()), self.term());
        let done = self.service.db().write(move |conn| {
            let held = lease::take(conn, store::SOURCE, me, now, until)?;
            Ok((held, store::noted(conn)?))
        });
        let (held, noted) = done.await.map_err(in_words)?;
        if let Some(at) = noted {
            self.copied.tell(at.0);
        }
        Ok(held)
    }

    /// Asks the booking-service, and meanwhile keeps the lease.
    async fn fetch(&self) -> Result<Result<Vec<Original>, Failed>, String> {
        let (answer, mut answered) = oneshot::channel();
        let source = self.source.clone();
        // A thread of its own: it may wait for long, and nothing waits for it when the service ends.
        std::thread::Builder::new()
            .name("booking".to_owned())
            .spawn(move || drop(answer.send(source.events())))
            .map_err(|error| error.to_string())?;
        loop {
            tokio::select! {
                done = &mut answered => return done.map_err(|_| "asking the booking-service ended early".to_owned()),
                () = tokio::time::sleep(self.source.interval) => {
                    // Should it be lost, the copy itself is refused.
                    self.take_lease().await?;
                }
            }
        }
    }

    async fn store(&self, originals: Vec<Original>, asked_at: Timestamp) -> Result<(), String> {
        let (me, until, now) = (self.me, self.term(), Moment(asked_at));
        let done = self.service.db().write(move |conn| {
            if !lease::keep(conn, store::SOURCE, me, until)? {
                return Ok(None);
            }
            let changed = store::bring_up_to_date(conn, &originals, now)?;
            store::note(conn, now)?;
            Ok(Some(changed))
        });
        let Some(changed) = done.await.map_err(in_words)? else {
            return Err("another replica has taken over meanwhile".to_owned());
        };
        self.copied.tell(asked_at);
        if changed != store::Changed::default() {
            log::info!("copied the events: {} new or changed, {} gone", changed.written, changed.deleted);
        }
        Ok(())
    }
}

fn in_words(error: Error) -> String {
    let problem = error.into_problem();
    problem.cause().map_or_else(|| problem.explanation(), str::to_owned)
}
