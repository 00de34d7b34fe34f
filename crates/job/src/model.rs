//! The answer as JSON: `memtide-job/1`.

use schemars::JsonSchema;
use serde::Serialize;
use units::{Bytes, BytesPerSecond, Count, Quantity, Ratio, Span};

use crate::curve::{CurvePoint, InTurns, JobCurve, JobModel, WriteConditions};
use crate::observe::{JobEnd, JobIo, LeftCached, Observation, OtherGroup, SeenStep, TouchSource};
use crate::plan::{JobPlan, JobPlanRun};
use crate::streams::streams;
use crate::touches::Touches;

/// The schema of the answer.
pub const JOB_SCHEMA: &str = "memtide-job/1";

/// Files that are named.
const FILES_MAX: usize = 100;

/// The least cache that is advised: read-ahead and what waits to be written need some.
const CACHE_MIN: Bytes = Bytes::from_mib(32);

/// What is this close to the I/O with all the cache of now costs nothing.
const SAME: f64 = 1.02;

/// The kernel's own memory for a cache, and the error of the model, in an advised limit.
const MARGIN: Ratio = Ratio::new(1.05);

/// The answer about a job.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct JobReport {
    /// Always [`JOB_SCHEMA`] here.
    pub schema: String,
    /// The command, or the name of the plan.
    pub name: String,
    /// What was seen; `None` for a plan.
    pub seen: Option<JobSeen>,
    /// The speed of the disk, where it is known.
    pub disk_bytes_per_s: Option<BytesPerSecond>,
    /// The job, and other ways to do the same.
    pub variants: Vec<JobVariant>,
}

/// One way to do the job.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct JobVariant {
    /// The job's name, or that of another way.
    pub name: String,
    /// Where it comes from.
    pub origin: VariantOrigin,
    /// I/O over the size of the cache.
    pub curve: JobCurve,
    /// I/O and time at sizes of interest.
    pub rows: Vec<JobRow>,
    /// Programs by name, in the order in which they were met.
    pub steps: Vec<SeenStep>,
    /// Its files, those with the most I/O first; a hundred at most.
    pub files: Vec<JobFile>,
}

/// Where a way to do the job comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VariantOrigin {
    /// It is the job that was asked about.
    Job,
    /// It is in the plan.
    Plan,
    /// The same without a file that is written, read once and removed.
    WithoutFile,
}

/// I/O and time with a cache of one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct JobRow {
    /// I/O by the model.
    #[serde(flatten)]
    pub point: CurvePoint,
    /// How long the job takes; `None` where the speed of the disk is not known.
    pub seconds: Option<Span>,
}

/// A file of a job.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct JobFile {
    /// Its path, or its inode.
    pub name: String,
    /// The end of what was touched.
    pub size_bytes: Bytes,
    /// Read, each time counted, from the cache or from the disk.
    pub read_bytes: Bytes,
    /// Made dirty, each time counted.
    pub written_bytes: Bytes,
    /// Programs that read it.
    pub readers: Vec<String>,
    /// Programs that wrote it.
    pub writers: Vec<String>,
    /// From its first write to its removal; `None` where it was not removed.
    pub lived_seconds: Option<Span>,
}

impl JobFile {
    /// How many times over it was read.
    pub fn times_read(&self) -> f64 {
        self.read_bytes.ratio_of(self.size_bytes).map_or(0.0, Ratio::get)
    }
}

/// What was seen of a job.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct JobSeen {
    /// Where the order of touches comes from.
    pub touch_source: TouchSource,
    /// Why it is not from trace points, where those were wanted.
    pub no_trace: Option<String>,
    /// The share of what it asked for of which the place in a file was seen.
    pub coverage: Ratio,
    /// Events that the kernel dropped.
    pub lost_events: Count,
    /// The kernel's account of the whole job.
    pub io: JobIo,
    /// Read from disks by processes that are not in that account.
    pub uncounted_bytes: Bytes,
    /// Processes with an account that could not be read.
    pub unreadable_processes: Count,
    /// Processes of the job that still run.
    pub still_running: Count,
    /// Touched when it was in the cache already; `None` where that was not seen.
    pub found_cached_bytes: Option<Bytes>,
    /// The most memory of their own that its processes had together.
    pub own_memory_bytes: Bytes,
    /// How much cache it could have had.
    pub cache_bytes: Option<Bytes>,
    /// What bounds that.
    pub cache_bound: Option<String>,
    /// How long it took.
    pub wall_s: Span,
    /// CPU time of its ended processes.
    pub cpu_s: Span,
    /// How it ended.
    pub end: JobEnd,
    /// File pages of the whole host that were evicted meanwhile.
    pub evicted_bytes: Option<Bytes>,
    /// File pages that were read again meanwhile after an eviction, by any process.
    pub refaulted_bytes: Option<Bytes>,
    /// What others lost meanwhile, by cgroup; those who read the most again first, a hundred at most.
    pub others: Vec<OtherGroup>,
    /// Its files that were in the cache when it had ended.
    pub left_cached: LeftCached,
    /// Whether it ran already when memtide began to watch it.
    pub is_attached: bool,
    /// Memory of the host that was available at the start.
    pub available_bytes: Option<Bytes>,
    /// Files that it read in turns, one at least.
    pub files_at_once: Count,
    /// What the kernel reads ahead in all of them: with less cache that is evicted before it is used, and read again.
    pub read_ahead_bytes: Option<Bytes>,
    /// Whether the kernel evicts by generations (MGLRU), which the model does not have.
    pub has_generations: bool,
    /// The limit with which its I/O is the same as now.
    pub limit: JobLimit,
}

/// A limit of memory for a job: `MemoryHigh=` of systemd, `memory.high`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct JobLimit {
    /// The limit: memory of its own, and this much cache, with a margin.
    pub memory_high_bytes: Bytes,
    /// The smallest cache with which the I/O is as low as now.
    pub cache_bytes: Bytes,
}

impl JobReport {
    /// The way that was asked about.
    pub fn job(&self) -> &JobVariant {
        // Every report is made with it.
        &self.variants[0]
    }

    /// The answer about a plan. Other sizes of the cache and another disk may take the place of the plan's.
    pub fn of_plan(plan: &JobPlan, caches: &[Bytes]) -> Self {
        let caches = if caches.is_empty() { &plan.caches[..] } else { caches };
        let runs = plan.run();
        let mut variants = Vec::new();
        for (at, run) in runs.iter().enumerate() {
            let origin = if at == 0 { VariantOrigin::Job } else { VariantOrigin::Plan };
            let model = JobModel::of(&run.touches, run.conditions);
            let time = |cache| run.time(&model, cache);
            let steps = planned_steps(run, &model);
            variants.push(variant(
                (&run.name, origin),
                (&model, &run.touches),
                steps,
                caches,
                &time,
            ));
        }
        let best = variants.iter().map(|one| one.curve.net_bytes_most).min();
        if let (Some(run), Some(best)) = (runs.first(), best) {
            let piped = without_file(&run.touches, run.conditions, caches);
            // The plan may have it already.
            variants.extend(piped.filter(|piped| piped.curve.net_bytes_most < best));
        }
        Self {
            schema: JOB_SCHEMA.to_owned(),
            name: runs.first().map(|run| run.name.clone()).unwrap_or_default(),
            seen: None,
            disk_bytes_per_s: plan.disk,
            variants,
        }
    }

    /// The answer about a job that was observed.
    pub fn of_observation(
        name: &str,
        seen: &Observation,
        caches: &[Bytes],
        disk: Option<BytesPerSecond>,
    ) -> Self {
        let room = seen.room.as_ref().map(|(room, _)| *room);
        let conditions = conditions(seen);
        let streams = streams(&seen.touches);
        let read_ahead = seen.host.read_ahead.map(|ahead| ahead.times(streams.files as u64));
        let in_turns = InTurns {
            read: streams.read,
            read_ahead: read_ahead.unwrap_or_default(),
            read_ahead_of_one: seen.host.read_ahead.unwrap_or_default(),
        };
        let model = JobModel::of(&seen.touches, conditions)
            .with_written(seen.io.write_bytes)
            .with_own(seen.own_memory, in_turns);
        let now = room.unwrap_or_else(|| model.footprint());
        let at_now = model.at(now).net();
        let time = |cache: Bytes| {
            let change = model.at(cache).net().as_f64() - at_now.as_f64();
            let wall = seen.wall.as_secs_f64() + change / disk?.get();
            Some(Span::from_secs_f64(wall.max(seen.cpu.as_secs_f64().min(seen.wall.as_secs_f64()))))
        };
        let mut sizes = caches.to_vec();
        sizes.extend(room.filter(|_| caches.is_empty()));
        let ways = (&model, &seen.touches);
        let mut job = variant((name, VariantOrigin::Job), ways, seen.steps.clone(), &sizes, &time);
        job.curve.sampling_error = model.sampling_error(
            &seen.touches,
            &job.curve.points.iter().map(|point| point.cache_bytes).collect::<Vec<_>>(),
        );
        let least = CACHE_MIN.max(read_ahead.unwrap_or_default().min(now));
        let limit = limit(&job.curve, (at_now.as_f64(), least), now, seen.own_memory);
        let sizes: Vec<Bytes> = job.rows.iter().map(|row| row.point.cache_bytes).collect();
        let piped = without_file(&seen.touches, conditions, &sizes);
        let least = job.curve.net_bytes_least;
        let variants =
            [job].into_iter().chain(piped.filter(|one| one.curve.net_bytes_least <= least));
        Self {
            schema: JOB_SCHEMA.to_owned(),
            name: name.to_owned(),
            disk_bytes_per_s: disk,
            variants: variants.collect(),
            seen: Some(JobSeen {
                touch_source: seen.source,
                no_trace: seen.no_trace.as_ref().map(ToString::to_string),
                coverage: seen.coverage,
                lost_events: seen.lost_events,
                io: seen.io,
                uncounted_bytes: seen.uncounted,
                unreadable_processes: seen.unreadable,
                still_running: seen.still_running,
                found_cached_bytes: seen.found_cached,
                own_memory_bytes: seen.own_memory,
                cache_bytes: room,
                cache_bound: seen.room.as_ref().map(|(_, place)| place.clone()),
                wall_s: seen.wall,
                cpu_s: seen.cpu,
                end: seen.end,
                evicted_bytes: seen.host.evicted,
                refaulted_bytes: seen.host.refaulted,
                others: seen.others.clone(),
                left_cached: seen.left,
                is_attached: seen.is_attached,
                available_bytes: seen.host.available,
                files_at_once: Count::new(streams.files as u64),
                has_generations: seen.host.has_generations,
                read_ahead_bytes: read_ahead,
                limit,
            }),
        }
    }
}

/// The conditions of this host; and where all of the job fitted, what was cancelled is all that can be.
fn conditions(seen: &Observation) -> WriteConditions {
    let default = WriteConditions {
        dirty_background: seen.host.dirty_background,
        ..WriteConditions::default()
    };
    let model = JobModel::of(&seen.touches, default);
    let had_room = seen.room.as_ref().is_some_and(|(room, _)| *room > model.footprint());
    let had_room = had_room && seen.host.evicted == Some(Bytes::ZERO);
    WriteConditions { cancelled_max: had_room.then_some(seen.io.cancelled_bytes), ..default }
}

/// Below it a program's own pages and the kernel's take all. An engineering choice.
const LIMIT_MIN: Bytes = Bytes::from_mib(32);

fn limit(curve: &JobCurve, (net, least): (f64, Bytes), now: Bytes, own: Bytes) -> JobLimit {
    let is_same = |point: &&CurvePoint| point.net().as_f64() <= net * SAME;
    // More than all that it touched is of no use to it.
    let all = now.min(curve.footprint_bytes);
    let cache = curve.points.iter().find(is_same).map_or(all, |point| point.cache_bytes);
    let cache = cache.max(least);
    let high = (own + cache.share(MARGIN)).rounded_up().max(LIMIT_MIN);
    JobLimit { memory_high_bytes: high, cache_bytes: cache }
}

fn planned_steps(run: &JobPlanRun, model: &JobModel) -> Vec<SeenStep> {
    let from_disk = model.read_by_step(Bytes::ZERO, run.steps.len());
    let step = |(step, read): (&crate::PlannedStep, Bytes)| SeenStep {
        name: step.name.clone(),
        processes: Count::new(1),
        asked_bytes: step.read,
        read_bytes: read,
        written_bytes: step.written,
    };
    run.steps.iter().zip(from_disk).map(step).collect()
}

fn variant(
    (name, origin): (&str, VariantOrigin),
    (model, touches): (&JobModel, &Touches),
    steps: Vec<SeenStep>,
    sizes: &[Bytes],
    time: &dyn Fn(Bytes) -> Option<Span>,
) -> JobVariant {
    let curve = model.curve(sizes);
    let mut rows: Vec<Bytes> = sizes.to_vec();
    if origin == VariantOrigin::Job && rows.len() < 2 {
        // Without sizes that were asked for: where something changes.
        rows.extend(curve.cliffs.iter().flat_map(|cliff| [cliff.from_bytes, cliff.to_bytes]));
        rows.extend(curve.cliffs.first().map(|first| Bytes::new(first.from_bytes.get() / 2)));
    }
    rows.sort_unstable();
    rows.dedup();
    let row = |cache: Bytes| JobRow { point: model.at(cache), seconds: time(cache) };
    JobVariant {
        name: name.to_owned(),
        origin,
        rows: rows.into_iter().map(row).collect(),
        files: files(touches, &steps),
        curve,
        steps,
    }
}

/// The job without the largest file that one step writes, another reads once, and that is removed: a pipe in its place.
fn without_file(
    touches: &Touches,
    conditions: WriteConditions,
    sizes: &[Bytes],
) -> Option<JobVariant> {
    /// A smaller one is not worth a change: a share of all that is touched.
    const SHARE_MIN: Ratio = Ratio::new(0.1);
    let is_between = |(_, row): &(usize, &crate::TouchedFile)| {
        let written_by = |step| row.writers.iter().any(|(writer, _)| *writer == step);
        row.removed.is_some()
            && row.written > 0
            && row.readers.iter().any(|(step, _)| !written_by(*step))
    };
    let files = touches.files().iter().enumerate().filter(is_between);
    let (number, file) = files.max_by_key(|(_, row)| row.written)?;
    let size = touches.unit().times(file.written);
    if size < (touches.read() + touches.written()).share(SHARE_MIN) {
        return None;
    }
    let name = match file.name.as_deref().and_then(|name| name.rsplit('/').next()) {
        Some(name) => format!("without {name}"),
        None => "without the file between".to_owned(),
    };
    let left = touches.without(&[u32::try_from(number).ok()?]);
    let model = JobModel::of(&left, conditions);
    let names = Vec::new();
    Some(variant((&name, VariantOrigin::WithoutFile), (&model, &left), names, sizes, &|_| None))
}

fn files(touches: &Touches, steps: &[SeenStep]) -> Vec<JobFile> {
    let names = |of: &[(u16, u64)]| -> Vec<String> {
        let name = |(step, _): &(u16, u64)| Some(steps.get(usize::from(*step))?.name.clone());
        of.iter().filter_map(name).collect()
    };
    let mut rows: Vec<&crate::TouchedFile> =
        touches.files().iter().filter(|row| row.read + row.written > 0).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.read + row.written));
    let size = |pages: u64| touches.unit().times(pages);
    let file = |row: &&crate::TouchedFile| JobFile {
        name: row.name.clone().unwrap_or_else(|| match row.number.0 {
            u64::MAX => "not seen: short-lived or random reads".to_owned(),
            _ => format!("inode {}", row.number.1),
        }),
        size_bytes: size(u64::from(row.end)),
        read_bytes: size(row.read),
        written_bytes: size(row.written),
        readers: names(&row.readers),
        writers: names(&row.writers),
        lived_seconds: row.removed.zip(row.first_written).map(|(end, begin)| end - begin),
    };
    rows.iter().take(FILES_MAX).map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_only_between_two_steps_can_be_a_pipe() {
        let text = include_str!("../../../docs/examples/backup.toml");
        let without = text.split("# The same in one step").next().unwrap();
        let plan = JobPlan::read(without, "backup").unwrap();
        let report = JobReport::of_plan(&plan, &[]);
        let found: Vec<&str> = report.variants.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(found, ["tar, then gzip", "without all.tar"]);
        assert_eq!(report.variants[1].curve.net_bytes_most, Bytes::from_gib(11));
        let shipped = JobReport::of_plan(&JobPlan::read(text, "backup").unwrap(), &[]);
        assert_eq!(shipped.variants.len(), 2, "the plan has it itself");
    }
}
