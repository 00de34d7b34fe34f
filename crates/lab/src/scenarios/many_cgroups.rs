//! A host with thousands of cgroups, one of which stalls for 20 s, and one of which has a kill: the recorder must find both.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use units::Span;

use crate::claim::{Claim, MeasuredArms, percent, plain, yes};
use crate::guest::{Guest, MemtideCommand};
use crate::host::machine::{Machine, VirtualDisk};
use crate::scenario::{Arm, Scenario, ScenarioFigure};
use crate::setting::ScenarioSetting;

use super::recorder::{IS_BPF, RECORDING, measure_status, tasks};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "many-cgroups",
    shows: "memtide record finds a stall of 20 s, and a kill, each in one of 2,000 cgroups, with \
            their times.",
    machine: || Machine::with_mib(1536).disk(VirtualDisk::ext4(512).slow(60)),
    time: Span::from_secs(100),
    settings: &[
        ScenarioSetting::CGROUP_V1,
        IS_BPF,
        ScenarioSetting {
            name: "cgroups",
            default: 2000.0,
            range: (50.0, 4000.0),
            about: "cgroups of the third level; ten share one of the second, a hundred one of the \
                    first",
        },
    ],
    arms: &[
        Arm {
            name: "bpf",
            settings: &[("is_bpf", 1.0)],
            finds: &["oom-cgroup"],
            may_find: &["oom-global"],
        },
        Arm {
            name: "proc",
            settings: &[("is_bpf", 0.0)],
            finds: &["oom-cgroup"],
            may_find: &["oom-global"],
        },
    ],
    variants: &[&[("cgroups", 500.0)]],
    play,
    claims,
    figures: &[ScenarioFigure::Chart("where"), ScenarioFigure::Chart("cgroups")],
    ..Scenario::DEFAULT
};

/// How long the one cgroup stalls.
const STALL: Duration = Duration::from_secs(20);
/// What of the file that it reads fits into its limit.
const STALL_LIMIT: &str = "96M";
/// The cgroup in which a program is killed has this limit.
const KILL_LIMIT: &str = "16M";

/// The path of a cgroup of the third level below the root.
fn leaf(index: u32) -> String {
    format!("tenant{:02}/service{:03}/task{index:04}", index / 100, index / 10)
}

fn play(guest: &mut Guest) -> Result<(), String> {
    let count = guest.count("cgroups")?;
    guest.phase(format!("{count} cgroups of the third level are made"));
    for index in 0..count {
        guest.nested_cgroup(&leaf(index), &[])?;
    }
    let stalls = leaf(count / 2 + 7);
    let kills = leaf(count / 3 + 3);
    let stalls_at = guest.nested_cgroup(&stalls, &[("memory.max", STALL_LIMIT)])?;
    let kills_at = guest.nested_cgroup(&kills, &[("memory.max", KILL_LIMIT)])?;
    guest.mount("/dev/vda", "/disk")?;
    guest.run(&["write", "/disk", "160M"])?;
    // Nothing of it stays in the page cache: it would be that of the root.
    guest.remount("/dev/vda", "/disk")?;

    let tasks = tasks(guest)?;
    guest.phase(format!("memtide record starts, with processes by {tasks}"));
    let record = ["record", "--to", RECORDING, "--tasks", tasks];
    let recorder = guest.memtide(&record)?;
    come_and_go(guest, Duration::from_secs(25))?;

    guest.phase(format!("/{stalls} reads more than its limit holds, for 20 s"));
    let stall_begun = Instant::now();
    let read = ["read", "/disk", "--for", "20s", "--join", &stalls_at];
    let reader = guest.launch(&read)?;
    let selector = format!("/{stalls}");
    let live = ["check", "--cgroup", &selector, "--for", "8s", "--format", "json"];
    let live = guest.memtide(&live)?;
    come_and_go(guest, STALL)?;
    reader.wait()?;
    let live = live.json()?;
    guest.measured_whether("live", finds(&live, "cgroup-cache-starved", &selector));

    come_and_go(guest, Duration::from_secs(10))?;
    guest.phase(format!("a program in /{kills} outgrows its limit"));
    let kill_at = stall_begun.elapsed();
    guest.launch(&["hog", "64M", "--for", "20s", "--join", &kills_at])?.wait()?;
    come_and_go(guest, Duration::from_secs(10))?;

    guest.phase("memtide record ends, and is read");
    let is_well = recorder.interrupt();
    guest.measured_whether("ended_well", is_well);
    measure_status(
        guest,
        &[
            ("taken", "/recorder/samples/taken"),
            ("lost", "/recorder/samples/lost"),
            ("cpu_share", "/recorder/cost/cpu_share"),
            ("every_s", "/recorder/seen/cgroups_every_s"),
            ("cgroups_read", "/recorder/seen/cgroups"),
        ],
    )?;
    let truth = Truth { stalls: selector, kills: format!("/{kills}"), from_stall_to_kill: kill_at };
    read_answers(guest, &truth)?;
    guest.record();
    // Shorter is too short for any verdict.
    guest.sleep(12.0);
    Ok(())
}

/// What was done, and when.
struct Truth {
    stalls: String,
    kills: String,
    from_stall_to_kill: Duration,
}

/// Cgroups that live for a second or two, as containers of cron jobs do.
fn come_and_go(guest: &mut Guest, time: Duration) -> Result<(), String> {
    let begun = Instant::now();
    let mut round = 0_u32;
    while begun.elapsed() < time {
        let name = format!("cron/job{:08}-{round}", begun.elapsed().as_micros());
        let join = guest.nested_cgroup(&name, &[])?;
        let job = guest.launch(&["hog", "4M", "--for", "1s", "--join", &join])?;
        guest.sleep(1.2);
        drop(job);
        // A process that ended leaves its cgroup a moment later.
        for _ in 0..20 {
            if std::fs::remove_dir(Path::new(&join)).is_ok() {
                break;
            }
            guest.sleep(0.02);
        }
        round += 1;
    }
    Ok(())
}

/// Asks the recording, as a whole and for each of the two cgroups.
fn read_answers(guest: &mut Guest, truth: &Truth) -> Result<(), String> {
    let report = guest.memtide(&["check", RECORDING, "--format", "json"])?.json()?;
    let stall = finding(&report, "cgroup-cache-starved", &truth.stalls);
    guest.measured_whether("found_stall", stall.is_some());
    guest.measured_whether("found_kill", finds(&report, "oom-cgroup", &truth.kills));
    let seconds = |finding: &Value, name| finding.get(name).and_then(Value::as_f64);
    let stall = stall.and_then(|stall| Some((seconds(stall, "from_s")?, seconds(stall, "to_s")?)));
    let events = guest.memtide(&["events", RECORDING, "--json"])?.json()?;
    let kill = events
        .pointer("/events")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .find(|event| is_kill_in(event, &truth.kills));
    let kill_at = kill.and_then(|kill| seconds(kill, "offset_s"));
    if let (Some((from, to)), Some(kill_at)) = (stall, kill_at) {
        guest.measured("stall_s", to - from);
        let apart = (kill_at - from) - truth.from_stall_to_kill.as_secs_f64();
        guest.measured("apart_by_s", apart.abs());
    }
    let of_group = |guest: &mut Guest, command: &str, group: &str| {
        let command = [command, RECORDING, "--cgroup", group, "--json"];
        guest.memtide(&command).and_then(MemtideCommand::json)
    };
    let check = of_group(guest, "check", &truth.stalls)?;
    guest.measured_whether("group_check", finds(&check, "cgroup-cache-starved", &truth.stalls));
    let headroom = of_group(guest, "headroom", &truth.stalls)?;
    guest.measured_whether("group_headroom", headroom.to_string().contains(&truth.stalls));
    for (name, source) in [("sums_live", None), ("sums_recorded", Some(RECORDING))] {
        let command: Vec<&str> = ["where", "--json"].into_iter().chain(source).collect();
        let answer = guest.memtide(&command)?.json()?;
        guest.measured_whether(name, answer.get("tree").is_some_and(adds_up));
    }
    let rows = ["where", RECORDING, "--by", "cgroup", "--json"];
    let rows = guest.memtide(&rows)?.json()?;
    let rows = rows.pointer("/rows").and_then(Value::as_array);
    #[allow(clippy::cast_precision_loss)] // thousands
    guest.measured("rows", rows.map_or(0, Vec::len) as f64);
    Ok(())
}

/// Whether the children of each node of `where` have as many bytes as the node.
fn adds_up(node: &Value) -> bool {
    let bytes = |node: &Value| node.get("bytes").and_then(Value::as_u64);
    let children = node.get("children").and_then(Value::as_array);
    let Some(children) = children.filter(|children| !children.is_empty()) else {
        return bytes(node).is_some();
    };
    let sum: Option<u64> = children.iter().map(bytes).sum();
    sum.is_some() && sum == bytes(node) && children.iter().all(adds_up)
}

/// The finding of this rule about this cgroup, in the answer of `check` as JSON.
pub(super) fn finding<'a>(report: &'a Value, id: &str, cgroup: &str) -> Option<&'a Value> {
    let findings = report.pointer("/findings")?.as_array()?.iter();
    let mut of_rule = findings.filter(|finding| finding.pointer("/id") == Some(&Value::from(id)));
    of_rule.find(|finding| finding.pointer("/scope/key") == Some(&Value::from(cgroup)))
}

fn finds(report: &Value, id: &str, cgroup: &str) -> bool {
    finding(report, id, cgroup).is_some()
}

/// A kill that the kernel's log dates names the process; its report has the cgroup.
fn is_kill_in(event: &Value, cgroup: &str) -> bool {
    let text = |name| event.get(name).map(Value::to_string).unwrap_or_default();
    text("kind") == "\"oom-kill\""
        && ["subject", "text", "report"].iter().any(|name| text(name).contains(cgroup))
}

fn claims(outcomes: &dyn MeasuredArms) -> Vec<Claim> {
    let arms = outcomes.arms().into_iter();
    arms.flat_map(|arm| {
        let claim = |what: &str, name, print| {
            Claim::of(&format!("{what} ({arm})"), outcomes.measured(arm, name), print)
        };
        [
            claim("all cgroups are read every, in seconds", "every_s", plain),
            claim("cgroups of the last scan", "cgroups_read", plain),
            claim("CPU of the recorder, of one", "cpu_share", percent),
            claim("samples taken", "taken", plain).at_least(30.0),
            claim("lost", "lost", plain).at_most(0.0),
            claim("it went on to the end", "ended_well", yes).at_least(1.0),
            match arm {
                "bpf" => claim("processes by BPF", "is_bpf", yes).at_least(1.0),
                _ => claim("processes by BPF", "is_bpf", yes).at_most(0.0),
            },
            claim("the stall is found live, in its cgroup", "live", yes).at_least(1.0),
            claim("and in the recording", "found_stall", yes).at_least(1.0),
            claim("its length, in seconds", "stall_s", plain).between(14.0, 24.0),
            claim("the kill is found in the recording", "found_kill", yes).at_least(1.0),
            claim("time from stall to kill, wrong by s", "apart_by_s", plain).at_most(6.0),
            claim("check --cgroup finds the stall", "group_check", yes).at_least(1.0),
            claim("headroom --cgroup answers", "group_headroom", yes).at_least(1.0),
            claim("where adds up, live", "sums_live", yes).at_least(1.0),
            claim("and for the recording", "sums_recorded", yes).at_least(1.0),
            claim("rows of where --by cgroup", "rows", plain).at_least(1.0),
        ]
    })
    .collect()
}
