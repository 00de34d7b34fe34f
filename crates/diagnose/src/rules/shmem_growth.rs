//! Shared memory and tmpfs take a large part of RAM, or grow.

use std::collections::BTreeMap;

use timeline::{
    Entity, Stretch, Timeline,
    signals::{MEM_AVAILABLE, MEM_SHMEM, PROC_OOM_ADJ, PROC_RSS_SHMEM, SWAP_TOTAL},
};
use units::{Bytes, Count, Ratio, Span};

use super::available_exhaustion;
use crate::calm;
use crate::evidence::Evidence;
use crate::finding::{Affected, Severity};
use crate::fix::Fix;
use crate::missing::Missing;
use crate::rise::Rise;
use crate::rule::{Outcome, clear, declare_rule};

declare_rule! {
    /// Shared memory or files in tmpfs take a large part of RAM; they count as cache, but cannot be dropped.
    ///
    /// ## What it means
    /// Shared memory segments, memfds and files in tmpfs (/dev/shm, /run, often /tmp) are in `Cached` and in the
    /// "buff/cache" of free(1), yet nothing but deleting them or swap gives their memory back. MemAvailable leaves them
    /// out. A database's buffer pool is meant to be there; a forgotten file is not.
    /// ## How it is recognised
    /// Shmem is 25 % of RAM or more, or rises by 5 % of RAM (at least 16 MiB) while watched. A climb to 25 % or more is a
    /// warning, and so is half of RAM that leaves less than 10 % available; what stands still, and a single jump, is
    /// information. A look of seconds proves a climb, not a leak: that needs a recording over hours.
    /// ## Not this
    /// - `cache-full-harmless`: page cache of files on disks, which is given back.
    /// - A database's buffers (shared_buffers, SGA): large, and level from its start on.
    /// ## What to do
    /// Now: see what is there (`df -h -t tmpfs`, `ipcs -m`), remove what is not needed, shrink a mount with
    /// `mount -o remount,size=…`. For good: `size=` in /etc/fstab. Verify: Shmem stays level over a day.
    /// ## References
    /// - kernel Documentation/filesystems/tmpfs.rst
    /// - ipcs(1), ipcrm(1)
    pub(crate) RULE = { id: "shmem-growth", since: "0.1.0", purpose: Finding, reach: Growth, check: check }
}

/// An engineering choice; healthy Kubernetes nodes were seen with 24 %.
const LARGE: Ratio = Ratio::from_percent(25.0);
/// Labelled captures: 0.2 % on hosts without such a load, 61 % with a growing tmpfs.
const RISE: Ratio = Ratio::from_percent(5.0);
/// More than everything else together.
const MOST: Ratio = Ratio::from_percent(50.0);
/// Available memory below this is little.
const LITTLE: Ratio = available_exhaustion::LOW;
/// Segments that processes map explain this share of Shmem: then it is not files.
const MAPPED: Ratio = Ratio::from_percent(50.0);
/// Start-up and warm-up are over.
const LONG: Span = Span::from_hours(1);
const HOLD: Span = Span::from_mins(10);

fn check(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    let shmem = cx.gauge(MEM_SHMEM)?;
    let ram = cx.ram()?;
    let rise = Rise::largest(&shmem).filter(|rise| rise.is_substantial(Some(ram), RISE));
    let large = cx.sustained_level(&shmem.at_least(ram.share(LARGE)), HOLD);
    let Some((peak, at)) = shmem.max() else {
        return clear!("shared memory was not measured");
    };
    let share = cx.of_ram(peak)?;
    let Some(stretch) = join(cx.timeline, rise.as_ref().map(|r| r.stretch), large) else {
        return clear!("at most {peak} of shared memory ({share} of RAM), and it did not grow");
    };

    let climbs = rise.as_ref().is_some_and(|rise| rise.is_climb(cx));
    let least = calm::available(cx).ok();
    let least = least.and_then(|(available, _)| available.min_in(&stretch));
    let little = least.is_some_and(|(least, _)| least < ram.share(LITTLE));
    let severity = if (climbs && share >= LARGE) || (share >= MOST && little) {
        Severity::Warning
    } else {
        Severity::Info
    };
    let mappers = mappers(cx, at);
    let mapped = mappers.first().map(|m| m.1);
    let mapped = mapped.is_some_and(|m| m >= peak.share(MAPPED));
    let owner = match mappers.first() {
        Some((name, bytes)) if mapped => format!("{name} maps {bytes}"),
        Some(_) => "files in tmpfs, or segments that nobody maps".to_owned(),
        None => "who holds it, this source does not tell".to_owned(),
    };
    let title = match &rise {
        Some(rise) if climbs => format!(
            "Shared memory grew by {} to {} ({share} of RAM) in {}: it counts as cache, but cannot be dropped ({owner}).",
            rise.by(),
            rise.to,
            rise.stretch.spans(),
        ),
        Some(rise) if large.is_none() => format!(
            "Shared memory jumped by {} to {} ({share} of RAM): it counts as cache, but cannot be dropped ({owner}).",
            rise.by(),
            rise.to,
        ),
        _ if little => format!(
            "Shared memory takes {peak} ({share} of RAM) and cannot be dropped like cache; {} are left for the rest ({owner}).",
            least.map_or(Bytes::ZERO, |(least, _)| least)
        ),
        _ => format!(
            "{peak} of what counts as cache ({share} of RAM) is shared memory and cannot be dropped ({owner})."
        ),
    };

    let mut kinds = Vec::new();
    let mut finding = RULE
        .found(severity, title)
        .during(stretch)
        .graph("shared memory", &shmem);
    if let Some(rise) = &rise {
        kinds.push("a rise");
        finding = finding.shows_from(
            MEM_SHMEM,
            rise.by(),
            ram.share(RISE),
            Some(rise.stretch.to),
            format!(
                "Shmem rose from {} to {} in {}",
                rise.from,
                rise.to,
                rise.stretch.spans()
            ),
        );
    }
    let text = format!("{peak} of shared memory and tmpfs ({share} of RAM)");
    let when = Some(cx.timeline.times()[at]);
    finding = if large.is_some() {
        kinds.push("the level");
        finding.shows_from(MEM_SHMEM, peak, ram.share(LARGE), when, text)
    } else {
        finding.shows(MEM_SHMEM, peak, when, text)
    };
    if let Some((least, index)) = least {
        let share = cx.of_ram(least)?;
        finding = finding.shows(
            MEM_AVAILABLE,
            least,
            Some(cx.timeline.times()[index]),
            format!("down to {least} available ({share} of RAM), which leaves shared memory out"),
        );
    }
    finding = finding.not(
        "cache-full-harmless",
        "shared memory is not given back on demand",
    );
    if cx.timeline.last(SWAP_TOTAL) == Some(Bytes::ZERO) {
        finding = finding.not("swap", "there is none, so nothing but deleting relieves it");
    }
    let finding = if mapped {
        finding
            .cause("Processes share segments of this size. A database's buffer pool is meant to be there; segments without a user are left over.")
            .fix(Fix::say("See who maps it; size the buffer pool to the host (shared_buffers, SGA: below a quarter of RAM unless planned), or remove segments that nobody uses (ipcrm, where nattch is 0).").look("ipcs -m"))
    } else {
        finding
            .cause("Files were written to a file system that lives in RAM, or segments were left over by a program that ended.")
            .fix(Fix::say("See which mount is full and remove what is not needed. A smaller size (mount -o remount,size=…, and in /etc/fstab) refuses more instead of filling RAM.").look("df -h -t tmpfs\nipcs -m"))
    };
    let open = match (climbs, cx.look() >= LONG) {
        (true, false) => "a recording over hours would tell a leak from a load",
        (false, false) => "whether it grows, a longer recording would tell",
        (_, true) => "",
    };
    Ok(finding
        .verify("memtide capture --for 24h --every 1m -o day.jsonl.zst, then memtide check on it: Shmem is level")
        .affects(affected(cx, mappers))
        .alias("tmpfs-growth")
        .sure(cx.confidence(&kinds, open))
        .see("kernel: Documentation/filesystems/tmpfs.rst")
        .into())
}

/// From the earlier beginning to the later end.
fn join(timeline: &Timeline, a: Option<Stretch>, b: Option<Stretch>) -> Option<Stretch> {
    let (Some(a), Some(b)) = (a, b) else {
        return a.or(b);
    };
    let start = if a.first <= b.first { a } else { b };
    let end = if a.last >= b.last { a } else { b };
    timeline.stretch(start.first, end.last)
}

/// Programs by the largest mapping of shared memory among their processes: a segment counts in full for each who maps
/// it, so their sum would say nothing.
fn mappers(cx: &Evidence<'_>, index: usize) -> Vec<(String, Bytes)> {
    let mut programs: BTreeMap<&str, Bytes> = BTreeMap::new();
    let Some(index) = cx.rows_at(Entity::Process, index) else {
        return Vec::new();
    };
    for process in cx.timeline.entities(Entity::Process) {
        // A recorder that made itself unkillable is not what fills memory.
        if cx.timeline.last_of(process, PROC_OOM_ADJ) == Some(Count::ZERO) {
            continue;
        }
        if let Some(mapped) = cx.timeline.at_of(process, PROC_RSS_SHMEM, index) {
            let largest = programs.entry(&process.label).or_default();
            *largest = mapped.max(*largest);
        }
    }
    let mut programs: Vec<_> = programs
        .into_iter()
        .map(|(name, bytes)| (name.to_owned(), bytes))
        .collect();
    programs.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    programs
}

/// Who maps most, and where files may lie.
fn affected(cx: &Evidence<'_>, mappers: Vec<(String, Bytes)>) -> Vec<Affected> {
    let programs = mappers
        .into_iter()
        .filter(|(_, bytes)| *bytes >= Bytes::from_mib(1))
        .take(3)
        .map(|(name, bytes)| Affected {
            kind: "process",
            name,
            what: format!("maps {bytes}"),
        });
    let mounts = cx.facts.memory_mounts.iter();
    let mounts = mounts.filter(|mount| mount.kind != "devtmpfs").take(5);
    let mounts = mounts.map(|mount| Affected {
        kind: "mount",
        name: mount.point.clone(),
        what: match mount.size {
            Some(size) => format!("{}, at most {size}", mount.kind),
            None => mount.kind.clone(),
        },
    });
    programs.chain(mounts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::signals::MEM_TOTAL;

    const MIB: fn(u64) -> Bytes = Bytes::from_mib;

    fn host(seconds: u64, available: u64) -> Case {
        Case::over(seconds)
            .gauge(MEM_TOTAL, MIB(1000))
            .gauge(MEM_AVAILABLE, MIB(available))
    }

    fn ramp(from: u64, to: u64) -> Vec<Bytes> {
        (0..=20).map(|i| MIB(from + (to - from) * i / 20)).collect()
    }

    #[test]
    fn a_tmpfs_that_fills_is_a_warning() {
        let case = host(25, 400).gauge_steps(MEM_SHMEM, &ramp(10, 500));
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Warning);
        assert!(
            finding.title.contains("grew by 490 MiB"),
            "{}",
            finding.title
        );
        assert!(finding.confidence.why.contains("hours"));
    }

    #[test]
    fn a_segment_of_a_database_that_stands_still_is_information() {
        let case = host(25, 400)
            .gauge(MEM_SHMEM, MIB(300))
            .gauge_of(Entity::Process, "9@1", PROC_RSS_SHMEM, MIB(290))
            .named("9@1", "postgres");
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Info);
        assert!(
            finding.title.contains("postgres maps 290 MiB"),
            "{}",
            finding.title
        );
    }

    #[test]
    fn a_jump_is_information() {
        let mut jump = vec![MIB(10); 10];
        jump.extend([MIB(200); 16]);
        let finding = found(RULE, &host(25, 400).gauge_steps(MEM_SHMEM, &jump));
        assert_eq!(finding.severity, Severity::Info);
        assert!(finding.title.contains("jumped"), "{}", finding.title);
        // Also to a quarter of RAM and more: something was started.
        jump[10..].fill(MIB(280));
        let finding = found(RULE, &host(25, 400).gauge_steps(MEM_SHMEM, &jump));
        assert_eq!(finding.severity, Severity::Info);
    }

    #[test]
    fn half_of_ram_that_leaves_nothing_is_a_warning() {
        let case = host(25, 40).gauge(MEM_SHMEM, MIB(700));
        assert_eq!(found(RULE, &case).severity, Severity::Warning);
    }

    #[test]
    fn one_look_shows_the_level_and_claims_no_growth() {
        let case = host(0, 200).gauge(MEM_SHMEM, MIB(420));
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Info);
        assert!(!finding.title.contains("grew"), "{}", finding.title);
        assert_eq!(finding.confidence.word(), "probable");
    }

    #[test]
    fn little_shared_memory_is_clear() {
        clear(RULE, &host(25, 400).gauge(MEM_SHMEM, MIB(240)));
        clear(RULE, &host(25, 400).gauge_steps(MEM_SHMEM, &ramp(10, 40)));
    }

    #[test]
    fn without_shmem_it_says_what_it_lacks() {
        assert_eq!(not_evaluated(RULE, &host(25, 400)).names, ["mem.shmem"]);
    }
}
