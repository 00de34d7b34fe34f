//! The state of a container: `OOMKilled` as Kubernetes, Docker and Podman print it, and Docker's event.

use probe::text::SplitText as _;
use timeline::{KillNotice, Messenger, NoticeKind};
use units::Bytes;

use super::phrase::{after, name, size, word_after};
use super::{NoticeLine, NoticeMessage};

/// The name of a container stands at most this many lines from its state.
const NAME_LINES: usize = 40;
/// The limit stands behind the state.
const LIMIT_LINES: usize = 15;
/// `docker inspect` prints the limit in another section.
const OF_DOCKER_LINES: usize = 200;
const NOT_KILLED: &str = "state of a container: not OOM-killed";

pub(super) fn read(line: NoticeLine<'_>) -> Option<NoticeMessage> {
    if let Some(notice) = event(line.text).or_else(|| counter(line.text)) {
        return Some(NoticeMessage::Notice(notice));
    }
    if let Some(message) = of_template(line) {
        return Some(message);
    }
    let (before, rest) =
        line.text.around("OOMKilled").or_else(|| line.text.around("OOM Killed"))?;
    let value = rest.trim_start_matches(['"', ' ', ':', '=', '\\']);
    if value.starts_with("false") {
        return Some(NoticeMessage::Nothing(NOT_KILLED));
    }
    let of_runtime = value.starts_with("true");
    let of_kubernetes = is_reason(before) && is_not_zero(before, rest);
    let pod = pod_in_row(line.text);
    if !of_runtime && !of_kubernetes && pod.is_none() {
        return None;
    }
    let messenger = if of_runtime { Messenger::Runtime } else { Messenger::Kubernetes };
    let mut notice = KillNotice::new(messenger, NoticeKind::Container);
    notice.target = pod
        .map(name)
        .or_else(|| container_above(line.above))
        .or_else(|| name_in_json(line.below))
        .or_else(|| name_in_object(line.above))
        .unwrap_or_default();
    notice.limit = limit(line.below);
    Some(NoticeMessage::Notice(notice))
}

/// `2026-11-21T23:58:47.011072877Z container oom 3ae83a77c1be (image=…, name=web)`.
fn event(text: &str) -> Option<KillNotice> {
    let rest = after(text, "container oom ")?;
    let (id, labels) = rest.around(" (")?;
    let is_id = id.len() >= 12 && id.bytes().all(|b| b.is_ascii_hexdigit());
    let label = |key| {
        let value = after(labels, key)?;
        value.split([',', ')']).next()
    };
    let named = label("io.kubernetes.container.name=").or_else(|| label(" name="));
    is_id.then(|| {
        let mut notice = KillNotice::new(Messenger::Runtime, NoticeKind::Container);
        notice.target = name(named.unwrap_or(id.get(..12).unwrap_or(id)));
        notice
    })
}

/// `container_oom_events_total{…} 3`, and containerd's event.
fn counter(text: &str) -> Option<KillNotice> {
    let is_event = ["TaskOOM", "/tasks/oom"].iter().any(|event| text.contains(event));
    let count = || {
        let rest = after(text, "container_oom_events_total")?;
        let value = rest.rsplit(['}', ' ', '|']).find(|word| !word.is_empty())?;
        value.parse::<f64>().ok().filter(|count| *count >= 1.0)
    };
    if !is_event && count().is_none() {
        return None;
    }
    let mut notice = KillNotice::new(Messenger::Runtime, NoticeKind::Container);
    let named = ["container=\"", "pod=\"", "container_id:\"", "container_id\":\"", "container_id="];
    let target = named.iter().find_map(|key| after(text, key)?.split(['"', ' ']).next());
    notice.target = name(target.unwrap_or_default());
    Some(notice)
}

/// `docker inspect -f '{{.State.OOMKilled}}' web`, and `true` or `false` below.
fn of_template(line: NoticeLine<'_>) -> Option<NoticeMessage> {
    let rest = after(line.text, ".State.OOMKilled}}")?;
    let answer = line.below.first()?.trim();
    match answer.split_whitespace().next()? {
        "true" => {
            let mut notice = KillNotice::new(Messenger::Runtime, NoticeKind::Container);
            notice.target = name(rest.split_whitespace().next_back().unwrap_or_default());
            Some(NoticeMessage::Notice(notice))
        }
        "false" => Some(NoticeMessage::Nothing(NOT_KILLED)),
        _ => None,
    }
}

/// Whether a text ends in the name of the field: `Reason:  `, `"reason": "`, `reason=\"`.
fn is_reason(before: &str) -> bool {
    let is_mark = |c: char| "\"'`:= \\\t(".contains(c);
    let field = before.trim_end_matches(is_mark).to_ascii_lowercase();
    const FIELDS: [&str; 6] =
        ["reason", "status", "state", "message", "terminated", "exit message"];
    field.len() < before.len() && FIELDS.iter().any(|known| field.ends_with(known))
}

/// Whether the value of a metric is not 0. `reason="OOMKilled"}` without a value is an expression, as in `expr: …{…} == 1`.
fn is_not_zero(before: &str, rest: &str) -> bool {
    let is_metric = before.trim_end_matches(['"', '\\']).ends_with('=') && rest.starts_with('"');
    let Some((_, value)) = rest.split_once('}').filter(|_| is_metric) else {
        return true;
    };
    // A rule that alerts on it shows no value.
    let key = before.trim_start_matches([' ', '-', '"', '\t']);
    let is_rule = ["expr", "query"].iter().any(|word| key.starts_with(word));
    let value = value.trim_start_matches(['=', ' ', '|', '\t']);
    !is_rule && value.starts_with(|c: char| ('1'..='9').contains(&c))
}

/// The pod in a row of `kubectl get pods`, in any of its columns: `web-0   0/1   OOMKilled   5 (2m ago)   10m`.
fn pod_in_row(text: &str) -> Option<&str> {
    let words: Vec<&str> = text.split_whitespace().take(5).collect();
    let is_state = |word: &&str| matches!(*word, "OOMKilled" | "Init:OOMKilled");
    let at = words.iter().position(is_state)?;
    let (of, ready) = (words.get(at.checked_sub(2)?)?, words.get(at - 1)?);
    let (up, all) = ready.split_once('/')?;
    let is_count = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    (is_count(up) && is_count(all)).then_some(*of)
}

/// The container of the section that the line stands in: `  web:` above `State:`.
fn container_above(above: &[&str]) -> Option<String> {
    let mut state_at = usize::MAX;
    for line in above.iter().rev().take(NAME_LINES) {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if text.starts_with("State:") || text.starts_with("Last State:") {
            state_at = indent;
        }
        let is_section = |name: &str| !name.is_empty() && !name.contains([' ', '"', '{']);
        if let Some(section) = text.strip_suffix(':').filter(|name| is_section(name))
            && indent < state_at
            && state_at != usize::MAX
        {
            return Some(name(section));
        }
    }
    None
}

/// `"name": "web"`, `name: web` behind the state, as the fields are sorted.
fn name_in_json(below: &[&str]) -> Option<String> {
    below.iter().take(NAME_LINES).find_map(|line| {
        let line = line.trim().trim_start_matches("- ");
        let rest = ["\"name\":", "\"Name\":", "name:"]
            .iter()
            .find_map(|field| line.strip_prefix(field))?;
        Some(name(rest).trim_start_matches('/').to_owned()).filter(|name| !name.is_empty())
    })
}

/// The same before the state in its object, of which each field has a line.
fn name_in_object(above: &[&str]) -> Option<String> {
    let lines = above.iter().rev().take(NAME_LINES);
    let of_object = lines.take_while(|line| !line.trim_end().ends_with(['{', '[']));
    of_object.copied().find_map(|line| name_in_json(&[line]))
}

/// `Limits:` and `memory:  100Mi` behind the state, or `"Memory": 104857600` of `docker inspect`.
fn limit(below: &[&str]) -> Option<Bytes> {
    let mut near = below.iter().take(LIMIT_LINES).map(|line| line.trim());
    let of_pod = near
        .find(|line| line.starts_with("Limits:"))
        .and_then(|_| near.take(4).find_map(|line| size(line.strip_prefix("memory:")?)));
    let of_docker = || {
        let mut all = below.iter().take(OF_DOCKER_LINES).map(|line| line.trim());
        all.find_map(|line| word_after(line.strip_prefix("\"Memory\"")?, ":")).and_then(size)
    };
    of_pod.or_else(of_docker).filter(|limit| *limit > Bytes::ZERO)
}
