//! The verdict: one sentence for someone woken at two, and the level that becomes the exit code.

use timeline::Entity;
use timeline::signals::{
    MEM_AVAILABLE, MEM_FREE, MEM_TOTAL, OOM_KILLS, PSI_MEMORY_FULL, PSI_MEMORY_SOME,
};
use units::{Bytes, Quantity, Ratio, Span};

use crate::evidence::Evidence;
use crate::evidence::rounding;
use crate::finding::{Finding, Severity};
use crate::judge::without_memtotal;
use crate::measures::available;
use crate::measures::disk_wait;
use crate::measures::floor::Floor;
use crate::measures::own_limit::OwnLimit;
use crate::measures::pressure::PressureWindow;
use crate::measures::psi_average::PressureAverage;
use crate::measures::readings;
use crate::oom;
use crate::rule::Class;
use crate::rules;

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
    /// How it stands at the end of what was watched, where that is better: what is wrong ended more than a minute
    /// before it.
    pub now: Option<Level>,
}

/// What ended longer ago than this is over: an engineering choice, in which somebody who is called can look.
pub const RECENT: Span = Span::from_mins(15);

/// Want of memory shows in what comes back after eviction. Where nothing tells that, "enough" would be a guess.
fn is_blind(cx: &Evidence<'_>) -> bool {
    readings::swapped_in().bytes().track(cx).is_err()
        && readings::refaults_file().bytes().track(cx).is_err()
}

/// What is said of stalls that no rule explains.
fn unexplained(findings: &[Finding]) -> Option<String> {
    let is_meant = |finding: &&Finding| {
        rules::by_id(finding.id).is_some_and(|rule| rule.class == Class::Unexplained)
    };
    findings
        .iter()
        .find(is_meant)
        .map(|finding| finding.title.clone())
}

/// What a person is asked to look for; a shorter look that does not see whether pages come back proves nothing.
const ENOUGH_BLIND: Span = Span::from_secs(9);

/// A shorter look shows no slow growth: a leak that fills a host in a week adds 0.1 % of RAM in this time.
const LONG_LOOK: Span = Span::from_mins(10);

impl Verdict {
    /// What the findings come to.
    pub(crate) fn of(cx: &Evidence<'_>, findings: &[Finding]) -> Self {
        Self::of_long(cx, cx.look(), findings)
    }

    /// The same where the findings rest on more time than the look: `known` with a recording of what was before it.
    pub(crate) fn of_long(cx: &Evidence<'_>, known: Span, findings: &[Finding]) -> Self {
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
            _ if stood_still(cx).is_some() => {
                (Level::Warning, stood_still(cx).unwrap_or_default())
            }
            _ if cx.ram().is_err() => (Level::Unknown, without_ram(cx, findings)),
            _ if cx.is_single_look() => (Level::Unknown, single_look(cx)),
            _ if unexplained(findings).is_some() => {
                (Level::Unknown, unexplained(findings).unwrap_or_default())
            }
            _ if is_blind(cx) => (
                Level::Unknown,
                "The levels alarm nobody, but whether memory is enough cannot be said: nothing in this source tells whether pages come back after eviction."
                    .to_owned(),
            ),
            _ => unnamed(cx, known, limit.as_ref())
                .unwrap_or_else(|| (Level::Ok, all_is_well(cx, limit.as_ref()))),
        };
        let mut remarks = whose_memory(cx, limit.as_ref());
        remarks.extend(two_machines(cx.timeline.gauge(MEM_TOTAL).iter().flat_map(
            |track| {
                track
                    .values()
                    .iter()
                    .flatten()
                    .map(|b| Bytes::from_f64(*b))
                    .collect::<Vec<_>>()
            },
        )));
        if level != Level::Critical {
            remarks.extend(disk_wait::tell(cx).map(|waits| format!("{waits}.")));
        }
        // A kernel report tells of an event: what its levels mean for the next hour is not the question.
        if is_event {
            return Self {
                level,
                headline,
                remarks,
                now: None,
            };
        }
        if cx.is_single_look() {
            remarks.extend(what_one_look_says(cx));
        } else if level == Level::Ok && known < LONG_LOOK {
            remarks.push(format!(
                "In {} slow growth and leaks do not show, nor what happens at another hour.",
                cx.look()
            ));
        }
        Self {
            level,
            headline,
            remarks,
            now: now(cx, level, findings),
        }
    }
}

impl Verdict {
    /// The same where only so much of the source was read: it cannot say that memory is enough.
    pub(crate) fn of_a_beginning(mut self, read: Span) -> Self {
        if self.level == Level::Ok {
            self.level = Level::Unknown;
            self.headline = format!(
                "Nothing was found in the first {read}; what happened after that was not read."
            );
        } else {
            self.remarks.push(format!(
                "This is of the first {read}; what happened after that was not read."
            ));
        }
        // How it stands at the end is not known.
        self.now = None;
        self
    }
}

/// What ended longer ago than this before the end of what was watched is over.
const OVER: Span = Span::from_mins(1);

/// How it stands at the end, where that is better than at the worst time.
fn now(cx: &Evidence<'_>, level: Level, findings: &[Finding]) -> Option<Level> {
    if !matches!(level, Level::Warning | Level::Critical) {
        return None;
    }
    let end = *cx.timeline.times().last()?;
    let is_now = |finding: &&Finding| {
        let occasions = finding.occasions.iter().map(|one| one.stretch);
        let last = occasions.chain(finding.when).map(|when| when.to).max();
        let ago = match finding.before {
            Some(before) => Some(before.plus(end)),
            None => last.map(|last| end.saturating_sub(last)),
        };
        ago.is_none_or(|ago| ago <= OVER)
    };
    let worst = findings
        .iter()
        .filter(is_now)
        .map(|finding| finding.severity)
        .max();
    let now = match worst {
        Some(Severity::Critical) => Level::Critical,
        Some(Severity::Warning) => Level::Warning,
        _ => Level::Ok,
    };
    // A verdict that rests on no finding is about all that was watched.
    let has_finding = findings
        .iter()
        .any(|finding| finding.severity > Severity::Info);
    (has_finding && now != level).then_some(now)
}

/// What the kernel's averages say of the minutes before the last look, where the looks themselves measure no stalls: of the
/// host, else of the group that waited most. It does not say why, so it is no more than a warning.
fn stood_still(cx: &Evidence<'_>) -> Option<String> {
    let why = "and nothing in this source says why";
    if let Some(average) = PressureAverage::for_memory(cx).filter(PressureAverage::matters) {
        return Some(format!("{}, {why}.", average.clause("")));
    }
    let (group, average) = cx
        .timeline
        .entities(Entity::Cgroup)
        .filter_map(|group| Some((group, PressureAverage::for_memory_in(cx, group)?)))
        .filter(|(_, average)| average.matters())
        .max_by(|(_, a), (_, b)| a.some.get().total_cmp(&b.some.get()))?;
    let whose = format!(" of control group {}", group.key);
    Some(format!("{}, {why}.", average.clause(&whose)))
}

/// Rows of vmstat, or slabtop alone: something may be said, but not whether memory is enough.
fn without_ram(cx: &Evidence<'_>, findings: &[Finding]) -> String {
    const NOT_ENOUGH: &str = "the source has no /proc/meminfo with a MemTotal";
    let mut says: Vec<String> = findings
        .first()
        .map(|top| top.title.clone())
        .into_iter()
        .collect();
    if says.is_empty() {
        if !cx.is_single_look() && cx.swapped_in().is_ok() {
            says.push(format!(
                "Swap did not move back and forth for long in {}.",
                cx.look()
            ));
        }
        says.extend(without_memtotal::tell(cx));
    }
    says.push(if cx.timeline.is_empty() {
        format!("Nothing can be said: {NOT_ENOUGH}.")
    } else {
        format!("Whether memory is enough cannot be said: {NOT_ENOUGH}.")
    });
    says.join(" ")
}

/// Looks that say different sizes of RAM are hardly of one machine; `sizes` are those of all looks.
pub(crate) fn two_machines(sizes: impl Iterator<Item = Bytes>) -> Option<String> {
    /// An engineering choice: `free -g` and what a report counts as RAM differ by less, balloons mostly too.
    const FACTOR: f64 = 1.25;
    let sizes: Vec<Bytes> = sizes.filter(|size| *size > Bytes::ZERO).collect();
    let (least, most) = (sizes.iter().min()?, sizes.iter().max()?);
    (most.as_f64() > least.as_f64() * FACTOR).then(|| {
        format!(
            "MemTotal is {least} in one look and {most} in another: two machines, it seems, or memory was added or taken away between."
        )
    })
}

/// What speaks against "enough" although no rule named it: kills and stalls whose cause the source does not show, a
/// container that is full, a look too short to see anything sustained.
fn unnamed(cx: &Evidence<'_>, known: Span, limit: Option<&OwnLimit>) -> Option<(Level, String)> {
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
    // A recording that reaches to the look saw what a short one cannot.
    if known >= LONG_LOOK {
        return None;
    }
    if !cx.is_too_short() && cx.refaults_file().is_err() && cx.look() < ENOUGH_BLIND {
        return Some((
            Level::Unknown,
            format!(
                "The levels alarm nobody, but {} without a measure of page-cache refaults is too short: look for 10 s.",
                cx.look()
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
    format!("Memory is enough{within}{}.", as_far_as_measured(cx))
}

/// Without pressure files nothing says that nobody waits, and without refaults nothing that no page is missed.
fn as_far_as_measured(cx: &Evidence<'_>) -> String {
    let waits = if cx.stall(PSI_MEMORY_SOME).is_ok() {
        Some(waited_at_most(cx).unwrap_or_else(|| ", and nothing waits for it".to_owned()))
    } else {
        PressureAverage::for_memory(cx).map(|average| {
            format!(
                ", and hardly anything waited for it in the {}",
                average.period
            )
        })
    };
    match (waits, cx.refaults_file().is_ok()) {
        (Some(waits), true) => waits,
        (Some(waits), false) => {
            format!("{waits}; whether pages come back after eviction was not measured")
        }
        (None, true) => ", as far as can be told without memory pressure (PSI)".to_owned(),
        (None, false) => {
            ", as far as can be told without memory pressure (PSI) and page-cache refaults"
                .to_owned()
        }
    }
}

/// The longest that tasks waited at a time, where that is worth a word although no rule has one for it.
fn waited_at_most(cx: &Evidence<'_>) -> Option<String> {
    /// Less than this nobody notices; an engineering choice.
    const NOTICED: f64 = 1.0;
    let some = cx.stall(PSI_MEMORY_SOME).ok()?;
    let waits = some.at_least(PressureWindow::MEMORY);
    let bursts = waits.runs();
    let (burst, waited) = bursts
        .into_iter()
        .map(|burst| (burst, some.integral_in(&burst)))
        .max_by(|(_, a), (_, b)| a.total_cmp(b))
        .filter(|(_, waited)| *waited >= NOTICED)?;
    let full = cx.stall(PSI_MEMORY_FULL).ok();
    let full = full.map(|full| full.integral_in(&burst));
    let (who, waited) = match full.filter(|full| *full >= NOTICED) {
        Some(full) => ("all tasks stood still", full),
        None => ("tasks waited", waited),
    };
    let waited = Span::from_secs_f64(waited);
    let within = match waited < burst.duration() {
        true => format!(" within {}", burst.duration()),
        false => String::new(),
    };
    Some(format!(
        ", and nothing waited for it for long: at worst {who} for {waited}{within}"
    ))
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
            let (low, high) = Floor::expected(cx, total);
            (low, high, "predicted for an x86-64 host of this size")
        }
    }
}

/// `None` where free memory is rounded so that it may lie on either side.
fn on_floor(cx: &Evidence<'_>, free: Bytes, high: Bytes, total: Bytes) -> Option<bool> {
    let edge = Floor::rests_below(high, total);
    let (least, most) = rounding::bounds(cx, MEM_FREE, free).unwrap_or((free, free));
    ((least <= edge) == (most <= edge)).then_some(free <= edge)
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
        let (available, _) = available::available_at_most(cx).ok()?;
        let available = available.last()?.ratio_of(total)?;
        (on_floor(cx, free, high, total)? && (available < LITTLE || swap_used(cx).is_some()))
            .then_some(())
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
        let shown = rounding::shown(cx, MEM_FREE, free);
        says.push(match on_floor(cx, free, high, total) {
            Some(true) => format!("free: {shown} is not room. It is about the floor at which the kernel holds it ({low} to {high}, {how})."),
            Some(false) => format!("free: {shown}, above the floor at which the kernel would hold it ({low} to {high}, {how})."),
            None => format!("free: {shown}; whether that is the floor at which the kernel holds it ({low} to {high}, {how}) needs finer figures."),
        });
    }
    if let Ok((track, told)) = available::available_at_most(cx)
        && let Some(available) = track.last()
    {
        let share = available.ratio_of(total).unwrap_or_default();
        let available = rounding::shown(cx, MEM_AVAILABLE, available);
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
    use crate::rules::testing::Case;
    use timeline::signals::{
        CGROUP_PSI_MEMORY_SOME_AVG60, MEM_CACHED, NODE_TOTAL, PSI_MEMORY_SOME_AVG60,
        PSI_MEMORY_SOME_AVG300, PSWPIN, REFAULT_FILE, SWAP_FREE, SWAP_TOTAL,
    };
    use timeline::{Facts, Sample, Timeline};
    use units::Micros;

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
        Verdict::of(&Evidence::new(&timeline, &facts), &[])
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
        let watched = || Case::over(20).gauge(MEM_TOTAL, Bytes::from_gib(8));
        assert_eq!(unjudged(&watched()).level, Level::Unknown);
        let seeing = watched().counter(timeline::signals::REFAULT_FILE, 0);
        assert_eq!(unjudged(&seeing).level, Level::Ok);
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
        let verdict = crate::diagnose(&timeline, &facts).verdict;
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
        timeline.report(report, None);
        let facts = Facts::default();
        let verdict = Verdict::of(&Evidence::new(&timeline, &facts), &[]);
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
        let verdict = Verdict::of(&Evidence::new(&timeline, &facts), &[]);
        assert!(
            verdict.remarks[1].starts_with("available: not measured."),
            "{:?}",
            verdict.remarks
        );
    }

    #[test]
    fn swap_that_was_watched_is_worth_a_word_without_the_size_of_ram() {
        let blind = unjudged(&Case::over(20)).headline;
        assert!(blind.starts_with("Whether memory is enough"), "{blind}");
        let quiet = Case::over(20).counter(timeline::signals::PSWPIN, 0);
        let quiet = unjudged(&quiet).headline;
        assert!(quiet.starts_with("Swap did not move"), "{quiet}");
    }

    /// The verdict on a case of which no rule says anything.
    fn unjudged(case: &Case) -> Verdict {
        case.with(|cx| Verdict::of(cx, &[]))
    }

    #[test]
    fn a_wait_of_seconds_is_not_nothing_though_no_rule_has_a_word_for_it() {
        let says = |peak: u64| {
            let mut waited = vec![0; 3600];
            waited[1800..1804].fill(peak);
            let case = Case::over(3600)
                .gauge(MEM_TOTAL, Bytes::from_gib(8))
                .counter(PSWPIN, 0)
                .counter(REFAULT_FILE, 0)
                .counter_steps(PSI_MEMORY_SOME, &waited)
                .counter_steps(PSI_MEMORY_FULL, &waited);
            unjudged(&case)
        };
        let (calm, burst) = (says(20_000), says(900_000));
        assert_eq!((calm.level, burst.level), (Level::Ok, Level::Ok));
        assert_eq!(calm.headline, "Memory is enough, and nothing waits for it.");
        assert_eq!(
            burst.headline,
            "Memory is enough, and nothing waited for it for long: at worst all tasks stood still for 3.6 s within 4 s."
        );
    }

    #[test]
    fn averages_speak_where_no_stall_was_measured() {
        let waited = |case: Case| case.gauge(PSI_MEMORY_SOME_AVG300, Micros::new(699_100));
        for case in [
            Case::once(),
            Case::over(30),
            Case::over(30).gauge(MEM_TOTAL, Bytes::from_gib(8)),
        ] {
            let verdict = unjudged(&waited(case));
            assert_eq!(verdict.level, Level::Warning);
            assert!(
                verdict.headline.contains("70 % of the last 5 minutes"),
                "{}",
                verdict.headline
            );
        }
        let group = Case::once().gauge_of(
            Entity::Cgroup,
            "/app",
            CGROUP_PSI_MEMORY_SOME_AVG60,
            Micros::new(850_000),
        );
        assert!(unjudged(&group).headline.contains("control group /app"));
    }

    #[test]
    fn nothing_waits_is_said_of_measured_stalls_only() {
        let calm = || {
            Case::over(30)
                .gauge(MEM_TOTAL, Bytes::from_gib(8))
                .counter(REFAULT_FILE, 0)
        };
        let headline = |case: Case| unjudged(&case).headline;
        assert!(headline(calm().counter(PSI_MEMORY_SOME, 0)).contains("nothing waits"));
        // A total of one look only makes no share.
        let one = calm().gauge_until_of(Entity::Node, "0", NODE_TOTAL, &[Bytes::ZERO]);
        assert!(headline(one).contains("as far as can be told"));
        let averages = calm().gauge(PSI_MEMORY_SOME_AVG60, Micros::new(0));
        assert!(headline(averages).contains("in the last minute"));
    }

    #[test]
    fn seconds_without_refaults_are_not_enough() {
        let vmstat = |seconds| {
            let ram = Case::over(seconds).gauge(MEM_TOTAL, Bytes::from_gib(8));
            ram.counter(timeline::signals::PSWPIN, 0)
        };
        assert_eq!(unjudged(&vmstat(5)).level, Level::Unknown);
        let verdict = unjudged(&vmstat(10));
        assert_eq!(verdict.level, Level::Ok);
        assert!(
            verdict.headline.contains("refaults"),
            "{}",
            verdict.headline
        );
        assert_eq!(
            unjudged(&vmstat(5).counter(REFAULT_FILE, 0)).level,
            Level::Ok
        );
    }

    #[test]
    fn looks_at_two_machines_are_told() {
        let sizes = |mib: [u64; 2]| two_machines(mib.map(Bytes::from_mib).into_iter());
        assert!(sizes([8000, 24_105]).unwrap().contains("two machines"));
        assert_eq!(sizes([7168, 7957]), None);
    }

    #[test]
    fn rounded_figures_are_told_as_such() {
        let mut sample = Sample::at(Span::ZERO);
        sample.host.set(MEM_TOTAL, Bytes::from_gib(23));
        sample.host.set(MEM_FREE, Bytes::ZERO);
        let mut timeline = Timeline::default();
        timeline.push(&sample).unwrap();
        timeline.note_rounding(MEM_FREE.id(), Bytes::from_gib(1).get());
        let facts = Facts::default();
        let says = Verdict::of(&Evidence::new(&timeline, &facts), &[]).remarks;
        assert!(
            says[0].starts_with("free: less than 1 GiB (rounded)"),
            "{says:?}"
        );
    }

    #[test]
    fn without_meminfo_nothing_can_be_said() {
        let (timeline, facts) = (Timeline::default(), Facts::default());
        let verdict = Verdict::of(&Evidence::new(&timeline, &facts), &[]);
        assert_eq!(verdict.level, Level::Unknown);
        assert!(verdict.headline.contains("no /proc/meminfo"));
    }
}
