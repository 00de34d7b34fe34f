//! Kernel reports with a time, from the events of a recording or from the kernel log. Each is added to the sample
//! after it, as in a capture, and replaces levels of that sample, as its own are of the right time. A report before
//! the first sample is added to none.

use probe::{kernel_report, stored_report};
use timeline::{Sample, Stamp, Timeline};

use crate::builder::Snapshot;
use crate::paste::Paste;

/// Adds a report to its sample.
pub(crate) fn place(timeline: &mut Timeline, stamp: Stamp, lines: &str, sample: Option<usize>) {
    let Some(snapshot) = read(lines) else {
        return;
    };
    let Some(report) = snapshot.report else {
        return;
    };
    let index = match sample {
        Some(index) => {
            timeline.report_when(index, stamp, report, snapshot.text);
            Some(index)
        }
        None => timeline.report_by_time(stamp, report, snapshot.text),
    };
    let Some(index) = index else { return };
    for (signal, raw) in snapshot.sample.host.iter() {
        timeline.amend(index, signal, raw);
    }
}

/// Reads a stored report. A recorder stores the messages as the kernel wrote them; other reports come from a log, with its
/// prefixes, and other text within it.
pub(crate) fn read(lines: &str) -> Option<Snapshot> {
    let Some(own) = messages(lines) else {
        return Paste::report(lines);
    };
    let is_understood = |it: &Snapshot| {
        let report = it.report.as_ref();
        report.is_some_and(|report| report.not_understood.is_empty())
    };
    if is_understood(&own) {
        return Some(own);
    }
    // A log may have broken lines. But names that users choose may look like a log: the victims must be the same.
    let victims = |it: &Snapshot| it.report.as_ref().map(|report| report.killed.clone());
    let of_log = Paste::report(lines).filter(|it| victims(it) == victims(&own));
    of_log.or(Some(own))
}

/// The report of whole messages of the kernel; `None` if the lines are none, or the report is cut.
fn messages(lines: &str) -> Option<Snapshot> {
    let messages: Vec<_> = lines.lines().map(stored_report::message).collect();
    let (_, report) = kernel_report::read_messages(messages.iter().map(AsRef::as_ref))?;
    if report.is_cut || report.is_memory_dump() {
        return None;
    }
    let mut sample = Sample::default();
    kernel_report::fill(&report, &mut sample);
    Some(Snapshot { report: Some(report), text: Some(lines.into()), ..Snapshot::from(sample) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KILL: &str = "total-vm:24504kB, anon-rss:13092kB, file-rss:3704kB, shmem-rss:0kB, UID:0 \
                        pgtables:84kB oom_score_adj:0";

    fn killed(lines: &str) -> Vec<String> {
        let report = read(lines).unwrap().report.unwrap();
        report.killed.iter().map(|killed| killed.named()).collect()
    }

    #[test]
    fn a_name_is_read_as_it_was_stored() {
        for (stored, name) in [
            (r"\x0aghost1", "\nghost1"),
            (r"\x5cx0aghost", r"\x0aghost"),
            (r"a\nb\", r"a\nb\"),
            (">=20", ">=20"),
            ("x) total-vm:1kB", "x) total-vm:1kB"),
        ] {
            let line = format!("Memory cgroup out of memory: Killed process 812 ({stored}) {KILL}");
            assert_eq!(killed(&line), [format!("{name} (812)")], "{stored}");
            let snapshot = read(&line).unwrap();
            assert_eq!(snapshot.text.as_deref(), Some(line.as_str()));
            assert!(!snapshot.report.unwrap().is_without_prefix);
        }
    }

    #[test]
    fn what_a_user_made_the_kernel_log_meanwhile_is_no_kill() {
        let forged = format!(
            "x[9]: segfault at 0 ip 05 sp 07 error 4 in Out of memory: Killed process 1 (systemd) \
             {KILL}[5000+1000]"
        );
        let head = "hog invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0";
        let kill = format!("Out of memory: Killed process 812 (hog) {KILL}");
        assert_eq!(killed(&[head, &forged, &kill].join("\n")), ["hog (812)"]);
    }

    #[test]
    fn a_report_of_a_log_has_the_prefixes_of_the_log() {
        let at = "Nov 21 23:58:47 db1 kernel: ";
        let kill = format!("{at}Out of memory: Killed process 812 (hog) {KILL}");
        assert_eq!(killed(&kill), ["hog (812)"]);
        assert!(read(&kill).unwrap().report.unwrap().stamp.is_some());
    }
}
