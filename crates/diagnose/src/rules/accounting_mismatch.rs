//! The kernel's own figures disagree about how much memory there is.

use timeline::signals::{MEM_TOTAL, MEM_UNACCOUNTED, NODE_TOTAL, ZONE_FREE, ZONE_MANAGED};

use crate::accounting::totals::{Checks, Difference, TOLERANCE};
use crate::accounting::{Accounting, account};
use crate::finding::Says;
use crate::prelude::*;

declare_rule! {
    /// MemTotal and the memory zones disagree: the figures belong to different things, or memory is set up lazily.
    ///
    /// ## What it means
    /// The zones' managed pages should add up to MemTotal, their free pages to MemFree, and the disjoint parts of RAM to
    /// no more than MemTotal. Where they do not, one of the files is faked (lxcfs, gVisor show a container's own
    /// figures), the files are from different hosts, or the kernel adds memory to its zones only when it is first
    /// touched (micro-VMs). Shares of MemTotal then mean less than they seem.
    /// ## How it is recognised
    /// In the middle one of several samples the zones' managed pages differ from MemTotal by more than 2 %, or their
    /// free pages from MemFree by more than 2 % of RAM, or the nodes' totals from MemTotal by more than 2 %, or the terms
    /// of the accounting exceed MemTotal by more than 2 %.
    /// A kernel report of a request that was confined to some nodes prints those only: that is no mismatch.
    /// ## Not this
    /// - `unaccounted-memory`: the figures agree, and some memory is in none of them.
    /// ## What to do
    /// Nothing on the host. In a container read the host's own files; in a micro-VM take the zones, which memtide does for
    /// the floor of free memory. Verify: Σ managed of /proc/zoneinfo times the page size is MemTotal.
    /// ## References
    /// - lxcfs: /proc/meminfo per container
    /// - kernel mm/mm_init.c: deferred_init_memmap
    pub(crate) RULE = {
        id: "accounting-mismatch", since: "0.1.0", class: Source,
        trigger: || Trigger::Source, story: story,
        cause: "One file is a container's or another host's, or the kernel initialises memory lazily.",
        verify: "the zones' managed pages add up to MemTotal",
    }
}

fn story<'a>(cx: &Evidence<'a>, _: &Incident<'a>) -> Result<Outcome, Missing> {
    let ram = cx.ram()?;
    if let Some(nodes) = confined(cx) {
        return clear!(
            "the kernel's report prints the zones of nodes {nodes} only: the request was confined to them"
        );
    }
    let checks = Checks::of(cx);
    let boxed = cx.facts.container.as_ref().filter(|c| c.meminfo_is_own);
    let of_box = boxed.map(|c| c.signs.join(", "));
    if of_box.is_none() && !checks.are_measured() {
        return without_zones(cx);
    }
    let wrong = |d: Option<Difference>| d.filter(Difference::matters);
    let managed = wrong(checks.managed);
    let (free, nodes) = (wrong(checks.free), wrong(checks.nodes));
    if of_box.is_none() && !checks.disagree() {
        return clear!("zones, nodes and MemTotal agree within {TOLERANCE}");
    }
    let limit = Ratio::new(-Accounting::BROKEN.get());
    Ok(RULE
        .found(Severity::Info, title(cx, &checks, of_box.as_deref()))
        .and(|it| shown(it, ZONE_MANAGED, managed, "zone sizes", "managed by the zones, MemTotal is"))
        .and(|it| shown(it, ZONE_FREE, free, "free pages", "free in the zones, MemFree is"))
        .and(|it| shown(it, NODE_TOTAL, nodes, "node sizes", "on the nodes, MemTotal is"))
        .with(checks.over, |it, over| {
            let text = format!("the disjoint terms exceed MemTotal by {over}");
            it.shows_from(Computed(MEM_UNACCOUNTED), over, limit, None, text).counts_as("the sum of all terms")
        })
        .with(of_box, |it, signs| it.shows(MEM_TOTAL, ram, None, format!("MemTotal {ram}; {signs}")).counts_as("a container's own meminfo"))
        .fix(Fix::say("Nothing to do on the host. memtide takes the floor of free memory from the zones of each sample; read shares of MemTotal with care."))
        .sure_by_kinds(cx, "")
        .into())
}

/// What can be said where neither zones nor nodes were read.
fn without_zones(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    let last = cx.timeline.len().saturating_sub(1);
    // The terms were checked; zones would have been the better check.
    if account(cx, last).is_ok_and(|a| a.is_broken_down()) {
        return clear!("the disjoint parts of RAM do not exceed MemTotal");
    }
    cx.page_size()?;
    Err(Missing::signal(
        ZONE_MANAGED.def(),
        cx.timeline.absent.get(ZONE_MANAGED.def().file),
    ))
}

fn title(cx: &Evidence<'_>, checks: &Checks, of_box: Option<&str>) -> String {
    if let Some(signs) = of_box {
        return format!("/proc/meminfo shows a container's memory, not the machine's ({signs}).");
    }
    let wrong = |d: Option<Difference>| d.filter(Difference::matters);
    let managed = wrong(checks.managed);
    let sizes = managed.or(wrong(checks.nodes));
    let Some(d) = sizes.or(wrong(checks.free)) else {
        return format!(
            "The parts of memory exceed MemTotal by {} of it: the figures are not of one machine.",
            checks.over.unwrap_or_default()
        );
    };
    let has_report = cx.timeline.reports().next().is_some();
    if has_report {
        format!(
            "The zones of the kernel's report sum up to {} where {} are said elsewhere: it is of another host, or shows a part.",
            d.sum, d.whole
        )
    } else if managed.is_some_and(|d| d.of_ram < 0.0) {
        format!(
            "The zones know {} where /proc/meminfo says {}: this machine adds memory to its zones when it is first touched.",
            d.sum, d.whole
        )
    } else if sizes.is_some_and(|d| d.of_ram > 0.0) {
        format!(
            "The zones know {} where /proc/meminfo says {}: a container's view (lxcfs), or the files are of different hosts.",
            d.sum, d.whole
        )
    } else {
        format!(
            "Zones or nodes know {} where /proc/meminfo says {}: the files are of different hosts or times.",
            d.sum, d.whole
        )
    }
}

/// The nodes of a kernel report that leaves out the others (mm/show_mem.c, show_mem_node_skip).
fn confined<'a>(cx: &Evidence<'a>) -> Option<&'a str> {
    cx.timeline
        .reports()
        .find_map(|reported| reported.report.confined_to())
}

/// With a sum that differs from the whole.
fn shown(
    finding: Finding,
    signal: impl Says<Bytes>,
    difference: Option<Difference>,
    kind: &'static str,
    what: &str,
) -> Finding {
    finding.with(difference, |it, d| {
        let text = format!("{} {what} {}", d.sum, d.whole);
        it.shows(signal, d.sum, None, text).counts_as(kind)
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
    fn a_machine_that_sets_memory_up_lazily_is_named() {
        let finding = found(RULE, &host(200, 90));
        assert_eq!(finding.severity, Severity::Info);
        assert!(finding.title.contains("first touched"), "{}", finding.title);
        assert_eq!(finding.evidence.len(), 2);
    }

    #[test]
    fn a_memtotal_below_the_zones_is_a_containers() {
        let finding = found(RULE, &host(9000, 500));
        assert!(
            finding.title.contains("container's view"),
            "{}",
            finding.title
        );
    }

    #[test]
    fn a_report_of_some_nodes_is_no_mismatch() {
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
    fn a_containers_meminfo_is_named() {
        let mut case = host(1000, 500);
        case.facts.container = Some(Container {
            signs: vec!["lxcfs on /proc/meminfo".to_owned()],
            meminfo_is_own: true,
        });
        assert!(found(RULE, &case).title.contains("lxcfs"));
    }

    #[test]
    fn terms_beyond_memtotal_are_named() {
        let case = host(1000, 500)
            .gauge(MEM_ANON, MIB(400))
            .gauge(MEM_CACHED, MIB(200));
        let finding = found(RULE, &case);
        assert!(finding.title.contains("10 %"), "{}", finding.title);
    }

    #[test]
    fn agreement_is_clear_and_so_is_one_sample_read_apart() {
        clear(RULE, &host(1000, 500));
        let mut free = vec![MIB(500); 5];
        free.push(MIB(300));
        free.push(MIB(500));
        clear(RULE, &host(1000, 500).gauge_steps(MEM_FREE, &free));
    }

    #[test]
    fn without_zones_it_says_what_it_lacks() {
        let case = Case::over(10).gauge(MEM_TOTAL, MIB(1000));
        assert_eq!(not_evaluated(RULE, &case).names, ["zone.managed"]);
    }
}
