//! The dentry and inode caches are large or grow.

use timeline::facts::VFS_CACHE_PRESSURE;
use timeline::signals::{
    DENTRIES, DENTRIES_NEGATIVE, MEM_AVAILABLE, MEM_SLAB_RECLAIMABLE, PSI_MEMORY_SOME, SLAB_PAGES,
    SLABS_SCANNED,
};

use crate::measures::readings::STALL_NOTICED_SHARE;
use crate::measures::rise::{self, Rise, heights, with_levels};
use crate::measures::slab;
use crate::oom;
use crate::prelude::*;

declare_rule! {
    /// The kernel's cache of file names and inodes (dentry and inode slab) takes a large part of RAM; it is reclaimable.
    ///
    /// ## What it means
    /// A program that walks millions of files, or keeps looking up files that do not exist, fills the dentry and inode
    /// caches. No process shows that memory, so it looks lost. It is reclaimable: MemAvailable contains most of it. It
    /// costs something only when tasks wait for its reclaim, or when it counts towards a cgroup's limit.
    /// ## How it is recognised
    /// Reclaimable slab (SReclaimable) is {CACHE_SHARE_LARGE} of RAM or more for {LEVEL}, or rises by {RISE} of RAM (at
    /// least {Rise::NOISE}) and half of that stays for {LEVEL}. Where RAM is unknown, the thresholds are
    /// {LARGE_UNKNOWN_RAM} and a rise of {Rise::UNKNOWN_RAM}. It is a warning only if tasks wait for memory for
    /// {STALL_NOTICED_SHARE} of the time, for {LEVEL}, while the kernel scans slab caches; otherwise informational.
    /// ## Not this
    /// - `slab-leak`: kernel objects that cannot be reclaimed.
    /// - `cache-full-harmless`: the same harmless fullness, of file contents.
    /// ## What to do
    /// Usually nothing. Now: find the program that walks or probes files (updatedb, find, a backup; a program that
    /// looks up missing files). For good: exclude trees from the walk, or mend the program. Where tasks wait,
    /// `vm.vfs_cache_pressure=200` (never 0); without reclaim it does nothing. Verify: SReclaimable stays level under
    /// the same load.
    /// ## References
    /// - kernel Documentation/admin-guide/sysctl/vm.rst, vfs_cache_pressure
    /// - kernel Documentation/admin-guide/sysctl/fs.rst, dentry-state (negative dentries since 5.0)
    pub(crate) RULE = {
        id: "dentry-inode-bloat", since: "0.1.0", class: Growth,
        numbers: [CACHE_SHARE_LARGE, LEVEL, RISE, Rise::NOISE, LARGE_UNKNOWN_RAM,
            Rise::UNKNOWN_RAM, STALL_NOTICED_SHARE],
        trigger: trigger, story: story,
        cause: "A program walks very many files (updatedb, find, a backup), or keeps looking up \
                files that do not exist.",
        verify: "SReclaimable stays level under the same load",
        explained_by: &[Explains::Maybe(VFS_CACHE_PRESSURE)],
    }
}

/// An engineering choice; a healthy 1 GiB cloud host has 14 %.
const CACHE_SHARE_LARGE: Ratio = Ratio::from_percent(20.0);
/// Where RAM is unknown: hosts that people ask about have 4 GiB and more.
const LARGE_UNKNOWN_RAM: Bytes = Bytes::from_gib(1);
/// Labelled captures: writing a dump adds 2.8 % of RAM, negative dentries 26 %.
const RISE: Ratio = Ratio::from_percent(4.0);
/// Scanning by busy shrinkers: thrashing with little slab scans at most 375 objects a second (labelled captures).
const SHRINKERS_SCAN_MIN: PerSecond<Count> = PerSecond::new(1_000.0);
/// Most entries are negative dentries: names that do not exist (nr_negative in fs/dcache.c).
const NEGATIVE: f64 = 0.5;

fn trigger() -> Trigger {
    let rise = computed("reclaimable_slab_rise", |cx| Ok(heights(cx, &reclaimable().track(cx)?)));
    let rises = all![
        rise.at_least("rise of reclaimable slab", Rise::least(RISE)),
        reclaimable().at_least("reclaimable slab", Rise::least(RISE)),
    ];
    rise::trigger(find, any![is_large(), rises])
}

/// SReclaimable; with slabtop only, the size of the dentry and inode caches.
fn reclaimable() -> Reading<Bytes> {
    let caches = computed("slab_caches_of_files", |cx| {
        let sizes = slab::sizes(cx, slab::SlabCache::is_of_files);
        sizes.ok_or_else(|| cx.lacks_signal(MEM_SLAB_RECLAIMABLE.id()))
    });
    gauge(MEM_SLAB_RECLAIMABLE).or(caches)
}

fn is_large() -> Predicate {
    reclaimable().at_least("reclaimable slab", large())
}

fn large() -> Reading<Bytes> {
    ram().share(CACHE_SHARE_LARGE).or(Reading::constant(LARGE_UNKNOWN_RAM))
}

/// Steady rises and jumps both count.
fn find(cx: &Evidence<'_>) -> Result<Vec<Occurrence>, Missing> {
    let rises = Rise::of_size(&reclaimable().track(cx)?, Rise::at_least(cx, RISE));
    with_levels(cx, is_large(), rises)
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let track = reclaimable().track(cx)?;
    let Some((level, at)) = track.max_in(stretch) else {
        return clear!("reclaimable slab was not measured");
    };
    let caches: Vec<_> =
        slab::caches(cx, stretch.last).into_iter().filter(slab::SlabCache::is_of_files).collect();
    let least = Rise::at_least(cx, RISE);
    let rise = Rise::seen(&track, least).max_by_key(Rise::by);
    let hurts = hurts(cx, stretch);
    let of_ram = cx.remark_of_ram(level);
    let harmless = harmless(cx, hurts);
    let what = contents(cx, &caches, at);
    let title = title(rise.as_ref(), what, &format!("{level}{of_ram}"), &harmless);
    let large = large().track(cx)?.at(at).unwrap_or_default();
    let is_counted = cx.gauge(MEM_SLAB_RECLAIMABLE).is_ok();
    let finding = RULE
        .found(Severity::warning_if(hurts.is_some()), title)
        .graph("reclaimable slab", &track)
        .with(rise.as_ref(), |finding, rise| {
            let text = format!("SReclaimable rose from {} to {}", rise.from, rise.to);
            finding
                .shows_from(MEM_SLAB_RECLAIMABLE, rise.by(), least, Some(rise.stretch.to), text)
                .counts_as("a rise")
        })
        .shows_level(
            MEM_SLAB_RECLAIMABLE,
            level,
            large,
            None,
            format!("{level} of reclaimable slab{of_ram}"),
        )
        .counts_if(!caches.is_empty(), "slab caches")
        .counts_once_if(!is_counted || of_ram.is_empty());
    let open =
        if caches.is_empty() { "slab caches (root) would show which objects they are" } else { "" };
    Ok(contents_shown_in(finding, cx, &caches, at)
        .when(is_counted, |finding| {
            finding.not("slab-leak", "the kernel counts these objects as reclaimable")
        })
        .fix(
            Fix::say(
                "Nothing to do unless tasks wait. To find the cause, look for the process that \
                 reads directories while the cache grows.",
            )
            .inspect("slabtop --once --sort=c | head -n 20"),
        )
        .fix(if hurts.is_some() {
            Fix::tunable(
                cx,
                "Exclude trees from the walk, or make the kernel reclaim names and inodes sooner.",
                VFS_CACHE_PRESSURE,
                200,
            )
        } else {
            // Without reclaim the setting does nothing: carried out in the lab, the cache stayed as it was.
            Fix::say(
                "Exclude trees from the walk, or mend the program that looks up missing files.",
            )
        })
        .affects(slab::affected(&caches, 3))
        .sure_by_kinds(cx, open)
        .into())
}

fn title(rise: Option<&Rise>, what: &str, level: &str, harmless: &str) -> String {
    match rise {
        Some(rise) => format!(
            "The kernel's cache of {what} grew by {} to {} in {}{harmless}.",
            rise.by(),
            rise.to,
            rise.stretch.elapsed()
        ),
        None => format!("The kernel's cache of {what} takes {level}{harmless}."),
    }
}

/// Adds what the cache contains, and available memory.
fn contents_shown_in(
    finding: Finding,
    cx: &Evidence<'_>,
    caches: &[slab::SlabCache],
    at: usize,
) -> Finding {
    let available = cx.level(MEM_AVAILABLE, at);
    finding
        .with(caches.first(), |finding, cache| {
            let text = format!("largest slab cache: {} with {}", cache.name, cache.bytes);
            finding.shows(SLAB_PAGES, cache.bytes, None, text)
        })
        .with(negative(cx, at), |finding, (negative, share)| {
            let text = format!(
                "{negative} negative dentries: names that do not exist ({share} of all dentries)"
            );
            finding.shows(Computed(DENTRIES_NEGATIVE), share, None, text)
        })
        .with(available, |finding, available| {
            let text = format!("{available} available, including most of this cache");
            finding.shows(MEM_AVAILABLE, available, None, text)
        })
}

/// Whether the cache was reclaimed when memory was needed.
fn harmless(cx: &Evidence<'_>, hurts: Option<Ratio>) -> String {
    match hurts {
        Some(stalled) => format!("; tasks waited {stalled} of the time while it was reclaimed"),
        None if oom::shortage(cx).is_some() => {
            "; it was not reclaimed when memory was short".to_owned()
        }
        None => "; it is reclaimed when memory is needed".to_owned(),
    }
}

/// The share of time for which tasks waited for memory while shrinkers were busy, in the longest such stretch of the
/// incident.
fn hurts(cx: &Evidence<'_>, incident: &Stretch) -> Option<Ratio> {
    let stalled = cx.stall(PSI_MEMORY_SOME).ok()?;
    let scanned = cx.rate(SLABS_SCANNED).ok()?;
    let longest = stalled
        .at_least(STALL_NOTICED_SHARE)
        .bridged_runs()
        .into_iter()
        .filter(|run| run.overlaps(incident) && run.duration() >= LEVEL)
        .filter(|run| scanned.mean_in(run).is_some_and(|mean| mean >= SHRINKERS_SCAN_MIN))
        .max_by_key(Stretch::duration)?;
    stalled.mean_in(&longest)
}

/// Negative dentries and their share, where they are most of all dentries.
fn negative(cx: &Evidence<'_>, at: usize) -> Option<(Count, Ratio)> {
    let level = |signal| cx.timeline.gauge(signal).and_then(|track: Track<_>| track.at(at));
    let (negative, all) = (level(DENTRIES_NEGATIVE)?, level(DENTRIES)?);
    #[allow(clippy::cast_precision_loss)] // a share is read to three digits
    let share = negative.get() as f64 / all.get().max(1) as f64;
    (share >= NEGATIVE).then(|| (negative, Ratio::new(share)))
}

/// What the cache contains, as far as the source reports it.
fn contents(cx: &Evidence<'_>, caches: &[slab::SlabCache], at: usize) -> &'static str {
    if negative(cx, at).is_some() {
        return "names of files that do not exist";
    }
    match caches.first() {
        Some(cache) if cache.name == "dentry" => "file names",
        Some(_) => "inodes",
        None => "file names and inodes",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::{Entity, signals::MEM_TOTAL};
    use units::Pages;

    const MIB: fn(u64) -> Bytes = Bytes::from_mib;

    fn ramp(from: u64, to: u64) -> Vec<Bytes> {
        (0..=20).map(|i| MIB(from + (to - from) * i / 20)).collect()
    }

    fn host() -> Case {
        Case::over(20).gauge(MEM_TOTAL, MIB(1000))
    }

    #[test]
    fn a_growing_cache_is_informational() {
        let case = host().gauge_steps(MEM_SLAB_RECLAIMABLE, &ramp(10, 120)).gauge_of(
            Entity::Slab,
            "dentry",
            SLAB_PAGES,
            Pages::new(25_600),
        );
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Info);
        assert!(
            finding.title.starts_with("The kernel's cache of file names grew by 110 MiB"),
            "{}",
            finding.title
        );
    }

    #[test]
    fn a_large_cache_in_a_single_sample_is_informational() {
        let case = Case::once().gauge(MEM_TOTAL, MIB(1000)).gauge(MEM_SLAB_RECLAIMABLE, MIB(300));
        let finding = found(RULE, &case);
        assert!(finding.title.contains("30 % of RAM"), "{}", finding.title);
        // Two fields only: no RAM, no second sample.
        found(RULE, &Case::once().gauge(MEM_SLAB_RECLAIMABLE, Bytes::from_gib(4)));
    }

    #[test]
    fn the_title_names_negative_dentries() {
        let case = host()
            .gauge_steps(MEM_SLAB_RECLAIMABLE, &ramp(10, 120))
            .gauge(DENTRIES, Count::new(500_000))
            .gauge(DENTRIES_NEGATIVE, Count::new(490_000));
        let finding = found(RULE, &case);
        assert!(finding.title.contains("do not exist"), "{}", finding.title);
    }

    #[test]
    fn a_warning_when_tasks_wait_for_its_reclaim() {
        let case = host()
            .gauge(MEM_SLAB_RECLAIMABLE, MIB(400))
            .counter(PSI_MEMORY_SOME, 300_000)
            .counter(SLABS_SCANNED, 50_000);
        assert_eq!(found(RULE, &case).severity, Severity::Warning);
    }

    #[test]
    fn clear_when_the_cache_is_small_or_level() {
        clear(RULE, &host().gauge(MEM_SLAB_RECLAIMABLE, MIB(140)));
        clear(RULE, &host().gauge_steps(MEM_SLAB_RECLAIMABLE, &ramp(10, 38)));
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let hour = |to| {
            let steps = [vec![MIB(10); 1800], ramp(10, to), vec![MIB(10); 60]].concat();
            let case = Case::over(3600).gauge(MEM_TOTAL, MIB(1000));
            case.gauge_steps(MEM_SLAB_RECLAIMABLE, &steps)
        };
        let finding = found(RULE, &hour(120));
        assert_eq!(finding.severity, Severity::Info);
        let when = finding.when.unwrap();
        assert!(when.first >= 1799 && when.last <= 1821, "{when:?}");
        clear(RULE, &hour(38));
    }

    #[test]
    fn not_evaluated_without_slab() {
        assert_eq!(not_evaluated(RULE, &host()).names, ["mem.slab_reclaimable"]);
    }
}
