//! Protection against cross-site requests (contract, "Sign-in").

use actix_web::http::{
    Method,
    header::{self, HeaderMap},
};
use common::problem::{Problem, code};

/// The origins whose pages may send writes with a cookie.
#[derive(Debug, Clone)]
pub struct Origins {
    public: String,
    allowed: Vec<String>,
}

impl Origins {
    /// The service's own origin and the other allowed ones.
    pub fn new(public: String, allowed: Vec<String>) -> Self {
        Self { public, allowed }
    }

    /// The service's own origin.
    pub fn public(&self) -> &str {
        &self.public
    }

    /// Whether this is one of the other allowed origins.
    pub fn is_other(&self, origin: &str) -> bool {
        self.allowed.iter().any(|allowed| allowed == origin)
    }

    /// Refuses a write that another site started, according to `Origin` and `Sec-Fetch-Site`. A client that is no
    /// browser sends neither header.
    pub fn check(&self, method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
        if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) {
            return Ok(());
        }
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
        let is_allowed = match (text(header::ORIGIN), text(header::HeaderName::from_static("sec-fetch-site"))) {
            // A page whose policy is `Referrer-Policy: no-referrer`, as ours, sends its forms with this origin.
            (Some("null"), site) => site == Some("same-origin"),
            (Some(origin), site) => {
                // The page may use another name of this service, such as localhost.
                let host = text(header::HOST).unwrap_or_default();
                let scheme = self.public.split_once("://").map_or("http", |(scheme, _)| scheme);
                let is_same_origin = origin.split_once("://") == Some((scheme, host));
                origin == self.public
                    || self.is_other(origin)
                    || (is_same_origin && site.is_none_or(|site| site == "same-origin"))
            }
            (None, Some(site)) => matches!(site, "same-origin" | "none"),
            (None, None) => true,
        };
        if is_allowed {
            return Ok(());
        }
        let page = text(header::ORIGIN).map_or_else(|| "another site".to_owned(), |origin| format!("{origin:?}"));
        Err(Problem::new(code::CROSS_SITE).detail(format!(
            "the page is of {page}, which is neither {} nor the header Host ({:?}) nor one of --allowed-origins; a proxy \
             in between must leave the header Host unchanged",
            self.public,
            text(header::HOST).unwrap_or_default()
        )))
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn origins() -> Origins {
        Origins { public: "https://club.example".to_owned(), allowed: vec!["https://app.example".to_owned()] }
    }

    #[test]
    fn a_write_needs_an_origin_of_ours_when_the_browser_sends_one() {
        let check = |method: Method, headers: &[(&'static str, &str)]| {
            let mut req = TestRequest::default().method(method).insert_header(("host", "127.0.0.1:3000"));
            for (name, value) in headers {
                req = req.insert_header((*name, *value));
            }
            let req = req.to_http_request();
            origins().check(req.method(), req.headers()).is_ok()
        };
        assert!(check(Method::POST, &[]));
        assert!(check(Method::POST, &[("origin", "https://club.example")]));
        assert!(check(Method::POST, &[("origin", "https://app.example"), ("sec-fetch-site", "cross-site")]));
        assert!(check(Method::POST, &[("origin", "https://127.0.0.1:3000")]));
        // The public address is https, so a page that came by http may be somebody else's.
        assert!(!check(Method::POST, &[("origin", "http://127.0.0.1:3000")]));
        assert!(!check(Method::POST, &[("origin", "http://club.example")]));
        assert!(!check(Method::POST, &[("origin", "https://127.0.0.1")]));
        assert!(check(Method::POST, &[("sec-fetch-site", "same-origin")]));
        assert!(!check(Method::POST, &[("origin", "https://evil.example")]));
        assert!(!check(Method::POST, &[("origin", "null")]));
        assert!(!check(Method::POST, &[("origin", "null"), ("sec-fetch-site", "cross-site")]));
        assert!(check(Method::POST, &[("origin", "null"), ("sec-fetch-site", "same-origin")]));
        assert!(!check(Method::PUT, &[("sec-fetch-site", "cross-site")]));
        assert!(!check(Method::DELETE, &[("sec-fetch-site", "same-site")]));
        assert!(!check(Method::POST, &[("origin", "https://127.0.0.1:3000"), ("sec-fetch-site", "cross-site")]));
        assert!(check(Method::GET, &[("origin", "https://evil.example")]));
    }
}
