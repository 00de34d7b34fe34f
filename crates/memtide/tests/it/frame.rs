//! What is found does not depend on how much is watched around it, nor on how it is kept, cut or joined: the properties of
//! incidents, over all labelled captures.

mod tape;

use std::fmt;
use std::path::Path;
use std::sync::LazyLock;

use diagnose::{Diagnosis, Need, Severity, Sureness};
use timeline::{Facts, SignalId, Timeline};
use units::Span;

use crate::cases::on_each;
use tape::{CORPUS, Capture, Tape, facts_from, named, one_of_each};

/// An incident of weight, at a time on the clock of the capture that shows it.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    id: &'static str,
    scope: String,
    severity: Severity,
    confidence: Sureness,
    from: f64,
    to: f64,
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, scope, severity, confidence, from, to } = self;
        write!(f, "{id} {scope} {severity:?} {confidence:?} {from:.0}..{to:.0}")
    }
}

impl Seen {
    /// The same, a sample more or less.
    fn is(&self, other: &Self) -> bool {
        self.is_like(other)
            && (self.from - other.from).abs() <= 1.2
            && (self.to - other.to).abs() <= 1.2
    }

    /// As far as it lies within a capture that lasts so long: what is open at an edge goes on in the calm, as levels do.
    fn clipped(mut self, lasts: f64) -> Self {
        self.from = self.from.clamp(0.0, lasts);
        self.to = self.to.clamp(0.0, lasts);
        self
    }

    /// The same at whatever time.
    fn is_like(&self, other: &Self) -> bool {
        self.id == other.id
            && self.scope == other.scope
            && self.severity == other.severity
            && self.confidence == other.confidence
    }
}

fn confidence(value: f64) -> Sureness {
    let why = String::new();
    diagnose::Confidence { value, why }.sureness()
}

/// Incidents of weight; what is of no time has none. Times are counted from `origin`.
fn seen(diagnosis: &Diagnosis, origin: Span) -> Vec<Seen> {
    let mut all = Vec::new();
    for finding in &diagnosis.findings {
        let scope = format!("{:?}{}", finding.scope.entity, finding.scope.key);
        let occasions = finding.occasions.iter();
        for occasion in occasions.filter(|one| one.severity > Severity::Info) {
            all.push(Seen {
                id: finding.id,
                scope: scope.clone(),
                severity: occasion.severity,
                confidence: confidence(occasion.confidence),
                from: occasion.stretch.from.as_secs_f64() - origin.as_secs_f64(),
                to: occasion.stretch.to.as_secs_f64() - origin.as_secs_f64(),
            });
        }
        if finding.occasions.is_empty() && finding.severity > Severity::Info {
            all.push(Seen {
                id: finding.id,
                scope,
                severity: finding.severity,
                confidence: finding.confidence.sureness(),
                from: 0.0,
                to: 0.0,
            });
        }
    }
    all
}

fn incidents(timeline: &Timeline, facts: &Facts, origin: Span) -> Vec<Seen> {
    seen(&diagnose::diagnose(timeline, facts), origin)
}

/// What is lacking of `expected`, and what is new, each in a line. Each incident stands for one.
fn differences(name: &str, expected: &[Seen], found: &[Seen]) -> Vec<String> {
    let mut new = found.to_vec();
    let mut lines = Vec::new();
    for one in expected {
        match new.iter().position(|found| found.is(one)) {
            Some(at) => drop(new.remove(at)),
            None => lines.push(format!("{name}: lacks {one}")),
        }
    }
    lines.extend(new.iter().map(|one| format!("{name}: has {one}")));
    lines
}

fn assert_none(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// How a diagnosis of a capture is right or wrong: hits, misses, false alarms.
#[derive(Debug, Clone, Copy, Default)]
struct Score([usize; 3]);

impl Score {
    fn of(capture: &Capture, diagnosis: &Diagnosis) -> Self {
        let is_said = |id: &str| {
            let all = diagnosis.findings.iter().chain(&diagnosis.notes);
            let mut ids = all.flat_map(|f| std::iter::once(f.id).chain(f.aliases.iter().copied()));
            ids.any(|said| said == id)
        };
        let is_hit = |want: &&String| want.split('|').any(is_said);
        let hits = capture.want.iter().filter(is_hit).count();
        let findings = diagnosis.findings.iter();
        let loud = findings.filter(|finding| finding.severity > Severity::Info);
        let is_wrong = |id: &str| capture.calm || capture.forbid.iter().any(|no| no == id);
        let wrong: std::collections::BTreeSet<_> =
            loud.map(|finding| finding.id).filter(|id| is_wrong(id)).collect();
        Self([hits, capture.want.len() - hits, wrong.len()])
    }

    #[allow(clippy::cast_precision_loss)] // some dozens
    fn recall_and_precision(all: &[Self]) -> (f64, f64) {
        let sum = |place: usize| all.iter().map(|score| score.0[place]).sum::<usize>() as f64;
        let (hits, misses, wrong) = (sum(0), sum(1), sum(2));
        (hits / (hits + misses), hits / (hits + wrong))
    }
}

/// Each capture within so much calm: what differs, and how it scores, without and with the calm.
fn diluted(captures: &[&Capture], calm: usize) -> (Vec<String>, [Vec<Score>; 2]) {
    let judged = on_each(captures, |capture| {
        let alone = diagnose::diagnose(capture.timeline, capture.facts);
        let tape = Tape::diluted(capture, calm);
        let origin = Span::from_secs(calm as u64);
        let facts = facts_from(capture.facts, origin);
        let within = diagnose::diagnose(&tape.timeline, &facts);
        let lasts = capture.timeline.duration().as_secs_f64();
        let expected = seen(&alone, Span::ZERO);
        let found = seen(&within, origin).into_iter();
        let found: Vec<Seen> = found.map(|one| one.clipped(lasts)).collect();
        (
            differences(&capture.name, &expected, &found),
            Score::of(capture, &alone),
            Score::of(capture, &within),
        )
    });
    let wrong = judged.iter().flat_map(|(wrong, ..)| wrong.clone());
    let alone = judged.iter().map(|(_, alone, _)| *alone).collect();
    let within = judged.iter().map(|(.., within)| *within).collect();
    (wrong.collect(), [alone, within])
}

#[allow(clippy::print_stdout)] // the table that a test run shows
fn calm_changes_nothing(captures: &[&Capture], calm: usize) {
    let (wrong, [alone, within]) = diluted(captures, calm);
    let (recall, precision) = Score::recall_and_precision(&within);
    let (recall_alone, precision_alone) = Score::recall_and_precision(&alone);
    println!(
        "{} captures, {calm} s of calm on each side: recall {recall:.3} (alone {recall_alone:.3}), \
         precision {precision:.3} (alone {precision_alone:.3})",
        captures.len()
    );
    assert!(recall >= recall_alone - 0.02 && precision >= precision_alone - 0.02);
    assert_none(&wrong);
}

/// Without the differences that have a reason: the capture, the rule, why. Whoever mends one removes its line.
fn without_known(known: &[(&str, &str, &str)], mut wrong: Vec<String>) -> Vec<String> {
    let is_of = |line: &str, (name, id, _): &(&str, &str, &str)| {
        line.starts_with(name) && line.contains(&format!(" {id} "))
    };
    let is_mended = |one: &&(&str, &str, &str)| !wrong.iter().any(|line| is_of(line, one));
    let mended: Vec<String> =
        known.iter().filter(is_mended).map(|one| format!("mended: {one:?}")).collect();
    wrong.retain(|line| !known.iter().any(|one| is_of(line, one)));
    wrong.extend(mended);
    wrong
}

#[test]
fn two_minutes_of_calm_change_no_incident() {
    let all: Vec<&Capture> = CORPUS.iter().collect();
    calm_changes_nothing(&all, 120);
}

#[test]
fn half_an_hour_of_calm_changes_no_incident() {
    let all: Vec<&Capture> = CORPUS.iter().collect();
    calm_changes_nothing(&all, 1_800);
}

#[test]
fn six_hours_of_calm_change_no_incident() {
    let some: Vec<&Capture> = one_of_each().into_iter().step_by(4).collect();
    calm_changes_nothing(&some, 6 * 3_600);
}

#[test]
fn an_incident_with_ten_seconds_around_it_is_the_same() {
    let wrong = on_each(&CORPUS, |capture| {
        let (timeline, facts) = (&capture.timeline, &capture.facts);
        let times = timeline.times();
        let whole = incidents(timeline, facts, Span::ZERO);
        let mut wrong = Vec::new();
        for one in &whole {
            let from = Span::from_secs_f64((one.from - 10.0).max(0.0));
            let to = Span::from_secs_f64(one.to + 10.2);
            let first = times.partition_point(|time| *time < from);
            let end = times.partition_point(|time| *time <= to);
            let found = cut(capture, first, end);
            // Where the same rule has another incident in these seconds, the cut goes through that one.
            let is_other = |w: &&Seen| *w != one && w.id == one.id && w.scope == one.scope;
            let is_near = |w: &Seen| w.from <= one.to + 10.2 && w.to >= one.from - 10.2;
            if whole.iter().filter(is_other).any(is_near) {
                continue;
            }
            if !found.iter().any(|f| f.is(one)) {
                wrong.push(format!(
                    "{}: {one} cut to {first}..{end}: {}",
                    capture.name,
                    listed(&found)
                ));
            }
        }
        wrong
    });
    assert_none(&wrong.concat());
}

/// Incidents of some of a capture's samples, on the clock of the capture.
fn cut(capture: &Capture, first: usize, end: usize) -> Vec<Seen> {
    let times = capture.timeline.times();
    let part = capture.timeline.part(first, end).alone();
    let facts = capture.facts.clone().within(times[first], times[end - 1]);
    let begin = times[first].as_secs_f64();
    let found = incidents(&part, &facts, Span::ZERO).into_iter();
    let moved = found.map(|one| Seen { from: one.from + begin, to: one.to + begin, ..one });
    moved.collect()
}

fn listed(found: &[Seen]) -> String {
    let found: Vec<String> = found.iter().map(Seen::to_string).collect();
    found.join("; ")
}

/// An incident may pause for so many seconds, and begin or end there where it is cut.
const HOLE: f64 = 5.2;

/// What differs where a cut goes through, and why.
const CUT: [(&str, &str, &str); 1] = [(
    "swap-thrash--7.2-1g-random",
    "cache-starved-floor",
    "the second half reads files again too rarely to count",
)];

#[test]
fn a_cut_through_an_incident_shows_its_part_open_at_the_edge() {
    let wrong = on_each(&CORPUS, |capture| {
        let times = capture.timeline.times();
        let whole = incidents(capture.timeline, capture.facts, Span::ZERO);
        let mut wrong = Vec::new();
        // Growth is a rise over a time of its own: half of it need not be one.
        let is_growth = |one: &Seen| {
            let rule = diagnose::rules::by_id(one.id).unwrap();
            rule.class == diagnose::Class::Growth
        };
        let long = whole.iter().filter(|one| one.to - one.from >= 24.0);
        for one in long.filter(|one| !is_growth(one)) {
            let middle = Span::from_secs_f64((one.from + one.to) / 2.0);
            let middle = times.partition_point(|time| *time < middle);
            let at = times[middle].as_secs_f64();
            let is_part =
                |f: &Seen| f.id == one.id && f.scope == one.scope && f.severity <= one.severity;
            let before = cut(capture, 0, middle + 1);
            if !before.iter().any(|f| is_part(f) && f.to >= at - HOLE) {
                wrong.push(format!("{}: {one} until {at}: {}", capture.name, listed(&before)));
            }
            let after = cut(capture, middle, capture.timeline.len());
            if !after.iter().any(|f| is_part(f) && f.from <= at + HOLE) {
                wrong.push(format!("{}: {one} from {at} on: {}", capture.name, listed(&after)));
            }
        }
        wrong
    });
    assert_none(&without_known(&CUT, wrong.concat()));
}

#[test]
fn what_lasts_four_samples_is_found_however_rarely_they_are_taken() {
    let wrong = on_each(&CORPUS, |capture| {
        let whole = incidents(capture.timeline, capture.facts, Span::ZERO);
        let mut wrong = Vec::new();
        for every in [2_u32, 5, 10] {
            let thin = Tape::thinned(capture, every as usize);
            let diagnosis = diagnose::diagnose(&thin.timeline, capture.facts);
            let every_s = f64::from(every);
            for one in whole.iter().filter(|one| one.to - one.from >= 4.0 * every_s) {
                let is_near =
                    |from: f64, to: f64| from <= one.to + every_s && to >= one.from - every_s;
                let found = seen(&diagnosis, Span::ZERO);
                let is_found = found
                    .iter()
                    .any(|f| f.id == one.id && f.scope == one.scope && is_near(f.from, f.to));
                let is_open = diagnosis.not_evaluated.iter().any(|(id, missing)| {
                    *id == one.id
                        && matches!(missing.need, Need::MoreSamples { .. } | Need::TwoSamples)
                });
                let mut bursts = diagnosis.bursts.iter().filter(|it| it.id == one.id);
                let is_burst = bursts.any(|it| {
                    it.stretches
                        .iter()
                        .any(|at| is_near(at.from.as_secs_f64(), at.to.as_secs_f64()))
                });
                if !is_found && !is_open && !is_burst {
                    let why = diagnosis.clear.iter().find(|(id, _)| *id == one.id);
                    let why = why.map_or("nothing", |(_, why)| why.as_str());
                    wrong.push(format!("{}: every {every} s {one}: {why}", capture.name));
                }
            }
        }
        wrong
    });
    assert_none(&wrong.concat());
}

/// What a busy and healthy host counts in a second: it faults and reads files at 40 MiB/s, kswapd finds a page with each look,
/// and tasks wait for disks for 5 % of the time.
fn busy() -> Vec<(SignalId, u64)> {
    use timeline::signals as s;
    vec![
        (s::PGFAULT.id(), 20_000),
        (s::PGMAJFAULT.id(), 5),
        (s::PGPGIN.id(), 40_960),
        (s::PGSCAN_KSWAPD.id(), 10_000),
        (s::PGSTEAL_KSWAPD.id(), 10_000),
        (s::PSI_IO_SOME.id(), 50_000),
        (s::PSI_IO_FULL.id(), 20_000),
    ]
}

#[test]
fn an_hour_of_made_up_healthy_work_changes_no_incident() {
    let wrong = on_each(&CORPUS, |capture| {
        let tape = Tape::within(capture, 1_800, &busy());
        around(capture, &tape, Span::from_secs(1_800))
    });
    assert_none(&wrong.concat());
}

/// How the incidents of a capture differ that begins so late on a tape.
fn around(capture: &Capture, tape: &Tape, origin: Span) -> Vec<String> {
    let facts = facts_from(capture.facts, origin);
    let lasts = capture.timeline.duration().as_secs_f64();
    let expected = incidents(capture.timeline, capture.facts, Span::ZERO);
    let found = incidents(&tape.timeline, &facts, origin).into_iter();
    let found: Vec<Seen> = found.map(|one| one.clipped(lasts)).collect();
    differences(&capture.name, &expected, &found)
}

/// Each capture amid the work of the healthy ones of the same kernel and RAM.
#[test]
fn an_hour_of_recorded_healthy_work_changes_no_incident() {
    let healthy = CORPUS.iter().filter(|capture| capture.want.is_empty());
    let mut pairs: Vec<(&Capture, &Capture)> = Vec::new();
    for work in healthy {
        let fits = |sick: &&Capture| {
            let (a, b) = (sick.host(), work.host());
            !sick.want.is_empty() && a.0 == b.0 && a.1.abs_diff(b.1) < b.1 / 100
        };
        pairs.extend(CORPUS.iter().filter(fits).map(|sick| (sick, work)));
    }
    println!("{} captures amid recorded work", pairs.len());
    assert!(pairs.len() >= 20);
    let wrong = on_each(&pairs, |(sick, work)| {
        let mut tape = Tape::repeated(work, 600);
        let origin = tape.at();
        tape.play(sick.timeline, 0..sick.timeline.len());
        tape.repeat(work, 600);
        let wrong = around(sick, &tape, origin);
        wrong.iter().map(|line| format!("{line} (amid {})", work.name)).collect::<Vec<_>>()
    });
    assert_none(&wrong.concat());
}

/// Pairs of captures of one kernel: what happens to the host in one, and to a cgroup in the other.
const OVERLAID: [(&str, &str); 8] = [
    ("swap-thrash--5.10-384m-disk", "cgroup-high-throttle--5.10-512m-48m"),
    ("dirty-throttle--5.10-1g-bytes32m", "oom-cgroup--5.10-768m-150m"),
    ("swap-thrash--512m-swapdisk", "cgroup-high-throttle--80m"),
    ("overcommit-limit--6.1-768m-ratio50-swap", "cgroup-oom--96m"),
    ("overcommit-limit--6.12-512m-ratio60", "cgroup-high-throttle--6.12-1g-200m"),
    ("swap-thrash--6.12-768m-zram", "cgroup-cache-starved--6.12-80m"),
    ("shmem-growth--6.18-448m-tmpfs", "oom-cgroup--6.18-640m-64m"),
    ("swap-thrash--7.2-1g-random", "cgroup-cache-starved--7.2-1g-256m"),
];

/// What differs where two captures are overlaid, and why.
const TOGETHER: [(&str, &str, &str); 2] = [
    ("swap-thrash--512m-swapdisk", "available-exhaustion", GROUP_WAITS),
    ("swap-thrash--512m-swapdisk", "cache-starved-floor", GROUP_WAITS),
];
const GROUP_WAITS: &str = "the host's pressure counts the waits of the throttled group too";

#[test]
fn two_diseases_at_once_are_both_found() {
    let wrong = on_each(&OVERLAID, |(of_host, of_group)| {
        let (host, group) = (named(of_host), named(of_group));
        let tape = Tape::overlaid(host, group);
        let name = format!("{of_host} + {of_group}");
        let mut expected = incidents(host.timeline, host.facts, Span::ZERO);
        let of_group = incidents(group.timeline, group.facts, Span::ZERO);
        expected.extend(of_group.into_iter().filter(|one| one.scope.starts_with("Cgroup")));
        let found = incidents(&tape.timeline, host.facts, Span::ZERO);
        differences(&name, &expected, &found)
    });
    assert_none(&without_known(&TOGETHER, wrong.concat()));
}

/// Kept as a recording, in one go or in two.
fn kept(timeline: &Timeline, facts: &Facts, cuts: &[usize]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let host = store::HostIdentity { id: "a-host".to_owned(), name: "host".to_owned() };
    let mut first = 0;
    for end in cuts.iter().copied().chain([timeline.len()]) {
        let part = timeline.part(first, end).alone();
        let (from, to) = (timeline.times()[first], timeline.times()[end - 1]);
        let facts = facts.clone().within(from, to);
        let every = Span::from_secs(1);
        store::add_timeline(directory.path(), &host, &part, &facts, every).unwrap();
        first = end;
    }
    directory
}

fn loaded(
    directory: &Path,
    screen: Option<import::MinuteScreen>,
    resolution: store::Resolution,
) -> timeline::Source {
    let wanted = import::OpenOptions { resolution, screen, ..import::OpenOptions::default() };
    import::open_part(directory, wanted, &mut |_| ()).unwrap()
}

#[test]
fn a_screen_finds_what_all_samples_show() {
    static SIGNALS: LazyLock<Vec<SignalId>> = LazyLock::new(diagnose::screened_signals);
    // A recording is made of each: a part of the corpus is enough.
    let some: Vec<&Capture> = CORPUS.iter().step_by(4).collect();
    let wrong = on_each(&some, |capture| {
        let calm = Span::from_secs(1_800);
        let tape = Tape::diluted(capture, 1_800);
        let facts = facts_from(capture.facts, calm);
        let directory = kept(&tape.timeline, &facts, &[]);
        let full = loaded(directory.path(), None, store::Resolution::Full);
        let screen = import::MinuteScreen { signals: &SIGNALS, could_hold: diagnose::could_hold };
        let screened = loaded(directory.path(), Some(screen), store::Resolution::Minutes);
        // Of a minute that is not opened the last sample is there: the clock of the screened one begins later.
        let begins = |opened: &timeline::Source| opened.timeline.stamp(0).unwrap().boot;
        let calm_left = calm - (begins(&screened) - begins(&full));
        let mut expected = incidents(&full.timeline, &full.facts, calm);
        for one in &mut expected {
            one.from = one.from.max(-calm_left.as_secs_f64());
        }
        let found = incidents(&screened.timeline, &screened.facts, calm_left);
        let mut wrong = differences(&capture.name, &expected, &found);
        if screened.timeline.len() == full.timeline.len() {
            wrong.push(format!("{}: all was opened", capture.name));
        }
        wrong
    });
    assert_none(&wrong.concat());
}

#[test]
fn a_recording_in_two_segments_is_the_same() {
    let wrong = on_each(&CORPUS.iter().step_by(4).collect::<Vec<_>>(), |capture| {
        let tape = Tape::diluted(capture, 60);
        let facts = facts_from(capture.facts, Span::from_secs(60));
        let middle = 60 + capture.timeline.len() / 2;
        let read = |cuts: &[usize]| {
            let directory = kept(&tape.timeline, &facts, cuts);
            let opened = loaded(directory.path(), None, store::Resolution::Full);
            incidents(&opened.timeline, &opened.facts, Span::ZERO)
        };
        let memory = incidents(&tape.timeline, &facts, Span::ZERO);
        let mut wrong = differences(&capture.name, &memory, &read(&[]));
        wrong.extend(differences(&capture.name, &memory, &read(&[middle])));
        wrong
    });
    assert_none(&wrong.concat());
}

#[test]
fn two_hours_of_healthy_work_raise_no_warning() {
    let healthy = CORPUS.iter().filter(|capture| capture.want.is_empty());
    let hours: Vec<(&Capture, u64)> = healthy
        .enumerate()
        .map(|(at, capture)| (capture, if at % 5 == 0 { 7_200 } else { 900 }))
        .collect();
    let wrong = on_each(&hours, |(capture, seconds)| {
        let tape = Tape::repeated(capture, *seconds);
        let found = incidents(&tape.timeline, capture.facts, Span::ZERO);
        found.iter().map(|one| format!("{}: {one}", capture.name)).collect::<Vec<_>>()
    });
    assert_none(&wrong.concat());
}
