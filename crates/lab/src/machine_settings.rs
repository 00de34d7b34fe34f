//! Settings of a whole machine: what its init sets before a program starts.

use serde::{Deserialize, Serialize};
use units::Bytes;

/// What is set in a machine before its program starts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineSettings {
    /// Values of `/proc/sys/vm`, by their names there, in this order.
    pub vm: Vec<(String, String)>,
    /// Its swap area, if it has one.
    pub swap: Option<MachineSwap>,
    /// The mode of transparent huge pages: `always`, `madvise` or `never`.
    pub thp: Option<String>,
}

/// The swap area of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MachineSwap {
    /// A disk of this size.
    Disk(Bytes),
    /// A zram device for so much data.
    Zram(Bytes),
}
