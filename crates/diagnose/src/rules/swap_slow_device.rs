//! Pages are swapped in from a device that is slow.

use timeline::signals::{
    DISK_IO_TIME, DISK_READ_BYTES, DISK_READ_TIME, DISK_READS, PSI_MEMORY_SOME, PSWPIN,
    REFAULT_ANON, SWAP_AREA_SIZE,
};
use units::Millis;

use crate::measures::disks::{self, DiskLoad};
use crate::measures::readings::{ANON_REFAULTS_MIN, STALL_NOTICED_SHARE};
use crate::prelude::*;
use crate::remedy::zram_swap;
use crate::trigger::computed_of;

declare_rule! {
    /// Swap lies on a slow device: each page that is needed back keeps a task waiting for long.
    ///
    /// ## What it means
    /// A little swap traffic is normal and cheap on a fast SSD or in zram: 0.1 ms a page. On a rotating disk, a network
    /// volume, a throttled cloud disk or one that is busy with other work, each read takes 20 ms and more, and the same
    /// few pages per second are felt by everybody.
    /// ## How it is recognised
    /// For {STALL} or longer, {SWAP_IN_PAGES_MIN} or more are swapped in, a read of the disk that holds swap takes
    /// {READ_TAKES} or more on average, at least half of what it reads can be swap, and tasks wait for memory
    /// {STALL_NOTICED_SHARE} of the time or more. It is informational where swap thrashes at the same time
    /// ({ANON_REFAULTS_MIN} of anonymous refaults and {THRASHES} or more swapped in): then the shortage is what
    /// matters.
    /// ## Not this
    /// - `swap-thrash`: so much is swapped that a fast device would not save the host.
    /// - Swap in a file: which disk it lies on is not known here.
    /// - `page-cache-thrash`: the same disk is busy with files.
    /// - zram: it is no disk.
    /// ## What to do
    /// Put swap on a fast device, or a zram before it (`swapon -p 100`), so that the slow one only gets what is cold.
    /// `swapoff` of the slow device is safe only while more memory is available than it holds. Verify: a read of the
    /// swap device takes less than {READ_TAKES_GOAL}, and tasks wait for memory less than {PressureWindow::CALM} of the
    /// time.
    /// ## References
    /// - swapon(8), swapon(2): priorities
    /// - kernel Documentation/admin-guide/blockdev/zram.rst
    pub(crate) RULE = {
        id: "swap-slow-device", since: "0.1.0", class: Setting,
        numbers: [STALL, SWAP_IN_PAGES_MIN, READ_TAKES, STALL_NOTICED_SHARE, ANON_REFAULTS_MIN, THRASHES,
            READ_TAKES_GOAL, PressureWindow::CALM],
        trigger: trigger, waits: MemoryOrDisk, story: story,
        cause: "The device that holds swap needs long for each read, because it is slow or busy \
                with other work.",
        verify: "iostat -x 5: r_await of the swap device below {READ_TAKES_GOAL} under the same \
                 load",
    }
}

/// 0.4 MiB/s. An engineering choice: at 20 ms each, 100 reads are two seconds of waiting in each second.
const SWAP_IN_PAGES_MIN: PerSecond<Pages> = PerSecond::new(100.0);
/// Two seeks of a rotating disk; an SSD needs 0.1 to 1 ms. An engineering choice.
const READ_TAKES: Millis = Millis::new(20);
/// What a fix must reach: an SSD that is busy with other work. An engineering choice.
const READ_TAKES_GOAL: Millis = Millis::new(5);
/// With more other reads on the disk than swap can explain, files are what it is busy with: an engineering choice.
const OTHER_READS_MAX: f64 = 2.0;
/// From here on swap thrashes: the threshold of swap-thrash.
const THRASHES: BytesPerSecond = BytesPerSecond::from_mib(1.0);

fn trigger() -> Trigger {
    let takes: Reading<Millis> = computed_of("mean time of a read", |cx, disk| {
        disks::time_of_each(cx, disk, (DISK_READ_TIME, DISK_READS))
    });
    Trigger::on(
        Subjects::Each(Entity::Disk, holds_swap),
        STALL,
        all![
            rate(PSWPIN).at_least("swapped in", SWAP_IN_PAGES_MIN),
            takes.at_least("mean time of a read", READ_TAKES),
            rate(DISK_READ_BYTES).at_most_of(
                &rate(PSWPIN).bytes(),
                "read from the disk, of what is swapped in",
                OTHER_READS_MAX,
            ),
            stall(PSI_MEMORY_SOME).at_least("memory stalls", STALL_NOTICED_SHARE),
        ],
    )
}

/// Whether a swap area lies on the disk or on a partition of it.
fn holds_swap(cx: &Evidence<'_>, disk: &EntitySeries) -> bool {
    let mut areas = cx.timeline.entities(Entity::SwapArea);
    areas.any(|area| lies_on(&area.key, &disk.key))
}

/// `/dev/sda2` lies on `sda`, `/dev/nvme0n1p3` on `nvme0n1` (`block/partitions/core.c`).
fn lies_on(area: &str, disk: &str) -> bool {
    let device = area.strip_prefix("/dev/").unwrap_or_default();
    let Some(rest) = device.strip_prefix(disk).filter(|_| !disk.is_empty()) else {
        return false;
    };
    let ends_in_digit = disk.ends_with(|c: char| c.is_ascii_digit());
    let number = if ends_in_digit { rest.strip_prefix('p').unwrap_or(rest) } else { rest };
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    rest.is_empty() || is_number && (!ends_in_digit || rest.starts_with('p'))
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let (disk, stretch) = (incident.entity()?, &incident.stretch);
    let name = &disk.key;
    let swapped_in = cx.rate(PSWPIN)?;
    let rate = cx.mean_in(stretch, PSWPIN, &swapped_in)?;
    let load = DiskLoad::during(cx, disk, stretch);
    let lacks = || Missing::same_time(DISK_IO_TIME.def());
    let load = load.ok_or_else(lacks)?;
    let takes = load.read_takes.ok_or_else(lacks)?;
    if takes < READ_TAKES {
        return clear!("a read of {name} took {takes} on average");
    }
    let bytes = rate.to_bytes(cx.page_size()?);
    let refaults = cx.mean_rate(REFAULT_ANON, stretch);
    let thrashes =
        bytes >= THRASHES && refaults.is_none_or(|refaults| refaults >= ANON_REFAULTS_MIN);
    let stalls = PressureWindow::during(cx, stretch);
    let title = Title::from(format!(
        "Swap lies on {name}, where a read takes {takes}: {rate} swapped in for {}.",
        stretch.duration()
    ))
    .then(stalls.sentence());
    let areas = cx.timeline.entities(Entity::SwapArea);
    let size: Bytes = areas
        .filter(|area| lies_on(&area.key, name))
        .filter_map(|area| cx.timeline.last_of(area, SWAP_AREA_SIZE))
        .sum();
    Ok(RULE
        .found(Severity::warning_if(!thrashes), title)
        .graph("swapped in", &swapped_in)
        .shows_from(
            Computed(DISK_READ_TIME),
            takes,
            READ_TAKES,
            None,
            format!("a read of {name} took {takes} on average"),
        )
        .counts_as("the device's reads")
        .shows_from(PSWPIN, rate, SWAP_IN_PAGES_MIN, None, format!("{rate} swapped in"))
        .shows(DISK_IO_TIME, load.busy, None, format!("{name} was busy {} of the time", load.busy))
        .shows_stalls(&stalls)
        .when(!thrashes, |finding| {
            finding.not("swap-thrash", "few pages are swapped in, and each takes long")
        })
        .fix(zram(cx))
        .fix(
            Fix::say(format!(
                "Or move swap to a fast device, and take {name} out of use with swapoff once more \
                 memory is available than it holds ({size} at most)."
            ))
            .inspect("swapon --show\nlsblk -d --topology"),
        )
        .affects([load.affected()])
        .sure_by_kinds(cx, "")
        .into())
}

/// Compressed swap in RAM, filled before the slow device.
fn zram(cx: &Evidence<'_>) -> Fix {
    let what = "Put compressed swap in RAM (zram) before it, so that the slow device only gets \
                what does not fit there.";
    let Ok(ram) = cx.ram() else {
        return Fix::say(what);
    };
    let has_zram = cx.timeline.entities(Entity::Zram).next().is_some();
    if has_zram {
        return Fix::say(
            "Give the zram that is there a higher priority than the slow device (swapon -p 100), \
             or a larger size.",
        )
        .inspect("swapon --show; zramctl");
    }
    Fix::say(what).command(zram_swap(ram, "swap-priority = 100\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, amid_calm, changed, clear, found, not_evaluated, times};
    use timeline::signals::{DISK_WRITE_BYTES, DISK_WRITE_TIME, DISK_WRITES, MEM_TOTAL};

    /// `pages` a second come from swap on `/dev/sda2`; each read takes `ms`.
    fn swapping(case: Case, pages: u64, ms: u64) -> Case {
        case.gauge(MEM_TOTAL, Bytes::from_gib(4))
            .gauge_of(Entity::SwapArea, "/dev/sda2", SWAP_AREA_SIZE, Bytes::from_gib(2))
            .counter_of(Entity::Disk, "sda", DISK_READ_BYTES, pages * 4096)
            .counter_of(Entity::Disk, "sda", DISK_READS, 40)
            .counter_of(Entity::Disk, "sda", DISK_READ_TIME, 40 * ms)
            .counter_of(Entity::Disk, "sda", DISK_IO_TIME, 950)
            .counter_of(Entity::Disk, "sda", DISK_WRITE_BYTES, 0)
            .counter_of(Entity::Disk, "sda", DISK_WRITES, 0)
            .counter_of(Entity::Disk, "sda", DISK_WRITE_TIME, 0)
    }

    fn waiting(pages: u64, ms: u64, waits: u64) -> Case {
        swapping(Case::over(30), pages, ms)
            .counter(PSWPIN, pages)
            .counter(REFAULT_ANON, pages)
            .counter(PSI_MEMORY_SOME, waits)
    }

    #[test]
    fn a_little_swap_on_a_slow_disk_is_a_warning() {
        let finding = found(RULE, &waiting(180, 35, 400_000));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(finding.title.contains("a read takes 35 ms"), "{}", finding.title);
        assert!(changed(&finding.fixes[0])[0].contains("--size 2048M"));
    }

    #[test]
    fn informational_while_swap_thrashes() {
        let finding = found(RULE, &waiting(2_500, 35, 700_000));
        assert_eq!(finding.severity, Severity::Info);
    }

    #[test]
    fn clear_on_a_fast_device_or_without_waits() {
        clear(RULE, &waiting(180, 1, 400_000));
        clear(RULE, &waiting(180, 35, 20_000));
        clear(RULE, &waiting(20, 35, 400_000));
    }

    #[test]
    fn clear_where_the_disk_reads_files() {
        let case = waiting(180, 35, 400_000);
        clear(RULE, &case.counter_of(Entity::Disk, "sda", DISK_READ_BYTES, 40 << 20));
    }

    #[test]
    fn clear_where_swap_is_zram_or_a_file() {
        let elsewhere = |area| {
            let mut case =
                Case::over(30).gauge_of(Entity::SwapArea, area, SWAP_AREA_SIZE, Bytes::from_gib(2));
            for (signal, step) in [(DISK_READS, 40), (DISK_WRITES, 0)] {
                case = case.counter_of(Entity::Disk, "sda", signal, step);
            }
            case.counter_of(Entity::Disk, "sda", DISK_READ_TIME, 1_600)
                .counter(PSWPIN, 180)
                .counter(PSI_MEMORY_SOME, 400_000)
        };
        clear(RULE, &elsewhere("/dev/zram0"));
        clear(RULE, &elsewhere("/swapfile"));
    }

    #[test]
    fn an_area_lies_on_its_disk_and_on_no_other() {
        for (area, disk, expected) in [
            ("/dev/sda2", "sda", true),
            ("/dev/vdb", "vdb", true),
            ("/dev/nvme0n1p3", "nvme0n1", true),
            ("/dev/dm-1", "dm-1", true),
            ("/dev/dm-12", "dm-1", false),
            ("/dev/sdab", "sda", false),
            ("/dev/zram0", "sda", false),
            ("/swapfile", "sda", false),
            ("/dev/sda2", "", false),
        ] {
            assert_eq!(lies_on(area, disk), expected, "{area} on {disk}");
        }
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let hour = |waits| {
            swapping(Case::over(3600), 180, 35)
                .counter(PSWPIN, 180)
                .counter_steps(PSI_MEMORY_SOME, &amid_calm(waits, 0))
        };
        assert_eq!(times(&found(RULE, &hour(400_000))), [(1800, 1830)]);
        clear(RULE, &hour(50_000));
    }

    #[test]
    fn not_evaluated_without_pressure_files_or_disks() {
        let case = swapping(Case::over(30), 180, 35).counter(PSWPIN, 180);
        assert_eq!(not_evaluated(RULE, &case).names, ["psi.memory.some"]);
        let none = Case::over(30).counter(PSWPIN, 180);
        assert_eq!(not_evaluated(RULE, &none).names, ["disk.read_bytes"]);
    }
}
