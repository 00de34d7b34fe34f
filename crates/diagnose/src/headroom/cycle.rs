//! The watched time, compared with the time after which the workload repeats: day and night, weekdays and weekend,
//! nightly jobs.

use units::{Ratio, Span};

use crate::evidence::Evidence;

const DAY: Span = Span::from_hours(24);
/// A whole cycle needs samples for at least this share of its time; an engineering choice.
const PRESENT: Ratio = Ratio::from_percent(95.0);

/// The watched time, compared with the cycle.
#[derive(Debug, Clone, PartialEq)]
pub struct Cycle {
    /// The requested cycle.
    pub asked: Span,
    /// From the first sample to the last.
    pub watched: Span,
    /// The share of that time for which there are samples.
    pub present: Ratio,
    /// Whether it contains a Saturday and a Sunday; `None` without a wall clock, and for cycles below a week.
    pub has_weekend: Option<bool>,
    /// Whether it covers a whole cycle.
    pub is_whole: bool,
    /// The same in words: `2.1 d of 7 d: no weekend yet`.
    pub text: String,
}

impl Cycle {
    /// Whether less than a day was watched, and no whole cycle: a host's load changes with the hour of the day, so
    /// this cannot show that there is enough.
    pub(super) fn is_too_short(&self) -> bool {
        !self.is_whole && self.watched.times(self.present.get()) < DAY
    }

    pub(super) fn watched(cx: &Evidence<'_>, asked: Span) -> Self {
        let watched = cx.timeline.duration();
        let present = match watched.as_secs_f64() {
            0.0 => Ratio::new(1.0),
            all => Ratio::new(cx.recorded().as_secs_f64() / all),
        };
        let has_weekend = weekend(cx).filter(|_| asked >= DAY.times(7.0));
        let is_long = watched.as_secs_f64() >= asked.as_secs_f64() * PRESENT.get();
        let is_whole = is_long && present >= PRESENT && has_weekend != Some(false);
        let mut cycle =
            Self { asked, watched, present, has_weekend, is_whole, text: String::new() };
        cycle.text = cycle.words(cx, is_long);
        cycle
    }

    fn words(&self, cx: &Evidence<'_>, is_long: bool) -> String {
        if cx.is_single_sample() {
            return format!("one sample covers nothing of a cycle of {}", self.asked);
        }
        let mut text = format!("{} of {}", self.watched, self.asked);
        let mut lacks = Vec::new();
        if self.has_weekend == Some(false) {
            lacks.push("no weekend yet".to_owned());
        } else if !is_long {
            lacks.push("not a whole cycle yet".to_owned());
        }
        if self.present < PRESENT {
            lacks.push(format!("samples for {} of it only", self.present));
        }
        text.push_str(": ");
        text.push_str(&if lacks.is_empty() {
            "a whole cycle".to_owned()
        } else {
            lacks.join(", ")
        });
        text
    }
}

/// Whether a Saturday and a Sunday (of UTC) lie within the range.
fn weekend(cx: &Evidence<'_>) -> Option<bool> {
    let mut days = [false; 7];
    for index in 0..cx.timeline.len() {
        let nanos = cx.timeline.stamp(index)?.wall?.unix_nanos();
        let day = nanos.div_euclid(86_400_000_000_000);
        // 1970-01-01 was a Thursday; 0 is Monday.
        let weekday = usize::try_from((day + 3).rem_euclid(7)).ok()?;
        days[weekday] = true;
    }
    Some(days[5] && days[6])
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::{Facts, Sample, Timeline, signals::MEM_FREE};
    use units::{Bytes, WallClock};

    fn cycle(days: u64, from_day: i64, hole: Option<u64>) -> Cycle {
        let mut timeline = Timeline::default();
        for hour in 0..=days * 24 {
            if hole.is_some_and(|at| (at..at + 30).contains(&hour)) {
                continue;
            }
            let mut sample = Sample::at(Span::from_hours(hour));
            let seconds = (from_day * 24 + i64::try_from(hour).unwrap()) * 3600;
            sample.stamp.wall = Some(WallClock::from_unix_nanos(seconds * 1_000_000_000));
            sample.host.set(MEM_FREE, Bytes::from_mib(1));
            timeline.push(&sample).unwrap();
        }
        let facts = Facts::default();
        Cycle::watched(&Evidence::new(&timeline, &facts), Span::from_hours(7 * 24))
    }

    #[test]
    fn a_cycle_is_a_week_with_its_weekend_and_without_holes() {
        // Day 4 after 1970-01-01 is a Monday.
        let two = cycle(2, 4, None);
        assert_eq!(two.text, "2 d of 7 d: no weekend yet");
        assert!(!two.is_whole);
        let week = cycle(7, 4, None);
        assert_eq!(week.text, "7 d of 7 d: a whole cycle");
        assert!(week.is_whole);
        let four = cycle(4, 8, None);
        assert_eq!(four.text, "4 d of 7 d: not a whole cycle yet");
        let torn = cycle(7, 4, Some(40));
        assert!(!torn.is_whole && torn.text.contains("of it only"), "{}", torn.text);
    }
}
