//! What a writing request changes: what is shown at its path, or at a path above it.

use actix_web::HttpRequest;
use common::input::Id;

/// What is shown at which path, and how: `S` shows it to a caller as its `GET` does.
#[derive(Debug, Clone, Copy)]
pub struct Resources<S: 'static>(pub &'static [(&'static str, S)]);

impl<S: Copy> Resources<S> {
    /// How to show what a request changes, and what to lock for it: the topmost resource that it is part of, by the same
    /// name however its ids were written. `None` for a request that makes something new.
    #[must_use]
    pub fn changed_by(&self, req: &HttpRequest) -> Option<(S, String)> {
        let pattern = req.match_pattern()?;
        let is_above =
            |path: &str| pattern.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let above = || self.0.iter().filter(|(path, _)| is_above(path));
        let (_, show) = above().max_by_key(|(path, _)| path.len())?;
        let (top, _) = above().min_by_key(|(path, _)| path.len())?;
        let value = |name: &str| {
            let value = req.match_info().get(name).unwrap_or_default();
            value.parse::<Id>().map_or_else(|_| value.to_owned(), |id| id.to_string())
        };
        let segments =
            top.split('/').map(|segment| match segment.strip_prefix('{').and_then(|s| s.strip_suffix('}')) {
                Some(name) => value(name),
                None => segment.to_owned(),
            });
        Some((*show, segments.collect::<Vec<_>>().join("/")))
    }
}
