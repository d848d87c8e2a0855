//! Small drawings beside words.

use maud::{Markup, html};

/// A drawing of 16 by 16.
#[derive(Debug, Clone, Copy)]
pub enum Icon {
    /// A clock: when.
    Clock,
    /// A pin: where.
    Pin,
    /// Two arrows: again and again.
    Repeat,
    /// A plus sign: a new one.
    Plus,
    /// Links of a chain: another site.
    Link,
    /// Two people: who.
    People,
}

impl Icon {
    fn path(self) -> &'static str {
        match self {
            Self::Clock => "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2M8 4.5V8l2.5 1.5",
            Self::Pin => {
                "M8 14s4.5-4.2 4.5-7.5a4.5 4.5 0 0 0-9 0C3.5 9.8 8 14 8 14zM8 5a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3"
            }
            Self::Repeat => "M3 7V6a2 2 0 0 1 2-2h7M10 1.5 12.5 4 10 6.5M13 9v1a2 2 0 0 1-2 2H4M6 14.5 3.5 12 6 9.5",
            Self::Plus => "M8 3v10M3 8h10",
            Self::Link => {
                "M6.5 9.5 9.5 6.5M7 4.5 8.5 3a3.2 3.2 0 0 1 4.5 4.5L11.5 9M4.5 7 3 8.5A3.2 3.2 0 0 0 7.5 13L9 11.5"
            }
            Self::People => {
                "M6 3a2.2 2.2 0 1 0 0 4.4A2.2 2.2 0 0 0 6 3M2 13c0-3 8-3 8 0M10.5 3.4a2 2 0 0 1 0 3.7M12 9.9c1.4.4 2 1.4 2 3.1"
            }
        }
    }
}

/// A drawing that repeats the words beside it.
pub fn icon(icon: Icon) -> Markup {
    html! { svg.icon viewBox="0 0 16 16" aria-hidden="true" { path d=(icon.path()) {} } }
}

/// A drawing instead of words, which screen readers read.
pub fn labelled_icon(kind: Icon, label: &str) -> Markup {
    html! { (icon(kind)) span.vh { (label) } }
}
