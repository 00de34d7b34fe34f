//! Plays a scenario: a machine for each arm, its messages while it works, and what came of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use units::{Bytes, Span};

use crate::LabError;
use crate::host::initramfs::{Archive, interpreter, loadable, own_libraries};
use crate::host::kernel::{Kernel, read_module};
use crate::host::machine::Vm;
use crate::message::{GuestMessage, JOB, Job};
use crate::scenario::{Arm, ArmOutcome, ArmOutcomes, Scenario};
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
    /// Settings that the user set.
    pub settings: BTreeMap<String, String>,
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
        /// Seconds since the machine's boot began.
        at_s: f64,
        /// The message.
        message: &'a GuestMessage,
    },
    /// Nothing new for a while: a chance to end it.
    Waiting,
    /// An arm is done.
    Done {
        /// The arm's name.
        arm: &'static str,
        /// What came of it.
        outcome: &'a ArmOutcome,
    },
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
    let kernel = Kernel::find(options.kernel.as_deref())?;
    let work = tempfile::Builder::new().prefix("memtide-lab-").tempdir()?;
    let files = kernel.module_files(scenarios::MODULES)?;
    let (base, modules) = base(work.path(), &files)?;
    let mut outcomes = ArmOutcomes::default();
    for arm in scenario.arms {
        if options
            .variant
            .as_deref()
            .is_none_or(|wanted| wanted == arm.name)
        {
            progress(RunStep::Booting {
                arm: arm.name,
                kernel: &kernel.version,
            })?;
            let job = job(scenario, arm, &modules, options);
            let outcome = play(scenario, arm, &kernel, (&base, &job), options, progress)?;
            progress(RunStep::Done {
                arm: arm.name,
                outcome: &outcome,
            })?;
            outcomes.arms.push((arm.name, outcome));
        }
    }
    Ok(outcomes)
}

/// The archive that all arms share: this program, its libraries and modules; and the modules' places in it.
fn base(work: &Path, modules: &[PathBuf]) -> Result<(PathBuf, Vec<String>), LabError> {
    let mut archive = Archive::default();
    for place in ["/proc", "/sys", "/dev", "/tmp", "/disk"] {
        archive.directory(Path::new(place));
    }
    let program = std::fs::read("/proc/self/exe")?;
    archive.file(Path::new("/init"), loadable(&program));
    if let Some(linker) = interpreter(&program) {
        archive.file(&linker, &std::fs::read(&linker)?);
    }
    for library in own_libraries()? {
        archive.file(&library, &std::fs::read(&library)?);
    }
    let mut places = Vec::new();
    for module in modules {
        let name = module.file_name().unwrap_or_default().to_string_lossy();
        let place = format!("/modules/{}", name.split(".ko").next().unwrap_or(&name));
        archive.file(Path::new(&place), &read_module(module)?);
        places.push(place);
    }
    let path = work.join("base");
    std::fs::write(&path, archive.finish())?;
    Ok((path, places))
}

fn job(scenario: &Scenario, arm: &Arm, modules: &[String], options: &RunOptions) -> Job {
    let own = arm
        .settings
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let mut settings: BTreeMap<String, String> = own.collect();
    settings.extend(options.settings.clone());
    Job {
        scenario: scenario.name.to_owned(),
        arm: arm.name.to_owned(),
        settings,
        modules: modules.to_vec(),
        every_s: options.every.as_secs_f64(),
    }
}

fn play(
    scenario: &Scenario,
    arm: &Arm,
    kernel: &Kernel,
    (base, job): (&Path, &Job),
    options: &RunOptions,
    progress: RunProgress<'_>,
) -> Result<ArmOutcome, LabError> {
    let mut machine = (scenario.machine)();
    machine.ram = options.ram.unwrap_or(machine.ram);
    has_memory_for(machine.ram)?;
    let mut archive = Archive::default();
    let job = serde_json::to_vec(job).map_err(std::io::Error::other)?;
    archive.file(Path::new(JOB), &job);
    let job = base.with_file_name("job");
    std::fs::write(&job, archive.finish())?;
    let begun = Instant::now();
    let mut vm = Vm::boot(&kernel.image, &[base, &job], &machine)?;
    let measured = listen(&mut vm, begun, options.timeout, progress)?;
    let capture = keep(&vm, arm, base, options)?;
    let source = answers::open(&capture, import::OpenOptions::default(), &mut |_| ())?;
    let report = answers::check(&source);
    Ok(ArmOutcome {
        measured,
        source,
        capture,
        report,
        accelerator: vm.accelerator(),
    })
}

/// Hears the machine until it is done; gives what it measured.
fn listen(
    vm: &mut Vm,
    begun: Instant,
    timeout: Span,
    progress: RunProgress<'_>,
) -> Result<BTreeMap<String, f64>, LabError> {
    let mut measured = BTreeMap::new();
    let timeout = Duration::from_secs_f64(timeout.as_secs_f64());
    loop {
        let has_ended = vm.has_ended();
        for message in vm.messages()? {
            let at_s = begun.elapsed().as_secs_f64();
            progress(RunStep::Message {
                at_s,
                message: &message,
            })?;
            match message {
                GuestMessage::Measured { name, value } => {
                    measured.insert(name, value);
                }
                GuestMessage::Failed { why } => return Err(LabError::Guest { why }),
                GuestMessage::Done => return Ok(measured),
                GuestMessage::Ready { .. } | GuestMessage::Phase { .. } => {}
            }
        }
        if has_ended {
            return Err(LabError::Ended {
                last_words: vm.last_words(),
            });
        }
        if begun.elapsed() > timeout {
            return Err(LabError::TimedOut { after: timeout });
        }
        progress(RunStep::Waiting)?;
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Copies the samples out of the machine's directory, which ends with it.
fn keep(vm: &Vm, arm: &Arm, base: &Path, options: &RunOptions) -> Result<PathBuf, LabError> {
    let directory = options.output.as_deref().or(base.parent()).unwrap_or(base);
    std::fs::create_dir_all(directory)?;
    let capture = directory.join(format!("{}.jsonl", arm.name));
    std::fs::copy(vm.capture_path(), &capture)?;
    std::fs::copy(vm.console_path(), capture.with_extension("console"))?;
    Ok(capture)
}

/// A machine that makes this host swap would prove nothing and harm it.
fn has_memory_for(ram: Bytes) -> Result<(), LabError> {
    let text = std::fs::read_to_string("/proc/meminfo")?;
    let available = text
        .lines()
        .find_map(|line| {
            line.strip_prefix("MemAvailable:")?
                .split_whitespace()
                .next()?
                .parse()
                .ok()
        })
        .map(Bytes::from_kib);
    let needed = ram + QEMU_OVERHEAD;
    match available {
        Some(available) if available < needed => Err(LabError::NoMemory { needed, available }),
        _ => Ok(()),
    }
}
