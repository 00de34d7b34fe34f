//! Files are read once each: much disk traffic, no shortage.

use timeline::signals::{PGPGIN, PSWPIN, REFAULT_FILE};
use timeline::{Stretch, Track};
use units::{Bytes, BytesPerSecond, Quantity, Ratio, Span};

use crate::calm::Calm;
use crate::evidence::Evidence;
use crate::finding::Severity;
use crate::fix::Fix;
use crate::missing::Missing;
use crate::rule::{Outcome, clear, declare_rule};

declare_rule! {
    /// Much is read from disk, but hardly anything twice: a stream, not a cache that is too small.
    ///
    /// ## What it means
    /// A backup, a copy or a scan reads each file once. The disk is busy, free memory falls to its floor and kswapd
    /// works, all because the page cache is filled with pages that are dropped again unused. More memory would change
    /// nothing; what is read for the first time must come from the disk.
    /// ## How it is recognised
    /// At least 10 MiB/s are read from block devices without swap, for a minute (a fifth of a shorter look), 10 % of RAM
    /// in all, and fewer than 100 pages a second and less than 5 % of what is read come back after eviction.
    /// ## Not this
    /// - `page-cache-thrash`: a third or more of what is read had been in memory before.
    /// - Direct I/O (databases with their own buffers): it counts as reading too, and bypasses the page cache.
    /// ## What to do
    /// Mostly nothing. If the stream drops others' pages, run it with a limit of its own (`systemd-run -p MemoryHigh=`)
    /// or let it drop what it has read (POSIX_FADV_DONTNEED). Verify: refaults stay at 0 for the others.
    /// ## References
    /// - kernel mm/workingset.c: what counts as a refault
    /// - posix_fadvise(2)
    pub(crate) RULE = { id: "streaming-read", since: "0.1.0", purpose: Note, check: check }
}

/// A tenth of an old disk's speed; a labelled stream reads 60 MiB/s, healthy hosts below 0.1 MiB/s outside of streams.
const READS: BytesPerSecond = BytesPerSecond::from_mib(10.0);
/// Less in all would not have filled anything.
const IN_ALL: Ratio = Ratio::from_percent(10.0);
/// Less of what is read than this was read before. Labelled streams show 0; page-cache-thrash starts at a third, and what
/// lies between is neither.
const HARDLY_TWICE: Ratio = Ratio::from_percent(5.0);
const HOLD: Span = Span::from_mins(1);

fn check(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    let page = cx.page_size()?;
    let read = cx.rate(PGPGIN)?;
    // Swap-ins are block reads too.
    let read = match cx.bytes_rate(PSWPIN) {
        Ok(swapped_in) => read.minus(&swapped_in),
        Err(_) => read,
    };
    let refaults = cx.refaults_file()?;
    let reading = read.at_least(READS);
    let Some((stretch, rate)) = cx.held(&reading, &read, HOLD) else {
        return match read.max() {
            Some((peak, _)) => clear!("at most {peak} was read, and not for long"),
            None => clear!("nothing was read"),
        };
    };
    let in_all = Bytes::from_f64(read.integral_in(&stretch));
    let ram = cx.ram().ok();
    if let Some(why) = not_a_stream(cx, &stretch, &read)? {
        return Ok(Outcome::Clear(why));
    }
    let calm = match Calm::during(cx, &stretch) {
        Ok(calm) => calm,
        Err(why) => return clear!("{rate} was read, but {why}"),
    };
    let pages_again = cx.mean_in(&stretch, REFAULT_FILE, &refaults)?;
    let again = pages_again.to_bytes(page);
    let held = cx.each_time(stretch, &reading, HOLD, |one| {
        not_a_stream(cx, one, &read) == Ok(None) && Calm::during(cx, one).is_ok()
    });

    let of_ram = ram
        .and_then(|ram| in_all.ratio_of(ram))
        .map_or_else(String::new, |share| format!(", {share} of RAM"));
    let finding = RULE
        .found(
            Severity::Info,
            format!(
                "{in_all} were read in {} ({rate}{of_ram}) and hardly anything twice: a stream, which more memory would not speed up.",
                stretch.lasts()
            ),
        )
        .during(held)
        .graph("read", &read)
        .shows_from(PGPGIN, rate, READS, None, format!("{rate} read from block devices, without swap"))
        .shows_below(
            REFAULT_FILE,
            again, BytesPerSecond::new(rate.get() * HARDLY_TWICE.get()),
            None,
            format!("{again} of it had been in memory before"),
        );
    let mut kinds = vec!["disk reads"];
    kinds.extend(calm.kinds());
    Ok(finding
        .not("page-cache-thrash", "what was dropped was not wanted again")
        .cause("A program reads each file once (backup, copy, scan), or reads past the page cache (direct I/O).")
        .fix(Fix::say("Mostly nothing. A stream that drops others' pages can get a limit of its own: systemd-run --scope -p MemoryHigh=512M before its command, or MemoryHigh=512M in its unit file."))
        .verify("memtide check while it runs: refaults stay near 0")
        .sure(cx.confidence(&kinds, ""))
        .see("kernel: mm/workingset.c")
        .into())
}

/// Why what was read is little, or was in memory before; `None` where it is neither.
fn not_a_stream(
    cx: &Evidence<'_>,
    stretch: &Stretch,
    read: &Track<BytesPerSecond>,
) -> Result<Option<String>, Missing> {
    let in_all = Bytes::from_f64(read.integral_in(stretch));
    if cx.ram().is_ok_and(|ram| in_all < ram.share(IN_ALL)) {
        return Ok(Some(format!("{in_all} were read in all")));
    }
    let rate = cx.mean_in(stretch, PGPGIN, read)?;
    let again = cx.mean_in(stretch, REFAULT_FILE, &cx.refaults_file()?)?;
    let share = Ratio::new(again.to_bytes(cx.page_size()?).get() / rate.get());
    Ok((share >= HARDLY_TWICE || again >= Calm::REFAULTS)
        .then(|| format!("{rate} was read, and {share} of it had been in memory before")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated, three_times, times};
    use timeline::signals::{MEM_TOTAL, PSI_MEMORY_SOME};

    fn reading(mib_per_second: u64, pages_again: u64) -> Case {
        Case::over(20)
            .gauge(MEM_TOTAL, Bytes::from_mib(1000))
            .counter(PGPGIN, mib_per_second << 20)
            .counter(REFAULT_FILE, pages_again)
    }

    #[test]
    fn a_file_read_once_is_a_stream() {
        let finding = found(RULE, &reading(60, 0));
        assert_eq!(finding.severity, Severity::Info);
        assert!(
            finding.title.starts_with("1.2 GiB were read in 20 s"),
            "{}",
            finding.title
        );
    }

    #[test]
    fn each_stream_is_told() {
        let case = Case::over(240)
            .gauge(MEM_TOTAL, Bytes::from_mib(1000))
            .counter_steps(PGPGIN, &three_times([60 << 20; 3], 0))
            .counter(REFAULT_FILE, 0);
        assert_eq!(
            times(&found(RULE, &case)),
            [(0, 40), (100, 140), (200, 240)]
        );
    }

    #[test]
    fn files_read_again_are_no_stream() {
        clear(RULE, &reading(60, 5_000));
        clear(RULE, &reading(60, 150));
    }

    #[test]
    fn a_stall_or_swapping_is_no_stream() {
        clear(RULE, &reading(60, 0).counter(PSI_MEMORY_SOME, 200_000));
        clear(RULE, &reading(12, 0).counter(PSWPIN, 2_500));
    }

    #[test]
    fn little_or_short_reading_is_clear() {
        clear(RULE, &reading(1, 0));
        let mut burst = vec![0; 20];
        burst[3..5].fill(60 << 20);
        clear(RULE, &reading(0, 0).counter_steps(PGPGIN, &burst));
    }

    #[test]
    fn without_refaults_a_stream_cannot_be_told_from_thrash() {
        let case = Case::over(20).counter(PGPGIN, 60 << 20);
        assert_eq!(
            not_evaluated(RULE, &case).names,
            ["vm.workingset_refault_file"]
        );
    }
}
