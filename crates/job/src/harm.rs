//! What a job did to others, in words: the first line of an answer.

use units::{Bytes, Count, Quantity, Ratio, Span};

use crate::model::JobReport;
use crate::observe::{LeftCached, OtherGroup};

/// Less than this is nothing: programs that start read as much.
pub(crate) const WORTH_A_WORD: Bytes = Bytes::from_mib(1);

/// Who read this share of what was read again is named alone.
const NAMED_ALONE_MIN: Ratio = Ratio::new(0.8);

/// What is known of others while a job ran.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JobHarm<'a> {
    pub(crate) others: &'a [OtherGroup],
    /// File pages that the whole host evicted, and read again after an eviction.
    pub(crate) evicted: Option<Bytes>,
    pub(crate) refaulted: Option<Bytes>,
    /// The most that the job can have had in the cache.
    pub(crate) touched: Bytes,
    pub(crate) available: Option<Bytes>,
}

/// What the job did to others: the first line.
pub(crate) fn harm(report: &JobReport) -> String {
    let Some(seen) = &report.seen else {
        return planned_harm(report);
    };
    let left = left(seen.left_cached).map_or_else(String::new, |left| format!(" It left {left}."));
    let harm = JobHarm {
        others: &seen.others,
        evicted: seen.evicted_bytes,
        refaulted: seen.refaulted_bytes,
        touched: report.job().curve.footprint_bytes,
        available: seen.available_bytes,
    };
    format!("{}{left}", harm.pushed_out())
}

/// What others lost for another reason than a limit of their own.
pub(crate) fn harmed(others: &[OtherGroup]) -> Vec<&OtherGroup> {
    let is_worth = |group: &&OtherGroup| {
        !group.is_at_own_limit && group.reread_bytes + group.shrunk_bytes >= WORTH_A_WORD
    };
    others.iter().filter(is_worth).collect()
}

impl JobHarm<'_> {
    /// The sentence about what others lost.
    pub(crate) fn pushed_out(&self) -> String {
        let touched = self.touched;
        let harmed = harmed(self.others);
        let lost: Bytes = harmed.iter().map(|group| group.reread_bytes + group.shrunk_bytes).sum();
        // What the host evicted beyond all that the job ever had in the cache was certainly of others.
        let evicted = self.evicted.unwrap_or_default();
        let pushed = lost.max(evicted.saturating_sub(touched));
        if pushed >= WORTH_A_WORD {
            return format!(
                "It pushed {pushed} of other programs' files out of the cache{}.",
                who_read_again(&harmed)
            );
        }
        match self.evicted {
            None => {
                "What it pushed out of the cache is not known: this kernel does not count evicted \
                 file pages (5.8 does)."
                    .to_owned()
            }
            Some(Bytes::ZERO) => {
                let available = self.available.unwrap_or_default();
                format!(
                    "It pushed nothing out of the cache of the host, which evicted no file page while \
                 it ran, with {available} available."
                )
            }
            Some(evicted) => {
                let refaulted = self.refaulted.filter(|bytes| *bytes > Bytes::ZERO);
                let again = refaulted.map_or_else(String::new, |bytes| {
                format!(
                    " {bytes} of evicted files had to be read again meanwhile, its own among them."
                )
            });
                format!(
                    "It pushed up to {evicted} of other programs' files out of the cache; it touched \
                 {touched} itself, and what was evicted may have been its own.{again}"
                )
            }
        }
    }
}

/// `, of which postgres (postgresql.service) read 0.9 GiB again meanwhile`.
fn who_read_again(harmed: &[&OtherGroup]) -> String {
    let read: Bytes = harmed.iter().map(|group| group.reread_bytes).sum();
    let Some(first) = harmed.first().filter(|_| read >= WORTH_A_WORD) else {
        return ", of which nothing was read again meanwhile".to_owned();
    };
    let name = reader(first);
    if first.reread_bytes >= read.share(NAMED_ALONE_MIN) {
        return format!(", of which {name} read {} again meanwhile", first.reread_bytes);
    }
    let many = harmed.iter().filter(|group| group.reread_bytes >= WORTH_A_WORD).count() as u64;
    let many = Count::new(many).named("cgroup", "cgroups");
    format!(
        ", of which {many} read {read} again meanwhile, the most of it {name}: {}",
        first.reread_bytes
    )
}

/// Who it is: the program that read nearly all of it, or the cgroup.
pub(crate) fn reader(group: &OtherGroup) -> String {
    let enough = group.reread_bytes.share(NAMED_ALONE_MIN);
    match group.readers.first().filter(|reader| reader.read_bytes >= enough) {
        Some(reader) => format!("{} ({})", reader.name, group.name),
        None => group.name.clone(),
    }
}

/// What of its files is in the cache at the end.
fn left(left: LeftCached) -> Option<String> {
    let dirty = left.dirty_bytes.filter(|dirty| *dirty >= WORTH_A_WORD);
    let dirty =
        dirty.map_or_else(String::new, |dirty| format!(", {dirty} of them not yet written"));
    let least = if left.is_cut { "at least " } else { "" };
    (left.bytes >= WORTH_A_WORD)
        .then(|| format!("{least}{} of its files in the cache{dirty}", left.bytes))
}

/// What others lost is not the job's doing where they met a limit of their own.
pub(crate) fn own_limits(others: &[OtherGroup]) -> Option<String> {
    let limited = || others.iter().filter(|group| group.is_at_own_limit);
    let read: Bytes = limited().map(|group| group.reread_bytes).sum();
    let first = limited().max_by_key(|group| group.reread_bytes)?;
    (read >= WORTH_A_WORD).then(|| {
        format!(
            "{} met a memory limit of its own: {read} that were read again there do not count.",
            first.name
        )
    })
}

/// What a planned job would do.
fn planned_harm(report: &JobReport) -> String {
    let job = report.job();
    let smallest = job.rows.first().map_or(Bytes::ZERO, |row| row.point.cache_bytes);
    let pushed = smallest.min(job.curve.footprint_bytes);
    let again = report.disk_bytes_per_s.map_or_else(String::new, |disk| {
        let time = Span::from_secs_f64(pushed.as_f64() / disk.get());
        format!(", {time} of reading for whoever needs it")
    });
    format!(
        "It fills whatever cache it gets up to {}: with {smallest}, {pushed} of other programs' \
         files are pushed out{again}.",
        job.curve.footprint_bytes
    )
}
