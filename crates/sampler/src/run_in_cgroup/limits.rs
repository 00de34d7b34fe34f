//! Limits of a cgroup: set before the command is started, and read back.

use probe::{CgroupFiles, text};
use timeline::Row;
use timeline::facts::CgroupMode;
use timeline::signals::{CGROUP_HIGH, CGROUP_MAX, CGROUP_SWAP_MAX};
use units::{Bytes, Limit};

use crate::run_in_cgroup::error::CgroupRunError;
use crate::run_in_cgroup::group::RunGroup;

/// The v1 file that limits memory and swap together.
const BOTH_ON_V1: &str = "memory.memsw.limit_in_bytes";

/// The limits of a run; `None` sets none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupLimits {
    /// What it may have in RAM: `memory.max`, on v1 `memory.limit_in_bytes`.
    pub memory: Option<Bytes>,
    /// Where it is throttled and reclaimed: `memory.high`; v2 only.
    pub high: Option<Bytes>,
    /// What it may have in swap: `memory.swap.max`; on v1 a limit of memory and swap together, so that it needs one of
    /// memory. A kernel that counts no swap of cgroups sets none, and [`LimitsInForce::swap`] is `None`.
    pub swap: Option<Bytes>,
    /// Whether all processes are killed with the first that the kernel kills at the limit: `memory.oom.group`, since 4.19 on
    /// v2. Elsewhere the kernel kills one.
    pub is_killed_whole: bool,
}

/// Limits as the kernel reports them, in whole pages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LimitsInForce {
    /// What it may have in RAM.
    pub memory: Limit,
    /// Where it is throttled; v2 only.
    pub high: Option<Limit>,
    /// What it may have in swap; `None` where swap of cgroups is not counted.
    pub swap: Option<Limit>,
}

impl GroupLimits {
    /// Sets them, and reads them back.
    pub(super) fn set(&self, group: &RunGroup) -> Result<LimitsInForce, CgroupRunError> {
        let set = |file: &str, limit: Option<Bytes>| match limit {
            Some(limit) => group.write(file, &limit.get().to_string()).map_err(|source| {
                CgroupRunError::NotSet { file: group.directory().join(file), limit, source }
            }),
            None => Ok(()),
        };
        match group.mode() {
            CgroupMode::V1 => {
                if self.high.is_some() {
                    return Err(CgroupRunError::NoSuchLimit { limit: "memory.high" });
                }
                // Cgroups that the command makes below are counted, too: the default since 5.11.
                let _ = group.write("memory.use_hierarchy", "1");
                set("memory.limit_in_bytes", self.memory)?;
                if group.has(BOTH_ON_V1) {
                    if self.swap.is_some() && self.memory.is_none() {
                        return Err(CgroupRunError::NoSuchLimit { limit: "memory.swap.max alone" });
                    }
                    let both = self.memory.zip(self.swap);
                    set(BOTH_ON_V1, both.map(|(memory, swap)| in_pages(memory) + in_pages(swap)))?;
                }
            }
            CgroupMode::V2 => {
                if self.is_killed_whole {
                    let _ = group.write("memory.oom.group", "1");
                }
                set("memory.max", self.memory)?;
                set("memory.high", self.high)?;
                if group.has("memory.swap.max") {
                    set("memory.swap.max", self.swap)?;
                }
            }
        }
        let found = read(group);
        let is_counted = found.swap.is_some();
        let asked = [
            ("memory.max", "memory.limit_in_bytes", self.memory, Some(found.memory)),
            ("memory.high", "memory.high", self.high, found.high),
            ("memory.swap.max", BOTH_ON_V1, self.swap.filter(|_| is_counted), found.swap),
        ];
        for (v2, v1, limit, found) in asked {
            let Some(limit) = limit else { continue };
            if found != Some(Limit::Bytes(in_pages(limit))) {
                let file = if group.mode() == CgroupMode::V1 { v1 } else { v2 };
                let file = group.directory().join(file);
                return Err(CgroupRunError::NotInForce { file, limit, found });
            }
        }
        Ok(found)
    }
}

/// Returns a limit as the kernel keeps it (`page_counter_memparse`).
fn in_pages(limit: Bytes) -> Bytes {
    let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
    Bytes::new(limit.get() / page * page)
}

fn read(group: &RunGroup) -> LimitsInForce {
    let mut row = Row::default();
    for name in ["memory.limit_in_bytes", "memory.max", "memory.high", "memory.swap.max"] {
        if let Ok(text) = group.read(name) {
            // A file that cannot be parsed leaves its limit absent.
            let _ = CgroupFiles::default().parse(group.mode(), name, &text, &mut row);
        }
    }
    let memory = row.get(CGROUP_MAX).unwrap_or(Limit::Unlimited);
    let swap = match group.mode() {
        CgroupMode::V1 => swap_on_v1(group, memory),
        CgroupMode::V2 => row.get(CGROUP_SWAP_MAX),
    };
    LimitsInForce { memory, high: row.get(CGROUP_HIGH), swap }
}

/// Returns what a v1 cgroup may have in swap beyond its memory.
fn swap_on_v1(group: &RunGroup, memory: Limit) -> Option<Limit> {
    let both = text::number(text::trim(&group.read(BOTH_ON_V1).ok()?))?;
    Some(match memory {
        Limit::Bytes(memory) => Limit::Bytes(Bytes::new(both.saturating_sub(memory.get()))),
        Limit::Unlimited => Limit::Unlimited,
    })
}
