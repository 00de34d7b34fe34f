//! Free blocks by size: `/proc/buddyinfo`.
//!
//! One line per zone with pages; column *n*, counted from 0, is the number of free blocks of 2^n contiguous pages. All
//! kernels have it. There are 11 columns with 4 KiB pages and up to 16 otherwise: columns beyond order 10 are stored as
//! unknown fields. Counts are taken under the zone's lock, one zone after the other. Cost: one `pread` of 100 bytes per
//! zone, 3 µs.

use timeline::{
    Entity, Sample,
    signals::{BUDDYINFO, ZONE_BLOCKS},
};
use units::Count;

use crate::error::{First, ParseError};
use crate::host::zoneinfo::{keep_of, split_header, zone_key};
use crate::text;

/// The parser; it reuses a buffer for keys.
#[derive(Debug, Default)]
pub(crate) struct Buddyinfo {
    key: String,
}

/// Names of orders beyond the catalogue's among the unknown fields.
const HIGHER_ORDERS: [&str; 5] = ["order 11", "order 12", "order 13", "order 14", "order 15"];

impl Buddyinfo {
    /// Reads the text into the zones' rows, which are keyed `NODE/ZONE`.
    ///
    /// # Errors
    /// The first malformed line; the other lines are read.
    pub(crate) fn parse(&mut self, text: &[u8], sample: &mut Sample) -> Result<(), ParseError> {
        let mut first = First::default();
        for (count, line) in text::lines(text) {
            let Some((node, name, blocks)) = split_header(line) else {
                first.note(|| ParseError::new(BUDDYINFO, count, "`Node 0, zone NAME`", line));
                continue;
            };
            let mut number = |word: &[u8]| {
                let number = text::number(word);
                if number.is_none() {
                    first.note(|| ParseError::new(BUDDYINFO, count, "a number of blocks", word));
                }
                number
            };
            zone_key(&mut self.key, node, name);
            let mut words = text::words(blocks);
            let (row, unknown) = sample.entry_and_unknown(Entity::Zone, &self.key);
            // The signals come first in `zip`: otherwise it would take and lose a word that has no signal.
            for (signal, word) in ZONE_BLOCKS.iter().zip(&mut words) {
                if let Some(blocks) = number(word) {
                    row.row.set(*signal, Count::new(blocks));
                }
            }
            for (order, word) in HIGHER_ORDERS.iter().zip(words) {
                if let Some(blocks) = number(word) {
                    keep_of(&mut self.key, order.as_bytes(), blocks, BUDDYINFO, unknown);
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
    use timeline::signals::{ZONE_BLOCKS_0, ZONE_BLOCKS_9, ZONE_BLOCKS_10};

    const V6_1: &[u8] = include_bytes!("../../tests/kernel/6.1/buddyinfo");
    const V6_12: &[u8] = include_bytes!("../../tests/kernel/6.12/buddyinfo");

    fn parse(text: &[u8]) -> (Sample, Result<(), ParseError>) {
        let mut sample = Sample::default();
        let result = Buddyinfo::default().parse(text, &mut sample);
        (sample, result)
    }

    #[test]
    fn columns_are_orders() {
        let (sample, result) = parse(V6_1);
        result.unwrap();
        let rows = sample.table(Entity::Zone).rows();
        let keys: Vec<_> = rows.iter().map(|row| row.key.as_str()).collect();
        assert_eq!(keys, ["0/DMA", "0/DMA32", "1/DMA32"]);
        assert_eq!(rows[2].row.get(ZONE_BLOCKS_0), Some(Count::new(2)));
        assert_eq!(rows[2].row.get(ZONE_BLOCKS_9), Some(Count::new(2)));
        assert_eq!(rows[2].row.get(ZONE_BLOCKS_10), Some(Count::new(105)));
        parse(V6_12).1.unwrap();
    }

    #[test]
    fn orders_beyond_the_catalogue_are_kept() {
        let (sample, result) =
            parse(b"Node 0, zone   Normal      1      2      3      4      5      6      7      8      9     10     11     12     13     14 \n");
        result.unwrap();
        let row = &sample.table(Entity::Zone).rows()[0].row;
        assert_eq!(row.get(ZONE_BLOCKS_10), Some(Count::new(11)));
        assert_eq!(row.iter().count(), 11);
        let unknown: Vec<_> = sample.unknown.iter().map(|u| (u.field.as_str(), u.value)).collect();
        let expected =
            [("0/Normal order 11", 12), ("0/Normal order 12", 13), ("0/Normal order 13", 14)];
        assert_eq!(unknown, expected);
    }

    #[test]
    fn a_bad_number_costs_its_order_only() {
        let (sample, result) = parse(b"Node 0, zone      DMA      1     -2      3\nNode 0, zo");
        assert_eq!(
            result.unwrap_err().to_string(),
            "/proc/buddyinfo, line 1: expected a number of blocks, found `-2`"
        );
        let row = &sample.table(Entity::Zone).rows()[0].row;
        let numbers: Vec<_> = ZONE_BLOCKS.iter().map(|s| row.get(*s)).take(4).collect();
        assert_eq!(numbers, [Some(Count::new(1)), None, Some(Count::new(3)), None]);
    }

    #[test]
    fn any_bytes_are_survived() {
        hostile::feed(V6_1, |text| drop(parse(text)));
    }
}
