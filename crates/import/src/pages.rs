//! Reading a table page by page, and the rows of other tables that belong to a page.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::{
    columns::Columns,
    row::{Fault, SourceRow, SourceTable},
    run::Import,
    source::CHUNK,
};
use service_kit::{
    database::{AnyConnection, types::DbUuid},
    error::Error,
};

impl Import {
    /// Calls `work` with the rows of a table in the order of their ids, at most [`CHUNK`] at a time, and counts them as
    /// read.
    pub fn each_page<F>(
        &mut self,
        conn: &mut AnyConnection,
        table: &SourceTable,
        key: &str,
        mut work: F,
    ) -> Result<(), Error>
    where
        F: FnMut(&mut AnyConnection, &mut Self, Vec<(DbUuid, SourceRow)>) -> Result<(), Error>,
    {
        self.step_of_table(table)?;
        let mut after = None;
        loop {
            let rows = self.source.page(table, key, after)?;
            let (count, is_last) = (rows.len(), rows.len() < CHUNK);
            after = rows.last().map(|row| row.value(key).clone());
            let mut page = Vec::with_capacity(rows.len());
            for row in rows {
                match row.id(key) {
                    Ok(id) => {
                        self.record_seen(table.name, id);
                        page.push((id, row));
                    }
                    Err(fault) => {
                        self.report.count(table.name).read += 1;
                        self.report.left_out(table.name, &row.shown(key), &fault);
                    }
                }
            }
            if !page.is_empty() {
                work(conn, self, page)?;
            }
            self.progress(count);
            if is_last {
                return Ok(());
            }
        }
    }

    /// The rows of a table whose column `key` refers to one of these ids, without deleted ones.
    pub fn children(
        &mut self,
        table: &SourceTable,
        key: &str,
        ids: &[DbUuid],
    ) -> Result<BTreeMap<DbUuid, Vec<SourceRow>>, Error> {
        let names: Vec<_> = ids.iter().map(ToString::to_string).collect();
        let mut children = BTreeMap::<_, Vec<_>>::new();
        for row in self.source.rows_of(table, key, &names)? {
            if let (Ok(id), false) = (row.id(key), row.is_deleted()) {
                children.entry(id).or_default().push(row);
            }
        }
        Ok(children)
    }

    /// The converted [children](Self::children) of these rows, sorted. They are counted as read, and those that
    /// `convert` refuses as left out.
    pub fn converted_children<T: Ord>(
        &mut self,
        table: &SourceTable,
        key: &str,
        ids: &[DbUuid],
        mut convert: impl FnMut(&mut Columns<'_>) -> Result<T, Fault>,
    ) -> Result<HashMap<DbUuid, Vec<T>>, Error> {
        let mut children = HashMap::new();
        for (id, rows) in self.children(table, key, ids)? {
            let mut all = Vec::with_capacity(rows.len());
            for row in rows {
                self.report.count(table.name).read += 1;
                match convert(&mut self.columns(&row)) {
                    Ok(child) => all.push(child),
                    Err(fault) => self.report.left_out(table.name, &row.label(), &fault),
                }
            }
            all.sort_unstable();
            children.insert(id, all);
        }
        Ok(children)
    }

    /// The users of a link table, each once.
    pub fn people(
        &mut self,
        table: &SourceTable,
        key: &str,
        ids: &[DbUuid],
        users: &HashSet<DbUuid>,
    ) -> Result<HashMap<DbUuid, Vec<DbUuid>>, Error> {
        let mut people = self.converted_children(table, key, ids, |row| row.member(users))?;
        people.values_mut().for_each(Vec::dedup);
        Ok(people)
    }
}
