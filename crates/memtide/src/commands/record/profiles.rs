//! `record --profile-when`: a thread reads the counters of a condition once a second, and has a child profile the kernel when it is
//! met. What the child found is an event of the recording. The thread that samples waits for neither.

pub(super) mod child;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use profile::{ProfileCondition, ProfileReport, RightMoments, read_profile};
use sampler::{ChildTask, Message, OwnChildren};
use timeline::{Event, EventKind, Stamp};
use units::Span;

const EVERY: Duration = Duration::from_secs(1);
/// So many profiles an hour: each takes 0.2 s of CPU time and up to 64 KiB.
const IN_AN_HOUR: usize = 6;
const HOUR: Duration = Duration::from_secs(3_600);
/// A condition that stays true is profiled again after so long: six times an hour.
const AGAIN_AFTER: Span = Span::from_mins(10);
/// Failures in a row after which no profile is tried any more.
const FAILURES_MAX: u32 = 3;
/// A kept profile is at most 64 KiB.
const ANSWER_BYTES_MAX: usize = 128 << 10;
/// A profile takes 10 s, and some more where the host has no CPU left for it.
const DEADLINE: Span = Span::from_mins(2);
/// Bytes of stack; the deepest call parses and judges a profile.
const STACK: usize = 1 << 20;

/// Arms the recorder: `command` takes one profile and prints it.
pub(super) fn start(
    condition: ProfileCondition,
    command: Vec<OsString>,
    outbox: SyncSender<Message>,
) -> std::io::Result<()> {
    let thread = std::thread::Builder::new().stack_size(STACK);
    let work = move || {
        let mut moments = RightMoments::new(condition.clone(), AGAIN_AFTER);
        let mut recent: VecDeque<Instant> = VecDeque::new();
        let mut failures = 0;
        let mut children = OwnChildren::default();
        while failures < FAILURES_MAX {
            std::thread::sleep(EVERY);
            let Some((is_due, value)) = moments.check() else {
                let why = format!("this kernel does not count what {condition} is about");
                let _ = outbox.send(event(probe::now(), why, String::new()));
                return;
            };
            while recent.front().is_some_and(|at| at.elapsed() >= HOUR) {
                recent.pop_front();
            }
            if !is_due || recent.len() >= IN_AN_HOUR {
                continue;
            }
            let stamp = probe::now();
            recent.push_back(Instant::now());
            let (text, kept) = match taken(&mut children, &command) {
                Ok((brief, kept)) => {
                    failures = 0;
                    (format!("{brief}; {condition} was met: {value}"), kept)
                }
                Err(why) => {
                    failures += 1;
                    (format!("none was taken when {condition} was met: {why}"), String::new())
                }
            };
            if outbox.send(event(stamp, text, kept)).is_err() {
                return;
            }
            moments.begin_again();
        }
    };
    thread.name("memtide-armed".to_owned()).spawn(work)?;
    Ok(())
}

fn event(stamp: Stamp, text: String, report: String) -> Message {
    let text = format!("profile: {text}");
    let kind = EventKind::KernelProfile;
    Message::Event(Event { stamp, kind, subject: String::new(), text, report })
}

/// Has a child take a profile: what it shows in a few words, and its text.
fn taken(children: &mut OwnChildren, command: &[OsString]) -> Result<(String, String), String> {
    let outcome = children.run(ChildTask {
        command,
        input: b"",
        deadline: DEADLINE,
        answer_max: ANSWER_BYTES_MAX,
        ending: None,
    });
    let answer = outcome.answered(DEADLINE)?;
    let profile = read_profile("kept", answer.as_slice()).map_err(|error| error.to_string())?;
    Ok((ProfileReport::of(&profile).in_brief(), String::from_utf8_lossy(&answer).into_owned()))
}
