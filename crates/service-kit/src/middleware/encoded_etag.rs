//! The entity tag of a compressed answer.

use actix_web::{
    Error,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::header::{self, HeaderValue},
    middleware::Next,
};

use super::map_response;
use crate::http::etag;

/// A compressed answer is another representation, which needs a tag of its own (RFC 9110, section 8.8.3.3).
pub async fn encoded_etag<B: MessageBody + 'static>(
    req: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    map_response(next.call(req).await, |mut response| {
        let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let tag = match (text(header::ETAG), text(header::CONTENT_ENCODING)) {
            (Some(tag), Some(coding)) => etag::in_coding(tag, coding),
            _ => None,
        };
        if let Some(Ok(tag)) = tag.map(HeaderValue::try_from) {
            response.headers_mut().insert(header::ETAG, tag);
        }
        response
    })
}
