//! A program in user space killed for memory, or reports that a process of a unit was killed.

use timeline::{KillNotice, Messenger, NoticeKind};

use crate::oom;
use crate::oom::notices::{self, is_told_by_the_kernel};
use crate::prelude::*;

declare_rule! {
    /// A killer in user space ended a program to free memory, before or instead of the kernel.
    ///
    /// ## What it means
    /// systemd-oomd, earlyoom, the kubelet's eviction and the OOM controller of Talos watch memory and end programs at
    /// thresholds of their own. Their message proves that the threshold was passed and what was ended. It does not
    /// prove that the kernel was out of memory: thresholds may be too eager, or be about one cgroup.
    /// ## How it is recognised
    /// A message of such a program in a log, a status or an event; also systemd's result `oom-kill` of a unit, which
    /// does not say whether the kernel or systemd-oomd killed, and the kubelet's condition MemoryPressure, which ends
    /// nothing yet and is a warning. Kills that the source's kernel reports describe are left to those.
    /// ## Not this
    /// - `oom-global`, `oom-cgroup`: the kernel itself killed, and wrote a report.
    /// - `pod-oom`: the kernel killed in a container's cgroup, and Kubernetes or Docker reports it.
    /// - Evictions for disk space or PIDs; exit status 137 alone, which is any SIGKILL.
    /// ## What to do
    /// Now: restart what was ended; see what grew (memtide where, memory.current of the cgroups). For good: cap what
    /// grows, or set the killer's threshold to what the host can bear. Verify: no further message of the killer over a
    /// work cycle.
    /// ## References
    /// - systemd-oomd.service(8), oomd.conf(5); earlyoom(1)
    /// - Kubernetes: Node-pressure Eviction
    pub(crate) RULE = {
        id: "oom-userspace", since: "0.1.0", class: Kill,
        trigger: trigger, story: story,
        cause: "Memory passed a threshold of the killer.",
        aliases: &["oomd-kill", "earlyoom-kill", "eviction"],
    }
}

fn trigger() -> Trigger {
    oom::trigger(|cx| Ok(notices::occurrences(cx, is_such)), none)
}

fn none(_: &Evidence<'_>) -> Result<Outcome, Missing> {
    clear!("no message of a killer in user space")
}

fn is_such(cx: &Evidence<'_>, notice: &KillNotice) -> bool {
    match notice.kind {
        NoticeKind::Kill | NoticeKind::Eviction | NoticeKind::Pressure => true,
        // systemd only passes it on.
        NoticeKind::Unit => !is_told_by_the_kernel(cx, notice),
        NoticeKind::Container | NoticeKind::Node | NoticeKind::Sockets | NoticeKind::Module => {
            false
        }
    }
}

fn story<'a>(cx: &Evidence<'a>, _: &Incident<'a>) -> Result<Outcome, Missing> {
    let all = notices::such(cx, is_such);
    // What ended something says more than the pressure before it.
    let Some(one) = all.iter().rev().max_by_key(|one| one.ended_something()) else {
        return none(cx);
    };
    let ended: Vec<_> = all.iter().filter(|one| one.ended_something()).collect();
    let is_kernels = is_told_by_the_kernel(cx, one);
    let severity = match one.kind {
        NoticeKind::Pressure => Severity::Warning,
        _ if is_kernels => Severity::Info,
        _ => Severity::Critical,
    };
    let happened = if is_kernels {
        let who = notices::sentence_case(one.messenger.name());
        format!("{who} was about to end {}, and the kernel killed it", one.subject())
    } else {
        what_happened(one)
    };
    let title = format!("{happened}{}.", notices::among(ended.len()));
    let finding = RULE
        .found(severity, title)
        .and(|finding| notices::shown(finding, &all))
        .cause(cause(one))
        .affects(ended.iter().rev().take(3).filter_map(|one| notices::affected(one)))
        .fix(Fix::say(first_step(one)).inspect(inspect(one)))
        .fix(Fix::say(for_good(one)))
        .verify(verify(one));
    let finding = match one.kind {
        NoticeKind::Unit => finding,
        _ if is_kernels => finding,
        _ => finding.not(
            "oom-global",
            "the message is of a program in user space; no kernel report of a kill is in this \
             source",
        ),
    };
    Ok(finding.sure(notices::sure(open(one))).into())
}

fn what_happened(one: &KillNotice) -> String {
    let who = one.messenger.name();
    let whom = match one.subject().as_str() {
        "" => "a process".to_owned(),
        subject => subject.to_owned(),
    };
    let used = one.used.map_or_else(String::new, |used| format!(" (it used {used})"));
    match one.kind {
        NoticeKind::Unit if one.target.is_empty() => {
            "systemd says that a process of the unit was killed for lack of memory (result \
             oom-kill)"
                .to_owned()
        }
        NoticeKind::Unit => format!(
            "systemd says that a process of {whom} was killed for lack of memory (result oom-kill)"
        ),
        NoticeKind::Eviction => {
            let over = match (one.used, one.limit) {
                (Some(used), Some(request)) => {
                    format!(": it used {used}, its request is {request}")
                }
                (Some(used), None) => format!(": it used {used}"),
                _ => String::new(),
            };
            let pod = if one.target.is_empty() {
                "a pod".to_owned()
            } else {
                format!("the pod of container {whom}")
            };
            format!("The kubelet evicted {pod}, as the node was low on memory{over}")
        }
        NoticeKind::Pressure if one.messenger == Messenger::Oomd => {
            "systemd-oomd reports that memory passed its threshold, and will kill".to_owned()
        }
        NoticeKind::Pressure => {
            "The kubelet reports too little memory on the node (MemoryPressure) and will evict pods"
                .to_owned()
        }
        _ if one.messenger == Messenger::Pm2 => {
            let limit = one.limit.map_or_else(String::new, |limit| format!(" of {limit}"));
            format!("PM2 restarted {whom}{used}, above its threshold{limit}")
        }
        _ => {
            let limit = one.limit.map_or_else(String::new, |limit| format!(", of {limit}"));
            format!(
                "{} killed {whom}{used}{limit}{}",
                notices::sentence_case(who),
                of_pressure(one)
            )
        }
    }
}

/// What systemd-oomd kills for, where that is no lack of RAM: tasks that wait for memory.
fn of_pressure(one: &KillNotice) -> &'static str {
    let is_pressure = is_for_pressure(one);
    if is_pressure { ", as tasks waited for memory too long (memory pressure)" } else { "" }
}

fn is_for_pressure(one: &KillNotice) -> bool {
    one.messenger == Messenger::Oomd && one.reason.contains("memory pressure")
}

fn cause(one: &KillNotice) -> String {
    match (one.kind, one.reason.as_str()) {
        (NoticeKind::Unit, _) => "Lack of memory; whether of the host or of the unit's limit, and \
                                  whether the kernel or systemd-oomd killed, is not shown."
            .to_owned(),
        (_, "") => {
            "Memory passed a threshold of the killer, which the message does not name.".to_owned()
        }
        (_, reason) => format!("The killer's threshold was passed: {reason}."),
    }
}

fn open(one: &KillNotice) -> &'static str {
    match one.kind {
        NoticeKind::Unit => "the kernel log around that time would show the limit or the shortage",
        _ => {
            "what filled memory is not shown; /proc/meminfo or the largest processes of that time \
             would"
        }
    }
}

fn first_step(one: &KillNotice) -> &'static str {
    match one.messenger {
        Messenger::Kubernetes => {
            "See what uses the node's memory, and which pods use more than they request."
        }
        Messenger::Systemd => "Find the kernel's report of the kill.",
        Messenger::Pm2 => "See which process of PM2 grows, and how fast.",
        _ => "See what the killer measured, and what uses memory now.",
    }
}

fn inspect(one: &KillNotice) -> &'static str {
    match one.messenger {
        Messenger::Kubernetes => {
            "kubectl top pods -A --sort-by=memory | head\n\
             kubectl describe nodes | grep -A8 'Allocated resources'"
        }
        Messenger::Earlyoom => "journalctl -u earlyoom -b --no-pager | tail -n 50",
        Messenger::Oomd => "journalctl -u systemd-oomd -b --no-pager | tail -n 50\noomctl",
        Messenger::Pm2 => "pm2 list\npm2 logs --nostream --lines 50",
        // Talos has no shell and no journal.
        Messenger::Talos => "talosctl dmesg | memtide check -\ntalosctl cgroups --preset memory",
        _ => "journalctl -k -b --no-pager | memtide check -",
    }
}

fn for_good(one: &KillNotice) -> &'static str {
    match (one.messenger, one.kind) {
        (Messenger::Kubernetes, _) => {
            "Request what the pods use (resources.requests.memory), so that the scheduler does not \
             overfill the node; limits keep one pod from taking it all."
        }
        (Messenger::Oomd, _) => {
            "Cap what grows with MemoryHigh, or exempt what must survive: \
             ManagedOOMPreference=avoid in its unit; the threshold is \
             ManagedOOMMemoryPressureLimit= in the unit, or SwapUsedLimit= in oomd.conf."
        }
        (Messenger::Pm2, _) => {
            "Find what the program keeps: a heap snapshot (node --heapsnapshot-signal=SIGUSR2). \
             Raise max_memory_restart where the process needs more and the host has it."
        }
        (Messenger::Talos, _) => {
            "Request what the pods use (resources.requests.memory), with limits; the trigger is \
             triggerExpression in the machine's OOMConfig."
        }
        (Messenger::Earlyoom, _) => {
            "Cap what grows, or set earlyoom's thresholds (-m, -s) and what it should avoid \
             (--avoid); some swap gives it time."
        }
        _ => {
            "Cap what grew: then only it is throttled or killed. Protect the service that must \
             survive with OOMScoreAdjust."
        }
    }
}

fn verify(one: &KillNotice) -> &'static str {
    match one.messenger {
        Messenger::Kubernetes => {
            "kubectl get events -A --field-selector reason=Evicted: none over a work cycle"
        }
        Messenger::Systemd => "systemctl show -p Result UNIT stays success over a work cycle",
        Messenger::Oomd if is_for_pressure(one) => {
            "no further message of the killer over a work cycle; memory pressure in oomctl stays \
             below its limit"
        }
        Messenger::Oomd => {
            "no further message of the killer over a work cycle; swap and memory pressure in \
             oomctl stay below their limits"
        }
        _ => {
            "no further message of the killer over a work cycle; MemAvailable stays above its \
             threshold"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oom::testing::Report;
    use crate::rules::testing::{Case, clear, found};

    fn notice(messenger: Messenger, kind: NoticeKind) -> KillNotice {
        KillNotice {
            process: "java".to_owned(),
            pid: Some(812),
            used: Some(Bytes::from_mib(2891)),
            ..KillNotice::new(messenger, kind)
        }
    }

    #[test]
    fn a_killer_in_user_space_is_named_with_its_threshold() {
        let mut one = notice(Messenger::Earlyoom, NoticeKind::Kill);
        one.reason = "SIGTERM limits: mem 10.00%, swap 10.00%".to_owned();
        let finding = found(RULE, &Case::once().noticing(one));
        assert_eq!(finding.severity, Severity::Critical);
        assert!(finding.title.starts_with("earlyoom killed java (812)"), "{}", finding.title);
        assert!(finding.cause.contains("10.00%"), "{}", finding.cause);
    }

    #[test]
    fn a_kill_for_pressure_is_no_word_about_available_memory() {
        let mut one = notice(Messenger::Oomd, NoticeKind::Kill);
        one.reason = "memory pressure for /user.slice being 51.07% > 50.00% for > 20s".to_owned();
        let finding = found(RULE, &Case::once().noticing(one.clone()));
        assert!(finding.title.contains("waited for memory"), "{}", finding.title);
        assert!(finding.verify.contains("pressure"), "{}", finding.verify);
        assert!(!finding.verify.contains("MemAvailable"), "{}", finding.verify);
        one.reason = "memory used (95%) and swap used (91%) is more than 90.00%".to_owned();
        let finding = found(RULE, &Case::once().noticing(one));
        assert!(!finding.title.contains("waited"), "{}", finding.title);
    }

    #[test]
    fn pressure_of_a_node_is_a_warning_and_an_eviction_critical() {
        let pressure = notice(Messenger::Kubernetes, NoticeKind::Pressure);
        let case = Case::once().noticing(pressure);
        assert_eq!(found(RULE, &case).severity, Severity::Warning);
        let case = case.noticing(notice(Messenger::Kubernetes, NoticeKind::Eviction));
        assert_eq!(found(RULE, &case).severity, Severity::Critical);
    }

    #[test]
    fn a_kill_that_the_kernel_reports_too_is_left_to_its_report() {
        let unit = KillNotice {
            target: "app.service".to_owned(),
            ..KillNotice::new(Messenger::Systemd, NoticeKind::Unit)
        };
        found(RULE, &Case::once().noticing(unit.clone()));
        clear(RULE, &Case::of_report(Report::of_a_host()).noticing(unit));
    }

    #[test]
    fn a_killer_that_the_kernel_preceded_is_informational() {
        let mut one = notice(Messenger::Earlyoom, NoticeKind::Kill);
        one.process = "doxygen".to_owned();
        let case = Case::of_report(Report::of_a_host()).noticing(one);
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Info);
        assert!(finding.title.ends_with("and the kernel killed it."), "{}", finding.title);
    }

    #[test]
    fn clear_on_containers_and_without_messages() {
        let container = notice(Messenger::Runtime, NoticeKind::Container);
        clear(RULE, &Case::once().noticing(container));
        clear(RULE, &Case::once());
    }
}
