//! The key by which names of places are compared.

use caseless::default_case_fold_str;
use unicode_normalization::UnicodeNormalization;

/// The key of a place. Two names with the same key are one place (contract, "No double booking").
///
/// The steps are compatibility decomposition, full case folding, NFKC, trimming white space at both ends, and replacing
/// each other run of white space by one space. Folding needs the decomposed form: `ᾳ` folds to two letters, and a mark
/// that follows it would end up on the wrong one. White space comes last because NFKC converts other characters to it.
/// The function is idempotent. A name of only white space has the empty key. A key may be longer than its name (`㍿`
/// becomes `株式会社`).
#[must_use]
pub fn place_key(place: &str) -> String {
    let decomposed: String = place.nfkd().collect();
    let folded: String = default_case_fold_str(&decomposed).nfkc().collect();
    folded.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ways_to_write_one_place_agree() {
        for place in ["S516", "s516", "Ｓ５１６", "ｓ５１６", " S516 ", "\u{3000}S516\t\n", "\u{a0}S516"] {
            assert_eq!(place_key(place), "s516", "{place:?}");
        }
        for place in ["S 516", "s  516", "S\u{3000}\t516", "\u{2028}S\n\r\n516 "] {
            assert_eq!(place_key(place), "s 516", "{place:?}");
        }
        assert_eq!(place_key("ｶﾞｲﾀﾞﾝｽ室"), place_key("ガイダンス室"));
        assert_eq!(place_key("Cafe\u{301}"), place_key("CAFÉ"));
        assert_eq!(place_key("STRASSE"), place_key("Straße"));
    }

    #[test]
    fn different_places_have_different_keys() {
        assert_ne!(place_key("S516"), place_key("S51"));
        assert_ne!(place_key("S 516"), place_key("S516"));
        assert_ne!(place_key("ガイダンス"), place_key("カイタンス"));
    }

    #[test]
    fn white_space_alone_has_the_empty_key() {
        assert_eq!(place_key(""), "");
        assert_eq!(place_key(" \u{3000}\t"), "");
    }

    #[test]
    fn the_key_of_every_character_is_its_own_key() {
        for character in '\0'..=char::MAX {
            let place = character.to_string();
            let key = place_key(&place);
            // For a character that is its own key, the assertion is trivial.
            if key != place {
                assert_eq!(place_key(&key), key, "U+{:04X}", u32::from(character));
            }
        }
    }

    /// Characters that normalisation or folding changes, marks that move or join, and white space.
    fn any_name() -> impl Strategy<Value = String> {
        let character = prop_oneof![
            any::<char>(),
            prop::sample::select(
                "AaÄßẞǰΐΣςᾳᾼŉİıſﬃ㍿Ｓ５½¨´\u{345}\u{301}\u{308}\u{30c}\u{323}\u{3099} \u{a0}\u{3000}ﾞカᎠꭰ"
                    .chars()
                    .collect::<Vec<_>>()
            ),
        ];
        prop::collection::vec(character, 0..12).prop_map(|characters| characters.into_iter().collect())
    }

    proptest! {
        #[test]
        fn a_key_is_its_own_key(place in any_name()) {
            let key = place_key(&place);
            prop_assert_eq!(place_key(&key), key);
        }

        #[test]
        fn normal_forms_case_and_margins_do_not_matter(place in any_name()) {
            let key = place_key(&place);
            prop_assert_eq!(&place_key(&place.nfd().collect::<String>()), &key);
            prop_assert_eq!(&place_key(&place.nfkd().collect::<String>()), &key);
            prop_assert_eq!(&place_key(&default_case_fold_str(&place.nfkd().collect::<String>())), &key);
            prop_assert_eq!(&place_key(&format!("\u{3000} {place}\t")), &key);
        }

        #[test]
        fn ascii_case_does_not_matter(place in "[ -~]{0,32}") {
            prop_assert_eq!(place_key(&place.to_uppercase()), place_key(&place.to_lowercase()));
        }
    }
}
