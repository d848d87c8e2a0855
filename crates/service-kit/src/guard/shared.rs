//! The part of a guard that works on database threads: who calls, and whether they may.

use std::{
    rc::Rc,
    sync::{Arc, OnceLock},
};

use actix_web::{HttpMessage, HttpRequest, http::Method, web::Data};
use common::problem::{Problem, code};
use tokio::sync::OnceCell;
use uuid::Uuid;

use super::{
    authenticator::{Access, Authenticator, Caller, Identified},
    conditional::Conditions,
    daily_limit,
};
use crate::{
    database::{
        AnyConnection, DataVersion, JobOwner,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    history::Author,
    http::{Reply, client_ip::ClientIp, notes::RequestNotes, rate_limit::RateLimitKey},
    state::AppState,
};

/// The part of a guard that works on database threads.
pub(super) struct Shared<A> {
    pub(super) authenticator: A,
    pub(super) state: Data<AppState>,
    pub(super) address: ClientIp,
    pub(super) access: Access,
    /// The user, once known. A transaction may run several times, but is charged once.
    pub(super) user: OnceLock<Uuid>,
    pub(super) is_admitted: OnceCell<()>,
}

/// The guard of a request, in its extensions.
pub(super) type OfRequest<A> = Rc<OnceCell<Arc<Shared<A>>>>;

impl<A: Authenticator> Shared<A> {
    /// The guard of this request.
    pub(super) async fn of(request: &HttpRequest) -> Result<Arc<Self>, Problem> {
        let of_request = request.extensions().get::<OfRequest<A>>().cloned().unwrap_or_default();
        of_request.get_or_try_init(|| Self::from_request(request)).await.cloned()
    }

    pub(super) async fn from_request(request: &HttpRequest) -> Result<Arc<Self>, Problem> {
        let state = AppState::from_request(request)?;
        let authenticator = A::from_request(request).await?;
        let address = ClientIp::extract(request);
        let access = if *request.method() == Method::GET { Access::Read } else { Access::Write };
        let (user, is_admitted) = (OnceLock::new(), OnceCell::new());
        Ok(Arc::new(Self { authenticator, state, address, access, user, is_admitted }))
    }

    /// The owner of the database jobs of the request (contract, "Fairness").
    pub(super) fn owner(&self) -> JobOwner {
        let of_address = JobOwner::Address(self.address.0);
        match self.authenticator.credential().map(|credential| self.state.credential_owners.owner(credential)) {
            None => of_address,
            // Whoever may invent credentials does not get a part of the threads for each.
            Some(JobOwner::Credential(_)) if !self.authenticator.refuses_bad_credentials() => of_address,
            Some(owner) => owner,
        }
    }

    /// Admits the request in a transaction of its own, at most once.
    pub(super) async fn admit_first(self: &Arc<Self>) -> Result<(), Error> {
        self.is_admitted.get_or_try_init(|| self.look_up()).await.copied()
    }

    pub(super) async fn look_up(self: &Arc<Self>) -> Result<(), Error> {
        let (limit, mut owner) = (&self.state.look_up_limit, self.owner());
        let is_unknown = matches!(owner, JobOwner::Credential(_));
        if is_unknown {
            if self.authenticator.credential().is_some_and(|credential| limit.was_refused(credential)) {
                return Err(Problem::new(code::BAD_CREDENTIALS).into());
            }
            limit.check(self.address.into())?;
            owner = JobOwner::Address(self.address.0);
        }
        let shared = self.clone();
        let admit = move |conn: &mut AnyConnection| shared.admit(conn, shared.access).map(|_| ());
        let result = self.state.database.read(owner, admit).await;
        if is_unknown && is_bad_credential(&result) {
            limit.record(self.address.into());
        }
        self.note(&result);
        result
    }

    /// Remembers whether the credential is good.
    pub(super) fn note<T>(&self, result: &Result<T, Error>) {
        let Some(credential) = self.authenticator.credential() else { return };
        if is_bad_credential(result) {
            self.state.credential_owners.forget(credential);
            self.state.look_up_limit.refuse(credential);
        } else if let Some(user) = self.user.get() {
            self.state.credential_owners.remember(credential, *user);
        }
    }

    /// Records the user for the access log and the rate limit.
    pub(super) fn record_user(&self, request: &HttpRequest) {
        if let Some(user) = self.user.get() {
            RequestNotes::change(request, |notes| (notes.user, notes.is_charged) = (Some(*user), true));
        }
    }

    /// Counts what an operation has created and changed, and refuses what exceeds the limit of the caller.
    pub(super) fn count_changes(&self, conn: &mut AnyConnection, caller: &A::Caller) -> Result<(), Error> {
        let number = caller.author().map_or(0, Author::counted);
        let (Some(user), false) = (caller.user(), caller.has_special_rights()) else { return Ok(()) };
        if self.state.daily_limit == 0 || number == 0 {
            return Ok(());
        }
        let (user, now) = (DbUuid(user), self.state.clock.now());
        daily_limit::record(conn, user, number, DbTimestamp(now))?;
        daily_limit::check(conn, user, self.state.daily_limit, now).inspect_err(|_| {
            self.state.metrics.daily_limit_refusals.inc();
        })
    }

    pub(super) fn admit(&self, conn: &mut AnyConnection, access: Access) -> Result<Identified<A::Caller>, Error> {
        let identified = self.authenticator.identify(conn)?;
        self.charge_and_authorize(conn, &identified.caller, access)?;
        Ok(identified)
    }

    pub(super) fn charge_and_authorize(
        &self,
        conn: &mut AnyConnection,
        caller: &A::Caller,
        access: Access,
    ) -> Result<(), Error> {
        if let Some(user) = caller.user()
            && self.user.set(user).is_ok()
        {
            self.state.rate_limit.charge(RateLimitKey::User(user))?;
            self.authenticator.record_use(caller);
        }
        self.authenticator.authorize(conn, caller, access)
    }

    /// 304 if the caller has the current answer already. It needs no transaction, because the version is never older than
    /// the caller. A failure is left to the transaction that follows.
    pub(super) fn unchanged_reply(
        &self,
        conn: &mut AnyConnection,
        conditions: &Conditions,
    ) -> Option<Result<Reply, Error>> {
        let Identified { caller, data_version } = self.authenticator.identify(conn).ok()?;
        let data_version = data_version.map_or_else(|| DataVersion::read(conn), Ok).ok()?;
        let fingerprint = conditions.fingerprint(&caller.view(), Some(&data_version));
        let reply = conditions.unchanged_reply(fingerprint.as_deref())?;
        Some(self.charge_and_authorize(conn, &caller, Access::Read).map(|()| reply))
    }
}

pub(super) fn is_bad_credential<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::Problem(problem)) if problem.status() == 401)
}
