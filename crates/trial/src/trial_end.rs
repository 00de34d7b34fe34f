//! Why a trial ended, as its directory keeps it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a trial ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrialEnd {
    /// Every verdict on memory and speed is decided, or cannot be within the blocks that are left.
    Settled,
    /// All blocks were run.
    AllBlocks,
    /// The time limit came first.
    TimeLimit,
    /// The user ended it.
    Interrupted,
    /// The baseline does not do its work, or no other variant does.
    NothingToCompare,
}
