//! A condition that PostgreSQL does not plan for.

use diesel::{
    QueryResult, RunQueryDsl,
    pg::Pg,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    sqlite::Sqlite,
};

/// Of what a query selects, the rows whose first column is true; on SQLite all, as it hands them over one at a time, so
/// whoever reads them must look as well.
///
/// For a condition that PostgreSQL takes for dearer than it is: it plans the query without it, and does not send the rest.
pub fn sifted<Q>(query: Q) -> Sifted<Q> {
    Sifted(query)
}

/// See [`sifted`].
#[derive(Debug, Clone, Copy)]
pub struct Sifted<Q>(Q);

impl<Q: Query> Query for Sifted<Q> {
    type SqlType = Q::SqlType;
}

impl<Q, C> RunQueryDsl<C> for Sifted<Q> {}

impl<Q> QueryId for Sifted<Q> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<Q: QueryFragment<Pg>> QueryFragment<Pg> for Sifted<Q> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("SELECT * FROM (");
        self.0.walk_ast(out.reborrow())?;
        // What has an OFFSET is planned by itself.
        out.push_sql(" OFFSET 0) AS found (counts) WHERE counts");
        Ok(())
    }
}

impl<Q: QueryFragment<Sqlite>> QueryFragment<Sqlite> for Sifted<Q> {
    fn walk_ast<'b>(&'b self, out: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
        self.0.walk_ast(out)
    }
}
