//! Memory of sockets: `/proc/net/sockstat`.
//!
//! `TCP: … mem N` and `UDP: … mem N` are pages, of all network namespaces together. Counts of sockets are skipped, as
//! they cover only the reader's own namespace; memory of other protocols is stored as unknown fields. Buffers are
//! charged in steps, so small amounts are rounded up. Absent without CONFIG_INET. Cost: one `pread` of 130 bytes, 1.5
//! µs.

use timeline::{
    Sample,
    signals::{SOCKSTAT, TCP_MEM, UDP_MEM},
};
use units::Pages;

use crate::error::{First, ParseError};
use crate::text;

/// The parser; it reuses a buffer for names.
#[derive(Debug, Default)]
pub(crate) struct Sockstat {
    name: String,
}

impl Sockstat {
    /// Reads the text into the host's row.
    ///
    /// # Errors
    /// The first line with a name that lacks its number; the other values are read.
    pub(crate) fn parse(&mut self, text: &[u8], sample: &mut Sample) -> Result<(), ParseError> {
        let mut first = First::default();
        for (count, line) in text::lines(text) {
            let Some(end) = memchr::memchr(b':', line) else {
                continue;
            };
            let (protocol, fields) = (&line[..end], &line[end + 1..]);
            let mut words = text::words(fields);
            while let Some(field) = words.next() {
                let word = words.next().unwrap_or_default();
                if !field.starts_with(b"mem") {
                    continue;
                }
                let Some(value) = text::number(word) else {
                    first.note(|| ParseError::new(SOCKSTAT, count, "a number", word));
                    continue;
                };
                match protocol {
                    b"TCP" => sample.host.set(TCP_MEM, Pages::new(value)),
                    b"UDP" => sample.host.set(UDP_MEM, Pages::new(value)),
                    _ => {
                        self.name.clear();
                        text::push_lossy(&mut self.name, protocol);
                        self.name.push(' ');
                        text::push_lossy(&mut self.name, field);
                        sample.unknown.keep(SOCKSTAT, &self.name, value);
                    }
                }
            }
        }
        first.into_result()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile;

    const V6_18: &[u8] = include_bytes!("../../tests/kernel/6.18/sockstat");

    fn read(text: &[u8]) -> (Sample, Result<(), ParseError>) {
        let mut sample = Sample::default();
        let result = Sockstat::default().parse(text, &mut sample);
        (sample, result)
    }

    #[test]
    fn memory_is_read_or_kept_and_counts_are_passed_over() {
        let (sample, result) = read(
            b"sockets: used 1602\nTCP: inuse 35 orphan 0 tw 4 alloc 59 mem 22\nUDP: inuse 12 mem 62\n\
              UDPLITE: inuse 0\nFRAG: inuse 3 memory 9\n",
        );
        result.unwrap();
        assert_eq!(sample.host.get(TCP_MEM), Some(Pages::new(22)));
        assert_eq!(sample.host.get(UDP_MEM), Some(Pages::new(62)));
        let unknown: Vec<_> = sample.unknown.iter().map(|u| (u.field.as_str(), u.value)).collect();
        assert_eq!(unknown, [("FRAG memory", 9)]);
        read(V6_18).1.unwrap();
    }

    #[test]
    fn a_bad_number_costs_itself_only() {
        let (sample, result) = read(b"TCP: inuse 1 mem -1\nUDP: mem 7\nFRAG: memory");
        let message = "/proc/net/sockstat, line 1: expected a number, found `-1`";
        assert_eq!(result.unwrap_err().to_string(), message);
        assert_eq!(sample.host.get(TCP_MEM), None);
        assert_eq!(sample.host.get(UDP_MEM), Some(Pages::new(7)));
    }

    #[test]
    fn any_bytes_are_survived() {
        hostile::feed(V6_18, |text| drop(read(text)));
    }
}
