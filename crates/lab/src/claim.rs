//! What must hold of the numbers that the arms of a scenario measured.

use crate::model::ClaimState;
use crate::words::ABSENT;

/// The arms that were played, as a scenario's claims see them.
pub trait MeasuredArms {
    /// Their names, in their order.
    fn arms(&self) -> Vec<&'static str>;

    /// A number that an arm measured.
    fn measured(&self, arm: &str, name: &str) -> Option<f64>;

    /// How many times larger a number is in one arm than in another, which counts as 1 at least.
    fn ratio(&self, name: &str, arm: &str, other: &str) -> Option<f64> {
        let (one, other) = (self.measured(arm, name)?, self.measured(other, name)?);
        Some(one / other.max(1.0))
    }

    /// How many times larger one number of an arm is than another.
    fn quotient(&self, arm: &str, name: &str, other: &str) -> Option<f64> {
        let (one, other) = (self.measured(arm, name)?, self.measured(arm, other)?);
        (other > 0.0).then(|| one / other)
    }
}

/// A line of the table that compares with the article.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// What is compared.
    pub what: String,
    /// The article's figure; empty where it has none.
    pub article: String,
    pub ours: String,
    /// Whether it holds.
    pub state: ClaimState,
    /// The number itself.
    pub value: Option<f64>,
}

impl Claim {
    /// A claim about a number; `None` where it was not measured.
    pub(crate) fn of(what: &str, value: Option<f64>, print: fn(f64) -> String) -> Self {
        Self {
            what: what.to_owned(),
            article: String::new(),
            ours: value.map_or_else(|| ABSENT.to_owned(), print),
            state: match value {
                Some(_) => ClaimState::NoBounds,
                None => ClaimState::NotMeasured,
            },
            value,
        }
    }

    /// What the article has.
    pub(crate) fn article(mut self, article: &str) -> Self {
        article.clone_into(&mut self.article);
        self
    }

    /// It must be at least this.
    pub(crate) fn at_least(self, min: f64) -> Self {
        self.between(min, f64::INFINITY)
    }

    /// It must be at most this.
    pub(crate) fn at_most(self, max: f64) -> Self {
        self.between(f64::NEG_INFINITY, max)
    }

    /// It must be between these.
    pub(crate) fn between(mut self, min: f64, max: f64) -> Self {
        if let Some(value) = self.value {
            self.state =
                if (min..=max).contains(&value) { ClaimState::Holds } else { ClaimState::Fails };
        }
        self
    }
}

/// `28 ×`.
pub(crate) fn times(ratio: f64) -> String {
    if ratio < 10.0 { format!("{ratio:.1} ×") } else { format!("{ratio:.0} ×") }
}

/// `85 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A plain number.
pub(crate) fn plain(number: f64) -> String {
    if number.fract() == 0.0 { format!("{number:.0}") } else { format!("{number:.2}") }
}

/// `yes` or `no`.
pub(crate) fn yes(flag: f64) -> String {
    if flag > 0.0 { "yes" } else { "no" }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_without_a_number_neither_holds_nor_fails() {
        let claim = Claim::of("x", None, times).at_least(10.0);
        assert_eq!((claim.ours.as_str(), claim.state), ("–", ClaimState::NotMeasured));
        let claim = Claim::of("x", Some(28.4), times).at_least(10.0);
        assert_eq!((claim.ours.as_str(), claim.state), ("28 ×", ClaimState::Holds));
        assert_eq!(Claim::of("x", Some(0.2), percent).at_most(0.1).state, ClaimState::Fails);
    }
}
