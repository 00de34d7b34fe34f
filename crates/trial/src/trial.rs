//! The trial itself: block after block, until everything is decided, or nothing more can be.

use std::time::Instant;

use lab::LabError;
use sampler::CgroupRunError;
use units::{Ratio, Span};

use crate::analysis::Analysis;
use crate::child::AnnounceNumber;
use crate::directory::{DirectoryError, TrialDirectory};
use crate::in_machine::{RunOrder, TrialMachines};
use crate::order::Orders;
use crate::outside::HostGauge;
use crate::plan::TrialPlan;
use crate::preflight::ReadyVariant;
use crate::run::{PlaceInTrial, RunOutcome, TrialRun};
use crate::run_once::{reading_interval, run_once};
use crate::trial_end::TrialEnd;

/// A trial that goes on.
#[derive(Debug)]
pub struct Trial {
    plan: TrialPlan,
    ready: Vec<ReadyVariant>,
    directory: TrialDirectory,
    announced: AnnounceNumber,
    gauge: HostGauge,
    /// The virtual machines of runs, where each has one.
    machines: Option<TrialMachines>,
    orders: Orders,
    runs: Vec<TrialRun>,
}

/// What happens in a trial.
#[derive(Debug)]
pub enum TrialEvent<'a> {
    /// A run begins.
    Begins {
        /// Where it stands.
        place: PlaceInTrial,
        /// Runs in its block.
        places: usize,
    },
    /// A run has ended.
    Ended(&'a TrialRun),
    /// A run is made again, for this reason.
    Again(&'a str),
    /// A block is whole: what there is so far.
    Block(&'a Analysis),
}

/// Why a trial cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// No run can be made.
    #[error(transparent)]
    NoRun(#[from] CgroupRunError),
    /// No virtual machine can be started.
    #[error(transparent)]
    NoMachine(#[from] LabError),
    /// Its directory cannot be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
}

impl TrialError {
    /// What to do about it.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::NoRun(error) => error.help().map(str::to_owned),
            Self::NoMachine(error) => error.help().map(str::to_owned),
            Self::Directory(error) => error.help(),
        }
    }
}

/// A run is made again where the hypervisor took more than this of a CPU…
const STEAL_MAX: Ratio = Ratio::from_percent(5.0);
/// …or where others used so many CPUs more or less than in the other runs of its block.
const OUTSIDE_OFF_MAX: f64 = 0.3;
/// A variant that the kernel kills so often at its limit is not run again.
const KILLED_ENOUGH: usize = 3;

impl Trial {
    /// Opens a trial: a new one, or one that was interrupted.
    ///
    /// # Errors
    /// [`DirectoryError`] where earlier runs cannot be read.
    pub fn open(
        plan: TrialPlan,
        ready: Vec<ReadyVariant>,
        directory: TrialDirectory,
    ) -> Result<Self, DirectoryError> {
        let runs = directory.load_runs(&plan)?;
        let announced = AnnounceNumber::reserve()
            .map_err(|source| DirectoryError::NotRead { path: "/dev/null".into(), source })?;
        let orders = Orders::new(plan.columns().len(), plan.seed);
        let gauge = HostGauge::open();
        Ok(Self { plan, ready, directory, announced, gauge, machines: None, orders, runs })
    }

    /// The plan that it follows.
    pub const fn plan(&self) -> &TrialPlan {
        &self.plan
    }

    /// Where its runs are kept.
    pub const fn directory(&self) -> &TrialDirectory {
        &self.directory
    }

    /// Its runs so far.
    pub fn runs(&self) -> &[TrialRun] {
        &self.runs
    }

    /// What the runs so far show.
    pub fn analysis(&self) -> Analysis {
        Analysis::of(&self.plan, &self.runs)
    }

    /// Runs blocks until it ends, and keeps why.
    ///
    /// # Errors
    /// [`TrialError`]: the runs so far are kept.
    pub fn go_on(
        &mut self,
        is_interrupted: &dyn Fn() -> bool,
        tell: &mut dyn FnMut(&TrialEvent<'_>),
    ) -> Result<TrialEnd, TrialError> {
        self.directory.forget_end();
        self.machines = TrialMachines::prepare(&self.plan)?;
        let end = self.run_blocks(is_interrupted, tell)?;
        self.directory.keep_end(end)?;
        Ok(end)
    }

    fn run_blocks(
        &mut self,
        is_interrupted: &dyn Fn() -> bool,
        tell: &mut dyn FnMut(&TrialEvent<'_>),
    ) -> Result<TrialEnd, TrialError> {
        let begun = Instant::now();
        // Half a block would be filled up hours later: its runs would have met another host. Of whole ones nothing is made
        // again or judged anew.
        let whole = self.whole_blocks();
        self.runs.retain(|run| run.block < whole);
        for block in whole..self.plan.blocks_max() {
            let is_late = |limit: Span| begun.elapsed() >= limit.as_duration();
            if self.plan.time_limit.is_some_and(is_late) {
                return Ok(TrialEnd::TimeLimit);
            }
            if let Some(end) = self.block(block, is_interrupted, tell)? {
                return Ok(end);
            }
            let analysis = self.analysis();
            tell(&TrialEvent::Block(&analysis));
            let variants = 0..self.plan.variants.len();
            let alive: Vec<usize> = variants.filter(|one| !self.is_out(*one)).collect();
            if alive.len() < 2 {
                return Ok(TrialEnd::NothingToCompare);
            }
            let left = self.plan.blocks_max() - block - 1;
            let is_look = self.plan.looks.contains(&(block + 1));
            // One that was killed is run on until that is sure.
            let is_open = alive.iter().any(|one| analysis.variants[*one].out.is_some());
            if is_look && left > 0 && !is_open && analysis.is_settled(left) {
                return Ok(TrialEnd::Settled);
            }
        }
        Ok(TrialEnd::AllBlocks)
    }

    /// How many blocks, from the first one on, have all of their runs: those of a variant end with the one that drops it.
    fn whole_blocks(&self) -> usize {
        let has_run = |block: usize, column: usize| {
            self.runs.iter().any(|run| run.block == block && run.column == column)
        };
        let columns = self.plan.columns();
        let is_whole = |block: &usize| {
            let mut kept = columns
                .iter()
                .enumerate()
                .filter(|(_, variant)| !self.is_out(**variant))
                .peekable();
            kept.peek().is_some() && kept.all(|(column, _)| has_run(*block, column))
        };
        (0..self.plan.blocks_max()).take_while(is_whole).count()
    }

    /// Makes what is missing of a block. Returns the end of the trial where there is one.
    fn block(
        &mut self,
        block: usize,
        is_interrupted: &dyn Fn() -> bool,
        tell: &mut dyn FnMut(&TrialEvent<'_>),
    ) -> Result<Option<TrialEnd>, TrialError> {
        let columns = self.plan.columns();
        let order = self.orders.of_block(block).to_vec();
        let places = order.len();
        for (place, column) in order.iter().enumerate() {
            let variant = columns[*column];
            let is_there = self.runs.iter().any(|run| run.block == block && run.column == *column);
            if is_there || self.is_out(variant) {
                continue;
            }
            let place = PlaceInTrial { block, place, column: *column, variant };
            tell(&TrialEvent::Begins { place, places });
            let Some(run) = self.run_twice_if(place, hiccup, is_interrupted, tell)? else {
                return Ok(Some(TrialEnd::Interrupted));
            };
            let ends =
                run.variant == 0 && !run.is_compared() && run.outcome != RunOutcome::OomKilled;
            self.keep(run, tell)?;
            // What does not work as it is has nothing to be compared with; but others may live where it is killed.
            if ends {
                return Ok(Some(TrialEnd::NothingToCompare));
            }
        }
        self.repeat_disturbed(block, is_interrupted, tell)
    }

    /// Makes a run; `None` where the user ended it.
    fn run_at(
        &mut self,
        place: PlaceInTrial,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<TrialRun>, TrialError> {
        let ready = &self.ready[place.variant];
        let every = reading_interval(self.runs.first());
        let run = match &mut self.machines {
            Some(machines) => {
                let order =
                    RunOrder { plan: self.plan.clone(), ready: ready.clone(), place, every };
                machines.run(&order, &mut self.gauge, is_interrupted)?
            }
            None => run_once(
                &self.plan,
                ready,
                place,
                &mut self.gauge,
                &self.announced,
                every,
                is_interrupted,
            )?,
        };
        Ok(Some(run).filter(|run| run.outcome != RunOutcome::Interrupted))
    }

    /// Makes a run, and once more if the first one says why it should be.
    fn run_twice_if(
        &mut self,
        place: PlaceInTrial,
        why: fn(&TrialRun) -> Option<String>,
        is_interrupted: &dyn Fn() -> bool,
        tell: &mut dyn FnMut(&TrialEvent<'_>),
    ) -> Result<Option<TrialRun>, TrialError> {
        let first = self.run_at(place, is_interrupted)?;
        let Some(why) = first.as_ref().and_then(why) else {
            return Ok(first);
        };
        tell(&TrialEvent::Again(&why));
        let again = self.run_at(place, is_interrupted)?;
        Ok(again.map(|again| TrialRun { repeated: vec![why], ..again }))
    }

    fn keep(
        &mut self,
        mut run: TrialRun,
        tell: &mut dyn FnMut(&TrialEvent<'_>),
    ) -> Result<(), TrialError> {
        run.trial.clone_from(&self.plan.id);
        self.directory.keep(&run)?;
        tell(&TrialEvent::Ended(&run));
        self.runs.retain(|other| other.block != run.block || other.column != run.column);
        self.runs.push(run);
        Ok(())
    }

    /// Whether a variant is not run any more: it fails, or was killed often enough.
    fn is_out(&self, variant: usize) -> bool {
        let own = || self.runs.iter().filter(|run| run.variant == variant);
        let killed = own().filter(|run| run.outcome == RunOutcome::OomKilled).count();
        let is_killed = |run: &TrialRun| run.outcome == RunOutcome::OomKilled;
        killed >= KILLED_ENOUGH || own().any(|run| !run.is_compared() && !is_killed(run))
    }

    /// Makes runs of a block once again that the host disturbed. The reasons do not know the run's result.
    fn repeat_disturbed(
        &mut self,
        block: usize,
        is_interrupted: &dyn Fn() -> bool,
        tell: &mut dyn FnMut(&TrialEvent<'_>),
    ) -> Result<Option<TrialEnd>, TrialError> {
        let own: Vec<TrialRun> =
            self.runs.iter().filter(|run| run.block == block).cloned().collect();
        let outside: Vec<f64> =
            own.iter().filter_map(|run| run.outside_cpus).map(Ratio::get).collect();
        // A load generator is another program, and uses what the variant lets it: of servers this would know the result.
        let is_batch = self.plan.runs.server.is_none();
        let usual = stats::median(&outside).filter(|_| is_batch);
        for run in own.iter().filter(|run| run.repeated.is_empty()) {
            let Some(why) = disturbance(run, usual) else {
                continue;
            };
            tell(&TrialEvent::Again(&why));
            let place =
                PlaceInTrial { block, place: run.place, column: run.column, variant: run.variant };
            let Some(mut again) = self.run_at(place, is_interrupted)? else {
                return Ok(Some(TrialEnd::Interrupted));
            };
            again.repeated = vec![why];
            // A failure now does not undo work that was done.
            if again.outcome == RunOutcome::Completed {
                self.keep(again, tell)?;
            }
        }
        Ok(None)
    }
}

/// Why a run is made once again before its variant is given up: a port that is still taken, a slow start. Such a run has no
/// figures.
fn hiccup(run: &TrialRun) -> Option<String> {
    let may_be = matches!(run.outcome, RunOutcome::NotReady | RunOutcome::LoadFailed(_));
    run.fault().filter(|_| may_be)
}

/// Why a run is made again, if it is.
fn disturbance(run: &TrialRun, usual: Option<f64>) -> Option<String> {
    if run.outcome != RunOutcome::Completed {
        return None;
    }
    if let Some(steal) = run.steal.filter(|steal| *steal > STEAL_MAX) {
        return Some(format!("the hypervisor took {steal} of a CPU"));
    }
    let (outside, usual) = (run.outside_cpus?.get(), usual?);
    ((outside - usual).abs() > OUTSIDE_OFF_MAX).then(|| {
        format!("other programs used {outside:.1} CPUs, {usual:.1} in its block's other runs")
    })
}
