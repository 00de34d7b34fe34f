//! Kernel objects pile up that nobody can reclaim.

use timeline::{
    Track,
    signals::{MEM_SLAB, MEM_SLAB_RECLAIMABLE, MEM_SLAB_UNRECLAIMABLE, SLAB_PAGES},
};
use units::{Bytes, Ratio, Span};

use super::available_exhaustion;
use crate::calm;
use crate::evidence::Evidence;
use crate::finding::Severity;
use crate::fix::Fix;
use crate::missing::Missing;
use crate::rise::Rise;
use crate::rule::{Outcome, clear, declare_rule};
use crate::slab;

declare_rule! {
    /// The kernel holds more and more objects that it cannot reclaim.
    ///
    /// ## What it means
    /// A driver, a file system or a program that keeps kernel objects open (sockets, epoll, watches, cgroups) makes the
    /// kernel allocate small objects that are never freed. No process shows them, dropping caches does not help, and one
    /// day memory is gone.
    /// ## How it is recognised
    /// Unreclaimable slab (SUnreclaim) climbs by 4 % of RAM or more while watched, or it is at 10 % of RAM (at least
    /// 256 MiB) already; healthy hosts have 0.3 % to 6 %. A fifth of RAM, or a climb over an hour, or one that leaves
    /// less than 10 % available is a warning. Where RAM is not known, 4 GiB and 16 GiB take the place of the shares.
    /// A look of seconds proves a climb, not a leak: that needs a recording over hours.
    /// ## Not this
    /// - `dentry-inode-bloat`: names and inodes of files, which are reclaimed when memory is wanted.
    /// - A jump that does not go on: something was started.
    /// ## What to do
    /// Now: find the cache that grows (`slabtop`) and stop what makes it grow. For good: update the kernel or the driver,
    /// or fix the program. Verify: a recording over a day shows SUnreclaim level.
    /// ## References
    /// - kernel Documentation/mm/slab.rst (slub_debug, alloc_traces)
    /// - kernel Documentation/mm/allocation-profiling.rst (6.10 or later: /proc/allocinfo)
    pub(crate) RULE = { id: "slab-leak", since: "0.1.0", purpose: Finding, reach: Growth, check: check }
}

/// Labelled captures: the largest rise of SUnreclaim that is no leak takes 1.4 % of RAM (swap in full use).
const CLIMB: Ratio = Ratio::from_percent(4.0);
/// Real hosts in question-and-answer threads: 0.3 % to 5.4 %; the least that was a leak 15 %.
const HIGH: Ratio = Ratio::from_percent(10.0);
/// Below this a small machine's base of kernel objects is a large share.
const HIGH_AT_LEAST: Bytes = Bytes::from_mib(256);
/// Where RAM is not known: 10 % of 40 GiB.
const HIGH_UNKNOWN_RAM: Bytes = Bytes::from_gib(4);
/// No healthy load is known that holds so much; a leak of SELinux objects was found at 45 GiB.
const TOO_HIGH: Ratio = Ratio::from_percent(20.0);
const TOO_HIGH_UNKNOWN_RAM: Bytes = Bytes::from_gib(16);
/// Start-up and warm-up are over.
const LONG: Span = Span::from_hours(1);
/// Available memory below this is little.
const LITTLE: Ratio = available_exhaustion::LOW;

fn check(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    let ram = cx.ram().ok();
    let last = cx.timeline.len().saturating_sub(1);
    let caches: Vec<_> = slab::caches(cx, last)
        .into_iter()
        .filter(|cache| !cache.is_reclaimable())
        .collect();
    let track = match unreclaimable(cx) {
        Ok(track) => Some(track),
        // slabtop alone: its caches tell the level.
        Err(_) if !caches.is_empty() => None,
        Err(missing) => return Err(missing),
    };
    let level = track
        .as_ref()
        .map_or_else(|| Some(caches.iter().map(|c| c.bytes).sum()), Track::last);
    let Some(level) = level else {
        return clear!("kernel objects were not measured");
    };
    let climb = track
        .as_ref()
        .and_then(Rise::largest)
        .filter(|rise| rise.is_substantial(ram, CLIMB) && rise.is_climb(cx));
    let edge = |share: Ratio, otherwise: Bytes| ram.map_or(otherwise, |ram| ram.share(share));
    let high = edge(HIGH, HIGH_UNKNOWN_RAM).max(HIGH_AT_LEAST);
    if climb.is_none() && level < high {
        return clear!("{level} of kernel objects cannot be reclaimed, and they did not pile up");
    }

    let too_high = level >= edge(TOO_HIGH, TOO_HIGH_UNKNOWN_RAM).max(HIGH_AT_LEAST);
    let little = ram.zip(calm::available(cx).ok().and_then(|(t, _)| t.min()));
    let little = little.is_some_and(|(ram, (least, _))| least < ram.share(LITTLE));
    let severity = match &climb {
        _ if too_high => Severity::Warning,
        Some(rise) if little || rise.stretch.lasts() >= LONG => Severity::Warning,
        _ => Severity::Info,
    };
    let grown = climb.as_ref().and_then(|c| slab::grown(cx, &c.stretch));
    let grown = grown.filter(|cache| !cache.is_reclaimable());
    let mostly = match (&grown, caches.first()) {
        (Some(cache), _) => format!(", most of it in {}", cache.name),
        (None, Some(cache)) => format!(", {} of it in {}", cache.bytes, cache.name),
        (None, None) => String::new(),
    };
    let of_ram = ram
        .and_then(|ram| level.ratio_of(ram))
        .map_or_else(String::new, |share| format!(" ({share} of RAM)"));
    let title = match &climb {
        Some(rise) => format!(
            "Kernel objects that cannot be reclaimed grew by {} to {}{of_ram} in {}{mostly}.",
            rise.by(),
            rise.to,
            rise.stretch.spans()
        ),
        None => format!("{level} of kernel objects{of_ram} cannot be reclaimed{mostly}."),
    };
    let mut finding = RULE.found(severity, title);
    let mut kinds = Vec::new();
    if let Some(rise) = &climb {
        kinds.push("a climb");
        finding = finding.during(rise.stretch).shows_from(
            MEM_SLAB_UNRECLAIMABLE,
            rise.by(),
            edge(CLIMB, HIGH_AT_LEAST),
            Some(rise.stretch.to),
            format!("SUnreclaim rose from {} to {}", rise.from, rise.to),
        );
    }
    if level >= high {
        kinds.push("the level");
        finding = finding.shows_from(
            MEM_SLAB_UNRECLAIMABLE,
            level,
            high,
            None,
            format!("{level} unreclaimable{of_ram}"),
        );
    }
    if let Some(track) = &track {
        finding = finding.graph("unreclaimable slab", track);
    }
    if let Some(cache) = &grown {
        finding = finding.shows(
            SLAB_PAGES,
            cache.bytes,
            None,
            format!("{} grew by {}", cache.name, cache.bytes),
        );
    }
    let reclaimable = cx
        .timeline
        .gauge(MEM_SLAB_RECLAIMABLE)
        .and_then(|t| t.last());
    if let Some(reclaimable) = reclaimable {
        finding = finding.not(
            "dentry-inode-bloat",
            format!("reclaimable slab ({reclaimable}) is not counted here"),
        );
    }
    let open = match (cx.look() >= LONG, caches.is_empty()) {
        (true, false) => "",
        (true, true) => "slab caches (root) would name the owner",
        (false, _) => "a recording over hours would tell a leak from a load",
    };
    // Seconds of growth are one observation, however it is looked at.
    if cx.look() < LONG && !too_high {
        kinds.truncate(1);
    }
    Ok(finding
        .cause("Something in the kernel allocates objects and does not free them: a driver, a file system, or a program that keeps kernel objects open.")
        .fix(Fix::say("Find the cache that grows, then what was started, plugged in or updated when it began.").look("slabtop --once --sort=c | head -n 20"))
        .fix(Fix::say("Update the kernel or the driver that owns the cache; memory comes back with a restart of the machine."))
        .verify("memtide capture --for 24h --every 1m -o day.jsonl.zst, then memtide check on it: SUnreclaim is level")
        .affects(slab::affected(&caches, 3))
        .sure(cx.confidence(&kinds, open))
        .see("kernel: Documentation/mm/slab.rst")
        .see("kernel: Documentation/mm/allocation-profiling.rst")
        .into())
}

/// SUnreclaim, or Slab − SReclaimable.
fn unreclaimable(cx: &Evidence<'_>) -> Result<Track<Bytes>, Missing> {
    cx.gauge(MEM_SLAB_UNRECLAIMABLE).or_else(|missing| {
        let slab = cx.gauge(MEM_SLAB);
        let reclaimable = cx.gauge(MEM_SLAB_RECLAIMABLE);
        match (slab, reclaimable) {
            (Ok(slab), Ok(reclaimable)) => Ok(slab.minus(&reclaimable)),
            _ => Err(missing),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::{
        Entity,
        signals::{MEM_AVAILABLE, MEM_TOTAL, SLAB_OBJECT_SIZE, SLAB_OBJECTS},
    };
    use units::{Count, Pages};

    const MIB: fn(u64) -> Bytes = Bytes::from_mib;

    fn ramp(from: u64, to: u64, steps: u64) -> Vec<Bytes> {
        (0..=steps)
            .map(|i| MIB(from + (to - from) * i / steps))
            .collect()
    }

    fn host(seconds: u64) -> Case {
        Case::over(seconds)
            .gauge(MEM_TOTAL, MIB(1000))
            .gauge(MEM_AVAILABLE, MIB(500))
    }

    #[test]
    fn a_climb_of_seconds_is_information_and_not_yet_a_leak() {
        let case = host(20).gauge_steps(MEM_SLAB_UNRECLAIMABLE, &ramp(20, 120, 20));
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Info);
        assert_eq!(finding.confidence.word(), "probable");
        assert!(finding.confidence.why.contains("hours"));
        assert!(
            finding.title.contains("grew by 100 MiB"),
            "{}",
            finding.title
        );
    }

    #[test]
    fn a_climb_that_leaves_little_available_is_a_warning() {
        let case = host(20)
            .gauge(MEM_AVAILABLE, MIB(50))
            .gauge_steps(MEM_SLAB_UNRECLAIMABLE, &ramp(20, 120, 20));
        assert_eq!(found(RULE, &case).severity, Severity::Warning);
    }

    #[test]
    fn a_climb_over_more_than_an_hour_is_a_warning() {
        let case = host(4500).gauge_steps(MEM_SLAB_UNRECLAIMABLE, &ramp(20, 120, 4500));
        assert_eq!(found(RULE, &case).severity, Severity::Warning);
    }

    #[test]
    fn an_absurd_level_needs_no_second_look_nor_the_size_of_ram() {
        let case = Case::once()
            .gauge_of(
                Entity::Slab,
                "ebitmap_node",
                SLAB_OBJECTS,
                Count::new(734_506_368),
            )
            .gauge_of(
                Entity::Slab,
                "ebitmap_node",
                SLAB_OBJECT_SIZE,
                Bytes::new(64),
            );
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.affected[0].name, "ebitmap_node");
    }

    #[test]
    fn the_cache_that_grew_is_named() {
        let pages: Vec<Pages> = (0..=20).map(|i| Pages::new(i * 1280)).collect();
        let case = host(20)
            .gauge_steps(MEM_SLAB_UNRECLAIMABLE, &ramp(20, 120, 20))
            .gauge_steps_of(Entity::Slab, "kmalloc-1k", SLAB_PAGES, &pages);
        let title = found(RULE, &case).title;
        assert!(title.contains("most of it in kmalloc-1k"), "{title}");
    }

    #[test]
    fn a_jump_or_a_small_base_is_clear() {
        let mut jump = vec![MIB(20); 10];
        jump.extend([MIB(80); 11]);
        clear(RULE, &host(20).gauge_steps(MEM_SLAB_UNRECLAIMABLE, &jump));
        // A micro-VM: an eighth of RAM, but only 16 MiB.
        let tiny = Case::over(20)
            .gauge(MEM_TOTAL, MIB(128))
            .gauge(MEM_SLAB_UNRECLAIMABLE, MIB(16));
        clear(RULE, &tiny);
    }

    #[test]
    fn an_inode_cache_is_not_a_leak() {
        let case = Case::once().gauge_of(
            Entity::Slab,
            "ext4_inode_cache",
            SLAB_PAGES,
            Pages::new(2_700_000),
        );
        assert!(
            not_evaluated(RULE, &case)
                .names
                .contains(&"mem.slab_unreclaimable")
        );
        let case = case.gauge(MEM_SLAB_UNRECLAIMABLE, MIB(90));
        clear(RULE, &case);
    }

    #[test]
    fn without_slab_figures_it_says_what_it_lacks() {
        assert_eq!(
            not_evaluated(RULE, &host(20)).names,
            ["mem.slab_unreclaimable"]
        );
    }
}
