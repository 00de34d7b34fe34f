//! What the host asks of the guest, and what the guest reports while it works.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Where the guest finds its job.
pub(crate) const JOB: &str = "/lab.json";

/// What a guest is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Job {
    /// The scenario's name.
    pub scenario: String,
    /// Its arm's name.
    pub arm: String,
    /// Numbers that the user or the arm set.
    pub settings: BTreeMap<String, String>,
    /// Modules in the order in which they are loaded, as paths in the initramfs.
    pub modules: Vec<String>,
    /// Seconds from sample to sample.
    pub every_s: f64,
}

/// A line from the guest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuestMessage {
    /// It has started and can be heard.
    Ready {
        /// Seconds since the kernel's start.
        boot_s: f64,
    },
    /// Something new begins.
    Phase {
        /// Seconds since the kernel's start.
        at_s: f64,
        /// What, in a few words.
        text: String,
    },
    /// A number that the scenario measured.
    Measured {
        /// What.
        name: String,
        /// How much; the name says of what.
        value: f64,
    },
    /// The scenario could not go on.
    Failed {
        /// Why.
        why: String,
    },
    /// All is done, and the samples are written.
    Done,
}
