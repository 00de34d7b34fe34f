//! `memtide lab kernel`: the kernels that the lab can boot.

use lab::{Kernel, LabError};

use crate::cli::{LabKernelArgs, LabKernelCommand};
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::output::Output;

pub(super) fn kernel(args: &LabKernelArgs, output: &Output) -> Result<Exit, CommandError> {
    match &args.command {
        LabKernelCommand::Fetch { package, suite } => {
            let spinner = output.busy("fetching a kernel");
            let fetched = lab::fetch_kernel(package, suite.as_deref());
            spinner.finish_and_clear();
            let fetched = fetched?;
            let how = if fetched.was_there { "is there already" } else { "was fetched" };
            let Kernel { version, image, .. } = &fetched.kernel;
            output.print(&format!("Linux {version} {how}: {}\n", image.display()))?;
        }
        LabKernelCommand::List => {
            let kernels = Kernel::all();
            if kernels.is_empty() {
                return Err(LabError::NoKernel { wanted: None, tried: Vec::new() }.into());
            }
            let rows = kernels.iter().map(|kernel| {
                (format!("{:<32}", kernel.version), kernel.image.display().to_string())
            });
            output.print(&report::text::columns(&rows.collect::<Vec<_>>(), &output.screen()))?;
        }
    }
    Ok(Exit::Ok)
}
