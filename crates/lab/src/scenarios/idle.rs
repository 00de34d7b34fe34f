//! A machine that does nothing: nothing may be found.

use units::{Bytes, Span};

use crate::guest::Guest;
use crate::host::machine::Machine;
use crate::scenario::{Arm, Scenario};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "idle",
    shows: "A machine that does nothing, as a control.",
    article: "",
    time: Span::from_secs(12),
    machine: || Machine {
        ram: Bytes::from_mib(512),
        cpus: 2,
        nodes: 1,
        disks: Vec::new(),
    },
    arms: &[Arm {
        name: "idle",
        settings: &[],
        finds: &[],
        may_find: &[],
    }],
    play,
    claims: |_| Vec::new(),
};

fn play(guest: &mut Guest) -> Result<(), String> {
    guest.phase("nothing happens for 10 s");
    guest.sleep(10.0);
    Ok(())
}
