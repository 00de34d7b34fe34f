//! Readings of a run's cgroup: its files stay open, and each reading takes one `pread` of each.

use probe::{CgroupFiles, KernelFile, Shape, cpu_usage_file, parse_cpu_usage, text};
use timeline::Row;
use timeline::facts::CgroupMode;
use timeline::signals::CGROUP_EVENTS_MAX;
use units::{Count, Span};

use crate::run_in_cgroup::GroupReading;
use crate::run_in_cgroup::group::RunGroup;

const V1: [&str; 5] = [
    "memory.usage_in_bytes",
    "memory.max_usage_in_bytes",
    "memory.failcnt",
    "memory.oom_control",
    "memory.stat",
];
/// On v1, hits of the limit of memory and swap together. A page is charged to both first, so that a hit counts here alone
/// where both limits are the same (`try_charge_memcg` in `mm/memcontrol.c`). Kernels with `track_failcnt` (6.18 is one) set
/// it for memory alone and count nothing here.
const HITS_OF_BOTH: &str = "memory.memsw.failcnt";
const V2: [&str; 6] = [
    "memory.current",
    "memory.peak",
    "memory.events",
    "memory.stat",
    "memory.swap.current",
    "memory.pressure",
];

/// The open files of a cgroup.
#[derive(Debug)]
pub(super) struct GroupFiles {
    mode: CgroupMode,
    memory: Vec<(&'static str, KernelFile)>,
    cpu: Option<KernelFile>,
    hits_of_both: Option<KernelFile>,
    parsers: CgroupFiles,
    buffer: Vec<u8>,
}

impl GroupFiles {
    /// Opens those that this kernel has.
    pub(super) fn open(group: &RunGroup) -> Self {
        let mode = group.mode();
        let names: &[&str] = match mode {
            CgroupMode::V1 => &V1,
            CgroupMode::V2 => &V2,
        };
        let open = |name: &&'static str| {
            let file = KernelFile::open_path(&group.directory().join(name)).ok()?;
            Some((*name, file.shaped(Shape::OneRecord)))
        };
        let hits_of_both = KernelFile::open_path(&group.directory().join(HITS_OF_BOTH)).ok();
        let cpu = group.cpu_directory().map(|directory| directory.join(cpu_usage_file(mode)));
        Self {
            mode,
            memory: names.iter().filter_map(open).collect(),
            cpu: cpu.and_then(|file| KernelFile::open_path(&file).ok()),
            hits_of_both,
            parsers: CgroupFiles::default(),
            buffer: Vec::new(),
        }
    }

    /// Reads them. What cannot be read or parsed is absent.
    pub(super) fn read(&mut self, begun: Span) -> GroupReading {
        let mut row = Row::default();
        for (name, file) in &self.memory {
            if file.read(&mut self.buffer).is_ok() {
                let _ = self.parsers.parse(self.mode, name, &self.buffer, &mut row);
            }
        }
        if let Some(file) = &self.hits_of_both
            && file.read(&mut self.buffer).is_ok()
            && let Some(hits) = text::number(text::trim(&self.buffer))
        {
            let of_memory = row.get(CGROUP_EVENTS_MAX).map_or(0, Count::get);
            row.set(CGROUP_EVENTS_MAX, Count::new(of_memory.saturating_add(hits)));
        }
        let cpu = self.cpu.as_ref().and_then(|file| {
            file.read(&mut self.buffer).ok()?;
            parse_cpu_usage(self.mode, &self.buffer).ok()
        });
        GroupReading { at: awake().saturating_sub(begun), row, cpu }
    }
}

/// Returns the time on the clock that stands still in suspend.
pub(super) fn awake() -> Span {
    let now = probe::now();
    now.awake.unwrap_or(now.boot)
}
