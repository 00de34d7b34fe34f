//! Owners of anonymous or shared memory at one moment: processes by service, largest first.

use std::collections::BTreeMap;

use timeline::{
    Entity, EntitySeries,
    signals::{
        PROC_PSS_ANON, PROC_PSS_SHMEM, PROC_RSS, PROC_RSS_ANON, PROC_RSS_SHMEM, PROC_THREADS,
    },
};
use units::Bytes;

use crate::evidence::Evidence;

/// A service, or the processes of one name where services are not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) name: String,
    pub(crate) processes: u64,
    pub(crate) held: Bytes,
}

/// Owners, and how their memory was measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owners {
    pub(crate) owners: Vec<Owner>,
    pub(crate) measured: &'static str,
}

/// How exactly a process's share is known, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum OwnerMeasure {
    Pss,
    RssPart,
    Rss,
}

/// Returns the owners of anonymous memory; `None` if no process is known.
pub(crate) fn of_anonymous(cx: &Evidence<'_>, index: usize) -> Option<Owners> {
    let index = cx.rows_at(Entity::Process, index)?;
    let measured = |process: &EntitySeries| {
        let timeline = cx.timeline;
        // PSS is read more rarely than the rest. A process may have shrunk since, so its RSS is an upper bound.
        let pss = || timeline.latest_of(process, PROC_PSS_ANON, index);
        let part = || timeline.at_of(process, PROC_RSS_ANON, index);
        let rss = || {
            let pages = timeline.at_of(process, PROC_RSS, index)?;
            Some(pages.to_bytes(cx.facts.page_size?))
        };
        let part = part();
        pss()
            .map(|pss| (OwnerMeasure::Pss, part.map_or(pss, |part| pss.min(part))))
            .or_else(|| Some((OwnerMeasure::RssPart, part?)))
            .or_else(|| Some((OwnerMeasure::Rss, rss()?)))
    };
    let (owners, best, worst) = grouped(cx, index, measured, |sum, one| sum + one)?;
    Some(Owners {
        owners,
        measured: match (best, worst) {
            (OwnerMeasure::Pss, OwnerMeasure::Pss) => "by PSS",
            (OwnerMeasure::Pss, _) => "by PSS where it could be read, else by RSS",
            (OwnerMeasure::RssPart, _) => "by RssAnon: what is shared after a fork counts for each",
            (OwnerMeasure::Rss, _) => "by RSS: files and shared pages count for each",
        },
    })
}

/// Returns the owners of shared memory: the services that map it. Without PSS a shared segment counts in full for each
/// process that maps it, so the largest mapping stands for its service.
pub(super) fn of_shared(cx: &Evidence<'_>, index: usize) -> Option<Owners> {
    let index = cx.rows_at(Entity::Process, index)?;
    let processes = || living(cx, index);
    let by_pss = processes().any(|p| cx.timeline.latest_of(p, PROC_PSS_SHMEM, index).is_some());
    let (owners, _, _) = if by_pss {
        let pss = |p: &EntitySeries| {
            let held = cx.timeline.latest_of(p, PROC_PSS_SHMEM, index)?;
            Some((OwnerMeasure::Pss, held))
        };
        grouped(cx, index, pss, |sum, one| sum + one)?
    } else {
        let rss = |p: &EntitySeries| {
            let held = cx.timeline.at_of(p, PROC_RSS_SHMEM, index)?;
            Some((OwnerMeasure::RssPart, held))
        };
        grouped(cx, index, rss, Ord::max)?
    };
    Some(Owners {
        owners,
        measured: if by_pss {
            "mapped, by PSS"
        } else {
            "mapped, the largest process of each"
        },
    })
}

/// Returns the processes that existed at that sample.
fn living<'a>(cx: &Evidence<'a>, index: usize) -> impl Iterator<Item = &'a EntitySeries> {
    let timeline = cx.timeline;
    timeline.entities(Entity::Process).filter(move |process| {
        timeline.at_of(process, PROC_RSS, index).is_some()
            || timeline.at_of(process, PROC_RSS_ANON, index).is_some()
            || timeline.at_of(process, PROC_THREADS, index).is_some()
    })
}

type Grouped = (Vec<Owner>, OwnerMeasure, OwnerMeasure);

fn grouped(
    cx: &Evidence<'_>,
    index: usize,
    measure: impl Fn(&EntitySeries) -> Option<(OwnerMeasure, Bytes)>,
    join: impl Fn(Bytes, Bytes) -> Bytes,
) -> Option<Grouped> {
    let mut groups: BTreeMap<&str, (u64, Bytes)> = BTreeMap::new();
    let mut range: Option<(OwnerMeasure, OwnerMeasure)> = None;
    for process in living(cx, index) {
        // Kernel threads have no such memory, and must not lower the quality of the measurement.
        let Some((how, held)) = measure(process).filter(|(_, held)| *held > Bytes::ZERO) else {
            continue;
        };
        range = Some(range.map_or((how, how), |(best, worst)| (best.min(how), worst.max(how))));
        let name = if process.group.is_empty() {
            &process.label
        } else {
            &process.group
        };
        let group = groups.entry(name).or_default();
        group.0 += 1;
        group.1 = join(group.1, held);
    }
    let (best, worst) = range?;
    let mut owners: Vec<Owner> = groups
        .into_iter()
        .map(|(name, (processes, held))| Owner {
            name: name.to_owned(),
            processes,
            held,
        })
        .collect();
    owners.sort_by(|a, b| b.held.cmp(&a.held).then_with(|| a.name.cmp(&b.name)));
    Some((owners, best, worst))
}
