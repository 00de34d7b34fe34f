//! The sentences of an answer: whether it fits, what limits headroom, remarks, and what the demand would do.

use diagnose::headroom::{
    Added, AddedEffect, Bounds, Cycle, DemandKind, FitAnswer, Headroom, HeadroomBasis,
    HeadroomBinding, HeadroomRemark, Question, Room,
};
use units::{Bytes, Count, SignedBytes};

/// The answer, with the smallest and the usual headroom.
pub(crate) fn headline(question: &Question, headroom: &Headroom) -> String {
    let (least, usual, is_lacking_at_worst, is_of_one_sample) = match headroom.basis {
        HeadroomBasis::Room { least, usual, is_lacking_at_worst, is_of_one_sample } => {
            (least, usual, is_lacking_at_worst, is_of_one_sample)
        }
        HeadroomBasis::NoSample => return "Cannot tell: nothing was measured.".to_owned(),
        HeadroomBasis::AvailableUnknown => {
            let unknown = headroom.unknown.first().map_or("", |unknown| unknown.text.as_str());
            return format!("Cannot tell: {unknown}.");
        }
    };
    let what = match question.add {
        Some(add) => format!("{} of {}", add.bytes, kind(add.kind)),
        None => "What runs".to_owned(),
    };
    let place = headroom.group.as_ref();
    let place = place.map_or_else(String::new, |group| format!(" into {}", group.called));
    if let Some(group) = headroom.group.as_ref().filter(|group| group.takes_no_more()) {
        let why = match group.short[..] {
            [] => "it fills its limit without anything added",
            _ => "it is short already",
        };
        return match question.add {
            Some(_) => format!("{what} does not fit{place}: {why}."),
            None => format!("Nothing more fits{place}: {why}."),
        };
    }
    let says = match (headroom.answer, question.add.is_some()) {
        (FitAnswer::Fits, true) => format!("{what} fits{place}"),
        (FitAnswer::Fits, false) => format!("More fits{place}"),
        (FitAnswer::FitsSoFar, is_added) => {
            let wanted = question.add.map_or(0, |add| signed(add.bytes));
            let spare = least.likely_or_lower().map(|least| least.saturating_sub(wanted));
            so_far(&headroom.cycle, is_added.then_some(&*what), &place, spare)
        }
        (FitAnswer::Tight, true) if is_lacking_at_worst => {
            format!("{what} fits{place} most of the time, and not at the worst")
        }
        (FitAnswer::Tight, true) => format!("{what} fits{place}, but hardly"),
        (FitAnswer::Tight, false) if is_lacking_at_worst => {
            format!("More fits{place} most of the time, and none at the worst")
        }
        (FitAnswer::Tight, false) => format!("Hardly any more fits{place}"),
        (FitAnswer::DoesNotFit, true) => format!("{what} does not fit{place}"),
        (FitAnswer::DoesNotFit, false) if headroom.group.is_some() => {
            format!("Nothing more fits{place}")
        }
        (FitAnswer::DoesNotFit, false) => format!("{what} does not fit"),
        (FitAnswer::Unknown, true) => format!("Cannot tell whether {what} fits{place}"),
        (FitAnswer::Unknown, false) => format!("Cannot tell how much more fits{place}"),
    };
    if is_of_one_sample {
        return format!("{says}: headroom {} in that one sample.", range(least));
    }
    let percentile = question.quantile.get() * 100.0;
    format!(
        "{says}: headroom {} at worst, {} usually (p{}).",
        range(least),
        range(usual),
        (percentile * 100.0).round() / 100.0
    )
}

/// What is known after too short a time, and what would settle the rest.
fn so_far(cycle: &Cycle, added: Option<&str>, place: &str, spare: Option<i64>) -> String {
    let Cycle { watched, asked, .. } = cycle;
    let fits = match (added, spare.filter(|spare| *spare > 0).map(SignedBytes::new)) {
        (Some(what), Some(spare)) => {
            format!("{what} fits{place} in the {watched} watched, {spare} to spare")
        }
        (Some(what), None) => format!("{what} just fits{place} in the {watched} watched"),
        (None, _) => format!("More fits{place} in the {watched} watched"),
    };
    format!("{fits}; a cycle of {asked} would settle it")
}

/// What limits headroom first; empty where nothing was measured.
pub(crate) fn binds(headroom: &Headroom) -> String {
    match (&headroom.binds, &headroom.room) {
        (Some(HeadroomBinding::Limit(limit)), _) => {
            format!("{}: {}.", limit.kind.name(), limit.text)
        }
        (Some(HeadroomBinding::Ram(ram)), Some(room)) => format!("RAM ({ram}): {}.", cliff(room)),
        (Some(HeadroomBinding::Chain(limit)), Some(room)) => {
            let asked = headroom.group.as_ref().filter(|group| group.path != limit.path);
            let around =
                asked.map_or_else(String::new, |group| format!(", which is around {}", group.path));
            format!("{}{around}: {}.", limit.words(), cliff(room))
        }
        _ => String::new(),
    }
}

/// What is left before only swap helps.
fn cliff(room: &Room) -> String {
    let swap = match room.swap_left {
        Some(swap) if swap > Bytes::ZERO => format!("; then {swap} of swap"),
        Some(_) => "; no swap".to_owned(),
        None => String::new(),
    };
    let bytes = Bytes::new(room.to_cliff.unsigned_abs());
    let left = if room.to_cliff < 0 { "too much" } else { "left" };
    format!("{bytes} {left} after dropping all cache{swap}")
}

/// What else belongs to the answer.
pub(crate) fn remarks(question: &Question, headroom: &Headroom) -> Vec<String> {
    let remarks = headroom.remarks.iter();
    remarks.map(|remark| in_words(remark, question, &headroom.cycle)).collect()
}

fn in_words(remark: &HeadroomRemark, question: &Question, cycle: &Cycle) -> String {
    match remark {
        HeadroomRemark::Short { rule, times, text } => {
            let often = match times {
                1 => String::new(),
                _ => format!(", {} times", Count::new(*times)),
            };
            format!("Memory was short already ({rule}{often}): {text}")
        }
        HeadroomRemark::Fills(text) => text.clone(),
        HeadroomRemark::ShortWithin(text) => format!("A cgroup within it is short: {text}"),
        HeadroomRemark::NoLimitAround(called) => {
            format!("No limit around {called} is below the host's RAM: the host comes first.")
        }
        HeadroomRemark::NodeReclaim(least) => format!(
            "No lack of RAM: after sysctl -w vm.zone_reclaim_mode=0 a node takes memory of the \
             others before it gives up its own cache, and headroom is {} at worst.",
            range(*least)
        ),
        HeadroomRemark::SmallGroup(limit) => {
            let added = question.add.map_or(Bytes::ZERO, |add| add.bytes);
            format!("In there {added} more do not fit: {}.", limit.text)
        }
        HeadroomRemark::Undecided(usual) => {
            let lower = usual.lower.map_or_else(
                || "its lower bound is unknown".to_owned(),
                |lower| format!("{} if all re-read cache is needed", SignedBytes::new(lower)),
            );
            let upper = SignedBytes::new(usual.upper);
            format!("The deciding figure is unknown: headroom is at most {upper}, and {lower}.")
        }
        HeadroomRemark::Residue(residue) => format!(
            "{residue} of free memory and page cache are not in available: locked files, or cache \
             that is on no list. Find out what it is before counting on it."
        ),
        HeadroomRemark::WatchedTooShort => format!(
            "Watched: {}. What runs at other times may need more; where that was all of its work, \
             say so (--cycle {:.0}s).",
            cycle.text,
            cycle.watched.as_secs_f64().floor()
        ),
        HeadroomRemark::NotConfirmed => {
            format!("Not confirmed: {}. What runs at other times may need more.", cycle.text)
        }
    }
}

/// What adding the demand would do.
pub(crate) fn effects(added: &Added) -> Vec<String> {
    added.effects.iter().map(|effect| effect_in_words(*effect, added.bounds)).collect()
}

fn effect_in_words(effect: AddedEffect, left: Bounds) -> String {
    match effect {
        AddedEffect::LeavesBetween => {
            let most = SignedBytes::new(left.upper);
            match left.lower.map(SignedBytes::new) {
                _ if left.upper < 0 => {
                    let lacking = Bytes::new(left.upper.unsigned_abs());
                    format!("At the worst moment {lacking} or more would be lacking.")
                }
                Some(lower) => format!("At the worst moment {lower} to {most} would be left."),
                None => format!("At the worst moment at most {most} would be left."),
            }
        }
        AddedEffect::Takes(kind) => takes(kind).to_owned(),
        AddedEffect::DropsCache(bytes) => format!(
            "At worst {bytes} of it, or of the cache that is there, would be dropped and read \
             again from disk."
        ),
        AddedEffect::TakesNeededCache(bytes) => {
            format!("At worst it would take {bytes} of cache that is needed.")
        }
        AddedEffect::Throttled(bytes) => format!(
            "At worst {bytes} would be above memory.high: the kernel would throttle the cgroup's \
             tasks."
        ),
        AddedEffect::PastCliff { bytes, swap_left } => match swap_left {
            Some(swap) if swap >= bytes => {
                format!("At worst {bytes} would go to swap ({swap} left).")
            }
            Some(Bytes::ZERO) => format!(
                "At worst, {bytes} would not fit, and no swap is left: the OOM killer would run."
            ),
            Some(swap) => format!(
                "At worst, {bytes} would not fit, and only {swap} of swap is left: the OOM killer \
                 would run."
            ),
            None => format!("At worst, {bytes} would not fit into RAM; swap is unknown."),
        },
    }
}

/// A kind's name in a sentence: `process memory` in `500 MiB of process memory`.
const fn kind(kind: DemandKind) -> &'static str {
    match kind {
        DemandKind::Anon => "process memory",
        DemandKind::Cache => "page cache",
        DemandKind::Tmpfs => "tmpfs",
    }
}

const fn takes(kind: DemandKind) -> &'static str {
    match kind {
        DemandKind::Anon => {
            "Process memory takes free memory first, then page cache; only swap takes it back."
        }
        DemandKind::Cache => {
            "Page cache is dropped on demand: a demand too large for it slows reads and kills no \
             process."
        }
        DemandKind::Tmpfs => {
            "Files in a tmpfs are held like process memory until they are deleted; only swap takes \
             them back."
        }
    }
}

/// `1.2 GiB`, or `0.4 to 1.2 GiB` where there are bounds only.
fn range(bounds: Bounds) -> String {
    let [likely, lower] = [bounds.likely, bounds.lower].map(|bound| bound.map(SignedBytes::new));
    let upper = SignedBytes::new(bounds.upper);
    match (likely, lower) {
        (Some(likely), _) => likely.to_string(),
        (None, Some(lower)) if lower == upper => lower.to_string(),
        (None, Some(lower)) => format!("{lower} to {upper}"),
        (None, None) => format!("at most {upper}"),
    }
}

fn signed(bytes: Bytes) -> i64 {
    i64::try_from(bytes.get()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use units::{Ratio, Span};

    use super::*;

    #[test]
    fn too_short_a_time_says_what_is_spare_and_what_would_settle_it() {
        let cycle = Cycle {
            asked: Span::from_hours(7 * 24),
            watched: Span::from_secs(60),
            present: Ratio::new(1.0),
            has_weekend: Some(false),
            is_whole: false,
            text: String::new(),
        };
        for (spare, text) in [
            (Some(120 << 20), "A fits in the 60 s watched, 120 MiB to spare"),
            (Some(0), "A just fits in the 60 s watched"),
        ] {
            let settled = format!("{text}; a cycle of 7 d would settle it");
            assert_eq!(so_far(&cycle, Some("A"), "", spare), settled);
        }
    }

    #[test]
    fn what_has_no_place_goes_to_swap_or_to_the_killer() {
        let printed = |swap_left| {
            let effect = AddedEffect::PastCliff { bytes: Bytes::from_mib(100), swap_left };
            effect_in_words(effect, Bounds { lower: None, likely: None, upper: 0 })
        };
        for (swap, text) in [
            (Some(200), "would go to swap (200 MiB left)."),
            (Some(20), "only 20 MiB of swap is left: the OOM killer would run."),
            (Some(0), "no swap is left: the OOM killer would run."),
            (None, "would not fit into RAM; swap is unknown."),
        ] {
            let sentence = printed(swap.map(Bytes::from_mib));
            assert!(sentence.ends_with(text), "{sentence}");
        }
    }

    #[test]
    fn bounds_without_an_estimate_are_a_range() {
        let range = |lower, likely| range(Bounds { lower, likely, upper: 300 << 20 });
        assert_eq!(range(Some(0), Some(100 << 20)), "100 MiB");
        assert_eq!(range(Some(-(20 << 20)), None), "−20 MiB to 300 MiB");
        assert_eq!(range(Some(300 << 20), None), "300 MiB");
        assert_eq!(range(None, None), "at most 300 MiB");
    }
}
