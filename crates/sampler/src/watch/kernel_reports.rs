//! The kernel log while a host is watched without a recorder: OOM kills during the watch and shortly before it.

use probe::kmsg::KMSG;
use probe::{LogWatch, Root, Written, host_facts, kernel_report};
use timeline::signals::OOM_KILLS;
use timeline::{Absence, Problems, Sample, Timeline};
use units::{Count, Span};

/// At most 1,000 reports are used, the last ones: in a storm of kills, further reports add nothing.
const REPORTS_MAX: usize = 1_000;

/// The kernel log of a watched host.
#[derive(Debug)]
pub(crate) struct KernelReports {
    watch: LogWatch,
    /// Reports before this time on the boot clock are ignored.
    from: Span,
    found: Vec<Written>,
    /// How many of them the timeline has.
    added: usize,
    /// When it was read last, on the boot clock.
    read: Option<Span>,
}

impl KernelReports {
    /// Opens the log and keeps the reports of the last `recent`.
    pub(crate) fn open(root: &Root, recent: Span) -> Self {
        let mut log = Self {
            watch: LogWatch::open(root, None),
            from: probe::now().boot.saturating_sub(recent),
            found: Vec::new(),
            added: 0,
            read: None,
        };
        log.read_new(false);
        log
    }

    /// Reads the reports that were written since.
    pub(crate) fn read_new(&mut self, is_end: bool) {
        let now = probe::now();
        let since = self.read.map(|read| now.boot - read);
        self.watch.read(now, since);
        self.read = Some(now.boot);
        let written = self.watch.settled(now, is_end).into_iter();
        self.found.extend(written.filter(|report| report.stamp.boot >= self.from));
        let too_many = self.found.len().saturating_sub(REPORTS_MAX);
        self.found.drain(..too_many);
        self.added = self.added.saturating_sub(too_many);
    }

    /// Adds each report that the timeline lacks to the sample that follows it; the levels of that become those at the time of
    /// the report. A log that cannot be read is noted as a problem if OOM kills were counted.
    pub(crate) fn add_to(&mut self, timeline: &mut Timeline, problems: &mut Problems) {
        for Written { stamp, report, lines } in self.found.iter().skip(self.added) {
            let mut sample = Sample::default();
            kernel_report::fill(report, &mut sample);
            let lines = Some(lines.as_str().into());
            let Some(index) = timeline.report_by_time(*stamp, report.clone(), lines) else {
                continue;
            };
            for (signal, raw) in sample.host.iter() {
                timeline.amend(index, signal, raw);
            }
        }
        self.added = self.found.len();
        let counted = timeline.last(OOM_KILLS).map_or(0, Count::get);
        if let (Some(absence), true) = (self.watch.absence(), counted > 0) {
            problems.note(unread(absence, counted));
        }
    }

    /// Forgets reports that are older than this. The timeline has forgotten them all.
    pub(crate) fn forget_before(&mut self, age: Span) {
        let from = probe::now().boot.saturating_sub(age);
        self.found.retain(|report| report.stamp.boot >= from);
        self.added = 0;
    }
}

/// Describes the counted OOM kills without a readable report.
fn unread(why: &Absence, counted: u64) -> String {
    let kills = match counted {
        1 => "an OOM kill".to_owned(),
        n => format!("{} OOM kills", Count::new(n)),
    };
    let (why, help) = match why {
        Absence::PermissionDenied if host_facts::user_is_root() => {
            ("permission denied, CAP_SYSLOG is missing".to_owned(), String::new())
        }
        Absence::PermissionDenied => (
            "permission denied, as kernel.dmesg_restrict is 1".to_owned(),
            "; root can read it".to_owned(),
        ),
        Absence::NotFound => ("it is not there".to_owned(), String::new()),
        Absence::Failed(why) => (why.clone(), String::new()),
    };
    format!(
        "the host counts {kills} since boot; when and of which process is in the kernel's log, \
         which cannot be read ({KMSG}: {why}){help}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::Sample;

    fn finished(kills: u64) -> Vec<String> {
        let nowhere = tempfile::tempdir().unwrap();
        let mut log = KernelReports::open(&Root::at(nowhere.path()), Span::from_mins(15));
        let mut timeline = Timeline::default();
        let mut sample = Sample::at(Span::from_secs(1));
        sample.host.set(OOM_KILLS, Count::new(kills));
        timeline.push(&sample).unwrap();
        let mut problems = Problems::default();
        log.add_to(&mut timeline, &mut problems);
        problems.into_texts()
    }

    #[test]
    fn a_log_that_cannot_be_read_is_a_problem_where_a_process_was_killed() {
        assert_eq!(finished(0), [""; 0]);
        let problems = finished(3);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].contains("3 OOM kills") && problems[0].contains(KMSG), "{problems:?}");
        let denied = unread(&Absence::PermissionDenied, 1);
        assert!(denied.contains("an OOM kill since boot"), "{denied}");
    }
}
