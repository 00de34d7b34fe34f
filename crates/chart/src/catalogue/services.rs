//! Memory of services: the sum of their processes by systemd unit or cgroup, else by program.

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
/// If all of it is less than this share of RAM, MemTotal is not drawn: its line would flatten the stack.
const WORTH_A_LIMIT: f64 = 0.5;

const ANONYMOUS: &str = "Anonymous memory in RAM and in swap. Pages shared after a fork count for \
                         each process; files and shared memory do not count.";
const RESIDENT: &str = "Resident memory and swap. This source has no anonymous memory of \
                        processes, so files and shared pages count for each process that maps \
                        them.";

/// The owners of memory in a source, and how their memory is measured.
#[derive(Debug, Clone)]
pub(super) struct MemoryOwners {
    pub(super) sums: EntitySums,
    /// Names of the signals, for the series.
    pub(super) signals: Vec<SignalId>,
    help: &'static str,
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
    pub(super) fn of(cx: &Evidence<'_>) -> Result<Self, Missing> {
        let owners = MemoryOwners::of(cx)?;
        let sums = owners.sums.largest(cx);
        Ok(Self { owners, sums })
    }
}

/// One way to measure the memory of an owner.
struct OwnerKind {
    entity: Entity,
    held: SignalId,
    is_in_pages: bool,
    swapped: SignalId,
    help: &'static str,
}

/// The best kind first.
const KINDS: [OwnerKind; 4] = [
    anonymous(Entity::Service, SERVICE_RSS_ANON.id(), SERVICE_SWAP.id()),
    resident(Entity::Service, SERVICE_RSS.id(), SERVICE_SWAP.id()),
    anonymous(Entity::Process, PROC_RSS_ANON.id(), PROC_SWAP.id()),
    resident(Entity::Process, PROC_RSS.id(), PROC_SWAP.id()),
];

const fn anonymous(entity: Entity, held: SignalId, swapped: SignalId) -> OwnerKind {
    OwnerKind { entity, held, is_in_pages: false, swapped, help: ANONYMOUS }
}

const fn resident(entity: Entity, held: SignalId, swapped: SignalId) -> OwnerKind {
    OwnerKind { entity, held, is_in_pages: true, swapped, help: RESIDENT }
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
            let scale = scale.filter(|_| has(kind.entity, kind.held))?;
            Some(Self {
                sums: EntitySums {
                    entity: kind.entity,
                    signals: vec![(kind.held, scale), (kind.swapped, 1)],
                    name,
                    only: None,
                },
                signals: vec![kind.held, kind.swapped],
                help: kind.help,
            })
        });
        readable.ok_or_else(|| {
            Missing::because(vec![PROC_RSS_ANON.def().name], Need::File(PROCESS_STATUS))
        })
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
            return builder("Memory of processes", ANONYMOUS).lacks(cx, missing.clone());
        }
    };
    let builder = builder(owners.title(), owners.help);
    if all.is_empty() {
        return builder.absent("no process had anonymous memory".to_owned());
    }
    let shown = all.len().min(SERVICES_MAX);
    let names: Vec<String> = all[..shown].iter().map(|sum| sum.name.clone()).collect();
    let builder = match ram_worth_showing(cx, &all[..shown]) {
        Some(ram) => builder.limit("MemTotal", ram),
        None => builder,
    };
    let series = series(owners, &names, all.len() - shown);
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
fn series(owners: &MemoryOwners, names: &[String], others: usize) -> Vec<ChartSeries> {
    let area = |n: usize, label: String, colour| {
        level(format!("owner-{n}"), label, colour, owners.signals.clone())
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
