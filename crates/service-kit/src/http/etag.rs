//! Entity tags (RFC 9110, section 8.8.3; contract, "Conditional requests and retries").
//!
//! A tag has two parts, `"MARK.HASH"`:
//! * The hash is of the body, so that it is the same on every replica, after a restart, and whenever the answer is the
//!   same again. `If-Match` compares it alone.
//! * The mark stands for everything the answer was made from: the state of the whole database, the caller, the address
//!   and the build. Whoever sends the same mark again would get the same answer, so it need not even be made. An answer
//!   that also depends on the time of day has no mark.
//!
//! A compressed answer has other bytes, and so another tag: `"MARK.HASH:gzip"`.

use std::{fs::File, io};

use actix_web::{
    HttpRequest,
    http::header::{EntityTag, Header, IfMatch, IfNoneMatch},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use common::problem::{Problem, code};
use sha2::{Digest, Sha256};

/// Between the mark and the hash.
const DOT: char = '.';

/// Before the name of a content coding.
const COLON: char = ':';

/// A tag of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    mark: Option<String>,
    hash: String,
    coding: Option<String>,
}

impl Tag {
    /// The tag of a body, made from the state that `mark` stands for.
    #[must_use]
    pub fn new(body: &[u8], mark: Option<String>) -> Self {
        Self { mark, hash: digest::<16>(&[body]), coding: None }
    }

    /// The tag of an answer that is sent while it is made, and so has no hash: only the same state is known to give the
    /// same again.
    #[must_use]
    pub fn of_state(mark: String) -> Self {
        Self { mark: Some(mark), hash: String::new(), coding: None }
    }

    /// The tag of a file, which is read for it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of_file(mut file: &File) -> io::Result<Self> {
        let mut digest = Sha256::new();
        io::copy(&mut file, &mut digest)?;
        Ok(Self { mark: None, hash: in_text::<16>(&digest.finalize()), coding: None })
    }

    fn parse(sent: &EntityTag) -> Self {
        let (opaque, coding) = sent.tag().split_once(COLON).map_or((sent.tag(), None), |(tag, it)| (tag, Some(it)));
        let (mark, hash) = opaque.rsplit_once(DOT).map_or((None, opaque), |(mark, hash)| (Some(mark), hash));
        Self { mark: mark.map(str::to_owned), hash: hash.to_owned(), coding: coding.map(str::to_owned) }
    }

    /// As the `ETag` header has it.
    #[must_use]
    pub fn text(&self) -> String {
        let (mark, dot) = self.mark.as_deref().map_or(("", ""), |mark| (mark, "."));
        let (colon, coding) = self.coding.as_deref().map_or(("", ""), |coding| (":", coding));
        format!("\"{mark}{dot}{}{colon}{coding}\"", self.hash)
    }
}

/// The tag, as the header has it, of the same answer in a content coding.
#[must_use]
pub fn in_coding(tag: &str, coding: &str) -> Option<String> {
    Some(format!("{}{COLON}{coding}\"", tag.strip_suffix('"').filter(|tag| !tag.contains(COLON))?))
}

/// What stands for all that an answer is made from. Each part counts with its length, so that no two lists of parts are
/// the same.
#[must_use]
pub fn mark(parts: &[&str]) -> String {
    digest::<8>(&parts.iter().map(|part| part.as_bytes()).collect::<Vec<_>>())
}

/// The first `N` bytes of SHA-256 over the parts, in URL-safe characters.
fn digest<const N: usize>(parts: &[&[u8]]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    in_text::<N>(&digest.finalize())
}

fn in_text<const N: usize>(digest: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(&digest[..N])
}

/// What the caller has already: `If-None-Match`.
#[derive(Debug, Clone, Default)]
pub struct Known {
    any: bool,
    tags: Vec<Tag>,
}

impl Known {
    /// Of a request. What cannot be read is as if it were not there: then the whole answer is sent.
    #[must_use]
    pub fn of(req: &HttpRequest) -> Self {
        match IfNoneMatch::parse(req) {
            Ok(IfNoneMatch::Any) => Self { any: true, tags: Vec::new() },
            Ok(IfNoneMatch::Items(tags)) => Self { any: false, tags: tags.iter().map(Tag::parse).collect() },
            Err(_) => Self::default(),
        }
    }

    /// The tag among them that was made from the same.
    #[must_use]
    pub fn made_from(&self, mark: &str) -> Option<&Tag> {
        self.tags.iter().find(|tag| tag.mark.as_deref() == Some(mark))
    }

    /// Whether the caller has this answer. The comparison is weak (RFC 9110, section 13.1.2), so one in another coding
    /// or made from another state is the same if its content is: then the answer to give is `present` in that coding.
    #[must_use]
    pub fn same(&self, present: &Tag) -> Option<Tag> {
        let known = self.tags.iter().find(|tag| tag.hash == present.hash);
        match known {
            Some(known) => Some(Tag { coding: known.coding.clone(), ..present.clone() }),
            None => self.any.then(|| present.clone()),
        }
    }
}

/// What the caller wants to change: `If-Match`.
#[derive(Debug, Clone)]
pub enum Wanted {
    /// Whatever is there.
    Any,
    /// One of these.
    Tags(Vec<Tag>),
}

impl Wanted {
    /// Of a request.
    ///
    /// # Errors
    /// 400 when there is such a header and it cannot be read: a caller that was careful is not to be ignored.
    pub fn of(req: &HttpRequest) -> Result<Option<Self>, Problem> {
        if !req.headers().contains_key(IfMatch::name()) {
            return Ok(None);
        }
        match IfMatch::parse(req) {
            Ok(IfMatch::Any) => Ok(Some(Self::Any)),
            // Weak tags match nothing here (RFC 9110, section 13.1.1).
            Ok(IfMatch::Items(tags)) if !tags.is_empty() => {
                Ok(Some(Self::Tags(tags.iter().filter(|tag| !tag.weak).map(Tag::parse).collect())))
            }
            // What is no tag has been left out of the items.
            _ => Err(Problem::new(code::BAD_REQUEST).detail("The If-Match header must be * or entity tags.")),
        }
    }

    /// Whether this is what is there. Only the content counts: the same again is the same.
    #[must_use]
    pub fn is(&self, present: &Tag) -> bool {
        match self {
            Self::Any => true,
            Self::Tags(tags) => tags.iter().any(|tag| tag.hash == present.hash),
        }
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn known(header: &str) -> Known {
        Known::of(&TestRequest::default().insert_header(("if-none-match", header)).to_http_request())
    }

    fn wanted(header: &str) -> Result<Option<Wanted>, Problem> {
        Wanted::of(&TestRequest::default().insert_header(("if-match", header)).to_http_request())
    }

    #[test]
    fn a_tag_says_content_and_state() {
        let (one, other) = (mark(&["state 1", "alice"]), mark(&["state 2", "alice"]));
        let tag = Tag::new(b"[]", Some(one.clone()));
        assert_eq!(known(&tag.text()).made_from(&one), Some(&tag));
        assert_eq!(known(&tag.text()).made_from(&other), None);
        assert_eq!(known(&tag.text()).same(&Tag::new(b"[]", None)), Some(Tag::new(b"[]", None)));
        assert_eq!(known(&tag.text()).same(&Tag::new(b"[1]", Some(one))), None);
        assert_eq!(known("*").same(&tag), Some(tag.clone()));
        assert_eq!(known("no tag").same(&tag), None);
        assert_eq!(known(&format!("\"x\", W/{}", tag.text())).same(&tag), Some(tag));
        assert_ne!(mark(&["ab", "c"]), mark(&["a", "bc"]));
    }

    #[test]
    fn a_coding_makes_another_tag_of_the_same_content() {
        let plain = Tag::new(b"{}", Some(mark(&["state"])));
        let packed = in_coding(&plain.text(), "gzip").unwrap();
        assert_ne!(packed, plain.text());
        assert_eq!(in_coding(&packed, "br"), None);
        assert_eq!(known(&packed).same(&plain).unwrap().text(), packed);
        assert_eq!(known(&packed).made_from(&mark(&["state"])).unwrap().text(), packed);
        assert!(wanted(&packed).unwrap().unwrap().is(&plain));
    }

    #[test]
    fn a_change_wants_the_very_content() {
        let (present, former) = (Tag::new(b"2", None), Tag::new(b"1", Some(mark(&["state"]))));
        assert!(wanted(&format!("{}, {}", former.text(), present.text())).unwrap().unwrap().is(&present));
        assert!(!wanted(&former.text()).unwrap().unwrap().is(&present));
        assert!(!wanted(&format!("W/{}", present.text())).unwrap().unwrap().is(&present));
        assert!(wanted("*").unwrap().unwrap().is(&present));
        assert_eq!(wanted("2").unwrap_err().status(), 400);
        assert!(Wanted::of(&TestRequest::default().to_http_request()).unwrap().is_none());
    }
}
