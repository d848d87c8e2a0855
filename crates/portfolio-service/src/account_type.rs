//! The account types and the addresses that each accepts (contract, "Account types"). The validation, the OpenAPI
//! document and `GET /api/v1/account-types` use the same table.

use std::sync::LazyLock;

use common::problem::{Rule, Violations};
use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use regex_lite::Regex;
use serde::{Serialize, Serializer};
use service_kit::page::PageContext;
use url::Url;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ObjectBuilder, RefOr,
        schema::{Schema, Type},
    },
};

use crate::link::{WEB_ADDRESS, is_web_address};

/// An account type.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AccountTypeInfo, example = json!({
    "value": 5, "name": "github", "pattern": "^https://github\\.com/[A-Za-z0-9-]+.*$"
}))]
pub struct Info {
    /// The number in `type` of an account.
    pub value: i16,
    /// The name.
    name: &'static str,
    /// The name as the site itself writes it, on pages. A kind of site has a text in each language.
    #[serde(skip)]
    title: &'static str,
    /// What addresses look like, on pages.
    #[serde(skip)]
    form: &'static str,
    /// A regular expression for the accepted addresses, which must also be absolute http or https addresses.
    pattern: &'static str,
}

/// Every account type. Except for [`ANY`], the host has this spelling only, without port and user information; behind
/// the name, the site's own path, query or fragment may follow, in the form of the URL standard.
pub const TABLE: [Info; 14] = [
    row(0, "homepage", "Homepage", "https://NAME.example", ANY),
    row(1, "blog", "Blog", "https://NAME.example", ANY),
    row(2, "twitter", "X (Twitter)", "https://x.com/NAME", r"^https://(twitter|x)\.com/[A-Za-z0-9_]+.*$"),
    row(3, "facebook", "Facebook", "https://www.facebook.com/NAME", r"^https://www\.facebook\.com/[A-Za-z0-9.]+.*$"),
    row(4, "pixiv", "pixiv", "https://www.pixiv.net/users/123", r"^https://www\.pixiv\.net/users/[0-9]+.*$"),
    row(5, "github", "GitHub", "https://github.com/NAME", r"^https://github\.com/[A-Za-z0-9-]+.*$"),
    row(6, "qiita", "Qiita", "https://qiita.com/NAME", r"^https://qiita\.com/[A-Za-z0-9_-]+.*$"),
    row(7, "zenn", "Zenn", "https://zenn.dev/name", r"^https://zenn\.dev/[a-z0-9_]+.*$"),
    row(8, "atcoder", "AtCoder", "https://atcoder.jp/users/NAME", r"^https://atcoder\.jp/users/[A-Za-z0-9_]+.*$"),
    row(9, "soundcloud", "SoundCloud", "https://soundcloud.com/name", r"^https://soundcloud\.com/[a-z0-9_-]+.*$"),
    row(
        10,
        "hackthebox",
        "Hack The Box",
        "https://app.hackthebox.com/users/123",
        r"^https://app\.hackthebox\.com/users/[A-Za-z0-9]+.*$",
    ),
    row(11, "ctftime", "CTFtime", "https://ctftime.org/user/123", r"^https://ctftime\.org/user/[0-9]+.*$"),
    row(
        12,
        "bluesky",
        "Bluesky",
        "https://bsky.app/profile/NAME.bsky.social",
        r"^https://bsky\.app/profile/([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?.*$",
    ),
    row(13, "mixi2", "mixi2", "https://mixi.social/@NAME", r"^https://mixi\.social/@[A-Za-z][A-Za-z0-9_]{3,15}.*$"),
];

/// Any web address, for a member's own site.
const ANY: &str = r"^[Hh][Tt][Tt][Pp][Ss]?://.+$";

const fn row(value: i16, name: &'static str, title: &'static str, form: &'static str, pattern: &'static str) -> Info {
    Info { value, name, title, form, pattern }
}

static PATTERNS: LazyLock<Vec<Option<Regex>>> =
    LazyLock::new(|| TABLE.iter().map(|info| Regex::new(info.pattern).ok()).collect());

/// An account type, as an index into [`TABLE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AccountType(usize);

impl AccountType {
    /// The type that accepts any web address.
    pub const HOMEPAGE: Self = Self(0);

    /// The type with this number.
    pub fn from_number(number: i64) -> Option<Self> {
        TABLE.iter().position(|info| i64::from(info.value) == number).map(Self)
    }

    /// The number on the wire and in the database.
    pub fn number(self) -> i16 {
        TABLE[self.0].value
    }

    /// The name.
    pub fn name(self) -> &'static str {
        TABLE[self.0].name
    }

    /// All types.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..TABLE.len()).map(Self)
    }

    /// The name on a page: as the site itself writes it, or that of a kind of site.
    pub fn title(self, page: &PageContext) -> String {
        page.find(&format!("account-{}", self.name())).unwrap_or_else(|| TABLE[self.0].title.to_owned())
    }

    /// What its addresses look like.
    pub fn form(self) -> &'static str {
        TABLE[self.0].form
    }

    /// Checks whether an account of this type can have this address.
    ///
    /// # Errors
    /// A message with the first rule that it breaks.
    pub fn check(self, url: &str) -> Result<(), String> {
        let Info { name, pattern, .. } = TABLE[self.0];
        if !PATTERNS[self.0].as_ref().is_some_and(|pattern| pattern.is_match(url)) {
            return Err(format!("must be the web address of a {name} account, {pattern}"));
        }
        if !is_web_address(url) {
            return Err(WEB_ADDRESS.to_owned());
        }
        // A browser normalizes some addresses: a name of two dots, for example, is another path.
        match Url::parse(url) {
            Ok(parsed) if pattern != ANY && parsed.as_str() != url => {
                Err(format!("must be the address of the account itself, which browsers take for {parsed}"))
            }
            _ => Ok(()),
        }
    }

    /// Whether an account of this type can have this address.
    pub fn accepts(self, url: &str) -> bool {
        self.check(url).is_ok()
    }
}

impl Serialize for AccountType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i16(self.number())
    }
}

impl Deserr<Violations> for AccountType {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, at: ValuePointerRef<'_>) -> Result<Self, Violations> {
        let number = i64::deserialize_from_value(value, at)?;
        let message = "must be one of the numbers of GET /api/v1/account-types";
        Self::from_number(number).ok_or_else(|| Violations::one(at, Rule::NotAllowed, message))
    }
}

impl PartialSchema for AccountType {
    fn schema() -> RefOr<Schema> {
        let rows: Vec<_> =
            TABLE.iter().map(|info| format!("{} {}: `{}`", info.value, info.name, info.pattern)).collect();
        ObjectBuilder::new()
            .schema_type(Type::Integer)
            .description(Some(format!("The site of the account, with a pattern for its address. {}", rows.join("; "))))
            .enum_values(Some(TABLE.map(|info| info.value)))
            .into()
    }
}

impl ToSchema for AccountType {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Valid and invalid addresses of each type.
    const EXAMPLES: [(&[&str], &[&str]); 14] = [
        (&["https://alice.example", "http://alice.example/?a=b#c"], &["alice.example", "ftp://alice.example"]),
        (&["https://blog.example/alice/", "HTTP://BLOG.EXAMPLE"], &["mailto:alice@blog.example", "https://"]),
        (
            &["https://twitter.com/Alice_1", "https://x.com/a"],
            &["https://x.com/-al", "https://twitter.com.evil.example/a", "https://xxcom/a", "https://www.x.com/a"],
        ),
        (
            &["https://www.facebook.com/alice.a"],
            &["https://facebook.com/alice", "https://www.facebook.com/_al", "https://www.facebook.com/.."],
        ),
        (
            &["https://www.pixiv.net/users/123", "https://www.pixiv.net/users/123/artworks"],
            &["https://www.pixiv.net/users/alice", "https://www.pixiv.net/users/１"],
        ),
        (&["https://github.com/Alice-1", "https://github.com/alice?tab=repositories"], &["https://github.com/_alice"]),
        (&["https://qiita.com/Alice_-1"], &["https://qiita.com/.alice", "https://qiita.com/@alice"]),
        (&["https://zenn.dev/alice_1"], &["https://zenn.dev/Alice", "https://zenn.dev/-al"]),
        (&["https://atcoder.jp/users/Alice_1"], &["https://atcoder.jp/alice", "https://atcoder.jp/users/-al"]),
        (&["https://soundcloud.com/al-ice_1"], &["https://soundcloud.com/Alice", "https://soundcloud.com/.b"]),
        (
            &["https://app.hackthebox.com/users/1a"],
            &["https://hackthebox.com/users/1", "https://app.hackthebox.com/users/-b"],
        ),
        (&["https://ctftime.org/user/12"], &["https://ctftime.org/user/alice", "https://ctftime.org/users/12"]),
        (
            &["https://bsky.app/profile/alice.bsky.social", "https://bsky.app/profile/a-b.example"],
            &[
                "https://bsky.app/profile/alice",
                "https://bsky.app/profile/.alice.example",
                "https://bsky.app/profile/alice..example",
                "https://bsky.app/profile/-alice.example",
                "https://bsky.app/profile/did:plc:abc",
            ],
        ),
        (
            &["https://mixi.social/@alice", "https://mixi.social/@a234567890123456"],
            &["https://mixi.social/alice", "https://mixi.social/@ali", "https://mixi.social/@1alice"],
        ),
    ];

    /// Invalid variants of a valid address.
    fn invalid_variants(good: &str) -> Vec<String> {
        let (host, path) = good.strip_prefix("https://").unwrap().split_once('/').unwrap();
        vec![
            format!("{good}\n"),
            format!(" {good}"),
            format!("{good}/a b"),
            format!("https://{host}/{}/../x", path.split(['?', '#']).next().unwrap()),
            good.replace("https://", "http://"),
            good.replace("https://", "HTTPS://"),
            good.replace("https://", "javascript://"),
            format!("javascript:'{good}'"),
            format!("https://alice@{host}/{path}"),
            format!("https://{host}:443/{path}"),
            format!("https://{host}./{path}"),
            format!("https://{}/{path}", host.to_uppercase()),
            format!("https://{}/{path}", host.replacen('.', "x", 1)),
            format!("https://evil.example/{host}/{path}"),
            format!("https://evil.example#https://{host}/{path}"),
            format!("https://{host}.evil.example/{path}"),
            format!("https://{host}@evil.example/{path}"),
            format!("https://{host}/"),
            format!("https://{host}"),
            format!("https://{host}\\{path}"),
            // Cyrillic letters and a full-width stop that look like the real ones.
            format!("https://{}/{path}", host.replacen('c', "с", 1).replacen('x', "х", 1).replacen('o', "о", 1)),
            format!("https://{}/{path}", host.replacen('.', "．", 1)),
            format!("https://{host}/{}", path.replacen(['a', 'A', '1'], "а", 1)),
            format!("{good}\u{200b}"),
        ]
    }

    #[test]
    fn every_type_accepts_its_addresses_and_no_other() {
        for (number, (good, bad)) in EXAMPLES.iter().enumerate() {
            let account = AccountType::from_number(i64::try_from(number).unwrap()).unwrap();
            for url in *good {
                assert!(account.accepts(url), "{number} {url}");
            }
            let longer = good
                .iter()
                .flat_map(|good| ["/", "?tab=x", "?", "#x", "/a/b", "%2e"].map(|more| format!("{good}{more}")));
            for url in longer {
                assert!(account.accepts(&url), "{number} {url}");
            }
            for url in bad.iter().chain(&["", "javascript:alert(1)"]) {
                assert!(!account.accepts(url), "{number} {url}");
            }
            let strict = good.iter().filter(|_| number > 1);
            for url in strict.flat_map(|good| invalid_variants(good).into_iter().filter(move |url| url != good)) {
                assert!(!account.accepts(&url), "{number} {url:?}");
            }
        }
    }

    #[test]
    fn a_refusal_names_a_rule_that_the_address_breaks() {
        let refusal = |number, url| AccountType::from_number(number).unwrap().check(url).unwrap_err();
        assert_eq!(refusal(0, "alice.example"), format!("must be the web address of a homepage account, {ANY}"));
        for url in ["https://a b.example/", "https://a.example\\b", "https:///a.example", "https://a.example:99999"] {
            assert_eq!(refusal(0, url), WEB_ADDRESS, "{url}");
        }
        assert!(refusal(5, "https://github.com/_alice").ends_with(TABLE[5].pattern));
        assert_eq!(
            refusal(3, "https://www.facebook.com/.."),
            "must be the address of the account itself, which browsers take for https://www.facebook.com/"
        );
    }

    #[test]
    fn every_type_accepts_the_example_of_its_addresses() {
        for account in AccountType::all() {
            assert!(account.accepts(account.form()), "{account:?}");
        }
    }

    #[test]
    fn numbers_are_rows_and_patterns_compile() {
        assert!(TABLE.iter().enumerate().all(|(index, info)| usize::try_from(info.value) == Ok(index)));
        assert!(PATTERNS.iter().all(Option::is_some));
        assert_eq!(AccountType::from_number(14), None);
        assert_eq!(AccountType::from_number(-1), None);
    }
}
