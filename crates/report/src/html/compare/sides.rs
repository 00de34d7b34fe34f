//! The data that every block of the comparison is drawn from.

use crate::html::Scene;
use crate::model::CompareReport;

/// Both sides and their comparison.
pub(super) struct Both<'a> {
    pub(super) report: &'a CompareReport,
    pub(super) before: Scene<'a>,
    pub(super) after: Scene<'a>,
}

impl<'a> Both<'a> {
    /// Returns the sides, each with its word.
    pub(super) fn sides(&self) -> [(&'static str, &Scene<'a>); 2] {
        [("before", &self.before), ("after", &self.after)]
    }
}
