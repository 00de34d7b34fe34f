//! Plays a scenario: a machine for each arm, its messages while it works, and what came of it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use units::{Bytes, Span};

use crate::LabError;
use crate::error::AtPath as _;
use crate::host::accelerator::Accelerator;
use crate::host::image::GuestImage;
use crate::host::machine::{Machine, has_memory_for};
use crate::host::tools::{ZRAM_IF_ANY, add_tools};
use crate::host::vm::Vm;
use crate::message::{GuestMessage, GuestProfile, Job, Treatment, TreatmentOrder};
use crate::outcome::{ArmOutcome, ArmOutcomes};
use crate::progress::{RunProgress, RunStep};
use crate::scenario::{Arm, Scenario};
use crate::setting::{ScenarioSetting, ScenarioSettings};

/// How a scenario is played.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// A kernel image; `None`: one that is found.
    pub kernel: Option<PathBuf>,
    /// RAM of the machine; `None`: the scenario's.
    pub ram: Option<Bytes>,
    /// One arm only.
    pub arm: Option<String>,
    /// Settings that the user gave.
    pub settings: ScenarioSettings,
    /// Whether the guest has the memory controller of cgroup v1.
    pub is_cgroup_v1: bool,
    /// Whether MGLRU is switched on or off; `None`: as the kernel has it.
    pub mglru: Option<bool>,
    /// How the guest's instructions run; `None`: by KVM where it works.
    pub accelerator: Option<Accelerator>,
    /// From sample to sample.
    pub every: Span,
    /// How long an arm may take.
    pub timeout: Span,
    /// Where captures are kept: `ARM.jsonl`. `None`: nowhere.
    pub output: Option<PathBuf>,
    /// The finding that is treated while the load goes on; `None`: none is.
    pub treated: Option<TreatmentOrder>,
    /// Commands of a fix that run in the machine before the recording begins; empty if none do.
    pub first: String,
    /// Whether the arm has the settings that the words of its first fix ask for.
    pub is_advised: bool,
    /// Whether the kernel's work is profiled meanwhile.
    pub is_profiled: bool,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            kernel: None,
            ram: None,
            arm: None,
            settings: BTreeMap::new(),
            is_cgroup_v1: false,
            mglru: None,
            accelerator: None,
            every: Span::from_millis(500),
            timeout: Span::from_mins(4),
            output: None,
            treated: None,
            first: String::new(),
            is_advised: false,
            is_profiled: false,
        }
    }
}

/// Plays a scenario, arm by arm.
///
/// # Errors
/// [`LabError`] where an arm cannot be played; nothing is left running or on disk but the captures that were asked for.
pub fn run(
    scenario: &Scenario,
    options: &RunOptions,
    progress: RunProgress<'_>,
) -> Result<ArmOutcomes, LabError> {
    let is_wanted = |arm: &&Arm| options.arm.as_deref().is_none_or(|name| name == arm.name);
    let arms: Vec<&Arm> = scenario.arms.iter().filter(is_wanted).collect();
    if arms.is_empty() {
        return Err(LabError::NoArm {
            scenario: scenario.name,
            arm: options.arm.clone().unwrap_or_default(),
            known: scenario.arms.iter().map(|arm| arm.name).collect(),
        });
    }
    for arm in &arms {
        settings(scenario, arm, options)?;
    }
    let player = Player::prepare(scenario, options)?;
    let mut outcomes = Vec::new();
    for arm in arms {
        outcomes.push(player.play(arm, progress)?);
    }
    Ok(ArmOutcomes { arms: outcomes, _work: Some(player.image.work) })
}

/// What all arms of a scenario share.
struct Player<'a> {
    scenario: &'a Scenario,
    options: &'a RunOptions,
    machine: Machine,
    image: GuestImage,
}

impl<'a> Player<'a> {
    fn prepare(scenario: &'a Scenario, options: &'a RunOptions) -> Result<Self, LabError> {
        let mut machine = (scenario.machine)();
        machine.ram = options.ram.unwrap_or(machine.ram);
        machine.check()?;
        has_memory_for(machine.ram, 1)?;
        let kernel = options.kernel.as_deref();
        let has_commands = options.treated.is_some() || !options.first.is_empty();
        let image = if has_commands {
            GuestImage::build(kernel, &[scenario.modules, ZRAM_IF_ANY].concat(), add_tools)
        } else {
            GuestImage::build(kernel, scenario.modules, |_| Ok(()))
        };
        Ok(Self { scenario, options, machine, image: image? })
    }

    fn play(&self, arm: &Arm, progress: RunProgress<'_>) -> Result<ArmOutcome, LabError> {
        progress(RunStep::Booting { arm: arm.name, kernel: &self.image.kernel.version })?;
        let settings = settings(self.scenario, arm, self.options)?;
        let initramfs = self.image.with_job(self.job(&settings))?;
        let begun = Instant::now();
        let mut vm =
            Vm::boot(&self.image, &initramfs, &self.machine, self.options.accelerator, progress)?;
        progress(RunStep::Booted { arm: arm.name, capture: vm.capture_path() })?;
        let measurements = follow(&mut vm, begun, self.options.timeout, progress);
        // A machine that died leaves its samples, too.
        let capture = self.keep(&vm, arm);
        let (measurements, capture) = (measurements?, capture?);
        let source = answers::open(&capture, import::OpenOptions::default(), &mut |_| ())?;
        if let Some(problem) = source.problems.first() {
            return Err(LabError::Guest {
                why: format!("its samples arrived damaged: {problem}"),
                last_words: vm.last_words(),
            });
        }
        Ok(ArmOutcome {
            arm: arm.name,
            expected: self.scenario.expected(arm, &settings),
            settings,
            measured: measurements.values,
            curves: measurements.curves,
            treatment: measurements.treatment,
            taken_back: measurements.taken_back,
            profile: measurements.profile,
            report: answers::check(&source),
            source,
            capture,
            accelerator: vm.accelerator(),
            kernel: self.image.kernel.version.clone(),
            ram: self.machine.ram,
        })
    }

    fn job(&self, settings: &ScenarioSettings) -> Job {
        Job {
            scenario: Some(self.scenario.name.to_owned()),
            settings: settings.clone(),
            every_s: self.options.every.as_secs_f64(),
            is_cgroup_v1: is_cgroup_v1(settings, self.options),
            mglru: self.options.mglru.or(self.scenario.mglru),
            treated: self.options.treated.clone(),
            first: self.options.first.clone(),
            is_profiled: self.options.is_profiled,
            ..Job::default()
        }
    }

    /// Copies the samples out of the machine's directory, which ends with it.
    fn keep(&self, vm: &Vm, arm: &Arm) -> Result<PathBuf, LabError> {
        let directory = self.options.output.as_deref().unwrap_or(self.image.work.path());
        std::fs::create_dir_all(directory).at(directory)?;
        let capture = directory.join(format!("{}.jsonl", arm.name));
        std::fs::copy(vm.capture_path(), &capture).at(&capture)?;
        Ok(capture)
    }
}

/// Whether the machine of an arm has the memory controller of cgroup v1.
pub(crate) fn is_cgroup_v1(settings: &ScenarioSettings, options: &RunOptions) -> bool {
    let of_arm = settings.get(ScenarioSetting::CGROUP_V1.name);
    options.is_cgroup_v1 || of_arm.is_some_and(|is_v1| *is_v1 != 0.0)
}

/// The settings of an arm: the scenario's, then the arm's, then the user's.
pub(crate) fn settings(
    scenario: &Scenario,
    arm: &Arm,
    options: &RunOptions,
) -> Result<ScenarioSettings, LabError> {
    let known = scenario.settings.iter();
    let mut all: ScenarioSettings =
        known.map(|setting| (setting.name.to_owned(), setting.default)).collect();
    let of_arm = arm.settings.iter();
    all.extend(of_arm.map(|(name, value)| ((*name).to_owned(), *value)));
    for (name, value) in &options.settings {
        let setting = scenario.settings.iter().find(|known| known.name == name);
        let setting = setting.ok_or_else(|| LabError::NoSetting {
            scenario: scenario.name,
            name: name.clone(),
            known: scenario.settings.iter().map(|known| known.name).collect(),
        })?;
        if arm.settings.iter().any(|(known, _)| known == name) {
            return Err(LabError::SettingOfArm { name: setting.name, arm: arm.name });
        }
        let (min, max) = setting.range;
        if !(min..=max).contains(value) {
            return Err(LabError::SettingRange {
                name: setting.name,
                value: *value,
                range: setting.range,
            });
        }
        all.insert(name.clone(), *value);
    }
    let advised = scenario.advised_in(arm.name).filter(|_| options.is_advised);
    let advised = advised.into_iter().flatten();
    all.extend(advised.map(|(name, value)| ((*name).to_owned(), *value)));
    Ok(all)
}

/// What a guest measured, by name.
#[derive(Debug, Default)]
struct Measurements {
    values: BTreeMap<String, f64>,
    curves: BTreeMap<String, Vec<(f64, f64)>>,
    treatment: Option<Treatment>,
    taken_back: Option<Option<String>>,
    profile: Option<GuestProfile>,
}

/// Follows a guest's messages until it is done.
fn follow(
    vm: &mut Vm,
    begun: Instant,
    timeout: Span,
    progress: RunProgress<'_>,
) -> Result<Measurements, LabError> {
    /// From one reading of the messages to the next.
    const EVERY: Span = Span::from_millis(50);
    let mut measurements = Measurements::default();
    loop {
        let has_ended = vm.has_ended();
        for message in vm.messages()? {
            let at = Span::from_secs_f64(begun.elapsed().as_secs_f64());
            progress(RunStep::Message { at, message: &message })?;
            match message {
                GuestMessage::Measured { name, value } => {
                    measurements.values.insert(name, value);
                }
                GuestMessage::Point { curve, x, y } => {
                    measurements.curves.entry(curve).or_default().push((x, y));
                }
                GuestMessage::Profiled(profile) => measurements.profile = Some(profile),
                GuestMessage::Treated(treatment) => measurements.treatment = Some(treatment),
                GuestMessage::TakenBack(why_not) => measurements.taken_back = Some(why_not),
                GuestMessage::Failed { why } | GuestMessage::NotSet { why } => {
                    let last_words = vm.last_words();
                    return Err(LabError::Guest { why, last_words });
                }
                GuestMessage::Done => {
                    vm.wait_for_end();
                    return Ok(measurements);
                }
                GuestMessage::Ready { .. }
                | GuestMessage::Phase { .. }
                | GuestMessage::Vitals(_) => {}
            }
        }
        if has_ended {
            return Err(LabError::Ended { last_words: vm.last_words() });
        }
        if begun.elapsed() > timeout.as_duration() {
            return Err(LabError::TimedOut { after: timeout });
        }
        progress(RunStep::Waiting)?;
        std::thread::sleep(EVERY.as_duration());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenarios;

    fn settings_with(name: &str, value: f64) -> Result<ScenarioSettings, LabError> {
        let scenario = scenarios::named("node-reclaim")?;
        let options =
            RunOptions { settings: [(name.to_owned(), value)].into(), ..RunOptions::default() };
        settings(scenario, &scenario.arms[1], &options)
    }

    #[test]
    fn an_arm_comes_before_the_scenario_and_the_user_before_both() {
        let settings = settings_with("passes", 7.0).unwrap();
        assert_eq!((settings["zone_reclaim_mode"], settings["passes"]), (0.0, 7.0));
    }

    #[test]
    fn a_setting_that_cannot_be_is_named() {
        for (name, value, expected) in [
            ("passes", 1e9, "passes=1000000000 is not between 2 and 100"),
            ("pass", 3.0, "node-reclaim has no setting `pass`; it has zone_reclaim_mode, passes"),
            ("zone_reclaim_mode", 1.0, "zone_reclaim_mode is what makes the arm mode-0"),
        ] {
            let error = settings_with(name, value).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }
}
