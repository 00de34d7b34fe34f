//! The host's settings with their meaning; those that a finding relies on stand out.

use timeline::facts;

use super::Scene;
use super::block::section;
use super::escape::{Html, Tag, tag};
use crate::model::Changed;

pub(super) fn draw(html: &mut Html, scene: &Scene<'_>) {
    let known: Vec<_> = facts::ALL
        .iter()
        // The kernel's command line may hold secrets, and pages are sent by mail.
        .filter(|fact| fact.name != facts::KERNEL_CMDLINE.name)
        .filter_map(|fact| Some((fact, scene.page.facts.text(*fact)?)))
        .collect();
    let rows = of_host(scene);
    if known.is_empty() && rows.is_empty() {
        return;
    }
    section(html, ("facts", "facts-heading"), "Facts", |html| {
        html.within(Tag::of("table", "facts"), |html| {
            html.raw("<thead><tr><th scope=\"col\">name</th><th scope=\"col\">value</th><th scope=\"col\">meaning</th></tr></thead>");
            html.within(tag("tbody"), |html| {
                for (name, value) in &rows {
                    row(html, tag("tr"), (name, value, ""));
                }
                for (fact, value) in known {
                    let tr = if relied_on(scene, fact.name) { Tag::of("tr", "is-relied-on") } else { tag("tr") };
                    row(html, tr, (fact.name, value, fact.meaning));
                }
            });
        });
        changed(html, scene, &scene.report.changed);
    });
}

fn row(html: &mut Html, tr: Tag, (name, value, meaning): (&str, &str, &str)) {
    html.within(tr, |html| {
        html.within(tag("th").with("scope", "row"), |html| {
            html.tagged(tag("code"), name);
        });
        // Some files separate their numbers with tabs.
        let words: Vec<&str> = value.split_whitespace().collect();
        html.tagged(tag("td"), &words.join(" ")).tagged(tag("td"), meaning);
    });
}

/// Whether a finding names the setting as evidence.
fn relied_on(scene: &Scene<'_>, name: &str) -> bool {
    let all = scene.report.findings.iter().chain(&scene.report.notes);
    let mut signals = all.flat_map(|finding| &finding.evidence).map(|line| line.signal.as_deref());
    signals.any(|signal| signal == Some(name))
}

/// Returns the facts of the host that are not settings.
fn of_host(scene: &Scene<'_>) -> Vec<(&'static str, String)> {
    let facts = &scene.page.facts;
    let mut rows = Vec::new();
    if facts.nodes.len() > 1 {
        let distances = facts.nodes.iter().map(|node| {
            let distances: Vec<String> = node.distances.iter().map(u32::to_string).collect();
            format!("{} ({})", node.id, distances.join(" "))
        });
        let nodes: Vec<String> = distances.collect();
        rows.push(("NUMA nodes (distances)", nodes.join(", ")));
    }
    if !facts.disks.is_empty() {
        let disks = facts.disks.iter().map(|disk| {
            if disk.spins() { format!("{} (spins)", disk.name) } else { disk.name.clone() }
        });
        rows.push(("disks", disks.collect::<Vec<_>>().join(", ")));
    }
    if !facts.memory_mounts.is_empty() {
        let mounts = facts.memory_mounts.iter().map(|mount| match mount.size {
            Some(size) => format!("{} ({}, at most {size})", mount.point, mount.kind),
            None => format!("{} ({})", mount.point, mount.kind),
        });
        rows.push(("file systems in RAM", mounts.collect::<Vec<_>>().join(", ")));
    }
    if let Some(container) = &facts.container {
        rows.push(("in a container", container.signs.join(", ")));
    }
    rows
}

/// Draws settings that changed: a problem that began with a change is often caused by it.
fn changed(html: &mut Html, scene: &Scene<'_>, changed: &[Changed]) {
    if changed.is_empty() {
        return;
    }
    html.tagged(tag("h3"), &format!("Settings changed ({})", changed.len()));
    html.within(Tag::of("ul", "changed"), |html| {
        for change in changed {
            html.tagged(tag("li"), &scene.clock.changed(change));
        }
    });
}
