//! Between actix and a handler: what comes in, what goes out, and the frame around every request.

pub mod body;
pub mod client;
pub mod credential;
pub mod etag;
pub mod exchange;
pub mod frame;
pub mod jwt;
pub mod limit;
pub mod openapi;
pub mod page;
pub mod proxy;
pub mod query;
pub mod reply;
pub mod resources;
pub mod retries;
pub mod root;
pub mod routes;
pub mod static_files;

pub use self::{
    body::Body,
    page::Page,
    query::Query,
    reply::{Answer, Reply},
};
