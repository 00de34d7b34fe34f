//! Processes, and users by their processes: PSS, or RSS where PSS was not read of most.

use std::collections::BTreeMap;

use timeline::signals::{PROC_PSS_SHMEM, PROC_RSS_SHMEM};
use timeline::{Entity, EntitySeries, Inventory, SharedKind, SharedMeasure, UserProcess};
use units::{Bytes, Count};

use super::super::owners::{Owners, of_processes};
use super::{OwnerRow, OwnersFound, first_read};
use crate::evidence::Evidence;

const REST: &str = "in no process: page cache, shared memory without an owner, the kernel";

/// Returns all processes; else why there are none, in a sentence.
pub(super) fn each(
    cx: &Evidence<'_>,
    index: usize,
    inventory: &Inventory,
) -> Result<OwnersFound, String> {
    let mut found = found(cx, index, key)?;
    let unmapped = add_unmapped(&mut found, cx, inventory, key);
    for row in &mut found.rows {
        let Some(process) = cx.timeline.entity(Entity::Process, &row.key) else {
            continue;
        };
        row.name = format!("{} ({})", process.label, process.pid());
        if process.group != process.label {
            row.note = cx.facts.names.service(&process.group);
        }
        if let Some(bytes) = unmapped.get(&row.key) {
            let comma = if row.note.is_empty() { "" } else { ", " };
            row.note += &format!("{comma}with {bytes} of shared memory that none maps now");
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
    let name = |process: &EntitySeries| users.get(&*process.key).map(String::as_str);
    let mut found = found(cx, index, name)?;
    add_unmapped(&mut found, cx, inventory, name);
    for row in &mut found.rows {
        if let Ok(uid) = row.key.parse() {
            row.name = cx.facts.names.user(uid);
        }
    }
    Ok(found)
}

/// Adds shared memory that its owner has in RAM, but that no process maps now, to its owner: PSS counts mapped pages alone,
/// and a database that many processes attach to keeps its pages when they end. Returns what was added, by key.
fn add_unmapped<'a>(
    found: &mut OwnersFound,
    cx: &Evidence<'a>,
    inventory: &Inventory,
    name: impl Fn(&'a EntitySeries) -> Option<&'a str>,
) -> BTreeMap<String, Bytes> {
    /// Less is the difference of two readings.
    const UNMAPPED_MIN: Bytes = Bytes::from_mib(4);
    let mut of_programs: BTreeMap<&str, (Bytes, &UserProcess)> = BTreeMap::new();
    for object in inventory.shared.iter().flat_map(|shared| &shared.objects) {
        let owner = match &object.kind {
            SharedKind::FileSystem { .. } => None,
            SharedKind::Memfd(_) | SharedKind::Mapping => object.first_user.as_ref(),
            SharedKind::SystemV(segment) => segment.creator.as_ref().or(object.first_user.as_ref()),
        };
        if let Some(owner) = owner.filter(|_| object.measure != SharedMeasure::Mapped) {
            let entry = of_programs.entry(&owner.name).or_insert((Bytes::ZERO, owner));
            entry.0 += object.bytes;
        }
    }
    let mut added = BTreeMap::new();
    for (program, (bytes, owner)) in of_programs {
        let processes = || cx.timeline.entities(Entity::Process).filter(|one| one.label == program);
        // What is counted already: of a table by RSS, for each process that maps it.
        let measure = if found.is_estimate { PROC_RSS_SHMEM } else { PROC_PSS_SHMEM };
        let mapped = |one| cx.timeline.at_of(one, measure, found.at);
        let known: Vec<Bytes> = processes().filter_map(mapped).collect();
        let unmapped = bytes.saturating_sub(known.iter().copied().sum());
        let pid = owner.pid.to_string();
        let key = processes().find(|one| one.pid() == pid).and_then(&name);
        let Some(key) = key.filter(|_| !known.is_empty() && unmapped >= UNMAPPED_MIN) else {
            continue;
        };
        let Some(row) = found.rows.iter_mut().find(|row| row.key == key) else {
            continue;
        };
        row.bytes += unmapped;
        // What it was before is not known, so it counts as no growth.
        if let Some(before) = found.first.as_mut().and_then(|(_, sizes)| sizes.get_mut(key)) {
            *before += unmapped;
        }
        *added.entry(key.to_owned()).or_default() += unmapped;
    }
    added
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
