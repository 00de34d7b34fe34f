//! The answer of `top`: what is wrong at a moment, and who uses how much memory how fast.

use diagnose::Evidence;
use diagnose::activity::{Activity, GroupActivity, HostActivity, ProcessActivity};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use timeline::Track;
use timeline::signals::{
    MEM_AVAILABLE, MEM_TOTAL, PGSTEAL_DIRECT, PGSTEAL_KSWAPD, PSI_IO_SOME, PSI_MEMORY_SOME,
};
use units::Bytes;

use super::check::thin;
use super::time::wall;
use super::{Incident, Report, Severity, WhereReport};

/// Name and version of the contract of `top`.
pub const TOP_SCHEMA: &str = "memtide-top/1";

/// One frame of `top`: a moment of a source, and the minutes before it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TopReport {
    /// Name and version of this contract.
    #[schemars(extend("const" = "memtide-top/1"))]
    pub schema: &'static str,
    /// The moment; null where the source has no wall clock.
    pub at: Option<Timestamp>,
    /// The same, from the first sample on.
    pub at_s: f64,
    /// What is wrong at the moment, as `check` says it from the minutes before.
    pub check: Report,
    /// Where memory is at the moment; null where the source has no MemTotal.
    #[serde(rename = "where")]
    pub place: Option<WhereReport>,
    /// The host at the moment.
    pub now: HostActivity,
    /// Services, containers, and cgroups that have a limit or are of neither; the largest first.
    pub units: Vec<GroupActivity>,
    /// Processes with memory of their own, the largest first.
    pub processes: Vec<ProcessActivity>,
    /// The minutes before the moment.
    pub course: Course,
}

/// How memory and waits ran, evenly spaced in time, at most 240 values each; null where nothing was measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Course {
    /// When it begins; null where the source has no wall clock.
    pub from: Option<Timestamp>,
    /// When it ends.
    pub to: Option<Timestamp>,
    /// When it ends, from the first sample on: it begins there.
    pub to_s: f64,
    /// MemTotal at the last sample.
    #[serde(rename = "total_bytes")]
    pub total: Option<Bytes>,
    /// MemAvailable, bytes: the least within each step.
    pub available_bytes: Vec<Option<f64>>,
    /// The share of the time in which a task waited for memory: the largest within each step, as of the others.
    pub memory_wait: Vec<Option<f64>>,
    /// The share of the time in which a task waited for I/O.
    pub io_wait: Vec<Option<f64>>,
    /// Bytes taken back a second, by kswapd and by tasks that need memory.
    pub reclaimed_bytes_per_second: Vec<Option<f64>>,
    /// What was wrong, in order of time.
    pub incidents: Vec<Incident>,
}

impl TopReport {
    /// The frame of a source's last sample, with what `check` and `where` say of it.
    pub fn new(
        source: &timeline::Source,
        activity: Activity,
        check: Report,
        place: Option<WhereReport>,
    ) -> Self {
        Self {
            schema: TOP_SCHEMA,
            at: wall(&source.timeline, activity.at),
            at_s: activity.at.as_secs_f64(),
            course: Course::new(source, check.incidents.clone()),
            check,
            place,
            now: activity.host,
            units: activity.groups,
            processes: activity.processes,
        }
    }

    /// Returns the moment from the first sample of the whole source on, of which this may show a part.
    pub fn offset_s(&self) -> f64 {
        self.check.source.cut_at_s.unwrap_or_default() + self.at_s
    }
}

impl Incident {
    /// Whether it is one that a reader looks for on the time line: worth a warning, and no consequence of another.
    pub fn is_listed(&self) -> bool {
        self.severity > Severity::Info && self.root.is_none()
    }
}

impl Course {
    /// The course of a whole source, with what was wrong in it.
    pub fn new(source: &timeline::Source, incidents: Vec<Incident>) -> Self {
        let timeline = &source.timeline;
        let cx = Evidence::new(timeline, &source.facts);
        let values = |track: Option<Track<_>>| {
            track.map_or_else(Vec::new, |track: Track<units::Ratio>| {
                thin(timeline.times(), track.values())
            })
        };
        let available = timeline.gauge(MEM_AVAILABLE).map(|track| {
            let negative: Vec<_> =
                track.values().iter().map(|value| value.map(|bytes| -bytes)).collect();
            let least = thin(timeline.times(), &negative);
            least.into_iter().map(|value| value.map(|bytes| -bytes)).collect()
        });
        let reclaimed = [PGSTEAL_KSWAPD, PGSTEAL_DIRECT].map(|signal| cx.bytes_rate(signal).ok());
        let reclaimed = match reclaimed {
            [Some(kswapd), Some(direct)] => Some(kswapd.plus(&direct).cast()),
            [one, other] => one.or(other).map(Track::cast),
        };
        Self {
            from: wall(timeline, units::Span::ZERO),
            to: wall(timeline, timeline.duration()),
            to_s: timeline.duration().as_secs_f64(),
            total: timeline.last(MEM_TOTAL),
            available_bytes: available.unwrap_or_default(),
            memory_wait: values(cx.stall(PSI_MEMORY_SOME).ok()),
            io_wait: values(cx.stall(PSI_IO_SOME).ok()),
            reclaimed_bytes_per_second: values(reclaimed),
            incidents,
        }
    }
}
