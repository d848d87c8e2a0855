//! The paths of a service and the methods of each, for the `Allow` header of a 405.

use actix_web::{dev::ResourceDef, http::Method};
use utoipa::openapi::OpenApi;

/// The paths at the root of every service.
pub const ROOT_PATHS: &[&str] =
    &["/livez", "/readyz", "/metrics", "/problems", "/problems/{code}", "/openapi.json", "/docs", "/docs/{tail:.*}"];

/// Paths and the methods of each.
pub struct PathMethods(Vec<(ResourceDef, Vec<Method>)>);

impl PathMethods {
    /// The paths of `document`.
    pub fn new(document: &OpenApi) -> Self {
        let operations = document.paths.paths.iter().map(|(path, item)| {
            let methods = [
                (item.get.is_some(), Method::GET),
                (item.get.is_some(), Method::HEAD),
                (item.post.is_some(), Method::POST),
                (item.put.is_some(), Method::PUT),
                (item.patch.is_some(), Method::PATCH),
                (item.delete.is_some(), Method::DELETE),
            ];
            let methods = methods.into_iter().filter_map(|(exists, method)| exists.then_some(method)).collect();
            (ResourceDef::new(path.as_str()), methods)
        });
        Self(operations.collect())
    }

    /// These paths, those of pages and of forms, and [`ROOT_PATHS`].
    pub fn with_pages(&self, pages: &[&str], forms: &[&str]) -> Self {
        let root =
            ROOT_PATHS.iter().chain(pages).map(|path| (ResourceDef::new(*path), vec![Method::GET, Method::HEAD]));
        let forms = forms.iter().map(|path| (ResourceDef::new(*path), vec![Method::POST]));
        Self(self.0.iter().cloned().chain(root).chain(forms).collect())
    }

    /// The methods of a path as the value of an `Allow` header, or `None` for an unknown path. A literal path such as
    /// `/users/me` goes before a template such as `/users/{userId}`.
    pub fn allow(&self, path: &str) -> Option<String> {
        let is_literal = self.is_literal(path);
        let matching = self
            .0
            .iter()
            .filter(|(pattern, _)| if is_literal { pattern.pattern() == Some(path) } else { pattern.is_match(path) });
        let mut methods: Vec<_> = matching.flat_map(|(_, methods)| methods.iter().map(Method::as_str)).collect();
        methods.sort_unstable();
        methods.dedup();
        (!methods.is_empty()).then(|| methods.join(", "))
    }

    /// Whether this is a literal path that does not have this method.
    pub fn refuses(&self, path: &str, method: &Method) -> bool {
        self.is_literal(path) && !self.literal(path).any(|methods| methods.contains(method))
    }

    /// Whether this is a path without parameters.
    pub fn is_literal(&self, path: &str) -> bool {
        self.literal(path).next().is_some()
    }

    /// The methods of a literal path; those of a page and of the form that it sends to itself are two entries.
    fn literal(&self, path: &str) -> impl Iterator<Item = &[Method]> {
        self.0.iter().filter(move |(pattern, _)| pattern.pattern() == Some(path)).map(|(_, methods)| methods.as_slice())
    }
}
