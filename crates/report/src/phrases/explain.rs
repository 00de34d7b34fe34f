//! Words of `explain` that the picture, the page and the text share.

use diagnose::process_memory::MemoryVerdict;
use units::{Bytes, Count};

use super::LabelledText;
use crate::model::explain::{
    ExplainReport, FoundAllocator, HeapReport, LimitEntry, MallocCallsEntry, MappedFileEntry,
    MemoryPart, ProcessSizes, ProgramEntry,
};
use crate::phrases::heap_cells::share;

/// How a verdict of `explain` stands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExplainStanding {
    /// Memory is wasted, and something can be done.
    Wasted,
    /// Memory is in use, or another part of the report names its owner.
    Used,
    /// Nothing to do.
    Fine,
    /// Not known.
    Unknown,
}

impl ExplainStanding {
    /// The standing of a report's verdict.
    pub(crate) fn of(report: &ExplainReport) -> Self {
        use MemoryVerdict as V;
        let class = report.growth.as_ref().map(|growth| growth.class);
        if class.is_some_and(|class| class.leaks() || class.fragments()) {
            return Self::Wasted;
        }
        match MemoryVerdict::named(report.verdict) {
            Some(V::Fragmented) => Self::Wasted,
            Some(V::Live | V::OtherOwner | V::SeveralOwners) => Self::Used,
            Some(V::Small) => Self::Fine,
            Some(V::Unclear | V::NotRead) | None => Self::Unknown,
        }
    }
}

/// Returns why a part of a heap is missing in its figures; `None` if none is.
pub(crate) fn missing(heap: &HeapReport) -> Option<&'static str> {
    (!heap.is_whole).then_some(if heap.is_cut {
        "The malloc heap was not read to its end: its arenas and lists name far more memory than \
         is in RAM, as those of a damaged or forged heap do."
    } else {
        "Not all arenas of the malloc heap could be followed: their list is damaged, or memtide \
         does not know its form."
    })
}

/// `mariadbd · PID 4711`.
pub(crate) fn process(report: &ExplainReport) -> String {
    format!("{} · PID {}", report.process.name, report.process.pid)
}

/// Returns which process it is, if that is not plain: its PID in a container, its program.
pub(crate) fn identity(report: &ExplainReport) -> Vec<String> {
    let process = &report.process;
    let inner = (process.namespace_pid).map(|pid| format!("PID {pid} in its container"));
    let program = process.program.clone();
    let replaced = "its program was replaced since it started";
    let items = [
        inner,
        program.filter(|path| !path.ends_with(&process.name)),
        (process.is_program_deleted).then(|| replaced.to_owned()),
    ];
    items.into_iter().flatten().collect()
}

/// `postgres: 36 processes, 585 MiB by PSS (541 MiB shared memory, once; RSS adds up to 9.1 GiB). …`
pub(crate) fn program(program: &ProgramEntry, pid: u32) -> String {
    let processes = Count::new(program.processes).named("process", "processes");
    let shared = program.shared_bytes.filter(|bytes| *bytes > Bytes::ZERO);
    let shared =
        shared.map_or_else(String::new, |bytes| format!("{bytes} of it shared memory, once; "));
    let (own, typical) = (program.explained_own_bytes, program.typical_own_bytes);
    let unread = match program.unread {
        0 => String::new(),
        unread => {
            format!(" {} could not be read.", Count::new(unread).named("process", "processes"))
        }
    };
    format!(
        "{}: {processes} with {} by PSS ({shared}their RSS adds up to {}). Half of them have at most \
         {typical} of their own; PID {pid}, explained here, has {own}.{unread}",
        program.name, program.pss_bytes, program.rss_bytes,
    )
}

/// Returns what is known of the process in a line: service, age, threads.
pub(crate) fn process_items(report: &ExplainReport) -> Vec<String> {
    let process = &report.process;
    let up = |age| format!("up {age}");
    let threads = |threads| Count::new(threads).named("thread", "threads");
    let items = [process.service.clone(), process.age_s.map(up), process.threads.map(threads)];
    items.into_iter().flatten().collect()
}

/// `RSS 20 MiB`.
pub(crate) fn rss(report: &ExplainReport) -> String {
    format!("RSS {}", report.sizes.rss_bytes)
}

/// Why there is no picture of the heap; `None` if there is one.
pub(crate) fn no_picture(report: &ExplainReport) -> Option<String> {
    match &report.heap {
        None => {
            let why = report.heap_not_read.as_deref();
            let why = why.unwrap_or("the process has no malloc heap that can be read");
            Some(format!("The malloc heap was not read: {why}."))
        }
        Some(heap) if heap.rows.iter().all(|row| row.cells.is_empty()) => {
            Some("The heap's pages are not part of this report.".to_owned())
        }
        Some(_) => None,
    }
}

/// `63 MiB in RAM in 16 arenas: 5.9 MiB live, 57 MiB free; malloc_trim returns 14 MiB, leaves 41 MiB in tops of thread
/// arenas`.
pub(crate) fn heap_summary(heap: &HeapReport) -> String {
    let (total, forecast) = (&heap.total, &heap.forecast);
    let arenas = Count::new(heap.arenas.len() as u64).named("arena", "arenas");
    let tops = match forecast.thread_tops_bytes {
        Bytes::ZERO => String::new(),
        bytes => format!(", leaves {bytes} in tops of thread arenas"),
    };
    format!(
        "{} in RAM in {arenas}: {} live, {} free; malloc_trim returns {}{tops}",
        total.resident_bytes,
        total.live_resident_bytes,
        total.free_resident_bytes,
        forecast.trim_bytes,
    )
}

/// What could be given back, a name, a size and a sentence each.
pub(crate) fn forecasts(heap: &HeapReport) -> Vec<(String, String, String)> {
    let forecast = &heap.forecast;
    let mut all = [
        (
            "malloc_trim now",
            forecast.trim_bytes,
            "Whole free pages: malloc_trim(0) returns them at once.",
        ),
        (
            "tops of thread arenas",
            forecast.thread_tops_bytes,
            "Free, behind the last chunk of each thread arena: malloc_trim keeps them.",
        ),
        (
            "pinned by live chunks",
            forecast.pinned_bytes,
            "Free chunks on pages that a live chunk keeps in RAM: only freeing that returns them.",
        ),
    ]
    .map(|(name, bytes, meaning)| (name.to_owned(), bytes.to_string(), meaning.to_owned()))
    .to_vec();
    if let Some(fewer) = &forecast.fewer_arenas {
        let arenas = fewer.arenas_max;
        let range = format!("{} to {}", fewer.low_bytes, fewer.high_bytes);
        all.push((
            format!("{arenas} arenas after a restart"),
            format!("about {range}"),
            format!(
                "A model: MALLOC_ARENA_MAX={arenas} makes threads share arenas, at the price of \
                 waits for their locks."
            ),
        ));
    }
    all
}

/// Says how much is in large chunks, outside of the arenas; `None` if there are none.
pub(crate) fn large_chunks(heap: &HeapReport) -> Option<String> {
    let chunks = Count::new(heap.mmapped_chunks).named("mmapped chunk", "mmapped chunks");
    let verified = match heap.mmapped_is_verified {
        Some(true) => "; malloc counts as many",
        Some(false) => "; malloc counts another number",
        None => "",
    };
    (heap.mmapped_chunks > 0).then(|| {
        format!(
            "Plus {chunks}: {}, {} in RAM{verified}.",
            heap.mmapped_bytes, heap.mmapped_resident_bytes
        )
    })
}

/// Says what limits the figures of a heap.
pub(crate) fn doubts(heap: &HeapReport) -> Vec<String> {
    let changed = (heap.uncertain_bytes > Bytes::ZERO).then(|| {
        let bytes = heap.uncertain_bytes;
        let why = if heap.has_changed {
            "the heap changed meanwhile"
        } else {
            "so much is in swap, or could not be read as chunks"
        };
        format!("These figures may be wrong by {bytes}: {why}.")
    });
    let partial = missing(heap).map(|why| format!("{why} The figures are too low."));
    changed.into_iter().chain(partial).collect()
}

/// A size of the process, with what is remarkable of it.
pub(crate) struct SizeLine {
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
    pub(crate) bytes: Bytes,
    pub(crate) of_it: String,
}

/// Returns VSS, RSS, PSS and USS, from address space to what the end of the process would free, and hugetlbfs if it is used.
pub(crate) fn size_lines(sizes: &ProcessSizes) -> Vec<SizeLine> {
    let of_it = |parts: &[(Bytes, &str)]| {
        let some = (parts.iter().filter(|(bytes, _)| *bytes > Bytes::ZERO))
            .map(|(bytes, what)| format!("{bytes} {what}"));
        some.collect::<Vec<_>>().join(", ")
    };
    let unused = of_it(&[
        (sizes.without_access_bytes, "PROT_NONE"),
        (sizes.never_touched_bytes, "never touched"),
        (sizes.swap_bytes, "in swap"),
    ]);
    let resident = of_it(&[
        (sizes.shared_bytes, "shared with others"),
        (sizes.huge_bytes, "in transparent huge pages"),
    ]);
    let line = |name, bytes, meaning, of_it| SizeLine { name, meaning, bytes, of_it };
    let adds_up = "each page divided by its users: the size that adds up over processes";
    let mut lines = vec![
        line("VSS", sizes.vss_bytes, "address space that is mapped", unused),
        line("RSS", sizes.rss_bytes, "pages in RAM that it maps", resident),
        line("PSS", sizes.pss_bytes, adds_up, String::new()),
        line("USS", sizes.uss_bytes, "pages that it alone maps", "freed when it exits".to_owned()),
    ];
    if sizes.hugetlb_bytes > Bytes::ZERO {
        let none = "which no RSS counts".to_owned();
        lines.push(line("hugetlbfs", sizes.hugetlb_bytes, "", none));
    }
    lines
}

/// Returns allocators, settings, what could not be read and the cost.
pub(crate) fn details(report: &ExplainReport, is_full: bool) -> Vec<LabelledText> {
    let mut lines = vec![
        LabelledText::new("Allocators", allocators(report, is_full)),
        LabelledText::new("Settings", settings(report)),
    ];
    let problems = report.problems.iter();
    lines.extend(problems.map(|text| LabelledText::new("Not read", text.as_str())));
    lines.extend(lower_bounds(report, is_full));
    lines.push(LabelledText::new("Cost", cost(report)));
    lines
}

fn allocators(report: &ExplainReport, is_full: bool) -> String {
    let one = |found: &FoundAllocator| {
        let version = found.version.as_deref().map(|text| format!(" {text}"));
        let name = format!("{}{}", found.name, version.unwrap_or_default());
        if is_full {
            return format!("{name} ({}: {})", found.evidence.join(", "), found.file);
        }
        let by = found.evidence.first().map_or("", String::as_str);
        format!("{name} ({by}: {})", file_name(&found.file))
    };
    if report.allocators.is_empty() {
        return "none was recognised".to_owned();
    }
    let calls = report.malloc_calls.iter().flatten().map(malloc_calls);
    let all: Vec<String> = report.allocators.iter().map(one).chain(calls).collect();
    all.join("; ")
}

/// Which of several allocators serves the process.
fn malloc_calls(entry: &MallocCallsEntry) -> String {
    let callers = Count::new(entry.callers).named("file", "files");
    let name = entry.name.as_deref().unwrap_or("an allocator that was not recognised");
    let file = entry.file.as_deref().map_or("memory without a file", file_name);
    format!("calls of malloc from {callers} go to {name} ({file})")
}

/// Returns the last part of a path.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// What the process was started with, and where its limits are.
fn settings(report: &ExplainReport) -> String {
    let process = &report.process;
    let mut parts = vec![match &process.memory_variables {
        None => "its environment may not be read".to_owned(),
        Some(names) if names.is_empty() => "no variable for an allocator".to_owned(),
        Some(names) if process.ignores_variables == Some(true) => format!(
            "{} set, but ignored: it was started with more rights than its user has",
            names.join(", ")
        ),
        Some(names) => {
            let set = names.iter().map(|name| match process.memory_values.get(name) {
                Some(value) => format!("{name}={value}"),
                None => (*name).to_owned(),
            });
            format!("{} set", set.collect::<Vec<_>>().join(", "))
        }
    }];
    // The other limits are about stacks and locked memory: they hardly ever bind.
    let is_of_memory = |limit: &&LimitEntry| matches!(limit.name, "address-space" | "data");
    if let Some(limits) = &process.limits {
        let of_memory: Vec<String> = (limits.iter().filter(is_of_memory))
            .map(|limit| format!("limit on {} {}", limit.name, limit.bytes))
            .collect();
        if of_memory.is_empty() {
            parts.push("no limit on address space or data".to_owned());
        }
        parts.extend(of_memory);
    }
    if let Some(cgroup) = &process.cgroup {
        parts.push(format!("cgroup {cgroup}"));
    }
    if let Some(score) = process.oom_score {
        let adjustment = process.oom_score_adj.filter(|adj| *adj != 0);
        let adjusted = adjustment.map_or_else(String::new, |adj| format!(" (adjusted by {adj})"));
        parts.push(format!("oom_score {score}{adjusted}"));
    }
    if process.thp_enabled == Some(false) {
        parts.push("transparent huge pages switched off".to_owned());
    }
    parts.join("; ")
}

/// Says where the answer is a lower bound, and why.
fn lower_bounds(report: &ExplainReport, is_full: bool) -> Vec<LabelledText> {
    const NAMED: usize = 3;
    let mut lines = Vec::new();
    let mut say = |is_so: bool, label, text: String| {
        lines.extend(is_so.then(|| LabelledText::new(label, text)));
    };
    let files = &report.unsearched_files;
    let names = files.iter().take(NAMED).map(|path| file_name(path));
    let names = names.collect::<Vec<_>>().join(", ");
    let more = match files.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let known = "an allocator in such a file is known by the file's name only";
    say(!files.is_empty(), "Not read", format!("{names}{more}: {known}."));
    let count = Count::new(report.processes_unread);
    let others = count.named("other process", "other processes");
    let may = format!("{others}, which may map its files, too.");
    say(report.processes_unread > 0, "Not read", may);
    let left_out = report.files_left_out;
    let smaller = Count::new(left_out).named("mapped file", "mapped files");
    let smaller = format!("{smaller}, each with less in RAM than any that is.");
    say(is_full && left_out > 0, "Not listed", smaller);
    let absent = report.absent_sizes.join(", ");
    let none = format!("This kernel does not print {absent}, which counts as 0.");
    say(!absent.is_empty(), "Not known", none);
    lines
}

/// Says who else maps a file: `2 other processes: mariadbd, sh`; `None` if nobody does, or nobody was searched.
pub(crate) fn file_users(file: &MappedFileEntry, report: &ExplainReport) -> Option<String> {
    let others = file.other_users.filter(|others| *others > 0)?;
    let is_all = file.other_names.len() as u64 == others;
    let least = if report.processes_unread > 0 { "at least " } else { "" };
    let others = Count::new(others).named("other process", "other processes");
    let such = if is_all { ": " } else { " such as " };
    let names = match file.other_names.as_slice() {
        [] => String::new(),
        names => format!("{such}{}", names.join(", ")),
    };
    Some(format!("{least}{others}{names}"))
}

/// Returns what an answer cost, in words.
fn cost(report: &ExplainReport) -> String {
    let cost = &report.cost;
    let stopped = cost.stopped_s.map_or_else(
        || "the process was not stopped".to_owned(),
        |time| format!("the process was stopped for {time}"),
    );
    let cpu = cost.cpu_s;
    let accessed = match report.heap {
        Some(_) => " Pages that were read count as accessed from now on.",
        None => "",
    };
    format!("Reading the process took {cpu} of CPU time; {stopped}.{accessed}")
}

/// By what a part was recognised, and whether that is only likely.
pub(crate) fn recognised(part: &MemoryPart) -> String {
    let likely = match part.certainty {
        "likely" if !part.recognised_by.is_empty() => "likely: ",
        _ => "",
    };
    format!("{likely}{}", part.recognised_by)
}

/// `5 %`: a part of RSS.
pub(crate) fn of_rss(bytes: Bytes, report: &ExplainReport) -> String {
    share(bytes, report.sizes.rss_bytes)
}
