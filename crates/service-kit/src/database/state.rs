//! What stands for the whole content of the database.

use diesel::{
    QueryResult,
    backend::Backend,
    expression::{AppearsOnTable, Expression, SelectableExpression, ValidGrouping, is_aggregate},
    query_builder::{AstPass, QueryFragment, QueryId},
    sql_types::Text,
};

/// A word that stands for all that a transaction sees: two that are answered the same word see the same rows. To be
/// selected along with whatever a statement reads anyway; the migrations make the table or view behind it.
#[derive(Debug, Clone, Copy, QueryId)]
pub struct State;

impl Expression for State {
    type SqlType = Text;
}

impl<T> AppearsOnTable<T> for State {}

impl<T> SelectableExpression<T> for State {}

impl<G> ValidGrouping<G> for State {
    type IsAggregate = is_aggregate::Never;
}

impl<DB: Backend> QueryFragment<DB> for State {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql("(SELECT mark FROM last_change)");
        Ok(())
    }
}
