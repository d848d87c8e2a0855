//! `column IN (SELECT …)` for a boxed query or a union, neither of which diesel itself can render for two databases at
//! once.

use diesel::{
    QueryResult,
    expression::{AppearsOnTable, Expression, SelectableExpression, ValidGrouping, is_aggregate},
    query_builder::{AstPass, QueryFragment, QueryId},
    sql_types::Bool,
};

use super::MultiBackend;

/// The condition that `column` is among what `query` selects.
pub fn in_subquery<C, Q>(column: C, query: Q) -> InSubquery<C, Q> {
    InSubquery { column, query }
}

/// See [`in_subquery`].
#[derive(Debug, Clone, Copy)]
pub struct InSubquery<C, Q> {
    column: C,
    query: Q,
}

impl<C, Q> Expression for InSubquery<C, Q> {
    type SqlType = Bool;
}

impl<C, Q, T> AppearsOnTable<T> for InSubquery<C, Q> where C: AppearsOnTable<T> {}

impl<C, Q, T> SelectableExpression<T> for InSubquery<C, Q> where C: SelectableExpression<T> {}

impl<C, Q, G> ValidGrouping<G> for InSubquery<C, Q> {
    type IsAggregate = is_aggregate::No;
}

impl<C, Q> QueryId for InSubquery<C, Q> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<C, Q> QueryFragment<MultiBackend> for InSubquery<C, Q>
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

/// Queries of one column, all of whose rows count: `SELECT … UNION ALL SELECT …`. To be used inside [`in_subquery`].
#[derive(Default)]
pub struct UnionAll(Vec<Box<dyn QueryFragment<MultiBackend> + Send>>);

impl UnionAll {
    /// The same with one query more.
    #[must_use]
    pub fn and(mut self, query: impl QueryFragment<MultiBackend> + Send + 'static) -> Self {
        self.0.push(Box::new(query));
        self
    }
}

impl QueryFragment<MultiBackend> for UnionAll {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, MultiBackend>) -> QueryResult<()> {
        for (n, query) in self.0.iter().enumerate() {
            if n > 0 {
                out.push_sql(" UNION ALL ");
            }
            query.walk_ast(out.reborrow())?;
        }
        Ok(())
    }
}
