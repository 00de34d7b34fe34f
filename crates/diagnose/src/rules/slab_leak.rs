//! Unreclaimable kernel objects (slab) pile up.

use timeline::facts::VFS_CACHE_PRESSURE;
use timeline::signals::{MEM_SLAB, MEM_SLAB_RECLAIMABLE, MEM_SLAB_UNRECLAIMABLE, SLAB_PAGES};

use crate::measures::available;
use crate::measures::rise::{self, LONG, Rise, heights, with_levels};
use crate::measures::slab;
use crate::oom::{self, Explained, Filler, OomCause};
use crate::prelude::*;

declare_rule! {
    /// Kernel memory that cannot be reclaimed (unreclaimable slab) grows or is large.
    ///
    /// ## What it means
    /// A driver, a file system or a program that keeps kernel objects open (sockets, epoll, watches, cgroups) makes the
    /// kernel allocate small objects that are never freed. No process shows them, dropping caches does not help, and
    /// one day memory is gone.
    /// ## How it is recognised
    /// Unreclaimable slab (SUnreclaim) climbs by {CLIMB} of RAM or more (at least {Rise::NOISE}), in {Rise::CLIMB} or
    /// longer and in several steps, or is at {SLAB_SHARE_HIGH} of RAM (at least {HIGH_AT_LEAST}, on small boards
    /// {HIGH_OF_BOARD} of RAM) for {LEVEL}; healthy hosts have 0.3 % to 6 %. A climb ends when half of it is freed, or
    /// when the level is flat for longer than the climb took (a minute at least). {TOO_HIGH} of RAM, a climb over an
    /// hour, or one with less than {AVAILABLE_LOW_SHARE} available is a warning. Where RAM is unknown,
    /// {HIGH_UNKNOWN_RAM} and {TOO_HIGH_UNKNOWN_RAM} replace the shares; {oom::LISTED_MIN}, as a warning, in a kernel
    /// report that lists the caches, which says that they are larger than all pages of programs and files. Seconds show
    /// a climb, not a leak: that needs a recording over hours.
    /// ## Not this
    /// - `dentry-inode-bloat`: names and inodes of files, which are reclaimed when memory is needed.
    /// - A jump that does not continue: a program was started.
    /// ## What to do
    /// Now: find the cache that grows (`slabtop`) and stop what makes it grow. For good: update the kernel or the
    /// driver, or fix the program. Verify: a recording over a day shows SUnreclaim level.
    /// ## References
    /// - kernel Documentation/mm/slab.rst (slub_debug, alloc_traces)
    /// - kernel Documentation/mm/allocation-profiling.rst: /proc/allocinfo, 6.10 or later
    pub(crate) RULE = {
        id: "slab-leak", since: "0.1.0", class: Growth,
        numbers: [CLIMB, Rise::NOISE, Rise::CLIMB, SLAB_SHARE_HIGH, HIGH_AT_LEAST, LEVEL,
            AVAILABLE_LOW_SHARE, HIGH_UNKNOWN_RAM, TOO_HIGH_UNKNOWN_RAM, oom::LISTED_MIN,
            HIGH_OF_BOARD, TOO_HIGH],
        trigger: trigger, story: story,
        cause: "A driver or a file system allocates kernel objects and does not free them, or a \
                program keeps them open.",
        verify: "memtide capture --for 24h --every 1m -o day.jsonl.zst, then memtide check on it: \
                 SUnreclaim is level",
        brings_about: WANT_AND_THRASH,
        explained_by: &[Explains::Maybe(VFS_CACHE_PRESSURE)],
    }
}

/// Labelled captures: the largest rise of SUnreclaim without a leak is 1.4 % of RAM (swap in full use).
const CLIMB: Ratio = Ratio::from_percent(4.0);
/// Real hosts in question-and-answer threads: 0.3 % to 5.4 %; the smallest leak 15 %.
const SLAB_SHARE_HIGH: Ratio = Ratio::from_percent(10.0);
/// On small machines the basic kernel objects alone take a large share.
const HIGH_AT_LEAST: Bytes = Bytes::from_mib(256);
/// On boards so small that this is less: no board is known to need a third of its RAM for them. An engineering choice.
const HIGH_OF_BOARD: Ratio = Ratio::from_percent(33.0);
/// Where RAM is unknown: 10 % of 40 GiB.
const HIGH_UNKNOWN_RAM: Bytes = Bytes::from_gib(4);
/// No healthy load is known to use this much; a leak of SELinux objects was found at 45 GiB.
const TOO_HIGH: Ratio = Ratio::from_percent(20.0);
const TOO_HIGH_UNKNOWN_RAM: Bytes = Bytes::from_gib(16);

fn trigger() -> Trigger {
    let climb =
        computed("unreclaimable_slab_climb", |cx| Ok(heights(cx, &unreclaimable().track(cx)?)));
    let climbs = all![
        climb.at_least("rise of unreclaimable slab", Rise::least(CLIMB)),
        unreclaimable().at_least("unreclaimable slab", Rise::least(CLIMB)),
    ];
    rise::trigger(find, any![is_high(), climbs])
}

/// SUnreclaim, or Slab − SReclaimable; with slabtop only, the size of its caches.
fn unreclaimable() -> Reading<Bytes> {
    let difference = gauge(MEM_SLAB).minus(gauge(MEM_SLAB_RECLAIMABLE));
    let caches = computed("unreclaimable_slab_caches", |cx| {
        slab::sizes(cx, is_unreclaimable)
            .ok_or_else(|| cx.lacks_signal(MEM_SLAB_UNRECLAIMABLE.id()))
    });
    gauge(MEM_SLAB_UNRECLAIMABLE).or(difference).or(caches)
}

fn is_unreclaimable(cache: &slab::SlabCache) -> bool {
    !cache.is_reclaimable()
}

/// This share of RAM, or `otherwise` where RAM is unknown.
fn edge(share: Ratio, otherwise: Bytes) -> Reading<Bytes> {
    let of_ram = ram().share(share).or(Reading::constant(otherwise));
    let least = ram().share(HIGH_OF_BOARD).min(HIGH_AT_LEAST);
    of_ram.max(least.or(Reading::constant(HIGH_AT_LEAST)))
}

fn is_high() -> Predicate {
    unreclaimable().at_least("unreclaimable slab", edge(SLAB_SHARE_HIGH, HIGH_UNKNOWN_RAM))
}

fn find(cx: &Evidence<'_>) -> Result<Vec<Occurrence>, Missing> {
    let mut rises = Rise::of_size(&unreclaimable().track(cx)?, Rise::at_least(cx, CLIMB));
    // Drops jumps that do not continue: a program was started.
    rises.retain(|rise| rise.climbs);
    let mut found = with_levels(cx, is_high(), rises)?;
    let reported = oom::reports(cx).into_iter().filter(is_listed);
    let is_new = |at: usize| !found.iter().any(|known| (known.first..=known.last).contains(&at));
    let new: Vec<usize> = reported.map(|one| one.index).filter(|at| is_new(*at)).collect();
    found.extend(new.into_iter().map(|at| Occurrence::on_host(at, at)));
    Ok(found)
}

/// Whether the kernel's list of unreclaimable caches is what explains a kill.
fn is_listed(explained: &Explained<'_>) -> bool {
    let is_slab = matches!(explained.cause, OomCause::UsedUp { by: Filler::Slab(_), .. });
    is_slab && !explained.report.slabs.is_empty()
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let track = unreclaimable().track(cx)?;
    let Some((level, at)) = track.max_in(stretch) else {
        return clear!("unreclaimable slab was not measured");
    };
    let caches: Vec<_> =
        slab::caches(cx, stretch.last).into_iter().filter(is_unreclaimable).collect();
    let least = Rise::at_least(cx, CLIMB);
    let climb = Rise::seen(&track, least).filter(|rise| rise.climbs).max_by_key(Rise::by);
    let edge = |share, otherwise| Ok(edge(share, otherwise).track(cx)?.at(at).unwrap_or_default());
    let high: Bytes = edge(SLAB_SHARE_HIGH, HIGH_UNKNOWN_RAM)?;
    let too_high = level >= edge(TOO_HIGH, TOO_HIGH_UNKNOWN_RAM)?;
    let is_reported = !oom::within(cx, stretch, is_listed).is_empty();
    let severity = severity(cx, stretch, climb.as_ref(), too_high || is_reported);
    let grown =
        climb.as_ref().and_then(|climb| slab::grown(cx, &climb.stretch)).filter(is_unreclaimable);
    let of_ram = cx.remark_of_ram(level);
    let title = title(climb.as_ref(), (level, &of_ram), grown.as_ref(), caches.first());
    let reclaimable = cx.level(MEM_SLAB_RECLAIMABLE, at);
    let is_long = stretch.elapsed() >= LONG;
    let open = open(is_long, caches.is_empty());
    Ok(RULE
        .found(severity, title)
        .graph("unreclaimable slab", &track)
        .with(climb.as_ref(), |finding, rise| {
            let text = format!("SUnreclaim rose from {} to {}", rise.from, rise.to);
            finding
                .shows_from(MEM_SLAB_UNRECLAIMABLE, rise.by(), least, Some(rise.stretch.to), text)
                .counts_as("a climb")
        })
        .when(level >= high, |finding| {
            finding.shows_level(
                MEM_SLAB_UNRECLAIMABLE,
                level,
                high,
                None,
                format!("{level} of unreclaimable slab{of_ram}"),
            )
        })
        .when(is_reported, |finding| {
            finding
                .with_line(
                    "the kernel lists these caches, as they are larger than all pages of programs \
                     and files",
                )
                .counts_as("the kernel's own report")
        })
        // A few seconds of growth count as one kind of evidence only.
        .counts_once_if(!is_long && !too_high && !is_reported)
        .with(grown.as_ref(), |finding, cache| {
            finding.shows(
                SLAB_PAGES,
                cache.bytes,
                None,
                format!("{} grew by {}", cache.name, cache.bytes),
            )
        })
        .with(reclaimable, |finding, bytes| {
            finding.not(
                "dentry-inode-bloat",
                format!("reclaimable slab ({bytes}) is not counted here"),
            )
        })
        .fix(
            Fix::say(
                "Find the cache that grows, then what was started, plugged in or updated when the \
                 growth began.",
            )
            .inspect("slabtop --once --sort=c | head -n 20"),
        )
        .fix(Fix::say(
            "Update the kernel or the driver that owns the cache; a reboot frees the memory.",
        ))
        .affects(slab::affected(&caches, 3))
        .sure_by_kinds(cx, open)
        .into())
}

/// What would settle the cause.
fn open(is_long: bool, no_caches: bool) -> &'static str {
    if !is_long {
        "a recording over hours would distinguish a leak from a load"
    } else if no_caches {
        "slab caches (root) would name the owner"
    } else {
        ""
    }
}

/// A warning for an extreme level, or a climb that took long or leaves little available.
fn severity(
    cx: &Evidence<'_>,
    stretch: &Stretch,
    climb: Option<&Rise>,
    too_high: bool,
) -> Severity {
    let available = available::available(cx).ok();
    let least = available.and_then(|(track, _)| track.min_in(stretch));
    let little = cx
        .ram()
        .ok()
        .zip(least)
        .is_some_and(|(ram, (left, _))| left < ram.share(AVAILABLE_LOW_SHARE));
    let matters = |rise: &Rise| little || rise.stretch.duration() >= LONG;
    Severity::warning_if(too_high || climb.is_some_and(matters))
}

/// The growth or the level, and the cache with most of it.
fn title(
    climb: Option<&Rise>,
    (level, of_ram): (Bytes, &str),
    grown: Option<&slab::SlabCache>,
    largest: Option<&slab::SlabCache>,
) -> String {
    let mostly = match (grown, largest) {
        (Some(cache), _) => format!(", most of it in {}", cache.name),
        (None, Some(cache)) => format!(", {} of it in {}", cache.bytes, cache.name),
        (None, None) => String::new(),
    };
    match climb {
        Some(rise) => format!(
            "Unreclaimable kernel memory (slab) grew by {} to {}{of_ram} in {}{mostly}.",
            rise.by(),
            rise.to,
            rise.stretch.elapsed()
        ),
        None => format!("The kernel cannot reclaim {level} of slab{of_ram}{mostly}."),
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

    #[test]
    fn caches_that_the_kernel_lists_at_a_kill_are_a_leak() {
        use crate::oom::testing::Report;
        let listed = |mib| {
            let report = Report::of_the_head().listing("btrfs_extent_map", MIB(mib));
            Case::of_report(report).gauge_of(
                Entity::Slab,
                "btrfs_extent_map",
                SLAB_PAGES,
                Pages::new(mib * 256),
            )
        };
        let finding = found(RULE, &listed(3296));
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.title.contains("btrfs_extent_map"), "{}", finding.title);
        clear(RULE, &listed(300));
    }

    const MIB: fn(u64) -> Bytes = Bytes::from_mib;

    fn ramp(from: u64, to: u64, steps: u64) -> Vec<Bytes> {
        (0..=steps).map(|i| MIB(from + (to - from) * i / steps)).collect()
    }

    fn host(seconds: u64) -> Case {
        Case::over(seconds).gauge(MEM_TOTAL, MIB(1000)).gauge(MEM_AVAILABLE, MIB(500))
    }

    #[test]
    fn a_climb_of_seconds_is_informational() {
        let case = host(20).gauge_steps(MEM_SLAB_UNRECLAIMABLE, &ramp(20, 120, 20));
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Info);
        assert_eq!(finding.confidence.word(), "probable");
        assert!(finding.confidence.why.contains("hours"));
        assert!(finding.title.contains("grew by 100 MiB"), "{}", finding.title);
    }

    #[test]
    fn a_climb_with_little_available_is_a_warning() {
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
    fn an_extreme_level_needs_one_sample_and_no_memtotal() {
        let case = Case::once()
            .gauge_of(Entity::Slab, "ebitmap_node", SLAB_OBJECTS, Count::new(734_506_368))
            .gauge_of(Entity::Slab, "ebitmap_node", SLAB_OBJECT_SIZE, Bytes::new(64));
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.affected[0].name, "ebitmap_node");
    }

    #[test]
    fn the_title_names_the_cache_that_grew() {
        let pages: Vec<Pages> = (0..=20).map(|i| Pages::new(i * 1280)).collect();
        let case = host(20).gauge_steps(MEM_SLAB_UNRECLAIMABLE, &ramp(20, 120, 20)).gauge_steps_of(
            Entity::Slab,
            "kmalloc-1k",
            SLAB_PAGES,
            &pages,
        );
        let title = found(RULE, &case).title;
        assert!(title.contains("most of it in kmalloc-1k"), "{title}");
    }

    #[test]
    fn clear_on_a_jump_or_a_small_level() {
        let mut jump = vec![MIB(20); 10];
        jump.extend([MIB(80); 11]);
        clear(RULE, &host(20).gauge_steps(MEM_SLAB_UNRECLAIMABLE, &jump));
        // A micro-VM: an eighth of RAM, but only 16 MiB.
        let tiny = Case::over(20).gauge(MEM_TOTAL, MIB(128)).gauge(MEM_SLAB_UNRECLAIMABLE, MIB(16));
        clear(RULE, &tiny);
    }

    #[test]
    fn clear_when_the_inode_cache_grows() {
        let case = Case::once().gauge_of(
            Entity::Slab,
            "ext4_inode_cache",
            SLAB_PAGES,
            Pages::new(2_700_000),
        );
        assert!(not_evaluated(RULE, &case).names.contains(&"mem.slab_unreclaimable"));
        let case = case.gauge(MEM_SLAB_UNRECLAIMABLE, MIB(90));
        clear(RULE, &case);
    }

    #[test]
    fn finds_30_s_within_an_hour_but_not_a_jump() {
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
    fn not_evaluated_without_slab() {
        assert_eq!(not_evaluated(RULE, &host(20)).names, ["mem.slab_unreclaimable"]);
    }
}
