//! Units of systemd with the result `oom-kill`.

use timeline::{KillNotice, Messenger, NoticeKind};

use super::phrase::{name, word_before};
use super::{NoticeLine, NoticeMessage};

/// `systemctl status` names the unit a few lines above its state.
const UNIT_LINES: usize = 6;

pub(super) fn read(line: NoticeLine<'_>) -> Option<NoticeMessage> {
    unit(line).map(NoticeMessage::Notice)
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
    let in_journal = IN_JOURNAL.iter().find_map(|phrase| word_before(text, phrase));
    let in_status = || text.contains("(Result: oom-kill)").then(|| above(line)).flatten();
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
    let is_unit =
        |word: &&str| [".service", ".scope", ".slice"].iter().any(|suffix| word.ends_with(suffix));
    let mut near = line.above.iter().rev().take(UNIT_LINES);
    near.find_map(|line| line.split_whitespace().take(3).find(is_unit))
}
