//! A disk at its limit on a host with enough memory.

use timeline::signals::{
    CPU_IOWAIT, DISK_IO_TIME, DISK_READ_TIME, DISK_WRITE_TIME, MEM_AVAILABLE, MEM_BUFFERS,
    MEM_CACHED, MEM_FREE, PGPGIN, PGPGOUT, PSI_IO_SOME, PSWPOUT, REFAULT_FILE, TASKS_BLOCKED,
};

use crate::measures::cgroups;
use crate::measures::disk_wait;
use crate::measures::disks::{self, DiskLoad, SATURATED};
use crate::measures::quiet::Quiet;
use crate::measures::readings::{SWAP_OUT_NOTABLE, refaults_file, swapped_in};
use crate::measures::writeback::{free_run, unwritten, writers_at_limit};
use crate::prelude::*;

declare_rule! {
    /// Tasks wait for a disk that does what it can, while memory is plentiful: more memory would not help.
    ///
    /// ## What it means
    /// The disk is busy nearly all the time, and tasks wait for it. Nothing points to memory as the reason: hardly a
    /// page is read again after eviction, nothing is swapped, no task waits for memory, dirty pages are below their
    /// limit. The data that is read was not in memory before, or is written on purpose.
    /// ## How it is recognised
    /// For {STALL} or longer, a disk is busy {SATURATED} of the time or more and tasks wait for disks {WAITED} of the
    /// time or more, while {PLENTY} of RAM or more is available, fewer than {Quiet::REFAULTS} of files refault, tasks
    /// hardly wait for memory, hardly a page is swapped, and dirty pages do not hold up writers. Where pressure and
    /// disks are not measured (a table of vmstat), CPUs idle for disks {disk_wait::IOWAIT} of the time or more while
    /// two or more tasks are in uninterruptible sleep, hardly a page is swapped, and what they wait for are no evicted
    /// pages: four times as much is written as read, or {PLENTY} of free memory and page cache is free. Which disk it
    /// is, and whether dirty pages hold up the writers, is open then.
    /// ## Not this
    /// - `page-cache-thrash`, `exec-pages-evicted`, `cgroup-cache-starved`: the reads are of evicted pages.
    /// - `swap-thrash`: the disk is busy with swap.
    /// - `dirty-throttle`: writers fill memory with dirty pages up to the limit.
    /// - `cgroup-dirty-throttle`, `cgroup-dirty-reclaim`: writers fill a cgroup with dirty pages up to its own limit.
    /// - `fsync-storm`: small writes wait for flushes.
    /// - An SSD with many requests in flight is busy all the time and has capacity left: then no task waits.
    /// ## What to do
    /// Find who reads or writes (`iotop`, `pidstat -d`), and move it, spread it over time, or limit it:
    /// `IOReadBandwidthMax=` and `IOWeight=` in its unit file. Otherwise a faster disk. Verify: tasks wait for disks
    /// less than {WAITED} of the time under the same load.
    /// ## References
    /// - kernel Documentation/accounting/psi.rst
    /// - iostat(1): %util and await
    pub(crate) RULE = {
        id: "storage-bound", since: "0.1.0", class: Note,
        numbers: [STALL, SATURATED, WAITED, PLENTY, Quiet::REFAULTS, disk_wait::IOWAIT],
        trigger: trigger, waits: MemoryOrDisk, story: story,
        cause: "Programs ask more of the disk than it can do, for data that no cache could hold \
                ready.",
        verify: "memtide check --for 1m under the same load: tasks wait for disks less than \
                 {WAITED} of the time",
        aliases: &["disk-bound"],
    }
}

/// Twice of what users notice; an engineering choice. Labelled captures, November 2026: 46 % and more on throttled disks,
/// 30 % at most on others.
const WAITED: Ratio = Ratio::from_percent(20.0);
/// An engineering choice: with less available, the shortage may be memory's.
const PLENTY: Ratio = Ratio::from_percent(20.0);
/// Near the level at which writers are throttled, dirty pages hold them up; an engineering choice, as the level swings.
const NEAR_LEVEL: f64 = 0.9;
/// Reads of evicted pages are less than this share of the I/O that tasks wait for: an engineering choice.
const WRITES_PER_READ: f64 = 4.0;
/// More flushes than this may be what tasks wait for: an engineering choice.
const FLUSHES: PerSecond<Count> = PerSecond::new(10.0);

fn trigger() -> Trigger {
    let is_busy =
        computed("busiest disk", disks::busiest).at_least("busy time of the disk", SATURATED);
    let flushes = computed("flushes of a disk", disks::most_flushes);
    let measured = all![
        stall(PSI_IO_SOME).at_least("I/O stalls", WAITED),
        is_busy,
        gauge(MEM_AVAILABLE).at_least("available", ram().share(PLENTY)),
        refaults_file().at_most("files read again", Quiet::REFAULTS),
        Quiet::holds(),
        rate(PSWPOUT).at_most("swapped out", SWAP_OUT_NOTABLE).if_measured(),
        unwritten()
            .at_most("dirty pages and writeback", free_run().times(NEAR_LEVEL))
            .if_measured(),
        flushes.at_most("flushes", FLUSHES).if_measured(),
    ];
    Trigger::on_host(STALL, measured.or_without(cpus_idle()))
}

/// What a table of vmstat shows of it: CPUs that idle for disks, and tasks in uninterruptible sleep.
fn cpus_idle() -> Predicate {
    let written = rate(PGPGOUT).at_least("written", rate(PGPGIN).times(WRITES_PER_READ));
    // Above the watermarks nothing is evicted, so nothing that was evicted is read again.
    let unused = gauge(MEM_FREE).plus([gauge(MEM_BUFFERS), gauge(MEM_CACHED)]);
    let is_free = gauge(MEM_FREE).at_least("free", unused.share(PLENTY));
    all![
        disk_wait::share().at_least("CPUs idle for disks", disk_wait::IOWAIT),
        gauge(TASKS_BLOCKED).at_least("blocked tasks", disk_wait::BLOCKED),
        swapped_in().at_most("swapped in", SWAP_OUT_NOTABLE),
        rate(PSWPOUT).at_most("swapped out", SWAP_OUT_NOTABLE),
        any![written, is_free],
    ]
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let calm = match Quiet::during(cx, stretch) {
        Ok(calm) => calm,
        Err(why) => return clear!("a disk is busy, but {why}"),
    };
    if cx.stall(PSI_IO_SOME).is_err() {
        return idle_cpus(cx, incident, &calm);
    }
    let disk = DiskLoad::of_busiest(cx, stretch);
    let disk = disk.ok_or_else(|| Missing::same_time(DISK_IO_TIME.def()))?;
    if disk.written >= disk.read
        && let Some(group) = writers_at_limit(cx, stretch)
    {
        return clear!(
            "a disk is busy, but writers in {} wait at its own limit",
            cgroups::called(cx, group)
        );
    }
    let stalled = cx.stall(PSI_IO_SOME)?;
    let waited = cx.mean_in(stretch, PSI_IO_SOME, &stalled)?;
    let refaulted = cx.mean_in(stretch, REFAULT_FILE, &cx.refaults_file()?)?;
    let (name, busy) = (&disk.name, disk.busy);
    let least = cx.lowest_in(MEM_AVAILABLE, stretch);
    let left =
        least.map_or_else(String::new, |(least, _)| format!(" with {least} available at least"));
    let title = Title::from(format!(
        "Tasks wait for {name} {waited} of the time; it is busy {busy} of it ({} read, {} \
         written).",
        disk.read, disk.written
    ))
    .then(format!("Memory is not the reason{left}."));
    Ok(RULE
        .found(Severity::Info, title)
        .graph("I/O stalls", &stalled)
        .shows_from(
            PSI_IO_SOME,
            waited,
            WAITED,
            None,
            format!("tasks waited for disks {waited} of the time"),
        )
        .counts_as("I/O stalls")
        .shows_from(
            DISK_IO_TIME,
            busy,
            SATURATED,
            None,
            format!("{name} was busy {busy} of the time"),
        )
        .counts_as("a busy disk")
        .with(disk.read_takes, |finding, takes| {
            finding.shows(
                Computed(DISK_READ_TIME),
                takes,
                None,
                format!("a read took {takes} on average"),
            )
        })
        .with(disk.write_takes, |finding, takes| {
            finding.shows(
                Computed(DISK_WRITE_TIME),
                takes,
                None,
                format!("a write took {takes} on average"),
            )
        })
        .and(|finding| calm.shown_in(finding))
        .shows_lowest(cx, MEM_AVAILABLE, stretch, |least| format!("at least {least} available"))
        .not("page-cache-thrash", format!("{refaulted} of files were read again"))
        .not("swap-thrash", "hardly a page was swapped")
        .not("dirty-throttle", "dirty pages were below the level at which writers are throttled")
        .fix(Fix::say("Find out who uses the disk.").inspect("pidstat -d 5 3\niostat -x 5 3"))
        .fix(Fix::say(
            "Move that work, spread it over time, or give it less of the disk: IOWeight=10 or \
             IOReadBandwidthMax= in its unit file, or ionice -c3. Otherwise only a faster disk \
             helps; more memory does not.",
        ))
        .affects([disk.affected()])
        .sure_by_kinds(cx, calm.open())
        .into())
}

/// The finding without pressure and disks: what CPUs and blocked tasks show.
fn idle_cpus<'a>(
    cx: &Evidence<'a>,
    incident: &Incident<'a>,
    calm: &Quiet,
) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let idle = disk_wait::share().track(cx)?;
    let share = cx.mean_in(stretch, CPU_IOWAIT, &idle)?;
    let tasks = cx.mean_in(stretch, TASKS_BLOCKED, &cx.gauge(TASKS_BLOCKED)?)?;
    let moved = |signal| cx.mean_rate(signal, stretch);
    let moved = match (moved(PGPGIN), moved(PGPGOUT)) {
        (Some(read), Some(written)) => format!(" ({read} read, {written} written)"),
        _ => String::new(),
    };
    let title = Title::from(format!(
        "{tasks} tasks wait for disks, and CPUs idle for them {share} of the time{moved}."
    ))
    .then("Hardly a page is swapped, so more memory would not help.");
    Ok(RULE
        .found(Severity::Info, title)
        .graph("CPUs idle for disks", &idle)
        .shows_from(
            Computed(CPU_IOWAIT),
            share,
            disk_wait::IOWAIT,
            None,
            format!("CPUs idled for disks {share} of the time"),
        )
        .counts_as("idle CPUs")
        .shows_from(
            TASKS_BLOCKED,
            tasks,
            disk_wait::BLOCKED,
            None,
            format!("{tasks} tasks in uninterruptible sleep on average"),
        )
        .and(|finding| calm.shown_in(finding))
        .not("swap-thrash", "hardly a page was swapped")
        .fix(Fix::say("Find out who uses which disk.").inspect("pidstat -d 5 3\niostat -x 5 3"))
        .fix(Fix::say(
            "See whether dirty pages hold up writers: memtide check --for 1m on that host.",
        ))
        .sure_by_kinds(
            cx,
            "pressure, disks and dirty pages would show which disk it is, and whether writers are \
             throttled",
        )
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, amid_calm, clear, found, not_evaluated, times};
    use timeline::facts::CgroupMode;
    use timeline::signals::{
        CGROUP_ACTIVE_FILE, CGROUP_CURRENT, CGROUP_EVENTS_MAX, CGROUP_FILE_DIRTY,
        CGROUP_FILE_WRITEBACK, CGROUP_INACTIVE_FILE, CGROUP_MAX, CGROUP_PSI_IO_SOME, CPU_IDLE,
        DISK_FLUSHES, DISK_READ_BYTES, DISK_READS, DISK_WRITE_BYTES, DISK_WRITES, MEM_ACTIVE_FILE,
        MEM_DIRTY, MEM_INACTIVE_FILE, MEM_TOTAL, MEM_WRITEBACK, NR_DIRTY_BACKGROUND_THRESHOLD,
        NR_DIRTY_THRESHOLD, PSI_MEMORY_SOME, PSWPIN, REFAULT_FILE,
    };
    use units::Limit;

    /// A host of 1,000 MiB with 600 available, and a disk that is busy `busy` milliseconds of each second.
    fn reading(busy: u64, waits: u64) -> Case {
        disk(Case::over(30), busy)
            .counter(PSI_IO_SOME, waits)
            .counter(PSI_MEMORY_SOME, 0)
            .counter(REFAULT_FILE, 3)
    }

    fn disk(case: Case, busy: u64) -> Case {
        case.gauge(MEM_TOTAL, Bytes::from_mib(1000))
            .gauge(MEM_AVAILABLE, Bytes::from_mib(600))
            .counter_of(Entity::Disk, "sda", DISK_IO_TIME, busy)
            .counter_of(Entity::Disk, "sda", DISK_READ_BYTES, 30 << 20)
            .counter_of(Entity::Disk, "sda", DISK_WRITE_BYTES, 1 << 20)
            .counter_of(Entity::Disk, "sda", DISK_READS, 100)
            .counter_of(Entity::Disk, "sda", DISK_READ_TIME, 4_000)
            .counter_of(Entity::Disk, "sda", DISK_WRITES, 0)
            .counter_of(Entity::Disk, "sda", DISK_WRITE_TIME, 0)
    }

    #[test]
    fn a_busy_disk_with_much_memory_is_a_note() {
        let finding = found(RULE, &reading(990, 700_000));
        assert_eq!(finding.severity, Severity::Info);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(finding.title.contains("busy 99 %"), "{}", finding.title);
        assert!(finding.evidence.iter().any(|line| line.text == "a read took 40 ms on average"));
    }

    #[test]
    fn clear_where_no_task_waits_or_no_disk_is_busy() {
        clear(RULE, &reading(990, 50_000));
        clear(RULE, &reading(500, 700_000));
    }

    #[test]
    fn clear_where_evicted_files_or_swap_make_the_reads() {
        clear(RULE, &reading(990, 700_000).counter(REFAULT_FILE, 5_000));
        clear(RULE, &reading(990, 700_000).counter(PSWPIN, 2_500));
        clear(RULE, &reading(990, 700_000).counter(PSWPOUT, 2_500));
    }

    #[test]
    fn clear_where_memory_is_short() {
        let little = reading(990, 700_000).gauge(MEM_AVAILABLE, Bytes::from_mib(100));
        clear(RULE, &little);
        clear(RULE, &reading(990, 700_000).counter(PSI_MEMORY_SOME, 300_000));
    }

    #[test]
    fn clear_where_dirty_pages_or_flushes_hold_up_writers() {
        let throttled = reading(990, 700_000)
            .gauge(MEM_DIRTY, Bytes::from_mib(160))
            .gauge(MEM_WRITEBACK, Bytes::from_mib(8))
            .gauge(NR_DIRTY_THRESHOLD, Pages::new(168 * 256))
            .gauge(NR_DIRTY_BACKGROUND_THRESHOLD, Pages::new(84 * 256));
        clear(RULE, &throttled);
        let flushing = reading(990, 700_000);
        clear(RULE, &flushing.counter_of(Entity::Disk, "sda", DISK_FLUSHES, 60));
    }

    #[test]
    fn clear_where_writers_wait_at_the_limit_of_their_cgroup() {
        let mib = Bytes::from_mib;
        let key = "/docker/job";
        let host = |mode, dirty| {
            let mut case = reading(990, 700_000)
                .counter_of(Entity::Disk, "sda", DISK_READ_BYTES, 1 << 20)
                .counter_of(Entity::Disk, "sda", DISK_WRITE_BYTES, 30 << 20)
                .gauge(MEM_FREE, mib(400))
                .gauge(MEM_ACTIVE_FILE, mib(100))
                .gauge(MEM_INACTIVE_FILE, mib(100))
                .gauge(MEM_DIRTY, mib(dirty))
                .gauge(MEM_WRITEBACK, mib(2))
                .gauge(NR_DIRTY_THRESHOLD, Pages::new(120 * 256))
                .gauge(NR_DIRTY_BACKGROUND_THRESHOLD, Pages::new(60 * 256));
            case.facts.cgroup_mode = Some(mode);
            case
        };
        let group = |case: Case, dirty, hits, waits| {
            case.gauge_of(Entity::Cgroup, key, CGROUP_MAX, Limit::Bytes(mib(64)))
                .gauge_of(Entity::Cgroup, key, CGROUP_CURRENT, mib(62))
                .gauge_of(Entity::Cgroup, key, CGROUP_ACTIVE_FILE, mib(20))
                .gauge_of(Entity::Cgroup, key, CGROUP_INACTIVE_FILE, mib(38))
                .gauge_of(Entity::Cgroup, key, CGROUP_FILE_DIRTY, mib(dirty))
                .gauge_of(Entity::Cgroup, key, CGROUP_FILE_WRITEBACK, mib(1))
                .counter_of(Entity::Cgroup, key, CGROUP_EVENTS_MAX, hits)
                .counter_of(Entity::Cgroup, key, CGROUP_PSI_IO_SOME, waits)
        };
        // 15 % of 60 MiB on v2.
        let v2 = |dirty, waits| group(host(CgroupMode::V2, 9), dirty, 0, waits);
        clear(RULE, &v2(9, 700_000));
        found(RULE, &v2(4, 700_000));
        found(RULE, &v2(9, 10_000));
        // The whole limit on v1.
        let v1 = |dirty, hits| group(host(CgroupMode::V1, 40), dirty, hits, 0);
        clear(RULE, &v1(30, 500));
        found(RULE, &v1(9, 500));
        found(RULE, &v1(30, 0));
        // Another one has most of it, or the disk is busy with reads.
        found(RULE, &group(host(CgroupMode::V1, 70), 30, 500, 0));
        let reads = v1(30, 500).counter_of(Entity::Disk, "sda", DISK_READ_BYTES, 60 << 20);
        found(RULE, &reads);
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let hour = |refaults| {
            disk(Case::over(3600), 990)
                .counter_steps(PSI_IO_SOME, &amid_calm(700_000, 1_000))
                .counter_steps(REFAULT_FILE, &amid_calm(refaults, 0))
        };
        assert_eq!(times(&found(RULE, &hour(0))), [(1800, 1830)]);
        clear(RULE, &hour(5_000));
    }

    /// vmstat of a host with 4,000 MiB of page cache: `free`, read and written per second, CPUs idle for disks.
    fn table(free: Bytes, read: Bytes, written: Bytes, idle: u64) -> Case {
        Case::over(8)
            .gauge(MEM_FREE, free)
            .gauge(MEM_BUFFERS, Bytes::from_mib(10))
            .gauge(MEM_CACHED, Bytes::from_mib(3990))
            .gauge(TASKS_BLOCKED, Count::new(5))
            .counter(CPU_IOWAIT, idle)
            .counter(CPU_IDLE, 100 - idle)
            .counter(PGPGIN, read.get())
            .counter(PGPGOUT, written.get())
            .counter(PSWPIN, 0)
            .counter(PSWPOUT, 0)
    }

    #[test]
    fn idle_cpus_and_blocked_tasks_are_enough_where_nothing_evicted_is_read() {
        let (little, much) = (Bytes::from_mib(30), Bytes::from_mib(2000));
        let mib = Bytes::from_mib;
        let finding = found(RULE, &table(little, mib(1), mib(100), 60));
        assert_eq!(finding.severity, Severity::Info);
        assert!(finding.title.contains("60 %"), "{}", finding.title);
        assert_ne!(finding.confidence.word(), "confirmed");
        found(RULE, &table(much, mib(100), mib(1), 60));
        // The reads may be of evicted pages.
        clear(RULE, &table(little, mib(100), mib(1), 60));
        clear(RULE, &table(little, mib(1), mib(100), 10));
        let swapping = table(little, mib(1), mib(100), 60).counter(PSWPOUT, 2_500);
        clear(RULE, &swapping);
        let one = table(little, mib(1), mib(100), 60).gauge(TASKS_BLOCKED, Count::new(1));
        clear(RULE, &one);
    }

    #[test]
    fn not_evaluated_without_pressure_files_or_disks_and_without_cpu_time() {
        let without = disk(Case::over(30), 990).counter(REFAULT_FILE, 3);
        assert_eq!(not_evaluated(RULE, &without).names, ["cpu.iowait"]);
        let no_disk = Case::over(30)
            .gauge(MEM_TOTAL, Bytes::from_mib(1000))
            .gauge(MEM_AVAILABLE, Bytes::from_mib(600))
            .counter(PSI_IO_SOME, 700_000)
            .counter(REFAULT_FILE, 3);
        assert_eq!(not_evaluated(RULE, &no_disk).names, ["cpu.iowait"]);
    }
}
