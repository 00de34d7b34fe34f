//! Puts looks at a host in order: what was pasted one after the other becomes one timeline.
//!
//! Blocks that could be of one moment become one sample (`free` and `/proc/meminfo` pasted together); a block of a form
//! that the sample has already, or that contradicts it, begins another. Where times are known the samples lie on one
//! clock; where not, nothing is computed from one to the next.

use timeline::{Entity, KernelReport, Sample, SignalId, Stamp, Timeline, signals};
use units::{Span, WallClock};

/// What a block says of one moment.
#[derive(Debug, Default)]
pub(crate) struct Look {
    /// Readings.
    pub(crate) sample: Sample,
    /// When.
    pub(crate) when: When,
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

    /// How far the true reading may lie from the one given.
    fn half_step(&self, signal: SignalId) -> u64 {
        let of_it = self.rounded.iter().filter(|(id, _)| *id == signal);
        of_it.map(|(_, half)| *half).max().unwrap_or(0)
    }
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
    /// Two readings of one thing that differ by more than a fiftieth of RAM are of two moments.
    const SAME_MOMENT: u64 = 50;

    /// Adds a look; `form` is the block's, `is_first` whether it is the first look of its block.
    pub(crate) fn add(&mut self, form: &'static str, is_first: bool, look: Look) {
        if is_first
            && self.could_be_one_moment(form, &look)
            && let Some(pending) = &mut self.pending
        {
            pending.take(form, look);
            return;
        }
        let after = self.after(is_first, look.when);
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

    fn could_be_one_moment(&self, form: &'static str, look: &Look) -> bool {
        let Some(pending) = &self.pending else {
            return false;
        };
        let both = |a: &Look, b: &Look| match (a.when, b.when) {
            (When::At(a), When::At(b)) => a == b,
            _ => true,
        };
        look.report.is_none()
            && pending.look.report.is_none()
            && !pending.forms.contains(&form)
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
        if self.timeline.len() >= Self::MOST {
            self.dropped += 1;
            return;
        }
        let last = self
            .timeline
            .len()
            .checked_sub(1)
            .and_then(|i| self.timeline.stamp(i));
        look.sample.stamp = Stamp {
            boot: last.map_or(Span::ZERO, |last| {
                last.boot.plus(after.unwrap_or(Span::from_secs(1)))
            }),
            awake: None,
            wall: match look.when {
                When::At(wall) => Some(wall),
                When::After(span) => last.and_then(|l| l.wall).map(|wall| wall.plus(span)),
                When::Unknown => None,
            },
        };
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

    /// The timeline, and how many looks were too many for it.
    pub(crate) fn finish(mut self) -> (Timeline, usize) {
        self.flush();
        (self.timeline, self.dropped)
    }
}

impl Pending {
    fn take(&mut self, form: &'static str, look: Look) {
        self.forms.push(form);
        if let When::At(_) = look.when {
            self.look.when = look.when;
        }
        let known = &mut self.look;
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
                    into.row.set_raw(signal, raw);
                }
            }
        }
        for field in look.sample.unknown.iter() {
            known
                .sample
                .unknown
                .keep(field.file, &field.field, field.value);
        }
    }
}

/// Whether two looks cannot be of one moment of one host: they give another size of RAM or swap, or levels that are
/// further apart than [`Looks::SAME_MOMENT`] of RAM and their rounding.
fn contradict(a: &Look, b: &Look) -> bool {
    let ram = a
        .host(signals::MEM_TOTAL.id())
        .or(b.host(signals::MEM_TOTAL.id()));
    a.sample.host.iter().any(|(id, was)| {
        let def = id.def();
        let Some(is) = b
            .host(id)
            .filter(|_| !def.is_counter && def.unit == "bytes")
        else {
            return false;
        };
        let of = ram.unwrap_or(was.max(is));
        let tolerance = of / Looks::SAME_MOMENT + a.half_step(id) + b.half_step(id);
        was.abs_diff(is) > tolerance
    })
}
