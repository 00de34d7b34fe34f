//! A control: page cache takes all RAM, and that is what RAM is for.

use timeline::signals::{MEM_FREE, MEM_TOTAL};
use units::Span;

use crate::claim::{Claim, percent};
use crate::guest::{Guest, mib};
use crate::host::machine::{Machine, VirtualDisk};
use crate::scenario::{Arm, Scenario, ScenarioFigure};

pub(super) const SCENARIO: Scenario = Scenario {
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
    play,
    claims: |outcomes| {
        let of = |name| outcomes.measured("stream", name);
        vec![
            Claim::of("free, of RAM", of("free_share"), percent).at_most(0.15),
            Claim::of("available, of RAM", of("available_share"), percent).at_least(0.6),
        ]
    },
    figures: &[ScenarioFigure::Chart("where"), ScenarioFigure::Chart("headroom")],
    ..Scenario::DEFAULT
};

fn play(guest: &mut Guest) -> Result<(), String> {
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
