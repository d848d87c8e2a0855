//! Sends what is due, on one replica at a time, until the service ends.
//!
//! * Every second a round reads what is new in the history ([`outbox`](super::outbox)), and begins to send to each webhook
//!   to which nothing is being sent. While no webhook is on, it only looks once a minute whether another replica has one.
//! * A webhook is sent one delivery after another, each on a thread of its own, so that a slow receiver holds up neither
//!   others nor a request.
//! * A delivery is noted as sent after the receiver has answered. If the service ends in between, it is sent again, with
//!   the same `webhook-id`.

use std::{
    cell::{Cell, RefCell},
    collections::HashSet,
    future::{Ready, ready},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use actix_web::{FromRequest, HttpRequest, dev::Payload, web::Data};
use chrono::TimeDelta;
use common::problem::Problem;
use prometheus_client::metrics::{counter::Counter, family::Family};
use service_kit::{
    database::{
        JobOwner,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure},
    lease,
    state::AppState,
};
use tokio::sync::{Notify, Semaphore, oneshot};

use super::{
    changes::{Context, MAX_WEBHOOKS},
    outbox::{self, Position},
    preparation::{self, Message, Prepared, Task},
    queries,
    results::{self, Effect, Outcome},
    sending::{client, send},
    timed::{self, Timed},
};
use crate::club::Club;

/// The lease of the task.
const TASK: &str = "webhooks";

/// How long a replica holds the lease after it has taken it.
const LEASE: TimeDelta = TimeDelta::seconds(30);

/// The time between two rounds.
const INTERVAL: Duration = Duration::from_secs(1);

/// The same while another replica sends.
const OTHERS_INTERVAL: Duration = Duration::from_secs(5);

/// The same while no webhook is on.
const IDLE_INTERVAL: Duration = Duration::from_mins(1);

/// The most that is done at once: a round, and sending to each webhook.
const PERMITS: u32 = MAX_WEBHOOKS + 1;

/// How long the end of the service waits for answers to what is being sent. A receiver that takes longer gets it again.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// How often it is noted how far the history has been read, if there was nothing new.
const NOTE_INTERVAL: TimeDelta = TimeDelta::minutes(1);

/// The most old deliveries that are removed in a round.
const OLD: i64 = 200;

/// Wakes the worker of this replica.
#[derive(Debug, Clone, Default)]
pub struct Wake(Arc<Notify>);

impl Wake {
    /// Makes the worker look at once.
    pub fn up(&self) {
        self.0.notify_one();
    }
}

impl FromRequest for Wake {
    type Error = Failure;
    type Future = Ready<Result<Self, Failure>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        let wake = req.app_data::<Data<Self>>().map(|wake| wake.as_ref().clone());
        ready(wake.ok_or_else(|| Problem::internal("the app has no Wake").into()))
    }
}

/// The result of an attempt, as the label of a metric.
const DELIVERED: &str = "delivered";

/// The same.
const FAILED: &str = "failed";

/// Counts attempts by their result.
type Counters = Family<[(&'static str, &'static str); 1], Counter>;

/// The part of the worker that an attempt to send needs.
#[derive(Clone)]
struct Sender {
    state: Data<AppState>,
    club: Club,
    client: club_issuer::outbound::Client,
    wake: Wake,
    /// The webhooks to which something is being sent.
    busy: Rc<RefCell<HashSet<DbUuid>>>,
    /// A round has one, and each attempt to send.
    permits: Arc<Semaphore>,
    /// Until when this replica may send.
    lease_until: Rc<Cell<Option<DbTimestamp>>>,
    attempts: Counters,
    switched_off: Counter,
}

struct Worker {
    sender: Sender,
    /// This replica, as the holder of the lease.
    me: DbUuid,
    /// Whether it has ever held the lease.
    has_held: Arc<AtomicBool>,
    position: Position,
    timed: Timed,
    noted_at: Option<DbTimestamp>,
}

/// Starts the worker. `is_needed` says whether a webhook is on.
pub fn start(state: &Data<AppState>, club: &Club, is_needed: bool) -> Wake {
    let wake = Wake::default();
    let help = "Attempts to send to a webhook";
    let attempts = state.metrics.add("webhook_attempts", help, Counters::default());
    for result in [DELIVERED, FAILED] {
        drop(attempts.get_or_create(&[("result", result)]));
    }
    let help = "Webhooks that were switched off because nothing arrives";
    let switched_off = state.metrics.add("webhooks_switched_off", help, Counter::default());
    let networks = Context::of(club).networks;
    let permits = Arc::new(Semaphore::new(PERMITS as usize));
    let sender = Sender {
        state: state.clone(),
        club: club.clone(),
        client: client(networks),
        wake: wake.clone(),
        busy: Rc::default(),
        permits: permits.clone(),
        lease_until: Rc::default(),
        attempts,
        switched_off,
    };
    let me = DbUuid::new();
    let worker = Worker {
        sender,
        me,
        has_held: Arc::default(),
        position: Position::default(),
        timed: Timed::default(),
        noted_at: None,
    };
    let (db, has_held) = (state.database.clone(), worker.has_held.clone());
    state.on_shutdown(move || {
        let (db, permits, has_held) = (db.clone(), permits.clone(), has_held.clone());
        async move {
            // Another replica would send again what has not been noted. Without permits, nothing more is sent.
            let ended = tokio::time::timeout(LAST_ANSWERS, permits.acquire_many(PERMITS)).await;
            if !has_held.load(Ordering::Relaxed) {
                return;
            }
            match ended {
                Ok(Ok(all)) => all.forget(),
                _ => {
                    return log::info!("the lease of the webhooks stays until it expires: a receiver has not answered");
                }
            }
            if let Err(error) = db.write(JobOwner::Internal, move |conn| lease::release(conn, TASK, me)).await {
                db.log_failure("the lease of the webhooks stays until it expires", error);
            }
        }
    });
    actix_web::rt::spawn(worker.run(is_needed));
    wake
}

impl Worker {
    async fn run(mut self, is_needed: bool) {
        let mut pause = if is_needed { Duration::ZERO } else { IDLE_INTERVAL };
        loop {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.sender.wake.0.notified() => {}
            }
            let permits = self.sender.permits.clone();
            let Ok(_permit) = permits.acquire().await else { return };
            if self.sender.state.is_draining() {
                return;
            }
            pause = match self.round().await {
                Ok(pause) => pause,
                Err(error) => {
                    self.sender.state.database.log_failure("nothing is sent to webhooks at present", error);
                    OTHERS_INTERVAL
                }
            };
        }
    }

    /// Reads what is new and begins to send what is due. Returns the time until the next round.
    async fn round(&mut self) -> Result<Duration, Error> {
        let (db, now) = (self.sender.state.database.clone(), self.sender.now());
        let (position, timed, club) = (self.position.clone(), self.timed.clone(), self.sender.club.clone());
        let has_lease = self.sender.has_lease(now);
        let found = db.read(JobOwner::Internal, move |conn| {
            let mut webhooks = queries::list(conn)?;
            webhooks.retain(|webhook| webhook.is_on);
            if webhooks.is_empty() || !has_lease {
                return Ok((webhooks, None));
            }
            let mut round = position.read(conn, &webhooks, now)?;
            let timed = timed::due(conn, &webhooks, &timed, &club, now)?;
            round.deliveries.extend(timed.iter().cloned());
            Ok((webhooks, Some((round, timed))))
        });
        let (webhooks, found) = found.await?;
        if webhooks.is_empty() {
            self.position = Position::default();
            return Ok(IDLE_INTERVAL);
        }
        if !self.hold_lease(now).await? {
            self.position = Position::default();
            return Ok(OTHERS_INTERVAL);
        }
        // The lease has just been taken.
        let Some((round, timed)) = found else { return Ok(Duration::ZERO) };
        let is_noted = self.noted_at.is_some_and(|at| at.plus(NOTE_INTERVAL) > *now);
        let (new, is_complete) = (round.deliveries, round.is_complete);
        if !new.is_empty() || !is_noted {
            let write = db.write(JobOwner::Internal, move |conn| {
                outbox::insert(conn, &new)?;
                if is_complete {
                    outbox::note_read_until(conn, now)?;
                }
                results::remove_old(conn, now, OLD)
            });
            write.await?;
            self.noted_at = Some(now);
        }
        self.position = round.position;
        self.timed.note(&timed, now);
        for webhook in db.read(JobOwner::Internal, move |conn| queries::with_due(conn, now)).await? {
            self.sender.begin(webhook);
        }
        Ok(if is_complete { INTERVAL } else { Duration::ZERO })
    }

    /// Takes or extends the lease when half of it has passed, and returns whether this replica holds it.
    async fn hold_lease(&mut self, now: DbTimestamp) -> Result<bool, Error> {
        if self.sender.lease_until.get().is_some_and(|until| now.plus(LEASE / 2) < *until) {
            return Ok(true);
        }
        let (me, until) = (self.me, DbTimestamp(now.plus(LEASE)));
        let database = &self.sender.state.database;
        let holds = database.write(JobOwner::Internal, move |conn| lease::take(conn, TASK, me, now, until)).await?;
        self.sender.lease_until.set(holds.then_some(until));
        self.has_held.fetch_or(holds, Ordering::Relaxed);
        Ok(holds)
    }
}

impl Sender {
    fn now(&self) -> DbTimestamp {
        DbTimestamp(self.state.clock.now())
    }

    fn has_lease(&self, now: DbTimestamp) -> bool {
        self.lease_until.get().is_some_and(|until| until > now)
    }

    /// Begins to send to a webhook what is due, if that has not begun.
    fn begin(&self, webhook: DbUuid) {
        let Ok(permit) = self.permits.clone().try_acquire_owned() else { return };
        if self.busy.borrow_mut().insert(webhook) {
            let sender = self.clone();
            actix_web::rt::spawn(async move {
                if let Err(error) = sender.send_due(webhook).await {
                    sender.state.database.log_failure("a delivery to a webhook could not be noted", error);
                    tokio::time::sleep(OTHERS_INTERVAL).await;
                }
                sender.busy.borrow_mut().remove(&webhook);
                drop(permit);
            });
        }
    }

    /// Sends one delivery after another, until nothing is due.
    async fn send_due(&self, webhook: DbUuid) -> Result<(), Error> {
        while self.has_lease(self.now()) && !self.state.is_draining() {
            let (state, club, now) = (self.state.clone(), self.club.clone(), self.now());
            let next = move |conn: &mut _| preparation::next(conn, webhook, &club, &state.interface.texts, now);
            let Some(mut prepared) = self.state.database.read(JobOwner::Internal, next).await? else { break };
            let wait_until = match std::mem::replace(&mut prepared.task, Task::Drop) {
                Task::Send(message) => {
                    let body = message.body.clone();
                    let outcome = self.send(message).await;
                    self.record(prepared, Some(body), outcome).await?;
                    continue;
                }
                Task::Unreadable => {
                    let answer = "the key that encrypted the address has been removed from the service".to_owned();
                    self.record(prepared, None, Outcome { status: None, answer, retry_after: None }).await?;
                    continue;
                }
                Task::Wait(until) => Some(until),
                Task::Drop => None,
            };
            let unsent = move |conn: &mut _| results::record_unsent(conn, &prepared, wait_until);
            self.state.database.write(JobOwner::Internal, unsent).await?;
        }
        Ok(())
    }

    async fn record(&self, prepared: Prepared, body: Option<String>, outcome: Outcome) -> Result<(), Error> {
        let (now, is_success) = (self.now(), outcome.is_success());
        let record = move |conn: &mut _| results::record(conn, &prepared, body.as_deref(), &outcome, now);
        let effect = self.state.database.write(JobOwner::Internal, record).await?;
        let result = if is_success { DELIVERED } else { FAILED };
        self.attempts.get_or_create(&[("result", result)]).inc();
        if let Effect::SwitchedOff(name, why) = effect {
            self.switched_off.inc();
            log::warn!("the webhook {name:?} is switched off: {}", why.explanation());
        }
        Ok(())
    }

    /// Sends on a thread of its own, because the request may take long and must not delay the end of the service.
    async fn send(&self, message: Message) -> Outcome {
        let (sender, receiver) = oneshot::channel();
        let client = self.client.clone();
        let spawned = std::thread::Builder::new()
            .name("webhook".to_owned())
            .spawn(move || drop(sender.send(send(&client, message))));
        let failure = |answer: String| Outcome { status: None, answer, retry_after: None };
        match spawned {
            Ok(_) => receiver.await.unwrap_or_else(|_| failure("the request ended early".to_owned())),
            Err(error) => failure(error.to_string()),
        }
    }
}
