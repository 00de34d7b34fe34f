//! A pool of huge pages that nobody uses.

use timeline::signals::{HUGEPAGE_SIZE, HUGEPAGES_FREE, MEM_AVAILABLE};
use units::Span;

use crate::claim::{Claim, MeasuredArms, percent};
use crate::guest::{Guest, mib};
use crate::host::machine::Machine;
use crate::scenario::{Arm, Scenario, ScenarioFigure};
use crate::setting::ScenarioSetting;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "hugepages-idle",
    shows: "Huge pages that are reserved and not used are missing from free and from available.",
    machine: || Machine::with_mib(768),
    time: Span::from_secs(25),
    settings: &[ScenarioSetting {
        name: "pages",
        default: 120.0,
        range: (0.0, 2000.0),
        about: "vm.nr_hugepages",
    }],
    arms: &[Arm { name: "reserved", settings: &[], finds: &["hugetlb-unused"], may_find: &[] }],
    variants: &[&[("pages", 60.0)], &[("pages", 180.0)]],
    play,
    claims,
    figures: &[ScenarioFigure::Chart("where")],
    ..Scenario::DEFAULT
};

fn play(guest: &mut Guest) -> Result<(), String> {
    guest.record();
    guest.sleep(3.0);
    let available = guest.host(MEM_AVAILABLE)?;
    let pages = guest.setting("pages")?;
    guest.phase(format!("{pages:.0} huge pages are reserved"));
    guest.vm("nr_hugepages", pages)?;
    guest.sleep(14.0);
    let unused = guest.host(HUGEPAGES_FREE)? * guest.host(HUGEPAGE_SIZE)?;
    guest.measured("unused_of_reserved", mib(unused) / (pages * 2.0).max(1.0));
    let lost = mib(available - guest.host(MEM_AVAILABLE)?);
    guest.measured("lost_of_pool", lost / mib(unused).max(1.0));
    Ok(())
}

fn claims(outcomes: &dyn MeasuredArms) -> Vec<Claim> {
    let of = |name| outcomes.measured("reserved", name);
    vec![
        Claim::of("unused, of the reserved pages", of("unused_of_reserved"), percent)
            .at_least(0.95),
        Claim::of("lost from MemAvailable, of the pool", of("lost_of_pool"), percent)
            .between(0.8, 1.2),
    ]
}
