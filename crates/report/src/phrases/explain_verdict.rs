//! What `explain` says of a process, in sentences: the verdict with its figures, and what to do.

use diagnose::process_memory::{MemoryVerdict, OWNER_SHARE_MIN};
use units::{Bytes, Count, Ratio, Span};

use crate::model::explain::{ExplainReport, FewerArenas, HeapReport, MemoryPart};
use crate::phrases::explain;

/// Less than this share of the free bytes is not worth a clause.
const CLAUSE_SHARE_MIN: Ratio = Ratio::new(0.02);
/// The inside of a part below this share of a process is not worth a sentence.
const INSIDE_SHARE_MIN: Ratio = Ratio::new(0.2);
/// Below this share of a process, mapped files and shared memory are not where its memory is.
const FILES_SHARE_MAX: Ratio = Ratio::new(0.25);

/// Returns the verdict in a word or two: a runtime or allocator that has most of the memory is named.
pub fn explain_verdict(report: &ExplainReport, verdict: MemoryVerdict) -> String {
    let owner = match verdict {
        MemoryVerdict::OtherOwner => owner_of_most(report).filter(|part| part.owner.is_some()),
        _ => None,
    };
    owner.map_or(verdict.label(), owner_of).to_owned()
}

/// Returns the verdict in sentences, the most important first; `watch` is for how long to watch the process for an answer
/// that one reading cannot give.
pub fn explain_headline(
    report: &ExplainReport,
    verdict: MemoryVerdict,
    watch: Span,
) -> Vec<String> {
    let mut lines = match (verdict, &report.heap) {
        (MemoryVerdict::Fragmented, Some(heap)) => fragmented(report, heap, watch),
        (MemoryVerdict::Live, Some(heap)) => live(report, heap, watch),
        (MemoryVerdict::Unclear, Some(heap)) => unclear(report, heap),
        (MemoryVerdict::Small, _) => {
            vec![format!("Its RSS is {}: there is little to explain.", report.sizes.rss_bytes)]
        }
        (MemoryVerdict::NotRead, _) => not_read(report),
        _ => other_owner(report),
    };
    if matches!(
        verdict,
        MemoryVerdict::Fragmented | MemoryVerdict::Live | MemoryVerdict::OtherOwner
    ) {
        lines.extend(not_files(report));
    }
    if report.sizes.swap_bytes > Bytes::ZERO {
        lines
            .push(format!("A further {} are in swap, and were not read.", report.sizes.swap_bytes));
    }
    lines
}

fn fragmented(report: &ExplainReport, heap: &HeapReport, watch: Span) -> Vec<String> {
    let mut lines = vec![format!(
        "{} of its {} malloc heap are free, but still in RAM; {} are live.",
        heap.unused_resident_bytes,
        heap.resident_bytes(),
        heap.live_resident_bytes(),
    )];
    lines.extend(heap.forecast.fewer_arenas.as_ref().map(fewer_arenas));
    lines.push(format!(
        "For now, malloc_trim(0) would return {}, until the program needs them again.",
        heap.forecast.trim_bytes
    ));
    lines.extend(not_returned(heap));
    lines.push(over_time(report).unwrap_or_else(|| {
        let watch = watch_command(report, watch);
        format!("Whether the program needs the free memory again shows only over time: {watch}.")
    }));
    lines
}

/// Says where the free memory is that trimming leaves, the larger place first.
fn not_returned(heap: &HeapReport) -> Option<String> {
    let least = heap.unused_resident_bytes.share(CLAUSE_SHARE_MIN);
    let tops = heap.arenas.iter().filter(|arena| arena.thread_top_bytes > Bytes::ZERO);
    let tops = Count::new(tops.count() as u64).named("thread arena", "thread arenas");
    let mut places = [
        (heap.forecast.pinned_bytes, "on pages that live neighbours keep in RAM".to_owned()),
        (heap.forecast.thread_tops_bytes, format!("in the tops of {tops}")),
        (heap.cached_resident_bytes(), "in thread caches".to_owned()),
    ];
    places.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    let clauses: Vec<String> = places
        .into_iter()
        .filter(|(bytes, _)| *bytes > least)
        .map(|(bytes, place)| format!("{bytes} {place}"))
        .collect();
    (!clauses.is_empty()).then(|| format!("It cannot return {}.", clauses.join("; ")))
}

fn fewer_arenas(fewer: &FewerArenas) -> String {
    format!(
        "For good, a restart with MALLOC_ARENA_MAX={} may save about {} to {} (a model of its {} \
         arenas): more, if its threads peak at different times. The cost is lock contention: \
         `memtide trial --vary arenas=default,{} -- COMMAND` measures both.",
        fewer.arenas_max, fewer.low_bytes, fewer.high_bytes, fewer.arenas, fewer.arenas_max,
    )
}

fn live(report: &ExplainReport, heap: &HeapReport, watch: Span) -> Vec<String> {
    let live = heap.live_resident_bytes();
    let all = heap.resident_bytes();
    vec![
        format!(
            "{live} of its {all} malloc heap are live{}: allocated, and not freed.",
            share(live, all)
        ),
        over_time(report).unwrap_or_else(|| {
            let watch = watch_command(report, watch);
            format!(
                "Whether that is data in use, a cache that fills or a leak shows only over time: \
                 {watch}."
            )
        }),
    ]
}

/// A heap that changes is another case than one that is damaged, or that memtide does not understand.
fn unclear(report: &ExplainReport, heap: &HeapReport) -> Vec<String> {
    if let Some(why) = explain::missing(heap) {
        let found = heap.resident_bytes();
        return vec![format!("{why} The {found} that were found are a lower bound.")];
    }
    if !heap.has_changed || report.cost.stopped_s.is_some() {
        return vec![format!(
            "Its malloc heap is damaged, or memtide does not know its form: {} of {} could not be \
             read as chunks.",
            heap.uncertain_resident_bytes,
            heap.total.system_bytes + heap.mmapped_bytes
        )];
    }
    let free = heap.total.free_resident_bytes;
    vec![format!(
        "Its heap changes while it is read: {free} of {} are free, give or take {}. Exact figures \
         need a stop of about {}: memtide explain {} --freeze.",
        heap.resident_bytes(),
        heap.uncertain_resident_bytes,
        report.cost.wall_s,
        report.process.pid,
    )]
}

fn not_read(report: &ExplainReport) -> Vec<String> {
    let why = report.heap_not_read.as_deref().unwrap_or("unknown");
    let mut lines = vec![format!("Its malloc heap was not read: {why}.")];
    lines.extend(largest(report));
    lines
}

/// Returns the part that has half of the process.
fn owner_of_most(report: &ExplainReport) -> Option<&MemoryPart> {
    let least = report.sizes.rss_bytes.share(OWNER_SHARE_MIN);
    let mut parts = report.memory.parts.iter();
    parts.find(|part| part.rss_bytes >= least)
}

/// Says that it is not page cache, the commonest suspicion, where that is so.
fn not_files(report: &ExplainReport) -> Option<String> {
    let rss = report.sizes.rss_bytes;
    let files = rss.saturating_sub(report.sizes.anonymous_bytes);
    (files < rss.share(FILES_SHARE_MAX)).then(|| {
        format!("It is not page cache: mapped files and shared memory are only {files} of its RSS.")
    })
}

fn other_owner(report: &ExplainReport) -> Vec<String> {
    let rss = report.sizes.rss_bytes;
    let parts = &report.memory.parts;
    let mut lines: Vec<String> = match owner_of_most(report) {
        Some(_) => largest(report).into_iter().chain(malloc_part(report)).collect(),
        None => vec![largest_few(report)],
    };
    let owner = parts
        .iter()
        .find(|part| part.owner.is_some() && !part.is_malloc_heap)
        .filter(|part| part.rss_bytes >= rss.share(INSIDE_SHARE_MIN));
    lines.extend(owner.and_then(|part| inside(part.owner?, report.process.pid)));
    lines
}

/// Says how it changed, where that is known.
fn over_time(report: &ExplainReport) -> Option<String> {
    let growth = report.growth.as_ref().filter(|growth| growth.needs_s.is_none())?;
    let judged = growth.judged_s;
    Some(format!(
        "Over {judged}: {} ({}). {}",
        growth.class_text,
        growth.confidence_text.word(),
        growth.meaning
    ))
}

/// Says what glibc's malloc has beside the largest part.
fn malloc_part(report: &ExplainReport) -> Option<String> {
    let heap = report.heap.as_ref()?;
    Some(format!(
        "Its malloc heap has {}, of which {} are free.",
        heap.resident_bytes(),
        heap.total.free_resident_bytes
    ))
}

/// Names the largest parts of a process in which none has half.
fn largest_few(report: &ExplainReport) -> String {
    const SHOWN: usize = 3;
    let name = |part: &MemoryPart| {
        let free = report.heap.as_ref().filter(|_| part.is_malloc_heap);
        let free = free.map_or_else(String::new, |heap| {
            let free = heap.total.free_resident_bytes;
            format!(" ({free} of it free)")
        });
        format!("{} {}{free}", owner_of(part), part.rss_bytes)
    };
    let parts: Vec<String> = report.memory.parts.iter().take(SHOWN).map(name).collect();
    format!("No part has half of its RSS of {}: {}.", report.sizes.rss_bytes, parts.join(", "))
}

/// Names the largest part that is not malloc's.
fn largest(report: &ExplainReport) -> Option<String> {
    let parts = report.memory.parts.iter();
    let part: &MemoryPart =
        parts.filter(|part| !part.is_malloc_heap).max_by_key(|part| part.rss_bytes)?;
    let (size, rss) = (part.rss_bytes, report.sizes.rss_bytes);
    let reserved = match part.owner {
        // The Java heap's address space is as large as -Xmx lets it become.
        Some("jvm") => format!("; {} are reserved for it", part.virtual_bytes),
        _ => String::new(),
    };
    Some(format!(
        "Its largest part is {}: {size} of an RSS of {rss}{}{reserved}.",
        owner_of(part),
        share(size, rss),
    ))
}

/// What a part is called in a sentence: a group of one is that one.
fn owner_of(part: &MemoryPart) -> &str {
    match part.parts.as_slice() {
        [only] => &only.label,
        _ => &part.label,
    }
}

/// Where the inside of another owner's memory is shown.
fn inside(runtime: &str, pid: u32) -> Option<String> {
    Some(match runtime {
        "jvm" => format!("`jcmd {pid} GC.heap_info` shows how much of the Java heap is in use."),
        "go" => "GODEBUG=gctrace=1 at its next start, or /debug/pprof/heap where it serves that, \
                 shows how much of it is live; GOMEMLIMIT bounds it."
            .to_owned(),
        "v8" => "In the program, process.memoryUsage() shows how much of the V8 heap is in use; \
                 --max-old-space-size bounds it."
            .to_owned(),
        "cpython" => "Python's tracemalloc shows which code allocates in pymalloc; with \
                      PYTHONMALLOC=malloc at its next start, its objects are in the malloc heap."
            .to_owned(),
        "ruby" => "In the program, GC.stat shows how many slots of its pages are live.".to_owned(),
        "jemalloc" => "Only jemalloc's own statistics (malloc_stats_print) show how much of it is \
                       free."
            .to_owned(),
        "gperftools" | "tcmalloc" => "Only tcmalloc's own statistics (MallocExtension's GetStats) \
                                      show how much of it is free."
            .to_owned(),
        "mimalloc" => "MIMALLOC_SHOW_STATS=1 at its next start prints at its end how much of it \
                       was in use."
            .to_owned(),
        _ => return None,
    })
}

fn share(part: Bytes, whole: Bytes) -> String {
    let share: Option<Ratio> = part.ratio_of(whole);
    share.map_or_else(String::new, |share| format!(" ({share})"))
}

/// The command that answers what one reading cannot.
fn watch_command(report: &ExplainReport, watch: Span) -> String {
    let minutes = (watch.as_secs_f64() / 60.0).ceil();
    format!("memtide explain {} --watch {minutes}m", report.process.pid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::explain::ArenaEntry;

    #[test]
    fn a_heap_that_was_not_read_to_its_end_has_a_reason_and_a_lower_bound() {
        let total = ArenaEntry { resident_bytes: Bytes::from_mib(63), ..ArenaEntry::default() };
        let heap = HeapReport { total, is_cut: true, ..HeapReport::default() };
        let report = ExplainReport { heap: Some(heap), ..ExplainReport::default() };
        let lines = explain_headline(&report, MemoryVerdict::Unclear, Span::ZERO);
        assert!(lines[0].contains("far more memory than is in RAM"), "{lines:?}");
        assert!(lines[0].ends_with("The 63 MiB that were found are a lower bound."), "{lines:?}");
    }
}
