//! The version of the content of a database.

use diesel::{
    QueryResult, RunQueryDsl,
    backend::Backend,
    expression::{AppearsOnTable, Expression, SelectableExpression, ValidGrouping, is_aggregate},
    query_builder::{AstPass, QueryFragment, QueryId},
    sql_types::Text,
};

use super::any_connection::AnyConnection;
use crate::with_connection;

/// The version of the content that a transaction sees: two transactions with the same version see the same rows. Select
/// it along with other columns, so that it needs no statement of its own. The migrations define `last_change`.
///
/// On PostgreSQL it changes with every write on the server (`pg_current_snapshot()`). A row that each write sets instead
/// makes writes wait for each other: with 8 connections, a tenth of the transactions in a second or less. A sequence
/// does not change when a transaction commits, so that an old answer would keep its tag.
#[derive(Debug, Clone, Copy, QueryId)]
pub struct DataVersion;

impl DataVersion {
    /// Reads it by a statement of its own.
    pub fn read(conn: &mut AnyConnection) -> QueryResult<String> {
        with_connection!(conn, c => diesel::select(Self).get_result(c))
    }
}

impl<DB: Backend> QueryFragment<DB> for DataVersion {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql("(SELECT mark FROM last_change)");
        Ok(())
    }
}

impl Expression for DataVersion {
    type SqlType = Text;
}

impl<T> AppearsOnTable<T> for DataVersion {}

impl<T> SelectableExpression<T> for DataVersion {}

impl<G> ValidGrouping<G> for DataVersion {
    type IsAggregate = is_aggregate::Never;
}
