//! A balloon returned a large part of RAM to the hypervisor.

use timeline::signals::{
    BALLOON_DEFLATE, BALLOON_INFLATE, MEM_AVAILABLE, MEM_BALLOON, MEM_TOTAL, NR_BALLOON_PAGES,
};

use crate::measures::available::little_left;
use crate::measures::readings::AVAILABLE_ROOMY_SHARE;
use crate::prelude::*;
use crate::trigger::total;

declare_rule! {
    /// The hypervisor took a large part of this virtual machine's RAM back through a balloon.
    ///
    /// ## What it means
    /// A balloon driver (virtio, VMware, Hyper-V) allocates pages inside the guest and returns them to the hypervisor,
    /// which gives them to other guests. Inside the guest nobody uses that memory, and nothing can take it back: only
    /// the hypervisor deflates the balloon. The guest may swap or kill while its size on paper is unchanged.
    /// ## How it is recognised
    /// For {LEVEL} the balloon holds {BALLOON_SHARE} of RAM or more, and {BALLOON_MIN} or more. Linux 6.16 reports it
    /// (Balloon); before, it is what was inflated minus what was deflated since boot (balloon_inflate,
    /// balloon_deflate). It is informational, and a warning if less than {AVAILABLE_LOW_SHARE} of RAM is available, or
    /// tasks wait for memory with less than {AVAILABLE_ROOMY_SHARE} available.
    /// ## Not this
    /// - `unaccounted-memory`: a balloon that the kernel does not count, as VMware's before 6.16, is in no counter.
    /// - `available-exhaustion`: processes hold the memory.
    /// - Free page reporting returns free pages only, and the guest gets them back when it touches them.
    /// ## What to do
    /// Now: let the hypervisor deflate the balloon (`virsh setmem`, the memory target in Xen, Hyper-V or vSphere). For
    /// good: reserve the guest's memory there, or give it a smaller size that it can keep. Verify: the balloon is below
    /// {BALLOON_SHARE} of RAM.
    /// ## References
    /// - kernel drivers/virtio/virtio_balloon.c
    /// - kernel mm/balloon_compaction.c: what balloon_inflate and balloon_deflate count
    pub(crate) RULE = {
        id: "balloon-inflated", since: "0.1.0", class: Growth,
        numbers: [LEVEL, BALLOON_SHARE, BALLOON_MIN, AVAILABLE_LOW_SHARE, AVAILABLE_ROOMY_SHARE],
        trigger: trigger, story: story,
        cause: "The hypervisor gave this guest's memory to others: it is overcommitted, or the \
                guest's target is below its size.",
        verify: "memtide check: the balloon is below {BALLOON_SHARE} of RAM",
        brings_about: WANT_AND_THRASH,
    }
}

/// An engineering choice. Labelled captures, November 2026: 0 on all hosts.
const BALLOON_SHARE: Ratio = Ratio::from_percent(5.0);
/// A balloon that is being adjusted moves by this much: an engineering choice.
const BALLOON_MIN: Bytes = Bytes::from_mib(64);

/// Memory in the balloon. Compaction that moves its pages counts as neither inflating nor deflating.
fn balloon() -> Reading<Bytes> {
    let moved = total(BALLOON_INFLATE).minus(total(BALLOON_DEFLATE));
    let pages = gauge(NR_BALLOON_PAGES).or(moved);
    gauge(MEM_BALLOON).or(pages.bytes())
}

fn large() -> Reading<Bytes> {
    ram().share(BALLOON_SHARE).max(BALLOON_MIN)
}

fn trigger() -> Trigger {
    Trigger::on_host(LEVEL, balloon().at_least("memory in the balloon", large()))
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let track = balloon().track(cx)?;
    let Some((most, index)) = track.max_in(stretch) else {
        return clear!("the balloon was not measured");
    };
    let least = large().track(cx)?.at(index).unwrap_or_default();
    let stalls = PressureWindow::during(cx, stretch);
    // With more room, the waits are those of a cgroup at its own limit.
    let roomy = cx.ram()?.share(AVAILABLE_ROOMY_SHARE);
    let is_tight = cx.lowest_in(MEM_AVAILABLE, stretch).is_some_and(|(least, _)| least < roomy);
    let is_felt = is_tight && stalls.for_memory();
    let left = little_left(cx, stretch)
        .map_or_else(String::new, |(left, _)| format!(", and only {left} is available"));
    let title = Title::from(format!(
        "The hypervisor took {most}{} from this virtual machine through a balloon{left}.",
        cx.remark_of_ram(most)
    ))
    .then(stalls.sentence());
    let is_counted = cx.timeline.last(MEM_BALLOON).is_some();
    let signal = if is_counted { "Balloon" } else { "balloon_inflate minus balloon_deflate" };
    Ok(RULE
        .found(Severity::warning_if(!left.is_empty() || is_felt), title)
        .graph("memory in the balloon", &track)
        .shows_from(
            Computed(MEM_BALLOON),
            most,
            least,
            cx.time(index),
            format!("{most} in the balloon ({signal})"),
        )
        .counts_as("the balloon's size")
        .with(cx.level(MEM_TOTAL, index), |finding, ram| {
            finding.shows(
                MEM_TOTAL,
                ram,
                cx.time(index),
                format!("MemTotal is {ram}; most drivers take the balloon off it"),
            )
        })
        .shows_available(cx, stretch)
        .and(|finding| stalls.shown_in(finding))
        .counts_if(is_felt, "memory stalls")
        .not("unaccounted-memory", "the kernel counts this balloon")
        .fix(
            Fix::say(
                "Raise the guest's memory target on the hypervisor (virsh setmem, xl mem-set, \
                 Dynamic Memory, a reservation in vSphere): only the hypervisor can deflate the \
                 balloon. What the guest shows:",
            )
            .inspect("grep -E '^(MemTotal|Balloon)' /proc/meminfo\ngrep balloon /proc/vmstat"),
        )
        .fix(Fix::say(
            "If the hypervisor has no memory to give, size the guest's programs to what is left to \
             it.",
        ))
        .sure_by_kinds(cx, "the hypervisor's figures would show why")
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, amid_calm, clear, found, not_evaluated, times};
    use timeline::signals::{MEM_ANON, PSI_MEMORY_SOME};

    const MIB: fn(u64) -> Bytes = Bytes::from_mib;

    /// A guest of 8,000 MiB with this much available.
    fn guest(available: u64) -> Case {
        Case::over(20).gauge(MEM_TOTAL, MIB(8000)).gauge(MEM_AVAILABLE, MIB(available))
    }

    #[test]
    fn a_balloon_with_room_left_is_informational() {
        let finding = found(RULE, &guest(3000).gauge(MEM_BALLOON, MIB(2000)));
        assert_eq!(finding.severity, Severity::Info);
        assert!(finding.title.contains("took 2 GiB (25 % of RAM)"), "{}", finding.title);
    }

    #[test]
    fn a_warning_when_little_is_available() {
        let finding = found(RULE, &guest(300).gauge(MEM_BALLOON, MIB(2000)));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(finding.title.contains("only 300 MiB is available"), "{}", finding.title);
    }

    #[test]
    fn waits_make_a_warning_unless_there_is_room() {
        let severity = |available| {
            let case =
                guest(available).gauge(MEM_BALLOON, MIB(2000)).counter(PSI_MEMORY_SOME, 200_000);
            found(RULE, &case).severity
        };
        assert_eq!(severity(1500), Severity::Warning);
        assert_eq!(severity(5000), Severity::Info);
    }

    #[test]
    fn kernels_before_6_16_count_what_moved() {
        let moved = |deflated| {
            guest(3000).counter_at(BALLOON_INFLATE, 600_000).counter_at(BALLOON_DEFLATE, deflated)
        };
        found(RULE, &moved(100_000));
        clear(RULE, &moved(590_000));
    }

    #[test]
    fn clear_when_processes_hold_the_memory() {
        let case = guest(100).gauge(MEM_ANON, MIB(7000)).gauge(MEM_BALLOON, Bytes::ZERO);
        clear(RULE, &case);
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let hour = |held| {
            Case::over(3600)
                .gauge(MEM_TOTAL, MIB(8000))
                .gauge_steps(MEM_BALLOON, &amid_calm(MIB(held), Bytes::ZERO))
        };
        assert_eq!(times(&found(RULE, &hour(1000))), [(1799, 1829)]);
        clear(RULE, &hour(300));
    }

    #[test]
    fn not_evaluated_without_a_count_of_the_balloon() {
        assert_eq!(not_evaluated(RULE, &guest(300)).names, ["mem.balloon"]);
    }
}
