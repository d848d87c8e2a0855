//! The layout of the pages, what it takes from a request, the forms in them, and what both services show alike.

mod address;
mod avatar;
mod buttons;
mod context;
mod fields;
mod history;
mod icons;
mod people;
mod problems;
mod sign_out;

pub use self::{
    address::{
        address, is_local, see_booked, see_deleted, see_deleted_from, see_deleted_from_part, see_other, see_saved,
        set_language,
    },
    avatar::{avatar, photo, picture},
    buttons::{button, enter_button, hidden},
    context::PageContext,
    fields::{Choice, FormPage, Input},
    history::{Sentences, mentioned},
    icons::{Icon, icon, labelled_icon},
    people::{Person, Roster, fold, name_words},
    problems::{problem_page, show as show_problem, show_all as show_problems},
    sign_out::ask as ask_to_sign_out,
};
