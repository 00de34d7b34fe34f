//! The events of a live profile, opened on every CPU: clock, switches, episodes; and why those are missing that could not be opened.

use std::ffi::CStr;
use std::io;

use probe::{Root, Tracefs, Tracepoint};
use rustix::io::Errno;

use super::perf_event::{EventRequest, EventSource, PerfEvent, PerfRing};
use crate::collected::NotMeasured;
use crate::episode::{EpisodeTracepoint, TRACEPOINTS};

/// Bytes of a ring, and of all rings of its kind together: pages that the kernel pins while the host may lack them. 99 samples a
/// second are 20 KiB; 50,000 switches are 5 MiB. Rings are read ten times a second.
const CLOCK_RING: RingSize = RingSize { most: 256 << 10, all: 16 << 20 };
const SWITCH_RING: RingSize = RingSize { most: 2 << 20, all: 32 << 20 };
const EPISODE_RING: RingSize = RingSize { most: 128 << 10, all: 8 << 20 };
/// What a user without rights may pin (`kernel.perf_event_mlock_kb`), shared by all rings of a CPU.
const SMALL_RING: usize = 64 << 10;
/// Tasks in state D, also those that only a kill wakes (`TASK_KILLABLE`), which old kernels write as it is.
const IN_D: &CStr = c"prev_state == 2 || prev_state == 258";

/// How large the rings of a kind are.
#[derive(Debug, Clone, Copy)]
struct RingSize {
    most: usize,
    all: usize,
}

impl RingSize {
    /// The ring of one of so many CPUs.
    fn on_each(self, cpus: &[u32]) -> usize {
        // Rounded down: a ring is a power of two.
        let even = self.all / cpus.len().max(1);
        self.most.min((even / 2 + 1).next_power_of_two()).max(SMALL_RING)
    }
}

/// Idle tasks do not wait for their CPU: half of all switches.
const NOT_TO_IDLE: &CStr = c"next_pid != 0";

/// What an event's records are.
#[derive(Debug, Clone, Copy)]
pub(super) enum EventRole {
    Clock,
    /// A task in state D gives its CPU away, with its chain.
    Waits,
    /// Any task gives its CPU to another, without a chain.
    Switches,
    Episode(usize),
}

/// An open ring, its events, and what their records are.
#[derive(Debug)]
pub(super) struct OpenRing {
    pub(super) ring: PerfRing,
    pub(super) events: Vec<(u64, EventRole, PerfEvent)>,
}

/// All that could be opened.
#[derive(Debug, Default)]
pub(super) struct OpenSources {
    pub(super) rings: Vec<OpenRing>,
    /// The clock: `cycles`, `cpu-clock`.
    pub(super) clock: Option<&'static str>,
    pub(super) has_waits: bool,
    pub(super) episodes: Vec<(&'static EpisodeTracepoint, Tracepoint)>,
    pub(super) sched_switch: Option<Tracepoint>,
    pub(super) not_measured: Vec<NotMeasured>,
}

impl OpenSources {
    /// Opens the clock on each CPU. An event is an open file: a dozen on each CPU.
    pub(super) fn open_clock(&mut self, cpus: &[u32], hz: u32) {
        const CHOICES: [(EventSource, &str); 4] = [
            (EventSource::Cycles { precision: 2 }, "cycles"),
            (EventSource::Cycles { precision: 1 }, "cycles"),
            (EventSource::Cycles { precision: 0 }, "cycles"),
            (EventSource::CpuClock, "cpu-clock"),
        ];
        let mut last = io::Error::from(Errno::NOENT);
        for (source, name) in CHOICES {
            let request = EventRequest {
                source,
                hz,
                has_chain: true,
                follows_tasks: true,
                wakes_at: wakes_at(CLOCK_RING.on_each(cpus)),
            };
            match rings(cpus, CLOCK_RING, &[(request, EventRole::Clock, None)]) {
                Ok(opened) => {
                    self.rings.extend(opened);
                    self.clock = Some(name);
                    return;
                }
                Err(error) => last = error,
            }
        }
        self.not_measured.push(refused("CPU samples", &last));
    }

    /// Opens the tracing of waits in state D.
    pub(super) fn open_waits(&mut self, cpus: &[u32], tracefs: Option<&Tracefs>) -> bool {
        let point = tracefs.and_then(|tracefs| tracefs.tracepoint("sched", "sched_switch"));
        let Some(point) = point else {
            self.not_measured.push(without_tracefs("exact waits", tracefs));
            return false;
        };
        let request = |has_chain| EventRequest {
            source: EventSource::Tracepoint(point.id),
            hz: 0,
            has_chain,
            follows_tasks: false,
            wakes_at: wakes_at(SWITCH_RING.on_each(cpus)),
        };
        let wanted = [
            (request(true), EventRole::Waits, Some(IN_D)),
            (request(false), EventRole::Switches, Some(NOT_TO_IDLE)),
        ];
        match rings(cpus, SWITCH_RING, &wanted) {
            Ok(opened) => {
                self.rings.extend(opened);
                self.has_waits = true;
                self.sched_switch = Some(point);
                true
            }
            Err(error) => {
                self.not_measured.push(refused("exact waits", &error));
                false
            }
        }
    }

    /// Opens the tracepoints of episodes that this kernel has.
    pub(super) fn open_episodes(&mut self, cpus: &[u32], tracefs: Option<&Tracefs>) {
        let point = |point: &'static EpisodeTracepoint| {
            Some((point, tracefs?.tracepoint(point.system, point.name)?))
        };
        let known: Vec<_> = TRACEPOINTS.iter().filter_map(point).collect();
        if known.is_empty() {
            self.not_measured.push(without_tracefs("episodes of reclaim", tracefs));
            return;
        }
        let request = |(at, (_, point)): (usize, &(&EpisodeTracepoint, Tracepoint))| {
            let request = EventRequest {
                source: EventSource::Tracepoint(point.id),
                hz: 0,
                has_chain: false,
                follows_tasks: false,
                wakes_at: wakes_at(EPISODE_RING.on_each(cpus)),
            };
            (request, EventRole::Episode(at), None)
        };
        let wanted: Vec<_> = known.iter().enumerate().map(request).collect();
        match rings(cpus, EPISODE_RING, &wanted) {
            Ok(opened) => {
                self.rings.extend(opened);
                self.episodes = known;
            }
            Err(error) => self.not_measured.push(refused("episodes of reclaim", &error)),
        }
    }

    /// Whether anything was opened.
    pub(super) fn is_empty(&self) -> bool {
        self.rings.is_empty()
    }
}

/// A reader is woken when a ring is half full.
fn wakes_at(bytes: usize) -> u32 {
    u32::try_from(bytes / 2).unwrap_or(u32::MAX)
}

/// Opens events on each CPU, with one ring for those of a CPU.
fn rings(
    cpus: &[u32],
    size: RingSize,
    wanted: &[(EventRequest, EventRole, Option<&CStr>)],
) -> io::Result<Vec<OpenRing>> {
    let mut opened = Vec::with_capacity(cpus.len());
    for cpu in cpus {
        let mut events: Vec<(u64, EventRole, PerfEvent)> = Vec::with_capacity(wanted.len());
        let mut ring = None;
        for (request, role, filter) in wanted {
            let event = match PerfEvent::open(*request, *cpu) {
                Ok(event) => event,
                // Went offline meanwhile.
                Err(error) if error.raw_os_error() == Some(Errno::NODEV.raw_os_error()) => break,
                Err(error) => return Err(error),
            };
            if let Some(filter) = filter {
                event.filter(filter)?;
            }
            match events.first() {
                Some((_, _, first)) => event.write_to(first)?,
                None => {
                    let small = |_| PerfRing::map(&event, SMALL_RING);
                    ring = Some(PerfRing::map(&event, size.on_each(cpus)).or_else(small)?);
                }
            }
            events.push((event.id()?, *role, event));
        }
        opened.extend(ring.map(|ring| OpenRing { ring, events }));
    }
    Ok(opened)
}

/// Switches between tasks in a second, on all CPUs; `None` where they cannot be counted.
pub(super) fn switches_per_second(cpus: &[u32], within: std::time::Duration) -> Option<f64> {
    let request = EventRequest {
        source: EventSource::ContextSwitches,
        hz: 0,
        has_chain: false,
        follows_tasks: false,
        wakes_at: 0,
    };
    let counters: Vec<PerfEvent> =
        cpus.iter().map(|cpu| PerfEvent::open(request, *cpu)).collect::<io::Result<_>>().ok()?;
    for counter in &counters {
        counter.enable().ok()?;
    }
    std::thread::sleep(within);
    let counts: io::Result<Vec<u64>> = counters.iter().map(PerfEvent::count).collect();
    #[allow(clippy::cast_precision_loss)] // thousands
    counts.ok().map(|counts| counts.iter().sum::<u64>() as f64 / within.as_secs_f64())
}

/// Why events could not be opened, and what to type.
fn refused(what: &str, error: &io::Error) -> NotMeasured {
    let root = Root::default();
    let setting = |path: &str| {
        let text = root.read(path).ok()?;
        String::from_utf8_lossy(&text).trim().parse::<i64>().ok()
    };
    let paranoid = setting("/proc/sys/kernel/perf_event_paranoid");
    let errno = Errno::from_io_error(error);
    let shown = paranoid.map_or_else(|| "unknown".to_owned(), |level| level.to_string());
    let (why, help) = match errno {
        Some(Errno::ACCESS) if is_namespaced_root() => (
            "root of a user namespace is an ordinary user for it".to_owned(),
            Some("run it as root of the host".to_owned()),
        ),
        Some(Errno::ACCESS) => (
            format!("kernel.perf_event_paranoid is {shown}, which lets only root sample the whole host"),
            // Kernels of Debian and Ubuntu ask for CAP_SYS_ADMIN at their default.
            Some(match paranoid {
                Some(level) if level <= 2 => "sudo memtide profile (or: sudo setcap cap_perfmon,cap_syslog+ep \
                                              on this program)"
                    .to_owned(),
                _ => "sudo memtide profile".to_owned(),
            }),
        ),
        Some(Errno::PERM) => (
            "perf_event_open is refused: by the seccomp profile of the container, or by lockdown".to_owned(),
            Some(
                "docker run --cap-add PERFMON --cap-add SYSLOG --pid=host …, or run it on the host"
                    .to_owned(),
            ),
        ),
        Some(Errno::NOSYS) => (
            "there is no perf_event_open here: gVisor, WSL1, a seccomp profile, or a kernel without CONFIG_PERF_EVENTS"
                .to_owned(),
            Some("in a container: --security-opt seccomp=unconfined --cap-add PERFMON --cap-add SYSLOG --pid=host".to_owned()),
        ),
        Some(Errno::MFILE) => {
            ("too many open files: an event is one file on each CPU".to_owned(), Some("ulimit -n 65536".to_owned()))
        }
        Some(Errno::INVAL) => (
            format!(
                "the kernel takes no such event; its highest rate is kernel.perf_event_max_sample_rate = {}",
                setting("/proc/sys/kernel/perf_event_max_sample_rate").unwrap_or(0)
            ),
            Some("memtide profile -F 99".to_owned()),
        ),
        _ => (error.to_string(), None),
    };
    NotMeasured { what: what.to_owned(), why, help }
}

fn without_tracefs(what: &str, tracefs: Option<&Tracefs>) -> NotMeasured {
    let is_mounted = tracefs.is_some();
    let is_root = rustix::process::geteuid().is_root() && !is_namespaced_root();
    let (why, help) = match (is_mounted, is_root) {
        (true, true) => ("this kernel lacks the tracepoint", None),
        (true, false) => ("tracefs may be read by root only", Some("sudo memtide profile")),
        (false, true) => {
            ("tracefs is not mounted", Some("mount -t tracefs nodev /sys/kernel/tracing"))
        }
        (false, false) => {
            ("tracefs is not mounted, or may be read by root only", Some("sudo memtide profile"))
        }
    };
    NotMeasured { what: what.to_owned(), why: why.to_owned(), help: help.map(str::to_owned) }
}

/// Whether this user is root only in a user namespace, as in a rootless container.
fn is_namespaced_root() -> bool {
    let map = Root::default().read("/proc/self/uid_map").unwrap_or_default();
    let map = String::from_utf8_lossy(&map);
    let first: Vec<&str> = map.split_whitespace().take(3).collect();
    // All users there are, each as itself.
    rustix::process::geteuid().is_root() && first != ["0", "0", "4294967295"]
}
