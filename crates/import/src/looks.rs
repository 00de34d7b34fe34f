//! Puts looks at a host in order: what was pasted one after the other becomes one timeline.
//!
//! Blocks that could be of one moment become one sample (`free` and `/proc/meminfo` pasted together); a block of a form
//! that the sample has already, or that contradicts it, begins another. Where times are known the samples lie on one
//! clock; where not, nothing is computed from one to the next.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use timeline::{Entity, KernelReport, Sample, SignalId, Stamp, Timeline, signals};
use units::{Span, WallClock};

/// What a block says of one moment.
#[derive(Debug, Default)]
pub(crate) struct Look {
    /// Readings.
    pub(crate) sample: Sample,
    /// When.
    pub(crate) when: When,
    /// How it follows on the look before it.
    pub(crate) link: Link,
    /// Host gauges whose readings are rounded, and half a step of the rounding in the catalogue's unit.
    pub(crate) rounded: Vec<(SignalId, u64)>,
    /// What the kernel said, where the look is its report.
    pub(crate) report: Option<KernelReport>,
}

impl Look {
    /// A look at an unknown time.
    pub(crate) fn of(sample: Sample) -> Self {
        Self {
            sample,
            ..Self::default()
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
    fn half_step(&self, signal: SignalId) -> u64 {
        let of_it = self.rounded.iter().filter(|(id, _)| *id == signal);
        of_it.map(|(_, half)| *half).max().unwrap_or(0)
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
    dropped: usize,
    /// Looks that cannot be of the moment of a bundle's kernel files.
    pub(crate) contradicting: usize,
    /// Whether the last block was one of those.
    passing_over: bool,
    /// How many looks are unrelated to the one before.
    unrelated: usize,
    /// Whether the last look was one too many.
    lost: bool,
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
            self.passing_over =
                look.report.is_none() && bundle.is_some_and(|p| contradict(&p.look, look));
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
        // What lies behind a look that was passed over has nothing that it goes on from.
        let after = after.filter(|_| !std::mem::take(&mut self.lost));
        let is_unrelated = after.is_none();
        if self.timeline.len() >= Self::MOST
            || (is_unrelated && self.unrelated >= Self::MOST_UNRELATED)
        {
            self.dropped += 1;
            self.lost = true;
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
        self.unrelated += usize::from(is_unrelated);
        if after.is_some() {
            // Only a clock that stands still is out of order, and `after` is not zero.
            if self.timeline.push(&look.sample).is_err() {
                self.timeline.push_unrelated(&look.sample);
            }
        } else {
            self.timeline.push_unrelated(&look.sample);
        }
        for (signal, half) in look.rounded {
            self.timeline.round(signal, half);
        }
        if let Some(report) = look.report {
            self.timeline.report(report);
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
            let is_finer = look.half_step(signal) < known.half_step(signal);
            if known.host(signal).is_none() || is_finer {
                known.sample.host.set_raw(signal, raw);
                known.rounded.retain(|(rounded, _)| *rounded != signal);
                known.rounded.extend(
                    look.rounded
                        .iter()
                        .filter(|(rounded, _)| *rounded == signal),
                );
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
        let tolerance = of / Looks::SAME_MOMENT + a.half_step(id) + b.half_step(id);
        was.abs_diff(is) > tolerance
    })
}
