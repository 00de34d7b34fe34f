//! What differs between two profiles: of the good host and the bad one, of before and after.
//!
//! Shares alone mislead: where reclaim takes CPU time away, the share of useful work falls although a request costs what it cost. So CPUs
//! are compared too, where both profiles know how long they took; a busier host is then not a different one.

use crate::model::{ProfileDifference, ProfileReport, ReasonDifference, ReasonRow};
use crate::reason::Reason;
use crate::words;

/// A difference is clear beyond three standard errors: with 39 reasons one in ten pairs of equal profiles has one by chance.
pub(crate) const CLEAR_Z: f64 = 3.0;
/// Smaller differences of shares are not worth a line.
pub(crate) const CLEAR_POINTS: f64 = 0.01;
/// Smaller differences of waiting tasks are not worth a line.
pub(crate) const CLEAR_TASKS: f64 = 0.05;

impl ProfileReport {
    /// Adds what differs from a base.
    pub fn compare_with(&mut self, base: &Self) {
        let reasons = Reason::all().filter_map(|reason| difference(reason, base, self));
        let mut reasons: Vec<ReasonDifference> = reasons.collect();
        reasons.sort_by(|one, other| size(other).total_cmp(&size(one)));
        self.difference = Some(ProfileDifference {
            base: base.origin.files.clone(),
            base_samples: base.cpu.as_ref().and_then(|cpu| cpu.samples),
            base_busy_cpus: busy_cpus(base),
            busy_cpus: busy_cpus(self),
            reasons,
        });
        self.headline = words::difference_headline(self);
    }
}

fn busy_cpus(report: &ProfileReport) -> Option<f64> {
    let all: Option<Vec<f64>> = report.reasons.iter().map(|row| row.cpus).collect();
    all.filter(|all| !all.is_empty()).map(|all| all.iter().sum())
}

/// The larger of the differences of shares and of waiting tasks.
fn size(one: &ReasonDifference) -> f64 {
    let gap = |before: Option<f64>, after: Option<f64>| {
        before.zip(after).map_or(0.0, |(before, after)| (after - before).abs())
    };
    gap(one.base_share, one.share).max(gap(one.base_stalled_tasks, one.stalled_tasks))
}

/// A measure of a row; a reason that was not seen is zero where its profile measured it.
fn measure(
    report: &ProfileReport,
    reason: Reason,
    of: impl Fn(&ReasonRow) -> Option<f64>,
    is_measured: bool,
) -> Option<f64> {
    let row = report.reasons.iter().find(|row| row.reason == reason);
    is_measured.then(|| row.and_then(of).unwrap_or(0.0))
}

fn difference(
    reason: Reason,
    base: &ProfileReport,
    this: &ProfileReport,
) -> Option<ReasonDifference> {
    let share =
        |report: &ProfileReport| measure(report, reason, |row| row.share, report.cpu.is_some());
    let cpus = |report: &ProfileReport| {
        measure(report, reason, |row| row.cpus, busy_cpus(report).is_some())
    };
    let stalled = |report: &ProfileReport| {
        let is_measured = report.blocked.as_ref().is_some_and(|blocked| blocked.tasks.is_some());
        measure(report, reason, |row| row.stalled_tasks, is_measured)
    };
    let samples = |report: &ProfileReport| report.cpu.as_ref().and_then(|cpu| cpu.samples);
    let shares = share(base).zip(share(this));
    let z = shares.and_then(|(before, after)| {
        let (few, many) = (samples(base)?, samples(this)?);
        let pooled = (before * few + after * many) / (few + many);
        let error = (pooled * (1.0 - pooled) * (1.0 / few + 1.0 / many)).sqrt();
        (error > 0.0).then_some((after - before) / error)
    });
    let is_clear = shares.is_some_and(|(before, after)| {
        (after - before).abs() > CLEAR_POINTS && z.is_none_or(|z| z.abs() > CLEAR_Z)
    });
    let waits = stalled(base).zip(stalled(this));
    let is_wait = waits.is_some_and(|(before, after)| (after - before).abs() > CLEAR_TASKS);
    (is_clear || is_wait).then(|| ReasonDifference {
        reason,
        label: reason.label().to_owned(),
        group: reason.group(),
        base_share: share(base),
        share: share(this),
        base_cpus: cpus(base),
        cpus: cpus(this),
        base_stalled_tasks: stalled(base),
        stalled_tasks: stalled(this),
        z,
    })
}
