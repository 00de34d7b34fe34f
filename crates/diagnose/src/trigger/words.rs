//! A trigger in words: the thresholds of a rule's documentation, generated from the trigger itself.

use units::Ratio;

use super::reading::{Expr, NamedExpr, Predicate, ThresholdTest};
use super::{Subjects, Trigger};
use crate::finding::ThresholdSide;

impl Trigger {
    /// Returns `swapped in at least 1 MiB/s and …; for 4 s or longer, on the host`, and a definition of each name in
    /// it; `None` if a function finds the incidents.
    pub(crate) fn words(&self) -> Option<String> {
        let Self::While(holds) = self else {
            return None;
        };
        let scope = match holds.scope {
            Subjects::Host => "on the host".to_owned(),
            Subjects::Each(entity, _) => format!("in a {}", entity.name()),
        };
        let mut words = format!(
            "{}; for {} or longer, {scope}",
            holds.when.words(),
            holds.at_least
        );
        for named in holds.when.named() {
            let expr = named.expr.words(named.print);
            words.push_str(&format!("; {}: {expr}", named.name));
        }
        Some(words)
    }
}

impl Predicate {
    /// Returns its named parts, each once; parts that rest on others come first.
    fn named(&self) -> Vec<NamedExpr> {
        let mut all: Vec<NamedExpr> = Vec::new();
        self.visit(&mut |expr| {
            if let Expr::Named(named) = expr
                && !all.iter().any(|known| known.name == named.name)
            {
                all.push(named.clone());
            }
        });
        all
    }

    fn words(&self) -> String {
        match self {
            Self::Compare(comparison) => comparison.words(),
            Self::All(parts) => joined(parts, " and "),
            Self::Any(parts) | Self::Also(parts) => format!("({})", joined(parts, ", or ")),
            Self::Measured(this, Some(other)) => {
                format!(
                    "({}, or where that is not measured {})",
                    this.words(),
                    other.words()
                )
            }
            Self::Measured(this, None) => format!("{} (where that is measured)", this.words()),
        }
    }
}

fn joined(parts: &[Predicate], word: &str) -> String {
    let parts: Vec<String> = parts.iter().map(Predicate::words).collect();
    parts.join(word)
}

impl ThresholdTest {
    fn words(&self) -> String {
        let side = match self.side {
            ThresholdSide::From => "at least",
            ThresholdSide::Below => "at most",
        };
        format!("{} {side} {}", self.name, self.right.words(self.print))
    }
}

impl Expr {
    fn words(&self, print: fn(f64) -> String) -> String {
        let pair =
            |a: &Self, word: &str, b: &Self| format!("{}{word}{}", a.words(print), b.words(print));
        match self {
            Self::Gauge(signal) | Self::Rate(signal) => signal.def().name.to_owned(),
            Self::Fact(fact) => fact.name.to_owned(),
            Self::Constant(value) => print(*value),
            Self::Ram => "RAM".to_owned(),
            Self::PageSize => "a page".to_owned(),
            Self::Product(a, b) => match b.as_ref() {
                Self::PageSize => a.words(print),
                Self::Constant(share) if *share < 10.0 => {
                    format!("{} of {}", Ratio::new(*share), a.words(print))
                }
                _ => pair(a, " × ", b),
            },
            Self::Sum(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| part.words(print)).collect();
                parts.join(" + ")
            }
            Self::Both(a, b) => pair(a, " + ", b),
            Self::SumOver(entity, each) => {
                format!("{} of all {}s", each.words(print), entity.name())
            }
            Self::MostOfOthers(each) => format!("the most {} of the others", each.words(print)),
            Self::Difference(a, b) => pair(a, " − ", b),
            Self::Quotient(a, b) => pair(a, " / ", b),
            Self::Least(a, b) => format!("{}, at most {}", a.words(print), b.words(print)),
            Self::Most(a, b) => format!("{}, at least {}", a.words(print), b.words(print)),
            Self::FirstOf(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| part.words(print)).collect();
                parts.join(" (or where that is not known ") + &")".repeat(parts.len() - 1)
            }
            Self::Named(named) => named.name.to_owned(),
            Self::Computed(computed) => computed.name.to_owned(),
            Self::ComputedOf(computed) => computed.name.to_owned(),
        }
    }
}
