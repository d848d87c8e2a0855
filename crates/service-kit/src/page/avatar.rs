//! Faces of people: their pictures, or the first letters of their names.

use maud::{Markup, html};

/// The hues of the style sheet: that of `.avatar` alone and `.h1` to `.h5`.
const HUES: u32 = 6;

/// A circle with the initials of somebody, in a colour that depends on their sign-in name alone. `size` is a further
/// class, or nothing. It repeats what stands beside it, so screen readers leave it out.
pub fn avatar(sign_in_name: &str, name: &str, size: &str) -> Markup {
    html! { span class=(with_hue(&format!("avatar {size}"), sign_in_name)) aria-hidden="true" { (initials(name)) } }
}

/// A circle with the picture of somebody, like [`avatar`].
pub fn photo(address: &str, size: &str) -> Markup {
    html! { img class=(format!("avatar {size}").trim_end()) src=(address) alt="" loading="lazy"; }
}

/// The picture of something that has none: the first letter of its name.
pub fn picture(name: &str) -> Markup {
    let first: String = name.chars().next().into_iter().flat_map(char::to_uppercase).collect();
    html! { div class=(with_hue("pic", name)) aria-hidden="true" { (first) } }
}

/// Classes with that of the hue that belongs to a name.
fn with_hue(classes: &str, name: &str) -> String {
    let hue = name.bytes().fold(0, |sum: u32, byte| sum.wrapping_mul(31).wrapping_add(byte.into())) % HUES;
    let hue = if hue == 0 { String::new() } else { format!(" h{hue}") };
    format!("{}{hue}", classes.trim_end())
}

/// The first letters of the first and the last word; of a name of one word, its first two; of one in a script without
/// capital letters, the first alone.
fn initials(name: &str) -> String {
    let mut words = name.split(|c: char| c.is_whitespace() || c == '_' || c == '-').filter(|word| !word.is_empty());
    let first = words.next().unwrap_or_default();
    let mut letters = first.chars().take(1).collect::<String>();
    if letters.chars().all(|c| c.is_lowercase() || c.is_uppercase()) {
        match words.next_back() {
            Some(last) => letters.extend(last.chars().take(1)),
            None => letters.extend(first.chars().skip(1).take(1)),
        }
    }
    letters.to_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initials_are_two_letters_or_one_sign() {
        for (name, expected) in [
            ("Haruka Aoki", "HA"),
            ("Mary Ann Smith", "MS"),
            ("alice", "AL"),
            ("émile zola", "ÉZ"),
            ("青木 遥", "青"),
            ("", ""),
            ("_x", "X"),
        ] {
            assert_eq!(initials(name), expected, "{name}");
        }
    }

    #[test]
    fn the_colour_follows_the_sign_in_name() {
        let of = |name| avatar(name, "Haruka Aoki", "mid").into_string();
        assert_eq!(of("aoki"), of("aoki"));
        assert_ne!(of("aoki"), of("shota"));
    }
}
