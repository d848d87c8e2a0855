//! The scalar values of requests (contract, "JSON" and "Identifiers"). Each is validated while it is deserialized, so a
//! handler needs no further check. Deserialization collects all violations instead of stopping at the first.

use std::{collections::HashSet, fmt, ops::Deref, str::FromStr};

use deserr::{
    DeserializeError, Deserr, ErrorKind, IntoValue, Sequence, Value, ValueKind, ValuePointerRef, take_cf_content,
};
use serde::Deserialize;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        KnownFormat, ObjectBuilder, RefOr, SchemaFormat,
        schema::{Schema, Type},
    },
};
use uuid::Uuid;

use crate::{
    problem::{Rule, Violations},
    visible::is_blank,
};

fn refuse<T, E: DeserializeError, V: IntoValue>(error: ErrorKind<'_, V>, at: ValuePointerRef<'_>) -> Result<T, E> {
    Err(take_cf_content(E::error(None, error, at)))
}

fn string<E: DeserializeError, V: IntoValue>(value: Value<V>, at: ValuePointerRef<'_>) -> Result<String, E> {
    match value {
        Value::String(text) => Ok(text),
        actual => refuse(ErrorKind::IncorrectValueKind { actual, accepted: &[ValueKind::String] }, at),
    }
}

/// JSON Schema pattern: no control characters except `\t`, `\n` and `\r`.
const NO_CONTROL: &str = r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]*$";
/// JSON Schema pattern: as [`NO_CONTROL`], with at least one character that can be seen. Invisible characters above U+FFFF
/// are missing, because generated clients compile the pattern without the flag `u`.
const NOT_BLANK: &str = concat!(
    r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]*",
    r"[^\s\u0000-\u0020\u007f-\u00a0\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e",
    r"\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]",
    r"[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]*$"
);

/// A text of `MIN` to `MAX` Unicode scalar values without control characters other than `\n`, `\r` and `\t`.
/// With `MIN` of 1 or more it has at least one character that can be seen. It is neither trimmed nor normalized.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Text<const MIN: usize, const MAX: usize>(String);

impl<const MIN: usize, const MAX: usize> Text<MIN, MAX> {
    /// Validates a text.
    ///
    /// # Errors
    /// The first rule that it breaks, and a message.
    pub fn new(text: String) -> Result<Self, (Rule, String)> {
        let length = text.chars().count();
        if text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
            return Err((Rule::ControlCharacter, "must not contain control characters".to_owned()));
        }
        if MIN > 0 && is_blank(&text) {
            return Err((Rule::Blank, "must not be empty or only white space and invisible characters".to_owned()));
        }
        if length < MIN || length > MAX {
            return Err((Rule::Length, format!("must have {MIN} to {MAX} characters, not {length}")));
        }
        Ok(Self(text))
    }

    /// The text.
    pub fn into_inner(self) -> String {
        self.0
    }
}

impl<const MIN: usize, const MAX: usize> Deref for Text<MIN, MAX> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl<const MIN: usize, const MAX: usize> Deserr<Violations> for Text<MIN, MAX> {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, at: ValuePointerRef<'_>) -> Result<Self, Violations> {
        let text = string(value, at)?;
        Self::new(text).map_err(|(code, message)| Violations::one(at, code, message))
    }
}

impl<const MIN: usize, const MAX: usize> PartialSchema for Text<MIN, MAX> {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .min_length(Some(MIN).filter(|min| *min > 0))
            .max_length(Some(MAX))
            .pattern(Some(if MIN > 0 { NOT_BLANK } else { NO_CONTROL }))
            .into()
    }
}

impl<const MIN: usize, const MAX: usize> ToSchema for Text<MIN, MAX> {}

/// An identifier in a request: a hyphenated UUID in upper or lower case, not the nil UUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Id(pub Uuid);

impl FromStr for Id {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // The uuid crate also parses URNs, braces and bare digits. Only the hyphenated form has 36 characters.
        match Uuid::try_parse(text) {
            Ok(id) if text.len() == 36 && !id.is_nil() => Ok(Self(id)),
            _ => Err("must be a UUID, and not the nil UUID"),
        }
    }
}

impl TryFrom<String> for Id {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Deserr<Violations> for Id {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, at: ValuePointerRef<'_>) -> Result<Self, Violations> {
        string(value, at)?.parse().map_err(|message: &str| Violations::one(at, Rule::NotAUuid, message))
    }
}

impl PartialSchema for Id {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid)))
            .examples([serde_json::json!("0198c0de-0000-7000-8000-000000000001")])
            .into()
    }
}

impl ToSchema for Id {}

/// Parses a string by the `FromStr` of `T`.
///
/// # Errors
/// `code` with the message of `FromStr`, or `wrong-type` when the value is not a string.
pub fn parse_text<T: FromStr<Err: fmt::Display>, V: IntoValue>(
    value: Value<V>,
    at: ValuePointerRef<'_>,
    code: Rule,
) -> Result<T, Violations> {
    let text = string(value, at)?;
    text.parse().map_err(|message: T::Err| Violations::one(at, code, message.to_string()))
}

/// Deserializes a list of at most `max` elements. A longer list is one violation; its elements are not read.
///
/// # Errors
/// All violations of the elements, or `length`.
pub fn bounded_list<T: Deserr<Violations>, V: IntoValue>(
    value: Value<V>,
    at: ValuePointerRef<'_>,
    max: usize,
) -> Result<Vec<T>, Violations> {
    match value {
        Value::Sequence(list) if list.len() > max => {
            Err(Violations::one(at, Rule::Length, format!("must have {max} elements at most, not {}", list.len())))
        }
        value => Vec::deserialize_from_value(value, at),
    }
}

/// A set of at least `MIN` and at most [`MAX_IDS`] identifiers in the order of the request. Repeated ones are dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdSet<const MIN: usize>(Vec<(usize, Uuid)>);

/// The maximum length of a list of identifiers in a request.
pub const MAX_IDS: usize = 10_000;

impl<const MIN: usize> IdSet<MIN> {
    /// The set of these identifiers. The caller is responsible for `MIN` and [`MAX_IDS`].
    pub fn new(ids: impl IntoIterator<Item = Uuid>) -> Self {
        let mut seen = HashSet::new();
        Self(ids.into_iter().enumerate().filter(|(_, id)| seen.insert(*id)).collect())
    }

    /// The identifiers.
    pub fn into_inner(self) -> Vec<Uuid> {
        self.iter().map(|(_, id)| id).collect()
    }

    /// The identifiers, each with the index of its first occurrence in the request's list, for pointers of violations.
    pub fn iter(&self) -> impl Iterator<Item = (usize, Uuid)> {
        self.0.iter().copied()
    }
}

impl<const MIN: usize> Deserr<Violations> for IdSet<MIN> {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, at: ValuePointerRef<'_>) -> Result<Self, Violations> {
        let list = bounded_list::<Id, _>(value, at, MAX_IDS)?;
        let ids = Self::new(list.into_iter().map(|id| id.0));
        let number = ids.0.len();
        if number < MIN {
            return Err(Violations::one(at, Rule::Length, format!("must name {MIN} to {MAX_IDS} ids, not {number}")));
        }
        Ok(ids)
    }
}

impl<const MIN: usize> PartialSchema for IdSet<MIN> {
    fn schema() -> RefOr<Schema> {
        utoipa::openapi::ArrayBuilder::new()
            .items(Id::schema())
            .min_items(Some(MIN).filter(|min| *min > 0))
            .max_items(Some(MAX_IDS))
            .into()
    }
}

impl<const MIN: usize> ToSchema for IdSet<MIN> {}

/// A boolean query parameter: `true`, `false`, `1` or `0` in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flag(pub bool);

impl Deserr<Violations> for Flag {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, at: ValuePointerRef<'_>) -> Result<Self, Violations> {
        match string(value, at)?.to_ascii_lowercase().as_str() {
            "true" | "1" => Ok(Self(true)),
            "false" | "0" => Ok(Self(false)),
            _ => Err(Violations::one(at, Rule::WrongType, "must be true or false")),
        }
    }
}

/// The query parameter `limit` of a list: 1 to 1000 rows. Without it, the answer is the complete list (contract,
/// "Lists").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limit(Option<u16>);

/// A number of `MIN` to `MAX` in a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number<const MIN: u16, const MAX: u16>(u16);

impl<const MIN: u16, const MAX: u16> Number<MIN, MAX> {
    /// The number.
    pub fn get(self) -> u16 {
        self.0
    }
}

impl<const MIN: u16, const MAX: u16> Deserr<Violations> for Number<MIN, MAX> {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, at: ValuePointerRef<'_>) -> Result<Self, Violations> {
        let text = string(value, at)?;
        let refuse = |rule| Violations::one(at, rule, format!("must be a number from {MIN} to {MAX}"));
        // `u16::from_str` also accepts a plus sign.
        let digits = text.strip_prefix('-').unwrap_or(&text);
        if digits.is_empty() || !digits.bytes().all(|c| c.is_ascii_digit()) {
            return Err(refuse(Rule::Invalid));
        }
        let number = text.parse().ok().filter(|number| (MIN..=MAX).contains(number));
        number.map(Self).ok_or_else(|| refuse(Rule::Range))
    }
}

impl Limit {
    /// The largest limit.
    pub const MAX: u16 = 1000;

    /// The maximum number of rows, if there is one.
    pub fn max_rows(self) -> Option<usize> {
        self.0.map(usize::from)
    }
}

impl Deserr<Violations> for Limit {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, at: ValuePointerRef<'_>) -> Result<Self, Violations> {
        let limit = Number::<1, { Self::MAX }>::deserialize_from_value(value, at)?;
        Ok(Self(Some(limit.get())))
    }
}

#[cfg(test)]
mod tests {
    use deserr::deserialize;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, Deserr, PartialEq)]
    #[deserr(error = Violations, rename_all = camelCase)]
    struct Body {
        name: Text<1, 4>,
        group_id: Id,
        admins: IdSet<1>,
        #[deserr(default)]
        open: Option<bool>,
    }

    fn read(body: Value) -> Result<Body, Violations> {
        deserialize(body)
    }

    fn codes(body: Value) -> Vec<(String, Rule)> {
        let violations = read(body).unwrap_err().0;
        violations
            .into_iter()
            .map(|violation| match violation.location {
                crate::problem::Location::Pointer { pointer } => (pointer, violation.code),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    const ONE: &str = "0198c0de-0000-7000-8000-000000000001";

    #[test]
    fn unknown_fields_are_ignored_and_ids_are_read_in_any_case() {
        let body = read(json!({"name": "五一六", "groupId": ONE.to_uppercase(), "admins": [ONE, ONE], "extra": {}}));
        let body = body.unwrap();
        assert_eq!(body.group_id.to_string(), ONE);
        assert_eq!(body.admins.into_inner().len(), 1);
        assert_eq!(body.open, None);
        let other = ONE.replace('1', "2");
        let body = read(json!({"name": "x", "groupId": ONE, "admins": [ONE, ONE, other]})).unwrap();
        assert_eq!(body.admins.iter().map(|(index, _)| index).collect::<Vec<_>>(), [0, 2]);
    }

    #[test]
    fn all_violations_are_collected() {
        let found = codes(json!({"name": 5, "admins": [], "open": "yes"}));
        let expected = [
            ("/name", Rule::WrongType),
            ("/admins", Rule::Length),
            ("/open", Rule::WrongType),
            ("/groupId", Rule::Required),
        ];
        for (pointer, code) in expected {
            assert!(found.contains(&(pointer.to_owned(), code)), "{pointer} {code:?} in {found:?}");
        }
        assert_eq!(found.len(), 4);
        let found = codes(json!({"name": "x", "groupId": ONE, "admins": [ONE, "x", 3]}));
        assert_eq!(found, [("/admins/1".to_owned(), Rule::NotAUuid), ("/admins/2".to_owned(), Rule::WrongType)]);
    }

    #[test]
    fn a_list_that_is_too_long_is_one_violation() {
        let found = codes(json!({"name": "x", "groupId": ONE, "admins": vec![0; MAX_IDS + 1]}));
        assert_eq!(found, [("/admins".to_owned(), Rule::Length)]);
        let found = codes(json!({"name": "x", "groupId": ONE, "admins": vec![0; MAX_IDS]}));
        assert_eq!(found.len(), MAX_IDS);
    }

    #[test]
    fn text_rules() {
        assert_eq!(Text::<1, 4>::new("五一六号".into()).unwrap().into_inner(), "五一六号");
        assert_eq!(Text::<1, 4>::new(" a ".into()).unwrap().into_inner(), " a ");
        assert_eq!(Text::<1, 4>::new("五一六号室".into()).unwrap_err().0, Rule::Length);
        for blank in ["", "\u{3000} ", "\u{200b}\u{2800}", "\u{e0001}", "\u{fe0f}\u{ad}"] {
            assert_eq!(Text::<1, 4>::new(blank.into()).unwrap_err().0, Rule::Blank, "{blank:?}");
        }
        assert_eq!(Text::<1, 4>::new("a\0".into()).unwrap_err().0, Rule::ControlCharacter);
        assert_eq!(Text::<1, 4>::new("a\u{85}".into()).unwrap_err().0, Rule::ControlCharacter);
        assert_eq!(Text::<0, 4>::new("\r\n\t".into()).unwrap().into_inner(), "\r\n\t");
        assert_eq!(Text::<0, 4>::new(String::new()).unwrap().into_inner(), "");
    }

    /// The pattern in the OpenAPI document knows all blank characters up to U+FFFF.
    #[test]
    fn the_pattern_refuses_what_is_blank() {
        let pattern = regex::Regex::new(NOT_BLANK).unwrap();
        for character in ('\0'..='\u{ffff}').filter(|c| !c.is_control()) {
            let text = character.to_string();
            assert_eq!(pattern.is_match(&text), !is_blank(&text), "U+{:04X}", u32::from(character));
        }
    }

    #[test]
    fn a_limit_is_a_number_from_1_to_1000() {
        let read = |text: &str| deserialize::<Limit, Value, Violations>(json!(text)).map(Limit::max_rows);
        assert_eq!((read("1").unwrap(), read("1000").unwrap()), (Some(1), Some(1000)));
        let rule = |text: &str| read(text).unwrap_err().0[0].code;
        for bad in ["0", "1001", "-1", "99999999999999999999"] {
            assert_eq!(rule(bad), Rule::Range, "{bad}");
        }
        for bad in ["", "-", "+1", "1.0", "x"] {
            assert_eq!(rule(bad), Rule::Invalid, "{bad}");
        }
        assert_eq!(Limit::default().max_rows(), None);
    }

    #[test]
    fn ids_are_hyphenated_and_not_nil() {
        for text in ["", "x", "00000000-0000-0000-0000-000000000000", "0198c0de000070008000000000000001"] {
            assert!(text.parse::<Id>().is_err(), "{text}");
        }
    }
}
