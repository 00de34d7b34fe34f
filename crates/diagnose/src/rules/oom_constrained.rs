//! An OOM kill on a few nodes of many.

use timeline::kernel_report::Constraint;

use crate::oom::{self, Cause, Explained, Hurdle};
use crate::prelude::*;

declare_rule! {
    /// A process was killed because its cpuset or memory policy confined it to NUMA nodes that were full; others need not be.
    ///
    /// ## What it means
    /// A cpuset (`cpuset.mems`, `docker --cpuset-mems`) or a strict memory policy (`numactl --membind`, mbind) says which
    /// NUMA nodes may serve a task. When those are full the kernel kills among the tasks that may use them, however much
    /// is free elsewhere.
    /// ## How it is recognised
    /// The report says so itself: `CONSTRAINT_CPUSET` or `CONSTRAINT_MEMORY_POLICY`. What its zones show of the other
    /// nodes tells whether they had room.
    /// ## Not this
    /// - `oom-global`: any node would have done.
    /// - `oom-cgroup`: a limit on the amount, not on the nodes.
    /// - `numa-imbalance`: nodes are used unevenly, but nobody is killed.
    /// ## What to do
    /// Now: give the task more nodes, or less work. For good: prefer a node instead of binding to it, or interleave. Verify:
    /// `numastat -p PID` over a work cycle, and no further report.
    /// ## References
    /// - kernel mm/oom_kill.c, constrained_alloc
    /// - kernel Documentation/admin-guide/mm/numa_memory_policy.rst; numactl(8), cpuset(7)
    pub(crate) RULE = { id: "oom-constrained", since: "0.1.0", class: Limit,
        trigger: trigger, story: story,
        verify: "numastat -p PID: the task's memory stays below what its nodes have, over a work cycle",
        brings_about: &["numa-imbalance", "oom-score-misuse"],
    }
}

fn trigger() -> Trigger {
    oom::trigger(|cx| Ok(oom::occurrences(cx, is_confined)), none)
}

fn is_confined(one: &Explained<'_>) -> bool {
    matches!(one.cause, Cause::Confined(_))
}

fn none(_: &Evidence<'_>) -> Result<Outcome, Missing> {
    clear!("no kernel report of a request that was confined to some nodes")
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let reports = oom::within(cx, &incident.stretch, is_confined);
    let Some(one) = reports.last() else {
        return none(cx);
    };
    let by = match (one.cause, one.report.cpuset.as_deref()) {
        (Cause::Confined(Constraint::MemoryPolicy), _) => "a memory policy".to_owned(),
        (_, None | Some("" | "/")) => "its cpuset".to_owned(),
        (_, Some(cpuset)) => format!("its cpuset {cpuset}"),
    };
    let to = match one.report.confined_to() {
        None => "to some NUMA nodes".to_owned(),
        Some(nodes) if nodes.contains(['-', ',']) => format!("to NUMA nodes {nodes}"),
        Some(node) => format!("to NUMA node {node}"),
    };
    let elsewhere = elsewhere(one);
    let movable = movable(one);
    let had = if movable > Bytes::ZERO {
        format!("whose {movable} of free memory are for movable pages only")
    } else {
        "which had no memory left".to_owned()
    };
    let though = match elsewhere {
        Some(Bytes::ZERO) => "; the other nodes had no room either".to_owned(),
        Some(room) => format!(", while others had {room} free"),
        None => String::new(),
    };
    let title = format!(
        "{} because {by} confined the request {to}, {had}{though}.",
        oom::kill(one)
    );
    let says = format!("the kernel says that {by} confined the request {to}");
    let finding = RULE.found(Severity::Critical, title).tells(says);
    let finding = oom::tell_all(cx, &incident.stretch, &reports, finding);
    let nodes = one.report.confined_to();
    let open = match elsewhere {
        Some(_) => "",
        None => "what the other nodes had is not shown: numastat -m tells",
    };
    Ok(remedy(oom::measures(cx, one, finding), one)
        .not("oom-global", "the request was confined to some nodes")
        .affects(oom::victim(one))
        .affects(nodes.map(|nodes| Affected::new("node", nodes, "all that the task may use")))
        .affects(one.holders.affected(3))
        .sure(oom::sure(one, 0.95, open))
        .into())
}

/// Free memory above the marks on nodes that the request could not use; `None` where no such zone is shown.
fn elsewhere(one: &Explained<'_>) -> Option<Bytes> {
    let others = one.zones.iter().filter(|z| z.hurdle == Hurdle::OtherNode);
    let room = others.map(|z| z.zone.free.saturating_sub(z.zone.high));
    room.reduce(|a, b| a + b)
}

/// Free memory of its own nodes that the request could not use.
fn movable(one: &Explained<'_>) -> Bytes {
    let above = one.zones.iter().filter(|z| z.hurdle == Hurdle::TooHigh);
    above.map(|z| z.zone.free.saturating_sub(z.zone.high)).sum()
}

fn remedy(finding: Finding, one: &Explained<'_>) -> Finding {
    let finding = finding.cause(if movable(one) > Bytes::ZERO {
        "The nodes that the task may use have room for movable pages only; what the kernel keeps for the task (page tables, stacks) must lie on another."
    } else {
        "The nodes that the task may use were full of memory that could not be dropped."
    });
    let what = if one.cause == Cause::Confined(Constraint::MemoryPolicy) {
        "Prefer the node instead of binding to it: the kernel then goes on elsewhere. numactl --preferred or --interleave=all before the service's command, instead of --membind."
    } else {
        "Allow the task more nodes (Mems_allowed in its /proc status), or take the cpuset away: an empty AllowedMemoryNodes= in its unit file, no --cpuset-mems for its container."
    };
    finding.fix(Fix::say(what).look("numastat -m"))
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
    fn a_full_node_beside_an_empty_one_is_the_confinements_doing() {
        let case = confined(Constraint::Cpuset, 9_000_000);
        let finding = found(RULE, &case);
        assert!(
            finding.title.contains("others had 8.5 GiB free"),
            "{}",
            finding.title
        );
        assert_eq!(finding.confidence.word(), "confirmed");
        clear(oom_global::RULE, &case);
    }

    #[test]
    fn full_nodes_all_over_are_said_so() {
        let finding = found(RULE, &confined(Constraint::MemoryPolicy, 60_000));
        assert!(
            finding.title.contains("no room either"),
            "{}",
            finding.title
        );
    }

    #[test]
    fn a_node_with_movable_memory_only_is_not_called_full() {
        let mut report = Report::default()
            .asking(0xcc0, 0)
            .zone_of(4, "Movable", 130_021_408, 9_140, 130_023_424, &[0; 5])
            .killing(9, "containerd");
        report.0.constraint = Some(Constraint::Cpuset);
        report.0.mems_allowed = Some("4".to_owned());
        let finding = found(RULE, &Case::of_report(report));
        assert!(
            finding
                .title
                .contains("124 GiB of free memory are for movable"),
            "{}",
            finding.title
        );
    }

    #[test]
    fn a_request_that_may_use_all_nodes_is_clear() {
        clear(RULE, &confined(Constraint::None, 9_000_000));
        clear(RULE, &Case::once());
    }

    #[test]
    fn within_an_hour_of_calm_it_is_found_with_its_time() {
        let hour = |by| Case::over(3600).reporting(600, report(by, 9_000_000));
        let finding = found(RULE, &hour(Constraint::Cpuset));
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(
            (finding.harm.killed, times(&finding)),
            (1, vec![(600, 600)])
        );
        clear(RULE, &hour(Constraint::None));
    }
}
