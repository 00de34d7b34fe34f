//! What makes two sources hard to compare; shown before anything else.

use std::cmp::Ordering;

use timeline::BreakKind;
use timeline::signals::MEM_TOTAL;
use units::{Bytes, Count};

use super::length;
use super::settings::same_ram;
use super::spread::FEWEST;
use crate::evidence::Evidence;

/// Sampling intervals within this factor smooth peaks alike.
const OTHER_INTERVAL: f64 = 1.5;

/// Returns the remarks, a sentence each.
pub(super) fn remarks(before: &Evidence<'_>, after: &Evidence<'_>) -> Vec<String> {
    let mut remarks = Vec::new();
    remarks.extend(sizes(before, after));
    remarks.extend(lengths(before, after));
    remarks.extend(intervals(before, after));
    for (name, cx) in [("before", before), ("after", after)] {
        remarks.extend(samples(name, cx));
        remarks.extend(breaks(name, cx));
        remarks.extend(changes(name, cx));
    }
    remarks
}

fn sizes(before: &Evidence<'_>, after: &Evidence<'_>) -> Option<String> {
    let ram = |cx: &Evidence<'_>| cx.timeline.last(MEM_TOTAL);
    let (old, new): (Bytes, Bytes) = (ram(before)?, ram(after)?);
    (!same_ram(before, after)).then(|| {
        format!(
            "The hosts are of different size, {old} and {new} of RAM: amounts are compared as \
             shares of it."
        )
    })
}

fn lengths(before: &Evidence<'_>, after: &Evidence<'_>) -> Option<String> {
    let (old, new) = (before.recorded(), after.recorded());
    let (longer, than) = match length::differs(before, after)? {
        Ordering::Greater => ("after", "before"),
        _ => ("before", "after"),
    };
    Some(format!(
        "Watched for {old} before and {new} after: {longer} there was more time for what is rare \
         to show, and {than} less."
    ))
}

fn intervals(before: &Evidence<'_>, after: &Evidence<'_>) -> Option<String> {
    let (old, new) = (before.timeline.interval()?, after.timeline.interval()?);
    let times = new.as_secs_f64() / old.as_secs_f64().max(f64::MIN_POSITIVE);
    let coarser = if times > 1.0 { "after" } else { "before" };
    (times >= OTHER_INTERVAL || times <= 1.0 / OTHER_INTERVAL).then(|| {
        format!(
            "A sample every {old} before and every {new} after: short peaks are smoothed out \
             {coarser}."
        )
    })
}

fn samples(name: &str, cx: &Evidence<'_>) -> Option<String> {
    let intervals = cx.timeline.len().saturating_sub(1);
    match intervals {
        0 => Some(format!("There is one sample only {name}: levels, and no rates.")),
        n if n < FEWEST => Some(format!(
            "There are {} intervals only {name}: too few to distinguish a change of a rate from \
             noise, which takes {}.",
            Count::new(n as u64),
            Count::new(FEWEST as u64)
        )),
        _ => None,
    }
}

fn breaks(name: &str, cx: &Evidence<'_>) -> Option<String> {
    let count = |is: fn(BreakKind) -> bool| {
        cx.timeline.breaks().iter().filter(|b| is(b.kind)).count() as u64
    };
    let mut breaks = vec![
        (count(|k| k == BreakKind::Reboot), "reboot"),
        (count(|k| matches!(k, BreakKind::Suspend(_))), "suspend"),
        (count(|k| matches!(k, BreakKind::Gap(_))), "gap"),
        (count(|k| k == BreakKind::NewSegment), "cut between unrelated samples"),
    ];
    breaks.retain(|(n, _)| *n > 0);
    let parts: Vec<String> = breaks
        .iter()
        .map(|(n, what)| match (n, what.split_once(' ')) {
            (1, _) => format!("a {what}"),
            (n, None) => format!("{} {what}s", Count::new(*n)),
            (n, Some((head, tail))) => format!("{} {head}s {tail}", Count::new(*n)),
        })
        .collect();
    let (first, _) = breaks.first()?;
    let is = if *first == 1 { "is" } else { "are" };
    Some(format!("There {is} {} {name}; no rate is computed across.", parts.join(" and ")))
}

fn changes(name: &str, cx: &Evidence<'_>) -> Option<String> {
    let mut changed: Vec<&str> = cx.facts.changes().iter().map(|c| c.fact.name).collect();
    changed.dedup();
    (!changed.is_empty()).then(|| {
        format!(
            "Settings were changed while it was watched {name} ({}); their last values count.",
            changed.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::Case;

    fn sentences(before: &Case, after: &Case) -> Vec<String> {
        before.with(|before| after.with(|after| remarks(before, after)))
    }

    fn ram(case: Case, mib: u64) -> Case {
        case.gauge(MEM_TOTAL, Bytes::from_mib(mib))
    }

    #[test]
    fn equals_need_no_word() {
        let host = || ram(Case::over(20), 1000);
        assert_eq!(sentences(&host(), &host()), [""; 0]);
    }

    #[test]
    fn other_sizes_lengths_and_few_samples_are_said() {
        let text = sentences(&ram(Case::over(3), 500), &ram(Case::over(60), 1000)).join("\n");
        for part in [
            "different size, 500 MiB and 1,000 MiB",
            "Watched for 3 s before and 60 s after",
            "3 intervals only before",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
