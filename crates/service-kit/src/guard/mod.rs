//! The guard of every operation.
//!
//! A handler takes a [`Guard`] as its first argument. The type says who may call the operation: the service defines one
//! [`Authenticator`] for each kind of caller. The guard runs the operation in one transaction. In that transaction it
//! looks the caller up, charges the rate limit, checks the caller's rights, handles conditional requests
//! ([`conditional`]) and repeated ones ([`idempotency`]), and records changes ([`history`](crate::history)).

mod authenticator;
pub mod conditional;
mod daily_limit;
mod dry_run;
pub mod idempotency;
mod shared;
mod target;

use std::{hash::Hash, pin::Pin, sync::Arc};

use actix_web::{
    FromRequest, HttpMessage, HttpRequest,
    dev::Payload,
    http::{StatusCode, header},
    web::Bytes,
};
use common::problem::Problem;
use futures_util::stream;

pub use self::{
    authenticator::{Access, Authenticator, Caller, Identified},
    conditional::lock_targets,
    target::Target,
};
use self::{
    conditional::Conditions,
    idempotency::IdempotencyKey,
    shared::{OfRequest, Shared, is_bad_credential},
    target::Recorded,
};
use crate::{
    database::{AnyConnection, DataVersion, JobOwner, QueueKey},
    error::{Error, Failure},
    http::{ListPage, ListPart, Page, Reply, admission::Admission, pagination::Remaining, rate_limit::RateLimitKey},
};

/// Authenticates the caller of an operation and runs it. See the [module](self).
pub struct Guard<A> {
    shared: Arc<Shared<A>>,
    request: HttpRequest,
    queue: Option<QueueKey>,
    is_dry_run: bool,
    is_one_statement: bool,
}

impl<A> Clone for Guard<A> {
    /// The same caller, for another operation of the same request: a form that is refused is shown again.
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), request: self.request.clone(), ..*self }
    }
}

impl<A: Authenticator> FromRequest for Guard<A> {
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Failure>>>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = req.clone();
        // Before anything is awaited: another extractor may need them meanwhile.
        request.extensions_mut().insert(OfRequest::<A>::default());
        request.extensions_mut().insert(Admission(|request| {
            Box::pin(async move {
                let shared = Shared::<A>::of(&request).await?;
                let result = shared.admit_first().await;
                shared.record_user(&request);
                result.map_err(Error::into_problem)?;
                Ok(shared.user.get().map_or_else(|| shared.address.into(), |user| RateLimitKey::User(*user)))
            })
        }));
        Box::pin(async move {
            let shared = Shared::of(&request).await?;
            if let JobOwner::Credential(_) = shared.owner() {
                // A look-up of its own, so that the operations of a user with many new credentials have one owner.
                Admission::wait(&request).await?;
            }
            Ok(Self { shared, request, queue: None, is_dry_run: false, is_one_statement: false })
        })
    }
}

/// An operation. Boxed, so that the surrounding code is compiled once and not for each handler.
type Operation<C> = Box<dyn FnMut(&mut AnyConnection, &C) -> Result<Reply, Error> + Send>;

/// Runs an operation, and records the change of its target.
fn run_recorded<C: Caller>(
    conn: &mut AnyConnection,
    caller: &C,
    recorded: Option<&mut Recorded>,
    operation: &mut Operation<C>,
) -> Result<Reply, Error> {
    let (Some(recorded), Some(author)) = (recorded, caller.author()) else { return operation(conn, caller) };
    let before = recorded.fields(conn)?;
    let reply = operation(conn, caller)?;
    if let Some(before) = before {
        recorded.record(conn, author, &before)?;
    }
    Ok(reply)
}

/// An operation that reads a part of a list.
type ListOperation<C> = Arc<dyn Fn(&mut AnyConnection, &C, &ListPart) -> Result<ListPage, Error> + Send + Sync>;

impl<A: Authenticator> Guard<A> {
    /// Runs an operation that reads, on one snapshot of the database.
    pub async fn read<F>(self, operation: F) -> Result<Reply, Failure>
    where
        F: FnMut(&mut AnyConnection, &A::Caller) -> Result<Reply, Error> + Send + 'static,
    {
        self.read_boxed(Box::new(operation)).await
    }

    async fn read_boxed(self, mut operation: Operation<A::Caller>) -> Result<Reply, Failure> {
        let conditions = Arc::new(Conditions::from_request(&self.request)?);
        let tags = conditions.clone();
        // To compare what is read by one statement takes one as well.
        let needs_version = !self.is_one_statement;
        let result = self.read_if_modified(conditions, needs_version, move |conn, caller, fingerprint| {
            Ok((tags.tag(operation(conn, caller)?, fingerprint), None))
        });
        let result = result.await.map(|(reply, _)| reply);
        self.finish(result).map(|reply| self.cacheable(reply))
    }

    /// Answers 304 if the caller has the current answer already. Otherwise runs `operation` with the fingerprint of its
    /// answer; it returns the answer and, for a list, what follows it. Without the version of the data there is no
    /// fingerprint, and answers are compared by their hashes alone.
    async fn read_if_modified<F>(
        &self,
        conditions: Arc<Conditions>,
        needs_version: bool,
        mut operation: F,
    ) -> Result<(Reply, Option<Remaining>), Error>
    where
        F: FnMut(&mut AnyConnection, &A::Caller, Option<String>) -> Result<(Reply, Option<Remaining>), Error>
            + Send
            + 'static,
    {
        let (database, owner) = (&self.shared.state.database, self.shared.owner());
        let (shared, cached) = (self.shared.clone(), conditions.clone());
        let read = move |conn: &mut AnyConnection| {
            let Identified { caller, mut data_version } = shared.admit(conn, Access::Read)?;
            if needs_version && data_version.is_none() {
                data_version = Some(DataVersion::read(conn)?);
            }
            let fingerprint = cached.fingerprint(&caller.view(), data_version.as_deref());
            match cached.unchanged_reply(fingerprint.as_deref()) {
                Some(unchanged) => Ok((unchanged, None)),
                None => operation(conn, &caller, fingerprint),
            }
        };
        if self.is_one_statement {
            return database.read_without_transaction(owner, read).await;
        }
        if !conditions.has_cached_fingerprint() {
            return database.read(owner, read).await;
        }
        let shared = self.shared.clone();
        let unchanged = move |conn: &mut AnyConnection| {
            let reply = shared.unchanged_reply(conn, &conditions)?;
            Some(reply.map(|reply| (reply, None)))
        };
        database.read_with_shortcut(owner, unchanged, read).await
    }

    /// Runs an operation that reads a list. A list without `limit` that is longer than [`CHUNK`] rows is streamed: each
    /// chunk is read on a snapshot of its own, as fast as the client takes it.
    ///
    /// [`CHUNK`]: crate::http::pagination::CHUNK
    pub async fn list<F>(self, page: Page, operation: F) -> Result<Reply, Failure>
    where
        F: Fn(&mut AnyConnection, &A::Caller, &ListPart) -> Result<ListPage, Error> + Send + Sync + 'static,
    {
        self.list_boxed(page, Arc::new(operation)).await
    }

    async fn list_boxed(self, page: Page, operation: ListOperation<A::Caller>) -> Result<Reply, Failure> {
        let conditions = Arc::new(Conditions::from_request(&self.request)?);
        let (tags, first, is_one_statement) = (conditions.clone(), operation.clone(), self.is_one_statement);
        let page = page.first();
        let result = self.read_if_modified(conditions, true, move |conn, caller, fingerprint| {
            let mut rows = first(conn, caller, &page)?;
            let Some(cursor) = rows.next.take_if(|_| !page.has_limit()) else {
                return Ok((tags.tag(rows.into_reply(), fingerprint), None));
            };
            let all = if is_one_statement { None } else { first(conn, caller, &page.ids_behind(&cursor))?.ids };
            let digest = all.as_ref().and_then(|all| all.digest.as_deref());
            let content = digest.map(|digest| tags.content(&caller.view(), &rows, digest));
            let remaining = Remaining::new(&page, &rows, cursor, all.map(|all| all.ids));
            Ok(tags.tag_stream(rows, remaining, fingerprint, content))
        });
        let (reply, rest) = result.await.map_or_else(|error| (Err(error), None), |(reply, rest)| (Ok(reply), rest));
        let (shared, is_one_statement) = (self.shared.clone(), self.is_one_statement);
        let reply = self.finish(reply).map(|reply| self.cacheable(reply))?;
        let Some(rest) = rest else { return Ok(reply) };
        Ok(reply.followed_by(stream::try_unfold(Some(rest), move |rest| {
            let (shared, operation) = (shared.clone(), operation.clone());
            async move {
                let Some(mut rest) = rest else { return Ok::<_, Problem>(None) };
                let (database, page) = (shared.state.database.clone(), rest.next_part());
                let rows = database.read_next_page(shared.owner(), is_one_statement, move |conn| {
                    let caller = shared.admit(conn, Access::Read)?.caller;
                    operation(conn, &caller, &page)
                });
                let mut rows = rows.await.map_err(Error::into_problem)?;
                let rest = rest.after(&mut rows);
                Ok(Some((Bytes::from(rows.chunk(rest.is_none())), rest)))
            }
        })))
    }

    /// Sends an answer that is the same for everybody at any time.
    pub fn respond(self, reply: Reply) -> Result<Reply, Failure> {
        Ok(Conditions::from_request(&self.request)?.tag(reply.public(), None))
    }

    /// Runs an operation that creates a resource, in a transaction. The transaction runs again after a conflict with
    /// another one, so the operation must have no effect but through the connection.
    ///
    /// # Errors
    /// Those of the authenticator and of the operation; 422 for an `Idempotency-Key` of another request; 429; 503.
    pub async fn create<F>(self, operation: F) -> Result<Reply, Failure>
    where
        F: FnMut(&mut AnyConnection, &A::Caller) -> Result<Reply, Error> + Send + 'static,
    {
        self.write(None, Box::new(operation)).await
    }

    /// Runs an operation that changes a resource, like [`create`](Self::create).
    ///
    /// # Errors
    /// Those of [`create`](Self::create); 412 if `If-Match` names another version of the resource.
    pub async fn update<F>(self, target: Target<A::Caller>, operation: F) -> Result<Reply, Failure>
    where
        F: FnMut(&mut AnyConnection, &A::Caller) -> Result<Reply, Error> + Send + 'static,
    {
        self.write(Some(target), Box::new(operation)).await
    }

    async fn write(
        self,
        mut target: Option<Target<A::Caller>>,
        mut operation: Operation<A::Caller>,
    ) -> Result<Reply, Failure> {
        let (shared, conditions) = (self.shared.clone(), Conditions::from_request(&self.request)?);
        let is_dry_run = self.is_dry_run;
        let key = IdempotencyKey::from_request(&self.request)?.filter(|_| !is_dry_run);
        let result = self.shared.state.database.write_keyed(self.shared.owner(), self.queue, move |conn| {
            let caller = shared.admit(conn, Access::Write)?.caller;
            let mut operation = |conn: &mut AnyConnection, caller: &A::Caller, recorded: Option<&mut Recorded>| {
                let reply = run_recorded(conn, caller, recorded, &mut operation)?;
                shared.count_changes(conn, caller)?;
                Ok(reply)
            };
            let mut operation = |conn: &mut AnyConnection| {
                if let Some(target) = &mut target {
                    conditions.check(conn, target, &caller)?;
                }
                let recorded = target.as_mut().and_then(|target| target.recorded.as_mut());
                if is_dry_run {
                    return dry_run::run(conn, |conn| operation(conn, &caller, recorded));
                }
                operation(conn, &caller, recorded).map(|reply| conditions.tag_changed(reply))
            };
            match &key {
                Some(key) => key.run(conn, &caller.idempotency_scope(), &shared.state, &mut operation),
                None => operation(conn),
            }
        });
        let result = result.await;
        self.finish(result)
    }

    /// Refuses a request because of its body, unless it would be refused whatever its body: then for that (contract,
    /// "Bodies").
    ///
    /// # Errors
    /// Those of `check`, else the refusal.
    pub async fn refuse<F>(self, refusal: Failure, mut check: F) -> Result<Reply, Failure>
    where
        F: FnMut(&mut AnyConnection, &A::Caller) -> Result<(), Error> + Send + 'static,
    {
        // As for the write that was asked for, but nothing is written.
        let checked = self.dry_run(true).create(move |conn, caller| check(conn, caller).map(|()| Reply::no_content()));
        checked.await.and(Err(refusal))
    }

    /// Runs an operation that reads something and creates it first if it does not exist. To the caller this is a read:
    /// it needs no right to write.
    pub async fn read_or_create<R, C>(self, mut read: R, mut create: C) -> Result<Reply, Failure>
    where
        R: FnMut(&mut AnyConnection, &A::Caller) -> Result<Option<Reply>, Error> + Send + 'static,
        C: FnMut(&mut AnyConnection, &A::Caller) -> Result<Reply, Error> + Send + 'static,
    {
        let (reader, creator, conditions) =
            (self.shared.clone(), self.shared.clone(), Conditions::from_request(&self.request)?);
        let database = &self.shared.state.database;
        let existing = database.read(self.shared.owner(), move |conn| {
            let caller = reader.admit(conn, Access::Read)?.caller;
            read(conn, &caller)
        });
        let result = match existing.await {
            Ok(Some(reply)) => Ok(reply),
            Ok(None) => {
                let created = database.write(self.shared.owner(), move |conn| {
                    let caller = creator.admit(conn, Access::Read)?.caller;
                    create(conn, &caller)
                });
                created.await
            }
            Err(error) => Err(error),
        };
        self.finish(result.map(|reply| conditions.tag(reply, None)))
    }

    /// Checks whether the caller may write, for an operation that does something slow before its transaction.
    pub async fn authorize(&self) -> Result<(), Failure> {
        let (shared, database) = (self.shared.clone(), &self.shared.state.database);
        let admit = move |conn: &mut AnyConnection| shared.admit(conn, Access::Write).map(|_| ());
        let result = database.read(self.shared.owner(), admit).await;
        self.shared.record_user(&self.request);
        Ok(result?)
    }

    /// Makes the operation wait for others with the same key, without a database connection.
    pub fn queued_by(mut self, key: &impl Hash) -> Self {
        self.queue = Some(QueueKey::new(key));
        self
    }

    /// Makes a change a dry run: the same checks and refusals, but nothing is stored, not even an idempotency key,
    /// and success is 200 with the answer that the change would have had.
    pub fn dry_run(mut self, is_dry_run: bool) -> Self {
        self.is_dry_run = is_dry_run;
        self
    }

    /// For an operation that reads all that it shows by one statement, or each chunk of a list. Such a statement needs no
    /// transaction. The caller is looked up before, so the tag may be of a version before the rows: one that is not
    /// current any more, so that nobody gets a 304 for it.
    pub fn in_one_statement(mut self) -> Self {
        self.is_one_statement = true;
        self
    }

    /// The result of a form, which has run by a clone of this guard. After a refusal that another try can mend, the form
    /// is shown again, with what was typed.
    ///
    /// # Errors
    /// Those that the form cannot mend.
    pub async fn or_form_again<F>(self, result: Result<Reply, Failure>, mut show: F) -> Result<Reply, Failure>
    where
        F: FnMut(&mut AnyConnection, &A::Caller, &Problem) -> Result<Reply, Error> + Send + 'static,
    {
        let problem = match result {
            Err(Failure(problem)) if [400, 409, 412, 422].contains(&problem.status()) => problem,
            result => return result,
        };
        let status = StatusCode::from_u16(problem.status()).unwrap_or(StatusCode::BAD_REQUEST);
        self.read(move |conn, caller| Ok(show(conn, caller, &problem)?.with_status(status))).await
    }

    fn cacheable(&self, reply: Reply) -> Reply {
        let is_said = reply.header(&header::CACHE_CONTROL).is_some();
        if self.shared.authenticator.credential().is_none() && !is_said { reply.public() } else { reply }
    }

    fn finish(&self, result: Result<Reply, Error>) -> Result<Reply, Failure> {
        self.request.extensions_mut().remove::<Admission>();
        self.shared.record_user(&self.request);
        if is_bad_credential(&result) {
            // It was good before.
            self.shared.note(&result);
        }
        Ok(result?)
    }
}
