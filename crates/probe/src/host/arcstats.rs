//! The cache of ZFS (ARC): `/proc/spl/kstat/zfs/arcstats`, of the module of OpenZFS.
//!
//! A heading, then `name type value` with 100 to 150 counters in bytes or events; `size` is what the ARC has, `c_min` how far it
//! shrinks when programs want memory, `data_size` and `metadata_size` its pages, which no counter of the kernel has; the rest
//! is slab. Names that the catalogue lacks are skipped: they are not memory. Cost: a sum of
//! per-CPU counters for each line.

use timeline::signals::{self, ARCSTATS};
use timeline::{Row, SignalId};

use crate::error::{First, ParseError};
use crate::text;

/// The parser.
#[derive(Debug)]
pub(crate) struct Arcstats {
    /// Names and signals of the catalogue.
    fields: Vec<(&'static [u8], SignalId)>,
}

impl Default for Arcstats {
    fn default() -> Self {
        let fields = signals::field_of(ARCSTATS);
        Self { fields: fields.map(|(name, signal, _)| (name.as_bytes(), signal)).collect() }
    }
}

impl Arcstats {
    /// Reads the text into the host's row.
    ///
    /// # Errors
    /// The first known line without a number, or that no line is known; the other lines are read.
    pub(crate) fn parse(&self, text: &[u8], row: &mut Row) -> Result<(), ParseError> {
        let (mut first, mut is_known) = (First::default(), false);
        for (count, line) in text::lines(text) {
            let mut words = text::words(line);
            let Some(name) = words.next() else { continue };
            let Some((_, signal)) = self.fields.iter().find(|(known, _)| *known == name) else {
                continue;
            };
            let value = words.nth(1).unwrap_or_default();
            match text::number(value) {
                Some(bytes) => row.set_raw(*signal, bytes),
                None => first.note(|| ParseError::new(ARCSTATS, count, "a number", value)),
            }
            is_known = true;
        }
        if !is_known {
            first.note(|| ParseError::new(ARCSTATS, 1, "counters of the ARC", b""));
        }
        first.into_result()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile;
    use timeline::signals::{ZFS_ARC, ZFS_ARC_DATA, ZFS_ARC_METADATA, ZFS_ARC_MIN};
    use units::Bytes;

    /// Lines of a host with 64 GiB of RAM and OpenZFS 2.1, from the tests of a reader of kstats on GitHub.
    const TEXT: &[u8] = b"13 1 0x01 123 33456 7402060102 66478716886640\n\
name                            type data\n\
hits                            4    174896434\n\
c                               4    33676691456\n\
c_min                           4    2104793216\n\
c_max                           4    33676691456\n\
size                            4    33743421984\n\
compressed_size                 4    28242027008\n\
hdr_size                        4    192501600\n\
data_size                       4    28890273280\n\
metadata_size                   4    1463973888\n\
dbuf_size                       4    743366784\n\
memory_available_bytes          3    22935279488\n\
abd_chunk_waste_size            4    3857920\n";

    #[test]
    fn the_size_and_its_pages_are_read() {
        let mut row = Row::default();
        Arcstats::default().parse(TEXT, &mut row).unwrap();
        for (signal, bytes) in [
            (ZFS_ARC, 33_743_421_984),
            (ZFS_ARC_MIN, 2_104_793_216),
            (ZFS_ARC_DATA, 28_890_273_280),
            (ZFS_ARC_METADATA, 1_463_973_888),
        ] {
            assert_eq!(row.get(signal), Some(Bytes::new(bytes)));
        }
    }

    #[test]
    fn a_line_without_a_number_is_named_and_the_others_are_read() {
        let mut row = Row::default();
        let error = Arcstats::default().parse(b"size 4 -1\nc_min 4 7\n", &mut row).unwrap_err();
        assert!(error.to_string().contains("line 1"), "{error}");
        assert_eq!(row.get(ZFS_ARC), None);
        assert_eq!(row.get(ZFS_ARC_MIN), Some(Bytes::new(7)));
    }

    #[test]
    fn any_bytes_are_survived() {
        hostile::feed(TEXT, |text| {
            let _ = Arcstats::default().parse(text, &mut Row::default());
        });
    }
}
