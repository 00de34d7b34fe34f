//! The sentences that every finding about a report has in common.

use timeline::Stretch;
use timeline::kernel_report::Killed;
use timeline::signals::{
    MEM_ANON, MEM_FREE, MEM_HUGETLB, MEM_PAGE_TABLES, MEM_SHMEM, MEM_SLAB_RECLAIMABLE,
    MEM_SLAB_UNRECLAIMABLE, MEM_TOTAL, SWAP_FREE, SWAP_TOTAL,
};
use units::{Bytes, Count, Ratio};

use super::{Explained, OomCause, history};
use crate::evidence::Evidence;
use crate::finding::{Affected, Confidence, Finding, KernelEvent, Severity};

/// At most 8 zones: a report of a large machine has dozens, this many show what matters.
const ZONES: usize = 8;
/// At most this many victims are named where a whole cgroup was killed.
const KILLED: usize = 3;

/// The kill in a sentence: `The kernel killed mysqld (20 GiB resident, 5.8 GiB in swap)`.
pub(crate) fn kill(one: &Explained<'_>) -> String {
    let Some(victim) = &one.holders.victim else {
        return "The kernel had to kill a process".to_owned();
    };
    let others = match one.report.killed.len() {
        0 | 1 => String::new(),
        2 => " and another".to_owned(),
        n => format!(" and {} others", Count::new(u64::try_from(n - 1).unwrap_or(u64::MAX))),
    };
    format!("The kernel killed {}{others}", victim.words())
}

/// The severity and the effect in a sentence.
pub(crate) fn effect(one: &Explained<'_>) -> (Severity, String) {
    if one.is_kill() {
        (Severity::Critical, kill(one))
    } else {
        let fate = fate(one);
        (Severity::Warning, format!("A request for memory {fate}"))
    }
}

/// What became of a request: `failed`, `waited for 10 s`.
pub(crate) fn fate(one: &Explained<'_>) -> String {
    match one.report.waited {
        Some(waited) => format!("waited for {waited}"),
        None => "failed".to_owned(),
    }
}

/// The victim as an entry of a finding.
pub(crate) fn victim(one: &Explained<'_>) -> Option<Affected> {
    let victim = one.holders.victim.as_ref()?;
    Some(Affected {
        kind: "process",
        name: victim.killed.name.clone(),
        what: match victim.held() {
            Some(held) => format!("killed{}: it held {held}", pid(victim.killed)),
            None => format!("killed{}", pid(victim.killed)),
        },
    })
}

/// Adds the report to a finding, line by line: what was requested, why no zone could serve it, which tasks used the
/// memory.
pub(crate) fn explain(cx: &Evidence<'_>, one: &Explained<'_>, mut finding: Finding) -> Finding {
    finding.event = Some(event(one));
    if let Some(stretch) = moment(cx, one) {
        finding = finding.during(stretch);
    }
    if let Some(stamp) = &one.report.stamp {
        // Syslog pads the day with a blank.
        let words: Vec<&str> = stamp.text.split_whitespace().collect();
        finding = finding.with_line(format!("time in the log: {}", words.join(" ")));
    }
    for killed in one.report.killed.iter().take(KILLED) {
        finding = finding.with_line(killed_line(one, killed));
    }
    if let Some(asked) = asked(cx, one) {
        finding = finding.with_line(asked);
    }
    if let Some(cache) = &one.report.slab_cache {
        finding =
            finding.with_line(format!("asked for by the slab cache {cache}, which could not grow"));
    }
    finding = zones(cx, one, finding);
    if let Some(line) = one.holders.line() {
        finding = finding.with_line(line);
    }
    if let Some(line) = history::line(cx, one.report) {
        finding = finding.with_line(line);
    }
    finding
}

fn event(one: &Explained<'_>) -> KernelEvent {
    let is_open = matches!(one.cause, OomCause::Unknown(_)) && one.report.killed.is_empty();
    match (one.is_kill(), one.cause.is_not_the_hosts()) {
        (false, _) => KernelEvent::FailedAllocation,
        (true, _) if is_open => KernelEvent::KillBegun,
        (true, true) => KernelEvent::Kill,
        (true, false) => KernelEvent::HostKill,
    }
}

/// When the report was written, where that is meaningful: among other samples, or on a known clock.
pub(crate) fn moment(cx: &Evidence<'_>, one: &Explained<'_>) -> Option<Stretch> {
    let wall = cx.timeline.stamp(one.index).and_then(|stamp| stamp.wall);
    let is_known = cx.timeline.len() > 1 || wall.is_some();
    let sample = cx.timeline.stretch(one.index, one.index)?;
    // The sample that shows the report's memory may have been taken a little later.
    is_known.then_some(Stretch { from: one.at, to: one.at, ..sample })
}

/// ` (PID 12)`; nothing for kernel 2.4, which does not print it.
fn pid(killed: &Killed) -> String {
    match killed.pid {
        0 => String::new(),
        pid => format!(" (PID {pid})"),
    }
}

/// The line of a kill: `killed: mysqld (PID 6576), 20 GiB anonymous, 5.8 GiB in swap, 60 MiB of page tables`.
fn killed_line(one: &Explained<'_>, killed: &Killed) -> String {
    let mut tasks = one.report.tasks.iter();
    let task = tasks.find(|task| task.pid == killed.pid || task.tgid == killed.pid);
    let some = |size: Option<Bytes>| size.filter(|size| *size > Bytes::ZERO);
    let parts = [
        (some(killed.anon), "anonymous"),
        (some(killed.file), "of files"),
        (some(killed.shmem), "shared"),
        (some(task.map(|task| task.swap)), "in swap"),
        (some(killed.page_tables.or(task.map(|task| task.page_tables))), "of page tables"),
    ];
    let parts = parts.iter().filter_map(|(size, what)| Some(format!(", {} {what}", (*size)?)));
    let adj = killed.oom_score_adj.or(task.map(|task| task.oom_score_adj)).filter(|adj| *adj != 0);
    let adj = adj.map_or_else(String::new, |adj| format!(", oom_score_adj {adj}"));
    format!("killed: {}{}{}{adj}", killed.name, pid(killed), parts.collect::<String>())
}

/// The line of the request: `asked for: 4 KiB (order 0), memory of a program or of files, may wait, by sed (PID 77)`.
fn asked(cx: &Evidence<'_>, one: &Explained<'_>) -> Option<String> {
    let asked = one.asked.as_ref()?;
    let page = one.report.page_size.or(cx.facts.page_size);
    let by = one.report.invoker.as_ref().map_or_else(String::new, |by| {
        let pid = by.pid.map_or_else(String::new, |p| format!(" (PID {p})"));
        format!(", by {}{pid}", by.name)
    });
    let is_charge = matches!(one.cause, OomCause::GroupLimit(_));
    let kind = asked.kind(is_charge.then_some(one.report.trace.as_slice()));
    Some(format!("asked for: {} (order {}), {kind}{by}", asked.size(page), asked.order))
}

/// Adds a line for each zone; those that the request may use come first.
fn zones(cx: &Evidence<'_>, one: &Explained<'_>, mut finding: Finding) -> Finding {
    let Some(asked) = &one.asked else {
        return finding;
    };
    let page = one.report.page_size.or(cx.facts.page_size);
    let first = one.zones.first().map(|z| z.zone.node);
    let several = one.zones.iter().any(|z| Some(z.zone.node) != first);
    let mut zones: Vec<_> = one.zones.iter().collect();
    zones.sort_by_key(|z| !z.is_eligible());
    for zone in zones.iter().take(ZONES) {
        finding = finding.with_line(zone.line(asked, page, several));
    }
    if let Some(more) = zones.len().checked_sub(ZONES).filter(|more| *more > 0) {
        finding = finding.with_line(format!("{more} more zones"));
    }
    finding
}

/// Adds the readings that take a tenth of RAM or more, and swap.
pub(crate) fn measures(cx: &Evidence<'_>, one: &Explained<'_>, mut finding: Finding) -> Finding {
    const TENTH: Ratio = Ratio::from_percent(10.0);
    let at = |signal| cx.timeline.at(signal, one.index);
    let when = moment(cx, one).map(|moment| moment.from);
    // Where the report's zones are cut off, the sum of the rest is not all of RAM.
    if let (Some(free), Some(ram)) = (at(MEM_FREE), at(MEM_TOTAL))
        && free <= ram
    {
        let text = format!("{free} of {ram} of RAM free");
        finding = finding.shows(MEM_FREE, free, when, text);
    }
    if let (Some(free), Some(total)) = (at(SWAP_FREE), at(SWAP_TOTAL)) {
        let text = if total == Bytes::ZERO {
            "there is no swap".to_owned()
        } else {
            format!("{free} of {total} of swap free")
        };
        finding = finding.shows(SWAP_FREE, free, when, text);
    }
    for (signal, what) in [
        (MEM_ANON, "anonymous memory of programs"),
        (MEM_SHMEM, "shared memory and tmpfs"),
        (MEM_SLAB_UNRECLAIMABLE, "kernel objects that cannot be dropped"),
        (
            MEM_SLAB_RECLAIMABLE,
            "kernel objects that can be dropped, names and inodes of files mostly",
        ),
        (MEM_PAGE_TABLES, "page tables"),
        (MEM_HUGETLB, "the pool of huge pages"),
    ] {
        let least = at(MEM_TOTAL).map_or(Bytes::from_gib(1), |ram| ram.share(TENTH));
        if let Some(held) = at(signal).filter(|held| *held >= least) {
            finding = finding.shows(signal, held, when, format!("{held} of {what}"));
        }
    }
    finding
}

/// The confidence of a finding that rests on the kernel's own report.
pub(crate) fn sure(one: &Explained<'_>, value: f64, open: &str) -> Confidence {
    let mut why = "rests on the kernel's own report".to_owned();
    let mut value = value;
    if one.report.is_cut {
        why.push_str(", cut off at the end");
        value = value.min(0.85);
    }
    if one.report.is_without_prefix {
        why = "rests on one line without the prefix of a log: it may be quoted from elsewhere"
            .to_owned();
        value = value.min(0.85);
    }
    if !open.is_empty() {
        why.push_str("; ");
        why.push_str(open);
    }
    Confidence { value, why }
}
