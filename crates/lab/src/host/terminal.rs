//! How this terminal is set: QEMU makes it raw and its reads nonblocking while a machine has it, and one that is killed leaves
//! it so.

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::getpgrp;
use rustix::stdio::stdin;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};

/// How standard input was set; set so again with the end of this value.
#[derive(Debug)]
pub(crate) struct TerminalSetting {
    modes: Termios,
    flags: OFlags,
}

impl TerminalSetting {
    /// The setting of today; `None` where standard input is no terminal.
    pub(crate) fn kept() -> Option<Self> {
        Some(Self { modes: tcgetattr(stdin()).ok()?, flags: fcntl_getfl(stdin()).ok()? })
    }
}

impl Drop for TerminalSetting {
    fn drop(&mut self) {
        // In the background it is another program's by now, and the kernel would stop this one for it. A terminal that does
        // not control this session has no groups.
        let is_others = tcgetpgrp(stdin()).is_ok_and(|group| group != getpgrp());
        if !is_others {
            // A terminal that was closed needs neither.
            let _ = tcsetattr(stdin(), OptionalActions::Now, &self.modes);
            let _ = fcntl_setfl(stdin(), self.flags);
        }
    }
}
