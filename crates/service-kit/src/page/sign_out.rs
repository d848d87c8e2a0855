//! The page that asks whether to sign out. Browsers open the addresses of links by themselves, so a link does not do it.

use common::problem::Problem;
use maud::html;

use super::context::PageContext;
use crate::{error::Failure, http::Reply, state::SIGN_OUT_PATH};

/// The page.
pub async fn ask(page: PageContext) -> Result<Reply, Failure> {
    if !page.state().answer_options.has_sign_out {
        return Err(Problem::not_found("path").into());
    }
    let body = html! {
        form.card method="post" action=(SIGN_OUT_PATH) {
            div.actions { button.primary { (page.text("sign-out")) } a href="/" { (page.text("cancel")) } }
        }
    };
    Ok(page.reply(&page.text("sign-out-question"), body))
}
