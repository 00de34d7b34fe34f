//! PLACEHOLDER

use crate::evidence::Evidence;
use crate::missing::{Missing, Need};
use crate::rule::{Outcome, declare_rule};

declare_rule! {
    /// PLACEHOLDER
    pub(crate) RULE = { id: "fork-cow-spike", since: "0.1.0", purpose: Finding, check: check }
}

fn check(_: &Evidence<'_>) -> Result<Outcome, Missing> {
    Err(Missing::because(vec![], Need::TwoLooks))
}
