//! The JVM: which of its native memory grows, and how much of RSS does it not count?

use anatomy::runtime_stats::{JvmCategory, JvmStats};
use report::model::runtime_stats::{NativeCategoryEntry, NativeMemoryEntry, RuntimeStatsReport};
use units::{Bytes, Ratio, SignedBytes};

use super::{Judged, ProcessBeside};
use crate::explain::ARENAS_MAX;

/// Less growth since the baseline is noise of the JVM's own work, such as the tracking itself: an engineering choice.
const GROWTH_MIN: Bytes = Bytes::from_mib(1);
/// RSS beyond what is committed, as a share of RSS, from which it is worth a search. The JVM's own libraries take 20 to 40
/// MiB; an engineering choice.
const BEYOND_MIN: Ratio = Ratio::new(0.15);

/// Names of categories, what they are, and what bounds them.
const CATEGORIES: [(&str, &str, &str); 12] = [
    (
        "Java Heap",
        "objects of the program",
        "-Xmx bounds it; jcmd PID GC.heap_info shows how much of it is used",
    ),
    (
        "Class",
        "data of loaded classes",
        "-XX:MaxMetaspaceSize bounds it; classes that only become more are a class loader leak",
    ),
    (
        "Metaspace",
        "data of loaded classes",
        "-XX:MaxMetaspaceSize bounds it; classes that only become more are a class loader leak",
    ),
    ("Thread", "stacks of threads", "fewer threads, or smaller stacks with -Xss"),
    ("Code", "compiled methods", "-XX:ReservedCodeCacheSize bounds it"),
    (
        "GC",
        "tables of the collector",
        "it grows with the Java heap; Serial and Parallel have the smallest",
    ),
    ("Compiler", "working memory of compilers", "it is given back after compilation"),
    (
        "Internal",
        "JVM-internal memory; direct buffers up to JDK 10",
        "-XX:MaxDirectMemorySize bounds direct buffers",
    ),
    (
        "Other",
        "direct buffers and Unsafe.allocateMemory",
        "-XX:MaxDirectMemorySize bounds direct buffers, but not libraries that call Unsafe",
    ),
    ("Symbol", "names and interned strings", "String.intern() of ever new strings"),
    ("Native Memory Tracking", "the tracking itself", "it ends with -XX:NativeMemoryTracking=off"),
    ("Arena Chunk", "kept chunks of working memory", "it is reused"),
];

pub(super) fn answer(stats: &JvmStats, process: &ProcessBeside) -> RuntimeStatsReport {
    let judged = judge(stats, process);
    let class = judged.class;
    let mut report = judged.report("jvm");
    report.pid = stats.pid;
    if stats.scale >= Bytes::from_mib(1) {
        report.remarks.push(format!(
            "Sizes are rounded to {}, and smaller categories are left out: scale=KB shows more.",
            stats.scale
        ));
    }
    report.evidence = evidence(stats, process);
    report.not_counted = vec![
        "malloc's own slack and headers, libraries and JNI code outside of the JVM, and mapped \
         files."
            .to_owned(),
    ];
    report.advice = advice(stats, class);
    report.jvm = Some(entry(stats, process));
    report
}

fn judge(stats: &JvmStats, process: &ProcessBeside) -> Judged {
    let committed = stats.total.committed;
    if stats.is_difference {
        let change = stats.total.committed_change;
        let grown = stats
            .fastest_growing()
            .filter(|category| category.size.committed_change >= signed(GROWTH_MIN));
        return match grown {
            Some(category) => Judged::concern(
                "grows",
                format!(
                    "Committed memory changed by {change:+} since the baseline, to {committed}; {} \
                     alone by {:+}.",
                    described(category),
                    category.size.committed_change
                ),
            ),
            None => Judged::fine(
                "level",
                format!(
                    "Committed memory is level since the baseline: {committed}, a change of \
                     {change:+}."
                ),
            ),
        };
    }
    let Some(rss) = process.rss else {
        let largest = stats.by_committed().first().map(|category| {
            format!("; most is in {}, {}", described(category), category.size.committed)
        });
        let headline = format!("The JVM has committed {committed}{}.", largest.unwrap_or_default());
        return Judged::fine("committed", headline);
    };
    let beyond = rss.saturating_sub(committed);
    if beyond.ratio_of(rss).is_some_and(|share| share >= BEYOND_MIN) {
        let headline = format!(
            "RSS is {rss}, but the JVM has committed only {committed}: {beyond} or more are not \
             the JVM's own."
        );
        return Judged::concern("beyond", headline);
    }
    let headline = if beyond > Bytes::ZERO {
        format!(
            "The JVM accounts for nearly all of the {rss} of RSS: it has committed {committed}."
        )
    } else {
        let idle = committed.saturating_sub(rss);
        format!(
            "The JVM has committed {committed}, of which {idle} or more are not in RAM: RSS is \
             {rss}."
        )
    };
    Judged::fine("within", headline)
}

fn evidence(stats: &JvmStats, process: &ProcessBeside) -> Vec<String> {
    let total = stats.total;
    let cut_off = stats.cut_off();
    let of_malloc = if stats.malloc.is_none() && cut_off > Bytes::ZERO {
        "of the categories shown"
    } else {
        "of the committed memory"
    };
    let mut lines = vec![format!(
        "{} reserved is address space only; {} {of_malloc} came from malloc.",
        total.reserved,
        stats.malloc_total()
    )];
    if cut_off > Bytes::ZERO {
        lines.push(format!(
            "{cut_off} of the {} committed is in categories that this report does not show: it is \
             cut off.",
            total.committed
        ));
    }
    if stats.is_difference {
        let mut grown: Vec<&JvmCategory> = stats.categories.iter().collect();
        grown.sort_by_key(|category| std::cmp::Reverse(category.size.committed_change));
        let least = |category: &&&JvmCategory| category.size.committed_change >= signed(GROWTH_MIN);
        let named = |category: &&JvmCategory| {
            format!("{} {:+}", category.name, category.size.committed_change)
        };
        let grown: Vec<String> = grown.iter().filter(least).take(4).map(named).collect();
        if !grown.is_empty() {
            lines.push(format!("Growth since the baseline: {}.", grown.join(", ")));
        }
    }
    let threads = stats.categories.iter().find_map(|one| Some((one.threads?, one.size)));
    if let Some((threads, size)) = threads {
        let threads = threads.named("thread has", "threads have");
        lines.push(format!("{threads} {} of stacks and their data committed.", size.committed));
    }
    if let Some(classes) = stats.categories.iter().find_map(|one| one.classes) {
        let classes = classes.named("class is", "classes are");
        lines.push(format!("{classes} loaded."));
    }
    if let Some(slack) = process.malloc_free {
        lines.push(format!("malloc has {slack} free in its arenas, which the JVM does not count."));
    }
    if process.rss.is_some() {
        lines.push(
            "RSS holds memory that the JVM does not count, and committed memory need not be in \
             RAM: both differences are the least possible."
                .to_owned(),
        );
    }
    lines
}

fn advice(stats: &JvmStats, class: &str) -> Vec<String> {
    let of_category = |category: &JvmCategory| {
        let (_, _, bound) = known(&category.name)?;
        Some(format!("{}: {bound}.", category.name))
    };
    let grown = stats.fastest_growing().filter(|_| class == "grows").and_then(of_category);
    let pid = stats.pid.map_or_else(|| "PID".to_owned(), |pid| pid.to_string());
    let more = match class {
        "beyond" => Some(format!(
            "memtide explain {pid} shows what it is: free memory in malloc's arenas \
             (MALLOC_ARENA_MAX={ARENAS_MAX} makes fewer), libraries, mapped files."
        )),
        "committed" => Some(format!(
            "To see growth: jcmd {pid} VM.native_memory baseline, and VM.native_memory \
             summary.diff some hours later."
        )),
        _ => None,
    };
    grown.into_iter().chain(more).collect()
}

fn known(name: &str) -> Option<(&'static str, &'static str, &'static str)> {
    CATEGORIES.into_iter().find(|(known, _, _)| *known == name)
}

/// `Other (direct buffers and Unsafe.allocateMemory)`.
fn described(category: &JvmCategory) -> String {
    let name = &category.name;
    known(name).map_or_else(|| name.clone(), |(_, meaning, _)| format!("{name} ({meaning})"))
}

fn signed(size: Bytes) -> SignedBytes {
    SignedBytes::new(i64::try_from(size.get()).unwrap_or(i64::MAX))
}

fn entry(stats: &JvmStats, process: &ProcessBeside) -> NativeMemoryEntry {
    let total = stats.total;
    let change = |change: SignedBytes| stats.is_difference.then_some(change);
    let beside = |of: fn(Bytes, Bytes) -> Bytes| process.rss.map(|rss| of(rss, total.committed));
    let category = |category: &&JvmCategory| NativeCategoryEntry {
        name: category.name.clone(),
        meaning: known(&category.name).map(|(_, meaning, _)| meaning),
        reserved_bytes: category.size.reserved,
        committed_bytes: category.size.committed,
        committed_ratio: category.size.committed.ratio_of(total.committed),
        committed_change_bytes: change(category.size.committed_change),
    };
    NativeMemoryEntry {
        reserved_bytes: total.reserved,
        committed_bytes: total.committed,
        committed_change_bytes: change(total.committed_change),
        malloc_bytes: stats.malloc_total(),
        beyond_committed_bytes: beside(|rss, committed| rss.saturating_sub(committed)),
        not_resident_bytes: beside(|rss, committed| committed.saturating_sub(rss)),
        scale_bytes: stats.scale,
        fastest_growing: stats.fastest_growing().map(|category| category.name.clone()),
        categories: stats.by_committed().iter().map(category).collect(),
    }
}
