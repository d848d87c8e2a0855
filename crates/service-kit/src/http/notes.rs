//! What one part of the service notes about a request for another.

use std::{cell::RefCell, rc::Rc};

use actix_web::HttpMessage;
use uuid::Uuid;

use super::body_budget::BodyBytes;

/// The notes of a request, in its extensions.
#[derive(Default)]
pub struct RequestNotes {
    /// The id of the request, once it came through the middleware `request_id`.
    pub request_id: Rc<str>,
    /// The user behind the request, for the log.
    pub user: Option<Uuid>,
    /// Whether the request was charged to its user. It is not charged to the client address then.
    pub is_charged: bool,
    /// Whether the answer depends on the time of day, so that a fingerprint says nothing about it.
    pub is_time_dependent: bool,
    /// The hash of the body, if the request is a form or has an idempotency key.
    pub body_hash: Option<Vec<u8>>,
    /// The idempotency key of a form, in place of the header.
    pub form_key: Option<String>,
    /// The hash in the entity tag of what a form changes, in place of `If-Match`.
    pub form_tag: Option<String>,
    /// The values of a form that have several words. A refusal shows them, so that nobody need write them again; its page
    /// is made ready before the form is read.
    pub typed: Rc<RefCell<Vec<String>>>,
    /// The bytes of the body in memory. They count until the request ends.
    pub body_bytes: Option<BodyBytes>,
}

impl RequestNotes {
    /// Reads the notes of a request.
    pub fn read<T>(req: &impl HttpMessage, read: impl FnOnce(&Self) -> T) -> T {
        read(req.extensions().get::<Self>().unwrap_or(&Self::default()))
    }

    /// Adds to the notes of a request.
    pub fn change(req: &impl HttpMessage, change: impl FnOnce(&mut Self)) {
        let mut extensions = req.extensions_mut();
        let mut notes = extensions.remove::<Self>().unwrap_or_default();
        change(&mut notes);
        extensions.insert(notes);
    }
}
