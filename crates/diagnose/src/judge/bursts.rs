//! Incidents too short and too cheap for a finding each: counted, unless they cost much together.

use timeline::Stretch;
use units::Span;

use crate::finding::{Bursts, Harm};
use crate::rule::Rule;
use crate::trigger::Occurrence;

/// An occurrence of a trigger with its interval and its cost.
pub(crate) type Weighed = (Occurrence, Stretch, Harm);

/// Bursts that cost this much within an hour are reported: an engineering choice.
const COSTLY_TOGETHER: Span = Span::from_secs(30);
const HOUR: Span = Span::from_hours(1);

/// Separates bursts of an entity that cost much within an hour: each becomes an occasion of a finding. Returns cheap
/// ones first, then costly ones.
pub(crate) fn split_costly(mut bursts: Vec<Weighed>) -> (Vec<Weighed>, Vec<Weighed>) {
    bursts.sort_by(|a, b| a.0.key.cmp(&b.0.key).then(a.1.from.cmp(&b.1.from)));
    let mut is_costly = vec![false; bursts.len()];
    let waited = |at: usize| bursts[at].2.waited.unwrap_or_default();
    let (mut first, mut sum, mut marked_to) = (0, Span::ZERO, 0);
    for at in 0..bursts.len() {
        sum = sum.plus(waited(at));
        let is_far = |first: usize| {
            bursts[first].0.key != bursts[at].0.key
                || bursts[at].1.to.saturating_sub(bursts[first].1.from) > HOUR
        };
        while is_far(first) && first < at {
            sum = sum.saturating_sub(waited(first));
            first += 1;
        }
        if sum >= COSTLY_TOGETHER {
            is_costly[first.max(marked_to)..=at].fill(true);
            marked_to = at;
        }
    }
    let mut is_costly = is_costly.into_iter();
    let (costly, cheap) = bursts.into_iter().partition(|_| is_costly.next().unwrap_or_default());
    (cheap, costly)
}

/// Returns the bursts of a rule, counted; `None` if there are none.
pub(crate) fn count(rule: &'static Rule, bursts: &[Weighed]) -> Option<Bursts> {
    let mut stretches: Vec<Stretch> = bursts.iter().map(|(_, stretch, _)| *stretch).collect();
    stretches.sort_by_key(|stretch| stretch.first);
    let waits = bursts.iter().filter_map(|(.., harm)| harm.waited);
    (!stretches.is_empty()).then_some(Bursts {
        id: rule.id,
        stretches,
        waited: waits.reduce(Span::plus),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bursts of five seconds at these seconds, each with `waited` seconds of waiting.
    fn bursts(seconds: &[u64], waited: u64) -> Vec<Weighed> {
        let burst = |at: &u64| {
            let stretch = Stretch {
                from: Span::from_secs(*at),
                to: Span::from_secs(at + 5),
                ..Stretch::empty()
            };
            let harm = Harm { killed: 0, waited: Some(Span::from_secs(waited)) };
            (Occurrence::on_host(0, 0), stretch, harm)
        };
        seconds.iter().map(burst).collect()
    }

    #[test]
    fn bursts_that_cost_half_a_minute_within_an_hour_are_split_off() {
        let each_minute: Vec<u64> = (0..40).map(|at| at * 60).collect();
        for (seconds, costly) in
            [(&each_minute[..], 40), (&each_minute[..29], 0), (&[0, 4000, 8000][..], 0)]
        {
            let (few, together) = split_costly(bursts(seconds, 1));
            assert_eq!((few.len(), together.len()), (seconds.len() - costly, costly));
        }
    }

    #[test]
    fn bursts_of_another_hour_stay_bursts() {
        let mut seconds: Vec<u64> = (0..31).map(|at| at * 60).collect();
        seconds.push(20_000);
        let (few, together) = split_costly(bursts(&seconds, 1));
        assert_eq!((few.len(), together.len()), (1, 31));
    }
}
