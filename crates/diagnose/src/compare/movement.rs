//! Memory in use and waiting for memory: what differs between two sources even if no rule finds anything, and in which
//! direction.

use timeline::signals::{MEM_ANON_HUGE, MEM_AVAILABLE, MEM_TOTAL, PSI_MEMORY_SOME};
use units::Ratio;

use super::differences::Differences;
use super::memory::{AmountChange, least};
use super::rates::RateChange;
use super::statement::{MemoryUse, UseWaiting};

/// A large difference is this many times what deserves a line: 5 % of RAM, or 500 MiB; an engineering choice.
const LARGE_FACTOR: f64 = 5.0;
/// Tasks that wait for memory for this much more of the time are noticeably slower; an engineering choice.
const WAITS_MORE: Ratio = Ratio::from_percent(5.0);
/// Below this share of the time no task waits noticeably.
const WAITS: Ratio = Ratio::from_percent(1.0);

/// Id of the term that is anonymous memory.
pub(super) const ANONYMOUS: &str = "anon";

/// One side uses much more memory than the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Use<'a> {
    /// The change of available memory, or if that is unknown, of anonymous memory.
    pub(super) amount: &'a AmountChange,
    /// Anonymous memory, where it moved as well.
    anonymous: Option<&'a AmountChange>,
    /// Whether the side after uses more.
    pub(super) is_more: bool,
}

impl<'a> Use<'a> {
    /// Returns `None` where both sides use about the same.
    pub(super) fn from_differences(it: &'a Differences<'_>) -> Option<Self> {
        let ram = [it.sides.0, it.sides.1].map(|cx| cx.timeline.last(MEM_TOTAL));
        let large = LARGE_FACTOR * least(ram.into_iter().flatten().max()?);
        let moved = |name: &str| {
            let named = it
                .amounts
                .iter()
                .find(|amount| amount.name == name)
                .filter(|amount| amount.is_clear())?;
            let share = named.share_changed()?;
            (share.abs() >= large).then_some((named, share))
        };
        let anonymous = moved(ANONYMOUS);
        match (moved(MEM_AVAILABLE.def().name), anonymous) {
            (Some((available, share)), _) => Some(Self {
                amount: available,
                anonymous: anonymous
                    .filter(|(_, moved)| (*moved > 0.0) == (share < 0.0))
                    .map(|(amount, _)| amount),
                is_more: share < 0.0,
            }),
            (None, Some((anonymous, share))) => {
                Some(Self { amount: anonymous, anonymous: None, is_more: share > 0.0 })
            }
            (None, None) => None,
        }
    }

    /// Whether this amount makes up most of the difference. Parts of page cache never do, because they are available.
    pub(super) fn is_mostly(&self, part: &AmountChange) -> bool {
        let moved = |it: &AmountChange| it.share_changed().unwrap_or_default();
        let most = moved(self.amount).abs() / 2.0;
        let is_most = |it: &AmountChange| {
            it.is_clear() && (moved(it) > 0.0) == self.is_more && moved(it).abs() >= most
        };
        is_most(part)
            && match part.name.as_str() {
                // Huge pages that replace small ones take no more memory.
                name if name == MEM_ANON_HUGE.def().name => {
                    let own = Some(self.amount).filter(|own| own.name == ANONYMOUS);
                    self.anonymous.or(own).is_some_and(is_most)
                }
                name => name == ANONYMOUS || name.starts_with("hugetlb"),
            }
    }

    /// Whether its sentence already mentions an amount of this name.
    pub(super) fn covers(&self, name: &str) -> bool {
        let mut amounts = std::iter::once(self.amount).chain(self.anonymous);
        amounts.any(|amount| amount.name == name)
    }

    /// Returns it for a statement.
    pub(super) fn found(&self, it: &Differences<'_>) -> MemoryUse {
        MemoryUse {
            amounts: std::iter::once(self.amount).chain(self.anonymous).cloned().collect(),
            is_more: self.is_more,
            waiting: self.waiting(it),
        }
    }

    fn waiting(&self, it: &Differences<'_>) -> UseWaiting {
        let means = waiting(it).and_then(RateChange::means);
        let Some((before, after)) = means else {
            return UseWaiting::Unknown;
        };
        let is_idle = |share: f64| share < WAITS.get();
        match (is_idle(before), is_idle(after), self.is_more) {
            (_, true, true) => UseWaiting::NoneAfter,
            (true, _, false) => UseWaiting::NoneBefore,
            _ => UseWaiting::Shares(before, after),
        }
    }
}

/// The rate of time in which tasks waited for memory.
fn waiting<'a>(it: &'a Differences<'_>) -> Option<&'a RateChange> {
    let name = PSI_MEMORY_SOME.def().name;
    it.rates.iter().find(|rate| rate.name == name)
}

/// The same where it makes work noticeably slower on one side, and whether that is the side after.
pub(super) fn waits_more<'a>(it: &'a Differences<'_>) -> Option<(&'a RateChange, bool)> {
    let rate = waiting(it).filter(|rate| rate.is_clear())?;
    let (before, after) = rate.means()?;
    let is_large = (after - before).abs() >= WAITS_MORE.get();
    is_large.then_some((rate, after > before))
}
