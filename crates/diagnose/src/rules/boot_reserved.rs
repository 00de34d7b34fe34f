//! A large part of RAM was reserved at boot.

use timeline::facts::KERNEL_CMDLINE;
use timeline::signals::{BALLOON_DEFLATE, BALLOON_INFLATE, MEM_TOTAL, ZONE_MANAGED, ZONE_PRESENT};

use crate::accounting::totals::Checks;
use crate::prelude::*;

declare_rule! {
    /// A large part of RAM was reserved when the kernel booted, and lies outside MemTotal.
    ///
    /// ## What it means
    /// Before the kernel manages memory, parts of it are taken away: for a crash kernel (`crashkernel=`), for the
    /// kernel's own table of pages (1.6 % of RAM), its text, an initial RAM disk, a driver or a debugging option. No
    /// counter shows that memory and nothing gives it back before the next boot. It is why MemTotal is less than what
    /// is built in.
    /// ## How it is recognised
    /// The zones have {RESERVED_SHARE} more pages than the allocator manages (present and managed in /proc/zoneinfo),
    /// and {RESERVED_MIN} or more. What the firmware keeps, or `mem=` cuts off, is not even present, so it is not
    /// counted. It is informational: this is a setting, mostly on purpose.
    /// ## Not this
    /// - `balloon-inflated`: a balloon takes pages away later; then nothing is concluded here.
    /// - `hugetlb-unused`: huge pages, those reserved at boot too, are managed and counted.
    /// - `accounting-mismatch`: a virtual machine that adds memory as it is touched.
    /// ## What to do
    /// Look at the boot parameters: a smaller `crashkernel=` (kdumpctl estimate), none where nobody reads dumps; no
    /// `page_owner=on` or KASAN left over from a test. Changes take effect at the next boot. Verify: MemTotal.
    /// ## References
    /// - kernel Documentation/admin-guide/kdump/kdump.rst
    /// - kernel mm/mm_init.c: present and managed pages
    pub(crate) RULE = {
        id: "boot-reserved", since: "0.1.0", class: Setting,
        numbers: [RESERVED_SHARE, RESERVED_MIN],
        trigger: trigger, story: story,
        cause: "A boot parameter, a crash kernel, a driver or a debugging option took the memory \
                before the kernel managed it.",
        verify: "grep MemTotal /proc/meminfo after the next boot",
        explained_by: &[Explains::Maybe(KERNEL_CMDLINE)],
    }
}

/// The table of pages is 1.6 %, a crash kernel on a usual host 1 % to 2 %: an engineering choice above both.
const RESERVED_SHARE: Ratio = Ratio::from_percent(5.0);
/// Kernel text, an initial RAM disk and firmware tables take the same on small hosts, where they are a larger share.
/// Labelled captures, November 2026: 66 MiB at most, 13 % of a host of 384 MiB.
const RESERVED_MIN: Bytes = Bytes::from_mib(512);
/// Of what is missing, a balloon explains all if it explains this much: an engineering choice.
const EXPLAINS: Ratio = Ratio::from_percent(50.0);
/// Boot parameters that reserve memory.
const RESERVING: [&str; 5] = ["crashkernel=", "reserve_mem=", "page_owner=on", "kasan", "ramoops."];

fn present() -> Reading<Bytes> {
    over(Entity::Zone, gauge(ZONE_PRESENT)).bytes()
}

fn reserved() -> Reading<Bytes> {
    present().minus(over(Entity::Zone, gauge(ZONE_MANAGED)).bytes())
}

fn large() -> Reading<Bytes> {
    present().share(RESERVED_SHARE).max(RESERVED_MIN)
}

fn trigger() -> Trigger {
    Trigger::on_host(LEVEL, reserved().at_least("memory reserved at boot", large()))
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    if Checks::run(cx).disagree() {
        return clear!("MemTotal is unreliable on this host, so reserved memory is unknown");
    }
    let track = reserved().track(cx)?;
    let Some((least, index)) = track.min_in(stretch) else {
        return clear!("reserved memory was not measured");
    };
    if let Some(balloon) = balloon(cx).filter(|balloon| *balloon >= least.share(EXPLAINS)) {
        return clear!("{least} is not managed, but a balloon took {balloon} of it");
    }
    let edge = large().track(cx)?.at(index).unwrap_or_default();
    let whole = present().track(cx)?.at(index).unwrap_or_default();
    let share = least.ratio_of(whole).unwrap_or_default();
    let parameters = parameters(cx);
    let by = if parameters.is_empty() {
        String::new()
    } else {
        format!(" (boot parameters: {})", parameters.join(" "))
    };
    Ok(RULE
        .found(
            Severity::Info,
            format!("{least} of RAM ({share}) was reserved at boot and lies outside MemTotal{by}."),
        )
        .shows_from(
            Computed(ZONE_MANAGED),
            least,
            edge,
            cx.time(index),
            format!("the zones have {whole}, of which {least} is not managed"),
        )
        .counts_as("pages present but not managed")
        .with(cx.level(MEM_TOTAL, index), |finding, ram| {
            finding.shows(MEM_TOTAL, ram, None, format!("MemTotal is {ram}"))
        })
        .when(!parameters.is_empty(), |finding| {
            finding
                .with_line(format!("boot parameters that reserve memory: {}", parameters.join(" ")))
                .counts_as("boot parameters")
        })
        .not("hugetlb-unused", "huge pages reserved at boot are part of MemTotal")
        .fix(
            Fix::say(
                "See who reserved it: the boot parameters, the crash kernel, and the reserved \
                 ranges (root).",
            )
            .inspect(
                "cat /proc/cmdline\n\
                 cat /sys/kernel/kexec_crash_size\n\
                 grep -iE 'crash|reserved' /proc/iomem\n\
                 journalctl -k -g 'Memory:|crashkernel' --no-pager",
            ),
        )
        .fix(Fix::say(
            "Remove or reduce the parameter in the boot loader's configuration; it takes effect \
             at the next boot.",
        ))
        .sure_by_kinds(cx, "the kernel's boot log and /proc/iomem would name the owner")
        .into())
}

/// What a balloon holds, as far as this kernel counts it.
fn balloon(cx: &Evidence<'_>) -> Option<Bytes> {
    let inflated = cx.timeline.last(BALLOON_INFLATE)?;
    let deflated = cx.timeline.last(BALLOON_DEFLATE)?;
    let held = Pages::new(inflated.get().saturating_sub(deflated.get()));
    Some(held.to_bytes(cx.facts.page_size?))
}

/// Boot parameters that reserve memory, as the kernel got them: untrusted text, shown and never run.
fn parameters<'a>(cx: &Evidence<'a>) -> Vec<&'a str> {
    let words = cx.facts.text(KERNEL_CMDLINE).unwrap_or_default();
    words
        .split_whitespace()
        .filter(|word| RESERVING.iter().any(|start| word.starts_with(start)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::signals::{HUGEPAGE_SIZE, HUGEPAGES_TOTAL};

    const GIB: u64 = 1 << 18;

    /// A host with 64 GiB present, of which `mib` are not managed.
    fn host(mib: u64) -> Case {
        let managed = 64 * GIB - mib * 256;
        Case::over(20)
            .gauge(MEM_TOTAL, Bytes::from_kib(managed * 4))
            .gauge_of(Entity::Zone, "0/DMA32", ZONE_PRESENT, Pages::new(2 * GIB))
            .gauge_of(Entity::Zone, "0/DMA32", ZONE_MANAGED, Pages::new(2 * GIB))
            .gauge_of(Entity::Zone, "0/Normal", ZONE_PRESENT, Pages::new(62 * GIB))
            .gauge_of(Entity::Zone, "0/Normal", ZONE_MANAGED, Pages::new(managed - 2 * GIB))
    }

    #[test]
    fn a_large_crash_kernel_is_named() {
        let case = host(6000).fact(KERNEL_CMDLINE, "ro root=/dev/sda1 crashkernel=4G quiet");
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Info);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(finding.title.contains("boot parameters: crashkernel=4G"), "{}", finding.title);
        assert_eq!(found(RULE, &host(6000)).confidence.word(), "probable");
    }

    #[test]
    fn clear_with_the_table_of_pages_and_on_a_small_host() {
        clear(RULE, &host(1300));
        let small = Case::over(20)
            .gauge(MEM_TOTAL, Bytes::from_mib(460))
            .gauge_of(Entity::Zone, "0/DMA32", ZONE_PRESENT, Pages::new(131_000))
            .gauge_of(Entity::Zone, "0/DMA32", ZONE_MANAGED, Pages::new(117_760));
        clear(RULE, &small);
    }

    #[test]
    fn clear_when_a_balloon_took_it_or_huge_pages_are_reserved() {
        let balloon =
            host(6000).counter_at(BALLOON_INFLATE, 5 * GIB).counter_at(BALLOON_DEFLATE, 0);
        assert!(clear(RULE, &balloon).contains("balloon"));
        let huge = host(1000)
            .gauge(HUGEPAGES_TOTAL, Count::new(16_000))
            .gauge(HUGEPAGE_SIZE, Bytes::from_mib(2));
        clear(RULE, &huge);
    }

    #[test]
    fn clear_when_memory_is_added_as_it_is_touched() {
        let lazy = host(40_000).gauge(MEM_TOTAL, Bytes::from_gib(64));
        clear(RULE, &lazy);
    }

    #[test]
    fn finds_it_in_an_hour_and_in_one_sample() {
        let hour = Case::over(3600)
            .gauge_of(Entity::Zone, "0/Normal", ZONE_PRESENT, Pages::new(16 * GIB))
            .gauge_of(Entity::Zone, "0/Normal", ZONE_MANAGED, Pages::new(14 * GIB));
        assert!(found(RULE, &hour).title.starts_with("2 GiB of RAM (1"));
        let once = Case::once()
            .gauge_of(Entity::Zone, "0/Normal", ZONE_PRESENT, Pages::new(16 * GIB))
            .gauge_of(Entity::Zone, "0/Normal", ZONE_MANAGED, Pages::new(14 * GIB));
        found(RULE, &once);
    }

    #[test]
    fn not_evaluated_without_zones() {
        assert_eq!(not_evaluated(RULE, &Case::once()).names, ["zone.present"]);
    }
}
