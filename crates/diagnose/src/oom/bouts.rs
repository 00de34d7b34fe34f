//! Kills that belong together in time.

use timeline::Stretch;
use units::Span;

use crate::evidence::Evidence;

/// Kills closer to each other than this are one bout: what was killed is started again and fills memory anew. An
/// engineering choice.
const APART: Span = Span::from_mins(5);

/// When kills happened: from the sample before to the sample after each, those that follow soon joined.
pub(crate) fn bouts(
    cx: &Evidence<'_>,
    kills: impl IntoIterator<Item = (usize, usize)>,
) -> Vec<Stretch> {
    let mut steps: Vec<(usize, usize)> = kills.into_iter().collect();
    steps.sort_unstable();
    let times = cx.timeline.times();
    let mut joined: Vec<(usize, usize)> = Vec::new();
    for (from, at) in steps {
        match joined.last_mut() {
            Some(last) if from <= last.1 || times[from] - times[last.1] < APART => {
                last.1 = last.1.max(at);
            }
            _ => joined.push((from, at)),
        }
    }
    let stretches = joined.into_iter();
    stretches
        .filter_map(|(from, at)| cx.timeline.stretch(from, at))
        .collect()
}

/// The one in which a sample lies.
pub(crate) fn bout_at(bouts: &[Stretch], sample: usize) -> Option<Stretch> {
    bouts
        .iter()
        .copied()
        .find(|it| it.first <= sample && sample <= it.last)
}

#[cfg(test)]
mod tests {
    use timeline::signals::MEM_FREE;
    use timeline::{Facts, Sample, Timeline};
    use units::Bytes;

    use super::*;

    #[test]
    fn kills_that_follow_soon_are_one_bout_and_an_hour_later_another() {
        let mut timeline = Timeline::default();
        for minute in 0..180 {
            let mut sample = Sample::at(Span::from_mins(minute));
            sample.host.set(MEM_FREE, Bytes::new(1 << 20));
            timeline.push(&sample).unwrap();
        }
        let facts = Facts::default();
        let cx = Evidence::new(&timeline, &facts);
        let found = bouts(&cx, [(120, 121), (10, 11), (13, 14), (10, 12)]);
        let ends: Vec<(usize, usize)> = found.iter().map(|it| (it.first, it.last)).collect();
        assert_eq!(ends, [(10, 14), (120, 121)]);
        assert_eq!(bout_at(&found, 121).map(|it| it.first), Some(120));
        assert_eq!(bout_at(&found, 60), None);
    }
}
