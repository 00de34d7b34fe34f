//! Two NUMA nodes and `vm.zone_reclaim_mode`: a node reclaims while the other has memory free.

use timeline::signals::{ALLOCSTALL, CPU_SYSTEM, NODE_FREE, NODE_TOTAL, PGPGIN, PGSCAN_DIRECT};
use units::Span;

use crate::claim::{Claim, MeasuredArms, percent, times};
use crate::guest::{Guest, mib};
use crate::host::machine::{Machine, VirtualDisk};
use crate::scenario::{Arm, Scenario, ScenarioFigure};
use crate::setting::ScenarioSetting;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "node-reclaim",
    shows: "With vm.zone_reclaim_mode a node evicts its page cache although the other node has \
            memory free.",
    article: "S1",
    time: Span::from_secs(40),
    machine: || Machine { nodes: 2, ..Machine::with_mib(1024).disk(VirtualDisk::ext4(900)) },
    mglru: Some(false),
    settings: &[
        ScenarioSetting {
            name: "zone_reclaim_mode",
            default: 1.0,
            range: (0.0, 7.0),
            about: "vm.zone_reclaim_mode",
        },
        ScenarioSetting {
            name: "passes",
            default: 5.0,
            range: (2.0, 100.0),
            about: "how often the file is read",
        },
    ],
    arms: &[
        Arm {
            name: "mode-1",
            settings: &[("zone_reclaim_mode", 1.0)],
            finds: &["node-reclaim-on"],
            may_find: &[],
        },
        Arm { name: "mode-0", settings: &[("zone_reclaim_mode", 0.0)], finds: &[], may_find: &[] },
    ],
    variants: &[&[("passes", 4.0)], &[("passes", 7.0)]],
    hot: &[("mode-1", "node-reclaim"), ("mode-0", "")],
    play,
    claims,
    figures: &[
        ScenarioFigure::Chart("node-0"),
        ScenarioFigure::Chart("node-1"),
        ScenarioFigure::Chart("reclaim"),
        ScenarioFigure::Chart("cpu"),
    ],
    ..Scenario::DEFAULT
};

/// Larger than a node, smaller than both.
const FILE: &str = "600M";

fn play(guest: &mut Guest) -> Result<(), String> {
    guest.vm("zone_reclaim_mode", guest.setting("zone_reclaim_mode")?)?;
    guest.mount("/dev/vda", "/disk")?;
    guest.record();
    guest.phase("a file of 600 MiB is written");
    guest.run(&["write", "/disk", FILE, "--files", "1"])?;
    guest.remount("/dev/vda", "/disk")?;
    guest.sleep(2.0);
    guest.phase("a program on node 0 reads the file for the first time");
    read(guest, "1")?;
    let (scanned, bytes) = (guest.host(PGSCAN_DIRECT)?, guest.host(PGPGIN)?);
    let (system, stalls) = (guest.host(CPU_SYSTEM)?, guest.host(ALLOCSTALL)?);
    // Without reclaim of the node they cost next to nothing.
    let more = if guest.is_treated() { 15 } else { 1 };
    let passes = more * guest.count("passes")?;
    guest.phase(format!("it reads the file {passes} times again"));
    read(guest, &passes.to_string())?;
    let scanned = guest.host(PGSCAN_DIRECT)? - scanned;
    let stalls = guest.host(ALLOCSTALL)? - stalls;
    let system = guest.host(CPU_SYSTEM)? - system;
    let read_again = mib(guest.host(PGPGIN)? - bytes);
    guest.measured("scanned_pages", scanned);
    guest.measured("read_again_mib", read_again.max(1.0));
    guest.measured("system_s", system / 100.0);
    guest.measured("allocation_stalls", stalls);
    let (free, total) = (guest.row("1", NODE_FREE)?, guest.row("1", NODE_TOTAL)?);
    guest.measured("other_node_free", free / total);
    Ok(())
}

/// Reads the file on node 0; without a copy of it, what the kernel does for the page cache is all that is measured.
fn read(guest: &Guest, passes: &str) -> Result<(), String> {
    guest.run(&["read", "/disk", "--passes", passes, "--cpu", "0", "--no-copy"])
}

fn claims(outcomes: &dyn MeasuredArms) -> Vec<Claim> {
    let ratio = |name| outcomes.ratio(name, "mode-1", "mode-0");
    let of = |name| outcomes.measured("mode-1", name);
    let system = of("system_s").zip(outcomes.measured("mode-0", "system_s"));
    vec![
        Claim::of("pages scanned, mode 1 against 0", ratio("scanned_pages"), times).at_least(5.0),
        Claim::of("read from the disk again, mode 1 against 0", ratio("read_again_mib"), times)
            .at_least(5.0),
        Claim::of(
            "system CPU of the same reads, mode 1 against 0",
            system.map(|(on, off)| on / off.max(0.01)),
            times,
        )
        .article("30 % of all CPU")
        .at_least(5.0),
        Claim::of("free on the other node meanwhile (mode 1)", of("other_node_free"), percent)
            .article("GiB free")
            .at_least(0.5),
    ]
}
