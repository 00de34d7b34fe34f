//! Files with one line of numbers that are identified only by their position: `/proc/sys/fs/dentry-state`, zram's
//! `mm_stat`, KSM's counts.
//!
//! The catalogue's field is the position, counted from 1. Old kernels have fewer numbers, new ones may have more: a
//! missing number is absent, and additional ones are skipped because nothing says what they are.

use timeline::signals::{self, Gauge, Signal};
use timeline::{Row, SignalId};
use units::{Limit, Unit};

use crate::error::{First, ParseError};
use crate::text;

/// Reads one file's line of numbers into a row.
#[derive(Debug)]
pub(crate) struct NumberColumns {
    file: &'static str,
    /// Position counted from 0, signal, scale; in the order of the positions.
    signals: Vec<(usize, SignalId, u64)>,
    /// The signal with a 0 that is not a number, and the raw reading that 0 stands for, if any.
    zero_of: Option<(SignalId, Option<u64>)>,
}

impl NumberColumns {
    /// Creates a reader for a file that the catalogue names as a source.
    pub(crate) fn for_file(file: &'static str) -> Self {
        let mut signals: Vec<_> = signals::field_of(file)
            .filter_map(|(field, signal, def)| {
                let place: usize = field.parse().ok()?;
                Some((place.checked_sub(1)?, signal, def.scale))
            })
            .collect();
        signals.sort_unstable_by_key(|(place, ..)| *place);
        Self { file, signals, zero_of: None }
    }

    /// Treats 0 as an absent reading of this signal: older kernels print 0 in a column that had no meaning yet.
    pub(crate) fn uncounted_if_zero(mut self, signal: SignalId) -> Self {
        self.zero_of = Some((signal, None));
        self
    }

    /// Treats 0 as "no limit" for this signal.
    pub(crate) fn unlimited_if_zero(mut self, signal: Signal<Gauge<Limit>>) -> Self {
        self.zero_of = Some((signal.id(), Some(Limit::Unlimited.raw())));
        self
    }

    /// Reads the first line.
    pub(crate) fn parse(&self, text: &[u8], row: &mut Row) -> Result<(), ParseError> {
        let mut first = First::default();
        let line = text::lines(text).next().map_or(&b""[..], |(_, line)| line);
        let mut wanted = self.signals.iter().peekable();
        for (place, word) in text::words(line).enumerate() {
            let Some((_, signal, scale)) = wanted.next_if(|(wanted, ..)| *wanted == place) else {
                continue;
            };
            match text::number(word).and_then(|value| value.checked_mul(*scale)) {
                Some(value) => {
                    let reading = match self.zero_of {
                        Some((of, instead)) if of == *signal && value == 0 => instead,
                        _ => Some(value),
                    };
                    if let Some(reading) = reading {
                        row.set_raw(*signal, reading);
                    }
                }
                None => first.note(|| ParseError::new(self.file, 1, "a number", word)),
            }
        }
        if wanted.len() == self.signals.len() {
            // An empty file has not even the first number.
            first.note(|| ParseError::new(self.file, 1, "a line of numbers", line));
        }
        first.into_result()
    }
}
