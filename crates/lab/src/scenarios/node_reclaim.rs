//! Two NUMA nodes: with `vm.zone_reclaim_mode` a full node evicts its cache although the other one is free.

use units::{Bytes, Span};

use crate::guest::Guest;
use crate::host::machine::{Machine, VirtualDisk};
use crate::scenario::{Arm, ArmOutcomes, Claim, Scenario, percent, times};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "node-reclaim",
    shows: "With vm.zone_reclaim_mode a node evicts its page cache again and again while the other node is free.",
    article: "S1",
    time: Span::from_secs(25),
    machine: || Machine {
        ram: Bytes::from_mib(1024),
        cpus: 2,
        nodes: 2,
        disks: vec![VirtualDisk {
            size: Bytes::from_mib(1024),
            is_formatted: true,
            speed: None,
        }],
    },
    arms: &[
        Arm {
            name: "mode-1",
            settings: &[("zone_reclaim_mode", "1")],
            finds: &["node-reclaim-on"],
            may_find: &[],
        },
        Arm {
            name: "mode-0",
            settings: &[("zone_reclaim_mode", "0")],
            finds: &[],
            may_find: &[],
        },
    ],
    play,
    claims,
};

fn play(guest: &mut Guest) -> Result<(), String> {
    let mode = guest.number("zone_reclaim_mode").unwrap_or_default();
    guest.write("/proc/sys/vm/zone_reclaim_mode", &format!("{mode:.0}"))?;
    guest.mount("/dev/vda", "/disk")?;
    guest.phase("a file of 600 MiB is written");
    guest
        .start(&["write", "/disk", "600M", "--files", "1"])?
        .wait();
    guest.drop_caches()?;
    guest.sleep(2.0);
    let (scanned, read) = (guest.vmstat("pgscan_direct"), guest.vmstat("pgpgin"));
    guest.phase("a program on node 0 reads the file again and again");
    let mut passes = 0.0;
    guest
        .start(&["read", "/disk", "--for", "12s", "--cpu", "0"])?
        .each(|_| passes += 1.0);
    guest.measured("passes", passes);
    guest.measured("scanned_pages", guest.vmstat("pgscan_direct") - scanned);
    // The first pass reads the file from the disk with either mode.
    let read_again = (guest.vmstat("pgpgin") - read) / 1024.0 - 600.0;
    guest.measured("read_again_mib", read_again.max(1.0));
    let node = |name: &str| guest.node_field(1, name);
    guest.measured("other_node_free", node("MemFree") / node("MemTotal"));
    guest.measured("allocation_stalls", guest.vmstat("allocstall_normal"));
    Ok(())
}

fn claims(outcomes: &ArmOutcomes) -> Vec<Claim> {
    let scanned = outcomes
        .measured("mode-1", "scanned_pages")
        .zip(outcomes.measured("mode-0", "scanned_pages"))
        .map(|(on, off)| on / off.max(1.0));
    vec![
        Claim::at_least("pages scanned, mode 1 against 0", "", scanned, 5.0, times),
        Claim::at_least(
            "read from the disk again, mode 1 against 0",
            "",
            outcomes.ratio("read_again_mib", "mode-1", "mode-0"),
            5.0,
            times,
        ),
        Claim::at_least(
            "free on the other node meanwhile (mode 1)",
            "GiB free",
            outcomes.measured("mode-1", "other_node_free"),
            0.5,
            percent,
        ),
    ]
}
