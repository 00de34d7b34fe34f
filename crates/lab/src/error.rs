//! Why a lab cannot run.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a lab cannot run.
#[allow(missing_docs)] // names say it
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// QEMU is not installed.
    #[error("qemu-system-x86_64 is not installed")]
    NoQemu,
    /// The host's files cannot be had in a machine.
    #[error("virtiofsd is not installed, and the machine gets this host's files from it")]
    NoShare,
    /// There is no program that makes file systems.
    #[error("mke2fs is not installed, and the machine needs a file system")]
    NoMke2fs,
    /// No kernel can be booted.
    #[error("no kernel {}can be booted{}", wanted.as_ref().map(|wanted| format!("{wanted} ")).unwrap_or_default(), tried.iter().map(|one| format!("\n  {one}")).collect::<String>())]
    NoKernel {
        /// The version that was asked for; `None`: any.
        wanted: Option<String>,
        /// Each image, and why not.
        tried: Vec<String>,
    },
    /// There is no program of Debian's that fetches a kernel.
    #[error("{program} is not installed, and kernels are fetched as packages of Debian")]
    NoApt { program: String },
    /// A kernel could not be fetched.
    #[error("`{command}` failed{}", if words.is_empty() { String::new() } else { format!(": {words}") })]
    Apt {
        /// What was run.
        command: String,
        words: String,
    },
    /// The user has no directory for what the lab keeps.
    #[error("there is no place for kernels: neither XDG_CACHE_HOME nor HOME is set")]
    NoCache,
    /// A kernel image cannot be used.
    #[error("{}: {why}", image.display())]
    Kernel { image: PathBuf, why: String },
    /// A kernel has not what a scenario needs.
    #[error("Linux {version} has no module {module}")]
    NoModule { module: String, version: String },
    /// There is no such scenario.
    #[error("there is no scenario `{name}`; there are {}", known.join(", "))]
    NoScenario {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<&'static str>,
    },
    /// A scenario has no such arm.
    #[error("{scenario} has no arm `{arm}`; it has {}", known.join(", "))]
    NoArm {
        scenario: &'static str,
        /// What was asked for.
        arm: String,
        /// What there is.
        known: Vec<&'static str>,
    },
    /// A scenario has no such setting.
    #[error("{scenario} has no setting `{name}`; it has {}", if known.is_empty() { "none".to_owned() } else { known.join(", ") })]
    NoSetting {
        scenario: &'static str,
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<&'static str>,
    },
    /// A setting is out of its range.
    #[error("{name}={value} is not between {} and {}", range.0, range.1)]
    SettingRange {
        name: &'static str,
        /// What was asked for.
        value: f64,
        /// The least and the most.
        range: (f64, f64),
    },
    /// A setting is what makes an arm.
    #[error("{name} is what makes the arm {arm}")]
    SettingOfArm { name: &'static str, arm: &'static str },
    /// A machine would be too small.
    #[error("a virtual machine of {ram} is too small; it needs {min}")]
    TooSmall {
        /// What was asked for.
        ram: units::Bytes,
        min: units::Bytes,
    },
    /// A guest did not start.
    #[error("the virtual machine did not start within {} s ({accelerator}){}", after.as_secs(), after_colon(last_words))]
    Boot {
        /// KVM or TCG.
        accelerator: &'static str,
        /// How long it was waited for.
        after: Duration,
        /// The end of what QEMU and the guest printed.
        last_words: String,
    },
    /// The guest ended before the scenario did.
    #[error("the virtual machine ended before the scenario did{}", if last_words.is_empty() { "; \
                                                            it printed nothing: is the kernel \
                                                            image whole?".to_owned() } else { format!(":\n{last_words}") })]
    Ended {
        /// The end of what the guest printed.
        last_words: String,
    },
    /// The scenario took too long.
    #[error("the scenario was not done after {after}")]
    TimedOut {
        /// How long it was waited for.
        after: units::Span,
    },
    /// The guest could not go on.
    #[error("in the virtual machine: {why}{}", after_colon(last_words))]
    Guest {
        why: String,
        /// The end of what the guest printed.
        last_words: String,
    },
    /// A shell has no terminal to talk to.
    #[error("the shell needs a terminal, and standard input is not one")]
    NoTerminal,
    /// The user ended it.
    #[error("it was interrupted")]
    Interrupted,
    /// Another run writes its pages to the same directory.
    #[error("{} is in use: another lab run writes its pages to it", directory.display())]
    PagesInUse { directory: PathBuf },
    /// There is too little memory for the machines.
    #[error("virtual machines need {needed}, and {available} is available")]
    NoMemory {
        /// What they take.
        needed: units::Bytes,
        /// What there is.
        available: units::Bytes,
    },
    /// A part would take more than there is.
    #[error(
        "{size} is more than the {available} that this host has available: it would swap, or \
         programs would be killed"
    )]
    BeyondAvailable {
        /// What it would take.
        size: units::Bytes,
        /// What there is.
        available: units::Bytes,
    },
    /// A part cannot be run in a cgroup with a limit.
    #[error(transparent)]
    InCgroup(#[from] sampler::CgroupRunError),
    /// The recording cannot be read.
    #[error(transparent)]
    Recording(#[from] import::OpenError),
    /// A file or a program cannot be used.
    #[error("{}: {error}", path.display())]
    File {
        path: PathBuf,
        /// The operating system's error.
        error: std::io::Error,
    },
    /// No directory for temporary files can be made.
    #[error("cannot make a directory in {}: {error}", place.display())]
    NoWorkDirectory { place: PathBuf, error: std::io::Error },
}

/// What a guest printed, after a colon; nothing where it printed nothing.
fn after_colon(last_words: &str) -> String {
    if last_words.is_empty() { String::new() } else { format!(":\n{last_words}") }
}

/// Adds to an error which file or program it is about.
pub(crate) trait AtPath<T> {
    /// The same result, with this path in its error.
    fn at(self, path: &Path) -> Result<T, LabError>;
}

impl<T> AtPath<T> for std::io::Result<T> {
    fn at(self, path: &Path) -> Result<T, LabError> {
        self.map_err(|error| LabError::File { path: path.to_owned(), error })
    }
}

const NEW_TMPDIR: &str = "TMPDIR names another directory for the machine's files: about 100 MiB, \
                          and what its disks hold";

impl LabError {
    /// What to do about it.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::NoQemu => Some("apt-get install --no-install-recommends qemu-system-x86"),
            Self::NoMke2fs => Some("apt-get install e2fsprogs"),
            Self::NoShare => Some(
                "apt-get install --no-install-recommends virtiofsd; on Debian 12 it comes with \
                 qemu-system-common, and needs root",
            ),
            Self::NoKernel { .. } => Some(
                "`memtide lab kernel fetch` fetches one of Debian (x86-64) and needs no root; or name \
                 one: --kernel FILE",
            ),
            Self::NoApt { .. } => Some("name a kernel image with its modules: --kernel FILE"),
            Self::Apt { .. } => Some(
                "`apt-get update` brings the lists up to date, `apt-cache search linux-image` shows \
                 the packages; or name a kernel image: --kernel FILE",
            ),
            Self::NoCache => Some("set HOME, or name a kernel image: --kernel FILE"),
            Self::NoModule { .. } | Self::Kernel { .. } => {
                Some("name another kernel: --kernel FILE")
            }
            Self::Boot { .. } | Self::Ended { .. } => Some(
                "a loaded host may be too slow: try again; or name another kernel: --kernel FILE",
            ),
            Self::TimedOut { .. } => {
                Some("--timeout waits longer; a loaded host slows the machine")
            }
            Self::PagesInUse { .. } => Some("--out DIR names another directory"),
            Self::NoTerminal => Some("memtide lab run plays a scenario without one"),
            Self::NoMemory { .. } => {
                Some("--ram makes the machine smaller; fewer --jobs run fewer at once")
            }
            Self::BeyondAvailable { .. } => Some(
                "--limit SIZE keeps it within a cgroup; --beyond-available takes it all the same; \
                 memtide lab shell is a machine for it",
            ),
            Self::InCgroup(error) => error.help(),
            Self::SettingOfArm { .. } => {
                Some("--arm plays an arm that leaves it open; memtide lab list names scenarios")
            }
            Self::NoScenario { .. } => Some("memtide lab list says what each shows"),
            Self::NoWorkDirectory { .. } => Some(NEW_TMPDIR),
            // The path of a socket has at most 107 bytes.
            Self::File { error, .. }
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::StorageFull | std::io::ErrorKind::InvalidInput
                ) =>
            {
                Some(NEW_TMPDIR)
            }
            _ => None,
        }
    }
}
