//! The processes that used most memory and the busiest ones at one moment.

use timeline::signals::{PROC_READ_BYTES, PROC_STIME, PROC_UTIME, PROC_WRITE_BYTES};
use timeline::{Counter, Entity, EntitySeries, Signal};
use units::{Bytes, BytesPerSecond, Quantity, Ratio, Span, Unit};

use crate::evidence::Evidence;
use crate::finding::Affected;
use crate::measures::cgroups::owns_processes;
use crate::measures::processes;

/// Three show where memory was; more would hide the busy ones.
const PROCESSES_MAX: usize = 3;
/// A process with less CPU time than this is idle.
const CPU_BUSY: Ratio = Ratio::from_percent(5.0);
const IO_MUCH: BytesPerSecond = BytesPerSecond::from_mib(1.0);

/// The processes with most memory around a sample, then those that read, wrote and computed most.
pub(super) fn who(cx: &Evidence<'_>, index: usize) -> Vec<Affected> {
    let mut then = processes::largest(cx, index, PROCESSES_MAX);
    // Where no single process is large enough, its service may be.
    if then.is_empty() {
        then = processes::largest_units(cx, index, PROCESSES_MAX);
    }
    then.extend(busiest(cx, index, |_| true));
    then
}

/// The same of a cgroup with a limit.
pub(super) fn who_of(cx: &Evidence<'_>, index: usize, path: &str, limit: Bytes) -> Vec<Affected> {
    let is_own = owns_processes(cx, path);
    let least = processes::worth_naming_in(limit);
    let mut then = processes::largest_of(cx, index, PROCESSES_MAX, &is_own, least);
    then.extend(busiest(cx, index, &is_own));
    then
}

fn busiest(
    cx: &Evidence<'_>,
    index: usize,
    is_asked: impl Fn(&EntitySeries) -> bool,
) -> Option<Affected> {
    let now = cx.rows_at(Entity::Process, index)?;
    let before = cx.timeline.read_before(Entity::Process, now.checked_sub(1)?)?;
    let times = cx.timeline.times();
    let elapsed = times[now] - times[before];
    let of = |process: &EntitySeries| {
        let moved = rise(cx, process, PROC_READ_BYTES, before, now)
            .unwrap_or_default()
            .saturating_add(rise(cx, process, PROC_WRITE_BYTES, before, now).unwrap_or_default());
        let ticks = rise(cx, process, PROC_UTIME, before, now)?
            .saturating_add(rise(cx, process, PROC_STIME, before, now)?);
        Some((moved, ticks))
    };
    let processes = cx.timeline.entities(Entity::Process).filter(|process| is_asked(process));
    let rates = processes.filter_map(|process| Some((process, of(process)?)));
    let (process, (moved, ticks)) = rates.max_by_key(|(_, work)| *work)?;
    describe(cx, process, moved, ticks, elapsed)
}

fn describe(
    cx: &Evidence<'_>,
    process: &EntitySeries,
    moved: u64,
    ticks: u64,
    elapsed: Span,
) -> Option<Affected> {
    let moved = units::PerSecond::<Bytes>::over(Bytes::new(moved).as_f64(), elapsed)?;
    let busy = units::PerSecond::<units::Ticks>::over(units::Ticks::new(ticks).as_f64(), elapsed)?;
    let busy = busy.to_cpus(cx.facts.user_hz());
    let what = match (moved >= IO_MUCH, busy >= CPU_BUSY) {
        (true, _) => format!("the busiest: read and wrote {moved}"),
        (false, true) => format!("the busiest: {busy} of a CPU"),
        (false, false) => return None,
    };
    Some(Affected { kind: "process", name: process.label.clone(), what })
}

fn rise<U: Unit>(
    cx: &Evidence<'_>,
    process: &EntitySeries,
    signal: Signal<Counter<U>>,
    before: usize,
    now: usize,
) -> Option<u64> {
    let at = |index| cx.timeline.at_of(process, signal, index).map(Unit::raw);
    at(now)?.checked_sub(at(before)?)
}
