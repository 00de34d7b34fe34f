//! A trigger in words: the thresholds of a rule's documentation, generated from the trigger itself.

use super::reading::{Expr, NamedExpr, Predicate, ThresholdTest};
use super::{Subjects, Trigger};
use crate::finding::ThresholdSide;

impl Trigger {
    /// Returns the trigger as Markdown: the scope and the duration, a condition a line, what its alert asks for besides, and a
    /// definition of each name in them. `None` if a function finds the incidents.
    pub(crate) fn words(&self) -> Option<String> {
        let Self::While(holds) = self else {
            return None;
        };
        let scope = match holds.scope {
            Subjects::Host => "on the host".to_owned(),
            Subjects::Each(entity, _) => format!("in a {}", entity.name()),
        };
        let mut words = format!("{scope}, for {} or longer{}", holds.at_least, holds.when.listed());
        let mut whole = vec![holds.when.clone()];
        if let Some(also) = &holds.alert_if {
            words += &format!("\n\nFor its alert also{}", also.listed());
            whole.push(also.clone());
        }
        let named = Predicate::All(whole).named();
        if !named.is_empty() {
            words += "\n\nIn it are:\n";
        }
        for named in named {
            words += &format!("\n- {}: {}", named.name, named.expr.words().0);
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

    /// Returns what ends the line before its list, and the list: a condition a line.
    fn listed(&self) -> String {
        let mut lines = Vec::new();
        let head = if let Self::All(parts) = self {
            parts.iter().for_each(|part| part.lines(0, &mut lines));
            ", all of:\n"
        } else {
            self.lines(0, &mut lines);
            ":\n"
        };
        lines.iter().fold(head.to_owned(), |list, line| list + "\n" + line)
    }

    /// Adds its lines, a list of Markdown.
    fn lines(&self, depth: usize, lines: &mut Vec<String>) {
        let list = |head: &str, parts: &[Self], lines: &mut Vec<String>| {
            lines.push(item(depth, head));
            parts.iter().for_each(|part| part.lines(depth + 1, lines));
        };
        match self {
            Self::Compare(test) => lines.push(item(depth, &test.words())),
            Self::All(parts) => list("all of:", parts, lines),
            Self::Any(parts) | Self::Also(parts) => list("one of:", parts, lines),
            Self::Measured(this, None) => match this.as_ref() {
                Self::Compare(test) => {
                    lines.push(item(depth, &format!("{}, if that is measured", test.words())));
                }
                _ => {
                    lines.push(item(depth, "if that is measured:"));
                    this.lines(depth + 1, lines);
                }
            },
            Self::Measured(this, Some(other)) => {
                lines.push(item(depth, "the first that is measured:"));
                this.lines(depth + 1, lines);
                other.lines(depth + 1, lines);
            }
        }
    }
}

fn item(depth: usize, text: &str) -> String {
    format!("{}- {text}", "  ".repeat(depth))
}

impl ThresholdTest {
    fn words(&self) -> String {
        let side = match self.side {
            ThresholdSide::From => "at least",
            ThresholdSide::Below => "at most",
        };
        format!("{} {side} {}", self.name, self.right.words().0)
    }
}

/// How tightly the outermost operator binds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tightness {
    Sum,
    Product,
    Name,
}
use Tightness::{Name, Product, Sum};

impl Expr {
    /// Returns the expression, and how tightly it binds.
    fn words(&self) -> (String, Tightness) {
        match self {
            Self::Gauge(signal) | Self::Rate(signal) => (signal.def().name.to_owned(), Name),
            Self::Fact(fact) => (fact.name.to_owned(), Name),
            Self::Constant(constant) => ((constant.print)(constant.value), Name),
            Self::Ram => ("RAM".to_owned(), Name),
            Self::PageSize => ("the size of a page".to_owned(), Name),
            Self::Product(a, b) => match (a.as_ref(), b.as_ref()) {
                (a, Self::PageSize) => a.words(),
                (a, Self::Constant(constant)) => {
                    let factor = (constant.print)(constant.value);
                    let of = a.within(Product);
                    if factor.ends_with('%') {
                        (format!("{factor} of {of}"), Product)
                    } else {
                        (format!("{of} × {factor}"), Product)
                    }
                }
                (a, b) => (format!("{} × {}", a.within(Product), b.within(Product)), Product),
            },
            Self::Sum(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| part.within(Sum)).collect();
                (parts.join(" + "), Sum)
            }
            Self::Both(a, b) => (format!("{} + {}", a.within(Sum), b.within(Sum)), Sum),
            Self::Difference(a, b) => (format!("{} − {}", a.within(Sum), b.within(Product)), Sum),
            Self::Quotient(a, b) => {
                (format!("{} / {}", a.within(Product), b.within(Name)), Product)
            }
            Self::SumOver(entity, each) => {
                (format!("the sum of {} over all {}s", each.within(Product), entity.name()), Sum)
            }
            Self::MostOfOthers(each) => {
                (format!("the most {} of the others", each.within(Product)), Sum)
            }
            Self::Least(a, b) => (format!("min({}, {})", a.words().0, b.words().0), Name),
            Self::Most(a, b) => (format!("max({}, {})", a.words().0, b.words().0), Name),
            Self::FirstOf(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| part.words().0).collect();
                (format!("the first known of ({})", parts.join("; ")), Name)
            }
            Self::Named(named) => (named.name.to_owned(), Name),
            Self::Computed(computed) => (computed.name.to_owned(), Name),
            Self::ComputedOf(computed) => (computed.name.to_owned(), Name),
        }
    }

    /// Returns it as an operand; in brackets where it binds less tightly.
    fn within(&self, least: Tightness) -> String {
        let (words, binds) = self.words();
        if binds < least { format!("({words})") } else { words }
    }
}

#[cfg(test)]
mod tests {
    use timeline::signals::DISK_WRITE_BYTES;
    use timeline::signals::{
        DISK_FLUSHES, MEM_CACHED, MEM_DIRTY, MEM_FREE, MEM_WRITEBACK, PSI_MEMORY_SOME_AVG60,
    };
    use units::{Bytes, Micros, Ratio, Span};

    use super::*;
    use crate::trigger::{Reading, all, any, gauge, ram, rate};

    fn words(when: Predicate) -> String {
        Trigger::on_host(Span::from_secs(4), when).words().unwrap()
    }

    #[test]
    fn each_condition_has_a_line_and_each_constant_its_own_unit() {
        let free = || gauge(MEM_FREE).at_most("free memory", ram().share(Ratio::from_percent(5.0)));
        let writes = rate(DISK_WRITE_BYTES).at_most_for_each(
            &rate(DISK_FLUSHES),
            "bytes written",
            Bytes::from_mib(1),
        );
        let stalls =
            gauge(PSI_MEMORY_SOME_AVG60).at_least("stalls of a minute", Micros::new(50_000));
        let either = any![stalls, all![free(), writes.if_measured()]];
        assert_eq!(
            words(all![free(), either.or_without(free())]),
            "on the host, for 4 s or longer, all of:\n\n\
             - free memory at most 5 % of RAM\n\
             - the first that is measured:\n  \
               - one of:\n    \
                 - stalls of a minute at least 5 %\n    \
                 - all of:\n      \
                   - free memory at most 5 % of RAM\n      \
                   - bytes written at most disk.flushes × 1 MiB, if that is measured\n  \
               - free memory at most 5 % of RAM"
        );
    }

    #[test]
    fn what_an_alert_asks_besides_is_listed_with_its_names() {
        let free = gauge(MEM_FREE).at_most("free memory", ram().share(Ratio::from_percent(5.0)));
        let unwritten = gauge(MEM_DIRTY).plus([gauge(MEM_WRITEBACK)]).named("unwritten");
        let also = unwritten.at_least("unwritten data", Bytes::from_mib(1));
        let trigger = Trigger::on_host(Span::from_secs(4), free).alert_if(also);
        assert_eq!(
            trigger.words().unwrap(),
            "on the host, for 4 s or longer:\n\n\
             - free memory at most 5 % of RAM\n\n\
             For its alert also:\n\n\
             - unwritten data at least 1 MiB\n\n\
             In it are:\n\n\
             - unwritten: mem.dirty + mem.writeback"
        );
    }

    #[test]
    fn brackets_stay_where_they_are_needed() {
        let sum = || gauge(MEM_DIRTY).plus([gauge(MEM_WRITEBACK)]);
        let shown = |reading: Reading<Bytes>| reading.expr.words().0;
        assert_eq!(
            shown(gauge(MEM_CACHED).minus(sum()).times(0.5)),
            "(mem.cached − (mem.dirty + mem.writeback)) × 0.5"
        );
        assert_eq!(
            shown(ram().share(Ratio::from_percent(2.0)).max(Bytes::from_mib(64))),
            "max(2 % of RAM, 64 MiB)"
        );
        assert_eq!(
            shown(sum().minus(ram().or(sum()))),
            "mem.dirty + mem.writeback − the first known of (RAM; mem.dirty + mem.writeback)"
        );
    }
}
