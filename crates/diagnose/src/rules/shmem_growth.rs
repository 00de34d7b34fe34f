//! Shared memory and tmpfs take a large part of RAM or grow.

use timeline::signals::{MEM_AVAILABLE, MEM_SHMEM, PROC_RSS_SHMEM, SWAP_TOTAL};

use crate::measures::available;
use crate::measures::rise::{self, LONG, Rise, heights, with_levels};
use crate::prelude::*;

declare_rule! {
    /// Shared memory or files in tmpfs take a large part of RAM; they count as cache, but cannot be dropped.
    ///
    /// ## What it means
    /// Shared memory segments, memfds and files in tmpfs (/dev/shm, /run, often /tmp) are part of `Cached` and of
    /// "buff/cache" in free(1), but only deleting or swapping them frees their memory. MemAvailable excludes them. A
    /// database's buffer pool is there on purpose; a forgotten file is not.
    /// ## How it is recognised
    /// Shmem is {SHMEM_SHARE_LARGE} of RAM or more for {LEVEL}, or rises by {RISE} of RAM (at least {Rise::NOISE}) and
    /// half of that stays for {LEVEL}. A rise ends when half of it is freed, or when Shmem is level for longer than the
    /// rise took (a minute at least). A climb to {SHMEM_SHARE_LARGE} or more, in {Rise::CLIMB} or longer and several
    /// steps, is a warning. So is half of RAM with less than {AVAILABLE_LOW_SHARE} available. A level and a single jump
    /// are informational. Seconds show a climb, not a leak: that needs a recording over hours.
    /// ## Not this
    /// - `cache-full-harmless`: page cache of files on disks, which is reclaimed on demand.
    /// - A database's buffers (shared_buffers, SGA): large, and level from its start on.
    /// ## What to do
    /// Now: see what is there (`df -h -t tmpfs`, `ipcs -m`), remove what is not needed, shrink a mount with `mount -o
    /// remount,size=…`. For good: `size=` in /etc/fstab. Verify: Shmem stays level over a day.
    /// ## References
    /// - kernel Documentation/filesystems/tmpfs.rst
    /// - ipcs(1), ipcrm(1)
    pub(crate) RULE = {
        id: "shmem-growth", since: "0.1.0", class: Growth,
        numbers: [SHMEM_SHARE_LARGE, LEVEL, RISE, Rise::NOISE, Rise::CLIMB, AVAILABLE_LOW_SHARE],
        trigger: trigger, story: story,
        verify: "memtide capture --for 24h --every 1m -o day.jsonl.zst, then memtide check on it: \
                 Shmem is level",
        brings_about: WANT_AND_THRASH,
        aliases: &["tmpfs-growth"],
    }
}

/// An engineering choice; healthy Kubernetes nodes were seen with 24 %.
const SHMEM_SHARE_LARGE: Ratio = Ratio::from_percent(25.0);
/// Labelled captures: 0.2 % on hosts without such a load, 61 % with a growing tmpfs.
const RISE: Ratio = Ratio::from_percent(5.0);
/// An engineering choice: more than everything else together.
const SHMEM_SHARE_CRITICAL: Ratio = Ratio::from_percent(50.0);
/// Mapped segments of this share of Shmem explain it; otherwise it is files.
const MAPPED: Ratio = Ratio::from_percent(50.0);

fn trigger() -> Trigger {
    let rise = computed("shmem_rise", |cx| Ok(heights(cx, &cx.gauge(MEM_SHMEM)?)));
    let rises = all![
        rise.at_least("rise of shared memory", Rise::least(RISE)),
        gauge(MEM_SHMEM).at_least("shared memory", Rise::least(RISE)),
    ];
    rise::trigger(find, any![is_large(), rises])
}

fn is_large() -> Predicate {
    gauge(MEM_SHMEM).at_least("shared memory", ram().share(SHMEM_SHARE_LARGE))
}

fn find(cx: &Evidence<'_>) -> Result<Vec<Occurrence>, Missing> {
    let shmem = cx.gauge(MEM_SHMEM)?;
    let rises = Rise::of_size(&shmem, Rise::at_least(cx, RISE));
    with_levels(cx, is_large(), rises)
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let shmem = cx.gauge(MEM_SHMEM)?;
    let ram = cx.ram()?;
    let least = Rise::at_least(cx, RISE);
    let rise = Rise::seen(&shmem, least).max_by_key(Rise::by);
    let Some((peak, at)) = shmem.max_in(stretch) else {
        return clear!("shared memory was not measured");
    };
    let share = cx.of_ram(peak)?;
    let climbs = rise.as_ref().is_some_and(|rise| rise.climbs);
    let available = available::available(cx).ok();
    let available = available.and_then(|(available, _)| available.min_in(stretch));
    let little = available.is_some_and(|(left, _)| left < ram.share(AVAILABLE_LOW_SHARE));
    let severity = Severity::warning_if(
        (climbs && share >= SHMEM_SHARE_LARGE) || (share >= SHMEM_SHARE_CRITICAL && little),
    );
    let mappers = mappers(cx, at);
    let mapped = mappers.first().is_some_and(|(_, most)| *most >= peak.share(MAPPED));
    let owner = owner(&mappers, mapped);
    let left = available.filter(|_| little).map(|(left, _)| left);
    let title = title(rise.as_ref(), (peak, share), left, &owner);
    let open = open(climbs, stretch.elapsed());
    Ok(RULE
        .found(severity, title)
        .graph("shared memory", &shmem)
        .with(rise.as_ref(), |finding, rise| {
            let text = format!(
                "Shmem rose from {} to {} in {}",
                rise.from,
                rise.to,
                rise.stretch.elapsed()
            );
            finding
                .shows_from(MEM_SHMEM, rise.by(), least, Some(rise.stretch.to), text)
                .counts_as("a rise")
        })
        .shows_level(
            MEM_SHMEM,
            peak,
            ram.share(SHMEM_SHARE_LARGE),
            cx.time(at),
            format!("{peak} of shared memory and tmpfs ({share} of RAM)"),
        )
        .with(available, |finding, (left, index)| {
            let text = format!(
                "available fell to {left}{}; it excludes shared memory",
                cx.remark_of_ram(left)
            );
            finding.shows(MEM_AVAILABLE, left, cx.time(index), text)
        })
        .not("cache-full-harmless", "the kernel cannot drop shared memory on demand")
        .when(cx.timeline.last(SWAP_TOTAL) == Some(Bytes::ZERO), |finding| {
            finding.with_line("there is no swap: only deleting frees the memory")
        })
        .and(|finding| advised(finding, mapped))
        .affects(affected(cx, mappers))
        .sure_by_kinds(cx, open)
        .into())
}

/// What a longer recording would settle.
fn open(climbs: bool, watched: Span) -> &'static str {
    if watched >= LONG {
        ""
    } else if climbs {
        "a recording over hours would distinguish a leak from a load"
    } else {
        "a longer recording would show whether it grows"
    }
}

/// The owner, as far as the source reports it.
fn owner(mappers: &[(&str, Bytes)], mapped: bool) -> String {
    match mappers.first() {
        Some((name, bytes)) if mapped => format!("{name} maps {bytes}"),
        Some(_) => "files in tmpfs, or unmapped segments".to_owned(),
        None => "this source does not show the owner".to_owned(),
    }
}

/// The title; `left` is available memory, where it is little.
fn title(
    rise: Option<&Rise>,
    (peak, share): (Bytes, Ratio),
    left: Option<Bytes>,
    owner: &str,
) -> String {
    match (rise, left) {
        (Some(rise), _) if rise.climbs => format!(
            "Shared memory grew by {} to {} ({share} of RAM) in {}: it counts as cache, but cannot \
             be dropped ({owner}).",
            rise.by(),
            rise.to,
            rise.stretch.elapsed(),
        ),
        (Some(rise), _) if share < SHMEM_SHARE_LARGE => format!(
            "Shared memory jumped by {} to {} ({share} of RAM): it counts as cache, but cannot be \
             dropped ({owner}).",
            rise.by(),
            rise.to,
        ),
        (_, Some(left)) => format!(
            "Shared memory takes {peak} ({share} of RAM) and cannot be dropped like cache; only \
             {left} is available ({owner})."
        ),
        _ => format!(
            "{peak} of the memory counted as cache ({share} of RAM) is shared memory, which cannot \
             be dropped ({owner})."
        ),
    }
}

/// Adds cause and fixes, for mapped segments or for files.
fn advised(finding: Finding, mapped: bool) -> Finding {
    if mapped {
        finding
            .cause(
                "Processes share segments of this size. A database's buffer pool is there on \
                 purpose; segments without a user are left over.",
            )
            .fix(
                Fix::say(
                    "Find out which processes map it. Size the buffer pool to the host \
                     (shared_buffers, SGA: below a quarter of RAM unless planned), or remove \
                     unused segments (ipcrm, where nattch is 0).",
                )
                .inspect("ipcs -m"),
            )
    } else {
        finding
            .cause(
                "Files were written to a file system in RAM, or a program left segments behind \
                 when it ended.",
            )
            .fix(
                Fix::say(
                    "Find out which mount is full and remove what is not needed. A smaller size \
                     (mount -o remount,size=…, and in /etc/fstab) refuses writes instead of \
                     filling RAM.",
                )
                .inspect("df -h -t tmpfs\nipcs -m"),
            )
    }
}

/// Programs by the largest shared memory among their processes: a segment counts in full for each process that maps it,
/// so a sum would mean nothing.
fn mappers<'a>(cx: &Evidence<'a>, index: usize) -> Vec<(&'a str, Bytes)> {
    let mapped = |process: &EntitySeries, at| {
        let mapped = cx.timeline.at_of(process, PROC_RSS_SHMEM, at)?;
        (!processes::is_recorder(cx, process)).then_some(mapped)
    };
    processes::programs(cx, index, mapped, Bytes::max)
}

/// The programs that map most, and mounts that may hold files.
fn affected(cx: &Evidence<'_>, mappers: Vec<(&str, Bytes)>) -> Vec<Affected> {
    let programs = mappers
        .into_iter()
        .filter(|(_, bytes)| *bytes >= Bytes::from_mib(1))
        .take(3)
        .map(|(name, bytes)| Affected::new("process", name, format!("maps {bytes}")));
    let mounts =
        cx.facts.memory_mounts.iter().filter(|mount| mount.kind != "devtmpfs").take(5).map(
            |mount| {
                let limit = mount.size.map_or_else(String::new, |size| format!(", at most {size}"));
                Affected::new("mount", &mount.point, format!("{}{limit}", mount.kind))
            },
        );
    programs.chain(mounts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated, times};
    use timeline::signals::MEM_TOTAL;

    const MIB: fn(u64) -> Bytes = Bytes::from_mib;

    fn host(seconds: u64, available: u64) -> Case {
        Case::over(seconds).gauge(MEM_TOTAL, MIB(1000)).gauge(MEM_AVAILABLE, MIB(available))
    }

    fn ramp(from: u64, to: u64) -> Vec<Bytes> {
        (0..=20).map(|i| MIB(from + (to - from) * i / 20)).collect()
    }

    #[test]
    fn a_tmpfs_that_fills_is_a_warning() {
        let case = host(25, 400).gauge_steps(MEM_SHMEM, &ramp(10, 500));
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.title.contains("grew by 490 MiB"), "{}", finding.title);
        assert!(finding.confidence.why.contains("hours"));
    }

    #[test]
    fn a_level_database_segment_is_informational() {
        let case = host(25, 400)
            .gauge(MEM_SHMEM, MIB(300))
            .gauge_of(Entity::Process, "9@1", PROC_RSS_SHMEM, MIB(290))
            .named("9@1", "postgres");
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Info);
        assert!(finding.title.contains("postgres maps 290 MiB"), "{}", finding.title);
    }

    #[test]
    fn a_jump_is_informational() {
        let mut jump = vec![MIB(10); 10];
        jump.extend([MIB(200); 16]);
        let finding = found(RULE, &host(25, 400).gauge_steps(MEM_SHMEM, &jump));
        assert_eq!(finding.severity, Severity::Info);
        assert!(finding.title.contains("jumped"), "{}", finding.title);
        // A jump to a quarter of RAM and more counts as a program that was started, too.
        jump[10..].fill(MIB(280));
        let finding = found(RULE, &host(25, 400).gauge_steps(MEM_SHMEM, &jump));
        assert_eq!(finding.severity, Severity::Info);
    }

    #[test]
    fn half_of_ram_with_little_available_is_a_warning() {
        let case = host(25, 40).gauge(MEM_SHMEM, MIB(700));
        assert_eq!(found(RULE, &case).severity, Severity::Warning);
    }

    #[test]
    fn a_single_sample_shows_the_level_only() {
        let case = host(0, 200).gauge(MEM_SHMEM, MIB(420));
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Info);
        assert!(!finding.title.contains("grew"), "{}", finding.title);
        assert_eq!(finding.confidence.word(), "probable");
    }

    #[test]
    fn clear_with_little_shared_memory() {
        clear(RULE, &host(25, 400).gauge(MEM_SHMEM, MIB(240)));
        clear(RULE, &host(25, 400).gauge_steps(MEM_SHMEM, &ramp(10, 40)));
    }

    /// An hour with a tmpfs that fills for 30 s from second 1,800 and is emptied.
    fn within_an_hour(from: u64, to: u64) -> Case {
        let fills: Vec<Bytes> = (0..=30).map(|i| MIB(from + (to - from) * i / 30)).collect();
        let steps = [vec![MIB(from); 1800], fills, vec![MIB(from); 1]].concat();
        host(3600, 400).gauge_steps(MEM_SHMEM, &steps)
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let finding = found(RULE, &within_an_hour(10, 500));
        assert_eq!(finding.severity, Severity::Warning);
        let when = finding.when.unwrap();
        assert!(when.first >= 1799 && when.last <= 1831, "{when:?}");
        assert!(finding.title.contains("in 28 s"), "{}", finding.title);
        let little = clear(RULE, &within_an_hour(10, 40));
        assert_eq!(little, "shared memory: at most 40 MiB, threshold 250 MiB");
        let level = clear(RULE, &host(3600, 400).gauge(MEM_SHMEM, MIB(200)));
        assert_eq!(level, "shared memory: at most 200 MiB, threshold 250 MiB");
    }

    #[test]
    fn two_climbs_are_two_incidents() {
        let fill = |n| [ramp(10, 200), vec![MIB(200); n], vec![MIB(10); 200]].concat();
        let steps = [fill(100), fill(40)].concat();
        let finding = found(RULE, &host(600, 400).gauge_steps(MEM_SHMEM, &steps));
        assert_eq!(times(&finding).len(), 2, "{:?}", times(&finding));
    }

    #[test]
    fn not_evaluated_without_shmem() {
        assert_eq!(not_evaluated(RULE, &host(25, 400)).names, ["mem.shmem"]);
    }
}
