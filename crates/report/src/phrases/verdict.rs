//! The verdict in words: what is wrong, and when it was if it is over.

use crate::clock::ReportClock;
use crate::model::{Finding, Level, Report, Severity};

/// The word that leads an answer in text.
pub(crate) const fn word(verdict: Level) -> &'static str {
    match verdict {
        Level::Ok => "OK",
        Level::Warning => "WARNING",
        Level::Critical => "CRITICAL",
        Level::Unknown => "UNKNOWN",
    }
}

/// The headline: with its time if it is over, and with what was worse before it or with the state since.
pub(crate) fn headline(report: &Report, clock: &ReportClock<'_>) -> String {
    let first = report.findings.first().filter(|first| first.is_headline);
    let began = first.filter(|first| first.is_over).and_then(|first| moment(first, clock));
    let sentence = match began {
        Some(began) => format!("At {began}: {}", report.headline),
        None => report.headline.clone(),
    };
    if report.now == Some(Level::Ok) {
        return format!("{sentence} Since {} memory has been enough.", last_end(report, clock));
    }
    let worse = report
        .roots()
        .map(|(_, root)| root)
        .find(|root| first.is_some_and(|first| root.severity > first.severity))
        .and_then(|root| Some(format!("at {}: {}", moment(root, clock)?, root.title)));
    match worse {
        Some(worse) => format!("{sentence} Worse, {worse}"),
        None => sentence,
    }
}

/// When it began. Of several kills in a row the title names the last one, so its time is that of their end.
fn moment(finding: &Finding, clock: &ReportClock<'_>) -> Option<String> {
    if finding.harm.killed > 1 {
        return clock.moment(finding.to_s?, finding.to);
    }
    clock.moment(finding.from_s?, finding.from)
}

/// Two times this near to each other are one for a reader.
const AT_ONCE_S: f64 = 5.0;

/// The end of the last finding of any rule: `then`, or its time where that is later than the headline's.
fn last_end(report: &Report, clock: &ReportClock<'_>) -> String {
    let is_wrong = |severity: Severity| severity > Severity::Info;
    let all = report.incidents.iter().filter(|one| is_wrong(one.severity));
    let last = all.max_by(|a, b| a.to_s.total_cmp(&b.to_s));
    let own = report.findings.first().and_then(|finding| finding.to_s);
    let is_later = |end: f64| own.is_some_and(|own| end > own + AT_ONCE_S);
    let later = last.filter(|one| is_later(one.to_s));
    later.and_then(|one| clock.moment(one.to_s, one.to)).unwrap_or_else(|| "then".to_owned())
}

#[cfg(test)]
mod tests {
    use timeline::{Entity, Facts, Sample, Source, SourceKind, Timeline, signals};
    use units::{Bytes, Count, Limit, Span, WallClock};

    use super::*;
    use crate::Screen;

    /// A calm host of ten minutes with a kill at the limit of a cgroup in each of these seconds, the first with more.
    fn headline_of(kills: &[u64]) -> String {
        let mut timeline = Timeline::default();
        for second in 0..600 {
            let mut sample = Sample::at(Span::from_secs(second));
            let start = WallClock::from_unix_nanos(1_795_236_000_000_000_000);
            sample.stamp.wall = Some(start.plus(Span::from_secs(second)));
            sample.host.set(signals::MEM_TOTAL, Bytes::from_gib(4));
            sample.host.set(signals::MEM_AVAILABLE, Bytes::from_gib(3));
            for (n, at) in kills.iter().enumerate() {
                let group = sample.table_mut(Entity::Cgroup).entry(&format!("/app{n}"));
                let killed = if second < *at { 0 } else { 9 - n as u64 };
                group.row.set(signals::CGROUP_MAX, Limit::Bytes(Bytes::from_mib(96)));
                group.row.set(signals::CGROUP_EVENTS_OOM, Count::new(killed));
                group.row.set(signals::CGROUP_EVENTS_OOM_KILL, Count::new(killed));
            }
            timeline.push(&sample).unwrap();
        }
        let source = Source::new(SourceKind::Recording, "", timeline, Facts::default());
        let report = Report::new(&source, &diagnose::diagnose(&source.timeline, &source.facts));
        let screen = Screen::default();
        headline(&report, &ReportClock::new(&report.source, &screen))
    }

    #[test]
    fn memory_is_enough_since_the_last_of_all_findings() {
        let one = headline_of(&[100]);
        assert!(one.ends_with("Since then memory has been enough."), "{one}");
        let two = headline_of(&[100, 300]);
        assert!(two.contains("/app0 hit its limit"), "{two}");
        assert!(two.ends_with("Since 04:45:00 memory has been enough."), "{two}");
    }
}
