//! What differs between two sources, as far as it was compared.

use super::findings::FindingChange;
use super::memory::AmountChange;
use super::rates::RateChange;
use super::settings::FactChange;
use crate::evidence::Evidence;
use crate::judge::Diagnosis;

/// What differs between two sources.
pub(super) struct Differences<'a> {
    pub(super) before: &'a Diagnosis,
    pub(super) after: &'a Diagnosis,
    pub(super) findings: &'a [FindingChange],
    pub(super) facts: &'a [FactChange],
    pub(super) amounts: &'a [AmountChange],
    pub(super) rates: &'a [RateChange],
    /// The evidence of both sides, before and after.
    pub(super) sides: (&'a Evidence<'a>, &'a Evidence<'a>),
}

impl Differences<'_> {
    /// Whether the hosts' RAM differs; then absolute amounts mean little.
    pub(super) fn is_other_size(&self) -> bool {
        let mut facts = self.facts.iter();
        facts.any(|fact| fact.name == super::settings::RAM && fact.differs())
    }
}
