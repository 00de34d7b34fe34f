//! Reports of OOM kills and failed allocations, stored with the kernel's lines before the log overwrites them.

use probe::kmsg::KernelLog;
use probe::{LogWatch, Root};
use timeline::{Absence, Event, Stamp};
use units::Span;

use crate::record::privilege::{self, is_root};

/// The kernel log, watched for reports.
#[derive(Debug)]
pub(crate) struct Watch(LogWatch);

impl Watch {
    /// Opens the log at record `from`: the first that no recorder has read in this boot.
    pub(crate) fn open(root: &Root, from: Option<u64>) -> Self {
        Self(LogWatch::open(root, from))
    }

    /// Returns the device, to wait for new records; `None` if the log is not read.
    pub(crate) fn device(&self) -> Option<&KernelLog> {
        self.0.device()
    }

    /// Returns why the log is not read; `None` if it is.
    pub(crate) fn absence(&self) -> Option<&Absence> {
        self.0.absence()
    }

    /// Whether lines of an incomplete report wait.
    pub(crate) fn is_waiting(&self) -> bool {
        self.0.is_waiting()
    }

    /// Returns the record at which the next recorder must continue: waiting lines are not reported yet.
    pub(crate) fn resume_at(&self) -> Option<u64> {
        self.0.resume_at()
    }

    /// Returns how many records were overwritten before they were read.
    pub(crate) fn overwritten(&self) -> u64 {
        self.0.overwritten()
    }

    /// Returns the number of reports so far.
    pub(crate) fn reports(&self) -> u64 {
        self.0.reports()
    }

    /// Reads new records. `just_now`: the caller was waiting for them, so they were written now.
    pub(crate) fn read(&mut self, now: Stamp, just_now: bool) {
        self.0.read(now, just_now.then_some(Span::ZERO));
    }

    /// Returns the events of the reports that are complete, at the end of all, and the cgroups that these name: those at their
    /// limits and those of the victims.
    pub(crate) fn settled(&mut self, now: Stamp, is_end: bool) -> (Vec<Event>, Vec<String>) {
        let reports = self.0.settled(now, is_end);
        let groups = reports
            .iter()
            .filter_map(|it| it.report.group.as_ref())
            .flat_map(|group| [group.path.clone(), group.victim_path.clone()])
            .filter(|path| !path.is_empty())
            .collect();
        let note = reports.into_iter().map(|it| Event::of_report(it.stamp, &it.report, it.lines));
        (note.collect(), groups)
    }

    /// Describes why the log is not read; `None` if it is.
    pub(crate) fn problem(&self) -> Option<String> {
        let why = match self.absence()? {
            Absence::NotFound => "it is not there, as in most containers".to_owned(),
            Absence::PermissionDenied => {
                let needs = privilege::needs(is_root(), "CAP_SYSLOG", "kernel.dmesg_restrict=0");
                format!("permission denied: {needs}")
            }
            Absence::Failed(why) => why.clone(),
        };
        Some(format!("{why}; OOM kills are counted, their reports are not stored"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_may_not_be_read_says_what_is_lost() {
        let nowhere = tempfile::tempdir().unwrap();
        let watch = Watch::open(&Root::at(nowhere.path()), None);
        let problem = watch.problem().unwrap();
        assert!(problem.contains("not there") && problem.contains("not stored"), "{problem}");
    }
}
