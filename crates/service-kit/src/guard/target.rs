//! The resource that an operation changes.

use crate::{database::AnyConnection, error::Error, http::Reply};

/// The resource that an operation changes: its `GET` answer is compared with `If-Match`.
pub struct Target<C> {
    pub(super) lock_name: String,
    pub(super) is_own: bool,
    #[expect(clippy::type_complexity, reason = "a closure with two arguments")]
    pub(super) show: Box<dyn FnMut(&mut AnyConnection, &C) -> Result<Reply, Error> + Send>,
}

impl<C> Target<C> {
    /// A resource. Operations on the same `lock_name` exclude a conditional one; a resource below another one, such as
    /// the members of a project, has the lock of the other one.
    pub fn new(
        lock_name: impl Into<String>,
        show: impl FnMut(&mut AnyConnection, &C) -> Result<Reply, Error> + Send + 'static,
    ) -> Self {
        Self { lock_name: lock_name.into(), is_own: false, show: Box::new(show) }
    }

    /// The resource to which a `POST` adds a part.
    pub fn parent(lock_name: impl Into<String>) -> Self {
        // A `POST` has no `If-Match`, so the resource is locked but not compared.
        Self::new(lock_name, |_, _| Ok(Reply::no_content()))
    }

    /// A resource of which each caller has their own.
    pub fn of_caller(
        lock_name: impl Into<String>,
        show: impl FnMut(&mut AnyConnection, &C) -> Result<Reply, Error> + Send + 'static,
    ) -> Self {
        Self { is_own: true, ..Self::new(lock_name, show) }
    }
}
