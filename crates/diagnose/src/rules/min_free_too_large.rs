//! Watermarks set too high: the kernel keeps much memory free that no program can use.

use timeline::Condition;
use timeline::facts::{MIN_FREE, THP_ENABLED, WATERMARK_SCALE};
use timeline::settings::{
    MIN_FREE_MAX_KIB, MIN_FREE_OF_HUGE_PAGES_MAX, WATERMARK_SCALE_DEFAULT, default_min_free,
    huge_page_of,
};
use timeline::signals::{
    MEM_FLOOR_HIGH, MEM_FREE, PSI_MEMORY_SOME, PSWPOUT, REFAULT_FILE, ZONE_BOOST, ZONE_HIGH,
    ZONE_MANAGED, ZONE_MIN, ZONE_PROTECTION,
};
use units::PageSize;

use crate::finding::{Lasting, SettingChange};
use crate::measures::floor::Floor;
use crate::measures::quiet::Quiet;
use crate::measures::readings::RECLAIM_COSTS;
use crate::prelude::*;

declare_rule! {
    /// The zone watermarks are set too high: the kernel keeps so much memory free that programs run short.
    ///
    /// ## What it means
    /// `vm.min_free_kbytes` and `vm.watermark_scale_factor` set how much memory the kernel keeps free. kswapd evicts
    /// page cache and swaps out as soon as less is free, so memory below the watermarks is lost to programs: a host can
    /// thrash or kill processes with gigabytes "free".
    /// ## How it is recognised
    /// For {LEVEL} or longer, or in a single sample, the zones' watermarks add up to {FLOOR} of RAM or more, or
    /// `min_free_kbytes` to {RESERVE_SHARE_MIN}, and that exceeds the kernel's default. A temporary boost of the
    /// watermarks is subtracted. Without zones, `min_free_kbytes` alone must be {BEYOND_DEFAULT} times those
    /// {RESERVE_SHARE_MIN}. Refaults, swap-out or stalls of {STALL} or longer while that much is free confirm that it
    /// costs something.
    /// ## Not this
    /// - The default: `sqrt(16 × RAM in kB)` kB, or 22 MiB for each zone with huge pages on, at most
    ///   {RESERVE_SHARE_MIN} of RAM. On arm64 with 64 KiB pages, huge pages raise it to those {RESERVE_SHARE_MIN}:
    ///   reported as informational.
    /// - A large value on purpose, as on Oracle's engineered systems and NUMA hosts with fast networks: usually far
    ///   below {RESERVE_SHARE_MIN}.
    /// - A boost (`zone.boost`): gone after the next reclaim.
    /// ## What to do
    /// Now: `sysctl -w vm.min_free_kbytes=` the default that the finding shows. For good: remove or correct the line in
    /// `/etc/sysctl.conf` and `/etc/sysctl.d/`. Verify: free memory falls to the new floor, and refaults and swap-out
    /// end.
    /// ## References
    /// - kernel mm/page_alloc.c, init_per_zone_wmark_min; mm/khugepaged.c, set_recommended_min_free_kbytes
    /// - kernel Documentation/admin-guide/sysctl/vm.rst, min_free_kbytes
    pub(crate) RULE = { id: "min-free-too-large", since: "0.1.0", class: Setting,
        numbers: [LEVEL, FLOOR, RESERVE_SHARE_MIN, BEYOND_DEFAULT, STALL],
        trigger: trigger, story: story,
        brings_about: WANT_AND_THRASH,
        explained_by: &[Explains::Surely(MIN_FREE), Explains::Surely(WATERMARK_SCALE)],
    }
}

/// An engineering choice. Kernel defaults reach 8 % (computed below for small hosts with huge pages on).
const FLOOR: Ratio = Ratio::from_percent(10.0);
/// What a fix must reach; an engineering choice: a usual host of some GiB is below it.
const FLOOR_GOAL: Ratio = Ratio::from_percent(2.0);
/// No default of the kernel is larger.
const RESERVE_SHARE_MIN: Ratio = MIN_FREE_OF_HUGE_PAGES_MAX;
/// The default is computed from today's RAM; the kernel computed it at boot from slightly less or more.
const BEYOND_DEFAULT: f64 = 1.15;
/// The least share of those 5 % that the kernel's default for huge pages has with base pages larger than 4 KiB.
const NEARLY_ALL: f64 = 0.9;
/// Gaps of this many times the default between the watermarks are set by hand; the default varies by rounding only.
const WIDE_GAPS: f64 = 2.0;
/// Refaults while memory is kept free.
const REFAULTS: PerSecond<Pages> = Quiet::REFAULTS;
const SWAP_OUT_RATE_MIN: BytesPerSecond = BytesPerSecond::from_mib(1.0);
/// A default that costs less memory than this is not reported.
const WORTH_REPORTING: Bytes = Bytes::from_mib(256);

fn trigger() -> Trigger {
    // With large base pages the default is close to its cap. With small base pages that share is usual on small hosts,
    // and is not reported there.
    let min = ram().share(RESERVE_SHARE_MIN);
    let least = min.clone().times(NEARLY_ALL).max(WORTH_REPORTING).min(min);
    let of_zones = any![
        floor().at_least("the watermarks", ram().share(FLOOR)),
        mins().at_least("the min watermarks", least),
    ];
    // The default is capped at 5 %, rounded; a value well beyond the cap was certainly set by hand.
    let by_hand = ram().share(RESERVE_SHARE_MIN).times(BEYOND_DEFAULT);
    let setting = min_free().at_least("vm.min_free_kbytes", by_hand);
    Trigger::on_host(LEVEL, of_zones.or_without(setting))
}

/// vm.min_free_kbytes.
fn min_free() -> Reading<Bytes> {
    fact(MIN_FREE).of_size(Reading::constant(Bytes::from_kib(1)))
}

/// A zone's watermark without its boost, which zoneinfo includes (5.0 and later).
fn unboosted(watermark: Reading<Pages>) -> Reading<Pages> {
    watermark.clone().minus(gauge(ZONE_BOOST)).or(watermark)
}

/// Σ min over the zones: min_free_kbytes is divided among them.
fn mins() -> Reading<Bytes> {
    over(Entity::Zone, unboosted(gauge(ZONE_MIN)).bytes()).named("min watermarks")
}

/// Σ min(managed, high + protection) over the zones.
fn floor() -> Reading<Bytes> {
    let kept = unboosted(gauge(ZONE_HIGH)).plus([gauge(ZONE_PROTECTION)]);
    over(Entity::Zone, kept.min(gauge(ZONE_MANAGED)).bytes()).named("watermarks")
}

/// Σ (high − min) / 2 over the zones: the gap between two watermarks.
fn gaps() -> Reading<Bytes> {
    let gap = gauge(ZONE_HIGH).minus(gauge(ZONE_MIN));
    over(Entity::Zone, gap.bytes()).times(0.5)
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let page = cx.page_size()?;
    let Ok(zones) = Watermarks::at(cx, incident.stretch.last) else {
        return from_the_setting_alone(cx);
    };
    let (min, floor, default) = (zones.min, zones.floor, zones.default);
    let (part, total) = (cx.of_ram(floor)?, cx.ram()?);
    if floor < total.share(FLOOR) && min < total.share(RESERVE_SHARE_MIN) {
        return if page.bytes() > Bytes::from_kib(4) && min >= WORTH_REPORTING {
            huge_page_default(cx, floor, min, page)
        } else {
            clear!("the watermarks keep {floor} free, {part} of RAM")
        };
    }
    let set_by_hand = min.as_f64() > default.as_f64() * BEYOND_DEFAULT;
    if !set_by_hand && !zones.are_wide() {
        return clear!(
            "the watermarks keep {floor} free, {part} of RAM: the kernel's default for a host of \
             this size"
        );
    }
    let price = Price::during(cx, &incident.stretch)?;
    let effect =
        if price.any() { "and evicts pages in use to do so" } else { "which no program can use" };
    let reason = if set_by_hand {
        format!("vm.min_free_kbytes is {min} (default here: about {default})")
    } else {
        "vm.watermark_scale_factor spreads the watermarks".to_owned()
    };
    let title = format!("The kernel keeps {floor} free, {part} of RAM, {effect}: {reason}.");
    let keep = format!("the watermarks keep {floor} free, {part} of RAM");
    let add_up =
        format!("the min watermarks add up to {min}; the kernel's default is about {default}");
    let setting = MinFreeSetting::read(cx, &zones);
    let restored = setting.as_ref().map_or(default, |setting| setting.restored);
    let agreed = setting.as_ref().filter(|setting| setting.agrees);
    let now = agreed.map_or(min, |setting| Bytes::from_kib(setting.kib));
    let finding = RULE
        .found(Severity::Warning, title)
        .with(cx.gauge(MEM_FREE).ok(), |finding, free| finding.graph("free memory", &free))
        .shows_from(MEM_FLOOR_HIGH, floor, total.share(FLOOR), None, keep)
        .shows_from(ZONE_MIN, min, total.share(RESERVE_SHARE_MIN), None, add_up)
        .counts_as("the zones' watermarks")
        .and(|finding| price.shown_in(finding))
        .counts_if(price.any(), "reclaim with that much memory free")
        .counts_if(set_by_hand && agreed.is_some(), "the setting")
        .with(setting.as_ref(), |finding, setting| setting.shown_in(finding));
    Ok(remedy(cx, finding, set_by_hand, restored, now)
        .not("a boost of the watermarks", "boosts are subtracted from these figures")
        .verify(
            "memtide check --for 1m under the same load: free memory falls to the new floor; \
             refaults and swap-out end",
        )
        .sure_by_kinds(cx, "")
        .into())
}

/// The zones' watermarks at a sample.
struct Watermarks {
    min: Bytes,
    floor: Bytes,
    gap: Bytes,
    managed: Bytes,
    /// The kernel's default for the sum of the min watermarks.
    default: Bytes,
}

impl Watermarks {
    fn at(cx: &Evidence<'_>, index: usize) -> Result<Self, Missing> {
        let at = |reading: Reading<Bytes>| {
            let value = reading.track(cx)?.at(index);
            value.ok_or_else(|| Missing::same_time(ZONE_MIN.def()))
        };
        let managed = at(over(Entity::Zone, gauge(ZONE_MANAGED).bytes()))?;
        // khugepaged raises the watermark for each populated zone up to Normal.
        let zones = cx.timeline.entities(Entity::Zone).filter(|zone| {
            let name = zone.key.rsplit('/').next().unwrap_or_default();
            let pages = cx.timeline.last_of(zone, ZONE_MANAGED).unwrap_or_default();
            matches!(name, "DMA" | "DMA32" | "Normal") && pages > Pages::ZERO
        });
        let zones = u32::try_from(zones.count()).unwrap_or(u32::MAX);
        Ok(Self {
            min: at(mins())?,
            floor: at(floor())?,
            gap: at(gaps())?,
            managed,
            default: default_min_free(managed, cx.page_size()?, zones, has_huge_pages(cx)),
        })
    }

    /// Whether the gaps are wider than the kernel's default.
    fn are_wide(&self) -> bool {
        let usual = (self.min.as_f64() / 4.0).max(self.managed.as_f64() / 1000.0);
        self.gap.as_f64() > usual * WIDE_GAPS
    }
}

/// Whether khugepaged raises the reserve; unknown counts as yes, as it does so by default.
fn has_huge_pages(cx: &Evidence<'_>) -> bool {
    cx.choice(THP_ENABLED) != Ok("never")
}

/// What the setting costs while reclaim keeps free memory near the watermarks. Each cost is the mean of the longest
/// such stretch, because a setting lasts long and costs something only for a part of that time.
#[derive(Default)]
struct Price {
    refaults: Option<PerSecond<Pages>>,
    swapped: Option<BytesPerSecond>,
    stalled: Option<Ratio>,
}

impl Price {
    fn during(cx: &Evidence<'_>, stretch: &Stretch) -> Result<Self, Missing> {
        let Ok(free) = cx.gauge(MEM_FREE) else {
            return Ok(Self::default());
        };
        let near = free.at_most_track(&floor().track(cx)?.scaled(Floor::REACH));
        Ok(Self {
            refaults: longest_mean(&near, cx.refaults_file(), REFAULTS, stretch),
            swapped: longest_mean(&near, cx.bytes_rate(PSWPOUT), SWAP_OUT_RATE_MIN, stretch),
            stalled: longest_mean(&near, cx.stall(PSI_MEMORY_SOME), RECLAIM_COSTS, stretch),
        })
    }

    fn any(&self) -> bool {
        self.refaults.is_some() || self.swapped.is_some() || self.stalled.is_some()
    }

    fn shown_in(&self, finding: Finding) -> Finding {
        finding
            .with(self.refaults, |finding, rate| {
                let text = format!("{rate} of file pages read again after eviction (refaults)");
                finding.shows_from(REFAULT_FILE, rate, REFAULTS, None, text)
            })
            .with(self.swapped, |finding, rate| {
                finding.shows_from(
                    PSWPOUT,
                    rate,
                    SWAP_OUT_RATE_MIN,
                    None,
                    format!("{rate} swapped out"),
                )
            })
            .with(self.stalled, |finding, share| {
                let text = format!("tasks waited for memory {share} of the time");
                finding.shows_from(PSI_MEMORY_SOME, share, RECLAIM_COSTS, None, text)
            })
    }
}

/// The mean over the longest part of a stretch in which the track is at least `from` and the condition holds.
fn longest_mean<Q: Quantity>(
    condition: &Condition,
    track: Result<Track<Q>, Missing>,
    from: Q,
    stretch: &Stretch,
) -> Option<Q> {
    let track = track.ok()?;
    let longest = condition
        .and(&track.at_least(from))
        .bridged_runs()
        .into_iter()
        .filter(|run| stretch.first <= run.first && run.last <= stretch.last)
        .filter(|run| run.duration() >= STALL)
        .max_by_key(Stretch::duration)?;
    track.mean_in(&longest)
}

/// Restores a default, which needs no line in a file: the line that sets another value must go.
fn unset(cx: &Evidence<'_>, what: &str, default: SettingChange, now: Option<u64>) -> Fix {
    let what = format!(
        "{what} To keep it, remove {} from /etc/sysctl.conf, /etc/sysctl.d/ and the tuned profile.",
        default.to.fact.name
    );
    Fix::setting(cx, what, default.instead_of(now).lasting(Lasting::UntilBoot))
}

fn remedy(
    cx: &Evidence<'_>,
    finding: Finding,
    set_by_hand: bool,
    default: Bytes,
    now: Bytes,
) -> Finding {
    let (default, now) = (default.get() / 1024, now.get() / 1024);
    if set_by_hand {
        let finding = finding.cause(
            "vm.min_free_kbytes was set by hand, or RAM was removed after the kernel computed the \
             default.",
        );
        let what = format!("Go back to the kernel's default, about {default} kB.");
        return finding.fix(unset(cx, &what, SettingChange::new(MIN_FREE, default), Some(now)));
    }
    let finding = finding.cause(
        "vm.watermark_scale_factor was set by hand; each gap between the watermarks is that many \
         1/10,000 of a zone.",
    );
    let what = "Narrow the gaps between the watermarks again.";
    let now = cx.number(WATERMARK_SCALE).ok();
    finding.fix(unset(cx, what, SettingChange::new(WATERMARK_SCALE, WATERMARK_SCALE_DEFAULT), now))
}

/// With large base pages, huge pages are large too, and khugepaged keeps eleven of them free in each zone: a costly
/// default.
fn huge_page_default(
    cx: &Evidence<'_>,
    floor: Bytes,
    min: Bytes,
    page: PageSize,
) -> Result<Outcome, Missing> {
    let block = huge_page_of(page);
    let title = format!(
        "The kernel keeps {floor} free, {} of RAM, to be able to allocate huge pages of {block}.",
        cx.of_ram(floor)?
    );
    let text = format!(
        "the watermarks keep {floor} free; the min watermarks add up to {min}, the kernel's cap of \
         {RESERVE_SHARE_MIN}"
    );
    Ok(RULE
        .found(Severity::Info, title)
        .shows(MEM_FLOOR_HIGH, floor, None, text)
        .counts_as("the zones' watermarks")
        .counts_as("the page size")
        .cause(format!(
            "Base pages are {} here; with transparent huge pages on, the kernel keeps eleven huge \
             pages free in each zone.",
            page.bytes()
        ))
        .fix(Fix::file(
            "If you do not need huge pages of this size, switch them off (for good: \
             transparent_hugepage=never on the kernel command line).",
            THP_ENABLED,
            "never",
            cx.choice(THP_ENABLED).ok(),
        ))
        .fix(Fix::tunable(
            cx,
            "Then set the reserve, because the kernel resets it whenever huge pages are switched \
             on or off.",
            MIN_FREE,
            MIN_FREE_MAX_KIB,
        ))
        .verify(format!("memtide check: the floor is below {FLOOR_GOAL} of RAM"))
        .sure_by_kinds(cx, "")
        .into())
}

/// Judges the setting alone, where the zones' watermarks are not known.
fn from_the_setting_alone(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    let setting = cx.number(MIN_FREE)?;
    let min = Bytes::from_kib(setting);
    let part = cx.of_ram(min)?;
    let hundredth = cx.ram()?.get() / 1024 / 100;
    Ok(RULE
        .found(
            Severity::Warning,
            format!(
                "The kernel keeps at least {min} free ({part} of RAM): vm.min_free_kbytes is set \
                 too high."
            ),
        )
        .shows_fact(
            MIN_FREE,
            setting,
            format!(
                "vm.min_free_kbytes = {setting}, {part} of RAM; the kernel's default is \
                 {RESERVE_SHARE_MIN} at most"
            ),
        )
        .counts_as("the setting")
        .cause(
            "vm.min_free_kbytes was set by hand, or RAM was removed after the kernel computed the \
             default.",
        )
        .fix(unset(
            cx,
            "Go back to 1 % of RAM or less.",
            SettingChange::new(MIN_FREE, hundredth),
            Some(setting),
        ))
        .verify("memtide check --for 1m under the same load: free memory falls to the new floor")
        .sure_by_kinds(cx, "the zones' watermarks (/proc/zoneinfo) would settle it")
        .into())
}

/// vm.min_free_kbytes as read, which may differ from the value behind the zones' watermarks.
struct MinFreeSetting {
    kib: u64,
    /// Whether the zones' watermarks follow from it.
    agrees: bool,
    /// The value to restore.
    restored: Bytes,
}

impl MinFreeSetting {
    fn read(cx: &Evidence<'_>, zones: &Watermarks) -> Option<Self> {
        let kib = cx.number(MIN_FREE).ok()?;
        let as_read = Bytes::from_kib(kib);
        let agrees = as_read.as_f64() >= zones.min.as_f64() / BEYOND_DEFAULT;
        let is_sound = as_read.as_f64() <= zones.default.as_f64() * BEYOND_DEFAULT;
        let restored = if !agrees && is_sound { as_read } else { zones.default };
        Some(Self { kib, agrees, restored })
    }

    fn shown_in(&self, finding: Finding) -> Finding {
        let later = if self.agrees { "" } else { " when it was read; it was raised later" };
        let text = format!("vm.min_free_kbytes = {}{later}", self.kib);
        finding.shows_fact(MIN_FREE, self.kib, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, changed, clear, found, not_evaluated};
    use timeline::signals::MEM_TOTAL;

    const PAGES_PER_MIB: u64 = 256;

    /// A host of one zone, watermarks in MiB.
    fn watermarks(ram: u64, min: u64, high: u64, free: u64) -> Case {
        watermarks_over(20, ram, min, high, free)
    }

    fn watermarks_over(seconds: u64, ram: u64, min: u64, high: u64, free: u64) -> Case {
        let pages = |mib: u64| Pages::new(mib * PAGES_PER_MIB);
        Case::over(seconds)
            .gauge(MEM_TOTAL, Bytes::from_mib(ram))
            .gauge(MEM_FREE, Bytes::from_mib(free))
            .gauge_of(Entity::Zone, "0/DMA32", ZONE_MANAGED, pages(ram))
            .gauge_of(Entity::Zone, "0/DMA32", ZONE_MIN, pages(min))
            .gauge_of(Entity::Zone, "0/DMA32", ZONE_HIGH, pages(high))
    }

    #[test]
    fn a_fifth_of_ram_is_found_and_confirmed_by_its_costs() {
        let idle = found(RULE, &watermarks(470, 94, 141, 400));
        assert_eq!(idle.severity, Severity::Warning);
        assert_eq!(idle.confidence.word(), "probable");
        let paid = found(RULE, &watermarks(470, 94, 141, 130).counter(REFAULT_FILE, 7000));
        assert_eq!(paid.confidence.word(), "confirmed");
        let change = &changed(&paid.fixes[0])[0];
        assert!(change.starts_with("vm.min_free_kbytes=96256 -> vm.min_free_kbytes="), "{change}");
    }

    #[test]
    fn refaults_far_above_the_floor_do_not_count() {
        let finding = found(RULE, &watermarks(470, 94, 141, 400).counter(REFAULT_FILE, 7000));
        assert_eq!(finding.confidence.word(), "probable");
    }

    #[test]
    fn clear_with_defaults_on_hosts_of_all_sizes() {
        for ram in [128_u64, 300, 512, 768, 1024, 4096, 65_536] {
            // khugepaged's value for one zone, at most 5 %; high = 1.5 × min, at least 0.2 % of RAM more.
            let min = (ram / 20).min(22);
            let high = (min * 3 / 2).max(min + ram / 500);
            clear(RULE, &watermarks(ram, min, high, ram / 2));
        }
    }

    #[test]
    fn clear_when_the_watermarks_are_boosted() {
        let boost = Pages::new(60 * PAGES_PER_MIB);
        let boosted = watermarks(470, 64, 65, 200);
        clear(RULE, &boosted.gauge_of(Entity::Zone, "0/DMA32", ZONE_BOOST, boost));
    }

    #[test]
    fn wide_gaps_between_watermarks_are_found() {
        let case = watermarks(1000, 22, 160, 500).fact(WATERMARK_SCALE, "690");
        let finding = found(RULE, &case);
        assert!(finding.title.contains("watermark_scale_factor"));
        let gaps = ["vm.watermark_scale_factor=690 -> vm.watermark_scale_factor=10"];
        assert_eq!(changed(&finding.fixes[0]), gaps);
    }

    #[test]
    fn a_value_raised_after_it_was_read_is_found_by_the_watermarks() {
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
        assert!(finding.evidence.iter().any(|line| line.text.contains("raised later")));
    }

    #[test]
    fn the_default_of_large_base_pages_is_informational() {
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
    fn found_in_a_single_sample_and_stalls_count_as_costs() {
        let mut case = watermarks(470, 94, 141, 130).counter(PSI_MEMORY_SOME, 300_000);
        assert_eq!(found(RULE, &case).confidence.word(), "confirmed");
        case = Case::once().gauge(MEM_TOTAL, Bytes::from_mib(470)).fact(MIN_FREE, "96256");
        assert_eq!(found(RULE, &case).confidence.word(), "probable");
        clear(RULE, &Case::once().gauge(MEM_TOTAL, Bytes::from_mib(470)).fact(MIN_FREE, "23500"));
    }

    #[test]
    fn not_evaluated_without_watermarks_and_setting() {
        let missing = not_evaluated(RULE, &Case::once().gauge(MEM_TOTAL, Bytes::from_mib(470)));
        assert_eq!(missing.names, ["vm.min_free_kbytes"]);
    }

    /// An hour in which the watermarks rise for 30 s, with refaults at that time.
    fn an_hour(boost: u64) -> Case {
        let pages = |mib: u64| Pages::new(mib * PAGES_PER_MIB);
        let steps = |calm: u64, then: u64| {
            let mut all = vec![pages(calm); 3600];
            all[1800..1830].fill(pages(then));
            all
        };
        let mut refaults = vec![0; 3600];
        refaults[1810..1825].fill(7000);
        Case::over(3600)
            .gauge(MEM_TOTAL, Bytes::from_mib(470))
            .gauge(MEM_FREE, Bytes::from_mib(130))
            .counter_steps(REFAULT_FILE, &refaults)
            .gauge_of(Entity::Zone, "0/DMA32", ZONE_MANAGED, pages(470))
            .gauge_of(Entity::Zone, "0/DMA32", ZONE_BOOST, pages(boost))
            .gauge_steps_of(Entity::Zone, "0/DMA32", ZONE_MIN, &steps(3, 94))
            .gauge_steps_of(Entity::Zone, "0/DMA32", ZONE_HIGH, &steps(4, 141))
    }

    #[test]
    fn finds_30_s_within_an_hour_with_the_same_severity() {
        let finding = found(RULE, &an_hour(0));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.confidence.word(), "confirmed");
        clear(RULE, &an_hour(137));
    }

    #[test]
    fn costs_for_a_part_of_the_time_count() {
        let mut refaults = vec![0; 3600];
        refaults[1800..1830].fill(7000);
        let case = watermarks_over(3600, 470, 94, 141, 130).counter_steps(REFAULT_FILE, &refaults);
        assert_eq!(found(RULE, &case).confidence.word(), "confirmed");
    }
}
