//! Events of TCP's memory: `/proc/net/netstat`.
//!
//! Two lines for each protocol: its names, and their values in the same order. Only names of the catalogue are read, as
//! the others are not about memory. Counters are those of the reader's own network namespace, while the limits and the
//! memory that they are about are of the whole machine. Cost: one `pread` of 5 KiB, 10 µs, which sums per-CPU counters.

use timeline::{
    Sample, Signal,
    signals::{Counter, NETSTAT, TCP_MEMORY_ABORTS, TCP_MEMORY_PRESSURES},
};
use units::Count;

use crate::error::{First, ParseError};
use crate::text;

/// The signals of the file, each with its name after that of the protocol.
const READ: [(&[u8], Signal<Counter<Count>>); 2] =
    [(b"TCPAbortOnMemory", TCP_MEMORY_ABORTS), (b"TCPMemoryPressures", TCP_MEMORY_PRESSURES)];
const PROTOCOL: &[u8] = b"TcpExt:";

/// The parser.
#[derive(Debug)]
pub(crate) struct Netstat;

impl Netstat {
    /// Reads the text into the host's row.
    ///
    /// # Errors
    /// The first value that is not a number; the other values are read.
    pub(crate) fn parse(&self, text: &[u8], sample: &mut Sample) -> Result<(), ParseError> {
        let mut first = First::default();
        let mut lines = text::lines(text).filter(|(_, line)| line.starts_with(PROTOCOL));
        let (Some((_, names)), Some((count, values))) = (lines.next(), lines.next()) else {
            return first.into_result();
        };
        for (name, word) in text::words(names).zip(text::words(values)) {
            let Some((_, signal)) = READ.iter().find(|(read, _)| *read == name) else {
                continue;
            };
            match text::number(word) {
                Some(value) => sample.host.set(*signal, Count::new(value)),
                None => first.note(|| ParseError::new(NETSTAT, count, "a number", word)),
            }
        }
        first.into_result()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile;

    const V6_18: &[u8] = include_bytes!("../../tests/kernel/6.18/netstat");

    fn read(text: &[u8]) -> (Sample, Result<(), ParseError>) {
        let mut sample = Sample::default();
        let result = Netstat.parse(text, &mut sample);
        (sample, result)
    }

    #[test]
    fn values_belong_to_the_names_above_them() {
        let (sample, result) = read(
            b"TcpExt: PruneCalled TCPAbortOnMemory TCPMemoryPressures TCPMemoryPressuresChrono\n\
              TcpExt: 4 7 12 900\nIpExt: TCPAbortOnMemory\nIpExt: 3\n",
        );
        result.unwrap();
        assert_eq!(sample.host.get(TCP_MEMORY_ABORTS), Some(Count::new(7)));
        assert_eq!(sample.host.get(TCP_MEMORY_PRESSURES), Some(Count::new(12)));
    }

    #[test]
    fn a_kernels_own_file_is_read() {
        let (sample, result) = read(V6_18);
        result.unwrap();
        assert_eq!(sample.host.get(TCP_MEMORY_PRESSURES), Some(Count::ZERO));
    }

    #[test]
    fn kernels_before_4_15_do_not_count_pressures() {
        let (sample, result) = read(b"TcpExt: TCPAbortOnMemory\nTcpExt: 0\n");
        result.unwrap();
        assert_eq!(sample.host.get(TCP_MEMORY_PRESSURES), None);
    }

    #[test]
    fn a_bad_number_costs_itself_only() {
        let (sample, result) = read(b"TcpExt: TCPAbortOnMemory TCPMemoryPressures\nTcpExt: -1 2\n");
        let message = "/proc/net/netstat, line 2: expected a number, found `-1`";
        assert_eq!(result.unwrap_err().to_string(), message);
        assert_eq!(sample.host.get(TCP_MEMORY_ABORTS), None);
        assert_eq!(sample.host.get(TCP_MEMORY_PRESSURES), Some(Count::new(2)));
    }

    #[test]
    fn any_bytes_are_survived() {
        hostile::feed(V6_18, |text| drop(read(text)));
    }
}
