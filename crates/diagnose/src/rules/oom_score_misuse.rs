//! Who may be killed, and who not, is set so that the wrong one dies.

use timeline::kernel_report::Task;
use timeline::signals::MEM_TOTAL;

use crate::oom::{self, Cause, Explained, held};
use crate::prelude::*;

declare_rule! {
    /// A kill hit a small process because large ones are kept from being killed, or because it is marked as the first to go.
    ///
    /// ## What it means
    /// The kernel kills whoever scores highest: what it holds, shifted by `oom_score_adj`, a thousandth of memory a point.
    /// -1000 means never. Where what fills memory is protected like that, the kernel kills the innocent one after the other
    /// and gains nothing.
    /// ## How it is recognised
    /// The report's table of tasks: processes at -900 or less hold 20 % of memory or more (a warning), or the victim had
    /// a positive adjustment and held less than a quarter of the largest that could be killed (a note, for it may be meant so:
    /// Kubernetes marks its pods like that).
    /// ## Not this
    /// - sshd, udevd, a container's pause process: protected and small, as they should be.
    /// - `oom-global`, `oom-cgroup`: why memory ran out at all.
    /// ## What to do
    /// Take the protection from what grows, and give it to the few that must live (sshd). For good: OOMScoreAdjust in the
    /// unit. Verify: `choom -p PID`; the next kill, if there is one, hits what grew.
    /// ## References
    /// - kernel mm/oom_kill.c, oom_badness
    /// - proc_pid_oom_score_adj(5), choom(1), systemd.exec(5) OOMScoreAdjust
    pub(crate) RULE = { id: "oom-score-misuse", since: "0.1.0", class: Setting,
        trigger: trigger, story: story,
        verify: "choom -p PID shows the new value; a later kill hits what grew",
    }
}

/// The catalogue's: what is protected should be small.
const MUCH: Ratio = Ratio::from_percent(20.0);
/// An engineering choice: a victim of this part of the largest gained little.
const SMALL: Ratio = Ratio::from_percent(25.0);

fn trigger() -> Trigger {
    Trigger::Found(Found {
        find: |cx| Ok(oom::occurrences(cx, is_kill)),
        could: None,
        scope: Scope::each_cgroup(),
        none: Some(|_| clear!("no kernel report of a kill for want of memory")),
    })
}

fn is_kill(one: &Explained<'_>) -> bool {
    one.is_kill() && one.cause != Cause::ByHand
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let mut reports = oom::within(cx, &incident.stretch, is_kill);
    reports.retain(|one| one.group() == incident.key);
    if reports.iter().all(|one| one.report.tasks.is_empty()) {
        return clear!("the report has no table of tasks");
    }
    let hit = |one| protected(cx, one).or_else(|| marked(one));
    let hits = reports.iter().rev();
    let Some((one, finding)) = hits.filter_map(|one| Some((one, hit(one)?))).next() else {
        return clear!(
            "no process that is kept from being killed holds much, and the victim was not marked"
        );
    };
    // The kill itself is counted by the rule that says why memory ran out.
    Ok(oom::tell(cx, one, finding)
        .fix(Fix::say("Take the protection from what grows, and keep it for what must live: OOMScoreAdjust=0 in its unit file, choom for a process that runs (pods: the class follows from requests and limits)."))
        .sure(oom::sure(one, 0.9, "whether it is meant so is not known"))
        .into())
}

/// Memory that those kept from being killed hold.
fn protected(cx: &Evidence<'_>, one: &Explained<'_>) -> Option<Finding> {
    let all = match &one.report.group {
        Some(group) => group.memory.filter(|m| m.is_limited())?.limit,
        None => cx.timeline.at(MEM_TOTAL, one.index)?,
    };
    let shield = &one.holders.protected;
    let sum: Bytes = shield.iter().map(|task| held(task)).sum();
    // A container's own manager outside the group is in no table of it, so all of these count.
    if sum < all.share(MUCH) {
        return None;
    }
    let first = shield.first()?;
    let victim = one.holders.victim.as_ref();
    let victim = victim.map_or("a process", |v| &v.killed.name);
    Some(
        RULE.found(
            Severity::Warning,
            format!(                "{victim} was killed while processes that the kernel must spare hold {sum} of {all}, {} most of it.",
                first.name
            ),
        )
        .tells(format!("kept from being killed: {}", listed(shield)))
        .cause("What fills memory is protected (oom_score_adj near -1000), so the kernel can only kill others.")
        .affects(shield.iter().take(3).map(|task| affected(task))),
    )
}

/// A victim that died for its mark, not for its size.
fn marked(one: &Explained<'_>) -> Option<Finding> {
    let victim = one.holders.victim.as_ref()?;
    let (adj, size, largest) = (victim.adj()?, victim.held()?, one.holders.largest?);
    if adj <= 0 || size >= held(largest).share(SMALL) {
        return None;
    }
    Some(
        RULE.found(
            Severity::Info,
            format!(
                "{} was killed for its oom_score_adj of {adj}, not for its size: it held {size}, {} held {}.",
                victim.killed.name,
                largest.name,
                held(largest)
            ),
        )
        .tells(format!(
            "{} has oom_score_adj {}",
            largest.name, largest.oom_score_adj
        ))
        .cause("A positive oom_score_adj makes a process the first to go; 1000 makes it the victim whatever it holds.")
        .affects([affected(largest)]),
    )
}

fn listed(tasks: &[&Task]) -> String {
    let words = tasks
        .iter()
        .take(5)
        .map(|task| format!("{} {} ({})", task.name, held(task), task.oom_score_adj));
    words.collect::<Vec<_>>().join(" · ")
}

fn affected(task: &Task) -> Affected {
    let what = format!("{} held, oom_score_adj {}", held(task), task.oom_score_adj);
    Affected::new("process", &task.name, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oom::testing::{Report, task};
    use crate::rules::testing::{Case, clear, found, times};

    fn report(tasks: &[(u32, &str, u64, i32)]) -> Report {
        let mut report = Report::of_a_host().killing(30, "web");
        report.0.tasks = tasks
            .iter()
            .map(|(pid, name, rss, adj)| task(*pid, name, *rss, *adj))
            .collect();
        report
    }

    fn with(tasks: &[(u32, &str, u64, i32)]) -> Case {
        Case::of_report(report(tasks))
    }

    #[test]
    fn what_fills_memory_and_is_protected_makes_others_die() {
        let case = with(&[(20, "dbms", 9_000_000, -1000), (30, "web", 300_000, 0)]);
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.title.contains("dbms"), "{}", finding.title);
    }

    #[test]
    fn protected_and_small_is_as_it_should_be() {
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
    fn a_small_victim_that_was_marked_is_a_note() {
        let case = with(&[(20, "dbms", 9_000_000, 0), (30, "web", 300_000, 1000)]);
        assert_eq!(found(RULE, &case).severity, Severity::Info);
        clear(
            RULE,
            &with(&[(20, "dbms", 9_000_000, 0), (30, "web", 8_000_000, 1000)]),
        );
    }

    #[test]
    fn without_a_report_it_is_clear() {
        clear(RULE, &Case::once());
    }

    #[test]
    fn within_an_hour_of_calm_it_is_found_with_its_time() {
        let hour = |adj| {
            let tasks = [(20, "dbms", 9_000_000, adj), (30, "web", 300_000, 0)];
            Case::over(3600).reporting(600, report(&tasks))
        };
        let finding = found(RULE, &hour(-1000));
        assert_eq!(finding.severity, Severity::Warning);
        // The kill is counted where it is said why memory ran out.
        assert_eq!(
            (finding.harm.killed, times(&finding)),
            (0, vec![(600, 600)])
        );
        clear(RULE, &hour(0));
    }
}
