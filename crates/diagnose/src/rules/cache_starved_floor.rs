//! Free memory lies flat on its floor and there is hardly any page cache: a shortage that looks like free memory.

use timeline::{
    Condition,
    signals::{
        MEM_AVAILABLE, MEM_FLOOR_HIGH, MEM_FREE, PAGE_CACHE, PGPGIN, PSI_IO_SOME, PSI_MEMORY_SOME,
        REFAULT_FILE,
    },
};
use units::{Bytes, BytesPerSecond, Quantity, Ratio, Span};

use super::page_cache_thrash::READ_AGAIN;
use crate::evidence::Evidence;
use crate::finding::Severity;
use crate::fix::Fix;
use crate::floor::Floor;
use crate::missing::{Missing, Need};
use crate::rule::{Outcome, clear, declare_rule};
use crate::stalls::Stalls;
use crate::who;

declare_rule! {
    /// Free memory lies flat on the kernel's floor and hardly any page cache is left: RAM is full although some looks free.
    ///
    /// ## What it means
    /// The kernel keeps a few hundred MiB free at all times and reclaims to stay there; no program gets at them. When free
    /// memory rests on that floor and the page cache is nearly gone too, programs hold all of RAM. Everything that reads a
    /// file waits for a disk, even when swap is quiet and monitoring shows "800 MB free".
    /// ## How it is recognised
    /// For long, MemFree is within 30 % of the floor (the zones' high marks and reserves), and page cache is below 3 % of
    /// RAM or twice the floor, whichever is more. Beside it something waits: files come back after eviction at 1 MiB/s,
    /// tasks stall for memory 5 % of the time, or for disks 10 % of it while 5 MiB/s are read. Without zone data the floor
    /// is predicted for a host of this size, and that counts for less.
    /// ## Not this
    /// - `free-low-harmless`: free is on its floor because cache fills the rest.
    /// - More than 10 % of RAM available: then cache is not starved.
    /// - `min-free-too-large`: the floor itself is too high.
    /// - A database that reads with O_DIRECT wants no page cache.
    /// ## What to do
    /// Now: stop or cap what grew last, or move the batch job. For good: MemoryHigh for the job, pipes instead of
    /// intermediate files, or more RAM. Verify: free memory no longer has a flat lower edge, and the job reads less.
    /// ## References
    /// - kernel mm/page_alloc.c, calculate_totalreserve_pages and __setup_per_zone_wmarks
    /// - kernel Documentation/admin-guide/sysctl/vm.rst, min_free_kbytes
    pub(crate) RULE = { id: "cache-starved-floor", since: "0.1.0", purpose: Finding, check: check }
}

/// An engineering choice. Wider than "on the floor" elsewhere: kswapd overshoots while it is busy.
const NEAR: f64 = 1.3;
/// An engineering choice.
const LITTLE_CACHE: Ratio = Ratio::from_percent(3.0);
const FLOORS: f64 = 2.0;
/// Above this, cache is not starved.
const AVAILABLE: Ratio = Ratio::from_percent(10.0);
/// An engineering choice: reading that a cache might have spared.
const READ: BytesPerSecond = BytesPerSecond::from_mib(5.0);
const HOLD: Span = Span::from_mins(10);

fn check(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    let free = cx.gauge(MEM_FREE)?;
    let cache = cx.page_cache()?;
    let ram = cx.ram()?;
    let (floor, measured) = match cx.floor() {
        Ok(floor) => (floor.high, true),
        // A flat line at the predicted upper edge.
        Err(_) => {
            let edge = Floor::predicted(ram).1.as_f64();
            (free.zip(&free, |_, _| edge), false)
        }
    };
    let mut starved = free.at_most_track(&floor.scaled(NEAR)).and(
        &cache
            .at_most(ram.share(LITTLE_CACHE))
            .or(&cache.at_most_track(&floor.scaled(FLOORS))),
    );
    if let Ok(available) = cx.gauge(MEM_AVAILABLE) {
        starved = starved.and(&available.at_most(ram.share(AVAILABLE)));
    }
    if starved.longest().is_none() {
        return match (free.min(), cache.min()) {
            (Some((free, _)), Some((cache, _))) => clear!(
                "free memory fell to {free} and page cache to {cache}, but not both to the floor with little available"
            ),
            _ => clear!("free memory was not measured"),
        };
    }
    let Some(waiting) = waiting(cx) else {
        return Err(Missing::because(
            vec![
                PSI_MEMORY_SOME.def().name,
                PSI_IO_SOME.def().name,
                REFAULT_FILE.def().name,
            ],
            Need::File(PSI_MEMORY_SOME.def().file),
        ));
    };
    let starved = starved.and(&waiting);
    let Some(stretch) = cx.sustained(&starved, HOLD) else {
        return clear!(
            "free memory was on its floor with little page cache, but nothing waited for it for long"
        );
    };

    let stalls = Stalls::during(cx, &stretch);
    let (Some(on_floor), Some(edge), Some((least, index))) = (
        free.mean_in(&stretch),
        floor.mean_in(&stretch),
        cache.min_in(&stretch),
    ) else {
        return clear!("free memory was not measured");
    };
    let severity = if stalls.standstill() {
        Severity::Critical
    } else {
        Severity::Warning
    };
    let mut finding = RULE
        .found(
            severity,
            format!(
                "RAM is full: the {on_floor} still free are the kernel's floor, and page cache is down to {least} of {ram}.{}",
                stalls.sentence()
            ),
        )
        .during(cx.each_time(stretch, &starved, HOLD, |_| true))
        .graph("page cache", &cache)
        .shows_below(MEM_FREE, on_floor, Bytes::from_f64(edge.as_f64() * NEAR), None, format!("{on_floor} free on average"))
        .shows(
            MEM_FLOOR_HIGH,
            edge,
            None,
            format!(
                "the floor is at {edge}{}",
                if measured { "" } else { ", predicted for a host of this size" }
            ),
        )
        .shows_below(
            PAGE_CACHE,
            least, Bytes::from_f64(
            ram.share(LITTLE_CACHE).as_f64().max(edge.as_f64() * FLOORS),
        ),
            Some(cx.timeline.times()[index]),
            format!("page cache fell to {least}"),
        );
    let mut kinds = vec!["free memory on its floor and no cache"];
    if let Some(again) = refaults(cx).and_then(|again| again.mean_in(&stretch)) {
        finding = finding.shows_from(
            REFAULT_FILE,
            again,
            READ_AGAIN,
            None,
            format!("{again} of files came back after eviction"),
        );
        if again >= READ_AGAIN {
            kinds.push("refaults");
        }
    }
    if stalls.any() {
        kinds.push("stalls");
    }
    let mut sure = cx.confidence(
        &kinds,
        if measured {
            stalls.open()
        } else {
            "the floor is predicted; /proc/zoneinfo tells it"
        },
    );
    if !measured {
        sure.value = sure.value.min(0.75);
    }
    Ok(stalls
        .shown_in(finding)
        .not("free-low-harmless", format!("page cache is down to {least}"))
        .cause("Anonymous, shared and kernel memory leave no room for the page cache.")
        .fix(Fix::cap(cx, index, "Stop what grew last, or cap the group it belongs to."))
        .fix(Fix::say("Run batch jobs at another hour and capped (systemd-run --scope -p MemoryHigh=512M before its command, or MemoryHigh=512M in its unit file), and pipe data instead of writing files in between."))
        .verify("memtide check --for 1m during the job: free memory rises above its floor, and less is read from disks")
        .affects(who::largest(cx, index, 3))
        .sure(sure)
        .see("kernel: mm/page_alloc.c, calculate_totalreserve_pages")
        .see("kernel: Documentation/admin-guide/sysctl/vm.rst, min_free_kbytes")
        .into())
}

fn refaults(cx: &Evidence<'_>) -> Option<timeline::Track<BytesPerSecond>> {
    Some(cx.refaults_file().ok()?.to_bytes(cx.page_size().ok()?))
}

/// Where tasks wait for want of cache; `None` where the source measures nothing of that kind.
fn waiting(cx: &Evidence<'_>) -> Option<Condition> {
    let again = refaults(cx).map(|again| again.at_least(READ_AGAIN));
    let memory = cx
        .stall(PSI_MEMORY_SOME)
        .ok()
        .map(|stalled| stalled.at_least(Stalls::MEMORY));
    let disk = cx.stall(PSI_IO_SOME).ok().map(|stalled| {
        let stalled = stalled.at_least(Stalls::IO);
        match cx.rate(PGPGIN) {
            Ok(read) => stalled.and(&read.at_least(READ)),
            Err(_) => stalled,
        }
    });
    [again, memory, disk]
        .into_iter()
        .flatten()
        .reduce(|a, b| a.or(&b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::Entity;
    use timeline::signals::{
        MEM_CACHED, MEM_SHMEM, MEM_TOTAL, PSI_IO_FULL, PSI_MEMORY_FULL, ZONE_HIGH, ZONE_LOW,
        ZONE_MANAGED,
    };
    use units::Pages;

    /// A host of 8,000 MiB with a floor of 100 MiB.
    fn host(free: u64, cache: u64, available: u64) -> Case {
        let pages = |mib: u64| Pages::new(mib * 256);
        let zone = "0/Normal";
        Case::over(60)
            .gauge(MEM_TOTAL, Bytes::from_mib(8000))
            .gauge(MEM_FREE, Bytes::from_mib(free))
            .gauge(MEM_CACHED, Bytes::from_mib(cache))
            .gauge(MEM_SHMEM, Bytes::ZERO)
            .gauge(MEM_AVAILABLE, Bytes::from_mib(available))
            .gauge_of(Entity::Zone, zone, ZONE_MANAGED, pages(8000))
            .gauge_of(Entity::Zone, zone, ZONE_LOW, pages(80))
            .gauge_of(Entity::Zone, zone, ZONE_HIGH, pages(100))
    }

    fn waiting(case: Case, memory: u64, io: u64) -> Case {
        case.counter(PSI_MEMORY_SOME, memory * 10_000)
            .counter(PSI_MEMORY_FULL, memory * 9_000)
            .counter(PSI_IO_SOME, io * 10_000)
            .counter(PSI_IO_FULL, io * 5_000)
            .counter(PGPGIN, 20 << 20)
    }

    #[test]
    fn flat_free_memory_without_cache_and_with_waiting_is_found() {
        let finding = found(RULE, &waiting(host(105, 120, 50), 0, 40));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert_eq!(
            found(RULE, &waiting(host(105, 120, 50), 60, 0)).severity,
            Severity::Critical
        );
    }

    #[test]
    fn clear_where_cache_is_available_or_free_is_off_the_floor() {
        clear(RULE, &waiting(host(105, 3000, 2500), 0, 40));
        clear(RULE, &waiting(host(105, 200, 1500), 0, 40));
        clear(RULE, &waiting(host(400, 120, 50), 0, 40));
    }

    #[test]
    fn clear_while_nothing_waits() {
        clear(RULE, &waiting(host(105, 120, 50), 0, 2));
    }

    #[test]
    fn a_predicted_floor_makes_it_probable() {
        let case = Case::over(60)
            .gauge(MEM_TOTAL, Bytes::from_mib(8192))
            .gauge(MEM_FREE, Bytes::from_mib(130))
            .gauge(MEM_CACHED, Bytes::from_mib(120))
            .gauge(MEM_SHMEM, Bytes::ZERO)
            .counter(PSI_MEMORY_SOME, 400_000);
        assert_eq!(found(RULE, &case).confidence.word(), "probable");
    }

    #[test]
    fn without_any_measure_of_waiting_it_says_what_it_lacks() {
        let missing = not_evaluated(RULE, &host(105, 120, 50));
        assert!(missing.names.contains(&"psi.memory.some"));
        assert_eq!(not_evaluated(RULE, &Case::over(60)).names, ["mem.free"]);
    }
}
