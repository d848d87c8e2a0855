//! The few pages that the service has of its own: no script, nothing from elsewhere.

use actix_web::http::{StatusCode, header};
use service_kit::http::Reply;

const STYLE: &str = "body{font:1.1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:3rem auto;padding:0 1rem;\
    color-scheme:light dark}ul{list-style:none;padding:0}li{margin:.5rem 0}li a{display:block;padding:.6rem 1rem;\
    border:1px solid;border-radius:.4rem;text-decoration:none}li a:hover,li a:focus{text-decoration:underline}";

/// A page; `title` is text, `content` is HTML. Pages of a sign-in are not kept by anybody.
pub fn page(status: StatusCode, title: &str, content: &str) -> Reply {
    let title = escape(title);
    let html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n{content}\n</main>\n</body>\n</html>\n"
    );
    Reply::of(status, "text/html; charset=utf-8", html.into_bytes()).with(header::CACHE_CONTROL, "no-store")
}

/// Text as it may stand in an element or a quoted attribute.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}
