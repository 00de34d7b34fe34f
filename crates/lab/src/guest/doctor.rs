//! Treats a finding while the load goes on: the machine watches itself, and carries out what the finding's first fix says.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use diagnose::{AppliedFix, Diagnosis, Finding, Fix, FixChange, FixError, SettingValue};
use probe::{ProcessDetail, Root};
use report::FixCommands;
use sampler::{WatchOptions, Watcher};
use units::{Span, WallClock};

use super::files::GuestFiles;
use crate::message::{GuestMessage, Treatment, TreatmentOutcome};

/// How long a finding must have been there before it is treated, so that the time before shows the disease.
const SICK: Span = Span::from_secs(6);
/// From one judgement to the next.
const EVERY: Span = Span::from_secs(2);
/// Longer than any scenario.
const DURATION_MAX: Span = Span::from_hours(2);

/// Treats one finding, in a thread of its own.
#[derive(Debug)]
pub(super) struct Doctor {
    thread: JoinHandle<Option<AppliedFix>>,
    has_ended: Arc<AtomicBool>,
    files: GuestFiles,
    port: File,
}

impl Doctor {
    /// Begins to watch for a finding of this rule; reports into the port.
    pub(super) fn begin(rule: String, files: GuestFiles, port: File) -> std::io::Result<Self> {
        let has_ended = Arc::new(AtomicBool::new(false));
        let (ended, mut messages) = (Arc::clone(&has_ended), port.try_clone()?);
        let thread = std::thread::spawn(move || {
            let (treatment, applied) = watch(&rule, &ended).map(|sick| sick.treat(files))?;
            GuestMessage::Treated(treatment).send(&mut messages);
            applied
        });
        Ok(Self { thread, has_ended, files, port })
    }

    /// Ends to watch, and takes back what was done.
    pub(super) fn take_back(mut self) {
        self.has_ended.store(true, Ordering::Relaxed);
        if let Ok(Some(applied)) = self.thread.join() {
            let undone = applied.undo(&mut self.files);
            let why_not = undone.err().map(|error| error.to_string());
            GuestMessage::TakenBack(why_not).send(&mut self.port);
        }
    }
}

/// A finding that is to be treated.
struct Sick {
    finding: String,
    fix: Fix,
}

/// Watches the machine until a finding of this rule has been there for a while; `None` if the load ends before.
fn watch(rule: &str, has_ended: &AtomicBool) -> Option<Sick> {
    let options = WatchOptions {
        duration: DURATION_MAX,
        every: Span::from_secs(1),
        last: ProcessDetail::COMPLETE,
        recent: Span::ZERO,
        window: None,
    };
    let _ = rustix::process::nice(-20);
    let mut watcher = Watcher::open(&Root::default(), options);
    let (mut judged, mut sick_since) = (Span::ZERO, None);
    while !has_ended.load(Ordering::Relaxed) {
        if !watcher.wait(Span::from_millis(200)) {
            continue;
        }
        watcher.take();
        let source = watcher.source();
        let now = source.timeline.duration();
        if now.saturating_sub(judged) < EVERY {
            continue;
        }
        judged = now;
        let diagnosis = diagnose::diagnose(&source.timeline, &source.facts);
        let Some(finding) = finding_of(rule, &diagnosis) else {
            sick_since = None;
            continue;
        };
        let since = *sick_since.get_or_insert(now);
        if now.saturating_sub(since) >= SICK {
            return Some(Sick {
                finding: finding.title.to_string(),
                fix: finding.fixes.first().cloned().unwrap_or_default(),
            });
        }
    }
    None
}

fn finding_of<'a>(rule: &str, diagnosis: &'a Diagnosis) -> Option<&'a Finding> {
    let mut all = diagnosis.findings.iter().chain(&diagnosis.notes);
    all.find(|finding| finding.id == rule)
}

impl Sick {
    fn treat(self, mut files: GuestFiles) -> (Treatment, Option<AppliedFix>) {
        let now = probe::now().wall.map_or(0, WallClock::unix_nanos);
        let (outcome, applied) = if self.fix.changes.is_empty() {
            (TreatmentOutcome::IsWords, None)
        } else {
            match AppliedFix::apply(&self.fix, &mut files) {
                Ok(applied) => {
                    let lines = FixCommands::new(&self.fix).now;
                    let lines = lines.lines().map(str::to_owned).collect();
                    (TreatmentOutcome::Applied(lines), Some(applied))
                }
                Err(FixError::IsCommand(command)) => (TreatmentOutcome::IsCommand(command), None),
                Err(error) => (TreatmentOutcome::Refused(error.to_string()), None),
            }
        };
        let setting = |change: &FixChange| match change {
            FixChange::Setting(change) => {
                let SettingValue { fact, value } = &change.to;
                Some((fact.name.to_owned(), value.clone()))
            }
            FixChange::Limit(_) | FixChange::Command(_) => None,
        };
        let held = self.fix.changes.iter().filter(|_| applied.is_some());
        let settings = held.filter_map(setting).collect();
        let (finding, advice) = (self.finding, self.fix.what);
        (Treatment { at_unix_ns: now, finding, advice, outcome, settings }, applied)
    }
}
