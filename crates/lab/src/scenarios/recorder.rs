//! The flight recorder itself, through an OOM kill and through thrash: what it took, what it missed, what it lost.

use timeline::signals::OOM_KILLS;
use units::Span;

use crate::claim::{Claim, MeasuredArms, plain, yes};
use crate::guest::Guest;
use crate::host::machine::{Machine, VirtualDisk};
use crate::scenario::{Arm, Scenario, ScenarioFigure};
use crate::setting::ScenarioSetting;

const MAY: &[&str] = &[
    "available-exhaustion",
    "cache-starved-floor",
    "direct-reclaim-stall",
    "kswapd-saturated",
    "shmem-growth",
    "swap-full",
    "swap-slow-device",
];

pub(super) const SCENARIO: Scenario = Scenario {
    name: "recorder",
    shows: "memtide record goes on through an OOM kill and through thrash, and says which samples \
            came late.",
    machine: || Machine::with_mib(640).disk(VirtualDisk::empty(512).slow(60)),
    time: Span::from_secs(60),
    settings: &[IS_BPF],
    arms: &[
        Arm { name: "bpf", settings: &[], finds: &["oom-global", "swap-thrash"], may_find: MAY },
        Arm {
            name: "proc",
            settings: &[("is_bpf", 0.0)],
            finds: &["oom-global", "swap-thrash"],
            may_find: MAY,
        },
    ],
    revision: 2,
    play,
    claims,
    figures: &[ScenarioFigure::Chart("where"), ScenarioFigure::Chart("pressure")],
    ..Scenario::DEFAULT
};

/// How the recorder reads processes.
pub(super) const IS_BPF: ScenarioSetting = ScenarioSetting {
    name: "is_bpf",
    default: 1.0,
    range: (0.0, 1.0),
    about: "whether processes are read by a BPF iterator; else below /proc",
};
/// Where it records.
pub(super) const RECORDING: &str = "/tmp/recording";

/// What `--tasks` is with these settings.
pub(super) fn tasks(guest: &Guest) -> Result<&'static str, String> {
    let is_bpf = guest.is_set(IS_BPF.name)?;
    Ok(if is_bpf { "bpf" } else { "proc" })
}

/// Reports numbers of the recorder's status, each by its path, and whether it read processes by BPF.
pub(super) fn measure_status(guest: &mut Guest, numbers: &[(&str, &str)]) -> Result<(), String> {
    let status = ["record", "--status", "--to", RECORDING, "--json"];
    let status = guest.memtide(&status)?.json()?;
    for (name, path) in numbers {
        let value = status.pointer(path).and_then(serde_json::Value::as_f64);
        guest.measured(name, value.ok_or_else(|| format!("the status has no {path}"))?);
    }
    let source = status.pointer("/recorder/tasks_source");
    let source = source.and_then(serde_json::Value::as_str);
    guest.measured_whether("is_bpf", source.is_some_and(|source| source.starts_with("BPF")));
    Ok(())
}

fn play(guest: &mut Guest) -> Result<(), String> {
    let tasks = tasks(guest)?;
    guest.record();
    guest.phase(format!("memtide record starts, with processes by {tasks}"));
    guest.cgroup("app", &[("memory.max", "max")])?;
    let recorder = guest.memtide(&[
        "record",
        "--to",
        RECORDING,
        "--every",
        "500ms",
        "--processes",
        "1s",
        "--tasks",
        tasks,
    ])?;
    guest.sleep(5.0);
    // As on any host, the recorder is not the only other process. Where it is, a second kill before the memory of the first
    // is freed takes it, whatever its oom_score_adj.
    let bystander = guest.launch(&["hog", "16M"])?;
    let kills = guest.host(OOM_KILLS)?;
    guest.phase("a program grows past RAM and is killed");
    guest.start(&["hog", "900M", "--fill", "8s", "--for", "20s"])?.wait()?;
    let kills = guest.host(OOM_KILLS)? - kills;
    guest.sleep(4.0);
    guest.phase("programs need more than RAM and have swap");
    guest.swap_on("/dev/vda")?;
    let hogs: Result<Vec<_>, String> =
        (0..6).map(|_| guest.start(&["hog", "120M", "--touch", "2s"])).collect();
    let hogs = hogs?;
    guest.sleep(20.0);
    drop(hogs);
    drop(bystander);
    guest.sleep(4.0);
    guest.phase("memtide record ends, and is read");
    let is_well = recorder.interrupt();
    measure_status(
        guest,
        &[
            ("taken", "/recorder/samples/taken"),
            ("missed", "/recorder/samples/missed"),
            ("late", "/recorder/samples/late"),
            ("lost", "/recorder/samples/lost"),
            ("worst_late_s", "/recorder/samples/worst_late_s"),
            ("cpu_share", "/recorder/cost/cpu_share"),
            ("written", "/recorder/disk/samples_written"),
        ],
    )?;
    guest.measured_whether("ended_well", is_well);
    guest.measured("kills", kills);
    read_recording(guest)
}

/// Measures what the recording has.
fn read_recording(guest: &mut Guest) -> Result<(), String> {
    let report = guest.memtide(&["check", RECORDING, "--format", "json"])?.json()?;
    let found: Vec<&str> = ["/findings", "/notes"]
        .iter()
        .filter_map(|list| report.pointer(list)?.as_array())
        .flatten()
        .filter_map(|finding| finding.get("id")?.as_str())
        .collect();
    for (name, id) in [("found_oom", "oom-global"), ("found_thrash", "swap-thrash")] {
        guest.measured_whether(name, found.contains(&id));
    }
    let events = guest.memtide(&["events", RECORDING, "--json"])?.json()?;
    let listed = events.pointer("/events").and_then(serde_json::Value::as_array);
    let is_kill = |event: &&serde_json::Value| {
        let kind = event.get("kind").and_then(serde_json::Value::as_str);
        kind == Some("oom-kill")
    };
    #[allow(clippy::cast_precision_loss)] // a few
    let recorded = listed.map_or(0, |all| all.iter().filter(is_kill).count()) as f64;
    guest.measured("kills_recorded", recorded);
    Ok(())
}

fn claims(outcomes: &dyn MeasuredArms) -> Vec<Claim> {
    let arms = outcomes.arms().into_iter();
    arms.flat_map(|arm| {
        let of = |name| outcomes.measured(arm, name);
        let ratio = |one, other| Some(of(one)? / of(other)?.max(1.0));
        let claim = |what: &str, value, print| Claim::of(&format!("{what} ({arm})"), value, print);
        [
            claim("samples taken", of("taken"), plain).at_least(60.0),
            claim("missed, of those taken", ratio("missed", "taken"), plain).at_most(0.2),
            claim("late", of("late"), plain),
            claim("lost", of("lost"), plain).at_most(0.0),
            claim("the latest sample, in seconds", of("worst_late_s"), plain).at_most(5.0),
            claim("written, of those taken", ratio("written", "taken"), plain).between(1.0, 1.0),
            claim("it went on to the end", of("ended_well"), yes).at_least(1.0),
            match arm {
                "bpf" => claim("processes by BPF", of("is_bpf"), yes).at_least(1.0),
                _ => claim("processes by BPF", of("is_bpf"), yes).at_most(0.0),
            },
            claim("OOM kills", of("kills"), plain).at_least(1.0),
            claim("recorded, of these", ratio("kills_recorded", "kills"), plain).between(1.0, 1.0),
            claim("the OOM kill is found in its recording", of("found_oom"), yes).at_least(1.0),
            claim("the thrash is found in its recording", of("found_thrash"), yes).at_least(1.0),
        ]
    })
    .collect()
}
