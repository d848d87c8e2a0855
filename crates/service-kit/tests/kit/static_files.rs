//! Static files of a front end on a real server.

use std::{
    fs::{self, File},
    io::{Seek as _, SeekFrom, Write as _},
    os::unix::fs::symlink,
    path::Path,
    process::Command,
};

use tempfile::TempDir;

use crate::server::{Answer, Server};

const INDEX: &str = "<!doctype html><title>部室予約</title>";
const SCRIPT: &str = "assets/app-1a2B3c4D.js";
/// The `Accept` header of a browser that opens a page.
const PAGE: &str = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/// A folder with a front end, and with files that must not be served.
fn front_end() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let site = folder.path().join("site");
    for (name, text) in [
        ("site/index.html", INDEX),
        (&format!("site/{SCRIPT}"), "export {}\n"),
        ("site/robots.txt", "User-agent: *\n"),
        ("site/部室 1+2.svg", "<svg/>"),
        ("site/.env", "canary"),
        ("site/.git/config", "canary"),
        ("site/.well-known/security.txt", "Contact: x\n"),
        ("site/api/rooms", "canary"),
        ("site/docs/x.html", "canary"),
        ("site/livez", "canary"),
        ("site/apifoo", "no operation"),
        ("outside/canary.txt", "canary"),
        ("site-b/canary.txt", "canary"),
    ] {
        let file = folder.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    symlink("robots.txt", site.join("inside.txt")).unwrap();
    symlink("../outside/canary.txt", site.join("outside.txt")).unwrap();
    symlink("../outside", site.join("elsewhere")).unwrap();
    symlink("../site-b/canary.txt", site.join("sibling.txt")).unwrap();
    symlink("loop.txt", site.join("loop.txt")).unwrap();
    folder
}

fn serve(site: &Path, options: &[&str]) -> Server {
    Server::start_with(&[&["--static", site.to_str().unwrap()], options].concat(), |_| {})
}

fn get(server: &Server, path: &str, header: &str) -> Answer {
    server.send(&format!("GET {path} HTTP/1.1\r\n{header}"), b"")
}

#[test]
fn files_and_pages_are_served_and_nothing_else() {
    let folder = front_end();
    let server = serve(&folder.path().join("site"), &[]);
    for (path, kind, text) in [
        ("/", "text/html; charset=utf-8", INDEX),
        ("/index.html", "text/html; charset=utf-8", INDEX),
        (&*format!("/{SCRIPT}"), "text/javascript; charset=utf-8", "export {}\n"),
        ("/robots.txt?x=%2e%2e", "text/plain; charset=utf-8", "User-agent: *\n"),
        ("/%E9%83%A8%E5%AE%A4%201+2.svg", "image/svg+xml", "<svg/>"),
        ("/inside.txt", "text/plain; charset=utf-8", "User-agent: *\n"),
        ("/.well-known/security.txt", "text/plain; charset=utf-8", "Contact: x\n"),
        ("/apifoo", "application/octet-stream", "no operation"),
    ] {
        let answer = server.get(path);
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(kind)), "{path}");
        assert_eq!(answer.text(), text, "{path}");
    }
    // Every other path is the page, whatever the client accepts and whatever the extension.
    for path in [
        "/rooms",
        "/rooms/",
        "/rooms/5?day=2026-11-20",
        "/tags/v1.0",
        "/API/rooms",
        "/apis",
        "/assets",
        "/elsewhere",
        "/favicon.ico",
        "/.well-known/change-password",
    ] {
        for accept in [PAGE, "Accept: */*", "Accept: text/css", "Accept: text/html;q=0, */*"] {
            let page = get(&server, path, accept);
            assert_eq!((page.status, page.text().as_str()), (200, INDEX), "{path}");
            // Existing builds load such a page as a style sheet.
            assert_eq!(page.header("x-content-type-options"), None, "{path}");
        }
    }
    assert_eq!(server.get("/robots.txt").header("x-content-type-options"), Some("nosniff"));
    for path in ["/assets/gone-1a2B3c4D.css", "/assets/", "/assets/x/y"] {
        get(&server, path, "Accept: */*").refused(404, "not-found");
    }
}

#[test]
fn paths_of_the_service_are_not_files() {
    let folder = front_end();
    let server = serve(&folder.path().join("site"), &[]);
    for path in [
        "/api",
        "/api/",
        "/api/rooms",
        "/api/v1/rooms",
        "/%61pi/rooms",
        "/api%2Frooms",
        "/livez/x",
        "/readyz/",
        "/metrics/x",
        "/problems/x",
        "/openapi.json/",
        "/docs/x.html",
        "/%64ocs/x.html",
        "/%6Civez/",
    ] {
        get(&server, path, "Accept: */*").refused(404, "not-found");
    }
    server.send("POST /api/rooms HTTP/1.1\r\nContent-Length: 0", b"").refused(404, "not-found");
    assert_eq!(get(&server, "/livez", PAGE).json()["status"], "alive");
    assert!(get(&server, "/docs/", PAGE).text().contains("swagger"));
    assert_eq!(get(&server, "/things?deep=true", PAGE).json()["deep"], true);
    // The operations of the test service are not below /api, and take precedence as well.
    get(&server, "/things/x", "Accept: */*").refused(400, "invalid-parameter");
}

#[test]
fn files_outside_the_folder_and_hidden_files_are_not_served() {
    let folder = front_end();
    let server = serve(&folder.path().join("site"), &[]);
    for path in [
        "/../outside/canary.txt",
        "/%2e%2e/outside/canary.txt",
        "/%2E%2E%2Foutside%2Fcanary.txt",
        "/assets/../.env",
        "/assets/%2e%2e/%2e%2e/outside/canary.txt",
        "//etc/passwd",
        "///etc/passwd",
        "/%2Fetc/passwd",
        "/..%5coutside%5ccanary.txt",
        "/..\\outside\\canary.txt",
        "/.env",
        "/%2eenv",
        "/.git/config",
        "/.",
        "/..",
        "/%00",
        "/index.html%00.js",
        "/robots.txt%0a",
        "/%ff",
        "/outside.txt",
        "/elsewhere/canary.txt",
        "/sibling.txt",
        "/robots.txt/",
        "/robots.txt/x.js",
        "/../site-b/canary.txt",
        "/.well-known/../.env",
        "/.well-known/.env",
        "/assets//app-1a2B3c4D.js",
        "/assets/./app-1a2B3c4D.js",
    ] {
        for accept in [PAGE, "Accept: */*"] {
            let answer = get(&server, path, accept);
            assert_eq!((answer.status, answer.text().as_str()), (200, INDEX), "{path}");
            assert!(!answer.text().contains("canary") && !answer.text().contains("root:"), "{path}");
        }
    }
    let long = format!("/{}.js", "a".repeat(5000));
    assert_eq!(get(&server, &long, PAGE).text(), INDEX);
    // A loop of links is a mistake in the folder. The answer gives no details.
    get(&server, "/loop.txt", "Accept: */*").refused(500, "internal-error");
    let pipe = folder.path().join("site/pipe.txt");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert_eq!(get(&server, "/pipe.txt", PAGE).text(), INDEX);
}

#[test]
fn a_browser_may_cache_immutable_files_and_revalidates_others() {
    let folder = front_end();
    let site = folder.path().join("site");
    let server = serve(&site, &[]);
    let script = server.get(&format!("/{SCRIPT}"));
    assert_eq!(script.header("cache-control"), Some("public, max-age=31536000, immutable"));
    for path in ["/", "/rooms", "/robots.txt"] {
        let first = get(&server, path, PAGE);
        assert_eq!(first.header("cache-control"), Some("public, no-cache"), "{path}");
        let policy = first.header("content-security-policy").unwrap();
        assert!(
            policy.contains("frame-ancestors 'none'")
                && !policy.contains("script-src")
                && !policy.contains("default-src")
        );
        let tag = first.header("etag").unwrap();
        let again = get(&server, path, &format!("{PAGE}\r\nIf-None-Match: {tag}"));
        assert_eq!((again.status, again.header("etag"), again.body.len()), (304, Some(tag), 0), "{path}");
        assert_eq!(again.header("cache-control"), first.header("cache-control"), "{path}");
    }
    // Another replica has the same tag for the same content, and another tag for other content of the same length.
    let tag = |server: &Server| server.get("/").header("etag").unwrap().to_owned();
    let (before, other) = (tag(&server), front_end());
    assert_eq!(tag(&serve(&other.path().join("site"), &[])), before);
    let index = site.join("index.html");
    let time = index.metadata().unwrap().modified().unwrap();
    fs::write(&index, INDEX.replace("部", "全")).unwrap();
    File::options().append(true).open(&index).unwrap().set_modified(time).unwrap();
    assert_ne!(tag(&server), before);
    let changed = get(&server, "/", &format!("If-None-Match: {before}"));
    assert_eq!((changed.status, changed.text()), (200, INDEX.replace("部", "全")));
    // A deployment replaces the folder.
    fs::rename(&site, folder.path().join("old")).unwrap();
    get(&server, "/", "Accept: */*").refused(404, "not-found");
    fs::create_dir(&site).unwrap();
    fs::write(&index, "new").unwrap();
    assert_eq!(server.get("/").text(), "new");
}

#[test]
fn head_and_compression_are_supported_and_writes_are_refused() {
    let folder = front_end();
    let site = folder.path().join("site");
    fs::write(site.join("large.js"), "const large = 1;\n".repeat(10_000)).unwrap();
    let server = serve(&site, &[]);
    for path in ["/", "/large.js", "/rooms", "/gone.js"] {
        let (get, head) = (get(&server, path, PAGE), server.send(&format!("HEAD {path} HTTP/1.1\r\n{PAGE}"), b""));
        assert_eq!((head.status, head.body.len()), (get.status, 0), "{path}");
        for name in ["content-length", "content-type", "etag", "cache-control", "accept-ranges", "vary"] {
            assert_eq!(head.header(name), get.header(name), "{path} {name}");
        }
    }
    let plain = server.get("/large.js");
    let compressed = get(&server, "/large.js", "Accept-Encoding: gzip");
    assert_eq!(compressed.header("content-encoding"), Some("gzip"));
    assert!(
        compressed.body.len() < plain.body.len() / 10 && compressed.header("vary").unwrap().contains("accept-encoding")
    );
    assert_ne!(compressed.header("etag"), plain.header("etag"));
    let known = format!("Accept-Encoding: gzip\r\nIf-None-Match: {}", compressed.header("etag").unwrap());
    assert_eq!(get(&server, "/large.js", &known).status, 304);
    for path in ["/", "/robots.txt", "/rooms"] {
        for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"] {
            let refused = server.send(&format!("{method} {path} HTTP/1.1\r\nContent-Length: 0"), b"");
            refused.refused(405, "method-not-allowed");
            assert_eq!(refused.header("allow"), Some("GET, HEAD"));
        }
    }
}

#[test]
fn ranges_of_a_large_file_are_sent_without_reading_all_of_it() {
    let folder = front_end();
    // A sparse file, which takes no space on the disk.
    let length = 20_000_000_u64;
    let mut file = File::create(folder.path().join("site/film.webm")).unwrap();
    file.set_len(length).unwrap();
    for (at, text) in [(0, "begins"), (15_000_000, "middle"), (length - 4, "ends")] {
        file.seek(SeekFrom::Start(at)).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }
    let server = serve(&folder.path().join("site"), &[]);
    let part = |range: &str| get(&server, "/film.webm", range);
    for (range, content_range, text) in [
        ("bytes=0-5", "bytes 0-5/20000000", "begins"),
        ("bytes=15000000-15000005", "bytes 15000000-15000005/20000000", "middle"),
        ("bytes=-4", "bytes 19999996-19999999/20000000", "ends"),
        ("bytes=19999996-", "bytes 19999996-19999999/20000000", "ends"),
        ("bytes=19999996-99999999", "bytes 19999996-19999999/20000000", "ends"),
    ] {
        let answer = part(&format!("Range: {range}\r\nAccept-Encoding: gzip"));
        assert_eq!((answer.status, answer.header("content-range")), (206, Some(content_range)), "{range}");
        assert_eq!((answer.text().as_str(), answer.header("content-encoding")), (text, None), "{range}");
    }
    let beyond = part("Range: bytes=20000000-");
    beyond.refused(416, "range-not-satisfiable");
    assert_eq!(beyond.header("content-range"), Some("bytes */20000000"));

    let tag = server.send("HEAD /film.webm HTTP/1.1", b"").header("etag").unwrap().to_owned();
    assert_eq!(part(&format!("Range: bytes=0-5\r\nIf-Range: {tag}")).status, 206);
    assert_eq!(part(&format!("Range: bytes=0-5\r\nIf-None-Match: {tag}")).status, 304);
    // The complete file instead of a range. The client closes the connection before the end.
    let since = "Sun, 06 Nov 1994 08:49:37 GMT";
    for all in [
        "Range: bytes=0-5\r\nIf-Range: \"another\"",
        &format!("Range: bytes=0-5\r\nIf-Range: {since}"),
        "Range: bytes=0-1,4-5",
        "Range: lines=1-2",
        "Range: bytes=x",
    ] {
        let mut connection = server.connect();
        connection.write(&format!("GET /film.webm HTTP/1.1\r\n{all}"), b"");
        let head = connection.read(true);
        assert_eq!((head.status, head.header("content-length")), (200, Some("20000000")), "{all}");
    }
    assert_eq!(server.get("/").text(), INDEX);
}

#[test]
fn files_have_no_rate_limit_and_metrics_have_no_paths() {
    let folder = front_end();
    let server = serve(&folder.path().join("site"), &["--rate-limit", "1"]);
    for _ in 0..20 {
        assert_eq!(get(&server, "/hunter2", PAGE).status, 200);
        assert_eq!(server.get(&format!("/{SCRIPT}")).status, 200);
    }
    server.get("/openapi.json");
    server.get("/api/nothing").refused(429, "rate-limited");
    let metrics = server.get("/metrics").text();
    assert!(metrics.contains("{method=\"GET\",route=\"static\",status=\"200\"} 40\n"), "{metrics}");
    assert!(!metrics.contains("hunter2"), "{metrics}");
}
