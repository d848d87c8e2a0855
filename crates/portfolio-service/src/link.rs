//! Addresses of web pages in requests (contract, "JSON": links and account URLs).

use common::problem::{Rule, Violations, pointer};
use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use url::{Position, Url};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ObjectBuilder, RefOr, SchemaFormat,
        schema::{Schema, Type},
    },
};

/// What [`is_web_address`] requires, in words.
pub const WEB_ADDRESS: &str = "must be an absolute http or https address with a valid host and port, without white \
    space, control characters and backslashes";

/// Whether this is an absolute http or https address. White space, control characters and backslashes, which browsers
/// remove or replace, are not allowed.
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

/// A web address as a URI (RFC 3986), which has only ASCII characters. `None` for what is no web address.
pub fn to_uri(address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    let mut uri = String::with_capacity(address.len());
    // Browsers leave some characters as they are which a URI must have percent-encoded.
    escape(&mut uri, &url[..Position::BeforePath], "[]");
    escape(&mut uri, url.path(), "");
    for (mark, part) in [('?', url.query()), ('#', url.fragment())] {
        if let Some(part) = part {
            uri.push(mark);
            escape(&mut uri, part, "?");
        }
    }
    Some(uri)
}

/// Appends a part of an address, with what may stand neither there nor in `also` percent-encoded.
fn escape(uri: &mut String, part: &str, also: &str) {
    let bytes = part.as_bytes();
    for (index, byte) in bytes.iter().enumerate() {
        let is_escape = || bytes.get(index + 1..index + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit));
        let is_allowed = match byte {
            b'%' => is_escape(),
            byte => {
                byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(byte) || also.as_bytes().contains(byte)
            }
        };
        if is_allowed { uri.push(char::from(*byte)) } else { uri.extend(format!("%{byte:02X}").chars()) }
    }
}

/// The web address that a text of another system means: without blanks and invisible characters around it, with
/// `https://` before a host name, and in the form of the URL standard. None when there is none.
pub fn nearest_web_address(text: &str) -> Option<String> {
    let is_invisible = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}');
    let text = text.trim_matches(|c: char| c.is_whitespace() || c.is_control() || is_invisible(c));
    let text = match text.trim_start_matches('/') {
        rest if begins_with_host_name(rest) => format!("https://{rest}"),
        _ => text.to_owned(),
    };
    let standard = || Url::parse(&text).ok().map(String::from).filter(|url| is_web_address(url));
    if is_web_address(&text) { Some(text) } else { standard() }
}

/// Whether a text is a host name of at least two labels, perhaps with more behind it.
fn begins_with_host_name(text: &str) -> bool {
    let authority = text.split(['/', '?', '#']).next().unwrap_or_default();
    let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
    let parsed = Url::parse(&format!("https://{host}/")).ok();
    let is_domain = parsed.is_some_and(|url| url.username().is_empty() && url.domain().is_some());
    is_domain && host.trim_matches('.').contains(['.', '。', '．']) && port.chars().all(|c| c.is_ascii_digit())
}

/// The address of a web page in a request, or the empty text for none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Link(String);

impl Link {
    /// The address, unchanged.
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
        violations.push(pointer(at), Rule::NotAWebAddress, format!("{WEB_ADDRESS}, or empty"));
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_uri_has_only_the_characters_of_one() {
        for (address, uri) in [
            ("https://club.example", "https://club.example/"),
            ("https://日本語.example/道?語=1#節", "https://xn--wgv71a119e.example/%E9%81%93?%E8%AA%9E=1#%E7%AF%80"),
            (
                "https://[::1]:8/a[1]|{b}?c[]=^`d|#e#[f]",
                "https://[::1]:8/a%5B1%5D%7C%7Bb%7D?c%5B%5D=%5E%60d%7C#e%23%5Bf%5D",
            ),
            ("https://a.example/100%?50%25%4", "https://a.example/100%25?50%25%254"),
            ("https://ä:ö@a.example/?a=b?c", "https://%C3%A4:%C3%B6@a.example/?a=b?c"),
        ] {
            assert_eq!(to_uri(address).as_deref(), Some(uri));
        }
        assert_eq!(to_uri("no address"), None);
    }

    #[test]
    fn the_nearest_web_address_of_a_text_is_what_it_means() {
        for (text, address) in [
            ("https://club.example", "https://club.example"),
            ("  https://club.example/a\n", "https://club.example/a"),
            ("\u{feff}https://club.example\u{200b}", "https://club.example"),
            ("github.com/club/robot", "https://github.com/club/robot"),
            ("club.example", "https://club.example"),
            ("//club.example/a", "https://club.example/a"),
            ("club.example:8080/a?b#c", "https://club.example:8080/a?b#c"),
            ("日本語.example/道", "https://日本語.example/道"),
            ("https:/club.example", "https://club.example/"),
            ("http:\\\\club.example\\a", "http://club.example/a"),
            ("https://club.example/a file", "https://club.example/a%20file"),
            ("club.example/a file", "https://club.example/a%20file"),
        ] {
            assert_eq!(nearest_web_address(text).as_deref(), Some(address), "{text:?}");
        }
        for text in [
            "",
            " ",
            "none",
            "-",
            "/path",
            "a b.example",
            "ftp://club.example",
            "javascript:alert(1)",
            "javascript:a.example",
            "mailto:a@club.example",
            "a@club.example",
            "data:text/html,x.y",
            "tel:03.1234",
            "https://",
            "https://club.example:99999",
        ] {
            assert_eq!(nearest_web_address(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn the_nearest_web_address_is_one(text in "\\PC{0,40}") {
            if let Some(address) = nearest_web_address(&text) {
                prop_assert!(is_web_address(&address), "{}", address);
                prop_assert_eq!(nearest_web_address(&address), Some(address));
            }
        }
    }

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
