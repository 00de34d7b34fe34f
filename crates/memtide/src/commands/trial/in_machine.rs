//! One run, in a virtual machine of a trial.

use std::io::Read as _;

use crate::command_error::{CommandError, ErrorContext as _};
use crate::exit::Exit;
use crate::output::Output;

/// Makes one run and prints it, for the host of this machine.
pub(super) fn run(output: &Output) -> Result<Exit, CommandError> {
    let mut order = Vec::new();
    std::io::stdin().read_to_end(&mut order).context("its order cannot be read")?;
    let run = ::trial::run_order(&order)?;
    output.print(&String::from_utf8_lossy(&run)).map(|()| Exit::Ok)
}
