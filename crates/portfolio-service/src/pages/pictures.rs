//! The forms of pictures, on the pages of what they show.

use actix_web::web::Path;
use common::{input::Id, problem::Problem};
use maud::{Markup, html};
use service_kit::{
    error::Failure,
    guard::{Authenticator, Guard},
    http::{
        Form, Reply,
        form::{PICTURE, Upload},
    },
    page::{FormPage, PageContext, button, see_saved},
    state::Now,
};

use super::fields::home;
use crate::{
    auth::{Caller, ProjectEditor, UserSelf},
    picture,
    pictures::{Subject, delete, put},
};

/// The form that replaces or removes the picture of what has its pages below `path`.
pub fn section(page: &PageContext, path: &str, address: Option<&str>) -> Markup {
    form(page, path, address, None)
}

fn form(page: &PageContext, path: &str, address: Option<&str>, problem: Option<&Problem>) -> Markup {
    let text = |key| page.text(key);
    let form = FormPage { page, values: &Form::default(), problem, aliases: &[] };
    html! {
        (form.refusal())
        (form.upload(&format!("{path}/picture"), &html! {
            @if let Some(address) = address { p { img src=(picture::small(address)) alt=""; } }
            div.field {
                label for="picture" { (text("picture")) }
                span.hint #picture-hint { (text("picture-hint")) }
                input #picture type="file" name=(PICTURE) accept="image/png,image/jpeg,image/webp" required
                    aria-describedby="picture-hint";
            }
            div.actions { button { (text("upload")) } }
        }))
        @if address.is_some() { (button(&format!("{path}/picture/delete"), &[], &text("remove-picture"), None)) }
    }
}

/// The page that shows a picture to whoever has changed it.
fn shown_at(me: &Caller, subject: Subject) -> String {
    match subject {
        Subject::Project(id) => format!("/projects/{id}"),
        Subject::User(id) => home(me, id).to_owned(),
    }
}

/// Gives a project a picture.
pub async fn put_of_project(
    page: PageContext,
    who: ProjectEditor,
    now: Now,
    id: Path<Id>,
    upload: Upload,
) -> Result<Reply, Failure> {
    let path = format!("/projects/{}", *id);
    replace(page, who, (Subject::Project((*id).into()), path), now, upload).await
}

/// Gives a user a picture.
pub async fn put_of_user(
    page: PageContext,
    who: UserSelf,
    now: Now,
    id: Path<Id>,
    upload: Upload,
) -> Result<Reply, Failure> {
    let path = format!("/people/{}", *id);
    replace(page, who, (Subject::User((*id).into()), path), now, upload).await
}

/// Replaces a picture, and leads to the page that shows it. A refused form is shown again.
async fn replace<A: Authenticator<Caller = Caller>>(
    page: PageContext,
    who: Guard<A>,
    (subject, path): (Subject, String),
    now: Now,
    upload: Upload,
) -> Result<Reply, Failure> {
    let again = who.clone();
    let result = put(who, subject, upload.picture, now, move |me| see_saved(&shown_at(me, subject))).await;
    again
        .or_form_again(result, move |_, _, problem| {
            Ok(page.reply(&page.text("picture"), form(&page, &path, None, Some(problem))))
        })
        .await
}

/// Removes the picture of a project.
pub async fn delete_of_project(who: ProjectEditor, now: Now, id: Path<Id>, _form: Form) -> Result<Reply, Failure> {
    let subject = Subject::Project((*id).into());
    delete(who, subject, now, move |me| see_saved(&shown_at(me, subject))).await
}

/// Removes the picture of a user.
pub async fn delete_of_user(who: UserSelf, now: Now, id: Path<Id>, _form: Form) -> Result<Reply, Failure> {
    let subject = Subject::User((*id).into());
    delete(who, subject, now, move |me| see_saved(&shown_at(me, subject))).await
}
