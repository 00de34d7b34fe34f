//! Units of systemd whose result is `oom-kill`, and job steps of Slurm.

use timeline::{KillNotice, Messenger, NoticeKind};

use super::phrase::{after, name, word_after, word_before};
use super::{Message, NoticeLine};

/// `systemctl status` names the unit a few lines above its state.
const UNIT_LINES: usize = 6;

pub(super) fn read(line: NoticeLine<'_>) -> Option<Message> {
    let notice = unit(line).or_else(|| slurm(line.text))?;
    Some(Message::Notice(notice))
}

/// `Active: failed (Result: oom-kill) since …`, `app.service: Failed with result 'oom-kill'.`, `app.service: A process
/// of this unit has been killed by the OOM killer.`
fn unit(line: NoticeLine<'_>) -> Option<KillNotice> {
    const IN_JOURNAL: [&str; 4] = [
        ": Failed with result 'oom-kill'",
        ": Failed with result oom-kill",
        ": A process of this unit has been killed by the OOM killer",
        ": Unit entered failed state: result 'oom-kill'",
    ];
    let text = line.text;
    let in_journal = IN_JOURNAL
        .iter()
        .find_map(|phrase| word_before(text, phrase));
    let in_status = || {
        text.contains("(Result: oom-kill)")
            .then(|| above(line))
            .flatten()
    };
    let is_unnamed = || text.contains("(Result: oom-kill)");
    let unit = in_journal.or_else(in_status);
    (unit.is_some() || is_unnamed()).then(|| {
        let mut notice = KillNotice::new(Messenger::Systemd, NoticeKind::Unit);
        notice.target = name(unit.unwrap_or_default());
        notice
    })
}

/// The unit of `● app.service - …` above its state.
fn above(line: NoticeLine<'_>) -> Option<&str> {
    let is_unit = |word: &&str| {
        [".service", ".scope", ".slice"]
            .iter()
            .any(|suffix| word.ends_with(suffix))
    };
    let mut near = line.above.iter().rev().take(UNIT_LINES);
    near.find_map(|line| line.split_whitespace().take(3).find(is_unit))
}

/// `slurmstepd: error: Detected 1 oom-kill event(s) in StepId=123.batch`, in old versions `in step 123.batch cgroup`.
fn slurm(text: &str) -> Option<KillNotice> {
    let rest = after(text, "oom-kill event(s) in ").or_else(|| after(text, "oom_kill event"))?;
    if !text.contains("Detected ") {
        return None;
    }
    let step = word_after(rest, "StepId=").or_else(|| word_after(rest, "step "));
    let mut notice = KillNotice::new(Messenger::Slurm, NoticeKind::Container);
    notice.target = step
        .map(|step| format!("step {}", name(step)))
        .unwrap_or_default();
    Some(notice)
}
