//! Messages of programs about kills, for the rules that tell them.

use timeline::{KillNotice, NoticeKind};
use units::Count;

use crate::evidence::{Evidence, Missing};
use crate::finding::{Affected, Confidence, Finding};
use crate::trigger::Occurrence;

/// At most 4 messages are shown.
const SHOWN: usize = 4;

/// Whether a rule is about a message.
type IsSuch = fn(&Evidence<'_>, &KillNotice) -> bool;

/// The messages that a rule is about, in the order of the source.
pub(crate) fn such<'a>(cx: &Evidence<'a>, is_such: IsSuch) -> Vec<&'a KillNotice> {
    all(cx).filter(|notice| is_such(cx, notice)).collect()
}

/// One occurrence for all of them, at the last sample: a message has no readings of its own.
pub(crate) fn occurrences(cx: &Evidence<'_>, is_such: IsSuch) -> Vec<Occurrence> {
    let is_any = all(cx).any(|notice| is_such(cx, notice));
    is_any.then(|| at_the_end(cx)).into_iter().collect()
}

/// Levels; where there are none, the messages of a kind.
///
/// # Errors
/// What the levels lack, if there is no such message.
pub(crate) fn or_levels(
    cx: &Evidence<'_>,
    levels: Result<Vec<Occurrence>, Missing>,
    kind: NoticeKind,
) -> Result<Vec<Occurrence>, Missing> {
    let has_levels = levels.as_ref().is_ok_and(|levels| !levels.is_empty());
    if has_levels || of_kind(cx, kind).next().is_none() {
        return levels;
    }
    Ok(vec![at_the_end(cx)])
}

/// The messages of a kind, in the order of the source.
pub(crate) fn of_kind<'a>(
    cx: &Evidence<'a>,
    kind: NoticeKind,
) -> impl Iterator<Item = &'a KillNotice> + use<'a> {
    all(cx).filter(move |notice| notice.kind == kind)
}

fn all<'a>(cx: &Evidence<'a>) -> impl Iterator<Item = &'a KillNotice> + use<'a> {
    cx.timeline.notices().map(|noticed| &noticed.notice)
}

fn at_the_end(cx: &Evidence<'_>) -> Occurrence {
    let last = cx.timeline.len().saturating_sub(1);
    Occurrence::on_host(last, last)
}

/// Whether a kernel report of this source describes the same kill: of the process that the message names, or any where
/// it names none.
pub(crate) fn is_told_by_the_kernel(cx: &Evidence<'_>, notice: &KillNotice) -> bool {
    let mut killed = cx.timeline.all_reports().iter().flat_map(|reported| &reported.report.killed);
    match (notice.process.as_str(), notice.target.as_str()) {
        ("", _) if notice.kind == timeline::NoticeKind::Unit => killed.next().is_some(),
        ("", _) => false,
        (process, _) => killed.any(|killed| killed.name == process),
    }
}

/// A name at the start of a sentence. Names of programs keep their case.
pub(crate) fn sentence_case(name: &str) -> String {
    match name.strip_prefix("the ") {
        Some(rest) => format!("The {rest}"),
        None => name.to_owned(),
    }
}

/// The newest victims that messages name: `nginx (9307) and coredns (478982)`, at most 3, with the number of the others;
/// `a process` if they name none.
pub(crate) fn victims(all: &[&KillNotice]) -> String {
    /// More names than these do not help in a title.
    const NAMED_MAX: usize = 3;
    let mut names: Vec<String> = Vec::new();
    for one in all.iter().filter(|one| !one.process.is_empty()) {
        let name = one.subject();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let others = names.len().saturating_sub(NAMED_MAX);
    names.drain(..others);
    match (names.as_slice(), others) {
        ([], _) => "a process".to_owned(),
        ([one], _) => one.clone(),
        ([first @ .., last], 0) => format!("{} and {last}", first.join(", ")),
        (_, others) => format!("{} and {others} more", names.join(", ")),
    }
}

/// The end of a title: ` (3 such messages)`; empty for one.
pub(crate) fn among(count: usize) -> String {
    match count {
        0 | 1 => String::new(),
        count => {
            let count = Count::new(u64::try_from(count).unwrap_or(u64::MAX));
            format!(" ({count} such messages)")
        }
    }
}

/// Adds the messages as they stand in the source, the newest last.
pub(crate) fn shown(finding: Finding, all: &[&KillNotice]) -> Finding {
    let first = all.len().saturating_sub(SHOWN);
    all[first..].iter().fold(finding, |finding, one| {
        // Dots in place of text that was left out.
        let text = one.text.replace(" ... ", " … ");
        finding.with_line(format!("{}: {text}", one.messenger.name()))
    })
}

/// What a message is about.
pub(crate) fn affected(one: &KillNotice) -> Option<Affected> {
    let kind = if one.process.is_empty() { "container or unit" } else { "process" };
    let name = one.subject();
    let used = one.used.map(|used| format!("used {used}"));
    (!name.is_empty()).then(|| Affected::new(kind, name, used.unwrap_or_default()))
}

/// The confidence: the message of a program, without the kernel's word.
pub(crate) fn sure(open: &str) -> Confidence {
    Confidence { value: 0.85, why: format!("rests on the message alone; {open}") }
}
