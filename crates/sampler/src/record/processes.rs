//! All processes of a scan, joined with those of the previous scan: both are sorted by PID, so nothing is searched or
//! hashed. The state kept for each process is its place in the store, its service and its counters.
//!
//! A process is the same while its PID and its start are. A process that ran another program, or was moved to another
//! cgroup, is registered anew. Its service is read when it is new, again at the next scan (service managers move a
//! process after they start it), when the number of its cgroup changes, and otherwise in rotation, every ten minutes.

use probe::{Root, Task, Tasks, Walk, service_of};
use store::{Slot, Writer};
use timeline::signals::{PROC_PARENT, PROC_SIZE};
use timeline::{Event, EventKind, ProcessCells, Sample, Stamp};
use units::{Bytes, Count, Span};

use crate::Settings;
use crate::TasksRead;
use crate::record::heap_watch::{HeapAnswer, HeapWatch};
use crate::record::pss::{PssAnswer, Schedule, Shares, TaskKey};
use crate::record::services::{ServiceId, Services, Share};

/// The result of a scan of all processes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ProcessScan {
    pub(crate) processes: usize,
    pub(crate) left_out: usize,
    pub(crate) services: usize,
    pub(crate) services_left_out: usize,
    /// Shares (PSS) received with this scan.
    pub(crate) shares_read: usize,
    /// Processes with a share that is due.
    pub(crate) shares_waiting: usize,
}

/// The processes of a host.
#[derive(Debug)]
pub(crate) struct Processes {
    tasks: Tasks,
    /// The processes of the last scan, by PID.
    known: Vec<Process>,
    visits: Visits,
    shares: Option<Shares>,
    heaps: Option<HeapWatch>,
}

/// The state of a scan while it visits processes.
#[derive(Debug)]
struct Visits {
    root: Root,
    /// Processes that this scan found first, by PID.
    fresh: Vec<Process>,
    services: Services,
    /// Shares received since the last scan, by PID.
    answers: Vec<PssAnswer>,
    /// Heaps received since the last scan, by PID.
    heaps: Vec<HeapAnswer>,
    /// Scans per rotation, in which the service of every process is read again.
    rotation: u64,
    /// Number of scans so far, including this one.
    scans: u64,
    now: Stamp,
    /// When the previous scan and this one began, in clock ticks since boot.
    before_ticks: u64,
    now_ticks: u64,
    ticks_per_second: u64,
    /// How many services may still be read in this scan.
    reads_left: u32,
    /// How many known processes this scan found.
    found: usize,
    /// The page size for ranks, in KiB; `None` if no shares are read.
    page_kib: Option<u64>,
    /// PIDs by how much their share matters.
    ranks: Vec<(u64, u32)>,
    text: Vec<u8>,
    service: String,
    cells: ProcessCells,
}

/// The position of a scan: the next known process, the next answers, and the last PID.
#[derive(Debug, Clone, Copy, Default)]
struct ScanCursor {
    process: usize,
    answer: usize,
    heap: usize,
    pid: Option<u32>,
}

/// The kernel gives 15 bytes. Names of its own workers are longer, and their ends change all the time.
const NAME: usize = 16;

/// A known process.
#[derive(Debug)]
struct Process {
    of: TaskKey,
    slot: Slot,
    name: [u8; NAME],
    /// `None` until it was read.
    service: Option<ServiceId>,
    /// Whether the service is only the program's name: for a process in no unit and no container, the store keeps no
    /// service.
    is_program: bool,
    cgroup: Option<u64>,
    share: Share,
    schedule: Schedule,
    /// The scans that found it first and last.
    first: u64,
    last: u64,
}

impl Processes {
    /// How often the service of every process without a cgroup number is read again.
    const ROTATION: Span = Span::from_mins(10);

    /// Opens the processes below `root`.
    pub(crate) fn open(root: &Root, settings: &Settings, every: Span) -> Self {
        let share = settings.shares.filter(|share| share.get() > 0.0);
        let shares = share.map(|share| Shares::new(root, share));
        let rotation = Self::ROTATION.as_nanos() / every.as_nanos().max(1);
        let mut visits = Visits::new(root, settings.most_services, rotation);
        visits.page_kib = shares.as_ref().map(Shares::page_kib);
        Self {
            tasks: Tasks::open(root, settings.source),
            known: Vec::with_capacity(1024),
            visits,
            shares,
            heaps: None,
        }
    }

    /// Adds the figures of malloc heaps that this watch reads.
    pub(crate) fn watch_heaps(&mut self, heaps: HeapWatch) {
        self.heaps = Some(heaps);
    }

    /// Returns how processes are read.
    pub(crate) fn source(&self) -> TasksRead {
        TasksRead {
            source: self.tasks.source(),
            why_not_bpf: self.tasks.why_not_bpf().map(str::to_owned),
        }
    }

    /// Reads all processes into the store, which has begun a sample, and their services into rows of `sample`. Events
    /// of services go to `report`.
    pub(crate) fn scan(
        &mut self,
        stamp: Stamp,
        writer: &mut Writer,
        sample: &mut Sample,
        report: &mut dyn FnMut(Event),
    ) -> ProcessScan {
        self.take_answers(stamp.boot);
        let Self { tasks, known, visits, .. } = self;
        visits.begin(stamp);
        writer.begin_processes();
        let mut cursor = ScanCursor::default();
        let walk = tasks.each(&mut |task| visits.visit(known, &mut cursor, &task, writer));
        visits.end(known, report);
        visits.services.rows(sample);
        let shares_waiting = self.ask(stamp.boot);
        self.tally(&walk, shares_waiting)
    }

    fn tally(&self, walk: &Walk, shares_waiting: usize) -> ProcessScan {
        let (services, services_left_out) = self.visits.services.count();
        let answers = self.visits.answers.iter();
        ProcessScan {
            processes: self.known.len(),
            left_out: walk.left_out + walk.silent,
            services,
            services_left_out,
            shares_read: answers.filter(|answer| answer.is_read).count(),
            shares_waiting,
        }
    }

    /// Reports a process without a share because another task has its lock. Call it with each sample.
    pub(crate) fn blocked(&mut self, stamp: Stamp) -> Option<Event> {
        let known = &mut self.known;
        let stuck = self.shares.as_mut()?.stuck(stamp.boot, &mut |of| {
            if let Some(process) = find(known, of) {
                process.schedule.forget();
            }
        })?;
        let process = find(known, stuck)?;
        process.schedule.leave_alone(stamp.boot);
        let name = String::from_utf8_lossy(process.name());
        let text = format!(
            "{name} (pid {}) did not let its memory be read in time: its mmap lock is taken, or \
             the host is very slow; its proportional share (PSS) is left alone for an hour",
            stuck.pid
        );
        Some(Event {
            stamp,
            kind: EventKind::Blocked,
            subject: format!("{}@{}", stuck.pid, stuck.start_ticks),
            text,
            report: String::new(),
        })
    }

    fn take_answers(&mut self, now: Span) {
        let heaps = &mut self.visits.heaps;
        heaps.clear();
        if let Some(watch) = &self.heaps {
            heaps.extend(std::iter::from_fn(|| watch.take()).take(HeapWatch::WAITING_MAX));
            heaps.sort_unstable_by_key(|answer| answer.of.pid);
        }
        let answers = &mut self.visits.answers;
        answers.clear();
        let Some(shares) = &mut self.shares else {
            return;
        };
        while let Some(answer) = shares.take(now) {
            answers.push(answer);
        }
        answers.sort_unstable_by_key(|answer| answer.of.pid);
    }

    /// Asks for the shares that matter most. Returns how many are due.
    fn ask(&mut self, now: Span) -> usize {
        let Some(shares) = &mut self.shares else {
            return 0;
        };
        let ranks = &mut self.visits.ranks;
        let waiting = ranks.len();
        let room = shares.room().min(waiting);
        if room > 0 && room < waiting {
            ranks.select_nth_unstable_by(room - 1, |a, b| b.cmp(a));
        }
        ranks.truncate(room);
        ranks.sort_unstable_by(|a, b| b.cmp(a));
        for (_, pid) in &*ranks {
            let at = self.known.binary_search_by_key(pid, |process| process.of.pid);
            if let Some(process) = at.ok().and_then(|at| self.known.get_mut(at)) {
                let resident = process.share.resident();
                shares.ask(process.of, &mut process.schedule, resident, now);
            }
        }
        waiting
    }
}

impl Visits {
    /// At most 512 services are read in one scan, which takes 4 ms even in a fork bomb. The rest follow in later scans.
    const READS_MAX: u32 = 512;
    /// Spare capacity, so that a scan that finds a few more processes does not allocate.
    const SPARE: usize = 256;

    fn new(root: &Root, most_services: usize, rotation: u64) -> Self {
        Self {
            root: root.clone(),
            fresh: Vec::with_capacity(Self::SPARE),
            services: Services::new(most_services),
            answers: Vec::with_capacity(Shares::REQUESTED_MAX),
            heaps: Vec::with_capacity(HeapWatch::WAITING_MAX),
            rotation: rotation.max(1),
            scans: 0,
            now: Stamp::default(),
            before_ticks: 0,
            now_ticks: 0,
            ticks_per_second: rustix::param::clock_ticks_per_second(),
            reads_left: 0,
            found: 0,
            page_kib: None,
            ranks: Vec::new(),
            text: Vec::with_capacity(4096),
            service: String::with_capacity(256),
            cells: ProcessCells::default(),
        }
    }

    fn begin(&mut self, now: Stamp) {
        let ticks = u128::from(now.boot.as_nanos()) * u128::from(self.ticks_per_second);
        self.before_ticks = self.now_ticks;
        self.now_ticks = u64::try_from(ticks / 1_000_000_000).unwrap_or(u64::MAX);
        self.now = now;
        self.scans += 1;
        self.reads_left = Self::READS_MAX;
        self.found = 0;
        self.ranks.clear();
        self.services.begin();
    }

    /// Visits a process, known or new.
    fn visit(
        &mut self,
        known: &mut [Process],
        cursor: &mut ScanCursor,
        task: &Task<'_>,
        writer: &mut Writer,
    ) {
        // A process out of order would seem new.
        if cursor.pid.is_some_and(|last| task.pid <= last) {
            return;
        }
        cursor.pid = Some(task.pid);
        while known.get(cursor.process).is_some_and(|process| process.of.pid < task.pid) {
            cursor.process += 1;
        }
        let of = TaskKey::from_task(task);
        match known.get_mut(cursor.process) {
            Some(process) if process.of == of => self.update_known(process, cursor, task, writer),
            _ => self.add_new(cursor, task, writer),
        }
    }

    fn update_known(
        &mut self,
        process: &mut Process,
        cursor: &mut ScanCursor,
        task: &Task<'_>,
        writer: &mut Writer,
    ) {
        let before = process.service;
        process.last = self.scans;
        self.found += 1;
        self.renew(process, task, writer);
        let share = self.answer_for(cursor, process.of);
        if let Some(answer) = share.and_then(|at| self.answers.get(at)) {
            let resident = process.share.resident();
            process.schedule.answered(answer, resident, self.now.boot);
        }
        let heap = self.heap_for(cursor, process.of);
        let answers = [
            share.and_then(|at| Some(&self.answers.get(at)?.cells)),
            heap.and_then(|at| Some(&self.heaps.get(at)?.cells)),
        ];
        let cells = joined(&mut self.cells, task.cells, answers);
        let increases = process.share.update(cells, false);
        if let Some(service) = process.service {
            let stayed = before == process.service;
            self.services.add(service, &process.share, &increases, stayed);
        }
        if !writer.process(process.slot, cells) {
            process.slot = process.declare(task.name, &self.services, writer);
            writer.process(process.slot, cells);
        }
        self.rank(process.of.pid, &process.schedule, process.share.resident());
    }

    /// Notes how much the share of a process matters, if it may be asked for.
    fn rank(&mut self, pid: u32, schedule: &Schedule, resident: u64) {
        let page_kib = self.page_kib;
        let rank = page_kib.and_then(|kib| schedule.rank(resident, kib, self.now.boot));
        self.ranks.extend(rank.map(|rank| (rank, pid)));
    }

    fn add_new(&mut self, cursor: &mut ScanCursor, task: &Task<'_>, writer: &mut Writer) {
        let (service, is_program) = self.read_service(task);
        let mut share = Share::default();
        let is_born = self.scans > 1 && task.start_ticks >= self.before_ticks;
        let increases = share.update(task.cells, is_born);
        if let Some(service) = service {
            self.services.add(service, &share, &increases, false);
        }
        let of = TaskKey::from_task(task);
        let unit = unit(&self.services, service, is_program);
        let slot = writer.declare(of.pid, of.start_ticks, task.name, unit);
        let heap = self.heap_for(cursor, of);
        let answer = heap.and_then(|at| Some(&self.heaps.get(at)?.cells));
        writer.process(slot, joined(&mut self.cells, task.cells, [None, answer]));
        self.rank(of.pid, &Schedule::default(), share.resident());
        self.fresh.push(Process {
            of,
            slot,
            name: short(task.name),
            service,
            is_program,
            cgroup: task.cgroup_id,
            share,
            schedule: Schedule::default(),
            first: self.scans,
            last: self.scans,
        });
    }

    /// Registers the process anew if it runs another program or was moved.
    fn renew(&mut self, process: &mut Process, task: &Task<'_>, writer: &mut Writer) {
        // The kernel's workers are named after their work, and belong to no service.
        if is_kernel_thread(task) && process.service.is_some() {
            return;
        }
        let is_renamed = process.name != short(task.name);
        let is_moved = process.cgroup != task.cgroup_id;
        let turn = u64::from(task.pid).wrapping_add(self.scans) % self.rotation;
        let is_due = process.service.is_none()
            || process.first + 1 == self.scans
            || task.cgroup_id.is_none() && turn == 0;
        if !(is_renamed || is_moved || is_due) {
            return;
        }
        let before = (process.service, process.is_program);
        (process.service, process.is_program) = self.read_service(task);
        process.cgroup = task.cgroup_id;
        process.name = short(task.name);
        if is_renamed || before != (process.service, process.is_program) {
            process.slot = process.declare(task.name, &self.services, writer);
        }
    }

    /// Reads the service of a process, and whether that is only its program's name because it is in no unit. The
    /// service is `None` if the scan's limit of reads is reached.
    fn read_service(&mut self, task: &Task<'_>) -> (Option<ServiceId>, bool) {
        if is_kernel_thread(task) {
            let service = self.services.named("kernel threads", self.now);
            return (Some(service), true);
        }
        if self.reads_left == 0 {
            return (None, true);
        }
        self.reads_left -= 1;
        service_of(&self.root, task.pid, &mut self.text, &mut self.service);
        let is_program = self.service.is_empty();
        if is_program {
            probe::text::push_lossy(&mut self.service, task.name);
        }
        let named =
            (!self.service.is_empty()).then(|| self.services.named(&self.service, self.now));
        (named, is_program)
    }

    /// Returns the index of the answer for this process.
    fn answer_for(&self, cursor: &mut ScanCursor, of: TaskKey) -> Option<usize> {
        let pid = |at: usize| self.answers.get(at).map(|answer| answer.of.pid);
        while pid(cursor.answer).is_some_and(|pid| pid < of.pid) {
            cursor.answer += 1;
        }
        let answer = self.answers.get(cursor.answer)?;
        (answer.of == of).then_some(cursor.answer)
    }

    /// Returns the index of the figures of this process's heap.
    fn heap_for(&self, cursor: &mut ScanCursor, of: TaskKey) -> Option<usize> {
        let pid = |at: usize| self.heaps.get(at).map(|answer| answer.of.pid);
        while pid(cursor.heap).is_some_and(|pid| pid < of.pid) {
            cursor.heap += 1;
        }
        let answer = self.heaps.get(cursor.heap)?;
        (answer.of == of).then_some(cursor.heap)
    }

    /// Forgets the processes that this scan did not find, and adds the new ones.
    fn end(&mut self, known: &mut Vec<Process>, report: &mut dyn FnMut(Event)) {
        let scans = self.scans;
        if self.found < known.len() {
            known.retain(|process| process.last == scans);
        }
        if !self.fresh.is_empty() {
            known.append(&mut self.fresh);
            known.sort_unstable_by_key(|process| process.of.pid);
            known.reserve(Self::SPARE);
        }
        self.services.end(self.now, report);
    }
}

impl Process {
    fn name(&self) -> &[u8] {
        let end = self.name.iter().position(|byte| *byte == 0);
        &self.name[..end.unwrap_or(NAME)]
    }

    /// Registers the process with the store.
    fn declare(&self, name: &[u8], services: &Services, writer: &mut Writer) -> Slot {
        let unit = unit(services, self.service, self.is_program);
        writer.declare(self.of.pid, self.of.start_ticks, name, unit)
    }
}

impl TaskKey {
    fn from_task(task: &Task<'_>) -> Self {
        Self { pid: task.pid, start_ticks: task.start_ticks }
    }
}

/// Returns the unit or container of a process for the store; empty for a program, which the process's name already
/// gives.
fn unit(services: &Services, service: Option<ServiceId>, is_program: bool) -> &str {
    service.filter(|_| !is_program).map_or("", |id| services.name(id))
}

fn find(known: &mut [Process], of: TaskKey) -> Option<&mut Process> {
    let at = known.binary_search_by_key(&of.pid, |process| process.of.pid);
    let process = known.get_mut(at.ok()?)?;
    (process.of == of).then_some(process)
}

/// The first bytes of a name, which distinguish it from others.
fn short(name: &[u8]) -> [u8; NAME] {
    let mut short = [0; NAME];
    for (to, from) in short.iter_mut().zip(name) {
        *to = *from;
    }
    short
}

/// Whether a task is a kernel thread: all are children of PID 2 and have no address space. In a container PID 2 may be
/// any process.
fn is_kernel_thread(task: &Task<'_>) -> bool {
    const KTHREADD: Count = Count::new(2);
    let of_kthreadd = task.pid == 2 || task.cells.get(PROC_PARENT) == Some(KTHREADD);
    of_kthreadd && task.cells.get(PROC_SIZE).unwrap_or_default() == Bytes::ZERO
}

/// Returns the readings of a process with the answers that have arrived for it; `buffer` is where they are joined.
fn joined<'a>(
    buffer: &'a mut ProcessCells,
    cells: &'a ProcessCells,
    answers: [Option<&ProcessCells>; 2],
) -> &'a ProcessCells {
    if answers.iter().all(Option::is_none) {
        return cells;
    }
    *buffer = *cells;
    for answer in answers.into_iter().flatten() {
        merge(buffer, answer);
    }
    buffer
}

/// Adds readings that a scan lacks; those that it has are newer.
fn merge(cells: &mut ProcessCells, more: &ProcessCells) {
    for (signal, raw) in more.iter() {
        if cells.get_raw(signal).is_none() {
            cells.set_raw(signal, raw);
        }
    }
}
