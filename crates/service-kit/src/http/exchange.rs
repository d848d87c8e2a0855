//! What a request says besides its operation, and what its answer says besides its body: entity tags, preconditions and
//! safe retries (contract, "Conditional requests and retries"). The guards of both services run every operation through
//! an [`Exchange`], in the transaction of the operation, so that no operation has to ask for any of it.

use actix_web::{
    HttpMessage, HttpRequest,
    http::{Method, StatusCode, header},
    web::Data,
};
use common::{
    problem::{Problem, code},
    time::Timestamp,
};
use diesel::{Connection, RunQueryDsl, sql_query, sql_types::BigInt};
use sha2::{Digest, Sha256};

use super::{
    Reply,
    etag::{self, Known, Tag, Wanted},
    frame,
    retries::Retry,
};
use crate::{database::AnyConnection, error::Error, server::AppState};

/// In the extensions of a request whose answer depends on the time of day.
pub struct TimeDependent;

/// What a request says besides its operation. To be made after its body has been read.
#[derive(Clone)]
pub struct Exchange {
    service: Data<AppState>,
    method: Method,
    target: String,
    known: Known,
    wanted: Option<Wanted>,
    retry: Option<Retry>,
    looks_at_clock: bool,
    id: String,
    now: Timestamp,
}

/// What a writing request changes.
pub struct Resource<'a> {
    /// Names it, for the lock.
    pub name: String,
    /// Its answer to a `GET` of the caller's.
    #[expect(clippy::type_complexity, reason = "it is used once")]
    pub shown: Box<dyn FnMut(&mut AnyConnection) -> Result<Reply, Error> + 'a>,
}

impl Exchange {
    /// Of a request whose body has been read.
    ///
    /// # Errors
    /// 400 for a header that cannot be used.
    pub fn of(req: &HttpRequest) -> Result<Self, Problem> {
        let service = req.app_data::<Data<AppState>>().ok_or_else(|| Problem::internal("the app has no service"))?;
        let method = req.method().clone();
        let changes = matches!(method, Method::PUT | Method::PATCH | Method::DELETE);
        Ok(Self {
            service: service.clone(),
            target: req.uri().path_and_query().map(ToString::to_string).unwrap_or_default(),
            known: if method == Method::GET { Known::of(req) } else { Known::default() },
            wanted: if changes { Wanted::of(req)? } else { None },
            retry: if method == Method::POST { Retry::of(req)? } else { None },
            looks_at_clock: req.extensions().get::<TimeDependent>().is_some(),
            id: frame::id_of(req),
            now: service.clock().now(),
            method,
        })
    }

    /// A reading operation, for this caller, on the state of the database that `state` stands for. The operation is left
    /// out when the caller has what it would answer.
    ///
    /// # Errors
    /// What the operation fails with.
    pub fn read(
        &self,
        conn: &mut AnyConnection,
        caller: &str,
        state: Option<&str>,
        operation: impl FnOnce(&mut AnyConnection) -> Result<Reply, Error>,
    ) -> Result<Reply, Error> {
        let mark = state.filter(|_| !self.looks_at_clock);
        let mark = mark.map(|state| etag::mark(&[state, self.service.build(), caller, &self.target]));
        if let Some(known) = mark.as_deref().and_then(|mark| self.known.made_from(mark)) {
            return Ok(Reply::empty(StatusCode::NOT_MODIFIED).with(header::ETAG, known.text()));
        }
        Ok(self.tagged(operation(conn)?, mark))
    }

    /// The answer with its tag, or that the caller has it.
    #[must_use]
    pub fn tagged(&self, reply: Reply, mark: Option<String>) -> Reply {
        if reply.status() != StatusCode::OK {
            return reply;
        }
        if reply.goes_on() {
            // Whoever has it all when the state is still the same has what one state was. What depends on the time is
            // never the same again.
            let mark = mark.unwrap_or_else(|| etag::mark(&[&self.id, &self.now.to_string()]));
            return reply.with(header::ETAG, Tag::of_state(mark).text());
        }
        let tag = Tag::new(reply.body(), mark);
        match self.known.same(&tag) {
            Some(known) => reply.not_modified().with(header::ETAG, known.text()),
            None => reply.with(header::ETAG, tag.text()),
        }
    }

    /// A writing operation of this caller's on `resource`, in a transaction:
    /// 1. a `POST` that was answered before is answered the same again;
    /// 2. a change that wants another version than the present one is refused, while nobody else can change it;
    /// 3. what the operation answers is kept for a retry: also a refusal, whose other effects are undone.
    ///
    /// # Errors
    /// 412, 422, and what the operation fails with.
    pub fn write(
        &self,
        conn: &mut AnyConnection,
        caller: &str,
        resource: Option<Resource<'_>>,
        operation: impl FnOnce(&mut AnyConnection) -> Result<Reply, Error>,
    ) -> Result<Reply, Error> {
        let keys = self.service.keys();
        if let Some(retry) = &self.retry
            && let Some(reply) = retry.answered(conn, caller, keys, self.now)?
        {
            return Ok(reply);
        }
        if let Some(mut resource) = resource {
            lock(conn, &resource.name, self.wanted.is_some())?;
            if let Some(wanted) = &self.wanted {
                let present = Tag::new((resource.shown)(conn)?.body(), None);
                if !wanted.is(&present) {
                    return Err(Problem::new(code::PRECONDITION_FAILED).header("etag", present.text()).into());
                }
            }
        }
        let Some(retry) = &self.retry else { return operation(conn).map(|reply| self.shown(reply)) };
        let (reply, done) = match conn.transaction(operation) {
            Ok(reply) => (self.shown(reply), Ok(())),
            Err(Error::Problem(problem)) if problem.status() < 500 => {
                let body = problem.body(&self.id, self.service.about().legacy).to_string();
                let status = StatusCode::from_u16(problem.status()).map_err(Problem::internal)?;
                (Reply::of(status, frame::PROBLEM, body.into_bytes()), Err(problem))
            }
            Err(other) => return Err(other),
        };
        retry.keep(conn, caller, keys, &reply)?;
        Ok(match done {
            Ok(()) => reply,
            // The first answer is rendered where all problems are.
            Err(problem) => Reply::problem(problem),
        })
    }

    /// The answer to a change shows the resource as it is now, so that the next change can name that version.
    fn shown(&self, reply: Reply) -> Reply {
        if matches!(self.method, Method::PUT | Method::PATCH) && reply.status() == StatusCode::OK {
            let tag = Tag::new(reply.body(), None);
            return reply.with(header::ETAG, tag.text());
        }
        reply
    }
}

/// Holds the resource of this name until the end of the transaction: alone for a change that was conditional, else among
/// others of its kind. SQLite has one writer anyway.
fn lock(conn: &mut AnyConnection, name: &str, alone: bool) -> Result<(), Error> {
    let AnyConnection::Postgresql(pg) = conn else { return Ok(()) };
    let digest = Sha256::digest(name);
    let key = i64::from_be_bytes(std::array::from_fn(|n| digest[n]));
    let query = if alone { "SELECT pg_advisory_xact_lock($1)" } else { "SELECT pg_advisory_xact_lock_shared($1)" };
    sql_query(query).bind::<BigInt, _>(key).execute(pg)?;
    Ok(())
}
