//! Which characters of a name can be seen (contract, "JSON").

use std::{borrow::Cow, sync::LazyLock};

use regex::Regex;

/// Characters without a shape: the `Default_Ignorable_Code_Point`s, and format characters that do not enclose others.
const INVISIBLE: &str = r"[\p{Default_Ignorable_Code_Point}[\p{Format}--\p{Prepended_Concatenation_Mark}]]";

#[expect(clippy::expect_used, reason = "a test reads it")]
static INVISIBLE_CHARACTERS: LazyLock<Regex> = LazyLock::new(|| Regex::new(INVISIBLE).expect("a valid pattern"));

/// Whether a character looks like a space: those with the property `White_Space`, and the empty pattern of Braille.
pub fn is_space(character: char) -> bool {
    character.is_whitespace() || character == '\u{2800}'
}

/// The text without its invisible characters. Spaces stay.
pub fn without_invisible(text: &str) -> Cow<'_, str> {
    if text.is_ascii() { Cow::Borrowed(text) } else { INVISIBLE_CHARACTERS.replace_all(text, "") }
}

/// Whether a text has nothing to see: it has only spaces and invisible characters, or none at all.
pub fn is_blank(text: &str) -> bool {
    without_invisible(text).chars().all(is_space)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_and_invisible_characters_are_blank() {
        let blank = "\u{ad}\u{34f}\u{61c}\u{115f}\u{17b4}\u{180e}\u{200b}\u{200d}\u{200e}\u{202e}\u{2060}\u{2061}\u{2066}\
            \u{2800}\u{3000}\u{3164}\u{fe0f}\u{feff}\u{ffa0}\u{fff0}\u{fff9}\u{13430}\u{1d173}\u{e0001}\u{e0041}\u{e0100}\u{e0fff}\
            \u{85}\u{a0}\u{1680}\u{2028} \t\r\n";
        for character in blank.chars() {
            assert!(is_blank(&character.to_string()), "U+{:04X}", u32::from(character));
        }
        assert!(is_blank(blank) && is_blank(""));
    }

    #[test]
    fn what_can_be_seen_is_not_blank() {
        for character in "a-.ー一ﾞ\u{301}\u{600}\u{6dd}\u{e000}🎉".chars() {
            assert!(!is_blank(&format!("\u{200b}{character} ")), "U+{:04X}", u32::from(character));
        }
        assert_eq!(without_invisible("V\u{200b}9\u{fe0f} 00"), "V9 00");
    }
}
