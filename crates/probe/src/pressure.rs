//! Pressure: `/proc/pressure/{memory,io,cpu}`; cgroups' `memory.pressure` and `io.pressure` have the same form.
//!
//! Since 4.20 (`CONFIG_PSI`); switched off, opening fails. `avg*` are percent over windows of the kernel's choice,
//! `total` is stalled time in µs: only the total is read. Cost: one `pread` of 100 bytes.

use timeline::{Counter, Row, Signal};
use units::Micros;

use crate::error::{First, ParseError};
use crate::text;

/// The signals of one pressure file.
#[derive(Debug, Clone, Copy)]
pub struct Pressure {
    /// The file's name in messages.
    pub file: &'static str,
    /// Where the time goes for which at least one task waited.
    pub some: Signal<Counter<Micros>>,
    /// Where the time goes for which all tasks waited.
    pub full: Signal<Counter<Micros>>,
}

impl Pressure {
    /// Reads the text into a row.
    ///
    /// # Errors
    /// The first line without a total; the other is read.
    pub fn parse(&self, text: &[u8], row: &mut Row) -> Result<(), ParseError> {
        let mut first = First::default();
        for (count, line) in text::lines(text) {
            let mut words = text::words(line);
            let signal = match words.next() {
                Some(b"some") => self.some,
                Some(b"full") => self.full,
                _ => continue,
            };
            let total = words.find_map(|word| word.strip_prefix(b"total="));
            match total.and_then(text::number) {
                Some(total) => row.set(signal, Micros::new(total)),
                None => {
                    first.note(|| ParseError::new(self.file, count, "total= and a number", line))
                }
            }
        }
        first.into_result()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::signals::{PSI_MEMORY_FULL, PSI_MEMORY_SOME};

    const MEMORY: Pressure = Pressure {
        file: "/proc/pressure/memory",
        some: PSI_MEMORY_SOME,
        full: PSI_MEMORY_FULL,
    };

    #[test]
    fn totals_are_microseconds() {
        let mut row = Row::default();
        let text = b"some avg10=0.00 avg60=0.00 avg300=0.00 total=123\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=45\n";
        MEMORY.parse(text, &mut row).unwrap();
        assert_eq!(row.get(PSI_MEMORY_SOME), Some(Micros::new(123)));
        assert_eq!(row.get(PSI_MEMORY_FULL), Some(Micros::new(45)));
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
