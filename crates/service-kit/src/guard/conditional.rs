//! Entity tags and conditional requests (contract, "Conditional requests and retries").

use actix_web::{
    HttpRequest,
    http::{Method, StatusCode, header},
    web::Data,
};
use common::{
    problem::{Problem, code},
    time::Timestamp,
};
use diesel::RunQueryDsl;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{authenticator::Caller, target::Target};
use crate::{
    database::AnyConnection,
    error::Error,
    http::{
        ListPage, Reply,
        etag::{self, CachedTags, ETag, ExpectedTags},
        notes::RequestNotes,
        pagination::Remaining,
    },
    state::AppState,
};

/// The conditions of a request.
pub struct Conditions {
    state: Data<AppState>,
    method: Method,
    address: String,
    cached: CachedTags,
    expected: Option<ExpectedTags>,
    is_of_form: bool,
    is_time_dependent: bool,
}

impl Conditions {
    /// Reads the headers of a request, after all its arguments have been extracted.
    pub fn from_request(req: &HttpRequest) -> Result<Self, Problem> {
        let method = req.method().clone();
        let changes = matches!(method, Method::PUT | Method::PATCH | Method::DELETE);
        let of_form = RequestNotes::read(req, |notes| notes.form_tag.clone());
        Ok(Self {
            state: AppState::from_request(req)?,
            address: req.uri().path_and_query().map(|address| address.as_str().to_owned()).unwrap_or_default(),
            cached: if method == Method::GET { CachedTags::from_request(req) } else { CachedTags::default() },
            is_of_form: !changes,
            expected: if changes { ExpectedTags::from_request(req)? } else { of_form.map(ExpectedTags::with_hash) },
            is_time_dependent: RequestNotes::read(req, |notes| notes.is_time_dependent),
            method,
        })
    }

    /// Whether the caller has an answer whose fingerprint may be current.
    pub(super) fn has_cached_fingerprint(&self) -> bool {
        !self.is_time_dependent && self.cached.has_fingerprint()
    }

    /// The fingerprint of everything the answer to this caller is made from. `None` if the answer depends on the time
    /// or the version of the database is unknown.
    pub(super) fn fingerprint(&self, view: &str, data_version: Option<&str>) -> Option<String> {
        let data_version = data_version.filter(|_| !self.is_time_dependent)?;
        Some(etag::fingerprint(&[data_version, &self.state.build, view, &self.address]))
    }

    /// The fingerprint of an answer that depends on the time only by `at`, such as the day.
    pub fn fingerprint_at(&self, at: Timestamp, view: &str, data_version: Option<&str>) -> Option<String> {
        Some(etag::fingerprint(&[data_version?, &self.state.build, view, &self.address, &at.to_string()]))
    }

    /// 304 if the caller has the answer with this fingerprint.
    pub fn unchanged_reply(&self, fingerprint: Option<&str>) -> Option<Reply> {
        let tag = self.cached.with_fingerprint(fingerprint?)?;
        Some(Reply::empty(StatusCode::NOT_MODIFIED).with(header::ETAG, tag.text()))
    }

    /// The answer with its entity tag, or 304 if the caller has it.
    pub fn tag(&self, reply: Reply, fingerprint: Option<String>) -> Reply {
        if reply.status() != StatusCode::OK {
            return reply;
        }
        let tag = ETag::new(reply.body(), fingerprint);
        match self.cached.matching(&tag) {
            Some(cached) => reply.into_not_modified().with(header::ETAG, cached.text()),
            None => reply.with(header::ETAG, tag.text()),
        }
    }

    /// The hash in the tag of a streamed list, whose body is not known when its headers are sent. `digest` is of the rows
    /// that follow the first ones. Like the hash of a body, it survives changes of other rows.
    pub(super) fn content(&self, view: &str, first: &ListPage, digest: &str) -> String {
        let rest = [digest, &self.state.build, view, &self.address].map(str::as_bytes);
        etag::content(&[&[first.json()], &rest[..]].concat())
    }

    /// The beginning of a streamed list with its entity tag, and what follows; or 304 if the caller has the list. Without
    /// a fingerprint and the hash of its content, the tag never matches.
    pub(super) fn tag_stream(
        &self,
        rows: ListPage,
        remaining: Remaining,
        fingerprint: Option<String>,
        content: Option<String>,
    ) -> (Reply, Option<Remaining>) {
        let is_unknown = fingerprint.is_none() && content.is_none();
        let fingerprint =
            if is_unknown { Some(etag::fingerprint(&[&Uuid::now_v7().to_string()])) } else { fingerprint };
        let tag = ETag::of_stream(fingerprint, content.as_deref());
        if let Some(cached) = content.and_then(|_| self.cached.matching(&tag)) {
            return (Reply::empty(StatusCode::NOT_MODIFIED).with(header::ETAG, cached.text()), None);
        }
        (Reply::new(StatusCode::OK, rows.media_type(), rows.first()).with(header::ETAG, tag.text()), Some(remaining))
    }

    /// Locks the target and compares it with `If-Match`.
    pub(super) fn check<C: Caller>(
        &self,
        conn: &mut AnyConnection,
        target: &mut Target<C>,
        caller: &C,
    ) -> Result<(), Error> {
        let owner = target.is_own.then(|| caller.user()).flatten().map(|user| user.to_string());
        let is_exclusive = self.expected.is_some() || target.is_exclusive;
        lock(conn, &[&target.lock_name, owner.as_deref().unwrap_or_default()], is_exclusive)?;
        let Some(expected) = &self.expected else { return Ok(()) };
        let current =
            if self.is_of_form { target.tag_of_form(conn, caller)? } else { target.tag_of_answer(conn, caller)? };
        if expected.matches(&current) {
            return Ok(());
        }
        Err(Problem::new(code::PRECONDITION_FAILED).header("etag", current.text()).into())
    }

    /// The answer to a change, with the entity tag of the new version.
    pub(super) fn tag_changed(&self, reply: Reply) -> Reply {
        let has_tag = reply.header(&header::ETAG).is_some();
        if matches!(self.method, Method::PUT | Method::PATCH) && reply.status() == StatusCode::OK && !has_tag {
            let tag = ETag::new(reply.body(), None);
            return reply.with(header::ETAG, tag.text());
        }
        reply
    }
}

/// Locks resources exclusively until the end of the transaction, for an operation that changes several: those with these
/// lock names ([`Target::new`]).
pub fn lock_targets(conn: &mut AnyConnection, mut names: Vec<String>) -> Result<(), Error> {
    names.sort_unstable();
    names.iter().try_for_each(|name| lock(conn, &[name, ""], true))
}

/// Locks a resource until the end of the transaction: exclusively for a change that is conditional or recorded, else
/// shared. SQLite has one writer anyway.
fn lock(conn: &mut AnyConnection, name: &[&str], exclusive: bool) -> Result<(), Error> {
    let AnyConnection::Postgresql(pg) = conn else { return Ok(()) };
    let digest = Sha256::digest(name.join(" "));
    let key = i64::from_be_bytes(std::array::from_fn(|n| digest[n]));
    if exclusive {
        diesel::select(functions::pg_advisory_xact_lock(key)).execute(pg)?;
    } else {
        diesel::select(functions::pg_advisory_xact_lock_shared(key)).execute(pg)?;
    }
    Ok(())
}

/// Functions of PostgreSQL. Other than `sql_query`, these calls stay prepared.
mod functions {
    use diesel::sql_types::BigInt;

    // The type of the result is `void`, which nobody reads.
    diesel::define_sql_function!(fn pg_advisory_xact_lock(key: BigInt) -> Text);
    diesel::define_sql_function!(fn pg_advisory_xact_lock_shared(key: BigInt) -> Text);
}
