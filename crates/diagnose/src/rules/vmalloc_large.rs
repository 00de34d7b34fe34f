//! Memory behind vmalloc takes a large share of RAM.

use timeline::facts::KernelVersion;
use timeline::signals::{MEM_KERNEL_STACK, MEM_PERCPU, MEM_VMALLOC_USED};

use crate::measures::available::little_left;
use crate::measures::rise::{LONG, Rise};
use crate::prelude::*;

declare_rule! {
    /// The kernel holds a large share of RAM behind vmalloc: for a driver, a file system, BPF or a firewall.
    ///
    /// ## What it means
    /// The kernel takes large buffers of its own through vmalloc: BPF maps and programs, tables of a firewall, modules,
    /// buffers of drivers and file systems. No process shows them and reclaim cannot take them. Every host has some
    /// tens to hundreds of megabytes; several percent of RAM have one owner.
    /// ## How it is recognised
    /// VmallocUsed without kernel stacks is {VMALLOC_SHARE} of RAM or more, and {VMALLOC_MIN} or more, for {LEVEL}. It
    /// is informational, and a warning if it rises by {CLIMB} of RAM over an hour or longer, is {TOO_LARGE} of RAM, or
    /// leaves less than {AVAILABLE_LOW_SHARE} available. Kernels from 4.4 to 5.2 print 0, and older ones address space:
    /// nothing is concluded there.
    /// ## Not this
    /// - `kernel-stacks-large`: stacks of threads lie in vmalloc too, and are taken off here.
    /// - `percpu-large`: per-CPU memory has a line of its own.
    /// - `unaccounted-memory`: pages that a driver took directly.
    /// ## What to do
    /// Now: find the callers of the largest areas in /proc/vmallocinfo (root), and stop or unload the owner. For good:
    /// smaller maps or tables, a newer driver. Verify: VmallocUsed falls below {VMALLOC_SHARE} of RAM and stays level
    /// over a day.
    /// ## References
    /// - kernel Documentation/filesystems/proc.rst: vmallocinfo, VmallocUsed
    /// - kernel mm/vmalloc.c, vmalloc_nr_pages
    pub(crate) RULE = {
        id: "vmalloc-large", since: "0.1.0", class: Growth,
        numbers: [VMALLOC_SHARE, VMALLOC_MIN, LEVEL, CLIMB, TOO_LARGE, AVAILABLE_LOW_SHARE],
        trigger: trigger, story: story,
        cause: "A part of the kernel allocated large buffers: BPF maps, tables of a firewall, a \
                driver, a file system.",
        verify: "grep VmallocUsed /proc/meminfo: below {VMALLOC_SHARE} of RAM, and level over a \
                 day",
        brings_about: WANT_AND_THRASH,
    }
}

/// An engineering choice. Labelled captures, November 2026: 2.2 % at most, kernel stacks included, on hosts of 384 MiB.
const VMALLOC_SHARE: Ratio = Ratio::from_percent(5.0);
/// Kernel text, modules and drivers of a large host: an engineering choice.
const VMALLOC_MIN: Bytes = Bytes::from_mib(512);
/// Three times the threshold: an engineering choice.
const TOO_LARGE: Ratio = Ratio::from_percent(15.0);
/// As for other kernel memory that climbs.
const CLIMB: Ratio = Ratio::from_percent(4.0);
/// From here on VmallocUsed counts RAM (commit 97105f0ab7b8).
const COUNTS_RAM: KernelVersion = KernelVersion { major: 5, minor: 3 };

fn vmalloc() -> Reading<Bytes> {
    gauge(MEM_VMALLOC_USED).minus(gauge(MEM_KERNEL_STACK))
}

fn large() -> Reading<Bytes> {
    ram().share(VMALLOC_SHARE).max(VMALLOC_MIN)
}

fn trigger() -> Trigger {
    Trigger::on_host(LEVEL, vmalloc().at_least("memory behind vmalloc", large()))
}

/// Whether this kernel counts RAM, and not address space. Percpu serves as a date where the version is unknown: it came
/// while VmallocUsed was 0.
fn counts_ram(cx: &Evidence<'_>) -> bool {
    match cx.facts.kernel() {
        Some(version) => version >= COUNTS_RAM,
        None => cx.timeline.last(MEM_PERCPU).is_some(),
    }
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    if !counts_ram(cx) {
        return clear!("on this kernel VmallocUsed is address space and not RAM");
    }
    let track = vmalloc().track(cx)?;
    let Some((most, index)) = track.max_in(stretch) else {
        return clear!("memory behind vmalloc was not measured");
    };
    let least = large().track(cx)?.at(index).unwrap_or_default();
    let rise = Rise::seen(&track, Rise::at_least(cx, CLIMB))
        .filter(|rise| rise.climbs)
        .max_by_key(Rise::by);
    let is_leak = rise.as_ref().is_some_and(|rise| rise.stretch.duration() >= LONG);
    let little = little_left(cx, stretch).is_some();
    let too_large = cx.of_ram(most).is_ok_and(|share| share >= TOO_LARGE);
    let grew = rise.as_ref().map_or_else(String::new, |rise| {
        format!(", {} more than {} before", rise.by(), rise.stretch.elapsed())
    });
    let title = format!(
        "The kernel holds {most}{} behind vmalloc{grew}: a driver, a file system, BPF or a \
         firewall.",
        cx.remark_of_ram(most)
    );
    Ok(RULE
        .found(Severity::warning_if(is_leak || little || too_large), title)
        .graph("memory behind vmalloc", &track)
        .shows_from(
            Computed(MEM_VMALLOC_USED),
            most,
            least,
            cx.time(index),
            format!("VmallocUsed without kernel stacks is {most}"),
        )
        .counts_as("the level")
        .with(rise, |finding, rise| {
            let text = format!("it rose from {} to {}", rise.from, rise.to);
            finding
                .shows(MEM_VMALLOC_USED, rise.by(), Some(rise.stretch.to), text)
                .counts_if(is_leak, "a climb")
        })
        .shows_available(cx, stretch)
        .with(cx.level(MEM_KERNEL_STACK, index), |finding, stacks| {
            finding.not("kernel-stacks-large", format!("kernel stacks ({stacks}) are taken off"))
        })
        .fix(
            Fix::say(
                "Find the owner: the largest areas, with the function that allocated each (root).",
            )
            .inspect(
                "grep -o '[^ ]*+0x[^ ]* pages=[0-9]*' /proc/vmallocinfo | sort -t= -k2 -rn | head",
            ),
        )
        .fix(Fix::say(
            "Make it smaller (BPF maps, tables of the firewall), or unload or update the driver; a \
             reboot frees what leaked.",
        ))
        .sure_by_kinds(cx, "/proc/vmallocinfo (root) would name the owner")
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, amid_calm, clear, found, not_evaluated, times};
    use timeline::facts::KERNEL_VERSION;
    use timeline::signals::{MEM_AVAILABLE, MEM_TOTAL};

    const MIB: fn(u64) -> Bytes = Bytes::from_mib;

    fn host(seconds: u64, kernel: &str) -> Case {
        Case::over(seconds)
            .fact(KERNEL_VERSION, &format!("Linux version {kernel}"))
            .gauge(MEM_TOTAL, MIB(16_000))
            .gauge(MEM_AVAILABLE, MIB(8000))
            .gauge(MEM_KERNEL_STACK, MIB(100))
    }

    #[test]
    fn a_level_is_informational_and_a_warning_if_little_is_available() {
        let case = || host(20, "6.1.0").gauge(MEM_VMALLOC_USED, MIB(1500));
        let finding = found(RULE, &case());
        assert_eq!(finding.severity, Severity::Info);
        assert!(
            finding.title.contains("holds 1.4 GiB") || finding.title.contains("1.37 GiB"),
            "{}",
            finding.title
        );
        let short = case().gauge(MEM_AVAILABLE, MIB(500));
        assert_eq!(found(RULE, &short).severity, Severity::Warning);
    }

    #[test]
    fn a_climb_over_more_than_an_hour_is_a_warning() {
        let climb: Vec<Bytes> = (0..=10_000).map(|i| MIB(300 + i / 6)).collect();
        let case = host(10_000, "6.1.0").gauge_steps(MEM_VMALLOC_USED, &climb);
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.confidence.word(), "confirmed");
    }

    #[test]
    fn clear_on_address_space_stacks_and_a_usual_level() {
        clear(RULE, &host(20, "3.10.0").gauge(MEM_VMALLOC_USED, MIB(4000)));
        clear(RULE, &host(20, "6.1.0").gauge(MEM_VMALLOC_USED, MIB(400)));
        let stacks =
            host(20, "6.1.0").gauge(MEM_KERNEL_STACK, MIB(1200)).gauge(MEM_VMALLOC_USED, MIB(1500));
        clear(RULE, &stacks);
        // 600 MiB are little on a large host.
        let big = host(20, "6.1.0")
            .gauge(MEM_TOTAL, Bytes::from_gib(256))
            .gauge(MEM_VMALLOC_USED, MIB(700));
        clear(RULE, &big);
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let hour = |most| {
            let steps = amid_calm(MIB(most), MIB(150));
            host(3600, "6.1.0").gauge_steps(MEM_VMALLOC_USED, &steps)
        };
        assert_eq!(times(&found(RULE, &hour(1200))), [(1799, 1829)]);
        clear(RULE, &hour(800));
    }

    #[test]
    fn not_evaluated_without_vmalloc() {
        assert_eq!(not_evaluated(RULE, &host(20, "6.1.0")).names, ["mem.vmalloc_used"]);
    }
}
