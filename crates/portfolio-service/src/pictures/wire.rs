//! The bodies and parameters of the operations on pictures.

use std::pin::Pin;

use actix_web::{FromRequest, HttpRequest, dev::Payload, web::Bytes};
use common::problem::Violations;
use deserr::Deserr;
use service_kit::{error::Failure, http::body};
use utoipa::{IntoParams, ToSchema};

/// The bytes of a picture.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
pub struct PictureFile(pub Bytes);

impl FromRequest for PictureFile {
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Failure>>>>;

    fn from_request(req: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let bytes = body::read(req, payload, "image/png, image/jpeg, image/webp", body::LIMIT);
        Box::pin(async move { bytes.await.map(Self) })
    }
}

/// The forms of a picture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserr, ToSchema)]
#[deserr(error = Violations, rename_all = camelCase)]
#[schema(rename_all = "camelCase")]
pub enum PictureSize {
    /// At most 1200 pixels on the longer side.
    #[default]
    Large,
    /// At most 320.
    Small,
}

/// Which form of a picture to answer.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations)]
#[into_params(parameter_in = Query)]
pub struct PictureQuery {
    /// At most 1200 pixels on the longer side (`large`, the default) or 320 (`small`).
    #[deserr(default)]
    #[param(value_type = Option<PictureSize>, inline)]
    pub size: PictureSize,
    /// The hash in the address that answers show. While it is that of the picture, caches may keep it for ever.
    #[deserr(default)]
    #[param(nullable = false)]
    pub v: Option<String>,
}
