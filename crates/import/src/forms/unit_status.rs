//! `systemctl status`: the memory of a unit with its limits, `Memory: 1.6G (high: 1.5G, max: 1.7G, swap max: 0B, peak: 1.7G)`, in
//! systemd 255 and before without commas; and `lxc info`, `incus info`: `Memory (current): 1.95GiB`.
//!
//! Sizes are cut to one decimal. What is available to the unit is the smallest distance to a limit at the time, its own or
//! that of a slice around it; it is not used.

use timeline::Entity;
use timeline::signals::{
    CGROUP_CURRENT, CGROUP_HIGH, CGROUP_LOW, CGROUP_MAX, CGROUP_MIN, CGROUP_PEAK,
    CGROUP_SWAP_CURRENT, CGROUP_SWAP_MAX,
};
use units::{Bytes, Limit};

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::figure::{PrintedFigure, raw};
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form = Form {
    name: "unit status",
    begins: BlockStart::with(&["Memory: ", "Memory (current):"]),
    read,
};

/// The name of the unit is within so many lines above its memory, its cgroup within as many below.
const NEAR_MAX: usize = 14;

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let line = input.lines.first()?.trim();
    if let Some(size) = line.strip_prefix("Memory (current):") {
        return container(size, input);
    }
    let rest = line.strip_prefix("Memory: ")?;
    let (used, limits) = rest.split_once('(').unwrap_or((rest, ""));
    let used = size(used)?;
    let above = input.before.iter().rev().take(NEAR_MAX);
    let unit = above.copied().find_map(unit_in)?;
    let below = input.lines.iter().take(NEAR_MAX);
    let path = below.copied().find_map(|line| line.trim().strip_prefix("CGroup: "));
    let key = path.map_or(unit, str::trim);
    let mut snapshot = Snapshot::default();
    let row = &mut snapshot.sample.table_mut(Entity::Cgroup).entry(key).row;
    row.set(CGROUP_CURRENT, used);
    for (name, bytes) in named_sizes(limits) {
        match name.as_str() {
            "min" => row.set(CGROUP_MIN, Limit::Bytes(bytes)),
            "low" => row.set(CGROUP_LOW, Limit::Bytes(bytes)),
            "high" => row.set(CGROUP_HIGH, Limit::Bytes(bytes)),
            // `limit` is that of cgroup v1.
            "max" | "limit" => row.set(CGROUP_MAX, Limit::Bytes(bytes)),
            "swap max" => row.set(CGROUP_SWAP_MAX, Limit::Bytes(bytes)),
            "peak" if bytes >= used => row.set(CGROUP_PEAK, bytes),
            "swap" => row.set(CGROUP_SWAP_CURRENT, bytes),
            _ => {}
        }
    }
    input.add(snapshot);
    Some(TextBlock {
        what: "systemctl status: memory of a unit".to_owned(),
        lines: 1,
        unit: "as printed",
        ..TextBlock::default()
    })
}

/// `high: 1.5G, swap max: 0B, …)`: names, of one word or two, with their sizes.
fn named_sizes(text: &str) -> Vec<(String, Bytes)> {
    let mut found = Vec::new();
    let mut name: Vec<&str> = Vec::new();
    for word in text.trim_end().trim_end_matches(')').split_whitespace() {
        let is_value = name.last().is_some_and(|last| last.ends_with(':'));
        if !is_value {
            name.push(word);
            continue;
        }
        let whole = name.join(" ");
        name.clear();
        let size = size(word.trim_end_matches(','));
        found.extend(size.map(|bytes| (whole.trim_end_matches(':').to_owned(), bytes)));
    }
    found
}

/// `lxc info`: lines below `Memory usage:`.
fn container(current: &str, input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let used = size(current)?;
    let mut above = input.before.iter().rev().take(NEAR_MAX * 2);
    let name = above.find_map(|line| line.trim().strip_prefix("Name: "));
    let key = name.map_or("container", str::trim);
    let mut snapshot = Snapshot::default();
    let row = &mut snapshot.sample.table_mut(Entity::Cgroup).entry(key).row;
    row.set(CGROUP_CURRENT, used);
    let mut lines = 1;
    for line in input.lines.iter().skip(1) {
        let Some((what, figure)) = line.trim().split_once("): ") else {
            break;
        };
        let Some(bytes) = size(figure) else { break };
        match what {
            "Memory (peak" => row.set(CGROUP_PEAK, bytes),
            "Swap (current" => row.set(CGROUP_SWAP_CURRENT, bytes),
            "Swap (peak" => {}
            _ => break,
        }
        lines += 1;
    }
    input.add(snapshot);
    Some(TextBlock {
        what: "lxc info: memory of a container".to_owned(),
        lines,
        unit: "as printed",
        ..TextBlock::default()
    })
}

/// `● mariadb.service - MariaDB …`, or the file of the unit behind `Loaded:`.
fn unit_in(line: &str) -> Option<&str> {
    const SUFFIXES: [&str; 6] = [".service", ".scope", ".slice", ".socket", ".mount", ".swap"];
    let words = line.split([' ', '(', ';', '/']).take(16);
    let is_of_unit =
        line.contains(" - ") || line.contains("Loaded: ") || line.trim().starts_with('●');
    let mut units = words.filter(|word| SUFFIXES.iter().any(|suffix| word.ends_with(suffix)));
    units.next().filter(|_| is_of_unit)
}

fn size(text: &str) -> Option<Bytes> {
    let figure = PrintedFigure::with_unit(text.trim())?;
    raw(figure.value).map(Bytes::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{paste, survives};

    #[test]
    fn a_unit_has_its_memory_and_its_limits() {
        let text = "\
● mariadb.service - MariaDB 10.6.12 database server
     Loaded: loaded (/lib/systemd/system/mariadb.service; enabled)
     Active: active (running) since Mon 2026-11-23 08:11:34 UTC; 1 day 2h ago
      Tasks: 23 (limit: 2219)
     Memory: 1.5G (high: 1.5G max: 2.0G available: 0B peak: 1.5G swap: 12.0M)
        CPU: 3min 21.001s
     CGroup: /system.slice/mariadb.service
";
        let timeline = paste(text).timeline;
        let unit = timeline.entity(Entity::Cgroup, "/system.slice/mariadb.service").unwrap();
        let mib = |n| Some(Bytes::from_mib(n));
        assert_eq!(timeline.last_of(unit, CGROUP_CURRENT), mib(1536));
        assert_eq!(timeline.last_of(unit, CGROUP_SWAP_CURRENT), mib(12));
        assert_eq!(timeline.last_of(unit, CGROUP_MAX), mib(2048).map(Limit::Bytes));
        survives(text);
    }

    #[test]
    fn a_limit_of_two_words_is_none_of_one_word() {
        let limits = |memory: &str| {
            let text = format!(
                "● web.service - Web\n     Loaded: loaded (/etc/systemd/system/web.service)\n     Memory: {memory}\n     CGroup: /system.slice/web.service\n"
            );
            survives(&text);
            let timeline = paste(&text).timeline;
            let unit = timeline.entity(Entity::Cgroup, "/system.slice/web.service").unwrap();
            [CGROUP_MAX, CGROUP_SWAP_MAX, CGROUP_HIGH].map(|it| timeline.last_of(unit, it))
        };
        let mib = |n| Some(Limit::Bytes(Bytes::from_mib(n)));
        // Of systemd 255 and 257.
        let old = "43.0M (max: 64.0M swap max: 0B available: 21.0M peak: 43.0M)";
        assert_eq!(limits(old), [mib(64), mib(0), None]);
        let new = "43.0M (high: 48M, max: 64M, swap max: 0B, available: 4.9M, peak: 43.0M, swap: 1M, zswap: 2M)";
        assert_eq!(limits(new), [mib(64), mib(0), mib(48)]);
        assert_eq!(limits("275.1M (swap max: 0B)"), [None, mib(0), None]);
    }

    #[test]
    fn memory_of_no_unit_is_left_to_others() {
        assert!(paste("Memory: 1.5G\n").origin.inputs.is_empty());
    }

    #[test]
    fn a_container_of_lxd_is_a_cgroup() {
        let text = "Name: web\nResources:\n  Memory usage:\n    Memory (current): 1.95GiB\n    Memory (peak): 2.00GiB\n    Swap (current): 512.00MiB\n";
        let timeline = paste(text).timeline;
        let container = timeline.entity(Entity::Cgroup, "web").unwrap();
        assert_eq!(timeline.last_of(container, CGROUP_PEAK), Some(Bytes::from_gib(2)));
        survives(text);
    }
}
