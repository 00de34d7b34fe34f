//! The headline if no finding gives one: whether the absence of findings means that memory is enough.

use timeline::Entity;
use timeline::signals::{MEM_AVAILABLE, OOM_KILLS, PSI_MEMORY_FULL, PSI_MEMORY_SOME};
use units::{Count, Quantity, Ratio, Span};

use super::{LONG_RECORDING, Level, single_sample};
use crate::evidence::Evidence;
use crate::finding::Finding;
use crate::judge::without_memtotal;
use crate::measures::own_limit::OwnLimit;
use crate::measures::pressure::PressureWindow;
use crate::measures::psi_average::PressureAverage;
use crate::measures::readings;
use crate::rule::Class;
use crate::rules;

/// Returns level and headline if no finding is severe and the source is not a single kernel report.
pub(super) fn level_and_headline(
    cx: &Evidence<'_>,
    watched: Span,
    limit: Option<&OwnLimit>,
    findings: &mut [Finding],
) -> (Level, String) {
    if let Some(stalls) = stalls_before(cx) {
        return (Level::Warning, stalls);
    }
    if cx.ram().is_err() {
        if let Some(full) = full_container(limit) {
            return full;
        }
        return (Level::Unknown, without_ram(cx, findings));
    }
    if cx.is_single_sample() {
        return (Level::Unknown, single_sample::headline(cx));
    }
    if let Some(title) = unexplained(findings) {
        return (Level::Unknown, title);
    }
    if lacks_refaults(cx) {
        return (Level::Unknown, without_movement(cx));
    }
    not_enough(cx, watched, limit).unwrap_or_else(|| (Level::Ok, enough(cx, limit)))
}

/// The headline of a series that shows levels only.
fn without_movement(cx: &Evidence<'_>) -> String {
    let lacks = "it has neither swap-ins nor refaults (evicted pages read again)";
    match fall(cx) {
        Some(fall) => format!(
            "{fall} Whether it goes on, and whether memory is enough, this source cannot show: \
             {lacks}."
        ),
        None => format!(
            "The levels are normal, but this source cannot show whether memory is enough: {lacks}."
        ),
    }
}

/// A fall of available memory by a tenth of RAM or more to a quarter or less.
fn fall(cx: &Evidence<'_>) -> Option<String> {
    const NOTABLE: Ratio = Ratio::from_percent(10.0);
    let available = cx.gauge(MEM_AVAILABLE).ok()?;
    let (first, last) = (available.at(0)?, available.last()?);
    let ram = cx.ram().ok()?;
    let is_notable = first.saturating_sub(last) >= ram.share(NOTABLE);
    let is_low = last <= ram.share(readings::AVAILABLE_ROOMY_SHARE);
    (is_notable && is_low).then(|| {
        let share = cx.of_ram(last).unwrap_or_default();
        format!(
            "Available memory fell from {first} to {last} ({share} of RAM) in {}.",
            cx.recorded()
        )
    })
}

/// Whether the source lacks swap-ins and refaults. Without them a shortage does not show, and "enough" would be a
/// guess.
fn lacks_refaults(cx: &Evidence<'_>) -> bool {
    readings::swapped_in().bytes().track(cx).is_err()
        && readings::refaults_file().bytes().track(cx).is_err()
}

/// Returns the title of a finding about stalls without a known cause.
fn unexplained(findings: &mut [Finding]) -> Option<String> {
    let is_unexplained = |finding: &&mut Finding| {
        rules::by_id(finding.id).is_some_and(|rule| rule.class == Class::Unexplained)
    };
    findings.iter_mut().find(is_unexplained).map(Finding::lead)
}

/// A shorter source without page-cache refaults proves nothing. Users are asked for 10 s.
const ENOUGH_WITHOUT_REFAULTS: Span = Span::from_secs(9);

/// Returns a sentence about stalls in the kernel's pressure averages, of the host, else of the cgroup with the most, if
/// the samples measure no stalls themselves. The cause is unknown, so the level is a warning at most.
fn stalls_before(cx: &Evidence<'_>) -> Option<String> {
    let why = "and nothing in this source shows why";
    if let Some(average) = PressureAverage::for_memory(cx).filter(PressureAverage::matters) {
        return Some(format!("{}, {why}.", average.clause("")));
    }
    let (cgroup, average) = cx
        .timeline
        .entities(Entity::Cgroup)
        .filter_map(|cgroup| Some((cgroup, PressureAverage::for_memory_in(cx, cgroup)?)))
        .filter(|(_, average)| average.matters())
        .max_by(|(_, a), (_, b)| a.some.get().total_cmp(&b.some.get()))?;
    let subject = format!(" of the cgroup {}", cgroup.key);
    Some(format!("{}, {why}.", average.clause(&subject)))
}

/// Returns the headline for rows of vmstat or slabtop alone: a partial answer, but not whether memory is enough.
fn without_ram(cx: &Evidence<'_>, findings: &mut [Finding]) -> String {
    const NOT_ENOUGH: &str = "the source has no MemTotal (/proc/meminfo)";
    let mut sentences: Vec<String> = findings.first_mut().map(Finding::lead).into_iter().collect();
    if sentences.is_empty() {
        if !cx.is_single_sample() && cx.swapped_in().is_ok() {
            sentences.push(format!("No sustained swapping in {}.", cx.recorded()));
        }
        sentences.extend(without_memtotal::sentences(cx));
    }
    sentences.push(if cx.timeline.is_empty() {
        "No answer: the source has no reading of a host's memory.".to_owned()
    } else {
        format!("Whether memory is enough is unknown: {NOT_ENOUGH}.")
    });
    sentences.join(" ")
}

/// Returns what contradicts "enough" without a finding: kills without a known limit, a full container, a source too
/// short.
fn not_enough(
    cx: &Evidence<'_>,
    watched: Span,
    limit: Option<&OwnLimit>,
) -> Option<(Level, String)> {
    let killed = cx.increase(OOM_KILLS).unwrap_or(0.0);
    if killed >= 1.0 {
        let killed = Count::from_f64(killed);
        return Some((
            Level::Warning,
            format!(
                "The kernel killed processes for lack of memory ({killed}). This source does not \
                 show which limit was hit; the kernel log does."
            ),
        ));
    }
    if let Some(full) = full_container(limit) {
        return Some(full);
    }
    if watched >= LONG_RECORDING {
        return None;
    }
    if !cx.is_too_short() && cx.refaults_file().is_err() && cx.recorded() < ENOUGH_WITHOUT_REFAULTS
    {
        return Some((
            Level::Unknown,
            format!(
                "The levels are normal, but {} without page-cache refaults is too short: watch for \
                 10 s.",
                cx.recorded()
            ),
        ));
    }
    cx.is_too_short().then(|| {
        (
            Level::Unknown,
            format!(
                "The levels are normal, but {} is too short to see waits: watch for 10 s.",
                cx.recorded()
            ),
        )
    })
}

/// Returns the warning of a container that is nearly at its limit.
fn full_container(limit: Option<&OwnLimit>) -> Option<(Level, String)> {
    let full = limit.filter(|limit| limit.is_full())?;
    let headline = format!(
        "This container is almost out of memory: {} of its limit of {} used, little of it page \
         cache.",
        full.current, full.max
    );
    Some((Level::Warning, headline))
}

fn enough(cx: &Evidence<'_>, limit: Option<&OwnLimit>) -> String {
    let within = limit.map_or_else(String::new, |limit| {
        format!(" within this container's limit of {}", limit.max)
    });
    format!("Memory is enough{within}{}.", waits_and_refaults(cx))
}

/// Returns whether tasks waited, and which of waits and refaults the source does not measure.
fn waits_and_refaults(cx: &Evidence<'_>) -> String {
    let waits = if cx.stall(PSI_MEMORY_SOME).is_ok() {
        Some(longest_wait(cx).unwrap_or_else(|| ", and nothing waits for it".to_owned()))
    } else {
        PressureAverage::for_memory(cx)
            .map(|average| format!(", and tasks hardly waited for it in the {}", average.period))
    };
    match (waits, cx.refaults_file().is_ok()) {
        (Some(waits), true) => waits,
        (Some(waits), false) => {
            format!("{waits}; refaults were not measured")
        }
        (None, true) => ", as far as measured: the source has no memory pressure (PSI)".to_owned(),
        (None, false) => {
            ", as far as measured: the source has neither memory pressure (PSI) nor page-cache \
             refaults"
                .to_owned()
        }
    }
}

/// Returns the longest wait of tasks that no rule reports, if it is long enough for users to notice.
fn longest_wait(cx: &Evidence<'_>) -> Option<String> {
    /// In seconds. A shorter wait is not noticed: an engineering choice.
    const NOTICED: f64 = 1.0;
    let some = cx.stall(PSI_MEMORY_SOME).ok()?;
    let (burst, waited) = some
        .at_least(PressureWindow::MEMORY)
        .runs()
        .into_iter()
        .map(|burst| (burst, some.integral_in(&burst)))
        .max_by(|(_, a), (_, b)| a.total_cmp(b))
        .filter(|(_, waited)| *waited >= NOTICED)?;
    let full = cx
        .stall(PSI_MEMORY_FULL)
        .ok()
        .map(|full| full.integral_in(&burst))
        .filter(|full| *full >= NOTICED);
    let (who, waited) = match full {
        Some(full) => ("all tasks stalled", full),
        None => ("tasks waited", waited),
    };
    let waited = Span::from_secs_f64(waited);
    let within = if waited < burst.duration() {
        format!(" within {}", burst.duration())
    } else {
        String::new()
    };
    Some(format!(", and nothing waited for it for long: at worst {who} for {waited}{within}"))
}
