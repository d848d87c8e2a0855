//! The pages of refusals, and the page of all problem codes.

use actix_web::{
    HttpRequest,
    http::{StatusCode, header},
};
use common::problem::{Code, Problem, Violation};
use maud::{Markup, html};

use super::context::PageContext;
use crate::{
    http::{Reply, html as html_page, language::Language, notes::RequestNotes},
    state::ProblemPage,
};

/// The page that shows a refusal to a person. Programs, which do not prefer HTML, get a problem document.
pub fn problem_page(req: &HttpRequest) -> Option<ProblemPage> {
    if !html_page::is_preferred(req) {
        return None;
    }
    let context = PageContext::of(req).ok()?;
    let typed = RequestNotes::read(req, |notes| notes.typed.clone());
    Some(Box::new(move |problem| {
        let why = html! {
            (context.explain(problem))
            @if !typed.borrow().is_empty() {
                p { (context.text("you-typed")) }
                @for text in typed.borrow().iter() { pre { (text) } }
            }
        };
        context.refusal(problem, &why, &context.next_step(problem))
    }))
}

impl PageContext {
    /// The page of a refusal: why, and what to do next.
    pub fn refusal(&self, problem: &Problem, why: &Markup, next_step: &Markup) -> Reply {
        let status = StatusCode::from_u16(problem.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        self.reply_with(status, &self.problem_title(problem), html! { (why) p { (next_step) } })
    }

    /// A broken rule in the language of the page.
    pub fn broken_rule(&self, violation: &Violation) -> String {
        self.find(&format!("rule-{}", violation.code.code())).unwrap_or_else(|| violation.message.clone())
    }

    /// The link to what may help after a refusal.
    pub fn next_step(&self, problem: &Problem) -> Markup {
        html! {
            @match (problem.status(), self.sign_in_address()) {
                (401, Some(sign_in)) if self.is_get => a.button.primary href=(sign_in) { (self.text("sign-in")) },
                // Loading the page again sends the form again.
                (401, Some(sign_in)) => {
                    (self.text("sign-in-and-send")) " " a.button.primary href=(sign_in) target="_blank" { (self.text("sign-in")) }
                },
                (408 | 429 | 503, _) if self.is_get => a href="" { (self.text("try-again")) },
                _ => a href="/" { (self.text("to-start")) },
            }
        }
    }

    /// The refusal in a few words.
    pub fn problem_title(&self, problem: &Problem) -> String {
        let of_status = || self.find(&format!("problem-{}", problem.status()));
        let title = self.find(&format!("problem-{}", problem.code().name)).or_else(of_status);
        title.unwrap_or_else(|| problem.code().title.to_owned())
    }

    /// The refusal in a sentence or two.
    pub fn explain(&self, problem: &Problem) -> Markup {
        let retry_after = problem.headers().iter().find(|(name, _)| name.eq_ignore_ascii_case("retry-after"));
        let seconds = retry_after.and_then(|(_, seconds)| seconds.parse::<u32>().ok()).unwrap_or(1);
        let find = |key: &str| self.state().interface.texts.find(self.language, key, &[("seconds", seconds.into())]);
        let of_code = find(&format!("problem-{}-about", problem.code().name));
        let about = of_code.clone().or_else(|| find(&format!("problem-{}-about", problem.status())));
        // What is wrong with this request stands only in the problem, in English, and how to sign in if no page does that.
        let is_special = self.language == Language::English
            && of_code.is_none()
            && match problem.status() {
                401 => self.sign_in_address().is_none(),
                status => about.is_none() || matches!(status, 400 | 403 | 409 | 413 | 415 | 421),
            };
        html! {
            @if let Some(about) = about { p { (about) } }
            @if is_special { p.mute { (problem.explanation()) } }
        }
    }
}

/// All problem codes.
pub fn show_all(context: &PageContext) -> Reply {
    let body = html! {
        p { (context.text("problems-about")) }
        div.table tabindex="0" role="region" aria-label=(context.text("problems")) {
            table lang="en" {
                thead { tr { th scope="col" { "Code" } th scope="col" { "Status" } th scope="col" { "Meaning" } } }
                tbody {
                    @for code in context.state().codes() {
                        tr id=(code.name) {
                            th scope="row" { a href={ "/problems/" (code.name) } { code { (code.name) } } }
                            td { (code.status) }
                            td { b { (code.title) } br; (code.about) }
                        }
                    }
                }
            }
        }
    };
    context.reply(&context.text("problems"), body).with(header::VARY, "Accept")
}

/// One problem code.
pub fn show(context: &PageContext, code: &Code) -> Reply {
    let body = html! {
        p lang="en" { (code.about) }
        p.mute { code { (code.name) } ", " (code.status) }
        p { a href="/problems" { (context.text("problems")) } }
    };
    context.reply(code.title, body).with(header::VARY, "Accept")
}
