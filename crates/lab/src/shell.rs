//! A virtual machine with a prompt: this program, and the host's own tools.

use std::io::IsTerminal as _;
use std::path::Path;

use crate::LabError;
use crate::host::accelerator::Accelerator;
use crate::host::image::GuestImage;
use crate::host::machine::{Machine, has_memory_for};
use crate::host::tools::{ZRAM_IF_ANY, add_tools};
use crate::host::vm::Vm;
use crate::message::Job;

/// Runs a machine with a shell on this terminal, until the shell ends. Afterwards the terminal is as it was.
///
/// # Errors
/// [`LabError::NoTerminal`] where standard input is not a terminal, [`LabError::Interrupted`] where the user ended it, others
/// where the machine cannot be started.
pub fn shell(
    kernel: Option<&Path>,
    machine: &Machine,
    accelerator: Option<Accelerator>,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<(), LabError> {
    // What comes from a pipe is lost until the guest listens.
    if !std::io::stdin().is_terminal() {
        return Err(LabError::NoTerminal);
    }
    machine.check()?;
    has_memory_for(machine.ram, 1)?;
    let image = GuestImage::build(kernel, ZRAM_IF_ANY, add_tools)?;
    let initramfs = image.with_job(Job::default())?;
    Vm::run_on_terminal(&image, &initramfs, machine, accelerator, &mut |_| {
        if is_interrupted() { Err(LabError::Interrupted) } else { Ok(()) }
    })
}
