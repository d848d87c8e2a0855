//! Decides which rows to write. For each imported row the database has a hash of its values, so that a later import
//! recognizes whether the row has changed since, in the source or here. A row that was changed here stays as it is.

use std::collections::HashMap;

use common::problem::Problem;
use diesel::{prelude::*, upsert::excluded};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::{run::Import, schema::imported_rows, source::CHUNK};
use service_kit::{
    database::{AnyConnection, types::DbUuid},
    error::Error,
    with_connection,
};

const CHANGED_HERE: &str = "kept as they are here";
const OUTDATED: &str = "changed there since the import; --update brings them over";
const REMOVED: &str = "no longer there; --update deletes them here";

/// The values that an import writes for a row and the rows that belong to it.
pub trait Imported: Serialize {
    /// The name of the table, in the report and beside the hash.
    const KIND: &'static str;

    /// Whether these are the values of a new, empty row.
    fn is_blank(&self) -> bool {
        false
    }

    /// Its hash.
    fn hash(&self) -> Result<Vec<u8>, Error> {
        Ok(Sha256::digest(serde_json::to_vec(self).map_err(Problem::internal)?).to_vec())
    }
}

/// What to write.
#[derive(Debug)]
pub struct Changes<T> {
    /// New rows.
    pub added: Vec<(DbUuid, T)>,
    /// Rows to be made equal to the source.
    pub updated: Vec<(DbUuid, T)>,
}

impl Import {
    /// Records that the source has this row, imported or not.
    pub fn record_seen(&mut self, kind: &'static str, id: DbUuid) {
        self.report.count(kind).read += 1;
        self.seen.entry(kind).or_default().insert(id);
    }

    /// Compares rows of the source with the same rows here and with what was imported earlier, and returns what is to
    /// be written. The other rows are counted and reported. At most [`CHUNK`] rows at a time.
    pub fn merge<T: Imported>(
        &mut self,
        conn: &mut AnyConnection,
        incoming: Vec<(DbUuid, T)>,
        present: &HashMap<DbUuid, T>,
    ) -> Result<Changes<T>, Error> {
        let ids: Vec<_> = incoming.iter().map(|(id, _)| *id).collect();
        let imported = load(conn, T::KIND, &ids)?;
        let mut changes = Changes { added: Vec::new(), updated: Vec::new() };
        let mut hashes = Vec::new();
        for (id, row) in incoming {
            let new = row.hash()?;
            let here = present.get(&id).map(Imported::hash).transpose()?;
            let reason = match (imported.get(&id), here) {
                (None, here) if here.is_none() || present.get(&id).is_some_and(Imported::is_blank) => {
                    self.report.count(T::KIND).added += 1;
                    changes.added.push((id, row));
                    hashes.push((id, new));
                    continue;
                }
                (_, Some(here)) if here == new => {
                    self.report.count(T::KIND).same += 1;
                    hashes.push((id, new));
                    continue;
                }
                (Some(old), Some(here)) if here == *old => {
                    if self.update {
                        self.report.count(T::KIND).updated += 1;
                        changes.updated.push((id, row));
                        hashes.push((id, new));
                    } else {
                        self.report.count(T::KIND).kept += 1;
                        self.report.note(OUTDATED, || format!("{} {id}", T::KIND));
                    }
                    continue;
                }
                (None, _) => "is here already and differs",
                (Some(_), None) => "has been deleted here",
                (Some(old), Some(_)) if new == *old => "has been changed here",
                (Some(_), Some(_)) => "has been changed here and there",
            };
            self.report.count(T::KIND).kept += 1;
            self.report.note(CHANGED_HERE, || format!("{} {id}: {reason}", T::KIND));
        }
        store(conn, T::KIND, hashes.into_iter().filter(|(id, hash)| imported.get(id) != Some(hash)).collect())?;
        Ok(changes)
    }

    /// The rows of an earlier import that the source no longer has, to be deleted. Rows that have been changed here
    /// stay and are reported; without `--update`, all of them do.
    pub fn removed_from_source<T: Imported>(
        &mut self,
        conn: &mut AnyConnection,
        present: impl Fn(&mut AnyConnection, &[DbUuid]) -> Result<HashMap<DbUuid, T>, Error>,
    ) -> Result<Vec<DbUuid>, Error> {
        let seen = self.seen.remove(T::KIND).unwrap_or_default();
        let all = imported_rows::table.filter(imported_rows::kind.eq(T::KIND)).select(imported_rows::id);
        let all: Vec<DbUuid> = all.load(conn)?;
        let missing: Vec<_> = all.into_iter().filter(|id| !seen.contains(id)).collect();
        let mut deleted = Vec::new();
        for ids in missing.chunks(CHUNK) {
            let (imported, here) = (load(conn, T::KIND, ids)?, present(conn, ids)?);
            for id in ids {
                match here.get(id).map(Imported::hash).transpose()? {
                    None => {}
                    Some(hash) if imported.get(id) != Some(&hash) => {
                        self.report.count(T::KIND).kept += 1;
                        self.report.note(CHANGED_HERE, || {
                            format!("{} {id}: has been changed here, and is no longer there", T::KIND)
                        });
                    }
                    Some(_) if self.update => deleted.push(*id),
                    Some(_) => {
                        self.report.count(T::KIND).kept += 1;
                        self.report.note(REMOVED, || format!("{} {id}", T::KIND));
                    }
                }
            }
        }
        self.report.count(T::KIND).updated += deleted.len() as u64;
        for ids in deleted.chunks(CHUNK) {
            let rows =
                imported_rows::table.filter(imported_rows::kind.eq(T::KIND)).filter(imported_rows::id.eq_any(ids));
            diesel::delete(rows).execute(conn)?;
        }
        Ok(deleted)
    }
}

fn load(conn: &mut AnyConnection, kind: &str, ids: &[DbUuid]) -> Result<HashMap<DbUuid, Vec<u8>>, Error> {
    let rows = imported_rows::table
        .filter(imported_rows::kind.eq(kind))
        .filter(imported_rows::id.eq_any(ids))
        .select((imported_rows::id, imported_rows::hash));
    Ok(rows.load::<(DbUuid, Vec<u8>)>(conn)?.into_iter().collect())
}

fn store(conn: &mut AnyConnection, kind: &str, hashes: Vec<(DbUuid, Vec<u8>)>) -> Result<(), Error> {
    let rows: Vec<_> = hashes
        .into_iter()
        .map(|(id, hash)| (imported_rows::kind.eq(kind), imported_rows::id.eq(id), imported_rows::hash.eq(hash)))
        .collect();
    for rows in rows.chunks(CHUNK) {
        with_connection!(conn, c => diesel::insert_into(imported_rows::table)
            .values(rows)
            .on_conflict((imported_rows::kind, imported_rows::id))
            .do_update()
            .set(imported_rows::hash.eq(excluded(imported_rows::hash)))
            .execute(c))?;
    }
    Ok(())
}
