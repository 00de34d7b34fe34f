//! `memtide lab shell`: the machine with a prompt.

use lab::{Machine, VirtualDisk};

use crate::cli::LabShellArgs;
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::interrupt;

pub(super) fn shell(args: &LabShellArgs) -> Result<Exit, CommandError> {
    let disks = args.disks.iter().map(|size| VirtualDisk { size: *size, ..VirtualDisk::empty(0) });
    let machine = Machine {
        ram: args.ram,
        cpus: args.nodes.max(2),
        nodes: args.nodes,
        disks: disks.collect(),
        has_host_files: false,
    };
    // First of all: what is made from here on is removed again.
    let is_interrupted = interrupt::listen_on_terminal();
    lab::shell(args.kernel.as_deref(), &machine, args.accel.map(Into::into), &is_interrupted)?;
    Ok(Exit::Ok)
}
