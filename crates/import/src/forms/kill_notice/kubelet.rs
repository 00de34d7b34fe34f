//! What the kubelet says: evictions, pressure of a node, OOM events that it saw the kernel write.

use probe::text::SplitText as _;
use timeline::{KillNotice, Messenger, NoticeKind};

use super::phrase::{after, cut, name, number, quoted_after, size, word_after};
use super::{NoticeLine, NoticeMessage};

const NO_PRESSURE: &str = "condition of a node: no memory pressure";

pub(super) fn read(line: NoticeLine<'_>) -> Option<NoticeMessage> {
    let text = line.text;
    let notice = eviction(text)
        .or_else(|| victim(text))
        .or_else(|| oom_event(text))
        .or_else(|| manager(text));
    notice.map(NoticeMessage::Notice).or_else(|| condition(text))
}

/// `The node was low on resource: memory. Container app was using 166088Ki, which exceeds its request of 10Mi.`
fn eviction(text: &str) -> Option<KillNotice> {
    let rest = after(text, "was low on resource: ")?;
    if !["memory", "[MemoryPressure"].iter().any(|resource| rest.starts_with(resource)) {
        return None;
    }
    let mut notice = KillNotice::new(Messenger::Kubernetes, NoticeKind::Eviction);
    notice.reason = after(rest, "Threshold quantity: ")
        .and_then(|rest| rest.split(". ").next())
        .map(|rest| format!("threshold {}", cut(rest, 100)))
        .unwrap_or_default();
    if let Some(container) = after(rest, "Container ")
        && let Some((who, used)) = container.around(" was using ")
    {
        notice.target = name(who);
        notice.used = size(used);
        let request = ["its request of ", "request is "];
        notice.limit = request.iter().find_map(|phrase| size(after(used, phrase)?));
    }
    Some(notice)
}

/// `System OOM encountered, victim process: java, pid: 812`, `Cgroup OOM encountered, …`.
fn victim(text: &str) -> Option<KillNotice> {
    let (before, rest) = text.around("OOM encountered")?;
    let rest = rest.strip_prefix(", victim process: ").unwrap_or_default();
    let kind = match before.trim_end() {
        before if before.ends_with("Cgroup") => NoticeKind::Container,
        before if before.ends_with("System") => NoticeKind::Node,
        _ => return None,
    };
    let mut notice = KillNotice::new(Messenger::Kubernetes, kind);
    notice.process = name(rest.split(", pid").next()?);
    notice.pid = after(rest, "pid: ").and_then(number);
    Some(notice)
}

/// `Created an OOM event in container "/kubepods/…" at …`; the root is the node.
fn oom_event(text: &str) -> Option<KillNotice> {
    let rest = after(text, "OOM event in contain")?;
    let path = quoted_after(rest, "").unwrap_or_default();
    let kind = if path == "/" { NoticeKind::Node } else { NoticeKind::Container };
    let mut notice = KillNotice::new(Messenger::Kubernetes, kind);
    notice.target = name(path);
    Some(notice)
}

/// `eviction manager: attempting to reclaim memory`, `eviction manager: thresholds - … signal=memory.available …`.
fn manager(text: &str) -> Option<KillNotice> {
    let rest = after(text, "eviction manager: ")?;
    let is_of_memory = ["memory.available", "MemoryPressure", "reclaim memory"];
    let is_of_memory = is_of_memory.iter().any(|word| rest.contains(word))
        || (rest.contains("reclaim") && rest.contains("\"memory\""));
    is_of_memory.then(|| {
        let mut notice = KillNotice::new(Messenger::Kubernetes, NoticeKind::Pressure);
        notice.reason = cut(rest, 160);
        notice
    })
}

/// `EvictionThresholdMet  7m (x38 over 2d5h)  kubelet  Attempting to reclaim memory`, `NodeHasInsufficientMemory`, and
/// `MemoryPressure   True   …   KubeletHasInsufficientMemory   kubelet has insufficient memory available`.
fn condition(text: &str) -> Option<NoticeMessage> {
    let state = word_after(text, "MemoryPressure").filter(|_| !text.contains("eviction manager"));
    let is_under = state == Some("True") || text.contains("HasInsufficientMemory");
    let is_reclaiming =
        text.contains("EvictionThresholdMet") && text.contains("ttempting to reclaim memory");
    if is_under || is_reclaiming {
        let mut notice = KillNotice::new(Messenger::Kubernetes, NoticeKind::Pressure);
        notice.reason = if is_reclaiming {
            "a threshold of eviction was met: the node reclaims memory"
        } else {
            "the node has the condition MemoryPressure"
        }
        .to_owned();
        return Some(NoticeMessage::Notice(notice));
    }
    (state == Some("False")).then_some(NoticeMessage::Nothing(NO_PRESSURE))
}
