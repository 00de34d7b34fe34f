//! The sentences of a growth: what its class is called, means and rests on, and what to do.

use diagnose::growth::{
    Growth, GrowthAndFall, GrowthChange, GrowthClass, GrowthOwnerKind, GrowthReason,
};

/// What a class is called.
pub(crate) const fn name(class: GrowthClass) -> &'static str {
    match class {
        GrowthClass::LeakAndFragmentation => "leak + fragmentation",
        GrowthClass::Saturating => "levelling off",
        GrowthClass::Warmup => "warm-up",
        GrowthClass::Pinned => "pinned after a batch",
        GrowthClass::Stationary => "steady sawtooth",
        other => other.name(),
    }
}

/// What it means that something level grew for a while.
pub(crate) const GAVE_BACK: &str =
    "Memory is no larger at the end than before: it grew for a while, and gave that back.";
/// What to do about that.
pub(crate) const JUDGE_THE_RISE: &str =
    "If it should not have grown, judge the time in which it did by --since and --until.";

/// What to do where the live size is known, and no class yet.
pub(crate) const WATCH_ON: &str = "Watch it for longer.";

/// Returns what the class means, as a sentence.
pub(crate) const fn meaning(class: GrowthClass, kind: GrowthOwnerKind) -> &'static str {
    match class {
        GrowthClass::Leak if !matches!(kind, GrowthOwnerKind::Process) => {
            "Memory of its programs is allocated and not freed again."
        }
        GrowthClass::Leak => "The program allocates memory and does not free it again.",
        GrowthClass::LeakAndFragmentation => {
            "The program allocates memory and does not free it again, and its allocator keeps \
             free memory in pieces."
        }
        GrowthClass::Fragmentation => {
            "The program's data do not grow; its allocator keeps free memory in pieces that it \
             cannot return."
        }
        GrowthClass::Saturating => {
            "Growth levels off: fragmentation or a warm-up, which the total alone cannot \
             distinguish."
        }
        GrowthClass::Warmup => "The program's data grow to their working size and level off.",
        GrowthClass::Pinned => {
            "A batch is over; its memory is free in the process, but not returned to the \
             kernel."
        }
        GrowthClass::Steps => "Memory changes in a few jumps and stands still between them.",
        GrowthClass::Seasonal => "Memory rises and falls with a period, as load does.",
        GrowthClass::Stationary => {
            "Memory rises and is freed again and again; its floor does not rise."
        }
        GrowthClass::Flat => "Memory does not grow beyond its noise.",
        GrowthClass::Unknown => "The readings do not decide it.",
    }
}

/// Returns what to do about it, as a sentence. `kills`: how often the kernel killed in it.
pub(crate) const fn advice(class: GrowthClass, kills: usize) -> &'static str {
    match class {
        class if kills > 0 && !class.leaks() && !class.fragments() => {
            "The kernel killed in it: `memtide check` shows why."
        }
        GrowthClass::Leak => {
            "Restart before the limit is reached, and profile the heap (`jeprof`, `heaptrack`, \
             `memleak` of bcc); look for caches and queues without a bound."
        }
        GrowthClass::LeakAndFragmentation => {
            "Profile the heap for the leak first; then try jemalloc or, if several threads \
             allocate, `MALLOC_ARENA_MAX=2` for the free memory."
        }
        GrowthClass::Fragmentation => {
            "Try jemalloc or, if several threads allocate, `MALLOC_ARENA_MAX=2`: `memtide trial` \
             measures memory and speed together; a heap profile will not show it."
        }
        GrowthClass::Saturating => {
            "Record the heap too (live and free bytes of malloc), or wait until it levels off \
             before a limit is set."
        }
        GrowthClass::Warmup => "Size the limit for the level at which it ends; nothing is wrong.",
        GrowthClass::Pinned => {
            "`malloc_trim(0)` after the batch, `MALLOC_TRIM_THRESHOLD_`, or a process of its \
             own for the batch returns it."
        }
        GrowthClass::Steps => {
            "Compare the times of the jumps with deployments, jobs and new threads."
        }
        GrowthClass::Seasonal => "Size the limit for the peak of a whole period.",
        GrowthClass::Stationary => "Size the limit for the peaks; nothing is wrong.",
        GrowthClass::Flat => "Nothing to do.",
        GrowthClass::Unknown => {
            "Record for longer, with the live and free bytes of malloc if possible."
        }
    }
}

/// Says what the class rests on.
pub(crate) fn reasons(growth: &Growth) -> Vec<String> {
    if growth.readings < 2 {
        return vec!["One reading shows no growth: it takes several, with their times.".to_owned()];
    }
    let needs = growth.needs.map(|more| format!("Not enough data: about {more} more are needed."));
    growth.reasons.iter().map(|reason| sentence(reason, growth)).chain(needs).collect()
}

fn sentence(reason: &GrowthReason, growth: &Growth) -> String {
    match reason {
        GrowthReason::Total(GrowthChange { from, to, late }) => format!(
            "Total: {from} to {to}; {late:+} after the first 15 % of {}, by its trend.",
            growth.judged
        ),
        GrowthReason::Live(GrowthChange { from, to, late }) => {
            format!("Live: {from} to {to}; {late:+} after the first 15 %, by its trend.")
        }
        GrowthReason::Free { free, beyond_peaks } => format!(
            "Free in the allocator: {free} of the total; {beyond_peaks} of the total beyond what \
             peaks of the live size explain."
        ),
        GrowthReason::TotalOnly => "Live and free bytes of malloc are known of no or too few \
                                    readings: the total alone is judged."
            .to_owned(),
        GrowthReason::Killed(times) => {
            format!("The kernel killed in it ({times} ×); one part was judged.")
        }
        GrowthReason::NoProcessGrows => "The sum rises unevenly, and no process of it grows: \
                                         programs that come and go."
            .to_owned(),
        GrowthReason::RoseAndFell(GrowthAndFall { from, to, took, ago }) => format!(
            "It grew from {from} to {to} in {took}, until {ago} before the end, and gave that back."
        ),
        GrowthReason::Restarts(times) => {
            format!("The process restarted ({times} ×); one part was judged.")
        }
    }
}
