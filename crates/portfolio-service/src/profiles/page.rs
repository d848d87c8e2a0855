//! The pages of members.

use chrono_tz::Tz;
use common::semester::YearWithSemester;
use maud::html;
use service_kit::{
    error::Error,
    http::{Language, Reply},
    page::{Icon, PageContext, icon},
};

use super::queries::Profile;
use crate::{
    groups::queries::Membership,
    link::to_uri,
    metadata::Metadata,
    page::{self as pages, days, limit_note, semesters},
    timeline::Timeline,
    users::{self, Person},
};

/// The members whose names contain a text.
pub fn list(page: &PageContext, search: &str, people: &[Person]) -> Reply {
    let body = html! {
        form.actions role="search" action="/people" {
            label.vh for="search" { (page.text("name")) }
            input #search type="search" name="search" value=(search) maxlength="64" placeholder=(page.text("name"));
            button { (page.text("search")) }
        }
        @if people.is_empty() { p.empty { (page.text("nobody")) } }
        ul.people {
            @for person in people {
                li.card {
                    (users::face(person, "mid"))
                    div {
                        a href={ "/people/" (person.name) } { (person.name) }
                        @if !person.real_name().is_empty() { small { (person.real_name()) } }
                    }
                }
            }
        }
        (limit_note(page, people.len()))
    };
    pages::reply(page, &page.text("people"), Metadata::new("/people", &page.text("about-people")), body)
}

/// The page of a member. `present` is the present semester.
pub fn render(
    page: &PageContext,
    profile: &Profile,
    groups: &[Membership],
    present: YearWithSemester,
    zone: Tz,
) -> Result<Reply, Error> {
    let Profile { user, projects, teams } = profile;
    let accounts = user.accounts.iter().cloned().map(users::Account::new).collect::<Result<Vec<_>, _>>()?;
    let teams = teams.iter().map(|(contest, team)| Ok((contest, contest.duration()?, team)));
    let teams = teams.collect::<Result<Vec<_>, Error>>()?;
    let groups = groups.iter().map(|membership| Ok((&membership.group, membership.span()?)));
    let groups = groups.collect::<Result<Vec<_>, Error>>()?;
    let timeline = Timeline::new(projects.iter().flat_map(|project| [project.span, project.own_span]), present);
    let resume = format!("/api/v1/users/{}/resume.json", user.person.id);
    let body = html! {
        div.person {
            (users::face(&user.person, "big"))
            div {
                p.mute {
                    "@" (user.person.name)
                    @if !user.person.real_name().is_empty() { " · " (user.person.real_name()) }
                }
                @if !user.bio.is_empty() { p.lead { (user.bio) } }
                @if !accounts.is_empty() {
                    h2.vh { (page.text("accounts")) }
                    div.actions {
                        @for account in &accounts {
                            a.button.small rel="me" href=[Some(account.url()).filter(|url| !url.is_empty())] {
                                (icon(Icon::Link)) (account.type_title(page)) " " small { (account.display_name()) }
                            }
                        }
                    }
                }
            }
        }
        h2 { (page.text("projects")) }
        @if projects.is_empty() { p { (page.text("none-yet")) } } @else {
            div.card {
                ol.timeline {
                    (timeline.axis())
                    @for project in projects {
                        li {
                            div { a href={ "/projects/" (project.row.id) } { b { (project.row.name) } } small { (semesters(page, project.own_span)) } }
                            (timeline.row(project.own_span, project.span))
                        }
                    }
                }
            }
            p.hint { (page.text("project-bars")) }
            (limit_note(page, projects.len()))
        }
        h2 { (page.text("contests")) }
        @if teams.is_empty() { p { (page.text("none-yet")) } } @else {
            div.card { ul.rows.named {
                @for (contest, duration, team) in &teams {
                    li {
                        div {
                            a href={ "/contests/" (contest.id) } { (contest.name) }
                            small { (team.name) " · " (days(page, *duration, zone, Language::date)) }
                        }
                        @if team.result.is_empty() { i {} } @else { span.badge.good { (team.result) } }
                    }
                }
            } }
            (limit_note(page, teams.len()))
        }
        @if !groups.is_empty() {
            h2 { (page.text("groups")) }
            div.card { ul.rows.named {
                @for (group, span) in &groups {
                    li { div { a href={ "/groups/" (group.id) } { (group.name) } small { (semesters(page, *span)) } } }
                }
            } }
        }
        p { a href=(resume) { (page.text("resume")) } }
    };
    let head = html! { link rel="alternate" type="application/json" title="JSON Resume" href=(resume); };
    let path = format!("/people/{}", user.person.name);
    let mut person = users::as_person(page, &user.person);
    person["sameAs"] = accounts.iter().filter_map(|account| to_uri(account.url())).collect();
    let metadata = Metadata { kind: "profile", data: Some(person), head, ..Metadata::new(&path, &user.bio) };
    Ok(pages::reply(page, &user.person.name, metadata, body))
}
