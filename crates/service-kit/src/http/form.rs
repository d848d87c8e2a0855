//! The forms of pages. A page makes the request of an operation of it, and runs it as the operation does.

use std::{convert::Infallible, future::Future, pin::Pin};

use actix_web::{FromRequest, HttpRequest, dev::Payload, http::header};
use common::problem::{Problem, Violations, code};
use deserr::Deserr;
use futures_util::stream;
use multer::Multipart;
use serde_json::Value;
use sha2::{Digest, Sha256};
use url::form_urlencoded;
use uuid::Uuid;

use super::{body, notes::RequestNotes};
use crate::error::Failure;

/// The field with the idempotency key of a form.
pub const KEY: &str = "_key";

/// The field with the entity tag of what a form changes.
pub const TAG: &str = "_tag";

/// The fields of a form and their values, in the order in which they were sent.
#[derive(Debug, Clone, Default)]
pub struct Form(Vec<(String, String)>);

impl Form {
    /// A form with these values.
    pub fn new<N: Into<String>, V: Into<String>>(values: impl IntoIterator<Item = (N, V)>) -> Self {
        Self(values.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }

    /// Adds a value.
    pub fn push(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.push((name.into(), value.into()));
    }

    /// Replaces the values of a field.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.retain(|(other, _)| other != name);
        self.push(name, value);
    }

    /// Replaces the values of a field by several.
    pub fn replace(&mut self, name: &str, values: impl IntoIterator<Item = String>) {
        self.0.retain(|(other, _)| other != name);
        self.0.extend(values.into_iter().map(|value| (name.to_owned(), value)));
    }

    /// The last value of a field; empty if there is none.
    pub fn get(&self, name: &str) -> &str {
        self.0.iter().rfind(|(other, _)| other == name).map_or("", |(_, value)| value)
    }

    /// Whether a field has this value, as the check boxes of one name do.
    pub fn has(&self, name: &str, value: &str) -> bool {
        self.all(name).any(|other| other == value)
    }

    /// All values of a field.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// All fields.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The text of a field as the operations take it: with the line breaks of Unix instead of those of forms.
    pub fn text(&self, name: &str) -> String {
        self.get(name).replace("\r\n", "\n")
    }

    /// Notes what it says in place of the headers `Idempotency-Key` and `If-Match`, and the hash of its body.
    fn note(&self, req: &HttpRequest, body: &[u8]) {
        let field = |name| Some(self.get(name)).filter(|value| !value.is_empty()).map(str::to_owned);
        RequestNotes::change(req, |notes| {
            notes.form_key = field(KEY);
            notes.form_tag = field(TAG);
            notes
                .typed
                .replace(self.iter().map(|(_, value)| value.to_owned()).filter(|value| has_words(value)).collect());
            notes.body_hash = Some(Sha256::digest(body).to_vec());
        });
    }
}

/// Whether somebody has written a value: it has several words, or is long in a script without spaces.
fn has_words(value: &str) -> bool {
    value.contains(char::is_whitespace) || (!value.is_ascii() && value.chars().count() > 10)
}

impl FromRequest for Form {
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Failure>>>>;

    fn from_request(req: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let bytes = body::read(req, payload, "application/x-www-form-urlencoded", body::LIMIT);
        let req = req.clone();
        Box::pin(async move {
            let bytes = bytes.await?;
            let form = Self::new(form_urlencoded::parse(&bytes).into_owned());
            form.note(&req, &bytes);
            Ok(form)
        })
    }
}

/// The field with the file of an [`Upload`], if it is a table.
pub const TABLE: &str = "table";

/// The field with the file of an [`Upload`], if it is a picture.
pub const PICTURE: &str = "picture";

/// The most bytes of a form with a file.
const UPLOAD_LIMIT: usize = 3 << 20;

/// A form with a file.
#[derive(Debug, Clone, Default)]
pub struct Upload {
    /// Its other fields.
    pub form: Form,
    /// The bytes of the file in the field [`TABLE`].
    pub table: Vec<u8>,
    /// The bytes of the file in the field [`PICTURE`].
    pub picture: Vec<u8>,
}

impl FromRequest for Upload {
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Failure>>>>;

    fn from_request(req: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let bytes = body::read(req, payload, "multipart/form-data", UPLOAD_LIMIT);
        let req = req.clone();
        Box::pin(async move {
            let bytes = bytes.await?;
            let content_type = req.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
            let boundary = multer::parse_boundary(content_type.unwrap_or_default()).map_err(|_| broken())?;
            // What the hash of the form is about: a browser takes another boundary each time.
            let mut content = Vec::new();
            let mut parts = Multipart::new(stream::once(async { Ok::<_, Infallible>(bytes) }), boundary);
            let mut upload = Self::default();
            while let Some(part) = parts.next_field().await.map_err(|_| broken())? {
                let name = part.name().unwrap_or_default().to_owned();
                let value = part.bytes().await.map_err(|_| broken())?;
                for part in [name.as_bytes(), &value[..]] {
                    content.extend(part.len().to_be_bytes());
                    content.extend(part);
                }
                match name.as_str() {
                    TABLE => upload.table = value.to_vec(),
                    PICTURE => upload.picture = value.to_vec(),
                    _ => upload.form.push(name, String::from_utf8_lossy(&value)),
                }
            }
            upload.form.note(&req, &content);
            Ok(upload)
        })
    }
}

fn broken() -> Problem {
    Problem::new(code::BAD_REQUEST).detail("The form cannot be read.")
}

/// The request of an operation, from its JSON.
pub fn request<T: Deserr<Violations>>(value: Value) -> Result<T, Failure> {
    body::from_value(value)
}

/// Reads the request of a `PATCH`, without the members that `present`, the object as it is, has already: what an import
/// left against the rules keeps nobody from changing the rest.
pub fn change<T: Deserr<Violations>>(mut value: Value, present: &Value) -> Result<T, Failure> {
    if let Some(members) = value.as_object_mut() {
        members.retain(|name, member| present.get(name.as_str()) != Some(member));
    }
    request(value)
}

/// A new idempotency key.
pub fn new_key() -> String {
    Uuid::now_v7().to_string()
}
