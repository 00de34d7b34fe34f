//! Pressure: `/proc/pressure/{memory,io,cpu}`; cgroups' `memory.pressure` and `io.pressure` have the same form.
//!
//! Since 4.20 (`CONFIG_PSI`); if PSI is switched off, opening fails. `total` is stalled time in µs: two samples give an
//! exact share. `avg*` are percent with two decimals over windows that the kernel chose; they are the only history in a
//! single sample. Cost: one `pread` of 100 bytes.

use timeline::{Counter, Gauge, Row, Signal};
use units::Micros;

use crate::error::{First, ParseError};
use crate::text;

/// The signals of one pressure file.
#[derive(Debug, Clone, Copy)]
pub struct Pressure {
    /// The file's name in messages.
    pub file: &'static str,
    /// The signal for the time during which at least one task waited.
    pub some: Signal<Counter<Micros>>,
    /// The signal for the time during which all tasks waited.
    pub full: Signal<Counter<Micros>>,
    /// The signals for the kernel's averages, if they are read.
    pub averages: Option<Averages>,
}

/// The averages over 10 s, 60 s and 300 s.
#[derive(Debug, Clone, Copy)]
pub struct Averages {
    /// For the time during which at least one task waited.
    pub some: [Signal<Gauge<Micros>>; 3],
    /// For the time during which all tasks waited.
    pub full: [Signal<Gauge<Micros>>; 3],
}

/// The text before the figures of [`Averages`].
const WINDOWS: [&[u8]; 3] = [b"avg10=", b"avg60=", b"avg300="];

impl Pressure {
    /// Reads the text into a row.
    ///
    /// # Errors
    /// The first line with a malformed total, or without total and averages; the other line is read.
    pub fn parse(&self, text: &[u8], row: &mut Row) -> Result<(), ParseError> {
        let mut first = First::default();
        for (count, line) in text::lines(text) {
            let mut words = text::words(line);
            let (signal, averages) = match words.next() {
                Some(b"some") => (self.some, self.averages.map(|all| all.some)),
                Some(b"full") => (self.full, self.averages.map(|all| all.full)),
                _ => continue,
            };
            let (mut total, mut has_average) = (None, false);
            for word in words {
                if let Some(figure) = word.strip_prefix(b"total=") {
                    total = Some(figure);
                } else if let Some((signal, share)) = averages.and_then(|of| average(word, of)) {
                    row.set(signal, share);
                    has_average = true;
                }
            }
            match total.map(text::number) {
                Some(Some(total)) => row.set(signal, Micros::new(total)),
                // Reports of Android leave it out.
                None if has_average => {}
                _ => first.note(|| ParseError::new(self.file, count, "total= and a number", line)),
            }
        }
        first.into_result()
    }
}

/// Parses `avg60=58.06` for its signal: 580,600 µs of each second. A share above 100 % is malformed.
fn average(
    word: &[u8],
    signals: [Signal<Gauge<Micros>>; 3],
) -> Option<(Signal<Gauge<Micros>>, Micros)> {
    let (signal, figure) = signals
        .into_iter()
        .zip(WINDOWS)
        .find_map(|(signal, name)| Some((signal, word.strip_prefix(name)?)))?;
    let (percent, digits) = text::leading_number(figure)?;
    // The kernel prints LOAD_INT and LOAD_FRAC: always two digits after the point.
    let hundredths = match figure.get(digits..)? {
        [b'.', tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => {
            u64::from(tens - b'0') * 10 + u64::from(ones - b'0')
        }
        _ => return None,
    };
    let share = percent.checked_mul(10_000)?.checked_add(hundredths * 100)?;
    (share <= 1_000_000).then_some((signal, Micros::new(share)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::signals::{
        PSI_MEMORY_FULL, PSI_MEMORY_FULL_AVG10, PSI_MEMORY_FULL_AVG60, PSI_MEMORY_FULL_AVG300,
        PSI_MEMORY_SOME, PSI_MEMORY_SOME_AVG10, PSI_MEMORY_SOME_AVG60, PSI_MEMORY_SOME_AVG300,
    };

    const MEMORY: Pressure = crate::PRESSURE[0];

    #[test]
    fn totals_are_microseconds() {
        let mut row = Row::default();
        let text = b"some avg10=0.00 avg60=0.00 avg300=0.00 total=123\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=45\n";
        MEMORY.parse(text, &mut row).unwrap();
        assert_eq!(row.get(PSI_MEMORY_SOME), Some(Micros::new(123)));
        assert_eq!(row.get(PSI_MEMORY_FULL), Some(Micros::new(45)));
    }

    #[test]
    fn averages_are_shares_of_a_second() {
        let mut row = Row::default();
        let text = b"some avg10=70.24 avg60=0.05 avg300=100.00 total=1\nfull avg10=7 avg60=58.06 avg300=100.01 total=2\n";
        MEMORY.parse(text, &mut row).unwrap();
        for (signal, micros) in [
            (PSI_MEMORY_SOME_AVG10, Some(702_400)),
            (PSI_MEMORY_SOME_AVG60, Some(500)),
            (PSI_MEMORY_SOME_AVG300, Some(1_000_000)),
            (PSI_MEMORY_FULL_AVG10, None),
            (PSI_MEMORY_FULL_AVG60, Some(580_600)),
            (PSI_MEMORY_FULL_AVG300, None),
        ] {
            assert_eq!(row.get(signal).map(Micros::get), micros);
        }
    }

    #[test]
    fn a_cut_line_is_an_error_and_the_other_is_kept() {
        let mut row = Row::default();
        let result = MEMORY.parse(b"some avg10=0.00 total=9\nfull avg10=0.0", &mut row);
        assert!(result.unwrap_err().to_string().contains("line 2"));
        assert_eq!(row.get(PSI_MEMORY_SOME), Some(Micros::new(9)));
        assert_eq!(row.get(PSI_MEMORY_FULL), None);
    }
}
