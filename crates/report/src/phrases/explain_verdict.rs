//! What `explain` says of a process, in sentences: the verdict with its figures, and what to do.

use diagnose::Sureness;
use diagnose::growth::GrowthClass;
use diagnose::process_memory::{MemoryVerdict, OWNER_SHARE_MIN};
use units::{Bytes, Count, Ratio, Span};

use crate::model::explain::{ExplainReport, FewerArenas, HeapReport, MemoryPart};
use crate::model::growth::GrowthEntry;
use crate::phrases::{explain, explain_faults, growth};

/// Less than this share of the free bytes is not worth a clause.
const CLAUSE_SHARE_MIN: Ratio = Ratio::new(0.02);
/// The inside of a part below this share of a process is not worth a sentence.
const INSIDE_SHARE_MIN: Ratio = Ratio::new(0.2);
/// A heap with at least this share of it live is called live data.
const LIVE_SHARE_MIN: Ratio = Ratio::new(0.75);
/// A part with this share of a group gives the group its name.
const NEARLY_ALL: Ratio = Ratio::new(0.8);
/// Below this share of a process, mapped files and shared memory are not where its memory is.
const FILES_SHARE_MAX: Ratio = Ratio::new(0.25);

/// Returns the first words of the answer: the class of its course where that is known and says more than the state, else the
/// owner of most of its memory, else the state.
pub fn explain_verdict(report: &ExplainReport, verdict: MemoryVerdict) -> String {
    leading_course(report).map(course_words).unwrap_or_else(|| match verdict {
        MemoryVerdict::OtherOwner => {
            largest_other(report).map_or_else(|| verdict.label().to_owned(), owner_words)
        }
        MemoryVerdict::SeveralOwners => {
            two_owners(report).unwrap_or_else(|| verdict.label().to_owned())
        }
        MemoryVerdict::Live if !is_mostly_live(report) => "malloc heap".to_owned(),
        other => other.label().to_owned(),
    })
}

/// Returns the verdict in sentences, the most important first; `watch` is for how long to watch the process for an answer
/// that one reading cannot give.
pub fn explain_headline(
    report: &ExplainReport,
    verdict: MemoryVerdict,
    watch: Span,
) -> Vec<String> {
    let leading = leading_course(report);
    let mut lines: Vec<String> = leading.map(course).into_iter().collect();
    lines.extend(match (verdict, &report.heap) {
        (MemoryVerdict::Fragmented, Some(heap)) => fragmented(heap),
        (MemoryVerdict::Live, Some(heap)) => live(report, heap),
        (MemoryVerdict::Unclear, Some(heap)) => unclear(report, heap),
        (MemoryVerdict::Small, _) => {
            vec![format!("Its RSS is {}: there is little to explain.", report.sizes.rss_bytes)]
        }
        (MemoryVerdict::NotRead, _) => not_read(report),
        _ => other_owner(report),
    });
    if leading.is_none() {
        lines.extend(report.growth.as_ref().map(course).or_else(|| ask(report, verdict, watch)));
    }
    lines.extend(explain_faults::many(report));
    if matches!(
        verdict,
        MemoryVerdict::Fragmented
            | MemoryVerdict::Live
            | MemoryVerdict::OtherOwner
            | MemoryVerdict::SeveralOwners
    ) {
        lines.extend(not_files(report));
    }
    if report.sizes.swap_bytes > Bytes::ZERO {
        lines
            .push(format!("A further {} are in swap, and were not read.", report.sizes.swap_bytes));
    }
    lines
}

/// Returns how it grows, where that comes before its state: a level size says no more than its state does.
fn leading_course(report: &ExplainReport) -> Option<&GrowthEntry> {
    let growth = report.growth.as_ref()?;
    let leads = match growth.class {
        GrowthClass::Flat => false,
        GrowthClass::Unknown => growth.rate_bytes_per_s.is_some(),
        _ => true,
    };
    leads.then_some(growth)
}

/// `leak`, `possible leak`, `rising 1 MiB/s, class open`.
fn course_words(growth: &GrowthEntry) -> String {
    match (growth::rate(growth), growth.class) {
        (Some(rate), GrowthClass::Unknown) => {
            format!("rising {}, class open", rate.trim_start_matches('+'))
        }
        _ if growth.confidence_text == Sureness::Possible => {
            format!("possible {}", growth.class_text)
        }
        _ => growth.class_text.to_owned(),
    }
}

/// How it changes, in sentences.
fn course(growth: &GrowthEntry) -> String {
    let judged = growth.judged_s;
    let rate = growth::rate(growth);
    let more = growth.needs_s.map(|more| format!("about {more} more decide it"));
    if growth.class == GrowthClass::Unknown {
        let more = more.unwrap_or_else(|| "its readings fit several classes".to_owned());
        return match rate {
            Some(rate) => format!(
                "Over {judged} it rose in a line, by {}; whether that is a leak, a cache that fills \
                 or fragmentation is open: {more}.",
                rate.trim_start_matches('+')
            ),
            None => format!("Over {judged} its course has no class yet: {more}."),
        };
    }
    let rate = rate.map_or_else(String::new, |rate| format!(", {rate}"));
    format!(
        "Over {judged}: {} ({}){rate}. {}",
        growth.class_text,
        growth.confidence_text.word(),
        growth.meaning
    )
}

/// What only time shows, and how to ask for it.
fn ask(report: &ExplainReport, verdict: MemoryVerdict, watch: Span) -> Option<String> {
    let question = match verdict {
        MemoryVerdict::Fragmented => "Whether the program needs the free memory again",
        MemoryVerdict::Live => "Whether that is data in use, a cache that fills or a leak",
        _ => return None,
    };
    Some(format!("{question} shows only over time: {}.", watch_command(report, watch)))
}

fn fragmented(heap: &HeapReport) -> Vec<String> {
    let mut lines = vec![format!(
        "{} of its {} malloc heap are free, but still in RAM; {} are live.",
        heap.unused_resident_bytes,
        heap.resident_bytes(),
        heap.live_resident_bytes(),
    )];
    lines.extend(heap.forecast.fewer_arenas.as_ref().map(fewer_arenas));
    let trim = heap.forecast.trim_bytes;
    if trim > heap.unused_resident_bytes.share(CLAUSE_SHARE_MIN) {
        lines.push(format!(
            "For now, malloc_trim(0) would return {trim}, until the program needs them again."
        ));
        lines.extend(not_returned(heap).map(|places| format!("It cannot return {places}.")));
    } else {
        let places = not_returned(heap).map(|places| format!(": {places}"));
        let places = places.unwrap_or_default();
        lines.push(format!("malloc_trim would return next to nothing of it{places}."));
    }
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
    (!clauses.is_empty()).then(|| clauses.join("; "))
}

fn fewer_arenas(fewer: &FewerArenas) -> String {
    format!(
        "For good, a restart with MALLOC_ARENA_MAX={} may save about {} to {} (a model of its {} \
         arenas): more, if its threads peak at different times. The cost is lock contention: \
         `memtide trial --vary arenas=default,{} -- COMMAND` measures both.",
        fewer.arenas_max, fewer.low_bytes, fewer.high_bytes, fewer.arenas, fewer.arenas_max,
    )
}

fn live(report: &ExplainReport, heap: &HeapReport) -> Vec<String> {
    let live = heap.live_resident_bytes();
    let all = heap.resident_bytes();
    let free = if is_mostly_live(report) {
        String::new()
    } else {
        format!("; {} are free", heap.unused_resident_bytes)
    };
    let mut lines = vec![format!(
        "{live} of its {all} malloc heap are live{}: allocated, and not freed{free}.",
        share(live, all)
    )];
    lines.extend(large_chunks(report, heap));
    lines.extend(in_mallocs(report, heap));
    lines
}

/// Whether most of a heap is in use.
fn is_mostly_live(report: &ExplainReport) -> bool {
    report.heap.as_ref().is_some_and(|heap| {
        heap.live_resident_bytes() >= heap.resident_bytes().share(LIVE_SHARE_MIN)
    })
}

/// Says that a heap is made of large chunks, and what uses such.
fn large_chunks(report: &ExplainReport, heap: &HeapReport) -> Option<String> {
    let large = heap.mmapped_resident_bytes;
    if large < heap.resident_bytes().share(OWNER_SHARE_MIN) {
        return None;
    }
    let chunks = Count::new(heap.mmapped_chunks);
    let mean = Bytes::new(heap.mmapped_bytes.get() / heap.mmapped_chunks.max(1));
    let has = |name: &str| report.allocators.iter().any(|one| one.name == name);
    let users = if has("V8") {
        ": in Node.js those are Buffers (process.memoryUsage().arrayBuffers), which \
         --max-old-space-size does not bound"
    } else if has("Java virtual machine") {
        ": in a Java virtual machine such are direct buffers, which -XX:MaxDirectMemorySize bounds \
         and -Xmx does not"
    } else if has("CPython") {
        ": in Python those are arrays, as of numpy, and long strings; they are returned as soon as \
         they are freed"
    } else {
        ""
    };
    let chunks = chunks.named("large chunk", "large chunks");
    Some(format!("{large} are in {chunks} of {mean} on average, each with a mapping{users}."))
}

/// Says where a server shows what its malloc heap is for.
fn in_mallocs(report: &ExplainReport, heap: &HeapReport) -> Option<String> {
    let is_large = heap.resident_bytes() >= report.sizes.ram_bytes.share(INSIDE_SHARE_MIN);
    (is_large && is_mariadb(report)).then(|| {
        "Of MariaDB's or MySQL's malloc heap, `SHOW ENGINE PERFORMANCE_SCHEMA STATUS` (its last \
         line) shows what performance_schema has, which performance_schema=OFF saves."
            .to_owned()
    })
}

fn is_mariadb(report: &ExplainReport) -> bool {
    matches!(report.process.name.as_str(), "mariadbd" | "mysqld")
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

/// Returns the largest part that is not malloc's.
fn largest_other(report: &ExplainReport) -> Option<&MemoryPart> {
    let parts = report.memory.parts.iter().filter(|part| !part.is_malloc_heap);
    parts.max_by_key(|part| part.ram_bytes)
}

/// `malloc and V8 heap`: the names of two owners that together have most of a process.
fn two_owners(report: &ExplainReport) -> Option<String> {
    const TOGETHER_MIN: Ratio = Ratio::new(0.66);
    const LETTERS_MAX: usize = 48;
    let whole = report.sizes.ram_bytes;
    let mut parts: Vec<&MemoryPart> = report.memory.parts.iter().collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.ram_bytes));
    let [first, second, ..] = parts.as_slice() else {
        return None;
    };
    let is_most = first.ram_bytes + second.ram_bytes >= whole.share(TOGETHER_MIN)
        && second.ram_bytes >= whole.share(INSIDE_SHARE_MIN);
    let words = format!("{} and {}", owner_words(first), owner_words(second));
    (is_most && words.chars().count() <= LETTERS_MAX).then_some(words)
}

/// What an owner is called in a headline.
fn owner_words(part: &MemoryPart) -> String {
    let name = owner_of(part);
    let is_shared = part.label == "shared memory" && !name.contains("shared memory");
    if is_shared { format!("shared memory: {name}") } else { name.to_owned() }
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
    let least = report.sizes.ram_bytes.share(OWNER_SHARE_MIN);
    let parts = &report.memory.parts;
    let mut lines: Vec<String> = match largest_other(report) {
        Some(part) if part.ram_bytes >= least => {
            largest(report).into_iter().chain(malloc_part(report)).collect()
        }
        _ => vec![largest_few(report)],
    };
    let owner = parts
        .iter()
        .filter(|part| !part.is_malloc_heap)
        .find(|part| part.ram_bytes >= report.sizes.ram_bytes.share(INSIDE_SHARE_MIN));
    lines.extend(owner.and_then(|part| inside(report, part)));
    let heap = report.heap.as_ref();
    lines.extend(heap.and_then(|heap| in_mallocs(report, heap)));
    lines
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
        format!("{} {}{free}", owner_of(part), part.ram_bytes)
    };
    let parts: Vec<String> = report.memory.parts.iter().take(SHOWN).map(name).collect();
    format!("No owner has half of its {}: {}.", report.sizes.ram_bytes, parts.join(", "))
}

/// Names the largest part that is not malloc's.
fn largest(report: &ExplainReport) -> Option<String> {
    let part = largest_other(report)?;
    let (size, whole, rss) = (part.ram_bytes, report.sizes.ram_bytes, report.sizes.rss_bytes);
    let of = if whole == rss {
        format!("{size} of an RSS of {rss}")
    } else {
        format!("{size} of {whole}, which its RSS of {rss} counts up to three times")
    };
    let reserved = match part.owner {
        // The Java heap's address space is as large as -Xmx lets it become.
        Some("jvm") if whole == rss => format!("; {} are reserved for it", part.virtual_bytes),
        _ => String::new(),
    };
    Some(format!("Its largest part is {}: {of}{}{reserved}.", owner_of(part), share(size, whole)))
}

/// What a part is called in a sentence: a group of one, or of one that has nearly all of it, is that one.
fn owner_of(part: &MemoryPart) -> &str {
    if part.is_malloc_heap {
        return &part.label;
    }
    let most = part
        .parts
        .first()
        .filter(|one| one.ram_bytes >= part.ram_bytes.share(NEARLY_ALL) || part.parts.len() == 1);
    most.map_or(part.label.as_str(), |one| explain::file_name(&one.label))
}

/// Where the inside of another owner's memory is shown, and what bounds or returns it.
fn inside(report: &ExplainReport, part: &MemoryPart) -> Option<String> {
    if report.has_runtime_stats {
        return None;
    }
    let pid = report.process.pid;
    let is_redis =
        report.process.name.starts_with("redis") || report.process.name.starts_with("valkey");
    Some(match part.owner {
        Some("jvm") => {
            format!("`jcmd {pid} GC.heap_info` shows how much of the Java heap is in use.")
        }
        Some("go") => "GODEBUG=gctrace=1 at its next start, or /debug/pprof/heap where it serves \
                       that, shows how much of it is live; GOMEMLIMIT bounds it."
            .to_owned(),
        Some("v8") => "In the program, process.memoryUsage() shows how much of the V8 heap is in \
                       use; --max-old-space-size bounds it."
            .to_owned(),
        Some("cpython") => "Python's tracemalloc shows which code allocates in pymalloc; with \
                            PYTHONMALLOC=malloc at its next start, its objects are in the malloc \
                            heap."
            .to_owned(),
        Some("ruby") => {
            "In the program, GC.stat shows how many slots of its pages are live.".to_owned()
        }
        Some("erlang") => "In its shell, erlang:memory() shows what is in use, and \
                           erlang:system_info({allocator, binary_alloc}) what the carriers of \
                           binaries have."
            .to_owned(),
        Some("php") => "In the script, memory_get_usage(false) shows what is in use and \
                        memory_get_usage(true) what PHP took; memory_limit bounds a request, and \
                        pm.max_requests ends a worker that keeps too much."
            .to_owned(),
        Some("innodb") => "`SHOW ENGINE INNODB STATUS` shows how full it is; \
                           innodb_buffer_pool_size sets it, also while the server runs."
            .to_owned(),
        Some("jemalloc") if is_redis => {
            let is_systems = report.allocators.iter().any(|one| {
                one.name == "jemalloc" && explain::file_name(&one.file).starts_with("libjemalloc")
            });
            let holes = if is_systems {
                "what lies between keys only a restart or a new replica returns, as activedefrag \
                 needs the jemalloc of Redis's own source"
            } else {
                "`CONFIG SET activedefrag yes` returns what lies between keys"
            };
            format!(
                "`redis-cli INFO memory` shows how much of it is in use (allocator_allocated of \
                 allocator_resident), `MEMORY MALLOC-STATS` by size; `MEMORY PURGE` returns free \
                 pages; {holes}."
            )
        }
        Some("jemalloc") => "jemalloc's own statistics show how much of it is free: \
                             malloc_stats_print in the program, or MALLOC_CONF=stats_print:true at \
                             its next start, which prints them at its end."
            .to_owned(),
        Some("gperftools" | "tcmalloc") => {
            "tcmalloc's own statistics show how much of it is free (MallocExtension's GetStats in \
             the program); ReleaseFreeMemory returns that."
                .to_owned()
        }
        Some("mimalloc") => {
            "MIMALLOC_SHOW_STATS=1 at its next start prints at its end how much of \
                             it was in use."
                .to_owned()
        }
        None if report.process.name == "postgres" && part.label == "shared memory" => {
            "shared_buffers sets most of it; the view pg_shmem_allocations shows its parts. All \
             processes of the server share it: their PSS adds up, their RSS does not."
                .to_owned()
        }
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
    use diagnose::growth::{Growth, GrowthOwnerKind, GrowthPoint, GrowthSeries};

    use super::*;
    use crate::model::explain::ArenaEntry;

    /// A process that rises by 1 MiB each second, with the live size of its heap or without.
    fn rising(seconds: u64, has_heap: bool) -> ExplainReport {
        let at = |second: u64| {
            let total = Bytes::from_mib(100 + second);
            let live = has_heap.then_some(total);
            let free = has_heap.then_some(Bytes::ZERO);
            GrowthPoint { at: Span::from_secs(second), total, live, free }
        };
        let points = (0..seconds).map(at).collect();
        let series = GrowthSeries { points, ..GrowthSeries::default() };
        let growth = Growth::of(&series);
        let entry = GrowthEntry::of(GrowthOwnerKind::Process, "leaky", &series, &growth);
        ExplainReport { growth: Some(entry), ..ExplainReport::default() }
    }

    #[test]
    fn the_course_gives_the_first_words_and_a_line_is_named_although_its_class_is_open() {
        let words = |report: &ExplainReport| explain_verdict(report, MemoryVerdict::Live);
        assert_eq!(words(&rising(120, true)), "leak");
        let few = rising(20, true);
        assert_eq!(words(&few), "rising 1 MiB/s, class open");
        let lines = explain_headline(&few, MemoryVerdict::OtherOwner, Span::from_mins(10));
        assert!(lines[0].contains("it rose in a line, by 1 MiB/s"), "{lines:?}");
        assert!(lines[0].contains("more decide it"), "{lines:?}");
        let level = ExplainReport { growth: None, ..few };
        assert_eq!(words(&level), "malloc heap", "nothing of it is known to be live");
    }

    #[test]
    fn two_owners_are_named_where_none_has_half() {
        let part = |label: &str, mib: u64| MemoryPart {
            label: label.to_owned(),
            rss_bytes: Bytes::from_mib(mib),
            ram_bytes: Bytes::from_mib(mib),
            ..MemoryPart::default()
        };
        let mut report = ExplainReport::default();
        report.sizes.ram_bytes = Bytes::from_mib(484);
        report.memory.parts =
            vec![part("InnoDB buffer pool", 230), part("malloc heap", 216), part("libraries", 38)];
        let words = |report: &ExplainReport| explain_verdict(report, MemoryVerdict::SeveralOwners);
        assert_eq!(words(&report), "InnoDB buffer pool and malloc heap");
        report.sizes.ram_bytes = Bytes::from_mib(900);
        assert_eq!(words(&report), "several owners");
    }

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
