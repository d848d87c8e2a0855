//! The page at `/`. Both services include this file in their tests, by its path, as a module of theirs.

use crate::harness::Answer;

/// Holds a page to what every page promises: small, no script, nothing from elsewhere. Returns its text.
#[track_caller]
pub fn check(answer: &Answer) -> String {
    assert!(answer.header("content-type").unwrap().starts_with("text/html"));
    let policy = answer.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(!policy.contains("script-src") && !policy.contains("unsafe"), "{policy}");
    let page = answer.text();
    assert!(page.len() < 60_000, "{} bytes", page.len());
    for outside in ["<script", " src=", "style=\"", "@import", "url(http"] {
        assert!(!page.contains(outside), "{outside} in {page}");
    }
    assert!(page.contains("<html lang=\"") && page.contains("prefers-color-scheme:dark"), "{page}");
    page
}

/// The addresses that a page links to.
pub fn links(page: &str) -> Vec<&str> {
    page.split("<a href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
}
