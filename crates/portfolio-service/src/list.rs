//! What all lists take.

use common::{input::Limit, problem::Violations};
use deserr::Deserr;
use utoipa::IntoParams;

/// The parameters of a list that has no others.
#[derive(Debug, Deserr, IntoParams)]
#[deserr(error = Violations, rename_all = camelCase)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub struct ListQuery {
    /// At most so many.
    #[deserr(default)]
    #[param(value_type = Option<u16>, nullable = false, minimum = 1, maximum = 1000)]
    pub limit: Limit,
}
