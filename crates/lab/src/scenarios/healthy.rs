//! Controls: what looks alarming and is fine. Nothing may be found beyond a remark.

use timeline::signals::{MEM_FREE, MEM_TOTAL, PSWPIN, REFAULT_FILE};
use units::Span;

use crate::guest::{Guest, mib};
use crate::host::machine::{Machine, VirtualDisk};
use crate::outcome::{ArmOutcomes, Claim, percent, plain};
use crate::scenario::{Arm, Scenario, ScenarioFigure, ScenarioSetting};

pub(super) const CACHE_FULL: Scenario = Scenario {
    name: "cache-full",
    shows: "Page cache takes all RAM; nothing waits, and all of it is available.",
    machine: || Machine::with_mib(512).disk(VirtualDisk::ext4(900).slow(40)),
    time: Span::from_secs(60),
    arms: &[Arm {
        name: "stream",
        settings: &[],
        finds: &["cache-full-harmless|free-low-harmless|streaming-read"],
        may_find: &[],
    }],
    play: fill_cache,
    claims: |outcomes| {
        let of = |name| outcomes.measured("stream", name);
        vec![
            Claim::of("free, of RAM", of("free_share"), percent).at_most(0.15),
            Claim::of("available, of RAM", of("available_share"), percent).at_least(0.6),
        ]
    },
    figures: &[
        ScenarioFigure::Chart("where"),
        ScenarioFigure::Chart("headroom"),
    ],
    ..Scenario::DEFAULT
};

fn fill_cache(guest: &mut Guest) -> Result<(), String> {
    guest.mount("/dev/vda", "/disk")?;
    guest.record();
    guest.phase("a file of 700 MiB is written");
    guest.run(&["write", "/disk", "700M", "--synced"])?;
    guest.remount("/dev/vda", "/disk")?;
    guest.sleep(2.0);
    guest.phase("it is read once");
    guest.run(&["read", "/disk", "--passes", "1"])?;
    guest.sleep(10.0);
    let total = guest.host(MEM_TOTAL)?;
    guest.measured("free_share", guest.host(MEM_FREE)? / total);
    guest.measured("available_share", guest.available_mib()? / mib(total));
    Ok(())
}

pub(super) const SWAP_COLD: Scenario = Scenario {
    name: "swap-cold",
    shows: "Memory that nobody needs lies in swap, and stays there.",
    machine: || Machine::with_mib(512).disk(VirtualDisk::empty(512)),
    time: Span::from_secs(50),
    arms: &[Arm {
        name: "cold",
        settings: &[],
        finds: &["swap-cold-harmless"],
        may_find: &[],
    }],
    play: cold_swap,
    claims: |outcomes| {
        let of = |name| outcomes.measured("cold", name);
        vec![
            Claim::of("swap used in MiB", of("swap_mib"), plain).at_least(20.0),
            Claim::of("swap-ins while it is watched", of("swap_ins"), plain).at_most(500.0),
        ]
    },
    figures: &[
        ScenarioFigure::Chart("swap_used"),
        ScenarioFigure::Chart("where"),
    ],
    ..Scenario::DEFAULT
};

fn cold_swap(guest: &mut Guest) -> Result<(), String> {
    guest.swap_on("/dev/vda")?;
    guest.record();
    guest.sleep(2.0);
    guest.phase("a program takes 250 MiB and sleeps");
    let hog = guest.start(&["hog", "250M"])?;
    guest.sleep(4.0);
    guest.phase("another one needs most of RAM for some seconds, and pushes it out");
    guest.run(&["hog", "280M", "--fill", "4s", "--for", "5s"])?;
    guest.sleep(3.0);
    guest.phase("quiet");
    let before = guest.host(PSWPIN)?;
    guest.sleep(20.0);
    guest.measured("swap_mib", guest.swap_used_mib()?);
    guest.measured("swap_ins", guest.host(PSWPIN)? - before);
    drop(hog);
    Ok(())
}

pub(super) const BUSY: Scenario = Scenario {
    name: "busy",
    shows: "Programs start, work and end, files are read and written, and all of it fits: nothing is found.",
    machine: || Machine::with_mib(1024).disk(VirtualDisk::ext4(900)),
    time: Span::from_secs(50),
    settings: &[ScenarioSetting {
        name: "seconds",
        default: 40.0,
        range: (10.0, 7200.0),
        about: "how long; 3600 for an hour",
    }],
    arms: &[Arm {
        name: "fits",
        settings: &[],
        finds: &[],
        may_find: &[],
    }],
    play: busy,
    claims: |outcomes: &ArmOutcomes| {
        let again = outcomes.measured("fits", "refaults");
        vec![Claim::of("pages read again", again, plain).at_most(2000.0)]
    },
    figures: &[ScenarioFigure::Chart("where"), ScenarioFigure::Chart("cpu")],
    ..Scenario::DEFAULT
};

fn busy(guest: &mut Guest) -> Result<(), String> {
    guest.mount("/dev/vda", "/disk")?;
    guest.record();
    let refaults = guest.host(REFAULT_FILE)?;
    let end =
        std::time::Instant::now() + std::time::Duration::from_secs_f64(guest.setting("seconds")?);
    let mut round = 0_u32;
    while std::time::Instant::now() < end {
        round += 1;
        guest.phase(format!(
            "round {round}: a program works, files are written and read"
        ));
        let hog = guest.start(&[
            "hog", "200M", "--fill", "2s", "--touch", "2s", "--for", "8s",
        ])?;
        let directory = format!("/disk/{}", round % 4);
        std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
        guest.run(&["write", &directory, "8M", "--files", "4", "--synced"])?;
        guest.run(&["read", &directory, "--passes", "3"])?;
        hog.wait()?;
        guest.sleep(1.0);
    }
    guest.measured("refaults", guest.host(REFAULT_FILE)? - refaults);
    Ok(())
}
