//! A part of an ordered list, for queries.

/// The most rows that are read at once of a list that may have more.
pub const CHUNK: usize = 1000;

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
    #[must_use]
    pub fn all() -> Self {
        Self { after: None, rows: i64::MAX }
    }

    /// Whether there are probably more rows behind these. The first part of a whole list has more than [`CHUNK`], and is
    /// usually all of it.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        usize::try_from(self.rows).is_ok_and(|rows| rows <= CHUNK)
    }

    /// Whether the number of rows is bounded, so that a statement can list their ids.
    #[must_use]
    pub fn is_page(&self) -> bool {
        self.rows < i64::MAX
    }
}
