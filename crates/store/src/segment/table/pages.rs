//! Decompressed pages of a column.
//!
//! The library creates two zstd contexts for each column that is read, which takes as long as reading a short column.
//! Here the pages are declared uncompressed, and one context decompresses those of all columns.

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;
use zstd::bulk::Decompressor;

/// A page that claims to be longer is not part of an hour's column.
pub(super) const PAGE_BYTES_MAX: usize = 1 << 30;

thread_local! {
    static UNPACKING: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// The pages of a column.
pub(super) struct Pages {
    packed: SerializedPageReader<Bytes>,
    is_zstd: bool,
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
        Ok(Self { packed, is_zstd })
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
            Page::DictionaryPage {
                buf,
                num_values,
                encoding,
                is_sorted,
            } => Ok(Page::DictionaryPage {
                buf: unpack(&buf)?,
                num_values,
                encoding,
                is_sorted,
            }),
            Page::DataPageV2 { .. } => Err(ParquetError::General(
                "its pages are of the second version, which no memtide writes".to_owned(),
            )),
        }
    }
}

/// Decompresses zstd data.
fn unpack(packed: &[u8]) -> Result<Bytes, ParquetError> {
    if packed.is_empty() {
        return Ok(Bytes::new());
    }
    let claimed = zstd::zstd_safe::get_frame_content_size(packed)
        .ok()
        .flatten();
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
        Page::DictionaryPage {
            buf, num_values, ..
        } if usize::try_from(*num_values).unwrap_or(usize::MAX) > buf.len() => {
            Err(failed(format!(
                "a dictionary of {} bytes claims {num_values} words",
                buf.len()
            )))
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
        let page = self.packed.get_next_page()?;
        page.map(|page| self.unpacked(page).and_then(checked))
            .transpose()
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
    use parquet::basic::Encoding;

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
    fn what_is_packed_comes_out_and_what_is_not_is_refused() {
        let packed = zstd::bulk::compress(&[7; 1_000], 3).unwrap();
        assert_eq!(unpack(&packed).unwrap(), vec![7; 1_000]);
        assert_eq!(unpack(&[]).unwrap(), Bytes::new());
        for wrong in [&b"no frame"[..], &packed[..packed.len() - 3]] {
            assert!(unpack(wrong).is_err());
        }
    }
}
