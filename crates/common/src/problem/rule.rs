//! The rules that a violation may name.

use serde::{Serialize, Serializer};

/// Declares [`Rule`] with the code and the meaning of each rule.
macro_rules! rules {
    ($($name:ident = $code:literal, $about:literal;)+) => {
        /// A rule that a value of a request breaks: the `code` of a violation.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Rule {
            $(#[doc = $about] $name),+
        }

        impl Rule {
            /// Every rule, in the order in which the documentation lists them.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The codes and what is wrong with a value that breaks the rule, as Markdown.
            pub const CODES: &'static str =
                concat!("Stable name of the rule; there may be more:\n", $("\n* `", $code, "`: ", $about),+);

            /// Its stable kebab-case name.
            pub fn code(self) -> &'static str {
                match self {
                    $(Self::$name => $code),+
                }
            }
        }
    };
}

rules! {
    Required = "required", "A value is missing";
    WrongType = "wrong-type", "A value has another JSON type, or a parameter is no boolean";
    Invalid = "invalid", "A text cannot be read, such as a time";
    Blank = "blank", "A text is empty, or has only white space and invisible characters";
    Length = "length", "A text is too short or too long, or a list has too few or too many elements";
    ControlCharacter = "control-character", "A text contains a control character; line breaks and tabs are allowed";
    Range = "range", "A number, a day or a span is too small or too large";
    NotAllowed = "not-allowed", "A value is not in a fixed list";
    NotAUuid = "not-a-uuid", "An id is no UUID, or the nil UUID";
    NotAWebAddress = "not-a-web-address", "A link is no absolute http or https address";
    WrongAddress = "wrong-address", "The address of an account does not fit its type";
    NotACursor = "not-a-cursor", "A cursor is not one of this list with these parameters";
    Duplicate = "duplicate", "A value is there twice";
    OutOfOrder = "out-of-order", "An end and its start are in the wrong order";
    InThePast = "in-the-past", "A time is not in the future";
    NonexistentTime = "nonexistent-time", "The clocks of the club skip this time on that day";
    GivenTogether = "given-together", "Two parameters exclude each other";
    PlaceOrRoom = "place-or-room", "Neither `place` nor `roomId`, or both";
    DateOrSpan = "date-or-span", "Both a date with times and a span; with neither, the fields are `required`";
    UnknownUser = "unknown-user", "An id names no user";
    InactiveUser = "inactive-user", "None of the users is active";
    UnknownGroup = "unknown-group", "An id names no group";
    UnknownRoom = "unknown-room", "An id names no room";
    UnknownSlot = "unknown-slot", "An id names no slot of the poll";
    UnknownChange = "unknown-change", "An id names no change in the history of the object";
    BadFilter = "bad-filter", "A filter (`q`) cannot be parsed";
    FilterTooLong = "filter-too-long", "A filter (`q`) has too many characters, levels or comparisons";
    EmptyFile = "empty-file", "A table has no header";
    UnknownEncoding = "unknown-encoding", "A table is not in UTF-8, UTF-16 with a byte order mark or code page 932";
    BadQuotes = "bad-quotes", "A quotation mark in a table is where RFC 4180 allows none, or one is missing";
    MissingColumn = "missing-column", "The header of a table lacks a column";
    MissingCell = "missing-cell", "A row of a table ends before this column";
    TooManyCells = "too-many-cells", "A row of a table has more cells than the header";
    TooManyRows = "too-many-rows", "A table has too many rows";
    BadDate = "bad-date", "A date in a table or form is not a year, month and day";
    BadTime = "bad-time", "A time in a table or form is not a time of day";
    OverlapsRow = "overlaps-row", "A room in a table overlaps that of an earlier row at the same place";
    OverlapsRoom = "overlaps-room", "A room in a table overlaps a verified room at the same place";
    EventsConflict = "events-conflict", "Events would conflict if the room in a row of a table were verified";
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}
