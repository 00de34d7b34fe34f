//! Killers in user space: systemd-oomd, earlyoom, nohang, the OOM controller of Talos.

use probe::text::SplitText as _;
use timeline::{KillNotice, Messenger, NoticeKind};
use units::Bytes;

use super::phrase::{after, name, number, quoted_after, size, word_before};
use super::{NoticeLine, NoticeMessage};

/// earlyoom names its victim within a few lines of what it measured.
const EARLYOOM_LINES: usize = 4;

/// nohang prints so many lines of its victim.
const NOHANG_LINES: usize = 10;

pub(super) fn read(line: NoticeLine<'_>) -> Option<NoticeMessage> {
    let text = line.text;
    let notice = oomd(text)
        .or_else(|| oomd_in_unit(text))
        .or_else(|| earlyoom_victim(line))
        .or_else(|| earlyoom_alone(line))
        .or_else(|| nohang(line))
        .or_else(|| pm2(text))
        .or_else(|| talos(text))
        .or_else(|| tcp(text))
        .or_else(|| oomd_threshold(text))?;
    Some(NoticeMessage::Notice(notice))
}

/// `Killed /user.slice/…/app.scope due to memory used (…) / total (…) and swap used (…) being more than 90.00%`, also
/// `Marked /… for killing due to …`.
fn oomd(text: &str) -> Option<KillNotice> {
    let (_, rest) = text.around("Killed ").or_else(|| text.around("Marked "))?;
    // Cut off within the path.
    let is_cut = text.contains("systemd-oomd") && !rest.trim_end().contains(' ');
    let cut_off = is_cut.then_some((rest.trim_end(), ""));
    let (path, reason) = rest.around(" due to ").or(cut_off)?;
    let path = path.trim_end_matches(" for killing");
    let is_reason = is_cut || ["memory ", "swap "].iter().any(|r| reason.starts_with(r));
    if !path.starts_with('/') || path.contains(' ') || !is_reason {
        return None;
    }
    let mut notice = KillNotice::new(Messenger::Oomd, NoticeKind::Kill);
    notice.target = name(path.rsplit('/').next().unwrap_or(path));
    notice.reason = super::phrase::cut(reason.trim_end_matches(['>', '.']), 200);
    Some(notice)
}

/// `TCP: out of memory -- consider tuning tcp_mem` (net/ipv4/tcp.c, tcp_check_oom).
fn tcp(text: &str) -> Option<KillNotice> {
    let (_, rest) = text.around("TCP: out of memory")?;
    let is_message = rest.trim().is_empty() || rest.trim_start().starts_with("--");
    is_message.then(|| KillNotice::new(Messenger::Kernel, NoticeKind::Sockets))
}

/// `app.service: systemd-oomd killed 2 process(es) in this unit.`
fn oomd_in_unit(text: &str) -> Option<KillNotice> {
    let unit = word_before(text, ": systemd-oomd killed ")?;
    let mut notice = KillNotice::new(Messenger::Oomd, NoticeKind::Kill);
    notice.target = name(unit);
    Some(notice)
}

/// `Memory pressure for /a.slice is 64.15% > 60.00% for > 30s with reclaim activity`, `Swap used (…) / total (…) is more than
/// 90.00%`, `Considered 97 cgroups for killing, top candidates were:`: what systemd-oomd logs before it kills.
fn oomd_threshold(text: &str) -> Option<KillNotice> {
    let is_pressure =
        text.contains("emory pressure for /") && text.contains("with reclaim activity");
    let is_swap =
        text.contains("used (") && text.contains("total (") && text.contains("is more than ");
    let is_choice = text.contains("cgroups for killing, top candidates were:");
    (is_pressure || is_swap || is_choice).then(|| {
        let mut notice = KillNotice::new(Messenger::Oomd, NoticeKind::Pressure);
        let message = after(text, "]: ").unwrap_or(text);
        // The line of the candidates names no threshold.
        let reason = if is_choice { "" } else { message };
        notice.reason = super::phrase::cut(reason, 200);
        notice
    })
}

/// `sending SIGTERM to process 11940 uid 1000 "python3": badness 209, VmRSS 2891 MiB`, `Killing process 1013 name`.
fn earlyoom_victim(line: NoticeLine<'_>) -> Option<KillNotice> {
    let text = line.text;
    if let Some(notice) = earlyoom_of_2018(line).or_else(|| earlyoom_of_2019(line)) {
        return Some(notice);
    }
    let signal = after(text, "ending SIG");
    let victim = match signal {
        Some(rest) => after(rest, " to process ")?,
        None => after(text, "Low memory! Killing process ")?,
    };
    let pid = number(victim)?;
    let mut notice = KillNotice::new(Messenger::Earlyoom, NoticeKind::Kill);
    notice.pid = Some(pid);
    let quoted = || quoted_after(victim, "");
    let bare = || victim.split_whitespace().nth(1);
    notice.process = name(if signal.is_some() { quoted() } else { bare() }?);
    notice.used = after(victim, "VmRSS ").and_then(size);
    let mut before = line.above.iter().rev().take(EARLYOOM_LINES);
    notice.reason = before.find_map(|line| earlyoom_limits(line)).unwrap_or_default();
    Some(notice)
}

/// `Found the victim with highest badness:`, its name and size in the lines below, the threshold above.
fn nohang(line: NoticeLine<'_>) -> Option<KillNotice> {
    if !line.text.contains("victim with highest badness") {
        return None;
    }
    let below = line.below.iter().take(NOHANG_LINES);
    let field = |name: &str| below.clone().find_map(|line| line.trim().strip_prefix(name));
    let mut notice = KillNotice::new(Messenger::Nohang, NoticeKind::Kill);
    notice.process = name(field("Name:")?.trim());
    notice.pid = field("PID:").and_then(number);
    notice.used = field("VmRSS:").and_then(size);
    let above = line.above.last().map_or("", |line| line.trim());
    let is_threshold = above.contains("> sigterm_psi") || above.contains("<= ");
    notice.reason = super::phrase::cut(if is_threshold { above } else { "" }, 200);
    Some(notice)
}

/// `killing process 27541 "bash" with signal 15: badness 550, VmRSS 7609 MiB`, `Killing process 'bash' with signal 15, pid:
/// 5874, badness: 538, VmRSS: 3160 MiB`.
fn earlyoom_of_2019(line: NoticeLine<'_>) -> Option<KillNotice> {
    let rest = after(line.text, "illing process ")?;
    let (victim, figures) = rest.around(" with signal ")?;
    let mut notice = KillNotice::new(Messenger::Earlyoom, NoticeKind::Kill);
    notice.pid = number(victim).or_else(|| after(figures, "pid: ").and_then(number));
    let is_pid = |c: char| c.is_ascii_digit() || c == ' ';
    notice.process = name(victim.trim_start_matches(is_pid));
    let size_after = |phrase| after(figures, phrase).and_then(size);
    notice.used = size_after("VmRSS: ").or_else(|| size_after("VmRSS "));
    Some(notice)
}

/// `Killing process: name, pid: 13025, badness: 551, VmRSS: 5440 MiB`.
fn earlyoom_of_2018(line: NoticeLine<'_>) -> Option<KillNotice> {
    let rest = after(line.text, "Killing process: ")?;
    let (process, rest) = rest.around(", pid: ")?;
    let mut notice = KillNotice::new(Messenger::Earlyoom, NoticeKind::Kill);
    notice.process = name(process);
    notice.pid = Some(number(rest)?);
    notice.used = after(rest, "VmRSS: ").and_then(size);
    let before = line.above.last().and_then(|line| after(line, "Low memory! "));
    notice.reason = super::phrase::cut(before.unwrap_or_default(), 200);
    Some(notice)
}

/// The thresholds alone, where no victim is named behind them.
fn earlyoom_alone(line: NoticeLine<'_>) -> Option<KillNotice> {
    let reason = earlyoom_limits(line.text)?;
    let mut behind = line.below.iter().take(EARLYOOM_LINES);
    if behind.any(|line| line.contains("ending SIG") || line.contains("illing process ")) {
        return None;
    }
    let mut notice = KillNotice::new(Messenger::Earlyoom, NoticeKind::Kill);
    notice.reason = reason;
    Some(notice)
}

/// `low memory! at or below SIGTERM limits: mem 50 %, swap 10 %`.
fn earlyoom_limits(text: &str) -> Option<String> {
    let rest = after(text, "low memory! at or below ")
        .or_else(|| after(text, "Low Memory! At or below "))?;
    let is_limits = rest.get(..3)?.eq_ignore_ascii_case("sig") && rest.contains("limits");
    let end = rest.find(['"', '\\', '`']).unwrap_or(rest.len());
    is_limits.then(|| super::phrase::cut(rest.get(..end).unwrap_or(rest), 200))
}

/// `Process 2 restarted because it exceeds --max-memory-restart value (current_memory=5274296320 max_memory_limit=5242880000
/// [octets])`: its own threshold of a process.
fn pm2(text: &str) -> Option<KillNotice> {
    let (before, rest) = text.around(" restarted because it exceeds --max-memory-restart")?;
    let process = after(before, "Process ").or_else(|| before.split_whitespace().next_back())?;
    let bytes = |field| {
        let digits = after(rest, field)?.split([' ', ')']).next()?;
        digits.parse().ok().map(Bytes::new)
    };
    let mut notice = KillNotice::new(Messenger::Pm2, NoticeKind::Kill);
    notice.process = name(&format!("process {process}"));
    notice.reason = "max-memory-restart".to_owned();
    notice.used = bytes("current_memory=");
    notice.limit = bytes("max_memory_limit=");
    Some(notice)
}

/// `[talos] Sending SIGKILL to cgroup {…"controller": "runtime.OOMController", "cgroup": "/sys/fs/cgroup/…"}`.
fn talos(text: &str) -> Option<KillNotice> {
    let rest = after(text, "Sending SIGKILL to cgroup")?;
    if !rest.contains("OOMController") {
        return None;
    }
    let path = quoted_after(rest, "\"cgroup\":").or_else(|| quoted_after(rest, "\\\"cgroup\\\":"));
    let path = path.unwrap_or_default();
    let mut notice = KillNotice::new(Messenger::Talos, NoticeKind::Kill);
    notice.target = name(path.strip_prefix("/sys/fs/cgroup").unwrap_or(path));
    Some(notice)
}
