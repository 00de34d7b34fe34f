//! The zones that an allocation can use are exhausted, while other zones have free memory.

use timeline::facts::LOWMEM_RESERVE;
use timeline::signals::{MEM_HIGH_FREE, MEM_LOW_FREE, MEM_LOW_TOTAL};

use crate::finding::{Lasting, SettingChange};
use crate::oom::{self, Asked, Explained, Hurdle, OomCause, ZoneType};
use crate::prelude::*;
use crate::trigger::{self, While};

declare_rule! {
    /// An allocation that needs a low zone (DMA, DMA32, or what a 32-bit kernel can map) found it exhausted, while memory above was free.
    ///
    /// ## What it means
    /// Some devices reach only the first 16 MiB or 4 GiB, a 32-bit kernel keeps its own data in the first 896 MiB, and
    /// areas reserved for contiguous allocations (CMA) serve movable memory only. Such a zone can be full while much
    /// memory is free elsewhere; the allocation fails, and the kernel may kill processes although that cannot help.
    /// ## How it is recognised
    /// From a kernel report: every zone that the allocation may use fails the allocator's watermark test, and a zone
    /// above them has free memory beyond its watermarks or page cache to drop. On a 32-bit kernel also where
    /// {LOW_FREE_LITTLE} or less of what it maps (LowTotal) is free for {LEVEL} or longer, while more than all of that
    /// is free above.
    /// ## Not this
    /// - DMA and DMA32 with much free memory reserved for such allocations (`lowmem_reserve`) during an ordinary
    ///   shortage: that is their normal state. See `oom-global`.
    /// - `external-fragmentation`: the zone has enough free memory, but in small blocks.
    /// ## What to do
    /// Now: unload or limit what allocates there. For good: a 64-bit kernel; an IOMMU or less use of swiotlb; a larger
    /// reserve for the low zone (`vm.lowmem_reserve_ratio`: smaller numbers reserve more). Verify: no further report.
    /// ## References
    /// - kernel Documentation/admin-guide/sysctl/vm.rst, lowmem_reserve_ratio
    /// - kernel mm/page_alloc.c, __zone_watermark_ok
    pub(crate) RULE = { id: "lowmem-zone-exhausted", since: "0.1.0", class: Kill,
        numbers: [LOW_FREE_LITTLE, LEVEL],
        trigger: trigger, story: story,
        verify: "no further report in the kernel log: journalctl -k -g 'page allocation \
                 failure|oom-kill'",
        brings_about: &["oom-global", "oom-score-misuse"],
        aliases: &["oom-lowmem-zone"],
    }
}

/// An engineering choice: a 32-bit kernel's watermarks are at 1 %.
const LOW_FREE_LITTLE: Ratio = Ratio::from_percent(3.0);

fn trigger() -> Trigger {
    oom::trigger(find, none)
}

fn find(cx: &Evidence<'_>) -> Result<Vec<Occurrence>, Missing> {
    let levels = While {
        scope: Subjects::Host,
        when: is_used_up(),
        at_least: LEVEL,
        alert_if: None,
        reported: None,
        noticed: None,
    };
    // 64-bit kernels have no such memory.
    let levels = trigger::holding(cx, &levels).unwrap_or_default();
    oom::beside_levels(cx, Ok(levels), is_limited_to_zones)
}

fn is_used_up() -> Predicate {
    let little = gauge(MEM_LOW_TOTAL).share(LOW_FREE_LITTLE);
    all![
        gauge(MEM_LOW_FREE).at_most("free low memory", little),
        gauge(MEM_HIGH_FREE).at_least("free high memory", gauge(MEM_LOW_TOTAL)),
    ]
}

fn is_limited_to_zones(explained: &Explained<'_>) -> bool {
    matches!(explained.cause, OomCause::LowZone | OomCause::CmaOnly)
}

fn none(_: &Evidence<'_>) -> Result<Outcome, Missing> {
    clear!("no kernel report shows an exhausted low zone while other zones have free memory")
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let reports = oom::within(cx, &incident.stretch, is_limited_to_zones);
    let Some(one) = reports.last() else {
        return Ok(of_levels(cx, &incident.stretch)?.into());
    };
    let Some(asked) = &one.asked else {
        return clear!("the report does not show the allocation");
    };
    let (severity, effect) = oom::effect(one);
    let finding = RULE.found(severity, format!("{effect} because {}.", why(one, asked)));
    let finding = oom::tell_all(cx, &incident.stretch, &reports, finding);
    let finding = oom::measures(cx, one, finding);
    Ok(remedy(finding, one, asked).affects(oom::victim(one)).sure(oom::sure(one, 0.95, "")).into())
}

/// What /proc/meminfo shows without a report.
fn of_levels(cx: &Evidence<'_>, stretch: &Stretch) -> Result<Finding, Missing> {
    let track = cx.gauge(MEM_LOW_FREE)?;
    let (free, index) = track.min_in(stretch).unwrap_or_default();
    let at = |signal| cx.timeline.at(signal, index).unwrap_or_default();
    let (total, above): (Bytes, Bytes) = (at(MEM_LOW_TOTAL), at(MEM_HIGH_FREE));
    let title = format!(
        "The memory that this 32-bit kernel can map is used up: {free} of {total} is free, while \
         {above} is free above it."
    );
    Ok(RULE
        .found(Severity::Warning, title)
        .graph("free low memory", &track)
        .shows_below(
            MEM_LOW_FREE,
            free,
            total.share(LOW_FREE_LITTLE),
            cx.time(index),
            format!("{free} of {total} of low memory free"),
        )
        .counts_as("free low memory")
        .cause(
            "The kernel's own data fills what it can map: slab, page tables, buffers, its map of \
             all pages.",
        )
        .fix(
            Fix::say("Find out what fills it. For good, use a 64-bit kernel.").inspect(
                "grep -e Low -e Slab -e PageTables /proc/meminfo; slabtop -o -s c | head -20",
            ),
        )
        .sure_by_kinds(cx, "a kernel report would show which request failed"))
}

fn why(one: &Explained<'_>, asked: &Asked) -> String {
    if one.cause == OomCause::CmaOnly {
        return "the free memory is reserved for contiguous allocations (CMA), which this one \
                cannot use"
            .to_owned();
    }
    let names = |eligible: bool| {
        let mut names: Vec<&str> = one
            .zones
            .iter()
            .filter(|z| z.is_eligible() == eligible && (eligible || z.hurdle == Hurdle::TooHigh))
            .map(|z| z.zone.name.as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        names.join(" or ")
    };
    let too_high = one.zones.iter().filter(|z| z.hurdle == Hurdle::TooHigh);
    let free: Bytes = too_high.map(|z| z.zone.free).sum();
    let kind = match asked.highest {
        ZoneType::Dma | ZoneType::Dma32 => "memory for a device",
        _ => "kernel memory",
    };
    let eligible = names(true);
    let limit = if eligible.is_empty() {
        "needs a zone that this host does not have".to_owned()
    } else {
        format!("must come from {eligible}, where nothing was left")
    };
    format!("{kind} {limit}, while {} had {free} free", names(false))
}

fn remedy(finding: Finding, one: &Explained<'_>, asked: &Asked) -> Finding {
    let look = "cat /proc/zoneinfo /proc/buddyinfo; slabtop -o -s c | head -20";
    if one.cause == OomCause::CmaOnly {
        return finding
            .cause("CMA serves movable memory only, and unmovable memory has used up the rest.")
            .fix(
                Fix::say(
                    "Reserve less for CMA: cma= on the kernel command line, or the size in the \
                     device tree.",
                )
                .inspect("grep -i cma /proc/meminfo /proc/cmdline"),
            );
    }
    if asked.highest == ZoneType::Normal {
        return finding
            .cause(
                "The kernel's own data needs memory that it can map or never moves, and those \
                 zones are full.",
            )
            .fix(
                Fix::say(
                    "Find out what fills them: slab, page tables, network buffers. For good, use a \
                     64-bit kernel or a smaller Movable zone (movablecore, kernelcore).",
                )
                .inspect(look),
            );
    }
    finding
        .cause("The zones that devices can reach are full of other memory.")
        .fix(
            Fix::say(
                "Reserve more of the low zones for allocations that need them (note the old value \
                 first).",
            )
            .inspect(format!("{look}\nsysctl vm.lowmem_reserve_ratio"))
            .set(SettingChange::new(LOWMEM_RESERVE, "64 64 32").lasting(Lasting::FromBoot)),
        )
        .fix(
            Fix::say(
                "Let the device reach all memory: switch the IOMMU on (intel_iommu=on or \
                 amd_iommu=on on the kernel command line), or use a driver with a wider DMA \
                 mask.",
            )
            .inspect("dmesg | grep -i -e iommu -e swiotlb"),
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oom::testing::{Report, kib};
    use crate::rules::testing::{Case, clear, found, times};

    fn needs_dma32(normal_free: u64) -> Report {
        Report::default()
            .asking(0xcc4, 0)
            .zone("DMA", 12_000, 64, 15_360, &[0, 3000, 16_000, 16_000, 16_000])
            .zone("DMA32", 12_000, 13_760, 3_283_120, &[0, 0, 13_000, 13_000, 13_000])
            .zone("Normal", normal_free, 61_948, 12_774_792, &[0; 5])
            .killing(3, "modprobe")
    }

    #[test]
    fn low_memory_that_is_used_up_is_found_in_meminfo() {
        let case = |free, above| {
            Case::once()
                .gauge(MEM_LOW_TOTAL, Bytes::from_mib(507))
                .gauge(MEM_LOW_FREE, Bytes::from_mib(free))
                .gauge(MEM_HIGH_FREE, Bytes::from_mib(above))
        };
        let finding = found(RULE, &case(1, 26_000));
        assert_eq!(finding.severity, Severity::Warning);
        clear(RULE, &case(100, 26_000));
        clear(RULE, &case(1, 200));
    }

    #[test]
    fn a_device_that_needs_dma32_is_found() {
        let finding = found(RULE, &Case::of_report(needs_dma32(4_000_000)));
        assert_eq!(finding.severity, Severity::Critical);
        assert!(finding.title.contains("DMA32"), "{}", finding.title);
        clear(RULE, &Case::of_report(needs_dma32(60_000)));
    }

    #[test]
    fn clear_when_low_zones_hold_their_reserve_in_a_shortage() {
        clear(RULE, &Case::of_report(Report::of_a_host()));
        clear(RULE, &Case::once());
    }

    #[test]
    fn free_memory_in_cma_only_is_found() {
        let mut report = Report::default()
            .asking(0xcc0, 0)
            .zone("DMA", 300_000, 8_000, 900_000, &[0; 4])
            .failed();
        report.0.zones[0].free_cma = kib(296_000);
        let finding = found(RULE, &Case::of_report(report));
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.title.contains("CMA"), "{}", finding.title);
    }

    #[test]
    fn finds_a_kernel_report_within_an_hour() {
        let hour = |free| Case::over(3600).reporting(600, needs_dma32(free));
        let finding = found(RULE, &hour(4_000_000));
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!((finding.harm.killed, times(&finding)), (1, vec![(600, 600)]));
        clear(RULE, &hour(60_000));
    }
}
