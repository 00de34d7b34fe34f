//! zram that costs more memory than it gives, or that stands in the wrong place.

use timeline::{
    Entity, EntitySeries,
    signals::{
        SWAP_AREA_RANK, SWAP_AREA_USED, ZRAM_FAILED_WRITES, ZRAM_HUGE, ZRAM_LIMIT, ZRAM_ORIG,
        ZRAM_USED,
    },
};
use units::{Bytes, Count, Limit, Ratio};

use crate::evidence::Evidence;
use crate::finding::{Affected, Computed, Finding, Severity};
use crate::fix::Fix;
use crate::missing::{Missing, Need};
use crate::rule::{Outcome, clear, declare_rule};
use crate::stalls::Stalls;

declare_rule! {
    /// zram holds data that hardly compresses, has reached its limit, takes too much RAM, or is used after a disk.
    ///
    /// ## What it means
    /// zram is swap in RAM: it pays only as far as its data compress. Encrypted, compressed or random data take as much
    /// RAM as before and cost CPU on top. A zram that is filled after a disk leaves fast memory idle while pages go to the
    /// slow device.
    /// ## How it is recognised
    /// One of: RAM used is 70 % or more of the data stored, with 5 % of the host's RAM stored; half of the data is kept
    /// uncompressed; RAM used is at 95 % of the device's limit, or writes failed; zram takes 30 % of RAM while tasks stall
    /// for memory 5 % of the time; a disk's swap area is filled before it. A full device and writes that fail while watched
    /// are a warning, the rest is one where tasks stall.
    /// ## Not this
    /// - A ratio of 2 to 4: zram in good order.
    /// - `swap-thrash` on a good zram: the load does not fit, compressed or not.
    /// ## What to do
    /// By fault: after a disk, `swapon -p 100` for zram; at its limit, a larger one; too large, a smaller one with a disk
    /// behind it; data that hardly compress, zstd, else a swap disk or more RAM. For good: the same in
    /// zram-generator.conf. Verify: RAM used is below half of the data stored.
    /// ## References
    /// - kernel Documentation/admin-guide/blockdev/zram.rst, mm_stat
    /// - zram-generator.conf(5)
    pub(crate) RULE = { id: "zram-misuse", since: "0.1.0", purpose: Finding, check: check }
}

/// lz4 reaches about 0.4 on programs' memory, zstd 0.3; measured, random data 1.0 and one random byte a page 0.01.
const POOR: Ratio = Ratio::from_percent(70.0);
/// Less stored data than this proves nothing; an engineering choice.
const WORTH_IT: Ratio = Ratio::from_percent(5.0);
/// Kept as they are (drivers/block/zram, huge_pages), pages gain nothing; an engineering choice: most of them.
const UNCOMPRESSED: Ratio = Ratio::from_percent(50.0);
/// Writes fail at the limit itself (drivers/block/zram, zram_write_page); an engineering choice: just before.
const AT_LIMIT: Ratio = Ratio::from_percent(95.0);
/// An engineering choice.
const MUCH_RAM: Ratio = Ratio::from_percent(30.0);

/// What is wrong with a device, the worst first.
enum Fault {
    Full {
        used: Bytes,
        limit: Bytes,
    },
    Failed {
        writes: Count,
        now: bool,
    },
    Poor {
        used: Bytes,
        stored: Bytes,
        ratio: Ratio,
    },
    Uncompressed {
        huge: Bytes,
        stored: Bytes,
    },
    Large {
        used: Bytes,
        share: Ratio,
    },
    Behind {
        disk: String,
    },
}

fn check(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    let devices: Vec<_> = cx.timeline.entities(Entity::Zram).collect();
    if devices.is_empty() {
        let swaps_to_zram = cx
            .timeline
            .entities(Entity::SwapArea)
            .any(|area| area.key.contains("zram"));
        if swaps_to_zram {
            let def = ZRAM_ORIG.def();
            return Err(Missing::because(vec![def.name], Need::File(def.file)));
        }
        return clear!("there is no zram device");
    }
    let ram = cx.ram()?;
    let stalls = cx
        .timeline
        .whole()
        .map_or_else(Stalls::default, |whole| Stalls::during(cx, &whole));
    let stalled = stalls
        .memory_some
        .is_some_and(|some| some >= Stalls::MEMORY);
    let mut looked = String::new();
    for device in devices {
        let Some(fault) = fault(cx, device, ram, stalled) else {
            looked = good_order(cx, device);
            continue;
        };
        let severity = match fault {
            Fault::Full { .. } | Fault::Failed { now: true, .. } => Severity::Warning,
            _ if stalled => Severity::Warning,
            _ => Severity::Info,
        };
        let mut kinds = vec!["zram's own figures"];
        if stalled {
            kinds.push("memory stalls");
        }
        let finding = described(&device.key, fault, severity);
        return Ok(stalls
            .shown_in(finding)
            .affects([Affected {
                kind: "zram",
                name: device.key.clone(),
                what: good_order(cx, device),
            }])
            .sure(cx.confidence(&kinds, ""))
            .see("kernel: Documentation/admin-guide/blockdev/zram.rst")
            .into());
    }
    clear!("{looked}")
}

fn fault(cx: &Evidence<'_>, device: &EntitySeries, ram: Bytes, stalled: bool) -> Option<Fault> {
    let stored = cx.timeline.gauge_of(device, ZRAM_ORIG)?.max()?.0;
    let used = cx.timeline.gauge_of(device, ZRAM_USED)?.max()?.0;
    let limit = cx
        .timeline
        .last_of(device, ZRAM_LIMIT)
        .and_then(Limit::limited);
    if let Some(limit) = limit
        && used >= limit.share(AT_LIMIT)
    {
        return Some(Fault::Full { used, limit });
    }
    if let Some(writes) = cx.timeline.last_of(device, ZRAM_FAILED_WRITES)
        && writes > Count::ZERO
    {
        let now = cx
            .timeline
            .rate_of(device, ZRAM_FAILED_WRITES)
            .and_then(|failing| failing.max())
            .is_some_and(|(peak, _)| peak.get() > 0.0);
        return Some(Fault::Failed { writes, now });
    }
    if stored >= ram.share(WORTH_IT) {
        let ratio = used.ratio_of(stored)?;
        if ratio >= POOR {
            return Some(Fault::Poor {
                used,
                stored,
                ratio,
            });
        }
        let huge = cx
            .timeline
            .gauge_of(device, ZRAM_HUGE)
            .zip(cx.facts.page_size)
            .and_then(|(huge, page)| Some(huge.to_bytes(page).max()?.0));
        if let Some(huge) = huge.filter(|huge| *huge >= stored.share(UNCOMPRESSED)) {
            return Some(Fault::Uncompressed { huge, stored });
        }
    }
    let share = used.ratio_of(ram)?;
    if share >= MUCH_RAM && stalled {
        return Some(Fault::Large { used, share });
    }
    behind(cx, device).map(|disk| Fault::Behind { disk })
}

/// A disk's swap area in use that is filled before this zram.
fn behind(cx: &Evidence<'_>, device: &EntitySeries) -> Option<String> {
    let areas: Vec<_> = cx.timeline.entities(Entity::SwapArea).collect();
    let mine = areas
        .iter()
        .find(|area| area.key.rsplit('/').next() == Some(device.key.as_str()))?;
    let rank = cx.timeline.last_of(mine, SWAP_AREA_RANK)?;
    areas
        .iter()
        .find(|area| {
            !area.key.contains("zram")
                && cx.timeline.last_of(area, SWAP_AREA_RANK) > Some(rank)
                && cx.timeline.last_of(area, SWAP_AREA_USED) > Some(Bytes::ZERO)
        })
        .map(|area| area.key.clone())
}

fn good_order(cx: &Evidence<'_>, device: &EntitySeries) -> String {
    match (
        cx.timeline.last_of(device, ZRAM_ORIG),
        cx.timeline.last_of(device, ZRAM_USED),
    ) {
        (Some(stored), Some(used)) => format!("{} keeps {stored} in {used} of RAM", device.key),
        _ => format!("{} is not used", device.key),
    }
}

/// Zram before any disk; a capture's text may be anything, and a command must not be.
fn swap_order(name: &str) -> Fix {
    let number = name.strip_prefix("zram").unwrap_or_default();
    let is_device = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    let what = format!(
        "Let zram fill before any disk: swap-priority = 100 below [{name}] in /etc/systemd/zram-generator.conf. swapoff only while available memory exceeds what lies in it."
    );
    match is_device {
        true => Fix::say(what).now(format!("swapoff /dev/{name} && swapon -p 100 /dev/{name}")),
        false => Fix::say(what),
    }
}

/// Why data that do not compress gain nothing, and what helps.
fn hardly_compresses(finding: Finding, name: &str) -> Finding {
    finding
        .cause("The data hardly compress: they are encrypted, compressed or random already.")
        .fix(Fix::say(format!("Try the strongest algorithm, zstd: compression-algorithm = zstd below [{name}] in /etc/systemd/zram-generator.conf; it takes effect when the device is set up anew.")))
        .fix(Fix::say("Where that gains nothing, a swap area on a disk or more RAM instead of zram."))
        .verify(format!(
            "cat /sys/block/{name}/mm_stat: the third number stays below half of the first"
        ))
}

fn described(device: &str, fault: Fault, severity: Severity) -> Finding {
    let name = device;
    let found = |title: String| RULE.found(severity, title);
    match fault {
        Fault::Full { used, limit } => found(format!(
            "{device} is full: it uses {used} of the {limit} of RAM it may, and swapping to it fails."
        ))
        .shows_from(ZRAM_USED, used, limit.share(AT_LIMIT), None, format!("{used} of RAM used"))
        .cause("The device's mem_limit is reached before its size.")
        .fix(Fix::say(format!("Raise the limit while RAM is to spare (/sys/block/{name}/mem_limit, 0 is none; zram-resident-limit in /etc/systemd/zram-generator.conf), or add a swap area on a disk behind it.")))
        .verify(format!(
            "cat /sys/block/{name}/mm_stat: the third number stays below the fourth"
        )),
        Fault::Failed { writes, .. } => found(format!(
            "Swapping to {device} failed {writes} times since boot: its data found no RAM."
        ))
        .shows(ZRAM_FAILED_WRITES, writes, None, format!("{writes} writes failed"))
        .cause("Compressed data need RAM too, and there was none left for them.")
        .fix(Fix::say("Less demand or more RAM; a swap area on a disk behind zram takes what finds no RAM."))
        .verify(format!(
            "cat /sys/block/{name}/io_stat: the second number, failed writes, stands still"
        )),
        Fault::Poor { used, stored, ratio } => hardly_compresses(found(format!(
            "{device} gains little: {stored} of swapped data take {used} of RAM ({ratio})."
        ))
        .shows_from(ZRAM_USED, used, stored.share(POOR), None, format!("{used} of RAM for {stored} of data"))
, name),
        Fault::Uncompressed { huge, stored } => hardly_compresses(found(format!(
            "{device} gains little: {huge} of its {stored} are kept uncompressed."
        ))
        .shows_from(ZRAM_HUGE, huge, stored.share(UNCOMPRESSED), None, format!("{huge} are kept uncompressed"))
, name),
        Fault::Large { used, share } => found(format!(
            "{device} takes {used} of RAM ({share}) while tasks stall for memory."
        ))
        .shows(ZRAM_USED, used, None, format!("{used} of RAM used"))
        .shows_from(Computed(ZRAM_USED), share, MUCH_RAM, None, format!("that is {share} of RAM"))
        .cause("What zram stores is taken from the memory that programs and cache would use.")
        .fix(Fix::say(format!("A smaller zram with a swap area on a disk behind it, less demand, or more RAM: zram-size = ram / 4 below [{name}] in /etc/systemd/zram-generator.conf.")))
        .verify(format!(
            "cat /sys/block/{name}/mm_stat: the third number stays below {MUCH_RAM} of RAM"
        )),
        Fault::Behind { disk } => found(format!(
            "{device} is used after {disk}: pages go to the disk first and to compressed RAM last."
        ))
        .tells(format!("{disk} has the higher priority"))
        .cause("Swap areas fill in the order of their priority.")
        .fix(swap_order(name))
        .verify("swapon --show: zram has the highest priority"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::signals::{MEM_TOTAL, PSI_MEMORY_FULL, PSI_MEMORY_SOME};
    use units::Pages;

    /// A host of 1,000 MiB whose zram keeps `stored` MiB in `used`.
    fn zram(stored: u64, used: u64) -> Case {
        let key = "zram0";
        Case::over(20)
            .gauge(MEM_TOTAL, Bytes::from_mib(1000))
            .gauge_of(Entity::Zram, key, ZRAM_ORIG, Bytes::from_mib(stored))
            .gauge_of(Entity::Zram, key, ZRAM_USED, Bytes::from_mib(used))
    }

    fn stalling(case: Case) -> Case {
        case.counter(PSI_MEMORY_SOME, 300_000)
            .counter(PSI_MEMORY_FULL, 200_000)
    }

    #[test]
    fn data_that_do_not_compress_are_a_note_and_with_stalls_a_warning() {
        assert_eq!(found(RULE, &zram(200, 195)).severity, Severity::Info);
        let finding = found(RULE, &stalling(zram(200, 195)));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.confidence.word(), "confirmed");
        let huge = zram(200, 120).gauge_of(Entity::Zram, "zram0", ZRAM_HUGE, Pages::new(40_000));
        assert!(found(RULE, &huge).title.contains("uncompressed"));
    }

    #[test]
    fn a_good_ratio_and_a_small_device_are_clear() {
        assert!(clear(RULE, &stalling(zram(200, 60))).contains("200 MiB in 60 MiB"));
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
    fn a_disk_that_fills_first_is_the_wrong_order() {
        let order = |disk: u64| {
            zram(200, 60)
                .gauge_of(
                    Entity::SwapArea,
                    "/dev/zram0",
                    SWAP_AREA_RANK,
                    Count::new(32_768 + 5),
                )
                .gauge_of(
                    Entity::SwapArea,
                    "/swapfile",
                    SWAP_AREA_RANK,
                    Count::new(disk),
                )
                .gauge_of(
                    Entity::SwapArea,
                    "/swapfile",
                    SWAP_AREA_USED,
                    Bytes::from_mib(1),
                )
        };
        assert!(found(RULE, &order(32_768 + 10)).title.contains("/swapfile"));
        clear(RULE, &order(32_768 - 2));
    }

    #[test]
    fn swap_on_a_zram_without_figures_is_not_evaluated() {
        let case = Case::over(20).gauge_of(
            Entity::SwapArea,
            "/dev/zram0",
            SWAP_AREA_USED,
            Bytes::from_mib(1),
        );
        assert_eq!(not_evaluated(RULE, &case).names, ["zram.orig"]);
    }
}
