//! `memtide lab shell`: the machine with a prompt.

use lab::{Machine, VirtualDisk};

use crate::cli::LabShellArgs;
use crate::exit::Exit;

pub(super) fn shell(args: &LabShellArgs) -> anyhow::Result<Exit> {
    let disks = args.disks.iter().map(|size| VirtualDisk {
        size: *size,
        ..VirtualDisk::empty(0)
    });
    let machine = Machine {
        ram: args.ram,
        cpus: args.nodes.max(2),
        nodes: args.nodes,
        disks: disks.collect(),
    };
    lab::shell(args.kernel.as_deref(), &machine, args.accel.map(Into::into))?;
    Ok(Exit::Ok)
}
