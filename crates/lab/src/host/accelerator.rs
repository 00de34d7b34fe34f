//! Whether KVM runs a guest here. Opening `/dev/kvm` proves nothing: a nested KVM may start and never run an instruction.
//! So a guest is started with it, and if none of its messages arrives in time, that is remembered until the host boots again.

use std::fs::File;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use crate::host::cache::cache_directory;

/// How long a guest may take to its first message. With KVM it is there in two seconds.
const KVM_START: Duration = Duration::from_secs(10);
/// The same under emulation, on a loaded host.
const TCG_START: Duration = Duration::from_secs(120);
/// The file in the user's cache that says in which boot of the host no guest started with KVM.
const FAILED: &str = "kvm-failed";
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// How QEMU runs the guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accelerator {
    /// The host's processor, by KVM.
    Kvm,
    /// Emulation.
    Tcg,
}

impl Accelerator {
    /// As people know it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kvm => "KVM",
            Self::Tcg => "TCG",
        }
    }

    /// How long a guest may take to its first message.
    pub(crate) fn start_max(self) -> Duration {
        match self {
            Self::Kvm => KVM_START,
            Self::Tcg => TCG_START,
        }
    }

    /// What is tried, in this order, if the user wants this one or none. An emulated kernel may panic in early boot on a loaded host, when a timer does not tick
    /// in time: it gets a second start.
    pub(crate) fn candidates(wanted: Option<Self>) -> &'static [Self] {
        match wanted.as_ref().or(WORKS.get()) {
            Some(Self::Kvm) => &[Self::Kvm, Self::Kvm],
            None if opens_kvm() && !has_failed() => &[Self::Kvm, Self::Tcg, Self::Tcg],
            Some(Self::Tcg) | None => &[Self::Tcg, Self::Tcg],
        }
    }

    /// Remembers that a guest started with this one, and with none before it.
    pub(crate) fn works(self) {
        let is_first = WORKS.set(self).is_ok();
        if is_first && self == Self::Tcg && opens_kvm() && !has_failed() {
            remember_failure();
        }
    }
}

/// Which accelerator works, once a guest of this process has started.
static WORKS: OnceLock<Accelerator> = OnceLock::new();

fn failed_path() -> Option<PathBuf> {
    Some(cache_directory()?.join(FAILED))
}

fn has_failed() -> bool {
    let failed = failed_path().and_then(|path| std::fs::read(path).ok());
    failed.is_some_and(|boot| std::fs::read(BOOT_ID).is_ok_and(|now| now == boot))
}

/// Without it the next run tries again, so errors do not matter.
fn remember_failure() {
    if let (Some(path), Ok(boot)) = (failed_path(), std::fs::read(BOOT_ID)) {
        let _ = path.parent().map(std::fs::create_dir_all);
        let _ = std::fs::write(path, boot);
    }
}

fn opens_kvm() -> bool {
    File::options().read(true).write(true).open("/dev/kvm").is_ok()
}
