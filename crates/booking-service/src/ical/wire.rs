//! What the feed's secret looks like on the wire, and what the feed takes.

use common::problem::Violations;
use deserr::Deserr;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

/// The secret part of a feed's address.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = icalSecret, example = json!({"secret": "kf3u…"}))]
pub struct IcalSecret {
    /// Comes directly after the user's id.
    pub secret: String,
}

/// Which events the feed shows.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations)]
#[into_params(parameter_in = Query)]
pub struct FeedQuery {
    /// A filter, as for `GET /events`. Without it: the user's own events.
    #[deserr(default)]
    pub q: Option<String>,
}
