//! Proportional shares (PSS and related fields) of a few processes at a time, on a separate thread and within a CPU
//! budget.
//!
//! Reading them takes the process's mmap lock for 3.5 µs per resident MiB, and waits while another task has it; so the
//! sampler only asks, and collects the answers. Each reading's cost sets the pace: after one that took `c` of CPU time,
//! the next begins no sooner than `c / share` later. Huge processes have a quarter of the budget to themselves, as one
//! of them would use up everything for hours.
//!
//! A process that does not answer in time is skipped for a long time, and the thread that waits for it is abandoned:
//! another takes its place. A reading is handed over once, with the next process scan, so it is never older than that
//! interval.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use probe::{Details, DetailsError, Root, now};
use timeline::ProcessCells;
use units::{Ratio, Span};

/// PID and start of a process, as a PID alone can be reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TaskKey {
    pub(crate) pid: u32,
    pub(crate) start_ticks: u64,
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct PssAnswer {
    pub(crate) of: TaskKey,
    pub(crate) cells: ProcessCells,
    pub(crate) cost: Span,
    /// Whether the cells have readings; if not, asking again soon is useless.
    pub(crate) is_read: bool,
    is_huge: bool,
}

/// What the sampler keeps for each process to decide when to ask for its share.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Schedule {
    read_at: Option<Span>,
    /// Resident pages at the time of the last reading.
    resident: u64,
    cost: Span,
    not_before: Span,
    is_asked: bool,
}

/// What the thread is reading, visible to the sampler without waiting.
#[derive(Debug, Default)]
struct Busy {
    /// Start of the reading, in nanoseconds of the boot clock; zero while nothing is read. Written last and cleared
    /// first, so a reader that sees the same value before and after has seen all fields of one reading.
    since: AtomicU64,
    pid: AtomicU32,
    start_ticks: AtomicU64,
    deadline: AtomicU64,
}

impl Busy {
    fn begin(&self, ask: PssRequest, now: Span) {
        self.pid.store(ask.of.pid, Relaxed);
        self.start_ticks.store(ask.of.start_ticks, Relaxed);
        self.deadline.store(ask.deadline.as_nanos(), Relaxed);
        self.since.store(now.as_nanos().max(1), Release);
    }

    fn end(&self) {
        self.since.store(0, Release);
        // The fields of the next reading must not be visible before this store.
        std::sync::atomic::fence(Release);
    }

    /// Returns the process that is read past its deadline.
    fn overdue(&self, now: Span) -> Option<TaskKey> {
        let since = self.since.load(Acquire);
        let of =
            TaskKey { pid: self.pid.load(Relaxed), start_ticks: self.start_ticks.load(Relaxed) };
        let deadline = Span::from_nanos(self.deadline.load(Relaxed));
        std::sync::atomic::fence(Acquire);
        let is_same = self.since.load(Relaxed) == since;
        let took = now.saturating_sub(Span::from_nanos(since));
        (since > 0 && is_same && took > deadline).then_some(of)
    }
}

/// The sampler's side: sends requests and collects answers.
#[derive(Debug)]
pub(crate) struct Shares {
    root: Root,
    share: Ratio,
    worker: Option<Worker>,
    /// Number of live threads, including those that wait for a lock.
    alive: Arc<AtomicUsize>,
    outstanding: usize,
    huge_from: Span,
    page_kib: u64,
}

#[derive(Debug)]
struct Worker {
    asks: SyncSender<PssRequest>,
    answers: Receiver<PssAnswer>,
    busy: Arc<Busy>,
    /// Requests to the thread that are not answered yet, in order.
    queue: Vec<PssRequest>,
}

#[derive(Debug, Clone, Copy)]
struct PssRequest {
    of: TaskKey,
    is_huge: bool,
    /// The longest time that the reading may take.
    deadline: Span,
}

impl Schedule {
    /// The shortest interval between two readings of one process: growth that matters lasts longer.
    const PAUSE: Span = Span::from_secs(30);
    /// How long a process that did not answer, or may not be read, is skipped.
    const AGE_LONG: Span = Span::from_hours(1);
    /// Processes below 256 KiB are too small to be worth a reading.
    const KIB_MIN: u64 = 256;

    /// Returns the priority of asking now; `None` if the process must not be asked.
    pub(crate) fn rank(&self, resident: u64, page_kib: u64, now: Span) -> Option<u64> {
        let is_due = !self.is_asked && now >= self.not_before;
        if !is_due || resident.saturating_mul(page_kib) < Self::KIB_MIN {
            return None;
        }
        let Some(read_at) = self.read_at else {
            return Some(resident.saturating_mul(4));
        };
        let changed = resident.abs_diff(self.resident).saturating_mul(8);
        let tenths = (now.saturating_sub(read_at)).as_nanos() / Span::from_mins(1).as_nanos();
        Some(changed.saturating_add(resident.saturating_mul(tenths) / 10))
    }

    /// Records an answer.
    pub(crate) fn answered(&mut self, answer: &PssAnswer, resident: u64, now: Span) {
        self.is_asked = false;
        self.cost = answer.cost;
        if answer.is_read {
            self.read_at = Some(now);
            self.resident = resident;
            self.not_before = now.plus(Self::PAUSE);
        } else {
            self.leave_alone(now);
        }
    }

    /// Records that the request failed.
    pub(crate) fn forget(&mut self) {
        self.is_asked = false;
    }

    /// Skips the process for a long time.
    pub(crate) fn leave_alone(&mut self, now: Span) {
        self.is_asked = false;
        self.not_before = now.plus(Self::AGE_LONG);
    }

    /// Predicts the cost of a reading: that of the last one, or else an estimate from the size.
    fn foretold(&self, resident: u64, page_kib: u64) -> Span {
        if self.resident > 0 && self.cost > Span::ZERO {
            let nanos = u128::from(self.cost.as_nanos()) * u128::from(resident);
            let nanos = nanos / u128::from(self.resident);
            return Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        }
        Span::from_nanos(
            (resident.saturating_mul(page_kib) >> 10).saturating_mul(Shares::NANOS_PER_MIB),
        )
    }
}

impl Shares {
    /// Upper end of what was measured on 6.18 with pages of 4 KiB.
    const NANOS_PER_MIB: u64 = 3_500;
    /// A more expensive reading is of a huge process: 6 GiB and more.
    const HUGE: Span = Span::from_millis(20);
    /// If a lock is taken for longer, the process is faulty or the host can no longer be read.
    const DEADLINE: Span = Span::from_secs(2);
    /// Requests that wait. With the usual scan every 10 s and 50 µs each, fewer are read in between.
    pub(crate) const REQUESTED_MAX: usize = 64;
    /// At most 4 threads; all but one of them wait for a lock that another task has taken.
    const THREADS_MAX: usize = 4;
    /// Bytes of stack; the probe's buffers are on the heap except one of 16 KiB.
    const STACK: usize = 128 << 10;

    /// Creates the reader; it reads nothing before the first request. `share` is the part of one CPU it may take.
    pub(crate) fn new(root: &Root, share: Ratio) -> Self {
        let mut shares = Self {
            root: root.clone(),
            share,
            worker: None,
            alive: Arc::default(),
            outstanding: 0,
            huge_from: Span::ZERO,
            page_kib: u64::try_from(rustix::param::page_size() >> 10).unwrap_or(4),
        };
        shares.start();
        shares
    }

    fn start(&mut self) {
        if self.alive.load(Relaxed) >= Self::THREADS_MAX {
            return;
        }
        let (asks, asked) = sync_channel(Self::REQUESTED_MAX);
        let (answered, answers) = sync_channel(Self::REQUESTED_MAX);
        let busy = Arc::new(Busy::default());
        let thread = PssReader {
            details: Details::new(&self.root),
            share: self.share.get() * 0.75,
            asked,
            answered,
            busy: Arc::clone(&busy),
            alive: Alive::new(&self.alive),
        };
        let builder =
            std::thread::Builder::new().name("memtide-pss".to_owned()).stack_size(Self::STACK);
        // On a host without room for a thread, shares are not read.
        if builder.spawn(move || thread.run()).is_ok() {
            self.worker = Some(Worker {
                asks,
                answers,
                busy,
                queue: Vec::with_capacity(Self::REQUESTED_MAX),
            });
        }
        self.outstanding = 0;
    }

    /// Returns KiB per page, for [`Schedule::rank`].
    pub(crate) fn page_kib(&self) -> u64 {
        self.page_kib
    }

    /// Returns how many more processes may be requested.
    pub(crate) fn room(&self) -> usize {
        let room = Self::REQUESTED_MAX - self.outstanding.min(Self::REQUESTED_MAX);
        self.worker.as_ref().map_or(0, |_| room)
    }

    /// Requests the share of a process if the budget allows.
    pub(crate) fn ask(&mut self, of: TaskKey, schedule: &mut Schedule, resident: u64, now: Span) {
        let cost = schedule.foretold(resident, self.page_kib);
        let is_huge = cost > Self::HUGE;
        if is_huge && now < self.huge_from {
            return;
        }
        let Some(worker) = &mut self.worker else {
            return;
        };
        let deadline = Self::DEADLINE.max(cost.times(4.0));
        let ask = PssRequest { of, is_huge, deadline };
        match worker.asks.try_send(ask) {
            Ok(()) => {
                worker.queue.push(ask);
                schedule.is_asked = true;
                self.outstanding += 1;
                if is_huge {
                    self.huge_from = now.plus(cost.times(4.0 / self.share.get()));
                }
            }
            Err(TrySendError::Full(_)) => {}
            Err(TrySendError::Disconnected(_)) => self.worker = None,
        }
    }

    /// Returns the next answer, if one has arrived; never waits.
    pub(crate) fn take(&mut self, now: Span) -> Option<PssAnswer> {
        let worker = self.worker.as_mut()?;
        let answer = worker.answers.try_recv().ok()?;
        worker.queue.retain(|ask| ask.of != answer.of);
        self.outstanding = self.outstanding.saturating_sub(1);
        if answer.is_huge {
            self.huge_from = now.plus(answer.cost.times(4.0 / self.share.get()));
        }
        Some(answer)
    }

    /// Returns the process that missed its deadline, once. The processes requested after it must be requested again.
    pub(crate) fn stuck(&mut self, now: Span, forget: &mut dyn FnMut(TaskKey)) -> Option<TaskKey> {
        let Some(worker) = &self.worker else {
            self.start();
            return None;
        };
        let stuck = worker.busy.overdue(now)?;
        // Its channels end with it: a late answer is dropped, and the thread ends.
        let left = self.worker.take()?;
        left.queue.iter().for_each(|ask| forget(ask.of));
        self.outstanding = 0;
        self.start();
        Some(stuck)
    }
}

/// Counts a thread for as long as it lives.
#[derive(Debug)]
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(counter: &Arc<AtomicUsize>) -> Self {
        counter.fetch_add(1, Relaxed);
        Self(Arc::clone(counter))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// The thread's side: reads shares and sends answers.
#[derive(Debug)]
struct PssReader {
    details: Details,
    share: f64,
    asked: Receiver<PssRequest>,
    answered: SyncSender<PssAnswer>,
    busy: Arc<Busy>,
    alive: Alive,
}

impl PssReader {
    fn run(mut self) {
        while let Ok(ask) = self.asked.recv() {
            let answer = self.read(ask);
            let cost = answer.cost;
            if self.answered.send(answer).is_err() {
                break;
            }
            if !ask.is_huge && self.share > 0.0 {
                std::thread::sleep(Duration::from_secs_f64(cost.as_secs_f64() / self.share));
            }
        }
        drop(self.alive);
    }

    fn read(&mut self, ask: PssRequest) -> PssAnswer {
        let mut cells = ProcessCells::default();
        self.busy.begin(ask, now().boot);
        let TaskKey { pid, start_ticks } = ask.of;
        let result = self.details.read(pid, start_ticks, &mut cells);
        self.busy.end();
        let (cost, is_read) = match result {
            Ok(cost) => (Span::from_secs_f64(cost.cpu.as_secs_f64()), true),
            Err(DetailsError::Malformed(_)) => (Span::ZERO, true),
            Err(_) => (Span::ZERO, false),
        };
        PssAnswer {
            of: ask.of,
            cells,
            // Whatever the reading was, it cost something.
            cost: cost.max(Span::from_nanos(20_000)),
            is_read,
            is_huge: ask.is_huge,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Span = Span::from_mins(1);

    fn answer(is_read: bool, cost: Span) -> PssAnswer {
        PssAnswer {
            of: TaskKey::default(),
            cells: ProcessCells::default(),
            cost,
            is_read,
            is_huge: false,
        }
    }

    #[test]
    fn the_largest_the_growing_and_the_long_unread_come_first() {
        let read = |resident: u64, at: Span| {
            let mut schedule = Schedule::default();
            schedule.answered(&answer(true, Span::ZERO), resident, at);
            schedule
        };
        let rank = |schedule: &Schedule, resident, minutes| {
            schedule.rank(resident, 4, Span::from_mins(minutes))
        };
        let (never, small) = (Schedule::default(), Schedule::default());
        assert!(rank(&never, 1_000, 1) > rank(&small, 500, 1));
        let (same, grown) = (read(1_000, MINUTE), read(600, MINUTE));
        assert!(rank(&grown, 1_000, 5) > rank(&same, 1_000, 5));
        assert!(rank(&same, 1_000, 90) > rank(&same, 1_000, 5));
        assert_eq!(rank(&same, 1_000, 1), None, "it was read just now");
        assert_eq!(rank(&never, 60, 1), None, "it is too small");
    }

    #[test]
    fn who_may_not_be_read_is_left_alone_for_long() {
        let mut schedule = Schedule::default();
        schedule.answered(&answer(false, Span::ZERO), 1_000, MINUTE);
        assert_eq!(schedule.rank(1_000, 4, Span::from_mins(60)), None);
        assert!(schedule.rank(1_000, 4, Span::from_mins(62)).is_some());
    }

    #[test]
    fn the_cost_is_foretold_from_the_last_reading_or_the_size() {
        let mut schedule = Schedule::default();
        let gib = 1 << 18;
        assert_eq!(schedule.foretold(gib, 4), Span::from_nanos(3_584_000));
        // Huge pages are cheaper to walk.
        schedule.answered(&answer(true, Span::from_nanos(100_000)), gib, MINUTE);
        assert_eq!(schedule.foretold(2 * gib, 4), Span::from_nanos(200_000));
    }

    #[test]
    fn one_huge_process_uses_up_its_quarter_for_long() {
        let directory = tempfile::tempdir().unwrap();
        let mut shares = Shares::new(&Root::at(directory.path()), Ratio::from_percent(0.2));
        let ten_gib = 10 << 18;
        let mut asked = |pid, now| {
            let of = TaskKey { pid, start_ticks: 1 };
            let mut schedule = Schedule::default();
            shares.ask(of, &mut schedule, ten_gib, now);
            schedule.is_asked
        };
        assert!(asked(1, Span::from_mins(1)));
        // 36 ms at a quarter of 0.2 %: 72 s.
        assert!(!asked(2, Span::from_mins(2)));
        assert!(asked(2, Span::from_mins(3)));
    }

    #[test]
    fn a_process_that_does_not_answer_is_told_once_and_the_others_are_asked_again() {
        let directory = tempfile::tempdir().unwrap();
        let mut shares = Shares::new(&Root::at(directory.path()), Ratio::from_percent(0.2));
        let (asks, _kept) = sync_channel(4);
        let (_answered, answers) = sync_channel(4);
        let busy = Arc::new(Busy::default());
        // A thread waits for a lock since the tenth second; its previous answer is not collected yet.
        let of = |pid| TaskKey { pid, start_ticks: 7 };
        let ask = PssRequest { of: of(2), is_huge: false, deadline: Shares::DEADLINE };
        busy.begin(ask, Span::from_secs(10));
        let queue = Vec::new();
        shares.worker = Some(Worker { asks, answers, busy, queue });
        for pid in [1, 2, 3] {
            shares.ask(of(pid), &mut Schedule::default(), 1_000, Span::from_secs(9));
        }
        let mut again = Vec::new();
        let mut stuck = |shares: &mut Shares, at| {
            shares.stuck(Span::from_secs(at), &mut |of| again.push(of.pid))
        };
        assert_eq!(stuck(&mut shares, 11), None);
        assert_eq!(stuck(&mut shares, 13), Some(of(2)));
        assert_eq!(stuck(&mut shares, 14), None);
        assert_eq!(again, [1, 2, 3]);
        assert_eq!(shares.room(), Shares::REQUESTED_MAX);
    }
}
