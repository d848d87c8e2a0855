//! The layout of the pages, what it takes from a request, and the forms in them.

mod address;
mod context;
mod fields;
mod problems;

pub use self::{
    address::{address, is_local, see_other, set_language},
    context::PageContext,
    fields::{Choice, FormPage, Input, button, hidden},
    problems::{problem_page, show as show_problem, show_all as show_problems},
};
