//! Memory limits of batch systems, hosting platforms and Android, and what they killed.

use probe::text::SplitText as _;
use timeline::{KillNotice, Messenger, NoticeKind};
use units::Bytes;

use super::phrase::{after, cut, name, number, size, word_after};
use super::{NoticeLine, NoticeMessage};

pub(super) fn read(line: NoticeLine<'_>) -> Option<NoticeMessage> {
    let text = line.text;
    let notice = slurm(text)
        .or_else(|| batch(text))
        .or_else(|| cloud_run(text))
        .or_else(|| platform(text))
        .or_else(|| android(text))?;
    Some(NoticeMessage::Notice(notice))
}

/// `slurmstepd: error: Detected 1 oom-kill event(s) in StepId=123.batch`, in old versions `in step 123.batch cgroup`.
fn slurm(text: &str) -> Option<KillNotice> {
    let rest = after(text, "oom-kill event(s) in ").or_else(|| after(text, "oom_kill event"))?;
    if !text.contains("Detected ") {
        return None;
    }
    let step = word_after(rest, "StepId=").or_else(|| word_after(rest, "step "));
    let mut notice = KillNotice::new(Messenger::Batch, NoticeKind::Container);
    notice.target = step.map(|step| format!("step {}", name(step))).unwrap_or_default();
    Some(notice)
}

/// `Job 123 exceeded memory limit (4194304 > 2097152), being killed`, in KiB; `Exceeded job memory limit`; LSF's
/// `TERM_MEMLIMIT`; PBS's `job killed: mem 1234kb exceeded limit 1000kb`.
fn batch(text: &str) -> Option<KillNotice> {
    let mut notice = KillNotice::new(Messenger::Batch, NoticeKind::Kill);
    if let Some((before, sizes)) = text.around(" exceeded memory limit (") {
        let (used, limit) = sizes.around(" > ")?;
        let kib = |text| number(text).map(|kib| Bytes::from_kib(u64::from(kib)));
        notice.used = Some(kib(used)?);
        notice.limit = kib(limit);
        let words: Vec<&str> = before.split_whitespace().rev().take(2).collect();
        notice.target = name(&words.into_iter().rev().collect::<Vec<_>>().join(" "));
        return Some(notice);
    }
    if let Some(rest) = after(text, "job killed: mem ") {
        notice.used = size(rest);
        notice.limit = after(rest, "exceeded limit ").and_then(size);
        return Some(notice);
    }
    let is_plain = ["TERM_MEMLIMIT: job killed", "Exceeded job memory limit"]
        .iter()
        .any(|phrase| text.contains(phrase));
    is_plain.then_some(notice)
}

/// `Memory limit of 512 MiB exceeded with 523 MiB used.`, `Exceeded soft memory limit of 256 MB with 260 MB after …`.
fn cloud_run(text: &str) -> Option<KillNotice> {
    let rest = after(text, "emory limit of ")?;
    let (limit, used) = rest.around(" exceeded with ").or_else(|| rest.around(" with "))?;
    let mut notice = KillNotice::new(Messenger::Platform, NoticeKind::Container);
    notice.limit = Some(size(limit)?);
    notice.used = Some(size(used)?);
    Some(notice)
}

/// ECS and Heroku.
fn platform(text: &str) -> Option<KillNotice> {
    const PHRASES: [&str; 3] = [
        "OutOfMemoryError: Container killed due to memory usage",
        "Error R15 (Memory quota vastly exceeded)",
        "Error R14 (Memory quota exceeded)",
    ];
    let phrase = PHRASES.iter().find(|phrase| text.contains(**phrase))?;
    let mut notice = KillNotice::new(Messenger::Platform, NoticeKind::Container);
    notice.reason = cut(phrase, 100);
    Some(notice)
}

/// `lowmemorykiller: Killing 'com.app' (1234), adj 900, to free 53532kB on behalf of 'kswapd0' (72) because cache 80000kB is
/// below limit 90000kB …`, `lowmemorykiller: Kill 'com.app' (1234), uid 10, … to free 50000kB rss; reason: …`.
fn android(text: &str) -> Option<KillNotice> {
    let rest = after(text, "lowmemorykiller: Kill")?;
    let rest = rest.strip_prefix("ing ").or_else(|| rest.strip_prefix(' '))?;
    let (process, rest) = rest.around(" (")?;
    let mut notice = KillNotice::new(Messenger::Android, NoticeKind::Kill);
    notice.pid = Some(number(rest)?);
    notice.process = name(process);
    notice.used = after(rest, "to free ").and_then(size);
    let reason = after(rest, "reason: ").or_else(|| after(rest, "because "));
    notice.reason = cut(reason.unwrap_or_default(), 160);
    Some(notice)
}
