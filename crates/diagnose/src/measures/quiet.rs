//! Whether memory was enough for a while: no refaults, swap-ins, stalls. A note that something is harmless rests on it;
//! otherwise the note could contradict a finding of that time.

use timeline::{
    Stretch, Track,
    signals::{ALLOCSTALL, PGSCAN_DIRECT, PSI_MEMORY_SOME, PSWPIN, REFAULT_FILE},
};
use units::{Pages, PerSecond, Quantity, Ratio};

use crate::evidence::{Evidence, Missing};
use crate::finding::Finding;
use crate::measures::pressure::PressureWindow;
use crate::measures::psi_average::PressureAverage;
use crate::measures::readings::{ANON_REFAULTS_MIN, refaults_file, swapped_in};
use crate::trigger::{Predicate, all, rate, stall};

/// The measured rates and shares, all of them low.
#[derive(Debug, Clone, Default)]
pub(crate) struct Quiet {
    refaults: Option<PerSecond<Pages>>,
    swapped_in: Option<PerSecond<Pages>>,
    stalled: Option<Ratio>,
}

impl Quiet {
    /// An engineering choice: a labelled capture of files that fit shows 91 in its busiest second, one of thrash
    /// 8,000 and more.
    pub(crate) const REFAULTS: PerSecond<Pages> = PerSecond::new(100.0);
    /// Half of the threshold of swap-thrash.
    const SWAP_IN_PAGES_MAX: PerSecond<Pages> = PerSecond::new(ANON_REFAULTS_MIN.get() / 2.0);

    /// Returns a predicate that holds where everything that is measured is low.
    pub(crate) fn holds() -> Predicate {
        let again = refaults_file().at_most("files read again", Self::REFAULTS);
        let swapped_in = swapped_in().at_most("swapped in", Self::SWAP_IN_PAGES_MAX);
        let stalls = stall(PSI_MEMORY_SOME).at_most("memory stalls", PressureWindow::MEMORY);
        let scanned =
            rate(PGSCAN_DIRECT).at_most("scanned by allocating tasks", PressureWindow::SCANNED);
        let waited =
            rate(ALLOCSTALL).at_most("allocation stalls", PressureWindow::ALLOCATION_STALLS);
        all![
            again.if_measured(),
            swapped_in.if_measured(),
            stalls.if_measured(),
            scanned.if_measured(),
            waited.if_measured(),
        ]
    }

    /// Returns how calm `stretch` was, or as an error what disturbed it.
    pub(crate) fn during(cx: &Evidence<'_>, stretch: &Stretch) -> Result<Self, String> {
        fn low<Q: Quantity>(
            track: Result<Track<Q>, Missing>,
            stretch: &Stretch,
            from: Q,
            what: &str,
        ) -> Result<Option<Q>, String> {
            let mean = track.ok().and_then(|track| track.mean_in(stretch));
            match mean.filter(|mean| *mean >= from) {
                Some(mean) => Err(format!("{mean} {what}")),
                None => Ok(mean),
            }
        }
        let refaults = low(
            cx.refaults_file(),
            stretch,
            Self::REFAULTS,
            "of files were read again after eviction",
        )?;
        let swapped_in = low(cx.swapped_in(), stretch, Self::SWAP_IN_PAGES_MAX, "were swapped in")?;
        let stalled = low(
            cx.stall(PSI_MEMORY_SOME),
            stretch,
            PressureWindow::MEMORY,
            "of the time somebody waited for memory",
        )?;
        low(
            cx.rate(PGSCAN_DIRECT),
            stretch,
            PressureWindow::SCANNED,
            "were scanned by tasks that had to reclaim memory themselves",
        )?;
        low(
            cx.allocation_stalls(),
            stretch,
            PressureWindow::ALLOCATION_STALLS,
            "allocations had to reclaim memory themselves",
        )?;
        if let Some(average) = PressureAverage::for_memory(cx).filter(PressureAverage::matters) {
            return Err(format!(
                "{} of the {} somebody waited for memory",
                average.some, average.period
            ));
        }
        Ok(Self { refaults, swapped_in, stalled })
    }

    /// Returns the independent kinds of evidence that were measured. Absence of swap-ins is not one of them: files may
    /// refault.
    pub(crate) fn kinds(&self) -> Vec<&'static str> {
        let mut kinds = Vec::new();
        if self.refaults.is_some() {
            kinds.push("no refaults");
        }
        if self.stalled.is_some() {
            kinds.push("no stalls");
        }
        kinds
    }

    /// Returns which measurements would settle the matter.
    pub(crate) fn open(&self) -> &'static str {
        match (self.refaults, self.stalled) {
            (Some(_), Some(_)) => "",
            (Some(_), None) => "memory stalls (PSI) would settle it",
            (None, Some(_)) => "refaults would settle it",
            (None, None) => "refaults and memory stalls would settle it",
        }
    }

    /// Returns `, and no task waited for memory`, as far as measured.
    pub(crate) fn clause(&self, cx: &Evidence<'_>) -> &'static str {
        if self.refaults.is_some() {
            ", and no task waited for memory"
        } else if self.stalled.is_some() {
            ", and no task waited for memory; refaults were not measured"
        } else if cx.is_single_sample() {
            "; one sample cannot show whether tasks wait"
        } else {
            "; waits and refaults were not measured"
        }
    }

    /// Adds the measurements to a finding's evidence.
    pub(crate) fn shown_in(&self, mut finding: Finding) -> Finding {
        if let Some(refaults) = self.refaults {
            finding = finding.shows_below(
                REFAULT_FILE,
                refaults,
                Self::REFAULTS,
                None,
                format!("{refaults} of files read again after eviction"),
            );
        }
        if let Some(swapped_in) = self.swapped_in {
            finding = finding.shows_below(
                PSWPIN,
                swapped_in,
                Self::SWAP_IN_PAGES_MAX,
                None,
                format!("{swapped_in} swapped in"),
            );
        }
        if let Some(stalled) = self.stalled {
            finding = finding.shows_below(
                PSI_MEMORY_SOME,
                stalled,
                PressureWindow::MEMORY,
                None,
                format!("somebody waited for memory {stalled} of the time"),
            );
        }
        finding
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Span;

    use timeline::{Facts, Sample, Timeline};

    fn timeline(seconds: u64, fill: impl Fn(u64, &mut Sample)) -> Timeline {
        let mut timeline = Timeline::default();
        for s in 0..=seconds {
            let mut sample = Sample::at(Span::from_secs(s));
            fill(s, &mut sample);
            timeline.push(&sample).unwrap();
        }
        timeline
    }

    #[test]
    fn what_was_disturbed_before_may_be_calm_later() {
        // 300 pages a second in the first third, then nothing.
        let timeline = timeline(30, |s, sample| {
            sample.host.set(REFAULT_FILE, Pages::new(300 * s.min(10)));
        });
        let facts = Facts::default();
        let cx = Evidence::new(&timeline, &facts);
        let during = |first, last| Quiet::during(&cx, &timeline.stretch(first, last).unwrap());
        let why = during(0, 10).unwrap_err();
        assert!(why.contains("read again"), "{why}");
        assert!(during(15, 30).is_ok());
    }

    #[test]
    fn what_was_not_measured_is_no_evidence_of_calm() {
        let timeline = timeline(10, |_, sample| sample.host.set(PSWPIN, Pages::ZERO));
        let facts = Facts::default();
        let cx = Evidence::new(&timeline, &facts);
        let calm = Quiet::during(&cx, &timeline.whole().unwrap()).unwrap();
        assert!(calm.kinds().is_empty());
        assert!(calm.clause(&cx).contains("not measured"));
    }
}
