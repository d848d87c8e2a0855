//! Pages of a list (contract, "Lists"): `limit`, `cursor`, and `Link` to the next page (RFC 8288).
//!
//! A cursor holds the values of all columns that the list is ordered by, for the row before the next page. It stays
//! valid when that row is deleted, and rows that are added or deleted elsewhere neither appear twice nor hide others.

use std::{
    future::{Ready, ready},
    mem,
};

use actix_web::{FromRequest, HttpRequest, dev::Payload};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use common::{
    input::Limit,
    problem::{Problem, Rule, Violations},
};
use deserr::Deserr;
use serde::{Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};
use url::form_urlencoded;

use super::{list_page::ListPage, query};
use crate::{
    database::{PageBounds, types::DbUuid},
    error::{Error, Failure},
};

/// The bytes of a cursor's checksum, which covers the list that the cursor belongs to.
const CHECK: usize = 4;

/// The most rows of a list without `limit` that are answered at once. A longer list is streamed.
pub const CHUNK: usize = 1000;

/// The bytes for which memory is reserved for each row.
const ROW_BYTES: usize = 512;

/// The bytes of a chunk of a streamed list, about. A connection has one in memory.
const CHUNK_BYTES: usize = 256 * 1024;

/// The page of a list that a request asks for; without `limit`, the list from `cursor` on.
#[derive(Debug, Clone)]
pub struct Page(ListPart);

/// The part of a list that an operation reads at once.
#[derive(Debug, Clone)]
pub struct ListPart {
    part: Part,
    cursor: Option<String>,
    path: String,
    query: String,
    as_lines: bool,
}

#[derive(Debug, Clone)]
enum Part {
    /// The complete list.
    Whole,
    /// A page, as requested.
    Limit(usize),
    /// At most so many rows, from the cursor on.
    Chunk(usize),
    /// The ids of all rows behind the cursor; no rows from an operation that reads on from any row.
    Ids,
    /// These rows.
    These(Vec<DbUuid>),
}

/// What an operation on a list loads from the database.
pub enum Load<P> {
    /// The rows within these bounds: a page, of a list that may have many more.
    Page(PageBounds<P>),
    /// The rows within these bounds: the first part of a whole list, which is usually all of it.
    First(PageBounds<P>),
    /// The ids of the rows within these bounds, in order; for [`ListPage::ids`].
    Ids(PageBounds<P>),
    /// The rows with these ids that still belong to the list.
    These(Vec<DbUuid>),
}

/// The parameters of a page.
const PARAMETERS: [&str; 2] = ["limit", "cursor"];

#[derive(Deserr)]
#[deserr(error = Violations)]
struct Parameters {
    #[deserr(default)]
    limit: Limit,
    #[deserr(default)]
    cursor: Option<String>,
}

impl FromRequest for Page {
    type Error = Failure;
    type Future = Ready<Result<Self, Failure>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Self::from_query(req.path(), req.query_string()).map_err(Failure::from))
    }
}

impl Page {
    fn from_query(path: &str, query: &str) -> Result<Self, Error> {
        let Parameters { limit, cursor } = query::parse(query)?;
        let part = limit.max_rows().map_or(Part::Whole, Part::Limit);
        Ok(Self(ListPart { part, cursor, path: path.to_owned(), query: query.to_owned(), as_lines: false }))
    }

    /// The same rows as lines (`application/x-ndjson`) instead of an array.
    pub fn as_lines(self, as_lines: bool) -> Self {
        Self(ListPart { as_lines, ..self.0 })
    }

    /// A page of at most [`CHUNK`] rows instead of the whole list, if the request has no limit.
    pub fn always_limited(self) -> Self {
        if self.0.has_limit() { self } else { Self(ListPart { part: Part::Limit(CHUNK), ..self.0 }) }
    }

    /// All of it, for a list that is in memory.
    pub fn whole(self) -> ListPart {
        self.0
    }

    /// What is read first: the page itself, or of a list without a limit what is answered at once.
    pub fn first(self) -> ListPart {
        let Self(whole) = self;
        if whole.has_limit() { whole } else { ListPart { part: Part::Chunk(CHUNK), ..whole } }
    }
}

impl ListPart {
    /// The complete list.
    pub fn all() -> Self {
        Self { part: Part::Whole, cursor: None, path: String::new(), query: String::new(), as_lines: false }
    }

    /// Whether the request has a limit.
    pub fn has_limit(&self) -> bool {
        matches!(self.part, Part::Limit(_))
    }

    /// The ids of all rows behind a cursor.
    pub fn ids_behind(&self, cursor: &str) -> Self {
        Self { part: Part::Ids, cursor: Some(cursor.to_owned()), ..self.clone() }
    }

    /// At most so many rows behind a cursor.
    fn chunk(&self, rows: usize, cursor: String) -> Self {
        Self { part: Part::Chunk(rows), cursor: Some(cursor), ..self.clone() }
    }

    /// The rows with these ids.
    pub fn these(&self, ids: Vec<DbUuid>) -> Self {
        Self { part: Part::These(ids), cursor: None, ..self.clone() }
    }

    /// The parameters that say which list it is, in order.
    fn parameters(&self) -> Vec<(String, String)> {
        let all = form_urlencoded::parse(self.query.as_bytes()).into_owned();
        let mut all: Vec<_> = all.filter(|(name, _)| !PARAMETERS.contains(&name.as_str())).collect();
        all.sort();
        all
    }

    /// The position after which the page begins: the values of the columns that the list is ordered by.
    fn after<P: Serialize + DeserializeOwned>(&self) -> Result<Option<P>, Error> {
        let Some(cursor) = &self.cursor else { return Ok(None) };
        let position = BASE64_URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|bytes| {
            let (check, position) = bytes.split_at_checked(CHECK)?;
            if check != self.check(position) {
                return None;
            }
            // A forged cursor may hold U+0000, which PostgreSQL does not accept in a text.
            postcard::from_bytes(position)
                .ok()
                .filter(|position| serde_json::to_value(position).is_ok_and(|value| !has_nul(&value)))
        });
        let bad = || {
            Problem::parameter(
                "cursor",
                Rule::NotACursor,
                "must be one that a page of this list, with the same parameters, linked to",
            )
        };
        position.map(Some).ok_or_else(|| bad().into())
    }

    /// The bounds of the query: one row more than is shown, which tells whether there is a next page. For a list whose
    /// order is that of an index, which can be read on from any row. Others use [`load`](Self::load).
    pub fn bounds<P: Serialize + DeserializeOwned>(&self) -> Result<PageBounds<P>, Error> {
        let rows = self.most().map_or(i64::MAX, |most| i64::try_from(most).unwrap_or(i64::MAX).saturating_add(1));
        Ok(PageBounds { after: self.after()?, rows })
    }

    /// What to load. The ids of a long list are read once, because its search and its order would be done again for each
    /// chunk.
    pub fn load<P: Serialize + DeserializeOwned>(&self) -> Result<Load<P>, Error> {
        Ok(match &self.part {
            Part::These(ids) => Load::These(ids.clone()),
            Part::Ids => Load::Ids(PageBounds { rows: i64::MAX, ..self.bounds()? }),
            Part::Limit(_) => Load::Page(self.bounds()?),
            Part::Whole | Part::Chunk(_) => Load::First(self.bounds()?),
        })
    }

    /// The most rows that are shown at once.
    fn most(&self) -> Option<usize> {
        match self.part {
            Part::Limit(rows) | Part::Chunk(rows) => Some(rows),
            Part::Ids => Some(0),
            Part::Whole | Part::These(_) => None,
        }
    }

    /// The rows of this page as JSON. `rows` has one row more than is shown if there is a next page.
    pub fn rows<T, P: Serialize, S: Serialize>(
        &self,
        mut rows: Vec<T>,
        position: impl Fn(&T) -> P,
        mut show: impl FnMut(T) -> Result<S, Error>,
    ) -> Result<ListPage, Error> {
        let most = self.most().unwrap_or(usize::MAX);
        let has_more = rows.len() > most;
        rows.truncate(most);
        let next = rows.last().filter(|_| has_more).map(|last| self.cursor(&position(last))).transpose()?;
        let count = rows.len();
        let mut json = Vec::with_capacity(count.min(CHUNK) * ROW_BYTES);
        for row in rows {
            json.push(if self.as_lines { b'\n' } else { b',' });
            serde_json::to_writer(&mut json, &show(row)?).map_err(Problem::internal)?;
        }
        let link = match (&next, &self.part) {
            (Some(cursor), Part::Limit(limit)) => Some(self.link(*limit, cursor)),
            _ => None,
        };
        Ok(ListPage { json, count, link, next, ids: None, as_lines: self.as_lines })
    }

    /// A page whose rows were looked for up to a position: the next page begins behind it.
    pub fn up_to<P: Serialize>(&self, rows: ListPage, end: Option<P>) -> Result<ListPage, Error> {
        let (None, Some(end), Part::Limit(limit)) = (&rows.next, end, &self.part) else { return Ok(rows) };
        let link = self.link(*limit, &self.cursor(&end)?);
        Ok(ListPage { link: Some(link), ..rows })
    }

    /// The page of a list that is in memory and in order; without a limit, all of it.
    pub fn rows_of_all<T, P: Serialize + DeserializeOwned + Ord, S: Serialize>(
        &self,
        mut rows: Vec<T>,
        position: impl Fn(&T) -> P,
        show: impl FnMut(T) -> Result<S, Error>,
    ) -> Result<ListPage, Error> {
        if let Some(after) = self.after::<P>()? {
            rows.retain(|row| position(row) > after);
        }
        let page = if self.has_limit() { self.clone() } else { Self { part: Part::Whole, ..self.clone() } };
        page.rows(rows, position, show)
    }

    /// Where the next page begins, after the row at this position.
    fn cursor(&self, position: &impl Serialize) -> Result<String, Error> {
        let position = postcard::to_stdvec(position).map_err(Problem::internal)?;
        Ok(BASE64_URL_SAFE_NO_PAD.encode([self.check(&position).as_slice(), &position].concat()))
    }

    /// The address of the next page, relative to the origin, which only a proxy may know.
    fn link(&self, limit: usize, cursor: &str) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(self.parameters());
        query.append_pair("limit", &limit.to_string()).append_pair("cursor", cursor);
        format!("{}?{}", self.path, query.finish())
    }

    fn check(&self, position: &[u8]) -> [u8; CHECK] {
        let mut digest = Sha256::new();
        let parameters = self.parameters();
        let pairs = parameters.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
        for part in std::iter::once(self.path.as_str()).chain(pairs) {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        digest.update(position);
        let digest = digest.finalize();
        std::array::from_fn(|n| digest[n])
    }
}

/// The rest of a streamed list.
pub struct Remaining {
    part: ListPart,
    rows: RemainingRows,
    /// The number of rows of the next chunk.
    size: usize,
}

enum RemainingRows {
    /// In the order of the list.
    Ids(std::vec::IntoIter<DbUuid>),
    /// Those behind a cursor.
    After(String),
}

impl Remaining {
    /// What follows the rows of `shown`: those with `ids`, or those behind the cursor.
    pub fn new(part: &ListPart, shown: &ListPage, cursor: String, ids: Option<Vec<DbUuid>>) -> Self {
        let rows = match ids {
            Some(ids) => RemainingRows::Ids(ids.into_iter()),
            None => RemainingRows::After(cursor),
        };
        Self { part: part.clone(), rows, size: 0 }.behind(shown)
    }

    /// The next chunk has as many rows as probably have [`CHUNK_BYTES`].
    fn behind(self, shown: &ListPage) -> Self {
        let size = if shown.count == 0 { CHUNK } else { shown.count * CHUNK_BYTES / shown.json.len().max(1) };
        Self { size: size.clamp(1, CHUNK), ..self }
    }

    /// The next chunk.
    pub fn next_part(&mut self) -> ListPart {
        match &mut self.rows {
            RemainingRows::Ids(ids) => self.part.these(ids.by_ref().take(self.size).collect()),
            RemainingRows::After(cursor) => self.part.chunk(self.size, mem::take(cursor)),
        }
    }

    /// What follows the chunk `shown`. `None` at the end of the list.
    pub fn after(self, shown: &mut ListPage) -> Option<Self> {
        let rows = match self.rows {
            RemainingRows::Ids(ids) if ids.len() == 0 => return None,
            RemainingRows::Ids(ids) => RemainingRows::Ids(ids),
            RemainingRows::After(_) => RemainingRows::After(shown.next.take()?),
        };
        Some(Self { rows, ..self }.behind(shown))
    }
}

/// Whether U+0000 is in a text of a position.
fn has_nul(position: &serde_json::Value) -> bool {
    match position {
        serde_json::Value::String(text) => text.contains('\0'),
        serde_json::Value::Array(parts) => parts.iter().any(has_nul),
        _ => false,
    }
}

/// Only the rows of a query behind a position, in the order of these columns: `after!(query, a > x, b > y)`, where `<`
/// stands for a descending first column. The first condition alone already lets an index find where to begin.
#[macro_export]
macro_rules! after {
    ($query:expr, $a:expr; > $x:expr, $b:expr; > $y:expr) => {
        $query.filter($a.ge($x)).filter($a.gt($x).or($b.gt($y)))
    };
    ($query:expr, $a:expr; < $x:expr, $b:expr; > $y:expr) => {
        $query.filter($a.le($x)).filter($a.lt($x).or($b.gt($y)))
    };
    ($query:expr, $a:expr; > $x:expr, $b:expr; > $y:expr, $c:expr; > $z:expr) => {
        $query.filter($a.ge($x)).filter($a.gt($x).or($b.gt($y)).or($b.eq($y).and($c.gt($z))))
    };
}

#[cfg(test)]
mod tests {
    use actix_web::http::header;

    use super::*;
    use crate::http::Reply;

    fn page(query: &str) -> ListPart {
        Page::from_query("/api/things", query).unwrap().0
    }

    fn next(reply: &Reply) -> Option<String> {
        let link = reply.header(&header::LINK)?.to_owned();
        let target = link.strip_prefix("</api/things?").unwrap().strip_suffix(">; rel=\"next\"").unwrap();
        Some(target.to_owned())
    }

    fn shown(page: &ListPart, rows: Vec<i64>) -> (Vec<i64>, Option<String>) {
        let reply = page.rows_of_all(rows, |row| (*row, "é".to_owned()), Ok).unwrap().into_reply();
        (serde_json::from_slice(reply.body()).unwrap(), next(&reply))
    }

    #[test]
    fn pages_lead_through_the_whole_list() {
        let (mut query, mut all) = ("q=%26&limit=2&a".to_owned(), Vec::new());
        loop {
            let (rows, next) = shown(&page(&query), (-2..5).collect());
            all.extend(rows);
            match next {
                Some(next) => query = next,
                None => break,
            }
            assert!(query.starts_with("a=&q=%26&limit=2&cursor="), "{query}");
        }
        assert_eq!(all, (-2..5).collect::<Vec<_>>());
        assert_eq!(shown(&page("limit=7"), (0..7).collect()).1, None);
        assert_eq!(shown(&page(""), (0..7).collect()).0.len(), 7);
        let rows = |query| page(query).bounds::<(i64, String)>().unwrap().rows;
        assert_eq!((rows(""), rows("limit=1000")), (i64::MAX, 1001));
    }

    #[test]
    fn a_cursor_belongs_to_its_list() {
        let (_, next) = shown(&page("limit=1&q=x"), vec![1, 2]);
        let next = next.unwrap();
        assert!(page(&next).after::<(i64, String)>().unwrap().is_some());
        let other = next.replace("q=x", "q=y");
        let damaged = next.replace("cursor=", "cursor=A");
        for bad in [other.as_str(), &damaged, "cursor=%00", "cursor=AAAAAA"] {
            assert!(page(bad).after::<(i64, String)>().is_err(), "{bad}");
        }
        // An empty parameter counts as absent.
        assert!(page("cursor=&limit=").after::<(i64, String)>().unwrap().is_none());
        for bad in ["limit=0", "limit=1001", "limit=x", "limit=1&limit=2"] {
            assert!(Page::from_query("/", bad).is_err(), "{bad}");
        }
    }
}
