//! Free memory is on its floor, and that is where it belongs.

use timeline::signals::{MEM_AVAILABLE, MEM_FLOOR_HIGH, MEM_FREE};
use units::{Bytes, Quantity, Ratio, Span};

use crate::calm::{self, Calm};
use crate::evidence::Evidence;
use crate::finding::Severity;
use crate::fix::Fix;
use crate::floor::Floor;
use crate::missing::Missing;
use crate::rounding;
use crate::rule::{Outcome, clear, declare_rule};

declare_rule! {
    /// Little memory is free, and that is how it should be: the rest works as cache and is given back on demand.
    ///
    /// ## What it means
    /// The kernel lets the page cache grow until free memory reaches a floor that follows from the zones' watermarks,
    /// and keeps it there. Free memory is the allocator's float, not what programs can have; that is MemAvailable.
    /// ## How it is recognised
    /// MemFree is at most 1.15 times the floor's upper edge (Σ min(managed, high + protection) over the zones), or 1 % of
    /// RAM above it, and below 10 % of RAM, more than 15 % of RAM is available, fewer than 100 file pages a second are read again after
    /// eviction, and somebody waits for memory less than 2 % of the time. Where the source has no zones, the floor of an
    /// ordinary host of this size is used.
    /// ## Not this
    /// - `cache-starved-floor`: free on the floor and hardly any cache left.
    /// - `available-exhaustion`: little is available either.
    /// - `min-free-too-large`: the floor itself is a large part of RAM.
    /// ## What to do
    /// Nothing. An alert on free memory is a false alarm: alert on MemAvailable or on memory pressure. Verify:
    /// MemAvailable stays above 15 % over a working day.
    /// ## References
    /// - kernel Documentation/filesystems/proc.rst, MemAvailable
    /// - kernel mm/page_alloc.c: watermarks and lowmem_reserve
    pub(crate) RULE = { id: "free-low-harmless", since: "0.1.0", purpose: Note, check: check }
}

/// As in cache-full-harmless.
const AVAILABLE: Ratio = Ratio::from_percent(15.0);
/// A floor above this share of RAM is the matter of `min-free-too-large`.
const LOW: Ratio = Ratio::from_percent(10.0);
const HOLD: Span = Span::from_mins(1);

fn check(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    let ram = cx.ram()?;
    let free = cx.gauge(MEM_FREE)?;
    let (on_floor, measured) = match cx.floor() {
        Ok(floor) => {
            let edge = floor.high.zip(&free, |edge, _| {
                Floor::rests_below(Bytes::from_f64(edge), ram).as_f64()
            });
            (free.at_most_track(&edge), true)
        }
        Err(_) => {
            let edge = Floor::expected(cx, ram).1;
            (free.at_most(Floor::rests_below(edge, ram)), false)
        }
    };
    let held = on_floor.and(&free.at_most(ram.share(LOW)));
    let Some(stretch) = cx.sustained_level(&held, HOLD) else {
        return match free.min() {
            Some((least, _)) => clear!("free memory was not held on its floor: at least {least}"),
            None => clear!("free memory was not measured"),
        };
    };
    let (available, told) = calm::available(cx)?;
    let Some((least, index)) = available.min_in(&stretch) else {
        return Err(Missing::signal(
            MEM_AVAILABLE.def(),
            cx.timeline.absent.get(MEM_AVAILABLE.def().file),
        ));
    };
    let share = cx.of_ram(least)?;
    if share <= AVAILABLE {
        return clear!("free memory is on its floor, but only {share} of RAM is available");
    }
    let calm = match Calm::during(cx, &stretch) {
        Ok(calm) => calm,
        Err(why) => return clear!("free memory is on its floor, but {why}"),
    };

    if let Some(why) = calm::shortage(cx) {
        return clear!("free memory is on its floor, but {why}");
    }
    let level = cx.mean_in(&stretch, MEM_FREE, &free)?;
    let level_shown = rounding::shown(cx, MEM_FREE, level);
    let mut finding = RULE
        .found(
            Severity::Info,
            format!(
                "Only {level_shown} are free, {}: the kernel keeps no more. {least} ({share} of RAM) are available{}.",
                if calm.kinds().is_empty() {
                    "which alone means nothing"
                } else {
                    "and that is fine"
                },
                calm.clause(cx)
            ),
        )
        .during(stretch)
        .graph("free", &free)
        .shows_from(
            MEM_AVAILABLE,
            least, ram.share(AVAILABLE),
            Some(cx.timeline.times()[index]),
            if told {
                format!("at least {least} available ({share} of RAM)")
            } else {
                format!("at least {least} free or page cache ({share} of RAM)")
            },
        );
    finding = match cx.floor().ok().and_then(|f| f.high.mean_in(&stretch)) {
        Some(edge) => finding.shows(
            MEM_FLOOR_HIGH,
            edge,
            None,
            format!("{level} free; the zones' watermarks keep up to {edge}"),
        ),
        None => {
            let edge: Bytes = Floor::expected(cx, ram).1;
            finding.shows(
                MEM_FREE,
                level,
                None,
                format!("{level} free; a host of this size keeps about {edge}"),
            )
        }
    };
    let mut kinds = calm.kinds();
    kinds.insert(0, "available memory");
    if !measured {
        kinds.truncate(1);
    }
    let open = if measured {
        calm.open()
    } else {
        "the zones' watermarks (/proc/zoneinfo) would settle it"
    };
    finding = calm.shown_in(finding);
    Ok(finding
        .not("available-exhaustion", format!("{share} of RAM are available"))
        .cause("The page cache has grown into memory that nobody else wants; it is given back when somebody does.")
        .fix(Fix::say("Nothing to do. Alert on MemAvailable or memory pressure, not on free memory."))
        .verify("memtide check over a working day: available stays above 15 %, no refaults")
        .alias("free-floor-harmless")
        .sure(cx.confidence(&kinds, open))
        .see("kernel: Documentation/filesystems/proc.rst, MemAvailable")
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oom::testing::Report;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::Entity;
    use timeline::signals::{
        MEM_TOTAL, PSI_MEMORY_SOME, REFAULT_FILE, ZONE_HIGH, ZONE_LOW, ZONE_MANAGED,
    };
    use units::Pages;

    const MIB: fn(u64) -> Bytes = Bytes::from_mib;

    #[test]
    fn what_a_kill_left_behind_is_not_called_harmless() {
        let case = Case::of_report(Report::of_a_host())
            .gauge(MEM_TOTAL, MIB(1000))
            .gauge(MEM_FREE, MIB(20))
            .gauge(MEM_AVAILABLE, MIB(400));
        assert!(clear(RULE, &case).contains("had to kill"));
    }

    /// 1,000 MiB in one zone whose marks keep 20 MiB.
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
    fn explains_a_floor_beside_plenty_of_cache() {
        let finding = found(RULE, &streaming(18, 700));
        assert_eq!(finding.severity, Severity::Info);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(finding.title.contains("18 MiB"), "{}", finding.title);
    }

    #[test]
    fn a_floor_reached_in_the_last_part_of_the_look_counts() {
        let mut free = vec![MIB(300); 11];
        free.extend([MIB(19); 10]);
        found(RULE, &streaming(0, 700).gauge_steps(MEM_FREE, &free));
    }

    #[test]
    fn clear_above_the_floor_and_where_little_is_available() {
        clear(RULE, &streaming(300, 700));
        clear(RULE, &streaming(18, 100));
    }

    #[test]
    fn clear_where_somebody_waits_or_reads_again() {
        clear(RULE, &streaming(18, 700).counter(PSI_MEMORY_SOME, 50_000));
        clear(RULE, &streaming(18, 700).counter(REFAULT_FILE, 500));
    }

    #[test]
    fn a_host_without_zone_data_is_compared_with_its_like() {
        let case = Case::over(20)
            .gauge(MEM_TOTAL, Bytes::from_gib(32))
            .gauge(MEM_FREE, MIB(250))
            .gauge(MEM_AVAILABLE, Bytes::from_gib(20));
        let finding = found(RULE, &case);
        assert_eq!(finding.confidence.word(), "probable");
    }

    #[test]
    fn one_look_says_that_it_is_one() {
        let case = zoned(Case::once())
            .gauge(MEM_FREE, MIB(18))
            .gauge(MEM_AVAILABLE, MIB(700));
        let finding = found(RULE, &case);
        assert!(finding.title.contains("one look"), "{}", finding.title);
    }

    #[test]
    fn without_free_memory_it_says_so() {
        let missing = not_evaluated(RULE, &Case::over(20).gauge(MEM_TOTAL, MIB(1000)));
        assert_eq!(missing.names, ["mem.free"]);
    }
}
