//! Treats a finding while the load goes on: the machine watches itself, and carries out what the finding's first fix says.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use diagnose::{AppliedFix, Diagnosis, Finding, Fix, FixChange, Inspection, SettingValue};
use probe::{ProcessDetail, Root};
use report::FixCommands;
use sampler::{WatchOptions, Watcher};
use timeline::Origin;
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
    thread: JoinHandle<Option<Treated>>,
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
            let (treatment, treated) = watch(&rule, &ended).map(|sick| sick.treat(files))?;
            GuestMessage::Treated(treatment).send(&mut messages);
            treated
        });
        Ok(Self { thread, has_ended, files, port })
    }

    /// Ends to watch, and takes back what was done.
    pub(super) fn take_back(mut self) {
        self.has_ended.store(true, Ordering::Relaxed);
        let why_not = match self.thread.join() {
            Ok(Some(Treated::Files(applied))) => {
                applied.undo(&mut self.files).err().map(|error| error.to_string())
            }
            Ok(Some(Treated::Commands { undo })) if !undo.is_empty() => self.files.run(&undo).err(),
            Ok(Some(Treated::Commands { .. }) | None) | Err(_) => return,
        };
        GuestMessage::TakenBack(why_not).send(&mut self.port);
    }
}

/// A fix that is in effect, as it is taken back.
#[derive(Debug)]
enum Treated {
    /// Settings and limits.
    Files(AppliedFix),
    /// Commands; `undo` is empty where nothing takes them back.
    Commands { undo: String },
}

/// A finding that is to be treated.
struct Sick {
    rule: String,
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
        pss_every: None,
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
                rule: finding.id.to_owned(),
                finding: finding.title.to_string(),
                fix: first_fix(finding),
            });
        }
    }
    None
}

/// The worst finding of a rule; `a|b` means either.
fn finding_of<'a>(rule: &str, diagnosis: &'a Diagnosis) -> Option<&'a Finding> {
    let mut all = diagnosis.findings.iter().chain(&diagnosis.notes);
    all.find(|finding| rule.split('|').any(|id| id == finding.id))
}

/// The first fix that does more than to show something; without one, the first.
fn first_fix(finding: &Finding) -> Fix {
    let is_more = |fix: &&Fix| fix.inspect == Inspection::None || !fix.changes.is_empty();
    let first = finding.fixes.iter().find(is_more).or(finding.fixes.first());
    first.cloned().unwrap_or_default()
}

impl Sick {
    fn treat(self, mut files: GuestFiles) -> (Treatment, Option<Treated>) {
        let at_unix_ns = probe::now().wall.map_or(0, WallClock::unix_nanos);
        // What only shows something is for people.
        let fix = Fix { inspect: Inspection::None, ..self.fix };
        let commands = FixCommands::new(&fix, &Origin::default());
        let is_command = |change: &FixChange| matches!(change, FixChange::Command(_));
        let treated = if commands.now.is_empty() {
            Ok(None)
        } else if fix.changes.iter().any(is_command) {
            let run = files.run(&commands.now);
            run.map(|()| Some(Treated::Commands { undo: commands.undo }))
        } else {
            let applied = AppliedFix::apply(&fix, &mut files);
            applied.map(|applied| Some(Treated::Files(applied))).map_err(|error| error.to_string())
        };
        let outcome = match &treated {
            Ok(Some(_)) => {
                TreatmentOutcome::Applied(commands.now.lines().map(str::to_owned).collect())
            }
            Ok(None) => TreatmentOutcome::IsWords,
            Err(why) => TreatmentOutcome::Refused(why.clone()),
        };
        let treated = treated.ok().flatten();
        let held = fix.changes.iter().filter(|_| treated.is_some());
        let settings = held.filter_map(|change| match change {
            FixChange::Setting(change) => {
                let SettingValue { fact, value } = &change.to;
                Some((fact.name.to_owned(), value.clone()))
            }
            FixChange::Limit(_) | FixChange::Command(_) => None,
        });
        let treatment = Treatment {
            rule: self.rule,
            at_unix_ns,
            finding: self.finding,
            outcome,
            settings: settings.collect(),
            changes: fix.changes.iter().map(FixChange::name).map(str::to_owned).collect(),
            advice: fix.what,
        };
        (treatment, treated)
    }
}
