//! Which finding follows from which: one disease is reported once, at its root.
//!
//! The order is the pathology's own : what takes memory, then want of memory, then the thrash that
//! follows from want, then the reclaim work of the thrash. A cgroup or a node can be short while the host is not, so
//! those roots stand before host-wide want.

use crate::finding::{Event, Finding, Severity};

/// Roots in the order in which they are tried, each with what it can bring about.
const CONSEQUENCES: &[(&str, &[&str])] = &[
    (
        "node-reclaim-on",
        &[
            "numa-imbalance",
            "page-cache-thrash",
            "exec-pages-evicted",
            "direct-reclaim-stall",
            "kswapd-saturated",
        ],
    ),
    (
        "cgroup-cache-starved",
        &["page-cache-thrash", "exec-pages-evicted"],
    ),
    (
        "cgroup-high-throttle",
        &["swap-thrash", "page-cache-thrash"],
    ),
    ("oom-cgroup", &["cgroup-cache-starved", "oom-score-misuse"]),
    ("oom-constrained", &["numa-imbalance", "oom-score-misuse"]),
    ("lowmem-zone-exhausted", &["oom-global", "oom-score-misuse"]),
    ("min-free-too-large", WANT_AND_THRASH),
    ("hugetlb-unused", WANT_AND_THRASH),
    ("shmem-growth", WANT_AND_THRASH),
    ("page-tables-large", WANT_AND_THRASH),
    ("slab-leak", WANT_AND_THRASH),
    ("unaccounted-memory", WANT_AND_THRASH),
    ("fork-cow-spike", WANT_AND_THRASH),
    (
        "numa-imbalance",
        &[
            "swap-thrash",
            "page-cache-thrash",
            "exec-pages-evicted",
            "direct-reclaim-stall",
            "kswapd-saturated",
        ],
    ),
    (
        "oom-global",
        &[
            "available-exhaustion",
            "cache-starved-floor",
            "swap-full",
            "no-swap-risk",
            "oom-score-misuse",
            "direct-reclaim-stall",
            "kswapd-saturated",
        ],
    ),
    (
        "swap-thrash",
        &[
            "available-exhaustion",
            "cache-starved-floor",
            "swap-full",
            "page-cache-thrash",
            "exec-pages-evicted",
            "direct-reclaim-stall",
            "kswapd-saturated",
            "zram-misuse",
        ],
    ),
    (
        "exec-pages-evicted",
        &[
            "available-exhaustion",
            "cache-starved-floor",
            "page-cache-thrash",
            "swappiness-misfit",
            "no-swap-risk",
            "direct-reclaim-stall",
            "kswapd-saturated",
        ],
    ),
    (
        "page-cache-thrash",
        &[
            "available-exhaustion",
            "cache-starved-floor",
            "swappiness-misfit",
            "no-swap-risk",
            "direct-reclaim-stall",
            "kswapd-saturated",
        ],
    ),
    (
        "cache-starved-floor",
        &[
            "available-exhaustion",
            "direct-reclaim-stall",
            "kswapd-saturated",
        ],
    ),
    (
        "available-exhaustion",
        &[
            "swap-full",
            "no-swap-risk",
            "direct-reclaim-stall",
            "kswapd-saturated",
        ],
    ),
    (
        "dirty-throttle",
        &["direct-reclaim-stall", "kswapd-saturated"],
    ),
    (
        "external-fragmentation",
        &["compaction-stall", "oom-global", "oom-score-misuse"],
    ),
    ("direct-reclaim-stall", &["kswapd-saturated"]),
];

const WANT_AND_THRASH: &[&str] = &[
    "available-exhaustion",
    "cache-starved-floor",
    "swap-full",
    "oom-global",
    "swap-thrash",
    "page-cache-thrash",
    "exec-pages-evicted",
    "swappiness-misfit",
    "no-swap-risk",
    "direct-reclaim-stall",
    "kswapd-saturated",
];

/// Links consequences to their roots, gives a root the severity of its worst consequence, and orders: worst root
/// first, each followed by what it brings about.
pub(crate) fn order(mut findings: Vec<Finding>) -> Vec<Finding> {
    let excluded = excluded(&findings);
    for (root, consequences) in CONSEQUENCES {
        // A mere note on the side explains nothing that is worse than itself.
        let Some(root) = findings
            .iter()
            .find(|f| f.id == *root && f.severity > Severity::Info)
            .cloned()
        else {
            continue;
        };
        for finding in &mut findings {
            if finding.caused_by.is_none()
                && root.caused_by != Some(finding.id)
                && consequences.contains(&finding.id)
                && !is_excluded(root.id, finding.id, &excluded)
                && !leads(finding, &root)
                && at_the_same_time(&root, finding)
            {
                finding.caused_by = Some(root.caused_by.unwrap_or(root.id));
            }
        }
    }
    for i in 0..findings.len() {
        let worst = findings
            .iter()
            .filter(|f| f.caused_by == Some(findings[i].id))
            .map(|f| f.severity)
            .max();
        if let Some(worst) = worst {
            findings[i].severity = findings[i].severity.max(worst);
        }
    }
    let place = |f: &Finding| {
        CONSEQUENCES
            .iter()
            .position(|(id, _)| *id == f.id)
            .unwrap_or(CONSEQUENCES.len())
    };
    let mut roots: Vec<Finding> = Vec::new();
    let mut rest: Vec<Finding> = Vec::new();
    for finding in findings {
        if finding.caused_by.is_none() {
            roots.push(finding);
        } else {
            rest.push(finding);
        }
    }
    roots.sort_by_key(|f| (std::cmp::Reverse((f.severity, f.event)), place(f)));
    rest.sort_by_key(|f| (std::cmp::Reverse(f.severity), place(f)));
    let mut ordered = Vec::new();
    for root in roots {
        let id = root.id;
        ordered.push(root);
        let (mine, others): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|f| f.caused_by == Some(id));
        ordered.extend(mine);
        rest = others;
    }
    ordered
}

/// Findings of weight with what they rule out.
fn excluded(findings: &[Finding]) -> Vec<(&'static str, Vec<&'static str>)> {
    let of_weight = findings.iter().filter(|f| f.severity > Severity::Info);
    of_weight
        .map(|f| (f.id, f.ruled_out.iter().map(|other| other.id).collect()))
        .collect()
}

/// What a finding's evidence excludes did not bring it about, nor what it brings about itself.
fn is_excluded(
    root: &str,
    consequence: &str,
    excluded: &[(&'static str, Vec<&'static str>)],
) -> bool {
    excluded.iter().any(|(id, others)| {
        let brings = || {
            let own = CONSEQUENCES.iter().filter(|(root, _)| root == id);
            own.flat_map(|(_, what)| what.iter())
                .any(|what| *what == consequence)
        };
        others.contains(&root) && (*id == consequence || brings())
    })
}

/// A kill that the kernel reported is what the reader came for, and says itself what filled memory: it is not told as a
/// mere consequence of a level.
fn leads(finding: &Finding, root: &Finding) -> bool {
    finding.event > Some(Event::FailedAllocation)
        && finding.severity > Severity::Info
        && root.event.is_none()
}

/// A state without a beginning is there all the time.
fn at_the_same_time(a: &Finding, b: &Finding) -> bool {
    match (a.when, b.when) {
        (Some(a), Some(b)) => a.overlaps(&b),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules;

    fn finding(id: &str, severity: Severity) -> Finding {
        let rule = rules::ALL.iter().find(|r| r.id == id);
        rule.unwrap_or_else(|| panic!("no rule {id}"))
            .found(severity, "")
    }

    #[test]
    fn every_id_is_a_rule() {
        for (root, consequences) in CONSEQUENCES {
            for id in std::iter::once(root).chain(*consequences) {
                assert!(rules::ALL.iter().any(|r| r.id == *id), "{id}");
            }
        }
    }

    #[test]
    fn a_chain_ends_at_its_root_and_lends_it_its_severity() {
        let ordered = order(vec![
            finding("direct-reclaim-stall", Severity::Warning),
            finding("swap-thrash", Severity::Critical),
            finding("min-free-too-large", Severity::Warning),
        ]);
        let ids: Vec<_> = ordered.iter().map(|f| (f.id, f.caused_by)).collect();
        assert_eq!(
            ids,
            [
                ("min-free-too-large", None),
                ("swap-thrash", Some("min-free-too-large")),
                ("direct-reclaim-stall", Some("min-free-too-large")),
            ]
        );
        assert_eq!(ordered[0].severity, Severity::Critical);
    }

    #[test]
    fn what_a_finding_rules_out_is_not_made_its_root() {
        let tables = finding("page-tables-large", Severity::Warning);
        let kill = || finding("oom-global", Severity::Critical);
        let ordered = order(vec![tables.clone(), kill()]);
        assert_eq!(ordered[0].id, "page-tables-large");
        let full = finding("swap-full", Severity::Warning);
        let ordered = order(vec![tables, kill().not("page-tables-large", "small"), full]);
        let ids: Vec<_> = ordered.iter().map(|f| (f.id, f.caused_by)).collect();
        assert_eq!(
            ids,
            [
                ("oom-global", None),
                ("swap-full", Some("oom-global")),
                ("page-tables-large", None),
            ]
        );
    }

    #[test]
    fn a_reported_kill_leads_over_the_level_that_brought_it_about() {
        let mut kill = finding("oom-global", Severity::Critical);
        kill.event = Some(Event::HostKill);
        let mut of_a_group = finding("oom-cgroup", Severity::Critical);
        of_a_group.event = Some(Event::Kill);
        let level = finding("shmem-growth", Severity::Critical);
        let want = finding("available-exhaustion", Severity::Warning);
        let ordered = order(vec![level, of_a_group, kill, want]);
        let ids: Vec<_> = ordered.iter().map(|f| (f.id, f.caused_by)).collect();
        assert_eq!(
            ids,
            [
                ("oom-global", None),
                ("oom-cgroup", None),
                ("shmem-growth", None),
                ("available-exhaustion", Some("shmem-growth")),
            ]
        );
    }

    #[test]
    fn a_failed_allocation_leads_over_a_level_of_the_same_weight() {
        let mut failed = finding("external-fragmentation", Severity::Warning);
        failed.event = Some(Event::FailedAllocation);
        let level = finding("unaccounted-memory", Severity::Warning);
        assert_eq!(order(vec![level, failed])[0].id, "external-fragmentation");
    }

    #[test]
    fn a_mere_possibility_is_not_made_the_root_of_a_disease() {
        let ordered = order(vec![
            finding("swap-thrash", Severity::Critical),
            finding("shmem-growth", Severity::Info),
        ]);
        assert_eq!(ordered[0].id, "swap-thrash");
        assert_eq!(ordered[0].caused_by, None);
    }
}
