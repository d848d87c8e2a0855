//! Part of an ordered list, for queries.

/// Part of an ordered list: what comes after a row, by the columns that the list is ordered by, and how many rows of
/// that.
#[derive(Debug, Clone)]
pub struct Slice<P> {
    /// After which row.
    pub after: Option<P>,
    /// The `LIMIT` of the query.
    pub rows: i64,
}

impl<P> Slice<P> {
    /// The whole list.
    #[must_use]
    pub fn whole() -> Self {
        Self { after: None, rows: i64::MAX }
    }

    /// Whether this may be less than the whole list.
    #[must_use]
    pub fn is_part(&self) -> bool {
        self.after.is_some() || self.rows < i64::MAX
    }
}
