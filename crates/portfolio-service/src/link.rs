//! Addresses of web pages in requests (contract, "JSON": links and account URLs).

use common::problem::{Rule, Violations, pointer};
use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use url::Url;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ObjectBuilder, RefOr, SchemaFormat,
        schema::{Schema, Type},
    },
};

/// Whether this is an absolute http or https address. White space, control characters and backslashes, which browsers
/// remove or replace, are not allowed.
#[must_use]
pub fn is_web_address(text: &str) -> bool {
    let rest = ["https://", "http://"].iter().find_map(|scheme| {
        text.split_at_checked(scheme.len())
            .filter(|(start, _)| start.eq_ignore_ascii_case(scheme))
            .map(|(_, rest)| rest)
    });
    let has_host = rest.is_some_and(|rest| !rest.starts_with(['/', '?', '#']));
    let is_plain = !text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\');
    has_host && is_plain && Url::parse(text).is_ok_and(|url| url.has_host())
}

/// The address of a web page in a request, or the empty text for none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Link(String);

impl Link {
    /// The address, unchanged.
    #[must_use]
    pub fn into_inner(self) -> String {
        self.0
    }
}

impl Deserr<Violations> for Link {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, at: ValuePointerRef<'_>) -> Result<Self, Violations> {
        let text = String::deserialize_from_value(value, at)?;
        if text.is_empty() || is_web_address(&text) {
            return Ok(Self(text));
        }
        let mut violations = Violations::default();
        violations.push(pointer(at), Rule::NotAWebAddress, "must be an absolute http or https address, or empty");
        Err(violations)
    }
}

impl PartialSchema for Link {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::Custom("uri-reference".to_owned())))
            .description(Some("An absolute http or https address, or empty for none."))
            .into()
    }
}

impl ToSchema for Link {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_web_address_is_absolute_and_http_or_https() {
        for good in [
            "https://club.example",
            "http://club.example:8080/a?b=c#d",
            "HTTPS://Club.Example/A",
            "https://日本語.example/道",
            "http://[::1]/",
            "https://a:b@club.example/",
        ] {
            assert!(is_web_address(good), "{good}");
        }
        for bad in [
            "",
            " ",
            "club.example",
            "//club.example",
            "/path",
            "https:club.example",
            "https:/club.example",
            "https://",
            "https:///club.example",
            "https://?x",
            "https:\\\\club.example",
            "https://club.example\\@evil.example",
            " https://club.example",
            "https://club.example ",
            "https://club.ex\nample",
            "java\tscript:alert(1)",
            "javascript:alert(1)",
            "JavaScript://club.example/%0aalert(1)",
            "data:text/html,x",
            "ftp://club.example",
            "https://club.example:99999",
            "https://exa mple.example",
            "https://a%00b.example",
            "ｈttps://club.example",
        ] {
            assert!(!is_web_address(bad), "{bad:?}");
        }
    }
}
