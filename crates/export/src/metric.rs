//! Labels of metrics. Names and values are [`timeline::metric`]'s.

use timeline::{Entity, EntitySeries};

/// Returns an entity's labels, `{device="sda"}`; empty for the host.
pub(crate) fn labels(series: Option<&EntitySeries>) -> String {
    let Some(series) = series else {
        return String::new();
    };
    let key = series.key.as_str();
    let pairs: Vec<(&str, &str)> = match series.entity {
        Entity::Host => Vec::new(),
        Entity::Node => vec![("node", key)],
        Entity::Zone => {
            let (node, zone) = key.split_once('/').unwrap_or(("", key));
            vec![("node", node), ("zone", zone)]
        }
        Entity::Disk | Entity::SwapArea | Entity::Zram => vec![("device", key)],
        Entity::Slab => vec![("slab", key)],
        Entity::Cgroup => vec![("cgroup", key)],
        Entity::Service => vec![("service", key)],
        Entity::Process => {
            vec![("pid", series.pid()), ("comm", &series.label)]
        }
    };
    let pairs: Vec<String> =
        pairs.into_iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) }
}

/// Escapes what is not plainly visible ([`timeline::plain`]), and then with a backslash what would end a value.
pub(crate) fn escaped(text: &str) -> String {
    let plain = timeline::plain::escape(text);
    plain.replace('\\', "\\\\").replace('"', "\\\"")
}
