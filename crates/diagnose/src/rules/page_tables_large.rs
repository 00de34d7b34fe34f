//! Page tables take a large share of RAM.

use std::collections::BTreeMap;

use timeline::facts::NR_HUGEPAGES;
use timeline::signals::{
    HUGEPAGE_SIZE, MEM_ANON, MEM_MAPPED, MEM_PAGE_TABLES, MEM_SHMEM, PROC_PAGE_TABLES,
    PROC_RSS_SHMEM,
};

use crate::finding::{Lasting, SettingChange};
use crate::prelude::*;

declare_rule! {
    /// Page tables take a large share of RAM: many processes map the same segment with small pages.
    ///
    /// ## What it means
    /// Every process needs its own 8 bytes of page table for each page it maps. A shared segment of 64 GiB mapped by
    /// 500 processes costs 62 GiB of page tables, although the segment is in RAM once. Page tables cannot be swapped
    /// out.
    /// ## How it is recognised
    /// For {LEVEL}, page tables are {PAGE_TABLES_SHARE} of RAM or more and {PAGE_TABLES_MIN} or more; or
    /// {PAGE_TABLES_MUCH} or more and ten times what mapping the memory once would need. Per-process figures name the
    /// owner.
    /// ## Not this
    /// - Many small processes: each has {OF_ANY_PROCESS_MAX} at most, for its code, libraries and stack.
    /// - Nested paging of virtual machines (`SecPageTables`): not counted here.
    /// - `fork-cow-spike`: a fork doubles the page tables for as long as the child lives.
    /// ## What to do
    /// Map the segment with huge pages: PostgreSQL `huge_pages=on`, Oracle `use_large_pages`, with `vm.nr_hugepages`
    /// set to match; and use fewer processes (a connection pooler). Verify: PageTables below {PAGE_TABLES_GOAL} of RAM
    /// at the same load.
    /// ## References
    /// - kernel Documentation/admin-guide/mm/hugetlbpage.rst
    /// - PostgreSQL documentation, Managing Kernel Resources: Linux Huge Pages
    pub(crate) RULE = {
        id: "page-tables-large", since: "0.1.0", class: Growth,
        numbers: [LEVEL, PAGE_TABLES_SHARE, PAGE_TABLES_MIN, PAGE_TABLES_MUCH, PAGE_TABLES_GOAL,
            OF_ANY_PROCESS_MAX],
        trigger: trigger, story: story,
        cause: "Each process has its own page tables, 8 bytes for each page it maps, even for \
                shared memory.",
        verify: "memtide check at the same load: page tables below {PAGE_TABLES_GOAL} of RAM",
        brings_about: WANT_AND_THRASH,
        aliases: &["page-table-bloat"],
    }
}

/// An engineering choice. Labelled captures, November 2026: 0.7 % on calm hosts, 20 % with 350 processes on one
/// segment.
const PAGE_TABLES_SHARE: Ratio = Ratio::from_percent(3.0);
/// What a fix must reach: what calm hosts stay below.
const PAGE_TABLES_GOAL: Ratio = Ratio::from_percent(1.0);
/// A hundred small processes need this much, which exceeds the share on the smallest hosts.
const PAGE_TABLES_MIN: Bytes = Bytes::from_mib(16);
/// This much matters on large hosts too; an engineering choice.
const PAGE_TABLES_MUCH: Bytes = Bytes::from_mib(1536);
/// 8 bytes for each 4 KiB are 0.2 % of memory mapped once; ten times that means sharing or sparse mappings.
const OF_MAPPED: Ratio = Ratio::from_percent(2.0);
/// Shared memory mapped by fewer processes would not explain large page tables.
const MANY_TIMES: f64 = 4.0;
/// One page table entry.
const ENTRY: Bytes = Bytes::new(8);
/// Named processes must have at least this share of all page tables to explain them.
const EXPLAINS: Ratio = Ratio::from_percent(50.0);

/// Any process has so much, for its code, libraries and stack. Measured, November 2026, on x86-64: 40 to 90 KiB.
const OF_ANY_PROCESS_MAX: Bytes = Bytes::from_kib(128);

fn trigger() -> Trigger {
    Trigger::on_host(LEVEL, gauge(MEM_PAGE_TABLES).at_least("page tables", large()))
}

/// The threshold: relative to the host or to mapped memory.
fn large() -> Reading<Bytes> {
    let mapped = gauge(MEM_ANON).plus([gauge(MEM_MAPPED)]);
    let much = mapped.share(OF_MAPPED).max(PAGE_TABLES_MUCH);
    of_ram().min(much).or(of_ram())
}

fn of_ram() -> Reading<Bytes> {
    ram().share(PAGE_TABLES_SHARE).max(PAGE_TABLES_MIN)
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let tables = cx.gauge(MEM_PAGE_TABLES)?;
    let Some((most, index)) = tables.max_in(&incident.stretch) else {
        return clear!("page tables were not measured");
    };
    let part = cx.of_ram(most)?;
    let programs = programs(cx, index);
    let top = programs.first().filter(|program| program.tables >= most.share(EXPLAINS));
    if let Some(program) = top.filter(|program| program.each() <= OF_ANY_PROCESS_MAX) {
        let (name, processes, each) = (program.name, program.processes, program.each());
        return clear!(
            "page tables take {most}, but {} {name} processes have {each} each, as any process has",
            Count::new(processes)
        );
    }
    let who = top.map_or_else(
        || "the same memory is mapped many times, or sparsely".to_owned(),
        |program| format!("{} with small pages", program.mapping()),
    );
    let title = format!("Page tables take {most}, {part} of RAM: {who}.");
    let least = cx.ram()?.share(PAGE_TABLES_SHARE).max(PAGE_TABLES_MIN);
    let edge = if most >= least { least } else { PAGE_TABLES_MUCH };
    let of_mapped = mapped(cx, index).and_then(|mapped| most.ratio_of(mapped));
    let shared = cx.level(MEM_SHMEM, index);
    let segment = top.map(|program| program.shared).or(shared);
    let open = match (top, programs.first()) {
        (Some(_), _) => "",
        (None, Some(_)) => "the known processes have less than half of them",
        (None, None) => "processes' VmPTE would show where they are",
    };
    Ok(RULE
        .found(Severity::Warning, title)
        .graph("page tables", &tables)
        .shows_from(
            MEM_PAGE_TABLES,
            most,
            edge,
            cx.time(index),
            format!("page tables {most}, {part} of RAM"),
        )
        .counts_as("the size of page tables")
        .with(of_mapped, |finding, part| {
            let text =
                format!("that is {part} of the memory they map; mapped once it would be 0.2 %");
            finding
                .shows_from(Computed(MEM_MAPPED), part, OF_MAPPED, None, text)
                .counts_if(part >= OF_MAPPED, "their ratio to mapped memory")
        })
        .with(top, |finding, program| {
            let (tables, mapping) = (program.tables, program.mapping());
            let all = predicted(cx, program.processes, program.shared);
            let text =
                format!("{tables} of them: {mapping}; 8 bytes for each mapped page predict {all}");
            finding
                .shows(PROC_PAGE_TABLES, tables, None, text)
                .counts_as("the processes' own figures")
        })
        .with(shared.filter(|_| top.is_none()), |finding, shared| {
            show_sharing(finding, cx, most, shared)
        })
        .not("unaccounted-memory", "the kernel counts page tables")
        .fix(reserve(cx, segment))
        .fix(Fix::say(
            "Use fewer processes on the segment: a connection pooler in front of the database.",
        ))
        .affects(programs.iter().take(3).map(PageTableUser::affected))
        .sure_by_kinds(cx, open)
        .into())
}

/// Adds how often shared memory would have to be mapped to explain the page tables.
fn show_sharing(finding: Finding, cx: &Evidence<'_>, most: Bytes, shared: Bytes) -> Finding {
    let times = most.ratio_of(predicted(cx, 1, shared));
    finding.with(times.filter(|times| times.get() >= MANY_TIMES), |finding, times| {
        let times = Count::from_f64(times.get());
        let text = format!(
            "mapping {shared} of shared memory about {times} times needs page tables of this size"
        );
        finding.shows(MEM_SHMEM, shared, None, text)
    })
}

/// Mapped memory at a sample.
fn mapped(cx: &Evidence<'_>, index: usize) -> Option<Bytes> {
    let level = |signal| cx.gauge(signal).ok()?.at(index);
    Some(level(MEM_ANON)? + level(MEM_MAPPED)?)
}

/// Says how a segment gets huge pages: reserved from the next boot on. What is reserved before its program asks for it is
/// missing to all others.
fn reserve(cx: &Evidence<'_>, segment: Option<Bytes>) -> Fix {
    let size = cx
        .timeline
        .last(HUGEPAGE_SIZE)
        .filter(|size| *size > Bytes::ZERO)
        .unwrap_or(Bytes::from_mib(2));
    let pages = segment.map_or(0, |segment| segment.get().div_ceil(size.get()));
    let request = "Map the shared segment with huge pages (PostgreSQL: huge_pages = on)";
    if pages == 0 {
        return Fix::say(format!("{request}, and start its program again."));
    }
    let what = format!(
        "{request}: stop its program, reserve {pages} of them (vm.nr_hugepages), and start it again. \
         Reserved while it runs they are missing to everybody."
    );
    let reserved = SettingChange::new(NR_HUGEPAGES, pages).lasting(Lasting::FromBoot);
    Fix::say(what).set(reserved)
}

/// The page tables of one segment: 8 bytes for each page and process.
fn predicted(cx: &Evidence<'_>, processes: u64, segment: Bytes) -> Bytes {
    let page = cx.facts.page_size.map_or(Bytes::from_kib(4), |page| page.bytes());
    let entries = segment.as_f64() / page.as_f64();
    Bytes::from_f64(entries * ENTRY.as_f64() * Count::new(processes).as_f64())
}

/// Processes of one name.
struct PageTableUser<'a> {
    name: &'a str,
    processes: u64,
    tables: Bytes,
    /// The largest resident shared memory of one of them.
    shared: Bytes,
}

impl PageTableUser<'_> {
    fn affected(&self) -> Affected {
        let several = match self.processes {
            1 => String::new(),
            n => format!("{} processes: ", Count::new(n)),
        };
        let what = format!("{several}{} of page tables", self.tables);
        Affected::new("process", self.name, what)
    }

    /// The mean of its processes.
    fn each(&self) -> Bytes {
        Bytes::new(self.tables.get() / self.processes.max(1))
    }

    /// `120 postgres processes map 8 GiB each`.
    fn mapping(&self) -> String {
        let (name, shared) = (self.name, self.shared);
        match self.processes {
            1 => format!("one {name} process maps {shared}"),
            n => format!("{} {name} processes map {shared} each", Count::new(n)),
        }
    }
}

/// Programs around sample `index`, largest page tables first.
fn programs<'a>(cx: &Evidence<'a>, index: usize) -> Vec<PageTableUser<'a>> {
    let mut by_name: BTreeMap<&str, PageTableUser<'_>> = BTreeMap::new();
    let Some(index) = cx.rows_at(Entity::Process, index) else {
        return Vec::new();
    };
    for process in cx.timeline.entities(Entity::Process) {
        let Some(tables) = cx.timeline.at_of(process, PROC_PAGE_TABLES, index) else {
            continue;
        };
        let program = by_name.entry(&process.label).or_insert(PageTableUser {
            name: &process.label,
            processes: 0,
            tables: Bytes::ZERO,
            shared: Bytes::ZERO,
        });
        program.processes += 1;
        program.tables += tables;
        if let Some(shared) = cx.timeline.at_of(process, PROC_RSS_SHMEM, index) {
            program.shared = program.shared.max(shared);
        }
    }
    let mut programs: Vec<_> = by_name.into_values().collect();
    programs.sort_by_key(|program| std::cmp::Reverse(program.tables));
    programs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, changed, clear, found, not_evaluated};
    use timeline::signals::MEM_TOTAL;

    fn tables(ram_mib: u64, tables_mib: u64) -> Case {
        Case::over(20)
            .gauge(MEM_TOTAL, Bytes::from_mib(ram_mib))
            .gauge(MEM_PAGE_TABLES, Bytes::from_mib(tables_mib))
    }

    #[test]
    fn the_title_names_processes_on_one_segment() {
        let mut case = tables(720, 140);
        for pid in 100..200 {
            let key = format!("{pid}@1");
            case = case
                .gauge_of(Entity::Process, &key, PROC_PAGE_TABLES, Bytes::from_kib(1400))
                .gauge_of(Entity::Process, &key, PROC_RSS_SHMEM, Bytes::from_mib(192))
                .named(&key, "postgres");
        }
        let finding = found(RULE, &case);
        assert!(finding.title.contains("100 postgres processes map 192 MiB each"));
        assert_eq!(finding.confidence.word(), "confirmed");
        assert_eq!(changed(&finding.fixes[0]), ["? -> vm.nr_hugepages=96"]);
        assert_eq!(finding.affected[0].name, "postgres");
    }

    #[test]
    fn clear_where_each_process_has_what_any_process_has() {
        let with = |kib| {
            (100..450).fold(tables(720, 25), |case, pid| {
                let key = format!("{pid}@1");
                case.gauge_of(Entity::Process, &key, PROC_PAGE_TABLES, Bytes::from_kib(kib))
                    .gauge_of(Entity::Process, &key, PROC_RSS_SHMEM, Bytes::from_mib(5))
                    .named(&key, "worker")
            })
        };
        assert!(clear(RULE, &with(64)).contains("350 worker processes have 64 KiB each"));
        found(RULE, &with(400));
    }

    #[test]
    fn probable_without_processes() {
        let finding = found(RULE, &tables(720, 140));
        assert_eq!(finding.confidence.word(), "probable");
        let shared = found(RULE, &tables(720, 140).gauge(MEM_SHMEM, Bytes::from_mib(200)));
        assert!(shared.evidence.iter().any(|line| line.text.contains("about 358 times")));
        assert_eq!(changed(&shared.fixes[0]), ["? -> vm.nr_hugepages=100"]);
    }

    #[test]
    fn clear_on_a_small_host_with_many_processes() {
        clear(RULE, &tables(256, 12));
        clear(RULE, &tables(2048, 30));
    }

    #[test]
    fn two_gib_count_only_relative_to_mapped_memory() {
        let host = |mapped_gib| {
            tables(1_048_576, 2048)
                .gauge(MEM_ANON, Bytes::from_gib(mapped_gib))
                .gauge(MEM_MAPPED, Bytes::from_gib(1))
        };
        clear(RULE, &host(900));
        found(RULE, &host(20));
    }

    #[test]
    fn clear_after_a_short_spike() {
        let mut steps = vec![Bytes::from_mib(5); 20];
        steps[8] = Bytes::from_mib(200);
        let case = Case::over(20)
            .gauge(MEM_TOTAL, Bytes::from_mib(720))
            .gauge_steps(MEM_PAGE_TABLES, &steps);
        clear(RULE, &case);
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let hour = |mib| {
            let steps = [vec![5; 1800], vec![mib; 30], vec![5]].concat();
            let steps: Vec<Bytes> = steps.into_iter().map(Bytes::from_mib).collect();
            let case = Case::over(3600).gauge(MEM_TOTAL, Bytes::from_mib(720));
            case.gauge_steps(MEM_PAGE_TABLES, &steps)
        };
        let finding = found(RULE, &hour(140));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.when.unwrap().duration().as_secs_f64(), 30.0);
        assert_eq!(clear(RULE, &hour(12)), "page tables: at most 12 MiB, threshold 22 MiB");
    }

    #[test]
    fn not_evaluated_without_page_tables() {
        assert_eq!(not_evaluated(RULE, &Case::once()).names, ["mem.page_tables"]);
    }
}
