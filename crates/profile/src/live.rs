//! Samples this host: what the kernel runs, what waits in state D, and how long reclaim and compaction take.
//!
//! Events of perf_event_open only: no perf, no BPF, no kprobes. All memory is taken, and locked where that is allowed, before the first
//! sample; names of functions are looked up after the last. Kernel addresses are kept in memory until then and never leave it.
//!
//! Cost, measured on Linux 6.18 (docs/decisions/0019): 22 to 30 µs for a sample, so 0.2 to 0.3 % of a busy CPU at 99 Hz; 0.27 µs for
//! each switch between tasks.

mod chain_table;
mod perf_event;
mod perf_record;
mod sources;

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use probe::{
    Cgroups, HostProbe, Kallsyms, NoSymbols, Root, Tracefs, cpus_online, host_facts, memory_cgroup,
    waiting_in_d,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use thiserror::Error;
use timeline::cgroup::counts_below;
use timeline::{Facts, Sample, Signal, signals};
use units::{Span, Unit};

use crate::cgroup_use::cgroup_uses;
use crate::collected::{BlockedHow, BlockedStacks, CpuUnit, NotMeasured, Profile};
use crate::episode::{EpisodeTable, TracepointRole};
use crate::stack::{FramePlace, StackTable};
use chain_table::{ChainTable, ChainTask, CommBytes};
use perf_event::RECORD_MAX;
use perf_record::PerfRecord;
use sources::{EventRole, OpenSources};

/// More switches a second than this, on all CPUs, cost too much to trace: 1.4 % of a CPU.
const SWITCHES_MAX: f64 = 50_000.0;
/// How long switches are counted before.
const SWITCHES_WITHIN: Duration = Duration::from_millis(200);
/// How often rings are read.
const DRAIN_EVERY: Duration = Duration::from_millis(100);
/// How often waiting tasks are looked for.
const POLL_HZ_MAX: f64 = 20.0;
const POLL_HZ_MIN: f64 = 0.2;
/// Looking takes 8 to 25 µs a thread: it is done so often that it takes this share of a CPU at most.
const POLL_CPU_MAX: f64 = 0.01;
/// The function of a task of which may not be read where it waits.
const UNKNOWN_WAIT: &str = "[blocked]";
/// Threads that are known by name, and that wait at one time.
const TASKS_MAX: usize = 1 << 16;
/// Switches between two reads of the rings.
const SWITCHES_KEPT_MAX: usize = 1 << 18;
/// Beyond this share of lost samples, the rate was too high.
const LOST_WORTH_SAYING: f64 = 0.01;
/// From this share on, time that the hypervisor gave to others is worth a line.
const STEAL_WORTH_SAYING: f64 = 0.05;

/// How waits are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffCpu {
    /// Traced where that is possible and cheap, else polled.
    Auto,
    /// Each switch is traced.
    Trace,
    /// Tasks are looked for again and again.
    Poll,
    /// Not at all.
    No,
}

/// Which processes are sampled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProfileScope {
    /// All of them.
    Host,
    /// These, with the children that they get meanwhile.
    Processes(Vec<u32>),
    /// Those of a cgroup, with the cgroups in it: its path below the cgroup file system.
    Cgroup(String),
}

/// What is wanted of a live profile.
#[derive(Debug, Clone)]
pub struct LiveOptions {
    /// Which processes are sampled.
    pub scope: ProfileScope,
    /// How long; `None`: until the callback ends it.
    pub lasts: Option<Span>,
    /// Samples a second on each CPU.
    pub hz: u32,
    /// How waits are measured.
    pub off_cpu: OffCpu,
    /// The priority while sampling, as nice(1) has it; who may not have it keeps the own one.
    pub nice: i32,
}

/// The priority while sampling, where nothing else must come first: above usual tasks, with little to do.
pub const USUAL_NICE: i32 = -15;

/// Samples a second on each CPU, where nobody asks for another rate: 0.2 to 0.3 % of a busy CPU.
pub const USUAL_HZ: u32 = 99;

/// Why there is no live profile.
#[derive(Debug, Error)]
pub enum NoLiveProfile {
    /// Nothing could be opened.
    #[error("nothing can be measured: {}", .0.iter().map(|one| one.why.as_str()).next().unwrap_or("no source"))]
    Nothing(Vec<NotMeasured>),
    /// It was opened and could not be begun.
    #[error("the events could not be started")]
    NotStarted(#[source] std::io::Error),
}

impl NoLiveProfile {
    /// What to type.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Nothing(missing) => missing.iter().find_map(|one| one.help.clone()),
            Self::NotStarted(_) => None,
        }
    }
}

/// A profile that is opened and not begun.
pub struct LiveProfile {
    options: LiveOptions,
    root: Root,
    cpus: Vec<u32>,
    sources: OpenSources,
    /// By the number that records carry.
    roles: HashMap<u64, EventRole>,
    chains: ChainTable,
    comms: HashMap<u32, CommBytes>,
    /// Processes that are wanted: those that were named, and their children.
    wanted: HashSet<u32>,
    /// The cgroup of a process, read when it is first seen and again later.
    cgroup_of: HashMap<u32, CgroupReading>,
    /// Paths of cgroups by their numbers. The first is of processes that had ended.
    cgroups: Vec<String>,
    switches: Vec<TaskSwitch>,
    waiting: HashMap<u32, (u32, u64)>,
    episodes: EpisodeTable,
    polled: StackTable,
    is_polling: bool,
    scans: u32,
    lost: u64,
    lost_switches: u64,
    samples: u64,
    /// Samples of processes that have no number here.
    outside: u64,
    /// On the monotonic clock, between which times records count.
    from_ns: u64,
    until_ns: u64,
    is_throttled: bool,
    remarks: Vec<String>,
}

/// The cgroup of a process by its number, when it was read, and for how long that holds.
#[derive(Debug, Clone, Copy)]
struct CgroupReading {
    number: u32,
    at_ns: u64,
    holds_ns: u64,
}

/// After so long the cgroup of a process is read again for the first time.
const REREAD_AFTER_NS: u64 = 1_000_000_000;

/// A task that begins or ends to wait, at a time. Rings of several CPUs are put into order by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct TaskSwitch {
    time_ns: u64,
    tid: u32,
    /// The chain with which it begins; `None`: it runs again.
    begins: Option<u32>,
}

impl LiveProfile {
    /// Opens the events.
    ///
    /// # Errors
    /// If none can be opened.
    pub fn open(options: LiveOptions) -> Result<Self, NoLiveProfile> {
        let root = Root::default();
        let cpus = cpus_online(&root);
        allow_many_files();
        let tracefs = Tracefs::find(&root);
        let mut sources = OpenSources::default();
        let mut remarks = Vec::new();
        sources.open_clock(&cpus, options.hz);
        sources.open_episodes(&cpus, tracefs.as_ref());
        let is_traced = match options.off_cpu {
            OffCpu::No | OffCpu::Poll => false,
            OffCpu::Trace => sources.open_waits(&cpus, tracefs.as_ref()),
            OffCpu::Auto => {
                let switches = sources::switches_per_second(&cpus, SWITCHES_WITHIN);
                if let Some(rate) = switches.filter(|rate| *rate > SWITCHES_MAX) {
                    remarks.push(format!(
                        "Tasks switch {rate:.0} times a second: tracing them would cost too much, so waiting tasks \
                         are polled (--off-cpu trace traces them all the same)."
                    ));
                    false
                } else {
                    sources.open_waits(&cpus, tracefs.as_ref())
                }
            }
        };
        let is_polling = !is_traced && options.off_cpu != OffCpu::No;
        if sources.is_empty() && !is_polling {
            return Err(NoLiveProfile::Nothing(sources.not_measured));
        }
        let events = sources.rings.iter().flat_map(|ring| &ring.events);
        let roles = events.map(|(id, role, _)| (*id, *role)).collect();
        let wanted = match &options.scope {
            ProfileScope::Processes(pids) => pids.iter().copied().collect(),
            _ => HashSet::new(),
        };
        let mut profile = Self {
            options,
            root,
            cpus,
            sources,
            roles,
            chains: ChainTable::new(),
            comms: HashMap::with_capacity(TASKS_MAX),
            wanted,
            cgroup_of: HashMap::with_capacity(TASKS_MAX),
            cgroups: vec![String::new()],
            switches: Vec::with_capacity(SWITCHES_KEPT_MAX),
            waiting: HashMap::with_capacity(TASKS_MAX),
            episodes: EpisodeTable::default(),
            polled: StackTable::default(),
            is_polling,
            scans: 0,
            lost: 0,
            lost_switches: 0,
            samples: 0,
            outside: 0,
            from_ns: 0,
            until_ns: u64::MAX,
            is_throttled: false,
            remarks,
        };
        if let Ok(processes) = std::fs::read_dir("/proc") {
            // Names of what runs now: who ends soon cannot be asked later.
            for pid in processes.flatten().filter_map(|one| one.file_name().to_str()?.parse().ok())
            {
                profile.comm_of(pid);
            }
        }
        profile.take_memory();
        Ok(profile)
    }

    /// Touches and locks all memory that sampling needs: a page that is swapped out would be waited for in the middle of what is
    /// measured. What is never touched is not read in for it (since 4.4). Who may not lock goes on without.
    fn take_memory(&mut self) {
        use rustix::mm::{MlockAllFlags, mlockall};
        let room = self.comms.capacity() - self.comms.len();
        let names = (0..u32::try_from(room).unwrap_or(0))
            .map(|number| (u32::MAX - number, CommBytes::default()));
        let known = self.comms.clone();
        self.comms.extend(names);
        self.comms.retain(|tid, _| known.contains_key(tid));
        self.waiting
            .extend((0..u32::try_from(TASKS_MAX).unwrap_or(0)).map(|number| (number, (0, 0))));
        self.waiting.clear();
        self.switches.resize(SWITCHES_KEPT_MAX, TaskSwitch { time_ns: 1, tid: 1, begins: None });
        self.switches.clear();
        let _ = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::ONFAULT)
            .or_else(|_| mlockall(MlockAllFlags::CURRENT));
    }

    /// Samples until the time is over, or the callback, which gets the time so far, ends it. `begun` is called once events run: a
    /// command that is to be profiled is started there; it returns its process.
    ///
    /// # Errors
    /// If the events cannot be started.
    pub fn run(
        mut self,
        begun: impl FnOnce() -> Option<u32>,
        go_on: &mut dyn FnMut(Span) -> ControlFlow<()>,
    ) -> Result<Profile, NoLiveProfile> {
        let mut host = HostProbe::open(&self.root).slabinfo_every(u32::MAX);
        let mut cgroups = Cgroups::new(&self.root);
        let (mut before, mut after) = (Sample::default(), Sample::default());
        cgroups.sample(&mut before);
        host.sample(&mut before);
        let mut record = Box::new([0_u8; RECORD_MAX]);
        // The clock comes last: to begin a tracepoint takes tens of milliseconds, and what is seen meanwhile does not count.
        for (_, _, event) in self.sources.rings.iter().rev().flat_map(|ring| &ring.events) {
            event.enable().map_err(NoLiveProfile::NotStarted)?;
        }
        let start = Instant::now();
        self.from_ns = monotonic_ns();
        // A command that is started has the usual priority.
        self.wanted.extend(begun());
        // Who waits behind what it measures loses records. Who may not be first goes on as all others.
        let own = rustix::process::getpriority_process(None);
        let _ = rustix::process::setpriority_process(None, self.options.nice);
        let mut next_scan = start;
        let mut scan_hz = POLL_HZ_MAX;
        loop {
            let elapsed = start.elapsed();
            let so_far = Span::from_secs_f64(elapsed.as_secs_f64());
            let is_over = self.options.lasts.is_some_and(|lasts| so_far >= lasts);
            if is_over || go_on(so_far).is_break() {
                break;
            }
            if self.is_polling && Instant::now() >= next_scan {
                let begun = thread_cpu_s();
                self.scan(scan_hz);
                let took = (thread_cpu_s() - begun).max(1e-6);
                scan_hz = (POLL_CPU_MAX / took).clamp(POLL_HZ_MIN, POLL_HZ_MAX);
                next_scan = Instant::now() + Duration::from_secs_f64(1.0 / scan_hz);
            }
            self.wait(start, next_scan);
            self.drain(&mut record);
        }
        let lasted = start.elapsed();
        self.until_ns = monotonic_ns();
        if let Ok(own) = own {
            let _ = rustix::process::setpriority_process(None, own);
        }
        for (_, _, event) in self.sources.rings.iter().flat_map(|ring| &ring.events) {
            let _ = event.disable();
        }
        self.drain(&mut record);
        self.end_waits();
        host.sample(&mut after);
        cgroups.sample(&mut after);
        let _ = rustix::mm::munlockall();
        Ok(self.finish(lasted, &before, &after))
    }

    /// Sleeps until a ring is half full, or it is time to read them, to look for waiting tasks, or to end.
    fn wait(&self, start: Instant, next_scan: Instant) {
        let mut until = Instant::now() + DRAIN_EVERY;
        if self.is_polling {
            until = until.min(next_scan);
        }
        if let Some(lasts) = self.options.lasts {
            until = until.min(start + Duration::from_secs_f64(lasts.as_secs_f64()));
        }
        let left = until.saturating_duration_since(Instant::now());
        let events = self.sources.rings.iter().filter_map(|ring| ring.events.first());
        let mut polled: Vec<PollFd<'_>> =
            events.map(|(_, _, event)| PollFd::new(event, PollFlags::IN)).collect();
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(1),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        // A signal ends the wait too: the callback sees it.
        let _ = poll(&mut polled, Some(&timeout));
    }

    /// Reads all rings.
    fn drain(&mut self, record: &mut [u8; RECORD_MAX]) {
        let mut rings = std::mem::take(&mut self.sources.rings);
        for open in &mut rings {
            open.ring.drain(record, |bytes| self.take(perf_record::parse(bytes)));
        }
        self.sources.rings = rings;
        self.order_switches();
    }

    fn take(&mut self, record: PerfRecord<'_>) {
        match record {
            PerfRecord::Sample(head, rest) => {
                if let Some(role) = self.roles.get(&head.id).copied() {
                    self.sample(head, role, rest);
                }
            }
            PerfRecord::Comm { tid, name } => self.keep_comm(tid, name),
            PerfRecord::Fork { pid, parent } => {
                if self.wanted.contains(&parent) {
                    self.wanted.insert(pid);
                }
            }
            PerfRecord::Lost { id, count } => match self.roles.get(&id) {
                Some(EventRole::Waits | EventRole::Switches) => self.lost_switches += count,
                Some(EventRole::Clock | EventRole::Episode(_)) | None => self.lost += count,
            },
            PerfRecord::Throttle => self.is_throttled = true,
            PerfRecord::Other => {}
        }
    }

    fn sample(&mut self, head: perf_record::SampleHead, role: EventRole, rest: &[u8]) {
        // What memtide does itself is not the host's work.
        let is_meanwhile = (self.from_ns..=self.until_ns).contains(&head.time_ns);
        if !is_meanwhile || head.pid == std::process::id() {
            return;
        }
        let is_foreign = matches!(self.options.scope, ProfileScope::Cgroup(_))
            && matches!(role, EventRole::Clock | EventRole::Waits)
            && !self.is_wanted(head.pid);
        if is_foreign {
            return;
        }
        match role {
            EventRole::Clock => {
                let Some((chain, _)) = perf_record::chain(rest) else {
                    return;
                };
                let task = self.task(head);
                if let Some(number) = self.chains.number(task, chain) {
                    self.chains.count_sample(number);
                    self.samples += 1;
                    self.outside += u64::from(head.pid == 0);
                }
            }
            EventRole::Waits => {
                let Some((chain, _)) = perf_record::chain(rest) else {
                    return;
                };
                let task = self.task(head);
                let begins = self.chains.number(task, chain);
                self.keep_switch(TaskSwitch { time_ns: head.time_ns, tid: head.tid, begins });
            }
            EventRole::Switches => {
                let point = self.sources.sched_switch.as_ref();
                let raw = perf_record::raw(rest);
                let next = point.zip(raw).and_then(|(point, raw)| point.number("next_pid", raw));
                if let Some(tid) =
                    next.and_then(|tid| u32::try_from(tid).ok()).filter(|tid| *tid > 0)
                {
                    self.keep_switch(TaskSwitch { time_ns: head.time_ns, tid, begins: None });
                }
            }
            EventRole::Episode(at) => {
                let Some((point, tracepoint)) = self.sources.episodes.get(at) else {
                    return;
                };
                let field = match point.role {
                    TracepointRole::Lasted(name, _) => {
                        perf_record::raw(rest).and_then(|raw| tracepoint.number(name, raw))
                    }
                    _ => None,
                };
                let point = *point;
                if !self.is_wanted(head.pid) {
                    return;
                }
                let comm = name_of(self.comm_of(head.tid));
                let number = self.cgroup_of(head.pid);
                let cgroup = path_of(&self.cgroups, number);
                let at_s = units::Nanos::new(head.time_ns).to_span().as_secs_f64();
                self.episodes.event(point, head.tid, (&comm, cgroup), at_s, field);
            }
        }
    }

    fn keep_switch(&mut self, switch: TaskSwitch) {
        if self.switches.len() >= SWITCHES_KEPT_MAX {
            self.order_switches();
        }
        self.switches.push(switch);
    }

    /// Matches begins and ends of waits in the order of time.
    fn order_switches(&mut self) {
        self.switches.sort_unstable();
        for switch in self.switches.drain(..) {
            if let Some(chain) = switch.begins {
                if self.waiting.len() < TASKS_MAX {
                    self.waiting.insert(switch.tid, (chain, switch.time_ns));
                }
            } else if let Some((chain, since)) = self.waiting.remove(&switch.tid) {
                self.chains.count_wait(chain, switch.time_ns.saturating_sub(since));
            }
        }
    }

    /// What waits still waited until the end.
    fn end_waits(&mut self) {
        for (_, (chain, since)) in self.waiting.drain() {
            self.chains.count_wait(chain, self.until_ns.saturating_sub(since));
        }
    }

    /// Looks for waiting tasks; each stands for the time between two scans.
    fn scan(&mut self, hz: f64) {
        let waiting = waiting_in_d(&self.root);
        self.scans += 1;
        for task in waiting {
            if !self.is_wanted(task.pid) {
                continue;
            }
            let unknown = [UNKNOWN_WAIT.to_owned()];
            let functions = if task.functions.is_empty() { &unknown[..] } else { &task.functions };
            let frames = functions.iter().map(|name| (name.as_str(), FramePlace::Kernel));
            let number = self.cgroup_of(task.pid);
            let cgroup = path_of(&self.cgroups, number);
            self.polled.add_in(cgroup, &task.comm, frames, 1.0 / hz);
        }
    }

    /// By what a chain is kept apart from an equal one of another task.
    fn task(&mut self, head: perf_record::SampleHead) -> ChainTask {
        let scope = match &self.options.scope {
            ProfileScope::Processes(_) => head.pid,
            ProfileScope::Host | ProfileScope::Cgroup(_) => 0,
        };
        ChainTask { comm: self.comm_of(head.tid), scope, cgroup: self.cgroup_of(head.pid) }
    }

    fn is_wanted(&mut self, pid: u32) -> bool {
        match &self.options.scope {
            ProfileScope::Host => true,
            ProfileScope::Processes(_) => self.wanted.contains(&pid),
            ProfileScope::Cgroup(_) => {
                let number = self.cgroup_of(pid);
                self.is_in_wanted_cgroup(number)
            }
        }
    }

    fn is_in_wanted_cgroup(&self, number: u32) -> bool {
        let ProfileScope::Cgroup(wanted) = &self.options.scope else {
            return true;
        };
        self.cgroups.get(number as usize).is_some_and(|path| {
            let rest = path.strip_prefix(wanted.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// The number of a process's cgroup. It is read again a second later, then after two, four …: who is started joins a cgroup soon,
    /// if at all. Of a process that has ended the last reading holds.
    fn cgroup_of(&mut self, pid: u32) -> u32 {
        let now = monotonic_ns();
        let known = self.cgroup_of.get(&pid).copied();
        if let Some(known) = known.filter(|known| now.saturating_sub(known.at_ns) < known.holds_ns)
        {
            return known.number;
        }
        let path = match (memory_cgroup(&self.root, pid), known) {
            (None, Some(known)) => return known.number,
            (path, _) => path.unwrap_or_default(),
        };
        let place = self.cgroups.iter().position(|one| *one == path);
        let number = place.unwrap_or_else(|| {
            self.cgroups.push(path);
            self.cgroups.len() - 1
        });
        let number = u32::try_from(number).unwrap_or(0);
        let holds_ns = known.map_or(REREAD_AFTER_NS, |known| known.holds_ns.saturating_mul(2));
        if self.cgroup_of.len() < TASKS_MAX || known.is_some() {
            self.cgroup_of.insert(pid, CgroupReading { number, at_ns: now, holds_ns });
        }
        number
    }

    fn keep_comm(&mut self, tid: u32, name: &[u8]) {
        let mut comm = CommBytes::default();
        for (place, byte) in comm.iter_mut().zip(name) {
            *place = *byte;
        }
        if self.comms.len() < TASKS_MAX || self.comms.contains_key(&tid) {
            self.comms.insert(tid, comm);
        }
    }

    /// The name of a thread, read when it is first seen: short ones do not live to the end.
    fn comm_of(&mut self, tid: u32) -> CommBytes {
        if let Some(comm) = self.comms.get(&tid) {
            return *comm;
        }
        let text = self.root.read(&format!("/proc/{tid}/comm")).unwrap_or_default();
        self.keep_comm(tid, text.strip_suffix(b"\n").unwrap_or(&text));
        self.comms.get(&tid).copied().unwrap_or_default()
    }

    fn finish(mut self, lasted: Duration, before: &Sample, after: &Sample) -> Profile {
        let mut profile = Profile::default();
        let has_addresses = self.sources.clock.is_some() || self.sources.has_waits;
        let symbols = match Kallsyms::of_this_host(&self.root) {
            Ok(symbols) => Some(symbols),
            Err(_) if !has_addresses => None,
            Err(error) => {
                self.sources.not_measured.push(no_symbols(&error, &self.root));
                None
            }
        };
        let name = |address| symbols.as_ref().and_then(|symbols: &Kallsyms| symbols.name(address));
        let scope = &self.options.scope;
        let is_wanted = |process: u32| match scope {
            ProfileScope::Host | ProfileScope::Cgroup(_) => true,
            ProfileScope::Processes(_) => self.wanted.contains(&process),
        };
        let cgroup = |number: u32| path_of(&self.cgroups, number);
        let (ran, waited) = self.chains.named(name, cgroup, is_wanted);
        if self.sources.clock.is_some() {
            profile.cpu = Some((CpuUnit::Samples, ran));
        }
        if self.sources.has_waits {
            profile.blocked = Some(BlockedStacks { how: BlockedHow::Traced, stacks: waited });
        } else if self.is_polling {
            let unknown = self
                .polled
                .iter()
                .filter(|(stack, _)| stack.frames.iter().all(|frame| &*frame.name == UNKNOWN_WAIT));
            if unknown.map(|(_, seconds)| seconds).sum::<f64>() > self.polled.total() / 2.0 {
                self.sources.not_measured.push(NotMeasured {
                    what: "where tasks wait".to_owned(),
                    why: "only root may read /proc/PID/stack".to_owned(),
                    help: Some("sudo memtide profile".to_owned()),
                });
            }
            profile.blocked = Some(BlockedStacks { how: BlockedHow::Polled, stacks: self.polled });
        }
        profile.episodes = (!self.sources.episodes.is_empty()).then_some(self.episodes);
        let seconds = lasted.as_secs_f64();
        let lost = self.lost + self.chains.dropped;
        #[allow(clippy::cast_precision_loss)] // counts
        let lost_share = lost as f64 / (self.samples + lost).max(1) as f64;
        if lost_share > LOST_WORTH_SAYING {
            self.remarks.push(format!(
                "{lost} records were lost: a lower rate (-F {}) loses fewer.",
                (self.options.hz / 2).max(1)
            ));
        }
        if self.lost_switches > 0 {
            self.remarks.push(format!(
                "{} switches between tasks were lost: waits are counted too low, and a few too long (--off-cpu poll).",
                units::Count::new(self.lost_switches)
            ));
        }
        if self.outside > 0 && is_in_pid_namespace() {
            self.remarks.push(format!(
                "{} of processes outside this PID namespace: without name, cgroup and --pid (docker run --pid=host).",
                crate::words::counted(self.outside, "sample")
            ));
        }
        if self.is_throttled {
            self.remarks.push(
                "The kernel took fewer samples than asked for: -F 99 is always granted.".to_owned(),
            );
        }
        if let Some(share) = stolen(before, after, seconds, self.cpus.len()) {
            self.remarks.push(format!(
                "The hypervisor gave {} of the CPU time to other machines; no sample sees that.",
                crate::words::percent(share)
            ));
        }
        let mut facts = Facts::default();
        host_facts::read(&self.root, Span::ZERO, &mut facts);
        profile.cgroups = cgroup_uses(before, after, counts_below(&facts));
        profile.vmstat_delta = vmstat_delta(before, after);
        profile.settings = settings(&self.root);
        profile.remarks = self.remarks;
        profile.not_measured = self.sources.not_measured;
        let origin = &mut profile.origin;
        origin.form = "this host".to_owned();
        origin.kernel = Some(rustix::system::uname().release().to_string_lossy().into_owned());
        origin.cpus = u32::try_from(self.cpus.len()).ok();
        origin.seconds = Some(seconds);
        origin.hz = self.sources.clock.map(|_| f64::from(self.options.hz));
        origin.event = self.sources.clock.map(str::to_owned);
        origin.lost = Some(lost);
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        #[allow(clippy::cast_precision_loss)] // seconds
        {
            origin.unix_time_s = Some((now.tv_sec as f64 - seconds).round());
        }
        origin.scope = match &self.options.scope {
            ProfileScope::Host => None,
            ProfileScope::Processes(pids) if pids.is_empty() => Some("the command".to_owned()),
            ProfileScope::Processes(pids) => {
                let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
                Some(format!("PID {}", pids.join(", ")))
            }
            ProfileScope::Cgroup(path) => Some(format!("cgroup {path}")),
        };
        profile
    }
}

/// The path of a cgroup by its number; `None`: its processes had ended when it was asked for.
fn path_of(cgroups: &[String], number: u32) -> Option<&str> {
    cgroups.get(number as usize).filter(|path| !path.is_empty()).map(String::as_str)
}

/// An event is an open file on each CPU, and shells allow 1,024: more are allowed as far as this user may.
fn allow_many_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Whether processes of the host may have no number here.
fn is_in_pid_namespace() -> bool {
    // The kernel's PROC_PID_INIT_INO.
    const OF_THE_HOST: &str = "pid:[4026531836]";
    std::fs::read_link("/proc/self/ns/pid").is_ok_and(|own| own.as_os_str() != OF_THE_HOST)
}

/// CPU time of this thread, in seconds.
fn thread_cpu_s() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    #[allow(clippy::cast_precision_loss)] // hours
    let seconds = now.tv_sec as f64 + now.tv_nsec as f64 / 1e9;
    seconds
}

fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

fn name_of(comm: CommBytes) -> String {
    let end = comm.iter().position(|byte| *byte == 0).unwrap_or(comm.len());
    String::from_utf8_lossy(comm.get(..end).unwrap_or_default()).into_owned()
}

fn no_symbols(error: &NoSymbols, root: &Root) -> NotMeasured {
    let level = root.read("/proc/sys/kernel/kptr_restrict").unwrap_or_default();
    let level = String::from_utf8_lossy(&level).trim().to_owned();
    NotMeasured {
        what: "names of kernel functions".to_owned(),
        why: match error {
            NoSymbols::Hidden => {
                format!("kernel symbols are hidden (kernel.kptr_restrict = {level})")
            }
            NoSymbols::Unreadable(error) => format!("/proc/kallsyms cannot be read: {error}"),
        },
        help: match (error, level.as_str()) {
            (NoSymbols::Hidden, "2") => Some("sysctl -w kernel.kptr_restrict=1".to_owned()),
            (NoSymbols::Hidden, _) => Some("sudo memtide profile".to_owned()),
            (NoSymbols::Unreadable(_), _) => None,
        },
    }
}

/// How much a counter rose.
fn rise<U: Unit>(
    signal: Signal<timeline::Counter<U>>,
    before: &Sample,
    after: &Sample,
) -> Option<u64> {
    let (first, last) = (before.host.get(signal)?, after.host.get(signal)?);
    last.raw().checked_sub(first.raw())
}

/// Counters that decide whether waits for files are trouble, by their names in `/proc/vmstat`.
fn vmstat_delta(before: &Sample, after: &Sample) -> std::collections::BTreeMap<String, i64> {
    const KIB: u64 = 1024;
    let all = [
        ("pgpgin", rise(signals::PGPGIN, before, after).map(|bytes| bytes / KIB)),
        ("workingset_refault", rise(signals::REFAULT, before, after)),
        ("workingset_refault_file", rise(signals::REFAULT_FILE, before, after)),
        ("workingset_refault_anon", rise(signals::REFAULT_ANON, before, after)),
        ("pswpin", rise(signals::PSWPIN, before, after)),
        ("pswpout", rise(signals::PSWPOUT, before, after)),
        ("pgscan_direct", rise(signals::PGSCAN_DIRECT, before, after)),
        ("pgscan_kswapd", rise(signals::PGSCAN_KSWAPD, before, after)),
        ("allocstall", rise(signals::ALLOCSTALL, before, after)),
    ];
    let known = all.into_iter().filter_map(|(name, rise)| {
        Some((name.to_owned(), i64::try_from(rise?).ok().filter(|rise| *rise > 0)?))
    });
    known.collect()
}

/// The share of CPU time that the hypervisor gave to others.
fn stolen(before: &Sample, after: &Sample, seconds: f64, cpus: usize) -> Option<f64> {
    let ticks = rise(signals::CPU_STEAL, before, after)?;
    #[allow(clippy::cast_precision_loss)] // thousands
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    #[allow(clippy::cast_precision_loss)]
    let share = ticks as f64 / (per_second * seconds * cpus as f64);
    (share >= STEAL_WORTH_SAYING).then_some(share)
}

/// Settings that explain a reason.
fn settings(root: &Root) -> std::collections::BTreeMap<String, String> {
    const SYSCTLS: [&str; 7] = [
        "zone_reclaim_mode",
        "swappiness",
        "min_free_kbytes",
        "watermark_scale_factor",
        "dirty_ratio",
        "dirty_bytes",
        "compaction_proactiveness",
    ];
    let text = |path: &str| {
        let text = root.read(path).ok()?;
        Some(String::from_utf8_lossy(&text).trim().to_owned())
    };
    let mut all: std::collections::BTreeMap<String, String> = SYSCTLS
        .into_iter()
        .filter_map(|name| Some((format!("vm.{name}"), text(&format!("/proc/sys/vm/{name}"))?)))
        .collect();
    for (name, path) in [
        ("transparent_hugepage", "/sys/kernel/mm/transparent_hugepage/enabled"),
        ("transparent_hugepage/defrag", "/sys/kernel/mm/transparent_hugepage/defrag"),
    ] {
        // The choice stands in brackets: `always [madvise] never`.
        let choice =
            text(path).and_then(|text| Some(text.split_once('[')?.1.split_once(']')?.0.to_owned()));
        all.extend(choice.map(|choice| (name.to_owned(), choice)));
    }
    all
}
