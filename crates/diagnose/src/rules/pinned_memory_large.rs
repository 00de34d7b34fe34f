//! A large part of RAM is pinned for devices.

use timeline::signals::{
    MEM_ANON, NR_FOLL_PIN_ACQUIRED, NR_FOLL_PIN_RELEASED, PROC_LOCKED, PROC_PINNED,
};

use crate::measures::available::little_left;
use crate::prelude::*;
use crate::trigger::total;

declare_rule! {
    /// A large part of RAM is pinned for devices: it can neither be swapped, nor dropped, nor moved.
    ///
    /// ## What it means
    /// Memory that a device reads and writes by itself must stay where it is: guests with passed-through devices
    /// (VFIO), RDMA, io_uring's registered buffers, AF_XDP, GPUs. The kernel pins each page. Pinned pages stay on the
    /// lists of reclaim, so they look like memory that could be swapped; and as compaction cannot move them, they
    /// fragment RAM.
    /// ## How it is recognised
    /// Pages pinned minus pages released since boot (nr_foll_pin_acquired, nr_foll_pin_released, 5.7 or later) are
    /// {PINNED_SHARE} of RAM or more, and {PINNED_MIN} or more, for {LEVEL}. A page that is pinned twice counts twice,
    /// so this is an upper bound. It is informational, and a warning if less than {AVAILABLE_LOW_SHARE} of RAM is
    /// available at the same time.
    /// ## Not this
    /// - `locked-memory-large`: mlock keeps pages in RAM, but they can be moved.
    /// - Pins of direct I/O last for a request, and are released with it.
    /// - Drivers that take pages of their own: `unaccounted-memory`.
    /// ## What to do
    /// Size guests and buffers so that the rest fits beside them, or back them with huge pages. Limit who may pin:
    /// `LimitMEMLOCK=`. Verify: less than {PINNED_SHARE} of RAM is pinned, or {AVAILABLE_LOW_SHARE} or more is
    /// available.
    /// ## References
    /// - kernel Documentation/core-api/pin_user_pages.rst
    pub(crate) RULE = {
        id: "pinned-memory-large", since: "0.1.0", class: Growth,
        numbers: [PINNED_SHARE, PINNED_MIN, LEVEL, AVAILABLE_LOW_SHARE],
        trigger: trigger, story: story,
        cause: "A device reads and writes this memory by itself, so the kernel must keep it where \
                it is.",
        verify: "memtide check at the same load: less than {PINNED_SHARE} of RAM is pinned, or \
                 {AVAILABLE_LOW_SHARE} of RAM or more is available",
        brings_about: WANT_AND_THRASH,
    }
}

/// An engineering choice, the same as for locked memory. Labelled captures, November 2026: 0 on all hosts.
const PINNED_SHARE: Ratio = Ratio::from_percent(25.0);
/// Rings and registered buffers of usual programs: an engineering choice.
const PINNED_MIN: Bytes = Bytes::from_mib(256);
/// VFIO charges pins as locked memory, RDMA as pinned memory. Less is not named.
const WORTH_NAMING: Bytes = Bytes::from_mib(16);

fn pinned() -> Reading<Bytes> {
    total(NR_FOLL_PIN_ACQUIRED).minus(total(NR_FOLL_PIN_RELEASED)).bytes()
}

fn large() -> Reading<Bytes> {
    ram().share(PINNED_SHARE).max(PINNED_MIN)
}

fn trigger() -> Trigger {
    Trigger::on_host(LEVEL, pinned().at_least("pinned memory", large()))
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let track = pinned().track(cx)?;
    let Some((most, index)) = track.max_in(stretch) else {
        return clear!("pinned memory was not measured");
    };
    let least = large().track(cx)?.at(index).unwrap_or_default();
    let left = little_left(cx, stretch)
        .map_or_else(String::new, |(left, _)| format!(", and only {left} is available"));
    let pinners = pinners(cx, index);
    let who =
        pinners.first().map_or_else(String::new, |(name, _)| format!(", by {name} first of all"));
    let title = format!(
        "Up to {most}{} is pinned for devices{who}: it cannot be swapped, dropped or moved{left}.",
        cx.remark_of_ram(most)
    );
    let open = if pinners.is_empty() {
        "processes' VmPin and VmLck would name the owner"
    } else {
        "whether this is intended is unknown"
    };
    Ok(RULE
        .found(Severity::warning_if(!left.is_empty()), title)
        .graph("pinned memory", &track)
        .shows_from(
            Computed(NR_FOLL_PIN_ACQUIRED),
            most,
            least,
            cx.time(index),
            format!("{most} pinned and not released; a page pinned twice counts twice"),
        )
        .counts_as("the kernel's count of pins")
        .with(pinners.first(), |finding, (name, held)| {
            finding
                .shows(PROC_PINNED, *held, None, format!("{name} has {held} pinned or locked"))
                .counts_as("the processes' own figures")
        })
        .with(cx.level(MEM_ANON, index), |finding, anon| {
            finding.shows(
                MEM_ANON,
                anon,
                cx.time(index),
                format!("anonymous memory {anon}, which includes pinned pages"),
            )
        })
        .shows_available(cx, stretch)
        .not(
            "unaccounted-memory",
            "pinned pages belong to processes, or to huge pages, and are counted there",
        )
        .fix(
            Fix::say("Find who pins: guests with passed-through devices, RDMA, io_uring, AF_XDP.")
                .inspect(
                    "grep -HE '^Vm(Pin|Lck)' /proc/[0-9]*/status | sort -nk2 | tail\n\
                 grep foll_pin /proc/vmstat",
                ),
        )
        .fix(Fix::say(
            "Make guests and buffers smaller, or limit who may pin with LimitMEMLOCK= in the unit \
             file; it takes effect at the next start.",
        ))
        .affects(pinners.iter().take(3).map(|(name, held)| {
            Affected::new("process", *name, format!("{held} pinned or locked"))
        }))
        .sure_by_kinds(cx, open)
        .into())
}

/// Programs by memory that they pinned, or locked for devices, around a sample.
fn pinners<'a>(cx: &Evidence<'a>, index: usize) -> Vec<(&'a str, Bytes)> {
    let held = |process: &EntitySeries, at| {
        let of = |signal| cx.timeline.at_of(process, signal, at);
        of(PROC_PINNED).max(of(PROC_LOCKED))
    };
    let mut programs = processes::programs(cx, index, held, |all, more| all + more);
    programs.retain(|(_, held)| *held >= WORTH_NAMING);
    programs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated, times};
    use timeline::signals::{MEM_AVAILABLE, MEM_MLOCKED, MEM_TOTAL, MEM_UNEVICTABLE};

    const MIB: fn(u64) -> Bytes = Bytes::from_mib;

    /// A host of 16,000 MiB with `mib` pinned.
    fn host(mib: u64, available: u64) -> Case {
        Case::over(20)
            .gauge(MEM_TOTAL, MIB(16_000))
            .gauge(MEM_AVAILABLE, MIB(available))
            .counter_at(NR_FOLL_PIN_ACQUIRED, 1_000_000 + mib * 256)
            .counter_at(NR_FOLL_PIN_RELEASED, 1_000_000)
    }

    #[test]
    fn a_guest_with_a_device_is_informational() {
        let case = host(8000, 6000)
            .gauge_of(Entity::Process, "9@1", PROC_LOCKED, MIB(8000))
            .named("9@1", "qemu-system-x86");
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Info);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(finding.title.contains("by qemu-system-x86"), "{}", finding.title);
    }

    #[test]
    fn a_warning_when_little_is_available() {
        assert_eq!(found(RULE, &host(8000, 900)).severity, Severity::Warning);
    }

    #[test]
    fn clear_when_pins_are_released_or_memory_is_only_locked() {
        clear(RULE, &host(100, 900));
        let locked = host(0, 900).gauge(MEM_UNEVICTABLE, MIB(9000)).gauge(MEM_MLOCKED, MIB(9000));
        clear(RULE, &locked);
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let hour = |mib: u64| {
            let mut acquired = vec![0; 3600];
            let mut released = vec![0; 3600];
            acquired[1800] = mib * 256;
            released[1830] = mib * 256;
            Case::over(3600)
                .gauge(MEM_TOTAL, MIB(16_000))
                .counter_steps(NR_FOLL_PIN_ACQUIRED, &acquired)
                .counter_steps(NR_FOLL_PIN_RELEASED, &released)
        };
        let found = times(&found(RULE, &hour(6000)));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].0.abs_diff(1800) <= 1 && found[0].1.abs_diff(1830) <= 1, "{found:?}");
        clear(RULE, &hour(3000));
    }

    #[test]
    fn not_evaluated_before_5_7() {
        let without = Case::once().gauge(MEM_TOTAL, MIB(16_000));
        assert_eq!(not_evaluated(RULE, &without).names, ["vm.nr_foll_pin_acquired"]);
    }
}
