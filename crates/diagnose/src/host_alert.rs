//! Alerts of a fleet's monitoring that no rule of the catalogue is: of pressure first, which says that tasks wait and not why.
//! Rules say why.
//!
//! They are for minutes, where rules are for seconds: a monitoring system asks every 15 to 60 s, and wakes people.

use units::Span;

use crate::finding::Severity;
use crate::trigger::AlertMetrics;

/// An alert about a host as a whole.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HostAlert {
    /// Its name in Prometheus.
    pub name: &'static str,
    /// Returns series where it holds.
    pub expr: &'static str,
    /// How long it must hold.
    pub lasts: Span,
    /// How much it matters: what is critical is worth waking someone.
    pub severity: Severity,
    /// Alerts of node_exporter's mixin that it is for, instead of them.
    pub replaces: &'static [&'static str],
    /// What is wrong, with numbers: `$value` is a template's.
    pub summary: &'static str,
    /// What it means, in a sentence.
    pub meaning: &'static str,
    /// More about it for `docs/alerts.md`: why so, when it stays silent.
    pub more: &'static str,
}

impl HostAlert {
    /// Those for these metrics.
    pub fn all(metrics: AlertMetrics) -> impl Iterator<Item = &'static Self> {
        let own: &[Self] = if metrics == AlertMetrics::Memtide { &OF_MEMTIDE } else { &[] };
        OF_NODE_EXPORTER.iter().chain(own)
    }
}

/// An engineering choice, as the other thresholds here: a tenth of the time is felt, and no healthy recording of the corpus has a
/// hundredth of it for minutes.
const OF_NODE_EXPORTER: [HostAlert; 5] = [
    HostAlert {
        name: "memory-stall",
        expr: "rate(node_pressure_memory_waiting_seconds_total[5m]) >= 0.1 \
               and (node_memory_MemAvailable_bytes <= node_memory_MemTotal_bytes * 0.15 \
               or rate(node_vmstat_pgmajfault[5m]) >= 100 \
               or rate(node_vmstat_pswpin[5m]) >= 100)",
        lasts: Span::from_mins(5),
        severity: Severity::Warning,
        replaces: &["NodeMemoryMajorPagesFaults", "NodeSystemSaturation"],
        summary: "{{ $labels.instance }}: tasks waited for memory in {{ $value | humanizePercentage }} of the last five minutes",
        meaning: "Pressure (PSI): in a tenth of the time or more, some task waited for memory.",
        more: "Besides little is available, or pages are read back: a stream through the page cache has such \
               pressure where reclaim is slow, and harms nobody. Major faults alone are no reason to wake anybody: \
               a program that starts, a database that maps its files and a job that reads a file through a mapping \
               have thousands a second, and wait for the disk as they would with read(2). The load counts tasks \
               that wait for disks or CPUs as well.",
    },
    HostAlert {
        name: "memory-faults",
        expr: "rate(node_vmstat_pgmajfault[5m]) >= 500 \
               and node_memory_MemAvailable_bytes <= node_memory_MemTotal_bytes * 0.1 \
               unless node_pressure_memory_waiting_seconds_total",
        lasts: Span::from_mins(5),
        severity: Severity::Warning,
        replaces: &["NodeMemoryMajorPagesFaults"],
        summary: "{{ $labels.instance }}: {{ $value | humanize }} major faults a second, with less than a tenth of RAM available",
        meaning: "In the place of memory-stall where the kernel has no PSI (before 4.20, or with psi=0): pages are \
                  read from the disk, and little memory is available.",
        more: "",
    },
    HostAlert {
        name: "memory-standstill",
        expr: "rate(node_pressure_memory_stalled_seconds_total[2m]) >= 0.2 \
               and (node_memory_MemAvailable_bytes <= node_memory_MemTotal_bytes * 0.15 \
               or rate(node_vmstat_pgmajfault[5m]) >= 100 \
               or rate(node_vmstat_pswpin[5m]) >= 100)",
        lasts: Span::from_mins(1),
        severity: Severity::Critical,
        replaces: &["NodeMemoryHighUtilization", "NodeSystemSaturation"],
        summary: "{{ $labels.instance }}: nothing went on in {{ $value | humanizePercentage }} of the last two minutes, as all tasks \
                  waited for memory",
        meaning: "All tasks that had something to do waited for memory at once, for a fifth of the time: the host is \
                  thrashing, and a login may take minutes.",
        more: "The second sign is that of memory-stall. A full RAM by itself is how Linux works; this is what it \
               may lead to.",
    },
    HostAlert {
        name: "memory-runs-out",
        expr: "predict_linear(node_memory_MemAvailable_bytes[30m], 3600) <= 0 \
               and node_memory_MemAvailable_bytes <= node_memory_MemTotal_bytes * 0.15 \
               and node_memory_SwapFree_bytes <= node_memory_MemTotal_bytes * 0.1",
        lasts: Span::from_mins(10),
        severity: Severity::Warning,
        replaces: &["NodeMemoryHighUtilization"],
        summary: "{{ $labels.instance }}: available memory falls and would be gone within an hour, with hardly any swap left",
        meaning: "Less than 15 % of RAM is available, it has fallen for half an hour in a line that reaches zero \
                  within the next, and swap cannot take it.",
        more: "A host that uses 95 % for years, as a database server does, stays silent.",
    },
    HostAlert {
        name: "oom-kill",
        expr: "increase(node_vmstat_oom_kill[5m]) > 0",
        lasts: Span::ZERO,
        severity: Severity::Warning,
        replaces: &[],
        summary: "{{ $labels.instance }}: the kernel killed {{ $value | humanize }} processes within five minutes, as memory was short",
        meaning: "Of the host or of a cgroup: `memtide check` or the kernel's log says which, and why.",
        more: "No alert of the mixin has it.",
    },
];

const OF_MEMTIDE: [HostAlert; 4] = [
    HostAlert {
        name: "memtide-critical",
        expr: "memtide_finding{severity=\"critical\"} == 1",
        lasts: Span::from_mins(1),
        severity: Severity::Critical,
        replaces: &[],
        summary: "{{ $labels.instance }}: {{ $labels.id }} {{ with $labels.subject }}in {{ . }} {{ end }}is critical",
        meaning: "What `memtide check` finds, judged where the samples are: `memtide rules ID` explains it.",
        more: "",
    },
    HostAlert {
        name: "memtide-warning",
        expr: "memtide_finding{severity=\"warning\"} == 1",
        lasts: Span::from_mins(10),
        severity: Severity::Warning,
        replaces: &[],
        summary: "{{ $labels.instance }}: {{ $labels.id }} {{ with $labels.subject }}in {{ . }} {{ end }}for ten minutes",
        meaning: "The same, of what makes something slower or brings it nearer to an edge.",
        more: "",
    },
    HostAlert {
        name: "memtide-no-headroom",
        expr: "memtide_headroom_bytes{bound=\"likely\"} < 0",
        lasts: Span::from_mins(10),
        severity: Severity::Warning,
        replaces: &["NodeMemoryHighUtilization"],
        summary: "{{ $labels.instance }}: memory is short by {{ $value | humanize1024 }}B (`memtide headroom`)",
        meaning: "What is needed does not fit by the recording of the last hour, caches that are used included.",
        more: "",
    },
    HostAlert {
        name: "memtide-late",
        expr: "memtide_last_sample_age_seconds > 120",
        lasts: Span::from_mins(5),
        severity: Severity::Warning,
        replaces: &[],
        summary: "{{ $labels.instance }}: the last sample is {{ $value | humanizeDuration }} old",
        meaning: "The recorder has ended, hangs, or cannot write: `memtide record --status` says why.",
        more: "",
    },
];
