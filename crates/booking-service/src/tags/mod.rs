//! Stub.
#![allow(missing_docs, clippy::all, clippy::pedantic, reason = "stub")]
pub mod queries {
    use crate::schema::tags;
    use diesel::prelude::*;
    use service_kit::{
        db::{
            AnyConnection,
            sql::{Moment, Uid},
        },
        error::Error,
        on_each,
    };
    pub fn name_key(name: &str) -> String {
        name.to_owned()
    }
    pub fn get_or_create(conn: &mut AnyConnection, names: &[&str], now: Moment) -> Result<Vec<Uid>, Error> {
        let mut out = vec![];
        for n in names {
            let row = (
                tags::id.eq(Uid::new()),
                tags::name.eq(*n),
                tags::name_key.eq(*n),
                tags::created_at.eq(now),
                tags::updated_at.eq(now),
            );
            on_each!(conn, c => diesel::insert_into(tags::table).values(row).on_conflict_do_nothing().execute(c)?);
            out.push(tags::table.filter(tags::name_key.eq(*n)).select(tags::id).first(conn)?);
        }
        Ok(out)
    }
}
