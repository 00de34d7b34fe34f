//! Makes labelled cases: scenarios with their arms and variants, on several kernels.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;

use flate2::Compression;
use flate2::write::GzEncoder;
use units::Bytes;

use crate::LabError;
use crate::case::{Case, CaseFile, CaseRecipe};
use crate::error::AtPath as _;
use crate::host::kernel::Kernel;
use crate::host::machine::has_memory_for;
use crate::model::ClaimState;
use crate::outcome::ArmOutcomes;
use crate::run::{self, RunOptions};
use crate::scenario::{Arm, Scenario};
use crate::scenarios;
use crate::setting::ScenarioSettings;

/// Which cases are made.
#[derive(Debug, Clone, Default)]
pub struct CorpusOptions {
    /// Names of scenarios; empty for all.
    pub scenarios: Vec<String>,
    /// Kernels as in [`RunOptions::kernel`]; empty for the usual one.
    pub kernels: Vec<PathBuf>,
    /// Variants of each scenario at most.
    pub variants: usize,
    /// Seeds of scenarios that have one, from 1.
    pub seeds: u32,
    /// Machines that run at the same time; 0 counts as 1.
    pub jobs: usize,
    /// How each is played; its kernel, settings and output are those of the case.
    pub run: RunOptions,
}

/// What happens to a case.
#[allow(missing_docs)] // names say it
#[derive(Debug)]
pub enum CorpusStep {
    /// It is played.
    Playing {
        name: String,
        /// Which of all.
        number: usize,
        all: usize,
    },
    /// It was there already.
    Kept { name: String },
    /// It could not be played.
    Failed { name: String, error: LabError },
}

/// A scenario with a variant of its settings on a kernel: its arms are played together.
struct PlannedRun<'a> {
    scenario: &'a Scenario,
    kernel: Option<&'a Path>,
    kernel_release: String,
    settings: ScenarioSettings,
    run: &'a RunOptions,
}

impl PlannedRun<'_> {
    /// The case of an arm: `cgroup-oom--limit--limit_mib=64--6.1.0-56-amd64`, `cgroup-oom--limit--cgroup-v1--6.1.0-56-amd64`.
    fn name(&self, arm: &str) -> String {
        let mut settings: String =
            self.settings.iter().map(|(name, value)| format!("--{name}={value}")).collect();
        if self.run.is_cgroup_v1 {
            settings.push_str("--cgroup-v1");
        }
        if let Some(mglru) = self.run.mglru {
            settings.push_str(if mglru { "--mglru" } else { "--no-mglru" });
        }
        format!("{}--{arm}{settings}--{}", self.scenario.name, self.kernel_release)
    }

    fn names(&self) -> Vec<String> {
        let arms = self.scenario.arms.iter();
        arms.map(|arm| self.name(arm.name)).collect()
    }

    /// How a case of an arm is made.
    fn recipe(&self, arm: &Arm) -> Result<CaseRecipe, LabError> {
        let options = self.options();
        let settings = run::settings(self.scenario, arm, &options)?;
        Ok(CaseRecipe {
            scenario: self.scenario.name.to_owned(),
            arm: arm.name.to_owned(),
            kernel: self.kernel_release.clone(),
            ram_mib: self.ram().get() >> 20,
            is_cgroup_v1: run::is_cgroup_v1(&settings, &options),
            mglru: options.mglru.or(self.scenario.mglru),
            unproven: Vec::new(),
            revision: self.scenario.revision,
            settings,
        })
    }

    fn ram(&self) -> Bytes {
        self.run.ram.unwrap_or((self.scenario.machine)().ram)
    }

    fn options(&self) -> RunOptions {
        RunOptions {
            kernel: self.kernel.map(Path::to_owned),
            settings: self.settings.clone(),
            arm: None,
            ..self.run.clone()
        }
    }

    /// Whether all its cases are there, and made as they would be made now. Their labels are brought up to what the
    /// scenario expects now.
    fn is_kept(&self, directory: &Path) -> Result<bool, LabError> {
        let mut kept = Vec::new();
        for arm in self.scenario.arms {
            let wanted = self.recipe(arm)?;
            // One that cannot be read is made again.
            let Ok(Some(mut case)) = Case::in_directory(&directory.join(self.name(arm.name)))
            else {
                return Ok(false);
            };
            let is_same = case.file.lab.as_ref().is_some_and(|recipe| {
                let unproven = recipe.unproven.clone();
                *recipe == CaseRecipe { unproven, ..wanted.clone() }
            });
            if !is_same || !case.has_samples() {
                return Ok(false);
            }
            // What a seed stands for may change with the program that draws it: such labels are of their time.
            if self.scenario.expects.is_none() {
                case.file.labels = Some(self.scenario.expected(arm, &wanted.settings));
            }
            kept.push(case);
        }
        for case in kept {
            case.write()?;
        }
        Ok(true)
    }
}

/// Makes cases in a directory; those that are there already are kept, so an interrupted run goes on.
///
/// # Errors
/// [`LabError`] where nothing can be played at all, or the user ended it. A case that fails is reported and passed over.
pub fn corpus(
    options: &CorpusOptions,
    directory: &Path,
    step: &mut (dyn FnMut(CorpusStep) + Send),
    is_interrupted: &(dyn Fn() -> bool + Sync),
) -> Result<(), LabError> {
    let maker = CorpusMaker {
        runs: plan(options)?,
        next: AtomicUsize::new(0),
        directory,
        step: Mutex::new(step),
        is_interrupted,
        jobs: options.jobs.max(1),
    };
    let jobs = options.jobs.clamp(1, maker.runs.len().max(1));
    // Each machine ends with its thread.
    let ended: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(|| maker.work())).collect();
        workers.into_iter().map(ScopedJoinHandle::join).collect()
    });
    ended
        .into_iter()
        .try_for_each(|end| end.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

/// What the threads share that make cases.
struct CorpusMaker<'a> {
    runs: Vec<PlannedRun<'a>>,
    /// Which run is played next.
    next: AtomicUsize,
    directory: &'a Path,
    step: Mutex<&'a mut (dyn FnMut(CorpusStep) + Send)>,
    is_interrupted: &'a (dyn Fn() -> bool + Sync),
    /// Machines that may run at the same time: the host must have memory for all of them.
    jobs: usize,
}

impl CorpusMaker<'_> {
    /// Makes cases until there are no more; after an error no thread begins another.
    fn work(&self) -> Result<(), LabError> {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(planned) = self.runs.get(index) else {
                return Ok(());
            };
            let made = self.make(index + 1, planned);
            if made.is_err() {
                self.next.store(self.runs.len(), Ordering::Relaxed);
                return made;
            }
        }
    }

    fn make(&self, number: usize, planned: &PlannedRun<'_>) -> Result<(), LabError> {
        let name = planned.names().join(", ");
        if planned.is_kept(self.directory)? {
            self.step(CorpusStep::Kept { name });
            return Ok(());
        }
        self.step(CorpusStep::Playing { name: name.clone(), number, all: self.runs.len() });
        let played = has_memory_for(planned.ram(), self.jobs).and_then(|()| self.play(planned));
        match played {
            Ok(outcomes) => keep(planned, &outcomes, self.directory),
            Err(error @ (LabError::Interrupted | LabError::NoQemu | LabError::NoMke2fs)) => {
                Err(error)
            }
            Err(error) => {
                self.step(CorpusStep::Failed { name, error });
                Ok(())
            }
        }
    }

    fn play(&self, planned: &PlannedRun<'_>) -> Result<ArmOutcomes, LabError> {
        run::run(planned.scenario, &planned.options(), &mut |_| {
            if (self.is_interrupted)() { Err(LabError::Interrupted) } else { Ok(()) }
        })
    }

    fn step(&self, step: CorpusStep) {
        if let Ok(mut listener) = self.step.lock() {
            listener(step);
        }
    }
}

fn plan(options: &CorpusOptions) -> Result<Vec<PlannedRun<'_>>, LabError> {
    let mut kernels = Vec::new();
    for kernel in &options.kernels {
        let version = Kernel::find(Some(kernel))?.version;
        // 6.1 and 6.1.0 may name the same one, and its cases have one name.
        if kernels.iter().all(|(_, known)| *known != version) {
            kernels.push((Some(kernel.as_path()), version));
        }
    }
    if kernels.is_empty() {
        kernels.push((None, Kernel::find(None)?.version));
    }
    let mut chosen: Vec<&Scenario> = Vec::new();
    for name in &options.scenarios {
        chosen.push(scenarios::named(name)?);
    }
    if chosen.is_empty() {
        chosen.extend(scenarios::ALL);
    }
    let mut runs = Vec::new();
    for (kernel, version) in &kernels {
        for scenario in &chosen {
            runs.extend(variants(scenario, options).into_iter().map(|settings| PlannedRun {
                scenario,
                kernel: *kernel,
                kernel_release: version.clone(),
                settings,
                run: &options.run,
            }));
        }
    }
    Ok(runs)
}

/// The settings of a scenario's variants: its own, then those that it names, or a seed each.
fn variants(scenario: &Scenario, options: &CorpusOptions) -> Vec<ScenarioSettings> {
    if scenario.settings.iter().any(|setting| setting.name == "seed") {
        let seeds = 1..=options.seeds.max(1);
        let of_seed = |seed| BTreeMap::from([("seed".to_owned(), f64::from(seed))]);
        return seeds.map(of_seed).collect();
    }
    let own: &[(&str, f64)] = &[];
    let all = std::iter::once(own).chain(scenario.variants.iter().copied());
    let owned = |(name, value): &(&str, f64)| ((*name).to_owned(), *value);
    all.take(options.variants.max(1)).map(|settings| settings.iter().map(owned).collect()).collect()
}

/// Writes a case for each arm: a case is there as a whole, or not at all.
fn keep(
    planned: &PlannedRun<'_>,
    outcomes: &ArmOutcomes,
    directory: &Path,
) -> Result<(), LabError> {
    let claims = (planned.scenario.claims)(outcomes);
    // All arms were played: what is not measured was lost.
    let failed = claims
        .iter()
        .filter(|claim| matches!(claim.state, ClaimState::Fails | ClaimState::NotMeasured));
    let unproven: Vec<String> =
        failed.map(|claim| format!("{}: {}", claim.what, claim.ours)).collect();
    std::fs::create_dir_all(directory).at(directory)?;
    for (arm, outcome) in planned.scenario.arms.iter().zip(&outcomes.arms) {
        let unfinished = tempfile::Builder::new().prefix(".unfinished-").tempdir_in(directory);
        let unfinished = unfinished.at(directory)?;
        let case = Case {
            directory: unfinished.path().to_owned(),
            file: CaseFile {
                labels: Some(outcome.expected.clone()),
                lab: Some(CaseRecipe { unproven: unproven.clone(), ..planned.recipe(arm)? }),
            },
        };
        let packed = case.directory.join("capture.jsonl.gz");
        pack(&outcome.capture, &packed).at(&packed)?;
        case.write()?;
        let place = directory.join(planned.name(arm.name));
        if place.exists() {
            std::fs::remove_dir_all(&place).at(&place)?;
        }
        std::fs::rename(unfinished.keep(), &place).at(&place)?;
    }
    Ok(())
}

fn pack(capture: &Path, target: &Path) -> std::io::Result<()> {
    let mut from = BufReader::new(File::open(capture)?);
    let mut to = GzEncoder::new(File::create(target)?, Compression::default());
    std::io::copy(&mut from, &mut to)?;
    to.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::CasesBelow;

    fn planned(run: &RunOptions) -> PlannedRun<'_> {
        PlannedRun {
            scenario: scenarios::by_name("cgroup-oom").unwrap(),
            kernel: None,
            kernel_release: "6.1.0-56-cloud-amd64".to_owned(),
            settings: [("limit_mib".to_owned(), 64.0)].into(),
            run,
        }
    }

    /// Writes the case that is planned with these samples, and its recipe changed.
    fn write_case(
        planned: &PlannedRun<'_>,
        directory: &Path,
        samples: &[u8],
        change: impl FnOnce(&mut CaseRecipe),
    ) {
        let mut recipe = planned.recipe(&planned.scenario.arms[0]).unwrap();
        change(&mut recipe);
        let case = Case {
            directory: directory.join(planned.name("limit")),
            file: CaseFile { labels: None, lab: Some(recipe) },
        };
        std::fs::create_dir_all(&case.directory).unwrap();
        std::fs::write(case.directory.join("capture.jsonl.gz"), samples).unwrap();
        case.write().unwrap();
    }

    #[test]
    fn a_case_is_kept_if_it_has_samples_and_was_made_in_the_same_way() {
        let run = RunOptions::default();
        let planned = planned(&run);
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        assert!(!planned.is_kept(directory).unwrap());
        write_case(&planned, directory, b"", |_| ());
        assert!(!planned.is_kept(directory).unwrap());
        let changes: [fn(&mut CaseRecipe); 5] = [
            |recipe| recipe.revision = 0,
            |recipe| recipe.kernel = "6.1.0-55-cloud-amd64".to_owned(),
            |recipe| recipe.ram_mib = 1024,
            |recipe| recipe.mglru = Some(true),
            |recipe| recipe.settings = [("limit_mib".to_owned(), 65.0)].into(),
        ];
        for change in changes {
            write_case(&planned, directory, b"samples", change);
            assert!(!planned.is_kept(directory).unwrap());
        }
        write_case(&planned, directory, b"samples", |recipe| {
            recipe.unproven = vec!["a claim".to_owned()];
        });
        assert!(planned.is_kept(directory).unwrap());
        // Its labels are those of today.
        let kept = CasesBelow::find(directory).unwrap().whole;
        let labels = kept[0].file.labels.as_ref().unwrap();
        assert_eq!(labels.must_find, ["oom-cgroup"]);
        std::fs::write(kept[0].directory.join("case.toml"), "[la").unwrap();
        assert!(!planned.is_kept(directory).unwrap());
    }

    #[test]
    fn a_name_has_what_differs_from_the_usual() {
        let run = RunOptions::default();
        assert_eq!(
            planned(&run).name("limit"),
            "cgroup-oom--limit--limit_mib=64--6.1.0-56-cloud-amd64"
        );
        let run = RunOptions { is_cgroup_v1: true, mglru: Some(false), ..run };
        assert_eq!(
            planned(&run).name("limit"),
            "cgroup-oom--limit--limit_mib=64--cgroup-v1--no-mglru--6.1.0-56-cloud-amd64"
        );
    }
}
