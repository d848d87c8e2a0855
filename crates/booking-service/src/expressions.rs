//! Fragments of SQL that Diesel does not have for both databases.

use diesel::{
    QueryResult,
    backend::Backend,
    deserialize::{self, FromSql, FromSqlRow},
    dsl::sql,
    expression::{AppearsOnTable, Expression, SelectableExpression, SqlLiteral, ValidGrouping, is_aggregate},
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

/// A condition that is always true. As raw SQL, it keeps the statement out of the connection's cache of prepared
/// statements, which has no limit: clients choose the text of a `q` filter.
pub fn uncached() -> SqlLiteral<Bool> {
    sql("1 = 1")
}

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
    FoldedIds { column, flag: None }
}

/// The ids of a group of rows as one value, each with a truth value; read as a [`FlaggedIds`].
pub fn folded_flagged_ids<C, F>(column: C, flag: F) -> FoldedIds<C, F> {
    FoldedIds { column, flag: Some(flag) }
}

/// Identifiers in order, as [`folded_ids`] selects them.
#[derive(Debug, Clone, Default, PartialEq, Eq, FromSqlRow)]
pub struct IdList(pub Vec<DbUuid>);

/// Identifiers in order, as [`folded_flagged_ids`] selects them.
#[derive(Debug, Clone, Default, PartialEq, Eq, FromSqlRow)]
pub struct FlaggedIds(pub Vec<(DbUuid, bool)>);

/// The ids of a folded value, each with the bytes that follow it.
fn unfold<const N: usize, T: Ord>(bytes: &[u8], read: impl Fn(DbUuid, &[u8]) -> T) -> deserialize::Result<Vec<T>> {
    let (items, rest) = bytes.as_chunks::<N>();
    if !rest.is_empty() {
        return Err("a part of a folded value has another length".into());
    }
    let item = |item: &[u8; N]| {
        let (id, flag) = item.split_at(16);
        Ok(read(DbUuid(Uuid::from_slice(id)?), flag))
    };
    let mut items = items.iter().map(item).collect::<deserialize::Result<Vec<_>>>()?;
    items.sort_unstable();
    Ok(items)
}

impl<B: Backend> FromSql<Binary, B> for IdList
where
    Vec<u8>: FromSql<Binary, B>,
{
    fn from_sql(value: B::RawValue<'_>) -> deserialize::Result<Self> {
        unfold::<16, _>(&Vec::from_sql(value)?, |id, _| id).map(Self)
    }
}

impl<B: Backend> FromSql<Binary, B> for FlaggedIds
where
    Vec<u8>: FromSql<Binary, B>,
{
    fn from_sql(value: B::RawValue<'_>) -> deserialize::Result<Self> {
        unfold::<17, _>(&Vec::from_sql(value)?, |id, flag| (id, flag == [1])).map(Self)
    }
}

/// See [`folded_ids`].
#[derive(Debug, Clone, Copy, QueryId)]
pub struct FoldedIds<C, F = C> {
    column: C,
    flag: Option<F>,
}

impl<C: QueryFragment<Pg>, F: QueryFragment<Pg>> QueryFragment<Pg> for FoldedIds<C, F> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("string_agg(uuid_send(");
        self.column.walk_ast(out.reborrow())?;
        out.push_sql(")");
        if let Some(flag) = &self.flag {
            out.push_sql(" || CASE WHEN ");
            flag.walk_ast(out.reborrow())?;
            out.push_sql(" THEN '\\x01'::bytea ELSE '\\x00'::bytea END");
        }
        out.push_sql(", '')");
        Ok(())
    }
}

impl<C: QueryFragment<Sqlite>, F: QueryFragment<Sqlite>> QueryFragment<Sqlite> for FoldedIds<C, F> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
        out.push_sql("CAST(group_concat(");
        self.column.walk_ast(out.reborrow())?;
        if let Some(flag) = &self.flag {
            out.push_sql(" || CASE WHEN ");
            flag.walk_ast(out.reborrow())?;
            out.push_sql(" THEN x'01' ELSE x'00' END");
        }
        out.push_sql(", '') AS BLOB)");
        Ok(())
    }
}

impl<C, F> QueryFragment<MultiBackend> for FoldedIds<C, F>
where
    Self: QueryFragment<Pg> + QueryFragment<Sqlite>,
{
    fn walk_ast<'b>(&'b self, out: AstPass<'_, 'b, MultiBackend>) -> QueryResult<()> {
        MultiBackend::walk_variant_ast(self, out)
    }
}

impl<C, F> Expression for FoldedIds<C, F> {
    type SqlType = Binary;
}

impl<C: AppearsOnTable<T>, F, T> AppearsOnTable<T> for FoldedIds<C, F> {}

impl<C: SelectableExpression<T>, F, T> SelectableExpression<T> for FoldedIds<C, F> {}

impl<C, F, G> ValidGrouping<G> for FoldedIds<C, F> {
    type IsAggregate = is_aggregate::Yes;
}
