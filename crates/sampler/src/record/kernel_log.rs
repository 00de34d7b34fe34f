//! Reports of OOM kills and failed allocations, stored with the kernel's lines, as the log overwrites them.

use probe::kmsg::{KMSG, KernelLog};
use probe::{LogWatch, Root};
use timeline::{Absence, Event, Stamp};
use units::Span;

use crate::record::privilege::{self, is_root};

/// The kernel log, watched for reports.
#[derive(Debug)]
pub(crate) struct Watch(LogWatch);

impl Watch {
    /// Opens the log, to read from a record on: the first that no recorder has seen in this boot.
    pub(crate) fn open(root: &Root, from: Option<u64>) -> Self {
        Self(LogWatch::open(root, from))
    }

    /// The device, to wait for more of it; `None` where it is not read.
    pub(crate) fn device(&self) -> Option<&KernelLog> {
        self.0.device()
    }

    /// Why the log is not read; `None` where it is.
    pub(crate) fn absence(&self) -> Option<&Absence> {
        self.0.absence()
    }

    /// Whether lines wait to be a whole report.
    pub(crate) fn is_waiting(&self) -> bool {
        self.0.is_waiting()
    }

    /// Where a recorder after this one is to read on: what waits here is not reported yet.
    pub(crate) fn resume_at(&self) -> Option<u64> {
        self.0.resume_at()
    }

    /// Records that were overwritten before they were read.
    pub(crate) fn overwritten(&self) -> u64 {
        self.0.overwritten()
    }

    /// Reports taken so far.
    pub(crate) fn reports(&self) -> u64 {
        self.0.reports()
    }

    /// Reads what has come. `just_now` says that it was waited for, so that its time is now.
    pub(crate) fn read(&mut self, now: Stamp, just_now: bool) {
        self.0.read(now, just_now.then_some(Span::ZERO));
    }

    /// The reports that are whole by now; at the end all that there is.
    pub(crate) fn settled(&mut self, now: Stamp, is_end: bool) -> Vec<Event> {
        let reports = self.0.settled(now, is_end).into_iter();
        let note = reports.map(|it| Event::of_report(it.stamp, &it.report, it.lines));
        note.collect()
    }

    /// What is wrong with it, in words.
    pub(crate) fn problem(&self) -> Option<String> {
        let why = match self.absence()? {
            Absence::NotFound => "it is not there, as in most containers".to_owned(),
            Absence::PermissionDenied => {
                let needs = privilege::needs(is_root(), "CAP_SYSLOG", "kernel.dmesg_restrict=0");
                format!("permission denied: {needs}")
            }
            Absence::Failed(why) => why.clone(),
        };
        Some(format!(
            "{KMSG}: {why}; OOM kills are counted, their reports are not stored"
        ))
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
        assert!(
            problem.contains("/dev/kmsg") && problem.contains("not stored"),
            "{problem}"
        );
    }
}
