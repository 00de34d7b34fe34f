//! The right moment: a condition on counters of the host, checked once a second.

use std::time::{Duration, Instant};

use probe::{HostProbe, Root};
use thiserror::Error;
use timeline::{Counter, Sample, Signal, signals};
use units::{Count, Ratio, Span, Unit};

/// `reclaim` begins at this many scanned pages a second: 1 MiB/s, as in `page-cache-thrash`.
const RECLAIM_PAGES_PER_S: f64 = 256.0;

/// What is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WatchedCounter {
    PsiMemory,
    PsiIo,
    PsiCpu,
    System,
    ScannedDirectly,
    SwappedIn,
    Reclaim,
}

/// The counters by their names.
const WATCHED: [(&str, WatchedCounter); 7] = [
    ("psi.memory", WatchedCounter::PsiMemory),
    ("psi.io", WatchedCounter::PsiIo),
    ("psi.cpu", WatchedCounter::PsiCpu),
    ("sys", WatchedCounter::System),
    ("pgscan_direct", WatchedCounter::ScannedDirectly),
    ("pswpin", WatchedCounter::SwappedIn),
    ("reclaim", WatchedCounter::Reclaim),
];

/// A condition: `psi.memory>10%`.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileCondition {
    text: String,
    counter: WatchedCounter,
    /// A share of time, or events a second.
    above: f64,
}

/// Why a text is no condition.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{0}` is no condition; write psi.memory>10%, psi.io>20%, psi.cpu>50%, sys>30%, pgscan_direct>1000/s, pswpin>100/s or reclaim"
)]
pub struct NoCondition(String);

impl std::str::FromStr for ProfileCondition {
    type Err = NoCondition;

    fn from_str(text: &str) -> Result<Self, NoCondition> {
        let wrong = || NoCondition(text.to_owned());
        let typed = text.trim();
        let (name, bound) = match typed.split_once('>') {
            Some((name, bound)) => (name.trim(), Some(bound.trim())),
            None => (typed, None),
        };
        let counter = WATCHED.iter().find(|(known, _)| *known == name).ok_or_else(wrong)?.1;
        let number = |bound: &str, unit: &str| {
            bound.strip_suffix(unit).and_then(|digits| digits.trim().parse::<f64>().ok())
        };
        let number_above = match (counter, bound) {
            (WatchedCounter::Reclaim, None) => Some(RECLAIM_PAGES_PER_S),
            (WatchedCounter::ScannedDirectly | WatchedCounter::SwappedIn, Some(bound)) => {
                number(bound, "/s")
            }
            (WatchedCounter::Reclaim, Some(_)) | (_, None) => None,
            (_, Some(bound)) => number(bound, "%").map(|percent| percent / 100.0),
        };
        let above =
            number_above.filter(|above| above.is_finite() && *above >= 0.0).ok_or_else(wrong)?;
        Ok(Self { text: typed.to_owned(), counter, above })
    }
}

impl std::fmt::Display for ProfileCondition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// Moments at which a profile is due: a condition is met that was not before, or that has been for long.
pub struct RightMoments {
    watch: ConditionWatch,
    /// A condition that stays true is profiled again after so long.
    again_after: Duration,
    /// When the last profile was due.
    last: Option<Instant>,
    /// The value at that time.
    last_value: f64,
    must_end_first: bool,
}

/// While a condition lasts, something else is the matter where its value is so many times that of the last profile: a mild pressure that
/// lasted for hours hid ten seconds of a severe one.
const WORSE_TIMES: f64 = 2.0;

impl RightMoments {
    /// Opens the files of the host.
    pub fn new(condition: ProfileCondition, again_after: Span) -> Self {
        Self {
            watch: ConditionWatch::new(condition),
            again_after: Duration::from_secs_f64(again_after.as_secs_f64()),
            last: None,
            last_value: 0.0,
            must_end_first: false,
        }
    }

    /// Reads the counters, once a second. `None`: this kernel does not have them. Else whether a profile is due, and the value in words.
    pub fn check(&mut self) -> Option<(bool, String)> {
        let shown = self.watch.check()?;
        let is_worse = self.watch.mostly_above(self.last_value * WORSE_TIMES);
        self.must_end_first &= !self.watch.is_over()
            && !is_worse
            && self.last.is_none_or(|last| last.elapsed() < self.again_after);
        let is_due = self.watch.is_met() && !self.must_end_first;
        if is_due {
            self.last = Some(Instant::now());
            self.last_value = self.watch.recent.into_iter().fold(0.0, f64::max);
        }
        Some((is_due, shown))
    }

    /// Begins anew after a profile was taken.
    pub fn begin_again(&mut self) {
        self.must_end_first = self.last.is_some();
        if self.must_end_first {
            self.watch.begin_again();
        }
    }
}

/// Watches a condition: it is met where it is true in two of the last three seconds.
struct ConditionWatch {
    condition: ProfileCondition,
    host: HostProbe,
    before: Option<Sample>,
    /// The values of the last seconds.
    recent: [f64; 3],
}

impl ConditionWatch {
    /// Opens the files of the host.
    fn new(condition: ProfileCondition) -> Self {
        let host = HostProbe::open(&Root::default()).slabinfo_every(u32::MAX);
        Self { condition, host, before: None, recent: [0.0; 3] }
    }

    /// Reads the counters, once a second. `None`: this kernel does not have them. Else the value in words.
    fn check(&mut self) -> Option<String> {
        let mut sample = Sample::default();
        self.host.sample(&mut sample);
        let Some(before) = self.before.replace(sample) else {
            return Some(String::new());
        };
        let after = self.before.as_ref()?;
        let value = value(self.condition.counter, &before, after)?;
        self.recent.rotate_left(1);
        self.recent[2] = value;
        let is_share = !matches!(
            self.condition.counter,
            WatchedCounter::ScannedDirectly | WatchedCounter::SwappedIn | WatchedCounter::Reclaim
        );
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // pages of a second
        let pages = || format!("{} pages/s", Count::new(value.round() as u64));
        Some(if is_share { Ratio::new(value).to_string() } else { pages() })
    }

    /// Whether the value was above this in two of the last three seconds.
    fn mostly_above(&self, bound: f64) -> bool {
        self.recent.iter().filter(|value| **value > bound).count() >= 2
    }

    fn is_met(&self) -> bool {
        self.mostly_above(self.condition.above)
    }

    /// Whether it was false in the last three seconds.
    fn is_over(&self) -> bool {
        self.recent.iter().all(|value| *value <= self.condition.above)
    }

    /// Begins anew after the condition was met: what was before does not count. It is not over by that.
    fn begin_again(&mut self) {
        self.recent = [self.condition.above.next_up(); 3];
        self.before = None;
    }
}

/// The value of a counter between two samples: a share of time, or events a second.
fn value(counter: WatchedCounter, before: &Sample, after: &Sample) -> Option<f64> {
    let seconds = (after.stamp.boot - before.stamp.boot).as_secs_f64();
    if seconds <= 0.0 {
        return None;
    }
    fn rise<U: Unit>(signal: Signal<Counter<U>>, before: &Sample, after: &Sample) -> Option<f64> {
        let (first, last) = (before.host.get(signal)?, after.host.get(signal)?);
        #[allow(clippy::cast_precision_loss)] // of a second
        last.raw().checked_sub(first.raw()).map(|rise| rise as f64)
    }
    let stalled = |signal| rise(signal, before, after).map(|micros| micros / 1e6 / seconds);
    let pages = |signal| rise(signal, before, after).map(|pages| pages / seconds);
    match counter {
        WatchedCounter::PsiMemory => stalled(signals::PSI_MEMORY_SOME),
        WatchedCounter::PsiIo => stalled(signals::PSI_IO_SOME),
        WatchedCounter::PsiCpu => stalled(signals::PSI_CPU_SOME),
        WatchedCounter::ScannedDirectly => pages(signals::PGSCAN_DIRECT),
        WatchedCounter::SwappedIn => pages(signals::PSWPIN),
        // Reclaim at limits of cgroups is only in the sums by kind of page, which old kernels lack.
        WatchedCounter::Reclaim => {
            let kinds = pages(signals::PGSCAN_ANON).zip(pages(signals::PGSCAN_FILE));
            let who = || pages(signals::PGSCAN_KSWAPD).zip(pages(signals::PGSCAN_DIRECT));
            kinds.or_else(who).map(|(one, other)| one + other)
        }
        WatchedCounter::System => {
            let ticks = [
                signals::CPU_USER,
                signals::CPU_NICE,
                signals::CPU_SYSTEM,
                signals::CPU_IDLE,
                signals::CPU_IOWAIT,
                signals::CPU_IRQ,
                signals::CPU_SOFTIRQ,
                signals::CPU_STEAL,
            ];
            let all: f64 = ticks.iter().filter_map(|signal| rise(*signal, before, after)).sum();
            let system = rise(signals::CPU_SYSTEM, before, after)?;
            (all > 0.0).then_some(system / all)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_is_due_again_where_it_doubles() {
        let condition: ProfileCondition = "sys>0.1%".parse().unwrap();
        let mut watch = ConditionWatch::new(condition.clone());
        let above = condition.above;
        for (recent, is_met, is_over) in [
            ([0.0, 0.0, 1.0], false, false),
            ([1.0, 0.0, 1.0], true, false),
            ([above, 0.0, above], false, true),
        ] {
            watch.recent = recent;
            assert_eq!((watch.is_met(), watch.is_over()), (is_met, is_over), "{recent:?}");
        }
        watch.begin_again();
        assert!(!watch.is_over() && !watch.mostly_above(0.02));
        watch.recent = [0.3, 0.1, 0.3];
        assert!(watch.mostly_above(0.1 * WORSE_TIMES) && !watch.mostly_above(0.2 * WORSE_TIMES));
    }

    #[test]
    fn conditions_are_read_and_others_refused_with_examples() {
        for (text, above) in [
            ("psi.memory>10%", 0.1),
            ("sys > 30 %", 0.3),
            ("pgscan_direct>1000/s", 1000.0),
            ("reclaim", RECLAIM_PAGES_PER_S),
        ] {
            let condition: ProfileCondition = text.parse().unwrap();
            assert!((condition.above - above).abs() < 1e-9, "{text}");
        }
        for text in ["", "psi.memory", "psi.memory>10", "cpu>5%", "reclaim>5%", "sys>nan%"] {
            let error = text.parse::<ProfileCondition>().unwrap_err().to_string();
            assert!(error.contains("psi.memory>10%"), "{error}");
        }
    }
}
