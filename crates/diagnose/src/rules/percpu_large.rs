//! Per-CPU memory takes a large share of RAM.

use timeline::signals::{CGROUPS, CGROUPS_DYING, MEM_PERCPU};

use crate::measures::available::little_left;
use crate::prelude::*;

declare_rule! {
    /// The kernel's per-CPU memory takes a large share of RAM.
    ///
    /// ## What it means
    /// Counters and buffers that each CPU has for itself are allocated once for every CPU that the machine could have,
    /// plugged in or not. Each cgroup, network device, mount and many BPF maps take some of it. On a host with hundreds
    /// of possible CPUs, thousands of such objects take gigabytes, which no process shows and reclaim cannot take.
    /// ## How it is recognised
    /// Percpu is {PERCPU_SHARE} of RAM or more, and {PERCPU_MIN} or more, for {LEVEL}. It is informational, and a
    /// warning from {TOO_LARGE} of RAM on, or from {MATTERS} on if less than {AVAILABLE_LOW_SHARE} of RAM is available
    /// at the same time.
    /// ## Not this
    /// - `slab-leak`: objects that exist once.
    /// - `dying-cgroups`: removed cgroups that hold it; then those are the cause.
    /// - A host with many CPUs and few objects: below the threshold.
    /// ## What to do
    /// Now: count what there is much of: cgroups, network devices, mounts, per-CPU BPF maps. For good: fewer of them;
    /// on a virtual machine with room for CPUs that it never gets, fewer possible ones (`possible_cpus=` at boot, the
    /// maximum in the hypervisor). Verify: Percpu is below {PERCPU_SHARE} of RAM.
    /// ## References
    /// - kernel mm/percpu.c
    /// - kernel Documentation/admin-guide/kernel-parameters.txt, possible_cpus
    pub(crate) RULE = {
        id: "percpu-large", since: "0.1.0", class: Growth,
        numbers: [PERCPU_SHARE, PERCPU_MIN, LEVEL, TOO_LARGE, MATTERS, AVAILABLE_LOW_SHARE],
        trigger: trigger, story: story,
        cause: "Many objects of the kernel have a part for each possible CPU: cgroups, network \
                devices, mounts, BPF maps.",
        verify: "grep Percpu /proc/meminfo: below {PERCPU_SHARE} of RAM",
    }
}

/// An engineering choice. Labelled cases, November 2026: 0.7 % at most, but for one with 28 %.
const PERCPU_SHARE: Ratio = Ratio::from_percent(3.0);
/// What 256 CPUs with 1 MiB each have without any load: an engineering choice.
const PERCPU_MIN: Bytes = Bytes::from_mib(256);
/// No usual load takes this much; a leak was found at 28 % (labelled paste, November 2026).
const TOO_LARGE: Ratio = Ratio::from_percent(15.0);
/// Below this part of RAM it is not why little is available: an engineering choice.
const MATTERS: Ratio = Ratio::from_percent(5.0);

fn trigger() -> Trigger {
    Trigger::on_host(LEVEL, gauge(MEM_PERCPU).at_least("per-CPU memory", large()))
}

fn large() -> Reading<Bytes> {
    ram().share(PERCPU_SHARE).max(PERCPU_MIN)
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let percpu = cx.gauge(MEM_PERCPU)?;
    let Some((most, index)) = percpu.max_in(stretch) else {
        return clear!("per-CPU memory was not measured");
    };
    let least = large().track(cx)?.at(index).unwrap_or_default();
    let share = cx.of_ram(most)?;
    let is_short = share >= MATTERS && little_left(cx, stretch).is_some();
    let cpus = cx.facts.cpus.map_or_else(String::new, |cpus| format!(", with {cpus} CPUs online"));
    let title =
        format!("Per-CPU memory of the kernel takes {most}{}{cpus}.", cx.remark_of_ram(most));
    Ok(RULE
        .found(Severity::warning_if(share >= TOO_LARGE || is_short), title)
        .graph("per-CPU memory", &percpu)
        .shows_from(
            MEM_PERCPU,
            most,
            least,
            cx.time(index),
            format!("per-CPU memory {most}{}", cx.remark_of_ram(most)),
        )
        .counts_as("the level")
        .shows_available(cx, stretch)
        .with(cx.level(CGROUPS, index), |finding, cgroups| {
            finding.shows(CGROUPS, cgroups, cx.time(index), format!("{cgroups} cgroups exist"))
        })
        .with(cx.level(CGROUPS_DYING, index), |finding, dying| {
            finding.shows(
                CGROUPS_DYING,
                dying,
                cx.time(index),
                format!("{dying} removed cgroups are still in the kernel"),
            )
        })
        .not("slab-leak", "per-CPU memory is in no slab cache")
        .fix(
            Fix::say(
                "Count what has a part for each CPU, and compare possible CPUs with those online.",
            )
            .inspect(
                "cat /sys/devices/system/cpu/possible \
                 /sys/devices/system/cpu/online\n\
                 cat /sys/fs/cgroup/cgroup.stat\n\
                 ls /sys/class/net | wc -l\n\
                 wc -l < /proc/self/mounts",
            ),
        )
        .fix(Fix::say(
            "Remove what is left over (network devices, cgroups, BPF maps), or set possible_cpus= \
             to the CPUs that the machine really gets, for the next boot.",
        ))
        .sure_by_kinds(cx, "counts of cgroups, network devices and BPF maps would name the owner")
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, amid_calm, clear, found, not_evaluated, times};
    use timeline::signals::{MEM_AVAILABLE, MEM_SLAB_UNRECLAIMABLE, MEM_TOTAL};

    const MIB: fn(u64) -> Bytes = Bytes::from_mib;

    /// A host of 64,000 MiB.
    fn host(percpu: u64, available: u64) -> Case {
        Case::over(20)
            .gauge(MEM_TOTAL, MIB(64_000))
            .gauge(MEM_PERCPU, MIB(percpu))
            .gauge(MEM_AVAILABLE, MIB(available))
    }

    #[test]
    fn a_large_level_is_informational_and_a_warning_if_it_is_too_large_or_little_is_left() {
        assert_eq!(found(RULE, &host(4000, 30_000)).severity, Severity::Info);
        assert_eq!(found(RULE, &host(4000, 3000)).severity, Severity::Warning);
        assert_eq!(found(RULE, &host(2500, 3000)).severity, Severity::Info);
        let too_large = host(10_000, 30_000);
        assert_eq!(found(RULE, &too_large).severity, Severity::Warning);
    }

    #[test]
    fn clear_on_many_cpus_with_few_objects_and_with_slab() {
        clear(RULE, &host(600, 3000));
        clear(RULE, &host(600, 3000).gauge(MEM_SLAB_UNRECLAIMABLE, MIB(9000)));
        clear(RULE, &host(100, 300).gauge(MEM_TOTAL, MIB(2000)));
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let hour = |most| {
            Case::over(3600)
                .gauge(MEM_TOTAL, MIB(64_000))
                .gauge_steps(MEM_PERCPU, &amid_calm(MIB(most), MIB(100)))
        };
        assert_eq!(times(&found(RULE, &hour(4000))), [(1799, 1829)]);
        clear(RULE, &hour(1800));
    }

    #[test]
    fn not_evaluated_without_the_line() {
        assert_eq!(not_evaluated(RULE, &Case::once()).names, ["mem.percpu"]);
    }
}
