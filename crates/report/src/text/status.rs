//! The screen of `record --status`: one sentence on the recorder's health, then rows by subject.

use jiff::Timestamp;
use recorder_status::{
    RecorderChecks, RecorderHeaps, RecorderScans, RecorderSettings, RecorderStatus,
};
use units::{Bytes, Count, Quantity, Ratio, Span};

use super::ansi::Style;
use super::page::{TextPage, piece};
use super::{Screen, wrap};
use crate::model::status::{
    RecorderHealth, RecorderProblem, RecorderState, RecordingStatus, StatusReport,
};

/// Column of a row's text.
const INDENT: usize = 13;
/// The kernel log as listed among the files that cannot be read.
const KERNEL_LOG: &str = "/dev/kmsg";

pub(super) fn draw(report: &StatusReport, screen: &Screen, now: Timestamp) -> String {
    let mut rows = Rows { page: TextPage::new(screen), screen };
    rows.page.hanging(&[], 0, Style::Strong, &headline(report, screen, now));
    let is_behind = report.health.as_ref().is_some_and(|h| h.has(RecorderProblem::Behind));
    if let Some(status) = &report.recorder {
        if let Some(health) = &report.health {
            ages(health, &mut rows);
        }
        samples(status, &mut rows);
        rows.add("cost", &cost(status));
        rows.add_all("processes", &processes(status));
        rows.add_all("cgroups", &cgroups(&status.seen, &status.settings));
        if let Some(followed) = &status.settings.follows {
            rows.add("", &format!("{followed}: with every sample while it is there"));
        }
        if let Some(condition) = &status.settings.profiles_when {
            let text =
                format!("the kernel's work for 10 s when {condition}, at most 6 times an hour");
            rows.add("profiles", &text);
        }
        rows.add_all("heaps", &heaps(&status.settings, status.heaps.as_ref()));
        rows.add_all("checks", &checks(&status.settings, status.checks.as_ref(), screen));
    }
    if let Some(recording) = &report.recording {
        rows.add("stored", &stored(recording, screen));
        rows.add("", &growth(recording, report.recorder.as_ref()));
        rows.add_all("damage", &recording.problems);
    }
    if let Some(status) = &report.recorder {
        disk(status, report.state, is_behind, &mut rows);
        losses(status, &mut rows);
        rows.add_all("not read", &not_read(status, report.user_id == Some(0)));
        if report.state == RecorderState::Running {
            rows.add_all("privileges", &status.privileges);
        }
    }
    rows.page.finish()
}

fn headline(report: &StatusReport, screen: &Screen, now: Timestamp) -> String {
    let directory = &report.directory;
    let pid = report.pid.map_or_else(String::new, |pid| format!(", pid {pid}"));
    let status = report.recorder.as_ref();
    let written = status.and_then(|status| status.written).map(|at| time(at, screen));
    match report.state {
        RecorderState::Running => {
            let started = status.and_then(|status| status.started);
            let since = started.map_or_else(String::new, |started| {
                let duration = span(now.duration_since(started).as_secs_f64());
                format!(" since {} ({duration})", time(started, screen))
            });
            let health = match &report.health {
                Some(health) if health.is_healthy => "healthy: ",
                Some(_) => "not healthy: ",
                None => "",
            };
            format!("{health}recording into {directory}{since}{pid}")
        }
        RecorderState::Stopped => {
            let when = written.map_or_else(String::new, |when| format!(" at {when}"));
            format!("not recording into {directory}: the recorder stopped cleanly{when}")
        }
        RecorderState::Gone => match written {
            Some(when) => format!(
                "not recording into {directory}: the recorder was killed or the machine went down; \
                 its status was last written at {when}; `memtide record` starts it again"
            ),
            None => format!("not recording into {directory}, which holds a recording"),
        },
        RecorderState::Vanished => format!(
            "{directory} was deleted, but its recorder still runs{pid}: samples wait in memory for \
             some minutes, then they are lost; create the directory again (`mkdir`) and recording \
             continues"
        ),
        RecorderState::None => {
            format!("{directory} holds no recording; `memtide record --to {directory}` starts one")
        }
    }
}

/// When the status was written, as its counts are of then, and the newest sample if it is late.
fn ages(health: &RecorderHealth, rows: &mut Rows<'_>) {
    if let Some(age) = health.status_age_s {
        if health.has(RecorderProblem::Stale) {
            let age = span(age);
            rows.add(
                "stale",
                &format!(
                    "the status below is {age} old: the recorder cannot write it, or is blocked"
                ),
            );
        } else {
            let age = span(age.max(0.0).round());
            let every = Span::from_secs(recorder_status::WRITTEN_EVERY_S);
            rows.add("as of", &format!("{age} ago: the recorder writes its status every {every}"));
        }
    }
    if let Some(age) = health.sample_age_s.filter(|_| health.has(RecorderProblem::Behind)) {
        let behind = span(age);
        rows.add(
            "behind",
            &format!(
                "the newest sample on disk is {behind} old: the recorder is stopped, or the disk \
                 is blocked"
            ),
        );
    }
}

fn samples(status: &RecorderStatus, rows: &mut Rows<'_>) {
    let samples = &status.samples;
    let counts = [(samples.late, "late"), (samples.missed, "missed"), (samples.lost, "lost")].map(
        |(n, what)| match n {
            0 => format!("none {what}"),
            n => format!("{} {what}", Count::new(n)),
        },
    );
    let taken = Count::new(samples.taken);
    let every = span(status.settings.every_s);
    rows.add("samples", &format!("{taken}, one every {every}; {}", counts.join(", ")));
    if samples.taken > 0 {
        let worst = samples.worst_late.map_or_else(String::new, |at| {
            let late = span(samples.worst_late_s);
            format!("; the worst {late} late at {}", time(at, rows.screen))
        });
        let late = span(samples.last_late_s);
        rows.add("", &format!("the last one {late} late{worst}"));
    }
}

fn cost(status: &RecorderStatus) -> String {
    let cost = &status.cost;
    let mut parts = Vec::new();
    if let Some(cpu_s) = cost.cpu_s_per_sample {
        let share = cost
            .cpu_share
            .map_or_else(String::new, |share| format!(", {} of one CPU", Ratio::new(share)));
        parts.push(format!("{} of CPU per sample{share}", span(cpu_s)));
    }
    if cost.rss_bytes > 0 {
        let pss =
            cost.pss_bytes.map_or_else(String::new, |pss| format!(" (PSS {})", Bytes::new(pss)));
        parts.push(format!("{} of RAM{pss}", Bytes::new(cost.rss_bytes)));
    }
    if let Some(start_s) = cost.cpu_start_s {
        parts.push(format!("startup took {}", span(start_s)));
    }
    if parts.is_empty() {
        parts.push("not known yet".to_owned());
    }
    parts.join("; ")
}

/// Returns how many processes there are, how they are read, and why not by BPF.
fn processes(status: &RecorderStatus) -> Vec<String> {
    let Some(source) = &status.tasks_source else {
        return vec!["not recorded".to_owned()];
    };
    let seen = &status.seen;
    let every = status
        .settings
        .processes_s
        .map_or_else(String::new, |every| format!(" every {}", span(every)));
    let processes = Count::new(seen.processes);
    let left_out = left_out(seen.processes_left_out);
    let mut lines = vec![format!("{processes}{left_out}{every}; source: {source}")];
    if seen.processes_left_out > 0 {
        lines.push(
            "left out: those beyond what one scan may read, or that do not answer".to_owned(),
        );
    }
    let why_not_bpf = status.why_not_bpf.as_ref();
    lines.extend(
        why_not_bpf.map(|why| format!("not by BPF, which costs less and shows more: {why}")),
    );
    let mut pss = match seen.shares_read {
        0 => "PSS not read yet".to_owned(),
        1 => "PSS read once so far".to_owned(),
        n => format!("PSS read {} times so far", Count::new(n)),
    };
    if seen.blocked > 0 {
        let blocked = Count::new(seen.blocked).named("process", "processes");
        pss.push_str(&format!("; {blocked} skipped: no answer in time"));
    }
    lines.push(pss);
    lines
}

fn cgroups(seen: &RecorderScans, settings: &RecorderSettings) -> Vec<String> {
    let services = Count::new(seen.services).named("service", "services");
    let Some(every) = seen.cgroups_every_s else {
        return vec![match seen.services {
            0 => "not recorded".to_owned(),
            _ => format!("not recorded; {services}"),
        }];
    };
    let mut lines = vec![format!(
        "{}{} every {}; {services}",
        Count::new(seen.cgroups),
        left_out(seen.cgroups_left_out),
        span(every)
    )];
    let planned = settings.cgroups_s.zip(settings.cgroups_cpu_share);
    if let Some((planned, share)) = planned.filter(|(planned, _)| every > *planned) {
        let share = Ratio::new(share);
        let planned = span(planned);
        lines.push(format!(
            "not every {planned}, as scans of all may take {share} of a CPU; the busiest are read \
             in between"
        ));
    }
    if seen.cgroups_left_out > 0 {
        lines.push(
            "left out: the smallest, beyond what one scan may read, and those nested too deep"
                .to_owned(),
        );
    }
    lines
}

/// Returns the malloc heaps that are read, what that costs, and which are not read.
fn heaps(settings: &RecorderSettings, heaps: Option<&RecorderHeaps>) -> Vec<String> {
    let Some(every) = settings.heaps_s else {
        return Vec::new();
    };
    let every = heaps.and_then(|heaps| heaps.every_s).unwrap_or(every);
    let plan = format!("{} every {}", settings.heaps_of.join(", "), span(every));
    let Some(heaps) = heaps else {
        return vec![format!("of {plan}; none read yet")];
    };
    let processes = Count::new(heaps.processes).named("process", "processes");
    let rounds = Count::new(heaps.rounds).named("reading", "readings");
    let mut lines = vec![format!(
        "{processes} of {plan}; {rounds} so far, the last took {} of CPU",
        span(heaps.cpu_s)
    )];
    lines.extend(heaps.problems.iter().cloned());
    lines
}

/// Returns how its recording is checked, what is wrong now, and what failed.
fn checks(
    settings: &RecorderSettings,
    checks: Option<&RecorderChecks>,
    screen: &Screen,
) -> Vec<String> {
    let Some(every) = settings.checks_s else {
        return Vec::new();
    };
    let checks = checks.cloned().unwrap_or_default();
    let every = span(checks.every_s.unwrap_or(every));
    if checks.done == 0 {
        return vec![format!("of its own recording every {every}; none done yet")];
    }
    let done = Count::new(checks.done);
    #[allow(clippy::cast_precision_loss)] // a count
    let each = span(checks.cpu_s / checks.done as f64);
    let failed = match checks.failed {
        0 => String::new(),
        n => format!(", {} without an answer", Count::new(n)),
    };
    let mut lines = vec![format!("{done}, one every {every}, {each} of CPU each{failed}")];
    if checks.active.is_empty() {
        lines.push("nothing is wrong now".to_owned());
    }
    lines.extend(checks.active.iter().map(|finding| {
        let since = finding.since.or(finding.found);
        let since = since.map_or_else(String::new, |at| format!(" since {}", time(at, screen)));
        format!("{} ({}){since}: {}", finding.id, finding.severity, finding.title)
    }));
    if let Some(command) = &settings.on_finding {
        let runs = Count::new(checks.commands_run).named("time", "times");
        let failed = match checks.commands_failed {
            0 => String::new(),
            n => format!(", and failed {}", Count::new(n).named("time", "times")),
        };
        lines.push(format!("`{command}` ran {runs}{failed}"));
    }
    lines.extend(checks.problems);
    lines
}

fn left_out(n: u64) -> String {
    match n {
        0 => String::new(),
        n => format!(" ({} left out)", Count::new(n)),
    }
}

fn stored(recording: &RecordingStatus, screen: &Screen) -> String {
    let size = recording.size_bytes;
    let period = recording
        .from
        .map(|from| format!(" since {} ({} recorded)", time(from, screen), recording.recorded_s));
    let segments = match recording.segments {
        0 => "; no sealed segment yet".to_owned(),
        1 => ", 1 sealed segment".to_owned(),
        n => format!(", {n} sealed segments"),
    };
    format!("{size}{}{segments}", period.unwrap_or_default())
}

/// Returns the size that the recording will grow to, against its limits and the disk.
fn growth(recording: &RecordingStatus, status: Option<&RecorderStatus>) -> String {
    let free = recording.free_bytes;
    let free_text = free.map(|free| format!("{free} of the disk are free"));
    let and_free = free_text.as_ref().map_or_else(String::new, |text| format!("; {text}"));
    let Some(settings) =
        status.map(|status| &status.settings).filter(|settings| settings.keep_s > 0.0)
    else {
        return free_text.unwrap_or_default();
    };
    let (max_age, max_size) = (span(settings.keep_s), Bytes::new(settings.keep_size_bytes));
    let Some(per_day) = recording.bytes_per_day.filter(|bytes| *bytes >= 1.0) else {
        return format!("at most {max_age} and {max_size} are stored{and_free}");
    };
    let full_size = Bytes::from_f64(per_day * settings.keep_s / 86_400.0);
    let remaining = full_size.min(max_size).saturating_sub(recording.size_bytes);
    let rate = format!("at {} a day", Bytes::from_f64(per_day));
    let time_for = |size: Bytes| span(size.as_f64() / per_day * 86_400.0);
    match free {
        Some(free) if free < remaining => {
            format!("{rate} the disk is full after {}{and_free}", time_for(free))
        }
        _ if full_size > max_size => format!(
            "{rate} {max_size} hold {}, less than the {max_age} configured{and_free}",
            time_for(max_size)
        ),
        _ => format!("{rate} {max_age} take {full_size} of at most {max_size}{and_free}"),
    }
}

fn disk(status: &RecorderStatus, state: RecorderState, is_behind: bool, rows: &mut Rows<'_>) {
    let disk = &status.disk;
    let waiting = Bytes::new(disk.waiting_bytes);
    let text = match (&disk.problem, state) {
        (None, RecorderState::Running) if is_behind => String::new(),
        (None, RecorderState::Running) => format!(
            "keeps up; {waiting} wait in memory, written within {}",
            span(status.settings.sync_s)
        ),
        (Some(problem), RecorderState::Running) => format!("{problem}; {waiting} wait in memory"),
        (Some(problem), _) => format!("last state: {problem}"),
        (None, _) => String::new(),
    };
    rows.add("disk", &text);
    if disk.parts_dropped > 0 {
        let parts = match disk.parts_dropped {
            1 => "part of the recording was".to_owned(),
            n => format!("{} parts of the recording were", Count::new(n)),
        };
        rows.add("", &format!("it was full: the oldest {parts} dropped"));
    }
    if let Some(since) = disk.lost_since {
        let since = time(since, rows.screen);
        rows.add("", &format!("samples have been lost since {since}"));
    }
    if let Some(error) = &disk.last_error {
        rows.add("last error", error);
    }
}

fn losses(status: &RecorderStatus, rows: &mut Rows<'_>) {
    let log = &status.kernel_log;
    if log.reports > 0 || log.overwritten > 0 {
        let reports = Count::new(log.reports).named("report", "reports");
        let overwritten = match log.overwritten {
            0 => String::new(),
            n => format!("; {} records were overwritten unread", Count::new(n)),
        };
        rows.add(
            "kernel log",
            &format!("{reports} of kills and failed allocations stored{overwritten}"),
        );
    }
    if status.events_lost > 0 {
        rows.add("events", &format!("{} lost: too many at once", Count::new(status.events_lost)));
    }
}

/// Files that cannot be read, grouped by reason.
fn not_read(status: &RecorderStatus, by_root: bool) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for absent in &status.absent {
        let log_problem =
            status.kernel_log.problem.as_deref().filter(|_| absent.file == KERNEL_LOG);
        let why = match (log_problem, absent.is_denied, by_root) {
            (Some(problem), ..) => problem,
            (None, true, false) => "permission denied: that needs root",
            (None, true, true) => "refused even to root, as in a container or a sandbox",
            (None, false, _) => &absent.why,
        };
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, files)) => files.push(&absent.file),
            None => reasons.push((why, vec![&absent.file])),
        }
    }
    reasons.into_iter().map(|(why, files)| format!("{}: {why}", files.join(", "))).collect()
}

fn span(seconds: f64) -> String {
    Span::from_secs_f64(seconds).to_string()
}

fn time(at: Timestamp, screen: &Screen) -> String {
    at.to_zoned(screen.zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Rows of a name and a text.
struct Rows<'a> {
    page: TextPage,
    screen: &'a Screen,
}

impl Rows<'_> {
    /// Adds a row, unless its text is empty.
    fn add(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            let head = [piece(Style::Strong, wrap::pad(name, INDENT))];
            self.page.hanging(&head, INDENT, Style::Plain, text);
        }
    }

    /// Adds rows that share a name.
    fn add_all(&mut self, name: &str, texts: &[String]) {
        for (index, text) in texts.iter().enumerate() {
            self.add(if index == 0 { name } else { "" }, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::status::STATUS_SCHEMA;
    use recorder_status::{AbsentFile, RecorderCost, RecorderSamples, RecorderSettings};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_795_240_800 + seconds).unwrap()
    }

    fn health(problems: Vec<RecorderProblem>) -> RecorderHealth {
        RecorderHealth {
            is_healthy: problems.is_empty(),
            problems,
            status_age_s: Some(5.0),
            sample_age_s: Some(10.0),
        }
    }

    fn report() -> StatusReport {
        StatusReport {
            schema: STATUS_SCHEMA,
            directory: "/var/lib/memtide".to_owned(),
            state: RecorderState::Running,
            pid: Some(812),
            user_id: Some(1000),
            health: Some(health(Vec::new())),
            recorder: Some(RecorderStatus {
                started: Some(at(0)),
                written: Some(at(7_195)),
                settings: RecorderSettings {
                    every_s: 1.0,
                    processes_s: Some(10.0),
                    keep_s: 14.0 * 86_400.0,
                    keep_size_bytes: 2 << 30,
                    sync_s: 5.0,
                    ..RecorderSettings::default()
                },
                samples: RecorderSamples {
                    taken: 7_195,
                    late: 3,
                    last_late_s: 0.0002,
                    worst_late_s: 0.34,
                    worst_late: Some(at(900)),
                    ..RecorderSamples::default()
                },
                cost: RecorderCost {
                    cpu_s: 2.2,
                    cpu_start_s: Some(0.15),
                    cpu_s_per_sample: Some(0.0003),
                    cpu_share: Some(0.0003),
                    rss_bytes: 4_300_000,
                    pss_bytes: Some(3_100_000),
                },
                seen: RecorderScans {
                    processes: 212,
                    cgroups: 61,
                    services: 24,
                    ..RecorderScans::default()
                },
                tasks_source: Some("BPF task iterator".to_owned()),
                absent: ["/proc/slabinfo", "/proc/pagetypeinfo"]
                    .map(|file| AbsentFile {
                        file: file.to_owned(),
                        why: "permission denied".to_owned(),
                        is_denied: true,
                    })
                    .to_vec(),
                privileges: vec!["memory is locked".to_owned()],
                ..RecorderStatus::default()
            }),
            recording: Some(RecordingStatus {
                size_bytes: Bytes::from_mib(4),
                segments: 2,
                from: Some(at(0)),
                to: Some(at(7_190)),
                recorded_s: Span::from_secs(7_190),
                free_bytes: Some(Bytes::from_gib(38)),
                bytes_per_day: Some(48.0 * 1_048_576.0),
                problems: Vec::new(),
            }),
        }
    }

    fn drawn(report: &StatusReport) -> String {
        draw(report, &Screen::of_width(80), at(7_200))
    }

    /// The text as one line.
    fn words(report: &StatusReport) -> String {
        let text = drawn(report);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn heaps_are_listed_with_their_cost_and_what_is_not_read() {
        let settings = RecorderSettings {
            heaps_of: vec!["redis".to_owned(), "web".to_owned()],
            heaps_s: Some(600.0),
            ..RecorderSettings::default()
        };
        assert_eq!(heaps(&RecorderSettings::default(), None), [""; 0]);
        let before = heaps(&settings, None);
        assert_eq!(before, ["of redis, web every 10 min; none read yet"]);
        let read = RecorderHeaps {
            processes: 2,
            rounds: 7,
            cpu_s: 0.3,
            problems: vec!["web (pid 7): no data".to_owned()],
            ..RecorderHeaps::default()
        };
        let lines = heaps(&settings, Some(&read));
        let first = "2 processes of redis, web every 10 min; 7 readings so far, the last took 300 \
                     ms of CPU";
        assert_eq!(lines, [first, "web (pid 7): no data"]);
    }

    #[test]
    fn cgroups_that_are_read_more_rarely_or_not_at_all_have_a_reason() {
        let mut seen = RecorderScans {
            cgroups: 2_048,
            cgroups_every_s: Some(10.0),
            services: 3,
            ..RecorderScans::default()
        };
        let settings = RecorderSettings {
            cgroups_s: Some(10.0),
            cgroups_cpu_share: Some(0.002),
            ..RecorderSettings::default()
        };
        assert_eq!(cgroups(&seen, &settings), ["2,048 every 10 s; 3 services"]);
        seen.cgroups_every_s = Some(81.0);
        seen.cgroups_left_out = 7;
        assert_eq!(
            cgroups(&seen, &settings),
            [
                "2,048 (7 left out) every 81 s; 3 services",
                "not every 10 s, as scans of all may take 0.2 % of a CPU; the busiest are read in \
                 between",
                "left out: the smallest, beyond what one scan may read, and those nested too deep",
            ]
        );
        // An earlier memtide did not write what was planned.
        let unknown = RecorderSettings::default();
        assert_eq!(cgroups(&seen, &unknown).len(), 2);
    }

    #[test]
    fn every_subject_has_its_row_and_no_row_is_wider_than_the_screen() {
        let text = drawn(&report());
        let words = words(&report());
        for part in [
            "healthy: recording into /var/lib/memtide since 2026-11-21",
            "(2 h), pid 812",
            "as of 5 s ago: the recorder writes its status every 30 s",
            "7,195, one every 1 s; 3 late, none missed, none lost",
            "the last one 200 µs late; the worst 340 ms late at",
            "300 µs of CPU per sample, 0.03 % of one CPU; 4.1 MiB of RAM (PSS 3 MiB); startup took \
             150 ms",
            "212 every 10 s; source: BPF task iterator",
            "stored 4 MiB since 2026-11-21",
            "at 48 MiB a day 14 d take 672 MiB of at most 2 GiB",
            "/proc/slabinfo, /proc/pagetypeinfo: permission denied: that needs root",
        ] {
            assert!(words.contains(part), "{part}\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn limits_that_will_be_reached_are_announced() {
        let predicted = |day_mib: f64, free: u64| {
            let mut report = report();
            let recording = report.recording.as_mut().unwrap();
            recording.bytes_per_day = Some(day_mib * 1_048_576.0);
            recording.free_bytes = Some(Bytes::new(free));
            words(&report)
        };
        let text = predicted(512.0, 38 << 30);
        assert!(text.contains("2 GiB hold 4 d, less than the 14 d configured"), "{text}");
        let text = predicted(48.0, 96 << 20);
        assert!(text.contains("the disk is full after 2 d"), "{text}");
    }

    #[test]
    fn a_killed_a_stopped_and_a_missing_recorder_read_differently() {
        for (state, expected) in [
            (RecorderState::Gone, "was killed or the machine went down"),
            (RecorderState::Stopped, "stopped cleanly at"),
            (RecorderState::Vanished, "was deleted, but its recorder"),
            (RecorderState::None, "holds no recording"),
        ] {
            let text = words(&StatusReport { state, pid: None, health: None, ..report() });
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn only_a_running_recorder_keeps_up_and_a_full_disk_is_not_healthy() {
        let mut report = report();
        assert!(drawn(&report).contains("keeps up"));
        report.recorder.as_mut().unwrap().disk.parts_dropped = 1;
        report.health = Some(health(vec![RecorderProblem::PartsDropped]));
        let text = drawn(&report);
        assert!(text.starts_with("not healthy: "), "{text}");
        assert!(text.contains("the oldest part of the recording was dropped"), "{text}");
        for state in [RecorderState::Gone, RecorderState::Stopped] {
            report.state = state;
            report.health = None;
            let text = drawn(&report);
            assert!(!text.contains("keeps up") && !text.contains("privileges"), "{text}");
        }
    }

    #[test]
    fn advice_depends_on_the_user_who_records() {
        let mut report = report();
        let status = report.recorder.as_mut().unwrap();
        status.tasks_source = Some("/proc".to_owned());
        status.why_not_bpf = Some("that needs root".to_owned());
        let text = words(&report);
        assert!(
            text.contains(
                "source: /proc not by BPF, which costs less and shows more: that needs root"
            ),
            "{text}"
        );
        report.user_id = Some(0);
        let text = words(&report);
        assert!(
            text.contains("/proc/pagetypeinfo: refused even to root, as in a container"),
            "{text}"
        );
    }

    #[test]
    fn the_kernel_log_says_itself_why_it_is_not_read() {
        let mut report = report();
        let status = report.recorder.as_mut().unwrap();
        status.kernel_log.problem = Some("dmesg_restrict is set".to_owned());
        status.absent =
            vec![AbsentFile { file: KERNEL_LOG.to_owned(), is_denied: true, ..Default::default() }];
        let text = words(&report);
        assert!(text.contains("/dev/kmsg: dmesg_restrict is set"), "{text}");
    }

    #[test]
    fn a_recorder_with_an_old_newest_sample_is_behind() {
        let mut behind = health(vec![RecorderProblem::Behind]);
        behind.sample_age_s = Some(20.0);
        let text = words(&StatusReport { health: Some(behind), ..report() });
        assert!(text.starts_with("not healthy: "), "{text}");
        assert!(text.contains("behind the newest sample on disk is 20 s old"), "{text}");
        assert!(!text.contains("keeps up"), "{text}");
        let text = words(&report());
        assert!(text.starts_with("healthy: ") && text.contains("keeps up"), "{text}");
    }

    #[test]
    fn a_stale_status_is_marked() {
        let mut stale = health(vec![RecorderProblem::Stale]);
        stale.status_age_s = Some(1_805.0);
        let text = words(&StatusReport { health: Some(stale), ..report() });
        assert!(text.contains("the status below is 30 min old"), "{text}");
    }

    #[test]
    fn a_name_from_the_disk_cannot_steer_the_terminal() {
        let text = drawn(&StatusReport { directory: "/tmp/\u{1b}[2J".to_owned(), ..report() });
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}
