//! An OOM kill of a task confined to some NUMA nodes.

use timeline::kernel_report::Constraint;

use crate::oom::{self, Explained, Hurdle, OomCause};
use crate::prelude::*;

declare_rule! {
    /// A process was killed because its cpuset or memory policy confined it to NUMA nodes that were full; others may have free memory.
    ///
    /// ## What it means
    /// A cpuset (`cpuset.mems`, `docker --cpuset-mems`) or a strict memory policy (`numactl --membind`, mbind) limits
    /// the NUMA nodes that serve a task. When those are full, the kernel kills among the tasks that may use them,
    /// however much is free elsewhere.
    /// ## How it is recognised
    /// The kernel report says so itself: `CONSTRAINT_CPUSET` or `CONSTRAINT_MEMORY_POLICY`. Its zones show whether the
    /// other nodes had free memory.
    /// ## Not this
    /// - `oom-global`: any node could have served the allocation.
    /// - `oom-cgroup`: a limit on the amount, not on the nodes.
    /// - `numa-imbalance`: nodes are used unevenly, but nothing is killed.
    /// ## What to do
    /// Now: give the task more nodes, or less work. For good: prefer a node instead of binding to it, or interleave.
    /// Verify: `numastat -p PID` over a work cycle, and no further report.
    /// ## References
    /// - kernel mm/oom_kill.c, constrained_alloc
    /// - kernel Documentation/admin-guide/mm/numa_memory_policy.rst; numactl(8), cpuset(7)
    pub(crate) RULE = { id: "oom-constrained", since: "0.1.0", class: Limit,
        trigger: trigger, story: story,
        verify: "numastat -p PID: the task's memory stays below the size of its nodes over a work \
                 cycle",
        brings_about: &["numa-imbalance", "oom-score-misuse"],
    }
}

fn trigger() -> Trigger {
    oom::trigger(|cx| Ok(oom::occurrences(cx, is_confined)), none)
}

fn is_confined(explained: &Explained<'_>) -> bool {
    matches!(explained.cause, OomCause::Confined(_))
}

fn none(_: &Evidence<'_>) -> Result<Outcome, Missing> {
    clear!("no kernel report of an allocation confined to some nodes")
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let reports = oom::within(cx, &incident.stretch, is_confined);
    let Some(one) = reports.last() else {
        return none(cx);
    };
    let by = match (one.cause, one.report.cpuset.as_deref()) {
        (OomCause::Confined(Constraint::MemoryPolicy), _) => "a memory policy".to_owned(),
        (_, None | Some("" | "/")) => "its cpuset".to_owned(),
        (_, Some(cpuset)) => format!("its cpuset {cpuset}"),
    };
    let to = match one.report.confined_to() {
        None => "to some NUMA nodes".to_owned(),
        Some(nodes) if nodes.contains(['-', ',']) => format!("to NUMA nodes {nodes}"),
        Some(node) => format!("to NUMA node {node}"),
    };
    let elsewhere = free_elsewhere(one);
    let movable = free_for_movable(one);
    let state = if movable > Bytes::ZERO {
        format!("where the {movable} of free memory is for movable pages only")
    } else {
        "which had no free memory".to_owned()
    };
    let others = match elsewhere {
        Some(Bytes::ZERO) => "; the other nodes had none either".to_owned(),
        Some(free) => format!(", while others had {free} free"),
        None => String::new(),
    };
    let title =
        format!("{} because {by} confined the allocation {to}, {state}{others}.", oom::kill(one));
    let reported = format!("the kernel reports that {by} confined the allocation {to}");
    let finding = RULE.found(Severity::Critical, title).with_line(reported);
    let finding = oom::tell_all(cx, &incident.stretch, &reports, finding);
    let nodes = one.report.confined_to();
    let open = if elsewhere.is_some() {
        ""
    } else {
        "the report does not show the other nodes: numastat -m does"
    };
    Ok(remedy(oom::measures(cx, one, finding), one)
        .not("oom-global", "the allocation was confined to some nodes")
        .affects(oom::victim(one))
        .affects(
            nodes.map(|nodes| Affected::new("node", nodes, "the only ones that the task may use")),
        )
        .affects(one.holders.affected(3))
        .sure(oom::sure(one, 0.95, open))
        .into())
}

/// Free memory above the watermarks of zones that fail for this reason; `None` where the report has no such zone.
fn free_in(explained: &Explained<'_>, hurdle: Hurdle) -> Option<Bytes> {
    explained
        .zones
        .iter()
        .filter(|z| z.hurdle == hurdle)
        .map(|z| z.zone.free.saturating_sub(z.zone.high))
        .reduce(|a, b| a + b)
}

fn free_elsewhere(explained: &Explained<'_>) -> Option<Bytes> {
    free_in(explained, Hurdle::OtherNode)
}

/// Free memory on the allowed nodes that unmovable allocations cannot use.
fn free_for_movable(explained: &Explained<'_>) -> Bytes {
    free_in(explained, Hurdle::TooHigh).unwrap_or_default()
}

fn remedy(finding: Finding, one: &Explained<'_>) -> Finding {
    let finding = finding.cause(if free_for_movable(one) > Bytes::ZERO {
        "The nodes that the task may use have free memory for movable pages only; its page tables \
         and stacks need another node."
    } else {
        "The nodes that the task may use were full of memory that could not be reclaimed."
    });
    let what = if one.cause == OomCause::Confined(Constraint::MemoryPolicy) {
        "Prefer the node instead of binding to it, so that the kernel can allocate elsewhere: \
         start the service with numactl --preferred or --interleave=all instead of --membind."
    } else {
        "Allow the task more nodes (Mems_allowed in its /proc/PID/status), or remove the cpuset: \
         an empty AllowedMemoryNodes= in its unit file, no --cpuset-mems for its container."
    };
    finding.fix(Fix::say(what).inspect("numastat -m"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oom::testing::Report;
    use crate::rules::oom_global;
    use crate::rules::testing::{Case, clear, found, times};

    fn report(by: Constraint, other_free: u64) -> Report {
        let mut report = Report::default()
            .asking(0x10_0cca, 0)
            .zone_of(0, "Normal", 60_000, 62_000, 16_000_000, &[0; 5])
            .zone_of(1, "Normal", other_free, 62_000, 16_000_000, &[0; 5])
            .killing(9, "redis-server");
        report.0.constraint = Some(by);
        report.0.mems_allowed = Some("0".to_owned());
        report
    }

    fn confined(by: Constraint, other_free: u64) -> Case {
        Case::of_report(report(by, other_free))
    }

    #[test]
    fn a_full_node_with_free_memory_elsewhere_is_found() {
        let case = confined(Constraint::Cpuset, 9_000_000);
        let finding = found(RULE, &case);
        assert!(finding.title.contains("others had 8.5 GiB free"), "{}", finding.title);
        assert_eq!(finding.confidence.word(), "confirmed");
        clear(oom_global::RULE, &case);
    }

    #[test]
    fn the_title_says_when_all_nodes_are_full() {
        let finding = found(RULE, &confined(Constraint::MemoryPolicy, 60_000));
        assert!(finding.title.contains("none either"), "{}", finding.title);
    }

    #[test]
    fn the_title_names_free_memory_for_movable_pages_only() {
        let mut report = Report::default()
            .asking(0xcc0, 0)
            .zone_of(4, "Movable", 130_021_408, 9_140, 130_023_424, &[0; 5])
            .killing(9, "containerd");
        report.0.constraint = Some(Constraint::Cpuset);
        report.0.mems_allowed = Some("4".to_owned());
        let finding = found(RULE, &Case::of_report(report));
        assert!(
            finding.title.contains("124 GiB of free memory is for movable"),
            "{}",
            finding.title
        );
    }

    #[test]
    fn clear_when_all_nodes_are_allowed() {
        clear(RULE, &confined(Constraint::None, 9_000_000));
        clear(RULE, &Case::once());
    }

    #[test]
    fn finds_a_kernel_report_within_an_hour() {
        let hour = |by| Case::over(3600).reporting(600, report(by, 9_000_000));
        let finding = found(RULE, &hour(Constraint::Cpuset));
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!((finding.harm.killed, times(&finding)), (1, vec![(600, 600)]));
        clear(RULE, &hour(Constraint::None));
    }
}
