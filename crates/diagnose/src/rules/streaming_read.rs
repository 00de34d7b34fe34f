//! Files are read once each: much disk traffic, no shortage.

use timeline::host_counter_rises;
use timeline::signals::{DROP_PAGECACHE, PGPGIN, PSWPIN, REFAULT_FILE};

use crate::measures::quiet::Quiet;
use crate::measures::readings::refaults_file;
use crate::prelude::*;

declare_rule! {
    /// Much is read from disk, but hardly anything twice: a stream, not a page cache that is too small.
    ///
    /// ## What it means
    /// A backup, a copy or a scan reads each file once. The disk is busy, free memory falls to its floor and kswapd
    /// works, only because the page cache fills with pages that are evicted unused. More memory would change nothing;
    /// the first read of a file must come from the disk.
    /// ## How it is recognised
    /// At least {READS} are read from block devices without swap, for {LEVEL} or longer, {IN_ALL} of RAM in all, and
    /// refaults are fewer than {Quiet::REFAULTS} and less than {HARDLY_TWICE} of the reads. No task waits for memory at
    /// that time.
    /// ## Not this
    /// - `page-cache-thrash`: a third or more of the reads had been in memory before.
    /// - Direct I/O (databases with their own buffers): it counts as reading too, and bypasses the page cache.
    /// - `caches-dropped`: what was dropped by hand is read again without a refault.
    /// ## What to do
    /// Usually nothing. If the stream evicts pages of other programs, run it with a limit of its own (`systemd-run -p
    /// MemoryHigh=`) or let it drop what it has read (POSIX_FADV_DONTNEED). Verify: refaults of the other programs stay
    /// at 0.
    /// ## References
    /// - kernel mm/workingset.c: what counts as a refault
    /// - posix_fadvise(2)
    pub(crate) RULE = {
        id: "streaming-read", since: "0.1.0", class: Note,
        numbers: [READS, LEVEL, IN_ALL, Quiet::REFAULTS, HARDLY_TWICE],
        trigger: trigger, story: story,
        cause: "A program reads each file once (backup, copy, scan), or bypasses the page cache \
                (direct I/O).",
        verify: "memtide check while it runs: refaults stay near 0",
    }
}

/// A tenth of an old disk's speed; a labelled stream reads 60 MiB/s, healthy hosts below 0.1 MiB/s outside of streams.
const READS: BytesPerSecond = BytesPerSecond::from_mib(10.0);
/// Smaller reads do not fill the cache.
const IN_ALL: Ratio = Ratio::from_percent(10.0);
/// Refaults as a share of reads. Labelled streams show 0; page-cache-thrash starts at a third, and values between are
/// neither.
const HARDLY_TWICE: Ratio = Ratio::from_percent(5.0);

fn trigger() -> Trigger {
    let refaults = refaults_file();
    Trigger::on_host(
        LEVEL,
        all![
            read_from_disks().at_least("read from disks", READS),
            refaults.clone().at_most("file refaults", Quiet::REFAULTS),
            refaults
                .bytes()
                .at_most("file refaults, of all reads", read_from_disks().share(HARDLY_TWICE)),
        ],
    )
}

/// Swap-ins are block reads too.
fn read_from_disks() -> Reading<BytesPerSecond> {
    let read = rate(PGPGIN);
    read.clone().minus(rate(PSWPIN).bytes()).or(read)
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let read = read_from_disks().track(cx)?;
    let rate = cx.mean_in(stretch, PGPGIN, &read)?;
    let in_all = Bytes::from_f64(read.integral_in(stretch));
    let ram = cx.ram().ok();
    if ram.is_some_and(|ram| in_all < ram.share(IN_ALL)) {
        return clear!("only {in_all} was read in all");
    }
    if is_dropped(cx, stretch) {
        return clear!(
            "{rate} was read, but page cache was dropped by hand or by a job: what is read again \
             after that counts as no refault"
        );
    }
    let calm = match Quiet::during(cx, stretch) {
        Ok(calm) => calm,
        Err(why) => return clear!("{rate} was read, but {why}"),
    };
    let refaulted =
        cx.mean_in(stretch, REFAULT_FILE, &cx.refaults_file()?)?.to_bytes(cx.page_size()?);
    let of_ram = ram
        .and_then(|ram| in_all.ratio_of(ram))
        .map_or_else(String::new, |share| format!(", {share} of RAM"));
    let title = format!(
        "{in_all} was read in {} ({rate}{of_ram}), hardly anything twice: a stream, which more \
         memory would not speed up.",
        stretch.duration()
    );
    let most = BytesPerSecond::new(rate.get() * HARDLY_TWICE.get());
    Ok(RULE
        .found(Severity::Info, title)
        .graph("read", &read)
        .shows_from(
            PGPGIN,
            rate,
            READS,
            None,
            format!("{rate} read from block devices, without swap"),
        )
        .counts_as("disk reads")
        .shows_below(
            REFAULT_FILE,
            refaulted,
            most,
            None,
            format!("{refaulted} of it had been in memory before (refaults)"),
        )
        .counts_as_all(calm.kinds())
        .not("page-cache-thrash", "evicted pages were not needed again")
        .fix(Fix::say(
            "Usually nothing. If the stream evicts pages of other programs, give it a limit of its \
             own: systemd-run --scope -p MemoryHigh=512M COMMAND, or MemoryHigh=512M in its unit \
             file.",
        ))
        .sure_by_kinds(cx, "")
        .into())
}

/// Whether page cache was dropped in this time, or not long before.
fn is_dropped(cx: &Evidence<'_>, stretch: &Stretch) -> bool {
    /// Programs come back to their files at any time; an engineering choice.
    const BEFORE: Span = Span::from_secs(60);
    let since = cx.timeline.times().partition_point(|time| time.plus(BEFORE) < stretch.from);
    let rises = host_counter_rises(cx.timeline, DROP_PAGECACHE.id());
    rises.iter().any(|rise| rise.to > since && rise.from <= stretch.last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, amid_calm, clear, found, not_evaluated, three_times, times};
    use timeline::signals::{MEM_TOTAL, PSI_MEMORY_SOME};

    fn reading(mib_per_second: u64, pages_again: u64) -> Case {
        Case::over(20)
            .gauge(MEM_TOTAL, Bytes::from_mib(1000))
            .counter(PGPGIN, mib_per_second << 20)
            .counter(REFAULT_FILE, pages_again)
    }

    #[test]
    fn clear_where_the_cache_was_dropped() {
        let dropped = |second| {
            let drops = crate::rules::testing::in_second(second, 20, 1);
            reading(60, 0).counter_steps(DROP_PAGECACHE, &drops)
        };
        assert!(clear(RULE, &dropped(8)).contains("dropped"));
        found(RULE, &reading(60, 0).counter_at(DROP_PAGECACHE, 7));
    }

    #[test]
    fn a_file_read_once_is_found() {
        let finding = found(RULE, &reading(60, 0));
        assert_eq!(finding.severity, Severity::Info);
        assert!(finding.title.starts_with("1.2 GiB was read in 20 s"), "{}", finding.title);
    }

    #[test]
    fn each_stream_is_an_occurrence() {
        let case = Case::over(240)
            .gauge(MEM_TOTAL, Bytes::from_mib(1000))
            .counter_steps(PGPGIN, &three_times([60 << 20; 3], 0))
            .counter(REFAULT_FILE, 0);
        assert_eq!(times(&found(RULE, &case)), [(0, 40), (100, 140), (200, 240)]);
    }

    #[test]
    fn finds_a_stream_within_an_hour_but_not_refaults() {
        let in_an_hour = |pages_again| {
            Case::over(3600)
                .gauge(MEM_TOTAL, Bytes::from_mib(1000))
                .counter_steps(PGPGIN, &amid_calm(60 << 20, 0))
                .counter_steps(REFAULT_FILE, &amid_calm(pages_again, 0))
        };
        assert_eq!(times(&found(RULE, &in_an_hour(0))), [(1800, 1830)]);
        clear(RULE, &in_an_hour(5_000));
    }

    #[test]
    fn clear_on_refaults() {
        clear(RULE, &reading(60, 5_000));
        clear(RULE, &reading(60, 150));
    }

    #[test]
    fn clear_on_stalls_or_swap_in() {
        clear(RULE, &reading(60, 0).counter(PSI_MEMORY_SOME, 200_000));
        clear(RULE, &reading(12, 0).counter(PSWPIN, 2_500));
    }

    #[test]
    fn clear_on_little_or_short_reading() {
        clear(RULE, &reading(1, 0));
        let mut burst = vec![0; 20];
        burst[3..5].fill(60 << 20);
        clear(RULE, &reading(0, 0).counter_steps(PGPGIN, &burst));
    }

    #[test]
    fn not_evaluated_without_refaults() {
        let case = Case::over(20).counter(PGPGIN, 60 << 20);
        assert_eq!(not_evaluated(RULE, &case).names, ["vm.workingset_refault_file"]);
    }
}
