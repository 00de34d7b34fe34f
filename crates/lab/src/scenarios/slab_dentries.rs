//! Names that do not exist, looked up in large numbers: the kernel remembers each.

use timeline::signals::{MEM_AVAILABLE, MEM_SLAB_RECLAIMABLE};
use units::Span;

use crate::claim::{Claim, MeasuredArms, percent, plain};
use crate::guest::{Guest, mib};
use crate::host::machine::{Machine, VirtualDisk};
use crate::scenario::{Arm, Scenario, ScenarioFigure};
use crate::setting::ScenarioSetting;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "slab-dentries",
    shows: "Lookups of names that do not exist fill the kernel's dentry cache; it stays available.",
    machine: || Machine::with_mib(512).disk(VirtualDisk::ext4(64)),
    time: Span::from_secs(35),
    settings: &[ScenarioSetting {
        name: "names",
        default: 500_000.0,
        range: (10_000.0, 5_000_000.0),
        about: "names that are looked up",
    }],
    arms: &[Arm { name: "lookups", settings: &[], finds: &["dentry-inode-bloat"], may_find: &[] }],
    variants: &[&[("names", 400000.0)], &[("names", 700000.0)]],
    advised: &[("lookups", &[("names", 20_000.0)])],
    play,
    claims,
    figures: &[ScenarioFigure::Chart("where")],
    ..Scenario::DEFAULT
};

fn play(guest: &mut Guest) -> Result<(), String> {
    guest.mount("/dev/vda", "/disk")?;
    guest.record();
    guest.sleep(3.0);
    let (slab, available) = (guest.host(MEM_SLAB_RECLAIMABLE)?, guest.host(MEM_AVAILABLE)?);
    let names = format!("{:.0}", guest.setting("names")?);
    guest.phase(format!("{names} names are looked up that do not exist"));
    guest.run(&["lookup", "/disk", &names])?;
    guest.sleep(8.0);
    guest.measured("grown_mib", mib(guest.host(MEM_SLAB_RECLAIMABLE)? - slab));
    let left = guest.host(MEM_AVAILABLE)? / available;
    guest.measured("available_left", left);
    Ok(())
}

fn claims(outcomes: &dyn MeasuredArms) -> Vec<Claim> {
    let of = |name| outcomes.measured("lookups", name);
    vec![
        Claim::of("MiB of reclaimable slab more", of("grown_mib"), plain).at_least(60.0),
        Claim::of("MemAvailable, of its level before", of("available_left"), percent).at_least(0.8),
    ]
}
