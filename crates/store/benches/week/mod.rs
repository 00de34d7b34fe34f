//! A week at 1 Hz of a host of 16 GiB that is not well: what benchmarks of long recordings read.
//!
//! It works by day and less on the weekend; one of its services grows all week; a backup at 02:00 leaves no room for the
//! page cache. Some 200 signals of the host change in every second. The same in every run.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    clippy::cast_possible_wrap
)] // amounts of a model, far from any limit

mod columns;
mod host;
mod noise;
mod readings;
mod services;

use std::ops::Range;
use std::path::Path;

use store::{HostIdentity, Recording, add_timeline};
use timeline::facts::{CgroupMode, Disk, Node};
use timeline::{Entity, Facts, Stamp, Timeline, facts};
use units::{PageSize, Span, WallClock};

use columns::Columns;
use host::Host;
use noise::Noise;
use services::Process;

/// How long it is.
pub(crate) const HOURS: u64 = 7 * 24;
const HOUR: u64 = 3_600;
/// A Monday at midnight (UTC), in seconds since 1970.
const START: u64 = 1_789_948_800;
/// For how long the machine was up then.
const UP: u64 = 1_000_000;
/// Seconds of which nothing was recorded: 20 minutes of the Thursday.
const GAP: Range<u64> = 306_600..307_800;
/// Processes and services are read every so many seconds, slab caches every minute.
const RARELY: u64 = 10;
const SLABS_EVERY: u64 = 60;
/// Cgroups, the first of the services.
const GROUPS: usize = 20;
const DISKS: [&str; 4] = ["nvme0n1", "sda", "sdb", "sdc"];
const SLABS: [&str; 12] = [
    "dentry",
    "ext4_inode_cache",
    "buffer_head",
    "radix_tree_node",
    "kmalloc-512",
    "kmalloc-4k",
    "vm_area_struct",
    "anon_vma",
    "filp",
    "task_struct",
    "proc_inode_cache",
    "xfs_inode",
];

/// Makes it, unless it is there.
#[allow(dead_code)] // not every user reads all of it
pub(crate) fn made(directory: &Path) {
    made_of_hours(directory, 0..HOURS);
}

/// Makes some hours of it, unless they are there.
pub(crate) fn made_of_hours(directory: &Path, hours: Range<u64>) {
    made_of(directory, hours, Host::default(), true);
}

/// Makes one that is well but for twenty stalls of seconds, unless it is there; cgroups are read every ten seconds,
/// as a recorder does unless told otherwise.
#[allow(dead_code)] // not every user reads it
pub(crate) fn made_well(directory: &Path) {
    made_of(directory, 0..HOURS, Host::well(), false);
}

fn made_of(directory: &Path, hours: Range<u64>, host: Host, reads_all_often: bool) {
    if Recording::is_at(directory) {
        return;
    }
    let identity = HostIdentity { id: "bench".to_owned(), name: "bench".to_owned() };
    let mut week = Week::new(host, reads_all_often);
    for hour in hours {
        let timeline = week.hour(hour * HOUR..(hour + 1) * HOUR);
        let every = Span::from_secs(1);
        add_timeline(directory, &identity, &timeline, &week.facts, every).unwrap();
    }
}

struct Week {
    /// Whether cgroups, nodes and swap areas are read in every second.
    reads_all_often: bool,
    noise: Noise,
    host: Host,
    row: Columns,
    node: Columns,
    swap: Columns,
    zones: Vec<Columns>,
    disks: Vec<Columns>,
    groups: Vec<Columns>,
    services: Vec<Columns>,
    slabs: Vec<Columns>,
    processes: Vec<Process>,
    facts: Facts,
}

impl Week {
    fn new(host: Host, reads_all_often: bool) -> Self {
        let rows = |entity, count, busy| vec![Columns::new(entity, busy, 4_096); count];
        let all = (0..services::NAMES.len()).flat_map(|service| {
            let numbers = 0..services::processes(service);
            numbers.map(move |number| Process::new(service, number))
        });
        let mut week = Self {
            noise: Noise(42),
            reads_all_often,
            host,
            row: Columns::new(Entity::Host, 400, 1 << 18),
            node: Columns::new(Entity::Node, 20, 4_096),
            swap: Columns::new(Entity::SwapArea, 0, 0),
            zones: rows(Entity::Zone, readings::ZONES.len(), 0),
            disks: rows(Entity::Disk, DISKS.len(), 0),
            groups: rows(Entity::Cgroup, GROUPS, 36),
            services: rows(Entity::Service, services::NAMES.len(), 0),
            slabs: rows(Entity::Slab, SLABS.len(), 4),
            processes: all.collect(),
            facts: known(),
        };
        // It has run for long: its page cache is full.
        for second in 0..HOUR {
            week.host.pass(second, &mut week.noise);
        }
        week
    }

    fn hour(&mut self, seconds: Range<u64>) -> Timeline {
        let mut timeline = Timeline::default();
        for second in seconds.clone() {
            self.host.pass(second, &mut self.noise);
            if !GAP.contains(&second) {
                timeline.push_stamp(stamp(second)).unwrap();
                self.read(second, &mut timeline);
            }
        }
        self.fill(&mut timeline, seconds.start / 86_400);
        timeline
    }

    fn read(&mut self, second: u64, timeline: &mut Timeline) {
        let at = timeline.len() - 1;
        let (host, noise) = (&self.host, &mut self.noise);
        readings::of_host(&mut self.row, at, host, noise);
        for (number, row) in self.zones.iter_mut().enumerate() {
            readings::of_zone(row, at, number, host, noise);
        }
        for (number, row) in self.disks.iter_mut().enumerate() {
            readings::of_disk(row, at, number, host, noise);
        }
        for entity in [Entity::Zone, Entity::Disk] {
            timeline.mark_read(entity, at);
        }
        if self.reads_all_often || second.is_multiple_of(RARELY) {
            self.read_groups(second, at, timeline);
        }
        if second.is_multiple_of(RARELY) {
            self.read_processes(at);
            timeline.mark_read(Entity::Process, at);
            timeline.mark_read(Entity::Service, at);
        }
        if second.is_multiple_of(SLABS_EVERY) {
            let (load, noise) = (self.host.load, &mut self.noise);
            self.slabs.iter_mut().for_each(|row| row.rest(at, load, noise));
            timeline.mark_read(Entity::Slab, at);
        }
    }

    /// What a recorder reads every ten seconds unless told otherwise.
    fn read_groups(&mut self, second: u64, at: usize, timeline: &mut Timeline) {
        let (host, noise) = (&self.host, &mut self.noise);
        readings::of_node(&mut self.node, at, host, noise);
        readings::of_swap(&mut self.swap, at, host);
        for (service, row) in self.groups.iter_mut().enumerate() {
            services::of_group(row, at, service, second, host, noise);
        }
        for entity in [Entity::Node, Entity::SwapArea, Entity::Cgroup] {
            timeline.mark_read(entity, at);
        }
    }

    fn read_processes(&mut self, at: usize) {
        let (host, noise) = (&self.host, &mut self.noise);
        let runs = |service| service != services::BACKUP || host.backup.is_some();
        for (service, row) in
            self.services.iter_mut().enumerate().filter(|(service, _)| runs(*service))
        {
            services::of_service(row, at, service, host, noise);
        }
        for process in self.processes.iter_mut().filter(|process| runs(process.service)) {
            process.read(at, host, noise);
        }
    }

    /// Moves an hour's readings into its timeline.
    fn fill(&mut self, timeline: &mut Timeline, night: u64) {
        for (signal, run) in self.row.drain() {
            timeline.append_host_runs(signal, [run]);
        }
        let unit = |service: usize| format!("{}.service", services::NAMES[service]);
        let group = |service: usize| format!("/system.slice/{}", unit(service));
        let mut put = |entity, key: &str, label: &str, group: &str, row: &mut Columns| {
            let runs = row.drain();
            if !runs.is_empty() {
                let runs = runs.into_iter().map(|(signal, run)| (signal, [run]));
                timeline.append_runs(entity, key, label, group, runs);
            }
        };
        put(Entity::Node, "0", "", "", &mut self.node);
        put(Entity::SwapArea, "/dev/nvme0n1p3", "", "", &mut self.swap);
        for ((key, ..), row) in readings::ZONES.iter().zip(&mut self.zones) {
            put(Entity::Zone, key, "", "", row);
        }
        for (key, row) in DISKS.iter().zip(&mut self.disks) {
            put(Entity::Disk, key, "", "", row);
        }
        for (key, row) in SLABS.iter().zip(&mut self.slabs) {
            put(Entity::Slab, key, "", "", row);
        }
        for (service, row) in self.groups.iter_mut().enumerate() {
            put(Entity::Cgroup, &group(service), "", "", row);
        }
        for (service, row) in self.services.iter_mut().enumerate() {
            put(Entity::Service, &unit(service), "", "", row);
        }
        for (number, process) in self.processes.iter_mut().enumerate() {
            // The backup's processes are others each night.
            let is_backup = process.service == services::BACKUP;
            let again = if is_backup { 1_000 * (night + 1) } else { 0 };
            let key = format!("{}@{}", 400 + number as u64 + again, 5_000 + again);
            let name = services::NAMES[process.service];
            put(Entity::Process, &key, name, &group(process.service), &mut process.row);
        }
    }
}

fn stamp(second: u64) -> Stamp {
    let boot = Span::from_secs(UP + second);
    let wall = ((START + second) * 1_000_000_000).cast_signed();
    Stamp {
        boot,
        awake: Some(boot),
        wall: Some(WallClock::from_unix_nanos(wall)),
        ..Stamp::default()
    }
}

/// What does not change.
fn known() -> Facts {
    let mut known = Facts::default();
    known.page_size = PageSize::from_bytes(4_096);
    known.ticks_per_second = Some(100);
    known.cpus = Some(4);
    known.cgroup_mode = Some(CgroupMode::V2);
    known.nodes = vec![Node { id: 0, distances: vec![10] }];
    let disk = |(number, name): (usize, &&str)| Disk {
        name: (*name).to_owned(),
        rotational: Some(number > 0),
    };
    known.disks = DISKS.iter().enumerate().map(disk).collect();
    for (fact, text) in [
        (facts::KERNEL_VERSION, "Linux version 6.1.0-40-amd64"),
        (facts::SWAPPINESS, "60"),
        (facts::MIN_FREE, "70720"),
        (facts::OVERCOMMIT_MEMORY, "0"),
        (facts::THP_ENABLED, "always [madvise] never"),
        (facts::MGLRU, "0x0000"),
    ] {
        known.record(Span::ZERO, fact, text);
    }
    known
}
