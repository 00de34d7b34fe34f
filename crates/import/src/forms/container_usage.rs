//! What containers, pods and cgroups use, as tables: `docker stats` and its relatives, `crictl stats`, `kubectl top`,
//! `systemd-cgtop`, `talosctl cgroups`.
//!
//! Each row is a cgroup, by the name that the tool gives it. The usage of Docker and Kubernetes leaves out inactive page
//! cache. Rows of nodes (`kubectl top nodes`) are other machines: recognised, and not used.

use timeline::Entity;
use timeline::signals::{CGROUP_CURRENT, CGROUP_MAX};
use units::{Bytes, Limit};

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::figure::{KIB, PrintedFigure, raw};
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form = Form {
    name: "container usage",
    begins: BlockStart::with(&[
        "MEM USAGE",
        "INODES",
        "MEMORY(bytes)",
        "Control Group",
        "MemCurrent",
        "PodMetrics",
    ]),
    read,
};

/// At most 1,000 rows.
const ROWS_MAX: usize = 1000;

/// A table of usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UsageTable {
    /// `docker stats`, `podman stats`, `nerdctl stats`; the name is in this column.
    Runtime(usize),
    /// `crictl stats`: the ID or name, the share of CPU time, memory.
    Crictl,
    /// `kubectl top pods`; the name is in this column.
    Pods(usize),
    /// `kubectl top nodes`.
    Nodes,
    /// `systemd-cgtop`.
    Cgtop,
    /// `talosctl cgroups --preset memory`.
    Talos,
}

/// A row: its name, usage and limit.
struct UsageRow<'a> {
    name: &'a str,
    used: Bytes,
    limit: Option<Limit>,
}

impl UsageTable {
    fn of_heading(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let has = |name: &str| words.iter().any(|word| word.eq_ignore_ascii_case(name));
        if line.contains("MEM USAGE") && (has("CONTAINER") || has("ID") || has("NAME")) {
            // The names of the columns have blanks: `CONTAINER ID   NAME   CPU %`.
            let is_second = has("NAME") && words.first() != Some(&"NAME");
            return Some(Self::Runtime(usize::from(is_second)));
        }
        if has("CONTAINER") && has("MEM") && has("INODES") {
            return Some(Self::Crictl);
        }
        if has("MEMORY(bytes)") && has("NAME") {
            let of_node = has("CPU%") || has("MEMORY%");
            // With containers, the name of the container is the second.
            let name = usize::from(has("NAMESPACE") || words.first() == Some(&"POD"));
            return Some(if of_node { Self::Nodes } else { Self::Pods(name) });
        }
        if line.contains("Control Group") && has("Memory") {
            return Some(Self::Cgtop);
        }
        (has("NAME") && has("MemCurrent") && has("MemMax")).then_some(Self::Talos)
    }

    const fn what(self) -> &'static str {
        match self {
            Self::Runtime(_) => "docker stats",
            Self::Crictl => "crictl stats",
            Self::Pods(_) => "kubectl top pods",
            Self::Nodes => "kubectl top nodes: other machines, not used",
            Self::Cgtop => "systemd-cgtop",
            Self::Talos => "talosctl cgroups",
        }
    }

    fn row(self, line: &str) -> Option<UsageRow<'_>> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match self {
            Self::Runtime(name) => {
                let (before, after) = line.split_once('/')?;
                let used = last_size(before)?;
                let limit = first_size(after)?;
                let name = names_before(before).nth(name)?;
                // No limit prints as 0, or as the RAM of the host.
                let limit = (limit > Bytes::ZERO).then_some(Limit::Bytes(limit));
                Some(UsageRow { name, used, limit })
            }
            Self::Crictl => {
                let used = words.iter().skip(1).find_map(|word| first_size(word))?;
                Some(UsageRow { name: words.first()?, used, limit: None })
            }
            Self::Pods(name) => {
                let is_row = words.len() >= 3;
                let used =
                    words.iter().rev().find_map(|word| first_size(word)).filter(|_| is_row)?;
                let name = words.get(name).copied()?;
                Some(UsageRow { name, used, limit: None })
            }
            Self::Nodes => (words.len() >= 3 && words.iter().any(|word| word.ends_with('%')))
                .then_some(UsageRow { name: "", used: Bytes::ZERO, limit: None }),
            Self::Cgtop => {
                let (name, memory) = (words.first()?, words.get(3)?);
                let used = first_size(memory).or((*memory == "-").then_some(Bytes::ZERO))?;
                Some(UsageRow { name, used, limit: None })
            }
            Self::Talos => {
                let text = line.trim_start_matches(['│', '├', '└', '─', ' ']);
                let (name, rest) = text.split_once("  ")?;
                let used = first_size(rest.trim_start())
                    .or_else(|| rest.trim_start().starts_with("unset").then_some(Bytes::ZERO))?;
                let limit =
                    last_size(line).filter(|_| !line.ends_with("max") && !line.ends_with("unset"));
                Some(UsageRow { name, used, limit: limit.map(Limit::Bytes) })
            }
        }
    }
}

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    if input.lines.first()?.contains("PodMetrics") {
        return pod_metrics(input);
    }
    let table = UsageTable::of_heading(input.lines.first()?)?;
    let mut snapshot = Snapshot::default();
    let mut lines = 1;
    for line in input.lines[1..].iter().take(ROWS_MAX) {
        // `docker stats` prints its heading again for each round.
        let Some(row) = table.row(line) else { break };
        lines += 1;
        if row.used == Bytes::ZERO {
            continue;
        }
        let into = &mut snapshot.sample.table_mut(Entity::Cgroup).entry(row.name).row;
        into.set(CGROUP_CURRENT, row.used);
        if let Some(limit) = row.limit {
            into.set(CGROUP_MAX, limit);
        }
    }
    if snapshot.has_readings() {
        input.add(snapshot);
    }
    Some(TextBlock { what: table.what().to_owned(), lines, ..TextBlock::default() })
}

/// The JSON of the metrics API: `"kind": "PodMetricsList"`, then `"name": "web"` and `"memory": "19732Ki"` of each container.
fn pod_metrics(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let mut snapshot = Snapshot::default();
    let (mut name, mut lines) = ("", 1);
    for (at, line) in input.lines.iter().enumerate().take(ROWS_MAX) {
        let Some((key, value)) = line.trim().split_once(':') else {
            continue;
        };
        // Another answer.
        if at > 0 && line.contains("PodMetrics") {
            break;
        }
        let value = value.trim().trim_end_matches(',').trim_matches('"');
        match key {
            "\"name\"" => name = value,
            "\"memory\"" => {
                let used = first_size(value)?;
                let into = &mut snapshot.sample.table_mut(Entity::Cgroup).entry(name).row;
                into.set(CGROUP_CURRENT, used);
                lines = at + 1;
            }
            _ => {}
        }
    }
    if name.is_empty() || !snapshot.has_readings() {
        return None;
    }
    input.add(snapshot);
    Some(TextBlock {
        what: "usage of containers from the metrics API".to_owned(),
        lines,
        ..TextBlock::default()
    })
}

/// The cells before the usage of a container: its id and name, which are separated by several blanks and may contain one.
fn names_before(text: &str) -> impl Iterator<Item = &str> {
    let cells = text.split("  ").flat_map(|cell| cell.split('\t'));
    cells.map(str::trim).filter(|cell| !cell.is_empty())
}

/// The size at the start of a text: `994 MiB`, `1.2GiB`, `159.7 kB`, `6648Mi`, `3.9G`.
fn first_size(text: &str) -> Option<Bytes> {
    let mut words = text.split_whitespace();
    let first = words.next()?;
    let is_unit = |word: &&str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphabetic());
    let is_number = |word: &str| word.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let joined = match words.next().filter(is_unit) {
        Some(unit) if is_number(first) => format!("{first}{unit}"),
        _ => first.to_owned(),
    };
    let decimal = joined.strip_suffix("kB").map(|number| number.parse::<f64>());
    if let Some(Ok(kilo)) = decimal {
        return raw(kilo * 1000.0).map(Bytes::new);
    }
    let figure = PrintedFigure::binary(&joined)?;
    let has_unit = figure.has_unit || joined.ends_with('B');
    has_unit.then(|| raw(figure.in_bytes(KIB).value))?.map(Bytes::new)
}

/// The size at the end of a text.
fn last_size(text: &str) -> Option<Bytes> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let last = words.len().checked_sub(1)?;
    let with_unit = || {
        let number = words.get(last.checked_sub(1)?)?;
        let is_number = number.starts_with(|c: char| c.is_ascii_digit());
        first_size(&format!("{number} {}", words[last])).filter(|_| is_number)
    };
    with_unit().or_else(|| first_size(words[last]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{paste, survives};

    fn usage(text: &str, name: &str) -> (Option<u64>, Option<Limit>) {
        let timeline = paste(text).timeline;
        let Some(group) = timeline.entity(Entity::Cgroup, name) else {
            return (None, None);
        };
        let used = timeline.last_of(group, CGROUP_CURRENT);
        (used.map(|bytes| bytes.get() >> 10), timeline.last_of(group, CGROUP_MAX))
    }

    #[test]
    fn tables_of_runtimes_are_read_in_all_their_versions() {
        let limit = |mib| Some(Limit::Bytes(Bytes::from_mib(mib)));
        for (text, name, kib, limit) in [
            (
                "CONTAINER           CPU %               MEM USAGE/LIMIT     MEM %               NET I/O\nfblog          0.59%               288.5 MiB/994 MiB   28.99%              25.82 KiB/6.33 KiB\n",
                "fblog",
                295_424,
                limit(994),
            ),
            (
                "CONTAINER ID   NAME      CPU %     MEM USAGE / LIMIT   MEM %     NET I/O\n3ae83a77c1be   web       0.00%     1.5GiB / 2GiB       75.00%    0B / 0B\n",
                "web",
                1_572_864,
                limit(2048),
            ),
            (
                "NAME           MEM USAGE / LIMIT   MEM %\ncontainer 1    24MiB / 64MiB    37.22%\n\nTotal:   506.99%\n",
                "container 1",
                24_576,
                limit(64),
            ),
            (
                "CONTAINER           CPU %               MEM USAGE / LIMIT   MEM %\n77b5a678fbc0        0.00%               1024 kB / 0 B      0.00%\n",
                "77b5a678fbc0",
                1000,
                None,
            ),
        ] {
            assert_eq!(usage(text, name), (Some(kib), limit), "{text}");
            survives(text);
        }
    }

    #[test]
    fn the_json_of_the_metrics_api_is_read() {
        let text = "{\n  \"kind\": \"PodMetricsList\",\n  \"items\": [\n {\n \"metadata\": {\n \"name\": \"web-0\"\n },\n \"containers\": [\n {\n \"name\": \"web\",\n \"usage\": {\n \"cpu\": \"0\",\n \"memory\": \"19732Ki\"\n }\n }\n ]\n }\n ]\n}\n";
        assert_eq!(usage(text, "web"), (Some(19_732), None));
        survives(text);
    }

    #[test]
    fn other_tables_are_read() {
        let pods = "NAME    CPU(cores)   MEMORY(bytes)\nweb-0   10m          132Mi\n";
        assert_eq!(usage(pods, "web-0"), (Some(132 << 10), None));
        let cgtop = "Control Group                Tasks   %CPU   Memory  Input/s Output/s\n/                              210    5.1     3.9G        -        -\nsystem.slice                    60    1.0     1.5G        -        -\n";
        assert_eq!(usage(cgtop, "system.slice"), (Some(1_572_864), None));
        let talos = "NAME              MemCurrent   MemPeak    MemLow     Peak/Low   MemHigh    MemMin     Current/Min   MemMax\n.                      unset      unset     unset     unset%       unset      unset    unset%          unset\n├──init              85 MiB       88 MiB    192 MiB    45.73%         max     96 MiB    88.81%            max\n├──kubepods         810 MiB      811 MiB        0 B      max%         max        0 B      max%        3.5 GiB\n";
        assert_eq!(usage(talos, "init"), (Some(85 << 10), None));
        let limit = Limit::Bytes(Bytes::from_mib(3584));
        assert_eq!(usage(talos, "kubepods"), (Some(810 << 10), Some(limit)));
        let nodes = "NAME     CPU(cores)   CPU%      MEMORY(bytes)   MEMORY%\nnode-1   3605m        91%       6648Mi          101%\n";
        assert!(paste(nodes).timeline.is_empty());
        assert_eq!(paste(nodes).origin.inputs.len(), 1);
    }
}
