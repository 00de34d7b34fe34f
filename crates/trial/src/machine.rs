//! The virtual machine of a run: what it is made of, and what only a whole machine has.

use std::fmt;

use lab::MachineSwap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Bytes;

/// The virtual machine that each run of a trial has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MachinePlan {
    /// RAM of the machine.
    pub ram: Bytes,
    /// CPUs of the machine.
    pub cpus: u32,
    /// Bytes that each of its disks reads or writes in a second; `None`: as fast as this host.
    pub disk_speed: Option<Bytes>,
    /// The release of the kernel that it boots, where a variant names no other.
    pub kernel: String,
}

/// The virtual machine that a run had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunMachine {
    /// The release of its kernel.
    pub kernel: String,
    /// How its instructions ran: KVM or TCG.
    pub accelerator: String,
}

/// A swap area; of no size, it has that of the RAM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SwapArea {
    /// No swap at all.
    Off,
    /// A disk of its own.
    Disk(Option<Bytes>),
    /// A zram device for so much data.
    Zram(Option<Bytes>),
}

/// A mode of transparent huge pages.
#[allow(missing_docs)] // the kernel's names
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThpMode {
    Always,
    Madvise,
    Never,
}

impl SwapArea {
    /// The kernel takes none that is smaller than some pages.
    const SIZE_MIN: Bytes = Bytes::from_mib(1);

    /// Reads `off`, `disk`, `disk:1G`, `zram` or `zram:1G`.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (kind, size) = match text.split_once(':') {
            Some((kind, size)) => {
                let size = size.parse().ok().filter(|size| *size >= Self::SIZE_MIN)?;
                (kind, Some(size))
            }
            None => (text, None),
        };
        Some(match (kind, size) {
            ("off", None) => Self::Off,
            ("disk", size) => Self::Disk(size),
            ("zram", size) => Self::Zram(size),
            _ => return None,
        })
    }

    /// As the lab makes it.
    pub(crate) fn in_machine(self, ram: Bytes) -> Option<MachineSwap> {
        match self {
            Self::Off => None,
            Self::Disk(size) => Some(MachineSwap::Disk(size.unwrap_or(ram))),
            Self::Zram(size) => Some(MachineSwap::Zram(size.unwrap_or(ram))),
        }
    }
}

impl fmt::Display for SwapArea {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, size) = match self {
            Self::Off => ("off", None),
            Self::Disk(size) => ("disk", *size),
            Self::Zram(size) => ("zram", *size),
        };
        f.write_str(kind)?;
        size.map_or(Ok(()), |size| write!(f, ":{size}"))
    }
}

impl ThpMode {
    /// Reads the kernel's name of a mode.
    pub(crate) fn read(text: &str) -> Option<Self> {
        [Self::Always, Self::Madvise, Self::Never].into_iter().find(|mode| mode.name() == text)
    }

    /// The kernel's name of it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Madvise => "madvise",
            Self::Never => "never",
        }
    }
}
