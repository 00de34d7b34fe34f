//! Reports of OOM kills and failed allocations, taken from the kernel log as they are written, with their lines.
//!
//! A report has many records that arrive within milliseconds; it is complete when none of it has arrived for a second.
//! At the start the log has all records since boot: those that were read before are skipped by their number.

use timeline::{Absence, KernelReport, Stamp};
use units::{Count, Span, WallClock};

use crate::error::ReadError;
use crate::kernel_file::Root;
use crate::kernel_log::kmsg::{KernelLog, Next, Record};
use crate::kernel_log::{report, stored};

/// A report is complete after this pause: its lines follow each other within milliseconds, on a thrashing host within
/// tenths of a second.
const SETTLED: Span = Span::from_secs(1);
/// The most bytes that wait for a report to be complete; a table of 10,000 tasks has 1 MB.
const WAITING_MAX: usize = 2 << 20;
/// The most bytes stored of a report: its beginning, which names the cause, and its end, which names the victim.
const KEPT_MAX: usize = 64 << 10;
const END_KEPT: usize = 16 << 10;
/// How long a measured difference of clocks is valid: at 50 parts per million they drift apart by a second in this
/// time.
const SKEW_HOLDS: Span = Span::from_hours(6);

/// A report from the log.
#[derive(Debug, Clone)]
pub struct Written {
    /// When its first line was written, on all clocks.
    pub stamp: Stamp,
    /// The parsed report.
    pub report: KernelReport,
    /// Its lines; of a very long report only the beginning and the end.
    pub lines: String,
}

/// A watch on the kernel log for reports. It never waits.
#[derive(Debug)]
pub struct LogWatch {
    log: Option<KernelLog>,
    /// Why the log is not read.
    absence: Option<Absence>,
    /// The number of the next record; `None` before the first.
    next: Option<u64>,
    /// Records that were overwritten before they were read.
    overwritten: u64,
    reports: u64,
    skew: Skew,
    waiting: WaitingLines,
}

impl LogWatch {
    /// Opens the log at record `from`: the first unread one of this boot, or the oldest one if that is `None`.
    pub fn open(root: &Root, from: Option<u64>) -> Self {
        let opened = KernelLog::open(root);
        Self {
            absence: opened.as_ref().err().map(ReadError::absence),
            log: opened.ok(),
            next: from,
            overwritten: 0,
            reports: 0,
            skew: Skew::default(),
            waiting: WaitingLines::default(),
        }
    }

    /// Returns the device, to wait for new records; `None` if the log is not read.
    pub fn device(&self) -> Option<&KernelLog> {
        self.log.as_ref()
    }

    /// Returns why the log is not read; `None` if it is.
    pub fn absence(&self) -> Option<&Absence> {
        self.absence.as_ref()
    }

    /// Whether lines of an incomplete report wait.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.lines.is_empty()
    }

    /// Returns the record at which the next reader must continue: waiting lines are not reported yet.
    pub fn resume_at(&self) -> Option<u64> {
        let first = self.waiting.lines.first().map(|line| line.sequence);
        first.or(self.next)
    }

    /// Returns how many records were overwritten before they were read.
    pub fn overwritten(&self) -> u64 {
        self.overwritten
    }

    /// Returns the number of reports so far.
    pub fn reports(&self) -> u64 {
        self.reports
    }

    /// Reads new records. `within`: they were written at most this long ago, zero if the caller was waiting for them;
    /// `None` if unknown, as at the first read.
    pub fn read(&mut self, now: Stamp, within: Option<Span>) {
        let Some(log) = &mut self.log else { return };
        let mut within = within;
        loop {
            match log.read() {
                Ok(Next::Record(record)) => {
                    if let Some(within) = within.take() {
                        self.skew.learn(record.at, now, within);
                    }
                    if let Some(expected) = self.next {
                        if record.sequence < expected {
                            continue;
                        }
                        self.overwritten += record.sequence - expected;
                    }
                    self.next = Some(record.sequence + 1);
                    self.waiting.take(record, now.boot);
                }
                Ok(Next::Unreadable) => {}
                Ok(Next::Nothing) => return,
                Err(error) => {
                    self.absence = Some(error.absence());
                    self.log = None;
                    return;
                }
            }
        }
    }

    /// Returns the reports that are complete; at the end, also those that are not.
    pub fn settled(&mut self, now: Stamp, is_end: bool) -> Vec<Written> {
        let mut all = Vec::new();
        let skew = self.skew;
        self.waiting.settle(now.boot, is_end, |lines, report| {
            let stamp = lines.first().map(|line| skew.stamp(line.at, now));
            all.push(Written { stamp: stamp.unwrap_or(now), report, lines: stored_text(lines) });
        });
        self.reports += u64::try_from(all.len()).unwrap_or(0);
        all
    }
}

/// The offset of the kernel's clock from CLOCK_MONOTONIC: it is never adjusted, so they drift apart by minutes over
/// weeks of uptime.
#[derive(Debug, Clone, Copy, Default)]
struct Skew {
    /// The offset to add to a time of the log, in nanoseconds, and when it was measured.
    measured: Option<(i64, Span)>,
}

impl Skew {
    /// Measures the offset from a record that was written within this span before now. The smallest of several
    /// measurements has the least delay in it; an offset that the delay alone explains is ignored.
    fn learn(&mut self, at: Span, now: Stamp, within: Span) {
        let Some(awake) = now.awake else { return };
        let ahead = signed(awake).saturating_sub(signed(at));
        if (0..signed(within)).contains(&ahead) {
            return;
        }
        let holds = |(known, when): &(i64, Span)| *known <= ahead && awake - *when < SKEW_HOLDS;
        if !self.measured.as_ref().is_some_and(holds) {
            self.measured = Some((ahead, awake));
        }
    }

    /// Converts a time of the log to all clocks; the result is never later than now.
    fn stamp(self, at: Span, now: Stamp) -> Stamp {
        let Some(awake) = now.awake else { return now };
        let ahead = self.measured.map_or(0, |(ahead, _)| ahead);
        let ago = signed(awake) - signed(at).saturating_add(ahead);
        let ago = Span::from_nanos(u64::try_from(ago).unwrap_or(0));
        Stamp {
            boot: now.boot - ago,
            awake: Some(awake - ago),
            wall: now.wall.map(|wall| {
                let nanos = wall.unix_nanos().saturating_sub(signed(ago));
                WallClock::from_unix_nanos(nanos)
            }),
            boot_id: now.boot_id,
        }
    }
}

fn signed(span: Span) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

/// A line of the log that may belong to a report.
#[derive(Debug)]
struct LogLine {
    sequence: u64,
    /// When it was written, on the kernel's clock.
    at: Span,
    /// When it was read, on the boot clock.
    read: Span,
    text: String,
}

/// Lines from the beginning of a report until it is complete.
#[derive(Debug, Default)]
struct WaitingLines {
    lines: Vec<LogLine>,
    bytes: usize,
}

impl WaitingLines {
    /// Adds a record's lines, unless they are outside of a report and none begins there.
    fn take(&mut self, record: Record, read: Span) {
        if !record.is_of_kernel {
            return;
        }
        if record.goes_on
            && let Some(last) = self.lines.last_mut()
        {
            last.text.push_str(&record.text);
            self.bytes += record.text.len();
            return;
        }
        for text in record.messages() {
            if self.lines.is_empty() && !report::is_message(text) {
                continue;
            }
            self.bytes += text.len();
            self.lines.push(LogLine {
                sequence: record.sequence,
                at: record.at,
                read,
                text: text.to_owned(),
            });
        }
    }

    /// Passes complete reports with their lines to `found`, and removes them and the lines between them.
    fn settle(&mut self, now: Span, is_end: bool, mut found: impl FnMut(&[LogLine], KernelReport)) {
        let at_once = is_end || self.bytes > WAITING_MAX;
        let mut done = 0;
        while let Some(rest) = self.lines.get(done..).filter(|rest| !rest.is_empty()) {
            let texts = rest.iter().map(|line| line.text.as_str());
            let Some((count, report)) = report::read_messages(texts) else {
                done += 1;
                continue;
            };
            let lines = rest.get(..count.max(1)).unwrap_or(rest);
            let last = lines.last().map_or(now, |line| line.read);
            if now - last < SETTLED && !at_once {
                break;
            }
            done += lines.len();
            if is_event(&report) {
                found(lines, report);
            }
        }
        self.lines.drain(..done.min(self.lines.len()));
        self.bytes = self.lines.iter().map(|line| line.text.len()).sum();
    }
}

/// Whether a report is one of a kill or of a failed allocation. A memory dump on request (SysRq m) is neither, and a few
/// lines without a reason and a victim may be of anything, as users choose names within the kernel's messages.
fn is_event(report: &KernelReport) -> bool {
    let is_named = report.invoker.is_some() || report.request.is_some();
    (is_named || !report.killed.is_empty()) && !report.is_memory_dump()
}

/// Returns the lines of a report; of a very long one the beginning, the number of lines left out, and the end.
fn stored_text(lines: &[LogLine]) -> String {
    let sizes = || lines.iter().map(|line| line.text.len() + 1);
    if sizes().sum::<usize>() <= KEPT_MAX {
        return joined(lines);
    }
    let fitting = |room: usize, sizes: &mut dyn Iterator<Item = usize>| {
        let sums = sizes.scan(0, |sum, size| {
            *sum += size;
            Some(*sum)
        });
        sums.take_while(|sum| *sum <= room).count()
    };
    let first = fitting(KEPT_MAX - END_KEPT, &mut sizes());
    let last = fitting(END_KEPT - 100, &mut sizes().rev());
    let between = lines.len() - first - last;
    let between = Count::new(u64::try_from(between).unwrap_or(u64::MAX));
    format!(
        "{}\n[{between} lines are left out here]\n{}",
        joined(&lines[..first]),
        joined(&lines[lines.len() - last..])
    )
}

fn joined(lines: &[LogLine]) -> String {
    let texts: Vec<_> = lines.iter().map(|line| stored::line(&line.text)).collect();
    texts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel_log::kmsg::parse;
    use timeline::kernel_report::ReportKind;

    fn at(seconds: u64) -> Stamp {
        Stamp {
            boot: Span::from_secs(seconds + 100),
            awake: Some(Span::from_secs(seconds)),
            wall: Some(WallClock::from_unix_nanos(signed(Span::from_secs(seconds + 1_000)))),
            ..Stamp::default()
        }
    }

    fn record(sequence: u64, seconds: u64, text: &str) -> Record {
        Record {
            sequence,
            at: Span::from_secs(seconds),
            is_of_kernel: true,
            goes_on: false,
            text: text.to_owned(),
        }
    }

    fn report(pid: u32, tasks: usize) -> Vec<String> {
        let mut lines = vec![
            "java invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0"
                .to_owned(),
            "Tasks state (memory values in pages):".to_owned(),
            "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name"
                .to_owned(),
        ];
        let task = |pid| {
            format!(
                "[{pid:7}]     0 {pid:5}    34512     7812   233472        0             0 java"
            )
        };
        lines.extend((0..tasks).map(|i| task(i + 1)));
        lines.push(format!(
            "Out of memory: Killed process {pid} (java) total-vm:4096kB, anon-rss:2048kB, \
             file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:40kB oom_score_adj:0"
        ));
        lines
    }

    /// A watch that received these lines, one per record, at second 10.
    fn watch(lines: &[String]) -> LogWatch {
        let nowhere = tempfile::tempdir().unwrap();
        let mut watch = LogWatch::open(&Root::at(nowhere.path()), None);
        for (sequence, line) in lines.iter().enumerate() {
            let sequence = u64::try_from(sequence).unwrap();
            watch.waiting.take(record(sequence, 10, line), at(10).boot);
        }
        watch
    }

    #[test]
    fn a_report_is_whole_when_nothing_of_it_has_come_for_a_second() {
        let mut lines = report(812, 3);
        lines.insert(0, "usb 1-1: new device".to_owned());
        lines.push("eth0: link up".to_owned());
        let mut watch = watch(&lines);
        assert!(watch.settled(at(10), false).is_empty());
        assert!(watch.is_waiting());
        assert_eq!(watch.resume_at(), Some(1));
        let found = watch.settled(at(12), false);
        let [written] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(written.report.kind, ReportKind::OomKill);
        assert_eq!(written.report.subject(), "java (812)");
        assert_eq!(written.stamp, at(10));
        assert_eq!(written.lines, report(812, 3).join("\n"));
        assert!(!watch.is_waiting());
    }

    #[test]
    fn each_kill_of_a_storm_is_a_report_of_its_own() {
        let lines: Vec<String> = (1..=5).flat_map(|pid| report(pid, 2)).collect();
        let subjects: Vec<String> = watch(&lines)
            .settled(at(20), false)
            .into_iter()
            .map(|it| it.report.subject())
            .collect();
        assert_eq!(subjects, ["java (1)", "java (2)", "java (3)", "java (4)", "java (5)"]);
    }

    #[test]
    fn of_a_very_long_report_beginning_and_end_are_kept_and_the_cut_is_named() {
        let lines = report(812, 2_000);
        let found = watch(&lines).settled(at(20), false);
        let text = &found[0].lines;
        assert!(text.len() <= KEPT_MAX, "{}", text.len());
        assert!(text.starts_with("java invoked") && text.contains("Killed process 812"));
        let stored = text.lines().count() - 1;
        let cut = Count::new(u64::try_from(lines.len() - stored).unwrap());
        assert!(text.contains(&format!("[{cut} lines are left out here]")), "{cut}");
    }

    #[test]
    fn what_programs_write_to_the_log_is_no_kill() {
        let mut watch = watch(&[]);
        for line in report(1, 1) {
            let forged = Record { is_of_kernel: false, ..record(1, 1, &line) };
            watch.waiting.take(forged, at(1).boot);
        }
        assert!(watch.settled(at(9), true).is_empty());
    }

    /// A record of the device as the kernel writes it: what no terminal shows is escaped, and a backslash.
    fn device_record(sequence: usize, message: &[u8]) -> Record {
        let mut record = format!("4,{sequence},10000000,-;");
        for byte in message {
            match byte {
                b'\\' | 0..0x20 | 0x7f.. => record.push_str(&format!("\\x{byte:02x}")),
                byte => record.push(char::from(*byte)),
            }
        }
        parse(format!("{record}\n").as_bytes()).unwrap()
    }

    /// The reports of messages that come one after the other, read and as they are read again where they were stored.
    fn reports(messages: &[Vec<u8>]) -> Vec<Written> {
        let mut watch = watch(&[]);
        for (sequence, message) in messages.iter().enumerate() {
            let record = device_record(sequence, message);
            watch.waiting.take(record, at(10).boot);
        }
        let found = watch.settled(at(20), true);
        for written in &found {
            let lines: Vec<_> = written.lines.lines().map(stored::message).collect();
            let again = report::read_messages(lines.iter().map(AsRef::as_ref));
            let (count, again) = again.unwrap();
            assert_eq!(count, lines.len(), "{}", written.lines);
            assert_eq!(again.killed, written.report.killed, "{}", written.lines);
            assert_eq!(again.tasks, written.report.tasks, "{}", written.lines);
        }
        found
    }

    /// The messages of a kill in a cgroup by 6.18, with a name in each place that has one.
    fn kill_in_group(name: &[u8], pid: u32, path: &[u8]) -> Vec<Vec<u8>> {
        let with_name =
            |front: &str, behind: &str| [front.as_bytes(), name, behind.as_bytes()].concat();
        let row = format!(
            "[{pid:7}]     0 {pid:5}     6126     4199     3273      926         0    86016        0             0 "
        );
        let fields =
            |front: &str| [front.as_bytes(), b",oom_memcg=", path, b",task_memcg=", path].concat();
        vec![
            with_name("", " invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, \
                           oom_score_adj=0"),
            with_name(&format!("CPU: 0 UID: 0 PID: {pid} Comm: "),
                " Not tainted 6.18.44 #1 PREEMPT(none) "),
            b"memory: usage 6144kB, limit 6144kB, failcnt 27".to_vec(),
            [b"Memory cgroup stats for ", path, b":"].concat(),
            b"anon 5914624\nfile 0\nkernel_stack 16384".to_vec(),
            b"Tasks state (memory values in pages):".to_vec(),
            b"[  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents oom_score_adj name".to_vec(),
            with_name(&row, ""),
            [fields("oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0"), with_name(",task=", &format!(",pid={pid},uid=0"))].concat(),
            kill(name, pid),
        ]
    }

    /// The line of a kill, which stands alone where the kernel limits the rate of its reports.
    fn kill(name: &[u8], pid: u32) -> Vec<u8> {
        let front = format!("Memory cgroup out of memory: Killed process {pid} (");
        let behind = ") total-vm:24504kB, anon-rss:13092kB, file-rss:3704kB, shmem-rss:0kB, UID:0 \
                      pgtables:84kB oom_score_adj:0";
        [front.as_bytes(), name, behind.as_bytes()].concat()
    }

    #[test]
    fn the_lines_of_one_list_of_counts_are_lines_of_the_report() {
        let found = reports(&kill_in_group(b"java", 812, b"/leaker"));
        let [written] = found.as_slice() else { panic!("{found:?}") };
        let group = written.report.group.as_ref().unwrap();
        assert_eq!(group.stat.len(), 3, "{group:?}");
        assert!(written.lines.contains("\nfile 0\n"), "{}", written.lines);
        assert_eq!(written.report.not_understood_in_all, 0);
    }

    #[test]
    fn a_process_with_any_name_is_killed_once_and_by_its_name() {
        let names: [&[u8]; 26] = [
            b"\nghost1",
            b"ghost\n",
            b"\n",
            b"\n\n\na\n\nb\n",
            b"a\nOut of memor",
            b"\nKill process 1",
            b"Killed process ",
            b"Kill process 1 ",
            b"\nKilled process",
            b"1 (init)",
            b"x) total-vm:1kB",
            b"a (b) c)",
            b")",
            b"((((",
            b" score 5",
            b"oom-kill:",
            b"oom_reaper: ",
            b",task=x",
            b",pid=1,uid=0",
            b"active_anon:1\n2",
            b"anon 1\nfile 2",
            br"\x0aghost",
            br"a\nb\",
            b" 12 34 ",
            b"",
            b"\t\r\x1b[2J\x7f'\"`|>",
        ];
        let pid = |number: usize| u32::try_from(number + 800).unwrap();
        let shown = |name: &[u8]| String::from_utf8(name.to_vec()).unwrap();
        for whole in [true, false] {
            let all = names.iter().enumerate().flat_map(|(number, name)| {
                let name = &name[..name.len().min(15)];
                if whole {
                    kill_in_group(name, pid(number), b"/leaker")
                } else {
                    vec![kill(name, pid(number))]
                }
            });
            let found = reports(&all.collect::<Vec<_>>());
            let killed: Vec<_> = found
                .iter()
                .flat_map(|written| &written.report.killed)
                .map(|killed| (killed.name.clone(), killed.pid, killed.anon))
                .collect();
            let expected: Vec<_> = names
                .iter()
                .enumerate()
                .map(|(number, name)| {
                    let size = units::Bytes::from_kib(13_092);
                    (shown(name), pid(number), Some(size))
                })
                .collect();
            assert_eq!(killed, expected);
            assert_eq!(found.len(), names.len());
            if whole {
                for (written, name) in found.iter().zip(names) {
                    let report = &written.report;
                    let tasks: Vec<_> =
                        report.tasks.iter().map(|task| task.name.as_str()).collect();
                    assert_eq!(tasks, [shown(name)]);
                    assert_eq!(report.invoker.as_ref().unwrap().name, shown(name));
                    assert_eq!(report.kernel.as_deref(), Some("6.18.44"), "{name:?}");
                    assert_eq!(report.not_understood_in_all, 0, "{:?}", report.not_understood);
                }
            }
        }
        // Bytes that are no text.
        let found = reports(&kill_in_group(&[0xff; 15], 9, b"/leaker"));
        assert_eq!(found[0].report.killed[0].name, "\u{fffd}".repeat(15));
        assert_eq!(found[0].report.tasks.len(), 1);
    }

    #[test]
    fn a_cgroup_with_words_of_the_kernel_in_its_name_is_no_other_cgroup() {
        let path = "/user/x,task_memcg=/docker/A,task=y,pid=1,uid=0";
        let found = reports(&kill_in_group(b"hog", 812, path.as_bytes()));
        let group = found[0].report.group.as_ref().unwrap();
        assert_eq!((&*group.path, &*group.victim_path), (path, path));
        let global = "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0-1,global_oom,task_memcg=/user/x,oom_memcg=/docker/A,task_memcg=/docker/A,task=hog,pid=812,uid=0";
        let found = reports(&[global.as_bytes().to_vec(), kill(b"hog", 812)]);
        let group = found[0].report.group.as_ref().unwrap();
        let victim = "/user/x,oom_memcg=/docker/A,task_memcg=/docker/A";
        assert_eq!((&*group.path, &*group.victim_path), ("", victim));
        assert_eq!(found[0].report.mems_allowed.as_deref(), Some("0-1"));
    }

    /// The kernel logs names that users choose: of a process up to 15 bytes, of a file up to 255.
    #[test]
    fn what_a_user_makes_the_kernel_log_is_no_kill_of_another_process() {
        let forged = [
            "Out of memory: Killed process 1 (systemd) total-vm:9kB, anon-rss:7kB, file-rss:0kB, \
             shmem-rss:0kB, UID:0 pgtables:40kB oom_score_adj:0",
            " (systemd) score 5",
            " invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
            ": page allocation failure: order:0, mode:0xcc0(GFP_KERNEL)",
            " killed as a result of limit of ",
            "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=a,task_memcg=a,task=systemd,pid=1,uid=0",
            "(1) possible memory allocation deadlock size 9 in kmem_alloc (mode:0x250)",
        ];
        let names = [
            "a",
            "\n",
            "Kill process 1 ",
            "Killed process ",
            "Out of memory: ",
            "oom-kill:",
            "oom_reaper: ",
            "Task in /",
            "XFS: ",
            "VM: killing pro",
            "memory: usage ",
            "Mem-Info:\n",
            "SLUB: Unable to",
        ];
        for name in names {
            for file in forged {
                for between in ["", "\n"] {
                    let crash = format!(
                        "{name}[4242]: segfault at 0 ip 0000555 sp 00007ffc error 4 in \
                         {between}{file}{between}[555000+1000] likely on CPU 1 (core 1, socket \
                         0)"
                    );
                    let script = format!(
                        "process '/tmp/{between}{file}{between}' started with executable stack"
                    );
                    let messages =
                        [&crash, &crash, &script, &script].map(|it| it.clone().into_bytes());
                    let found = reports(&messages);
                    assert!(found.is_empty(), "{crash}: {found:?}");
                    // Within a report, they end it neither sooner nor otherwise.
                    let mut within = kill_in_group(b"hog", 812, b"/leaker");
                    for at in [9, 7, 4, 1] {
                        within.insert(at, crash.clone().into_bytes());
                    }
                    let killed: Vec<_> =
                        reports(&within).iter().map(|written| written.report.subject()).collect();
                    assert_eq!(killed, ["hog (812)"], "{crash}");
                }
            }
        }
    }

    #[test]
    fn the_kernels_clock_is_brought_in_line_by_what_was_waited_for() {
        let mut skew = Skew::default();
        assert_eq!(skew.stamp(Span::from_secs(70), at(100)), at(70));
        // A record from some time in the last two seconds may have been written now or a second ago.
        skew.learn(Span::from_secs(99), at(100), Span::from_secs(2));
        assert_eq!(skew.stamp(Span::from_secs(70), at(100)), at(70));
        // The log is 30 s behind, and the first measurement had a second of delay in it.
        skew.learn(Span::from_secs(69), at(100), Span::ZERO);
        skew.learn(Span::from_secs(80), at(110), Span::ZERO);
        assert_eq!(skew.stamp(Span::from_secs(75), at(120)), at(105));
        // No stamp is later than now, and an old measurement is replaced.
        assert_eq!(skew.stamp(Span::from_secs(119), at(120)), at(120));
        let later = 110 + 7 * 3600;
        skew.learn(Span::from_secs(later - 40), at(later), Span::ZERO);
        assert_eq!(skew.stamp(Span::from_secs(later - 45), at(later)), at(later - 5));
    }
}
