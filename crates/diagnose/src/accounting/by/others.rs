//! NUMA nodes, and file systems in RAM.

use std::collections::BTreeMap;

use timeline::signals::{NODE_FREE, NODE_TOTAL};
use timeline::{Entity, Inventory, SharedKind, SharedMeasure};
use units::Bytes;

use super::{OwnerRow, OwnersFound, first_read};
use crate::evidence::Evidence;

/// Returns what NUMA nodes have in use; else why there are none, in a sentence.
pub(super) fn nodes(cx: &Evidence<'_>, index: usize) -> Result<OwnersFound, String> {
    let at = cx.rows_at(Entity::Node, index);
    let at = at.ok_or("this source has no memory of NUMA nodes")?;
    let timeline = cx.timeline;
    let sizes = |at: usize| -> BTreeMap<String, (Bytes, Bytes)> {
        let nodes = timeline.entities(Entity::Node);
        nodes
            .filter_map(|node| {
                let total = timeline.at_of(node, NODE_TOTAL, at)?;
                let free = timeline.at_of(node, NODE_FREE, at)?;
                Some((node.key.clone(), (total.saturating_sub(free), total)))
            })
            .collect()
    };
    let row = |(key, (used, total)): (String, (Bytes, Bytes))| OwnerRow {
        name: format!("node {key}"),
        key,
        note: format!("of {total}"),
        bytes: used,
        limit: Some(total),
        of_limit: used.ratio_of(total),
        ..OwnerRow::default()
    };
    let used = |at: usize| {
        let nodes = sizes(at).into_iter();
        nodes.map(|(key, (used, _))| (key, used)).collect()
    };
    Ok(OwnersFound {
        rows: sizes(at).into_iter().map(row).collect(),
        rest: "on no node: drift of counters",
        measured: "memory of the node that is in use; its limit is its RAM",
        at,
        first: first_read(cx, Entity::Node).map(|first| (first, used(first))),
        ..OwnersFound::default()
    })
}

/// Returns the use of file systems in RAM, which a live host knows; else why there are none, in a sentence.
pub(super) fn mounts(inventory: &Inventory) -> Result<OwnersFound, String> {
    let shared = inventory.shared.as_ref().ok_or(
        "which file systems in RAM have how much is known on a live host only; `memtide where` \
         lists the mounts of this source",
    )?;
    let mut is_estimate = false;
    let rows = shared.objects.iter().filter_map(|object| {
        let SharedKind::FileSystem { point, kind, limit, seen_by } = &object.kind else {
            return None;
        };
        is_estimate |= object.measure != SharedMeasure::InRam;
        let seen = seen_by.as_ref().map(|process| format!("{kind} of {}", process.name));
        Some(OwnerRow {
            key: point.clone(),
            name: point.clone(),
            note: seen.unwrap_or_else(|| kind.clone()),
            bytes: object.bytes,
            limit: Some(*limit).filter(|limit| *limit > Bytes::ZERO),
            of_limit: object.bytes.ratio_of(*limit),
            ..OwnerRow::default()
        })
    });
    let rows = rows.collect();
    let mut unknown = vec![
        "Page cache of files on disks is in the rest: the kernel does not count it by mount."
            .to_owned(),
    ];
    if !shared.unknown_mounts.is_empty() {
        let mounts = shared.unknown_mounts.join(", ");
        unknown.push(format!("The use of {mounts} is not known."));
    }
    Ok(OwnersFound {
        rows,
        rest: "in no file system in RAM: processes, page cache, the kernel",
        measured: "use of file systems that keep their files in RAM",
        is_estimate,
        unknown,
        ..OwnersFound::default()
    })
}
