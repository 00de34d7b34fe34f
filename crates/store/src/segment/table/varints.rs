//! The variable-length integers (varints) of a damaged page. The library panics on one of more than ten bytes, wherever a page
//! has one: before each run of levels or of places in a dictionary, and in the headers of differences.

use parquet::errors::ParquetError;

/// A varint of 64 bits.
const VARINT_BYTES_MAX: usize = 10;

/// The bytes of a page behind what was read.
struct PageBytes<'a>(&'a [u8]);

impl PageBytes<'_> {
    /// The next varint; `None` at the end of the page, where the library stops too.
    fn varint(&mut self) -> Result<Option<u64>, ParquetError> {
        let mut value = 0;
        for (index, byte) in self.0.iter().enumerate() {
            if index == VARINT_BYTES_MAX {
                let why = "a page has an integer of more than ten bytes";
                return Err(ParquetError::General(why.to_owned()));
            }
            value |= u64::from(byte & 0x7f) << (7 * index);
            if *byte < 0x80 {
                self.0 = &self.0[index + 1..];
                return Ok(Some(value));
            }
        }
        self.0 = &[];
        Ok(None)
    }

    fn skip(&mut self, bytes: u64) {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.0 = self.0.get(bytes..).unwrap_or_default();
    }
}

/// Checks the runs of values of `bit_width` bits: of equal values, or of values in groups of eight.
pub(super) fn check_runs(bytes: &[u8], bit_width: u8) -> Result<(), ParquetError> {
    let mut page = PageBytes(bytes);
    while let Some(header) = page.varint()? {
        let groups = header >> 1;
        let is_packed = header & 1 == 1;
        page.skip(if is_packed {
            groups.saturating_mul(u64::from(bit_width))
        } else {
            u64::from(bit_width.div_ceil(8))
        });
    }
    Ok(())
}

/// Checks differences: a header, and blocks of a smallest difference and of parts with a bit width each.
pub(super) fn check_differences(bytes: &[u8]) -> Result<(), ParquetError> {
    let mut page = PageBytes(bytes);
    let mut header = [0; 4];
    for field in &mut header {
        let Some(value) = page.varint()? else {
            return Ok(());
        };
        *field = value;
    }
    let [block_values, parts, values, _] = header;
    let part_values = block_values.checked_div(parts).unwrap_or_default();
    let mut left = values.saturating_sub(1);
    while left > 0 && page.varint()?.is_some() {
        let parts = usize::try_from(parts).unwrap_or(usize::MAX);
        let widths = page.0.get(..parts).unwrap_or_default();
        page.skip(widths.len() as u64);
        for width in widths {
            // Parts behind the last value have a width, but no bytes.
            if left == 0 {
                break;
            }
            page.skip(part_values.saturating_mul(u64::from(*width)) / 8);
            left = left.saturating_sub(part_values);
        }
        // No part has a value: the library refuses it.
        if part_values == 0 || widths.is_empty() {
            return Ok(());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More bytes than a varint has.
    const LONG: [u8; 12] = [0x83; 12];

    #[test]
    fn long_integers_are_found_behind_runs_and_blocks() {
        // A run of five equal values of one bit, and a group of eight values of three bits.
        assert!(check_runs(&[10, 1, 10, 0], 1).is_ok());
        assert!(check_runs(&[3, 0x83, 0x83, 0x83, 10, 0], 3).is_ok());
        assert!(check_runs(&[&[10, 1], &LONG[..]].concat(), 1).is_err());
        assert!(check_runs(&[&[3, 0x83, 0x83, 0x83], &LONG[..]].concat(), 3).is_err());
        // 128 values in 4 parts, 130 values in all, the first of them; a block of which each part has one bit; then another.
        let header = [0x80, 1, 4, 0x82, 1, 7];
        let block = [&[2, 1, 1, 1, 1], &[0x83; 16][..]].concat();
        let whole = [&header[..], &block, &[2, 1, 0, 0, 0, 0x83]].concat();
        assert!(check_differences(&whole).is_ok());
        assert!(check_differences(&[&header[..], &block, &LONG[..]].concat()).is_err());
        assert!(check_differences(&[&header[..], &LONG[..]].concat()).is_err());
        assert!(check_differences(&LONG).is_err());
        assert!(check_differences(&[]).is_ok());
    }

    proptest::proptest! {
        #[test]
        fn every_page_is_checked_to_an_end(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300), width in 0_u8..=64) {
            let _ = (check_runs(&bytes, width), check_differences(&bytes));
        }
    }
}
