//! TCP sockets reached their common memory limit.

use timeline::facts::TCP_MEM_LIMITS;
use timeline::signals::{TCP_MEM, TCP_MEMORY_ABORTS, TCP_MEMORY_PRESSURES};
use timeline::{KillNotice, NoticeKind};

use crate::finding::SettingChange;
use crate::oom::notices;
use crate::prelude::*;

declare_rule! {
    /// The buffers of all TCP sockets together reached their limit, net.ipv4.tcp_mem, and connections slow down.
    ///
    /// ## What it means
    /// All TCP sockets share one limit of memory for data that is sent but not acknowledged, or received but not read.
    /// Above its middle value the kernel is under TCP memory pressure: windows shrink, packets are dropped, every
    /// connection slows down, however much RAM is free. Above the third value it refuses memory to sockets ("TCP: out
    /// of memory"). Mostly a program does not read what it is sent, or many connections go to slow peers.
    /// ## How it is recognised
    /// Memory of TCP sockets stays above the first value of net.ipv4.tcp_mem, where pressure ends, for {LEVEL}, and it
    /// reached the second, where pressure begins, or the kernel counted that it entered pressure (TCPMemoryPressures,
    /// since 4.15, in the reader's own network namespace). Where neither is measured, the kernel's message "TCP: out of
    /// memory" is enough.
    /// ## Not this
    /// - A full receive buffer of one socket (PruneCalled, TCPRcvQDrop): that limit is `net.ipv4.tcp_rmem`.
    /// - A cgroup at its own limit slows its sockets down: `cgroup-kmem-large`.
    /// - UDP has a limit of its own (net.ipv4.udp_mem).
    /// ## What to do
    /// Now: find the sockets with the most memory (`ss -tmp`) and the program that does not read or does not close
    /// them. If the load is right and RAM is free, raise net.ipv4.tcp_mem. Verify: memory of TCP sockets stays below
    /// the first value.
    /// ## References
    /// - kernel Documentation/networking/ip-sysctl.rst, tcp_mem
    /// - kernel net/core/sock.c, __sk_mem_raise_allocated
    pub(crate) RULE = {
        id: "socket-memory-pressure", since: "0.1.0", class: Limit,
        numbers: [LEVEL],
        trigger: trigger, story: story,
        cause: "Sockets hold data that their program does not read or their peer does not \
                acknowledge, more than net.ipv4.tcp_mem allows.",
        verify: "grep TCP: /proc/net/sockstat: mem stays below the first value of net.ipv4.tcp_mem",
        explained_by: &[Explains::Maybe(TCP_MEM_LIMITS)],
    }
}

/// Raised limits: twice the present ones, the kernel's own ratio kept. An engineering choice, named in the fix.
const RAISED: u64 = 2;

/// The three values of net.ipv4.tcp_mem.
#[derive(Debug, Clone, Copy)]
struct TcpLimits([Pages; 3]);

impl TcpLimits {
    fn read(cx: &Evidence<'_>) -> Result<Self, Missing> {
        let text = cx.facts.text(TCP_MEM_LIMITS).ok_or_else(|| Missing::fact(TCP_MEM_LIMITS))?;
        let mut words = text.split_whitespace();
        let mut next = || words.next()?.parse().ok().map(Pages::new);
        let all = next().zip(next()).zip(next());
        all.map(|((ends, begins), refuses)| Self([ends, begins, refuses]))
            .ok_or_else(|| Missing::fact(TCP_MEM_LIMITS))
    }

    /// The values as sysctl takes them, each multiplied.
    fn times(self, factor: u64) -> String {
        let each = self.0.map(|pages| pages.get().saturating_mul(factor).to_string());
        each.join(" ")
    }
}

fn trigger() -> Trigger {
    let ends = computed("tcp_mem_where_pressure_ends", |cx| {
        Ok(cx.timeline.constant(TcpLimits::read(cx)?.0[0]).cast())
    });
    Trigger::on_host(LEVEL, gauge(TCP_MEM).at_least("memory of TCP sockets in pages", ends))
        .or_noticed(NoticeKind::Sockets)
}

/// The finding where only the kernel's messages show it.
fn noticed(all: &[&KillNotice]) -> Finding {
    let count = Count::new(u64::try_from(all.len()).unwrap_or(u64::MAX));
    let title = format!(
        "The kernel refused memory to TCP sockets: together they were over the last value of \
         net.ipv4.tcp_mem ({count} messages)."
    );
    RULE.found(Severity::Warning, title)
        .and(|finding| notices::shown(finding, all))
        .not("available-exhaustion", "the limit is that of TCP, whatever RAM is free")
        .fix(
            Fix::say(
                "Find the sockets that hold the most, and the program that does not read them \
                 (Recv-Q) or sends to slow peers (Send-Q).",
            )
            .inspect("ss -tmp | sort -k2 -n | tail\ncat /proc/net/sockstat"),
        )
        .fix(
            Fix::say("If the load is right and RAM is free, raise net.ipv4.tcp_mem.")
                .inspect("sysctl net.ipv4.tcp_mem"),
        )
        .sure(notices::sure(
            "the memory of TCP sockets and net.ipv4.tcp_mem would show by how much",
        ))
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let messages: Vec<_> = notices::of_kind(cx, NoticeKind::Sockets).collect();
    if cx.gauge(TCP_MEM).is_err() && !messages.is_empty() {
        return Ok(noticed(&messages).into());
    }
    let limits = TcpLimits::read(cx)?;
    let page = cx.page_size()?;
    let used = cx.bytes(TCP_MEM)?;
    let Some((most, index)) = used.max_in(stretch) else {
        return clear!("memory of TCP sockets was not measured");
    };
    let [_, begins, refuses] = limits.0.map(|pages| pages.to_bytes(page));
    let rose = |signal| {
        let rate = cx.rate(signal).ok()?;
        Some(Count::from_f64(rate.integral_in(stretch)))
    };
    let entered = rose(TCP_MEMORY_PRESSURES);
    let was_entered = entered.is_some_and(|times| times > Count::ZERO);
    if most < begins && !was_entered {
        return clear!("TCP sockets took up to {most}, and pressure begins at {begins}");
    }
    let what = if most >= refuses {
        format!("over the limit of {refuses}: sockets get no memory")
    } else {
        format!("the limit where TCP memory pressure begins is {begins}: connections slow down")
    };
    let raised = limits.times(RAISED);
    let old = limits.times(1);
    let name = TCP_MEM_LIMITS.name;
    Ok(RULE
        .found(Severity::Warning, format!("TCP sockets hold {most}; {what}."))
        .graph("memory of TCP sockets", &used)
        .shows_from(
            TCP_MEM,
            most,
            begins,
            cx.time(index),
            format!("{most} in the buffers of TCP sockets; {name} is {old} pages"),
        )
        .counts_if(most >= begins, "the memory of TCP sockets")
        .with(entered, |finding, times| {
            let text = format!("TCP entered memory pressure {times} times");
            finding
                .shows_from(TCP_MEMORY_PRESSURES, times, Count::new(1), None, text)
                .counts_if(was_entered, "the kernel's count")
        })
        .with(rose(TCP_MEMORY_ABORTS), |finding, aborts| {
            finding.shows(
                TCP_MEMORY_ABORTS,
                aborts,
                None,
                format!("connections reset for lack of socket memory: {aborts}"),
            )
        })
        .shows_available(cx, stretch)
        .not("available-exhaustion", "the limit is that of TCP, whatever RAM is free")
        .fix(
            Fix::say(
                "Find the sockets that hold the most, and the program that does not read them \
                 (Recv-Q) or sends to slow peers (Send-Q).",
            )
            .inspect("ss -tmp | sort -k2 -n | tail\ncat /proc/net/sockstat"),
        )
        .fix(
            Fix::say("If the load is right and RAM is free, raise the limits; this doubles them.")
                .set(SettingChange::new(TCP_MEM_LIMITS, raised).instead_of(Some(old))),
        )
        .sure_by_kinds(cx, "")
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, amid_calm, changed, clear, found, not_evaluated, times};
    use timeline::signals::{MEM_AVAILABLE, MEM_TOTAL, UDP_MEM};

    /// A host with limits of 60, 80 and 120 thousand pages, which uses `used` thousand.
    fn host(used: u64) -> Case {
        Case::over(20)
            .fact(TCP_MEM_LIMITS, "60000\t80000\t120000")
            .gauge(MEM_TOTAL, Bytes::from_gib(8))
            .gauge(MEM_AVAILABLE, Bytes::from_gib(6))
            .gauge(TCP_MEM, Pages::new(used * 1000))
    }

    #[test]
    fn the_kernels_message_is_enough() {
        let mut notice = KillNotice::new(timeline::Messenger::Kernel, NoticeKind::Sockets);
        notice.text = "TCP: out of memory -- consider tuning tcp_mem".to_owned();
        let finding = found(RULE, &Case::once().noticing(notice));
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.evidence.iter().any(|line| line.text.contains("consider tuning")));
    }

    #[test]
    fn above_the_limit_with_the_kernels_count_is_confirmed() {
        let finding = found(RULE, &host(85).counter(TCP_MEMORY_PRESSURES, 1));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.confidence.word(), "confirmed");
        let limits =
            ["net.ipv4.tcp_mem=60000 80000 120000 -> net.ipv4.tcp_mem=120000 160000 240000"];
        assert_eq!(changed(&finding.fixes[1]), limits);
    }

    #[test]
    fn pressure_lasts_until_memory_is_below_the_first_value() {
        let between = host(70);
        clear(RULE, &between);
        found(RULE, &host(70).counter(TCP_MEMORY_PRESSURES, 1));
    }

    #[test]
    fn above_the_third_value_sockets_get_nothing() {
        let finding = found(RULE, &host(125));
        assert!(finding.title.contains("sockets get no memory"), "{}", finding.title);
    }

    #[test]
    fn clear_with_little_tcp_memory_however_much_udp_has() {
        clear(RULE, &host(2).gauge(UDP_MEM, Pages::new(500_000)));
        // Entered before, or in another moment: memory is far below now.
        clear(RULE, &host(2).counter(TCP_MEMORY_PRESSURES, 1));
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let hour = |most: u64| {
            let used = amid_calm(Pages::new(most), Pages::new(100));
            Case::over(3600).fact(TCP_MEM_LIMITS, "60000 80000 120000").gauge_steps(TCP_MEM, &used)
        };
        assert_eq!(times(&found(RULE, &hour(90_000))), [(1799, 1829)]);
        clear(RULE, &hour(50_000));
    }

    #[test]
    fn not_evaluated_without_the_limits_or_the_memory() {
        let without = Case::over(20).gauge(TCP_MEM, Pages::new(90_000));
        assert_eq!(not_evaluated(RULE, &without).names, [TCP_MEM_LIMITS.name]);
        let without = Case::over(20).fact(TCP_MEM_LIMITS, "1 2 3");
        assert_eq!(not_evaluated(RULE, &without).names, ["sock.tcp_mem"]);
    }
}
