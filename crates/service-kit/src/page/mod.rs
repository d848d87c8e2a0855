//! The layout of the pages, what it takes from a request, the forms in them, and the history as sentences.

mod address;
mod context;
mod fields;
mod history;
mod problems;

pub use self::{
    address::{address, is_local, see_other, set_language},
    context::PageContext,
    fields::{Choice, FormPage, Input, button, hidden},
    history::{Sentences, mentioned},
    problems::{problem_page, show as show_problem, show_all as show_problems},
};
