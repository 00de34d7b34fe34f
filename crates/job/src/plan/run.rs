//! A plan, carried out on paper: its touches in order, and its time with a cache of each size.

use stats::SplitMix64;
use units::{Bytes, BytesPerSecond, Quantity, Span};

use crate::curve::{JobModel, WriteConditions};
use crate::plan::{JobPlan, PlanVariant, StepPlan};
use crate::touches::{TouchKind, Touches};

/// A plan is run in about so many pieces: a thousandth of a percent of it is a piece.
const PIECES_MAX: u64 = 1 << 16;

/// The smallest piece.
const PIECE_MIN: u64 = 4096;

/// A step of a plan that was run.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedStep {
    /// Its name in the plan.
    pub name: String,
    /// What it asks to read, each time counted.
    pub read: Bytes,
    /// What it writes.
    pub written: Bytes,
    /// What its computing takes at least.
    pub cpu: Span,
    /// It runs at the same time as the step before it.
    pub is_beside: bool,
}

/// A variant of a plan that was run.
#[derive(Debug)]
pub struct JobPlanRun {
    /// Its name in the plan.
    pub name: String,
    /// Its steps in order.
    pub steps: Vec<PlannedStep>,
    /// What they touched.
    pub touches: Touches,
    /// When what they wrote must be written.
    pub conditions: WriteConditions,
    disk: Option<BytesPerSecond>,
}

impl JobPlanRun {
    /// How long it takes with a cache of this size: steps one after another, each as long as its I/O or its computing,
    /// whichever is longer. `None` where the speed of the disk is not known.
    pub fn time(&self, model: &JobModel, cache: Bytes) -> Option<Span> {
        let disk = self.disk?;
        let reads = model.read_by_step(cache, self.steps.len());
        let cancelled = model.cancelled(cache).as_f64();
        let written: Bytes = self.steps.iter().map(|step| step.written).sum();
        // What is never written belongs to the steps in proportion to what they write.
        let really = 1.0 - cancelled / written.as_f64().max(1.0);
        let mut total = Span::ZERO;
        let (mut bytes, mut cpu) = (0.0, Span::ZERO);
        for (step, read) in self.steps.iter().zip(reads) {
            if !step.is_beside {
                total = total.plus(stage(bytes, cpu, disk));
                (bytes, cpu) = (0.0, Span::ZERO);
            }
            bytes += read.as_f64() + step.written.as_f64() * really;
            cpu = cpu.max(step.cpu);
        }
        Some(total.plus(stage(bytes, cpu, disk)))
    }
}

fn stage(bytes: f64, cpu: Span, disk: BytesPerSecond) -> Span {
    Span::from_secs_f64(bytes / disk.get()).max(cpu)
}

/// One piece that a step touches.
type PieceTouch = (TouchKind, usize, u32);

pub(super) fn run(plan: &JobPlan, variant: &PlanVariant) -> JobPlanRun {
    let steps = planned_steps(variant);
    let total: Bytes = steps.iter().map(|step| step.read + step.written).sum();
    let unit = (total.get() / PIECES_MAX).max(PIECE_MIN).next_power_of_two();
    let mut touches = Touches::of_unit(Bytes::new(unit));
    for (name, _) in &plan.files {
        let next = touches.files().len() as u64;
        let file = touches.file((0, next));
        if let Some(row) = touches.file_mut(file) {
            row.name = Some(name.clone());
        }
    }
    let mut clock =
        PlanClock { now: Span::ZERO, disk: plan.disk, was_read: vec![false; plan.files.len()] };
    let mut chance = SplitMix64::new(1);
    let mut begin = 0;
    while begin < variant.steps.len() {
        let beside = variant.steps[begin + 1..].iter().take_while(|step| step.is_beside).count();
        let stage = begin..begin + 1 + beside;
        let end = clock.end(&variant.steps[stage.clone()], &steps[stage.clone()]);
        let lists: Vec<(u16, Vec<PieceTouch>)> = stage
            .clone()
            .map(|at| {
                let pieces = pieces(&variant.steps[at], plan, unit, &mut chance);
                (u16::try_from(at).unwrap_or(u16::MAX), pieces)
            })
            .collect();
        together(&lists, &mut |share, step, (kind, file, piece)| {
            let at = clock.now.plus((end - clock.now).times(share));
            let file = u32::try_from(file).unwrap_or(u32::MAX);
            touches.touch(kind, (file, step), (piece, 1), at);
        });
        clock.now = end;
        for file in variant.steps[stage.clone()].iter().flat_map(|step| &step.removes) {
            touches.remove(u32::try_from(*file).unwrap_or(u32::MAX), 0, end);
        }
        begin = stage.end;
    }
    let default = WriteConditions::default();
    JobPlanRun {
        name: variant.name.clone(),
        steps,
        touches,
        conditions: WriteConditions {
            dirty_background: plan.dirty_background,
            dirty_expire: plan.dirty_expire.unwrap_or(default.dirty_expire),
            // Without the speed of the disk, how long a file lives is not known.
            cancelled_max: plan.disk.is_none().then_some(Bytes::ZERO),
        },
        disk: plan.disk,
    }
}

fn planned_steps(variant: &PlanVariant) -> Vec<PlannedStep> {
    let mut fed = Bytes::ZERO;
    let mut steps = Vec::new();
    for step in &variant.steps {
        let read: Bytes = step.reads.iter().map(|one| one.bytes.times(u64::from(one.times))).sum();
        let written: Bytes = step.writes.iter().map(|(_, bytes)| *bytes).sum();
        let input = read + if step.is_fed { fed } else { Bytes::ZERO };
        let worked = if input == Bytes::ZERO { written } else { input };
        let cpu = step.cpu.map_or(0.0, |rate| worked.as_f64() / rate.get());
        fed = input;
        steps.push(PlannedStep {
            name: step.name.clone(),
            read,
            written,
            cpu: Span::from_secs_f64(cpu),
            is_beside: step.is_beside,
        });
    }
    steps
}

/// The shortest time that the job can take: what a file lives at least, whatever the cache.
struct PlanClock {
    now: Span,
    disk: Option<BytesPerSecond>,
    was_read: Vec<bool>,
}

impl PlanClock {
    /// When a stage ends: files that were never read or written before come from the disk, all else from the cache.
    fn end(&mut self, steps: &[StepPlan], run: &[PlannedStep]) -> Span {
        let mut bytes = 0.0;
        for step in steps {
            for read in &step.reads {
                if !std::mem::replace(&mut self.was_read[read.file], true) {
                    bytes += read.bytes.as_f64();
                }
            }
            for (file, _) in &step.writes {
                self.was_read[*file] = true;
            }
        }
        let cpu = run.iter().map(|step| step.cpu).max().unwrap_or_default();
        match self.disk {
            Some(disk) => self.now.plus(stage(bytes, cpu, disk)),
            None => self.now.plus(cpu),
        }
    }
}

/// What a step touches in order: it reads its files one after another and writes in proportion.
fn pieces(step: &StepPlan, plan: &JobPlan, unit: u64, chance: &mut SplitMix64) -> Vec<PieceTouch> {
    let count = |bytes: Bytes| u32::try_from(bytes.get().div_ceil(unit)).unwrap_or(u32::MAX);
    let mut reads = Vec::new();
    for read in &step.reads {
        let of_file = u64::from(count(plan.files[read.file].1).max(1));
        for _ in 0..read.times {
            reads.extend((0..count(read.bytes)).map(|piece| {
                let anywhere = u32::try_from(chance.next_u64() % of_file).unwrap_or(0);
                (TouchKind::Read, read.file, if read.is_random { anywhere } else { piece })
            }));
        }
    }
    let writes = step.writes.iter().flat_map(|(file, bytes)| {
        (0..count(*bytes)).map(|piece| (TouchKind::Written, *file, piece))
    });
    let mut all = Vec::new();
    together(&[(0, reads), (0, writes.collect())], &mut |_, _, touch| all.push(touch));
    all
}

/// Takes lists in order and all at the same time, each at its own pace, so that all end together.
fn together(lists: &[(u16, Vec<PieceTouch>)], each: &mut dyn FnMut(f64, u16, PieceTouch)) {
    let total: usize = lists.iter().map(|(_, list)| list.len()).sum();
    let mut taken = vec![0; lists.len()];
    for done in 0..total {
        // The list that is furthest behind; of equals the first.
        let behind = |at: &usize| {
            let len = lists[*at].1.len();
            (taken[*at] < len).then(|| (taken[*at] as f64 + 1.0) / len as f64)
        };
        let next = (0..lists.len()).filter_map(|at| Some((at, behind(&at)?)));
        let Some((next, _)) = next.min_by(|one, other| one.1.total_cmp(&other.1)) else { return };
        let (step, list) = &lists[next];
        each(done as f64 / total as f64, *step, list[taken[next]]);
        taken[next] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = include_str!("../../../../docs/examples/backup.toml");

    fn gib(bytes: Bytes) -> f64 {
        (bytes.as_f64() / (1 << 30) as f64 * 10.0).round() / 10.0
    }

    /// The backup of the article: 31 GB in 317 s, as one step 11 GB in 113 s.
    #[test]
    fn the_example_has_the_figures_of_the_article() {
        let plan = JobPlan::read(EXAMPLE, "backup").unwrap();
        let runs = plan.run();
        assert_eq!(runs.len(), 2);
        let models: Vec<JobModel> =
            runs.iter().map(|run| JobModel::of(&run.touches, run.conditions)).collect();
        let row = |run: usize, mib: u64| {
            let cache = Bytes::from_mib(mib);
            let time = runs[run].time(&models[run], cache).unwrap().as_secs_f64().round();
            (gib(models[run].at(cache).net()), time)
        };
        for (mib, expected) in [
            (200, (31.0, 317.0)),
            (11 * 1024, (31.0, 317.0)),
            (12 * 1024, (29.9, 306.0)),
            (15 * 1024 + 512, (26.0, 266.0)),
            (18 * 1024, (23.2, 238.0)),
            (20 * 1024, (21.0, 215.0)),
            (100 * 1024, (21.0, 215.0)),
        ] {
            let (net, seconds) = row(0, mib);
            assert!((net - expected.0).abs() <= 0.1, "{mib} MiB: {net} GiB");
            assert!((seconds - expected.1).abs() <= 1.0, "{mib} MiB: {seconds} s");
        }
        for mib in [1, 200, 1 << 20] {
            assert_eq!(row(1, mib), (11.0, 113.0));
        }
    }

    /// Scaled to a hundredth on a fast disk the tar file is never written where all fits: measured 329, 224 and 119 MB.
    #[test]
    fn a_small_fast_backup_does_not_write_what_it_removes() {
        let text = "disk = \"1000MB/s\"\ndirty_background = \"2300MB\"\n\
            [[file]]\nname = \"logs\"\nsize = \"105MB\"\n\
            [[step]]\nread = [\"logs\"]\nwrite = [\"tar:105MB\"]\n\
            [[step]]\nread = [\"tar\"]\nwrite = [\"gz:14MB\"]\nremoves = [\"tar\"]\n";
        let plan = JobPlan::read(text, "backup").unwrap();
        let run = &plan.run()[0];
        let model = JobModel::of(&run.touches, run.conditions);
        let megabytes =
            |cache: u64| (model.at(Bytes::new(cache * 1_000_000)).net().as_f64() / 1e6).round();
        assert_eq!([24, 100, 220, 226].map(megabytes), [329.0, 329.0, 224.0, 119.0]);
    }

    #[test]
    fn steps_of_a_pipe_run_at_the_same_time() {
        let text = "disk = \"100M/s\"\n[[file]]\nname = \"logs\"\nsize = \"10G\"\n\
            [[step]]\nname = \"tar\"\nread = [\"logs\"]\npipe_to = \"gzip\"\n\
            [[step]]\nname = \"gzip\"\nwrite = [\"gz:1G\"]\ncpu = \"50M/s\"\n";
        let plan = JobPlan::read(text, "backup").unwrap();
        let run = &plan.run()[0];
        let model = JobModel::of(&run.touches, run.conditions);
        // Computing 10 GiB at 50 MiB/s is longer than reading and writing 11 GiB at 100.
        assert_eq!(run.time(&model, Bytes::ZERO), Some(Span::from_secs_f64(204.8)));
    }

    #[test]
    fn random_reads_are_a_slope() {
        let text = "[[file]]\nname = \"db\"\nsize = \"1G\"\n[[step]]\nread = [\"db:4G@random\"]\n";
        let plan = JobPlan::read(text, "queries").unwrap();
        let run = &plan.run()[0];
        assert_eq!(run.time(&JobModel::of(&run.touches, run.conditions), Bytes::ZERO), None);
        let model = JobModel::of(&run.touches, run.conditions);
        let read = |mib: u64| gib(model.lru_read(Bytes::from_mib(mib)));
        assert_eq!(read(0), 4.0);
        assert!((read(512) - 2.1).abs() < 0.2, "{}", read(512));
        assert!((read(1025) - 1.0).abs() < 0.1, "{}", read(1025));
    }
}
