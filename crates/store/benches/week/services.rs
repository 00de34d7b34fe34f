//! Thirty services with two hundred processes: who holds the host's anonymous memory.

use timeline::{Entity, signals as s};

use super::columns::{Columns, whole};
use super::host::{Host, mib};
use super::noise::Noise;

/// The service that grows all week.
pub(super) const LEAKING: usize = 0;
/// The service that runs each night.
pub(super) const BACKUP: usize = 1;
/// A service in a box of its own, which is killed in now and then.
pub(super) const KILLED: usize = 2;
/// Its memory.max.
const BOX: f64 = mib(768.0);
/// The seconds of the week in which that happens.
const KILLS: [u64; 3] = [138_310, 390_007, 402_444];

/// Their names; the shares of the memory of all but the first two fall with their number.
pub(super) const NAMES: [&str; 30] = [
    "reporting",
    "backup",
    "thumbnails",
    "postgresql",
    "search",
    "app",
    "redis",
    "nginx",
    "prometheus",
    "grafana",
    "rabbitmq",
    "mail",
    "auth",
    "billing",
    "gitlab",
    "runner",
    "docker",
    "containerd",
    "syslog",
    "journald",
    "sshd",
    "cron",
    "ntp",
    "dns",
    "ldap",
    "vpn",
    "exporter",
    "udev",
    "dbus",
    "agetty",
];

/// How many processes each has.
pub(super) fn processes(service: usize) -> usize {
    match service {
        3..=5 => 24,
        6..=14 => 9,
        15..=19 => 6,
        LEAKING | BACKUP => 2,
        _ => 1,
    }
}

/// The anonymous memory of a service, and how much of it lies in swap.
pub(super) fn held(service: usize, host: &Host) -> (f64, f64) {
    let wanted = match service {
        LEAKING => host.leak,
        BACKUP => host.index,
        KILLED => BOX * (0.5 + 0.4 * host.load.min(1.0)),
        _ => (host.base - BOX * (0.5 + 0.4 * host.load.min(1.0))).max(0.0) * share(service),
    };
    // The backup has just touched all of its memory; what is idle lies in swap.
    let idle = (host.base + host.leak).max(1.0);
    let swapped = if service == BACKUP { 0.0 } else { host.swapped * wanted / idle };
    let swapped = swapped.min(wanted);
    (wanted - swapped, swapped)
}

/// Shares that fall by a fifth from one to the next, of all from the fourth service on.
fn share(service: usize) -> f64 {
    let (kept, first) = (0.8_f64, 3);
    let all = (1.0 - kept.powi(NAMES.len() as i32 - first)) / (1.0 - kept);
    kept.powi(service as i32 - first) / all
}

/// A cgroup's row: the service's memory and the files that it read.
pub(super) fn of_group(
    row: &mut Columns,
    at: usize,
    service: usize,
    second: u64,
    host: &Host,
    noise: &mut Noise,
) {
    let (anon, swapped) = held(service, host);
    let part = if service == BACKUP { 0.3 } else { 0.6 * share(service.max(3)) };
    let file = host.cache * part;
    let anon = anon * noise.about(0.001);
    let kernel = mib(2.0) + anon / 300.0;
    for (signal, pages) in [
        (s::CGROUP_CURRENT, anon.floor() + file.floor() + kernel.floor()),
        (s::CGROUP_SWAP_CURRENT, swapped),
        (s::CGROUP_ANON, anon),
        (s::CGROUP_FILE, file),
        (s::CGROUP_KERNEL, kernel),
        (s::CGROUP_SHMEM, 0.0),
        (s::CGROUP_INACTIVE_ANON, anon * 0.6),
        (s::CGROUP_ACTIVE_ANON, anon * 0.4),
        (s::CGROUP_INACTIVE_FILE, file * 0.7),
        (s::CGROUP_ACTIVE_FILE, file * 0.3),
    ] {
        row.set_bytes(signal, at, pages);
    }
    let limit = if service == KILLED { whole(BOX * 1.6) * 4_096 } else { u64::MAX };
    row.set(s::CGROUP_MAX, at, limit);
    for signal in [s::CGROUP_HIGH, s::CGROUP_SWAP_MAX] {
        row.set(signal, at, u64::MAX);
    }
    for signal in [s::CGROUP_LOW, s::CGROUP_MIN] {
        row.set(signal, at, 0);
    }
    let kills = if service == KILLED && KILLS.contains(&second) { 1.0 } else { 0.0 };
    for (signal, times) in [
        (s::CGROUP_EVENTS_LOW, 0.0),
        (s::CGROUP_EVENTS_HIGH, 0.0),
        (s::CGROUP_EVENTS_MAX, kills * 40.0),
        (s::CGROUP_EVENTS_OOM, kills),
        (s::CGROUP_EVENTS_OOM_KILL, kills),
        (s::CGROUP_PGFAULT, 90.0 * host.load * noise.share()),
        (s::CGROUP_PGMAJFAULT, host.refaults * part * 0.05),
    ] {
        row.rise(signal, at, times);
    }
    row.rise(s::CGROUP_REFAULT_FILE, at, host.refaults * part);
    row.rise(s::CGROUP_PSI_MEMORY_SOME, at, host.memory_some * 4e5 * noise.share());
    row.rise(s::CGROUP_PSI_MEMORY_FULL, at, host.memory_full * 3e5 * noise.share());
    row.rise(s::CGROUP_PSI_IO_SOME, at, host.io_some * 3e5 * noise.share());
    row.rise(s::CGROUP_PSI_IO_FULL, at, host.io_full * 3e5 * noise.share());
    row.rest(at, host.load, noise);
}

/// The row of a service of which each process is alike.
pub(super) fn of_service(
    row: &mut Columns,
    at: usize,
    service: usize,
    host: &Host,
    noise: &mut Noise,
) {
    let (anon, swapped) = held(service, host);
    let many = processes(service) as f64;
    let file = mib(18.0) * many;
    row.set(s::SERVICE_PROCESSES, at, processes(service) as u64);
    row.set(s::SERVICE_RSS, at, whole(anon) + whole(file));
    for (signal, pages) in [
        (s::SERVICE_RSS_ANON, anon),
        (s::SERVICE_RSS_FILE, file),
        (s::SERVICE_RSS_SHMEM, 0.0),
        (s::SERVICE_SWAP, swapped),
        (s::SERVICE_PSS, anon + file / many),
    ] {
        row.set_bytes(signal, at, pages);
    }
    row.rise(s::SERVICE_CPU, at, 90.0 * host.load * noise.share());
    row.rise(s::SERVICE_MAJFLT, at, host.refaults * 0.02);
    row.rise(s::SERVICE_READ_BYTES, at, host.read.floor() * 1_000.0);
    row.rise(s::SERVICE_WRITE_BYTES, at, host.written.floor() * 1_000.0);
}

/// A process of a service.
pub(super) struct Process {
    pub(super) service: usize,
    /// Its number in the service.
    pub(super) number: usize,
    pub(super) row: Columns,
    /// Its anonymous memory, and how much of it lies in swap.
    held: (f64, f64),
}

impl Process {
    pub(super) fn new(service: usize, number: usize) -> Self {
        Self { service, number, row: Columns::new(Entity::Process, 6, 0), held: (0.0, 0.0) }
    }

    /// One in five works, and others hardly change.
    pub(super) fn read(&mut self, at: usize, host: &Host, noise: &mut Noise) {
        let works = matches!(self.service, BACKUP | LEAKING) || self.number.is_multiple_of(5);
        if works || self.held.0 == 0.0 || noise.once_in(200) {
            let (anon, swapped) = held(self.service, host);
            let many = processes(self.service) as f64;
            self.held = (anon / many, swapped / many);
        }
        self.levels(at);
        self.counts(at, if works { host.load } else { 0.0 }, host, noise);
        self.row.rest(at, host.load, noise);
    }

    fn levels(&mut self, at: usize) {
        let (anon, swapped) = self.held;
        for (signal, pages) in [
            (s::PROC_RSS_ANON, anon),
            (s::PROC_RSS_FILE, mib(18.0)),
            (s::PROC_RSS_SHMEM, 0.0),
            (s::PROC_SWAP, swapped),
            (s::PROC_PAGE_TABLES, anon / 500.0),
            (s::PROC_PSS, anon + mib(2.0)),
            (s::PROC_PSS_ANON, anon),
            (s::PROC_PSS_FILE, mib(2.0)),
            (s::PROC_PSS_SHMEM, 0.0),
            (s::PROC_RSS_PEAK, anon + mib(30.0)),
            (s::PROC_DATA, anon * 1.4),
            (s::PROC_SIZE, anon * 2.0 + mib(300.0)),
        ] {
            self.row.set_bytes(signal, at, pages);
        }
        self.row.set(s::PROC_RSS, at, whole(anon) + whole(mib(18.0)));
        for (signal, number) in [(s::PROC_THREADS, 4), (s::PROC_PARENT, 1), (s::PROC_OOM_ADJ, 0)] {
            self.row.set(signal, at, number);
        }
    }

    fn counts(&mut self, at: usize, work: f64, host: &Host, noise: &mut Noise) {
        for (signal, ticks) in [(s::PROC_UTIME, 60.0), (s::PROC_STIME, 12.0)] {
            self.row.rise(signal, at, ticks * work * noise.share());
        }
        for (signal, pages) in
            [(s::PROC_READ_BYTES, 400.0), (s::PROC_WRITE_BYTES, 200.0), (s::PROC_RCHAR, 2_000.0)]
        {
            let pages = (pages * work * noise.share()).floor();
            self.row.rise(signal, at, pages * 4_096.0);
        }
        self.row.rise(s::PROC_MINFLT, at, 900.0 * work * noise.share());
        self.row.rise(s::PROC_MAJFLT, at, host.refaults * 0.005 * work);
    }
}
