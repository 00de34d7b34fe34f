//! Puts looks at a host in order: what was pasted one after the other becomes one timeline.
//!
//! Blocks that could be of one moment become one sample (`free` and `/proc/meminfo` pasted together); a block of a form
//! that the sample has already, or that contradicts it, begins another. Where times are known the samples lie on one
//! clock; where not, nothing is computed from one to the next.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use timeline::{Entity, KernelReport, Row, Sample, SignalId, Stamp, Timeline, signals};
use units::{PageSize, Span, WallClock};

use crate::figure::{Figure, raw};

/// What a block says of one moment.
#[derive(Debug, Default)]
pub(crate) struct Look {
    /// Readings.
    pub(crate) sample: Sample,
    /// When.
    pub(crate) when: When,
    /// How it follows on the look before it.
    pub(crate) link: Link,
    /// Host gauges whose readings are rounded or cut off, and how far the true ones may lie from them, in the
    /// catalogue's unit.
    pub(crate) error_at_most: Vec<(SignalId, u64)>,
    /// What the kernel said, where the look is its report.
    pub(crate) report: Option<KernelReport>,
    /// The report's lines, for a capture.
    pub(crate) text: Option<Arc<str>>,
}

impl Look {
    /// A look at an unknown time.
    pub(crate) fn of(sample: Sample) -> Self {
        Self {
            sample,
            ..Self::default()
        }
    }

    /// Sets a size of the host, and notes how far the true one may lie from it. A figure without a suffix counts `unit`
    /// bytes.
    pub(crate) fn set_size(&mut self, signal: SignalId, figure: Figure, unit: f64) {
        let figure = figure.in_bytes(unit);
        let Some(bytes) = raw(figure.value) else {
            return;
        };
        self.sample.host.set_raw(signal, bytes);
        self.may_be_off(signal, figure.doubt());
    }

    /// Notes how far the true reading may lie from the one given, in bytes. Sizes in KiB are the kernel's own.
    pub(crate) fn may_be_off(&mut self, signal: SignalId, bytes: f64) {
        let error = raw(bytes).filter(|error| *error > 1024);
        self.error_at_most
            .extend(error.map(|error| (signal, error)));
    }

    /// Turns numbers of pages of one size into those of another.
    pub(crate) fn convert_pages(&mut self, from: PageSize, to: PageSize) {
        let convert = |row: &mut Row| {
            let are_pages = |(signal, _): &(SignalId, u64)| signal.def().unit == "pages";
            let readings: Vec<_> = row.iter().filter(are_pages).collect();
            for (signal, pages) in readings {
                let bytes = pages.saturating_mul(from.bytes().get());
                row.set_raw(signal, bytes / to.bytes().get());
            }
        };
        if from == to {
            return;
        }
        convert(&mut self.sample.host);
        for entity in Entity::ALL {
            for row in self.sample.table_mut(entity).rows_mut() {
                convert(&mut row.row);
            }
        }
    }

    /// The reading of a host signal, raw.
    fn host(&self, signal: SignalId) -> Option<u64> {
        let readings = self.sample.host.iter();
        readings
            .filter(|(id, _)| *id == signal)
            .last()
            .map(|(_, raw)| raw)
    }

    /// Lets counters go on from those of the sample that the block's first look went into.
    fn raise(&mut self, raised: &[(SignalId, u64)]) {
        for (signal, by) in raised {
            if let Some(raw) = self.host(*signal) {
                let raw = raw.saturating_add(*by);
                self.sample.host.set_raw(*signal, raw);
            }
        }
    }

    /// How far the true reading may lie from the one given.
    fn error(&self, signal: SignalId) -> u64 {
        let of_it = self.error_at_most.iter().filter(|(id, _)| *id == signal);
        of_it.map(|(_, error)| *error).max().unwrap_or(0)
    }
}

/// How a look follows on the one before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Link {
    /// As its block and its time tell.
    #[default]
    Follows,
    /// It is of another moment than what was pasted before it, and its counters start anew.
    Apart,
    /// The machine was started anew in between.
    Reboot,
}

/// When a look was taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum When {
    /// The text does not tell.
    #[default]
    Unknown,
    /// At this time of a wall clock (whose zone may not be known: differences are right).
    At(WallClock),
    /// So long after the look before it, of the same block.
    After(Span),
}

/// A timeline in the making.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    timeline: Timeline,
    pending: Option<Pending>,
    /// The host that a prompt or a heading named last.
    host_name: Option<String>,
    dropped: usize,
    /// Looks that cannot be of the moment of a bundle's kernel files.
    pub(crate) contradicting: usize,
    /// Whether the last block was one of those.
    passing_over: bool,
    /// How many looks are unrelated to the one before.
    unrelated: usize,
    /// How far the counters of a block's further looks lie below those of the sample that its first look went into.
    raised: Vec<(SignalId, u64)>,
    /// Prints of the kernel reports so far: the same one stands in several logs of a bundle.
    reports: BTreeSet<u64>,
}

/// The sample that further blocks may still add to.
#[derive(Debug)]
struct Pending {
    look: Look,
    /// Forms that it has.
    forms: Vec<&'static str>,
    /// Whether it goes on from the sample before it, and how far.
    after: Option<Span>,
}

impl Looks {
    /// As a capture may hold.
    const MOST: usize = 100_000;
    /// Looks of which nothing tells how they lie in time are judged one by one.
    const MOST_UNRELATED: usize = 1_000;
    /// Two readings of one thing that differ by more than a fiftieth of RAM are of two moments.
    const SAME_MOMENT: u64 = 50;

    /// What stands for the form of a bundle's kernel files.
    const BUNDLE: &'static str = "bundle";

    /// What was said last of a host signal, as far as further blocks may still be of that moment; raw.
    pub(crate) fn host(&self, signal: SignalId) -> Option<u64> {
        self.pending.as_ref()?.look.host(signal)
    }

    /// How many kernel reports there are so far.
    pub(crate) fn reports(&self) -> usize {
        self.reports.len()
    }

    /// Adds what a bundle's kernel files say, all of one moment.
    pub(crate) fn bundle(&mut self, look: Look) {
        self.flush();
        self.pending = Some(Pending {
            look,
            forms: vec![Self::BUNDLE],
            after: None,
        });
    }

    /// Notes whose output follows: what another host says is neither of the moment of what was said before, nor goes on
    /// from it.
    pub(crate) fn at_host(&mut self, name: &str) {
        let before = self.host_name.replace(name.to_owned());
        let is_bundle = self.pending.as_ref().is_some_and(Pending::is_bundle);
        if before.is_some_and(|before| before != name) && !is_bundle {
            self.flush();
        }
    }

    /// Adds a look; `form` is the block's, `is_first` whether it is the first look of its block.
    pub(crate) fn add(&mut self, form: &'static str, is_first: bool, mut look: Look) {
        let is_new = |report| self.reports.insert(print_of(report));
        if !look.report.as_ref().is_none_or(is_new) {
            return;
        }
        if self.is_passed_over(is_first, &look) {
            self.contradicting += 1;
            return;
        }
        if is_first
            && self.could_be_one_moment(form, &look)
            && let Some(pending) = &mut self.pending
        {
            self.raised = pending.take(form, look);
            return;
        }
        match is_first {
            true => self.raised.clear(),
            false => look.raise(&self.raised),
        }
        let after = match look.link {
            Link::Apart => None,
            Link::Follows | Link::Reboot => self.after(is_first, look.when),
        };
        self.flush();
        self.pending = Some(Pending {
            look,
            forms: vec![form],
            after,
        });
    }

    /// How far a look lies behind the pending one, where that is known.
    fn after(&self, is_first: bool, when: When) -> Option<Span> {
        let pending = self.pending.as_ref()?;
        match (pending.look.when, when) {
            // What the kernel said is of the moment that it speaks of, whatever was pasted around it.
            _ if pending.look.report.is_some() => None,
            (_, When::After(span)) if !is_first => Some(span),
            (When::At(then), When::At(now)) => {
                let nanos = now.unix_nanos().checked_sub(then.unix_nanos())?;
                u64::try_from(nanos)
                    .ok()
                    .filter(|n| *n > 0)
                    .map(Span::from_nanos)
            }
            _ => None,
        }
    }

    /// A bundle's tools ran seconds apart from its kernel files, which say the same more finely: what does not fit to them
    /// would only be diagnosed twice.
    fn is_passed_over(&mut self, is_first: bool, look: &Look) -> bool {
        if is_first {
            let bundle = self.pending.as_ref().filter(|p| p.is_bundle());
            // sar's data are of other moments by nature.
            let is_of_now = look.report.is_none() && look.link != Link::Apart;
            self.passing_over = is_of_now && bundle.is_some_and(|p| contradict(&p.look, look));
        }
        self.passing_over
    }

    fn could_be_one_moment(&self, form: &'static str, look: &Look) -> bool {
        let Some(pending) = &self.pending else {
            return false;
        };
        let both = |a: &Look, b: &Look| match (a.when, b.when) {
            (When::At(a), When::At(b)) => a == b,
            _ => true,
        };
        look.report.is_none()
            && look.link == Link::Follows
            && pending.look.report.is_none()
            && (pending.is_bundle() || !pending.forms.contains(&form))
            && both(&pending.look, look)
            && !contradict(&pending.look, look)
    }

    fn flush(&mut self) {
        let Some(Pending {
            mut look, after, ..
        }) = self.pending.take()
        else {
            return;
        };
        let is_full = self.timeline.len() >= Self::MOST
            || (after.is_none() && self.unrelated >= Self::MOST_UNRELATED);
        // What lies behind a look that was left out has nothing that it goes on from.
        if is_full || self.dropped > 0 {
            self.dropped += 1;
            return;
        }
        let last = self
            .timeline
            .len()
            .checked_sub(1)
            .and_then(|i| self.timeline.stamp(i));
        look.sample.stamp = Stamp {
            // A clock that begins again is how a timeline knows a reboot.
            boot: last
                .filter(|_| look.link != Link::Reboot)
                .map_or(Span::ZERO, |last| {
                    last.boot.plus(after.unwrap_or(Span::from_secs(1)))
                }),
            awake: None,
            wall: match look.when {
                When::At(wall) => Some(wall),
                When::After(span) => last.and_then(|l| l.wall).map(|wall| wall.plus(span)),
                When::Unknown => None,
            },
        };
        // Only a clock that stands still is out of order, and `after` is not zero.
        let goes_on = after.is_some() && self.timeline.push(&look.sample).is_ok();
        if !goes_on {
            self.timeline.push_new_segment(&look.sample);
            self.unrelated += 1;
        }
        for (signal, error) in look.error_at_most {
            self.timeline.note_rounding(signal, error);
        }
        if let Some(report) = look.report {
            self.timeline.report(report, look.text);
        }
    }

    /// The look that further blocks could still add to.
    pub(crate) fn into_pending(self) -> Option<Look> {
        self.pending.map(|pending| pending.look)
    }

    /// The timeline, and how many looks were too many for it.
    pub(crate) fn finish(mut self) -> (Timeline, usize) {
        self.flush();
        (self.timeline, self.dropped)
    }
}

impl Pending {
    fn is_bundle(&self) -> bool {
        self.forms.first() == Some(&Looks::BUNDLE)
    }

    /// Takes what it does not have yet. Returns how far its counters lie above those of the look: a tool's series
    /// counts from 0, the kernel from boot.
    fn take(&mut self, form: &'static str, look: Look) -> Vec<(SignalId, u64)> {
        // What the kernel's own files say of an entity stays.
        let is_bundle = self.is_bundle();
        self.forms.push(form);
        if let When::At(_) = look.when {
            self.look.when = look.when;
        }
        let known = &mut self.look;
        let above = |(signal, raw): (SignalId, u64)| {
            let was = known.host(signal).filter(|_| signal.def().is_counter)?;
            Some((signal, was.saturating_sub(raw)))
        };
        let raised = look.sample.host.iter().filter_map(above).collect();
        for (signal, raw) in look.sample.host.iter() {
            // Of two readings the finer one stays.
            let is_finer = look.error(signal) < known.error(signal);
            if known.host(signal).is_none() || is_finer {
                known.sample.host.set_raw(signal, raw);
                known.error_at_most.retain(|(of, _)| *of != signal);
                known
                    .error_at_most
                    .extend(look.error_at_most.iter().filter(|(of, _)| *of == signal));
            }
        }
        for entity in Entity::ALL {
            for row in look.sample.table(entity).rows() {
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
        for field in look.sample.unknown.iter() {
            known
                .sample
                .unknown
                .keep(field.file, &field.field, field.value);
        }
        raised
    }
}

/// What tells a kernel report from all others, whatever log it is in: who asked, who was killed, what the memory was.
fn print_of(report: &KernelReport) -> u64 {
    let mut host: Vec<_> = report.host.iter().collect();
    host.sort_unstable();
    let (asked, killed) = (&report.invoker, &report.killed);
    let print = format!("{asked:?} {killed:?} {host:?} {:?}", report.zones);
    let mut hasher = DefaultHasher::new();
    print.hash(&mut hasher);
    hasher.finish()
}

/// Whether two looks cannot be of one moment of one host: they give another size of RAM or swap, or levels that are
/// further apart than [`Looks::SAME_MOMENT`] of RAM and their rounding.
fn contradict(a: &Look, b: &Look) -> bool {
    let ram = a
        .host(signals::MEM_TOTAL.id())
        .or(b.host(signals::MEM_TOTAL.id()));
    a.sample.host.iter().any(|(id, was)| {
        let def = id.def();
        // Tools count buffers and reclaimable slab into "cache" or not.
        let is_one_thing = id != signals::MEM_CACHED.id();
        let Some(is) = b
            .host(id)
            .filter(|_| is_one_thing && !def.is_counter && def.unit == "bytes")
        else {
            return false;
        };
        let of = ram.unwrap_or(was.max(is));
        let tolerance = of / Looks::SAME_MOMENT + a.error(id) + b.error(id);
        was.abs_diff(is) > tolerance
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::paste;
    use timeline::signals::{PSWPIN, ZONE_FREE};
    use units::{Bytes, Pages};

    const VMSTAT: &str = "$ vmstat 1\n r b swpd free buff cache si so\n 1 0 0 349408 123456 654321 0 0\n 1 0 0 349408 123456 654321 640 0\n";
    const BUDDY: &str = "Node 0 Normal: 105*64kB (UME) 9*128kB (U) 0*256kB 0*512kB = 7872kB\n";

    #[test]
    fn a_told_page_size_beats_an_assumed_one_wherever_it_stands() {
        for (text, page, pages) in [
            (VMSTAT.to_owned(), 4096, 160),
            (format!("{VMSTAT}\n{BUDDY}"), 65_536, 10),
            (format!("{BUDDY}\n{VMSTAT}"), 65_536, 10),
            (format!("{VMSTAT}\n$ getconf PAGESIZE\n16384\n"), 16_384, 40),
        ] {
            let opened = paste(&text);
            let size = opened.facts.page_size.map(|size| size.bytes().get());
            assert_eq!(size, Some(page), "{text}");
            assert_eq!(
                opened.timeline.last(PSWPIN),
                Some(Pages::new(pages)),
                "{text}"
            );
        }
    }

    #[test]
    fn what_two_hosts_say_is_never_one_sample() {
        let free = "Mem: 16303428 13200000 203428 1000 2900000 2800000\nSwap: 2097148 2097148 0\n";
        let head =
            "              total        used        free      shared  buff/cache   available\n";
        let free = format!("{head}{free}");
        let info = "MemTotal: 16303428 kB\nMemFree: 180000 kB\nSUnreclaim: 9000000 kB\n";
        for (one, other, looks) in [
            ("root@web1:~# free -k", "root@web2:~# cat /proc/meminfo", 2),
            ("root@web1:~# free -k", "me@web1:~$ cat /proc/meminfo", 1),
            ("web1:", "web2:", 2),
            ("== web1 ==", "== web2 ==", 2),
            ("before:", "also:", 1),
        ] {
            let opened = paste(&format!("{one}\n{free}{other}\n{info}"));
            let timeline = &opened.timeline;
            assert_eq!(timeline.len(), looks, "{other}");
            assert_eq!(timeline.segments().len(), looks, "{other}");
        }
    }

    #[test]
    fn a_report_with_pages_of_another_size_is_converted() {
        let invoked = "java invoked oom-killer: gfp_mask=0x100cca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0\n";
        let dump = include_str!("../../probe/tests/kernel_reports/5.13-64k-pages.log");
        let report = &format!("{invoked}{dump}");
        let free = |text: &str| {
            let opened = paste(text);
            let timeline = &opened.timeline;
            let page = opened.facts.page_size.unwrap();
            let zones = timeline.entities(Entity::Zone);
            let largest = zones.filter_map(|zone| timeline.last_of(zone, ZONE_FREE));
            (
                page.bytes(),
                largest.map(|pages| pages.to_bytes(page)).max(),
            )
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
