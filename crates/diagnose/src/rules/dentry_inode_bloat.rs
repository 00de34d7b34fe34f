//! The kernel's cache of file names and inodes is large or grows.

use timeline::{
    Track,
    facts::VFS_CACHE_PRESSURE,
    signals::{
        DENTRIES, DENTRIES_NEGATIVE, MEM_AVAILABLE, MEM_SLAB_RECLAIMABLE, PSI_MEMORY_SOME,
        SLAB_PAGES, SLABS_SCANNED,
    },
};
use units::{Bytes, Count, PerSecond, Ratio, Span};

use crate::calm;
use crate::evidence::Evidence;
use crate::finding::{Computed, Severity};
use crate::fix::Fix;
use crate::missing::Missing;
use crate::rise::Rise;
use crate::rule::{Outcome, clear, declare_rule};
use crate::slab;

declare_rule! {
    /// The kernel's cache of file names and inodes takes a large part of RAM; it is given back when memory is wanted.
    ///
    /// ## What it means
    /// Whoever walks millions of files, or asks again and again for files that do not exist, fills the dentry and inode
    /// caches. No process shows that memory, so it looks lost. It is reclaimable: MemAvailable contains most of it.
    /// It costs only when reclaiming it makes somebody wait, or when a control group's limit contains it.
    /// ## How it is recognised
    /// Reclaimable slab (SReclaimable) is 20 % of RAM or more, or rises by 4 % of RAM while watched and stays. Where RAM is not
    /// known, 1 GiB counts. It is a warning only if tasks wait for memory for 10 % of the time meanwhile and the
    /// kernel is busy with slab caches; else information.
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
    pub(crate) RULE = { id: "dentry-inode-bloat", since: "0.1.0", purpose: Finding, reach: Growth, check: check }
}

/// An engineering choice; a healthy 1 GiB cloud host has 14 %.
const LARGE: Ratio = Ratio::from_percent(20.0);
/// Where RAM is not known: what people ask about has 4 GiB and more.
const LARGE_UNKNOWN_RAM: Bytes = Bytes::from_gib(1);
/// Labelled captures: a program that writes its dump brings 2.8 % of RAM, negative dentries 26 %.
const RISE: Ratio = Ratio::from_percent(4.0);
/// The part of a rise that must still be there at the end of the look.
const KEPT: Ratio = Ratio::from_percent(50.0);
/// PSI: a tenth of the time is what users notice.
const STALLED: Ratio = Ratio::from_percent(10.0);
/// Shrinkers at work: thrash with little slab scans at most 375 objects a second (labelled captures).
const SCANNED: PerSecond<Count> = PerSecond::new(1_000.0);
/// From here on most entries are names that do not exist (fs/dcache.c counts them as nr_negative).
const NEGATIVE: f64 = 0.5;
const HOLD: Span = Span::from_mins(5);

fn check(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    let ram = cx.ram().ok();
    let last = cx.timeline.len().saturating_sub(1);
    let caches: Vec<_> = slab::caches(cx, last)
        .into_iter()
        .filter(|cache| cache.is_of_files())
        .collect();
    let track = match cx.gauge(MEM_SLAB_RECLAIMABLE) {
        Ok(track) => Some(track),
        // slabtop alone: its caches tell the level.
        Err(_) if !caches.is_empty() => None,
        Err(missing) => return Err(missing),
    };
    let level: Option<Bytes> = track
        .as_ref()
        .map_or_else(|| Some(caches.iter().map(|c| c.bytes).sum()), Track::last);
    let Some(level) = level else {
        return clear!("kernel objects were not measured");
    };
    let large = ram.map_or(LARGE_UNKNOWN_RAM, |ram| ram.share(LARGE));
    // What rose and was given back since is no matter; whether it rose steadily or jumped is none either.
    let rise = track.as_ref().and_then(Rise::largest).filter(|rise| {
        rise.is_substantial(ram, RISE) && level >= rise.from + rise.by().share(KEPT)
    });
    if rise.is_none() && level < large {
        return clear!("{level} of reclaimable kernel objects, and they did not pile up");
    }

    let hurts = hurts(cx);
    let severity = if hurts.is_some() {
        Severity::Warning
    } else {
        Severity::Info
    };
    let what = contents(cx, &caches);
    let of_ram = ram
        .and_then(|ram| level.ratio_of(ram))
        .map_or_else(String::new, |share| format!(" ({share} of RAM)"));
    let harmless = match hurts {
        Some(stalled) => format!("; reclaiming it made tasks wait {stalled} of the time"),
        None if calm::shortage(cx).is_some() => {
            "; it was not given back when memory was wanted".to_owned()
        }
        None => "; it is given back when memory is wanted".to_owned(),
    };
    let title = match &rise {
        Some(rise) => format!(
            "The kernel's cache of {what} grew by {} to {} in {}{harmless}.",
            rise.by(),
            rise.to,
            rise.stretch.spans()
        ),
        None => format!("The kernel's cache of {what} takes {level}{of_ram}{harmless}."),
    };
    let mut finding = RULE.found(severity, title);
    let mut kinds = Vec::new();
    if let Some(rise) = &rise {
        kinds.push("a rise");
        finding = finding.during(rise.stretch).shows_from(
            MEM_SLAB_RECLAIMABLE,
            rise.by(),
            ram.map_or(LARGE_UNKNOWN_RAM, |ram| ram.share(RISE)),
            Some(rise.stretch.to),
            format!("SReclaimable rose from {} to {}", rise.from, rise.to),
        );
    }
    let text = format!("{level} of reclaimable slab{of_ram}");
    finding = if level >= large {
        kinds.push("the level");
        finding.shows_from(MEM_SLAB_RECLAIMABLE, level, large, None, text)
    } else {
        finding.shows(MEM_SLAB_RECLAIMABLE, level, None, text)
    };
    if let Some(track) = &track {
        finding = finding.graph("reclaimable slab", track);
    }
    if let Some(cache) = caches.first() {
        kinds.push("slab caches");
        finding = finding.shows(
            SLAB_PAGES,
            cache.bytes,
            None,
            format!("largest of them: {} with {}", cache.name, cache.bytes),
        );
    }
    if let Some((negative, share)) = negative(cx) {
        finding = finding.shows(
            Computed(DENTRIES_NEGATIVE),
            share,
            None,
            format!("{negative} names that do not exist ({share} of all cached names)"),
        );
    }
    if let Some(available) = cx.timeline.gauge(MEM_AVAILABLE).and_then(|t| t.last()) {
        finding = finding.shows(
            MEM_AVAILABLE,
            available,
            None,
            format!("{available} available, which includes most of it"),
        );
    }
    if track.is_some() {
        finding = finding.not(
            "slab-leak",
            "the kernel counts these objects as reclaimable",
        );
    }
    let open = if caches.is_empty() {
        "slab caches (root) would say which objects they are"
    } else {
        ""
    };
    if track.is_none() || ram.is_none() {
        kinds.truncate(1);
    }
    Ok(finding
        .cause("Somebody walks very many files (updatedb, find, a backup), or asks again and again for files that do not exist.")
        .fix(Fix::say("Nothing to do unless somebody waits. To see who: the process that reads directories while the cache grows.").look("slabtop --once --sort=c | head -n 20"))
        .fix(Fix::tunable(cx, "If it hurts: exclude trees from the walk, or let the kernel reclaim names and inodes more readily.", VFS_CACHE_PRESSURE, 200))
        .verify("SReclaimable stays level under the same load")
        .affects(slab::affected(&caches, 3))
        .sure(cx.confidence(&kinds, open))
        .see("kernel: Documentation/admin-guide/sysctl/vm.rst, vfs_cache_pressure")
        .see("kernel: Documentation/admin-guide/sysctl/fs.rst, dentry-state")
        .into())
}

/// For how much of the time tasks waited for memory while the kernel was busy shrinking slab caches.
fn hurts(cx: &Evidence<'_>) -> Option<Ratio> {
    let stalled = cx.stall(PSI_MEMORY_SOME).ok()?;
    let stretch = cx.sustained(&stalled.at_least(STALLED), HOLD)?;
    let scanned = cx.rate(SLABS_SCANNED).ok()?.mean_in(&stretch)?;
    (scanned >= SCANNED).then(|| stalled.mean_in(&stretch))?
}

/// Names that do not exist among the cached ones, where they are most of them.
fn negative(cx: &Evidence<'_>) -> Option<(Count, Ratio)> {
    let last = |signal| cx.timeline.gauge(signal).and_then(|t: Track<_>| t.last());
    let (negative, all) = (last(DENTRIES_NEGATIVE)?, last(DENTRIES)?);
    #[allow(clippy::cast_precision_loss)] // a share is read to three digits
    let share = negative.get() as f64 / all.get().max(1) as f64;
    (share >= NEGATIVE).then(|| (negative, Ratio::new(share)))
}

/// What the cache holds, as far as the source tells.
fn contents(cx: &Evidence<'_>, caches: &[slab::Cache]) -> &'static str {
    if negative(cx).is_some() {
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
    fn without_slab_figures_it_says_what_it_lacks() {
        assert_eq!(not_evaluated(RULE, &host()).names, ["mem.slab_reclaimable"]);
    }
}
