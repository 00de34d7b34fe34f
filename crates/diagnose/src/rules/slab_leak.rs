//! Kernel objects pile up that nobody can reclaim.

use timeline::facts::VFS_CACHE_PRESSURE;
use timeline::signals::{MEM_SLAB, MEM_SLAB_RECLAIMABLE, MEM_SLAB_UNRECLAIMABLE, SLAB_PAGES};

use crate::measures::available;
use crate::measures::rise::{self, LONG, Rise, heights, with_levels};
use crate::measures::slab;
use crate::prelude::*;

declare_rule! {
    /// The kernel holds more and more objects that it cannot reclaim.
    ///
    /// ## What it means
    /// A driver, a file system or a program that keeps kernel objects open (sockets, epoll, watches, cgroups) makes the
    /// kernel allocate small objects that are never freed. No process shows them, dropping caches does not help, and one
    /// day memory is gone.
    /// ## How it is recognised
    /// Unreclaimable slab (SUnreclaim) climbs by 4 % of RAM or more (at least 16 MiB), in 10 s or longer and in several
    /// steps, or it is at 10 % of RAM (at least 256 MiB) for 10 s; healthy hosts have 0.3 % to 6 %. A climb ends when it
    /// is given back by half, or stands still for longer than it took so far (a minute at least). A fifth of RAM, or a
    /// climb over an hour, or one that leaves less than 10 % available is a warning. Where RAM is not known, 4 GiB and
    /// 16 GiB take the place of the shares. Seconds prove a climb, not a leak: that needs a recording over hours.
    /// ## Not this
    /// - `dentry-inode-bloat`: names and inodes of files, which are reclaimed when memory is wanted.
    /// - A jump that does not go on: something was started.
    /// ## What to do
    /// Now: find the cache that grows (`slabtop`) and stop what makes it grow. For good: update the kernel or the driver,
    /// or fix the program. Verify: a recording over a day shows SUnreclaim level.
    /// ## References
    /// - kernel Documentation/mm/slab.rst (slub_debug, alloc_traces)
    /// - kernel Documentation/mm/allocation-profiling.rst: /proc/allocinfo, 6.10 or later
    pub(crate) RULE = {
        id: "slab-leak", since: "0.1.0", class: Growth,
        trigger: trigger, story: story,
        cause: "Something in the kernel allocates objects and does not free them: a driver, a file system, or a program that keeps kernel objects open.",
        verify: "memtide capture --for 24h --every 1m -o day.jsonl.zst, then memtide check on it: SUnreclaim is level",
        brings_about: WANT_AND_THRASH,
        explained_by: &[Explains::Maybe(VFS_CACHE_PRESSURE)],
    }
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

fn trigger() -> Trigger {
    let climb = computed("unreclaimable_slab_climb", |cx| {
        Ok(heights(cx, &unreclaimable().track(cx)?))
    });
    let climbs = all![
        climb.at_least("rise of unreclaimable slab", Rise::least(CLIMB)),
        unreclaimable().at_least("unreclaimable slab", Rise::least(CLIMB)),
    ];
    rise::trigger(find, any![is_high(), climbs])
}

/// SUnreclaim, or Slab − SReclaimable, or where slabtop alone was kept what its caches take.
fn unreclaimable() -> Reading<Bytes> {
    let rest = gauge(MEM_SLAB).minus(gauge(MEM_SLAB_RECLAIMABLE));
    let caches = computed("unreclaimable_slab_caches", |cx| {
        let is_meant = |cache: &slab::Cache| !cache.is_reclaimable();
        slab::sizes(cx, is_meant).ok_or_else(|| cx.lacks_signal(MEM_SLAB_UNRECLAIMABLE.id()))
    });
    gauge(MEM_SLAB_UNRECLAIMABLE).or(rest).or(caches)
}

/// This share of RAM, or so much where RAM is not known.
fn edge(share: Ratio, otherwise: Bytes) -> Reading<Bytes> {
    let of_ram = ram().share(share).or(Reading::constant(otherwise));
    of_ram.max(HIGH_AT_LEAST)
}

fn is_high() -> Predicate {
    unreclaimable().at_least("unreclaimable slab", edge(HIGH, HIGH_UNKNOWN_RAM))
}

fn find(cx: &Evidence<'_>) -> Result<Vec<Occurrence>, Missing> {
    let mut rises = Rise::of_size(&unreclaimable().track(cx)?, Rise::at_least(cx, CLIMB));
    // A jump that does not go on: something was started.
    rises.retain(|rise| rise.climbs);
    with_levels(cx, is_high(), rises)
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let track = unreclaimable().track(cx)?;
    let Some((level, at)) = track.max_in(stretch) else {
        return clear!("kernel objects were not measured");
    };
    let is_meant = |cache: &slab::Cache| !cache.is_reclaimable();
    let caches = slab::caches(cx, stretch.last).into_iter();
    let caches: Vec<_> = caches.filter(is_meant).collect();
    let least = Rise::at_least(cx, CLIMB);
    let climbs = Rise::seen(&track, least).filter(|rise| rise.climbs);
    let climb = climbs.max_by_key(Rise::by);
    let edge = |share, otherwise| Ok(edge(share, otherwise).track(cx)?.at(at).unwrap_or_default());
    let high: Bytes = edge(HIGH, HIGH_UNKNOWN_RAM)?;
    let too_high = level >= edge(TOO_HIGH, TOO_HIGH_UNKNOWN_RAM)?;
    let severity = severity(cx, stretch, climb.as_ref(), too_high);
    let grown = climb.as_ref().and_then(|it| slab::grown(cx, &it.stretch));
    let grown = grown.filter(is_meant);
    let of_ram = cx.remark_of_ram(level);
    let title = title(
        climb.as_ref(),
        (level, &of_ram),
        grown.as_ref(),
        caches.first(),
    );
    let reclaimable = cx.level(MEM_SLAB_RECLAIMABLE, at);
    let is_long = stretch.elapsed() >= LONG;
    let open = open(is_long, caches.is_empty());
    Ok(RULE
        .found(severity, title)
        .graph("unreclaimable slab", &track)
        .with(climb.as_ref(), |finding, rise| {
            let text = format!("SUnreclaim rose from {} to {}", rise.from, rise.to);
            finding.shows_from(MEM_SLAB_UNRECLAIMABLE, rise.by(), least, Some(rise.stretch.to), text).counts_as("a climb")
        })
        .when(level >= high, |finding| finding.shows_level(MEM_SLAB_UNRECLAIMABLE, level, high, None, format!("{level} unreclaimable{of_ram}")))
        // Seconds of growth are one observation, however it is looked at.
        .counts_once_if(!is_long && !too_high)
        .with(grown.as_ref(), |finding, cache| finding.shows(SLAB_PAGES, cache.bytes, None, format!("{} grew by {}", cache.name, cache.bytes)))
        .with(reclaimable, |finding, bytes| finding.not("dentry-inode-bloat", format!("reclaimable slab ({bytes}) is not counted here")))
        .fix(Fix::say("Find the cache that grows, then what was started, plugged in or updated when it began.").look("slabtop --once --sort=c | head -n 20"))
        .fix(Fix::say("Update the kernel or the driver that owns the cache; memory comes back with a restart of the machine."))
        .affects(slab::affected(&caches, 3))
        .sure_by_kinds(cx, open)
        .into())
}

/// What would settle the rest.
fn open(is_long: bool, no_caches: bool) -> &'static str {
    match (is_long, no_caches) {
        (true, false) => "",
        (true, true) => "slab caches (root) would name the owner",
        (false, _) => "a recording over hours would tell a leak from a load",
    }
}

/// A level that is absurd, a climb that leaves little or took long.
fn severity(
    cx: &Evidence<'_>,
    stretch: &Stretch,
    climb: Option<&Rise>,
    too_high: bool,
) -> Severity {
    let available = available::available(cx).ok();
    let least = available.and_then(|(track, _)| track.min_in(stretch));
    let little = cx.ram().ok().zip(least);
    let little = little.is_some_and(|(ram, (left, _))| left < ram.share(LITTLE_AVAILABLE));
    let matters = |rise: &Rise| little || rise.stretch.duration() >= LONG;
    Severity::warning_if(too_high || climb.is_some_and(matters))
}

/// What happened, and in which cache most of it is.
fn title(
    climb: Option<&Rise>,
    (level, of_ram): (Bytes, &str),
    grown: Option<&slab::Cache>,
    largest: Option<&slab::Cache>,
) -> String {
    let mostly = match (grown, largest) {
        (Some(cache), _) => format!(", most of it in {}", cache.name),
        (None, Some(cache)) => format!(", {} of it in {}", cache.bytes, cache.name),
        (None, None) => String::new(),
    };
    match climb {
        Some(rise) => format!(
            "Kernel objects that cannot be reclaimed grew by {} to {}{of_ram} in {}{mostly}.",
            rise.by(),
            rise.to,
            rise.stretch.elapsed()
        ),
        None => format!("{level} of kernel objects{of_ram} cannot be reclaimed{mostly}."),
    }
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
    fn half_a_minute_within_a_calm_hour_is_found_and_a_jump_is_not() {
        let climb = [vec![MIB(20); 1800], ramp(20, 120, 30), vec![MIB(120); 60]].concat();
        let hour = |steps: &[Bytes]| host(3600).gauge_steps(MEM_SLAB_UNRECLAIMABLE, steps);
        let finding = found(RULE, &hour(&climb));
        assert_eq!(finding.severity, Severity::Info);
        let when = finding.when.unwrap();
        assert!(when.first >= 1799 && when.last <= 1831, "{when:?}");
        let jump = [vec![MIB(20); 1800], vec![MIB(80)]].concat();
        clear(RULE, &hour(&jump));
    }

    #[test]
    fn without_slab_figures_it_says_what_it_lacks() {
        assert_eq!(
            not_evaluated(RULE, &host(20)).names,
            ["mem.slab_unreclaimable"]
        );
    }
}
