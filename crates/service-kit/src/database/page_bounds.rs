//! A part of an ordered list, for queries.

/// A part of an ordered list: the rows after a position in the columns of the order, up to a number.
#[derive(Debug, Clone)]
pub struct PageBounds<P> {
    /// The position of the last row before this part; `None` at the start of the list.
    pub after: Option<P>,
    /// The `LIMIT` of the query.
    pub rows: i64,
}

impl<P> PageBounds<P> {
    /// The complete list.
    pub fn all() -> Self {
        Self { after: None, rows: i64::MAX }
    }

    /// Whether the number of rows is bounded, so that a statement can list their ids.
    pub fn is_page(&self) -> bool {
        self.rows < i64::MAX
    }
}
