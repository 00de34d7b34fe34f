//! What raising a limit would change: how much further the cgroup gets until another limit binds.

use units::{Bytes, Limit};

use super::{GroupLimitState, GroupState};
use crate::measures::cgroups::{AT_LIMIT, NEARLY_FULL, is_raised};

/// Returns what raising which limit would change. `has_finding`: some finding is about the cgroup.
pub(super) fn sentences(state: &GroupState, has_finding: bool) -> Vec<String> {
    let limits = &state.limits;
    if limits.is_empty() {
        return vec![match state.available {
            Some(available) => format!(
                "No limit around it is below the host's RAM, of which {available} is available: \
                 the host comes first."
            ),
            None => "No limit around it is below the host's RAM: the host comes first.".to_owned(),
        }];
    }
    let Some((at, binding)) = limits.iter().enumerate().find(|(_, limit)| binds(limit)) else {
        // A finding may foretell that one is met.
        let nothing = if has_finding { "" } else { ": raising one changes nothing so far" };
        let near = limits.iter().filter_map(|limit| Some((limit.room()?, limit)));
        let nearest = near.min_by_key(|(room, _)| *room);
        return vec![match nearest {
            Some((room, limit)) => format!(
                "No limit was hit, and none is nearly full of memory that cannot be \
                 dropped{nothing}. The nearest is {}, with {room} left.",
                name(limit)
            ),
            None => format!("No limit was hit{nothing}."),
        }];
    };
    if let Some(raised) = binding.since.filter(|now| is_raised(binding.limit, *now)) {
        let now = match raised {
            Limit::Bytes(now) => format!("is {now} since"),
            Limit::Unlimited => "does not exist since".to_owned(),
        };
        return vec![format!("The limit that was hit, {}, {now}.", name(binding))];
    }
    let mut sentences = vec![further(state, at, binding)];
    if is_full(binding) {
        sentences.push(
            "Little of what counts towards it can be dropped: without room, a growth ends in \
             kills, or waits."
                .to_owned(),
        );
    }
    if has_finding {
        sentences.push("The findings say whether that helps.".to_owned());
    } else if !is_full(binding) {
        sentences.push(
            "No finding is about it: nothing shows that a higher limit would help.".to_owned(),
        );
    }
    sentences
}

/// Whether the cgroup met this limit, or is nearly full of memory that cannot be dropped. Where hits are not counted, a
/// cgroup that is at its limit met it.
fn binds(limit: &GroupLimitState) -> bool {
    let is_at_it = || limit.share().is_some_and(|share| share >= AT_LIMIT);
    is_full(limit) || limit.hits.map_or_else(is_at_it, |hits| hits.get() > 0)
}

fn is_full(limit: &GroupLimitState) -> bool {
    limit
        .undroppable
        .and_then(|bytes| bytes.ratio_of(limit.limit))
        .is_some_and(|share| share >= NEARLY_FULL)
}

/// Says which limit comes next if `binding` is raised, and after how much.
fn further(state: &GroupState, at: usize, binding: &GroupLimitState) -> String {
    let others = state.limits.iter().enumerate().filter(|(other, _)| *other != at);
    let next = others
        .filter_map(|(_, limit)| Some((limit.room()?, name(limit))))
        .chain(state.available.map(|room| (room, "the host's RAM".to_owned())))
        .min_by_key(|(room, _)| *room);
    let raised = format!("Raising {}", name(binding));
    match next {
        Some((Bytes::ZERO, other)) => {
            format!("{raised} changes nothing while {other} has no room left: raise both.")
        }
        Some((room, other)) => {
            let also = other_on_same(state, binding);
            format!("{raised} gives room for {room} more, then {other} is next.{also}")
        }
        None => format!("{raised} gives more room; what comes next this source does not have."),
    }
}

/// A throttled cgroup that also has a hard limit keeps it.
fn other_on_same(state: &GroupState, binding: &GroupLimitState) -> &'static str {
    let has_hard = state.limits.iter().any(|limit| !limit.is_soft && limit.path == binding.path);
    if binding.is_soft && !has_hard {
        " The cgroup has no hard limit: above this one it is throttled, never killed for it."
    } else {
        ""
    }
}

fn name(limit: &GroupLimitState) -> String {
    format!("{} of {} ({})", limit.file, limit.place, limit.limit)
}
