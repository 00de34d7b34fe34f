//! The words about a cgroup: its limits, what counts towards them, what it felt, and the host around it.

use units::{Bytes, Count, Pages, PerSecond, Ratio};

use super::LabelledText;
use crate::clock::ReportClock;
use crate::model::{Around, ChargedPart, GroupFelt, GroupSection, LimitEntry};

/// What no counter explains, and small parts.
const OTHER: &str = "other";

/// Returns all that the report has about the cgroup, each line with its label; lines of one kind share one.
pub(crate) fn lines(group: &GroupSection, clock: &ReportClock<'_>) -> Vec<LabelledText> {
    let mut lines = vec![LabelledText::new("cgroup", subject(group, clock))];
    lines.extend(group.limits.iter().map(|limit| LabelledText::new("limits", limit_text(limit))));
    lines.extend(host_limit(group).map(|text| LabelledText::new("limits", text)));
    lines.extend(counts(group).map(|text| LabelledText::new("counts", text)));
    lines.extend(needs(group).map(|text| LabelledText::new("needs", text)));
    lines.extend(felt(&group.felt, group.swap_bytes).map(|text| LabelledText::new("felt", text)));
    lines.extend(group.raising.iter().map(|text| LabelledText::new("raise", text.clone())));
    lines.extend(group.unknown.iter().map(|text| LabelledText::new("unknown", text.clone())));
    lines
}

/// Returns the parts that matter; small ones are in the last.
fn counts(group: &GroupSection) -> Option<String> {
    /// A smaller part of the whole than this is noise.
    const SHARE_LITTLE: f64 = 0.005;
    let current = group.current_bytes?;
    let (large, small): (Vec<&ChargedPart>, Vec<&ChargedPart>) =
        group.parts.iter().partition(|part| {
            let share = part.bytes.ratio_of(current).unwrap_or_default();
            part.label != OTHER && share.get() >= SHARE_LITTLE
        });
    let rest: Bytes = small.iter().map(|part| part.bytes).sum();
    let rest = (rest > Bytes::ZERO).then(|| format!("{OTHER} {rest}"));
    let large = large.iter().map(|part| format!("{} {}", part.label, part.bytes));
    let all: Vec<String> = large.chain(rest).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

fn subject(group: &GroupSection, clock: &ReportClock<'_>) -> String {
    let name = group.name.as_ref().map_or_else(String::new, |name| format!(", {name}"));
    let size = group.current_bytes.map_or_else(String::new, |bytes| {
        let at =
            clock.moment(group.at_s, group.at).map_or_else(String::new, |at| format!(" at {at}"));
        let size = bytes.to_string();
        // A peak that prints the same is none.
        let peak = group.peak_bytes.map(|peak| peak.to_string());
        let peak = peak
            .filter(|peak| *peak != size && group.peak_bytes > Some(bytes))
            .map_or_else(String::new, |peak| format!(", {peak} at its peak"));
        format!(": {size}{at}{peak}")
    });
    format!("{}{name}{size}", group.path)
}

/// `memory.high of /batch: 200 MiB, 110 % used, hit 520 times; 3 MiB of it cannot be dropped`.
fn limit_text(limit: &LimitEntry) -> String {
    let mut text = format!("{} of {}: {}", limit.file, limit.place, limit.limit_bytes);
    if let Some(share) = limit.used {
        text.push_str(&format!(", {share} used"));
    }
    if let Some(room) = limit.room_bytes.filter(|room| *room > Bytes::ZERO) {
        text.push_str(&format!(", {room} left"));
    }
    if let Some(hits) = limit.hits.filter(|hits| *hits > 0) {
        text.push_str(&format!(", hit {}", Count::new(hits).named("time", "times")));
    }
    if let Some(held) = limit.undroppable_bytes {
        text.push_str(&format!("; {held} cannot be dropped"));
    }
    text
}

fn host_limit(group: &GroupSection) -> Option<String> {
    let available = group.around.available_bytes?;
    Some(format!("the host's RAM: {available} available"))
}

/// What it needs, as Kubernetes computes it, beside what can really be reclaimed.
fn needs(group: &GroupSection) -> Option<String> {
    let set = group.working_set_bytes?;
    let mut text = format!("working set {set} (usage − inactive_file, as Kubernetes computes it)");
    if let Some(droppable) = group.droppable_bytes {
        text.push_str(&format!("; {droppable} can be dropped at once"));
    }
    if let Some(unwritten) = group.unwritten_bytes.filter(|bytes| *bytes > Bytes::ZERO) {
        text.push_str(&format!(", {unwritten} once it is written"));
    }
    Some(text)
}

/// What it felt, then what was measured and did not happen.
fn felt(felt: &GroupFelt, swap: Option<Bytes>) -> Option<String> {
    let (mut happened, mut absent) = (Vec::new(), Vec::new());
    match felt.some.zip(felt.full) {
        Some((some, full)) if some > Ratio::default() => {
            happened.push(format!("memory stalls some {some}, full {full} in the worst 10 s"));
        }
        Some(_) => absent.push("memory stalls"),
        None => {}
    }
    let none = PerSecond::<Pages>::new(0.0);
    let times = |count: Count| count.named("time", "times");
    let counted = [
        (
            felt.throttled.map(|n| (n > Count::ZERO, format!("throttled {}", times(n)))),
            "throttling",
        ),
        (
            felt.hits.map(|n| (n > Count::ZERO, format!("at the hard limit {}", times(n)))),
            "limit hits",
        ),
        (felt.kills.map(|n| (n > Count::ZERO, n.named("kill", "kills"))), "kills"),
        (felt.refaults_file.map(|n| (n > none, format!("{n} of file refaults"))), "file refaults"),
        (
            felt.refaults_anon.map(|n| (n > none, format!("{n} of anonymous refaults"))),
            "anonymous refaults",
        ),
        (swap.map(|n| (n > Bytes::ZERO, format!("{n} in swap"))), "swap"),
    ];
    for (known, what) in counted {
        match known {
            Some((true, text)) => happened.push(text),
            Some((false, _)) => absent.push(what),
            None => {}
        }
    }
    let absent = (!absent.is_empty()).then(|| format!("no {}", absent.join(", ")));
    let happened = (!happened.is_empty()).then(|| happened.join(", "));
    let all: Vec<String> = happened.into_iter().chain(absent).collect();
    let during = felt.during;
    (!all.is_empty()).then(|| format!("in {during}: {}", all.join("; ")))
}

/// How the host stands beside the cgroup.
pub(crate) fn host(around: &Around) -> String {
    if around.is_same {
        let available = around
            .available_bytes
            .map_or_else(String::new, |bytes| format!("; the host had {bytes} available"));
        format!("This is also the host's worst finding{available}.")
    } else {
        around.headline.clone()
    }
}
