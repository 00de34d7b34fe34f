//! The kernel's cache of file names and inodes is large or grows.

use timeline::facts::VFS_CACHE_PRESSURE;
use timeline::signals::{
    DENTRIES, DENTRIES_NEGATIVE, MEM_AVAILABLE, MEM_SLAB_RECLAIMABLE, PSI_MEMORY_SOME, SLAB_PAGES,
    SLABS_SCANNED,
};

use crate::measures::readings::NOTICED;
use crate::measures::rise::{self, Rise, heights, with_levels};
use crate::measures::slab;
use crate::oom;
use crate::prelude::*;

declare_rule! {
    /// The kernel's cache of file names and inodes takes a large part of RAM; it is given back when memory is wanted.
    ///
    /// ## What it means
    /// Whoever walks millions of files, or asks again and again for files that do not exist, fills the dentry and inode
    /// caches. No process shows that memory, so it looks lost. It is reclaimable: MemAvailable contains most of it.
    /// It costs only when reclaiming it makes somebody wait, or when a control group's limit contains it.
    /// ## How it is recognised
    /// Reclaimable slab (SReclaimable) is 20 % of RAM or more for 10 s, or rises by 4 % of RAM (at least 16 MiB) and half
    /// of that stays for 10 s. Where RAM is not known, 1 GiB counts, and a rise by 256 MiB. It is a warning only if tasks
    /// wait for memory for 10 % of the time meanwhile, for 10 s, and the kernel is busy with slab caches; else
    /// information.
    /// ## Not this
    /// - `slab-leak`: kernel objects that cannot be reclaimed.
    /// - `cache-full-harmless`: the same harmless fullness, of file contents.
    /// ## What to do
    /// Mostly nothing. Now: find who walks or probes (updatedb, find, backup; a program that looks for missing files).
    /// For good: exclude trees from the walk, fix the program, or `vm.vfs_cache_pressure=200` (never 0). Verify:
    /// SReclaimable stays level under the same load.
    /// ## References
    /// - kernel Documentation/admin-guide/sysctl/vm.rst, vfs_cache_pressure
    /// - kernel Documentation/admin-guide/sysctl/fs.rst, dentry-state (negative dentries since 5.0)
    pub(crate) RULE = {
        id: "dentry-inode-bloat", since: "0.1.0", class: Growth,
        trigger: trigger, story: story,
        cause: "Somebody walks very many files (updatedb, find, a backup), or asks again and again for files that do not exist.",
        verify: "SReclaimable stays level under the same load",
        explained_by: &[Explains::Maybe(VFS_CACHE_PRESSURE)],
    }
}

/// An engineering choice; a healthy 1 GiB cloud host has 14 %.
const LARGE: Ratio = Ratio::from_percent(20.0);
/// Where RAM is not known: what people ask about has 4 GiB and more.
const LARGE_UNKNOWN_RAM: Bytes = Bytes::from_gib(1);
/// Labelled captures: a program that writes its dump brings 2.8 % of RAM, negative dentries 26 %.
const RISE: Ratio = Ratio::from_percent(4.0);
/// Shrinkers at work: thrash with little slab scans at most 375 objects a second (labelled captures).
const SCANNED: PerSecond<Count> = PerSecond::new(1_000.0);
/// From here on most entries are names that do not exist (fs/dcache.c counts them as nr_negative).
const NEGATIVE: f64 = 0.5;

fn trigger() -> Trigger {
    let rise = computed("reclaimable_slab_rise", |cx| {
        Ok(heights(cx, &reclaimable().track(cx)?))
    });
    let rises = all![
        rise.at_least("rise of reclaimable slab", Rise::least(RISE)),
        reclaimable().at_least("reclaimable slab", Rise::least(RISE)),
    ];
    rise::trigger(find, any![is_large(), rises])
}

/// SReclaimable, or where slabtop alone was kept what its caches of files take.
fn reclaimable() -> Reading<Bytes> {
    let caches = computed("slab_caches_of_files", |cx| {
        let sizes = slab::sizes(cx, slab::Cache::is_of_files);
        sizes.ok_or_else(|| cx.lacks_signal(MEM_SLAB_RECLAIMABLE.id()))
    });
    gauge(MEM_SLAB_RECLAIMABLE).or(caches)
}

fn is_large() -> Predicate {
    reclaimable().at_least("reclaimable slab", large())
}

fn large() -> Reading<Bytes> {
    ram().share(LARGE).or(Reading::constant(LARGE_UNKNOWN_RAM))
}

/// Whether it rose steadily or jumped is no matter.
fn find(cx: &Evidence<'_>) -> Result<Vec<Occurrence>, Missing> {
    let rises = Rise::of_size(&reclaimable().track(cx)?, Rise::at_least(cx, RISE));
    with_levels(cx, is_large(), rises)
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let track = reclaimable().track(cx)?;
    let Some((level, at)) = track.max_in(stretch) else {
        return clear!("kernel objects were not measured");
    };
    let caches = slab::caches(cx, stretch.last).into_iter();
    let caches: Vec<_> = caches.filter(slab::Cache::is_of_files).collect();
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
        .with(rise.as_ref(), |it, rise| {
            let text = format!("SReclaimable rose from {} to {}", rise.from, rise.to);
            it.shows_from(
                MEM_SLAB_RECLAIMABLE,
                rise.by(),
                least,
                Some(rise.stretch.to),
                text,
            )
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
    let open = if caches.is_empty() {
        "slab caches (root) would say which objects they are"
    } else {
        ""
    };
    Ok(contents_shown_in(finding, cx, &caches, at)
        .when(is_counted, |it| it.not("slab-leak", "the kernel counts these objects as reclaimable"))
        .fix(Fix::say("Nothing to do unless somebody waits. To see who: the process that reads directories while the cache grows.").look("slabtop --once --sort=c | head -n 20"))
        .fix(Fix::tunable(cx, "If it hurts: exclude trees from the walk, or let the kernel reclaim names and inodes more readily.", VFS_CACHE_PRESSURE, 200))
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

/// With what the cache holds, and what is left beside it.
fn contents_shown_in(
    finding: Finding,
    cx: &Evidence<'_>,
    caches: &[slab::Cache],
    at: usize,
) -> Finding {
    let available = cx.level(MEM_AVAILABLE, at);
    finding
        .with(caches.first(), |it, cache| {
            let text = format!("largest of them: {} with {}", cache.name, cache.bytes);
            it.shows(SLAB_PAGES, cache.bytes, None, text)
        })
        .with(negative(cx, at), |it, (negative, share)| {
            let text = format!("{negative} names that do not exist ({share} of all cached names)");
            it.shows(Computed(DENTRIES_NEGATIVE), share, None, text)
        })
        .with(available, |it, available| {
            let text = format!("{available} available, which includes most of it");
            it.shows(MEM_AVAILABLE, available, None, text)
        })
}

/// What became of it when memory was wanted.
fn harmless(cx: &Evidence<'_>, hurts: Option<Ratio>) -> String {
    match hurts {
        Some(stalled) => format!("; reclaiming it made tasks wait {stalled} of the time"),
        None if oom::shortage(cx).is_some() => {
            "; it was not given back when memory was wanted".to_owned()
        }
        None => "; it is given back when memory is wanted".to_owned(),
    }
}

/// For how much of the time tasks waited for memory while the kernel was busy shrinking slab caches, in the longest time
/// of the incident in which they did.
fn hurts(cx: &Evidence<'_>, incident: &Stretch) -> Option<Ratio> {
    let stalled = cx.stall(PSI_MEMORY_SOME).ok()?;
    let scanned = cx.rate(SLABS_SCANNED).ok()?;
    let times = stalled.at_least(NOTICED).bridged_runs().into_iter();
    let of_it = times.filter(|run| {
        let is_busy = || scanned.mean_in(run).is_some_and(|mean| mean >= SCANNED);
        run.overlaps(incident) && run.duration() >= LEVEL && is_busy()
    });
    stalled.mean_in(&of_it.max_by_key(Stretch::duration)?)
}

/// Names that do not exist among the cached ones, where they are most of them.
fn negative(cx: &Evidence<'_>, at: usize) -> Option<(Count, Ratio)> {
    let level = |signal| cx.timeline.gauge(signal).and_then(|t: Track<_>| t.at(at));
    let (negative, all) = (level(DENTRIES_NEGATIVE)?, level(DENTRIES)?);
    #[allow(clippy::cast_precision_loss)] // a share is read to three digits
    let share = negative.get() as f64 / all.get().max(1) as f64;
    (share >= NEGATIVE).then(|| (negative, Ratio::new(share)))
}

/// What the cache holds, as far as the source tells.
fn contents(cx: &Evidence<'_>, caches: &[slab::Cache], at: usize) -> &'static str {
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
    fn a_growing_name_cache_is_information() {
        let case = host()
            .gauge_steps(MEM_SLAB_RECLAIMABLE, &ramp(10, 120))
            .gauge_of(Entity::Slab, "dentry", SLAB_PAGES, Pages::new(25_600));
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Info);
        assert!(
            finding
                .title
                .starts_with("The kernel's cache of file names grew by 110 MiB"),
            "{}",
            finding.title
        );
    }

    #[test]
    fn a_large_cache_in_one_look_is_information() {
        let case = Case::once()
            .gauge(MEM_TOTAL, MIB(1000))
            .gauge(MEM_SLAB_RECLAIMABLE, MIB(300));
        let finding = found(RULE, &case);
        assert!(finding.title.contains("30 % of RAM"), "{}", finding.title);
        // Nothing but two fields: no RAM, no second look.
        found(
            RULE,
            &Case::once().gauge(MEM_SLAB_RECLAIMABLE, Bytes::from_gib(4)),
        );
    }

    #[test]
    fn names_that_do_not_exist_are_named() {
        let case = host()
            .gauge_steps(MEM_SLAB_RECLAIMABLE, &ramp(10, 120))
            .gauge(DENTRIES, Count::new(500_000))
            .gauge(DENTRIES_NEGATIVE, Count::new(490_000));
        let finding = found(RULE, &case);
        assert!(finding.title.contains("do not exist"), "{}", finding.title);
    }

    #[test]
    fn a_cache_whose_reclaim_makes_tasks_wait_is_a_warning() {
        let case = host()
            .gauge(MEM_SLAB_RECLAIMABLE, MIB(400))
            .counter(PSI_MEMORY_SOME, 300_000)
            .counter(SLABS_SCANNED, 50_000);
        assert_eq!(found(RULE, &case).severity, Severity::Warning);
    }

    #[test]
    fn a_small_or_level_cache_is_clear() {
        clear(RULE, &host().gauge(MEM_SLAB_RECLAIMABLE, MIB(140)));
        clear(
            RULE,
            &host().gauge_steps(MEM_SLAB_RECLAIMABLE, &ramp(10, 38)),
        );
    }

    #[test]
    fn half_a_minute_within_a_calm_hour_is_found_with_its_own_times() {
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
    fn without_slab_figures_it_says_what_it_lacks() {
        assert_eq!(not_evaluated(RULE, &host()).names, ["mem.slab_reclaimable"]);
    }
}
