//! All processes of a scan, joined with those of the scan before: both come by ascending PID, so nothing is searched for
//! and nothing hashed. What is known of a process stays with it: its place in the store, its service, its counters.
//!
//! A process is the same while its number and its start are. One that became another program, or was moved to another
//! cgroup, is registered anew. Its service is read once when it is new, once more at the next scan (who starts
//! processes moves them after that), when its group's number changes, and else in rotation, every ten minutes.

use probe::{Root, Task, TaskSource, Tasks, Walk, service_of};
use store::{Slot, Writer};
use timeline::signals::{PROC_PARENT, PROC_SIZE};
use timeline::{Event, EventKind, ProcessCells, Sample, Stamp};
use units::{Bytes, Count, Span};

use crate::Settings;
use crate::record::pss::{ProcessIdentity, PssAnswer, Schedule, Shares};
use crate::record::services::{ServiceId, Services, Share};

/// What a scan of all processes found.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ProcessScan {
    pub(crate) processes: usize,
    pub(crate) left_out: usize,
    pub(crate) services: usize,
    pub(crate) services_left_out: usize,
    /// Shares (PSS) that came with this scan.
    pub(crate) shares_read: usize,
    /// Processes with a share that is due.
    pub(crate) shares_waiting: usize,
}

/// The processes of a host.
#[derive(Debug)]
pub(crate) struct Processes {
    tasks: Tasks,
    /// Those of the last scan, by PID.
    known: Vec<Process>,
    visits: Visits,
    shares: Option<Shares>,
    /// Processes by how much their share matters, to find the first.
    ranks: Vec<(u64, usize)>,
}

/// What is needed to visit processes, and what comes of it.
#[derive(Debug)]
struct Visits {
    root: Root,
    /// Processes that are new in this scan, by PID.
    fresh: Vec<Process>,
    services: Services,
    /// Shares that came since the last scan, by PID.
    answers: Vec<PssAnswer>,
    /// How many scans there are in the time in which every process's service is read again.
    rotation: u64,
    /// Scans so far, this one included.
    scans: u64,
    now: Stamp,
    /// When the scan before began, and when this one, in clock ticks since boot.
    before_ticks: u64,
    now_ticks: u64,
    ticks_per_second: u64,
    /// Services that may still be read in this scan.
    reads_left: u32,
    text: Vec<u8>,
    service: String,
    cells: ProcessCells,
}

/// Where a scan is: before which known process and which answer, and the last PID.
#[derive(Debug, Clone, Copy, Default)]
struct ScanCursor {
    process: usize,
    answer: usize,
    pid: Option<u32>,
}

/// The kernel gives 15 bytes; of its own workers more, which change all the time.
const NAME: usize = 16;

/// A process that is known.
#[derive(Debug)]
struct Process {
    of: ProcessIdentity,
    slot: Slot,
    name: [u8; NAME],
    /// `None` until it could be read.
    service: Option<ServiceId>,
    /// A process in no unit and no container belongs to the service of its program, and to none in the store.
    is_program: bool,
    cgroup: Option<u64>,
    share: Share,
    schedule: Schedule,
    /// The scan in which it was found first, and the last one.
    first: u64,
    last: u64,
}

impl Processes {
    /// The time in which every process's service is read again, where its group has no number.
    const ROTATION: Span = Span::from_mins(10);

    /// The processes below `root`.
    pub(crate) fn open(root: &Root, settings: &Settings, every: Span) -> Self {
        let share = settings.shares.filter(|share| share.get() > 0.0);
        let rotation = Self::ROTATION.as_nanos() / every.as_nanos().max(1);
        Self {
            tasks: Tasks::open(root, settings.source),
            known: Vec::with_capacity(1024),
            visits: Visits::new(root, settings.most_services, rotation),
            shares: share.map(|share| Shares::new(root, share)),
            ranks: Vec::new(),
        }
    }

    /// How they are read, in words.
    pub(crate) fn source(&self) -> String {
        match (self.tasks.source(), self.tasks.why_not_bpf()) {
            (TaskSource::Bpf, _) => "BPF task iterator".to_owned(),
            (TaskSource::Proc, None) => "/proc".to_owned(),
            (TaskSource::Proc, Some(why)) => format!("/proc; no BPF task iterator: {why}"),
        }
    }

    /// Reads all processes into the store, which has begun a sample, and their services into rows of `sample`. Events of
    /// services go to `report`.
    pub(crate) fn scan(
        &mut self,
        stamp: Stamp,
        writer: &mut Writer,
        sample: &mut Sample,
        report: &mut dyn FnMut(Event),
    ) -> ProcessScan {
        self.take_answers(stamp.boot);
        let Self {
            tasks,
            known,
            visits,
            ..
        } = self;
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
            left_out: walk.left_out,
            services,
            services_left_out,
            shares_read: answers.filter(|answer| answer.is_read).count(),
            shares_waiting,
        }
    }

    /// Reports a process with a share that does not come as another task has its lock. To be called with each sample.
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
            "{name} (pid {}) did not let its memory be read in time: its mmap lock is taken, or the host is very slow; \
             its proportional share (PSS) is left alone for an hour",
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

    /// Asks for the shares that matter most; how many are due.
    fn ask(&mut self, now: Span) -> usize {
        let Some(shares) = &mut self.shares else {
            return 0;
        };
        self.ranks.clear();
        for (at, process) in self.known.iter().enumerate() {
            let resident = process.share.resident();
            if let Some(rank) = process.schedule.rank(resident, shares.page_kib(), now) {
                self.ranks.push((rank, at));
            }
        }
        let waiting = self.ranks.len();
        let room = shares.room().min(waiting);
        if room > 0 && room < waiting {
            self.ranks.select_nth_unstable_by(room - 1, |a, b| b.cmp(a));
        }
        self.ranks.truncate(room);
        self.ranks.sort_unstable_by(|a, b| b.cmp(a));
        for (_, at) in &self.ranks {
            if let Some(process) = self.known.get_mut(*at) {
                let resident = process.share.resident();
                shares.ask(process.of, &mut process.schedule, resident, now);
            }
        }
        waiting
    }
}

impl Visits {
    /// Services read in one scan: 4 ms at most, which a fork bomb cannot make more. Others have their turn at the next.
    const MOST_READS: u32 = 512;
    /// Room for more than there were, so that a scan that meets a few more does not have to allocate.
    const SPARE: usize = 256;

    fn new(root: &Root, most_services: usize, rotation: u64) -> Self {
        Self {
            root: root.clone(),
            fresh: Vec::with_capacity(Self::SPARE),
            services: Services::new(most_services),
            answers: Vec::with_capacity(Shares::MOST_ASKED),
            rotation: rotation.max(1),
            scans: 0,
            now: Stamp::default(),
            before_ticks: 0,
            now_ticks: 0,
            ticks_per_second: rustix::param::clock_ticks_per_second(),
            reads_left: 0,
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
        self.reads_left = Self::MOST_READS;
        self.services.begin();
    }

    /// Meets a process: the known one, or a new one.
    fn visit(
        &mut self,
        known: &mut [Process],
        cursor: &mut ScanCursor,
        task: &Task<'_>,
        writer: &mut Writer,
    ) {
        // A process out of order would be taken for new.
        if cursor.pid.is_some_and(|last| task.pid <= last) {
            return;
        }
        cursor.pid = Some(task.pid);
        while known
            .get(cursor.process)
            .is_some_and(|process| process.of.pid < task.pid)
        {
            cursor.process += 1;
        }
        let of = ProcessIdentity::from_task(task);
        match known.get_mut(cursor.process) {
            Some(process) if process.of == of => self.update_known(process, cursor, task, writer),
            _ => self.add_new(task, writer),
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
        self.renew(process, task, writer);
        let cells = match self.answer_for(cursor, process.of) {
            Some(at) => {
                let answer = &self.answers[at];
                self.cells = *task.cells;
                merge(&mut self.cells, &answer.cells);
                let resident = process.share.resident();
                process.schedule.answered(answer, resident, self.now.boot);
                &self.cells
            }
            None => task.cells,
        };
        let increases = process.share.update(cells, false);
        if let Some(service) = process.service {
            let stayed = before == process.service;
            self.services
                .add(service, &process.share, &increases, stayed);
        }
        if !writer.process(process.slot, cells) {
            process.slot = process.declare(task.name, &self.services, writer);
            writer.process(process.slot, cells);
        }
    }

    fn add_new(&mut self, task: &Task<'_>, writer: &mut Writer) {
        let (service, is_program) = self.read_service(task);
        let mut share = Share::default();
        let is_born = self.scans > 1 && task.start_ticks >= self.before_ticks;
        let increases = share.update(task.cells, is_born);
        if let Some(service) = service {
            self.services.add(service, &share, &increases, false);
        }
        let of = ProcessIdentity::from_task(task);
        let unit = unit(&self.services, service, is_program);
        let slot = writer.declare(of.pid, of.start_ticks, task.name, unit);
        writer.process(slot, task.cells);
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

    /// Sees whether the process became another program or was moved, and if so makes it known anew.
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

    /// Reads the service of a process, and whether it is that of its program, as it is in no unit. None where too many
    /// were read in this scan.
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

    /// Where the answer for this process is.
    fn answer_for(&self, cursor: &mut ScanCursor, of: ProcessIdentity) -> Option<usize> {
        let pid = |at: usize| self.answers.get(at).map(|answer| answer.of.pid);
        while pid(cursor.answer).is_some_and(|pid| pid < of.pid) {
            cursor.answer += 1;
        }
        let answer = self.answers.get(cursor.answer)?;
        (answer.of == of).then_some(cursor.answer)
    }

    /// Forgets the processes that were not met, and takes in the new ones.
    fn end(&mut self, known: &mut Vec<Process>, report: &mut dyn FnMut(Event)) {
        let scans = self.scans;
        known.retain(|process| process.last == scans);
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

    /// Makes it known to the store anew.
    fn declare(&self, name: &[u8], services: &Services, writer: &mut Writer) -> Slot {
        let unit = unit(services, self.service, self.is_program);
        writer.declare(self.of.pid, self.of.start_ticks, name, unit)
    }
}

impl ProcessIdentity {
    fn from_task(task: &Task<'_>) -> Self {
        Self {
            pid: task.pid,
            start_ticks: task.start_ticks,
        }
    }
}

/// What a process belongs to in the store: a unit or a container, not its program, which its name has already.
fn unit(services: &Services, service: Option<ServiceId>, is_program: bool) -> &str {
    service
        .filter(|_| !is_program)
        .map_or("", |id| services.name(id))
}

fn find(known: &mut [Process], of: ProcessIdentity) -> Option<&mut Process> {
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

/// All of them are children of PID 2 and have no address space. In a container, PID 2 may be anybody.
fn is_kernel_thread(task: &Task<'_>) -> bool {
    const KTHREADD: Count = Count::new(2);
    let of_kthreadd = task.pid == 2 || task.cells.get(PROC_PARENT) == Some(KTHREADD);
    of_kthreadd && task.cells.get(PROC_SIZE).unwrap_or_default() == Bytes::ZERO
}

/// Adds the readings that a scan did not have; those that it has are younger.
fn merge(cells: &mut ProcessCells, more: &ProcessCells) {
    for (signal, raw) in more.iter() {
        if cells.get_raw(signal).is_none() {
            cells.set_raw(signal, raw);
        }
    }
}
