//! Buttons and hidden fields, which show nothing that was typed.

use maud::{Markup, html};

use crate::http::form;

/// A field that nobody sees.
pub fn hidden(name: &str, value: impl AsRef<str>) -> Markup {
    html! { input type="hidden" name=(name) value=(value.as_ref()); }
}

/// The button that Enter presses in a text field: the first one of a form with several. Nobody sees it.
pub fn enter_button(text: &str) -> Markup {
    html! { button hidden { (text) } }
}

/// A form with a single button, which may be one of several of which one is pressed.
pub fn button(action: &str, fields: &[(&str, &str)], text: &str, is_pressed: Option<bool>) -> Markup {
    html! {
        form method="post" action=(action) {
            (hidden(form::KEY, form::new_key()))
            @for (name, value) in fields { (hidden(name, value)) }
            button aria-pressed=[is_pressed.map(|is_pressed| is_pressed.to_string())] { (text) }
        }
    }
}
