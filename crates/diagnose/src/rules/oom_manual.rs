//! An OOM kill requested by hand (SysRq f).

use timeline::facts::SYSRQ;
use timeline::signals::{MEM_FREE, MEM_TOTAL};

use crate::finding::SettingChange;
use crate::oom::{self, Explained, OomCause};
use crate::prelude::*;

declare_rule! {
    /// A process was killed because someone requested an OOM kill (SysRq f), not because memory ran out.
    ///
    /// ## What it means
    /// `Alt+SysRq+f`, or `f` written to /proc/sysrq-trigger, makes the kernel choose and kill a process as if memory
    /// had run out. The report looks like any other, with a task table and a victim, and says nothing about memory.
    /// ## How it is recognised
    /// The report has order -1, or its call trace shows the SysRq handler (`moom_callback`). No other allocation has
    /// either.
    /// ## Not this
    /// - `oom-global`, `oom-cgroup`: an allocation failed; the order is 0 or more.
    /// - A kill by systemd-oomd, earlyoom or a person with kill(1): the kernel writes no such report.
    /// ## What to do
    /// Now: restart the victim; find out who requested the kill. For good: restrict SysRq to those who need it. Verify:
    /// no further report of order -1 in the kernel log.
    /// ## References
    /// - kernel Documentation/admin-guide/sysrq.rst
    /// - kernel drivers/tty/sysrq.c, moom_callback
    pub(crate) RULE = { id: "oom-manual", since: "0.1.0", class: Kill,
        trigger: trigger, story: story,
        cause: "Someone pressed Alt+SysRq+f or wrote f to /proc/sysrq-trigger.",
        verify: "no further report of order -1 in the kernel log: journalctl -k -g 'order=-1'",
        aliases: &["oom-manual-sysrq"],
    }
}

fn trigger() -> Trigger {
    oom::trigger(|cx| Ok(oom::occurrences(cx, is_by_hand)), none)
}

fn none(_: &Evidence<'_>) -> Result<Outcome, Missing> {
    clear!("no kernel report of a kill requested by hand")
}

fn is_by_hand(explained: &Explained<'_>) -> bool {
    explained.cause == OomCause::ByHand
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let reports = oom::within(cx, &incident.stretch, is_by_hand);
    let Some(one) = reports.last() else {
        return none(cx);
    };
    let title = format!(
        "{} because someone requested it (SysRq f), not because memory ran out.",
        oom::kill(one)
    );
    let finding = RULE.found(Severity::Warning, title).with_line(proof(one));
    let at = |signal| cx.timeline.at(signal, one.index);
    Ok(oom::tell_all(cx, &incident.stretch, &reports, finding)
        .with(at(MEM_FREE).zip(at(MEM_TOTAL)), |finding, (free, ram)| {
            finding.shows(MEM_FREE, free, None, format!("{free} of {ram} RAM was free"))
        })
        .not("oom-global", "no allocation had failed")
        .fix(
            Fix::say("Find out who requested it: a person at the console, a script, a watchdog.")
                .inspect(
                    "journalctl -k -g 'sysrq|oom' --no-pager\n\
                 grep -rl sysrq-trigger /etc /usr/local 2>/dev/null",
                ),
        )
        .fix(
            Fix::say(
                "Restrict SysRq: without bit 64 it cannot kill from the keyboard (root can still \
                 write to sysrq-trigger). Note the old value first: sysctl kernel.sysrq.",
            )
            .set(SettingChange::new(SYSRQ, 176)),
        )
        .affects(oom::victim(one))
        .sure(oom::sure(one, 0.97, ""))
        .into())
}

/// The part of the report that shows a request by hand.
fn proof(one: &Explained<'_>) -> &'static str {
    match one.report.request.as_ref().map(|request| request.order) {
        Some(-1) => "the report has order -1, which only SysRq f uses",
        _ => "the call trace shows the handler of SysRq f (moom_callback)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oom::testing::Report;
    use crate::rules::testing::{Case, clear, found, times};
    use crate::rules::{no_swap_risk, oom_global, swap_full};

    fn by_hand() -> Report {
        Report::of_a_host().asking(0xcc0, -1).swap(0, 0)
    }

    #[test]
    fn order_minus_one_is_by_hand() {
        let case = Case::of_report(by_hand());
        let finding = found(RULE, &case);
        assert!(finding.title.contains("someone requested it"), "{}", finding.title);
        for rule in [oom_global::RULE, swap_full::RULE, no_swap_risk::RULE] {
            clear(rule, &case);
        }
    }

    #[test]
    fn the_sysrq_handler_in_the_trace_is_by_hand() {
        let mut report = Report::default().killing(7, "sshd");
        report.0.trace = vec!["out_of_memory".to_owned(), "moom_callback".to_owned()];
        let finding = found(RULE, &Case::of_report(report));
        let has_line = |text: &str| finding.evidence.iter().any(|e| e.text.contains(text));
        assert!(has_line("moom_callback") && !has_line("order -1"));
    }

    #[test]
    fn clear_on_an_ordinary_oom_kill() {
        clear(RULE, &Case::of_report(Report::of_a_host()));
        clear(RULE, &Case::of_report(Report::of_a_group(100, 100)));
        clear(RULE, &Case::once());
    }

    #[test]
    fn each_kill_within_an_hour_is_an_incident() {
        let hour = || Case::over(3600).gauge(MEM_FREE, units::Bytes::from_gib(1));
        let finding = found(RULE, &hour().reporting(600, by_hand()).reporting(900, by_hand()));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(times(&finding), [(600, 600), (900, 900)]);
        assert_eq!(finding.harm.killed, 2);
        clear(RULE, &hour().reporting(600, Report::of_a_host()));
    }
}
