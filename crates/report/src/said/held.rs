//! When a finding held, in words: once, or so many times.

use jiff::Timestamp;
use units::{Count, Span};

use crate::clock::Clock;
use crate::model::{Finding, Stretch};

/// From when to when: `0:11–0:34`; of one that came again `7 times, 10 min each, first 0:11, last 4:20`. `None` where it is a
/// state, or the source is of one moment that nobody knows.
pub(crate) fn when(clock: &Clock<'_>, finding: &Finding) -> Option<String> {
    let at = |s: f64, at: Option<Timestamp>| clock.moment(s, at);
    match finding.stretches.as_slice() {
        [first, .., last] => Some(format!(
            "{} times, {}, first {}, last {}",
            Count::new(u64::try_from(finding.stretches.len()).unwrap_or(u64::MAX)),
            each(&finding.stretches),
            at(first.from_s, first.from)?,
            at(last.from_s, last.from)?,
        )),
        _ => clock.stretch((finding.from_s?, finding.from), (finding.to_s?, finding.to)),
    }
}

/// How long it held in all, as far as that was recorded; `None` where it is a state or of one moment.
pub(crate) fn lasts(finding: &Finding) -> Option<Span> {
    let all: f64 = finding.stretches.iter().map(|one| one.recorded_s).sum();
    Some(Span::from_secs_f64(all)).filter(|all| *all > Span::ZERO)
}

/// `10 min each`, or `8 min to 12 min each`.
fn each(stretches: &[Stretch]) -> String {
    let lasting = || stretches.iter().map(|one| one.recorded_s);
    let least = Span::from_secs_f64(lasting().fold(f64::INFINITY, f64::min)).to_string();
    let most = Span::from_secs_f64(lasting().fold(0.0, f64::max)).to_string();
    match least == most {
        true => format!("{most} each"),
        false => format!("{least} to {most} each"),
    }
}
