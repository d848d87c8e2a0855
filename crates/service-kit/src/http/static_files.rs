//! The files of a front end, served beside the operations (`--static`).
//!
//! * A path is the service's own when its first segment is `api` or that of a path in [`ROOT_PATHS`]; no file is looked
//!   for there, so a mistyped path of an operation is answered with a problem. Routes go first anyway.
//! * Any other path is a file of the folder, or `index.html`, as with `try_files {path} /index.html` of other servers. Only
//!   a file below `/assets/` that does not exist is 404: a page of an older version asks for it.
//! * The tag of a file is of its content: a deployment often gives new files the time, the length and even the inode of
//!   the old ones, and replicas should agree.

use std::{
    borrow::Cow,
    collections::HashMap,
    fs::File,
    io::{self, ErrorKind},
    os::unix::fs::{FileExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};

use actix_web::{
    HttpRequest, HttpResponse, HttpResponseBuilder,
    body::SizedStream,
    http::{
        Method, StatusCode,
        header::{self, ContentRange, ContentRangeSpec, Header as _, IfRange, Range},
    },
    web::{Bytes, block},
};
use common::problem::{Problem, code};
use futures_util::{Stream, stream};
use mime_guess::mime;
use percent_encoding::percent_decode_str;

use super::{
    etag::{CachedTags, ETag},
    path_methods::ROOT_PATHS,
};
use crate::error::Failure;

/// The page of a front end that has only one.
const INDEX: &str = "index.html";

/// The folder in which bundlers put what pages load.
const ASSETS: &str = "assets/";

/// The folder of well-known files (RFC 8615), the only name that may begin with a dot.
const WELL_KNOWN: &str = ".well-known";

/// The most bytes of a file in memory at once.
const PART: u64 = 128 * 1024;

/// The most files whose entity tags are cached; more than any front end has.
const MAX_CACHED_TAGS: usize = 10_000;

/// A front end may restrict what it loads in a `meta` element. `frame-ancestors` has no effect there, and users of the
/// front end are signed in, so this header forbids frames.
const POLICY: &str = "frame-ancestors 'none'; object-src 'none'; base-uri 'self'";

/// Marks a response, in its extensions, as `index.html` sent for a file that does not exist. Some front ends load such
/// a page as a style sheet, which browsers refuse with `nosniff`.
pub struct MayBeSniffed;

/// The folder of a front end.
pub struct StaticFiles {
    folder: PathBuf,
    tags: RwLock<HashMap<PathBuf, (Version, ETag)>>,
}

/// The version of a file: device, inode, length and change time. No program can set the change time back.
type Version = (u64, u64, u64, i64, i64);

/// A file of the folder.
struct OpenFile {
    file: File,
    length: u64,
    tag: ETag,
}

impl StaticFiles {
    /// The files of a folder.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, tags: RwLock::default() }
    }

    /// The fault of a folder, as one line.
    pub fn fault(folder: &Path) -> Option<String> {
        match resolve(folder, INDEX).and_then(|path| path.map(File::open).transpose()) {
            Ok(Some(_)) => None,
            Ok(None) if !folder.is_dir() => Some(format!("--static: {} is no folder", folder.display())),
            Ok(None) => Some(format!("--static: {} has no {INDEX}", folder.display())),
            Err(error) => Some(format!("--static: cannot read {INDEX} in {}: {error}", folder.display())),
        }
    }

    /// Whether the front end serves a path that has no route.
    pub fn serves(path: &str) -> bool {
        let path = percent_decode_str(path).decode_utf8_lossy();
        let first = path.split('/').nth(1);
        first != Some("api") && ROOT_PATHS.iter().all(|path| path.split('/').nth(1) != first)
    }

    /// The answer of the front end to a request.
    pub async fn answer(self: Arc<Self>, req: &HttpRequest) -> Result<HttpResponse, Failure> {
        if req.method() != Method::GET {
            return Ok(HttpResponse::MethodNotAllowed().insert_header((header::ALLOW, "GET, HEAD")).finish());
        }
        let nothing = || Problem::new(code::NOT_FOUND).detail("There is no such path.");
        let path = relative(req.path());
        let find = move || {
            if let Some(path) = path {
                if let Some(open_file) = self.open(&path)? {
                    return Ok(Some((open_file, path, true)));
                }
                if path.starts_with(ASSETS) {
                    return Ok(None);
                }
            }
            Ok(self.open(INDEX)?.map(|open_file| (open_file, INDEX.to_owned(), false)))
        };
        let result: io::Result<_> = block(find).await.map_err(Problem::internal)?;
        let (open_file, name, exists) = result.map_err(Problem::internal)?.ok_or_else(nothing)?;

        let mut response = HttpResponse::Ok();
        response
            .insert_header((header::CACHE_CONTROL, caching(&name)))
            .insert_header((header::CONTENT_SECURITY_POLICY, POLICY));
        if let Some(cached) = CachedTags::from_request(req).matching(&open_file.tag) {
            return Ok(response.status(StatusCode::NOT_MODIFIED).insert_header((header::ETAG, cached.text())).finish());
        }
        response.insert_header((header::ETAG, open_file.tag.text())).content_type(media_type(&name));
        let mut response = send(response, req, open_file)?;
        if !exists {
            response.extensions_mut().insert(MayBeSniffed);
        }
        Ok(response)
    }

    /// A file by its path in the folder; `None` when there is none.
    fn open(&self, path: &str) -> io::Result<Option<OpenFile>> {
        let Some(path) = resolve(&self.folder, path)? else { return Ok(None) };
        let file = File::open(&path)?;
        let metadata = file.metadata()?;
        let version = (metadata.dev(), metadata.ino(), metadata.len(), metadata.ctime(), metadata.ctime_nsec());
        let tags = self.tags.read().unwrap_or_else(PoisonError::into_inner);
        let cached = tags.get(&path).filter(|(cached, _)| *cached == version).map(|(_, tag)| tag.clone());
        drop(tags);
        if let Some(tag) = cached {
            return Ok(Some(OpenFile { file, length: metadata.len(), tag }));
        }
        let tag = ETag::of_file(&file)?;
        let mut tags = self.tags.write().unwrap_or_else(PoisonError::into_inner);
        if tags.len() >= MAX_CACHED_TAGS {
            tags.clear();
        }
        tags.insert(path, (version, tag.clone()));
        Ok(Some(OpenFile { file, length: metadata.len(), tag }))
    }
}

/// The real path of a file that lies in the folder, also after all symbolic links; the folder itself may be one.
fn resolve(folder: &Path, path: &str) -> io::Result<Option<PathBuf>> {
    let result = folder.canonicalize().and_then(|folder| {
        let real = folder.join(path).canonicalize()?;
        // Before it is opened: a pipe would wait for its other end.
        Ok((real.starts_with(&folder) && real.metadata()?.is_file()).then_some(real))
    });
    match result {
        Err(error)
            if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename) =>
        {
            Ok(None)
        }
        result => result,
    }
}

/// The path in the folder that a request path names; `None` for a path that leaves the folder, is hidden, or is not
/// UTF-8.
fn relative(path: &str) -> Option<String> {
    let path = path.strip_prefix('/')?;
    if path.is_empty() {
        return Some(INDEX.to_owned());
    }
    let names = path.split('/').map(|name| percent_decode_str(name).decode_utf8().ok());
    let names: Vec<_> = names.collect::<Option<_>>()?;
    let is_refused = |(n, name): (usize, &Cow<'_, str>)| {
        let is_hidden = name.starts_with('.') && (n, &**name) != (0, WELL_KNOWN);
        // The last segment may be empty: the path of a folder, which may be a page of the front end.
        let is_empty = name.is_empty() && n + 1 < names.len();
        is_hidden || is_empty || name.contains(|c: char| matches!(c, '/' | '\\') || c.is_control())
    };
    (!names.iter().enumerate().any(is_refused)).then(|| names.join("/"))
}

/// The `Cache-Control` of a file. Bundlers put files with a hash of the content in the name into `assets/`; such a file
/// never changes.
fn caching(path: &str) -> &'static str {
    let stem = path.strip_prefix(ASSETS).and_then(|path| path.rsplit_once('.')).map(|(stem, _)| stem);
    let is_hashed = stem.and_then(|stem| stem.rsplit_once(['-', '.'])).is_some_and(|(_, hash)| {
        // Words have no digits, dates no letters.
        hash.len() >= 8
            && hash.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
            && hash.bytes().any(|c| c.is_ascii_digit())
            && hash.bytes().any(|c| c.is_ascii_alphabetic())
    });
    if is_hashed { "public, max-age=31536000, immutable" } else { "public, no-cache" }
}

fn media_type(path: &str) -> String {
    let kind = mime_guess::from_path(path).first_or_octet_stream();
    let is_text = kind.type_() == mime::TEXT || kind.subtype() == mime::JAVASCRIPT;
    if is_text { format!("{kind}; charset=utf-8") } else { kind.to_string() }
}

/// The file, or the part of it that the request asks for (RFC 9110, section 14). A request for several
/// ranges gets the whole file.
fn send(mut response: HttpResponseBuilder, req: &HttpRequest, open_file: OpenFile) -> Result<HttpResponse, Failure> {
    let OpenFile { file, length, tag } = open_file;
    response.insert_header((header::ACCEPT_RANGES, "bytes"));
    let is_same = match IfRange::parse(req) {
        Ok(IfRange::EntityTag(cached)) => cached.to_string() == tag.text(),
        // Files have no date to compare, and an unreadable condition does not match.
        _ => !req.headers().contains_key(header::IF_RANGE),
    };
    let range = match Range::parse(req) {
        Ok(Range::Bytes(ranges)) if is_same && ranges.len() == 1 => ranges.into_iter().next(),
        _ => None,
    };
    let Some(range) = range else { return Ok(response.body(SizedStream::new(length, parts(file, 0, length)))) };
    let Some((first, last)) = range.to_satisfiable_range(length) else {
        let refused = Problem::new(code::RANGE_NOT_SATISFIABLE);
        return Err(refused.header("content-range", format!("bytes */{length}")).into());
    };
    let range = ContentRangeSpec::Bytes { range: Some((first, last)), instance_length: Some(length) };
    response.status(StatusCode::PARTIAL_CONTENT).insert_header(ContentRange(range));
    Ok(response.body(SizedStream::new(last + 1 - first, parts(file, first, last + 1))))
}

/// A range of a file as a stream, read as fast as the client receives it.
fn parts(file: File, from: u64, to: u64) -> impl Stream<Item = io::Result<Bytes>> {
    stream::try_unfold((file, from), move |(file, at)| async move {
        if at == to {
            return Ok(None);
        }
        let length = PART.min(to - at);
        let read = move || {
            let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
            file.read_exact_at(&mut bytes, at)?;
            io::Result::Ok((file, bytes))
        };
        let (file, bytes) = block(read).await.map_err(io::Error::other)??;
        Ok(Some((bytes.into(), (file, at + length))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_files_inside_are_paths() {
        let names = |path| relative(path);
        for (path, file) in [
            ("/", "index.html"),
            ("/a/b.js", "a/b.js"),
            ("/%E9%83%A8%E5%AE%A4", "部室"),
            ("/a+b%20c%25", "a+b c%"),
            ("/folder/", "folder/"),
            ("/.well-known/security.txt", ".well-known/security.txt"),
            ("/a..b", "a..b"),
        ] {
            assert_eq!(names(path).as_deref(), Some(file), "{path}");
        }
        for path in [
            "",
            "a",
            "//",
            "//etc/passwd",
            "/a//b",
            "/..",
            "/../x",
            "/a/../../x",
            "/%2e%2e/x",
            "/%2E%2E%2Fx",
            "/a%2fb",
            "/.env",
            "/a/.git/config",
            "/a/.well-known/x",
            "/.well-known/.x",
            "/a%00.js",
            "/a%0a",
            "/..%5c..%5cx",
            "/a\\b",
            "/%ff",
            "/./x",
        ] {
            assert_eq!(names(path), None, "{path}");
        }
    }

    #[test]
    fn what_a_bundler_has_named_by_its_content_never_changes() {
        for path in [
            "assets/index-D3xK9aQz.js",
            "assets/css/main.8f3a2b1c.css",
            "assets/chunk-4QXR2ZKB.js",
            "assets/logo-DiwrgT_7.svg",
            "assets/main.0123456789abcdef0123.js",
        ] {
            assert!(caching(path).ends_with("immutable"), "{path}");
        }
        for path in [
            "index.html",
            "app-D3xK9aQz.js",
            "other/app-D3xK9aQz.js",
            "assets/app.js",
            "assets/background-mountain.jpg",
            "assets/photo-20240101.jpg",
            "assets/D3xK9aQz.js",
            "assets/app-1a2b.js",
            "assets/-D3xK9aQz",
            "sw.js",
        ] {
            assert_eq!(caching(path), "public, no-cache", "{path}");
        }
    }
}
