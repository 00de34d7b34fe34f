//! Metrics as Prometheus exposes and prints them: `node_memory_MemAvailable_bytes 1.5982e+09`, with labels, with a bar
//! before the value. Names are those of node_exporter in the catalogue of signals. Each `instance` is a machine of its
//! own.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use timeline::{SignalDef, SignalId, signals};

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::builder::{Link, Snapshot};
use crate::text::figure::raw;
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form = Form {
    name: "metrics",
    begins: BlockStart::with(&["node_memory_", "node_vmstat_"]),
    read,
};

/// At most 100,000 lines of a page.
const LINES_MAX: usize = 100_000;
/// At most 1,000 machines.
const MACHINES_MAX: usize = 1000;

/// The signals of the host by their names in node_exporter: sizes in bytes, and counters that are the kernel's own.
static BY_NAME: LazyLock<BTreeMap<&'static str, (SignalId, &'static SignalDef)>> =
    LazyLock::new(|| {
        let hosts = signals::ALL.iter().enumerate().filter(|(_, def)| {
            let is_of_host = def.entity == timeline::Entity::Host;
            let is_size = def.unit == "bytes" && !def.is_counter;
            is_of_host && (is_size || def.node_exporter.starts_with("node_vmstat_"))
        });
        hosts
            .filter_map(|(at, def)| Some((def.node_exporter, (SignalId::from_index(at)?, def))))
            .collect()
    });

/// A line of metrics.
struct MetricLine<'a> {
    name: &'a str,
    labels: &'a str,
    value: f64,
}

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let mut machines: BTreeMap<&str, Snapshot> = BTreeMap::new();
    let (mut lines, mut used) = (0, 0);
    if !FORM.begins.is_in(input.lines.first()?) {
        return None;
    }
    for (at, line) in input.lines.iter().enumerate().take(LINES_MAX) {
        let text = line.trim();
        if text.starts_with("# HELP") || text.starts_with("# TYPE") {
            continue;
        }
        let Some(metric) = metric(text) else { break };
        lines = at + 1;
        // node_exporter before 0.16 left the unit out.
        let of_2017 = || BY_NAME.get(format!("{}_bytes", metric.name).as_str());
        let Some((signal, _)) = BY_NAME.get(metric.name).or_else(of_2017) else {
            continue;
        };
        let instance = label(metric.labels, "instance").unwrap_or_default();
        if machines.len() >= MACHINES_MAX && !machines.contains_key(instance) {
            continue;
        }
        if let Some(value) = raw(metric.value) {
            let snapshot = machines.entry(instance).or_default();
            snapshot.sample.host.set_raw(*signal, value);
            used += 1;
        }
    }
    if used == 0 {
        return None;
    }
    let count = machines.len();
    for snapshot in machines.into_values() {
        let link = if count > 1 {
            Link::Apart
        } else {
            Link::Follows
        };
        input.add(Snapshot { link, ..snapshot });
    }
    Some(TextBlock {
        what: match count {
            1 => "metrics of node_exporter".to_owned(),
            count => format!("metrics of node_exporter, {count} instances"),
        },
        lines,
        unit: "bytes",
        ..TextBlock::default()
    })
}

/// `name{labels} value`, `name value`, `name{labels} | value`, with a time behind the value.
fn metric(line: &str) -> Option<MetricLine<'_>> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let end = line.find(|c: char| !is_name(c))?;
    let (name, rest) = line
        .split_at_checked(end)
        .filter(|(name, _)| name.len() > 3)?;
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => rest.split_once('}')?,
        None => ("", rest),
    };
    let mut words = rest
        .split(|c: char| c.is_whitespace() || c == '|' || c == '=')
        .filter(|word| !word.is_empty());
    let value = words.next()?.parse::<f64>().ok()?;
    // A time, or nothing: a sentence has words.
    let is_end = words
        .next()
        .is_none_or(|word| word.trim_start_matches('@').parse::<f64>().is_ok());
    (value.is_finite() && is_end).then_some(MetricLine {
        name,
        labels,
        value,
    })
}

/// The value of a label.
fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = labels.split_once(name)?;
    rest.strip_prefix("=\"")?.split('"').next()
}

#[cfg(test)]
mod tests {
    use crate::testing::{paste, survives};
    use timeline::signals::{MEM_AVAILABLE, MEM_TOTAL, PSWPIN};
    use units::{Bytes, Pages};

    const PAGE: &str = "# HELP node_memory_MemTotal_bytes Memory information field MemTotal_bytes.\n# TYPE node_memory_MemTotal_bytes gauge\nnode_memory_MemTotal_bytes 1.6303428e+10\nnode_memory_MemAvailable_bytes 3.1e+08\nnode_load1 0.5\nnode_vmstat_pswpin 160\n";

    #[test]
    fn a_page_of_node_exporter_is_one_machine() {
        let timeline = paste(PAGE).timeline;
        assert_eq!(timeline.last(MEM_TOTAL), Some(Bytes::new(16_303_428_000)));
        assert_eq!(timeline.last(MEM_AVAILABLE), Some(Bytes::new(310_000_000)));
        assert_eq!(timeline.last(PSWPIN), Some(Pages::new(160)));
        survives(PAGE);
    }

    #[test]
    fn names_of_old_versions_are_read() {
        let timeline = paste("# HELP node_memory_MemAvailable Memory information field MemAvailable.\nnode_memory_MemAvailable 3.1e+08\n").timeline;
        assert_eq!(timeline.last(MEM_AVAILABLE), Some(Bytes::new(310_000_000)));
    }

    #[test]
    fn instances_are_machines_of_their_own() {
        let text = "node_memory_MemAvailable_bytes{instance=\"a\", job=\"node\"} | 1598238720\nnode_memory_MemAvailable_bytes{instance=\"b\", job=\"node\"} | 2993688576\n";
        let timeline = paste(text).timeline;
        assert_eq!((timeline.len(), timeline.segments().len()), (2, 2));
        survives(text);
    }

    #[test]
    fn an_expression_is_no_metric() {
        for text in [
            "node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes",
            "node_memory_MemFree_bytes{instance=\"a\"} > 100",
            "node_memory_MemAvailable_bytes is the field to use",
            "node_memory_MemAvailable_bytes NaN",
        ] {
            assert!(paste(text).timeline.is_empty(), "{text}");
        }
    }
}
