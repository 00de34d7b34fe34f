//! A job in a recording: what its cgroup read and wrote, and what others lost meanwhile, from the samples of a recorder.
//!
//! A recording has sums, not the order in which pages were touched, so there is no curve.

use std::collections::{BTreeMap, BTreeSet};

use report::Screen;
use report::text::{Style, TextPage, piece};
use schemars::JsonSchema;
use serde::Serialize;
use timeline::cgroup::{GroupNames, is_within, unique_name};
use timeline::signals::{
    CGROUP_EVENTS_HIGH, CGROUP_EVENTS_MAX, CGROUP_FILE, CGROUP_REFAULT_FILE, CGROUP_SHMEM, PGPGIN,
    PGPGOUT, PROC_CANCELLED_WRITE_BYTES, PROC_RCHAR, PROC_READ_BYTES, PROC_WCHAR, PROC_WRITE_BYTES,
    REFAULT_FILE,
};
use timeline::{Counter, Entity, EntitySeries, Gauge, Signal, Source, Timeline};
use units::{Bytes, Count, PageSize, Pages, Span, Unit, WallClock};

use crate::harm::{JobHarm, own_limits};
use crate::observe::{GroupGrowth, JobIo, OtherGroup, OtherReader, evicted_by_host, lost};
use crate::screen::others;

/// The schema of the answer.
pub const RECORDED_JOB_SCHEMA: &str = "memtide-recorded-job/1";

/// The answer about a job in a recording.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RecordedJob {
    /// Always [`RECORDED_JOB_SCHEMA`] here.
    pub schema: String,
    /// The unit, container or cgroup.
    pub name: String,
    /// The path of its cgroup.
    pub cgroup: String,
    /// From its first sample to its last one, in seconds.
    pub wall_s: Span,
    /// The time of its first sample, in nanoseconds since 1970; `null` where the recording has no wall clock.
    pub began_unix_ns: Option<i64>,
    /// Its processes that were recorded with their I/O; those that lived for less than an interval are missing.
    pub processes: Count,
    /// What these read and wrote.
    pub io: JobIo,
    /// What the whole host read from block devices meanwhile.
    pub host_read_bytes: Option<Bytes>,
    /// What it wrote to them.
    pub host_written_bytes: Option<Bytes>,
    /// File pages that the cgroup itself read again after they had been evicted.
    pub own_reread_bytes: Bytes,
    /// The most of files that its cgroup had in the cache.
    pub cached_most_bytes: Option<Bytes>,
    /// What it had at its last sample, and left behind if it ended then.
    pub cached_last_bytes: Option<Bytes>,
    /// What others lost in all of the range, by cgroup.
    pub others: Vec<OtherGroup>,
    /// File pages of the whole host that were evicted in the range.
    pub evicted_bytes: Option<Bytes>,
    /// File pages that were read again in the range after an eviction, by any process.
    pub refaulted_bytes: Option<Bytes>,
}

impl RecordedJob {
    /// The answer about a cgroup of a source.
    pub fn of(source: &Source, cgroup: &str) -> Self {
        let timeline = &source.timeline;
        let page = source.facts.page_size.unwrap_or(PageSize::USUAL);
        let cx = Recorded::new(timeline, page);
        let is_own = |key: &str| key == cgroup || is_below(key, cgroup);
        let is_of_job = |process: &EntitySeries| {
            let service = process.group.as_str();
            !service.is_empty() && (service == unique_name(cgroup) || is_within(cgroup, service))
        };
        let mut readers: BTreeMap<String, Vec<OtherReader>> = BTreeMap::new();
        let (mut io, mut processes) = (JobIo::default(), 0);
        for process in timeline.entities(Entity::Process) {
            let grown = |signal| cx.grown(process, signal);
            let read_bytes = grown(PROC_READ_BYTES);
            if is_of_job(process) {
                processes += u64::from(timeline.last_of(process, PROC_READ_BYTES).is_some());
                io.read_bytes += read_bytes;
                io.write_bytes += grown(PROC_WRITE_BYTES);
                io.cancelled_bytes += grown(PROC_CANCELLED_WRITE_BYTES);
                io.rchar_bytes += grown(PROC_RCHAR);
                io.wchar_bytes += grown(PROC_WCHAR);
            } else if read_bytes > Bytes::ZERO {
                let name = process.label.clone();
                let pid = process.key.split('@').next().and_then(|pid| pid.parse().ok());
                let reader = OtherReader { name, pid: pid.unwrap_or_default(), read_bytes };
                readers.entry(process.group.clone()).or_default().push(reader);
            }
        }
        let groups = || timeline.entities(Entity::Cgroup);
        let growth = groups().map(|group| (group.key.clone(), cx.growth(group))).collect();
        let of_job: BTreeSet<String> =
            groups().map(|group| group.key.clone()).filter(|key| is_own(key)).collect();
        let by_key = groups().filter_map(|group| {
            Some((group.key.clone(), readers.remove(unique_name(&group.key))?))
        });
        let by_key: BTreeMap<String, Vec<OtherReader>> = by_key.collect();
        let evicted_bytes = evicted_by_host(|signal| cx.host_pages(signal));
        let mut others = lost(&growth, (source.facts.cgroup_mode, evicted_bytes), &of_job, by_key);
        others.retain(|group| !group.has_job);
        let own = timeline.entity(Entity::Cgroup, cgroup);
        let files: Vec<Bytes> = own
            .map(|own| {
                let readings = timeline.readings_of(own, CGROUP_FILE);
                readings
                    .map(|(at, file)| {
                        let shmem = timeline.latest_of(own, CGROUP_SHMEM, at).unwrap_or_default();
                        file.saturating_sub(shmem)
                    })
                    .collect()
            })
            .unwrap_or_default();
        let (first, last) = own.and_then(EntitySeries::samples).unwrap_or_default();
        let time = |at: usize| timeline.stamp(at).map(|stamp| stamp.awake_or_boot());
        Self {
            schema: RECORDED_JOB_SCHEMA.to_owned(),
            name: GroupNames::default().called(cgroup).into_owned(),
            cgroup: cgroup.to_owned(),
            wall_s: time(last)
                .zip(time(first))
                .map(|(last, first)| last - first)
                .unwrap_or_default(),
            began_unix_ns: timeline
                .stamp(first)
                .and_then(|stamp| stamp.wall)
                .map(WallClock::unix_nanos),
            processes: Count::new(processes),
            io,
            host_read_bytes: cx.host(PGPGIN),
            host_written_bytes: cx.host(PGPGOUT),
            own_reread_bytes: own
                .map(|own| cx.grown(own, CGROUP_REFAULT_FILE).to_bytes(page))
                .unwrap_or_default(),
            cached_most_bytes: files.iter().copied().max(),
            cached_last_bytes: files.last().copied(),
            others,
            evicted_bytes,
            refaulted_bytes: cx.host_pages(REFAULT_FILE),
        }
    }

    /// The sentences of the answer, the one about harm first.
    fn harm(&self) -> String {
        let harm = JobHarm {
            others: &self.others,
            evicted: self.evicted_bytes,
            refaulted: self.refaulted_bytes,
            touched: self.io.read_bytes + self.io.write_bytes,
            available: None,
        };
        let bytes = self.cached_last_bytes.filter(|bytes| *bytes >= Bytes::from_mib(1));
        let left = bytes.map_or_else(String::new, |left| {
            format!(" {left} of files were in the cache for its cgroup at its last sample.")
        });
        format!("{}{left}", harm.pushed_out())
    }
}

/// Whether a cgroup lies below another.
fn is_below(key: &str, above: &str) -> bool {
    key.strip_prefix(above.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
}

/// The samples of a range.
struct Recorded<'a> {
    timeline: &'a Timeline,
    page: PageSize,
    /// At which sample entities of each kind were read first.
    first_of_groups: Option<usize>,
    first_of_processes: Option<usize>,
}

impl<'a> Recorded<'a> {
    fn new(timeline: &'a Timeline, page: PageSize) -> Self {
        let first = |kind| {
            timeline.entities(kind).filter_map(|one: &EntitySeries| Some(one.samples()?.0)).min()
        };
        Self {
            timeline,
            page,
            first_of_groups: first(Entity::Cgroup),
            first_of_processes: first(Entity::Process),
        }
    }

    /// How much a counter of an entity grew in the range; one that appears meanwhile began at zero.
    fn grown<U: Unit>(&self, series: &EntitySeries, signal: Signal<Counter<U>>) -> U
    where
        Counter<U>: timeline::Kind<Unit = U>,
    {
        let readings =
            self.timeline.readings_of(series, signal).map(|(at, value)| (at, value.raw()));
        let first = match series.entity {
            Entity::Process => self.first_of_processes,
            _ => self.first_of_groups,
        };
        U::from_raw(grown(readings, first))
    }

    fn host<U: Unit>(&self, signal: Signal<Counter<U>>) -> Option<U>
    where
        Counter<U>: timeline::Kind<Unit = U>,
    {
        let at = |at: usize| Some((at, self.timeline.at(signal, at)?.raw()));
        let mut readings = (0..self.timeline.len()).filter_map(at).peekable();
        let first = readings.peek()?.0;
        Some(U::from_raw(grown(readings, Some(first))))
    }

    fn host_pages(&self, signal: Signal<Counter<Pages>>) -> Option<Bytes> {
        self.host(signal).map(|pages| pages.to_bytes(self.page))
    }

    fn growth(&self, group: &EntitySeries) -> GroupGrowth {
        let hits = [CGROUP_EVENTS_MAX, CGROUP_EVENTS_HIGH].map(|signal| self.grown(group, signal));
        let ends = |signal: Signal<Gauge<Bytes>>| {
            let mut readings =
                self.timeline.readings_of(group, signal).map(|(_, bytes)| bytes.get());
            let first = readings.next().unwrap_or_default();
            (first, readings.last().unwrap_or(first))
        };
        let (file, shmem) = (ends(CGROUP_FILE), ends(CGROUP_SHMEM));
        GroupGrowth {
            refaulted: self.grown(group, CGROUP_REFAULT_FILE).to_bytes(self.page).get(),
            limit_hits: hits.into_iter().map(Count::get).sum(),
            cached_before: file.0.saturating_sub(shmem.0),
            cached_after: file.1.saturating_sub(shmem.1),
        }
    }
}

/// The sum of all steps up; a counter that falls has begun anew.
fn grown(readings: impl Iterator<Item = (usize, u64)>, first_sample: Option<usize>) -> u64 {
    let mut before: Option<u64> = None;
    let mut sum = 0_u64;
    for (at, value) in readings {
        let step = match before {
            Some(before) if value >= before => value - before,
            None if Some(at) == first_sample => 0,
            _ => value,
        };
        sum = sum.saturating_add(step);
        before = Some(value);
    }
    sum
}

/// Returns the screen of a job in a recording.
pub fn recorded_job_screen(job: &RecordedJob, screen: &Screen) -> String {
    let mut page = TextPage::new(screen);
    page.hanging(&[], 0, Style::Strong, &job.harm());
    page.gap();
    let io = job.io;
    let processes = job.processes.named("process", "processes");
    let what = format!(
        "{}: {} of I/O in {} ({} read, {} made dirty) by {processes} that the recorder saw.",
        job.name,
        io.net(),
        job.wall_s,
        io.read_bytes,
        io.write_bytes
    );
    page.hanging(&[], 0, Style::Strong, &what);
    others(&mut page, &job.others, usize::MAX);
    page.gap();
    let mut trust = Vec::new();
    if let Some((read, written)) = job.host_read_bytes.zip(job.host_written_bytes) {
        trust.push(format!(
            "The whole host read {read} from disks and wrote {written} in this range."
        ));
    }
    if job.own_reread_bytes >= Bytes::from_mib(1) {
        trust.push(format!(
            "It read {} of its own files again after they had been evicted.",
            job.own_reread_bytes
        ));
    }
    if let Some(most) = job.cached_most_bytes {
        trust.push(format!("Its cgroup had at most {most} of files in the cache."));
    }
    trust.extend(own_limits(&job.others));
    trust.push(
        "There is no curve: a recording has sums, not which pages were touched in which order. \
         `memtide job --unit UNIT` sees that while it runs."
            .to_owned(),
    );
    for says in trust {
        page.hanging(&[piece(Style::Faint, "- ")], 2, Style::Faint, &says);
    }
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_appears_in_the_range_began_at_zero_and_one_that_falls_began_anew() {
        let all = |readings: &[(usize, u64)]| grown(readings.iter().copied(), Some(3));
        assert_eq!(all(&[(3, 100), (4, 130)]), 30);
        assert_eq!(all(&[(5, 100), (6, 130)]), 130);
        assert_eq!(all(&[(3, 100), (4, 20), (5, 25)]), 25);
        assert_eq!(all(&[]), 0);
    }
}
