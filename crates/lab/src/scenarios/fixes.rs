//! What fixes change: each setting and limit is set to what a sick host has, fixed, read back, and taken back.

use std::io::ErrorKind;

use diagnose::{
    AppliedFix, Fix, FixChange, FixError, Lasting, LimitChange, LimitFile, SettingChange,
    SettingValue,
};
use timeline::Fact;
use timeline::facts::{
    COMPACTION_PROACTIVENESS, DIRTY_BACKGROUND_BYTES, DIRTY_BACKGROUND_RATIO, DIRTY_BYTES,
    DIRTY_RATIO, KSM_RUN, LOWMEM_RESERVE, MGLRU, MIN_FREE, NR_HUGEPAGES, NUMA_BALANCING,
    OVERCOMMIT_KBYTES, OVERCOMMIT_MEMORY, OVERCOMMIT_RATIO, PAGE_CLUSTER, SWAPPINESS, SYSRQ,
    TCP_MEM_LIMITS, THP_DEFRAG, THP_ENABLED, THP_MAX_PTES_NONE, VFS_CACHE_PRESSURE,
    WATERMARK_BOOST, WATERMARK_SCALE, ZONE_RECLAIM_MODE, ZSWAP_MAX_POOL,
};
use units::{Bytes, Span};

use crate::claim::{Claim, MeasuredArms, percent};
use crate::guest::{Guest, GuestFiles};
use crate::scenario::{Arm, Scenario};
use crate::setting::ScenarioSetting;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "fixes",
    shows: "Every setting and limit that a fix changes is set, read back, and taken back.",
    time: Span::from_secs(30),
    settings: &[ScenarioSetting::CGROUP_V1],
    arms: &[
        Arm { name: "v2", settings: &[("cgroup_v1", 0.0)], finds: &[], may_find: &[] },
        Arm { name: "v1", settings: &[("cgroup_v1", 1.0)], finds: &[], may_find: &[] },
    ],
    play,
    claims,
    ..Scenario::DEFAULT
};

/// Settings that fixes of rules change: what a sick host has, and what a fix sets.
const SETTINGS: &[(Fact, &str, &str)] = &[
    (SWAPPINESS, "1", "60"),
    (SWAPPINESS, "100", "30"),
    (MIN_FREE, "65536", "16384"),
    (MIN_FREE, "4096", "20480"),
    (WATERMARK_SCALE, "500", "10"),
    (WATERMARK_SCALE, "10", "100"),
    (WATERMARK_BOOST, "15000", "0"),
    (ZONE_RECLAIM_MODE, "1", "0"),
    (OVERCOMMIT_MEMORY, "2", "0"),
    (OVERCOMMIT_RATIO, "50", "80"),
    (OVERCOMMIT_KBYTES, "400000", "800000"),
    (DIRTY_RATIO, "20", "10"),
    (DIRTY_BACKGROUND_RATIO, "10", "5"),
    (DIRTY_BYTES, "1073741824", "83886080"),
    (DIRTY_BACKGROUND_BYTES, "536870912", "20971520"),
    (VFS_CACHE_PRESSURE, "100", "200"),
    (LOWMEM_RESERVE, "256 256 32", "64 64 32"),
    (NR_HUGEPAGES, "12", "3"),
    (COMPACTION_PROACTIVENESS, "0", "20"),
    (COMPACTION_PROACTIVENESS, "20", "0"),
    (PAGE_CLUSTER, "3", "0"),
    (NUMA_BALANCING, "1", "0"),
    (TCP_MEM_LIMITS, "6000 8000 12000", "12000 16000 24000"),
    (SYSRQ, "1", "176"),
    (THP_ENABLED, "always", "madvise"),
    (THP_ENABLED, "always", "never"),
    (THP_DEFRAG, "always", "defer+madvise"),
    (THP_DEFRAG, "always", "madvise"),
    (THP_MAX_PTES_NONE, "511", "64"),
    (MGLRU, "n", "y"),
    (KSM_RUN, "1", "0"),
    (ZSWAP_MAX_POOL, "20", "40"),
];

/// The names of the settings that are tried.
pub fn settings() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().map(|(fact, ..)| fact.name)
}

/// The limits that fixes of rules set, on a cgroup of this version.
const fn limits(is_cgroup_v1: bool) -> &'static [LimitFile] {
    if is_cgroup_v1 {
        &[LimitFile::MaxV1]
    } else {
        &[LimitFile::Min, LimitFile::High, LimitFile::Max]
    }
}

/// What came of the fixes that were tried.
#[derive(Default)]
struct FixCounts {
    tried: u32,
    /// The kernel has the file.
    had: u32,
    /// Set, and read back.
    applied: u32,
    /// Taken back, and read back.
    undone: u32,
}

fn play(guest: &mut Guest) -> Result<(), String> {
    let mut counts = FixCounts::default();
    guest.phase("settings are fixed and taken back, one after the other");
    for (fact, sick, cure) in SETTINGS {
        counts.add(guest, vec![set(*fact, sick)], vec![set(*fact, cure)]);
    }
    guest.phase("both dirty limits in one fix");
    let ratios = [(DIRTY_BACKGROUND_RATIO, "10"), (DIRTY_RATIO, "20")];
    let bytes = [(DIRTY_BACKGROUND_BYTES, "20971520"), (DIRTY_BYTES, "83886080")];
    let [sick, cure] = [ratios, bytes].map(|both| both.map(|(fact, value)| set(fact, value)));
    counts.add(guest, sick.into(), cure.into());
    guest.phase("limits of a cgroup");
    guest.cgroup("fixes", &[])?;
    for file in limits(guest.is_cgroup_v1()) {
        // What a cgroup has from the start, and a limit that is there already.
        counts.add(guest, vec![], vec![limit(*file, 100)]);
        counts.add(guest, vec![limit(*file, 64)], vec![limit(*file, 100)]);
    }
    if guest.is_cgroup_v1() {
        // A limit with swap that would be in the way of the larger limit of memory.
        let both = [LimitFile::MaxV1, LimitFile::MaxWithSwapV1];
        let sick = both.map(|file| limit(file, 64));
        let mut cure = both.map(|file| limit(file, 100));
        cure.reverse();
        counts.add(guest, sick.into(), cure.into());
    }
    for (name, count) in [
        ("tried", counts.tried),
        ("had", counts.had),
        ("applied", counts.applied),
        ("undone", counts.undone),
    ] {
        guest.measured(name, f64::from(count));
    }
    // Nothing is left of all that: nothing may be found. On a busy host a sample may be seconds late, and the rest must
    // still be long enough to judge.
    guest.record();
    guest.sleep(10.0);
    Ok(())
}

/// A setting that is changed for as long as the machine runs.
fn set(fact: Fact, value: &str) -> FixChange {
    FixChange::Setting(SettingChange {
        from: None,
        to: SettingValue { fact, value: value.to_owned() },
        lasts: Lasting::UntilBoot,
    })
}

fn limit(file: LimitFile, mib: u64) -> FixChange {
    FixChange::Limit(LimitChange {
        cgroup: "/fixes".to_owned(),
        unit: None,
        file,
        from: None,
        to: Bytes::from_mib(mib),
    })
}

impl FixCounts {
    /// Tries a fix on a host with sick settings, and takes those back as well.
    fn add(&mut self, guest: &mut Guest, sick: Vec<FixChange>, cure: Vec<FixChange>) {
        self.tried += 1;
        if let Err(error) =
            self.try_fix(&mut GuestFiles { is_cgroup_v1: guest.is_cgroup_v1() }, sick, cure)
        {
            guest.phase(error.to_string());
        }
    }

    fn try_fix(
        &mut self,
        files: &mut GuestFiles,
        sick: Vec<FixChange>,
        cure: Vec<FixChange>,
    ) -> Result<(), FixError> {
        let apply = |changes, files: &mut GuestFiles| {
            AppliedFix::apply(&Fix { changes, ..Fix::default() }, files)
        };
        let sick = match apply(sick, files) {
            // This kernel has no such setting.
            Err(FixError::File { error, .. }) if error.kind() == ErrorKind::NotFound => {
                return Ok(());
            }
            made => made?,
        };
        self.had += 1;
        let cured = apply(cure, files)?;
        cured.check(files)?;
        self.applied += 1;
        cured.undo(files)?;
        sick.check(files)?;
        sick.undo(files)?;
        self.undone += 1;
        Ok(())
    }
}

fn claims(outcomes: &dyn MeasuredArms) -> Vec<Claim> {
    let of = |arm, what: &str, name, of| {
        let share = outcomes.quotient(arm, name, of);
        Claim::of(&format!("cgroup {arm}: {what}"), share, percent)
    };
    let of_arm = |arm| {
        [
            of(arm, "settings the kernel has, of all", "had", "tried").at_least(0.8),
            of(arm, "set and read back, of these", "applied", "had").at_least(1.0),
            of(arm, "taken back and read back, of these", "undone", "had").at_least(1.0),
        ]
    };
    ["v2", "v1"].into_iter().flat_map(of_arm).collect()
}
