//! The verdict: one sentence for someone woken at two, and the level that becomes the exit code.

use timeline::signals::{MEM_AVAILABLE, MEM_FREE, MEM_TOTAL, OOM_KILLS, PSI_MEMORY_SOME};
use units::{Bytes, Quantity, Ratio, Span};

use crate::calm;
use crate::evidence::Evidence;
use crate::finding::{Finding, Severity};
use crate::floor::Floor;
use crate::oom;
use crate::own_limit::OwnLimit;
use crate::stalls::Stalls;

/// How it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Memory is enough, as far as the look could tell.
    Ok,
    /// At least one warning.
    Warning,
    /// At least one critical finding.
    Critical,
    /// The source cannot say.
    Unknown,
}

/// The answer in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// How it stands.
    pub level: Level,
    /// One or two sentences.
    pub headline: String,
    /// More lines that belong to it: what one look can and cannot say, whose memory is meant.
    pub remarks: Vec<String>,
}

/// Want of memory shows in what moves. Where none of these rules could look, "enough" would be a guess.
const MOVEMENT: [&str; 2] = ["swap-thrash", "page-cache-thrash"];

/// Stalls that last this long in a recording, and for a part of it in a short look, are not a passing burst.
const UNEXPLAINED: Span = Span::from_mins(5);

/// A shorter look shows no slow growth: a leak that fills a host in a week adds 0.1 % of RAM in this time.
const LONG_LOOK: Span = Span::from_mins(10);

impl Verdict {
    /// `blind` names the rules that could not be evaluated.
    pub(crate) fn of(cx: &Evidence<'_>, findings: &[Finding], blind: &[&str]) -> Self {
        let limit = OwnLimit::of(cx);
        let worst = findings.iter().map(|f| f.severity).max();
        let is_event = cx.is_single_look() && cx.timeline.reports().next().is_some();
        let (level, headline) = match (worst, findings.first()) {
            (Some(Severity::Critical), Some(top)) => (Level::Critical, top.title.clone()),
            (Some(Severity::Warning), Some(top)) => (Level::Warning, top.title.clone()),
            (_, top) if is_event => (
                Level::Unknown,
                top.map_or_else(|| oom::headline(cx), |top| top.title.clone()),
            ),
            _ if cx.ram().is_err() => (Level::Unknown, without_ram(cx, findings, blind)),
            _ if cx.is_single_look() => (Level::Unknown, single_look(cx)),
            _ if MOVEMENT.iter().all(|id| blind.contains(id)) => (
                Level::Unknown,
                "The levels alarm nobody, but whether memory is enough cannot be said: nothing in this source tells whether pages come back after eviction."
                    .to_owned(),
            ),
            _ => unnamed(cx, limit.as_ref())
                .unwrap_or_else(|| (Level::Ok, all_is_well(cx, limit.as_ref()))),
        };
        let mut remarks = whose_memory(cx, limit.as_ref());
        // A kernel report tells of an event: what its levels mean for the next hour is not the question.
        if is_event {
            return Self {
                level,
                headline,
                remarks,
            };
        }
        if cx.is_single_look() {
            remarks.extend(what_one_look_says(cx));
        } else if level == Level::Ok && cx.look() < LONG_LOOK {
            remarks.push(format!(
                "In {} slow growth and leaks do not show, nor what happens at another hour.",
                cx.look()
            ));
        }
        Self {
            level,
            headline,
            remarks,
        }
    }
}

/// Rows of vmstat, or slabtop alone: something may be said, but not whether memory is enough.
fn without_ram(cx: &Evidence<'_>, findings: &[Finding], blind: &[&str]) -> String {
    const NOT_ENOUGH: &str = "the source has no /proc/meminfo with a MemTotal";
    if let Some(top) = findings.first() {
        return format!(
            "{} Whether memory is enough cannot be said: {NOT_ENOUGH}.",
            top.title
        );
    }
    if cx.is_single_look() || blind.contains(&"swap-thrash") {
        return format!("Nothing can be said: {NOT_ENOUGH}.");
    }
    format!(
        "Swap did not move back and forth for long in {}. Whether memory is enough cannot be said: {NOT_ENOUGH}.",
        cx.look()
    )
}

/// What speaks against "enough" although no rule named it: kills and stalls whose cause the source does not show, a
/// container that is full, a look too short to see anything sustained.
fn unnamed(cx: &Evidence<'_>, limit: Option<&OwnLimit>) -> Option<(Level, String)> {
    let killed = cx.increase(OOM_KILLS).unwrap_or(0.0);
    if killed >= 1.0 {
        let killed = units::Count::from_f64(killed);
        return Some((
            Level::Warning,
            format!(
                "Processes were killed for want of memory while watched ({killed}), and nothing in this source says by which limit; the kernel log does."
            ),
        ));
    }
    if let Some(full) = limit.filter(|limit| limit.is_full()) {
        return Some((
            Level::Warning,
            format!(
                "This container has hardly any memory left: {} of its limit of {} used, and little of that is page cache.",
                full.current, full.max
            ),
        ));
    }
    let stalled = cx.stall(PSI_MEMORY_SOME).ok();
    let waited = stalled.and_then(|stalled| {
        let stretch = cx.sustained(&stalled.at_least(Stalls::MEMORY), UNEXPLAINED)?;
        stalled.mean_in(&stretch)
    });
    if let Some(waited) = waited {
        return Some((
            Level::Unknown,
            format!(
                "Tasks waited for memory {waited} of the time, and nothing in this source says why; the files of the control groups may."
            ),
        ));
    }
    cx.is_too_short().then(|| {
        (
            Level::Unknown,
            format!(
                "The levels alarm nobody, but {} is too short to see whether anything waits: look for 10 s.",
                cx.look()
            ),
        )
    })
}

fn all_is_well(cx: &Evidence<'_>, limit: Option<&OwnLimit>) -> String {
    let within = limit.map_or_else(String::new, |limit| {
        format!(" within this container's limit of {}", limit.max)
    });
    // Without pressure files nothing says that nobody waits.
    let waits = match cx.timeline.rate(PSI_MEMORY_SOME) {
        Some(_) => ", and nothing waits for it",
        None => ", as far as can be told without memory pressure (PSI)",
    };
    format!("Memory is enough{within}{waits}.")
}

/// In a container: which of the two memories is meant, the container's first.
fn whose_memory(cx: &Evidence<'_>, limit: Option<&OwnLimit>) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(limit) = limit {
        remarks.push(format!(
            "This container (control group {}): {} of {} used ({}), page cache included.",
            limit.cgroup,
            limit.current,
            limit.max,
            limit.used()
        ));
        if let (Ok(ram), Some(available)) = (cx.ram(), cx.timeline.last(MEM_AVAILABLE)) {
            remarks.push(format!(
                "The host below it: {available} of {ram} available; what is drawn here is the host's."
            ));
        }
    }
    if let Some(container) = &cx.facts.container {
        let signs = container.signs.join(", ");
        remarks.push(if container.meminfo_is_own {
            format!("Seen from inside a container ({signs}): /proc/meminfo shows the container, not the host.")
        } else {
            format!("Seen from inside a container ({signs}): processes outside it are not seen.")
        });
    }
    remarks
}

/// The edges of the floor in one look: measured from the zones, else predicted from the size of RAM.
fn floor(cx: &Evidence<'_>, total: Bytes) -> (Bytes, Bytes, &'static str) {
    let measured = cx.floor().ok();
    match measured.and_then(|floor| floor.low.last().zip(floor.high.last())) {
        Some((low, high)) => (low, high, "from this host's zones"),
        None => {
            let (low, high) = Floor::predicted(total);
            (low, high, "predicted for an x86-64 host of this size")
        }
    }
}

fn on_floor(free: Bytes, high: Bytes) -> bool {
    free.as_f64() <= high.as_f64() * Floor::NEAR.get()
}

fn swap_used(cx: &Evidence<'_>) -> Option<Bytes> {
    cx.swap_used()
        .ok()
        .and_then(|used| used.last())
        .filter(|used| *used > Bytes::ZERO)
}

/// Below this share of available memory one look already points away from "there is room" (the catalogue warns of
/// exhaustion from 10 % down; a misjudged host of the first article had 12 %).
const LITTLE: Ratio = Ratio::from_percent(15.0);

/// One look proves levels only; say which way they point.
fn single_look(cx: &Evidence<'_>) -> String {
    let points_down = || {
        let total = cx.timeline.last(MEM_TOTAL)?;
        let free = cx.timeline.last(MEM_FREE)?;
        let (_, high, _) = floor(cx, total);
        let (available, _) = calm::available_at_most(cx).ok()?;
        let available = available.last()?.ratio_of(total)?;
        (on_floor(free, high) && (available < LITTLE || swap_used(cx).is_some())).then_some(())
    };
    let but = match points_down() {
        Some(()) => ", but it does not look like room for more",
        None => "",
    };
    format!("One look cannot say whether this memory is enough{but}.")
}

/// What each figure of one look means and does not mean.
fn what_one_look_says(cx: &Evidence<'_>) -> Vec<String> {
    let Some(total) = cx.timeline.last(MEM_TOTAL) else {
        return Vec::new();
    };
    let mut says = Vec::new();
    if let Some(free) = cx.timeline.last(MEM_FREE) {
        let (low, high, how) = floor(cx, total);
        says.push(if on_floor(free, high) {
            format!("free: {free} is not room. It is about the floor at which the kernel holds it ({low} to {high}, {how}).")
        } else {
            format!("free: {free}, above the floor at which the kernel would hold it ({low} to {high}, {how}).")
        });
    }
    if let Ok((track, told)) = calm::available_at_most(cx)
        && let Some(available) = track.last()
    {
        let share = available.ratio_of(total).unwrap_or_default();
        says.push(if told {
            format!("available: {available} ({share}) contains page cache that the workload may be using: an upper bound.")
        } else {
            format!("available: not measured. Free memory, cache and reclaimable slab are {available} ({share}); less than that can be had, far less where shared memory is counted as cache.")
        });
    }
    if let Some(used) = swap_used(cx) {
        says.push(format!(
            "swap: {used} used; whether it moves, which alone would mean a shortage, one look cannot say."
        ));
    }
    says.push(
        "Needed: two looks a minute apart, `memtide check --for 1m` on that host; for \"does more fit?\" a whole cycle of its work."
            .to_owned(),
    );
    says
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::signals::{MEM_CACHED, SWAP_FREE, SWAP_TOTAL};
    use timeline::{Facts, Sample, Timeline};

    /// The verdict on one look at a host with these sizes in MiB.
    fn one_look(total: u64, free: u64, available: u64, swapped: u64) -> Verdict {
        let mut sample = Sample::at(Span::ZERO);
        sample.host.set(MEM_TOTAL, Bytes::from_mib(total));
        sample.host.set(MEM_FREE, Bytes::from_mib(free));
        sample.host.set(MEM_AVAILABLE, Bytes::from_mib(available));
        sample.host.set(SWAP_TOTAL, Bytes::from_mib(20_480));
        sample
            .host
            .set(SWAP_FREE, Bytes::from_mib(20_480 - swapped));
        let mut timeline = Timeline::default();
        timeline.push(&sample).unwrap();
        let facts = Facts::default();
        Verdict::of(&Evidence::new(&timeline, &facts), &[], &[])
    }

    #[test]
    fn free_on_the_floor_with_little_available_is_not_room() {
        let verdict = one_look(80_429, 579, 9_662, 1_402);
        assert_eq!(verdict.level, Level::Unknown);
        assert!(verdict.headline.contains("does not look like room"));
        assert!(
            verdict.remarks[0].contains("is not room"),
            "{:?}",
            verdict.remarks
        );
    }

    #[test]
    fn one_look_at_a_roomy_host_is_still_unknown() {
        let verdict = one_look(80_429, 40_000, 60_000, 0);
        assert_eq!(verdict.level, Level::Unknown);
        assert!(!verdict.headline.contains("does not look"));
    }

    #[test]
    fn without_a_view_of_what_moves_calm_levels_are_not_called_enough() {
        let mut timeline = Timeline::default();
        for t in 0..20 {
            let mut sample = Sample::at(Span::from_secs(t));
            sample.host.set(MEM_TOTAL, Bytes::from_gib(8));
            timeline.push(&sample).unwrap();
        }
        let facts = Facts::default();
        let cx = Evidence::new(&timeline, &facts);
        assert_eq!(Verdict::of(&cx, &[], &MOVEMENT).level, Level::Unknown);
        assert_eq!(Verdict::of(&cx, &[], &["swap-thrash"]).level, Level::Ok);
    }

    #[test]
    fn stalls_that_no_finding_explains_are_not_called_enough() {
        let mut timeline = Timeline::default();
        for t in 0..30 {
            let mut sample = Sample::at(Span::from_secs(t));
            sample.host.set(MEM_TOTAL, Bytes::from_gib(8));
            sample
                .host
                .set(PSI_MEMORY_SOME, units::Micros::new(t * 900_000));
            timeline.push(&sample).unwrap();
        }
        let facts = Facts::default();
        let verdict = Verdict::of(&Evidence::new(&timeline, &facts), &[], &[]);
        assert_eq!(verdict.level, Level::Unknown);
        assert!(
            verdict.headline.contains("90 % of the time"),
            "{}",
            verdict.headline
        );
    }

    #[test]
    fn a_kernel_report_is_an_event_and_no_look_at_levels() {
        let mut sample = Sample::at(Span::ZERO);
        sample.host.set(MEM_TOTAL, Bytes::from_gib(8));
        let mut timeline = Timeline::default();
        timeline.push(&sample).unwrap();
        let crate::oom::testing::Report(report) = crate::oom::testing::Report::of_a_host();
        timeline.report(report);
        let facts = Facts::default();
        let verdict = Verdict::of(&Evidence::new(&timeline, &facts), &[], &[]);
        assert!(verdict.headline.contains("doxygen"), "{}", verdict.headline);
        assert!(verdict.remarks.is_empty(), "{:?}", verdict.remarks);
    }

    #[test]
    fn one_look_of_an_old_kernel_names_its_upper_bound() {
        let mut sample = Sample::at(Span::ZERO);
        for (signal, mib) in [(MEM_TOTAL, 3994), (MEM_FREE, 378), (MEM_CACHED, 2274)] {
            sample.host.set(signal, Bytes::from_mib(mib));
        }
        let mut timeline = Timeline::default();
        timeline.push(&sample).unwrap();
        let facts = Facts::default();
        let verdict = Verdict::of(&Evidence::new(&timeline, &facts), &[], &[]);
        assert!(
            verdict.remarks[1].starts_with("available: not measured."),
            "{:?}",
            verdict.remarks
        );
    }

    #[test]
    fn swap_that_was_watched_is_worth_a_word_without_the_size_of_ram() {
        let mut timeline = Timeline::default();
        for t in 0..20 {
            timeline.push(&Sample::at(Span::from_secs(t))).unwrap();
        }
        let facts = Facts::default();
        let cx = Evidence::new(&timeline, &facts);
        let says = |blind: &[&str]| Verdict::of(&cx, &[], blind).headline;
        assert!(says(&[]).starts_with("Swap did not move"));
        assert!(says(&["swap-thrash"]).starts_with("Nothing can be said"));
    }

    #[test]
    fn without_meminfo_nothing_can_be_said() {
        let (timeline, facts) = (Timeline::default(), Facts::default());
        let verdict = Verdict::of(&Evidence::new(&timeline, &facts), &[], &[]);
        assert_eq!(verdict.level, Level::Unknown);
        assert!(verdict.headline.contains("no /proc/meminfo"));
    }
}
