//! The markup of chats. Texts of members are escaped, so that they are neither markup nor mentions.
//!
//! * traQ has Markdown, makes mentions of `@name`, channels of `#name`, both also in full width, and both of `!{…}`, and
//!   links of addresses without a scheme, such as `//a.example`, `a.example` and `b@a.example`.
//! * Slack has `*bold*` and `<address|text>` without an escape but for `&`, `<` and `>`. Mattermost and Rocket.Chat, which
//!   take the same requests, read Markdown and `@name`. So what either would read is replaced by the same sign in full
//!   width.
//! * Discord has Markdown. Nobody is notified who is not in `allowed_mentions`, but `@everyone` would look like it.

use super::kinds::{Format, Mentions};

/// A character that nobody sees, after which a sign means nothing.
const INVISIBLE: char = '\u{200b}';

/// The markup of one format.
#[derive(Debug, Clone, Copy)]
pub struct Markup(pub Format);

impl Markup {
    /// The most characters of a message. Mattermost may be limited to 4000, and Slack recommends that.
    pub fn limit(self) -> usize {
        match self.0 {
            Format::Standard => usize::MAX,
            Format::Traq => 10_000,
            Format::Slack => 4000,
            Format::Discord => 2000,
        }
    }

    /// A text of a member, on one line.
    pub fn text(self, text: &str) -> String {
        let mut escaped = String::with_capacity(text.len() + 8);
        let mut before = ' ';
        let mut rest = text.trim().chars().peekable();
        while let Some(c) = rest.next() {
            if is_direction(c) {
                continue;
            }
            let c = if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') { ' ' } else { c };
            let next = rest.peek().copied().unwrap_or(' ');
            let is_in_word = before.is_ascii_alphanumeric() && next.is_ascii_alphanumeric();
            self.push(&mut escaped, c, is_in_word);
            // No address: after a full stop no domain of the highest level, after a slash no second one.
            if (c == '.' && !next.is_whitespace()) || (c == '/' && next == '/') {
                escaped.push(INVISIBLE);
            }
            before = c;
        }
        escaped
    }

    /// A text of a member that is a line, but neither a list nor a rule.
    pub fn line(self, text: &str) -> String {
        format!("{INVISIBLE}{}", self.text(text))
    }

    fn push(self, escaped: &mut String, c: char, is_in_word: bool) {
        match (self.0, c) {
            (_, '@' | '＠') => escaped.extend(['@', INVISIBLE]),
            (Format::Traq | Format::Discord, '#' | '＃') => escaped.extend(['\\', '#', INVISIBLE]),
            // An address would begin after it, because the backslash ends the scheme.
            (Format::Traq | Format::Discord, ':') => escaped.extend(['\\', ':', INVISIBLE]),
            (Format::Traq | Format::Discord, c) if is_markdown(c) => escaped.extend(['\\', c]),
            (Format::Slack, '&') => escaped.push_str("&amp;"),
            (Format::Slack, '<') => escaped.push_str("&lt;"),
            (Format::Slack, '>') => escaped.push_str("&gt;"),
            (Format::Slack, '_') if is_in_word => escaped.push('_'),
            (Format::Slack, '*' | '_' | '~' | '`' | '[' | ']' | '|' | '!' | '\\') => {
                escaped.extend(char::from_u32(u32::from(c) + 0xfee0));
            }
            (Format::Slack, '#' | ':') => escaped.extend([c, INVISIBLE]),
            (_, c) => escaped.push(c),
        }
    }

    /// The beginning of a text of a member that is quoted, at most this many characters, and whether that is all.
    pub fn quote(self, text: &str, most: usize) -> (String, bool) {
        let mut quoted = String::new();
        for line in text.trim().lines() {
            let before = quoted.len();
            quoted.push_str(if quoted.is_empty() { "> " } else { "\n> " });
            // Keeps the line from being a list, a heading or a quotation in the quotation.
            quoted.push(INVISIBLE);
            if length(&quoted) > most {
                quoted.truncate(before);
                return (quoted, false);
            }
            let (line, mut left) = (self.text(line), most - length(&quoted));
            for word in self.words(&line) {
                if length(word) > left {
                    return (quoted, false);
                }
                left -= length(word);
                quoted.push_str(word);
            }
        }
        (quoted, true)
    }

    /// The escaped characters of a text, each with what escapes it.
    fn words(self, text: &str) -> impl Iterator<Item = &str> {
        let mut rest = text;
        std::iter::from_fn(move || {
            let first = rest.chars().next()?;
            let mut end = first.len_utf8();
            match first {
                '\\' => end += rest[end..].chars().next().map_or(0, char::len_utf8),
                '&' if self.0 == Format::Slack => end = rest.find(';').map_or(end, |index| index + 1),
                _ => {}
            }
            if rest[end..].starts_with(INVISIBLE) {
                end += INVISIBLE.len_utf8();
            }
            let (word, after) = rest.split_at(end);
            rest = after;
            Some(word)
        })
    }

    /// A line above others.
    pub fn heading(self, text: &str) -> String {
        match self.0 {
            Format::Slack => format!("*{text}*"),
            _ => format!("## {text}"),
        }
    }

    /// A line of a list.
    pub fn item(self, text: &str) -> String {
        match self.0 {
            Format::Slack => format!("• {text}"),
            _ => format!("- {text}"),
        }
    }

    /// A link with an escaped text to an address of this service.
    pub fn link(self, text: &str, address: &str) -> String {
        match self.0 {
            Format::Slack => format!("<{address}|{text}>"),
            // Without a preview.
            Format::Discord => format!("[{text}](<{address}>)"),
            _ => format!("[{text}]({address})"),
        }
    }

    /// A mention of a member by their sign-in name. Discord knows no such names, so they are shown only.
    pub fn member(self, name: &str, mentions: Mentions) -> String {
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
        // Mattermost would notify everybody.
        let is_everybody = ["all", "channel", "everyone", "here"].iter().any(|word| name.eq_ignore_ascii_case(word));
        match (self.0, mentions) {
            (Format::Slack, Mentions::On) if is_name && !is_everybody => format!("@{name}"),
            (Format::Traq, Mentions::On) if is_name => format!("@{name}"),
            (Format::Traq, _) if is_name => format!("@.{name}"),
            _ => self.text(&format!("@{name}")),
        }
    }

    /// A mention of a group of the chat, by its name, on Slack also by its id (`S…`), on Discord by its id.
    pub fn group(self, name: &str, mentions: Mentions) -> String {
        let is_slack_id = |name: &str| {
            name.len() > 8
                && name.starts_with('S')
                && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
        };
        match (self.0, mentions) {
            (Format::Slack, Mentions::On) if is_slack_id(name) => format!("<!subteam^{name}>"),
            (Format::Slack, Mentions::On) if matches!(name, "here" | "channel" | "everyone") => format!("<!{name}>"),
            (Format::Slack, Mentions::On) if name == "all" => "@all".to_owned(),
            (Format::Discord, Mentions::On) if is_discord_id(name) => format!("<@&{name}>"),
            // A privileged user has set it, in any writing.
            (Format::Traq, Mentions::On) if !name.contains(char::is_whitespace) => format!("@{name}"),
            (Format::Traq, _) if !name.contains(char::is_whitespace) => format!("@.{name}"),
            _ => self.member(name, mentions),
        }
    }
}

/// Whether a name is the id of something on Discord.
pub fn is_discord_id(name: &str) -> bool {
    (15..=20).contains(&name.len()) && name.bytes().all(|c| c.is_ascii_digit())
}

/// Whether a character changes the direction of the text after it, also of what follows the text of a member.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Signs that Markdown, or traQ's or Discord's own markup, reads within a line.
fn is_markdown(c: char) -> bool {
    matches!(
        c,
        '\\' | '`'
            | '*'
            | '_'
            | '{'
            | '}'
            | '['
            | ']'
            | '<'
            | '>'
            | '!'
            | '|'
            | '~'
            | ':'
            | '$'
            | '&'
            | '^'
            | '='
            | '"'
    )
}

/// The length of a text as chats count it, or more.
pub fn length(text: &str) -> usize {
    text.encode_utf16().count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_of_members_are_neither_markup_nor_mentions() {
        let text =
            "@all ＠all <@U1> <!here> [x](y) *b* _i_ a_b `c` #ch :x: !{\"type\":\"user\"} ||s|| $x$ & @everyone\n## h";
        let traq = Markup(Format::Traq).text(text);
        assert!(
            traq.starts_with(
                "@\u{200b}all @\u{200b}all \\<@\u{200b}U1\\> \\<\\!here\\> \\[x\\](y) \\*b\\* \\_i\\_ a\\_b"
            )
        );
        assert!(
            traq.contains("\\!\\{\\\"type\\\"\\:\u{200b}\\\"user\\\"\\}")
                && traq.contains("\\#\u{200b}ch \\:\u{200b}x\\:\u{200b}"),
            "{traq}"
        );
        assert!(traq.ends_with("@\u{200b}everyone \\#\u{200b}\\#\u{200b} h"), "{traq}");
        let slack = Markup(Format::Slack).text(text);
        assert!(
            slack.starts_with(
                "@\u{200b}all @\u{200b}all &lt;@\u{200b}U1&gt; &lt;！here&gt; ［x］(y) ＊b＊ ＿i＿ a_b ｀c｀"
            ),
            "{slack}"
        );
        assert!(!slack.contains(['<', '>', '*', '`', '[', '|', '\n']) && slack.contains("&amp;"), "{slack}");
        let discord = Markup(Format::Discord).text(text);
        assert!(discord.contains("\\<@\u{200b}U1\\>") && discord.contains("\\|\\|s\\|\\|"), "{discord}");
    }

    /// What traQ's Markdown makes of this was tried with `@traptitech/traq-markdown-it`.
    #[test]
    fn texts_of_members_are_neither_links_nor_channels() {
        for (text, expected) in [
            ("evil.com/x", "evil.\u{200b}com/x"),
            ("//evil.com", "/\u{200b}/evil.\u{200b}com"),
            ("a@evil.com", "a@\u{200b}evil.\u{200b}com"),
            ("https://evil.com", "https\\:\u{200b}/\u{200b}/evil.\u{200b}com"),
            ("＃general", "\\#\u{200b}general"),
            ("At 5. Room 3/4.", "At 5. Room 3/4."),
        ] {
            assert_eq!(Markup(Format::Traq).text(text), expected);
        }
    }

    /// Neither by the direction of the text after a name, nor by a list that a line would begin.
    #[test]
    fn a_text_changes_nothing_around_it() {
        for format in [Format::Traq, Format::Slack, Format::Discord] {
            let markup = Markup(format);
            assert_eq!(markup.text("a\u{202e}b\u{2066}c\u{2069}\u{202c}"), "abc");
            assert_eq!(markup.text("الف\u{200f} 👩‍👩‍👧"), "الف\u{200f} 👩‍👩‍👧");
            for text in ["- a", "1. a", "+ a", "---"] {
                assert_eq!(markup.line(text), format!("\u{200b}{text}"));
            }
        }
    }

    #[test]
    fn people_are_mentioned_as_the_webhook_says() {
        let forms = |format| {
            let markup = Markup(format);
            [Mentions::On, Mentions::Silent].map(|mentions| markup.member("alice", mentions))
        };
        assert_eq!(forms(Format::Traq), ["@alice", "@.alice"]);
        assert_eq!(forms(Format::Slack), ["@alice", "@\u{200b}alice"]);
        assert_eq!(forms(Format::Discord), ["@\u{200b}alice", "@\u{200b}alice"]);
        assert_eq!(Markup(Format::Traq).member("here @all", Mentions::On), "@\u{200b}here @\u{200b}all");
        for name in ["all", "Channel", "here", "everyone"] {
            let markup = Markup(Format::Slack);
            assert_eq!(markup.member(name, Mentions::On), format!("@\u{200b}{name}"), "no member, but everybody");
            assert_eq!(markup.group(name, Mentions::Silent), format!("@\u{200b}{name}"));
        }
        assert_eq!(Markup(Format::Slack).group("S0123ABCD", Mentions::On), "<!subteam^S0123ABCD>");
        assert_eq!(Markup(Format::Discord).group("123456789012345678", Mentions::On), "<@&123456789012345678>");
        assert_eq!(Markup(Format::Discord).group("everyone", Mentions::On), "@\u{200b}everyone");
        assert_eq!(Markup(Format::Traq).group("23年", Mentions::Silent), "@.23年");
    }

    #[test]
    fn a_quotation_has_no_markup_at_the_start_of_a_line() {
        let (quoted, is_all) = Markup(Format::Traq).quote("- a\n1. b\n# c\n\n> d\n", 1000);
        assert!(is_all);
        let expected = "> \u{200b}- a\n> \u{200b}1. b\n> \u{200b}\\#\u{200b} c\n> \u{200b}\n> \u{200b}\\> d";
        assert_eq!(quoted, expected);
    }

    proptest! {
        #[test]
        fn a_quotation_is_cut_between_characters(text in "[a*<&@#\\\\:\n 😀]{0,60}", most in 0..80_usize) {
            for format in [Format::Traq, Format::Slack, Format::Discord] {
                let markup = Markup(format);
                let (all, is_all) = markup.quote(&text, usize::MAX);
                prop_assert!(is_all);
                let (part, is_all) = markup.quote(&text, most);
                prop_assert!(length(&part) <= most && all.starts_with(&part));
                prop_assert_eq!(is_all, part == all || text.trim().is_empty());
                let rest = &all[part.len()..];
                prop_assert!(!part.ends_with('\\') || part.ends_with("\\\\"), "{part:?} {rest:?}");
            }
        }
    }
}
