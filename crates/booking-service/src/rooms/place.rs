//! The key by which names of places are compared.

use std::sync::LazyLock;

use caseless::default_case_fold_str;
use common::visible::{is_space, without_invisible};
use regex::Regex;
use unicode_normalization::UnicodeNormalization;

/// Every dash, after NFKC. The wave dash is one; the tilde is what other keyboards send for the same key.
const DASH: &str = r"[\p{Dash}~]";

#[expect(clippy::expect_used, reason = "a test reads it")]
static DASHES: LazyLock<Regex> = LazyLock::new(|| Regex::new(DASH).expect("a valid pattern"));

/// The key of a place. Two names with the same key are one place (contract, "No double booking").
///
/// The first three steps are `NFKC_Casefold` (Unicode, D147): removing invisible characters, compatibility decomposition
/// and full case folding, NFKC. Invisible characters are removed first, because some keep marks from being reordered.
/// Folding needs the decomposed form: `ᾳ` folds to two letters, and a mark that follows it would end up on the wrong
/// one. Then each dash becomes `-` and each run of spaces one space; there are none at the ends.
///
/// The function is idempotent. A name that [`is_blank`](common::visible::is_blank) has the empty key. A key may be longer
/// than its name (`㍿` becomes `株式会社`).
pub fn place_key(place: &str) -> String {
    let decomposed: String = without_invisible(place).nfkd().collect();
    let folded: String = default_case_fold_str(&decomposed).nfkc().collect();
    let words: Vec<_> = folded.split(is_space).filter(|word| !word.is_empty()).collect();
    DASHES.replace_all(&words.join(" "), "-").into_owned()
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
        for place in
            ["S 516", "s  516", "S\u{3000}\t516", "\u{2028}S\n\r\n516 ", "S\u{2800}516", "S \u{200b} 516\u{2060} "]
        {
            assert_eq!(place_key(place), "s 516", "{place:?}");
        }
        for dash in "-‐‑‒–—―−－﹣⁻〜～~゠⸺\u{1806}".chars() {
            assert_eq!(place_key(&format!("V9{dash}00")), "v9-00", "U+{:04X}", u32::from(dash));
        }
        for invisible in "\u{ad}\u{34f}\u{200b}\u{2060}\u{fe0f}\u{feff}\u{3164}\u{e0100}".chars() {
            assert_eq!(place_key(&format!("V9{invisible}00{invisible}")), "v900", "U+{:04X}", u32::from(invisible));
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
        for (latin, alike) in
            [("A1", "А1"), ("B1", "Β1"), ("Ho", "Нo"), ("l1", "I1"), ("S0", "SO"), ("口", "ロ"), ("一", "ー")]
        {
            assert_ne!(place_key(latin), place_key(alike), "{latin} {alike}");
        }
        assert_ne!(place_key("ビー"), place_key("ビ-"));
    }

    #[test]
    fn blank_names_have_the_empty_key() {
        assert_eq!(place_key(""), "");
        assert_eq!(place_key(" \u{3000}\t"), "");
        assert_eq!(place_key("\u{200b}\u{2800}\u{fe0f}"), "");
    }

    #[test]
    fn every_dash_punctuation_is_a_dash() {
        assert!(
            !Regex::new(r"[\p{Dash_Punctuation}--\p{Dash}]").unwrap().is_match(&('\0'..=char::MAX).collect::<String>())
        );
    }

    #[test]
    fn the_key_of_every_character_is_its_own_key() {
        // The code points between and after these are not assigned, or for private use.
        for character in ('\0'..='\u{3347f}').chain('\u{e0000}'..='\u{e0fff}') {
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
                "AaÄßẞǰΐΣςᾳᾼŉİıſﬃ㍿Ｓ５½¨´\u{345}\u{301}\u{308}\u{30c}\u{323}\u{3099} \u{a0}\u{3000}ﾞカᎠꭰ\u{34f}\u{200b}\u{2060}\u{fe0f}\u{2800}-−〜"
                    .chars()
                    .collect::<Vec<_>>()
            ),
        ];
        prop::collection::vec(character, 0..12).prop_map(|characters| characters.into_iter().collect())
    }

    /// Names in which the characters of one may be invisible.
    fn with_invisible() -> impl Strategy<Value = (String, String)> {
        let invisible = prop::sample::select(
            "\u{ad}\u{34f}\u{61c}\u{115f}\u{17b4}\u{180b}\u{200b}\u{200d}\u{2060}\u{fe0f}\u{feff}\u{e0001}\u{e01ef}"
                .chars()
                .collect::<Vec<_>>(),
        );
        (any_name(), prop::collection::vec((invisible, 0_usize..12), 1..4)).prop_map(|(name, added)| {
            let mut characters: Vec<_> = name.chars().collect();
            for (character, at) in added {
                characters.insert(at.min(characters.len()), character);
            }
            (name, characters.into_iter().collect())
        })
    }

    proptest! {
        #[test]
        fn invisible_characters_do_not_matter((name, with_invisible) in with_invisible()) {
            prop_assert_eq!(place_key(&with_invisible), place_key(&name));
        }

        #[test]
        fn case_and_width_do_not_matter(place in "[!-~]{1,32}") {
            let wide: String = place.chars().map(|c| char::from_u32(u32::from(c) + 0xfee0).unwrap()).collect();
            prop_assert_eq!(place_key(&wide.to_uppercase()), place_key(&place.to_lowercase()));
        }

        #[test]
        fn letters_that_look_alike_are_different(
            before in "[a-z0-9]{0,9}", pair in prop::sample::select(vec![
                ('a', 'а'), ('c', 'с'), ('e', 'е'), ('o', 'о'), ('p', 'р'), ('x', 'х'), ('o', 'ο'), ('v', 'ν'), ('i', 'і'),
            ]), after in "[a-z0-9]{0,9}"
        ) {
            let name = |letter| format!("{before}{letter}{after}");
            prop_assert_ne!(place_key(&name(pair.0)), place_key(&name(pair.1)));
        }

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
            let decomposed: String = without_invisible(&place).nfkd().collect();
            prop_assert_eq!(&place_key(&default_case_fold_str(&decomposed)), &key);
            prop_assert_eq!(&place_key(&format!("\u{3000} {place}\t")), &key);
        }

        #[test]
        fn ascii_case_does_not_matter(place in "[ -~]{0,32}") {
            prop_assert_eq!(place_key(&place.to_uppercase()), place_key(&place.to_lowercase()));
        }
    }
}
