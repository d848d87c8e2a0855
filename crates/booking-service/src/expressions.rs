//! Fragments of SQL that Diesel does not have for both databases, and fragments that improve a query plan. Tests
//! compare the plans with and without the latter.

use diesel::{
    QueryResult,
    backend::Backend,
    deserialize::{self, FromSql, FromSqlRow},
    expression::{AppearsOnTable, Expression, SelectableExpression, ValidGrouping, is_aggregate},
    pg::Pg,
    query_builder::{AstPass, QueryFragment, QueryId},
    sql_types::{Array, Binary, Bool},
    sqlite::Sqlite,
};

use service_kit::database::{MultiBackend, types::DbUuid};
use uuid::Uuid;

/// The lengths of lists whose statements stay prepared. Preparing a statement with a longer list takes less time than
/// running it.
const LIST_LENGTHS: [usize; 3] = [1, 16, 64];

/// `column IN (ids)`, like `eq_any`, for statements that are sent often.
///
/// The list is padded with its last id to one of three lengths, because both databases plan `eq_any` anew each time,
/// which takes much of the processor time of a request. SQLite: the text depends on the length, so Diesel does not
/// cache the statement. PostgreSQL: it assumes ten elements in a bound array, so that a plan for fewer looks cheaper,
/// and it never changes to the generic plan.
pub fn id_in<C>(column: C, ids: &[DbUuid]) -> IdIn<C> {
    let length = LIST_LENGTHS.into_iter().find(|length| *length >= ids.len());
    let padding = length.map_or(0, |length| length - ids.len());
    let ids = ids.iter().chain(ids.last().into_iter().cycle().take(padding)).copied().collect();
    IdIn { column, ids, is_cacheable: length.is_some() }
}

/// See [`id_in`].
#[derive(Debug, Clone)]
pub struct IdIn<C> {
    column: C,
    ids: Vec<DbUuid>,
    is_cacheable: bool,
}

impl<C: QueryFragment<Pg>> QueryFragment<Pg> for IdIn<C> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        self.column.walk_ast(out.reborrow())?;
        if let [id] = self.ids.as_slice() {
            out.push_sql(" = ");
            return out.push_bind_param::<DbUuid, _>(id);
        }
        out.push_sql(" = ANY(");
        out.push_bind_param::<Array<DbUuid>, _>(&self.ids)?;
        out.push_sql(")");
        Ok(())
    }
}

impl<C: QueryFragment<Sqlite>> QueryFragment<Sqlite> for IdIn<C> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
        if !self.is_cacheable {
            out.unsafe_to_cache_prepared();
        }
        self.column.walk_ast(out.reborrow())?;
        let mut separator = " IN (";
        for id in &self.ids {
            out.push_sql(separator);
            out.push_bind_param::<DbUuid, _>(id)?;
            separator = ", ";
        }
        out.push_sql(if self.ids.is_empty() { " IN ()" } else { ")" });
        Ok(())
    }
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

/// Makes a type a condition on a column. Its statements are not cached by type.
macro_rules! condition_on_column {
    ($name:ident<C $(, $query:ident)?>) => {
        impl<C $(, $query)?> Expression for $name<C $(, $query)?> {
            type SqlType = Bool;
        }

        impl<C: AppearsOnTable<T> $(, $query)?, T> AppearsOnTable<T> for $name<C $(, $query)?> {}

        impl<C: SelectableExpression<T> $(, $query)?, T> SelectableExpression<T> for $name<C $(, $query)?> {}

        impl<C $(, $query)?, G> ValidGrouping<G> for $name<C $(, $query)?> {
            type IsAggregate = is_aggregate::No;
        }

        impl<C $(, $query)?> QueryId for $name<C $(, $query)?> {
            type QueryId = ();
            const HAS_STATIC_QUERY_ID: bool = false;
        }
    };
}

condition_on_column!(IdIn<C>);
condition_on_column!(InSubquery<C, Q>);
