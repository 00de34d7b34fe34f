//! Signals as metrics: name, type, labels and unit.
//!
//! Metrics use base units: pages are written as bytes, and microseconds, milliseconds and clock ticks as seconds.
//! Under node_exporter's name a signal also has node_exporter's value, which for fields of `/proc/vmstat` is the
//! kernel's own number.

use units::{Bytes, Count, Limit, Micros, Millis, Pages, Quantity, Ticks, Unit};

use crate::signals::{SWAP_AREA_RANK, VMSTAT};
use crate::{Fact, Facts, SignalDef, SignalId};

/// The naming convention of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MetricNaming {
    /// `memtide_` and the catalogue's name with its unit: by Prometheus' conventions, and unlike any other name.
    #[default]
    Memtide,
    /// node_exporter's name if it has one, so that its dashboards work; else memtide's.
    NodeExporter,
}

/// The type as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricType {
    /// Only rises.
    Counter,
    /// A level.
    Gauge,
    /// A counter without the suffix `_total`, as some of node_exporter's.
    Untyped,
}

/// How a reading becomes a metric's value.
#[derive(Debug, Clone, Copy, PartialEq)]
enum MetricScale {
    Times(u64),
    Per(f64),
    /// Minus this offset, which makes the catalogue's values positive.
    Less(i64),
}

/// A signal as a metric.
#[derive(Debug)]
pub struct Metric {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: MetricType,
    signal: SignalId,
    scale: MetricScale,
}

/// Whether a reading means "no limit", which only signals of limits have.
pub fn is_unlimited(signal: SignalId, raw: u64) -> bool {
    signal.def().unit == Limit::NAME && Limit::from_raw(raw) == Limit::Unlimited
}

impl Metric {
    /// Returns `None` if the unit needs the page size and the source lacks it.
    pub fn new(signal: SignalId, names: MetricNaming, facts: &Facts) -> Option<Self> {
        let def = signal.def();
        // A name with labels is one of several series, and the catalogue has their sum.
        let has_name = !def.node_exporter.is_empty() && !def.node_exporter.contains('{');
        if names == MetricNaming::NodeExporter && has_name {
            return Some(Self::of_node_exporter(signal));
        }
        let page = facts.page_size.map(|page| page.bytes().get());
        let (unit, scale) = match def.unit {
            Pages::NAME => ("bytes", MetricScale::Times(page?)),
            Bytes::NAME => ("bytes", MetricScale::Times(1)),
            // Percent, stored in millionths.
            Micros::NAME if def.scale == 10_000 => ("ratio", MetricScale::Per(1e6)),
            Micros::NAME => ("seconds", MetricScale::Per(1e6)),
            Millis::NAME => ("seconds", MetricScale::Per(1e3)),
            #[allow(clippy::cast_precision_loss)] // at most 10,000
            Ticks::NAME => ("seconds", MetricScale::Per(facts.user_hz() as f64)),
            _ => ("", MetricScale::Times(1)),
        };
        Some(Self {
            name: our_name(def, unit),
            kind: if def.is_counter { MetricType::Counter } else { MetricType::Gauge },
            signal,
            scale,
        })
    }

    fn of_node_exporter(signal: SignalId) -> Self {
        let def = signal.def();
        let name = def.node_exporter.to_owned();
        let scale = match def.unit {
            Micros::NAME => MetricScale::Per(1e6),
            Millis::NAME => MetricScale::Per(1e3),
            #[allow(clippy::cast_precision_loss)] // 1024
            _ if def.file == VMSTAT && def.scale > 1 => MetricScale::Per(def.scale as f64),
            _ if signal == SWAP_AREA_RANK.id() => MetricScale::Less(32_768),
            _ => MetricScale::Times(1),
        };
        let kind = match (def.is_counter, name.ends_with("_total")) {
            (true, true) => MetricType::Counter,
            (true, false) => MetricType::Untyped,
            (false, _) => MetricType::Gauge,
        };
        Self { name, kind, signal, scale }
    }

    /// Returns the value of a reading as text.
    pub fn value(&self, raw: u64) -> String {
        if is_unlimited(self.signal, raw) {
            return "+Inf".to_owned();
        }
        #[allow(clippy::cast_precision_loss)] // values are floats of 64 bits wherever they go
        match self.scale {
            MetricScale::Times(by) => match raw.checked_mul(by) {
                Some(value) => value.to_string(),
                None => (raw as f64 * by as f64).to_string(),
            },
            MetricScale::Per(parts) => (raw as f64 / parts).to_string(),
            MetricScale::Less(by) => (i128::from(raw) - i128::from(by)).to_string(),
        }
    }

    /// Returns the reading that a value stands for; `None` if no reading has it.
    pub fn reading(&self, value: f64) -> Option<u64> {
        #[allow(clippy::cast_precision_loss)] // values are floats of 64 bits
        let raw = match self.scale {
            MetricScale::Times(by) => value / by as f64,
            MetricScale::Per(parts) => value * parts,
            MetricScale::Less(by) => value + by as f64,
        };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // checked
        (0.0..9e18).contains(&raw).then(|| raw.round() as u64)
    }

    /// Returns what a value is multiplied with to get the reading; `None` if that is not all.
    #[allow(clippy::cast_precision_loss)] // values are floats of 64 bits
    pub fn reading_per_value(&self) -> Option<f64> {
        match self.scale {
            MetricScale::Times(by) => Some(1.0 / by as f64),
            MetricScale::Per(parts) => Some(parts),
            MetricScale::Less(_) => None,
        }
    }

    /// Returns the signal.
    pub const fn signal(&self) -> SignalId {
        self.signal
    }

    /// Returns the catalogue's sentence, which may name the kernel file's unit instead of the metric's.
    pub fn help(&self) -> &'static str {
        self.signal.def().meaning
    }
}

/// Returns the name of a setting that is a number, in the unit of its file: `memtide_vm_swappiness_setting`.
pub fn setting_name(fact: Fact) -> String {
    format!("memtide_{}_setting", fact.name.replace(['.', '-'], "_"))
}

/// Returns the name of a setting that is one of several words: `memtide_thp_enabled_info`.
pub fn choice_name(fact: Fact) -> String {
    format!("memtide_{}_info", fact.name.replace(['.', '-'], "_"))
}

/// `memtide_vm_pswpin_bytes_total`.
fn our_name(def: &SignalDef, unit: &str) -> String {
    // By Prometheus' conventions "sec" is a unit; here it is short for "secondary".
    let words = def.name.replace('.', "_").replace("_sec_", "_secondary_");
    let mut name = format!("memtide_{words}");
    if !unit.is_empty() && !name.ends_with(&format!("_{unit}")) {
        name.push('_');
        name.push_str(unit);
    }
    match (def.is_counter, name.strip_suffix("_total")) {
        (true, None) => name.push_str("_total"),
        // The suffix `_total` is reserved for counters.
        (false, Some(level)) => name = format!("{level}_all"),
        _ => {}
    }
    debug_assert!(def.unit != Count::NAME || unit.is_empty());
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{facts, signals};
    use units::PageSize;

    fn facts() -> Facts {
        let mut facts = Facts::default();
        facts.page_size = PageSize::from_bytes(4096);
        facts
    }

    fn given(signal: &str, names: MetricNaming, raw: u64) -> Option<String> {
        let (id, _) = signals::by_name(signal)?;
        let metric = Metric::new(id, names, &facts())?;
        Some(format!("{} {}", metric.name, metric.value(raw)))
    }

    #[test]
    fn metrics_have_base_units_and_say_so_in_their_names() {
        for (signal, raw, metric) in [
            ("mem.free", 7, "memtide_mem_free_bytes 7"),
            ("mem.total", 7, "memtide_mem_total_bytes 7"),
            ("vm.pswpin", 2, "memtide_vm_pswpin_bytes_total 8192"),
            ("proc.rss", 2, "memtide_proc_rss_bytes 8192"),
            ("proc.utime", 250, "memtide_proc_utime_seconds_total 2.5"),
            ("psi.memory.some", 1_500_000, "memtide_psi_memory_some_seconds_total 1.5"),
            ("psi.memory.some.avg10", 15_000, "memtide_psi_memory_some_avg10_ratio 0.015"),
            ("disk.read_bytes", 512, "memtide_disk_read_bytes_total 512"),
            ("disk.read_time", 1, "memtide_disk_read_time_seconds_total 0.001"),
            ("cgroup.max", u64::MAX, "memtide_cgroup_max_bytes +Inf"),
            ("hugepages.total", 3, "memtide_hugepages_all 3"),
        ] {
            assert_eq!(given(signal, MetricNaming::Memtide, raw).as_deref(), Some(metric));
        }
    }

    #[test]
    fn node_exporters_names_come_with_its_values() {
        for (signal, raw, metric) in [
            ("mem.free", 7, "node_memory_MemFree_bytes 7"),
            ("vm.pswpin", 2, "node_vmstat_pswpin 2"),
            ("vm.pgpgin", 2048, "node_vmstat_pgpgin 2"),
            ("psi.memory.some", 1_500_000, "node_pressure_memory_waiting_seconds_total 1.5"),
            ("swap_area.rank", 32_766, "node_swap_priority -2"),
            ("cgroup.current", 5, "memtide_cgroup_current_bytes 5"),
        ] {
            assert_eq!(given(signal, MetricNaming::NodeExporter, raw).as_deref(), Some(metric));
        }
    }

    #[test]
    fn pages_of_unknown_size_are_no_bytes() {
        let metric = Metric::new(signals::PROC_RSS.id(), MetricNaming::Memtide, &Facts::default());
        assert!(metric.is_none());
    }

    #[test]
    fn no_two_signals_share_a_name() {
        for names in [MetricNaming::Memtide, MetricNaming::NodeExporter] {
            let all = (0..).map_while(SignalId::from_index);
            let mut all: Vec<String> =
                all.filter_map(|id| Some(Metric::new(id, names, &facts())?.name)).collect();
            all.extend(facts::ALL.iter().map(|fact| setting_name(*fact)));
            let count = all.len();
            all.sort();
            all.dedup();
            assert_eq!(all.len(), count, "{names:?}");
        }
    }
}
