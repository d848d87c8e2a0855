//! Part of an ordered list, for queries.

/// Part of an ordered list: what comes after a row, by the columns that the list is ordered by, and how many rows of
/// that.
#[derive(Debug, Clone)]
pub struct PageBounds<P> {
    /// After which row.
    pub after: Option<P>,
    /// The `LIMIT` of the query.
    pub rows: i64,
}

impl<P> PageBounds<P> {
    /// The complete list.
    #[must_use]
    pub fn all() -> Self {
        Self { after: None, rows: i64::MAX }
    }

    /// Whether this is a page, of so few rows that a statement can name them all. The rest of a list is none.
    #[must_use]
    pub fn is_page(&self) -> bool {
        self.rows < i64::MAX
    }
}
