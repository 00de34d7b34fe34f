//! Plays a scenario: a machine for each arm, its messages while it works, and what came of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use tempfile::TempDir;
use timeline::signals::MEM_AVAILABLE;
use units::{Bytes, Quantity as _, Span};

use crate::LabError;
use crate::error::AtPath as _;
use crate::host::initramfs::Archive;
use crate::host::kernel::{Kernel, ModuleNeed};
use crate::host::machine::{Machine, Vm};
use crate::message::{GuestMessage, JOB, Job};
use crate::outcome::{ArmOutcome, ArmOutcomes};
use crate::reading::KernelReader;
use crate::scenario::{Arm, Scenario, ScenarioSettings};
use crate::scenarios;

/// What QEMU takes beside the guest's RAM.
const QEMU_OVERHEAD: Bytes = Bytes::from_mib(150);

/// How a scenario is played.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// A kernel image; `None`: one that is found.
    pub kernel: Option<PathBuf>,
    /// RAM of the machine; `None`: the scenario's.
    pub ram: Option<Bytes>,
    /// One arm only.
    pub variant: Option<String>,
    /// ScenarioSettings that the user set.
    pub settings: ScenarioSettings,
    /// Whether the guest has the memory controller of cgroup v1.
    pub is_cgroup_v1: bool,
    /// Whether MGLRU is switched on or off; `None`: as the kernel has it.
    pub mglru: Option<bool>,
    /// From sample to sample.
    pub every: Span,
    /// How long an arm may take.
    pub timeout: Span,
    /// Where captures are kept: `ARM.jsonl`. `None`: nowhere.
    pub output: Option<PathBuf>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            kernel: None,
            ram: None,
            variant: None,
            settings: BTreeMap::new(),
            is_cgroup_v1: false,
            mglru: None,
            every: Span::from_millis(500),
            timeout: Span::from_mins(4),
            output: None,
        }
    }
}

/// What happens while a scenario is played.
#[derive(Debug)]
pub enum RunStep<'a> {
    /// An arm's machine is being booted.
    Booting {
        /// The arm's name.
        arm: &'static str,
        /// The kernel's version.
        kernel: &'a str,
    },
    /// A message from the machine.
    Message {
        /// Since the machine's boot began.
        at: Span,
        /// The message.
        message: &'a GuestMessage,
    },
    /// Nothing new for a while: a chance to end it.
    Waiting,
}

/// Asked at every step; an error ends the run.
pub(crate) type RunProgress<'a> = &'a mut dyn FnMut(RunStep<'_>) -> Result<(), LabError>;

/// Plays a scenario, arm by arm.
///
/// # Errors
/// [`LabError`] where an arm cannot be played; nothing is left running or on disk but the captures that were asked for.
pub fn run(
    scenario: &Scenario,
    options: &RunOptions,
    progress: RunProgress<'_>,
) -> Result<ArmOutcomes, LabError> {
    let is_wanted = |arm: &&Arm| {
        options
            .variant
            .as_deref()
            .is_none_or(|name| name == arm.name)
    };
    let arms: Vec<&Arm> = scenario.arms.iter().filter(is_wanted).collect();
    if arms.is_empty() {
        return Err(LabError::NoArm {
            scenario: scenario.name,
            arm: options.variant.clone().unwrap_or_default(),
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
    Ok(ArmOutcomes {
        arms: outcomes,
        _work: Some(player.work),
    })
}

/// What all arms of a scenario share.
struct Player<'a> {
    scenario: &'a Scenario,
    options: &'a RunOptions,
    machine: Machine,
    kernel: Kernel,
    /// Holds the archives, and captures that nobody asked for.
    work: TempDir,
    /// The archive with this program and the modules.
    base: PathBuf,
    modules: Vec<String>,
}

impl<'a> Player<'a> {
    fn prepare(scenario: &'a Scenario, options: &'a RunOptions) -> Result<Self, LabError> {
        let mut machine = (scenario.machine)();
        machine.ram = options.ram.unwrap_or(machine.ram);
        machine.check()?;
        has_memory_for(machine.ram)?;
        let kernel = Kernel::find(options.kernel.as_deref())?;
        let work = tempfile::Builder::new().prefix("memtide-lab-").tempdir()?;
        let needs: Vec<ModuleNeed> = [scenarios::MODULES, scenario.modules].concat();
        let mut archive = Archive::of_this_program()?;
        let mut modules = Vec::new();
        for module in kernel.modules(&needs)? {
            let place = format!("/modules/{}", module.name);
            archive.file(Path::new(&place), &module.contents);
            modules.push(place);
        }
        let base = work.path().join("base");
        std::fs::write(&base, archive.finish()).at(&base)?;
        Ok(Self {
            scenario,
            options,
            machine,
            kernel,
            work,
            base,
            modules,
        })
    }

    fn play(&self, arm: &Arm, progress: RunProgress<'_>) -> Result<ArmOutcome, LabError> {
        progress(RunStep::Booting {
            arm: arm.name,
            kernel: &self.kernel.version,
        })?;
        let settings = settings(self.scenario, arm, self.options)?;
        let job = self.archive_of_job(&settings)?;
        let begun = Instant::now();
        let mut vm = Vm::boot(
            &self.kernel.image,
            &[&self.base, &job],
            &self.machine,
            progress,
        )?;
        let heard = listen(&mut vm, begun, self.options.timeout, progress);
        // A machine that died leaves its samples, too.
        let capture = self.keep(&vm, arm)?;
        let heard = heard?;
        let source = answers::open(&capture, import::OpenOptions::default(), &mut |_| ())?;
        if let Some(problem) = source.problems.first() {
            return Err(LabError::Guest {
                why: format!("its samples arrived damaged: {problem}"),
            });
        }
        Ok(ArmOutcome {
            arm: arm.name,
            expected: self.scenario.expectation(arm, &settings),
            settings,
            measured: heard.measured,
            curves: heard.curves,
            report: answers::check(&source),
            source,
            capture,
            accelerator: vm.accelerator(),
            kernel: self.kernel.version.clone(),
            ram: self.machine.ram,
        })
    }

    /// Writes the archive with the guest's job.
    fn archive_of_job(&self, settings: &ScenarioSettings) -> Result<PathBuf, LabError> {
        let job = Job {
            scenario: Some(self.scenario.name.to_owned()),
            settings: settings.clone(),
            modules: self.modules.clone(),
            every_s: self.options.every.as_secs_f64(),
            is_cgroup_v1: self.options.is_cgroup_v1,
            mglru: self.options.mglru.or(self.scenario.mglru),
        };
        write_job(&job, self.work.path())
    }

    /// Copies the samples out of the machine's directory, which ends with it.
    fn keep(&self, vm: &Vm, arm: &Arm) -> Result<PathBuf, LabError> {
        let directory = self.options.output.as_deref().unwrap_or(self.work.path());
        std::fs::create_dir_all(directory).at(directory)?;
        let capture = directory.join(format!("{}.jsonl", arm.name));
        std::fs::copy(vm.capture_path(), &capture).at(&capture)?;
        Ok(capture)
    }
}

/// Writes an archive with a guest's job.
pub(crate) fn write_job(job: &Job, directory: &Path) -> Result<PathBuf, LabError> {
    let mut archive = Archive::default();
    let text = serde_json::to_vec(job).map_err(std::io::Error::other)?;
    archive.file(Path::new(JOB), &text);
    let path = directory.join("job");
    std::fs::write(&path, archive.finish()).at(&path)?;
    Ok(path)
}

/// The settings of an arm: the scenario's, then the arm's, then the user's.
fn settings(
    scenario: &Scenario,
    arm: &Arm,
    options: &RunOptions,
) -> Result<ScenarioSettings, LabError> {
    let known = scenario.settings.iter();
    let mut all: ScenarioSettings = known
        .map(|setting| (setting.name.to_owned(), setting.default))
        .collect();
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
            return Err(LabError::SettingOfArm {
                name: setting.name,
                arm: arm.name,
            });
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
    Ok(all)
}

/// What a machine reported.
#[derive(Debug, Default)]
struct Heard {
    measured: BTreeMap<String, f64>,
    curves: BTreeMap<String, Vec<(f64, f64)>>,
}

/// Hears the machine until it is done.
fn listen(
    vm: &mut Vm,
    begun: Instant,
    timeout: Span,
    progress: RunProgress<'_>,
) -> Result<Heard, LabError> {
    /// From one reading of the messages to the next.
    const EVERY: Span = Span::from_millis(50);
    let mut heard = Heard::default();
    loop {
        let has_ended = vm.has_ended();
        for message in vm.messages()? {
            let at = Span::from_secs_f64(begun.elapsed().as_secs_f64());
            progress(RunStep::Message {
                at,
                message: &message,
            })?;
            match message {
                GuestMessage::Measured { name, value } => {
                    heard.measured.insert(name, value);
                }
                GuestMessage::Point { curve, x, y } => {
                    heard.curves.entry(curve).or_default().push((x, y));
                }
                GuestMessage::Failed { why } => return Err(LabError::Guest { why }),
                GuestMessage::Done => {
                    vm.wait_for_end();
                    return Ok(heard);
                }
                GuestMessage::Ready { .. }
                | GuestMessage::Phase { .. }
                | GuestMessage::Vitals(_) => {}
            }
        }
        if has_ended {
            return Err(LabError::Ended {
                last_words: vm.last_words(),
            });
        }
        if begun.elapsed() > timeout.as_duration() {
            return Err(LabError::TimedOut { after: timeout });
        }
        progress(RunStep::Waiting)?;
        std::thread::sleep(EVERY.as_duration());
    }
}

/// A machine that makes this host swap would prove nothing and harm it.
pub(crate) fn has_memory_for(ram: Bytes) -> Result<(), LabError> {
    let needed = ram + QEMU_OVERHEAD;
    match KernelReader::open()
        .host(MEM_AVAILABLE)
        .map(Bytes::from_f64)
    {
        Ok(available) if available < needed => Err(LabError::NoMemory { needed, available }),
        _ => Ok(()),
    }
}
