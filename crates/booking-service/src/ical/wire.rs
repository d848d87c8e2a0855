//! The feed's secret and parameters on the wire.

use common::{input::Flag, problem::Violations};
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

/// What the feed shows.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations)]
#[into_params(parameter_in = Query)]
pub struct FeedQuery {
    /// A filter, as for `GET /events`. Without it: the user's own events.
    #[deserr(default)]
    pub q: Option<String>,
    /// Whether the events name all their attendees, instead of the feed's owner alone.
    #[deserr(default)]
    #[param(value_type = Option<bool>)]
    pub attendees: Flag,
}
