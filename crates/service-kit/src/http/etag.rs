//! Entity tags (RFC 9110, section 8.8.3; contract, "Conditional requests and retries").
//!
//! A tag has two parts, `"FINGERPRINT.HASH"`:
//! * The hash is of the body. It is the same on every replica, after a restart, and whenever the same answer is given
//!   again. `If-Match` compares it alone.
//! * The fingerprint stands for everything the answer was made from: the version of the database, the caller, the
//!   address and the build. A caller that sends the current fingerprint would get the same answer again, so the answer
//!   need not be made. An answer that also depends on the time of day has no fingerprint.
//!
//! A compressed answer has other bytes, and so another tag: `"FINGERPRINT.HASH:gzip"`.

use std::{fs::File, io};

use actix_web::{
    HttpRequest,
    http::header::{EntityTag, Header, IfMatch, IfNoneMatch},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use common::problem::{Problem, code};
use sha2::{Digest, Sha256};

/// An entity tag of this service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ETag {
    fingerprint: Option<String>,
    hash: String,
    coding: Option<String>,
}

impl ETag {
    /// The tag of a body.
    pub fn new(body: &[u8], fingerprint: Option<String>) -> Self {
        Self { fingerprint, hash: digest::<16>(&[body]), coding: None }
    }

    /// The tag of a streamed answer. Its hash is one of [`content`], as the body is not known when the headers are sent.
    pub fn of_stream(fingerprint: Option<String>, content: Option<&str>) -> Self {
        Self { fingerprint, hash: content.unwrap_or_default().to_owned(), coding: None }
    }

    /// The tag of a file, which it reads to the end.
    pub fn of_file(mut file: &File) -> io::Result<Self> {
        let mut digest = Sha256::new();
        io::copy(&mut file, &mut digest)?;
        Ok(Self { fingerprint: None, hash: in_text::<16>(&digest.finalize()), coding: None })
    }

    fn parse(header: &EntityTag) -> Self {
        let (opaque, coding) =
            header.tag().split_once(':').map_or((header.tag(), None), |(tag, coding)| (tag, Some(coding)));
        let (fingerprint, hash) =
            opaque.rsplit_once('.').map_or((None, opaque), |(fingerprint, hash)| (Some(fingerprint), hash));
        Self { fingerprint: fingerprint.map(str::to_owned), hash: hash.to_owned(), coding: coding.map(str::to_owned) }
    }

    /// The part of the tag that `If-Match` compares.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The tag as the value of an `ETag` header.
    pub fn text(&self) -> String {
        let (fingerprint, dot) = self.fingerprint.as_deref().map_or(("", ""), |fingerprint| (fingerprint, "."));
        let (colon, coding) = self.coding.as_deref().map_or(("", ""), |coding| (":", coding));
        ["\"", fingerprint, dot, &self.hash, colon, coding, "\""].concat()
    }
}

/// The tag of the same answer in a content coding, both as values of an `ETag` header.
pub fn in_coding(tag: &str, coding: &str) -> Option<String> {
    Some(format!("{}:{coding}\"", tag.strip_suffix('"').filter(|tag| !tag.contains(':'))?))
}

/// The fingerprint of everything an answer is made from. Each part is hashed with its length, so that different lists
/// of parts never give the same input.
pub fn fingerprint(parts: &[&str]) -> String {
    digest::<8>(&parts.iter().map(|part| part.as_bytes()).collect::<Vec<_>>())
}

/// A hash of everything a streamed answer is made from.
pub fn content(parts: &[&[u8]]) -> String {
    digest::<16>(parts)
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

/// The tags of answers that the caller has cached: `If-None-Match`.
#[derive(Debug, Clone, Default)]
pub struct CachedTags {
    any: bool,
    tags: Vec<ETag>,
}

impl CachedTags {
    /// Reads the header of a request. A malformed header is ignored: the complete answer is sent then.
    pub fn from_request(req: &HttpRequest) -> Self {
        match IfNoneMatch::parse(req) {
            Ok(IfNoneMatch::Any) => Self { any: true, tags: Vec::new() },
            Ok(IfNoneMatch::Items(tags)) => Self { any: false, tags: tags.iter().map(ETag::parse).collect() },
            Err(_) => Self::default(),
        }
    }

    /// Whether a cached tag has a fingerprint.
    pub fn has_fingerprint(&self) -> bool {
        self.tags.iter().any(|tag| tag.fingerprint.is_some())
    }

    /// The cached tag with this fingerprint.
    pub fn with_fingerprint(&self, fingerprint: &str) -> Option<&ETag> {
        self.tags.iter().find(|tag| tag.fingerprint.as_deref() == Some(fingerprint))
    }

    /// The tag to answer 304 with if the caller has this answer. The comparison is weak (RFC 9110, section 13.1.2):
    /// only the content counts. The tag is `present` in the content coding that the caller has.
    pub fn matching(&self, present: &ETag) -> Option<ETag> {
        let cached = self.tags.iter().find(|tag| tag.hash == present.hash);
        match cached {
            Some(cached) => Some(ETag { coding: cached.coding.clone(), ..present.clone() }),
            None => self.any.then(|| present.clone()),
        }
    }
}

/// The versions that the caller is willing to change: `If-Match`.
#[derive(Debug, Clone)]
pub struct ExpectedTags {
    any: bool,
    tags: Vec<ETag>,
}

impl ExpectedTags {
    /// The version whose tag has this [hash](ETag::hash).
    pub fn with_hash(hash: String) -> Self {
        Self { any: false, tags: vec![ETag { fingerprint: None, hash, coding: None }] }
    }

    /// Reads the header of a request. An empty header counts as absent.
    ///
    /// # Errors
    /// 400 for a malformed header: ignoring it would change a version that the caller did not expect.
    pub fn from_request(req: &HttpRequest) -> Result<Option<Self>, Problem> {
        let header = req.headers().get(IfMatch::name());
        if header.is_none_or(|value| value.as_bytes().trim_ascii().is_empty()) {
            return Ok(None);
        }
        match IfMatch::parse(req) {
            Ok(IfMatch::Any) => Ok(Some(Self { any: true, tags: Vec::new() })),
            // Weak tags match nothing here (RFC 9110, section 13.1.1).
            Ok(IfMatch::Items(tags)) if !tags.is_empty() => {
                let tags = tags.iter().filter(|tag| !tag.weak).map(ETag::parse).collect();
                Ok(Some(Self { any: false, tags }))
            }
            // Items that are not entity tags were dropped by the parser.
            _ => Err(Problem::new(code::BAD_REQUEST).detail("The If-Match header must be * or entity tags.")),
        }
    }

    /// Whether `present` is one of the expected versions. Only the content counts.
    pub fn matches(&self, present: &ETag) -> bool {
        self.any || self.tags.iter().any(|tag| tag.hash == present.hash)
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn cached(header: &str) -> CachedTags {
        CachedTags::from_request(&TestRequest::default().insert_header(("if-none-match", header)).to_http_request())
    }

    fn expected(header: &str) -> Result<Option<ExpectedTags>, Problem> {
        ExpectedTags::from_request(&TestRequest::default().insert_header(("if-match", header)).to_http_request())
    }

    #[test]
    fn a_tag_says_content_and_state() {
        let (one, other) = (fingerprint(&["state 1", "alice"]), fingerprint(&["state 2", "alice"]));
        let tag = ETag::new(b"[]", Some(one.clone()));
        assert_eq!(cached(&tag.text()).with_fingerprint(&one), Some(&tag));
        assert_eq!(cached(&tag.text()).with_fingerprint(&other), None);
        assert_eq!(cached(&tag.text()).matching(&ETag::new(b"[]", None)), Some(ETag::new(b"[]", None)));
        assert_eq!(cached(&tag.text()).matching(&ETag::new(b"[1]", Some(one))), None);
        assert_eq!(cached("*").matching(&tag), Some(tag.clone()));
        assert_eq!(cached("no tag").matching(&tag), None);
        assert_eq!(cached(&format!("\"x\", W/{}", tag.text())).matching(&tag), Some(tag));
        assert_ne!(fingerprint(&["ab", "c"]), fingerprint(&["a", "bc"]));
    }

    #[test]
    fn a_coding_makes_another_tag_of_the_same_content() {
        let plain = ETag::new(b"{}", Some(fingerprint(&["state"])));
        let packed = in_coding(&plain.text(), "gzip").unwrap();
        assert_ne!(packed, plain.text());
        assert_eq!(in_coding(&packed, "br"), None);
        assert_eq!(cached(&packed).matching(&plain).unwrap().text(), packed);
        assert_eq!(cached(&packed).with_fingerprint(&fingerprint(&["state"])).unwrap().text(), packed);
        assert!(expected(&packed).unwrap().unwrap().matches(&plain));
    }

    #[test]
    fn a_change_wants_the_very_content() {
        let (present, former) = (ETag::new(b"2", None), ETag::new(b"1", Some(fingerprint(&["state"]))));
        assert!(expected(&format!("{}, {}", former.text(), present.text())).unwrap().unwrap().matches(&present));
        assert!(!expected(&former.text()).unwrap().unwrap().matches(&present));
        assert!(!expected(&format!("W/{}", present.text())).unwrap().unwrap().matches(&present));
        assert!(expected("*").unwrap().unwrap().matches(&present));
        assert_eq!(expected("2").unwrap_err().status(), 400);
        assert!(ExpectedTags::from_request(&TestRequest::default().to_http_request()).unwrap().is_none());
    }
}
