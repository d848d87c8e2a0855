//! The sign-in name that an authenticating reverse proxy sends in a header.

use actix_web::{
    Error, HttpMessage,
    body::MessageBody,
    dev::{ServiceRequest, ServiceResponse},
    middleware::Next,
    web::Data,
};

use crate::http::proxy::{Proxies, ProxyUser};

/// Moves the name from the headers to the extensions, as a [`ProxyUser`]. The headers of an untrusted peer are removed
/// and ignored. Without `Data<Proxies>` no proxy is trusted.
///
/// # Errors
/// Those of the inner service.
pub async fn proxy_user<B: MessageBody>(mut req: ServiceRequest, next: Next<B>) -> Result<ServiceResponse<B>, Error> {
    // The address of the connection, never one from a header: anybody may send those.
    let peer = req.peer_addr().map(|peer| peer.ip());
    let user = match req.app_data::<Data<Proxies>>().cloned() {
        Some(proxies) => proxies.take(req.headers_mut(), peer),
        None => ProxyUser::Nobody,
    };
    req.extensions_mut().insert(user);
    next.call(req).await
}
