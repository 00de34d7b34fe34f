//! When a finding occurred, in words: once, or how many times.

use jiff::Timestamp;
use units::{Count, Span};

use crate::clock::ReportClock;
use crate::model::{Bursts, Finding, Stretch};

/// Waiting below this is not worth a clause.
const WAITED_MIN: Span = Span::from_millis(100);

/// When a finding occurred: `0:11–0:34`, or several times: `7 times, 10 min each, first 0:11, last 4:20`. `None` for a
/// state, and for a single sample at an unknown time.
pub(crate) fn when(clock: &ReportClock<'_>, finding: &Finding) -> Option<String> {
    let at = |s: f64, at: Option<Timestamp>| clock.moment(s, at);
    match finding.stretches.as_slice() {
        [first, .., last] => Some(format!(
            "{} times, {}first {}, last {}",
            Count::new(u64::try_from(finding.stretches.len()).unwrap_or(u64::MAX)),
            each(&finding.stretches).map_or_else(String::new, |each| format!("{each}, ")),
            at(first.from_s, first.from)?,
            at(last.from_s, last.from)?,
        )),
        _ => clock.stretch((finding.from_s?, finding.from), (finding.to_s?, finding.to)),
    }
}

/// Bursts of a rule: `14 times between 01:00:00 and 05:00:00, at most 6 s each; tasks waited 21 s in all`.
pub(crate) fn bursts(clock: &ReportClock<'_>, bursts: &Bursts) -> String {
    let at = |s: f64, at: Option<Timestamp>| clock.moment(s, at);
    let longest = bursts.longest_s;
    let (from, to) = (at(bursts.from_s, bursts.from), at(bursts.to_s, bursts.to));
    let when = match (bursts.count, from, to) {
        (1, Some(from), _) => format!("once at {from}, for {longest}"),
        (1, None, _) => format!("once, for {longest}"),
        (count, Some(from), Some(to)) => {
            format!("{count} times between {from} and {to}, at most {longest} each")
        }
        (count, ..) => format!("{count} times, at most {longest} each"),
    };
    match bursts.waited_s.filter(|waited| *waited >= WAITED_MIN) {
        Some(waited) => format!("{when}; tasks waited {waited} in all"),
        None => when,
    }
}

/// How long it lasted in all, counting recorded time only; `None` for a state or a single moment.
pub(crate) fn duration(finding: &Finding) -> Option<Span> {
    let all = finding.stretches.iter().map(|one| one.recorded_s).reduce(Span::plus);
    all.filter(|all| *all > Span::ZERO)
}

/// `10 min each`, or `8 min to 12 min each`; `None` for single moments.
fn each(stretches: &[Stretch]) -> Option<String> {
    let lasting = || stretches.iter().map(|one| one.recorded_s);
    let (least, most) = (lasting().min()?, lasting().max()?);
    let text = if least.to_string() == most.to_string() {
        format!("{most} each")
    } else {
        format!("{least} to {most} each")
    };
    (most > Span::ZERO).then_some(text)
}
