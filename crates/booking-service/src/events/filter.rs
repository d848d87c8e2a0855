//! The event filter language, `q` (contract, "`q`: the event filter").
//!
//! ```text
//! top  := ε | expr
//! expr := term (("||" | "&&") term)*        same precedence, from the left
//! term := cmp | "(" expr ")"
//! cmp  := attr ("==" | "!=") UUID
//! attr := "event" | "user" | "group" | "tag" | "series"
//! ```
//!
//! White space may stand between any two tokens.

use std::fmt;

use uuid::Uuid;

/// The longest filter, in Unicode scalar values.
pub const MAX_CHARACTERS: usize = 4096;

/// The deepest nesting of parentheses.
pub const MAX_DEPTH: usize = 32;

/// The most comparisons.
pub const MAX_COMPARISONS: usize = 32;

/// A parsed filter.
///
/// It is at most as deep as it has comparisons ([`MAX_COMPARISONS`]), so plain recursion over it is safe, and so is
/// dropping it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// Matches every event. It is never a part of another filter.
    Everything,
    /// `attribute == id`, or its complement.
    Compare {
        /// The attribute to compare.
        attribute: Attribute,
        /// `true` for `==`, `false` for `!=`.
        equal: bool,
        /// The id to compare with. The nil UUID is valid and names nothing.
        id: Uuid,
    },
    /// Both sides match.
    And(Box<Filter>, Box<Filter>),
    /// At least one side matches.
    Or(Box<Filter>, Box<Filter>),
}

/// An attribute of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Attribute {
    /// The event itself.
    Event,
    /// A user who attends: answered and not absent, or pending.
    User,
    /// The event's group.
    Group,
    /// A tag on the event.
    Tag,
    /// The series that the event belongs to.
    Series,
}

/// An error in the text of a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterError {
    /// The position of the error in Unicode scalar values, from 0. If the text ends too early, it is the length of the
    /// text.
    pub position: usize,
    /// A description in English, without the position.
    pub message: String,
    /// Whether the text exceeds [`MAX_CHARACTERS`], [`MAX_DEPTH`] or [`MAX_COMPARISONS`].
    pub is_too_long: bool,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at character {})", self.message, self.position)
    }
}

impl std::error::Error for FilterError {}

/// Parses the text of a filter. An empty text and a text of only white space are [`Filter::Everything`].
///
/// # Errors
/// [`FilterError`] with the first position at which `text` does not follow the grammar, is longer than
/// [`MAX_CHARACTERS`], nests deeper than [`MAX_DEPTH`] or has more comparisons than [`MAX_COMPARISONS`].
pub fn parse(text: &str) -> Result<Filter, FilterError> {
    // Reads at most one character more than allowed, whatever the length of the text.
    let characters: Vec<char> = text.chars().take(MAX_CHARACTERS + 1).collect();
    if characters.len() > MAX_CHARACTERS {
        return Err(too_long(MAX_CHARACTERS, format!("a filter has at most {MAX_CHARACTERS} characters")));
    }

    let mut parser = Parser { rest: &characters, length: characters.len(), comparisons: 0 };
    parser.skip_white_space();
    if parser.rest.is_empty() {
        return Ok(Filter::Everything);
    }
    let filter = parser.expression(0)?;
    if parser.rest.is_empty() { Ok(filter) } else { Err(parser.error("expected \"&&\", \"||\" or the end")) }
}

fn too_long(position: usize, message: String) -> FilterError {
    FilterError { position, message, is_too_long: true }
}

/// A recursive descent parser. Every method that takes a token also skips the white space after it.
struct Parser<'a> {
    rest: &'a [char],
    length: usize,
    comparisons: usize,
}

impl Parser<'_> {
    fn expression(&mut self, depth: usize) -> Result<Filter, FilterError> {
        let mut left = self.term(depth)?;
        loop {
            if self.take("&&") {
                left = Filter::And(Box::new(left), Box::new(self.term(depth)?));
            } else if self.take("||") {
                left = Filter::Or(Box::new(left), Box::new(self.term(depth)?));
            } else {
                return Ok(left);
            }
        }
    }

    fn term(&mut self, depth: usize) -> Result<Filter, FilterError> {
        if self.rest.first() != Some(&'(') {
            return self.comparison();
        }
        if depth == MAX_DEPTH {
            return Err(too_long(self.position(), format!("parentheses nest at most {MAX_DEPTH} levels deep")));
        }
        self.take("(");
        let inner = self.expression(depth + 1)?;
        if self.take(")") { Ok(inner) } else { Err(self.error("expected \"&&\", \"||\" or \")\"")) }
    }

    fn comparison(&mut self) -> Result<Filter, FilterError> {
        let position = self.position();
        let attribute = self.word(
            |name| match name {
                "event" => Some(Attribute::Event),
                "user" => Some(Attribute::User),
                "group" => Some(Attribute::Group),
                "tag" => Some(Attribute::Tag),
                "series" => Some(Attribute::Series),
                _ => None,
            },
            "expected \"event\", \"user\", \"group\", \"tag\", \"series\" or \"(\"",
        )?;
        self.comparisons += 1;
        if self.comparisons > MAX_COMPARISONS {
            return Err(too_long(position, format!("a filter has at most {MAX_COMPARISONS} comparisons")));
        }
        let equal = self.take("==");
        if !equal && !self.take("!=") {
            return Err(self.error("expected \"==\" or \"!=\""));
        }
        // `Uuid::try_parse` also accepts UUIDs without hyphens, in braces and as URNs. The contract does not.
        let hyphenated = |text: &str| Uuid::try_parse(text).ok().filter(|_| text.len() == 36);
        let id = self.word(hyphenated, "expected a UUID")?;
        Ok(Filter::Compare { attribute, equal, id })
    }

    /// Takes the longest run of letters, digits and hyphens, if `read` accepts it.
    fn word<T>(&mut self, read: impl Fn(&str) -> Option<T>, expected: &str) -> Result<T, FilterError> {
        let word: String = self.rest.iter().take_while(|c| c.is_ascii_alphanumeric() || **c == '-').collect();
        let value = read(&word).ok_or_else(|| self.error(expected))?;
        self.take(&word);
        Ok(value)
    }

    /// Takes `token`, which must be ASCII, if it is next. Returns whether it was.
    fn take(&mut self, token: &str) -> bool {
        let is_next = self.rest.len() >= token.len() && token.chars().eq(self.rest[..token.len()].iter().copied());
        if is_next {
            self.rest = &self.rest[token.len()..];
            self.skip_white_space();
        }
        is_next
    }

    fn skip_white_space(&mut self) {
        while let [first, rest @ ..] = self.rest
            && first.is_whitespace()
        {
            self.rest = rest;
        }
    }

    fn position(&self) -> usize {
        self.length - self.rest.len()
    }

    fn error(&self, message: &str) -> FilterError {
        FilterError { position: self.position(), message: message.to_owned(), is_too_long: false }
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use proptest::prelude::*;

    use super::*;

    const ID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

    fn compare(attribute: Attribute, equal: bool, id: &str) -> Filter {
        Filter::Compare { attribute, equal, id: id.parse().expect("a UUID") }
    }

    fn and(left: Filter, right: Filter) -> Filter {
        Filter::And(Box::new(left), Box::new(right))
    }

    fn or(left: Filter, right: Filter) -> Filter {
        Filter::Or(Box::new(left), Box::new(right))
    }

    fn position(text: &str) -> usize {
        parse(text).expect_err(text).position
    }

    #[test]
    fn an_empty_filter_matches_everything() {
        assert_eq!(parse(""), Ok(Filter::Everything));
        assert_eq!(parse(" \t\r\n\u{3000}"), Ok(Filter::Everything));
    }

    #[test]
    fn a_comparison_names_an_attribute_an_operator_and_an_id() {
        assert_eq!(parse(&format!("user=={ID}")), Ok(compare(Attribute::User, true, ID)));
        assert_eq!(parse(&format!("event != {ID}")), Ok(compare(Attribute::Event, false, ID)));
        assert_eq!(parse(&format!(" group\n==\t{} ", ID.to_uppercase())), Ok(compare(Attribute::Group, true, ID)));
        let nil = Uuid::nil().to_string();
        assert_eq!(parse(&format!("tag=={nil}")), Ok(compare(Attribute::Tag, true, &nil)));
    }

    #[test]
    fn operators_have_equal_precedence_and_associate_to_the_left() {
        let [user, tag, group] = ["user", "tag", "group"].map(|attribute| format!("{attribute}=={ID}"));
        let is = |attribute| compare(attribute, true, ID);
        let (a_user, a_tag, a_group) = (|| is(Attribute::User), || is(Attribute::Tag), || is(Attribute::Group));

        let right_last = parse(&format!("{user}||{tag}&&{group}"));
        assert_eq!(right_last, Ok(and(or(a_user(), a_tag()), a_group())));
        let right_last = parse(&format!("{user}&&{tag}||{group}"));
        assert_eq!(right_last, Ok(or(and(a_user(), a_tag()), a_group())));
        let right_first = parse(&format!("{user}||({tag}&&{group})"));
        assert_eq!(right_first, Ok(or(a_user(), and(a_tag(), a_group()))));
        assert_eq!(parse(&format!("( ( {user} ) )")), Ok(a_user()));
    }

    #[test]
    fn errors_say_where() {
        assert_eq!(position("users"), 0);
        assert_eq!(position(&format!("USER=={ID}")), 0);
        assert_eq!(position("user"), 4);
        assert_eq!(position(&format!("user={ID}")), 4);
        assert_eq!(position(&format!("user= ={ID}")), 4);
        assert_eq!(position("  user == "), 10);
        assert_eq!(position("user==x"), 6);
        assert_eq!(position(&format!("user=={}", ID.replace('-', ""))), 6);
        assert_eq!(position(&format!("user=={{{ID}}}")), 6);
        assert_eq!(position(&format!("user=={ID}0")), 6);
        assert_eq!(position(&format!("user=={ID}&")), 42);
        assert_eq!(position(&format!("user=={ID}&&")), 44);
        assert_eq!(position(&format!("user=={ID} tag=={ID}")), 43);
        assert_eq!(position(&format!("user=={ID})")), 42);
        assert_eq!(position(&format!("(user=={ID}")), 43);
        assert_eq!(position("()"), 1);
        assert_eq!(position("&&"), 0);
        assert_eq!(position(&format!("\u{3000}\u{3000}(user=={ID}||部屋")), 47);
    }

    #[test]
    fn an_error_shows_its_position() {
        let error = parse("user").expect_err("incomplete");
        assert_eq!(error.to_string(), "expected \"==\" or \"!=\" (at character 4)");
    }

    #[test]
    fn length_is_counted_in_characters() {
        let filter = format!("user=={ID}");
        let padding = |length: usize| format!("{filter}{}", "\u{3000}".repeat(length - filter.len()));
        assert!(parse(&padding(MAX_CHARACTERS)).is_ok());
        assert_eq!(position(&padding(MAX_CHARACTERS + 1)), MAX_CHARACTERS);
        assert_eq!(position(&"(".repeat(10 * MAX_CHARACTERS)), MAX_CHARACTERS);
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| format!("{}user=={ID}{}", "(".repeat(depth), ")".repeat(depth));
        assert!(parse(&nested(MAX_DEPTH)).is_ok());
        assert_eq!(position(&nested(MAX_DEPTH + 1)), MAX_DEPTH);
        assert_eq!(position(&"(".repeat(MAX_CHARACTERS)), MAX_DEPTH);

        let side_by_side = iter::repeat_n(format!("(tag=={ID})"), MAX_COMPARISONS).collect::<Vec<_>>().join("||");
        assert!(parse(&side_by_side).is_ok());
    }

    #[test]
    fn comparisons_are_bounded() {
        let chain = |comparisons| iter::repeat_n(format!("tag=={ID}"), comparisons).collect::<Vec<_>>().join("&&");
        let mut filter = parse(&chain(MAX_COMPARISONS)).expect("32 comparisons fit");
        let mut operators = 0;
        while let Filter::And(left, _) = filter {
            operators += 1;
            filter = *left;
        }
        assert_eq!(operators, 31);
        let error = parse(&chain(MAX_COMPARISONS + 1)).expect_err("one too many");
        assert_eq!((error.is_too_long, error.position), (true, chain(MAX_COMPARISONS).len() + 2));
        assert!(parse(&chain(MAX_COMPARISONS).replace("&&", "&&(")).is_err_and(|error| !error.is_too_long));
    }

    /// Whether a filter matches an event, for which the comparisons `facts` with `==` hold.
    fn matches(filter: &Filter, facts: &[(Attribute, Uuid)]) -> bool {
        match filter {
            Filter::Everything => true,
            Filter::Compare { attribute, equal, id } => facts.contains(&(*attribute, *id)) == *equal,
            Filter::And(left, right) => matches(left, facts) && matches(right, facts),
            Filter::Or(left, right) => matches(left, facts) || matches(right, facts),
        }
    }

    fn render(filter: &Filter, space: &str, upper: bool) -> String {
        let operand = |side: &Filter| match side {
            Filter::And(..) | Filter::Or(..) => format!("({space}{}{space})", render(side, space, upper)),
            _ => render(side, space, upper),
        };
        match filter {
            Filter::Everything => space.to_owned(),
            Filter::Compare { attribute, equal, id } => {
                let attribute = format!("{attribute:?}").to_lowercase();
                let id = if upper { id.to_string().to_uppercase() } else { id.to_string() };
                format!("{attribute}{space}{}{space}{id}", if *equal { "==" } else { "!=" })
            }
            // The left side needs no parentheses, because operators associate to the left.
            Filter::And(left, right) => {
                format!("{}{space}&&{space}{}", render(left, space, upper), operand(right))
            }
            Filter::Or(left, right) => {
                format!("{}{space}||{space}{}", operand(left), operand(right))
            }
        }
    }

    fn attribute() -> impl Strategy<Value = Attribute> {
        prop::sample::select(vec![
            Attribute::Event,
            Attribute::User,
            Attribute::Group,
            Attribute::Tag,
            Attribute::Series,
        ])
    }

    fn comparison() -> impl Strategy<Value = Filter> {
        (attribute(), any::<bool>(), any::<u128>()).prop_map(|(attribute, equal, id)| Filter::Compare {
            attribute,
            equal,
            id: Uuid::from_u128(id),
        })
    }

    fn filter() -> impl Strategy<Value = Filter> {
        let compound = comparison().prop_recursive(5, 32, 2, |side| {
            (any::<bool>(), side.clone(), side)
                .prop_map(|(both, left, right)| if both { and(left, right) } else { or(left, right) })
        });
        prop_oneof![1 => Just(Filter::Everything), 20 => compound]
    }

    proptest! {
        #[test]
        fn a_rendered_filter_parses_back(filter in filter(), space in "[ \t\n\u{3000}]{0,2}", upper in any::<bool>()) {
            let text = render(&filter, &space, upper);
            prop_assume!(text.chars().count() <= MAX_CHARACTERS);
            prop_assert_eq!(parse(&text), Ok(filter));
        }

        #[test]
        fn a_chain_is_evaluated_from_the_left(
            first in any::<bool>(),
            steps in prop::collection::vec((any::<bool>(), any::<bool>()), 0..MAX_COMPARISONS),
        ) {
            let id: Uuid = ID.parse().expect("a UUID");
            let compare = |holds| if holds { format!("tag=={ID}") } else { format!("tag!={ID}") };
            let mut text = compare(first);
            let mut value = first;
            for (both, holds) in steps {
                text += if both { "&&" } else { "||" };
                text += &compare(holds);
                value = if both { value && holds } else { value || holds };
            }
            prop_assert_eq!(matches(&parse(&text).expect("a chain"), &[(Attribute::Tag, id)]), value);
        }

        #[test]
        fn error_positions_are_within_any_text(text in any::<String>()) {
            if let Err(error) = parse(&text) {
                prop_assert!(error.position <= text.chars().count());
            }
        }

        #[test]
        fn error_positions_are_within_any_tokens(
            tokens in prop::collection::vec(
                prop::sample::select(vec!["(", ")", "&&", "||", "==", "!=", "user", "tag", ID, " ", "&", "=", "é"]),
                0..40,
            ),
        ) {
            let text = tokens.concat();
            match parse(&text) {
                Ok(filter) => prop_assert_eq!(parse(&render(&filter, " ", true)), Ok(filter)),
                Err(error) => {
                    prop_assert!(error.position <= text.chars().count());
                    // The text before the error is the beginning of a filter: it has no earlier error.
                    let before: String = text.chars().take(error.position).collect();
                    if let Err(earlier) = parse(&before) {
                        prop_assert_eq!(earlier.position, error.position);
                    }
                }
            }
        }
    }
}
