//! A container was killed for its memory, as its runtime or Kubernetes reports.

use timeline::{KillNotice, Messenger, NoticeKind};

use crate::oom;
use crate::oom::notices::{self, is_told_by_the_kernel};
use crate::prelude::*;

declare_rule! {
    /// A container, a pod or a job step hit its memory limit, and the kernel killed in it (OOMKilled).
    ///
    /// ## What it means
    /// The kernel counted a kill in the container's cgroup, and the runtime passes that on: state OOMKilled, the event
    /// `oom` or CgroupOOM, Slurm's oom-kill event. Nearly always the container hit its own limit; a kill for a shortage
    /// of the node looks the same there.
    /// ## How it is recognised
    /// The reason OOMKilled, `"OOMKilled": true`, the event `container oom`, or the kubelet's CgroupOOM, in the output
    /// of kubectl, docker or podman, in events and in metrics. Kernel reports of the same kill say more, and replace
    /// it.
    /// ## Not this
    /// - `oom-cgroup`: the kernel's own report, with usage, limit and what filled it.
    /// - Exit status 137 without OOMKilled: SIGKILL from anybody, such as a failed liveness probe or `docker kill`.
    /// - `oom-userspace`: the kubelet evicted the pod because the node was low on memory.
    /// ## What to do
    /// Now: see what the container uses against its limit. For good: raise the limit to what it needs, or make its
    /// program smaller (heap, workers). Verify: its restart count does not rise over a work cycle.
    /// ## References
    /// - Kubernetes: Assign Memory Resources to Containers and Pods
    /// - kernel Documentation/admin-guide/cgroup-v2.rst, memory.events
    pub(crate) RULE = {
        id: "pod-oom", since: "0.1.0", class: Limit,
        trigger: trigger, story: story,
        cause: "Its programs need more memory than its limit allows, or the node was short; the \
                message does not tell.",
        aliases: &["container-oom", "oomkilled"],
    }
}

fn trigger() -> Trigger {
    oom::trigger(|cx| Ok(notices::occurrences(cx, is_such)), none)
}

fn none(_: &Evidence<'_>) -> Result<Outcome, Missing> {
    clear!("no message of an OOM kill in a container")
}

fn is_such(cx: &Evidence<'_>, notice: &KillNotice) -> bool {
    // Kubernetes may speak of another kill than the kernel's report, so only a named process is the same.
    notice.kind == NoticeKind::Container && !is_told_by_the_kernel(cx, notice)
}

fn story<'a>(cx: &Evidence<'a>, _: &Incident<'a>) -> Result<Outcome, Missing> {
    let all = notices::such(cx, is_such);
    let Some(one) = all.last() else {
        return none(cx);
    };
    let whom = match (one.target.as_str(), one.process.as_str()) {
        ("", "") => "a container".to_owned(),
        ("", process) => format!("{process} in a container"),
        (target, _) if one.messenger == Messenger::Batch => target.to_owned(),
        (target, _) => format!("container {target}"),
    };
    let limit = one.limit.map_or_else(String::new, |limit| format!(", with a limit of {limit}"));
    let title = format!(
        "{} reports that the kernel killed {whom} for memory (OOMKilled){limit}{}.",
        notices::sentence_case(one.messenger.name()),
        notices::among(all.len())
    );
    let (inspect, verify) = steps(one.messenger);
    Ok(RULE
        .found(Severity::Critical, title)
        .and(|finding| notices::shown(finding, &all))
        .affects(all.iter().rev().take(3).filter_map(|one| notices::affected(one)))
        .not("oom-global", "the message names a container; none says that the node was short")
        .fix(
            Fix::say(
                "Compare what it uses with its limit. The usage of docker stats and kubectl top \
                 leaves out inactive page cache.",
            )
            .inspect(inspect),
        )
        .fix(Fix::say(
            "Raise the limit to what it needs (a quarter more to begin with), or make its program \
             smaller: heap, workers, batch size. If it grows without end, no limit is large \
             enough.",
        ))
        .verify(verify)
        .sure(notices::sure(
            "the kernel log of the node would show usage, limit and what filled it: journalctl -k \
             -g 'oom|Killed process'",
        ))
        .into())
}

fn steps(messenger: Messenger) -> (&'static str, &'static str) {
    match messenger {
        Messenger::Kubernetes => (
            "kubectl describe pods -A | grep -E '^Name:|Limits|memory:|Last State|Reason'\n\
             kubectl top pods -A --containers",
            "kubectl get pods: RESTARTS does not rise over a work cycle",
        ),
        Messenger::Batch => (
            "sacct -o JobID,ReqMem,MaxRSS,State",
            "sacct shows MaxRSS below ReqMem, and no OUT_OF_MEMORY",
        ),
        _ => (
            "docker stats --no-stream\n\
             docker ps -aq | xargs docker inspect -f '{{.Name}} {{.State.OOMKilled}} \
             {{.HostConfig.Memory}}'",
            "docker inspect: OOMKilled stays false over a work cycle",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oom::testing::Report;
    use crate::rules::testing::{Case, clear, found};

    fn killed(target: &str, process: &str) -> KillNotice {
        KillNotice {
            target: target.to_owned(),
            process: process.to_owned(),
            ..KillNotice::new(Messenger::Kubernetes, NoticeKind::Container)
        }
    }

    #[test]
    fn a_container_that_was_killed_is_found_with_its_limit() {
        let mut one = killed("web", "");
        one.limit = Some(Bytes::from_mib(100));
        let finding = found(RULE, &Case::once().noticing(one));
        assert_eq!(finding.severity, Severity::Critical);
        let expected = "killed container web for memory (OOMKilled), with a limit of 100 MiB";
        assert!(finding.title.contains(expected), "{}", finding.title);
    }

    #[test]
    fn the_kernels_report_of_the_same_process_says_more() {
        let case =
            |process| Case::of_report(Report::of_a_group(100, 100)).noticing(killed("", process));
        clear(RULE, &case("worker"));
        found(RULE, &case("stress"));
    }

    #[test]
    fn clear_on_killers_in_user_space_and_without_messages() {
        let oomd = KillNotice::new(Messenger::Oomd, NoticeKind::Kill);
        clear(RULE, &Case::once().noticing(oomd));
        clear(RULE, &Case::once());
    }
}
