//! Free memory lies in CMA areas, where the kernel cannot use it.

use timeline::facts::KERNEL_CMDLINE;
use timeline::signals::{MEM_CMA_FREE, MEM_CMA_TOTAL, MEM_FREE};

use crate::measures::readings::{floor, memory_waits};
use crate::prelude::*;

declare_rule! {
    /// Nearly all free memory lies in CMA areas, where only movable pages may go, and tasks wait for other memory.
    ///
    /// ## What it means
    /// The contiguous memory allocator keeps areas for devices that need one large block (cameras, video, DMA).
    /// Meanwhile movable pages may use them: anonymous memory and page cache. Kernel objects, page tables and network
    /// buffers may not. So the kernel reclaims, and may kill, while MemFree and MemAvailable count memory that it
    /// cannot take.
    /// ## How it is recognised
    /// For {STALL} free memory outside CMA (MemFree - CmaFree) is at the floor that the kernel keeps free, CmaFree is
    /// {CMA_SHARE} of RAM or more and {CMA_MIN} or more, and tasks wait for memory ({PressureWindow::MEMORY} of the
    /// time, or allocations that reclaim). It is a warning, and critical if nothing ran for {PressureWindow::STANDSTILL} of the time.
    /// ## Not this
    /// - CMA areas that movable pages fill: CmaFree is small, and nothing is lost.
    /// - `available-exhaustion`: memory inside and outside CMA is used up.
    /// - `free-low-harmless`: free memory at the floor, and nothing waits.
    /// - `lowmem-zone-exhausted`: a low zone is used up, whatever CMA has.
    /// ## What to do
    /// Make the area smaller at the next boot (`cma=`, or the size in the device tree) if the device does not need all
    /// of it; otherwise reduce what the kernel takes: kernel objects, page tables, network buffers. Verify: no waits
    /// for memory at the same load.
    /// ## References
    /// - kernel mm/page_alloc.c, __zone_watermark_ok and __rmqueue: who may use free CMA pages
    /// - kernel Documentation/admin-guide/kernel-parameters.txt, cma
    pub(crate) RULE = {
        id: "cma-reserved", since: "0.1.0", class: Setting,
        numbers: [STALL, CMA_SHARE, CMA_MIN, PressureWindow::MEMORY, PressureWindow::CALM, PressureWindow::STANDSTILL],
        trigger: trigger, waits: Memory, story: story,
        cause: "CMA areas are larger than what movable pages fill, and the kernel's own \
                allocations may not use them.",
        verify: "memtide check --for 1m at the same load: memory stalls below \
                 {PressureWindow::CALM}",
        brings_about: &["direct-reclaim-stall", "kswapd-saturated"],
        explained_by: &[Explains::Maybe(KERNEL_CMDLINE)],
    }
}

/// An engineering choice: less would not have helped for long.
const CMA_SHARE: Ratio = Ratio::from_percent(3.0);
/// The usual default area has 16 MiB to 64 MiB.
const CMA_MIN: Bytes = Bytes::from_mib(64);

fn outside() -> Reading<Bytes> {
    gauge(MEM_FREE).minus(gauge(MEM_CMA_FREE))
}

fn large() -> Reading<Bytes> {
    ram().share(CMA_SHARE).max(CMA_MIN)
}

fn trigger() -> Trigger {
    Trigger::on_host(
        STALL,
        all![
            gauge(MEM_CMA_FREE).at_least("free memory in CMA areas", large()),
            outside().at_most("free memory outside CMA areas", floor()),
            memory_waits(),
        ],
    )
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let track = outside().track(cx)?;
    let Some((least, index)) = track.min_in(stretch) else {
        return clear!("free memory outside CMA areas was not measured");
    };
    let cma = cx.level(MEM_CMA_FREE, index).unwrap_or_default();
    let edge = large().track(cx)?.at(index).unwrap_or_default();
    let kept = floor().track(cx)?.at(index).unwrap_or_default();
    let stalls = PressureWindow::during(cx, stretch);
    let title = Title::from(format!(
        "{cma} of the free memory lies in CMA areas, which the kernel cannot use for itself; \
         outside them {least} is free, and tasks wait for it."
    ))
    .then(stalls.sentence());
    Ok(RULE
        .found(Severity::critical_if(stalls.standstill()), title)
        .graph("free memory outside CMA areas", &track)
        .shows_below(
            Computed(MEM_FREE),
            least,
            kept,
            cx.time(index),
            format!("MemFree without CmaFree is {least}; the kernel keeps {kept} free"),
        )
        .counts_as("free memory outside CMA areas")
        .shows_from(MEM_CMA_FREE, cma, edge, cx.time(index), format!("{cma} is free in CMA areas"))
        .with(cx.level(MEM_CMA_TOTAL, index), |finding, all| {
            finding.shows(MEM_CMA_TOTAL, all, None, format!("CMA areas have {all}"))
        })
        .and(|finding| stalls.shown_in(finding))
        .counts_if(stalls.for_memory(), "memory stalls")
        .shows_available(cx, stretch)
        .fix(Fix::say("See how the areas are set and who uses them.").inspect(
            "grep Cma /proc/meminfo\ncat /proc/cmdline\njournalctl -k -g 'cma:' --no-pager",
        ))
        .fix(Fix::say(
            "Make the area smaller: cma= on the kernel's command line or its size in the device \
             tree; it takes effect at the next boot.",
        ))
        .sure_by_kinds(cx, stalls.open())
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, amid_calm, clear, found, not_evaluated, times};
    use timeline::signals::{MEM_AVAILABLE, MEM_TOTAL, PSI_MEMORY_FULL, PSI_MEMORY_SOME};

    const MIB: fn(u64) -> Bytes = Bytes::from_mib;

    /// A board of 2,000 MiB with this much free, some of it in CMA areas, and stalls of `percent` of the time.
    fn board(free: u64, cma: u64, percent: u64) -> Case {
        Case::over(30)
            .gauge(MEM_TOTAL, MIB(2000))
            .gauge(MEM_AVAILABLE, MIB(400))
            .gauge(MEM_FREE, MIB(free))
            .gauge(MEM_CMA_FREE, MIB(cma))
            .gauge(MEM_CMA_TOTAL, MIB(512))
            .counter(PSI_MEMORY_SOME, percent * 10_000)
            .counter(PSI_MEMORY_FULL, percent * 4_000)
    }

    #[test]
    fn free_memory_in_cma_only_while_tasks_wait_is_found() {
        let finding = found(RULE, &board(350, 330, 30));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(finding.title.starts_with("330 MiB"), "{}", finding.title);
        let finding = found(RULE, &board(350, 330, 80));
        assert_eq!(finding.severity, Severity::Critical);
    }

    #[test]
    fn clear_when_movable_pages_fill_the_areas_or_free_memory_lies_outside() {
        clear(RULE, &board(30, 10, 30));
        clear(RULE, &board(900, 330, 30));
    }

    #[test]
    fn clear_when_nothing_waits() {
        clear(RULE, &board(350, 330, 1));
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let hour = |cma| {
            Case::over(3600)
                .gauge(MEM_TOTAL, MIB(2000))
                .gauge(MEM_FREE, MIB(350))
                .gauge(MEM_CMA_FREE, MIB(cma))
                .counter_steps(PSI_MEMORY_SOME, &amid_calm(300_000, 0))
        };
        assert_eq!(times(&found(RULE, &hour(330))), [(1800, 1830)]);
        clear(RULE, &hour(40));
    }

    #[test]
    fn not_evaluated_without_cma() {
        let without = Case::over(30)
            .gauge(MEM_TOTAL, MIB(2000))
            .gauge(MEM_FREE, MIB(40))
            .counter(PSI_MEMORY_SOME, 300_000);
        assert_eq!(not_evaluated(RULE, &without).names, ["mem.cma_free"]);
    }
}
