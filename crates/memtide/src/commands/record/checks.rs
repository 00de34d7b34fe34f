//! `record --check`: a thread has a child judge the recording's last minutes, keeps what came and went as events, and has
//! another thread run the command of `--on-finding`. The thread that samples waits for none of them.

pub(super) mod child;
pub(super) mod hook;

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use answers::{FindingNews, OWN_CHECK_RANGE, finding_changes};
use jiff::Timestamp;
use recorder_status::{ActiveFinding, RecorderChecks};
use report::model::{FindingState, timestamp};
use sampler::{ChildEnd, ChildOutcome, ChildTask, Health, Message, OwnChildren, interval_within};
use units::{Ratio, Span};

use child::{JudgedLine, Judgement};
use hook::HookPlan;

/// Checking takes at most this share of a CPU in the long run.
const SHARE_MAX: Ratio = Ratio::new(0.01);
/// A check that takes longer waits for a disk, or the host has no CPU left for it: beside ten busy tasks the lowest priority has
/// a few thousandths of a CPU.
const DEADLINE: Span = Span::from_mins(5);
/// The longest answer of a child: a finding has some KiB.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Other problems than these are not kept.
const PROBLEMS_MAX: usize = 16;
/// Bytes of stack; the deepest call parses a finding.
const STACK: usize = 512 << 10;

/// How a recorder checks its own recording.
pub(super) struct CheckPlan {
    /// The command of a child that judges it once.
    pub(super) command: Vec<OsString>,
    /// From one check to the next.
    pub(super) every: Span,
    /// What gets the findings.
    pub(super) hook: Option<HookPlan>,
    /// What was wrong when the last recorder ended.
    pub(super) active: Vec<ActiveFinding>,
}

/// Starts to check.
pub(super) fn start(
    plan: CheckPlan,
    health: Arc<Health>,
    outbox: SyncSender<Message>,
) -> std::io::Result<()> {
    health.with_checks(|checks| checks.active.clone_from(&plan.active));
    let notices = plan.hook.map(|hook| hook::start(hook, Arc::clone(&health))).transpose()?;
    let mut checker = Checker {
        command: plan.command,
        every: plan.every,
        active: plan.active,
        children: OwnChildren::default(),
        health,
        outbox,
        notices,
    };
    let thread = std::thread::Builder::new().stack_size(STACK);
    thread.name("memtide-check".to_owned()).spawn(move || {
        let mut pause = Some(checker.every);
        while let Some(length) = pause {
            std::thread::sleep(length.as_duration());
            pause = checker.check();
        }
    })?;
    Ok(())
}

/// The thread's side.
struct Checker {
    command: Vec<OsString>,
    every: Span,
    active: Vec<ActiveFinding>,
    children: OwnChildren,
    health: Arc<Health>,
    outbox: SyncSender<Message>,
    notices: Option<SyncSender<String>>,
}

impl Checker {
    /// Checks once; returns the pause to the next check, `None` when the recorder has ended.
    fn check(&mut self) -> Option<Span> {
        let began = probe::now();
        let outcome = self.children.run(ChildTask {
            command: &self.command,
            input: b"",
            deadline: DEADLINE,
            answer_max: ANSWER_BYTES_MAX,
            ending: None,
        });
        let (took, cpu) = (outcome.took, outcome.cpu);
        let is_late = matches!(outcome.end, ChildEnd::TooLong);
        let judged = judgement(outcome);
        let cost = judged.as_ref().map_or(cpu, |judged| Some(Span::from_secs_f64(judged.cpu_s)));
        let cost = cost.unwrap_or_default();
        // What no check is about would be a gap.
        let every = self.every.max(interval_within(cost, SHARE_MAX).min(OWN_CHECK_RANGE));
        let news = match &judged {
            Ok(judged) => self.news(judged)?,
            Err(_) => 0,
        };
        self.health.with_checks(|checks| {
            checks.done += 1;
            checks.failed += u64::from(judged.is_err());
            checks.ended += u64::from(is_late);
            checks.cpu_s += cost.as_secs_f64();
            checks.every_s = Some(every.as_secs_f64());
            checks.last = began.wall.and_then(timestamp);
            checks.changes += news;
            checks.active.clone_from(&self.active);
            if let Err(why) = judged {
                note(checks, format!("a check gave no answer: {why}"));
            }
        });
        Some(every.saturating_sub(took).max(Span::from_secs(1)))
    }

    /// Keeps what came, changed and went, and has it announced; `None` when the recorder has ended.
    fn news(&mut self, judged: &Judgement) -> Option<u64> {
        let now = probe::now();
        let at = now.wall.and_then(timestamp);
        let heads: Vec<ActiveFinding> =
            judged.findings.iter().map(|line| line.head.clone()).collect();
        let changes = finding_changes(&mut self.active, &heads, at);
        for change in &changes {
            self.outbox.send(Message::Event(change.event(now))).ok()?;
            let Some(notices) = &self.notices else {
                continue;
            };
            // While one command hangs, so many wait; more are lost, and counted.
            if notices.try_send(notice(change, judged, at)).is_err() {
                self.health.with_checks(|checks| {
                    checks.commands_failed += 1;
                    note(checks, hook::TOO_MANY.to_owned());
                });
            }
        }
        u64::try_from(changes.len()).ok()
    }
}

/// Adds a problem, once.
fn note(checks: &mut RecorderChecks, problem: String) {
    if checks.problems.len() < PROBLEMS_MAX && !checks.problems.contains(&problem) {
        checks.problems.push(problem);
    }
}

/// What the child answered; why not, in words.
fn judgement(outcome: ChildOutcome) -> Result<Judgement, String> {
    let answer = outcome.answered(DEADLINE)?;
    Judgement::read(&answer).ok_or_else(|| "its answer is not complete".to_owned())
}

/// The line that the command of `--on-finding` reads.
fn notice(change: &FindingNews, judged: &Judgement, at: Option<Timestamp>) -> String {
    let FindingNews { state, finding, severity_before } = change;
    let is_it = |line: &&JudgedLine| {
        let head = &line.head;
        (&head.id, &head.scope, &head.subject, &head.severity)
            == (&finding.id, &finding.scope, &finding.subject, &finding.severity)
    };
    // Of what is over there is nothing to do.
    let line = judged.findings.iter().find(is_it).filter(|_| *state != FindingState::Cleared);
    let fix = line.and_then(|line| line.whole.get("fix").cloned());
    let value = serde_json::json!({
        "schema": report::model::NOTICE_SCHEMA,
        "state": state.word(),
        "id": finding.id,
        "severity": finding.severity,
        "severity_before": severity_before,
        "title": finding.title,
        "since": finding.since,
        "at": at,
        "scope": finding.scope,
        "subject": finding.subject,
        "host": judged.host,
        "recording": judged.recording,
        "fix": fix.unwrap_or_else(|| serde_json::json!([])),
    });
    format!("{value}\n")
}
