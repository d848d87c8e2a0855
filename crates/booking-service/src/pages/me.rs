//! The page of the caller's own things: calendar feed, API tokens, sessions.

use actix_web::{http::StatusCode, web::Path};
use club_sign_in::sessions::{end_of, sessions_of};
use common::{input::Id, problem::Problem};
use maud::{Markup, html};
use serde_json::json;
use service_kit::{
    credentials,
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure},
    http::{Form, Reply, form::request},
    page::{FormPage, Input, button, see_other},
};

use super::visit::{Visit, instant_of, or_form_again};
use crate::{
    auth::{Caller, Scope, SignedIn, stay_active},
    club::Club,
    ical,
    sign_in::{self, RequestToken, tokens},
    users,
};

pub async fn show(visit: Visit, club: Club, who: SignedIn) -> Result<Reply, Failure> {
    who.read(move |conn, me| page(conn, me, &visit, &club, &new_token_values(), None)).await
}

fn new_token_values() -> Form {
    Form::new([("name", ""), ("scope", "read"), ("expiresAt", "")])
}

fn page(
    conn: &mut AnyConnection,
    me: &Caller,
    visit: &Visit,
    club: &Club,
    values: &Form,
    problem: Option<&Problem>,
) -> Result<Reply, Error> {
    let user = users::queries::get(conn, me.id)?;
    let nonce = ical::queries::nonce(conn, me.id)?;
    let address = nonce.map(|nonce| ical::address(club, me.id, &nonce));
    let form = FormPage { page: visit.page(), values, problem, aliases: &[] };
    let body = html! {
        p.mute { "@" (user.name) @if user.privileged { " " span.badge.accent { (visit.text("privileged")) } } }
        h2 #calendar { (visit.text("calendar-feed")) }
        (feed(address.as_deref(), visit))
        h2 #tokens { (visit.text("tokens")) }
        p { (visit.text("tokens-about")) }
        (form.refusal())
        (own_tokens(conn, me, visit)?)
        (form.form("/me/tokens", None, &new_token(&form, visit)))
        h2 #sessions { (visit.text("sessions")) }
        (own_sessions(conn, me, visit)?)
        p { a href="/deleted" { (visit.text("deleted")) } }
    };
    Ok(visit.reply(&user.display_name, body).secret())
}

fn feed(address: Option<&str>, visit: &Visit) -> Markup {
    html! {
        @match address {
            Some(address) => {
                @let webcal = address.split_once("://").map_or(address, |(_, rest)| rest);
                p { (visit.text("feed-about")) }
                div.field {
                    label for="feed" { (visit.text("feed-address")) }
                    input #feed readonly value=(address);
                }
                p.actions { a.button.primary href={ "webcal://" (webcal) } { (visit.text("subscribe")) } }
                details {
                    summary { (visit.text("renew-feed")) }
                    p { (visit.text("renew-feed-about")) }
                    (button("/me/feed", &[], &visit.text("renew-feed"), None))
                }
            }
            None => {
                p { (visit.text("feed-about")) }
                (button("/me/feed", &[], &visit.text("make-feed"), None))
            }
        }
    }
}

fn own_tokens(conn: &mut AnyConnection, me: &Caller, visit: &Visit) -> Result<Markup, Error> {
    let tokens = tokens::of_user(conn, me.id)?;
    let day = |at: DbTimestamp| visit.language.date(visit.local(at).date());
    Ok(html! {
        @if !tokens.is_empty() {
            div.card { ul.rows.named { @for token in &tokens {
                li {
                    div {
                        b { (token.name) } " " span.badge { (visit.text(scope_key(token.scope))) }
                        small {
                            (visit.format("made-at", &[("at", day(token.created_at).into())]))
                            @if let Some(at) = token.expires_at {
                                (visit.language.separator()) (visit.format("valid-until", &[("at", day(at).into())]))
                            }
                            @if let Some(at) = token.last_used_at {
                                (visit.language.separator()) (visit.format("used-at", &[("at", day(at).into())]))
                            }
                        }
                    }
                    (button(&format!("/me/tokens/{}/revoke", token.id), &[], &visit.text("revoke"), None))
                }
            } } }
        }
    })
}

fn scope_key(scope: Scope) -> &'static str {
    match scope {
        Scope::Read => "scope-read",
        Scope::Write => "scope-write",
        Scope::Board => "scope-board",
    }
}

fn new_token(form: &FormPage<'_>, visit: &Visit) -> Markup {
    let scopes = [("read", Scope::Read), ("write", Scope::Write), ("board", Scope::Board)];
    let scopes = scopes.map(|(value, scope)| (value.to_owned(), visit.text(scope_key(scope))));
    html! {
        h3 { (visit.text("new-token")) }
        div.line {
            (form.input(Input { name: "name", label: &visit.text("name"), max_length: Some(64), is_required: true,
                autocomplete: Some("off"), ..Input::default() }))
            (form.select("scope", &visit.text("scope"), None, &scopes))
            (form.input(Input { name: "expiresAt", label: &visit.text("expires"), kind: Some("date"), ..Input::default() }))
        }
        div.actions { button { (visit.text("make-token")) } }
    }
}

fn own_sessions(conn: &mut AnyConnection, me: &Caller, visit: &Visit) -> Result<Markup, Error> {
    let Ok(current) = me.require_session() else { return Ok(html! {}) };
    let sessions = sessions_of(conn, me.id, visit.now.0)?;
    Ok(html! {
        div.card { ul.rows.named { @for session in &sessions {
            li {
                div {
                    (visit.format("signed-in-at", &[("at", visit.moment(session.created_at).into())]))
                    small { (visit.format("used-at", &[("at", visit.moment(session.last_used_at).into())])) }
                }
                @if session.id == current { span.badge.good { (visit.text("this-session")) } }
                @else { (button(&format!("/me/sessions/{}/end", session.id), &[], &visit.text("end-session"), None)) }
            }
        } } }
    })
}

/// Makes a new feed address; an old one ends.
pub async fn renew_feed(visit: Visit, club: Club, who: SignedIn, _form: Form) -> Result<Reply, Failure> {
    let _ = visit;
    who.update(ical::target(&club), move |conn, me| {
        stay_active(conn, me.id)?;
        ical::queries::replace_nonce(conn, me.id, &credentials::random_secret()?)?;
        Ok(see_other("/me#calendar"))
    })
    .await
}

/// Makes a token and shows it once.
pub async fn create_token(visit: Visit, club: Club, who: SignedIn, form: Form) -> Result<Reply, Failure> {
    let again = (who.clone(), visit.clone());
    let expires_at = match form.get("expiresAt") {
        "" => None,
        day => Some(instant_of(day, "23:59", visit.zone).map_or_else(|| day.to_owned(), |at| at.to_string())),
    };
    let body = json!({ "name": form.get("name"), "scope": form.get("scope"), "expiresAt": expires_at });
    let result = match request::<RequestToken>(body).map(tokens::NewToken::from) {
        Err(failure) => Err(failure),
        Ok(new) => {
            who.update(sign_in::tokens_target(visit.zone), move |conn, me| {
                me.require_session()?;
                stay_active(conn, me.id)?;
                me.author.count(1);
                let (_, token) = tokens::issue(conn, Some(me.id), &new, visit.now.0)?;
                visit.state().credential_owners.remember(token.reveal(), me.id.0);
                let body = html! {
                    p { (visit.text("token-once")) }
                    div.field { label for="token" { (new.name) } input #token readonly value=(token.reveal()); }
                    p { a.button.primary href="/me#tokens" { (visit.text("done")) } }
                };
                Ok(visit.reply_with(StatusCode::CREATED, &visit.text("new-token"), body).secret())
            })
            .await
        }
    };
    let (who, visit) = again;
    or_form_again(result, who, move |conn, me, problem| {
        me.require_session()?;
        page(conn, me, &visit, &club, &form, Some(problem))
    })
    .await
}

/// Revokes a token.
pub async fn revoke_token(visit: Visit, who: SignedIn, id: Path<Id>, _form: Form) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.update(sign_in::tokens_target(visit.zone), move |conn, me| {
        me.require_session()?;
        tokens::revoke_of(conn, me.id, id, visit.now.0)?;
        Ok(see_other("/me#tokens"))
    })
    .await
}

/// Ends another session.
pub async fn end_session(visit: Visit, who: SignedIn, id: Path<Id>, _form: Form) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.update(sign_in::sessions_target(visit.zone, visit.now.0), move |conn, me| {
        me.require_session()?;
        end_of(conn, me.id, id, visit.now.0)?;
        Ok(see_other("/me#sessions"))
    })
    .await
}
