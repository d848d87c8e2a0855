//! Fragments of SQL that Diesel does not have for both databases.

use diesel::{
    QueryResult,
    backend::Backend,
    deserialize::{self, FromSql, FromSqlRow},
    expression::{AppearsOnTable, Expression, SelectableExpression, ValidGrouping, is_aggregate},
    pg::Pg,
    postfix_operator,
    query_builder::{AstPass, QueryFragment, QueryId},
    sql_types::{Binary, Bool},
    sqlite::Sqlite,
};

use service_kit::database::{MultiBackend, types::DbUuid};
use uuid::Uuid;

diesel::define_sql_function! {
    /// Lower case of ASCII letters, as the index `users_name_lower` has it.
    fn lower(text: diesel::sql_types::Text) -> Text;
}

// Diesel binds a value to a parameter. PostgreSQL has statistics for constants, but not for parameters: with these
// conditions as parameters, it expects to read half of the table, and so plans the statement for each execution, which
// takes as long as the execution.
postfix_operator!(IsTrue, " = TRUE");
postfix_operator!(IsFalse, " = FALSE");

// The same conditions for a query that has a narrower one. PostgreSQL finds them in an index as well, if its statistics
// promise that to be better. SQLite does not. It has no statistics, and would read all events of a span of time instead
// of the events of a user.
postfix_operator!(IsTrueByRow, " IS TRUE");
postfix_operator!(IsFalseByRow, " IS FALSE");

/// `column IN (query)`, for a boxed query or a [`UnionAll`].
pub fn in_subquery<C, Q>(column: C, query: Q) -> InSubquery<C, Q> {
    InSubquery { column, query }
}

/// See [`in_subquery`].
#[derive(Debug, Clone, Copy)]
pub struct InSubquery<C, Q> {
    column: C,
    query: Q,
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

impl<C, Q> Expression for InSubquery<C, Q> {
    type SqlType = Bool;
}

impl<C: AppearsOnTable<T>, Q, T> AppearsOnTable<T> for InSubquery<C, Q> {}

impl<C: SelectableExpression<T>, Q, T> SelectableExpression<T> for InSubquery<C, Q> {}

impl<C, Q, G> ValidGrouping<G> for InSubquery<C, Q> {
    type IsAggregate = is_aggregate::No;
}

impl<C, Q> QueryId for InSubquery<C, Q> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

/// `SELECT … UNION ALL SELECT …` of queries with one column, for [`in_subquery`].
#[derive(Default)]
pub struct UnionAll(Vec<Box<dyn QueryFragment<MultiBackend> + Send>>);

impl UnionAll {
    /// Adds a query.
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

/// The ids of a group of rows as one value, read as an [`IdList`]. Decoding a row takes longer than finding it, and
/// most rows of an answer are the ids of an object's people.
pub fn folded_ids<C>(column: C) -> FoldedIds<C> {
    FoldedIds { column }
}

/// Identifiers in order, as [`folded_ids`] selects them.
#[derive(Debug, Clone, Default, PartialEq, Eq, FromSqlRow)]
pub struct IdList(pub Vec<DbUuid>);

impl<B: Backend> FromSql<Binary, B> for IdList
where
    Vec<u8>: FromSql<Binary, B>,
{
    fn from_sql(value: B::RawValue<'_>) -> deserialize::Result<Self> {
        let bytes = Vec::from_sql(value)?;
        let (ids, rest) = bytes.as_chunks();
        if !rest.is_empty() {
            return Err("an id has not 16 bytes".into());
        }
        let mut ids: Vec<_> = ids.iter().map(|id| DbUuid(Uuid::from_bytes(*id))).collect();
        ids.sort_unstable();
        Ok(Self(ids))
    }
}

/// See [`folded_ids`].
#[derive(Debug, Clone, Copy, QueryId)]
pub struct FoldedIds<C> {
    column: C,
}

impl<C: QueryFragment<Pg>> QueryFragment<Pg> for FoldedIds<C> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("string_agg(uuid_send(");
        self.column.walk_ast(out.reborrow())?;
        out.push_sql("), '')");
        Ok(())
    }
}

impl<C: QueryFragment<Sqlite>> QueryFragment<Sqlite> for FoldedIds<C> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
        out.push_sql("CAST(group_concat(");
        self.column.walk_ast(out.reborrow())?;
        out.push_sql(", '') AS BLOB)");
        Ok(())
    }
}

impl<C> QueryFragment<MultiBackend> for FoldedIds<C>
where
    Self: QueryFragment<Pg> + QueryFragment<Sqlite>,
{
    fn walk_ast<'b>(&'b self, out: AstPass<'_, 'b, MultiBackend>) -> QueryResult<()> {
        MultiBackend::walk_variant_ast(self, out)
    }
}

impl<C> Expression for FoldedIds<C> {
    type SqlType = Binary;
}

impl<C: AppearsOnTable<T>, T> AppearsOnTable<T> for FoldedIds<C> {}

impl<C: SelectableExpression<T>, T> SelectableExpression<T> for FoldedIds<C> {}

impl<C, G> ValidGrouping<G> for FoldedIds<C> {
    type IsAggregate = is_aggregate::Yes;
}
