//! What a service implements to authenticate its callers.

use actix_web::HttpRequest;
use common::problem::Problem;
use uuid::Uuid;

use crate::{database::AnyConnection, error::Error, history::Author};

/// What an operation does with the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It reads.
    Read,
    /// It may write.
    Write,
}

/// How a service authenticates the caller of an operation and checks their rights.
pub trait Authenticator: Send + Sync + Sized + 'static {
    /// The caller of an operation.
    type Caller: Caller;

    /// Reads the credential of a request, before its body is read.
    ///
    /// # Errors
    /// 401 for a missing or malformed credential, 400 for a malformed path.
    fn from_request(req: &HttpRequest) -> impl Future<Output = Result<Self, Problem>>;

    /// Looks the caller up, in the transaction of the operation; for a conditional request also before it.
    ///
    /// # Errors
    /// 401 for a bad credential, 403 for an inactive account.
    fn identify(&self, conn: &mut AnyConnection) -> Result<Identified<Self::Caller>, Error>;

    /// Checks the caller's rights, in the transaction of the operation.
    ///
    /// # Errors
    /// 403, or 404 for an object that the caller may not see.
    fn authorize(&self, conn: &mut AnyConnection, caller: &Self::Caller, access: Access) -> Result<(), Error>;

    /// The credential of the request; `None` for an anonymous one, whose answer shared caches may store. Requests
    /// of one user, or with one credential whose user is not known, share a part of the database threads.
    fn credential(&self) -> Option<&str>;

    /// Whether a bad credential is refused. Otherwise whoever has one is anonymous.
    fn refuses_bad_credentials(&self) -> bool {
        true
    }

    /// Called once for each request whose caller is known.
    fn record_use(&self, _caller: &Self::Caller) {}
}

/// A caller and the version of the database that they see.
pub struct Identified<C> {
    /// The caller.
    pub caller: C,
    /// The version of the database content, if it was read with the caller.
    pub data_version: Option<String>,
}

/// Who calls an operation.
pub trait Caller {
    /// The user, for the rate limit and the log; `None` for an anonymous caller.
    fn user(&self) -> Option<Uuid>;

    /// Everything about the caller that answers depend on, for entity tags.
    fn view(&self) -> String;

    /// What the history says about them; `None` for a caller who changes nothing.
    fn author(&self) -> Option<&Author>;

    /// Whether they may create more than others in a day, because they run the club.
    fn has_special_rights(&self) -> bool {
        false
    }

    /// The scope of idempotency keys: a stored answer is sent again only to a caller with the same scope.
    fn idempotency_scope(&self) -> String {
        self.view()
    }
}

/// A caller who may be anonymous.
impl<C: Caller> Caller for Option<C> {
    fn user(&self) -> Option<Uuid> {
        self.as_ref().and_then(Caller::user)
    }

    fn view(&self) -> String {
        self.as_ref().map_or_else(|| "anonymous".to_owned(), Caller::view)
    }

    fn author(&self) -> Option<&Author> {
        self.as_ref().and_then(Caller::author)
    }

    fn has_special_rights(&self) -> bool {
        self.as_ref().is_some_and(Caller::has_special_rights)
    }
}
