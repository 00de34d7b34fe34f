//! Who called what started the work: a tree from the trigger outwards.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stack::StackFrame;

/// Branches below this share of what calls are not shown.
const BRANCH_MIN: f64 = 0.01;
/// How many branchings are shown.
const DEPTH_MAX: usize = 5;

/// A branch: functions that only call each other, and what calls the last of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallerBranch {
    /// From the callee to its callers.
    pub functions: Vec<String>,
    /// Of the busy CPU, 0 to 1.
    pub share: f64,
    /// Of the branch above, 0 to 1.
    pub of_branch: f64,
    /// What calls the last function, the largest first.
    pub callers: Vec<CallerBranch>,
}

/// Calls with their weights.
#[derive(Debug, Default)]
pub(crate) struct CallTree {
    weight: f64,
    callers: BTreeMap<Arc<str>, CallTree>,
}

impl CallTree {
    /// Adds a way: `frames` are the callers and the trigger, the outermost first.
    pub(crate) fn add(&mut self, frames: &[StackFrame], weight: f64) {
        self.weight += weight;
        if let Some((inner, outer)) = frames.split_last() {
            self.callers.entry(Arc::clone(&inner.name)).or_default().add(outer, weight);
        }
    }

    /// The branches, as shares of the busy CPU of this weight.
    pub(crate) fn branches(&self, busy: f64) -> Vec<CallerBranch> {
        self.below(busy, DEPTH_MAX)
    }

    fn below(&self, busy: f64, depth: usize) -> Vec<CallerBranch> {
        if depth == 0 || busy <= 0.0 {
            return Vec::new();
        }
        let mut branches: Vec<CallerBranch> = self
            .callers
            .iter()
            .filter(|(_, tree)| tree.weight >= BRANCH_MIN * self.weight)
            .map(|(name, tree)| {
                let (functions, end) = tree.chain(name);
                CallerBranch {
                    functions,
                    share: tree.weight / busy,
                    of_branch: tree.weight / self.weight,
                    callers: end.below(busy, depth - 1),
                }
            })
            .collect();
        branches.sort_by(|one, other| other.share.total_cmp(&one.share));
        branches
    }

    /// The functions that call each other without a branch, and where it branches.
    fn chain(&self, name: &Arc<str>) -> (Vec<String>, &Self) {
        let mut functions = vec![name.to_string()];
        let mut end = self;
        while let Some((name, next)) = end.callers.first_key_value() {
            // Alone, or all but a rounding of it.
            if end.callers.len() > 1 || next.weight < 0.99 * end.weight {
                break;
            }
            functions.push(name.to_string());
            end = next;
        }
        (functions, end)
    }
}
