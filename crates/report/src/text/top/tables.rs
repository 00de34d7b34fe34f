//! The tables of a frame: units and processes.

use std::collections::{HashMap, HashSet};

use diagnose::activity::{GroupActivity, ProcessActivity, ProcessSize};
use timeline::Entity;
use timeline::cgroup::ancestors;
use units::{Bytes, Count, PerSecond, Quantity, SignedBytes};

use super::table::{TopColumn, TopTable, sorted};
use super::{TopFrame, TopView};
use crate::model::top::TopReport;
use crate::model::{Finding, Severity};
use crate::text::Screen;

/// A terminal of this width has room for every column.
const WIDE: usize = 110;

pub(super) const UNITS: [TopColumn<GroupActivity>; 9] = [
    TopColumn {
        title: "RAM",
        cells: 9,
        from_width: 0,
        text: |row| row.bytes.to_string(),
        value: |row| Some(row.bytes.as_f64()),
    },
    TopColumn {
        title: "+/MIN",
        cells: 10,
        from_width: 0,
        text: |row| growth(row.growth),
        value: |row| row.growth.map(signed),
    },
    TopColumn {
        title: "FILE",
        cells: 9,
        from_width: WIDE,
        text: |row| text(row.file),
        value: |row| row.file.map(Quantity::as_f64),
    },
    TopColumn {
        title: "SWAP",
        cells: 9,
        from_width: WIDE,
        text: |row| text(row.swap),
        value: |row| row.swap.map(Quantity::as_f64),
    },
    TopColumn {
        title: "SWAP IN",
        cells: 11,
        from_width: 0,
        text: |row| text(row.swap_in),
        value: |row| row.swap_in.map(PerSecond::get),
    },
    TopColumn {
        title: "RE-READ",
        cells: 11,
        from_width: 0,
        text: |row| text(row.refault),
        value: |row| row.refault.map(PerSecond::get),
    },
    TopColumn {
        title: "WAITS",
        cells: 7,
        from_width: 0,
        text: |row| text(row.memory_wait),
        value: |row| row.memory_wait.map(Quantity::as_f64),
    },
    TopColumn {
        title: "HITS/S",
        cells: 8,
        from_width: 0,
        text: |row| row.limit_hits.map_or_else(String::new, count),
        value: |row| row.limit_hits.map(PerSecond::get),
    },
    TopColumn {
        title: "OF LIMIT",
        cells: 9,
        from_width: 0,
        text: |row| text(row.of_limit),
        value: |row| row.of_limit.map(Quantity::as_f64),
    },
];

pub(super) const PROCESSES: [TopColumn<ProcessActivity>; 7] = [
    TopColumn {
        title: "MEMORY",
        cells: 10,
        from_width: 0,
        text: |row| match row.measured {
            ProcessSize::Pss => row.bytes.to_string(),
            ProcessSize::PssAndGrowth | ProcessSize::Rss => format!("≈{}", row.bytes),
        },
        value: |row| Some(row.bytes.as_f64()),
    },
    TopColumn {
        title: "PSS OF",
        cells: 8,
        from_width: 0,
        text: |row| match (row.measured, row.pss_age) {
            (ProcessSize::Rss, _) => "rss".to_owned(),
            (ProcessSize::Pss, _) | (_, None) => "now".to_owned(),
            (ProcessSize::PssAndGrowth, Some(age)) => format!("−{age}"),
        },
        value: |row| row.pss_age.map(units::Span::as_secs_f64),
    },
    TopColumn {
        title: "+/MIN",
        cells: 10,
        from_width: 0,
        text: |row| growth(row.growth),
        value: |row| row.growth.map(signed),
    },
    TopColumn {
        title: "SWAP",
        cells: 9,
        from_width: 0,
        text: |row| text(row.swap),
        value: |row| row.swap.map(Quantity::as_f64),
    },
    TopColumn {
        title: "MAJFLT/S",
        cells: 9,
        from_width: 0,
        text: |row| row.major_faults.map_or_else(String::new, count),
        value: |row| row.major_faults.map(PerSecond::get),
    },
    TopColumn {
        title: "MINFLT/S",
        cells: 9,
        from_width: WIDE,
        text: |row| row.minor_faults.map_or_else(String::new, count),
        value: |row| row.minor_faults.map(PerSecond::get),
    },
    TopColumn {
        title: "CPU",
        cells: 7,
        from_width: 0,
        text: |row| text(row.cpus),
        value: |row| row.cpus.map(Quantity::as_f64),
    },
];

fn text<Q: Quantity>(value: Option<Q>) -> String {
    value.map_or_else(String::new, |value| match value.as_f64() {
        0.0 => "0".to_owned(),
        _ => value.to_string(),
    })
}

fn growth(growth: Option<SignedBytes>) -> String {
    growth.map_or_else(String::new, |growth| match growth.get() {
        0 => "0".to_owned(),
        _ => format!("{growth:+}"),
    })
}

#[allow(clippy::cast_precision_loss)] // to sort by
fn signed(growth: SignedBytes) -> f64 {
    growth.get() as f64
}

/// A rate in a column with its unit in the heading.
fn count(rate: PerSecond<Count>) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates
    match rate.get() {
        0.0 => "0".to_owned(),
        little if little < 10.0 => format!("{little:.1}"),
        rate => Count::new(rate.round() as u64).to_string(),
    }
}

pub(super) fn units<'a>(report: &'a TopReport, view: &TopView) -> Vec<&'a GroupActivity> {
    let names = |row: &GroupActivity| {
        let name = row.name.clone().into_iter();
        name.chain([row.path.clone()]).collect()
    };
    let mut rows = sorted(&report.units, &UNITS, view, names);
    if view.is_folded {
        let shown: HashSet<&str> = rows.iter().map(|row| &*row.path).collect();
        rows.retain(|row| outermost(&row.path, &shown) == row.path);
    }
    rows
}

/// The outermost of these cgroups around a cgroup, or itself.
fn outermost<'p>(path: &'p str, of: &HashSet<&str>) -> &'p str {
    ancestors(path)
        .filter(|above| of.contains(above))
        .min_by_key(|above| above.len())
        .unwrap_or(path)
}

/// What a fold leaves out below each row: how many units, and the worst that is wrong with one.
fn folded<'a>(
    report: &'a TopReport,
    rows: &[&GroupActivity],
) -> HashMap<&'a str, (usize, Option<Severity>)> {
    let shown: HashSet<&str> = rows.iter().map(|row| &*row.path).collect();
    let mut below: HashMap<&str, (usize, Option<Severity>)> = HashMap::new();
    for unit in &report.units {
        let above = outermost(&unit.path, &shown);
        if above != unit.path {
            let (count, worst) = below.entry(above).or_default();
            *count += 1;
            *worst = (*worst).max(severity_of(report, Entity::Cgroup, &unit.path));
        }
    }
    below
}

pub(super) fn processes<'a>(report: &'a TopReport, view: &TopView) -> Vec<&'a ProcessActivity> {
    let names = |row: &ProcessActivity| vec![named(row), row.service.clone()];
    sorted(&report.processes, &PROCESSES, view, names)
}

pub(super) fn draw_units(report: &TopReport, view: &TopView, place: (&Screen, usize)) -> TopFrame {
    let rows = units(report, view);
    let below = if view.is_folded { folded(report, &rows) } else { HashMap::new() };
    let mut hidden = Vec::new();
    if report.now.swap_total == Some(Bytes::ZERO) {
        hidden.extend(["SWAP", "SWAP IN"]);
    }
    // Where waits are known, they say what the hits of a limit cost.
    if place.0.width() < WIDE && rows.iter().any(|row| row.memory_wait.is_some()) {
        hidden.push("HITS/S");
    }
    TopTable {
        columns: &UNITS,
        rows,
        hidden,
        named: "UNIT",
        name: |row| row.name.clone().unwrap_or_else(|| row.path.clone()),
        note: &|row| {
            let left_out = below.get(&*row.path).map(|(count, _)| format!("{count} below"));
            let limit = row.limit.map(|limit| format!("limit {limit}"));
            let kills = row.kills.filter(|kills| kills.get() > 0);
            let killed = kills.map(|kills| format!("{kills} killed"));
            killed.into_iter().chain(limit).chain(left_out).collect::<Vec<_>>().join(", ")
        },
        severity: &|row| {
            let worst_below = below.get(&*row.path).and_then(|(_, worst)| *worst);
            severity_of(report, Entity::Cgroup, &row.path).max(worst_below)
        },
        none: "This source has no cgroups, or their memory is not accounted.",
    }
    .draw(view, place)
}

pub(super) fn draw_processes(
    report: &TopReport,
    view: &TopView,
    place: (&Screen, usize),
) -> TopFrame {
    TopTable {
        columns: &PROCESSES,
        rows: processes(report, view),
        hidden: if report.now.swap_total == Some(Bytes::ZERO) { vec!["SWAP"] } else { Vec::new() },
        named: "PROCESS",
        name: named,
        note: &|row| if row.service == row.name { String::new() } else { row.service.clone() },
        severity: &|row| severity_of(report, Entity::Process, &named(row)),
        none: "This source has no processes.",
    }
    .draw(view, place)
}

/// Returns the worst severity of what goes on in an entity, or affects it.
fn severity_of(report: &TopReport, entity: Entity, name: &str) -> Option<Severity> {
    let is_about = |finding: &&Finding| {
        let is_its_own = finding.scope.entity == entity && finding.scope.key == name;
        let mut affected = finding.affected.iter();
        is_its_own || affected.any(|one| one.kind == entity.name() && one.name == name)
    };
    let present = report.check.findings.iter().filter(|finding| !finding.is_over);
    let severities = present.filter(is_about).map(|finding| finding.severity);
    severities.max().filter(|severity| *severity > Severity::Info)
}

pub(super) fn named(row: &ProcessActivity) -> String {
    format!("{} ({})", row.name, row.pid)
}
