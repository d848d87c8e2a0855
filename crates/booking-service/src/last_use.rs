//! When sessions and tokens were last used, with a precision of [`MIN_INTERVAL`].
//!
//! A background task writes the times in batches, so that no request waits for a write. If a time is lost, because the
//! queue is full or the database fails, the next request records its own.

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

/// The least time between two recorded uses of a session or token.
pub const MIN_INTERVAL: TimeDelta = TimeDelta::hours(1);

/// The most messages in the queue, and the most times in one statement.
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
    /// Answered once every earlier message is processed.
    Flush(oneshot::Sender<()>),
}

/// The sending half of the queue.
#[derive(Clone)]
pub struct LastUse(mpsc::Sender<Message>);

impl LastUse {
    /// Starts the background task. It ends when the last clone of the sender is dropped.
    pub fn start(db: &Database) -> Self {
        let (sender, receiver) = mpsc::channel(BATCH);
        actix_web::rt::spawn(run(db.clone(), receiver));
        Self(sender)
    }

    /// Records a use at `now`, unless the last recorded one is recent.
    pub fn record(&self, credential: CredentialId, last: Option<DbTimestamp>, now: Timestamp) {
        if last.is_none_or(|last| is_due(*last, now)) {
            // If the queue is full, the next request records it.
            let _ = self.0.try_send(Message::Use(credential, now));
        }
    }

    /// Waits until every use recorded so far is written or has failed, at most three seconds.
    pub async fn flush(&self) {
        let (sender, receiver) = oneshot::channel();
        let flushed = async {
            if self.0.send(Message::Flush(sender)).await.is_ok() {
                // An error means that the task has ended, with nothing left to write.
                let _ = receiver.await;
            }
        };
        if timeout(FLUSH_TIMEOUT, flushed).await.is_err() {
            log::warn!("last uses were not written in time");
        }
    }
}

/// Whether a use at `now` is to be recorded after one at `last`.
fn is_due(last: Timestamp, now: Timestamp) -> bool {
    last.plus(MIN_INTERVAL) <= now
}

async fn run(db: Database, mut receiver: mpsc::Receiver<Message>) {
    // The times written lately. A request that read its row before such a write sends another use.
    let mut written: HashMap<CredentialId, Timestamp> = HashMap::new();
    let mut messages = Vec::with_capacity(BATCH);
    while receiver.recv_many(&mut messages, BATCH).await > 0 {
        let (mut uses, mut flushes) = (HashMap::new(), Vec::new());
        for message in messages.drain(..) {
            match message {
                Message::Use(credential, at) if written.get(&credential).is_none_or(|last| is_due(*last, at)) => {
                    uses.insert(credential, at);
                }
                Message::Use(..) => {}
                Message::Flush(sender) => flushes.push(sender),
            }
        }
        if let Some(latest) = uses.values().max().copied() {
            let credentials: Vec<_> = uses.keys().copied().collect();
            match db.write(JobOwner::Internal, move |conn| write(conn, &credentials, DbTimestamp(latest))).await {
                Ok(()) => {
                    written.retain(|_, at| !is_due(*at, latest));
                    written.extend(uses);
                }
                Err(error) => db.log_failure("last uses could not be written", error),
            }
        }
        for sender in flushes {
            // The receiver may have timed out.
            let _ = sender.send(());
        }
    }
}

/// Writes one time for all credentials of a batch, with one statement for each kind.
fn write(conn: &mut AnyConnection, credentials: &[CredentialId], at: DbTimestamp) -> Result<(), Error> {
    let (mut session_ids, mut token_ids) = (Vec::new(), Vec::new());
    for credential in credentials {
        match credential {
            CredentialId::Session(id) => session_ids.push(*id),
            CredentialId::Token(id) => token_ids.push(*id),
        }
    }
    if !session_ids.is_empty() {
        let rows = sessions::table.filter(sessions::id.eq_any(session_ids));
        diesel::update(rows).set(sessions::last_used_at.eq(at)).execute(conn)?;
    }
    if !token_ids.is_empty() {
        let rows = api_tokens::table.filter(api_tokens::id.eq_any(token_ids));
        diesel::update(rows).set(api_tokens::last_used_at.eq(at)).execute(conn)?;
    }
    Ok(())
}
