//! When sessions and tokens were last used, to within [`GRAIN`]. A background task writes the times in batches, so that no
//! request waits for a write. A time that is lost, because the queue is full or the database does not answer, is
//! recorded by the next request.

use std::{collections::HashMap, time::Duration};

use chrono::TimeDelta;
use common::time::Timestamp;
use diesel::prelude::*;
use service_kit::{
    database::{
        AnyConnection, Database, JobOwner,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

use crate::schema::{api_tokens, sessions};

/// A use is not recorded this soon after the last recorded one.
pub const GRAIN: TimeDelta = TimeDelta::hours(1);

/// The most times in the queue and in one statement.
const BATCH: usize = 1000;

/// The longest time that shutdown waits for the queue.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// The session or token of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CredentialId {
    /// The session with this id.
    Session(DbUuid),
    /// The API token with this id.
    Token(DbUuid),
}

enum Message {
    Use(CredentialId, Timestamp),
    /// Answered when everything before it has been written.
    Flush(oneshot::Sender<()>),
}

/// The sender of the queue.
#[derive(Clone)]
pub struct LastUse(mpsc::Sender<Message>);

impl LastUse {
    /// Starts the task. It ends with the last clone of the sender.
    #[must_use]
    pub fn start(db: &Database) -> Self {
        let (sender, receiver) = mpsc::channel(BATCH);
        actix_web::rt::spawn(run(db.clone(), receiver));
        Self(sender)
    }

    /// Records a use at `now`, unless the last recorded one is recent.
    pub fn record(&self, credential: CredentialId, last: Option<DbTimestamp>, now: Timestamp) {
        if last.is_none_or(|last| is_old(*last, now)) {
            // If the queue is full, the next request records it.
            let _ = self.0.try_send(Message::Use(credential, now));
        }
    }

    /// Waits until everything recorded so far has been written or could not be, for a few seconds at most.
    pub async fn flush(&self) {
        let (done, written) = oneshot::channel();
        let flushed = async {
            if self.0.send(Message::Flush(done)).await.is_ok() {
                // Without an answer the task has ended, with nothing left to write.
                let _ = written.await;
            }
        };
        if timeout(FLUSH_TIMEOUT, flushed).await.is_err() {
            log::warn!("last uses were not written in time");
        }
    }
}

fn is_old(noted: Timestamp, now: Timestamp) -> bool {
    noted.plus(GRAIN) <= now
}

async fn run(db: Database, mut receiver: mpsc::Receiver<Message>) {
    // What was written lately: a request that read the row before that notes the same again.
    let mut written: HashMap<CredentialId, Timestamp> = HashMap::new();
    let mut messages = Vec::with_capacity(BATCH);
    while receiver.recv_many(&mut messages, BATCH).await > 0 {
        let (mut notes, mut waiting) = (HashMap::new(), Vec::new());
        for message in messages.drain(..) {
            match message {
                Message::Use(used, at) if written.get(&used).is_none_or(|before| is_old(*before, at)) => {
                    notes.insert(used, at);
                }
                Message::Use(..) => {}
                Message::Flush(done) => waiting.push(done),
            }
        }
        if let Some(latest) = notes.values().max().copied() {
            let used: Vec<_> = notes.keys().copied().collect();
            match db.write(JobOwner::Internal, move |conn| write(conn, &used, DbTimestamp(latest))).await {
                Ok(()) => {
                    written.retain(|_, at| !is_old(*at, latest));
                    written.extend(notes);
                }
                Err(error) => db.log_failure("last uses could not be noted", error),
            }
        }
        for done in waiting {
            // Whoever does not wait any more need not be told.
            let _ = done.send(());
        }
    }
}

/// One statement for each kind; they were all used at about the same time.
fn write(conn: &mut AnyConnection, used: &[CredentialId], at: DbTimestamp) -> Result<(), Error> {
    let (mut of_sessions, mut of_tokens) = (Vec::new(), Vec::new());
    for used in used {
        match used {
            CredentialId::Session(id) => of_sessions.push(*id),
            CredentialId::Token(id) => of_tokens.push(*id),
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
