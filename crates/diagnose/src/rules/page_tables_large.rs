//! Page tables: what it costs to map memory has become large itself.

use std::collections::BTreeMap;

use timeline::facts::NR_HUGEPAGES;
use timeline::signals::{
    HUGEPAGE_SIZE, MEM_ANON, MEM_MAPPED, MEM_PAGE_TABLES, MEM_SHMEM, PROC_PAGE_TABLES,
    PROC_RSS_SHMEM,
};

use crate::prelude::*;

declare_rule! {
    /// The tables that map memory take a large share of RAM: many processes map the same segment with small pages.
    ///
    /// ## What it means
    /// Every process needs 8 bytes of page table for each page it maps, for itself alone. A shared segment of 64 GiB
    /// mapped by 500 processes costs 62 GiB of page tables, although the segment is there once. Page tables cannot be
    /// swapped out.
    /// ## How it is recognised
    /// For 10 s, page tables are 3 % of RAM or more and 16 MiB or more; or 1.5 GiB or more and ten times what the mapped
    /// memory would need once. Processes' own figures say who.
    /// ## Not this
    /// - A host whose many small processes need a few megabytes: below the thresholds.
    /// - Nested paging of virtual machines (`SecPageTables`): not counted here.
    /// - `fork-cow-spike`: a fork doubles the page tables for as long as the child lives.
    /// ## What to do
    /// Map the segment with huge pages: PostgreSQL `huge_pages=on`, Oracle `use_large_pages`, with `vm.nr_hugepages` set
    /// to match; and fewer processes (a connection pooler). Verify: PageTables below 1 % of RAM at the same load.
    /// ## References
    /// - kernel Documentation/admin-guide/mm/hugetlbpage.rst
    /// - PostgreSQL documentation, Managing Kernel Resources: Linux Huge Pages
    pub(crate) RULE = {
        id: "page-tables-large", since: "0.1.0", class: Growth,
        trigger: trigger, story: story,
        cause: "Each process has its own page tables, 8 bytes for each page it maps, also for memory that all share.",
        verify: "memtide check at the same load: page tables below 1 % of RAM",
        brings_about: WANT_AND_THRASH,
        aliases: &["page-table-bloat"],
    }
}

/// An engineering choice. Labelled captures, November 2026: 0.7 % on calm hosts, 20 % with 350 processes on one segment.
const SHARE: Ratio = Ratio::from_percent(3.0);
/// A hundred small processes need as much; the smallest hosts would exceed the share with them.
const LEAST: Bytes = Bytes::from_mib(16);
/// So much matters on large hosts too; an engineering choice.
const MUCH: Bytes = Bytes::from_mib(1536);
/// 8 bytes for each 4 KiB are 0.2 % of what is mapped once; ten times that means sharing or sparse mappings.
const OF_MAPPED: Ratio = Ratio::from_percent(2.0);
/// Shared memory mapped by fewer processes would not explain large page tables.
const MANY_TIMES: f64 = 4.0;
/// One entry.
const ENTRY: Bytes = Bytes::new(8);
/// The processes named hold at least this part of all page tables, else they do not explain them.
const EXPLAINS: Ratio = Ratio::from_percent(50.0);

fn trigger() -> Trigger {
    Trigger::on_host(
        LEVEL,
        gauge(MEM_PAGE_TABLES).at_least("page tables", large()),
    )
}

/// From where on they are large: for the host, or for what they map.
fn large() -> Reading<Bytes> {
    let mapped = gauge(MEM_ANON).plus([gauge(MEM_MAPPED)]);
    let much = mapped.share(OF_MAPPED).max(MUCH);
    of_ram().min(much).or(of_ram())
}

fn of_ram() -> Reading<Bytes> {
    ram().share(SHARE).max(LEAST)
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let tables = cx.gauge(MEM_PAGE_TABLES)?;
    let Some((most, index)) = tables.max_in(&incident.stretch) else {
        return clear!("page tables were not measured");
    };
    let part = cx.of_ram(most)?;
    let groups = groups(cx, index);
    let top = groups
        .first()
        .filter(|group| group.tables >= most.share(EXPLAINS));
    let who = top.map_or_else(
        || "the same memory is mapped many times, or sparsely".to_owned(),
        |group| format!("{} with small pages", group.mapping()),
    );
    let title = format!("Page tables take {most}, {part} of RAM: {who}.");
    let least = cx.ram()?.share(SHARE).max(LEAST);
    let edge = if most >= least { least } else { MUCH };
    let of_mapped = mapped(cx, index).and_then(|mapped| most.ratio_of(mapped));
    let shared = cx.level(MEM_SHMEM, index);
    let segment = top.map(|group| group.shared).or(shared);
    let open = match (top, groups.first()) {
        (Some(_), _) => "",
        (None, Some(_)) => "the processes seen have less than half of them",
        (None, None) => "processes' VmPTE would say where they are",
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
        .with(of_mapped, |it, part| {
            let text =
                format!("that is {part} of the memory they map; mapped once it would be 0.2 %");
            it.shows_from(Computed(MEM_MAPPED), part, OF_MAPPED, None, text)
                .counts_if(part >= OF_MAPPED, "their proportion to what is mapped")
        })
        .with(top, |it, group| {
            let (tables, mapping) = (group.tables, group.mapping());
            let all = predicted(cx, group.processes, group.shared);
            let text = format!(
                "{tables} of them where {mapping}; 8 bytes for each page of that predict {all}"
            );
            it.shows(PROC_PAGE_TABLES, tables, None, text)
                .counts_as("the processes' own figures")
        })
        .with(shared.filter(|_| top.is_none()), |it, shared| {
            sharing_shown_in(it, cx, most, shared)
        })
        .not(
            "unaccounted-memory",
            "the kernel counts page tables; they are only easy to overlook",
        )
        .fix(reserve(cx, segment))
        .fix(Fix::say(
            "Fewer processes on the segment: a connection pooler in front of the database.",
        ))
        .affects(groups.iter().take(3).map(Group::affected))
        .sure_by_kinds(cx, open)
        .into())
}

/// With how often shared memory would have to be mapped to explain them, where no processes do.
fn sharing_shown_in(finding: Finding, cx: &Evidence<'_>, most: Bytes, shared: Bytes) -> Finding {
    let times = most.ratio_of(predicted(cx, 1, shared));
    finding.with(times.filter(|it| it.get() >= MANY_TIMES), |it, times| {
        let times = Count::from_f64(times.get());
        let text = format!(
            "page tables for {shared} of shared memory, mapped about {times} times, would be as large"
        );
        it.shows(MEM_SHMEM, shared, None, text)
    })
}

/// What page tables map at a sample.
fn mapped(cx: &Evidence<'_>, index: usize) -> Option<Bytes> {
    let level = |signal| cx.gauge(signal).ok()?.at(index);
    Some(level(MEM_ANON)? + level(MEM_MAPPED)?)
}

/// Commands that reserve huge pages for a segment, for now and for good.
fn reserve(cx: &Evidence<'_>, segment: Option<Bytes>) -> Fix {
    let what = "Map the shared segment with huge pages; the program must ask for them (PostgreSQL: huge_pages = on) and be restarted.";
    let size = cx
        .timeline
        .last(HUGEPAGE_SIZE)
        .filter(|size| *size > Bytes::ZERO)
        .unwrap_or(Bytes::from_mib(2));
    let pages = segment.map_or(0, |segment| segment.get().div_ceil(size.get()));
    match pages {
        0 => Fix::say(what),
        pages => Fix::tunable(cx, what, NR_HUGEPAGES, pages),
    }
}

/// 8 bytes for each page, in each process.
fn predicted(cx: &Evidence<'_>, processes: u64, segment: Bytes) -> Bytes {
    let page = cx
        .facts
        .page_size
        .map_or(Bytes::from_kib(4), |page| page.bytes());
    let entries = segment.as_f64() / page.as_f64();
    Bytes::from_f64(entries * ENTRY.as_f64() * Count::new(processes).as_f64())
}

/// Processes of one name.
struct Group<'a> {
    name: &'a str,
    processes: u64,
    tables: Bytes,
    /// The largest shared memory that one of them has in RAM.
    shared: Bytes,
}

impl Group<'_> {
    fn affected(&self) -> Affected {
        let several = match self.processes {
            1 => String::new(),
            n => format!("{} processes: ", Count::new(n)),
        };
        let what = format!("{several}{} of page tables", self.tables);
        Affected::new("process", self.name, what)
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

/// Groups of processes around sample `index`, by their page tables.
fn groups<'a>(cx: &Evidence<'a>, index: usize) -> Vec<Group<'a>> {
    let mut groups: BTreeMap<&str, Group<'_>> = BTreeMap::new();
    let Some(index) = cx.rows_at(Entity::Process, index) else {
        return Vec::new();
    };
    for process in cx.timeline.entities(Entity::Process) {
        let Some(tables) = cx.timeline.at_of(process, PROC_PAGE_TABLES, index) else {
            continue;
        };
        let group = groups.entry(&process.label).or_insert(Group {
            name: &process.label,
            processes: 0,
            tables: Bytes::ZERO,
            shared: Bytes::ZERO,
        });
        group.processes += 1;
        group.tables += tables;
        if let Some(shared) = cx.timeline.at_of(process, PROC_RSS_SHMEM, index) {
            group.shared = group.shared.max(shared);
        }
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.tables));
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::signals::MEM_TOTAL;

    fn tables(ram_mib: u64, tables_mib: u64) -> Case {
        Case::over(20)
            .gauge(MEM_TOTAL, Bytes::from_mib(ram_mib))
            .gauge(MEM_PAGE_TABLES, Bytes::from_mib(tables_mib))
    }

    #[test]
    fn processes_on_one_segment_are_named() {
        let mut case = tables(720, 140);
        for pid in 100..200 {
            let key = format!("{pid}@1");
            case = case
                .gauge_of(
                    Entity::Process,
                    &key,
                    PROC_PAGE_TABLES,
                    Bytes::from_kib(1400),
                )
                .gauge_of(Entity::Process, &key, PROC_RSS_SHMEM, Bytes::from_mib(192))
                .named(&key, "postgres");
        }
        let finding = found(RULE, &case);
        assert!(
            finding
                .title
                .contains("100 postgres processes map 192 MiB each")
        );
        assert_eq!(finding.confidence.word(), "confirmed");
        assert_eq!(finding.fixes[0].now, "sysctl -w vm.nr_hugepages=96");
        assert_eq!(finding.affected[0].name, "postgres");
    }

    #[test]
    fn without_processes_it_is_probable() {
        let finding = found(RULE, &tables(720, 140));
        assert_eq!(finding.confidence.word(), "probable");
        let shared = found(
            RULE,
            &tables(720, 140).gauge(MEM_SHMEM, Bytes::from_mib(200)),
        );
        assert!(
            shared
                .evidence
                .iter()
                .any(|line| line.text.contains("about 358 times"))
        );
        assert_eq!(shared.fixes[0].now, "sysctl -w vm.nr_hugepages=100");
    }

    #[test]
    fn a_small_host_with_many_processes_is_clear() {
        clear(RULE, &tables(256, 12));
        clear(RULE, &tables(2048, 30));
    }

    #[test]
    fn two_gib_are_much_only_for_what_they_map() {
        let host = |mapped_gib| {
            tables(1_048_576, 2048)
                .gauge(MEM_ANON, Bytes::from_gib(mapped_gib))
                .gauge(MEM_MAPPED, Bytes::from_gib(1))
        };
        clear(RULE, &host(900));
        found(RULE, &host(20));
    }

    #[test]
    fn a_passing_spike_is_clear() {
        let mut steps = vec![Bytes::from_mib(5); 20];
        steps[8] = Bytes::from_mib(200);
        let case = Case::over(20)
            .gauge(MEM_TOTAL, Bytes::from_mib(720))
            .gauge_steps(MEM_PAGE_TABLES, &steps);
        clear(RULE, &case);
    }

    #[test]
    fn half_a_minute_within_a_calm_hour_is_found() {
        let hour = |mib| {
            let steps = [vec![5; 1800], vec![mib; 30], vec![5]].concat();
            let steps: Vec<Bytes> = steps.into_iter().map(Bytes::from_mib).collect();
            let case = Case::over(3600).gauge(MEM_TOTAL, Bytes::from_mib(720));
            case.gauge_steps(MEM_PAGE_TABLES, &steps)
        };
        let finding = found(RULE, &hour(140));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.when.unwrap().duration().as_secs_f64(), 30.0);
        assert_eq!(
            clear(RULE, &hour(12)),
            "page tables: at most 12 MiB, threshold 22 MiB"
        );
    }

    #[test]
    fn needs_the_figure() {
        assert_eq!(
            not_evaluated(RULE, &Case::once()).names,
            ["mem.page_tables"]
        );
    }
}
