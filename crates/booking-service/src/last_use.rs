//! When sessions and tokens were last used, noted to within [`GRAIN`] and without a write for each request: whoever
//! authenticates tells a background task, which writes what it is told in batches. No request waits for it. A note that
//! is lost, because too many wait or the database is away, is made by the next request again.

use std::{collections::HashMap, time::Duration};

use chrono::TimeDelta;
use common::time::Timestamp;
use diesel::prelude::*;
use service_kit::{
    database::{
        AnyConnection, Database,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

use crate::schema::{api_tokens, sessions};

/// A use within this time of the last one that was noted is not noted.
pub const GRAIN: TimeDelta = TimeDelta::hours(1);

/// The most notes that wait to be written, and that one statement writes.
const BATCH: usize = 1000;

/// How long the end of the service waits for what was noted.
const PATIENCE: Duration = Duration::from_secs(3);

/// What was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Used {
    /// The session with this id.
    Session(DbUuid),
    /// The API token with this id.
    Token(DbUuid),
}

enum Message {
    Note(Used, Timestamp),
    /// To be answered when all that was told before has been written.
    Flush(oneshot::Sender<()>),
}

/// Where to tell of uses.
#[derive(Clone)]
pub struct LastUse(mpsc::Sender<Message>);

impl LastUse {
    /// Starts the task that writes. It ends with the last clone of what this returns.
    #[must_use]
    pub fn start(db: &Database) -> Self {
        let (sender, receiver) = mpsc::channel(BATCH);
        actix_web::rt::spawn(run(db.clone(), receiver));
        Self(sender)
    }

    /// Notes that something was used at `now`, unless it was at `before` and that is recent enough.
    pub fn note(&self, used: Used, before: Option<DbTimestamp>, now: Timestamp) {
        if before.is_none_or(|before| is_old(*before, now)) {
            // When too many wait, the next request notes it.
            let _ = self.0.try_send(Message::Note(used, now));
        }
    }

    /// QueueMetrics until all that was noted so far has been written or could not be, for a few seconds at most.
    pub async fn flush(&self) {
        let (done, written) = oneshot::channel();
        let flushed = async {
            if self.0.send(Message::Flush(done)).await.is_ok() {
                // Without an answer the task is gone, and has nothing left to write.
                let _ = written.await;
            }
        };
        if timeout(PATIENCE, flushed).await.is_err() {
            log::warn!("last uses were not written in time");
        }
    }
}

fn is_old(noted: Timestamp, now: Timestamp) -> bool {
    noted.plus(GRAIN) <= now
}

async fn run(db: Database, mut receiver: mpsc::Receiver<Message>) {
    // What was written lately: a request that read the row before that notes the same again.
    let mut written: HashMap<Used, Timestamp> = HashMap::new();
    let mut messages = Vec::with_capacity(BATCH);
    while receiver.recv_many(&mut messages, BATCH).await > 0 {
        let (mut notes, mut waiting) = (HashMap::new(), Vec::new());
        for message in messages.drain(..) {
            match message {
                Message::Note(used, at) if written.get(&used).is_none_or(|before| is_old(*before, at)) => {
                    notes.insert(used, at);
                }
                Message::Note(..) => {}
                Message::Flush(done) => waiting.push(done),
            }
        }
        if let Some(latest) = notes.values().max().copied() {
            let used: Vec<_> = notes.keys().copied().collect();
            match db.write(move |conn| write(conn, &used, DbTimestamp(latest))).await {
                Ok(()) => {
                    written.retain(|_, at| !is_old(*at, latest));
                    written.extend(notes);
                }
                Err(error) => {
                    let problem = error.into_problem();
                    log::warn!("last uses could not be noted: {}", problem.cause().unwrap_or("unknown"));
                }
            }
        }
        for done in waiting {
            // Whoever does not wait any more need not be told.
            let _ = done.send(());
        }
    }
}

/// One statement for each kind; they were all used at about the same time.
fn write(conn: &mut AnyConnection, used: &[Used], at: DbTimestamp) -> Result<(), Error> {
    let (mut of_sessions, mut of_tokens) = (Vec::new(), Vec::new());
    for used in used {
        match used {
            Used::Session(id) => of_sessions.push(*id),
            Used::Token(id) => of_tokens.push(*id),
        }
    }
    if !of_sessions.is_empty() {
        let used = sessions::table.filter(sessions::id.eq_any(of_sessions));
        diesel::update(used).set(sessions::last_used_at.eq(at)).execute(conn)?;
    }
    if !of_tokens.is_empty() {
        let used = api_tokens::table.filter(api_tokens::id.eq_any(of_tokens));
        diesel::update(used).set(api_tokens::last_used_at.eq(at)).execute(conn)?;
    }
    Ok(())
}
