//! Dry runs: an operation runs as always, with the same checks under the same locks, and its changes are undone.

use actix_web::http::{StatusCode, header};
use diesel::{Connection, result::Error as DieselError};

use crate::{database::AnyConnection, error::Error, http::Reply};

/// Runs an operation in a savepoint, undoes its changes, and returns its answer with status 200. What it created does
/// not exist, so the answer has no `Location`.
pub(super) fn run(
    conn: &mut AnyConnection,
    operation: impl FnOnce(&mut AnyConnection) -> Result<Reply, Error>,
) -> Result<Reply, Error> {
    let mut result = None;
    let rolled_back = conn.transaction(|conn| -> Result<(), DieselError> {
        result = Some(operation(conn));
        Err(DieselError::RollbackTransaction)
    });
    match (result, rolled_back) {
        (Some(result), Err(DieselError::RollbackTransaction)) => {
            result.map(|reply| reply.with_status(StatusCode::OK).without(&header::LOCATION))
        }
        (_, Err(error)) => Err(error.into()),
        (_, Ok(())) => Err(DieselError::RollbackTransaction.into()),
    }
}
