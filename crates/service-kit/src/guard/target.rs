//! The resource that an operation changes.

use serde_json::Value;

use crate::{
    database::{AnyConnection, types::DbUuid},
    error::Error,
    history::{self, Action, Author, Kind},
    http::{Reply, etag::ETag},
};

/// The resource that an operation changes: its `GET` answer is compared with `If-Match`.
pub struct Target<C> {
    pub(super) lock_name: String,
    pub(super) is_own: bool,
    pub(super) is_exclusive: bool,
    #[expect(clippy::type_complexity, reason = "a closure with two arguments")]
    show: Box<dyn FnMut(&mut AnyConnection, &C) -> Result<Reply, Error> + Send>,
    pub(super) recorded: Option<Recorded>,
    /// What forms show of it, if that is not all.
    of_forms: Option<(&'static Kind, ReadFields)>,
}

/// Reads the fields of an object.
type ReadFields = Box<dyn FnMut(&mut AnyConnection) -> Result<Value, Error> + Send>;

/// The object of a target whose changes the history records.
pub(super) struct Recorded {
    kind: &'static Kind,
    object: DbUuid,
    action: Action,
    fields: ReadFields,
    is_revertible: bool,
}

impl<C> Target<C> {
    /// A resource. Operations on the same `lock_name` exclude a conditional one; a resource below another one, such as
    /// the members of a project, has the lock of the other one.
    pub fn new(
        lock_name: impl Into<String>,
        show: impl FnMut(&mut AnyConnection, &C) -> Result<Reply, Error> + Send + 'static,
    ) -> Self {
        Self {
            lock_name: lock_name.into(),
            is_own: false,
            is_exclusive: false,
            show: Box::new(show),
            recorded: None,
            of_forms: None,
        }
    }

    /// Forms show only these fields of the object, without those that its history leaves out: a form is stale only if one
    /// of them has changed.
    pub fn of_forms(
        self,
        kind: &'static Kind,
        fields: impl FnMut(&mut AnyConnection) -> Result<Value, Error> + Send + 'static,
    ) -> Self {
        Self { of_forms: Some((kind, Box::new(fields))), ..self }
    }

    /// The entity tag that a form sends.
    pub(super) fn tag_of_form(&mut self, conn: &mut AnyConnection, caller: &C) -> Result<ETag, Error> {
        let Some((kind, fields)) = &mut self.of_forms else { return self.tag_of_answer(conn, caller) };
        Ok(ETag::new(kind.shown(fields(conn)?).to_string().as_bytes(), None))
    }

    /// The entity tag of its `GET` answer.
    pub(super) fn tag_of_answer(&mut self, conn: &mut AnyConnection, caller: &C) -> Result<ETag, Error> {
        Ok(ETag::new((self.show)(conn, caller)?.body(), None))
    }

    /// The hash in the entity tag that a form sends.
    ///
    /// # Errors
    /// Those of its `GET`.
    pub fn tag(mut self, conn: &mut AnyConnection, caller: &C) -> Result<String, Error> {
        Ok(self.tag_of_form(conn, caller)?.hash().to_owned())
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

    /// The operations on this `lock_name` then run one after another: for one that records its change itself
    /// ([`history::changed`]), as it reads the fields before and knows them after.
    pub fn exclusive(self) -> Self {
        Self { is_exclusive: true, ..self }
    }

    /// Records the change in the history: the difference between the fields of the object before and after the
    /// operation. The target is [exclusive](Self::exclusive), so that the difference is that of one operation. `fields`
    /// is 404 for an object that does not exist; creations and deletions are recorded by the code that makes them.
    pub fn recorded(
        self,
        kind: &'static Kind,
        object: DbUuid,
        action: Action,
        fields: impl FnMut(&mut AnyConnection) -> Result<Value, Error> + Send + 'static,
    ) -> Self {
        let recorded = Recorded { kind, object, action, fields: Box::new(fields), is_revertible: false };
        Self { recorded: Some(recorded), ..self.exclusive() }
    }

    /// An object without rows in the history gets one with its former fields first, so that it can have them again.
    pub fn revertible(mut self) -> Self {
        if let Some(recorded) = &mut self.recorded {
            recorded.is_revertible = true;
        }
        self
    }
}

impl Recorded {
    /// The fields of the object, if it exists.
    pub(super) fn fields(&mut self, conn: &mut AnyConnection) -> Result<Option<Value>, Error> {
        match (self.fields)(conn) {
            Ok(fields) => Ok(Some(fields)),
            Err(Error::Problem(problem)) if problem.status() == 404 => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a row if the object had other fields before.
    pub(super) fn record(&mut self, conn: &mut AnyConnection, author: &Author, before: &Value) -> Result<(), Error> {
        let Some(after) = self.fields(conn)? else { return Ok(()) };
        if self.is_revertible && *before != after {
            history::began(conn, author.at, (self.kind, self.object), before)?;
        }
        history::changed(conn, author, (self.kind, self.object, self.action), before, &after)
    }
}
