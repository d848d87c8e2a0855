//! Recomputes the stored keys of places after the function [`place_key`] has changed.

use std::collections::{BTreeMap, BTreeSet};

use diesel::prelude::*;
use service_kit::{database::AnyConnection, error::Error};

use super::{booking::lock_places, existing_conflicts::each_at, place::place_key};
use crate::schema::{events, places, rooms};

/// The most conflicts that are logged one by one.
const MOST_LOGGED: usize = 1000;

/// Stores the present key of every room and event. Bookings that conflict because two keys have become one stay as they
/// are and are logged.
pub fn recompute(conn: &mut AnyConnection) -> Result<(), Error> {
    let former_keys: BTreeSet<String> = places::table.select(places::key).load(conn)?.into_iter().collect();
    // The former keys of each key that is new to a name.
    let mut changed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut names: Vec<(String, String)> =
        rooms::table.select((rooms::place, rooms::place_key)).distinct().load(conn)?;
    names.extend(events::table.select((events::place, events::place_key)).distinct().load(conn)?);
    names.sort_unstable();
    names.dedup();
    names.retain(|(place, key)| place_key(place) != *key);
    for (place, former) in names {
        let key = place_key(&place);
        lock_places(conn, vec![key.clone()])?;
        diesel::update(rooms::table.filter(rooms::place_key.eq(&former)).filter(rooms::place.eq(&place)))
            .set(rooms::place_key.eq(&key))
            .execute(conn)?;
        diesel::update(events::table.filter(events::place_key.eq(&former)).filter(events::place.eq(&place)))
            .set(events::place_key.eq(&key))
            .execute(conn)?;
        changed.entry(key).or_default().insert(former);
    }
    delete_unused(conn)?;
    let mut found = 0;
    for (key, former) in changed {
        if former.len() > 1 || former_keys.contains(&key) {
            each_at(conn, &key, |conflict| {
                found += 1;
                if found <= MOST_LOGGED {
                    log::warn!("at {key:?}: {conflict}");
                }
            })?;
        }
    }
    if found > 0 {
        log::warn!("{found} conflicts at places that were two and are one now, left as they are");
    }
    Ok(())
}

/// Deletes the keys that no room and no event has.
fn delete_unused(conn: &mut AnyConnection) -> Result<(), Error> {
    let of_room = diesel::dsl::exists(rooms::table.filter(rooms::place_key.eq(places::key)));
    let of_event = diesel::dsl::exists(events::table.filter(events::place_key.eq(places::key)));
    diesel::delete(places::table.filter(diesel::dsl::not(of_room)).filter(diesel::dsl::not(of_event))).execute(conn)?;
    Ok(())
}
