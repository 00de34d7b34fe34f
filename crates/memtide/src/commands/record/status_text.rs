//! How `--status` looks on a terminal: a sentence, then a line or two for each thing that may be asked.

use jiff::Timestamp;
use report::plain::escape;
use report::{ColourMode, Screen};
use sampler::status::Status;
use units::{Bytes, Count, Quantity, Ratio, Span};

use answers::{RecorderState, RecordingStatus, StatusReport};

/// Where the text of a row begins.
const INDENT: usize = 13;
/// The status is written every half a minute.
const STALE_S: f64 = 75.0;

pub(super) fn draw(answer: &StatusReport, screen: &Screen, now: Timestamp) -> String {
    let mut page = Page::new(screen);
    page.heading(&heading(answer, screen, now));
    if let Some(status) = &answer.recorder {
        let age = status
            .written
            .map(|at| now.duration_since(at).as_secs_f64());
        if answer.state == RecorderState::Running && age.is_some_and(|age| age > STALE_S) {
            let age = span(age.unwrap_or(0.0));
            page.row(
                "stale",
                &format!("what follows is {age} old: the recorder cannot write it, or is held up"),
            );
        }
        rows_of(status, &mut page, screen);
    }
    if let Some(kept) = &answer.recording {
        page.row("kept", &of_kept(kept, screen));
        page.row("", &ahead(kept, answer.recorder.as_ref()));
        page.rows("damage", &kept.problems);
    }
    if let Some(status) = &answer.recorder {
        of_disk(answer, status, &mut page, screen);
        page.rows("not read", &not_read(status, answer.user_id == Some(0)));
        if answer.state == RecorderState::Running {
            page.rows("privileges", &status.privileges);
        }
    }
    page.text
}

fn heading(answer: &StatusReport, screen: &Screen, now: Timestamp) -> String {
    let directory = &answer.directory;
    let pid = answer
        .pid
        .map_or_else(String::new, |pid| format!(", pid {pid}"));
    let status = answer.recorder.as_ref();
    let at = |at: Option<Timestamp>| at.map(|at| time(at, screen));
    match answer.state {
        RecorderState::Running => {
            let since = status.and_then(|status| status.started);
            let since = since.map_or_else(String::new, |since| {
                let lasts = span(now.duration_since(since).as_secs_f64());
                format!(" since {} ({lasts})", time(since, screen))
            });
            format!(
                "{}recording into {directory}{since}{pid}",
                health(answer, now)
            )
        }
        RecorderState::Stopped => {
            let when = at(status.and_then(|status| status.written)).unwrap_or_default();
            format!("not recording into {directory}: the recorder ended in good order at {when}")
        }
        RecorderState::Gone => match at(status.and_then(|status| status.written)) {
            Some(when) => format!(
                "not recording into {directory}: the recorder was killed or the machine went down; \
                 its last sign of life is of {when}; `memtide record` starts it again"
            ),
            None => format!("not recording into {directory}, which holds a recording"),
        },
        RecorderState::Vanished => format!(
            "{directory} is gone, and its recorder still runs{pid}: samples wait in memory for some minutes, then they are \
             lost; make the directory again (`mkdir`) and it goes on"
        ),
        RecorderState::None => {
            format!("{directory} holds no recording; `memtide record --to {directory}` starts one")
        }
    }
}

/// What is asked first: whether all is as it should be.
fn health(answer: &StatusReport, now: Timestamp) -> &'static str {
    let Some(status) = &answer.recorder else {
        return "";
    };
    let age = status
        .written
        .map(|at| now.duration_since(at).as_secs_f64());
    let is_fresh = age.is_some_and(|age| age <= STALE_S);
    let keeps_all = status.disk.problem.is_none() && status.disk.lost_since.is_none();
    let is_whole = answer
        .recording
        .as_ref()
        .is_none_or(|kept| kept.problems.is_empty());
    if is_fresh && keeps_all && is_whole && status.disk.parts_dropped == 0 {
        "healthy: "
    } else {
        "not healthy: "
    }
}

fn rows_of(status: &Status, page: &mut Page, screen: &Screen) {
    let samples = &status.samples;
    let every = span(status.settings.every_s);
    let also = [
        (samples.late, "late"),
        (samples.missed, "missed"),
        (samples.lost, "lost"),
    ];
    let also: Vec<String> = also
        .iter()
        .map(|(n, what)| match n {
            0 => format!("none {what}"),
            n => format!("{} {what}", Count::new(*n)),
        })
        .collect();
    let taken = Count::new(samples.taken);
    page.row(
        "samples",
        &format!("{taken}, one every {every}; {}", also.join(", ")),
    );
    if samples.taken > 0 {
        let worst = samples.worst_late.map_or_else(String::new, |at| {
            format!(
                ", the most delayed one {} at {}",
                span(samples.worst_late_s),
                time(at, screen)
            )
        });
        page.row(
            "",
            &format!("the last came {} late{worst}", span(samples.last_late_s)),
        );
    }
    page.row("cost", &cost(status));
    page.rows("processes", &processes(status));
    page.row("groups", &groups(status));
}

fn cost(status: &Status) -> String {
    let cost = &status.cost;
    let mut parts = Vec::new();
    if let Some(each) = cost.cpu_s_per_sample {
        let share = cost.cpu_share.map_or_else(String::new, |share| {
            format!(", {} of one CPU", Ratio::new(share))
        });
        parts.push(format!("{} of CPU a sample{share}", span(each)));
    }
    let pss = cost
        .pss_bytes
        .map_or_else(String::new, |pss| format!(" (PSS {})", Bytes::new(pss)));
    if cost.rss_bytes > 0 {
        parts.push(format!("{} of RAM{pss}", Bytes::new(cost.rss_bytes)));
    }
    if let Some(start) = cost.cpu_start_s {
        parts.push(format!("starting took {}", span(start)));
    }
    if parts.is_empty() {
        parts.push("not known yet".to_owned());
    }
    parts.join("; ")
}

/// How many processes, how they are read, and what keeps it from being read better.
fn processes(status: &Status) -> Vec<String> {
    let Some(source) = &status.tasks_source else {
        return vec!["not recorded".to_owned()];
    };
    let seen = &status.seen;
    let every = status.settings.processes_s;
    let every = every.map_or_else(String::new, |every| format!(" every {}", span(every)));
    let left_out = match seen.processes_left_out {
        0 => String::new(),
        n => format!(" ({} left out)", Count::new(n)),
    };
    let (way, why) = match source.split_once("; no BPF task iterator: ") {
        Some((way, why)) => (way, Some(why)),
        None => (source.as_str(), None),
    };
    let processes = Count::new(seen.processes);
    let mut lines = vec![format!("{processes}{left_out}{every}, by {way}")];
    lines.extend(why.map(|why| format!("not by BPF, which costs less and tells more: {why}")));
    let mut shares = vec![format!("PSS read {}", times(seen.shares_read))];
    if seen.blocked > 0 {
        let blocked = Count::new(seen.blocked).named("process", "processes");
        shares.push(format!("{blocked} left alone, not answering in time"));
    }
    lines.push(shares.join("; "));
    lines
}

fn times(n: u64) -> String {
    match n {
        0 => "not yet".to_owned(),
        1 => "once so far".to_owned(),
        n => format!("{} times so far", Count::new(n)),
    }
}

fn groups(status: &Status) -> String {
    let seen = &status.seen;
    let services = Count::new(seen.services).named("service", "services");
    let Some(every) = seen.groups_every_s else {
        return match seen.services {
            0 => "not recorded".to_owned(),
            _ => format!("not recorded; {services}"),
        };
    };
    let cut = match seen.groups_left_out {
        0 => String::new(),
        n => format!(" ({} left out)", Count::new(n)),
    };
    let groups = Count::new(seen.groups).named("control group", "control groups");
    format!("{groups}{cut} every {}, {services}", span(every))
}

fn of_kept(kept: &RecordingStatus, screen: &Screen) -> String {
    let size = Bytes::new(kept.size_bytes);
    let span = kept.from.zip(kept.to).map(|(from, to)| {
        let lasts = span(to.duration_since(from).as_secs_f64());
        format!(" from {} on ({lasts})", time(from, screen))
    });
    let segments = match kept.segments {
        0 => "; nothing is sealed yet".to_owned(),
        1 => ", 1 sealed segment".to_owned(),
        n => format!(", {n} sealed segments"),
    };
    format!("{size}{}{segments}", span.unwrap_or_default())
}

/// What it will come to.
fn ahead(kept: &RecordingStatus, status: Option<&Status>) -> String {
    let free = kept.free_bytes.map(Bytes::new);
    let free_text = free.map_or_else(String::new, |free| format!("; {free} of the disk are free"));
    let settings = status
        .map(|status| &status.settings)
        .filter(|s| s.keep_s > 0.0);
    let Some(settings) = settings else {
        return free_text.trim_start_matches("; ").to_owned();
    };
    let (keep, most) = (span(settings.keep_s), Bytes::new(settings.keep_size_bytes));
    let Some(day) = kept.bytes_per_day.filter(|day| *day >= 1.0) else {
        return format!("keeps at most {keep} and {most}{free_text}");
    };
    let whole = Bytes::from_f64(day * settings.keep_s / 86_400.0);
    let goal = whole.min(most);
    let to_come = goal.saturating_sub(Bytes::new(kept.size_bytes));
    let day_text = Bytes::from_f64(day);
    let days = |size: Bytes| span(size.as_f64() / day * 86_400.0);
    match free {
        Some(free) if free < to_come => {
            format!(
                "at {day_text} a day the disk is full after {}{free_text}",
                days(free)
            )
        }
        _ if whole > most => format!(
            "at {day_text} a day {most} hold {}, less than the {keep} asked for{free_text}",
            days(most)
        ),
        _ => format!("at {day_text} a day {keep} take {whole} of at most {most}{free_text}"),
    }
}

fn of_disk(answer: &StatusReport, status: &Status, page: &mut Page, screen: &Screen) {
    let disk = &status.disk;
    let waiting = Bytes::new(disk.waiting_bytes);
    let text = match (&disk.problem, answer.state) {
        (None, RecorderState::Running) => {
            format!(
                "keeps up; {waiting} wait in memory, written within {}",
                span(status.settings.sync_s)
            )
        }
        (Some(problem), RecorderState::Running) => format!("{problem}; {waiting} wait in memory"),
        (Some(problem), _) => format!("at last: {problem}"),
        (None, _) => String::new(),
    };
    page.row("disk", &text);
    if disk.parts_dropped > 0 {
        let parts = match disk.parts_dropped {
            1 => "part of the recording was".to_owned(),
            many => format!("{} parts of the recording were", Count::new(many)),
        };
        page.row(
            "",
            &format!("it was full: the oldest {parts} dropped for it"),
        );
    }
    if let Some(since) = disk.lost_since {
        page.row(
            "",
            &format!("samples are lost since {}", time(since, screen)),
        );
    }
    if let Some(error) = &disk.last_error {
        page.row("last error", error);
    }
    if status.kernel_log.reports > 0 || status.kernel_log.overwritten > 0 {
        let log = &status.kernel_log;
        let mut text = Count::new(log.reports).named("report", "reports");
        text.push_str(" of kills and failed allocations kept");
        if log.overwritten > 0 {
            text.push_str(&format!(
                "; {} records were overwritten unread",
                Count::new(log.overwritten)
            ));
        }
        page.row("kernel log", &text);
    }
    if status.events_lost > 0 {
        page.row(
            "events",
            &format!("{} lost: too many at once", Count::new(status.events_lost)),
        );
    }
}

/// Files that cannot be read, those with one reason together.
fn not_read(status: &Status, by_root: bool) -> Vec<String> {
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for absent in &status.absent {
        let log = status
            .kernel_log
            .problem
            .as_ref()
            .filter(|_| absent.file == probe::kmsg::KMSG);
        let why = log.map_or(absent.why.as_str(), |why| {
            why.split_once(": ").map_or(why.as_str(), |(_, why)| why)
        });
        match reasons.iter_mut().find(|(known, _)| known == why) {
            Some((_, files)) => files.push(&absent.file),
            None => reasons.push((why.to_owned(), vec![&absent.file])),
        }
    }
    let line = |(why, files): &(String, Vec<&str>)| {
        let why = match (why.as_str(), by_root) {
            ("permission denied", false) => "permission denied: that needs root",
            ("permission denied", true) => "refused even to root, as in a container or a sandbox",
            (why, _) => why,
        };
        format!("{}: {why}", files.join(", "))
    };
    reasons.iter().map(line).collect()
}

fn span(seconds: f64) -> String {
    Span::from_secs_f64(seconds).to_string()
}

fn time(at: Timestamp, screen: &Screen) -> String {
    at.to_zoned(screen.zone.clone())
        .strftime("%Y-%m-%d %H:%M:%S")
        .to_string()
}

/// Rows of a name and a text that is broken into lines.
struct Page {
    text: String,
    columns: usize,
    colour: bool,
}

impl Page {
    fn new(screen: &Screen) -> Self {
        Self {
            text: String::new(),
            columns: screen.width(),
            colour: screen.colour == ColourMode::Ansi,
        }
    }

    fn heading(&mut self, text: &str) {
        for line in broken(&escape(text), self.columns) {
            let line = self.bold(&line);
            self.text.push_str(&line);
            self.text.push('\n');
        }
    }

    fn rows(&mut self, name: &str, texts: &[String]) {
        for (index, text) in texts.iter().enumerate() {
            self.row(if index == 0 { name } else { "" }, text);
        }
    }

    fn row(&mut self, name: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        let columns = self.columns.saturating_sub(INDENT);
        for (index, line) in broken(&escape(text), columns).iter().enumerate() {
            let name = if index == 0 { name } else { "" };
            let padded = format!("{name:<INDENT$}");
            let padded = if name.is_empty() {
                padded
            } else {
                self.bold(&padded)
            };
            self.text.push_str(&padded);
            self.text.push_str(line);
            self.text.push('\n');
        }
    }

    fn bold(&self, text: &str) -> String {
        if self.colour {
            format!("\u{1b}[1m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Lines of at most so many characters, broken at blanks; a longer word stands alone.
fn broken(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let Some(line) = lines.last_mut() else { break };
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= columns {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use sampler::status::{Absent, Cost, Samples, Seen, Settings};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_795_240_800 + seconds).unwrap()
    }

    fn answer() -> StatusReport {
        StatusReport {
            schema: "memtide-recorder/1",
            directory: "/var/lib/memtide".to_owned(),
            state: RecorderState::Running,
            pid: Some(812),
            user_id: Some(1000),
            recorder: Some(Status {
                started: Some(at(0)),
                written: Some(at(7_195)),
                settings: Settings {
                    every_s: 1.0,
                    processes_s: Some(10.0),
                    keep_s: 14.0 * 86_400.0,
                    keep_size_bytes: 2 << 30,
                    sync_s: 5.0,
                },
                samples: Samples {
                    taken: 7_195,
                    late: 3,
                    last_late_s: 0.0002,
                    worst_late_s: 0.34,
                    worst_late: Some(at(900)),
                    ..Samples::default()
                },
                cost: Cost {
                    cpu_s: 2.2,
                    cpu_start_s: Some(0.15),
                    cpu_s_per_sample: Some(0.0003),
                    cpu_share: Some(0.0003),
                    rss_bytes: 4_300_000,
                    pss_bytes: Some(3_100_000),
                },
                seen: Seen {
                    processes: 212,
                    groups: 61,
                    services: 24,
                    ..Seen::default()
                },
                tasks_source: Some("BPF task iterator".to_owned()),
                absent: ["/proc/slabinfo", "/proc/pagetypeinfo"]
                    .map(|file| Absent {
                        file: file.to_owned(),
                        why: "permission denied".to_owned(),
                    })
                    .to_vec(),
                privileges: vec!["memory is locked".to_owned()],
                ..Status::default()
            }),
            recording: Some(RecordingStatus {
                size_bytes: 4 << 20,
                segments: 2,
                from: Some(at(0)),
                to: Some(at(7_190)),
                free_bytes: Some(38 << 30),
                bytes_per_day: Some(48.0 * 1_048_576.0),
                problems: Vec::new(),
            }),
        }
    }

    fn drawn(answer: &StatusReport) -> String {
        draw(answer, &Screen::of_width(80), at(7_200))
    }

    /// The text as one line.
    fn words(answer: &StatusReport) -> String {
        let text = drawn(answer);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_question_has_its_row_and_no_row_is_wider_than_the_screen() {
        let text = drawn(&answer());
        for part in [
            "healthy: recording into /var/lib/memtide since 2026-11-21",
            "(2 h), pid 812",
            "7,195, one every 1 s; 3 late, none missed, none lost",
            "the last came 200 µs late, the most delayed one 340 ms at",
            "300 µs of CPU a sample, 0.03 % of one CPU; 4.1 MiB of RAM (PSS 3 MiB); starting took 150 ms",
            "212 every 10 s, by BPF task iterator",
            "4 MiB from 2026-11-21",
            "at 48 MiB a day 14 d take 672 MiB of at most 2 GiB",
            "/proc/slabinfo, /proc/pagetypeinfo: permission denied: that needs root",
        ] {
            let words: Vec<&str> = text.split_whitespace().collect();
            assert!(words.join(" ").contains(part), "{part}\n{text}");
        }
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    }

    #[test]
    fn what_the_limits_come_to_is_said_before_it_happens() {
        let ahead = |day_mib: f64, free: u64| {
            let mut answer = answer();
            let kept = answer.recording.as_mut().unwrap();
            kept.bytes_per_day = Some(day_mib * 1_048_576.0);
            kept.free_bytes = Some(free);
            drawn(&answer)
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        };
        let text = ahead(512.0, 38 << 30);
        assert!(
            text.contains("2 GiB hold 4 d, less than the 14 d asked for"),
            "{text}"
        );
        let text = ahead(48.0, 96 << 20);
        assert!(text.contains("the disk is full after 2 d"), "{text}");
    }

    #[test]
    fn one_that_was_killed_is_told_from_one_that_ended_and_from_none() {
        for (state, says) in [
            (RecorderState::Gone, "was killed or the machine went down"),
            (RecorderState::Stopped, "ended in good order at"),
            (RecorderState::None, "holds no recording"),
        ] {
            let text = drawn(&StatusReport {
                state,
                pid: None,
                ..answer()
            });
            assert!(
                text.split_whitespace()
                    .collect::<Vec<_>>()
                    .join(" ")
                    .contains(says),
                "{text}"
            );
        }
    }

    #[test]
    fn a_recorder_that_does_not_run_is_not_said_to_keep_up_and_a_full_disk_is_not_healthy() {
        let mut answer = answer();
        assert!(drawn(&answer).contains("keeps up"));
        answer.recorder.as_mut().unwrap().disk.parts_dropped = 1;
        let text = drawn(&answer);
        assert!(text.starts_with("not healthy: "), "{text}");
        assert!(
            text.contains("the oldest part of the recording was dropped"),
            "{text}"
        );
        for state in [RecorderState::Gone, RecorderState::Stopped] {
            answer.state = state;
            let text = drawn(&answer);
            assert!(
                !text.contains("keeps up") && !text.contains("privileges"),
                "{text}"
            );
        }
    }

    #[test]
    fn advice_is_for_whoever_records() {
        let mut answer = answer();
        let status = answer.recorder.as_mut().unwrap();
        status.tasks_source = Some("/proc; no BPF task iterator: that needs root".to_owned());
        let text = words(&answer);
        assert!(
            text.contains("by /proc not by BPF, which costs less and tells more: that needs root"),
            "{text}"
        );
        answer.user_id = Some(0);
        let text = words(&answer);
        assert!(
            text.contains("/proc/pagetypeinfo: refused even to root, as in a container"),
            "{text}"
        );
    }

    #[test]
    fn a_status_that_is_old_is_not_passed_off_as_new() {
        let text = draw(&answer(), &Screen::of_width(80), at(9_000));
        assert!(text.contains("what follows is 30 min old"), "{text}");
    }
}
