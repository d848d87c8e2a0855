//! Values read from requests and parts of answers. Nothing here depends on the state of the service.

pub mod admission;
pub mod body;
pub mod body_budget;
pub mod cidr;
pub mod client_ip;
pub mod etag;
pub mod form;
pub mod html;
pub mod language;
pub mod list_page;
pub mod notes;
pub mod openapi;
pub mod origin;
pub mod pagination;
pub mod parameter_names;
pub mod path_methods;
pub mod query;
pub mod rate_limit;
pub mod reply;
pub mod static_files;
pub mod texts;

pub use self::{
    body::Body,
    form::Form,
    html::HtmlPage,
    language::Language,
    list_page::ListPage,
    pagination::{ListPart, Page},
    query::Query,
    reply::{PROBLEM_MEDIA_TYPE, Reply},
};
