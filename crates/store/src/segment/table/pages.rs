//! Decompressed pages of a column.
//!
//! The library creates two zstd contexts for each column that is read, which takes as long as reading a short column.
//! Here the pages are declared uncompressed, and one context decompresses those of all columns.

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;
use zstd::bulk::Decompressor;

use super::varints::{check_differences, check_runs};

/// A page that claims to be longer is not part of an hour's column: 16 million readings have eight bytes each.
pub(super) const PAGE_BYTES_MAX: usize = 1 << 27;

const SECOND_VERSION: &str = "its pages are of the second version, which no memtide writes";
/// The length of the levels of a page stands before them.
const LENGTH_BYTES: usize = 4;

thread_local! {
    static UNPACKING: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// The pages of a column.
pub(super) struct Pages {
    packed: SerializedPageReader<Bytes>,
    is_zstd: bool,
    /// Whether a page has, before its values, which of them are present.
    has_levels: bool,
    /// Whether its dictionary was read.
    has_dictionary: bool,
}

impl Pages {
    /// Opens the pages of a column of a file.
    pub(super) fn new(
        file: &Arc<Bytes>,
        column: &ColumnChunkMetaData,
        rows: usize,
    ) -> Result<Self, ParquetError> {
        let is_zstd = matches!(column.compression(), Compression::ZSTD(_));
        let uncompressed = if is_zstd {
            let column = column.clone().into_builder();
            column.set_compression(Compression::UNCOMPRESSED).build()?
        } else {
            column.clone()
        };
        let packed = SerializedPageReader::new(Arc::clone(file), &uncompressed, rows, None)?;
        Ok(Self {
            packed,
            is_zstd,
            has_levels: column.column_descr().max_def_level() > 0,
            has_dictionary: false,
        })
    }

    /// Checks a page where the library panics on a damaged one.
    fn readable(&mut self, page: Page) -> Result<Page, ParquetError> {
        use Encoding::{DELTA_BINARY_PACKED, PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY};
        let (encoding, buf) = match &page {
            Page::DictionaryPage { .. } => {
                self.has_dictionary = true;
                return checked(page);
            }
            Page::DataPage { encoding, buf, .. } => (*encoding, buf),
            Page::DataPageV2 { .. } => return Err(failed(SECOND_VERSION)),
        };
        let start = values_start(buf, self.has_levels)?;
        let (levels, values) = buf.split_at(start);
        check_runs(levels.get(LENGTH_BYTES..).unwrap_or_default(), 1)?;
        match encoding {
            PLAIN_DICTIONARY | RLE_DICTIONARY if !self.has_dictionary => {
                return Err(failed("a page needs a dictionary that its column lacks"));
            }
            PLAIN_DICTIONARY | RLE_DICTIONARY => {
                if let Some((bit_width, runs)) = values.split_first() {
                    check_runs(runs, *bit_width)?;
                }
            }
            DELTA_BINARY_PACKED if is_empty_delta(values) => {
                return Ok(without_values(page, start));
            }
            DELTA_BINARY_PACKED => check_differences(values)?,
            PLAIN => {}
            other => {
                return Err(failed(format!("its pages are {other}, which no memtide writes")));
            }
        }
        checked(page)
    }

    fn unpacked(&self, page: Page) -> Result<Page, ParquetError> {
        if !self.is_zstd {
            return Ok(page);
        }
        match page {
            Page::DataPage {
                buf,
                num_values,
                encoding,
                def_level_encoding,
                rep_level_encoding,
                statistics,
            } => Ok(Page::DataPage {
                buf: unpack(&buf)?,
                num_values,
                encoding,
                def_level_encoding,
                rep_level_encoding,
                statistics,
            }),
            Page::DictionaryPage { buf, num_values, encoding, is_sorted } => {
                Ok(Page::DictionaryPage { buf: unpack(&buf)?, num_values, encoding, is_sorted })
            }
            Page::DataPageV2 { .. } => Err(failed(SECOND_VERSION)),
        }
    }
}

/// Returns where the values of a page begin: behind the length and the bytes of its levels.
fn values_start(page: &[u8], has_levels: bool) -> Result<usize, ParquetError> {
    if !has_levels {
        return Ok(0);
    }
    let length = page.first_chunk::<LENGTH_BYTES>().map(|bytes| u32::from_le_bytes(*bytes));
    length
        .and_then(|length| usize::try_from(length).ok()?.checked_add(LENGTH_BYTES))
        .filter(|start| *start <= page.len())
        .ok_or_else(|| failed("a page ends within its levels"))
}

/// Whether differences begin with a header (block, parts of a block, values: a varint each) of no value. Where one is read
/// all the same, the library counts down from zero.
fn is_empty_delta(values: &[u8]) -> bool {
    let mut varints = values.split_inclusive(|byte| *byte < 0x80).skip(2);
    let count = varints.next().unwrap_or_default();
    count.iter().all(|byte| byte & 0x7f == 0)
}

/// The same page without values, in an encoding that tolerates this: a reader that needs one gets an error.
fn without_values(page: Page, start: usize) -> Page {
    match page {
        Page::DataPage {
            buf,
            num_values,
            def_level_encoding,
            rep_level_encoding,
            statistics,
            ..
        } => Page::DataPage {
            buf: buf.slice(..start),
            num_values,
            encoding: Encoding::PLAIN,
            def_level_encoding,
            rep_level_encoding,
            statistics,
        },
        page => page,
    }
}

/// Decompresses zstd data.
fn unpack(packed: &[u8]) -> Result<Bytes, ParquetError> {
    if packed.is_empty() {
        return Ok(Bytes::new());
    }
    let claimed = zstd::zstd_safe::get_frame_content_size(packed).ok().flatten();
    let length = claimed
        .and_then(|length| usize::try_from(length).ok())
        .filter(|length| *length <= PAGE_BYTES_MAX)
        .ok_or_else(|| failed("a page does not say how long it is"))?;
    UNPACKING.with_borrow_mut(|context| {
        let context = match context {
            Some(context) => context,
            None => context.insert(Decompressor::new().map_err(failed)?),
        };
        let unpacked = context.decompress(packed, length).map_err(failed)?;
        Ok(Bytes::from(unpacked))
    })
}

fn failed(why: impl ToString) -> ParquetError {
    ParquetError::General(why.to_string())
}

/// Checks a page: a dictionary has no more words than bytes, and the library allocates as many as a header claims.
fn checked(page: Page) -> Result<Page, ParquetError> {
    match &page {
        Page::DictionaryPage { buf, num_values, .. }
            if usize::try_from(*num_values).unwrap_or(usize::MAX) > buf.len() =>
        {
            Err(failed(format!("a dictionary of {} bytes claims {num_values} words", buf.len())))
        }
        _ => Ok(page),
    }
}

impl Iterator for Pages {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        let Some(page) = self.packed.get_next_page()? else {
            return Ok(None);
        };
        let page = self.unpacked(page)?;
        self.readable(page).map(Some)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        self.packed.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        self.packed.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool, ParquetError> {
        self.packed.at_record_boundary()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dictionary_claims_no_more_words_than_it_has_bytes() {
        let dictionary = |num_values| Page::DictionaryPage {
            buf: vec![0; 16].into(),
            num_values,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        assert!(checked(dictionary(2)).is_ok());
        let refused = checked(dictionary(u32::MAX)).unwrap_err();
        assert!(refused.to_string().contains("16 bytes claims"), "{refused}");
    }

    #[test]
    fn differences_without_a_value_are_found_behind_the_levels() {
        // Blocks of 128 values in 4 parts; then the number of values, and the first of them.
        for (values, is_empty) in [
            (&[0x80, 1, 4, 0, 0][..], true),
            (&[0x80, 1, 4, 0x80, 0, 0], true),
            (&[0x80, 1, 4, 1, 0], false),
            (&[0x80, 1, 4, 0x80, 1, 0], false),
            (&[0x80, 1], true),
            (&[], true),
        ] {
            assert_eq!(is_empty_delta(values), is_empty, "{values:?}");
        }
        let page = [2, 0, 0, 0, 3, 1, 0x80, 1, 4, 0, 0];
        assert_eq!(values_start(&page, true).unwrap(), 6);
        assert_eq!(values_start(&page, false).unwrap(), 0);
        assert!(values_start(&[200, 0, 0, 0, 1], true).is_err());
        assert!(values_start(&[1, 0], true).is_err());
    }

    #[test]
    fn what_is_packed_comes_out_and_what_is_not_is_refused() {
        let packed = zstd::bulk::compress(&[7; 1_000], 3).unwrap();
        assert_eq!(unpack(&packed).unwrap(), vec![7; 1_000]);
        assert_eq!(unpack(&[]).unwrap(), Bytes::new());
        for wrong in [&b"no frame"[..], &packed[..packed.len() - 3]] {
            assert!(unpack(wrong).is_err());
        }
    }
}
