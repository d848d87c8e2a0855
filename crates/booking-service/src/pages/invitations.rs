//! The page of invitations, for privileged users.

use actix_web::{http::StatusCode, web::Path};
use common::{input::Id, problem::Problem};
use maud::{Markup, PreEscaped, html};
use qrcode::{QrCode, render::svg};
use serde_json::json;
use service_kit::{
    database::{AnyConnection, types::DbUuid},
    error::{Error, Failure},
    http::{Form, Reply, form::request},
    page::{FormPage, Input, button, see_other},
    state::TimeDependent,
};

use super::visit::{Visit, or_form_again};
use crate::{
    auth::Privileged,
    club::Club,
    join_links::{self, NewInvitation, RequestInvitation, queries},
};

/// The width of the code in pixels, so that a telephone reads it from a screen.
const CODE_WIDTH: u32 = 240;

pub async fn show(visit: Visit, who: Privileged, _now: TimeDependent) -> Result<Reply, Failure> {
    let values = Form::new([("uses", "1"), ("days", "7")]);
    who.read(move |conn, _| page(conn, &visit, &values, None)).await
}

fn page(conn: &mut AnyConnection, visit: &Visit, values: &Form, problem: Option<&Problem>) -> Result<Reply, Error> {
    let invitations = queries::list(conn, visit.now)?;
    let form = FormPage { page: visit.page(), values, problem, aliases: &[] };
    let number = |name, label: String| {
        let input =
            Input { name, label: &label, kind: Some("number"), min: Some("1"), is_required: true, ..Input::default() };
        form.input(input)
    };
    let body = html! {
        p { (visit.text("invitations-about")) }
        (form.refusal())
        @if !invitations.is_empty() {
            div.card { ul.rows.named { @for invitation in &invitations {
                li {
                    div {
                        (visit.format("invitation-used", &[("used", invitation.used.into()), ("uses", invitation.uses.into())]))
                        @if invitation.privileged { " " span.badge.accent { (visit.text("privileged")) } }
                        small { (visit.format("valid-until", &[("at", visit.moment(invitation.expires_at).into())])) }
                    }
                    (button(&format!("/invitations/{}/delete", invitation.id), &[], &visit.text("delete"), None))
                }
            } } }
        }
        h2 { (visit.text("new-invitation")) }
        (form.form("/invitations", None, &html! {
            div.line {
                (number("uses", visit.text("invitation-uses")))
                (number("days", visit.text("invitation-days")))
            }
            (form.check_box("privileged", &visit.text("invitation-privileged"), None))
            div.actions { button.primary { (visit.text("make-invitation")) } }
        }))
    };
    Ok(visit.reply(&visit.text("invitations"), body))
}

/// Makes an invitation and shows its link once.
pub async fn create(visit: Visit, club: Club, who: Privileged, form: Form) -> Result<Reply, Failure> {
    let again = (who.clone(), visit.clone());
    let number = |name: &str| form.get(name).trim().parse::<u32>().map_or_else(|_| json!(form.get(name)), |n| json!(n));
    let body = json!({"uses": number("uses"), "days": number("days"), "privileged": form.has("privileged", "true")});
    let result = match request::<RequestInvitation>(body).map(NewInvitation::from) {
        Err(failure) => Err(failure),
        Ok(new) => {
            who.create(move |conn, me| {
                let (_, secret) = join_links::create_recorded(conn, new.checked()?, &me.author, visit.now)?;
                let address = join_links::address(&club.origin, &secret);
                let body = html! {
                    p { (visit.text("invitation-once")) }
                    div.field {
                        label for="link" { (visit.text("link")) }
                        input #link readonly value=(address);
                    }
                    (code(&address)?)
                    p { a.button.primary href="/invitations" { (visit.text("done")) } }
                };
                Ok(visit.reply_with(StatusCode::CREATED, &visit.text("new-invitation"), body).secret())
            })
            .await
        }
    };
    let (who, visit) = again;
    or_form_again(result, who, move |conn, _, problem| page(conn, &visit, &form, Some(problem))).await
}

/// A QR code, black on white in both themes.
fn code(address: &str) -> Result<Markup, Error> {
    let code = QrCode::new(address).map_err(Problem::internal)?;
    let image = code.render::<svg::Color<'_>>().min_dimensions(CODE_WIDTH, CODE_WIDTH).build();
    // The renderer writes a declaration before the element.
    let element = image.find("<svg").map_or(image.as_str(), |start| &image[start..]);
    Ok(html! { p { (PreEscaped(element)) } })
}

/// Deletes an invitation.
pub async fn delete(visit: Visit, who: Privileged, id: Path<Id>, _form: Form) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.update(join_links::target(id, visit.zone), move |conn, me| {
        join_links::delete(conn, id, &me.author)?;
        Ok(see_other("/invitations"))
    })
    .await
}
