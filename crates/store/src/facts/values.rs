//! Facts as JSON values: tunables as strings, other fields as objects.

use serde_json::{Value, json};
use timeline::Facts;
use timeline::facts::{self, CgroupMode, Container, Disk, Fact, MemoryMount, Node};
use units::{Bytes, PageSize, Span};

/// Returns the fields of [`Facts`] that are not tunables, by name; `null` if unknown.
pub(super) fn structured(facts: &Facts) -> impl Iterator<Item = (&'static str, Value)> {
    let list = |values: Vec<Value>| {
        if values.is_empty() { Value::Null } else { Value::from(values) }
    };
    let nodes = facts.nodes.iter().map(|node| {
        let Node { id, distances } = node;
        json!({ "id": id, "distances": distances })
    });
    let disks = facts.disks.iter().map(|disk| {
        let Disk { name, rotational } = disk;
        json!({ "name": name, "rotational": rotational })
    });
    let mounts = facts.memory_mounts.iter().map(|mount| {
        let MemoryMount { point, kind, size } = mount;
        json!({ "point": point, "kind": kind, "size": size.map(Bytes::get) })
    });
    let container = facts.container.as_ref().map(|container| {
        let Container { signs, meminfo_is_own } = container;
        json!({ "signs": signs, "meminfo_is_own": meminfo_is_own })
    });
    let mode = facts.cgroup_mode.map(|mode| match mode {
        CgroupMode::V1 => "v1",
        CgroupMode::V2 => "v2",
    });
    [
        ("page_size", json!(facts.page_size.map(|size| size.bytes().get()))),
        ("ticks_per_second", json!(facts.ticks_per_second)),
        ("cpus", json!(facts.cpus)),
        ("nodes", list(nodes.collect())),
        ("disks", list(disks.collect())),
        ("memory_mounts", list(mounts.collect())),
        ("cgroup_mode", json!(mode)),
        ("own_cgroup", json!(facts.own_cgroup)),
        ("container", json!(container)),
        ("hostname", json!(facts.hostname)),
    ]
    .into_iter()
}

/// Sets a fact from its stored value; returns `false` for an unknown name.
pub(super) fn set(facts: &mut Facts, at: Span, name: &str, value: &Value) -> bool {
    if let Some(fact) = fact_of(name) {
        if let Some(text) = value.as_str() {
            facts.record(at, fact, text);
        }
        return true;
    }
    let number = || value.as_u64();
    let small = || number().and_then(|n| u32::try_from(n).ok());
    let text = || value.as_str().map(str::to_owned);
    let rows = || value.as_array().map_or(&[][..], Vec::as_slice).iter();
    match name {
        "page_size" => facts.page_size = number().and_then(PageSize::from_bytes),
        "ticks_per_second" => facts.ticks_per_second = number(),
        "cpus" => facts.cpus = small(),
        "nodes" => facts.nodes = rows().filter_map(node).collect(),
        "disks" => facts.disks = rows().filter_map(disk).collect(),
        "memory_mounts" => facts.memory_mounts = rows().filter_map(mount).collect(),
        "cgroup_mode" => {
            facts.cgroup_mode = match value.as_str() {
                Some("v1") => Some(CgroupMode::V1),
                Some("v2") => Some(CgroupMode::V2),
                _ => None,
            }
        }
        "own_cgroup" => facts.own_cgroup = text(),
        "container" => facts.container = container(value),
        "hostname" => facts.hostname = text(),
        _ => return false,
    }
    true
}

fn node(value: &Value) -> Option<Node> {
    let distances = value.get("distances")?.as_array()?.iter();
    let small = |value: &Value| u32::try_from(value.as_u64()?).ok();
    Some(Node { id: small(value.get("id")?)?, distances: distances.filter_map(small).collect() })
}

fn disk(value: &Value) -> Option<Disk> {
    Some(Disk {
        name: value.get("name")?.as_str()?.to_owned(),
        rotational: value.get("rotational").and_then(Value::as_bool),
    })
}

fn mount(value: &Value) -> Option<MemoryMount> {
    Some(MemoryMount {
        point: value.get("point")?.as_str()?.to_owned(),
        kind: value.get("kind")?.as_str()?.to_owned(),
        size: value.get("size").and_then(Value::as_u64).map(Bytes::new),
    })
}

fn container(value: &Value) -> Option<Container> {
    let signs = value.get("signs")?.as_array()?.iter();
    Some(Container {
        signs: signs.filter_map(|sign| Some(sign.as_str()?.to_owned())).collect(),
        meminfo_is_own: value.get("meminfo_is_own")?.as_bool()?,
    })
}

pub(super) fn fact_of(name: &str) -> Option<Fact> {
    facts::ALL.iter().find(|fact| fact.name == name).copied()
}
