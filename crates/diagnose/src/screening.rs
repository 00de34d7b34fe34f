//! Screens a long recording: which of its minutes any rule needs the samples of, and which signals show that.

use timeline::{Facts, RollUps, SignalId};

use crate::rule::Rule;
use crate::rules;
use crate::trigger;

/// Returns for each minute whether the trigger of any rule could hold in it so that its samples are needed. A level
/// that holds throughout the minute needs none: its roll-up shows it as well.
pub fn could_hold(rolled: &RollUps, facts: &Facts) -> Vec<bool> {
    let mut any = vec![false; rolled.len()];
    for (_, could) in could_hold_by_rule(rolled, facts) {
        any.iter_mut().zip(could).for_each(|(any, could)| *any |= could);
    }
    any
}

/// The same for each rule separately.
pub fn could_hold_by_rule<'a>(
    rolled: &'a RollUps,
    facts: &'a Facts,
) -> impl Iterator<Item = (&'static str, Vec<bool>)> {
    screened().map(|rule| (rule.id, trigger::screen(&(rule.trigger)(), rolled, facts)))
}

/// Returns the signals that triggers read: only these need roll-ups.
pub fn screened_signals() -> Vec<SignalId> {
    let mut all: Vec<SignalId> = vec![timeline::signals::MEM_TOTAL.id()];
    for rule in screened() {
        let trigger = (rule.trigger)();
        if let Some((predicate, _)) = trigger.predicate() {
            all.extend(predicate.signals());
            all.extend(predicate.signals_in_place());
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Returns the rules that are not notes: harmless look-alikes show in minutes as well.
fn screened() -> impl Iterator<Item = &'static Rule> {
    rules::ALL.iter().filter(|rule| !rule.is_note())
}
