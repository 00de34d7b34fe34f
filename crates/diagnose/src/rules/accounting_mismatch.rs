//! The kernel's own figures disagree about how much memory there is.

use std::collections::BTreeSet;

use timeline::signals::{MEM_TOTAL, MEM_UNACCOUNTED, NODE_TOTAL, ZONE_FREE, ZONE_MANAGED};

use crate::accounting::totals::{Checks, Difference, TOLERANCE};
use crate::accounting::{Accounting, account};
use crate::finding::Says;
use crate::prelude::*;

declare_rule! {
    /// MemTotal and the zones disagree: the files describe different hosts or a container, or the kernel adds memory lazily.
    ///
    /// ## What it means
    /// The zones' managed pages should add up to MemTotal, their free pages to MemFree, and the disjoint parts of RAM
    /// to no more than MemTotal. When they do not, one of the files is virtual (lxcfs and gVisor show a container's own
    /// figures), the files come from different hosts, or the kernel adds memory to its zones only when it is first
    /// touched (micro-VMs). Shares of MemTotal are then unreliable.
    /// ## How it is recognised
    /// In the median sample, the zones' managed pages differ from MemTotal by more than {TOLERANCE}, or their free
    /// pages from MemFree by more than {TOLERANCE} of RAM, or the nodes' totals from MemTotal by more than {TOLERANCE},
    /// or the terms of the accounting exceed MemTotal by more than {TOLERANCE}. A kernel report of an allocation
    /// confined to some nodes prints those nodes only: that is no mismatch.
    /// ## Not this
    /// - `unaccounted-memory`: the figures agree, and some memory is in none of them.
    /// ## What to do
    /// Nothing on the host. In a container, read the host's own files. In a micro-VM, trust the zones; memtide takes
    /// the floor of free memory from them. Verify: Σ managed of /proc/zoneinfo times the page size is MemTotal.
    /// ## References
    /// - lxcfs: /proc/meminfo per container
    /// - kernel mm/mm_init.c: deferred_init_memmap
    pub(crate) RULE = {
        id: "accounting-mismatch", since: "0.1.0", class: Source,
        numbers: [TOLERANCE],
        trigger: || Trigger::Source, story: story,
        cause: "One file describes a container or another host, or the kernel initialises memory \
                lazily.",
        verify: "the zones' managed pages add up to MemTotal",
    }
}

fn story<'a>(cx: &Evidence<'a>, _: &Incident<'a>) -> Result<Outcome, Missing> {
    let ram = cx.ram()?;
    if let Some(nodes) = confined(cx) {
        return clear!(
            "the kernel report prints only the zones of nodes {nodes}, because the allocation was \
             confined to them"
        );
    }
    let checks = Checks::run(cx);
    let container = cx.facts.container.as_ref();
    let signs = container
        .filter(|container| container.meminfo_is_own)
        .map(|container| container.signs.join(", "));
    if signs.is_none() && !checks.are_measured() {
        return without_zones(cx);
    }
    let managed = mismatch(checks.managed);
    let (free, nodes) = (mismatch(checks.free), mismatch(checks.nodes));
    if signs.is_none() && !checks.disagree() {
        return clear!("zones, nodes and MemTotal agree within {TOLERANCE}");
    }
    let limit = Ratio::new(-Accounting::BROKEN.get());
    Ok(RULE
        .found(Severity::Info, title(cx, &checks, signs.as_deref()))
        .and(|finding| {
            show(finding, ZONE_MANAGED, managed, "zone sizes", "managed by the zones, MemTotal is")
        })
        .and(|finding| {
            show(finding, ZONE_FREE, free, "free pages", "free in the zones, MemFree is")
        })
        .and(|finding| show(finding, NODE_TOTAL, nodes, "node sizes", "on the nodes, MemTotal is"))
        .with(checks.over, |finding, over| {
            let text = format!("the disjoint terms {}", too_large(over));
            finding
                .shows_from(Computed(MEM_UNACCOUNTED), over, limit, None, text)
                .counts_as("the sum of all terms")
        })
        .with(signs, |finding, signs| {
            finding
                .shows(MEM_TOTAL, ram, None, format!("MemTotal {ram}; {signs}"))
                .counts_as("a container's own meminfo")
        })
        .fix(Fix::say(
            "Nothing to do on the host. Do not trust shares of MemTotal here; memtide takes the \
             floor of free memory from the zones of each sample.",
        ))
        .sure_by_kinds(cx, "")
        .into())
}

/// The answer without zones and nodes.
fn without_zones(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    let last = cx.timeline.len().saturating_sub(1);
    // The terms alone are a weaker check than the zones.
    if account(cx, last).is_ok_and(|accounting| accounting.is_broken_down()) {
        return clear!("the disjoint parts of RAM do not exceed MemTotal");
    }
    cx.page_size()?;
    Err(Missing::signal(ZONE_MANAGED.def(), cx.timeline.absent.get(ZONE_MANAGED.def().file)))
}

/// How far the terms are above MemTotal.
fn too_large(over: Ratio) -> String {
    if over.get() < 1.0 {
        format!("exceed MemTotal by {over}")
    } else {
        format!("are {:.0} times MemTotal", over.get() + 1.0)
    }
}

fn title(cx: &Evidence<'_>, checks: &Checks, signs: Option<&str>) -> String {
    if let Some(signs) = signs {
        return format!("/proc/meminfo shows a container's memory, not the machine's ({signs}).");
    }
    let managed = mismatch(checks.managed);
    let sizes = managed.or(mismatch(checks.nodes));
    let Some(Difference { sum, whole, .. }) = sizes.or(mismatch(checks.free)) else {
        return format!(
            "The parts of memory {}: the figures come from different machines.",
            too_large(checks.over.unwrap_or_default())
        );
    };
    if cx.timeline.reports().next().is_some() && !has_own_zones(cx) {
        format!(
            "The zones in the kernel report add up to {sum}, but other figures say {whole}: it \
             comes from another host, or is partial."
        )
    } else if managed.is_some_and(|difference| difference.of_ram < 0.0) {
        format!(
            "The zones add up to {sum}, but MemTotal is {whole}: this machine adds memory to its \
             zones when it is first touched."
        )
    } else if sizes.is_some_and(|difference| difference.of_ram > 0.0) {
        format!(
            "The zones add up to {sum}, but MemTotal is {whole}: a container's view (lxcfs), or \
             files of different hosts."
        )
    } else {
        format!(
            "Zones or nodes add up to {sum}, but /proc/meminfo says {whole}: the files come from \
             different hosts or times."
        )
    }
}

/// Whether zones were read without a kernel report: a report that stands beside them shows no other host.
fn has_own_zones(cx: &Evidence<'_>) -> bool {
    let timeline = cx.timeline;
    let reported: BTreeSet<usize> =
        timeline.reports().filter_map(|one| timeline.sample_of(one)).collect();
    let mut samples = 0..timeline.len();
    samples.any(|at| timeline.was_read(Entity::Zone, at) && !reported.contains(&at))
}

/// A difference too large to be drift.
fn mismatch(difference: Option<Difference>) -> Option<Difference> {
    difference.filter(Difference::matters)
}

/// The nodes to which a kernel report is confined, as it prints no others (mm/show_mem.c, show_mem_node_skip).
fn confined<'a>(cx: &Evidence<'a>) -> Option<&'a str> {
    cx.timeline.reports().find_map(|reported| reported.report.confined_to())
}

/// Adds a sum that differs from the whole.
fn show(
    finding: Finding,
    signal: impl Says<Bytes>,
    difference: Option<Difference>,
    kind: &'static str,
    what: &str,
) -> Finding {
    finding.with(difference, |finding, Difference { sum, whole, .. }| {
        let text = format!("{sum} {what} {whole}");
        finding.shows(signal, sum, None, text).counts_as(kind)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oom::testing::Report;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::{
        Entity,
        facts::Container,
        kernel_report::Constraint,
        signals::{MEM_ANON, MEM_CACHED, MEM_FREE},
    };

    use units::Pages;

    const MIB: fn(u64) -> Bytes = Bytes::from_mib;

    fn host(managed: u64, free_in_zones: u64) -> Case {
        let pages = |mib: u64| Pages::new(mib * 256);
        Case::over(10)
            .gauge(MEM_TOTAL, MIB(1000))
            .gauge(MEM_FREE, MIB(500))
            .gauge_of(Entity::Zone, "0/Normal", ZONE_MANAGED, pages(managed))
            .gauge_of(Entity::Zone, "0/Normal", ZONE_FREE, pages(free_in_zones))
    }

    #[test]
    fn zones_smaller_than_memtotal_mean_lazy_initialisation() {
        let finding = found(RULE, &host(200, 90));
        assert_eq!(finding.severity, Severity::Info);
        assert!(finding.title.contains("first touched"), "{}", finding.title);
        assert_eq!(finding.evidence.len(), 2);
    }

    #[test]
    fn a_kernel_report_beside_zones_that_were_read_is_of_no_other_host() {
        let case = host(200, 90).with_report(5, Report::of_a_group(102_400, 102_400));
        let finding = found(RULE, &case);
        assert!(finding.title.contains("first touched"), "{}", finding.title);
    }

    #[test]
    fn a_memtotal_below_the_zones_is_a_containers_view() {
        let finding = found(RULE, &host(9000, 500));
        assert!(finding.title.contains("container's view"), "{}", finding.title);
    }

    #[test]
    fn a_kernel_report_of_some_nodes_is_no_mismatch() {
        let Report(mut report) = Report::of_a_host();
        report.constraint = Some(Constraint::Cpuset);
        report.mems_allowed = Some("0".to_owned());
        let case = Case::of_report(Report(report));
        let short = case.gauge(MEM_TOTAL, Bytes::from_gib(64)).gauge_of(
            Entity::Zone,
            "0/Normal",
            ZONE_MANAGED,
            Pages::new(256 * 377),
        );
        assert!(clear(RULE, &short).contains("confined"));
    }

    #[test]
    fn the_title_names_a_containers_meminfo() {
        let mut case = host(1000, 500);
        case.facts.container = Some(Container {
            signs: vec!["lxcfs on /proc/meminfo".to_owned()],
            meminfo_is_own: true,
        });
        assert!(found(RULE, &case).title.contains("lxcfs"));
    }

    #[test]
    fn terms_that_exceed_memtotal_are_found() {
        let case = host(1000, 500).gauge(MEM_ANON, MIB(400)).gauge(MEM_CACHED, MIB(200));
        let finding = found(RULE, &case);
        assert!(finding.title.contains("10 %"), "{}", finding.title);
    }

    #[test]
    fn clear_when_figures_agree_in_the_median_sample() {
        clear(RULE, &host(1000, 500));
        let mut free = vec![MIB(500); 5];
        free.push(MIB(300));
        free.push(MIB(500));
        clear(RULE, &host(1000, 500).gauge_steps(MEM_FREE, &free));
    }

    #[test]
    fn not_evaluated_without_zones() {
        let case = Case::over(10).gauge(MEM_TOTAL, MIB(1000));
        assert_eq!(not_evaluated(RULE, &case).names, ["zone.managed"]);
    }
}
