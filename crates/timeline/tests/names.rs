//! The catalogue's names in other tools are those that somebody found in the tools' own sources.
//!
//! `names/*.txt` hold them, with the date in the first line. A new name fails here until it was looked up and added.

use std::collections::BTreeSet;

use timeline::SignalDef;
use timeline::signals::ALL;

const PCP: &str = include_str!("names/pcp.txt");
const NODE_EXPORTER: &str = include_str!("names/node_exporter.txt");

/// What a tool calls a signal; empty where it has none.
type NameOf = fn(&SignalDef) -> &'static str;

#[test]
fn every_name_in_another_tool_was_looked_up_there() {
    let tools: [(&str, &str, NameOf); 2] =
        [("pcp", PCP, |def| def.pcp), ("node_exporter", NODE_EXPORTER, |def| def.node_exporter)];
    for (tool, list, name_of) in tools {
        let mut lines = list.lines();
        let head = lines.next().unwrap_or_default();
        assert!(head.starts_with("# ") && head.contains(" looked up 20"), "{tool}: {head}");
        let looked_up: BTreeSet<_> = lines.collect();
        let used: BTreeSet<_> =
            ALL.iter().map(|def| metric(name_of(def))).filter(|name| !name.is_empty()).collect();
        let unknown: Vec<_> = used.difference(&looked_up).collect();
        assert!(unknown.is_empty(), "{tool}: not looked up: {unknown:?}");
        let unused: Vec<_> = looked_up.difference(&used).collect();
        assert!(unused.is_empty(), "{tool}: in the list for nothing: {unused:?}");
    }
}

#[test]
fn a_signal_of_its_own_has_a_name_of_its_own() {
    // Orders of free blocks are instances of one PCP metric.
    let several = ["mem.buddyinfo.pages"];
    let tools: [NameOf; 3] = [|def| def.pcp, |def| def.node_exporter, |def| def.sar];
    for name_of in tools {
        let mut seen = BTreeSet::new();
        for def in ALL {
            let name = name_of(def);
            assert!(
                name.is_empty() || several.contains(&name) || seen.insert(name),
                "{name} stands for {} and for another signal",
                def.name
            );
        }
    }
}

/// Without its labels.
fn metric(name: &'static str) -> &'static str {
    name.split_once('{').map_or(name, |(metric, _)| metric)
}
