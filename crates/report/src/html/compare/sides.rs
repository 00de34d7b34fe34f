//! What every block of the comparison is drawn from.

use crate::html::Scene;
use crate::model::CompareReport;

/// What every block is drawn from: what changed, and each side as its report has it.
pub(super) struct Both<'a> {
    pub(super) report: &'a CompareReport,
    pub(super) before: Scene<'a>,
    pub(super) after: Scene<'a>,
}

impl<'a> Both<'a> {
    /// The sides, each with its word.
    pub(super) fn sides(&self) -> [(&'static str, &Scene<'a>); 2] {
        [("before", &self.before), ("after", &self.after)]
    }
}
