//! What an object has already is not checked again when it is replaced: an import may have left values that today's rules
//! refuse (contract, "JSON").

use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use serde_json::Value as Json;

use crate::problem::{Location, Problem, Violations};

/// A body that replaces an object.
pub trait Replacement: Deserr<Violations> {
    /// Its fields that an object may have in breach of a rule, each with a value that breaks none.
    const FIELDS: &'static [(&'static str, &'static str)];
}

/// A body in which some fields may break a rule, as long as the object has these values already.
#[derive(Debug)]
pub struct Kept<T> {
    /// The body, with other values in these fields.
    pub body: T,
    /// The values that break a rule.
    pub unchecked: Unchecked,
}

/// The fields of a body that break a rule, with their values.
#[derive(Debug, Clone, Default)]
pub struct Unchecked(Vec<(&'static str, Json, Violations)>);

impl Unchecked {
    /// The names of the fields that stay as the object has them.
    ///
    /// # Errors
    /// 400 if the object has another value.
    pub fn kept(&self, of_object: &[(&str, &str)]) -> Result<Vec<&'static str>, Problem> {
        let has = |field: &str, value: &Json| of_object.iter().any(|(name, text)| *name == field && value == text);
        let (kept, changed): (Vec<_>, Vec<_>) = self.0.iter().partition(|(field, value, _)| has(field, value));
        let violations = changed.into_iter().flat_map(|(.., violations)| violations.0.clone()).collect();
        Violations(violations).into_result()?;
        Ok(kept.into_iter().map(|(field, ..)| *field).collect())
    }
}

impl<T: Replacement> Deserr<Violations> for Kept<T> {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, at: ValuePointerRef<'_>) -> Result<Self, Violations> {
        let mut json = Json::from(value);
        let violations = match T::deserialize_from_value(json.clone().into_value(), at) {
            Ok(body) => return Ok(Self { body, unchecked: Unchecked::default() }),
            Err(violations) => violations,
        };
        let mut unchecked = Vec::new();
        for (field, valid) in T::FIELDS {
            let pointer = format!("/{field}");
            let mut of_field = violations.clone();
            of_field.0.retain(|violation| violation.location == Location::Pointer { pointer: pointer.clone() });
            if let Some(value) = json.get_mut(field).filter(|value| value.is_string() && !of_field.0.is_empty()) {
                unchecked.push((*field, std::mem::replace(value, Json::from(*valid)), of_field));
            }
        }
        // Whatever else is wrong is refused together with these.
        let body = T::deserialize_from_value(json.into_value(), at).map_err(|_| violations)?;
        Ok(Self { body, unchecked: Unchecked(unchecked) })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::input::Text;

    #[derive(Debug, Deserr)]
    #[deserr(error = Violations)]
    struct Body {
        name: Text<1, 4>,
        other: Text<0, 4>,
        open: bool,
    }

    impl Replacement for Body {
        const FIELDS: &'static [(&'static str, &'static str)] = &[("name", "x"), ("other", "")];
    }

    fn read(body: Json) -> Result<Kept<Body>, Violations> {
        deserr::deserialize(body)
    }

    #[test]
    fn only_what_the_object_has_may_break_a_rule() {
        let sound = read(json!({"name": "four", "other": "", "open": true})).unwrap();
        assert_eq!((&*sound.body.name, &*sound.body.other, sound.body.open), ("four", "", true));
        assert_eq!(sound.unchecked.kept(&[("name", "something else")]).unwrap(), [""; 0]);

        let long = read(json!({"name": "longer", "other": "also long", "open": false})).unwrap();
        assert_eq!(long.unchecked.kept(&[("name", "longer"), ("other", "also long")]).unwrap(), ["name", "other"]);
        let refused = long.unchecked.kept(&[("name", "longer"), ("other", "shorter")]).unwrap_err();
        assert_eq!((refused.status(), refused.broken_rules().len()), (400, 1));
        // With another fault, all are named.
        let all = read(json!({"name": "longer", "other": "also long"})).unwrap_err();
        assert_eq!(all.0.len(), 3);
        assert_eq!(read(json!({"name": 5, "other": "", "open": true})).unwrap_err().0.len(), 1);
    }
}
