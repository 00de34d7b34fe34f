//! A service that outgrows its limit on a host with memory to spare.

use units::{Bytes, Span};

use crate::guest::Guest;
use crate::host::machine::Machine;
use crate::scenario::{Arm, ArmOutcomes, Claim, Scenario, percent, plain};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "cgroup-oom",
    shows: "The kernel kills a service at its memory.max although the host has memory left.",
    article: "",
    time: Span::from_secs(20),
    machine: || Machine {
        ram: Bytes::from_mib(768),
        cpus: 2,
        nodes: 1,
        disks: Vec::new(),
    },
    arms: &[Arm {
        name: "limit",
        settings: &[],
        finds: &["oom-cgroup"],
        may_find: &["cgroup-cache-starved"],
    }],
    play,
    claims,
};

fn play(guest: &mut Guest) -> Result<(), String> {
    let app = guest.cgroup("app", &[("memory.max", "96M")])?;
    guest.sleep(2.0);
    for attempt in 1..=2 {
        guest.phase(format!(
            "a program grows to 300 MiB in a cgroup of 96 MiB, attempt {attempt}"
        ));
        guest
            .start(&[
                "hog", "300M", "--fill", "6s", "--for", "30s", "--join", &app,
            ])?
            .wait();
        guest.sleep(2.0);
    }
    guest.measured(
        "kills",
        guest.cgroup_field(&app, "memory.events", "oom_kill"),
    );
    let (available, total) = (
        guest.meminfo_bytes("MemAvailable"),
        guest.meminfo_bytes("MemTotal"),
    );
    guest.measured("available_share", available / total);
    Ok(())
}

fn claims(outcomes: &ArmOutcomes) -> Vec<Claim> {
    vec![
        Claim::at_least(
            "kills in the cgroup",
            "",
            outcomes.measured("limit", "kills"),
            1.0,
            plain,
        ),
        Claim::at_least(
            "available on the host",
            "",
            outcomes.measured("limit", "available_share"),
            0.3,
            percent,
        ),
    ]
}
