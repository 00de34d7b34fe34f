//! The words of an answer, for the terminal, for Markdown and for the page.

use units::{Bytes, Quantity as _, Ratio, Span};

use crate::analysis::{Effect, MetricResult, TrialMetric, TrialVerdict};
use crate::applied::Applied;
use crate::machine::SwapArea;
use crate::model::TrialReport;
use crate::recommend::{ChoiceReason, VariantStanding, slower_by};
use crate::run::{RunOutcome, TrialRun};
use crate::session::ENDING_MAX;
use crate::trial_end::TrialEnd;
use crate::variant::{Variant, VariantSetting};

/// Runs shorter than this show little of what malloc keeps: retention grows for hours.
const SHORT_RUN: Span = Span::from_mins(10);
/// A baseline that grew so much in its last fifth had not reached its size.
const GROWING_MIN: f64 = 1.02;

/// A table of variants: names of columns, and a row for each.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<VariantRow>,
}

/// A row of the table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct VariantRow {
    pub(crate) variant: usize,
    pub(crate) name: String,
    pub(crate) cells: Vec<TableCell>,
    pub(crate) remark: String,
}

/// A cell: a value or a ratio with its interval.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TableCell {
    pub(crate) text: String,
    /// `None` for the baseline's own value.
    pub(crate) verdict: Option<TrialVerdict>,
}

impl TrialVerdict {
    /// As a sign, which [`legend`] explains.
    pub(crate) const fn sign(self) -> &'static str {
        match self {
            Self::Less | Self::LessUnderMargin => "↓",
            Self::More | Self::MoreUnderMargin => "↑",
            Self::Same => "=",
            Self::NoEvidence => "~",
        }
    }

    /// In one or two words.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Less => "less",
            Self::More => "more",
            Self::LessUnderMargin => "less, little",
            Self::MoreUnderMargin => "more, little",
            Self::Same => "same",
            Self::NoEvidence => "~",
        }
    }
}

impl TrialMetric {
    /// Its heading; where operations are counted, figures are for each.
    pub(crate) fn heading(self, has_operations: bool) -> &'static str {
        match (self, has_operations) {
            (Self::Memory, _) => "memory",
            (Self::PeakMemory, _) => "peak memory",
            (Self::EndMemory, _) => "memory at the end",
            (Self::IdleMemory, _) => "memory after idling",
            (Self::Cpu, true) => "CPU time per op",
            (Self::Cpu, false) => "CPU time",
            (Self::Time, true) => "time per op",
            (Self::Time, false) => "time",
            (Self::P50, _) => "latency p50",
            (Self::P95, _) => "latency p95",
            (Self::P99, _) => "latency p99",
            (Self::Faults, true) => "page faults per op",
            (Self::Faults, false) => "page faults",
        }
    }

    /// A value of it.
    pub(crate) fn value(self, value: f64) -> String {
        match self {
            one if one.is_memory() => Bytes::from_f64(value).to_string(),
            Self::Faults => units::Count::from_f64(value).to_string(),
            _ => Span::from_secs_f64(value).to_string(),
        }
    }
}

/// Whether figures are for each operation.
pub(crate) fn has_operations(report: &TrialReport) -> bool {
    report.analysis.measure.is_per_operation
}

/// The table of these metrics.
pub(crate) fn table(report: &TrialReport, metrics: &[TrialMetric]) -> Table {
    let reference = report.analysis.reference;
    let results: Vec<&MetricResult> =
        metrics.iter().filter_map(|metric| report.analysis.metric(*metric)).collect();
    let counts = has_operations(report);
    let rows = report.analysis.variants.iter().enumerate().map(|(variant, state)| VariantRow {
        variant,
        name: state.name.clone(),
        cells: results.iter().map(|result| cell(result, variant, reference)).collect(),
        remark: remark(report, variant),
    });
    Table {
        columns: results.iter().map(|one| one.metric.heading(counts).to_owned()).collect(),
        rows: rows.collect(),
    }
}

fn cell(result: &MetricResult, variant: usize, reference: usize) -> TableCell {
    if variant == reference {
        return TableCell { text: result.metric.value(result.baseline), verdict: None };
    }
    match result.effect(variant) {
        Some(effect) => TableCell { text: ratio(effect), verdict: Some(effect.verdict) },
        None => TableCell { text: "–".to_owned(), verdict: None },
    }
}

/// A ratio with its interval: `0.69 (0.66–0.72)`.
pub fn ratio(effect: &Effect) -> String {
    let [ratio, low, high] = [effect.ratio, effect.low, effect.high].map(short);
    format!("{ratio} ({low}–{high})")
}

/// A ratio with three digits where it is large.
fn short(ratio: Ratio) -> String {
    match ratio.get() {
        small if small < 9.995 => format!("{small:.2}"),
        large if large < 99.5 => format!("{large:.1}"),
        large if large < 10_000.0 => format!("{large:.0}"),
        _ => "> 10,000".to_owned(),
    }
}

/// What the signs of a table mean.
pub(crate) fn legend(report: &TrialReport) -> String {
    let margin = report.plan.goals.margin;
    format!(
        "Ratios to {}, in brackets 95 % intervals that hold together; ↓ less, ↑ more, = the same within {margin}, \
         ~ no evidence of a difference.",
        report.reference()
    )
}

/// Variants that another beats.
pub(crate) fn dominated(report: &TrialReport) -> Vec<String> {
    let name = |variant| report.name(variant);
    let of_variant = |(variant, standing): (usize, &Option<VariantStanding>)| match standing {
        Some(VariantStanding::Dominated { by }) => Some(format!(
            "{} is beaten by {} in memory and speed together.",
            name(variant),
            name(*by)
        )),
        _ => None,
    };
    report.standings.iter().enumerate().filter_map(of_variant).collect()
}

pub(crate) fn is_recommended(report: &TrialReport, variant: usize) -> bool {
    report.recommendation.as_ref().is_some_and(|one| one.variant == variant)
}

fn remark(report: &TrialReport, variant: usize) -> String {
    let Some(state) = report.analysis.variants.get(variant) else {
        return String::new();
    };
    if let Some(out) = &state.out {
        return out.clone();
    }
    let chosen = is_recommended(report, variant);
    let standing = match report.standings.get(variant).copied().flatten() {
        Some(VariantStanding::Front) if chosen => "recommended".to_owned(),
        Some(VariantStanding::Front) => "front".to_owned(),
        Some(VariantStanding::Undecided) if chosen => "recommended".to_owned(),
        Some(VariantStanding::Undecided) => "undecided".to_owned(),
        Some(VariantStanding::Dominated { by }) => {
            format!("dominated by {}", report.name(by))
        }
        None => String::new(),
    };
    if variant != report.analysis.reference {
        return standing;
    }
    match malloc_of(report, 0) {
        Some(malloc) => format!("baseline: {malloc}"),
        None => "baseline".to_owned(),
    }
}

/// The malloc that most processes of a variant used.
fn malloc_of(report: &TrialReport, variant: usize) -> Option<String> {
    let runs = report.runs.iter().filter(|run| run.variant == variant);
    let mut seen = runs.flat_map(|run| &run.processes).filter_map(|one| one.mallocs.first());
    seen.next().cloned()
}

/// The line that matters first.
pub fn headline(report: &TrialReport) -> String {
    let killed = killed(report);
    let name = |variant| report.name(variant);
    let Some(recommendation) = &report.recommendation else {
        let out: Vec<String> = report
            .analysis
            .variants
            .iter()
            .filter_map(|one| Some(format!("{} {}", one.name, one.out.as_ref()?)))
            .collect();
        if let Some(killed) = killed.filter(|_| report.analysis.blocks > 0) {
            return format!("KEEP {}: {killed}", report.reference());
        }
        return if out.is_empty() {
            "UNDECIDED: too few blocks to compare anything.".to_owned()
        } else {
            format!("NOT COMPARED: {}.", out.join("; "))
        };
    };
    let variant = recommendation.variant;
    let effect = |metric: TrialMetric| report.analysis.metric(metric)?.effect(variant).copied();
    let speed = report.analysis.speed().map(|result| result.metric);
    let sentence = match recommendation.reason {
        ChoiceReason::LessMemory => {
            let saved =
                effect(TrialMetric::Memory).map(|one| saved(report, &one)).unwrap_or_default();
            format!(
                "{}: {saved}{}",
                name(variant),
                speed_part(report, speed.and_then(effect), speed)
            )
        }
        ChoiceReason::Faster => {
            let faster = speed.and_then(effect).map(|one| percent_less(one.ratio));
            let what = speed.map_or("time", |speed| speed.heading(has_operations(report)));
            format!(
                "{}: {} less {what}, and no more memory",
                name(variant),
                faster.unwrap_or_default()
            )
        }
        ChoiceReason::FitsBudget => format!(
            "{}: its peak stays within the budget of {}{}",
            name(variant),
            report.plan.goals.memory_budget.unwrap_or_default(),
            speed_part(report, speed.and_then(effect), speed)
        ),
        ChoiceReason::NothingSaves if report.plan.is_about_machine() => {
            format!("KEEP {}: no other is faster or takes less memory", report.reference())
        }
        ChoiceReason::NothingSaves => {
            format!("KEEP {}: no other takes less memory", report.reference())
        }
        ChoiceReason::NothingIsShownToSave if report.plan.is_about_machine() => {
            "UNDECIDED: none is shown to be faster or to take less memory, and some may".to_owned()
        }
        ChoiceReason::NothingIsShownToSave => {
            "UNDECIDED: none is shown to take less memory, and some may".to_owned()
        }
        ChoiceReason::PeaksAreHigher => {
            format!(
                "KEEP {}: what takes less memory in the mean has a higher peak",
                report.reference()
            )
        }
        ChoiceReason::SavingsAreSlower | ChoiceReason::SavingsMayBeSlower => slower(report),
        ChoiceReason::SavingsAreOverBudget => format!(
            "KEEP {}: what takes less memory in the mean is over the budget at its peak",
            report.reference()
        ),
        ChoiceReason::OverBudget => format!(
            "NONE fits: no variant that is fast enough stays within the budget of {} at its peak",
            report.plan.goals.memory_budget.unwrap_or_default()
        ),
    };
    match killed {
        Some(killed) => format!("{killed}. {sentence}"),
        None => sentence,
    }
}

/// What saves most memory, and what it may cost.
fn slower(report: &TrialReport) -> String {
    let memory = report.analysis.metric(TrialMetric::Memory);
    let savers = memory
        .into_iter()
        .flat_map(|one| &one.effects)
        .filter(|one| one.verdict == TrialVerdict::Less);
    let best = savers.min_by(|one, other| one.ratio.get().total_cmp(&other.ratio.get()));
    let Some((best, speed)) = best.zip(report.analysis.speed()) else {
        return String::new();
    };
    let name = report.name(best.variant);
    let (speed, cost) = match slower_by(&report.plan, &report.analysis, best.variant) {
        Some((result, effect)) => (result, Some(effect)),
        None => (speed, speed.effect(best.variant)),
    };
    // A decimal where a rounded figure would look as if it were allowed.
    let percent = |ratio: Ratio| {
        let percent = (ratio.get() - 1.0) * 100.0;
        if percent < 10.0 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
    };
    let what = speed.metric.heading(has_operations(report));
    let is_open = report.recommendation.as_ref().is_some_and(|one| one.reason.is_open());
    let begin =
        if is_open { "UNDECIDED".to_owned() } else { format!("KEEP {}", report.reference()) };
    let cost = cost.map_or_else(String::new, |cost| {
        if is_open {
            format!("may cost up to {} more {what}", percent(cost.high))
        } else {
            format!("costs {} more {what}", percent(cost.ratio))
        }
    });
    let allowed = report.plan.goals.max_slowdown;
    format!(
        "{begin}: {name} takes {} less memory, but {cost} (allowed: {allowed})",
        percent_less(best.ratio)
    )
}

/// Variants that the kernel killed at their limit.
fn killed(report: &TrialReport) -> Option<String> {
    let all: Vec<String> = report
        .analysis
        .variants
        .iter()
        .filter(|one| one.killed > 0)
        .map(|one| format!("{} was killed {} of {}", one.name, one.killed, one.runs))
        .collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn saved(report: &TrialReport, effect: &Effect) -> String {
    let baseline = report.analysis.metric(TrialMetric::Memory).map_or(0.0, |one| one.baseline);
    let bytes = Bytes::from_f64(baseline * (1.0 - effect.ratio.get()));
    format!("{} less memory ({bytes})", percent_less(effect.ratio))
}

fn percent_less(ratio: Ratio) -> String {
    format!("{:.0} %", (1.0 - ratio.get()) * 100.0)
}

fn speed_part(report: &TrialReport, effect: Option<Effect>, metric: Option<TrialMetric>) -> String {
    let margin = report.plan.goals.margin;
    let Some((effect, metric)) = effect.zip(metric) else {
        return String::new();
    };
    let what = metric.heading(has_operations(report));
    let percent = |ratio: Ratio| format!("{:.0} %", (ratio.get() - 1.0) * 100.0);
    match effect.verdict {
        TrialVerdict::Less | TrialVerdict::LessUnderMargin => {
            format!(" and {} less {what}", percent_less(effect.ratio))
        }
        TrialVerdict::More | TrialVerdict::MoreUnderMargin => {
            format!("; {} more {what}", percent(effect.ratio))
        }
        TrialVerdict::Same => format!("; {what} is the same within {margin}"),
        TrialVerdict::NoEvidence => format!("; {what} at most {} more", percent(effect.high)),
    }
}

/// What was run, in a line.
pub(crate) fn what_was_run(report: &TrialReport) -> String {
    let variants = report.plan.variants.len();
    let counted = |count: usize, one, many| units::Count::new(count as u64).named(one, many);
    let runs = counted(report.runs.len(), "run", "runs");
    let blocks = counted(report.analysis.blocks, "block", "blocks");
    let malloc = malloc_of(report, 0).map_or(String::new(), |malloc| format!(" · {malloc}"));
    let control = if report.plan.has_control { ", the baseline twice in each" } else { "" };
    format!(
        "{}{malloc} · {variants} variants × {blocks}{control} · {runs} · {}",
        shortened(&report.plan.command.to_string()),
        place(report)
    )
}

/// The host, or the virtual machine that each run had.
fn place(report: &TrialReport) -> String {
    let Some(machine) = &report.plan.runs.machine else {
        let host = &report.plan.host;
        return format!("{} CPUs, {} of RAM, Linux {}", host.cpus, host.ram, host.kernel);
    };
    let speed =
        machine.disk_speed.map_or_else(String::new, |speed| format!(", disks of {speed}/s"));
    let machines = || report.runs.iter().filter_map(|run| run.machine.as_ref());
    let by = machines().next().map_or_else(String::new, |one| format!(", by {}", one.accelerator));
    let mut kernels: Vec<&str> = machines().map(|one| one.kernel.as_str()).collect();
    kernels.push(&machine.kernel);
    kernels.sort_unstable();
    kernels.dedup();
    format!(
        "a virtual machine for each: {} CPUs, {} of RAM{speed}, Linux {}{by}",
        machine.cpus,
        machine.ram,
        kernels.join(" and ")
    )
}

/// A command of many options by its beginning; the plan has all of it.
fn shortened(command: &str) -> String {
    const CHARACTERS_MAX: usize = 72;
    match command.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", command.get(..end).unwrap_or(command)),
        None => command.to_owned(),
    }
}

/// What a reader must know beside the table, most important first.
pub(crate) fn remarks(report: &TrialReport) -> Vec<String> {
    let mut all = Vec::new();
    all.extend(why_ended(report));
    all.extend(settings_of_names(report));
    all.extend(dominated(report));
    all.extend(no_evidence(report));
    all.extend(uncounted(report));
    all.extend(control(report));
    all.extend(as_good(report));
    all.extend(outside(report));
    all.extend(growing(report));
    all.extend(not_seen(report));
    all.extend(left_over(report));
    all.extend(unread_score(report));
    all.extend(fast_swap(report));
    all.extend(killed_at_end(report));
    all.extend(report.plan.notes.iter().cloned());
    all.extend(recording(report));
    all.extend(left_out(report));
    all
}

/// What the names of variants stand for, where they were given by hand.
fn settings_of_names(report: &TrialReport) -> Vec<String> {
    let of = |one: &Variant| {
        let typed: Vec<String> = one.settings.iter().filter_map(VariantSetting::as_typed).collect();
        let is_named = !one.name.contains('=') && !typed.is_empty() && typed != [one.name.clone()];
        is_named.then(|| format!("{}: {}.", one.name, typed.join(", ")))
    };
    report.plan.variants.iter().filter_map(of).collect()
}

/// How a run is opened, where the host was recorded: the last one, for others times stand in the page and the JSON.
fn recording(report: &TrialReport) -> Option<String> {
    let place = std::path::Path::new(&report.directory).join("recording");
    let run = report.runs.last().filter(|_| place.exists())?;
    let (since, until) = span_of(run)?;
    Some(format!(
        "The last run: memtide report {} --since {since} --until {until}",
        place.display()
    ))
}

/// From a run's start to its end, by the clock.
fn span_of(run: &TrialRun) -> Option<(String, String)> {
    let length = run.curve.last().map_or(1.0, |(at, _)| *at);
    let end = run.begun.checked_add(jiff::SignedDuration::from_secs_f64(length)).ok()?;
    let at = |time: jiff::Timestamp| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    Some((at(run.begun), at(end.checked_add(jiff::SignedDuration::from_secs(1)).ok()?)))
}

/// Variants that were not run, those with one reason together.
fn left_out(report: &TrialReport) -> Vec<String> {
    let mut reasons: Vec<(&str, Option<&str>, Vec<&str>)> = Vec::new();
    for one in &report.plan.left_out {
        let (why, help) = (one.why.as_str(), one.help.as_deref());
        match reasons.iter_mut().find(|known| known.0 == why && known.1 == help) {
            Some((.., names)) => names.push(&one.name),
            None => reasons.push((why, help, vec![&one.name])),
        }
    }
    let line = |(why, help, names): &(&str, Option<&str>, Vec<&str>)| {
        let help = help.map_or_else(String::new, |help| format!(" ({help})"));
        format!("Not run: {why}{help}: {}.", names.join(", "))
    };
    reasons.iter().map(line).collect()
}

fn why_ended(report: &TrialReport) -> Option<String> {
    let most = report.plan.blocks_max();
    match report.end {
        TrialEnd::Interrupted => {
            Some(format!("Interrupted. Go on with: memtide trial --resume {}", report.directory))
        }
        TrialEnd::TimeLimit => Some(format!(
            "The time limit ended it before {most} blocks. Go on with: memtide trial --resume {}",
            report.directory
        )),
        TrialEnd::NothingToCompare => {
            Some("It ended as there was nothing left to compare.".to_owned())
        }
        TrialEnd::Settled | TrialEnd::AllBlocks => None,
    }
}

/// For each deciding metric that has open verdicts: what could be, and how many blocks would show it.
fn no_evidence(report: &TrialReport) -> Vec<String> {
    let margin = report.plan.goals.margin;
    let of_metric = |result: &MetricResult| {
        let open: Vec<&Effect> =
            result.effects.iter().filter(|one| one.verdict == TrialVerdict::NoEvidence).collect();
        let worst = open.iter().max_by_key(|one| one.blocks_to_decide.unwrap_or(usize::MAX))?;
        let more = match worst.blocks_to_decide {
            Some(1) => "about 1 more block would settle it".to_owned(),
            Some(more) => format!("about {more} more blocks would settle it"),
            None => "more than 200 blocks would be needed".to_owned(),
        };
        let percent = |ratio: Ratio| match ratio.get() {
            large if large >= 10.0 => format!("{} times", short(ratio)),
            other => format!("{:+.0} %", (other - 1.0) * 100.0).replace('-', "−"),
        };
        Some(format!(
            "~ no evidence of a difference in {} for {}: {} to {} cannot be excluded; {more} (± {margin}).",
            result.metric.heading(has_operations(report)),
            report.name(worst.variant),
            percent(worst.low),
            percent(worst.high),
        ))
    };
    report
        .analysis
        .metrics
        .iter()
        .filter(|one| is_shown(one.metric))
        .filter_map(of_metric)
        .collect()
}

/// The metrics of the screen.
pub(crate) fn is_shown(metric: TrialMetric) -> bool {
    matches!(metric, TrialMetric::Memory | TrialMetric::Cpu | TrialMetric::Time | TrialMetric::P95)
}

/// Operations that only some variants count.
fn uncounted(report: &TrialReport) -> Option<String> {
    let mut speeds = report.runs.iter().filter_map(|run| run.speed);
    let counts = !has_operations(report) && speeds.any(|speed| speed.operations.is_some());
    counts.then(|| {
        "Only some runs counted their operations: times are for whole runs, which may differ in \
         work."
            .to_owned()
    })
}

fn control(report: &TrialReport) -> Option<String> {
    let results = report.analysis.metrics.iter().filter(|one| is_shown(one.metric));
    let mut has_widened = false;
    let off: Vec<String> = results
        .filter_map(|result| {
            let control = result.control.filter(|control| control.is_off)?;
            has_widened |= control.has_widened;
            let heading = result.metric.heading(false);
            Some(format!(
                "{heading} {} ({}–{})",
                short(control.ratio),
                short(control.low),
                short(control.high)
            ))
        })
        .collect();
    let then = if has_widened {
        "Intervals were widened to what nothing produces"
    } else {
        "All intervals are wider than that"
    };
    (!off.is_empty()).then(|| format!("The baseline against itself: {}. {then}.", off.join(", ")))
}

fn as_good(report: &TrialReport) -> Option<String> {
    let recommendation = report.recommendation.as_ref()?;
    let names: Vec<&str> = recommendation
        .as_good
        .iter()
        .filter_map(|variant| Some(report.analysis.variants.get(*variant)?.name.as_str()))
        .collect();
    (!names.is_empty())
        .then(|| format!("Undecided against the recommended one: {}.", names.join(", ")))
}

fn outside(report: &TrialReport) -> Option<String> {
    let others: Vec<f64> =
        report.runs.iter().filter_map(|run| run.outside_cpus).map(Ratio::get).collect();
    let median = stats::median(&others).filter(|_| report.analysis.blocks > 0)?;
    /// Of a CPU.
    const WORTH_NAMING: f64 = 0.15;
    (median >= WORTH_NAMING).then(|| {
        format!(
            "Other programs used {median:.1} of the {} CPUs of this host, load generators included: a ratio holds for \
             the load that it was measured under.",
            report.plan.host.cpus
        )
    })
}

/// What the length of the runs does not show.
fn growing(report: &TrialReport) -> Option<String> {
    let baseline: Vec<&TrialRun> = report
        .runs
        .iter()
        .filter(|run| {
            run.variant == report.analysis.reference && run.outcome == RunOutcome::Completed
        })
        .collect();
    let walls: Vec<f64> =
        baseline.iter().filter_map(|run| run.speed).map(|speed| speed.wall.as_secs_f64()).collect();
    let wall = Span::from_secs_f64(stats::median(&walls)?);
    let growth: Vec<f64> = baseline
        .iter()
        .filter_map(|run| report.analysis.measure.memory_of(&run.memory?)?.growth)
        .map(Ratio::get)
        .collect();
    let growth = stats::median(&growth).filter(|growth| *growth > GROWING_MIN);
    match growth {
        Some(growth) => Some(format!(
            "A run took {wall}, and the baseline was growing still: by {:.0} % in its last fifth. A longer run \
             may have another winner.",
            (growth - 1.0) * 100.0
        )),
        None if wall < SHORT_RUN && changes_malloc(report) => Some(format!(
            "A run took {wall}; what malloc keeps grows for hours: try longer work before you decide for a server."
        )),
        None => None,
    }
}

fn changes_malloc(report: &TrialReport) -> bool {
    let mut settings = report.plan.variants.iter().flat_map(|one| &one.settings);
    settings.any(|one| {
        matches!(
            one,
            VariantSetting::Malloc(_) | VariantSetting::Arenas(_) | VariantSetting::Tunable { .. }
        )
    })
}

/// Variants of which no run shows that they were applied.
fn not_seen(report: &TrialReport) -> Vec<String> {
    let of_variant = |(variant, name): (usize, &str)| {
        let runs: Vec<&TrialRun> =
            report.runs.iter().filter(|run| run.variant == variant).collect();
        let is_seen = runs.iter().any(|run| run.applied == Applied::Yes);
        let why = runs.iter().find_map(|run| match &run.applied {
            Applied::NotSeen(why) => Some(why),
            Applied::Yes | Applied::No(_) => None,
        });
        why.filter(|_| !is_seen).map(|why| format!("{name} was not seen to be applied: {why}."))
    };
    let names = report.analysis.variants.iter().map(|one| one.name.as_str()).enumerate();
    names.filter_map(of_variant).collect()
}

fn left_over(report: &TrialReport) -> Option<String> {
    let most = report.runs.iter().map(|run| run.left_over).max()?;
    let is_server = report.plan.runs.server.is_some();
    (most > 0 && !is_server).then(|| {
        format!(
            "A run left up to {most} processes behind, which were ended: run a daemon in the foreground, with \
             --ready and --load."
        )
    })
}

/// A load of which no operations are known.
fn unread_score(report: &TrialReport) -> Option<String> {
    let server = report.plan.runs.server.as_ref()?;
    let mut speeds = report.runs.iter().filter_map(|run| run.speed).peekable();
    speeds.peek()?;
    if speeds.any(|speed| speed.operations.is_some()) {
        return None;
    }
    Some(match server.score {
        Some(format) => format!(
            "No operations could be read from the output of the load, which was read as that of {}: times are for \
             whole loads.",
            format.name()
        ),
        None => "The output of the load was not read: --score names its program. Times are for whole loads."
            .to_owned(),
    })
}

/// A disk without a speed is in the memory of this host.
fn fast_swap(report: &TrialReport) -> Option<String> {
    let machine = report.plan.runs.machine.as_ref()?;
    let mut settings = report.plan.variants.iter().flat_map(|one| &one.settings);
    let has_disk = settings.any(|one| matches!(one, VariantSetting::SwapArea(SwapArea::Disk(_))));
    (has_disk && machine.disk_speed.is_none()).then(|| {
        "The swap disk was as fast as this host's memory, in which it lies: --disk-speed makes it as slow as yours."
            .to_owned()
    })
}

fn killed_at_end(report: &TrialReport) -> Option<String> {
    let killed = report.runs.iter().filter(|run| run.is_killed_at_end).count();
    (killed > 0).then(|| {
        format!(
            "{killed} of {} runs did not end within {ENDING_MAX} of SIGTERM, or of their `hold`, and were killed.",
            report.runs.len()
        )
    })
}

/// The class of a verdict on a page.
pub(crate) const fn class(verdict: TrialVerdict) -> &'static str {
    match verdict {
        TrialVerdict::Less => "less",
        TrialVerdict::More => "more",
        TrialVerdict::NoEvidence => "open",
        TrialVerdict::LessUnderMargin | TrialVerdict::MoreUnderMargin | TrialVerdict::Same => {
            "same"
        }
    }
}

/// The cells of a run: block, variant, memory, peak, CPU time, time, CPUs of others, what was wrong or repeated.
pub(crate) fn run_cells(report: &TrialReport, run: &TrialRun) -> [String; 8] {
    let name = report.name(run.variant);
    let name = match run.column {
        1 if report.plan.has_control => format!("{name} (control)"),
        _ => name.to_owned(),
    };
    let absent = || "–".to_owned();
    let bytes = |value: Option<Bytes>| value.map_or_else(absent, |value| value.to_string());
    let span = |value: Option<Span>| value.map_or_else(absent, |value| value.to_string());
    let again = || run.repeated.iter().map(|why| format!("made again: {why}")).collect();
    let remark = run.fault().unwrap_or_else(again);
    [
        (run.block + 1).to_string(),
        name,
        bytes(
            run.memory.and_then(|one| report.analysis.measure.memory_of(&one)).map(|one| one.mean),
        ),
        bytes(run.memory.map(|memory| memory.peak)),
        span(run.speed.and_then(|speed| speed.cpu)),
        span(run.speed.map(|speed| speed.wall)),
        run.outside_cpus.map_or_else(absent, |cpus| format!("{:.1}", cpus.get())),
        remark,
    ]
}
