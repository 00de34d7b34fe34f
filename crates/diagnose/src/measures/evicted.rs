//! What a cgroup lacks to keep what it reads again and again.
//!
//! The kernel leaves a shadow entry where it evicts a page, and takes it back when the page refaults (mm/workingset.c). So
//! what was reclaimed from a cgroup and did not refault yet is what is missing: a loop over 160 MiB of files in 40 MiB
//! lacks 120 MiB. Measured, November 2026, on Linux 6.1, 6.12 and 7.2: an index of 96 MB visited at random with 40 MiB of
//! page cache lacked 55 MiB.
//!
//! Cgroup v1 counts what left a cgroup in folios of any size (`pgpgout`), which says nothing of bytes.

use timeline::signals::{
    CGROUP_PGSTEAL, CGROUP_REFAULT_ANON, CGROUP_REFAULT_FILE, CGROUP_SHADOW_NODES_DROPPED,
    CGROUP_SWAP_CURRENT,
};
use timeline::{EntitySeries, Stretch};
use units::{Bytes, Quantity as _, Ratio};

use crate::evidence::Evidence;
use crate::trigger::{gauge, total};

/// Where more of what is reclaimed never refaults, new files are read, and which of them are needed again is unknown:
/// an engineering choice.
const NEW_MAX: Ratio = Ratio::from_percent(5.0);

/// Returns the evicted memory of a cgroup of v2 that it reads again; `None` where that is not known: the kernel forgot
/// evicted pages, the cgroup reads ever new ones, or it did not read as much in this time.
pub(crate) fn read_again(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    stretch: &Stretch,
) -> Option<Bytes> {
    let has_forgotten = cx.rate_of(group, CGROUP_SHADOW_NODES_DROPPED);
    if has_forgotten.is_ok_and(|dropped| dropped.integral_in(stretch) > 0.0) {
        return None;
    }
    let refaults = total(CGROUP_REFAULT_FILE).plus([total(CGROUP_REFAULT_ANON)]).bytes();
    // What is in swap was reclaimed, too.
    let elsewhere = refaults.plus([gauge(CGROUP_SWAP_CURRENT)]);
    let lacks = total(CGROUP_PGSTEAL).bytes().minus(elsewhere).track_of(cx, group).ok()?;
    let refaulted = |part: &Stretch| {
        let rate = cx.rate_of(group, CGROUP_REFAULT_FILE).ok()?;
        Some(Bytes::from_f64(rate.to_bytes(cx.page_size().ok()?).integral_in(part)))
    };
    // In the first half it may read its files for the first time.
    let half = stretch.first.midpoint(stretch.last);
    let later = lacks.stretch(half, stretch.last)?;
    let (before, now) = (lacks.at(half)?, lacks.at(stretch.last)?);
    let is_new = now.saturating_sub(before) > refaulted(&later)?.share(NEW_MAX);
    let is_seen = refaulted(stretch)? >= now;
    (now > Bytes::ZERO && is_seen && !is_new).then_some(now)
}
