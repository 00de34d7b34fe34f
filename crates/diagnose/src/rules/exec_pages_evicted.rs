//! Program text is evicted and read again, because anonymous memory cannot be swapped out instead.

use std::collections::BTreeMap;

use timeline::facts::SWAPPINESS;
use timeline::settings::SWAPPINESS_DEFAULT;
use timeline::signals::{
    MEM_ANON, MEM_MAPPED, MEM_SHMEM, PAGE_CACHE, PGMAJFAULT, PROC_MAJFLT, PSWPIN, REFAULT_FILE,
    SWAP_FREE, SWAP_TOTAL,
};

use crate::finding::{LimitChange, LimitFile};
use crate::measures::readings::{LOW_SWAPPINESS, page_cache};
use crate::measures::refaults::{evicted_by_another, host_evicts, rereading};
use crate::prelude::*;

declare_rule! {
    /// Running programs lose their own code to reclaim and read it again, because anonymous memory cannot be swapped out.
    ///
    /// ## What it means
    /// Memory is short, and the kernel cannot or may not swap anonymous memory out. Only file pages are left to evict,
    /// and the last of those are the code and libraries of the running programs. Every step then waits for a disk:
    /// logins hang and desktops freeze, with swap free or switched off.
    /// ## How it is recognised
    /// For {STALL} or longer, file pages refault (are read again after eviction) at {READ_AGAIN}, page cache is at most
    /// {LITTLE_CACHE} of RAM, and the pages are mapped ones: three or more processes take major faults, or the host
    /// takes {MAJOR_FAULTS}. Swap-ins are fewer than {SWAPPED} of the refaults. And anonymous memory cannot leave: there
    /// is no swap, at most {SWAP_LEFT} of swap is free, or vm.swappiness is {LOW_SWAPPINESS} or less. Few major faults
    /// do not exclude it: with large readahead or the multi-generational LRU, 10 to 26 faults per second brought in
    /// 14,000 pages.
    /// ## Not this
    /// - `swap-thrash`: anonymous pages move in and out.
    /// - `page-cache-thrash`: files are read with read(), or one process maps one data file.
    /// - `cgroup-cache-starved`: only a cgroup at its limit does so.
    /// ## What to do
    /// Now: let anonymous memory be swapped (add swap or zram, `vm.swappiness` 60), or cap what grew. For good: the
    /// same in fstab and under `/etc/sysctl.d/`, MemoryMin for sshd. Verify: major faults below {MAJOR_FAULTS_GOAL}
    /// under the same load.
    /// ## References
    /// - kernel mm/vmscan.c, get_scan_count: what swappiness 0 and missing swap do
    /// - kernel mm/workingset.c: what counts as a refault
    pub(crate) RULE = {
        id: "exec-pages-evicted", since: "0.1.0", class: Shortage,
        numbers: [STALL, READ_AGAIN, LITTLE_CACHE, MAJOR_FAULTS, SWAP_LEFT, LOW_SWAPPINESS,
            MAJOR_FAULTS_GOAL, PressureWindow::CALM, SWAPPED],
        trigger: trigger, waits: MemoryOrDisk, story: story,
        verify: "memtide check --for 1m under the same load: major faults below \
                 {MAJOR_FAULTS_GOAL}, stalls below {PressureWindow::CALM}",
        brings_about: &[
            "available-exhaustion", "cache-starved-floor", "page-cache-thrash", "swappiness-misfit", "no-swap-risk",
            "direct-reclaim-stall", "kswapd-saturated",
        ],
        explained_by: &[Explains::Maybe(SWAPPINESS)],
        replaces: &["NodeMemoryMajorPagesFaults"],
    }
}

/// An engineering choice: hosts of some GiB evict program text below 5 % of RAM, small ones at a larger share. With
/// more cache than this, other pages are evicted first.
const LITTLE_CACHE: Ratio = Ratio::from_percent(10.0);
/// The same engineering choice as for stalls in general.
const MAJOR_FAULTS: PerSecond<Count> = PressureWindow::MAJOR_FAULTS;
/// What a fix must reach: an engineering choice, a tenth of the threshold.
const MAJOR_FAULTS_GOAL: PerSecond<Count> = PerSecond::new(MAJOR_FAULTS.get() / 10.0);
/// A process that takes a major fault every other second loses pages. If three of them do, the reason is not a single
/// data file (newer kernels show 10 to 26 faults per second in all).
const FAULTS_OF_ONE: PerSecond<Count> = PerSecond::new(0.5);
const PROCESSES: usize = 3;
/// Swap-ins per file refault above which swap thrashes instead; an engineering choice.
const SWAPPED: Ratio = Ratio::from_percent(10.0);
/// With less than this free, swap is full; an engineering choice.
const SWAP_LEFT: Ratio = Ratio::from_percent(5.0);

/// Why anonymous memory cannot be swapped out.
enum NoSwapOut {
    NoSwap,
    SwapFull(Bytes),
    Swappiness(u64),
}

fn trigger() -> Trigger {
    let swap_left = gauge(SWAP_FREE).at_most("free swap", gauge(SWAP_TOTAL).share(SWAP_LEFT));
    let swappiness = fact(SWAPPINESS).at_most("vm.swappiness", Count::new(LOW_SWAPPINESS));
    Trigger::on_host(
        STALL,
        all![
            rereading(),
            page_cache().at_most("page cache", ram().share(LITTLE_CACHE)),
            // An unknown setting matters only if all else holds; then the story reports it as missing.
            any![swap_left, swappiness.if_measured()],
        ],
    )
    .alert_if(all![
        host_evicts(),
        rate(PGMAJFAULT).at_least("major faults", MAJOR_FAULTS).if_measured(),
    ])
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let refaults = cx.refaults_file()?;
    if let Some(why) = evicted_by_another(cx, stretch, &refaults) {
        return Ok(Outcome::Clear(why));
    }
    let refaulted = cx.mean_in(stretch, REFAULT_FILE, &refaults)?;
    let swapped_in = cx.mean_in(stretch, PSWPIN, &cx.swapped_in()?)?;
    if swapped_in.get() > refaulted.get() * SWAPPED.get() {
        return clear!("{swapped_in} swapped in as well: anonymous memory does move");
    }
    let Some(reason) = NoSwapOut::during(cx, stretch)? else {
        return clear!(
            "anonymous memory can be swapped out: swap is free, and vm.swappiness allows it"
        );
    };
    if let Some(why) = not_mapped(cx, stretch)? {
        return Ok(Outcome::Clear(why));
    }
    let page = cx.page_size()?;
    let reread = refaulted.to_bytes(page);
    let stalls = PressureWindow::during(cx, stretch);
    let title = Title::from(format!(
        "Running programs lose their own code to reclaim and read it again ({reread}): {}.",
        reason.text()
    ))
    .then(stalls.sentence());
    let text = format!("{reread} of files read again after eviction (refaults)");
    let faulting = faulting(cx, stretch).unwrap_or_default();
    let finding = RULE
        .found(stalls.severity(), title)
        .graph("file refaults", &refaults.to_bytes(page))
        .shows_from(REFAULT_FILE, reread, READ_AGAIN, None, text)
        .counts_as("refaults");
    let finding = show_paging(cx, stretch, finding, swapped_in, refaulted)?;
    let finding = reason
        .shown_in(finding)
        .counts_as("anonymous memory that cannot be swapped out")
        .shows_lowest(cx, MEM_MAPPED, stretch, |mapped| {
            format!("mapped files and shared memory fell to {mapped}")
        })
        .counts_if(faulting.len() >= PROCESSES, "major faults in several processes")
        .shows_stalls(&stalls);
    let why = format!("{swapped_in} swapped in against {refaulted} of file refaults");
    let mut affected = by_name(&faulting);
    affected.truncate(3);
    affected.extend(processes::largest(cx, stretch.last, 2));
    Ok(with_fixes(cx, finding, stretch.last)
        .not("swap-thrash", why)
        .cause(cause(cx, stretch))
        .affects(affected)
        .sure_by_kinds(cx, stalls.open())
        .into())
}

/// Adds major faults, page cache and swap-in.
fn show_paging(
    cx: &Evidence<'_>,
    stretch: &Stretch,
    finding: Finding,
    swapped_in: PerSecond<Pages>,
    refaulted: PerSecond<Pages>,
) -> Result<Finding, Missing> {
    let cache = cx.mean_in(stretch, PAGE_CACHE, &cx.page_cache()?)?;
    let little = cx.ram()?.share(LITTLE_CACHE);
    let left = format!("{cache} of page cache on average");
    let most_swapped = PerSecond::<Pages>::new(refaulted.get() * SWAPPED.get());
    let swapped = format!("{swapped_in} swapped in");
    Ok(finding
        .shows_mean(cx, PGMAJFAULT, stretch, |faults| format!("major faults: {faults}"))
        .shows_below(PAGE_CACHE, cache, little, None, left)
        .shows_below(PSWPIN, swapped_in, most_swapped, None, swapped))
}

impl NoSwapOut {
    /// What keeps anonymous memory in RAM in a stretch; `None` where nothing does.
    fn during(cx: &Evidence<'_>, stretch: &Stretch) -> Result<Option<Self>, Missing> {
        let total = cx.mean_in(stretch, SWAP_TOTAL, &cx.gauge(SWAP_TOTAL)?)?;
        if total == Bytes::ZERO {
            return Ok(Some(Self::NoSwap));
        }
        let left = cx.mean_in(stretch, SWAP_FREE, &cx.gauge(SWAP_FREE)?)?;
        if left <= total.share(SWAP_LEFT) {
            return Ok(Some(Self::SwapFull(left)));
        }
        let swappiness = cx.number(SWAPPINESS)?;
        Ok((swappiness <= LOW_SWAPPINESS).then_some(Self::Swappiness(swappiness)))
    }

    fn text(&self) -> String {
        match self {
            Self::NoSwap => "there is no swap for anonymous memory".to_owned(),
            Self::SwapFull(left) => format!("swap is full ({left} left)"),
            Self::Swappiness(value) => {
                format!("vm.swappiness {value} keeps anonymous memory in RAM")
            }
        }
    }

    fn shown_in(&self, finding: Finding) -> Finding {
        match *self {
            Self::NoSwap => finding.shows(SWAP_TOTAL, Bytes::ZERO, None, "there is no swap"),
            Self::SwapFull(left) => {
                finding.shows(SWAP_FREE, left, None, format!("{left} of swap left"))
            }
            Self::Swappiness(value) => {
                finding.shows_fact(SWAPPINESS, value, format!("vm.swappiness = {value}"))
            }
        }
    }
}

fn with_fixes(cx: &Evidence<'_>, finding: Finding, index: usize) -> Finding {
    let finding = match cx.facts.number(SWAPPINESS) {
        Some(old) if old <= LOW_SWAPPINESS => finding.fix(Fix::tunable(
            cx,
            format!(
                "Let the kernel swap out cold anonymous memory again (vm.swappiness was {old})."
            ),
            SWAPPINESS,
            SWAPPINESS_DEFAULT,
        )),
        _ => finding.fix(Fix::swap_file(
            "Add swap for cold anonymous memory: a swap file, or zram.",
            "/swapfile",
            Bytes::from_gib(2),
        )),
    };
    finding.fix(Fix::cap(cx, index, "Cap what grew last.")).fix(
        Fix::say(
            "Protect logins: keep sshd's memory from reclaim (the unit is sshd.service on Fedora, \
             RHEL and Arch).",
        )
        .limit(LimitChange {
            cgroup: "/system.slice/ssh.service".to_owned(),
            unit: Some("ssh.service".to_owned()),
            file: LimitFile::Min,
            from: None,
            to: Bytes::from_mib(32),
        }),
    )
}

/// Why the refaulting pages are not mapped by many programs; `None` where they are.
fn not_mapped(cx: &Evidence<'_>, stretch: &Stretch) -> Result<Option<String>, Missing> {
    match (faulting(cx, stretch), cx.mean_rate(PGMAJFAULT, stretch)) {
        (Some(processes), _) if processes.len() >= PROCESSES => Ok(None),
        (Some(processes), _) if !processes.is_empty() => {
            Ok(Some(format!("only {} took major faults: it re-reads its own file", processes[0].0)))
        }
        (_, Some(faults)) if faults >= MAJOR_FAULTS => Ok(None),
        (_, Some(faults)) => {
            Ok(Some(format!("{faults} major faults: the refaulting pages are read, not mapped")))
        }
        (_, None) => Err(Missing::because(
            vec![PROC_MAJFLT.def().name, PGMAJFAULT.def().name],
            Need::File(PGMAJFAULT.def().file),
        )),
    }
}

/// Processes that took major faults throughout: name and rate. `None` where the source has no processes.
fn faulting<'a>(cx: &Evidence<'a>, stretch: &Stretch) -> Option<Vec<(&'a str, PerSecond<Count>)>> {
    let processes = cx.timeline.entities(Entity::Process);
    let mut measured = processes
        .filter_map(|process| {
            let faults = cx.timeline.rate_of(process, PROC_MAJFLT)?;
            Some((process.label.as_str(), faults.mean_in(stretch)?))
        })
        .peekable();
    measured.peek()?;
    Some(measured.filter(|(_, mean)| *mean >= FAULTS_OF_ONE).collect())
}

/// Faulting processes by name, most faults first.
fn by_name(faulting: &[(&str, PerSecond<Count>)]) -> Vec<Affected> {
    let mut names: BTreeMap<&str, (usize, f64)> = BTreeMap::new();
    for (name, faults) in faulting {
        let entry = names.entry(name).or_default();
        entry.0 += 1;
        entry.1 += faults.get();
    }
    let mut names: Vec<_> = names.into_iter().collect();
    names.sort_by(|a, b| b.1.1.total_cmp(&a.1.1));
    names
        .into_iter()
        .map(|(name, (processes, faults))| {
            let faults = PerSecond::<Count>::new(faults);
            let processes = match processes {
                1 => String::new(),
                n => format!("{n} processes: "),
            };
            let what = format!("{processes}{faults} major faults");
            Affected::new("process", name, what)
        })
        .collect()
}

fn cause(cx: &Evidence<'_>, stretch: &Stretch) -> String {
    let mean = |signal| cx.mean_level(signal, stretch);
    match (mean(MEM_ANON), mean(MEM_SHMEM)) {
        (Some(anon), Some(shared)) if shared.as_f64() > 0.1 * anon.as_f64() => format!(
            "{anon} of anonymous and {shared} of shared memory stay in RAM, so only file pages are \
             left to evict."
        ),
        (Some(anon), _) => {
            format!(
                "{anon} of anonymous memory stays in RAM, so only file pages are left to evict."
            )
        }
        _ => "Anonymous memory stays in RAM, so only file pages are left to evict.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Severity;
    use crate::rules::testing::{Case, amid_calm, clear, found, not_evaluated, three_times, times};
    use timeline::signals::{
        MEM_CACHED, MEM_TOTAL, PGPGIN, PSI_IO_FULL, PSI_IO_SOME, PSI_MEMORY_FULL, PSI_MEMORY_SOME,
    };

    /// 10,000 file refaults per second on a host of 1,000 MiB with `cache` MiB of page cache and `swap` of 500 MiB
    /// free.
    fn starved(cache: u64, swap: u64, swappiness: &str) -> Case {
        Case::over(240)
            .gauge(MEM_TOTAL, Bytes::from_mib(1000))
            .gauge(MEM_CACHED, Bytes::from_mib(cache + 6))
            .gauge(MEM_SHMEM, Bytes::from_mib(6))
            .gauge(MEM_ANON, Bytes::from_mib(850))
            .gauge(SWAP_TOTAL, Bytes::from_mib(500))
            .gauge(SWAP_FREE, Bytes::from_mib(swap))
            .counter(REFAULT_FILE, 10_000)
            .counter(PGPGIN, 40_000 * 1024)
            .counter(PSWPIN, 2)
            .counter(PGMAJFAULT, 20)
            .fact(SWAPPINESS, swappiness)
    }

    fn faulting(case: Case, processes: u64) -> Case {
        (0..processes).fold(case, |case, i| {
            case.counter_of(Entity::Process, &format!("{i}@1"), PROC_MAJFLT, 5)
        })
    }

    fn stalling(case: Case) -> Case {
        case.counter(PSI_MEMORY_SOME, 800_000)
            .counter(PSI_MEMORY_FULL, 700_000)
            .counter(PSI_IO_SOME, 800_000)
            .counter(PSI_IO_FULL, 600_000)
    }

    #[test]
    fn major_faults_in_three_processes_are_enough() {
        let case = stalling(faulting(starved(20, 500, "0"), 3));
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(finding.title.contains("vm.swappiness 0"));
    }

    #[test]
    fn found_without_swap_and_with_full_swap() {
        let none = faulting(starved(20, 0, "60"), 3).gauge(SWAP_TOTAL, Bytes::ZERO);
        assert!(found(RULE, &none).title.contains("no swap"));
        let full = faulting(starved(20, 10, "60"), 3);
        assert!(found(RULE, &full).title.contains("10 MiB left"));
    }

    #[test]
    fn each_occurrence_is_reported_but_not_plain_reads_between() {
        let case = starved(20, 500, "0")
            .counter_steps(REFAULT_FILE, &three_times([10_000; 3], 0))
            .counter_steps(PGMAJFAULT, &three_times([400, 0, 400], 0));
        assert_eq!(times(&found(RULE, &case)), [(0, 40), (200, 240)]);
    }

    #[test]
    fn finds_30_s_within_an_hour_but_not_while_swapping_in() {
        let in_an_hour = |swapped_in| {
            let case = Case::over(3600)
                .gauge(MEM_TOTAL, Bytes::from_mib(1000))
                .gauge_steps(MEM_CACHED, &amid_calm(Bytes::from_mib(26), Bytes::from_mib(300)))
                .gauge(MEM_SHMEM, Bytes::from_mib(6))
                .gauge(SWAP_TOTAL, Bytes::from_mib(500))
                .gauge(SWAP_FREE, Bytes::from_mib(400))
                .counter_steps(REFAULT_FILE, &amid_calm(10_000, 0))
                .counter_steps(PGMAJFAULT, &amid_calm(400, 0))
                .counter_steps(PSWPIN, &amid_calm(swapped_in, 0))
                .counter_steps(PSI_MEMORY_SOME, &amid_calm(800_000, 0))
                .counter_steps(PSI_MEMORY_FULL, &amid_calm(700_000, 0));
            case.fact(SWAPPINESS, "0")
        };
        let finding = found(RULE, &in_an_hour(2));
        assert_eq!(finding.severity, Severity::Critical);
        assert!(times(&finding)[0].0 >= 1799 && times(&finding)[0].1 <= 1830);
        clear(RULE, &in_an_hour(2000));
    }

    #[test]
    fn without_processes_the_hosts_major_faults_decide() {
        clear(RULE, &starved(20, 500, "0"));
        found(RULE, &starved(20, 500, "0").counter(PGMAJFAULT, 400));
    }

    #[test]
    fn clear_when_one_process_maps_one_file() {
        let case = faulting(starved(20, 500, "0"), 1).counter(PGMAJFAULT, 400);
        clear(RULE, &case);
    }

    #[test]
    fn clear_when_anonymous_memory_can_be_swapped_out() {
        clear(RULE, &faulting(starved(20, 500, "60"), 3));
        clear(RULE, &faulting(starved(20, 500, "0"), 3).counter(PSWPIN, 2000));
    }

    #[test]
    fn clear_while_other_cache_is_left() {
        clear(RULE, &faulting(starved(200, 500, "0"), 3));
    }

    #[test]
    fn an_unknown_swappiness_matters_only_if_all_else_holds() {
        let unknown = |mut case: Case| {
            case.facts = timeline::Facts::default();
            case.facts.page_size = units::PageSize::from_bytes(4096);
            case
        };
        let missing = not_evaluated(RULE, &unknown(faulting(starved(20, 500, ""), 3)));
        assert_eq!(missing.names, ["vm.swappiness"]);
        clear(RULE, &unknown(starved(200, 500, "")));
    }

    #[test]
    fn not_evaluated_without_refaults() {
        assert_eq!(not_evaluated(RULE, &Case::over(60)).names, ["vm.workingset_refault_file"]);
    }
}
