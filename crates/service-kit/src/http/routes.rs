//! Which methods a path takes, read from the OpenAPI document, so that a 405 can say so.

use actix_web::{dev::ResourceDef, http::Method};
use utoipa::openapi::OpenApi;

/// The paths of a document and the methods of each.
pub struct Routes(Vec<(ResourceDef, Vec<Method>)>);

impl Routes {
    /// The paths of `document` and those at the root of every service.
    #[must_use]
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
            let methods = methods.into_iter().filter_map(|(there, method)| there.then_some(method)).collect();
            (ResourceDef::new(path.as_str()), methods)
        });
        let root = super::root::PATHS.iter().map(|path| (ResourceDef::new(*path), vec![Method::GET, Method::HEAD]));
        Self(operations.chain(root).collect())
    }

    /// The methods that this path takes, as the `Allow` header lists them, or `None` when there is no such path. A path
    /// in words is itself, also where one with a parameter fits it.
    #[must_use]
    pub fn allow(&self, path: &str) -> Option<String> {
        let in_words = self.in_words(path);
        let fitting = self.0.iter().filter(|(pattern, _)| match in_words {
            Some(_) => pattern.pattern() == Some(path),
            None => pattern.is_match(path),
        });
        let mut methods: Vec<_> = fitting.flat_map(|(_, methods)| methods.iter().map(Method::as_str)).collect();
        methods.sort_unstable();
        methods.dedup();
        (!methods.is_empty()).then(|| methods.join(", "))
    }
    /// Whether this is a path in words that does not take this method.
    #[must_use]
    pub fn refuses(&self, path: &str, method: &Method) -> bool {
        self.in_words(path).is_some_and(|methods| !methods.contains(method))
    }

    fn in_words(&self, path: &str) -> Option<&[Method]> {
        let found = self.0.iter().find(|(pattern, _)| pattern.pattern() == Some(path));
        found.map(|(_, methods)| methods.as_slice())
    }
}
