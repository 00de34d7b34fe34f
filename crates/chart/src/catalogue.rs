//! The charts that a source gives, in the page's order.

mod builder;
mod cpu;
mod disks;
mod group;
mod groups;
mod growth;
mod headroom;
mod memory;
mod nodes;
mod pressure;
mod reclaim;
mod recorder;
mod services;
mod sums;
mod swap;
mod writing;

#[cfg(test)]
mod tests;

use diagnose::Evidence;

use self::services::OwnerDetail;
use crate::Chart;

/// Returns all charts of a source, in the page's order. Charts that cannot be drawn are included and say why. Node
/// charts are included if the host has several nodes, cgroup charts if any cgroup is known.
pub fn charts(cx: &Evidence<'_>) -> Vec<Chart> {
    of_host(cx, OwnerDetail::EachOfFew)
}

/// As [`charts`], for charts that stand beside those of another source: processes are always added up by name.
pub fn comparable_charts(cx: &Evidence<'_>) -> Vec<Chart> {
    of_host(cx, OwnerDetail::Names)
}

fn of_host(cx: &Evidence<'_>, detail: OwnerDetail) -> Vec<Chart> {
    let held = services::RankedOwners::of(cx, detail);
    let mut charts = vec![
        memory::chart(cx),
        services::chart(cx, &held),
        headroom::headroom(cx),
        headroom::free(cx),
        pressure::memory(cx),
        swap::flow(cx),
        reclaim::refaults(cx),
        swap::used(cx),
        reclaim::scanned(cx),
        writing::dirty(cx),
        writing::speed(cx),
        pressure::io(cx),
        disks::throughput(cx),
        disks::busy(cx),
        cpu::chart(cx),
    ];
    charts.extend(nodes::charts(cx));
    charts.extend(groups::chart(cx));
    charts.extend([growth::chart(cx, &held), recorder::chart(cx)]);
    charts
}

/// Returns the charts of a page about one cgroup: its own, then those that show whether the host is the reason.
pub fn charts_of_group(cx: &Evidence<'_>, path: &str) -> Vec<Chart> {
    let of_host = [
        headroom::free(cx),
        pressure::memory(cx),
        swap::flow(cx),
        disks::throughput(cx),
        disks::busy(cx),
        cpu::chart(cx),
    ];
    let of_host =
        of_host.into_iter().map(|chart| Chart { title: format!("Host: {}", chart.title), ..chart });
    group::charts(cx, path).into_iter().chain(of_host).collect()
}
