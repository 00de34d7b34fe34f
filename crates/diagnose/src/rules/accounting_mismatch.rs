//! The kernel's own figures disagree about how much memory there is.

use timeline::{
    Entity, EntitySeries, Gauge, Signal,
    signals::{MEM_FREE, MEM_TOTAL, MEM_UNACCOUNTED, NODE_TOTAL, ZONE_FREE, ZONE_MANAGED},
};
use units::{Bytes, Pages, Quantity, Ratio};

use super::unaccounted_memory::spread;
use crate::accounting::{Accounting, account};
use crate::evidence::Evidence;
use crate::finding::{Computed, Finding, Says, Severity};
use crate::fix::Fix;
use crate::missing::Missing;
use crate::rule::{Outcome, clear, declare_rule};

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
    pub(crate) RULE = { id: "accounting-mismatch", since: "0.1.0", purpose: Note, reach: Look, check: check }
}

/// Up to 1 % is legitimate drift between files of one sample; the labelled captures show 0.0 %.
const TOLERANCE: Ratio = Ratio::from_percent(2.0);
/// Samples looked at, spread over the look; the middle one counts, for files of one sample are not read at one instant.
const LOOKS: usize = 9;

/// What the checks found; each absent where the source lacks its figures.
struct Checks {
    managed: Option<Difference>,
    free: Option<Difference>,
    nodes: Option<Difference>,
    over: Option<Ratio>,
}

/// Two figures that should be one.
#[derive(Clone, Copy)]
struct Difference {
    sum: Bytes,
    whole: Bytes,
    of_ram: f64,
}

impl Difference {
    fn matters(&self) -> bool {
        self.of_ram.abs() > TOLERANCE.get()
    }
}

/// Whether the figures disagree so much that shares of MemTotal mean little.
pub(super) fn disagrees(cx: &Evidence<'_>) -> bool {
    let checks = Checks::of(cx);
    let differences = [checks.managed, checks.free, checks.nodes];
    differences.into_iter().flatten().any(|d| d.matters()) || checks.over.is_some()
}

impl Checks {
    fn of(cx: &Evidence<'_>) -> Self {
        let page = cx.facts.page_size;
        let zones = |signal: Signal<Gauge<Pages>>| {
            move |index: usize| {
                sum_of(cx, Entity::Zone, |zone| {
                    Some(cx.timeline.latest_of(zone, signal, index)?.to_bytes(page?))
                })
            }
        };
        let nodes = |index: usize| {
            sum_of(cx, Entity::Node, |node| {
                cx.timeline.latest_of(node, NODE_TOTAL, index)
            })
        };
        let over = middle(cx, |index| {
            let accounting = account(cx, index).ok()?;
            Some((accounting.unaccounted_share().get(), accounting))
        })
        .filter(|(_, accounting)| accounting.is_broken())
        .map(|(share, _)| Ratio::new(-share));
        Self {
            managed: difference(cx, zones(ZONE_MANAGED), MEM_TOTAL),
            free: difference(cx, zones(ZONE_FREE), MEM_FREE),
            nodes: difference(cx, nodes, MEM_TOTAL),
            over,
        }
    }
}

fn sum_of(
    cx: &Evidence<'_>,
    entity: Entity,
    size: impl Fn(&EntitySeries) -> Option<Bytes>,
) -> Option<Bytes> {
    let mut sizes = cx.timeline.entities(entity).filter_map(size).peekable();
    sizes.peek()?;
    Some(sizes.sum())
}

/// The middle difference between a sum over entities and a host figure, as a share of RAM.
fn difference(
    cx: &Evidence<'_>,
    sum: impl Fn(usize) -> Option<Bytes>,
    whole: Signal<Gauge<Bytes>>,
) -> Option<Difference> {
    let (_, difference) = middle(cx, |index| {
        let sum = sum(index)?;
        let ram = cx.timeline.at(MEM_TOTAL, index)?.as_f64();
        let whole = cx.timeline.at(whole, index)?;
        let of_ram = (sum.as_f64() - whole.as_f64()) / ram.max(1.0);
        Some((of_ram, Difference { sum, whole, of_ram }))
    })?;
    Some(difference)
}

/// What is measured at the sample whose value is the middle one.
fn middle<T>(cx: &Evidence<'_>, measure: impl Fn(usize) -> Option<(f64, T)>) -> Option<(f64, T)> {
    let mut measured: Vec<(f64, T)> = spread(cx.timeline.len(), LOOKS)
        .filter_map(measure)
        .collect();
    measured.sort_by(|a, b| a.0.total_cmp(&b.0));
    let at = measured.len() / 2;
    measured.into_iter().nth(at)
}

fn check(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    cx.ram()?;
    if let Some(nodes) = confined(cx) {
        return clear!(
            "the kernel's report prints the zones of nodes {nodes} only: the request was confined to them"
        );
    }
    let checks = Checks::of(cx);
    let boxed = cx.facts.container.as_ref().filter(|c| c.meminfo_is_own);
    let of_box = boxed.map(|c| c.signs.join(", "));
    if checks.managed.is_none()
        && checks.nodes.is_none()
        && checks.over.is_none()
        && boxed.is_none()
    {
        let last = cx.timeline.len().saturating_sub(1);
        // The terms were checked; zones would have been the better check.
        if account(cx, last).is_ok_and(|a| a.is_broken_down()) {
            return clear!("the disjoint parts of RAM do not exceed MemTotal");
        }
        cx.page_size()?;
        return Err(Missing::signal(
            ZONE_MANAGED.def(),
            cx.timeline.absent.get(ZONE_MANAGED.def().file),
        ));
    }
    let wrong = |d: Option<Difference>| d.filter(Difference::matters);
    let (managed, free, nodes) = (
        wrong(checks.managed),
        wrong(checks.free),
        wrong(checks.nodes),
    );
    if managed.is_none()
        && free.is_none()
        && nodes.is_none()
        && checks.over.is_none()
        && boxed.is_none()
    {
        return clear!("zones, nodes and MemTotal agree within {TOLERANCE}");
    }

    let has_report = cx.timeline.reports().next().is_some();
    let title = match (&of_box, managed.or(nodes).or(free), checks.over) {
        (Some(signs), _, _) => {
            format!("/proc/meminfo shows a container's memory, not the machine's ({signs}).")
        }
        (None, Some(d), _) if has_report => format!(
            "The zones of the kernel's report sum up to {} where {} are said elsewhere: it is of another host, or shows a part.",
            d.sum, d.whole
        ),
        (None, Some(d), _) if managed.is_some_and(|d| d.of_ram < 0.0) => format!(
            "The zones know {} where /proc/meminfo says {}: this machine adds memory to its zones when it is first touched.",
            d.sum, d.whole
        ),
        (None, Some(d), _) if managed.or(nodes).is_some_and(|d| d.of_ram > 0.0) => format!(
            "The zones know {} where /proc/meminfo says {}: a container's view (lxcfs), or the files are of different hosts.",
            d.sum, d.whole
        ),
        (None, Some(d), _) => format!(
            "Zones or nodes know {} where /proc/meminfo says {}: the files are of different hosts or times.",
            d.sum, d.whole
        ),
        (None, None, over) => format!(
            "The parts of memory exceed MemTotal by {} of it: the figures are not of one machine.",
            over.unwrap_or_default()
        ),
    };
    let mut finding = RULE.found(Severity::Info, title);
    finding = shown(
        finding,
        ZONE_MANAGED,
        managed,
        "managed by the zones, MemTotal is",
    );
    finding = shown(finding, ZONE_FREE, free, "free in the zones, MemFree is");
    finding = shown(finding, NODE_TOTAL, nodes, "on the nodes, MemTotal is");
    if let Some(over) = checks.over {
        finding = finding.shows_from(
            Computed(MEM_UNACCOUNTED),
            over,
            Ratio::new(-Accounting::BROKEN.get()),
            None,
            format!("the disjoint terms exceed MemTotal by {over}"),
        );
    }
    if let Some(signs) = of_box {
        let ram = cx.ram()?;
        finding = finding.shows(MEM_TOTAL, ram, None, format!("MemTotal {ram}; {signs}"));
    }
    let kinds: Vec<&str> = [
        (managed.is_some(), "zone sizes"),
        (free.is_some(), "free pages"),
        (nodes.is_some(), "node sizes"),
        (checks.over.is_some(), "the sum of all terms"),
        (boxed.is_some(), "a container's own meminfo"),
    ]
    .into_iter()
    .filter_map(|(is, kind)| is.then_some(kind))
    .collect();
    Ok(finding
        .cause("One file is a container's or another host's, or the kernel initialises memory lazily.")
        .fix(Fix::say("Nothing to do on the host. memtide takes the floor of free memory from the zones of each sample; read shares of MemTotal with care."))
        .verify("the zones' managed pages add up to MemTotal")
        .sure(cx.confidence(&kinds, ""))
        .see("kernel: mm/mm_init.c, deferred_init_memmap")
        .into())
}

/// The nodes of a kernel report that leaves out the others (mm/show_mem.c, show_mem_node_skip).
fn confined<'a>(cx: &Evidence<'a>) -> Option<&'a str> {
    cx.timeline
        .reports()
        .find_map(|reported| reported.report.confined_to())
}

fn shown(
    finding: Finding,
    signal: impl Says<Bytes>,
    difference: Option<Difference>,
    what: &str,
) -> Finding {
    match difference {
        Some(d) => finding.shows(signal, d.sum, None, format!("{} {what} {}", d.sum, d.whole)),
        None => finding,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oom::testing::Report;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::{
        facts::Container,
        kernel_report::Constraint,
        signals::{MEM_ANON, MEM_CACHED},
    };

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
