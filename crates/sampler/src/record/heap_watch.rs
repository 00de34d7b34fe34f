//! Malloc heaps of chosen processes while the recorder runs: a child reads them at the lowest priority, a thread waits
//! for it, and the sampler takes what has arrived with its next process scan.
//!
//! A child, because a walk takes up to 100 MiB, which the recorder would keep locked in memory, and because it can be killed
//! whatever it waits for. It gives up a process that does not answer within seconds, and hands over each process by itself:
//! what it has read is kept when it is killed. One child at a time, and reading heaps takes 5 % of a CPU at most.
//! Starting the child takes some 10 ms of CPU.

use std::ffi::OsString;
use std::io::{PipeReader, PipeWriter};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use probe::{ProcessFiles, now};
use timeline::{EntityRow, ProcessCells};
use units::Span;

use crate::Health;
use crate::heaps::{HeapReading, HeapRound};
use crate::record::own_child::{ChildEnd, ChildOutcome, ChildTask, OwnChildren, ends_within};
use crate::record::pss::TaskKey;

/// When the first round begins: the scan before it has seen the processes.
const FIRST: Span = Span::from_secs(1);
/// A round that takes longer waits for a lock, or the host has no CPU left for it.
const DEADLINE: Span = Span::from_mins(5);
/// The longest answer of a child.
const ANSWER_BYTES_MAX: usize = 256 << 10;
/// Bytes of stack; the deepest call parses an answer.
const STACK: usize = 256 << 10;

/// Which heaps are read, and how.
#[derive(Debug, Clone)]
pub struct HeapPlan {
    /// The command of a child that reads them once, and writes parts of a [`HeapRound`] as lines of JSON.
    pub command: Vec<OsString>,
    /// From the start of one round to the next.
    pub every: Span,
}

/// A heap's figures for the process that has it.
#[derive(Debug)]
pub(crate) struct HeapAnswer {
    pub(crate) of: TaskKey,
    pub(crate) cells: ProcessCells,
}

/// Reads heaps until it is dropped.
#[derive(Debug)]
pub struct HeapWatch {
    answers: Receiver<HeapAnswer>,
    /// Closing it wakes the thread, which ends the child and itself. Nobody waits for it.
    _alive: PipeWriter,
}

/// How a round ended.
enum Ended {
    Read(HeapRound),
    /// The recorder ends.
    Stopped,
}

impl HeapWatch {
    /// Answers that wait for a scan.
    pub(crate) const WAITING_MAX: usize = 64;

    /// Starts reading heaps.
    ///
    /// # Errors
    /// The operating system's, if it cannot create a thread.
    pub fn start(plan: HeapPlan, health: Arc<Health>) -> std::io::Result<Self> {
        let (ending, alive) = std::io::pipe()?;
        let (sender, answers) = sync_channel(Self::WAITING_MAX);
        let rounds = HeapRounds { plan, health, sender, ending, children: OwnChildren::default() };
        std::thread::Builder::new()
            .name("memtide-heaps".to_owned())
            .stack_size(STACK)
            .spawn(move || rounds.run())?;
        Ok(Self { answers, _alive: alive })
    }

    /// Returns the next answer, if one has arrived; never waits.
    pub(crate) fn take(&self) -> Option<HeapAnswer> {
        self.answers.try_recv().ok()
    }
}

/// The thread's side.
struct HeapRounds {
    plan: HeapPlan,
    health: Arc<Health>,
    sender: SyncSender<HeapAnswer>,
    ending: PipeReader,
    children: OwnChildren,
}

impl HeapRounds {
    fn run(mut self) {
        let mut pause = FIRST;
        while !ends_within(self.ending.as_fd(), pause) {
            let began = now().boot;
            let Ended::Read(round) = self.round() else {
                return;
            };
            let every = round.every(self.plan.every);
            self.health.heaps_read(began, every, &round);
            for reading in &round.readings {
                // While the sampler takes none, the next round has newer ones.
                let _ = self.sender.try_send(answer(reading));
            }
            pause = every.saturating_sub(now().boot.saturating_sub(began));
        }
    }

    /// Has a child read the heaps once.
    fn round(&mut self) -> Ended {
        let ChildOutcome { answer, took, end, .. } = self.children.run(ChildTask {
            command: &self.plan.command,
            input: b"",
            deadline: DEADLINE,
            answer_max: ANSWER_BYTES_MAX,
            ending: Some(self.ending.as_fd()),
        });
        let why = match end {
            ChildEnd::Stopped => return Ended::Stopped,
            ChildEnd::NotStarted(error) => {
                let program = self.plan.command.first().map(|program| program.to_string_lossy());
                let program = program.unwrap_or_default();
                format!("cannot start `{program}` to read heaps: {error}")
            }
            ChildEnd::TooMuch => "the child that reads heaps wrote too much".to_owned(),
            ChildEnd::TooLong => {
                format!("reading the heaps took longer than {DEADLINE} and was ended")
            }
            ChildEnd::Exited(status) => {
                match HeapRound::of_lines(&answer).filter(|_| status.success()) {
                    Some(round) => return Ended::Read(round),
                    None => {
                        format!("the child that reads heaps gave no complete answer ({status})")
                    }
                }
            }
        };
        failed(&answer, why, took)
    }
}

/// A round that is not complete: what the child had written is kept. What it cost is unknown, but not more than the time that it took.
fn failed(text: &[u8], why: String, took: Span) -> Ended {
    let mut round = HeapRound::of_lines(text).unwrap_or_default();
    round.problems.push(why);
    round.cpu_s = took.as_secs_f64();
    Ended::Read(round)
}

/// Reads the figures that a child wrote.
fn answer(reading: &HeapReading) -> HeapAnswer {
    let (mut files, mut row) = (ProcessFiles::default(), EntityRow::default());
    let text = reading.figures.as_bytes();
    // A line that is no figure is an absent reading.
    let _ = files.parse(reading.pid, ProcessFiles::MALLOC_HEAP, text, &mut row);
    let mut cells = ProcessCells::default();
    for (signal, raw) in row.row.iter() {
        cells.set_raw(signal, raw);
    }
    HeapAnswer { of: TaskKey { pid: reading.pid, start_ticks: reading.start_ticks }, cells }
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::signals::{PROC_HEAP_LIVE, PROC_RUNTIME_HEAP};
    use units::Bytes;

    fn plan(script: &str) -> HeapPlan {
        HeapPlan {
            command: ["sh", "-c", script].map(OsString::from).to_vec(),
            every: Span::from_secs(1),
        }
    }

    /// Plays one round of a child.
    fn round_of(script: &str) -> HeapRound {
        let (ending, _alive) = std::io::pipe().unwrap();
        let mut rounds = HeapRounds {
            plan: plan(script),
            health: Arc::default(),
            sender: sync_channel(1).0,
            ending,
            children: OwnChildren::default(),
        };
        match rounds.round() {
            Ended::Read(round) => round,
            Ended::Stopped => panic!("it was not stopped"),
        }
    }

    #[test]
    fn what_a_child_writes_becomes_the_readings_of_its_process() {
        let round = round_of(
            r#"printf '%s' '{"readings":[{"pid":7,"start_ticks":9,"figures":"live 4096\nruntime 8192\nnew 1\n"}],"problems":["x"],"cpu_s":0.5}'"#,
        );
        assert_eq!(round.problems, ["x"]);
        let answer = answer(&round.readings[0]);
        assert_eq!((answer.of.pid, answer.of.start_ticks), (7, 9));
        assert_eq!(answer.cells.get(PROC_HEAP_LIVE), Some(Bytes::new(4096)));
        assert_eq!(answer.cells.get(PROC_RUNTIME_HEAP), Some(Bytes::new(8192)));
        assert_eq!(answer.cells.iter().count(), 2);
    }

    #[test]
    fn a_child_that_fails_is_a_problem_and_no_end() {
        for script in ["exit 7", "echo no JSON", "kill -9 $$"] {
            let round = round_of(script);
            assert_eq!(round.problems.len(), 1, "{script}");
            assert!(round.problems[0].contains("no complete answer"), "{script}");
        }
    }

    #[test]
    fn what_a_child_had_read_is_kept_when_it_ends_before_its_time() {
        let part = r#"{"readings":[{"pid":7,"start_ticks":9,"figures":"live 4096\n"}],"problems":["y"],"cpu_s":0.5}"#;
        let round = round_of(&format!(
            "printf '%s\\n' '{part}' '{part}'; printf '{{\"readings\":'; kill -9 $$"
        ));
        assert_eq!(round.readings.len(), 2);
        assert_eq!(round.problems.len(), 3, "{:?}", round.problems);
        assert_eq!(round.problems[..2], ["y", "y"]);
    }

    #[test]
    fn a_recorder_that_ends_does_not_wait_for_the_child() {
        let (ending, alive) = std::io::pipe().unwrap();
        drop(alive);
        let mut rounds = HeapRounds {
            plan: plan("exec sleep 600"),
            health: Arc::default(),
            sender: sync_channel(1).0,
            ending,
            children: OwnChildren::default(),
        };
        assert!(matches!(rounds.round(), Ended::Stopped));
        assert!(ends_within(rounds.ending.as_fd(), Span::from_hours(1)));
    }
}
