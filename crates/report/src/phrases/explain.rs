//! Words of `explain` that the picture, the page and the text share.

use diagnose::process_memory::MemoryVerdict;
use units::{Bytes, Count, Span};

use crate::model::explain::{ExplainReport, HeapReport, ProcessSizes};
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
        match MemoryVerdict::named(report.verdict) {
            Some(V::Fragmented) => Self::Wasted,
            Some(V::Live | V::OtherOwner) => Self::Used,
            Some(V::Small) => Self::Fine,
            Some(V::Unclear | V::NotRead) | None => Self::Unknown,
        }
    }
}

/// Returns why a part of a heap is missing in its figures; `None` if none is.
pub(crate) fn missing(heap: &HeapReport) -> Option<&'static str> {
    (!heap.is_whole).then_some(if heap.is_cut {
        "The malloc heap was not read to its end: its arenas and lists name far more memory than is in RAM, as those of a damaged or forged heap do."
    } else {
        "Not all arenas of the malloc heap could be followed: their list is damaged, or memtide does not know its form."
    })
}

/// `mariadbd · PID 4711`.
pub(crate) fn process(report: &ExplainReport) -> String {
    format!("{} · PID {}", report.process.name, report.process.pid)
}

/// Returns what is known of the process in a line: service, threads, age, RSS.
pub(crate) fn process_items(report: &ExplainReport) -> Vec<String> {
    let process = &report.process;
    let items = [
        process.service.clone(),
        process
            .threads
            .map(|threads| Count::new(threads).named("thread", "threads")),
        process
            .age_s
            .map(|seconds| format!("up {}", Span::from_secs_f64(seconds))),
        Some(format!("RSS {}", Bytes::new(report.sizes.rss_bytes))),
    ];
    items.into_iter().flatten().collect()
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
        0 => String::new(),
        bytes => format!(", leaves {} in tops of thread arenas", Bytes::new(bytes)),
    };
    format!(
        "{} in RAM in {arenas}: {} live, {} free; malloc_trim returns {}{tops}",
        Bytes::new(total.resident_bytes),
        Bytes::new(total.live_resident_bytes),
        Bytes::new(total.free_resident_bytes),
        Bytes::new(forecast.trim_bytes),
    )
}

/// What could be given back, a name, a size and a sentence each.
pub(crate) fn forecasts(heap: &HeapReport) -> Vec<(&'static str, String, &'static str)> {
    let forecast = &heap.forecast;
    let size = |bytes: u64| Bytes::new(bytes).to_string();
    let mut all = vec![
        (
            "malloc_trim now",
            size(forecast.trim_bytes),
            "Whole free pages: malloc_trim(0) returns them at once.",
        ),
        (
            "tops of thread arenas",
            size(forecast.thread_tops_bytes),
            "Free, behind the last chunk of each thread arena: malloc_trim keeps them.",
        ),
        (
            "pinned by live chunks",
            size(forecast.pinned_bytes),
            "Free chunks on pages that a live chunk keeps in RAM: only freeing that returns them.",
        ),
    ];
    if let Some(fewer) = &forecast.fewer_arenas {
        let range = format!("{} to {}", size(fewer.low_bytes), size(fewer.high_bytes));
        all.push((
            "two arenas after a restart",
            format!("about {range}"),
            "A model: MALLOC_ARENA_MAX=2 makes threads share arenas, at the price of waits for their locks.",
        ));
    }
    all
}

/// A size of the process, with what makes the difference to the one before it.
pub(crate) struct SizeLine {
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
    pub(crate) bytes: u64,
    pub(crate) difference: Vec<String>,
}

/// Returns VSS, RSS, PSS and USS.
pub(crate) fn size_lines(sizes: &ProcessSizes) -> [SizeLine; 4] {
    let less = |parts: &[(u64, &str)]| -> Vec<String> {
        let some = parts.iter().filter(|(bytes, _)| *bytes > 0);
        some.map(|(bytes, what)| format!("{} {what}", Bytes::new(*bytes)))
            .collect()
    };
    [
        SizeLine {
            name: "VSS",
            meaning: "address space that is mapped",
            bytes: sizes.vss_bytes,
            difference: Vec::new(),
        },
        SizeLine {
            name: "RSS",
            meaning: "pages in RAM that it maps",
            bytes: sizes.rss_bytes,
            difference: less(&[
                (sizes.never_touched_bytes, "never touched"),
                (
                    sizes.without_access_bytes,
                    "without access: reserved, guards",
                ),
                (sizes.swap_bytes, "in swap"),
                (
                    sizes.hugetlb_bytes,
                    "in hugetlbfs, which RSS does not count",
                ),
            ]),
        },
        SizeLine {
            name: "PSS",
            meaning: "each page divided by its users: the size that adds up over processes",
            bytes: sizes.pss_bytes,
            difference: less(&[(
                sizes.rss_bytes.saturating_sub(sizes.pss_bytes),
                "counted for other users of the same pages",
            )]),
        },
        SizeLine {
            name: "USS",
            meaning: "pages that it alone maps: its end frees them",
            bytes: sizes.uss_bytes,
            difference: less(&[(sizes.shared_bytes, "in RAM that others map too")]),
        },
    ]
}

/// Returns what the process is and may use, a name and a value each.
pub(crate) fn process_facts(report: &ExplainReport) -> Vec<(&'static str, String)> {
    let process = &report.process;
    let program = process.program.as_ref().map(|path| {
        let gone = if process.is_program_deleted {
            " (replaced since it was started: a restart runs the new one)"
        } else {
            ""
        };
        format!("{path}{gone}")
    });
    let thp = |enabled| if enabled { "allowed" } else { "not allowed" };
    let limits = process.limits.as_ref().map(|limits| {
        let each = limits
            .iter()
            .map(|limit| format!("{} {}", limit.name, Bytes::new(limit.bytes)));
        match each.collect::<Vec<_>>() {
            all if all.is_empty() => "none".to_owned(),
            all => all.join(", "),
        }
    });
    let variables = process.memory_variables.as_ref().map(|names| {
        if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        }
    });
    let all = [
        ("program", program),
        ("service", process.service.clone()),
        ("cgroup", process.cgroup.clone()),
        (
            "PID in its namespace",
            process.namespace_pid.map(|pid| pid.to_string()),
        ),
        (
            "threads",
            process.threads.map(|n| Count::new(n).to_string()),
        ),
        (
            "running for",
            process.age_s.map(|s| Span::from_secs_f64(s).to_string()),
        ),
        ("OOM score", oom_score(report)),
        ("limits", limits),
        ("allocator settings in its environment", variables),
        (
            "transparent huge pages",
            process.thp_enabled.map(|it| thp(it).to_owned()),
        ),
    ];
    let known = all
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    known.collect()
}

fn oom_score(report: &ExplainReport) -> Option<String> {
    let score = report.process.oom_score?;
    let adjusted = report.process.oom_score_adj.filter(|by| *by != 0);
    Some(adjusted.map_or_else(
        || score.to_string(),
        |by| format!("{score}, adjusted by {by}"),
    ))
}

/// Returns what an answer cost, in words.
pub(crate) fn cost(report: &ExplainReport) -> String {
    let cost = &report.cost;
    let stopped = cost.stopped_s.map_or_else(
        || "the process was not stopped".to_owned(),
        |seconds| {
            format!(
                "the process was stopped for {}",
                Span::from_secs_f64(seconds)
            )
        },
    );
    let cpu = Span::from_secs_f64(cost.cpu_s);
    format!("This answer took {cpu} of CPU time; {stopped}.")
}

/// `5 %`: a part of RSS.
pub(crate) fn of_rss(bytes: u64, report: &ExplainReport) -> String {
    share(bytes, report.sizes.rss_bytes)
}
