//! Six troubles of a container in a pod, each asked about twice: on its host, by its name, and within it.

use serde_json::Value;
use timeline::signals::CGROUP_CURRENT;
use units::{Bytes, Span};

use crate::claim::{Claim, MeasuredArms, percent, yes};
use crate::guest::{Guest, GuestContainer, Part, mib};
use crate::host::machine::{Machine, VirtualDisk};
use crate::scenario::{Arm, Scenario, ScenarioFigure};
use crate::setting::ScenarioSetting;

use super::many_cgroups::finding;

/// A pod and a container in it, as the kubelet names them with the cgroupfs driver.
const POD: &str = "kubepods/burstable/pod5f1c2c3e-7a43-4f0e-9d51-1f2f8f0a9c11";
const APP: &str = "c0ffee00d1f74c6ab1e2a55d7f1b90e4c8a7a3f4be2d61309a75e1f2d4c3b2a1";
const SIDECAR: &str = "5a5a5a5a9be14f05a9d7b3cbb8ad4ee2f0a1c3e5d7960b8a4c2e1f3d5b7a9c0e";

const DISK: &str = "/disk";
/// More than a container's limit holds.
const FILES: &str = "/disk/files";
/// What the leak takes in a second, in MiB.
const LEAK_MIB_PER_S: f64 = 1.5;

struct Trouble {
    /// The file and the value of the container's limit, in MiB.
    limit: (&'static str, u32),
    /// The memory.max of the pod in MiB.
    pod_limit: Option<u32>,
    begin: fn(&Guest, &GuestContainer) -> Result<Vec<Part>, String>,
    /// How long `check` watches.
    watch: &'static str,
    /// What it must find.
    answer: TroubleAnswer,
    /// The same on cgroup v1, if it is another.
    answer_v1: Option<TroubleAnswer>,
}

/// What `check` must find: the rule, and the first thing to do.
#[derive(Clone, Copy)]
struct TroubleAnswer {
    rule: &'static str,
    advice: &'static str,
}

const TROUBLES: [Trouble; 6] = [
    Trouble {
        begin: |_, app| Ok(vec![app.launch(&["read", FILES, "--for", "60s"])?]),
        ..trouble(96, "15s", "cgroup-cache-starved", "Raise its limit")
    },
    Trouble {
        begin: |_, app| Ok(vec![app.launch(&["hog", "300M", "--fill", "200s"])?]),
        ..trouble(256, "80s", "cgroup-limit-ahead", "See which process grows")
    },
    Trouble {
        begin: |_, app| Ok(vec![app.launch(&["write", DISK, "20M", "--files", "200"])?]),
        answer_v1: Some(TroubleAnswer {
            rule: "cgroup-dirty-reclaim",
            advice: "write around the page cache",
        }),
        ..trouble(48, "20s", "cgroup-dirty-throttle", "Write less")
    },
    Trouble {
        begin: |guest, app| {
            guest.mount_tmpfs("/volume", Bytes::from_mib(400))?;
            app.launch(&["write", "/volume", "167M"])?.wait()?;
            Ok(vec![app.launch(&["read", FILES, "--for", "60s"])?])
        },
        ..trouble(192, "20s", "cgroup-shmem-large", "remove what is not needed")
    },
    Trouble {
        pod_limit: Some(128),
        begin: |guest, app| {
            let sidecar = guest.cgroup(&format!("{POD}/{SIDECAR}"), &[])?;
            let sidecar = ["hog", "40M", "--for", "60s", "--join", &sidecar];
            let mut sidecar = guest.start(&sidecar)?;
            // It has its memory first.
            sidecar.next_line();
            let app = app.launch(&["hog", "100M", "--fill", "10s", "--for", "60s"])?;
            Ok(vec![sidecar, app])
        },
        ..trouble(112, "20s", "oom-cgroup", "resources.limits.memory")
    },
    Trouble {
        limit: ("memory.high", 96),
        begin: |_, app| Ok(vec![app.launch(&["hog", "140M", "--for", "60s"])?]),
        ..trouble(96, "15s", "cgroup-high-throttle", "Raise memory.high")
    },
];

/// A container with a memory.max.
const fn trouble(
    max: u32,
    watch: &'static str,
    rule: &'static str,
    advice: &'static str,
) -> Trouble {
    Trouble {
        limit: ("memory.max", max),
        pod_limit: None,
        begin: |_, _| Ok(Vec::new()),
        watch,
        answer: TroubleAnswer { rule, advice },
        answer_v1: None,
    }
}

pub(super) const SCENARIO: Scenario = Scenario {
    name: "containers",
    shows: "Six troubles of a container, each found on its host and within it, with the limit that \
            binds and what cures it.",
    machine: || Machine::with_mib(1024).disk(VirtualDisk::ext4(1024).slow(20)),
    time: Span::from_secs(42),
    settings: &[
        ScenarioSetting::CGROUP_V1,
        ScenarioSetting {
            name: "trouble",
            default: 0.0,
            range: (0.0, 5.0),
            about: "0: files that do not fit, 1: a leak, 2: a writer beside a slow disk, 3: files \
                    in tmpfs, 4: a kill at the pod's limit, 5: throttled at memory.high",
        },
        ScenarioSetting {
            name: "room",
            default: 1.0,
            range: (1.0, 8.0),
            about: "how many times as large all limits are",
        },
    ],
    arms: &[
        FILES_ARM,
        LEAK,
        WRITER,
        TMPFS,
        POD_LIMIT,
        THROTTLED,
        Arm { name: "v1-files", settings: &[("cgroup_v1", 1.0), ("trouble", 0.0)], ..FILES_ARM },
        Arm { name: "v1-leak", settings: &[("cgroup_v1", 1.0), ("trouble", 1.0)], ..LEAK },
        Arm {
            name: "v1-writer",
            settings: &[("cgroup_v1", 1.0), ("trouble", 2.0)],
            finds: &["cgroup-dirty-reclaim"],
            ..WRITER
        },
        Arm { name: "v1-tmpfs", settings: &[("cgroup_v1", 1.0), ("trouble", 3.0)], ..TMPFS },
        Arm { name: "v1-pod", settings: &[("cgroup_v1", 1.0), ("trouble", 4.0)], ..POD_LIMIT },
    ],
    advised: &[
        ("files", ROOM),
        ("leak", ROOM),
        ("tmpfs", ROOM),
        ("pod", ROOM),
        ("v1-files", ROOM),
        ("v1-tmpfs", ROOM),
        ("v1-pod", ROOM),
    ],
    play,
    claims,
    figures: &[ScenarioFigure::Chart("cgroups"), ScenarioFigure::Chart("pressure")],
    ..Scenario::DEFAULT
};

/// Limits that hold what the container needs.
const ROOM: &[(&str, f64)] = &[("room", 4.0)];

const FILES_ARM: Arm = Arm {
    name: "files",
    settings: &[("trouble", 0.0)],
    finds: &["cgroup-cache-starved"],
    may_find: &[],
};
const LEAK: Arm = Arm {
    name: "leak",
    settings: &[("trouble", 1.0)],
    finds: &["cgroup-limit-ahead"],
    may_find: &["process-leak"],
};
const WRITER: Arm = Arm {
    name: "writer",
    settings: &[("trouble", 2.0)],
    finds: &["cgroup-dirty-throttle"],
    may_find: &[],
};
const TMPFS: Arm = Arm {
    name: "tmpfs",
    settings: &[("trouble", 3.0)],
    finds: &["cgroup-shmem-large"],
    may_find: &["cgroup-cache-starved"],
};
const POD_LIMIT: Arm =
    Arm { name: "pod", settings: &[("trouble", 4.0)], finds: &["oom-cgroup"], may_find: &[] };
const THROTTLED: Arm = Arm {
    name: "throttled",
    settings: &[("trouble", 5.0)],
    finds: &["cgroup-high-throttle"],
    may_find: &[],
};

fn play(guest: &mut Guest) -> Result<(), String> {
    let number = guest.count("trouble")? as usize;
    let trouble = TROUBLES.get(number).ok_or("there is no such trouble")?;
    guest.mount("/dev/vda", DISK)?;
    std::fs::create_dir(FILES).map_err(|error| format!("cannot make {FILES}: {error}"))?;
    guest.run(&["write", FILES, "160M"])?;
    // Nothing of it stays in the page cache: it would be that of the root.
    guest.remount("/dev/vda", DISK)?;
    let (file, limit) = trouble.limit;
    let room = guest.count("room")?;
    let limit = limit * room;
    let group = format!("{POD}/{APP}");
    let directory = guest.nested_cgroup(&group, &[(file, &format!("{limit}M"))])?;
    if let Some(limit) = trouble.pod_limit {
        guest.cgroup(POD, &[("memory.max", &format!("{}M", limit * room))])?;
    }
    let app = guest.container(&directory)?;
    guest.record();
    guest.sleep(3.0);

    guest.phase(format!("a container with a limit of {limit} MiB gets into trouble"));
    let watch = ["check", "--for", trouble.watch, "--json"];
    let by_name = ["--container", APP.get(..12).unwrap_or(APP)];
    let on_host = guest.memtide(&[&watch[..], &by_name].concat())?;
    let within = app.memtide(&watch)?;
    let parts = (trouble.begin)(guest, &app)?;
    let (on_host, within) = (on_host.json()?, within.json()?);
    let left_mib = f64::from(limit) - mib(guest.row(&format!("/{group}"), CGROUP_CURRENT)?);
    // They work until the machine ends: what ends before leaks no more.
    std::mem::forget((parts, app));

    let subject = trouble.pod_limit.map_or(group.as_str(), |_| POD);
    measure(guest, "host", trouble, &on_host, &format!("/{subject}"));
    measure(guest, "within", trouble, &within, "/");
    if trouble.answer.rule == "cgroup-limit-ahead" {
        if let Some(pace) = number_before(headline(&on_host), " MiB a minute") {
            guest.measured("pace", pace / 60.0 / LEAK_MIB_PER_S);
        }
        if let Some(left) = number_before(headline(&on_host), " s if it goes on") {
            guest.measured("left", left * LEAK_MIB_PER_S / left_mib);
        }
    }
    if guest.is_treated() {
        // A fix needs time to show.
        guest.sleep(7.0);
    }
    Ok(())
}

/// Compares an answer with what it must be; `cgroup` is what it must be about.
fn measure(guest: &mut Guest, place: &str, trouble: &Trouble, answer: &Value, cgroup: &str) {
    guest.phase(format!("{place}: {}", headline(answer)));
    let is_v1 = guest.is_cgroup_v1();
    let expected = trouble.answer_v1.filter(|_| is_v1).unwrap_or(trouble.answer);
    let text =
        |value: &Value, at| value.pointer(at).and_then(Value::as_str).unwrap_or("").to_owned();
    let found = finding(answer, expected.rule, cgroup);
    let limit = trouble.pod_limit.unwrap_or(trouble.limit.1);
    let names_limit = |found: &Value| text(found, "/title").contains(&format!("{limit} MiB"));
    let advises = |found: &Value| text(found, "/fix/0/what").contains(expected.advice);
    guest.measured_whether(&format!("{place}_finds"), found.is_some());
    guest.measured_whether(&format!("{place}_limit"), found.is_some_and(names_limit));
    guest.measured_whether(&format!("{place}_advice"), found.is_some_and(advises));
    // References are to documents of the kernel.
    let parts = ["/title", "/evidence", "/cause", "/fix", "/verify"];
    let words = found.map(|found| parts.map(|part| found.pointer(part)));
    let words = format!("{words:?}");
    let is_of_v2 = ["memory.max", "memory.high", "memory.events", "memory.pressure"]
        .iter()
        .any(|file| words.contains(file));
    guest.measured_whether(&format!("{place}_words"), !(is_v1 && is_of_v2));
}

fn headline(answer: &Value) -> &str {
    answer.pointer("/headline").and_then(Value::as_str).unwrap_or_default()
}

/// The number that stands before these words; `None` where they are not there: nothing was found.
fn number_before(text: &str, words: &str) -> Option<f64> {
    text.split_once(words)?.0.split_whitespace().next_back()?.parse().ok()
}

fn claims(outcomes: &dyn MeasuredArms) -> Vec<Claim> {
    let of_arm = |arm: &str| {
        let all_of = |place: &str| {
            let parts = ["finds", "limit", "advice", "words"];
            let values = parts.map(|part| outcomes.measured(arm, &format!("{place}_{part}")));
            let values: Option<Vec<f64>> = values.into_iter().collect();
            values?.into_iter().reduce(f64::min)
        };
        let answer = |what: &str, place| {
            Claim::of(&format!("{arm}: {what}"), all_of(place), yes).at_least(1.0)
        };
        vec![
            answer("cgroup, limit, advice from the host", "host"),
            answer("the same from within", "within"),
        ]
    };
    let of_leak = |arm: &str| {
        let claim = |what: &str, name| {
            let value = outcomes.measured(arm, name);
            Claim::of(&format!("{arm}: {what}"), value, percent)
        };
        vec![
            claim("pace, of the true one", "pace").between(0.9, 1.1),
            claim("time to the limit, of the true one", "left").between(0.8, 1.2),
        ]
    };
    let arms = outcomes.arms().into_iter();
    arms.flat_map(|arm| {
        let mut claims = of_arm(arm);
        if arm.ends_with("leak") {
            claims.extend(of_leak(arm));
        }
        claims
    })
    .collect()
}
