//! Durable writes (fsync, O_SYNC) wait for a disk that can flush only so often.

use timeline::signals::{
    DIRTY_AND_WRITEBACK, DISK_FLUSHES, DISK_IO_TIME, DISK_READ_TIME, DISK_WRITE_BYTES,
    DISK_WRITE_TIME, PSI_IO_SOME, PSI_MEMORY_SOME, PSWPOUT, TASKS_BLOCKED,
};

use crate::measures::disks::DiskLoad;
use crate::measures::readings::SWAP_OUT_NOTABLE;
use crate::measures::writeback::{is_far_from_limit, unwritten};
use crate::prelude::*;

declare_rule! {
    /// Programs make each small write durable at once, and wait for the disk's flushes: the disk is slow, not memory.
    ///
    /// ## What it means
    /// fsync, fdatasync and O_SYNC return when data is on stable storage. Each needs a flush of the disk's write cache,
    /// and a disk does only so many a second: some 50 if it rotates, some 1,000 on a plain SSD. Databases, mail and
    /// message queues that commit one by one wait for them. There is little dirty data, and memory is not involved.
    /// ## How it is recognised
    /// For {STALL} or longer, a disk completes flushes at {FLUSHES} or more, at most {WRITTEN_FOR_EACH_MAX} is written
    /// for each, its requests spend more time on writes than on reads, and tasks wait for disks {WAITED} of the time or
    /// more; dirty pages are at most half of the level at which writers are throttled. It is a warning if tasks waited
    /// half of the time, two or more at once, otherwise informational.
    /// ## Not this
    /// - `dirty-throttle`: dirty pages are at their limit; writers wait for throughput, not for flushes.
    /// - `storage-bound`: a busy disk without flushes.
    /// - A fast disk with many flushes: no task waits.
    /// ## What to do
    /// Commit in groups (PostgreSQL commit_delay, MySQL sync_binlog and innodb_flush_log_at_trx_commit), give the log a
    /// disk of its own, or use a disk with a cache that survives a power cut (it flushes in no time). More memory
    /// changes nothing. Verify: fewer flushes per second at the same load, and I/O stalls below {WAITED}.
    /// ## References
    /// - fsync(2)
    /// - kernel Documentation/block/writeback_cache_control.rst
    pub(crate) RULE = {
        id: "fsync-storm", since: "0.1.0", class: Stall,
        numbers: [STALL, FLUSHES, WRITTEN_FOR_EACH_MAX, WAITED],
        trigger: trigger, waits: MemoryOrDisk, story: story,
        cause: "Each durable write waits for a flush of the disk, and the disk completes only so \
                many of them.",
        verify: "memtide check --for 1m at the same load: tasks wait for disks less than {WAITED} \
                 of the time",
    }
}

/// An engineering choice: a rotating disk does 20 to 60. Labelled captures, November 2026: 12 at most, on calm hosts,
/// where tasks wait for disks 4 % of the time.
const FLUSHES: PerSecond<Count> = PerSecond::new(10.0);
/// What a disk of 100 MiB/s writes in 10 ms, about the time of a flush: with more data for each, throughput counts.
const WRITTEN_FOR_EACH_MAX: Bytes = Bytes::from_mib(1);
/// Twice of what users notice; an engineering choice.
const WAITED: Ratio = Ratio::from_percent(20.0);
/// Together with two waiting tasks it is more than one program's own pace: an engineering choice.
const WAITED_LONG: Ratio = Ratio::from_percent(50.0);
const TASKS_WAITING: f64 = 2.0;

fn trigger() -> Trigger {
    let flushes = || rate(DISK_FLUSHES);
    let is_read = rate(DISK_READ_TIME).at_most("time of reads", rate(DISK_WRITE_TIME));
    Trigger::on(
        Subjects::Each(Entity::Disk, |_, _| true),
        STALL,
        all![
            flushes().at_least("flushes", FLUSHES),
            rate(DISK_WRITE_BYTES).at_most_for_each(
                &flushes(),
                "bytes written",
                WRITTEN_FOR_EACH_MAX,
            ),
            is_read,
            stall(PSI_IO_SOME).at_least("I/O stalls", WAITED),
            is_far_from_limit(),
            stall(PSI_MEMORY_SOME).at_most("memory stalls", PressureWindow::MEMORY).if_measured(),
            rate(PSWPOUT).at_most("swapped out", SWAP_OUT_NOTABLE).if_measured(),
        ],
    )
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let (disk, stretch) = (incident.entity()?, &incident.stretch);
    let name = &disk.key;
    let flushes = cx.rate_of(disk, DISK_FLUSHES)?;
    let rate = cx.mean_in(stretch, DISK_FLUSHES, &flushes)?;
    let load = DiskLoad::during(cx, disk, stretch);
    let load = load.ok_or_else(|| Missing::same_time(DISK_IO_TIME.def()))?;
    let level = unwritten().track(cx)?;
    let level = cx.mean_in(stretch, DIRTY_AND_WRITEBACK, &level)?;
    let stalls = PressureWindow::during(cx, stretch);
    let waited = stalls.io_some.unwrap_or_default();
    // A mean of counts must keep its fraction.
    let blocked: Option<Track<Ratio>> = cx.gauge(TASKS_BLOCKED).ok().map(Track::cast);
    let tasks = blocked.and_then(|blocked| blocked.mean_in(stretch));
    let is_long = waited >= WAITED_LONG && tasks.is_some_and(|tasks| tasks.get() >= TASKS_WAITING);
    let each = Bytes::from_f64(load.written.get() / rate.get().max(1.0));
    let title = Title::from(format!(
        "Durable writes (fsync) wait for {name}: it flushes at {rate}, {each} are written for \
         each, and tasks wait for disks {waited} of the time."
    ))
    .then("Memory is not short.");
    Ok(RULE
        .found(Severity::warning_if(is_long), title)
        .graph("flushes", &flushes)
        .shows_from(
            DISK_FLUSHES,
            rate,
            FLUSHES,
            None,
            format!("{name} flushes at {rate}, {each} written for each"),
        )
        .counts_as("the disk's flushes")
        .shows_from(
            PSI_IO_SOME,
            waited,
            WAITED,
            None,
            format!("tasks waited for disks {waited} of the time"),
        )
        .counts_as("I/O stalls")
        .with(load.write_takes, |finding, takes| {
            let text = format!("a write took {takes} on average");
            finding.shows(Computed(DISK_WRITE_TIME), takes, None, text)
        })
        .shows(DIRTY_AND_WRITEBACK, level, None, format!("only {level} dirty or under writeback"))
        .not("dirty-throttle", format!("{level} of unwritten data is far below the limit"))
        .with(stalls.memory_some, |finding, memory| {
            finding.not(
                "direct-reclaim-stall",
                format!("tasks hardly waited for memory ({memory} of the time)"),
            )
        })
        .fix(
            Fix::say(
                "Find who commits: it is the program that writes to the disk and calls fsync.",
            )
            .inspect("pidstat -d 5 3\niostat -x 5 3"),
        )
        .fix(Fix::say(
            "Commit several changes with one fsync (group commit), give the log a disk of its own, \
             or use a disk with a cache that survives a power cut. More memory does not help.",
        ))
        .affects([load.affected()])
        .sure_by_kinds(cx, "")
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, amid_calm, clear, found, not_evaluated, times};
    use timeline::signals::{
        DISK_READ_BYTES, DISK_READS, DISK_WRITES, MEM_DIRTY, MEM_TOTAL, MEM_WRITEBACK,
        NR_DIRTY_BACKGROUND_THRESHOLD, NR_DIRTY_THRESHOLD,
    };

    /// A host of 1,000 MiB on which `flushes` write `kib` each, and tasks wait for disks.
    fn committing(flushes: u64, kib: u64, waits: u64) -> Case {
        writing(Case::over(30), kib * flushes)
            .counter_of(Entity::Disk, "sda", DISK_FLUSHES, flushes)
            .counter(PSI_IO_SOME, waits)
    }

    fn writing(case: Case, kib: u64) -> Case {
        case.gauge(MEM_TOTAL, Bytes::from_mib(1000))
            .gauge(MEM_DIRTY, Bytes::from_mib(2))
            .gauge(MEM_WRITEBACK, Bytes::from_mib(1))
            .gauge(NR_DIRTY_THRESHOLD, Pages::new(168 * 256))
            .gauge(NR_DIRTY_BACKGROUND_THRESHOLD, Pages::new(84 * 256))
            .counter_of(Entity::Disk, "sda", DISK_WRITE_BYTES, kib << 10)
            .counter_of(Entity::Disk, "sda", DISK_WRITES, 100)
            .counter_of(Entity::Disk, "sda", DISK_WRITE_TIME, 900)
            .counter_of(Entity::Disk, "sda", DISK_READ_TIME, 10)
            .counter_of(Entity::Disk, "sda", DISK_READ_BYTES, 0)
            .counter_of(Entity::Disk, "sda", DISK_READS, 0)
            .counter_of(Entity::Disk, "sda", DISK_IO_TIME, 950)
            .counter(PSI_MEMORY_SOME, 1_000)
    }

    #[test]
    fn commits_that_wait_for_flushes_are_found() {
        let finding = found(RULE, &committing(45, 64, 700_000));
        assert_eq!(finding.severity, Severity::Info);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(
            finding.title.contains("it flushes at 45/s, 64 KiB are written"),
            "{}",
            finding.title
        );
    }

    #[test]
    fn several_waiting_tasks_for_most_of_the_time_are_a_warning() {
        let blocked = |tasks| committing(45, 64, 700_000).gauge(TASKS_BLOCKED, Count::new(tasks));
        assert_eq!(found(RULE, &blocked(6)).severity, Severity::Warning);
        assert_eq!(found(RULE, &blocked(1)).severity, Severity::Info);
    }

    #[test]
    fn clear_on_a_fast_disk_and_with_few_flushes() {
        clear(RULE, &committing(900, 64, 30_000));
        clear(RULE, &committing(4, 64, 700_000));
    }

    #[test]
    fn clear_when_throughput_counts() {
        clear(RULE, &committing(12, 4096, 900_000));
    }

    #[test]
    fn clear_when_dirty_pages_are_at_their_limit() {
        let case = committing(45, 64, 700_000).gauge(MEM_DIRTY, Bytes::from_mib(160));
        clear(RULE, &case);
    }

    #[test]
    fn clear_when_reads_or_memory_take_the_time() {
        let reading = committing(45, 64, 700_000);
        clear(RULE, &reading.counter_of(Entity::Disk, "sda", DISK_READ_TIME, 5_000));
        clear(RULE, &committing(45, 64, 700_000).counter(PSI_MEMORY_SOME, 300_000));
        clear(RULE, &committing(45, 64, 700_000).counter(PSWPOUT, 3_000));
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let hour = |waits| {
            writing(Case::over(3600), 2_000)
                .counter_steps_of(Entity::Disk, "sda", DISK_FLUSHES, &amid_calm(40, 0))
                .counter_steps(PSI_IO_SOME, &amid_calm(waits, 1_000))
        };
        let finding = found(RULE, &hour(600_000));
        assert_eq!(times(&finding), [(1800, 1830)]);
        clear(RULE, &hour(100_000));
    }

    #[test]
    fn not_evaluated_where_flushes_or_waits_are_not_counted() {
        let old = writing(Case::over(30), 600).counter(PSI_IO_SOME, 700_000);
        assert_eq!(not_evaluated(RULE, &old).names, ["disk.flushes"]);
        let flushes = |case: Case| case.counter_of(Entity::Disk, "sda", DISK_FLUSHES, 40);
        let case = flushes(writing(Case::over(30), 600));
        assert_eq!(not_evaluated(RULE, &case).names, ["psi.io.some"]);
    }
}
