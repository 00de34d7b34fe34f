//! Free memory is at its floor, which is normal.

use timeline::signals::{MEM_AVAILABLE, MEM_FLOOR_HIGH, MEM_FREE};

use crate::evidence::rounding;
use crate::measures::available;
use crate::measures::floor::Floor;
use crate::measures::quiet::Quiet;
use crate::oom;
use crate::prelude::*;

declare_rule! {
    /// Free memory is low, which is normal: the kernel uses the rest as page cache and reclaims it on demand.
    ///
    /// ## What it means
    /// The kernel lets the page cache grow until free memory reaches a floor that follows from the zones' watermarks,
    /// and keeps it there. MemFree is the allocator's reserve, not the memory that programs can get; that is
    /// MemAvailable.
    /// ## How it is recognised
    /// For {LEVEL} or longer, or in a single sample: MemFree is at most {Floor::NEAR} of the upper edge of the floor (Σ
    /// min(managed, high + protection) over the zones), or within {Floor::ABOVE} of RAM above it, and below
    /// {FREE_SHARE_LOW} of RAM; more than {available::AVAILABLE_CALM_SHARE} of RAM is available; fewer than
    /// {Quiet::REFAULTS} of files refault (are read again after eviction); and tasks wait for memory less than
    /// {PressureWindow::MEMORY} of the time. Without zones in the source, the floor of a typical host of this size is
    /// used.
    /// ## Not this
    /// - `cache-starved-floor`: free memory at the floor and hardly any cache left.
    /// - `available-exhaustion`: little memory is available either.
    /// - `min-free-too-large`: the floor itself is a large part of RAM.
    /// ## What to do
    /// Nothing. An alert on free memory is a false alarm: alert on MemAvailable or on memory pressure. Verify:
    /// MemAvailable stays above {available::AVAILABLE_CALM_SHARE} over a working day.
    /// ## References
    /// - kernel Documentation/filesystems/proc.rst, MemAvailable
    /// - kernel mm/page_alloc.c: watermarks and lowmem_reserve
    pub(crate) RULE = { id: "free-low-harmless", since: "0.1.0", class: Note,
        numbers: [LEVEL, Floor::NEAR, Floor::ABOVE, FREE_SHARE_LOW, available::AVAILABLE_CALM_SHARE,
            Quiet::REFAULTS, PressureWindow::MEMORY],
        trigger: trigger, story: story,
        cause: "The page cache has grown into idle memory; the kernel reclaims it when programs \
                need it.",
        verify: "memtide check over a working day: MemAvailable stays above \
                 {available::AVAILABLE_CALM_SHARE}, no refaults",
        aliases: &["free-floor-harmless"],
    }
}

/// A floor above this share of RAM is a case for `min-free-too-large`.
const FREE_SHARE_LOW: Ratio = Ratio::from_percent(10.0);

fn trigger() -> Trigger {
    let available = available::can_be_had();
    Trigger::on_host(
        LEVEL,
        all![
            gauge(MEM_FREE).at_most("free memory", Floor::rests()),
            gauge(MEM_FREE).at_most("free memory", ram().share(FREE_SHARE_LOW)),
            available.at_least("available memory", ram().share(available::AVAILABLE_CALM_SHARE)),
            Quiet::holds(),
        ],
    )
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = match oom::apart_from_shortage(cx, &incident.stretch) {
        Ok(stretch) => stretch,
        Err(why) => return clear!("free memory is at its floor, but {why}"),
    };
    let calm = match Quiet::during(cx, &stretch) {
        Ok(calm) => calm,
        Err(why) => return clear!("free memory is at its floor, but {why}"),
    };
    let (available, is_reported) = available::available(cx)?;
    let lowest = available.min_in(&stretch);
    let lacks = || Missing::same_time(MEM_AVAILABLE.def());
    let (least, index) = lowest.ok_or_else(lacks)?;
    let (share, ram) = (cx.of_ram(least)?, cx.ram()?);
    let free = cx.gauge(MEM_FREE)?;
    let level = cx.mean_in(&stretch, MEM_FREE, &free)?;
    let level_shown = rounding::shown(cx, MEM_FREE, level);
    let floor = cx.floor().ok().and_then(|floor| floor.high.mean_in(&stretch));
    let open = match floor {
        Some(_) => calm.open(),
        None => "the zones' watermarks (/proc/zoneinfo) would settle it",
    };
    let meaning =
        if calm.kinds().is_empty() { "which alone means nothing" } else { "which is normal" };
    let title = Title::from(format!(
        "Only {level_shown} is free, {meaning}: the kernel keeps no more free."
    ))
    .then(format!("{least} ({share} of RAM) is available{}.", calm.clause(cx)));
    let kind = if is_reported { "available" } else { "free or page cache" };
    let text = format!("at least {least} {kind} ({share} of RAM)");
    let finding = RULE
        .found(Severity::Info, title)
        .during(stretch)
        .graph("free", &free)
        .shows_from(
            MEM_AVAILABLE,
            least,
            ram.share(available::AVAILABLE_CALM_SHARE),
            cx.time(index),
            text,
        )
        .counts_as("available memory");
    Ok(calm
        .shown_in(show_floor(finding, cx, level, floor)?)
        .counts_as_all(calm.kinds().into_iter().filter(|_| floor.is_some()))
        .not("available-exhaustion", format!("{share} of RAM is available"))
        .fix(Fix::say(
            "Nothing to do. Alert on MemAvailable or memory pressure, not on free memory.",
        ))
        .sure_by_kinds(cx, open)
        .into())
}

/// Adds the floor: that of the zones' watermarks, or that of a typical host of this size.
fn show_floor(
    finding: Finding,
    cx: &Evidence<'_>,
    level: Bytes,
    floor: Option<Bytes>,
) -> Result<Finding, Missing> {
    if let Some(edge) = floor {
        let text = format!("{level} free; the zones' watermarks keep up to {edge} free");
        return Ok(finding.shows(MEM_FLOOR_HIGH, edge, None, text));
    }
    let edge: Bytes = Floor::expected(cx, cx.ram()?).1;
    let text = format!("{level} free; a host of this size keeps about {edge} free");
    Ok(finding.shows(MEM_FREE, level, None, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oom::testing::Report;
    use crate::rules::testing::{Case, clear, found, not_evaluated, times};
    use timeline::Entity;
    use timeline::signals::{
        MEM_TOTAL, PSI_MEMORY_SOME, REFAULT_FILE, ZONE_HIGH, ZONE_LOW, ZONE_MANAGED,
    };
    use units::Pages;

    const MIB: fn(u64) -> Bytes = Bytes::from_mib;

    #[test]
    fn clear_after_a_kill() {
        let case = Case::of_report(Report::of_a_host())
            .gauge(MEM_TOTAL, MIB(1000))
            .gauge(MEM_FREE, MIB(20))
            .gauge(MEM_AVAILABLE, MIB(400));
        assert!(clear(RULE, &case).contains("had to kill"));
    }

    /// 1,000 MiB in one zone with watermarks that keep 20 MiB free.
    fn zoned(case: Case) -> Case {
        let pages = |mib: u64| Pages::new(mib * 256);
        case.gauge(MEM_TOTAL, MIB(1000))
            .gauge_of(Entity::Zone, "0/Normal", ZONE_MANAGED, pages(1000))
            .gauge_of(Entity::Zone, "0/Normal", ZONE_LOW, pages(16))
            .gauge_of(Entity::Zone, "0/Normal", ZONE_HIGH, pages(20))
    }

    fn streaming(free: u64, available: u64) -> Case {
        zoned(Case::over(20))
            .gauge(MEM_FREE, MIB(free))
            .gauge(MEM_AVAILABLE, MIB(available))
            .counter(REFAULT_FILE, 0)
            .counter(PSI_MEMORY_SOME, 8_000)
    }

    #[test]
    fn found_at_the_floor_with_much_cache() {
        let finding = found(RULE, &streaming(18, 700));
        assert_eq!(finding.severity, Severity::Info);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(finding.title.contains("18 MiB"), "{}", finding.title);
    }

    #[test]
    fn found_when_the_floor_is_reached_late() {
        let mut free = vec![MIB(300); 10];
        free.extend([MIB(19); 11]);
        found(RULE, &streaming(0, 700).gauge_steps(MEM_FREE, &free));
    }

    #[test]
    fn clear_above_the_floor_and_where_little_is_available() {
        clear(RULE, &streaming(300, 700));
        clear(RULE, &streaming(18, 100));
    }

    #[test]
    fn clear_with_stalls_or_refaults() {
        clear(RULE, &streaming(18, 700).counter(PSI_MEMORY_SOME, 50_000));
        clear(RULE, &streaming(18, 700).counter(REFAULT_FILE, 500));
    }

    #[test]
    fn a_predicted_floor_is_used_without_zones() {
        let case = Case::over(20)
            .gauge(MEM_TOTAL, Bytes::from_gib(32))
            .gauge(MEM_FREE, MIB(250))
            .gauge(MEM_AVAILABLE, Bytes::from_gib(20));
        let finding = found(RULE, &case);
        assert_eq!(finding.confidence.word(), "probable");
    }

    #[test]
    fn a_single_sample_is_named_in_the_title() {
        let case = zoned(Case::once()).gauge(MEM_FREE, MIB(18)).gauge(MEM_AVAILABLE, MIB(700));
        let finding = found(RULE, &case);
        assert!(finding.title.contains("one sample"), "{}", finding.title);
    }

    /// An hour with `calm` refaults per second, and `then` for 30 s.
    fn an_hour(calm: u64, then: u64) -> Case {
        let mut refaults = vec![calm; 3600];
        refaults[1800..1830].fill(then);
        zoned(Case::over(3600))
            .gauge(MEM_FREE, MIB(18))
            .gauge(MEM_AVAILABLE, MIB(700))
            .counter_steps(REFAULT_FILE, &refaults)
    }

    #[test]
    fn only_calm_times_are_reported() {
        // 30 s of calm on a thrashing host.
        assert_eq!(times(&found(RULE, &an_hour(5000, 0))), [(1800, 1830)]);
        // 30 s of thrashing on a calm host.
        let calm = times(&found(RULE, &an_hour(0, 5000)));
        assert_eq!(calm, [(0, 1800), (1830, 3600)]);
        clear(RULE, &an_hour(5000, 5000));
    }

    #[test]
    fn only_the_time_of_a_kill_is_excluded() {
        let killed = Report::of_a_host();
        let finding = found(RULE, &an_hour(0, 0).with_report(1000, killed));
        let when = finding.when.unwrap();
        assert!(when.first > 1000 && when.last == 3600, "{when:?}");
    }

    #[test]
    fn not_evaluated_without_free_memory() {
        let missing = not_evaluated(RULE, &Case::over(20).gauge(MEM_TOTAL, MIB(1000)));
        assert_eq!(missing.names, ["mem.free"]);
    }
}
