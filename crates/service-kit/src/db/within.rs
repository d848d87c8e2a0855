//! `column IN (SELECT …)` for a boxed query, which diesel's own `eq_any` cannot render for two databases at once.

use diesel::{
    QueryResult,
    expression::{AppearsOnTable, Expression, SelectableExpression, ValidGrouping, is_aggregate},
    query_builder::{AstPass, QueryFragment, QueryId},
    sql_types::Bool,
};

use super::MultiBackend;

/// The condition that `column` is among what `query` selects.
pub fn within<C, Q>(column: C, query: Q) -> Within<C, Q> {
    Within { column, query }
}

/// See [`within`].
#[derive(Debug, Clone, Copy)]
pub struct Within<C, Q> {
    column: C,
    query: Q,
}

impl<C, Q> Expression for Within<C, Q> {
    type SqlType = Bool;
}

impl<C, Q, T> AppearsOnTable<T> for Within<C, Q> where C: AppearsOnTable<T> {}

impl<C, Q, T> SelectableExpression<T> for Within<C, Q> where C: SelectableExpression<T> {}

impl<C, Q, G> ValidGrouping<G> for Within<C, Q> {
    type IsAggregate = is_aggregate::No;
}

impl<C, Q> QueryId for Within<C, Q> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<C, Q> QueryFragment<MultiBackend> for Within<C, Q>
where
    C: QueryFragment<MultiBackend>,
    Q: QueryFragment<MultiBackend>,
{
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, MultiBackend>) -> QueryResult<()> {
        self.column.walk_ast(out.reborrow())?;
        out.push_sql(" IN (");
        self.query.walk_ast(out.reborrow())?;
        out.push_sql(")");
        Ok(())
    }
}
