//! Marks set too high: the kernel keeps much memory free that nobody may use.

use timeline::{
    Entity, Stretch, Track,
    facts::{MIN_FREE, THP_ENABLED, WATERMARK_SCALE},
    signals::{
        MEM_FLOOR_HIGH, MEM_FREE, MEM_TOTAL, PSI_MEMORY_SOME, PSWPOUT, REFAULT_FILE, ZONE_BOOST,
        ZONE_HIGH, ZONE_MANAGED, ZONE_MIN, ZONE_PROTECTION,
    },
};
use units::{Bytes, BytesPerSecond, PageSize, Pages, PerSecond, Quantity, Ratio, Span};

use crate::evidence::Evidence;
use crate::finding::{Finding, Severity};
use crate::fix::Fix;
use crate::missing::{Missing, Need};
use crate::rule::{Outcome, clear, declare_rule};

declare_rule! {
    /// The kernel keeps so much memory free that the rest is short: its marks are set too high.
    ///
    /// ## What it means
    /// `vm.min_free_kbytes` and `vm.watermark_scale_factor` decide how much memory the kernel keeps free. kswapd evicts
    /// page cache and swaps out as soon as less is free, so whatever lies below the marks is lost to programs: a host
    /// can thrash or kill processes with gigabytes "free".
    /// ## How it is recognised
    /// The zones' marks add up to more than 10 % of RAM, or `min_free_kbytes` is more than 5 % of it, and it is more
    /// than the kernel would choose by itself. A temporary boost of the marks is taken off. Pages that come back after
    /// eviction, swap-out or stalls while so much is free confirm that it costs something.
    /// ## Not this
    /// - The default: `sqrt(16 × RAM in kB)` kB, or 22 MiB for each zone with huge pages on, at most 5 % of RAM. On arm64
    ///   with 64 KiB pages huge pages take it to those 5 %: reported as information.
    /// - A large value on purpose, as Oracle's engineered systems and NUMA hosts with fast networks have it: usually
    ///   far below 5 %.
    /// - A boost (`zone.boost`): gone after the next reclaim.
    /// ## What to do
    /// Now: `sysctl -w vm.min_free_kbytes=` the default that the finding shows. For good: remove the line from
    /// `/etc/sysctl.conf` and `/etc/sysctl.d/`, or correct it. Verify: free memory falls to the new floor and refaults
    /// and swap-out end.
    /// ## References
    /// - kernel mm/page_alloc.c, init_per_zone_wmark_min; mm/khugepaged.c, set_recommended_min_free_kbytes
    /// - kernel Documentation/admin-guide/sysctl/vm.rst, min_free_kbytes
    pub(crate) RULE = { id: "min-free-too-large", since: "0.1.0", purpose: Finding, check: check }
}

/// An engineering choice. Kernels' own choices reach 8 % (computed below for small hosts with huge pages on).
const FLOOR: Ratio = Ratio::from_percent(10.0);
/// khugepaged stops here (mm/khugepaged.c, set_recommended_min_free_kbytes), and nothing else that the kernel chooses is larger.
const MIN: Ratio = Ratio::from_percent(5.0);
/// The default is computed from RAM as it is now; the kernel computed it at boot from a little less or more.
const BEYOND_DEFAULT: f64 = 1.15;
/// Gaps between the marks this many times the default's are set by hand; the default's vary by rounding only.
const WIDE_GAPS: f64 = 2.0;
/// Free memory up to this part of the floor is held there by reclaim ; kswapd overshoots its mark while it is busy.
const HELD: f64 = 1.3;
/// Pages that come back while memory is kept free.
const REFAULTS: PerSecond<Pages> = crate::calm::Calm::REFAULTS;
const SWAPPED_OUT: BytesPerSecond = BytesPerSecond::from_mib(1.0);
/// Healthy hosts stay below 1 %.
const STALLED: Ratio = Ratio::from_percent(2.0);
/// A default that costs less than this is not worth a word.
const WORTH_A_WORD: Bytes = Bytes::from_mib(256);
/// vm.min_free_kbytes at most where the kernel chooses it without huge pages in mind: mm/page_alloc.c, calculate_min_free_kbytes.
const DEFAULT_AT_MOST_KIB: u32 = 262_144;
const HOLD: Span = Span::from_mins(5);

/// What the marks keep free, boosts taken off.
struct Marks {
    /// Σ min of the zones that min_free_kbytes is spread over.
    min: Track<Bytes>,
    /// Σ min(managed, high + protection).
    floor: Track<Bytes>,
    /// Σ (high − min) / 2: the distance from one mark to the next.
    gap: Track<Bytes>,
    /// Σ managed.
    managed: Bytes,
    /// Zones up to Normal that have memory: khugepaged keeps some in each.
    zones: u64,
}

fn check(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    let ram = cx.gauge(MEM_TOTAL)?;
    let total = cx.ram()?;
    let page = cx.page_size()?;
    let marks = match Marks::read(cx, page) {
        Ok(marks) => marks,
        Err(missing) => return from_the_setting_alone(cx, total, missing),
    };
    let of_ram =
        |track: &Track<Bytes>, share: Ratio| track.at_least_track(&ram.scaled(share.get()));
    let large = of_ram(&marks.floor, FLOOR).or(&of_ram(&marks.min, MIN));
    let (Some(kept), Some(min)) = (marks.floor.last(), marks.min.last()) else {
        return Err(Missing::because(
            vec![ZONE_MIN.def().name, ZONE_HIGH.def().name],
            Need::SameTime,
        ));
    };
    let Some(stretch) = cx.sustained_level(&large, HOLD) else {
        if page.bytes() > Bytes::from_kib(4)
            && min >= WORTH_A_WORD
            && min.as_f64() >= 0.9 * MIN.get() * total.as_f64()
        {
            return huge_page_default(cx, kept, min, page);
        }
        return clear!("the marks keep {kept} free, {} of RAM", cx.of_ram(kept)?);
    };
    let at_end = |track: &Track<Bytes>| track.at(stretch.last);
    let (Some(min), Some(floor), Some(gap)) =
        (at_end(&marks.min), at_end(&marks.floor), at_end(&marks.gap))
    else {
        return Err(Missing::because(
            vec![ZONE_MIN.def().name, ZONE_HIGH.def().name],
            Need::SameTime,
        ));
    };
    let default = default_min_free(cx, marks.managed, page, marks.zones);
    let set_by_hand = min.as_f64() > default.as_f64() * BEYOND_DEFAULT;
    let usual_gap = (min.as_f64() / 4.0).max(marks.managed.as_f64() / 1000.0);
    let wide = gap.as_f64() > usual_gap * WIDE_GAPS;
    if !set_by_hand && !wide {
        return clear!(
            "the marks keep {floor} free, {} of RAM: the kernel's own choice on a host of this size",
            cx.of_ram(floor)?
        );
    }

    let paid = price(cx, &marks, &stretch);
    let (effect, mut kinds) = if paid.is_empty() {
        ("which nobody can use", vec!["the zones' marks"])
    } else {
        (
            "and evicts what is needed to do so",
            vec!["the zones' marks", "reclaim with that much free"],
        )
    };
    let reason = if set_by_hand {
        format!("vm.min_free_kbytes is {min} (the default here is about {default})")
    } else {
        "vm.watermark_scale_factor sets the marks far apart".to_owned()
    };
    let mut finding = RULE
        .found(
            Severity::Warning,
            format!(
                "The kernel keeps {floor} free, {} of RAM, {effect}: {reason}.",
                cx.of_ram(floor)?
            ),
        )
        .during(stretch)
        .graph("free memory", &cx.gauge(MEM_FREE)?)
        .shows_from(
            MEM_FLOOR_HIGH,
            floor,
            total.share(FLOOR),
            None,
            format!("the marks keep {floor} free, {} of RAM", cx.of_ram(floor)?),
        )
        .shows_from(
            ZONE_MIN,
            min,
            total.share(MIN),
            None,
            format!("the min marks add up to {min}; the kernel's own choice is about {default}"),
        );
    for line in paid {
        finding = line.add_to(finding);
    }
    let mut restored = default;
    if let Ok(setting) = cx.number(MIN_FREE) {
        let as_read = Bytes::from_kib(setting);
        let agrees = as_read.as_f64() >= min.as_f64() / BEYOND_DEFAULT;
        if agrees && set_by_hand {
            kinds.push("the setting");
        }
        let later = if agrees {
            ""
        } else {
            " when it was read; it was raised since"
        };
        if !agrees && as_read.as_f64() <= default.as_f64() * BEYOND_DEFAULT {
            restored = as_read;
        }
        finding = finding.shows_fact(
            MIN_FREE,
            setting,
            format!("vm.min_free_kbytes = {setting}{later}"),
        );
    }
    Ok(remedy(cx, finding, set_by_hand, restored, min)
        .not("a boost of the marks", "boosts are taken off these figures")
        .cause(if set_by_hand {
            "Somebody set vm.min_free_kbytes, or RAM was taken away since the kernel chose it."
        } else {
            "Somebody set vm.watermark_scale_factor; each step between the marks is that many 1/10,000 of a zone."
        })
        .verify("memtide check --for 1m under the same load: free memory falls to the new floor; refaults and swap-out end")
        .sure(cx.confidence(&kinds, ""))
        .see("kernel: Documentation/admin-guide/sysctl/vm.rst, min_free_kbytes")
        .into())
}

impl Marks {
    fn read(cx: &Evidence<'_>, page: PageSize) -> Result<Self, Missing> {
        let mut sums: Option<Self> = None;
        for zone in cx.timeline.entities(Entity::Zone) {
            let Ok(managed) = cx.gauge_of(zone, ZONE_MANAGED) else {
                continue;
            };
            if managed.last().is_none_or(|pages| pages == Pages::ZERO) {
                continue;
            }
            let mut min = cx.gauge_of(zone, ZONE_MIN)?;
            let mut high = cx.gauge_of(zone, ZONE_HIGH)?;
            // The printed marks include the boost (5.0 and later).
            if let Ok(boost) = cx.gauge_of(zone, ZONE_BOOST) {
                min = min.minus(&boost);
                high = high.minus(&boost);
            }
            let gap = high.minus(&min).scaled(0.5);
            let mut floor = high;
            if let Ok(protection) = cx.gauge_of(zone, ZONE_PROTECTION) {
                floor = floor.plus(&protection);
            }
            let floor = floor.lower(&managed);
            let name = zone.key.rsplit('/').next().unwrap_or_default();
            let low = u64::from(matches!(name, "DMA" | "DMA32" | "Normal"));
            let Some(size) = managed.last().map(|pages| pages.to_bytes(page)) else {
                continue;
            };
            let (min, floor, gap) = (min.to_bytes(page), floor.to_bytes(page), gap.to_bytes(page));
            sums = Some(match sums {
                None => Self {
                    min,
                    floor,
                    gap,
                    managed: size,
                    zones: low,
                },
                Some(sum) => Self {
                    min: sum.min.plus(&min),
                    floor: sum.floor.plus(&floor),
                    gap: sum.gap.plus(&gap),
                    managed: sum.managed + size,
                    zones: sum.zones + low,
                },
            });
        }
        sums.ok_or_else(|| {
            Missing::because(
                vec![ZONE_MIN.def().name, ZONE_HIGH.def().name, MIN_FREE.name],
                Need::File(ZONE_MIN.def().file),
            )
        })
    }
}

/// What the kernel would choose for `vm.min_free_kbytes`: `sqrt(16 × RAM)` in kB, raised by khugepaged to eleven page
/// blocks for each zone (2 + 3² migrate types), at most 5 % of RAM.
fn default_min_free(cx: &Evidence<'_>, managed: Bytes, page: PageSize, zones: u64) -> Bytes {
    let root = (16.0 * managed.as_f64() / 1024.0).sqrt();
    let plain = root.clamp(128.0, f64::from(DEFAULT_AT_MOST_KIB)) * 1024.0;
    let huge = if cx.choice(THP_ENABLED) == Ok("never") {
        0.0
    } else {
        let blocks = 11.0 * Bytes::new(zones).as_f64();
        (blocks * page_block(page).as_f64()).min(MIN.get() * managed.as_f64())
    };
    Bytes::from_f64(plain.max(huge))
}

/// A page table's worth of pages: 2 MiB with 4 KiB pages, 32 MiB with 16 KiB, 512 MiB with 64 KiB.
fn page_block(page: PageSize) -> Bytes {
    let page = page.bytes().get();
    Bytes::new(page * (page / 8))
}

/// A line of evidence that the kept memory is missed.
enum Price {
    Refaults(PerSecond<Pages>),
    SwappedOut(BytesPerSecond),
    Stalled(Ratio),
}

impl Price {
    fn add_to(self, finding: Finding) -> Finding {
        match self {
            Self::Refaults(rate) => finding.shows_from(
                REFAULT_FILE,
                rate,
                REFAULTS,
                None,
                format!("{rate} of files read again after eviction"),
            ),
            Self::SwappedOut(rate) => finding.shows_from(
                PSWPOUT,
                rate,
                SWAPPED_OUT,
                None,
                format!("{rate} swapped out"),
            ),
            Self::Stalled(share) => finding.shows_from(
                PSI_MEMORY_SOME,
                share,
                STALLED,
                None,
                format!("tasks waited for memory {share} of the time"),
            ),
        }
    }
}

/// What keeping it free costs; only where reclaim holds free memory near these marks.
fn price(cx: &Evidence<'_>, marks: &Marks, stretch: &Stretch) -> Vec<Price> {
    let held = cx.gauge(MEM_FREE).is_ok_and(|free| {
        let condition = free.at_most_track(&marks.floor.scaled(HELD));
        (stretch.first..=stretch.last).any(|i| condition.at(i) == Some(true))
    });
    if !held {
        return Vec::new();
    }
    let refaults = cx
        .refaults_file()
        .ok()
        .and_then(|r| r.mean_in(stretch))
        .filter(|rate| *rate >= REFAULTS)
        .map(Price::Refaults);
    let swapped = cx
        .bytes_rate(PSWPOUT)
        .ok()
        .and_then(|r| r.mean_in(stretch))
        .filter(|rate| *rate >= SWAPPED_OUT)
        .map(Price::SwappedOut);
    let stalled = cx
        .stall(PSI_MEMORY_SOME)
        .ok()
        .and_then(|s| s.mean_in(stretch))
        .filter(|share| *share >= STALLED)
        .map(Price::Stalled);
    [refaults, swapped, stalled].into_iter().flatten().collect()
}

/// Back to a value that needs no setting: whoever set another must not do so again.
fn unset(cx: &Evidence<'_>, what: &str, fact: timeline::Fact, value: u64) -> Fix {
    let what = format!(
        "{what} To keep it, remove {} from /etc/sysctl.conf, /etc/sysctl.d/ and the tuned profile.",
        fact.name
    );
    Fix::tunable(cx, what, fact, value).keep("")
}

fn remedy(
    cx: &Evidence<'_>,
    finding: Finding,
    set_by_hand: bool,
    default: Bytes,
    min: Bytes,
) -> Finding {
    let (default, min) = (default.get() / 1024, min.get() / 1024);
    if set_by_hand {
        return finding.fix(
            unset(
                cx,
                &format!("Go back to what the kernel would choose, about {default} kB."),
                MIN_FREE,
                default,
            )
            .undo(format!("sysctl -w {}={min}", MIN_FREE.name)),
        );
    }
    finding.fix(unset(
        cx,
        "Bring the marks together again.",
        WATERMARK_SCALE,
        10,
    ))
}

/// Large base pages make large huge pages, and khugepaged keeps eleven in each zone: a default, and yet worth knowing.
fn huge_page_default(
    cx: &Evidence<'_>,
    floor: Bytes,
    min: Bytes,
    page: PageSize,
) -> Result<Outcome, Missing> {
    let block = page_block(page);
    Ok(RULE.found(
        Severity::Info,
        format!(
            "The kernel keeps {floor} free, {} of RAM, so that huge pages of {block} stay possible.",
            cx.of_ram(floor)?
        ),
    )
    .shows(
        MEM_FLOOR_HIGH,
        floor,
        None,
        format!(
            "the marks keep {floor} free; the min marks add up to {min}, the 5 % at which the kernel stops"
        ),
    )
    .cause(format!(
        "Base pages are {} here; with transparent huge pages on the kernel keeps eleven huge pages' worth in each zone.",
        page.bytes()
    ))
    .fix(Fix::file(
        "Where huge pages of this size are not wanted, switch them off (for good also: transparent_hugepage=never on the kernel's command line).",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "never",
        cx.choice(THP_ENABLED).ok(),
    ))
    .fix(Fix::tunable(
        cx,
        "Then set the reserve, which the kernel sets anew whenever huge pages are switched.",
        MIN_FREE,
        DEFAULT_AT_MOST_KIB,
    ))
    .verify("memtide check: the floor is below 2 % of RAM")
    .sure(cx.confidence(&["the zones' marks", "the page size"], ""))
    .see("kernel: mm/khugepaged.c, set_recommended_min_free_kbytes")
    .into())
}

/// Without the zones' marks only the setting can be judged.
fn from_the_setting_alone(
    cx: &Evidence<'_>,
    total: Bytes,
    missing: Missing,
) -> Result<Outcome, Missing> {
    let Ok(setting) = cx.number(MIN_FREE) else {
        return Err(missing);
    };
    let min = Bytes::from_kib(setting);
    let part = cx.of_ram(min)?;
    // The kernel's own choice ends at 5 %, rounded; one step beyond is certainly set by hand.
    if part.get() < MIN.get() * BEYOND_DEFAULT {
        return clear!("vm.min_free_kbytes is {min}, {part} of RAM");
    }
    Ok(RULE
        .found(
            Severity::Warning,
            format!("The kernel keeps at least {min} free, {part} of RAM: vm.min_free_kbytes is set too high."),
        )
        .shows_fact(
            MIN_FREE,
            setting,
            format!("vm.min_free_kbytes = {setting}, {part} of RAM; the kernel itself chooses 5 % at most"),
        )
        .cause("Somebody set vm.min_free_kbytes, or RAM was taken away since the kernel chose it.")
        .fix(unset(cx, "Go back to 1 % of RAM or less.", MIN_FREE, total.get() / 1024 / 100).undo(format!("sysctl -w {}={setting}", MIN_FREE.name)))
        .verify("memtide check --for 1m under the same load: free memory falls to the new floor")
        .sure(cx.confidence(&["the setting"], "the zones' marks (/proc/zoneinfo) would settle it"))
        .see("kernel: Documentation/admin-guide/sysctl/vm.rst, min_free_kbytes")
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::signals::PSI_MEMORY_SOME;

    const PAGES_PER_MIB: u64 = 256;

    /// A host of one zone, marks in MiB.
    fn marks(ram: u64, min: u64, high: u64, free: u64) -> Case {
        let pages = |mib: u64| Pages::new(mib * PAGES_PER_MIB);
        Case::over(20)
            .gauge(MEM_TOTAL, Bytes::from_mib(ram))
            .gauge(MEM_FREE, Bytes::from_mib(free))
            .gauge_of(Entity::Zone, "0/DMA32", ZONE_MANAGED, pages(ram))
            .gauge_of(Entity::Zone, "0/DMA32", ZONE_MIN, pages(min))
            .gauge_of(Entity::Zone, "0/DMA32", ZONE_HIGH, pages(high))
    }

    #[test]
    fn a_fifth_of_ram_is_found_and_its_price_confirms_it() {
        let idle = found(RULE, &marks(470, 94, 141, 400));
        assert_eq!(idle.severity, Severity::Warning);
        assert_eq!(idle.confidence.word(), "probable");
        let paid = found(RULE, &marks(470, 94, 141, 130).counter(REFAULT_FILE, 7000));
        assert_eq!(paid.confidence.word(), "confirmed");
        assert!(
            paid.fixes[0]
                .now
                .starts_with("sysctl -w vm.min_free_kbytes=")
        );
        assert!(
            paid.fixes[0]
                .undo
                .contains("sysctl -w vm.min_free_kbytes=96256")
        );
    }

    #[test]
    fn refaults_far_above_the_floor_are_not_its_price() {
        let finding = found(RULE, &marks(470, 94, 141, 400).counter(REFAULT_FILE, 7000));
        assert_eq!(finding.confidence.word(), "probable");
    }

    #[test]
    fn defaults_are_clear_on_hosts_of_all_sizes() {
        for ram in [128_u64, 300, 512, 768, 1024, 4096, 65_536] {
            // khugepaged's choice with one zone, at most 5 %; high = 1.5 × min, at least 0.2 % of RAM more.
            let min = (ram / 20).min(22);
            let high = (min * 3 / 2).max(min + ram / 500);
            clear(RULE, &marks(ram, min, high, ram / 2));
        }
    }

    #[test]
    fn a_boost_is_not_a_setting() {
        let boost = Pages::new(60 * PAGES_PER_MIB);
        let boosted = marks(470, 64, 65, 200);
        clear(
            RULE,
            &boosted.gauge_of(Entity::Zone, "0/DMA32", ZONE_BOOST, boost),
        );
    }

    #[test]
    fn marks_far_apart_are_a_setting_too() {
        let case = marks(1000, 22, 160, 500).fact(WATERMARK_SCALE, "690");
        let finding = found(RULE, &case);
        assert!(finding.title.contains("watermark_scale_factor"));
        assert!(finding.fixes[0].undo.ends_with("=690"));
    }

    #[test]
    fn a_value_set_while_watched_is_found_by_the_marks() {
        let pages = |mib: u64| Pages::new(mib * PAGES_PER_MIB);
        let steps = |early: u64, late: u64| {
            let mut all = vec![pages(early); 3];
            all.push(pages(late));
            all
        };
        let case = Case::over(20)
            .gauge(MEM_TOTAL, Bytes::from_mib(470))
            .gauge(MEM_FREE, Bytes::from_mib(130))
            .fact(MIN_FREE, "2739")
            .gauge_of(Entity::Zone, "0/DMA32", ZONE_MANAGED, pages(470))
            .gauge_steps_of(Entity::Zone, "0/DMA32", ZONE_MIN, &steps(3, 94))
            .gauge_steps_of(Entity::Zone, "0/DMA32", ZONE_HIGH, &steps(4, 141));
        let finding = found(RULE, &case);
        assert!(
            finding
                .evidence
                .iter()
                .any(|line| line.text.contains("raised since"))
        );
    }

    #[test]
    fn large_base_pages_are_worth_a_word() {
        let pages = |mib: u64| Pages::new(mib * 16);
        let mut case = Case::once()
            .gauge(MEM_TOTAL, Bytes::from_gib(32))
            .gauge(MEM_FREE, Bytes::from_gib(4))
            .gauge_of(Entity::Zone, "0/Normal", ZONE_MANAGED, pages(32_768))
            .gauge_of(Entity::Zone, "0/Normal", ZONE_MIN, pages(1638))
            .gauge_of(Entity::Zone, "0/Normal", ZONE_HIGH, pages(2457));
        case.facts.page_size = PageSize::from_bytes(65_536);
        assert_eq!(found(RULE, &case).severity, Severity::Info);
    }

    #[test]
    fn one_look_shows_it_and_stalls_are_a_price() {
        let mut case = marks(470, 94, 141, 130).counter(PSI_MEMORY_SOME, 300_000);
        assert_eq!(found(RULE, &case).confidence.word(), "confirmed");
        case = Case::once()
            .gauge(MEM_TOTAL, Bytes::from_mib(470))
            .fact(MIN_FREE, "96256");
        assert_eq!(found(RULE, &case).confidence.word(), "probable");
        clear(
            RULE,
            &Case::once()
                .gauge(MEM_TOTAL, Bytes::from_mib(470))
                .fact(MIN_FREE, "23500"),
        );
    }

    #[test]
    fn needs_marks_or_the_setting() {
        let missing = not_evaluated(RULE, &Case::once().gauge(MEM_TOTAL, Bytes::from_mib(470)));
        assert_eq!(
            missing.names,
            ["zone.min", "zone.high", "vm.min_free_kbytes"]
        );
    }
}
