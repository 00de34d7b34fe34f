//! oom_score_adj settings make the kernel kill the wrong process.

use timeline::kernel_report::ReportTask;
use timeline::signals::MEM_TOTAL;

use crate::oom::{self, Explained, OomCause, PROTECTED, held};
use crate::prelude::*;

declare_rule! {
    /// The kernel killed a small process because large ones are protected by oom_score_adj, or because it is marked as the first victim.
    ///
    /// ## What it means
    /// The kernel kills the process with the highest score: its memory, shifted by `oom_score_adj`, one point per
    /// thousandth of memory. -1000 means never. If the processes that fill memory are protected this way, the kernel
    /// kills small ones one after the other and gains nothing.
    /// ## How it is recognised
    /// The report's task table: processes at {PROTECTED} or less have {PROTECTED_SHARE} of memory or more (a warning),
    /// or the victim had a positive adjustment and less than {VICTIM_SHARE_SMALL} of the memory of the largest killable process
    /// (informational, because it may be intended: Kubernetes marks its pods like that).
    /// ## Not this
    /// - sshd, udevd, a container's pause process: protected and small, as they should be.
    /// - `oom-global`, `oom-cgroup`: why memory ran out.
    /// ## What to do
    /// Remove the protection from what grows, and give it to the few processes that must survive (sshd). For good:
    /// OOMScoreAdjust in the unit. Verify: `choom -p PID`; the next kill, if any, hits what grew.
    /// ## References
    /// - kernel mm/oom_kill.c, oom_badness
    /// - proc_pid_oom_score_adj(5), choom(1), systemd.exec(5) OOMScoreAdjust
    pub(crate) RULE = { id: "oom-score-misuse", since: "0.1.0", class: Setting,
        numbers: [PROTECTED, PROTECTED_SHARE, VICTIM_SHARE_SMALL],
        trigger: trigger, story: story,
        verify: "choom -p PID shows the new value; a later kill hits what grew",
    }
}

/// An engineering choice: protected processes should be small.
const PROTECTED_SHARE: Ratio = Ratio::from_percent(20.0);
/// An engineering choice: killing a victim below this share of the largest gains little.
const VICTIM_SHARE_SMALL: Ratio = Ratio::from_percent(25.0);

fn trigger() -> Trigger {
    Trigger::Found(FoundBy {
        find: |cx| Ok(oom::occurrences(cx, is_kill)),
        could: None,
        scope: Subjects::each_cgroup(),
        none: Some(|_| clear!("no kernel report of an OOM kill")),
    })
}

fn is_kill(explained: &Explained<'_>) -> bool {
    explained.is_kill() && explained.cause != OomCause::ByHand
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let mut reports = oom::within(cx, &incident.stretch, is_kill);
    reports.retain(|explained| explained.group() == incident.key);
    if reports.iter().all(|explained| explained.report.tasks.is_empty()) {
        return clear!("the report has no task table");
    }
    let misuse = |explained| protected(cx, explained).or_else(|| marked(explained));
    let last = reports.iter().rev().find_map(|explained| Some((explained, misuse(explained)?)));
    let Some((one, finding)) = last else {
        return clear!(
            "no protected process has much memory, and the victim had no positive oom_score_adj"
        );
    };
    // The rule that explains why memory ran out already counts the kill.
    Ok(oom::explain(cx, one, finding)
        .fix(Fix::say(
            "Remove the protection from what grows, and keep it for what must survive: \
             OOMScoreAdjust=0 in its unit file, choom for a running process (pods: the class \
             follows from requests and limits).",
        ))
        .sure(oom::sure(one, 0.9, "whether this is intended is unknown"))
        .into())
}

/// The finding on protected processes with much memory.
fn protected(cx: &Evidence<'_>, one: &Explained<'_>) -> Option<Finding> {
    let all = match &one.report.group {
        Some(group) => group.memory.filter(|m| m.is_limited())?.limit,
        None => cx.timeline.at(MEM_TOTAL, one.index)?,
    };
    let protected = &one.holders.protected;
    let sum: Bytes = protected.iter().map(|task| held(task)).sum();
    // The table lists processes of the cgroup only, so all of them count.
    if sum < all.share(PROTECTED_SHARE) {
        return None;
    }
    let first = protected.first()?;
    let victim = one.holders.victim.as_ref();
    let victim = victim.map_or("a process", |v| &v.killed.name);
    let title = format!(
        "{victim} was killed while protected processes have {sum} of {all}, {} most of it.",
        first.name
    );
    Some(
        RULE.found(Severity::Warning, title)
            .with_line(format!("protected by oom_score_adj: {}", listed(protected)))
            .cause(
                "The processes that fill memory are protected (oom_score_adj near -1000), so the \
                 kernel can only kill others.",
            )
            .affects(protected.iter().take(3).map(|task| affected(task))),
    )
}

/// The finding on a victim that was chosen for its oom_score_adj, not for its size.
fn marked(one: &Explained<'_>) -> Option<Finding> {
    let victim = one.holders.victim.as_ref()?;
    let (adj, size, largest) = (victim.adj()?, victim.held()?, one.holders.largest?);
    if adj <= 0 || size >= held(largest).share(VICTIM_SHARE_SMALL) {
        return None;
    }
    Some(
        RULE.found(
            Severity::Info,
            format!(
                "{} was killed for its oom_score_adj of {adj}, not for its size: it had {size}, {} \
                 had {}.",
                victim.killed.name,
                largest.name,
                held(largest)
            ),
        )
        .with_line(format!("{} has oom_score_adj {}", largest.name, largest.oom_score_adj))
        .cause(
            "A positive oom_score_adj makes a process an early victim; 1000 makes it the first, \
             whatever its size.",
        )
        .affects([affected(largest)]),
    )
}

fn listed(tasks: &[&ReportTask]) -> String {
    let tasks: Vec<String> = tasks
        .iter()
        .take(5)
        .map(|task| format!("{} {} ({})", task.name, held(task), task.oom_score_adj))
        .collect();
    tasks.join(" · ")
}

fn affected(task: &ReportTask) -> Affected {
    let what = format!("{} of memory, oom_score_adj {}", held(task), task.oom_score_adj);
    Affected::new("process", &task.name, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oom::testing::{Report, task};
    use crate::rules::testing::{Case, clear, found, times};

    fn report(tasks: &[(u32, &str, u64, i32)]) -> Report {
        let mut report = Report::of_a_host().killing(30, "web");
        report.0.tasks =
            tasks.iter().map(|(pid, name, rss, adj)| task(*pid, name, *rss, *adj)).collect();
        report
    }

    fn with(tasks: &[(u32, &str, u64, i32)]) -> Case {
        Case::of_report(report(tasks))
    }

    #[test]
    fn large_protected_processes_are_found() {
        let case = with(&[(20, "dbms", 9_000_000, -1000), (30, "web", 300_000, 0)]);
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.title.contains("dbms"), "{}", finding.title);
    }

    #[test]
    fn clear_when_protected_processes_are_small() {
        clear(
            RULE,
            &with(&[
                (10, "sshd", 6_000, -1000),
                (11, "multipathd", 18_000, -1000),
                (30, "web", 9_000_000, 0),
            ]),
        );
    }

    #[test]
    fn a_small_victim_with_a_positive_adjustment_is_informational() {
        let case = with(&[(20, "dbms", 9_000_000, 0), (30, "web", 300_000, 1000)]);
        assert_eq!(found(RULE, &case).severity, Severity::Info);
        clear(RULE, &with(&[(20, "dbms", 9_000_000, 0), (30, "web", 8_000_000, 1000)]));
    }

    #[test]
    fn clear_without_a_kernel_report() {
        clear(RULE, &Case::once());
    }

    #[test]
    fn finds_a_kernel_report_within_an_hour() {
        let hour = |adj| {
            let tasks = [(20, "dbms", 9_000_000, adj), (30, "web", 300_000, 0)];
            Case::over(3600).reporting(600, report(&tasks))
        };
        let finding = found(RULE, &hour(-1000));
        assert_eq!(finding.severity, Severity::Warning);
        // Another rule counts the kill.
        assert_eq!((finding.harm.killed, times(&finding)), (0, vec![(600, 600)]));
        clear(RULE, &hour(0));
    }
}
