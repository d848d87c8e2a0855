//! `column IN (…)` for identifiers, in words that the database has seen before.

use diesel::{
    QueryResult,
    expression::{AppearsOnTable, Expression, SelectableExpression, ValidGrouping, is_aggregate},
    pg::Pg,
    query_builder::{AstPass, QueryFragment, QueryId},
    sql_types::{Array, Bool},
    sqlite::Sqlite,
};

use super::types::DbUuid;

/// Numbers of identifiers for which there is a statement. To prepare one for more takes less time than to run it.
const SIZES: [usize; 3] = [1, 16, 64];

/// The condition that `column` is one of these: `eq_any` for statements that are sent often.
///
/// diesel has SQLite prepare that one anew for each use, as its text depends on how many there are. PostgreSQL takes an
/// array for one of ten, makes a plan anew for each that is shorter, as that looks cheaper, and takes longer for the plan
/// than for the rows. So here the last one is repeated until there are as many as in a statement that is kept. To both
/// databases a list is a set, so that this finds the same rows.
pub fn id_in<C>(column: C, ids: &[DbUuid]) -> IdIn<C> {
    let size = SIZES.into_iter().find(|size| *size >= ids.len());
    let missing = size.map_or(0, |size| size - ids.len());
    let ids = ids.iter().chain(ids.last().into_iter().cycle().take(missing)).copied().collect();
    IdIn { column, ids, is_kept: size.is_some() }
}

/// See [`id_in`].
#[derive(Debug, Clone)]
pub struct IdIn<C> {
    column: C,
    ids: Vec<DbUuid>,
    is_kept: bool,
}

impl<C> Expression for IdIn<C> {
    type SqlType = Bool;
}

impl<C, T> AppearsOnTable<T> for IdIn<C> where C: AppearsOnTable<T> {}

impl<C, T> SelectableExpression<T> for IdIn<C> where C: SelectableExpression<T> {}

impl<C, G> ValidGrouping<G> for IdIn<C> {
    type IsAggregate = is_aggregate::No;
}

impl<C> QueryId for IdIn<C> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
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
        if !self.is_kept {
            out.unsafe_to_cache_prepared();
        }
        self.column.walk_ast(out.reborrow())?;
        let mut before = " IN (";
        for id in &self.ids {
            out.push_sql(before);
            out.push_bind_param::<DbUuid, _>(id)?;
            before = ", ";
        }
        out.push_sql(if self.ids.is_empty() { " IN ()" } else { ")" });
        Ok(())
    }
}
