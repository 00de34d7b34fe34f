//! Owners of anonymous or shared memory at one moment: processes by service, largest first.
//!
//! All of them are measured alike, because PSS and RSS do not add up: by PSS if it was read of the processes that have
//! most of the memory; the others are then part of the remainder. Else by RSS, which counts shared pages for each
//! process that maps them.

use std::collections::BTreeMap;

use timeline::{
    Entity, EntitySeries,
    signals::{
        PROC_PSS, PROC_PSS_ANON, PROC_PSS_SHMEM, PROC_RSS, PROC_RSS_ANON, PROC_RSS_SHMEM,
        PROC_THREADS,
    },
};
use units::{Bytes, Ratio};

use crate::evidence::Evidence;

/// A service, or the processes of one name where services are not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) name: String,
    pub(crate) processes: u64,
    pub(crate) bytes: Bytes,
}

/// Owners, and how their memory was measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owners {
    pub(crate) owners: Vec<Owner>,
    pub(crate) measured: &'static str,
    /// Whether pages may be counted more than once, or not at all.
    pub(crate) is_estimate: bool,
    pub(crate) unread: UnreadOwners,
}

/// Processes that have such memory, but were not measured like the others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct UnreadOwners {
    pub(crate) processes: u64,
    /// The largest of them, with its RSS.
    pub(crate) largest: Option<Owner>,
}

/// What is known of one process's share, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum OwnerMeasure {
    Pss,
    RssPart,
    Rss,
}

/// The sizes of one process, by measure.
#[derive(Debug, Clone, Copy, Default)]
struct OwnerSizes([Option<Bytes>; 3]);

impl OwnerSizes {
    fn get(self, measure: OwnerMeasure) -> Option<Bytes> {
        self.0[measure as usize]
    }

    /// Returns the most that the process can have; zero if nothing was read, as of a kernel thread.
    fn at_most(self) -> Bytes {
        let [pss, part, rss] = self.0;
        part.or(rss).or(pss).unwrap_or_default()
    }
}

/// PSS measures the owners of anonymous memory if it was read of processes with this share of it: what is left is then
/// small enough to stay together. An engineering choice.
const PSS_OF_ANON_MIN: Ratio = Ratio::from_percent(90.0);
/// The same of shared memory, where sums of RSS mean less: its pages have several users. An engineering choice.
const PSS_OF_SHARED_MIN: Ratio = Ratio::from_percent(50.0);

/// Returns the owners of anonymous memory; `None` if no process is known.
pub(crate) fn of_anonymous(cx: &Evidence<'_>, index: usize) -> Option<Owners> {
    let index = cx.rows_at(Entity::Process, index)?;
    let sizes = |process: &EntitySeries| {
        let timeline = cx.timeline;
        let part = timeline.at_of(process, PROC_RSS_ANON, index);
        // PSS is read more rarely than the rest. A process may have shrunk since, so its RSS is an upper bound.
        let pss = timeline
            .latest_of(process, PROC_PSS_ANON, index)
            .map(|pss| part.map_or(pss, |part| pss.min(part)));
        let rss = || {
            let pages = timeline.at_of(process, PROC_RSS, index)?;
            Some(pages.to_bytes(cx.facts.page_size?))
        };
        OwnerSizes([pss, part, rss()])
    };
    let (measure, owners, unread) =
        grouped(&by_service(cx, index), sizes, PSS_OF_ANON_MIN, |sum, one| sum + one)?;
    Some(Owners {
        owners,
        measured: match measure {
            OwnerMeasure::Pss => "by PSS",
            OwnerMeasure::RssPart => "by RssAnon: what is shared after a fork counts for each",
            OwnerMeasure::Rss => "by RSS: files and shared pages count for each",
        },
        is_estimate: measure != OwnerMeasure::Pss,
        unread,
    })
}

/// Returns the owners of shared memory: the services that map it. Without PSS a shared segment counts in full for each
/// process that maps it, so the largest mapping stands for its service.
pub(super) fn of_shared(cx: &Evidence<'_>, index: usize) -> Option<Owners> {
    let index = cx.rows_at(Entity::Process, index)?;
    let sizes = |process: &EntitySeries| {
        let pss = cx.timeline.latest_of(process, PROC_PSS_SHMEM, index);
        let part = cx.timeline.at_of(process, PROC_RSS_SHMEM, index);
        OwnerSizes([pss, part, None])
    };
    let processes = by_service(cx, index);
    let by_pss = grouped(&processes, sizes, PSS_OF_SHARED_MIN, |sum, one| sum + one)?;
    let (measure, owners, unread) = match by_pss.0 {
        OwnerMeasure::Pss => by_pss,
        _ => grouped(&processes, sizes, PSS_OF_SHARED_MIN, Ord::max)?,
    };
    let is_by_pss = measure == OwnerMeasure::Pss;
    Some(Owners {
        owners,
        measured: if is_by_pss { "mapped, by PSS" } else { "mapped, the largest process of each" },
        is_estimate: !is_by_pss,
        unread,
    })
}

/// Returns the owners of all memory of processes, grouped by `name`, files and shared memory included; `None` if no
/// process is known. Processes without a name are nobody's.
pub(super) fn of_processes<'a>(
    cx: &Evidence<'a>,
    index: usize,
    name: impl Fn(&'a EntitySeries) -> Option<&'a str>,
) -> Option<Owners> {
    let sizes = |process: &EntitySeries| {
        let pages = cx.timeline.at_of(process, PROC_RSS, index);
        let rss = pages.and_then(|pages| Some(pages.to_bytes(cx.facts.page_size?)));
        let pss = cx
            .timeline
            .latest_of(process, PROC_PSS, index)
            .map(|pss| rss.map_or(pss, |rss| pss.min(rss)));
        OwnerSizes([pss, None, rss])
    };
    let named = |process| name(process).map(|name| (process, name));
    let processes: Vec<_> = living(cx, index).filter_map(named).collect();
    let (measure, owners, unread) =
        grouped(&processes, sizes, PSS_OF_ANON_MIN, |sum, one| sum + one)?;
    Some(Owners {
        owners,
        measured: match measure {
            OwnerMeasure::Pss => "PSS of processes",
            _ => "RSS of processes: what several share counts for each of them",
        },
        is_estimate: measure != OwnerMeasure::Pss,
        unread,
    })
}

/// Returns the service of a process, or its name where services are not known.
fn service(process: &EntitySeries) -> &str {
    if process.group.is_empty() { &process.label } else { &process.group }
}

/// Returns the living processes with their services.
fn by_service<'a>(cx: &Evidence<'a>, index: usize) -> Vec<(&'a EntitySeries, &'a str)> {
    living(cx, index).map(|process| (process, service(process))).collect()
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

type Grouped = (OwnerMeasure, Vec<Owner>, UnreadOwners);

fn grouped(
    named: &[(&EntitySeries, &str)],
    sizes: impl Fn(&EntitySeries) -> OwnerSizes,
    pss_min: Ratio,
    join: impl Fn(Bytes, Bytes) -> Bytes,
) -> Option<Grouped> {
    let processes: Vec<(&str, OwnerSizes)> =
        named.iter().map(|(process, name)| (*name, sizes(process))).collect();
    let measure = measure_of(&processes, pss_min)?;
    let mut groups: BTreeMap<&str, (u64, Bytes)> = BTreeMap::new();
    let mut unread = UnreadOwners::default();
    for (name, sizes) in &processes {
        match sizes.get(measure) {
            Some(Bytes::ZERO) => {}
            Some(bytes) => {
                let group = groups.entry(name).or_default();
                group.0 += 1;
                group.1 = join(group.1, bytes);
            }
            None => unread.add(name, sizes.at_most()),
        }
    }
    let mut owners: Vec<Owner> = groups
        .into_iter()
        .map(|(name, (processes, bytes))| Owner { name: name.to_owned(), processes, bytes })
        .collect();
    owners.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
    Some((measure, owners, unread))
}

/// Returns the measure for all processes; `None` if none of them has any such memory.
fn measure_of(processes: &[(&str, OwnerSizes)], pss_min: Ratio) -> Option<OwnerMeasure> {
    let sizes = || processes.iter().map(|(_, sizes)| *sizes);
    let with = |measure| sizes().filter(move |sizes| sizes.get(measure).is_some());
    let has = |measure| with(measure).any(|sizes| sizes.get(measure) > Some(Bytes::ZERO));
    let all: Bytes = sizes().map(OwnerSizes::at_most).sum();
    let by_pss: Bytes = with(OwnerMeasure::Pss).map(OwnerSizes::at_most).sum();
    let covers = by_pss.ratio_of(all).is_some_and(|share| share >= pss_min);
    if has(OwnerMeasure::Pss) && covers {
        return Some(OwnerMeasure::Pss);
    }
    let of_rss = [OwnerMeasure::RssPart, OwnerMeasure::Rss];
    of_rss.into_iter().find(|measure| has(*measure))
}

impl UnreadOwners {
    fn add(&mut self, name: &str, bytes: Bytes) {
        if bytes == Bytes::ZERO {
            return;
        }
        self.processes += 1;
        if self.largest.as_ref().is_none_or(|known| known.bytes < bytes) {
            self.largest = Some(Owner { name: name.to_owned(), processes: 1, bytes });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::{Facts, Sample, Timeline};
    use units::Span;

    const MIB: fn(u64) -> Bytes = Bytes::from_mib;

    /// Owners of processes with these RssAnon and PSS.
    fn owners(processes: &[(&str, u64, Option<u64>)]) -> Option<Owners> {
        let mut sample = Sample::at(Span::ZERO);
        for (i, (name, rss, pss)) in processes.iter().enumerate() {
            let row = sample.table_mut(Entity::Process).entry(&format!("{i}@1"));
            row.label.push_str(name);
            row.row.set(PROC_RSS_ANON, MIB(*rss));
            if let Some(pss) = pss {
                row.row.set(PROC_PSS_ANON, MIB(*pss));
            }
        }
        let mut timeline = Timeline::default();
        timeline.push(&sample).unwrap();
        of_anonymous(&Evidence::new(&timeline, &Facts::default()), 0)
    }

    fn sizes(owners: &Owners) -> Vec<(&str, Bytes)> {
        let listed = owners.owners.iter();
        listed.map(|owner| (owner.name.as_str(), owner.bytes)).collect()
    }

    #[test]
    fn where_most_have_a_pss_the_others_are_unread() {
        let found = owners(&[("db", 990, Some(200)), ("web", 70, None), ("sh", 5, None)]).unwrap();
        assert_eq!(sizes(&found), [("db", MIB(200))]);
        assert!(!found.is_estimate);
        assert_eq!(found.unread.processes, 2);
        let largest = found.unread.largest.unwrap();
        assert_eq!((largest.name.as_str(), largest.bytes), ("web", MIB(70)));
    }

    #[test]
    fn where_few_have_a_pss_all_are_measured_by_rss() {
        let found = owners(&[("db", 300, None), ("sh", 5, Some(2))]).unwrap();
        assert_eq!(sizes(&found), [("db", MIB(300)), ("sh", MIB(5))]);
        assert!(found.is_estimate);
        assert_eq!(found.unread, UnreadOwners::default());
    }

    #[test]
    fn an_old_pss_is_at_most_the_rss_of_now_and_processes_without_memory_are_nobody() {
        let found = owners(&[("shrunk", 10, Some(90)), ("kswapd0", 0, None)]).unwrap();
        assert_eq!(sizes(&found), [("shrunk", MIB(10))]);
        assert_eq!(found.unread.processes, 0);
        assert_eq!(owners(&[("kswapd0", 0, None)]), None);
        assert_eq!(owners(&[]), None);
    }
}
