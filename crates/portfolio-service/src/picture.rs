//! The addresses of pictures.

use service_kit::database::types::DbUuid;

/// The address of the picture of a project (`projects`) or user (`users`) with this hash. It changes with the picture,
/// so that caches may keep what it shows.
pub fn address(segment: &str, id: DbUuid, hash: &str) -> String {
    format!("/api/v1/{segment}/{id}/picture?v={hash}")
}

/// The address of its small form.
pub fn small(address: &str) -> String {
    format!("{address}&size=small")
}
