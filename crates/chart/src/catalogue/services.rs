//! Memory of services: the sum of their processes by systemd unit or cgroup, else by program; each process where they are
//! few.

use std::collections::{HashMap, HashSet};

use diagnose::{Evidence, Missing, Need};
use timeline::signals::{
    PROC_RSS, PROC_RSS_ANON, PROC_SWAP, PROCESS_STATUS, SERVICE_RSS, SERVICE_RSS_ANON, SERVICE_SWAP,
};
use timeline::{Entity, EntitySeries, SignalId};
use units::Quantity;

use super::builder::{ChartBuilder, level};
use super::sums::{EntitySum, EntitySums};
use crate::{Chart, ChartKind, ChartSeries, ChartUnit, Colour};

/// At most 12 areas; the rest is one more.
const SERVICES_MAX: usize = 12;
/// What never had this share of all is no area that could be seen.
const WORTH_AN_AREA: f64 = 0.02;
/// Processes that are seen must be this share of all with their name; else these are many, or some were not kept.
const COMPLETE: f64 = 0.9;
/// If all of it is less than this share of RAM, MemTotal is not drawn: its line would flatten the stack.
const WORTH_A_LIMIT: f64 = 0.5;

/// A help, and the same where processes stand alone.
macro_rules! help {
    ($text:literal) => {
        [$text, concat!($text, " Names with a PID are single processes.")]
    };
}

const ANONYMOUS: [&str; 2] = help!(
    "Anonymous memory in RAM and in swap. Pages shared after a fork count for each process; files \
     and shared memory do not count."
);
const RESIDENT: [&str; 2] = help!(
    "Resident memory and swap. This source has no anonymous memory of processes, so files and \
     shared pages count for each process that maps them."
);

/// Whether processes of one name are added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnerDetail {
    /// A process stands alone if few have its name.
    EachOfFew,
    /// They are: another source has the same names, and other processes.
    Names,
}

/// The owners of memory in a source, and how their memory is measured.
#[derive(Debug, Clone)]
pub(super) struct MemoryOwners {
    pub(super) sums: EntitySums,
    /// Names of the signals, for the series of a sum.
    pub(super) signals: Vec<SignalId>,
    /// The same for the series of a process that stands alone.
    of_process: Vec<SignalId>,
    help: [&'static str; 2],
}

/// The owners of memory and the memory of each, the largest first.
pub(super) struct RankedOwners {
    pub(super) owners: MemoryOwners,
    pub(super) sums: Vec<EntitySum>,
}

impl RankedOwners {
    /// Ranks the owners of a whole source.
    ///
    /// # Errors
    /// As [`MemoryOwners::of`].
    pub(super) fn of(cx: &Evidence<'_>, detail: OwnerDetail) -> Result<Self, Missing> {
        let mut owners = MemoryOwners::of(cx)?;
        let sums = owners.sums.largest(cx);
        if detail == OwnerDetail::EachOfFew {
            owners.sums.apart = names_of_few(cx, &owners, &sums);
        }
        let is_split = !owners.sums.apart.is_empty();
        let sums = if is_split { owners.sums.largest(cx) } else { sums };
        Ok(Self { owners, sums })
    }
}

/// Returns the names of which each process stands alone, from the largest sum on: those that can be seen must be nearly all of
/// it, and so few that everything worth an area still has one.
fn names_of_few(
    cx: &Evidence<'_>,
    owners: &MemoryOwners,
    by_name: &[EntitySum],
) -> HashSet<String> {
    let mut processes = owners.processes(cx);
    let worth = by_name.iter().map(|sum| sum.most).sum::<f64>() * WORTH_AN_AREA;
    let areas = by_name.iter().filter(|sum| sum.most >= worth).count();
    let mut room = SERVICES_MAX.saturating_sub(areas);
    let mut apart = HashSet::new();
    for sum in by_name {
        let mut seen = processes.remove(sum.name.as_str()).unwrap_or_default();
        seen.retain(|peak| *peak >= worth);
        let is_complete = seen.iter().sum::<f64>() >= sum.most * COMPLETE;
        if (2..=room + 1).contains(&seen.len()) && is_complete {
            room -= seen.len() - 1;
            apart.insert(sum.name.clone());
        }
    }
    apart
}

/// One way to measure the memory of an owner.
struct OwnerKind {
    entity: Entity,
    /// What it holds and what it has in swap.
    of_owner: [SignalId; 2],
    /// The same of a process.
    of_process: [SignalId; 2],
    is_in_pages: bool,
    help: [&'static str; 2],
}

/// The best kind first.
const KINDS: [OwnerKind; 4] = [
    anonymous(Entity::Service, [SERVICE_RSS_ANON.id(), SERVICE_SWAP.id()]),
    resident(Entity::Service, [SERVICE_RSS.id(), SERVICE_SWAP.id()]),
    anonymous(Entity::Process, [PROC_RSS_ANON.id(), PROC_SWAP.id()]),
    resident(Entity::Process, [PROC_RSS.id(), PROC_SWAP.id()]),
];

const fn anonymous(entity: Entity, of_owner: [SignalId; 2]) -> OwnerKind {
    let of_process = [PROC_RSS_ANON.id(), PROC_SWAP.id()];
    OwnerKind { entity, of_owner, of_process, is_in_pages: false, help: ANONYMOUS }
}

const fn resident(entity: Entity, of_owner: [SignalId; 2]) -> OwnerKind {
    let of_process = [PROC_RSS.id(), PROC_SWAP.id()];
    OwnerKind { entity, of_owner, of_process, is_in_pages: true, help: RESIDENT }
}

impl MemoryOwners {
    /// Chooses services if they were recorded, else processes of one program; by anonymous memory if it is known.
    ///
    /// # Errors
    /// [`Missing`] if no process is known.
    fn of(cx: &Evidence<'_>) -> Result<Self, Missing> {
        let has = |entity, signal| {
            let mut all = cx.timeline.entities(entity);
            all.any(|one: &EntitySeries| one.runs().any(|(known, _)| known == signal))
        };
        let page = cx.facts.page_size.map(|page| page.bytes().get());
        let readable = KINDS.into_iter().find_map(|kind| {
            let scale = if kind.is_in_pages { page } else { Some(1) };
            let [held, swapped] = kind.of_owner;
            let scale = scale.filter(|_| has(kind.entity, held))?;
            let mut signals = vec![(held, scale), (swapped, 1)];
            if kind.entity != Entity::Process {
                signals.extend(kind.of_process.into_iter().zip([scale, 1]));
            }
            let name = if kind.entity == Entity::Process { name } else { service_of };
            let sums = EntitySums {
                entity: kind.entity,
                signals,
                name,
                only: None,
                apart: HashSet::new(),
            };
            Some(Self {
                sums,
                signals: kind.of_owner.to_vec(),
                of_process: kind.of_process.to_vec(),
                help: kind.help,
            })
        });
        readable.ok_or_else(|| {
            Missing::because(vec![PROC_RSS_ANON.def().name], Need::File(PROCESS_STATUS))
        })
    }

    /// Returns the peaks of the processes of each name, at most; none where services were read at other times than their
    /// processes. A name of which processes were given up to save memory has none.
    fn processes<'a>(&self, cx: &Evidence<'a>) -> HashMap<&'a str, Vec<f64>> {
        let was_read = |entity, at| cx.timeline.was_read(entity, at);
        let mut samples = 0..cx.timeline.len();
        if samples.any(|at| was_read(self.sums.entity, at) != was_read(Entity::Process, at)) {
            return HashMap::new();
        }
        let mut processes: HashMap<&str, Vec<f64>> = HashMap::new();
        for process in cx.timeline.entities(Entity::Process) {
            let peak = self.sums.peak_at_most(process);
            if peak > 0.0 {
                processes.entry((self.sums.name)(process)).or_default().push(peak);
            }
        }
        // Where a source has no PIDs, all that is known of a process is its name.
        let nameless = cx.timeline.entities(Entity::Process).filter(|it| it.pid() == "0");
        for given_up in cx.timeline.evicted_sums(Entity::Process).chain(nameless) {
            processes.remove((self.sums.name)(given_up));
        }
        processes
    }

    fn title(&self) -> &'static str {
        match self.sums.entity {
            Entity::Service => "Memory of services",
            _ => "Memory of processes",
        }
    }
}

fn name(series: &EntitySeries) -> &str {
    if series.label.is_empty() { &series.key } else { &series.label }
}

/// Returns the name of a service, or of the service that a process belongs to.
fn service_of(series: &EntitySeries) -> &str {
    if series.entity == Entity::Process && !series.group.is_empty() {
        &series.group
    } else {
        name(series)
    }
}

/// Chart of the largest owners of memory, as a stack.
pub(super) fn chart(cx: &Evidence<'_>, held: &Result<RankedOwners, Missing>) -> Chart {
    let builder = |title, help| {
        ChartBuilder::new("services", title, help, ChartKind::Stack, ChartUnit::Bytes)
            .wide()
            .of_entities()
    };
    let RankedOwners { owners, sums: all } = match held {
        Ok(held) => held,
        Err(missing) => {
            return builder("Memory of processes", ANONYMOUS[0]).lacks(cx, missing.clone());
        }
    };
    let [help, help_of_each] = owners.help;
    let is_split = !owners.sums.apart.is_empty();
    let builder = builder(owners.title(), if is_split { help_of_each } else { help });
    if all.is_empty() {
        return builder.absent("no process had anonymous memory".to_owned());
    }
    let shown = all.len().min(SERVICES_MAX);
    let names: Vec<String> = all[..shown].iter().map(|sum| sum.name.clone()).collect();
    let builder = match ram_worth_showing(cx, &all[..shown]) {
        Some(ram) => builder.limit("MemTotal", ram),
        None => builder,
    };
    let series = series(cx, owners, &names, all.len() - shown);
    let (count, owners) = (series.len(), owners.clone());
    builder.together(
        series,
        Box::new(move |part| {
            let mut curves = owners.sums.curves(part, &names);
            curves.truncate(count);
            curves
        }),
    )
}

/// Returns one series for each name, and one for the others if there are any.
fn series(
    cx: &Evidence<'_>,
    owners: &MemoryOwners,
    names: &[String],
    others: usize,
) -> Vec<ChartSeries> {
    let alone = owners.sums.standing_alone(cx);
    let alone: HashMap<_, &str> =
        alone.map(|process| (owners.sums.area_of(process), process.key.as_str())).collect();
    let area = |n: usize, label: String, colour| match alone.get(label.as_str()) {
        Some(key) => ChartSeries {
            group: Some((*key).to_owned()),
            ..level(format!("owner-{n}"), label, colour, owners.of_process.clone())
        },
        None => level(format!("owner-{n}"), label, colour, owners.signals.clone()),
    };
    let named = names.iter().enumerate().map(|(n, name)| area(n, name.clone(), Colour::Nth(n)));
    let rest =
        (others > 0).then(|| area(names.len(), format!("others ({others})"), Colour::Others));
    named.chain(rest).collect()
}

fn ram_worth_showing(cx: &Evidence<'_>, largest: &[EntitySum]) -> Option<f64> {
    let ram = cx.ram().ok()?.as_f64();
    let held: f64 = largest.iter().map(|sum| sum.most).sum();
    (held >= ram * WORTH_A_LIMIT).then_some(ram)
}
