//! Dirty throttling: writers wait because dirty pages are at their limit.

use std::collections::BTreeMap;

use timeline::facts::{DIRTY_BYTES, DIRTY_RATIO};
use timeline::settings::DIRTY_RATIO_DEFAULT;
use timeline::signals::{
    DIRTY_AND_WRITEBACK, DISK_IO_TIME, DISK_WRITE_BYTES, NR_DIRTIED, NR_DIRTY_BACKGROUND_THRESHOLD,
    NR_DIRTY_THRESHOLD, NR_WRITTEN, PROC_WRITE_BYTES, PSI_IO_SOME, PSI_MEMORY_SOME, PSWPOUT,
};
use units::Micros;

use crate::measures::available::room_left;
use crate::measures::readings::{AVAILABLE_ROOMY_SHARE, SWAP_OUT_NOTABLE};
use crate::measures::writeback::{dirty_limit, free_run, unwritten};
use crate::prelude::*;
use crate::rule::DIRTY_LIMITS;

declare_rule! {
    /// Writers wait for the disk: dirty pages are at the limit that the kernel allows.
    ///
    /// ## What it means
    /// Writes normally go to page cache and reach the disk later. When programs write faster than the disk for long,
    /// dirty (unwritten) data grows to a limit, and from then on the kernel throttles every writer to the speed of the
    /// disk. Memory is not short; the disk is slow.
    /// ## How it is recognised
    /// For {STALL} or longer, dirty pages plus pages under writeback stay at {NEAR_LIMIT} or more of the level at which
    /// the kernel throttles writers (the middle of `nr_dirty_background_threshold` and `nr_dirty_threshold`), while
    /// tasks wait for disks for {WAITED} of the time or more and hardly for memory; waits for memory count only where
    /// less than {AVAILABLE_ROOMY_SHARE} of RAM is available, as they are those of a cgroup at its own limit otherwise.
    /// Without pressure files, a disk that writes must be busy for {DISK_BUSY} of the time.
    /// ## Not this
    /// - Swap-out: it counts as writeback too, and the limit falls with dirtyable memory.
    /// - A limit that is small because memory is used up: `available-exhaustion`, `swap-thrash`.
    /// - `fsync-storm`: fsync and O_SYNC writers wait for the disk with few dirty pages; so do O_DIRECT writers.
    /// - `cgroup-dirty-throttle`: a cgroup's own limit (v2) is reached, a part of its `memory.max`, while the host is
    ///   far from its limit.
    /// ## What to do
    /// Use a faster disk, or write less. Smaller limits make the waits short and even; they do not make the work
    /// faster: now `sysctl -w vm.dirty_background_bytes=… vm.dirty_bytes=…` at one and four seconds of the disk's
    /// throughput, for good the same in a file under `/etc/sysctl.d/`. Raising `dirty_ratio` only defers the wait and
    /// makes the next `sync` longer. Verify: dirty data stays below the middle of the two thresholds.
    /// ## References
    /// - kernel mm/page-writeback.c, balance_dirty_pages
    /// - kernel Documentation/admin-guide/sysctl/vm.rst, dirty_bytes
    pub(crate) RULE = { id: "dirty-throttle", since: "0.1.0", class: Stall,
        numbers: [STALL, NEAR_LIMIT, WAITED, DISK_BUSY, AVAILABLE_ROOMY_SHARE],
        trigger: trigger, waits: MemoryOrDisk, story: story,
        verify: "memtide check --for 1m during the same writes: tasks wait for disks less than \
                 {WAITED} of the time, or in shorter steps",
        brings_about: &["dirty-limit-too-big", "reclaim-behind-writes", "direct-reclaim-stall",
            "kswapd-saturated"],
        explained_by: DIRTY_LIMITS,
        aliases: &["dirty-throttling"],
    }
}

/// Share of the level from which writers are throttled; an engineering choice, because dirty pages swing around it.
const NEAR_LIMIT: Ratio = Ratio::from_percent(90.0);
/// An engineering choice. Labelled captures, November 2026: 70 % while throttled; 0 to 30 % where writers fsync on a
/// calm host.
const WAITED: Ratio = Ratio::from_percent(10.0);
/// Without pressure files, a disk this busy counts as waiting; throttled captures show 99 %, calm ones 10 %.
const DISK_BUSY: Ratio = Ratio::from_percent(70.0);
/// Tasks that wait more than this for memory have another problem; throttled captures show 0 %.
const WAITED_FOR_MEMORY: Ratio = Ratio::from_percent(10.0);
/// With more swap-out than this, Writeback is mostly swap; a host that only writes files swaps nothing out.
const SWAPPED_OUT: PerSecond<Pages> = SWAP_OUT_NOTABLE;
/// The limit is a share of dirtyable memory. If that is less than a tenth of RAM, memory is used up.
const DIRTYABLE: f64 = 0.1;
/// Limits below this make writers wait for every request.
const LIMIT_MIN: Bytes = Bytes::from_mib(16);

fn trigger() -> Trigger {
    let is_busy = computed("busiest disk", busiest).at_least("busy time of the disk", DISK_BUSY);
    Trigger::on_host(
        STALL,
        all![
            unwritten().at_least("dirty pages and writeback", free_run().share(NEAR_LIMIT)),
            stall(PSI_IO_SOME).at_least("I/O stalls", WAITED).or_without(is_busy.if_measured()),
            is_genuine(),
            // Swap-out counts as writeback too.
            rate(PSWPOUT).at_most("swapped out", SWAPPED_OUT).if_measured(),
        ],
    )
}

/// Whether the limit follows from the settings, not from a lack of dirtyable memory. A limit in bytes always does.
fn is_genuine() -> Predicate {
    let percent = fact(DIRTY_RATIO).or(Reading::constant(Count::new(DIRTY_RATIO_DEFAULT)));
    let least = percent.of_size(ram().times(DIRTYABLE / 100.0));
    any![
        fact(DIRTY_BYTES).at_least("vm.dirty_bytes", Count::new(1)),
        dirty_limit().at_least("dirty limit", least).if_measured(),
    ]
}

/// The busy share of the busiest disk that writes.
fn busiest(cx: &Evidence<'_>) -> Result<Numbers, Missing> {
    let disks = cx.timeline.entities(Entity::Disk);
    let busy = disks.filter_map(|disk| Some(busy_writing(cx, disk)?.cast()));
    let busiest = busy.reduce(|a: Numbers, b| a.zip(&b, f64::max));
    busiest.ok_or_else(|| cx.lacks_signal(DISK_IO_TIME.id()))
}

/// The share of time for which a disk is busy while it writes.
fn busy_writing(cx: &Evidence<'_>, disk: &EntitySeries) -> Option<Numbers> {
    let busy = cx.rate_of(disk, DISK_IO_TIME).ok()?;
    let written = cx.rate_of(disk, DISK_WRITE_BYTES).ok()?;
    let (busy, written): (Numbers, Numbers) = (busy.cast(), written.cast());
    // Milliseconds of I/O a second.
    Some(busy.zip(
        &written,
        |busy, written| {
            if written > 0.0 { (busy / 1000.0).min(1.0) } else { 0.0 }
        },
    ))
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let unwritten = unwritten().track(cx)?;
    let limit = cx.bytes(NR_DIRTY_THRESHOLD)?;
    let limit = cx.mean_in(stretch, NR_DIRTY_THRESHOLD, &limit)?;
    let free = free_run().track(cx)?;
    let free = cx.mean_in(stretch, NR_DIRTY_BACKGROUND_THRESHOLD, &free)?;
    let level = cx.mean_in(stretch, DIRTY_AND_WRITEBACK, &unwritten)?;
    if level < free {
        return clear!("{level} was dirty or under writeback; writers are throttled from {free}");
    }
    let waits = WriterWaits {
        disks: stalled(cx, PSI_IO_SOME, stretch),
        memory: stalled(cx, PSI_MEMORY_SOME, stretch),
    };
    // On a host with room tasks wait for memory at the limit of a cgroup, which does not explain the writers.
    if let Some(memory) = waits.mostly_for_memory()
        && room_left(cx, stretch).is_none()
    {
        return clear!("tasks waited for memory ({memory} of the time), not for the disk alone");
    }
    let disk = busiest_disk(cx, stretch);
    let speed = written(cx, stretch, disk.as_ref());
    let at = speed.map_or_else(String::new, |speed| format!(", and the disk writes {speed}"));
    let title = format!(
        "Writers wait for the disk for {}: dirty pages are at their limit of {limit}{at}.",
        stretch.duration()
    );
    let text = format!(
        "{level} dirty or under writeback; the limit is {limit}, writers are throttled from {free}"
    );
    let finding = RULE
        .found(Severity::Warning, title)
        .graph("dirty and under writeback", &unwritten)
        .shows_from(DIRTY_AND_WRITEBACK, level, free, None, text)
        .counts_as("dirty pages at their limit");
    let finding = throughput(cx, waits.shown_in(finding, disk.as_ref()), stretch);
    let open = if finding.kinds.len() == 1 {
        "I/O stalls (PSI) or disk statistics would settle it"
    } else {
        ""
    };
    let finding = waits.ruling_out(finding).when(cx.rate(PSWPOUT).is_ok(), |finding| {
        finding.not("swap-thrash", "hardly a page was swapped out")
    });
    Ok(remedy(cx, finding, speed, limit)
        .cause(cause(level, speed))
        .affects(disk.map(|disk| {
            let what = format!("busy {} of the time, {} written", disk.busy, disk.written);
            Affected::new("disk", disk.name, what)
        }))
        .affects(writers(cx, stretch))
        .sure_by_kinds(cx, open)
        .into())
}

fn cause(level: Bytes, speed: Option<BytesPerSecond>) -> String {
    let drain = speed
        .filter(|speed| speed.get() > 0.0)
        .map(|speed| Span::from_secs_f64(level.as_f64() / speed.get()));
    let takes = drain.map_or_else(String::new, |drain| {
        format!(" Writing all of it takes {drain}; a sync waits that long.")
    });
    format!(
        "Programs write faster than the disk, so the kernel throttles them to its speed.{takes}"
    )
}

/// Shares of the time in which tasks waited.
struct WriterWaits {
    disks: Option<Ratio>,
    memory: Option<Ratio>,
}

impl WriterWaits {
    /// The share of the time spent waiting for memory, where that is another problem.
    fn mostly_for_memory(&self) -> Option<Ratio> {
        let much = |memory: &Ratio| {
            *memory >= WAITED_FOR_MEMORY
                && self.disks.is_none_or(|io| memory.get() > io.get() / 2.0)
        };
        self.memory.filter(much)
    }

    fn shown_in(&self, finding: Finding, disk: Option<&WrittenDisk>) -> Finding {
        let busy = disk.filter(|disk| disk.busy >= DISK_BUSY);
        finding
            .with(self.disks, |finding, waited| {
                let text = format!("tasks waited for disks {waited} of the time");
                finding.shows_from(PSI_IO_SOME, waited, WAITED, None, text).counts_as("I/O stalls")
            })
            .with(busy, |finding, disk| {
                let text = format!("{} was busy {} of the time", disk.name, disk.busy);
                finding
                    .shows_from(DISK_IO_TIME, disk.busy, DISK_BUSY, None, text)
                    .counts_as("a busy disk")
            })
    }

    fn ruling_out(&self, finding: Finding) -> Finding {
        finding.with(self.memory, |finding, memory| {
            let text = format!("tasks waited for memory {memory} of the time");
            let why = format!("tasks hardly waited for memory ({memory} of the time)");
            finding
                .shows_below(PSI_MEMORY_SOME, memory, WAITED_FOR_MEMORY, None, text)
                .not("direct-reclaim-stall", why)
        })
    }
}

/// A disk that is written while writers wait.
struct WrittenDisk {
    name: String,
    busy: Ratio,
    written: BytesPerSecond,
}

/// The mean share of time stalled in a stretch.
fn stalled(cx: &Evidence<'_>, signal: Signal<Counter<Micros>>, stretch: &Stretch) -> Option<Ratio> {
    cx.stall(signal).ok()?.mean_in(stretch)
}

fn busiest_disk(cx: &Evidence<'_>, stretch: &Stretch) -> Option<WrittenDisk> {
    cx.timeline
        .entities(Entity::Disk)
        .filter_map(|disk| {
            let written = cx.rate_of(disk, DISK_WRITE_BYTES).ok()?.mean_in(stretch)?;
            Some(WrittenDisk {
                name: disk.key.clone(),
                busy: busy_writing(cx, disk)?.mean_in(stretch)?,
                written,
            })
        })
        .filter(|disk| disk.written.get() > 0.0)
        .max_by(|a, b| a.busy.get().total_cmp(&b.busy.get()))
}

/// Write throughput: the kernel's count of written pages, else that of the busiest disk.
fn written(
    cx: &Evidence<'_>,
    stretch: &Stretch,
    disk: Option<&WrittenDisk>,
) -> Option<BytesPerSecond> {
    cx.bytes_rate(NR_WRITTEN)
        .ok()
        .and_then(|rate| rate.mean_in(stretch))
        .or_else(|| disk.map(|disk| disk.written))
}

/// Adds the writers' throughput before the limit was reached, and at it.
fn throughput(cx: &Evidence<'_>, finding: Finding, stretch: &Stretch) -> Finding {
    let Ok(dirtied) = cx.bytes_rate(NR_DIRTIED) else {
        return finding;
    };
    // The limit is reached within the first intervals of the stretch, so they belong to the run-up.
    let reached = (stretch.first + 2).min(stretch.last);
    let run_up = cx.timeline.stretch(0, reached);
    let at_limit =
        cx.timeline.stretch(reached, stretch.last).and_then(|stretch| dirtied.mean_in(&stretch));
    let Some(at_limit) = at_limit else {
        return finding;
    };
    let before = run_up
        .and_then(|run_up| dirtied.max_in(&run_up))
        .filter(|(peak, _)| peak.get() > 2.0 * at_limit.get());
    let (at, text) = match before {
        Some((peak, index)) => {
            let text = format!("writers reached {peak} before the limit and {at_limit} at it");
            (cx.time(index), text)
        }
        None => (None, format!("writers reached {at_limit} at the limit")),
    };
    finding.shows(NR_DIRTIED, at_limit, at, text)
}

/// Processes that dirtied most during the stretch, by name.
fn writers(cx: &Evidence<'_>, stretch: &Stretch) -> Vec<Affected> {
    let mut by_name: BTreeMap<&str, f64> = BTreeMap::new();
    for process in cx.timeline.entities(Entity::Process) {
        if let Ok(rate) = cx.rate_of(process, PROC_WRITE_BYTES) {
            *by_name.entry(&process.label).or_default() += rate.integral_in(stretch);
        }
    }
    let mut writers: Vec<_> = by_name.into_iter().filter(|(_, bytes)| *bytes > 0.0).collect();
    writers.sort_by(|a, b| b.1.total_cmp(&a.1));
    writers
        .into_iter()
        .take(3)
        .map(|(name, bytes)| {
            Affected::new("process", name, format!("wrote {}", Bytes::from_f64(bytes)))
        })
        .collect()
}

fn remedy(
    cx: &Evidence<'_>,
    finding: Finding,
    speed: Option<BytesPerSecond>,
    limit: Bytes,
) -> Finding {
    let finding = finding.fix(Fix::say(
        "Use a faster disk, or write less: no memory limit makes the disk faster. Raising \
         vm.dirty_ratio only defers the wait.",
    ));
    let Some(speed) = speed else {
        return finding;
    };
    let seconds = |n: f64| {
        let mib = Bytes::from_mib(1).as_f64();
        let whole = (speed.get() * n / mib).ceil() * mib;
        Bytes::from_f64(whole).max(LIMIT_MIN)
    };
    let (background, most) = (seconds(1.0), seconds(4.0));
    // The limit is already small.
    if most >= limit || background >= most {
        return finding;
    }
    finding.fix(Fix::dirty_limits(
        cx,
        "Make the waits short and even: start writeback at one second's worth of writes, throttle \
         writers at four. Remove vm.dirty_ratio and vm.dirty_background_ratio from \
         /etc/sysctl.conf and /etc/sysctl.d/.",
        background,
        Some(most),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Need;
    use crate::rules::testing::{Case, changed, clear, found, not_evaluated, three_times, times};
    use timeline::facts::DIRTY_BACKGROUND_RATIO;
    use timeline::signals::{MEM_AVAILABLE, MEM_DIRTY, MEM_TOTAL, MEM_WRITEBACK};

    /// A host of 1000 MiB with this many MiB dirty and this limit; its tasks wait for disks.
    fn writing(dirty: u64, limit: u64) -> Case {
        Case::over(30)
            .gauge(MEM_TOTAL, Bytes::from_mib(1000))
            .gauge(MEM_DIRTY, Bytes::from_mib(dirty / 2))
            .gauge(MEM_WRITEBACK, Bytes::from_mib(dirty - dirty / 2))
            .gauge(NR_DIRTY_THRESHOLD, Pages::new(limit * 256))
            .gauge(NR_DIRTY_BACKGROUND_THRESHOLD, Pages::new(limit * 128))
    }

    fn waiting(case: Case) -> Case {
        case.counter(PSI_IO_SOME, 700_000).counter(PSI_MEMORY_SOME, 0)
    }

    #[test]
    fn only_occurrences_with_stalls_are_reported() {
        let dirty = three_times([Bytes::from_mib(168); 3], Bytes::from_mib(1));
        let dirty = [vec![dirty[0]], dirty].concat();
        let case = Case::over(240)
            .gauge(MEM_TOTAL, Bytes::from_mib(1000))
            .gauge_steps(MEM_DIRTY, &dirty)
            .gauge(MEM_WRITEBACK, Bytes::ZERO)
            .gauge(NR_DIRTY_THRESHOLD, Pages::new(168 * 256))
            .gauge(NR_DIRTY_BACKGROUND_THRESHOLD, Pages::new(84 * 256))
            .counter_steps(PSI_IO_SOME, &three_times([700_000, 10_000, 700_000], 0))
            .counter(PSI_MEMORY_SOME, 0);
        assert_eq!(times(&found(RULE, &case)), [(0, 40), (200, 240)]);
    }

    #[test]
    fn waits_at_the_limit_of_a_cgroup_do_not_hide_writers() {
        let waiting = |available| {
            writing(168, 168)
                .gauge(MEM_AVAILABLE, Bytes::from_mib(available))
                .counter(PSI_IO_SOME, 700_000)
                .counter(PSI_MEMORY_SOME, 600_000)
        };
        found(RULE, &waiting(800));
        clear(RULE, &waiting(100));
    }

    #[test]
    fn writers_at_the_dirty_limit_are_found() {
        let mut dirtied = vec![0, 40_000];
        dirtied.resize(30, 5120);
        let case = waiting(writing(168, 168))
            .counter(NR_WRITTEN, 5120)
            .counter_steps(NR_DIRTIED, &dirtied)
            .fact(DIRTY_RATIO, "20")
            .fact(DIRTY_BACKGROUND_RATIO, "10")
            .fact(DIRTY_BYTES, "0");
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(finding.title.contains("the disk writes 20 MiB/s"), "{}", finding.title);
        assert!(finding.cause.contains("8.4 s"), "{}", finding.cause);
        assert!(
            finding.evidence.iter().any(|line| line.text.contains("156 MiB/s before the limit"))
        );
        let limits = [
            "vm.dirty_background_ratio=10 -> vm.dirty_background_bytes=20971520",
            "vm.dirty_ratio=20 -> vm.dirty_bytes=83886080",
        ];
        assert_eq!(changed(&finding.fixes[1]), limits);
    }

    #[test]
    fn a_busy_disk_counts_without_pressure_files() {
        let disk = |busy| {
            writing(168, 168).counter_of(Entity::Disk, "sda", DISK_IO_TIME, busy).counter_of(
                Entity::Disk,
                "sda",
                DISK_WRITE_BYTES,
                20_000_000,
            )
        };
        assert_eq!(found(RULE, &disk(990)).confidence.word(), "confirmed");
        clear(RULE, &disk(100));
        assert_eq!(found(RULE, &writing(168, 168)).confidence.word(), "probable");
    }

    #[test]
    fn clear_below_the_limit_or_without_stalls() {
        clear(RULE, &waiting(writing(100, 168)));
        clear(RULE, &writing(168, 168).counter(PSI_IO_SOME, 20_000));
    }

    #[test]
    fn clear_when_writeback_is_swap_out() {
        clear(RULE, &waiting(writing(168, 168)).counter(PSWPOUT, 5000));
    }

    #[test]
    fn clear_when_the_limit_is_low_because_memory_is_used_up() {
        clear(RULE, &waiting(writing(9, 8)));
        // In bytes, the same small limit is a setting.
        found(RULE, &waiting(writing(9, 8)).fact(DIRTY_BYTES, "8388608"));
    }

    #[test]
    fn clear_when_tasks_wait_for_memory() {
        let case =
            writing(168, 168).counter(PSI_IO_SOME, 700_000).counter(PSI_MEMORY_SOME, 600_000);
        clear(RULE, &case);
    }

    #[test]
    fn not_evaluated_without_the_thresholds() {
        let case = Case::over(30)
            .gauge(MEM_DIRTY, Bytes::from_mib(9))
            .gauge(MEM_WRITEBACK, Bytes::from_mib(9));
        assert_eq!(not_evaluated(RULE, &case).names, ["vm.nr_dirty_threshold"]);
        assert_eq!(not_evaluated(RULE, &Case::once()).names, ["mem.dirty"]);
    }

    #[test]
    fn not_evaluated_in_a_single_sample() {
        let look = |dirty| {
            Case::once()
                .gauge(MEM_DIRTY, Bytes::from_mib(dirty))
                .gauge(MEM_WRITEBACK, Bytes::from_mib(0))
                .gauge(NR_DIRTY_THRESHOLD, Pages::new(40_000))
                .gauge(NR_DIRTY_BACKGROUND_THRESHOLD, Pages::new(20_000))
        };
        assert_eq!(not_evaluated(RULE, &look(150)).need, Need::TwoSamples);
        clear(RULE, &look(10));
    }

    /// An hour of `calm` values with 30 s of `value`.
    fn within_an_hour<T: Copy>(value: T, calm: T) -> Vec<T> {
        let mut all = vec![calm; 3600];
        all[1800..1830].fill(value);
        all
    }

    #[test]
    fn finds_30_s_within_an_hour_with_the_same_severity() {
        let hour = |waits: u64| {
            let dirty = within_an_hour(Bytes::from_mib(168), Bytes::from_mib(1));
            Case::over(3600)
                .gauge(MEM_TOTAL, Bytes::from_mib(1000))
                .gauge_steps(MEM_DIRTY, &dirty)
                .gauge(MEM_WRITEBACK, Bytes::ZERO)
                .gauge(NR_DIRTY_THRESHOLD, Pages::new(168 * 256))
                .gauge(NR_DIRTY_BACKGROUND_THRESHOLD, Pages::new(84 * 256))
                .counter_steps(PSI_IO_SOME, &within_an_hour(700_000, 0))
                .counter_steps(PSI_MEMORY_SOME, &within_an_hour(waits, 0))
        };
        let finding = found(RULE, &hour(0));
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.title.contains("for 29 s"), "{}", finding.title);
        // Reclaim that waits for its own writeback is not dirty throttling.
        clear(RULE, &hour(600_000));
    }
}
