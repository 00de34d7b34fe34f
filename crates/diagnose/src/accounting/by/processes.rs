//! Processes, and users by their processes: PSS, or RSS where PSS was not read of most.

use std::collections::BTreeMap;

use timeline::{Entity, EntitySeries, Inventory};
use units::{Bytes, Count};

use super::super::owners::{Owners, of_processes};
use super::{OwnerRow, OwnersFound, first_read};
use crate::evidence::Evidence;

const REST: &str = "in no process: page cache, shared memory that none maps, the kernel";

/// Returns all processes; else why there are none, in a sentence.
pub(super) fn each(cx: &Evidence<'_>, index: usize) -> Result<OwnersFound, String> {
    let mut found = found(cx, index, key)?;
    for row in &mut found.rows {
        let Some(process) = cx.timeline.entity(Entity::Process, &row.key) else {
            continue;
        };
        row.name = format!("{} ({})", process.label, process.pid());
        if process.group != process.label {
            row.note = cx.facts.names.service(&process.group);
        }
    }
    Ok(found)
}

#[allow(clippy::unnecessary_wraps)] // it is a choice of names, and others have none
fn key(process: &EntitySeries) -> Option<&str> {
    Some(&process.key)
}

/// Returns the users of all processes, which a live host knows; else why there are none, in a sentence.
pub(super) fn of_users(
    cx: &Evidence<'_>,
    index: usize,
    inventory: &Inventory,
) -> Result<OwnersFound, String> {
    let users: BTreeMap<&str, String> = inventory
        .process_users
        .iter()
        .map(|(process, uid)| (&**process, uid.to_string()))
        .collect();
    if users.is_empty() {
        return Err("this source does not have the users of processes".to_owned());
    }
    let mut found = found(cx, index, |process| users.get(&*process.key).map(String::as_str))?;
    for row in &mut found.rows {
        if let Ok(uid) = row.key.parse() {
            row.name = cx.facts.names.user(uid);
        }
    }
    Ok(found)
}

fn found<'a>(
    cx: &Evidence<'a>,
    index: usize,
    name: impl Fn(&'a EntitySeries) -> Option<&'a str>,
) -> Result<OwnersFound, String> {
    let at = cx.rows_at(Entity::Process, index);
    let owners = at.and_then(|at| Some((at, of_processes(cx, at, &name)?)));
    let (at, owners) = owners.ok_or("this source has no memory of processes")?;
    // Growth compares one measure with itself.
    let first = first_read(cx, Entity::Process).and_then(|first| {
        let before = of_processes(cx, first, &name)?;
        (before.measured == owners.measured).then(|| (first, sizes(&before)))
    });
    let unread = &owners.unread;
    let unknown = unread.largest.as_ref().map(|largest| {
        let count = Count::new(unread.processes).named("process", "processes");
        let bytes = largest.bytes;
        format!(
            "PSS of {count} was not read, the largest with {bytes} of RSS: they are in the rest \
             (`--deep` reads all)."
        )
    });
    Ok(OwnersFound {
        rows: owners.owners.iter().map(row).collect(),
        others: None,
        rest: REST,
        measured: owners.measured,
        is_estimate: owners.is_estimate,
        at,
        first,
        unknown: unknown.into_iter().collect(),
    })
}

fn sizes(owners: &Owners) -> BTreeMap<String, Bytes> {
    let each = owners.owners.iter();
    each.map(|owner| (owner.name.clone(), owner.bytes)).collect()
}

fn row(owner: &super::super::owners::Owner) -> OwnerRow {
    OwnerRow {
        key: owner.name.clone(),
        name: owner.name.clone(),
        note: match owner.processes {
            1 => String::new(),
            n => format!("{} processes", Count::new(n)),
        },
        bytes: owner.bytes,
        ..OwnerRow::default()
    }
}
