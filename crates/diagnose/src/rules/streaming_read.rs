//! Files are read once each: much disk traffic, no shortage.

use timeline::signals::{PGPGIN, PSWPIN, REFAULT_FILE};

use crate::measures::quiet::Calm;
use crate::measures::readings::refaults_file;
use crate::prelude::*;

declare_rule! {
    /// Much is read from disk, but hardly anything twice: a stream, not a cache that is too small.
    ///
    /// ## What it means
    /// A backup, a copy or a scan reads each file once. The disk is busy, free memory falls to its floor and kswapd
    /// works, all because the page cache is filled with pages that are dropped again unused. More memory would change
    /// nothing; what is read for the first time must come from the disk.
    /// ## How it is recognised
    /// At least 10 MiB/s are read from block devices without swap, for 10 s or longer, 10 % of RAM in all, and fewer than
    /// 100 pages a second and less than 5 % of what is read come back after eviction. Nobody waits for memory meanwhile.
    /// ## Not this
    /// - `page-cache-thrash`: a third or more of what is read had been in memory before.
    /// - Direct I/O (databases with their own buffers): it counts as reading too, and bypasses the page cache.
    /// ## What to do
    /// Mostly nothing. If the stream drops others' pages, run it with a limit of its own (`systemd-run -p MemoryHigh=`)
    /// or let it drop what it has read (POSIX_FADV_DONTNEED). Verify: refaults stay at 0 for the others.
    /// ## References
    /// - kernel mm/workingset.c: what counts as a refault
    /// - posix_fadvise(2)
    pub(crate) RULE = {
        id: "streaming-read", since: "0.1.0", class: Note,
        trigger: trigger, story: story,
        cause: "A program reads each file once (backup, copy, scan), or reads past the page cache (direct I/O).",
        verify: "memtide check while it runs: refaults stay near 0",
    }
}

/// A tenth of an old disk's speed; a labelled stream reads 60 MiB/s, healthy hosts below 0.1 MiB/s outside of streams.
const READS: BytesPerSecond = BytesPerSecond::from_mib(10.0);
/// Less in all would not have filled anything.
const IN_ALL: Ratio = Ratio::from_percent(10.0);
/// Less of what is read than this was read before. Labelled streams show 0; page-cache-thrash starts at a third, and what
/// lies between is neither.
const HARDLY_TWICE: Ratio = Ratio::from_percent(5.0);

fn trigger() -> Trigger {
    let again = refaults_file();
    Trigger::on_host(
        LEVEL,
        all![
            read_from_disks().at_least("read from disks", READS),
            again
                .clone()
                .at_most("files read again after eviction", Calm::REFAULTS),
            again.bytes().at_most(
                "files read again, of all reads",
                read_from_disks().share(HARDLY_TWICE)
            ),
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
        return clear!("{in_all} were read in all");
    }
    let calm = match Calm::during(cx, stretch) {
        Ok(calm) => calm,
        Err(why) => return clear!("{rate} was read, but {why}"),
    };
    let again = cx.mean_in(stretch, REFAULT_FILE, &cx.refaults_file()?)?;
    let again = again.to_bytes(cx.page_size()?);
    let of_ram = ram
        .and_then(|ram| in_all.ratio_of(ram))
        .map_or_else(String::new, |share| format!(", {share} of RAM"));
    let title = format!(
        "{in_all} were read in {} ({rate}{of_ram}) and hardly anything twice: a stream, which more memory would not speed up.",
        stretch.duration()
    );
    let most = BytesPerSecond::new(rate.get() * HARDLY_TWICE.get());
    Ok(RULE
        .found(Severity::Info, title)
        .graph("read", &read)
        .shows_from(PGPGIN, rate, READS, None, format!("{rate} read from block devices, without swap"))
        .counts_as("disk reads")
        .shows_below(REFAULT_FILE, again, most, None, format!("{again} of it had been in memory before"))
        .counts_as_all(calm.kinds())
        .not("page-cache-thrash", "what was dropped was not wanted again")
        .fix(Fix::say("Mostly nothing. A stream that drops others' pages can get a limit of its own: systemd-run --scope -p MemoryHigh=512M before its command, or MemoryHigh=512M in its unit file."))
        .sure_by_kinds(cx, "")
        .into())
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
    fn a_stream_in_an_hour_is_found_and_files_read_again_there_are_none() {
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
