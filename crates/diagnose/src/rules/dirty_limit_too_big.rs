//! The dirty limit allows more unwritten data than the disk can write in half a minute.

use timeline::settings::DIRTY_EXPIRE_DEFAULT;
use timeline::signals::{
    DIRTY_AND_WRITEBACK, DISK_IO_TIME, NR_DIRTY_BACKGROUND_THRESHOLD, NR_DIRTY_THRESHOLD,
    NR_WRITTEN, PSI_IO_SOME, PSWPOUT,
};

use crate::measures::disks::{self, DiskLoad};
use crate::measures::readings::{STALL_NOTICED_SHARE, SWAP_OUT_NOTABLE};
use crate::measures::writeback::{dirty_limit, unwritten};
use crate::prelude::*;
use crate::rule::DIRTY_LIMITS;

declare_rule! {
    /// The dirty limit holds more than the disk can write in {TO_WRITE_MAX}: a sync, an unmount or a crash then costs that much.
    ///
    /// ## What it means
    /// The limit of dirty (unwritten) data is a share of memory, by default 20 %, however slow the disk is. On a host
    /// with much memory and a slow disk it is minutes of writing. Whoever then calls sync or fsync on that disk,
    /// unmounts it or shuts down waits for all of it, reads queue behind it, and a power cut loses it.
    /// ## How it is recognised
    /// For {LEVEL} or longer, dirty pages plus pages under writeback are at half of the limit or more and above the
    /// level at which the kernel writes as fast as it can, a disk is busy {DISK_BUSY} of the time or more, and at that
    /// speed the disk needs {TO_WRITE_MAX} or longer for all that the limit allows. It is a warning if tasks
    /// wait for disks {STALL_NOTICED_SHARE} of the time or more at that time, otherwise informational.
    /// ## Not this
    /// - `dirty-throttle`: writers wait because the limit is reached, however large it is.
    /// - Little data at the end of a copy: half of the limit is never reached.
    /// - A disk that is not asked to write more: it is not busy, and its speed is unknown.
    /// ## What to do
    /// Set limits that follow from the disk: start writing at one second's worth, throttle at four. Now: `sysctl -w
    /// vm.dirty_background_bytes=… vm.dirty_bytes=…`; for good the same in a file under `/etc/sysctl.d/`. For one slow
    /// device (a USB stick): `max_ratio` in `/sys/class/bdi/`. Verify: `time sync` during the same writes takes
    /// seconds.
    /// ## References
    /// - kernel Documentation/admin-guide/sysctl/vm.rst, dirty_bytes
    /// - kernel Documentation/ABI/testing/sysfs-class-bdi
    pub(crate) RULE = {
        id: "dirty-limit-too-big", since: "0.1.0", class: Setting,
        numbers: [TO_WRITE_MAX, LEVEL, DISK_BUSY, STALL_NOTICED_SHARE, SYNC_GOAL],
        trigger: trigger, waits: MemoryOrDisk, story: story,
        cause: "The limit is a share of memory and does not know how slow the disk is.",
        verify: "time sync, during the same writes, takes less than {SYNC_GOAL}",
        explained_by: DIRTY_LIMITS,
    }
}

/// The default age at which dirty data must be written: data would be written later than the kernel promises.
const TO_WRITE_MAX: Span = DIRTY_EXPIRE_DEFAULT;
/// What a fix must reach: the limits that the finding advises hold four seconds of writing. An engineering choice.
const SYNC_GOAL: Span = Span::from_secs(10);
/// From about this share on, the kernel writes as fast as it can: the default background limit is half of the limit.
const REACHED: Ratio = Ratio::from_percent(50.0);
/// A disk that is busy for less has speed left; an engineering choice. Labelled captures, November 2026: 99 % while
/// throttled, 10 % on calm ones.
const DISK_BUSY: Ratio = Ratio::from_percent(70.0);
/// Limits below this make writers wait for every request.
const LIMIT_MIN: Bytes = Bytes::from_mib(16);

fn trigger() -> Trigger {
    let background = gauge(NR_DIRTY_BACKGROUND_THRESHOLD).bytes();
    let is_busy =
        computed("busiest disk", disks::busiest).at_least("busy time of the disk", DISK_BUSY);
    Trigger::on_host(
        LEVEL,
        all![
            unwritten().at_least("dirty pages and writeback", dirty_limit().share(REACHED)),
            unwritten().at_least("dirty pages and writeback", background),
            rate(NR_WRITTEN).bytes().at_most_of(
                &dirty_limit(),
                "written per second",
                1.0 / TO_WRITE_MAX.as_secs_f64(),
            ),
            is_busy,
            // Swap-out counts as writeback and as written.
            rate(PSWPOUT).at_most("swapped out", SWAP_OUT_NOTABLE).if_measured(),
        ],
    )
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let unwritten = unwritten().track(cx)?;
    let Some((most, at)) = unwritten.max_in(stretch) else {
        return clear!("dirty pages were not measured");
    };
    let limit = cx.mean_in(stretch, NR_DIRTY_THRESHOLD, &dirty_limit().track(cx)?)?;
    let speed = cx.mean_in(stretch, NR_WRITTEN, &cx.bytes_rate(NR_WRITTEN)?)?;
    if speed.get() < 1.0 {
        return clear!("{most} was dirty, but nothing was written");
    }
    let takes = |size: Bytes| Span::from_secs_f64((size.as_f64() / speed.get()).round());
    let longest = takes(limit);
    if longest < TO_WRITE_MAX {
        return clear!("at {speed} the dirty limit of {limit} is written in {longest}");
    }
    let disk = DiskLoad::of_busiest(cx, stretch);
    let stalled = cx.stall(PSI_IO_SOME).ok();
    let waited = stalled.and_then(|stalled| pressure::worst(&stalled, stretch));
    let is_noticed = waited.is_some_and(|waited| waited >= STALL_NOTICED_SHARE);
    let title = format!(
        "The dirty limit of {limit} is {longest} of writing at the {speed} that the disk does; \
         {most} was unwritten, and a sync then takes {}.",
        takes(most)
    );
    let finding = RULE
        .found(Severity::warning_if(is_noticed), title)
        .graph("dirty and under writeback", &unwritten)
        .shows_from(
            DIRTY_AND_WRITEBACK,
            most,
            limit.share(REACHED),
            cx.time(at),
            format!("{most} dirty or under writeback, of a limit of {limit}"),
        )
        .counts_as("unwritten data")
        .shows_below(
            NR_WRITTEN,
            speed,
            BytesPerSecond::new(limit.as_f64() / TO_WRITE_MAX.as_secs_f64()),
            None,
            format!("{speed} written: the limit is {longest} of it"),
        )
        .with(disk, |finding, disk| {
            let text =
                format!("{} was busy {} of the time: this is its speed", disk.name, disk.busy);
            finding
                .shows_from(DISK_IO_TIME, disk.busy, DISK_BUSY, None, text)
                .counts_as("the disk's speed")
                .affects([disk.affected()])
        })
        .with(waited.filter(|_| is_noticed), |finding, waited| {
            let text = format!("tasks waited for disks {waited} of the time");
            finding
                .shows_from(PSI_IO_SOME, waited, STALL_NOTICED_SHARE, None, text)
                .counts_as("I/O stalls")
        });
    let load = WriteLoad { speed, limit, unwritten: most };
    Ok(remedy(cx, finding, &load)
        .when(cx.rate(PSWPOUT).is_ok(), |finding| {
            finding.not("swap-thrash", "hardly a page was swapped out")
        })
        .sure_by_kinds(cx, "")
        .into())
}

struct WriteLoad {
    speed: BytesPerSecond,
    limit: Bytes,
    /// The most that was unwritten.
    unwritten: Bytes,
}

fn remedy(cx: &Evidence<'_>, finding: Finding, load: &WriteLoad) -> Finding {
    let speed = load.speed.get();
    let seconds = |n: f64| {
        let mib = Bytes::from_mib(1).as_f64();
        let whole = (speed * n / mib).ceil() * mib;
        Bytes::from_f64(whole).max(LIMIT_MIN)
    };
    let background = seconds(1.0);
    let most = seconds(4.0).max(background + background);
    if most >= load.limit {
        return finding.fix(Fix::say("The limit is small already; only a faster disk helps."));
    }
    let backlog = load.unwritten.saturating_sub(most).as_f64() / speed;
    let waits = Span::from_secs_f64(backlog.round());
    let what = format!(
        "Let the limits follow from the disk: start writing at one second's worth, throttle \
         writers at four. At first writers wait until what is unwritten is down to that: up to \
         {waits}. Remove vm.dirty_ratio and vm.dirty_background_ratio from /etc/sysctl.conf and \
         /etc/sysctl.d/."
    );
    finding.fix(Fix::dirty_limits(cx, what, background, Some(most))).fix(
        Fix::say(
            "If only one device is slow (a USB stick, a network mount), limit its share \
                 instead: max_ratio of its entry in /sys/class/bdi.",
        )
        .inspect("grep -H . /sys/class/bdi/*/max_ratio\nlsblk --fs"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, amid_calm, changed, clear, found, not_evaluated, times};
    use timeline::signals::{DISK_READ_BYTES, DISK_WRITE_BYTES, MEM_DIRTY, MEM_WRITEBACK};

    /// A host with a dirty limit of 4,096 MiB and `dirty` MiB unwritten, on a disk of `speed` MiB/s.
    fn writing(dirty: u64, speed: u64) -> Case {
        host(Case::over(30), 950)
            .gauge(MEM_DIRTY, Bytes::from_mib(dirty))
            .counter(NR_WRITTEN, speed * 256)
    }

    fn host(case: Case, busy: u64) -> Case {
        case.gauge(MEM_WRITEBACK, Bytes::from_mib(8))
            .gauge(NR_DIRTY_THRESHOLD, Pages::new(4096 * 256))
            .gauge(NR_DIRTY_BACKGROUND_THRESHOLD, Pages::new(2048 * 256))
            .counter_of(Entity::Disk, "sda", DISK_IO_TIME, busy)
            .counter_of(Entity::Disk, "sda", DISK_READ_BYTES, 0)
            .counter_of(Entity::Disk, "sda", DISK_WRITE_BYTES, 20 << 20)
    }

    #[test]
    fn minutes_of_unwritten_data_are_found() {
        let finding = found(RULE, &writing(3000, 20));
        assert_eq!(finding.severity, Severity::Info);
        assert!(finding.title.contains("limit of 4 GiB is 3.4 min"), "{}", finding.title);
        let limits = ["? -> vm.dirty_background_bytes=20971520", "? -> vm.dirty_bytes=83886080"];
        assert_eq!(changed(&finding.fixes[0]), limits);
    }

    #[test]
    fn a_warning_when_tasks_wait_for_disks() {
        let case = writing(3000, 20).counter(PSI_IO_SOME, 400_000);
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.confidence.word(), "confirmed");
    }

    #[test]
    fn clear_on_a_disk_that_writes_all_of_it_in_30_s() {
        clear(RULE, &writing(3000, 200));
    }

    #[test]
    fn clear_below_half_of_the_limit() {
        clear(RULE, &writing(1000, 20));
    }

    #[test]
    fn clear_when_the_speed_of_the_disk_is_unknown() {
        let idle = host(Case::over(30), 100)
            .gauge(MEM_DIRTY, Bytes::from_mib(3000))
            .counter(NR_WRITTEN, 256);
        clear(RULE, &idle);
        clear(RULE, &writing(3000, 0));
    }

    #[test]
    fn clear_when_writeback_is_swap_out() {
        clear(RULE, &writing(3000, 20).counter(PSWPOUT, 5_000));
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let hour = |dirty| {
            let dirty = amid_calm(Bytes::from_mib(dirty), Bytes::from_mib(3));
            host(Case::over(3600), 950).gauge_steps(MEM_DIRTY, &dirty).counter(NR_WRITTEN, 20 * 256)
        };
        assert_eq!(times(&found(RULE, &hour(3000))), [(1799, 1829)]);
        clear(RULE, &hour(500));
    }

    #[test]
    fn not_evaluated_without_thresholds_or_disks() {
        let case = Case::over(30).gauge(MEM_DIRTY, Bytes::from_mib(3000));
        assert_eq!(not_evaluated(RULE, &case).names, ["vm.nr_dirty_threshold"]);
        let case = case
            .gauge(NR_DIRTY_THRESHOLD, Pages::new(4096 * 256))
            .gauge(NR_DIRTY_BACKGROUND_THRESHOLD, Pages::new(2048 * 256))
            .counter(NR_WRITTEN, 2560);
        assert_eq!(not_evaluated(RULE, &case).names, ["disk.io_time"]);
    }
}
