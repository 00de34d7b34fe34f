//! Makes labelled cases: scenarios with their arms and variants, on several kernels.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::LabError;
use crate::case::{Case, CaseFile, CaseRecipe};
use crate::error::AtPath as _;
use crate::host::kernel::Kernel;
use crate::outcome::ArmOutcomes;
use crate::run::{RunOptions, RunProgress, run};
use crate::scenario::{Scenario, ScenarioSettings};
use crate::scenarios;

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
    /// How each is played; its kernel, settings and output are those of the case.
    pub run: RunOptions,
}

/// What happens to a case.
#[derive(Debug, Clone, PartialEq)]
pub enum CorpusStep {
    /// It is played.
    Playing {
        /// Its name.
        name: String,
        /// Which of all.
        number: usize,
        /// How many.
        all: usize,
    },
    /// It was there already.
    Kept {
        /// Its name.
        name: String,
    },
    /// It could not be played.
    Failed {
        /// Its name.
        name: String,
        /// Why not.
        why: String,
    },
}

/// A scenario with a variant of its settings on a kernel: its arms are played together.
struct Recipe<'a> {
    scenario: &'a Scenario,
    kernel: Option<&'a Path>,
    version: String,
    settings: ScenarioSettings,
    run: &'a RunOptions,
}

impl Recipe<'_> {
    /// The case of an arm: `cgroup-oom--limit--limit_mib=64--6.1.0`, `cgroup-oom--limit--cgroup-v1--6.1.0`.
    fn name(&self, arm: &str) -> String {
        let mut settings: String = self
            .settings
            .iter()
            .map(|(name, value)| format!("--{name}={value}"))
            .collect();
        if self.run.is_cgroup_v1 {
            settings.push_str("--cgroup-v1");
        }
        if let Some(mglru) = self.run.mglru {
            settings.push_str(if mglru { "--mglru" } else { "--no-mglru" });
        }
        let version = self.version.split(['-', '+']).next().unwrap_or_default();
        format!("{}--{arm}{settings}--{version}", self.scenario.name)
    }

    fn names(&self) -> Vec<String> {
        let arms = self.scenario.arms.iter();
        arms.map(|arm| self.name(arm.name)).collect()
    }

    /// Whether all its cases are there; their labels are brought up to what the scenario expects today.
    fn is_kept(&self, directory: &Path) -> Result<bool, LabError> {
        let mut kept = Vec::new();
        for arm in self.scenario.arms {
            let Some(mut case) = Case::in_directory(&directory.join(self.name(arm.name)))? else {
                return Ok(false);
            };
            let Some(recipe) = &case.file.lab else {
                return Ok(false);
            };
            if !case.has_samples() || recipe.kernel != self.version {
                return Ok(false);
            }
            case.file.labels = Some(self.scenario.expected(arm, &recipe.settings));
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
    step: &mut dyn FnMut(CorpusStep),
    progress: RunProgress<'_>,
) -> Result<(), LabError> {
    let recipes = recipes(options)?;
    let all = recipes.len();
    for (number, recipe) in (1..).zip(&recipes) {
        let name = recipe.names().join(", ");
        if recipe.is_kept(directory)? {
            step(CorpusStep::Kept { name });
            continue;
        }
        let playing = CorpusStep::Playing {
            name: name.clone(),
            number,
            all,
        };
        step(playing);
        let play = RunOptions {
            kernel: recipe.kernel.map(Path::to_owned),
            settings: recipe.settings.clone(),
            arm: None,
            ..options.run.clone()
        };
        match run(recipe.scenario, &play, progress) {
            Ok(outcomes) => keep(recipe, &outcomes, directory)?,
            Err(error @ (LabError::Interrupted | LabError::NoQemu | LabError::NoMke2fs)) => {
                return Err(error);
            }
            Err(error) => step(CorpusStep::Failed {
                name,
                why: error.to_string(),
            }),
        }
    }
    Ok(())
}

fn recipes(options: &CorpusOptions) -> Result<Vec<Recipe<'_>>, LabError> {
    let mut kernels = Vec::new();
    for kernel in &options.kernels {
        kernels.push((Some(kernel.as_path()), Kernel::find(Some(kernel))?.version));
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
    let mut recipes = Vec::new();
    for (kernel, version) in &kernels {
        for scenario in &chosen {
            recipes.extend(
                variants(scenario, options)
                    .into_iter()
                    .map(|settings| Recipe {
                        scenario,
                        kernel: *kernel,
                        version: version.clone(),
                        settings,
                        run: &options.run,
                    }),
            );
        }
    }
    Ok(recipes)
}

/// The settings of a scenario's variants: its own, then those that it names, or a seed each.
fn variants(scenario: &Scenario, options: &CorpusOptions) -> Vec<ScenarioSettings> {
    if scenario
        .settings
        .iter()
        .any(|setting| setting.name == "seed")
    {
        let seeds = 1..=options.seeds.max(1);
        let of_seed = |seed| BTreeMap::from([("seed".to_owned(), f64::from(seed))]);
        return seeds.map(of_seed).collect();
    }
    let own: &[(&str, f64)] = &[];
    let all = std::iter::once(own).chain(scenario.variants.iter().copied());
    let owned = |(name, value): &(&str, f64)| ((*name).to_owned(), *value);
    all.take(options.variants.max(1))
        .map(|settings| settings.iter().map(owned).collect())
        .collect()
}

/// Writes a case for each arm.
fn keep(recipe: &Recipe<'_>, outcomes: &ArmOutcomes, directory: &Path) -> Result<(), LabError> {
    let claims = (recipe.scenario.claims)(outcomes);
    let failed = claims.iter().filter(|claim| claim.holds == Some(false));
    let unproven: Vec<String> = failed
        .map(|claim| format!("{}: {}", claim.what, claim.ours))
        .collect();
    for outcome in &outcomes.arms {
        let case = Case {
            directory: directory.join(recipe.name(outcome.arm)),
            file: CaseFile {
                labels: Some(outcome.expected.clone()),
                lab: Some(CaseRecipe {
                    scenario: recipe.scenario.name.to_owned(),
                    arm: outcome.arm.to_owned(),
                    kernel: outcome.kernel.clone(),
                    ram_mib: outcome.ram.get() >> 20,
                    is_cgroup_v1: recipe.run.is_cgroup_v1,
                    mglru: recipe.run.mglru.or(recipe.scenario.mglru),
                    unproven: unproven.clone(),
                    settings: outcome.settings.clone(),
                }),
            },
        };
        std::fs::create_dir_all(&case.directory).at(&case.directory)?;
        let packed = case.directory.join("capture.jsonl.gz");
        pack(&outcome.capture, &packed).at(&packed)?;
        // Last: a case without labels is made again.
        case.write()?;
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

    fn recipe(run: &RunOptions) -> Recipe<'_> {
        Recipe {
            scenario: scenarios::by_name("cgroup-oom").unwrap(),
            kernel: None,
            version: "6.1.0-56-cloud-amd64".to_owned(),
            settings: [("limit_mib".to_owned(), 64.0)].into(),
            run,
        }
    }

    /// Writes the case of a recipe with these samples, made on this kernel.
    fn write_case(recipe: &Recipe<'_>, directory: &Path, samples: &[u8], kernel: &str) {
        let case = Case {
            directory: directory.join(recipe.name("limit")),
            file: CaseFile {
                labels: None,
                lab: Some(CaseRecipe {
                    kernel: kernel.to_owned(),
                    ..CaseRecipe::default()
                }),
            },
        };
        std::fs::create_dir_all(&case.directory).unwrap();
        std::fs::write(case.directory.join("capture.jsonl.gz"), samples).unwrap();
        case.write().unwrap();
    }

    #[test]
    fn a_case_is_kept_if_it_has_samples_of_the_same_kernel() {
        let run = RunOptions::default();
        let recipe = recipe(&run);
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        assert!(!recipe.is_kept(directory).unwrap());
        write_case(&recipe, directory, b"", &recipe.version);
        assert!(!recipe.is_kept(directory).unwrap());
        write_case(&recipe, directory, b"samples", "6.1.0-55-cloud-amd64");
        assert!(!recipe.is_kept(directory).unwrap());
        write_case(&recipe, directory, b"samples", &recipe.version);
        assert!(recipe.is_kept(directory).unwrap());
        // Its labels are those of today.
        let kept = Case::below(directory).unwrap();
        let labels = kept[0].file.labels.as_ref().unwrap();
        assert_eq!(labels.must_find, ["oom-cgroup"]);
    }

    #[test]
    fn a_name_has_what_differs_from_the_usual() {
        let run = RunOptions::default();
        assert_eq!(
            recipe(&run).name("limit"),
            "cgroup-oom--limit--limit_mib=64--6.1.0"
        );
        let run = RunOptions {
            is_cgroup_v1: true,
            mglru: Some(false),
            ..run
        };
        assert_eq!(
            recipe(&run).name("limit"),
            "cgroup-oom--limit--limit_mib=64--cgroup-v1--no-mglru--6.1.0"
        );
    }
}
