//! Files in tmpfs: they count as cached, and cannot be given back.

use timeline::signals::{MEM_AVAILABLE, MEM_CACHED, MEM_SHMEM, MEM_TOTAL};
use units::{Bytes, Span};

use crate::claim::{Claim, MeasuredArms, percent};
use crate::guest::{Guest, mib};
use crate::scenario::{Arm, Scenario, ScenarioFigure};
use crate::setting::ScenarioSetting;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "tmpfs",
    shows: "Files in tmpfs are counted as cache by free, but nothing can reclaim them.",
    time: Span::from_secs(30),
    settings: &[ScenarioSetting {
        name: "files",
        default: 12.0,
        range: (1.0, 16.0),
        about: "files of 24 MiB that are written",
    }],
    arms: &[Arm {
        name: "filled",
        settings: &[],
        finds: &["shmem-growth"],
        may_find: &["available-exhaustion"],
    }],
    variants: &[&[("files", 10.0)], &[("files", 13.0)]],
    advised: &[("filled", &[("files", 2.0)])],
    play,
    claims,
    figures: &[ScenarioFigure::Chart("where"), ScenarioFigure::Chart("headroom")],
    ..Scenario::DEFAULT
};

fn play(guest: &mut Guest) -> Result<(), String> {
    guest.mount_tmpfs("/shm", Bytes::from_mib(420))?;
    guest.record();
    guest.sleep(3.0);
    let (cached, available) = (guest.host(MEM_CACHED)?, guest.host(MEM_AVAILABLE)?);
    let files = guest.count("files")?;
    for file in 1..=files {
        guest.phase(format!("file {file} of {files} is written to tmpfs"));
        let directory = format!("/shm/{file}");
        std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
        guest.run(&["write", &directory, "24M"])?;
        guest.sleep(1.0);
    }
    guest.sleep(4.0);
    let (shmem, total) = (guest.host(MEM_SHMEM)?, guest.host(MEM_TOTAL)?);
    guest.measured("shmem_share", shmem / total);
    let cached = mib(guest.host(MEM_CACHED)? - cached);
    guest
        .measured("available_lost_of_cached", mib(available - guest.host(MEM_AVAILABLE)?) / cached);
    Ok(())
}

fn claims(outcomes: &dyn MeasuredArms) -> Vec<Claim> {
    let of = |name| outcomes.measured("filled", name);
    vec![
        Claim::of("shared memory, of RAM", of("shmem_share"), percent).at_least(0.4),
        Claim::of(
            "lost from MemAvailable, of what Cached grew",
            of("available_lost_of_cached"),
            percent,
        )
        .at_least(0.8),
    ]
}
