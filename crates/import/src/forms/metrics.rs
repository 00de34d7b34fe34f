//! Metrics as text: node_exporter's page, what `memtide export` writes, and answers of queries that
//! were pasted with their labels (`name{instance="web"} | 7`, `name{…} => 7 @[1435781451.781]`).
//!
//! Names are those under which memtide exports ([`timeline::metric`]), node_exporter's also without their unit, as
//! before its version 0.16. Metrics of the host are used, those of its parts are not. Different labels are different
//! hosts.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use timeline::metric::{Metric, MetricNaming};
use timeline::{Entity, Facts, Row, SignalId, signals};
use units::{PageSize, WallClock};

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::builder::{Snapshot, SnapshotTime, TimelineBuilder};
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form =
    Form { name: "metrics", begins: BlockStart::with(&["node_", "memtide_"]), read };

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let first = MetricLine::parse(input.lines.first()?)?;
    HOST_METRICS.get(first.name)?;
    let mut facts = Facts::default();
    facts.page_size = input.facts.page_size.or(Some(PageSize::USUAL));
    let mut samples: BTreeMap<(&str, Option<WallClock>), Row> = BTreeMap::new();
    let mut block = TextBlock {
        what: "metrics, as node_exporter and memtide write them".to_owned(),
        ..TextBlock::default()
    };
    for (at, line) in input.lines.iter().enumerate() {
        if let Some((metric, found)) = known(line, &facts) {
            block.lines = at + 1;
            let key = (found.labels, found.time);
            if (samples.len() < TimelineBuilder::TAKEN_MAX || samples.contains_key(&key))
                && let Some(reading) = metric.reading(found.value)
            {
                // A whole sample has tables, of a kilobyte.
                let host = samples.entry(key).or_default();
                host.set_raw(metric.signal(), reading);
            }
        } else if !line.starts_with("# ") && MetricLine::parse(line).is_none() {
            break;
        }
    }
    input.facts.page_size = facts.page_size;
    for ((labels, time), host) in samples {
        if let Some(host) = label(labels, "instance") {
            input.builder.at_host(host);
        }
        let mut snapshot = Snapshot::default();
        snapshot.sample.host = host;
        snapshot.when = time.map_or(SnapshotTime::Unknown, SnapshotTime::At);
        input.add(snapshot);
    }
    (input.added > 0).then_some(block)
}

/// The signals of the host by the names of their metrics. Prepared once: a text may have a metric on every line.
static HOST_METRICS: LazyLock<HashMap<String, (SignalId, MetricNaming)>> = LazyLock::new(|| {
    // Names do not depend on the page size.
    let mut facts = Facts::default();
    facts.page_size = Some(PageSize::USUAL);
    let host = || {
        let of_host = |id: &SignalId| id.def().entity == Entity::Host;
        let ids = signals::ALL.iter().filter_map(|def| def.id());
        ids.filter(of_host)
    };
    let mut names = HashMap::new();
    for naming in [MetricNaming::Memtide, MetricNaming::NodeExporter] {
        for id in host() {
            let Some(metric) = Metric::new(id, naming, &facts) else {
                continue;
            };
            let old = metric.name.strip_suffix("_bytes");
            if let Some(old) = old.filter(|old| old.starts_with("node_")) {
                names.entry(old.to_owned()).or_insert((id, naming));
            }
            names.insert(metric.name, (id, naming));
        }
    }
    names
});

/// The metric on a line, with its value.
fn known<'l>(line: &'l str, facts: &Facts) -> Option<(Metric, MetricLine<'l>)> {
    let found = MetricLine::parse(line)?;
    let (id, naming) = HOST_METRICS.get(found.name)?;
    Some((Metric::new(*id, *naming, facts)?, found))
}

/// A line of a metric.
struct MetricLine<'l> {
    name: &'l str,
    labels: &'l str,
    value: f64,
    time: Option<WallClock>,
}

impl<'l> MetricLine<'l> {
    fn parse(line: &'l str) -> Option<Self> {
        let line = line.trim();
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        let (name, rest) = line.split_at(line.find(|c| !is_name(c))?);
        let (labels, rest) = match rest.trim_start().strip_prefix('{') {
            Some(inside) => inside.split_once('}')?,
            None => ("", rest),
        };
        let rest = rest.trim_start();
        let rest = ["=>", "|", ","].iter().find_map(|mark| rest.strip_prefix(mark)).unwrap_or(rest);
        let mut words = rest.split_whitespace();
        let value: f64 = words.next()?.parse().ok()?;
        let time = match words.next() {
            Some(word) => Some(time(word)?),
            None => None,
        };
        let is_one = !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit());
        (is_one && words.next().is_none()).then_some(Self { name, labels, value, time })
    }
}

/// Seconds since 1970, or milliseconds, as Prometheus' own text has them.
fn time(word: &str) -> Option<WallClock> {
    let inside = word.strip_prefix("@[").and_then(|word| word.strip_suffix(']'));
    let number: f64 = inside.unwrap_or(word).parse().ok()?;
    let seconds = if number > 1e11 { number / 1e3 } else { number };
    #[allow(clippy::cast_possible_truncation)] // checked
    let millis = (0.0..4e9).contains(&seconds).then(|| (seconds * 1e3).round() as i64)?;
    Some(WallClock::from_unix_nanos(millis.checked_mul(1_000_000)?))
}

/// The value of a label.
fn label<'l>(labels: &'l str, name: &str) -> Option<&'l str> {
    let pairs = labels.split(',').filter_map(|pair| pair.split_once('='));
    let mut values = pairs.filter(|(key, _)| key.trim() == name);
    Some(values.next()?.1.trim().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use crate::testing::{paste, survives};
    use timeline::signals::{MEM_AVAILABLE, MEM_FREE, PGPGIN, PSI_MEMORY_FULL, PSWPIN};
    use units::{Bytes, Micros, Pages, Span};

    const PAGE: &str = "\
# HELP node_memory_MemAvailable_bytes Memory information field MemAvailable_bytes.
# TYPE node_memory_MemAvailable_bytes gauge
node_memory_MemAvailable_bytes 1.2e+09
# HELP node_memory_MemFree_bytes Memory information field MemFree_bytes.
# TYPE node_memory_MemFree_bytes gauge
node_memory_MemFree_bytes 4.096e+08
node_netstat_Icmp6_InErrors 0
node_pressure_memory_stalled_seconds_total 1.5
node_scrape_collector_duration_seconds{collector=\"arp\"} 4.5e-05
node_vmstat_pgpgin 2
node_vmstat_pswpin 7
";

    #[test]
    fn the_page_of_node_exporter_is_one_sample() {
        let opened = paste(PAGE);
        let timeline = &opened.timeline;
        assert_eq!(timeline.len(), 1);
        assert_eq!(timeline.last(MEM_AVAILABLE), Some(Bytes::new(1_200_000_000)));
        assert_eq!(timeline.last(PSI_MEMORY_FULL), Some(Micros::new(1_500_000)));
        assert_eq!(timeline.last(PGPGIN).map(|n| n.to_string()), Some("2 KiB".to_owned()));
        assert_eq!(timeline.last(PSWPIN), Some(Pages::new(7)));
        assert_eq!(opened.origin.inputs[0].last_line, 11);
        survives(PAGE);
    }

    #[test]
    fn names_of_memtide_and_of_old_versions_are_known() {
        for text in ["memtide_mem_free_bytes 7\n", "node_memory_MemFree 7\n"] {
            assert_eq!(paste(text).timeline.last(MEM_FREE), Some(Bytes::new(7)), "{text}");
        }
        let text = "memtide_vm_pswpin_bytes_total 8192 1700000000\nmemtide_vm_pswpin_bytes_total 12288 1700000010\n# EOF\n";
        let timeline = paste(text).timeline;
        assert_eq!(timeline.last(PSWPIN), Some(Pages::new(3)));
        assert_eq!(timeline.duration(), Span::from_secs(10));
    }

    #[test]
    fn answers_of_queries_are_of_several_hosts() {
        let text = "node_memory_MemAvailable_bytes{instance=\"a\", job=\"node\"} | 1598238720\n\
            node_memory_MemAvailable_bytes{instance=\"b\", job=\"node\"} | 2993688576\n";
        let opened = paste(text);
        assert_eq!(opened.timeline.len(), 2);
        assert_eq!(opened.facts.hosts, [(0, "a".to_owned()), (1, "b".to_owned())]);
        assert!(paste(PAGE).facts.hosts.is_empty());
        let text = "node_memory_MemFree_bytes{instance=\"a\"} => 4096 @[1435781451.781]\n";
        assert_eq!(paste(text).timeline.last(MEM_FREE), Some(Bytes::new(4096)));
        survives(text);
    }

    #[test]
    fn other_text_with_such_names_is_not_read() {
        for text in [
            "node_memory_MemFree_bytes / node_memory_MemTotal_bytes > 7\n",
            "node_memory_MemFree_bytes NaN\n",
            "node_memory_MemFree_bytes -1\n",
            "# HELP node_memory_MemFree_bytes 7\n",
            "node_zoneinfo_nr_free_pages{node=\"0\",zone=\"DMA\"} 7\n",
        ] {
            assert!(paste(text).timeline.is_empty(), "{text}");
        }
    }
}
