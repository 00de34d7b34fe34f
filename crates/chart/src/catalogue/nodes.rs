//! NUMA nodes: where the memory of each is, on one scale.

use diagnose::Evidence;
use diagnose::accounting::{TermKind, of_node};
use timeline::signals::{
    NODE_ACTIVE_FILE, NODE_ANON, NODE_FILE, NODE_FOREIGN, NODE_FREE, NODE_INACTIVE_FILE,
    NODE_SHMEM, NODE_SLAB, NODE_TOTAL,
};
use timeline::{Entity, EntitySeries};
use units::Quantity;

use super::builder::{ChartBuilder, level, signals};
use crate::{Chart, ChartKind, ChartSeries, ChartUnit, Colour, Curve};

const HELP: &str = "Memory of one NUMA node; all nodes have one scale.";

/// Returns a chart for each node, if there are several.
pub(super) fn charts(cx: &Evidence<'_>) -> Vec<Chart> {
    let numbered = cx.timeline.entities(Entity::Node);
    let mut nodes: Vec<(u32, &EntitySeries)> =
        numbered.filter_map(|node| Some((node.key.parse().ok()?, node))).collect();
    if nodes.len() < 2 {
        return Vec::new();
    }
    nodes.sort_by_key(|(number, _)| *number);
    let sizes = nodes.iter().filter_map(|(_, node)| {
        let total = cx.timeline.gauge_of(node, NODE_TOTAL)?;
        Some(total.max()?.0.as_f64())
    });
    let top = sizes.reduce(f64::max);
    let charts = nodes.into_iter();
    charts.map(|(number, node)| chart(cx, number, &node.key, top)).collect()
}

fn chart(cx: &Evidence<'_>, number: u32, key: &str, top: Option<f64>) -> Chart {
    let builder = ChartBuilder::new(
        format!("node-{number}"),
        format!("Node {number}"),
        HELP,
        ChartKind::Stack,
        ChartUnit::Bytes,
    )
    .of_entities()
    .top(top);
    let drawn = areas(cx, key);
    let has_data: Vec<bool> = drawn.iter().map(|curve| !curve.is_empty()).collect();
    if !has_data.contains(&true) {
        return builder.absent(format!("the memory of node {number} was not recorded"));
    }
    let with_data = series()
        .into_iter()
        .zip(&has_data)
        .filter_map(|(series, has_data)| has_data.then_some(series))
        .collect();
    let key = key.to_owned();
    builder.together(
        with_data,
        Box::new(move |part| {
            areas(part, &key)
                .into_iter()
                .zip(&has_data)
                .filter_map(|(curve, has_data)| has_data.then_some(curve))
                .collect()
        }),
    )
}

/// Returns the series from the bottom. Evidence about nodes does not name the node, so a reader searches these charts
/// for it, and no single series proves it.
fn series() -> Vec<ChartSeries> {
    use Colour as C;
    let area = |id, label, colour, signals| level(id, label, colour, Vec::new()).related(signals);
    vec![
        area("rest", "kernel and unaccounted", C::Unaccounted, signals![NODE_TOTAL]),
        area("slab", "slab", C::SlabUnreclaimable, signals![NODE_SLAB]),
        area("shared", TermKind::Shmem.label(), C::Shared, signals![NODE_SHMEM]),
        area("anon", TermKind::Anon.label(), C::Anon, signals![NODE_ANON]),
        area(
            "file",
            TermKind::FileCache.label(),
            C::FileCache,
            signals![NODE_FILE, NODE_ACTIVE_FILE, NODE_INACTIVE_FILE],
        ),
        area("free", TermKind::Free.label(), C::Free, signals![NODE_FREE, NODE_FOREIGN]),
    ]
}

/// Returns the areas of a node in the order of [`series`]; empty if unknown.
fn areas(cx: &Evidence<'_>, key: &str) -> Vec<Curve> {
    let node = of_node(cx, key);
    let areas = [node.rest, node.slab, node.shared, node.anon, node.file, node.free];
    let known = |area: Curve| {
        if area.iter().all(Option::is_none) { Curve::new() } else { area }
    };
    areas.map(known).to_vec()
}
