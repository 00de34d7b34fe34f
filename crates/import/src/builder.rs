//! Builds a timeline from snapshots that were pasted one after the other.
//!
//! Blocks that could be of one time become one sample, such as `free` and `/proc/meminfo` pasted together. A block of a
//! form that the sample already has, or that contradicts it, starts another sample. Samples with known times are on one
//! clock; between others nothing is computed.

mod snapshot;

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use timeline::{
    Entity, KernelReport, KillNotice, NoticeKind, Sample, SignalId, Stamp, Timeline, signals,
};
use units::Span;

use crate::plausible::{
    Impossible, drop_impossible, has_part_above, has_part_above_size, note_new,
};

pub(crate) use snapshot::{Link, Snapshot, SnapshotTime, signals_in};

/// A timeline in the making.
#[derive(Debug, Default)]
pub(crate) struct TimelineBuilder {
    timeline: Timeline,
    pending: Option<PendingSnapshot>,
    /// The host that a prompt or a heading named last.
    host_name: Option<String>,
    /// The hosts that were named, each with the index of its first sample.
    hosts: Vec<(usize, String)>,
    dropped: usize,
    /// Snapshots with 0 B of RAM.
    pub(crate) without_ram: usize,
    /// Snapshots that contradict the kernel files of a bundle.
    pub(crate) contradicting: usize,
    /// Whether the last block was one of those.
    skipping: bool,
    /// Why figures were dropped that no host has.
    pub(crate) impossible: Vec<Impossible>,
    /// MemTotal of the samples that the pending one follows.
    ram_before: Option<u64>,
    /// How many samples are unrelated to the one before.
    unrelated: usize,
    /// What to add to the counters of a block after its first snapshot was merged into a sample.
    counter_offsets: Vec<(SignalId, u64)>,
    /// Hashes of the kernel reports so far: several logs of a bundle have the same one.
    reports: BTreeSet<u64>,
    /// Messages of programs about kills.
    notices: Vec<KillNotice>,
    /// How many there were, with those that say the same.
    notices_seen: usize,
}

/// The sample that further blocks may still add to.
#[derive(Debug)]
struct PendingSnapshot {
    snapshot: Snapshot,
    /// The forms that it was read from.
    forms: Vec<&'static str>,
    /// The time since the sample before it; `None` if the two are unrelated.
    after: Option<Span>,
}

impl TimelineBuilder {
    /// At most 100,000 samples of a source, more than a day at one a second. Tests see with fewer what happens then.
    pub(crate) const SNAPSHOTS_MAX: usize = if cfg!(test) { 12_000 } else { 100_000 };
    /// At most 1,000 unrelated samples, as each is diagnosed alone.
    const UNRELATED_MAX: usize = 1_000;
    /// Two readings of a signal can be of one time if they differ by less than a fiftieth of RAM.
    const SAME_TIME: u64 = 50;
    /// Two sizes of RAM are of two hosts if they differ by more than a quarter: `free -g` and a kernel report differ by
    /// less.
    const OTHER_RAM: u64 = 4;
    /// The form of the kernel files of a bundle.
    const BUNDLE: &'static str = "bundle";

    /// The latest raw reading of a host signal, if further blocks may still be of its time.
    pub(crate) fn host(&self, signal: SignalId) -> Option<u64> {
        self.pending.as_ref()?.snapshot.host(signal)
    }

    /// How many kernel reports there are so far.
    pub(crate) fn reports(&self) -> usize {
        self.reports.len()
    }

    /// Adds the kernel files of a bundle, which are all of one time.
    pub(crate) fn add_bundle(&mut self, sample: Sample) {
        self.flush();
        self.pending = Some(PendingSnapshot {
            snapshot: sample.into(),
            forms: vec![Self::BUNDLE],
            after: None,
        });
    }

    /// Notes which host the output below is from. Another host starts another sample.
    pub(crate) fn at_host(&mut self, name: &str) {
        if self.host_name.as_deref() == Some(name) {
            return;
        }
        let before = self.host_name.replace(name.to_owned());
        let is_bundle = self.pending.as_ref().is_some_and(PendingSnapshot::is_bundle);
        if before.is_some() && !is_bundle {
            self.flush();
        }
        self.hosts.push((self.timeline.len(), name.to_owned()));
    }

    /// The hosts of the samples, if they are of several. A host of which nothing was read is none.
    pub(crate) fn take_hosts(&mut self) -> Vec<(usize, String)> {
        let mut hosts = std::mem::take(&mut self.hosts);
        let end = self.timeline.len();
        hosts.retain(|(first, _)| *first < end);
        // Of names for one sample the last is that of its figures.
        hosts.reverse();
        hosts.dedup_by_key(|(first, _)| *first);
        hosts.reverse();
        let names: BTreeSet<&str> = hosts.iter().map(|(_, name)| name.as_str()).collect();
        if names.len() > 1 { hosts } else { Vec::new() }
    }

    /// Adds a snapshot; `is_first` if it is the first of its block.
    pub(crate) fn add(&mut self, form: &'static str, is_first: bool, mut snapshot: Snapshot) {
        if let Some(report) = &snapshot.report
            && !self.reports.insert(hash(report, snapshot.text.as_deref()))
        {
            return;
        }
        if snapshot.host(signals::MEM_TOTAL.id()) == Some(0) {
            self.without_ram += 1;
            snapshot.sample.host.clear();
        }
        if self.contradicts_bundle(is_first, &snapshot) {
            self.contradicting += 1;
            return;
        }
        if is_first
            && let Some(pending) = &mut self.pending
            && pending.accepts(form, &snapshot)
            && !is_other_ram(self.ram_before, &snapshot)
        {
            self.counter_offsets = pending.merge(form, snapshot);
            return;
        }
        if is_first {
            self.counter_offsets.clear();
        }
        for (signal, offset) in &self.counter_offsets {
            if let Some(raw) = snapshot.host(*signal) {
                let raw = raw.saturating_add(*offset);
                snapshot.sample.host.set_raw(*signal, raw);
            }
        }
        let after = match snapshot.link {
            Link::Apart => None,
            Link::Follows | Link::Reboot => self.after(is_first, snapshot.when),
        };
        self.flush();
        self.pending = Some(PendingSnapshot { snapshot, forms: vec![form], after });
    }

    /// How long after the pending snapshot another one was taken, if that is known.
    fn after(&self, is_first: bool, when: SnapshotTime) -> Option<Span> {
        let pending = &self.pending.as_ref()?.snapshot;
        // A kernel report is of its own time, wherever it was pasted.
        if pending.report.is_some() {
            return None;
        }
        match (pending.when, when) {
            (_, SnapshotTime::After(span)) if !is_first => Some(span),
            (SnapshotTime::At(then), SnapshotTime::At(now)) => {
                let nanos = now.unix_nanos().checked_sub(then.unix_nanos())?;
                u64::try_from(nanos).ok().filter(|n| *n > 0).map(Span::from_nanos)
            }
            _ => None,
        }
    }

    /// The tools of a bundle ran seconds before or after its kernel files were copied. Output that differs from those
    /// files is skipped: they report the same and more.
    fn contradicts_bundle(&mut self, is_first: bool, snapshot: &Snapshot) -> bool {
        if is_first {
            let bundle = self.pending.as_ref().filter(|p| p.is_bundle());
            // sar reports the past.
            let is_present = snapshot.report.is_none() && snapshot.link != Link::Apart;
            self.skipping = is_present && bundle.is_some_and(|p| contradict(&p.snapshot, snapshot));
        }
        self.skipping
    }

    /// Ends the pending snapshot: further blocks start another one.
    pub(crate) fn flush(&mut self) {
        let Some(pending) = self.pending.take() else {
            return;
        };
        let PendingSnapshot { mut snapshot, after, .. } = pending;
        note_new(&mut self.impossible, drop_impossible(&mut snapshot));
        let is_full = self.timeline.len() >= Self::SNAPSHOTS_MAX
            || self.timeline.is_full()
            || (after.is_none() && self.unrelated >= Self::UNRELATED_MAX);
        // After a dropped snapshot the interval to the next one is unknown.
        if is_full || self.dropped > 0 {
            self.dropped += 1;
            return;
        }
        let last = self.timeline.len().checked_sub(1).and_then(|i| self.timeline.stamp(i));
        snapshot.sample.stamp = Stamp {
            // A timeline recognises a reboot by a boot clock that starts again.
            boot: last
                .filter(|_| snapshot.link != Link::Reboot)
                .map_or(Span::ZERO, |last| last.boot.plus(after.unwrap_or(Span::from_secs(1)))),
            awake: None,
            wall: match snapshot.when {
                SnapshotTime::At(wall) => Some(wall),
                SnapshotTime::After(span) => last.and_then(|l| l.wall).map(|wall| wall.plus(span)),
                SnapshotTime::Unknown => None,
            },
            ..Stamp::default()
        };
        // A push fails only if the clock did not advance, and `after` is not zero.
        let is_related = after.is_some() && self.timeline.push(&snapshot.sample).is_ok();
        let ram_before = self.ram_before.filter(|_| is_related);
        self.ram_before = snapshot.host(signals::MEM_TOTAL.id()).or(ram_before);
        if !is_related {
            self.timeline.push_new_segment(&snapshot.sample);
            self.unrelated += 1;
        }
        for (signal, error) in snapshot.error_at_most {
            self.timeline.note_rounding(signal, error);
        }
        if let Some(report) = snapshot.report {
            self.timeline.report(report, snapshot.text);
        }
    }

    /// The snapshot that further blocks could still add to.
    pub(crate) fn into_pending(self) -> Option<Snapshot> {
        self.pending.map(|pending| pending.snapshot)
    }

    /// At most 10,000 messages about kills; further ones are dropped.
    const NOTICES_MAX: usize = 10_000;

    /// Whether further snapshots are dropped.
    pub(crate) fn is_full(&self) -> bool {
        self.dropped > 0
    }

    /// So many dropped snapshots are counted; a text may have a million reports.
    const COUNTED_MAX: usize = 10_000;
    /// A form that collects its rows before it adds them needs no more of them.
    pub(crate) const TAKEN_MAX: usize = Self::SNAPSHOTS_MAX + Self::COUNTED_MAX;

    /// Whether so many snapshots were dropped that further ones are not counted.
    pub(crate) fn is_past_counting(&self) -> bool {
        self.dropped >= Self::COUNTED_MAX
    }

    /// Whether there were more messages about kills than are read with the lines around them.
    pub(crate) fn has_many_notices(&self) -> bool {
        self.notices_seen >= Self::NOTICES_MAX
    }

    /// Adds a message about a kill. Several programs may say the same, and a killer signals a process twice.
    pub(crate) fn notice(&mut self, notice: KillNotice) {
        let is_same = |known: &KillNotice| {
            // Each message of a memory module is of other errors.
            known.kind != NoticeKind::Module
                && known.ended_something() == notice.ended_something()
                && known.subject() == notice.subject()
                && !(known.subject().is_empty() && known.messenger != notice.messenger)
        };
        let is_known = self.notices.iter().rev().take(8).any(is_same);
        self.notices_seen += 1;
        if !is_known && self.notices.len() < Self::NOTICES_MAX {
            self.notices.push(notice);
        }
    }

    /// The timeline, and how many snapshots did not fit in it.
    pub(crate) fn finish(mut self) -> (Timeline, usize) {
        self.flush();
        if self.timeline.is_empty() && !self.notices.is_empty() {
            self.timeline.push_new_segment(&Sample::default());
        }
        for notice in self.notices {
            self.timeline.notice(notice);
        }
        (self.timeline, self.dropped)
    }
}

impl PendingSnapshot {
    fn is_bundle(&self) -> bool {
        self.forms.first() == Some(&TimelineBuilder::BUNDLE)
    }

    /// Whether the first snapshot of a block could be of the same time.
    fn accepts(&self, form: &'static str, snapshot: &Snapshot) -> bool {
        let is_same_time = match (self.snapshot.when, snapshot.when) {
            (SnapshotTime::At(a), SnapshotTime::At(b)) => a == b,
            _ => true,
        };
        snapshot.report.is_none()
            && snapshot.link == Link::Follows
            && self.snapshot.report.is_none()
            && (self.is_bundle() || !self.forms.contains(&form))
            && is_same_time
            && !contradict(&self.snapshot, snapshot)
    }

    /// Adds the readings that it lacks. Returns by how much its counters exceed those of the snapshot: the series of a
    /// tool counts from 0, the kernel from boot.
    fn merge(&mut self, form: &'static str, snapshot: Snapshot) -> Vec<(SignalId, u64)> {
        // Of an entity, the kernel files of a bundle are preferred.
        let is_bundle = self.is_bundle();
        self.forms.push(form);
        if let SnapshotTime::At(_) = snapshot.when {
            self.snapshot.when = snapshot.when;
        }
        let known = &mut self.snapshot;
        let offset = |(signal, raw): (SignalId, u64)| {
            let before = known.host(signal).filter(|_| signal.def().is_counter)?;
            Some((signal, before.saturating_sub(raw)))
        };
        let offsets = snapshot.sample.host.iter().filter_map(offset).collect();
        for (signal, raw) in snapshot.sample.host.iter() {
            let is_finer = snapshot.error(signal) < known.error(signal);
            if known.host(signal).is_none() || is_finer {
                known.sample.host.set_raw(signal, raw);
                known.error_at_most.retain(|(id, _)| *id != signal);
                let errors = snapshot.error_at_most.iter();
                known.error_at_most.extend(errors.filter(|(id, _)| *id == signal));
            }
        }
        for entity in Entity::ALL {
            for row in snapshot.sample.table(entity).rows() {
                let into = known.sample.table_mut(entity).entry(&row.key);
                if into.label.is_empty() {
                    into.label.clone_from(&row.label);
                }
                if into.group.is_empty() {
                    into.group.clone_from(&row.group);
                }
                for (signal, raw) in row.row.iter() {
                    let is_known = into.row.iter().any(|(known, _)| known == signal);
                    if !(is_bundle && is_known) {
                        into.row.set_raw(signal, raw);
                    }
                }
            }
        }
        for field in snapshot.sample.unknown.iter() {
            known.sample.unknown.keep(field.file, &field.field, field.value);
        }
        offsets
    }
}

/// Hashes what makes a kernel report unique in any log: who asked, who was killed, how much memory there was. A head
/// alone is the same for each kill that a process causes, so its line counts, with the time in it.
fn hash(report: &KernelReport, text: Option<&str>) -> u64 {
    let mut host: Vec<_> = report.host.iter().collect();
    host.sort_unstable();
    let (invoker, killed) = (&report.invoker, &report.killed);
    let is_head = killed.is_empty() && host.is_empty() && report.tasks.is_empty();
    let line = text.filter(|_| is_head);
    let text = format!("{invoker:?} {killed:?} {host:?} {:?} {line:?}", report.zones);
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Whether a snapshot is of a host with another size of RAM, or with a part larger than this RAM: the row of a tool without
/// MemTotal is of the host of the rows before it.
fn is_other_ram(before: Option<u64>, snapshot: &Snapshot) -> bool {
    let Some(before) = before else {
        return false;
    };
    let tolerance = before / TimelineBuilder::OTHER_RAM;
    match snapshot.host(signals::MEM_TOTAL.id()) {
        Some(ram) => before.abs_diff(ram) > tolerance,
        None => has_part_above_size(snapshot, before.saturating_add(tolerance)),
    }
}

/// Whether two snapshots cannot be of one host at one time: one has more of a part than the other has RAM, the size of
/// RAM or swap differs, or a level by more than
/// [`TimelineBuilder::SAME_TIME`] of RAM and the rounding of both.
fn contradict(a: &Snapshot, b: &Snapshot) -> bool {
    if has_part_above(a, b) || has_part_above(b, a) {
        return true;
    }
    let ram = a.host(signals::MEM_TOTAL.id()).or(b.host(signals::MEM_TOTAL.id()));
    a.sample.host.iter().any(|(id, in_a)| {
        let def = id.def();
        // Some tools count buffers and reclaimable slab as cache.
        let is_comparable =
            id != signals::MEM_CACHED.id() && !def.is_counter && def.unit == "bytes";
        let Some(in_b) = b.host(id).filter(|_| is_comparable) else {
            return false;
        };
        let whole = ram.unwrap_or(in_a.max(in_b));
        let tolerance = whole / TimelineBuilder::SAME_TIME + a.error(id) + b.error(id);
        in_a.abs_diff(in_b) > tolerance
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::paste;
    use timeline::signals::{MEM_AVAILABLE, PSWPIN, ZONE_FREE};
    use units::{Bytes, Pages};

    const VMSTAT: &str = "$ vmstat 1\n r b swpd free buff cache si so\n 1 0 0 349408 123456 654321 0 0\n 1 0 0 349408 123456 654321 640 0\n";
    const BUDDY: &str = "Node 0 Normal: 105*64kB (UME) 9*128kB (U) 0*256kB 0*512kB = 7872kB\n";

    #[test]
    fn a_page_size_in_the_text_replaces_the_assumed_one() {
        for (text, page, pages) in [
            (VMSTAT.to_owned(), 4096, 160),
            (format!("{VMSTAT}\n{BUDDY}"), 65_536, 10),
            (format!("{BUDDY}\n{VMSTAT}"), 65_536, 10),
            (format!("{VMSTAT}\n$ getconf PAGESIZE\n16384\n"), 16_384, 40),
        ] {
            let opened = paste(&text);
            let size = opened.facts.page_size.map(|size| size.bytes().get());
            assert_eq!(size, Some(page), "{text}");
            assert_eq!(opened.timeline.last(PSWPIN), Some(Pages::new(pages)), "{text}");
        }
    }

    #[test]
    fn rows_of_one_host_do_not_take_the_ram_of_another() {
        let of = |ram: u64| {
            let sar = format!("MemTotal: {ram} kB\nMemFree: 349408 kB\n");
            format!("MemTotal: 16303428 kB\nSwapTotal: 0 kB\n\n{VMSTAT}\n{sar}")
        };
        assert_eq!(paste(&of(16_303_428)).timeline.segments().len(), 1);
        assert_eq!(paste(&of(8_000_000)).timeline.segments().len(), 2);
        let slab = |size: u64| {
            format!(
                "MemTotal: 16303428 kB\nSwapTotal: 0 kB\n\n{VMSTAT}\nSReclaimable: {size} kB\nSUnreclaim: 48600 kB\n"
            )
        };
        assert_eq!(paste(&slab(1_000_000)).timeline.segments().len(), 1);
        assert_eq!(paste(&slab(29_201_040)).timeline.segments().len(), 2);
    }

    #[test]
    fn a_text_with_quoted_and_other_readings_says_so() {
        let info = "MemTotal: 16303428 kB\nMemFree: 349408 kB\n";
        let other = "MemTotal: 8303428 kB\nMemFree: 249408 kB\n";
        let quoted = |text: &str| text.replace("Mem", "> Mem");
        let problems = |text: &str| paste(text).problems.concat();
        let both = problems(&format!("{}\nOurs:\n{other}", quoted(info)));
        assert!(both.contains("lines 1 to 2 are quoted"), "{both}");
        assert!(both.contains("lines 5 to 6 are not"), "{both}");
        for text in [format!("{info}\nOurs:\n{other}"), quoted(&format!("{info}\n{other}"))] {
            assert_eq!(problems(&text), "", "{text}");
        }
    }

    #[test]
    fn a_part_larger_than_ram_is_no_reading_whatever_tool_printed_it() {
        let top = |available: u64| {
            format!(
                "top - 10:00:00 up 1 day, 1 user, load average: 1.0, 1.0, 1.0\nMiB Mem :   2000.0 total,    900.0 free,    800.0 used,    300.0 buff/cache\nMiB Swap:    100.0 total,      0.0 free,    100.0 used. {available}.0 avail Mem\n"
            )
        };
        let sane = paste(&top(1100));
        assert_eq!(sane.timeline.last(MEM_AVAILABLE), Some(Bytes::from_mib(1100)));
        assert!(sane.problems.is_empty(), "{:?}", sane.problems);
        let above = paste(&top(5000));
        assert_eq!(above.timeline.last(MEM_AVAILABLE), None);
        assert!(above.problems[0].contains("larger than MemTotal"), "{:?}", above.problems);
    }

    #[test]
    fn slab_caches_larger_than_ram_are_of_another_host() {
        let samples = |kib: u64| {
            let slabtop = format!(
                "  OBJS ACTIVE  USE OBJ SIZE  SLABS OBJ/SLAB CACHE SIZE NAME\n900000 900000 100%    1.00K  28125       32    {kib}K xfs_inode\n"
            );
            paste(&format!("MemTotal: 16303428 kB\nMemFree: 180000 kB\n\n{slabtop}")).timeline.len()
        };
        assert_eq!(samples(900_000), 1);
        assert_eq!(samples(20_900_000), 2);
    }

    #[test]
    fn output_of_two_hosts_is_never_one_sample() {
        let free = "Mem: 16303428 13200000 203428 1000 2900000 2800000\nSwap: 2097148 2097148 0\n";
        let head =
            "              total        used        free      shared  buff/cache   available\n";
        let free = format!("{head}{free}");
        let info = "MemTotal: 16303428 kB\nMemFree: 180000 kB\nSUnreclaim: 9000000 kB\n";
        for (first, second, samples) in [
            ("root@web1:~# free -k", "root@web2:~# cat /proc/meminfo", 2),
            ("root@web1:~# free -k", "me@web1:~$ cat /proc/meminfo", 1),
            ("web1:", "web2:", 2),
            ("== web1 ==", "== web2 ==", 2),
            ("before:", "also:", 1),
        ] {
            let opened = paste(&format!("{first}\n{free}{second}\n{info}"));
            let timeline = &opened.timeline;
            assert_eq!(timeline.len(), samples, "{second}");
            assert_eq!(timeline.segments().len(), samples, "{second}");
        }
    }

    #[test]
    fn a_kernel_report_with_another_page_size_is_converted() {
        let invoked = "java invoked oom-killer: gfp_mask=0x100cca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0\n";
        let dump = include_str!("../../probe/tests/kernel_reports/5.13-64k-pages.log");
        let report = &format!("{invoked}{dump}");
        let free = |text: &str| {
            let opened = paste(text);
            let timeline = &opened.timeline;
            let page = opened.facts.page_size.unwrap();
            let zones = timeline.entities(Entity::Zone);
            let largest = zones.filter_map(|zone| timeline.last_of(zone, ZONE_FREE));
            (page.bytes(), largest.map(|pages| pages.to_bytes(page)).max())
        };
        let (page, alone) = free(report);
        assert_eq!(page, Bytes::from_kib(64));
        assert_eq!(alone, Some(Bytes::from_kib(19_204_416)));
        assert_eq!(free(&format!("{VMSTAT}\n{report}")), (page, alone));
        assert_eq!(
            free(&format!("$ getconf PAGESIZE\n4096\n{report}")),
            (Bytes::from_kib(4), alone)
        );
    }
}
