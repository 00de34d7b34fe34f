//! What happens while a scenario is played, for whoever watches.

use std::path::PathBuf;

use units::Span;

use crate::LabError;
use crate::message::GuestMessage;

/// What happens while a scenario is played.
#[allow(missing_docs)] // names say it
#[derive(Debug)]
pub enum RunStep<'a> {
    /// An arm's machine is being booted.
    Booting {
        /// The arm's name.
        arm: &'static str,
        /// The kernel's version.
        kernel: &'a str,
    },
    /// It has booted.
    Booted {
        /// The arm's name.
        arm: &'static str,
        /// The capture that its samples arrive in, a line each; it ends with the arm.
        capture: PathBuf,
    },
    /// A message from the machine.
    Message {
        /// Since the machine's boot began.
        at: Span,
        message: &'a GuestMessage,
    },
    /// Nothing new for a while: a chance to end it.
    Waiting,
}

/// Asked at every step; an error ends the run.
pub(crate) type RunProgress<'a> = &'a mut dyn FnMut(RunStep<'_>) -> Result<(), LabError>;
