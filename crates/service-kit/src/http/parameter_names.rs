//! The names of query parameters, known in any case of letters (contract, "JSON").

use std::{borrow::Cow, collections::HashMap};

use url::form_urlencoded;
use utoipa::openapi::{
    OpenApi, RefOr,
    path::{Operation, Parameter, ParameterIn},
};

/// The names of a service's query parameters, by the same in lower case.
pub struct ParameterNames(HashMap<String, String>);

impl ParameterNames {
    /// The names of the query parameters of all operations.
    pub fn new(document: &OpenApi) -> Self {
        let items = document.paths.paths.values();
        let operations = items.flat_map(|item| [&item.get, &item.post, &item.put, &item.patch, &item.delete]).flatten();
        let parameters = operations.flat_map(|operation: &Operation| operation.parameters.iter().flatten());
        let in_query = parameters.filter_map(|parameter| match parameter {
            RefOr::T(Parameter { name, parameter_in: ParameterIn::Query, .. }) => Some(name),
            _ => None,
        });
        Self(in_query.map(|name| (name.to_ascii_lowercase(), name.clone())).collect())
    }

    /// The query with the names as the document has them; `None` if it has them already.
    pub fn corrected(&self, query: &str) -> Option<String> {
        let mut is_changed = false;
        let pairs = form_urlencoded::parse(query.as_bytes()).map(|(name, value)| {
            let known = self.0.get(&name.to_ascii_lowercase()).filter(|known| **known != name);
            is_changed |= known.is_some();
            (known.map_or(name, |known| Cow::Borrowed(known.as_str())), value)
        });
        let corrected = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        is_changed.then_some(corrected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_case_of_known_names_is_corrected() {
        let names = ["dryRun", "limit", "include-suspended"];
        let names = ParameterNames(names.into_iter().map(|name| (name.to_lowercase(), name.to_owned())).collect());
        assert_eq!(names.corrected("dryRun=true&limit=1&Other=2&q=a%3D%3Db"), None);
        assert_eq!(names.corrected(""), None);
        assert_eq!(names.corrected("dryrun=true").unwrap(), "dryRun=true");
        assert_eq!(names.corrected("dry%52un=1&Other=A%26b&LIMIT&q=%2B").unwrap(), "dryRun=1&Other=A%26b&limit=&q=%2B");
        assert_eq!(names.corrected("dryRun=0&DRYRUN=1").unwrap(), "dryRun=0&dryRun=1");
        assert_eq!(names.corrected("Include-Suspended=1").unwrap(), "include-suspended=1");
    }
}
