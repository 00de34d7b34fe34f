//! zram that saves little memory, or that is used in the wrong order.

use timeline::signals::{
    PSI_MEMORY_SOME, SWAP_AREA_RANK, SWAP_AREA_USED, ZRAM_FAILED_WRITES, ZRAM_HUGE, ZRAM_LIMIT,
    ZRAM_ORIG, ZRAM_USED,
};

use crate::prelude::*;
use crate::trigger::{computed_of, total};

declare_rule! {
    /// zram holds data that hardly compresses, has reached its limit, takes too much RAM, or is used after a disk.
    ///
    /// ## What it means
    /// zram is swap in RAM: it pays only as far as its data compresses. Encrypted, compressed or random data takes as
    /// much RAM as before and costs CPU on top. If a zram is filled after a disk, fast memory stays unused while pages
    /// go to the slow device.
    /// ## How it is recognised
    /// For {LEVEL} or longer, or in a single sample, one of: RAM used is {POOR} or more of the data stored, with
    /// {WORTH_IT} of the host's RAM stored; half of the data is stored uncompressed; RAM used is at {AT_LIMIT} of the
    /// device's limit, or writes failed; zram takes {MUCH_RAM} of RAM while tasks stall for memory
    /// {PressureWindow::MEMORY} of the time; a disk's swap area is filled before it. A full device and failing writes
    /// are a warning; the other faults are one only if tasks stall like this for {STALL} or longer.
    /// ## Not this
    /// - A ratio of 2 to 4: healthy zram.
    /// - `swap-thrash` on a healthy zram: the load does not fit, compressed or not.
    /// ## What to do
    /// By fault: after a disk, `swapon -p 100` for zram; at its limit, a larger limit; too large, a smaller zram with a
    /// disk behind it; data that hardly compresses, zstd, otherwise a swap disk or more RAM. For good: the same in
    /// zram-generator.conf. Verify: RAM used is below half of the data stored.
    /// ## References
    /// - kernel Documentation/admin-guide/blockdev/zram.rst, mm_stat
    /// - zram-generator.conf(5)
    pub(crate) RULE = { id: "zram-misuse", since: "0.1.0", class: Setting,
        numbers: [LEVEL, POOR, WORTH_IT, AT_LIMIT, MUCH_RAM, PressureWindow::MEMORY, STALL],
        trigger: trigger, story: story,
    }
}

/// Measured: lz4 reaches about 0.4 on program memory, zstd 0.3; random data 1.0, one random byte per page 0.01.
const POOR: Ratio = Ratio::from_percent(70.0);
/// With less data stored than this share of RAM, the ratio means little; an engineering choice.
const WORTH_IT: Ratio = Ratio::from_percent(5.0);
/// Pages stored uncompressed (drivers/block/zram, huge_pages) save nothing; an engineering choice: most of them.
const UNCOMPRESSED: Ratio = Ratio::from_percent(50.0);
/// Writes fail at the limit itself (drivers/block/zram, zram_write_page); an engineering choice: just before.
const AT_LIMIT: Ratio = Ratio::from_percent(95.0);
/// An engineering choice.
const MUCH_RAM: Ratio = Ratio::from_percent(30.0);
const TRUE: Count = Count::new(1);

/// Faults of a device, the most severe first.
enum ZramFault {
    Full { used: Bytes, limit: Bytes },
    Failed { writes: Count, now: bool },
    Poor { used: Bytes, stored: Bytes, ratio: Ratio },
    Uncompressed { huge: Bytes, stored: Bytes },
    Large { used: Bytes, share: Ratio },
    Behind { disk: String },
}

fn trigger() -> Trigger {
    let full = gauge(ZRAM_USED).at_least("RAM used by zram", limit(ZRAM_LIMIT).share(AT_LIMIT));
    let failed = total(ZRAM_FAILED_WRITES).at_least("failed writes", Count::new(1));
    let large = gauge(ZRAM_USED).at_least("RAM used by zram", ram().share(MUCH_RAM));
    let behind = computed_of("used after a disk", is_behind).at_least("used after a disk", TRUE);
    Trigger::on(
        Subjects::Each(Entity::Zram, |_, _| true),
        LEVEL,
        any![saves_little(), full, failed, large, behind],
    )
}

/// Much data is stored and takes hardly less RAM.
fn saves_little() -> Predicate {
    let stored = || gauge(ZRAM_ORIG);
    let huge = gauge(ZRAM_HUGE).bytes();
    all![
        stored().at_least("data in zram", ram().share(WORTH_IT)),
        any![
            gauge(ZRAM_USED).at_least("RAM used by zram", stored().share(POOR)),
            huge.at_least("stored uncompressed", stored().share(UNCOMPRESSED)),
        ],
    ]
}

/// 1 while a disk's swap area is in use that is filled before the zram.
fn is_behind(cx: &Evidence<'_>, device: &EntitySeries) -> Result<Numbers, Missing> {
    let lacks = || cx.lacks_signal(SWAP_AREA_RANK.id());
    let area = area_of(cx, device).ok_or_else(lacks)?;
    let rank = cx.gauge_of(area, SWAP_AREA_RANK)?;
    let mut behind: Numbers = cx.timeline.constant(Ratio::new(0.0));
    for disk in disks(cx) {
        let (Ok(above), Ok(used)) =
            (cx.gauge_of(disk, SWAP_AREA_RANK), cx.gauge_of(disk, SWAP_AREA_USED))
        else {
            continue;
        };
        let (above, rank): (Numbers, Numbers) = (above.cast(), rank.clone().cast());
        let before = above
            .zip(&rank, |disk, zram| if disk > zram { 1.0 } else { 0.0 })
            .zip(&used.cast(), |before, used| if used > 0.0 { before } else { 0.0 });
        behind = behind.zip(&before, f64::max);
    }
    Ok(behind)
}

/// The swap area on a zram device.
fn area_of<'a>(cx: &Evidence<'a>, device: &EntitySeries) -> Option<&'a EntitySeries> {
    let mut areas = cx.timeline.entities(Entity::SwapArea);
    areas.find(|area| area.key.rsplit('/').next() == Some(device.key.as_str()))
}

fn disks<'a>(cx: &Evidence<'a>) -> impl Iterator<Item = &'a EntitySeries> {
    let areas = cx.timeline.entities(Entity::SwapArea);
    areas.filter(|area| !area.key.contains("zram"))
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let (device, stretch) = (incident.entity()?, &incident.stretch);
    let stalling = stalling(cx, stretch);
    let is_stalled = stalling.is_some();
    let stalls = PressureWindow::during(cx, &stalling.unwrap_or(*stretch));
    let Some(fault) = fault(cx, device, stretch, is_stalled)? else {
        return clear!("{}", usage(cx, device, stretch));
    };
    let fails = matches!(fault, ZramFault::Full { .. } | ZramFault::Failed { now: true, .. });
    let severity = Severity::warning_if(fails || is_stalled);
    let usage = usage(cx, device, stretch);
    Ok(described(&device.key, fault, severity)
        .counts_as("zram's own figures")
        .and(|finding| stalls.shown_in(finding))
        .counts_if(is_stalled, "memory stalls")
        .affects([Affected::new("zram", &device.key, usage)])
        .sure_by_kinds(cx, "")
        .into())
}

/// The longest part of a stretch in which tasks stall for memory; all of it where only pressure averages are known.
fn stalling(cx: &Evidence<'_>, stretch: &Stretch) -> Option<Stretch> {
    let Ok(share) = cx.stall(PSI_MEMORY_SOME) else {
        let some = PressureWindow::during(cx, stretch).memory_some;
        return (some? >= PressureWindow::MEMORY).then_some(*stretch);
    };
    share
        .at_least(PressureWindow::MEMORY)
        .bridged_runs()
        .into_iter()
        .filter_map(|run| {
            let (first, last) = (run.first.max(stretch.first), run.last.min(stretch.last));
            cx.timeline.stretch(first, last)
        })
        .filter(|run| run.duration() >= STALL)
        .max_by_key(Stretch::duration)
}

/// The most severe fault of an incident, at the time at which the device took most RAM.
fn fault(
    cx: &Evidence<'_>,
    device: &EntitySeries,
    stretch: &Stretch,
    is_stalled: bool,
) -> Result<Option<ZramFault>, Missing> {
    let timeline = cx.timeline;
    let used = cx.gauge_of(device, ZRAM_USED)?.max_in(stretch);
    let (used, at) = used.unwrap_or_default();
    let stored = cx.gauge_of(device, ZRAM_ORIG)?.at(at).unwrap_or_default();
    let limit = cx.gauge_of(device, ZRAM_LIMIT).ok();
    let limit = limit.and_then(|limit| limit.at(at)?.limited());
    if let Some(limit) = limit.filter(|limit| used >= limit.share(AT_LIMIT)) {
        return Ok(Some(ZramFault::Full { used, limit }));
    }
    let failed = timeline.latest_of(device, ZRAM_FAILED_WRITES, stretch.last);
    if let Some(writes) = failed.filter(|writes| *writes > Count::ZERO) {
        let failing = timeline.rate_of(device, ZRAM_FAILED_WRITES);
        let most = failing.and_then(|failing| failing.max_in(stretch));
        let now = most.is_some_and(|(most, _)| most.get() > 0.0);
        return Ok(Some(ZramFault::Failed { writes, now }));
    }
    let ram = cx.ram()?;
    if stored >= ram.share(WORTH_IT)
        && let Some(fault) = poor_compression(cx, device, (used, stored), at)
    {
        return Ok(Some(fault));
    }
    let share = cx.of_ram(used)?;
    if share >= MUCH_RAM && is_stalled {
        return Ok(Some(ZramFault::Large { used, share }));
    }
    let disk = behind(cx, device, stretch.last);
    Ok(disk.map(|disk| ZramFault::Behind { disk }))
}

/// Whether the device saves too little RAM at a sample.
fn poor_compression(
    cx: &Evidence<'_>,
    device: &EntitySeries,
    (used, stored): (Bytes, Bytes),
    at: usize,
) -> Option<ZramFault> {
    let ratio = used.ratio_of(stored)?;
    if ratio >= POOR {
        return Some(ZramFault::Poor { used, stored, ratio });
    }
    let huge = cx.gauge_of(device, ZRAM_HUGE).ok()?;
    let huge = huge.to_bytes(cx.page_size().ok()?).at(at)?;
    (huge >= stored.share(UNCOMPRESSED)).then_some(ZramFault::Uncompressed { huge, stored })
}

/// The disk's swap area that is in use and is filled before this zram.
fn behind(cx: &Evidence<'_>, device: &EntitySeries, at: usize) -> Option<String> {
    let level = |area, signal| cx.timeline.latest_of(area, signal, at);
    let rank = level(area_of(cx, device)?, SWAP_AREA_RANK)?;
    let first = disks(cx).find(|disk| {
        let used = cx.timeline.latest_of(disk, SWAP_AREA_USED, at);
        level(disk, SWAP_AREA_RANK) > Some(rank) && used > Some(Bytes::ZERO)
    });
    first.map(|disk| disk.key.clone())
}

fn usage(cx: &Evidence<'_>, device: &EntitySeries, stretch: &Stretch) -> String {
    let level = |signal| cx.timeline.latest_of(device, signal, stretch.last);
    match (level(ZRAM_ORIG), level(ZRAM_USED)) {
        (Some(stored), Some(used)) => format!("{stored} in {used} of RAM"),
        _ => "not used".to_owned(),
    }
}

/// Orders zram before any disk. The name comes from a file that may contain anything, so it is checked before use in a
/// command.
fn swap_order(name: &str) -> Fix {
    let number = name.strip_prefix("zram").unwrap_or_default();
    let is_device = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    let what = format!(
        "Fill zram before any disk: swap-priority = 100 below [{name}] in \
         /etc/systemd/zram-generator.conf. Run swapoff only while available memory exceeds its \
         contents."
    );
    if is_device {
        Fix::say(what).run(format!("swapoff /dev/{name} && swapon -p 100 /dev/{name}"))
    } else {
        Fix::say(what)
    }
}

/// Adds cause and fixes for data that does not compress.
fn hardly_compresses(finding: Finding, name: &str) -> Finding {
    finding
        .cause("The data hardly compresses: it is encrypted, compressed or random already.")
        .fix(Fix::say(format!(
            "Try the strongest algorithm, zstd: compression-algorithm = zstd below [{name}] in \
             /etc/systemd/zram-generator.conf; it takes effect when the device is set up again."
        )))
        .fix(Fix::say(
            "If that does not help, use a swap area on a disk or more RAM instead of zram.",
        ))
        .verify(format!(
            "cat /sys/block/{name}/mm_stat: the third number stays below half of the first"
        ))
}

fn described(device: &str, fault: ZramFault, severity: Severity) -> Finding {
    let name = device;
    let found = |title: String| RULE.found(severity, title);
    match fault {
        ZramFault::Full { used, limit } => found(format!(
            "{device} is full: it uses {used} of its limit of {limit}, and swapping to it fails."
        ))
        .shows_from(ZRAM_USED, used, limit.share(AT_LIMIT), None, format!("{used} of RAM used"))
        .cause("The device's mem_limit is reached before its size.")
        .fix(Fix::say(format!(
            "Raise the limit if RAM is available (/sys/block/{name}/mem_limit, 0 is none; \
             zram-resident-limit in /etc/systemd/zram-generator.conf), or add a swap area on a \
             disk behind it."
        )))
        .verify(format!("cat /sys/block/{name}/mm_stat: the third number stays below the fourth")),
        ZramFault::Failed { writes, .. } => found(format!(
            "Swapping to {device} failed {writes} times since boot: no RAM was left for its data."
        ))
        .shows(ZRAM_FAILED_WRITES, writes, None, format!("{writes} writes failed"))
        .cause("Compressed data needs RAM too, and none was left.")
        .fix(Fix::say(
            "Reduce demand or add RAM; a swap area on a disk behind zram takes the data that does \
             not fit.",
        ))
        .verify(format!(
            "cat /sys/block/{name}/io_stat: the second number, failed writes, does not rise"
        )),
        ZramFault::Poor { used, stored, ratio } => hardly_compresses(
            found(format!(
                "{device} saves little RAM: {stored} of swapped data takes {used} ({ratio})."
            ))
            .shows_from(
                ZRAM_USED,
                used,
                stored.share(POOR),
                None,
                format!("{used} of RAM for {stored} of data"),
            ),
            name,
        ),
        ZramFault::Uncompressed { huge, stored } => hardly_compresses(
            found(format!(
                "{device} saves little RAM: {huge} of its {stored} is stored uncompressed."
            ))
            .shows_from(
                ZRAM_HUGE,
                huge,
                stored.share(UNCOMPRESSED),
                None,
                format!("{huge} is stored uncompressed"),
            ),
            name,
        ),
        ZramFault::Large { used, share } => {
            found(format!("{device} takes {used} of RAM ({share}) while tasks stall for memory."))
                .shows(ZRAM_USED, used, None, format!("{used} of RAM used"))
                .shows_from(
                    Computed(ZRAM_USED),
                    share,
                    MUCH_RAM,
                    None,
                    format!("that is {share} of RAM"),
                )
                .cause("zram stores its data in RAM that programs and page cache could use.")
                .fix(Fix::say(format!(
                    "Use a smaller zram with a swap area on a disk behind it (zram-size = ram / 4 \
                     below [{name}] in /etc/systemd/zram-generator.conf), reduce demand, or add \
                     RAM."
                )))
                .verify(format!(
                    "cat /sys/block/{name}/mm_stat: the third number stays below {MUCH_RAM} of RAM"
                ))
        }
        ZramFault::Behind { disk } => found(format!(
            "{device} is used after {disk}: pages go to the disk first and to zram last."
        ))
        .with_line(format!("{disk} has the higher priority"))
        .cause("The kernel fills swap areas in the order of their priority.")
        .fix(swap_order(name))
        .verify("swapon --show: zram has the highest priority"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::signals::{MEM_TOTAL, PSI_MEMORY_FULL};
    use units::{Limit, Pages};

    /// A host of 1,000 MiB with a zram that stores `stored` MiB in `used`.
    fn zram(stored: u64, used: u64) -> Case {
        let key = "zram0";
        Case::over(20)
            .gauge(MEM_TOTAL, Bytes::from_mib(1000))
            .gauge_of(Entity::Zram, key, ZRAM_ORIG, Bytes::from_mib(stored))
            .gauge_of(Entity::Zram, key, ZRAM_USED, Bytes::from_mib(used))
    }

    fn stalling(case: Case) -> Case {
        case.counter(PSI_MEMORY_SOME, 300_000).counter(PSI_MEMORY_FULL, 200_000)
    }

    #[test]
    fn incompressible_data_is_informational_and_with_stalls_a_warning() {
        assert_eq!(found(RULE, &zram(200, 195)).severity, Severity::Info);
        let finding = found(RULE, &stalling(zram(200, 195)));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.confidence.word(), "confirmed");
        let huge = zram(200, 120).gauge_of(Entity::Zram, "zram0", ZRAM_HUGE, Pages::new(40_000));
        assert!(found(RULE, &huge).title.contains("uncompressed"));
    }

    #[test]
    fn clear_with_a_good_ratio_or_a_small_device() {
        clear(RULE, &stalling(zram(200, 60)));
        clear(RULE, &zram(20, 20));
        clear(RULE, &Case::over(20));
    }

    #[test]
    fn a_full_device_is_a_warning() {
        let case = zram(200, 60).gauge_of(
            Entity::Zram,
            "zram0",
            ZRAM_LIMIT,
            Limit::Bytes(Bytes::from_mib(60)),
        );
        assert_eq!(found(RULE, &case).severity, Severity::Warning);
    }

    #[test]
    fn a_large_share_of_ram_counts_while_tasks_stall() {
        clear(RULE, &zram(1000, 350));
        found(RULE, &stalling(zram(1000, 350)));
    }

    #[test]
    fn a_disk_that_fills_first_is_found() {
        let order = |disk: u64| {
            zram(200, 60)
                .gauge_of(Entity::SwapArea, "/dev/zram0", SWAP_AREA_RANK, Count::new(32_768 + 5))
                .gauge_of(Entity::SwapArea, "/swapfile", SWAP_AREA_RANK, Count::new(disk))
                .gauge_of(Entity::SwapArea, "/swapfile", SWAP_AREA_USED, Bytes::from_mib(1))
        };
        assert!(found(RULE, &order(32_768 + 10)).title.contains("/swapfile"));
        clear(RULE, &order(32_768 - 2));
    }

    #[test]
    fn not_evaluated_without_figures_of_the_zram() {
        let case = Case::over(20).gauge_of(
            Entity::SwapArea,
            "/dev/zram0",
            SWAP_AREA_USED,
            Bytes::from_mib(1),
        );
        assert_eq!(not_evaluated(RULE, &case).names, ["zram.orig"]);
    }

    #[test]
    fn finds_30_s_within_an_hour_with_the_same_severity() {
        let an_hour = |stored: u64, then: u64| {
            let mut used = vec![Bytes::from_mib(10); 3600];
            used[1800..1830].fill(Bytes::from_mib(then));
            let mut stalls = vec![0; 3600];
            stalls[1805..1815].fill(300_000);
            Case::over(3600)
                .gauge(MEM_TOTAL, Bytes::from_mib(1000))
                .gauge_of(Entity::Zram, "zram0", ZRAM_ORIG, Bytes::from_mib(stored))
                .gauge_steps_of(Entity::Zram, "zram0", ZRAM_USED, &used)
                .counter_steps(PSI_MEMORY_SOME, &stalls)
        };
        assert_eq!(found(RULE, &an_hour(200, 195)).severity, Severity::Warning);
        assert_eq!(found(RULE, &an_hour(1000, 350)).severity, Severity::Warning);
        clear(RULE, &an_hour(200, 60));
    }
}
