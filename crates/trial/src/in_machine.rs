//! Runs in a virtual machine each, with this host's files: here the machine is started, and there the run is made by the same
//! program as on a host.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lab::{HostMachine, LabError, MachineEnd, MachineProgram, MachineSettings};
use sampler::CgroupRunError;
use serde::{Deserialize, Serialize};
use units::{Bytes, Span};

use crate::applied::Applied;
use crate::child::AnnounceNumber;
use crate::machine::{MachinePlan, RunMachine, SwapArea};
use crate::outside::{HostGauge, Outside};
use crate::plan::{RunPlan, TrialPlan};
use crate::preflight::ReadyVariant;
use crate::run::{PlaceInTrial, RunOutcome, TrialRun};
use crate::run_once::run_once;
use crate::variant::{Variant, VariantSetting};

/// What a machine gets on standard input.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RunOrder {
    pub(crate) plan: TrialPlan,
    pub(crate) ready: ReadyVariant,
    pub(crate) place: PlaceInTrial,
    /// From one reading to the next.
    pub(crate) every: Span,
}

/// Why no run can be made in a machine.
#[allow(missing_docs)] // their texts say it
#[derive(Debug, thiserror::Error)]
pub enum NoRunHere {
    #[error("its order cannot be read")]
    NoOrder(#[from] serde_json::Error),
    #[error("{} cannot be entered", path.display())]
    NoDirectory { path: PathBuf, source: std::io::Error },
    #[error("there are no more file descriptors")]
    NoFile(#[source] std::io::Error),
    #[error(transparent)]
    NoGroup(#[from] CgroupRunError),
}

/// The virtual machines of a trial, by the kernels that its variants name.
#[derive(Debug)]
pub(crate) struct TrialMachines {
    plan: MachinePlan,
    prepared: BTreeMap<String, HostMachine>,
}

impl TrialMachines {
    /// Prepares those of all kernels; `None` where runs have no machine.
    ///
    /// # Errors
    /// [`LabError`] where a machine cannot be made.
    pub(crate) fn prepare(plan: &TrialPlan) -> Result<Option<Self>, LabError> {
        let Some(machine) = &plan.runs.machine else {
            return Ok(None);
        };
        let mut all = Self { plan: machine.clone(), prepared: BTreeMap::new() };
        for variant in &plan.variants {
            let kernel = kernel_of(variant).unwrap_or(&machine.kernel);
            if !all.prepared.contains_key(kernel) {
                let (ram, cpus) = (machine.ram, machine.cpus);
                let machine =
                    HostMachine::prepare(Path::new(kernel), ram, cpus, machine.disk_speed)?;
                all.prepared.insert(kernel.to_owned(), machine);
            }
        }
        Ok(Some(all))
    }

    /// Makes one run in a machine.
    ///
    /// # Errors
    /// [`LabError`] where no machine can be started. What a machine refuses, or dies of, is an outcome of the run.
    pub(crate) fn run(
        &self,
        order: &RunOrder,
        gauge: &mut HostGauge,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<TrialRun, LabError> {
        let begun = jiff::Timestamp::now();
        let kernel = kernel_of(&order.ready.variant).unwrap_or(&self.plan.kernel);
        let host = self.prepared.get(kernel).ok_or_else(|| LabError::NoKernel {
            wanted: Some(kernel.to_owned()),
            tried: Vec::new(),
        })?;
        let input = serde_json::to_string(order)
            .map_err(|error| LabError::File { path: "plan.json".into(), error: error.into() })?;
        let program = MachineProgram {
            arguments: &["trial", "--in-machine"],
            input: &input,
            settings: &settings(&order.ready.variant, self.plan.ram),
            timeout: time_limit(&order.plan.runs),
        };
        let (before, children) = (gauge.read(), probe::children_cpu());
        let ended = host.run(&program, is_interrupted);
        // QEMU and virtiofsd have ended, and were waited for.
        let own = probe::children_cpu() - children;
        let outside = Outside::between(&before, &gauge.read(), Some(own));
        let outcome = match ended {
            Ok(MachineEnd::Done { output, accelerator }) => match serde_json::from_slice(&output) {
                Ok(run) => {
                    let run: TrialRun = run;
                    let machine = RunMachine {
                        kernel: host.kernel().version.clone(),
                        accelerator: accelerator.name().to_owned(),
                    };
                    return Ok(TrialRun {
                        machine: Some(machine),
                        outside_cpus: outside.cpus,
                        steal: outside.steal,
                        ..run
                    });
                }
                Err(error) => RunOutcome::MachineDied(format!(
                    "its run is cut ({error}): is there room in TMPDIR?"
                )),
            },
            Ok(MachineEnd::NotSet(why) | MachineEnd::Failed(why)) => RunOutcome::NotStarted(why),
            Ok(MachineEnd::Died(why)) => RunOutcome::MachineDied(why),
            Err(LabError::Interrupted) => RunOutcome::Interrupted,
            Err(error) => return Err(error),
        };
        let applied = Applied::NotSeen("its run came to no end".to_owned());
        Ok(TrialRun::new(order.place, begun, outcome, applied))
    }
}

/// The kernel that a variant names.
fn kernel_of(variant: &Variant) -> Option<&str> {
    variant.settings.iter().find_map(|setting| match setting {
        VariantSetting::Kernel(kernel) => Some(kernel.as_str()),
        _ => None,
    })
}

/// How long a machine may take for a run: its own limits end it earlier.
fn time_limit(runs: &RunPlan) -> Span {
    const START_AND_END: Span = Span::from_mins(5);
    let timeouts = if runs.prepare.is_some() { 2.0 } else { 1.0 };
    START_AND_END.plus(runs.timeout.times(timeouts)).plus(runs.idle)
}

/// In the machine: makes the run of an order, and returns it as the host reads it.
///
/// # Errors
/// [`NoRunHere`].
pub fn run_order(order: &[u8]) -> Result<Vec<u8>, NoRunHere> {
    let order: RunOrder = serde_json::from_slice(order)?;
    let place = &order.plan.working_directory;
    std::env::set_current_dir(place)
        .map_err(|source| NoRunHere::NoDirectory { path: place.clone(), source })?;
    // Where memory ends, the run is killed and not what measures it.
    let _ = std::fs::write("/proc/self/oom_score_adj", "-1000");
    let announced = AnnounceNumber::reserve().map_err(NoRunHere::NoFile)?;
    let mut run = run_once(
        &order.plan,
        &order.ready,
        order.place,
        &mut HostGauge::open(),
        &announced,
        order.every,
        &|| false,
    )?;
    if let Some(why) = not_applied(&order.ready.variant) {
        run.applied = Applied::No(why);
    }
    Ok(serde_json::to_vec(&run)?)
}

/// What a machine of this RAM gets for a variant.
fn settings(variant: &Variant, ram: Bytes) -> MachineSettings {
    let mut all = MachineSettings::default();
    for setting in &variant.settings {
        match setting {
            VariantSetting::Vm { name, value } => all.vm.push((name.clone(), value.clone())),
            VariantSetting::SwapArea(area) => all.swap = area.in_machine(ram),
            VariantSetting::Thp(mode) => all.thp = Some(mode.name().to_owned()),
            _ => {}
        }
    }
    all
}

/// What of a variant does not hold in this machine, read back from its kernel; `None` where all does.
fn not_applied(variant: &Variant) -> Option<String> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    variant.settings.iter().find_map(|setting| match setting {
        VariantSetting::Vm { name, value } => {
            let now = read(&format!("/proc/sys/vm/{name}"));
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            (words(&now) != words(value)).then(|| format!("vm.{name} is {}", now.trim()))
        }
        VariantSetting::Kernel(kernel) => {
            let now = rustix::system::uname();
            let now = now.release().to_string_lossy();
            // An image is named by its path.
            (!now.starts_with(kernel) && !kernel.contains('/'))
                .then(|| format!("the kernel is {now}"))
        }
        VariantSetting::SwapArea(area) => {
            let areas = read("/proc/swaps");
            let is_it = match area {
                SwapArea::Off => areas.lines().count() <= 1,
                SwapArea::Disk(_) => areas.contains("/dev/vd"),
                SwapArea::Zram(_) => areas.contains("/dev/zram"),
            };
            (!is_it).then(|| format!("swap areas are {}", areas.trim()))
        }
        VariantSetting::Thp(mode) => {
            let now = read("/sys/kernel/mm/transparent_hugepage/enabled");
            let is_it = now.contains(&format!("[{}]", mode.name()));
            (!is_it).then(|| format!("transparent huge pages are {}", now.trim()))
        }
        _ => None,
    })
}
