//! Reads columns of a Parquet file.

use std::ops::Range;
use std::sync::Arc;

use parquet::basic::Type as Physical;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetStatisticsPolicy;
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::{ReadOptionsBuilder, SerializedFileReader};

use super::{Cells, pages, too_short, words};

/// A file that is read into memory and opened.
pub(crate) struct OpenedTable {
    reader: SerializedFileReader<bytes::Bytes>,
    bytes: Arc<bytes::Bytes>,
}

/// One row group of a file.
pub(crate) struct RowGroup<'a> {
    group: Box<dyn RowGroupReader + 'a>,
    /// The bytes of the file.
    bytes: &'a Arc<bytes::Bytes>,
    /// How many rows it has.
    pub(crate) rows: usize,
}

impl OpenedTable {
    /// Opens a file's bytes.
    pub(crate) fn new(bytes: Vec<u8>) -> Result<Self, ParquetError> {
        let skip = || ParquetStatisticsPolicy::SkipAll;
        let options = ReadOptionsBuilder::new()
            .with_encoding_stats_policy(skip())
            .with_column_stats_policy(skip())
            .with_size_stats_policy(skip());
        let bytes = bytes::Bytes::from(bytes);
        let reader = SerializedFileReader::new_with_options(bytes.clone(), options.build())?;
        let bytes = Arc::new(bytes);
        Ok(Self { reader, bytes })
    }

    /// Returns a text of its metadata.
    pub(crate) fn metadata(&self, key: &str) -> Option<&str> {
        let all = self.reader.metadata().file_metadata().key_value_metadata()?;
        all.iter().find(|pair| pair.key == key)?.value.as_deref()
    }

    /// Returns the names of its columns, in order.
    pub(crate) fn columns(&self) -> Vec<String> {
        let schema = self.reader.metadata().file_metadata().schema_descr();
        let names = schema.columns().iter();
        names.map(|column| column.name().to_owned()).collect()
    }

    /// Returns the number of rows in its metadata, over all row groups.
    pub(crate) fn rows(&self) -> usize {
        let groups = self.reader.metadata().row_groups().iter();
        let rows = groups.map(|group| usize::try_from(group.num_rows()).unwrap_or(0));
        rows.fold(0, usize::saturating_add)
    }

    /// Returns a row group.
    pub(crate) fn part(&self, part: usize) -> Result<RowGroup<'_>, ParquetError> {
        let group = self.reader.get_row_group(part)?;
        // The library panics where a column of a damaged file begins before the file, or is shorter than nothing.
        let is_damaged = group.metadata().columns().iter().any(|column| {
            let dictionary = column.dictionary_page_offset().unwrap_or_default();
            dictionary < 0 || column.data_page_offset() < 0 || column.compressed_size() < 0
        });
        if is_damaged {
            return Err(ParquetError::General("a column has a negative place or size".to_owned()));
        }
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        if rows > Self::ROWS_MAX {
            return Err(ParquetError::General(format!("{rows} rows, more than a segment has")));
        }
        Ok(RowGroup { group, rows, bytes: &self.bytes })
    }

    /// An hour of 2,000 processes that all change every second has half as many rows. A column of equal values takes no
    /// bytes however long it is, so a file's size is no bound.
    const ROWS_MAX: usize = 1 << 24;
}

impl RowGroup<'_> {
    /// Reads a column of readings or times.
    pub(crate) fn numbers(&self, column: usize, into: &mut Cells) -> Result<(), ParquetError> {
        into.clear();
        let mut reader = self.typed::<Int64Type>(column, Physical::INT64)?;
        read_all(&mut reader, self.rows, |reader, left| {
            reader.read_records(left, Some(&mut into.present), None, &mut into.values)
        })?;
        if into.present.is_empty() {
            into.present.resize(into.values.len(), 1);
        }
        Ok(())
    }

    /// Reads a column of readings at some rows only: sorted ranges that do not overlap.
    pub(crate) fn numbers_at(
        &self,
        column: usize,
        rows: &[Range<usize>],
        into: &mut Cells,
    ) -> Result<(), ParquetError> {
        into.clear();
        let mut reader = self.typed::<Int64Type>(column, Physical::INT64)?;
        each_range(&mut reader, rows, |reader, left| {
            reader.read_records(left, Some(&mut into.present), None, &mut into.values)
        })
    }

    /// Reads a column of ordinals at some rows only: sorted ranges that do not overlap.
    pub(crate) fn ordinals_at(
        &self,
        column: usize,
        rows: &[Range<usize>],
        into: &mut Vec<i32>,
    ) -> Result<(), ParquetError> {
        into.clear();
        let mut reader = self.typed::<Int32Type>(column, Physical::INT32)?;
        each_range(&mut reader, rows, |reader, left| reader.read_records(left, None, None, into))
    }

    /// Reads a column of ordinals.
    pub(crate) fn ordinals(&self, column: usize, into: &mut Vec<i32>) -> Result<(), ParquetError> {
        into.clear();
        let mut reader = self.typed::<Int32Type>(column, Physical::INT32)?;
        read_all(&mut reader, self.rows, |reader, left| reader.read_records(left, None, None, into))
    }

    /// Reads a column of words: each that differs from the previous one, and how many rows have it.
    pub(crate) fn words(&self, column: usize) -> Result<Vec<(String, usize)>, ParquetError> {
        let mut pages = self.word_pages(column)?;
        words::all(&mut pages, self.rows)
    }

    /// Reads a column of words at some rows only, which are sorted and distinct.
    pub(crate) fn words_at(
        &self,
        column: usize,
        rows: &[usize],
    ) -> Result<Vec<String>, ParquetError> {
        let mut pages = self.word_pages(column)?;
        words::some(&mut pages, rows)
    }

    fn typed<T: DataType>(
        &self,
        column: usize,
        physical: Physical,
    ) -> Result<ColumnReaderImpl<T>, ParquetError> {
        let pages = self.pages(column, physical)?;
        let described = self.group.metadata().column(column).column_descr_ptr();
        Ok(ColumnReaderImpl::new(described, Box::new(pages)))
    }

    /// Returns the pages of a column of words that are never absent: other columns have levels before the words.
    fn word_pages(&self, column: usize) -> Result<pages::Pages, ParquetError> {
        let pages = self.pages(column, Physical::BYTE_ARRAY)?;
        let described = self.group.metadata().column(column).column_descr();
        if described.max_def_level() > 0 || described.max_rep_level() > 0 {
            return Err(ParquetError::General("its words may be missing".to_owned()));
        }
        Ok(pages)
    }

    /// Returns the pages of a column of this type.
    pub(super) fn pages(
        &self,
        column: usize,
        physical: Physical,
    ) -> Result<pages::Pages, ParquetError> {
        let found = self.group.metadata().columns().get(column);
        if found.map(|found| found.column_type()) != Some(physical) {
            return Err(ParquetError::General(format!(
                "column {column} is not of type {physical}"
            )));
        }
        pages::Pages::new(self.bytes, self.group.metadata().column(column), self.rows)
    }
}

/// Reads some rows of a column and skips the others.
fn each_range<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: &[Range<usize>],
    mut read: impl FnMut(&mut ColumnReaderImpl<T>, usize) -> Result<(usize, usize, usize), ParquetError>,
) -> Result<(), ParquetError> {
    let mut at = 0;
    for range in rows {
        reader.skip_records(range.start - at)?;
        read_all(reader, range.len(), &mut read)?;
        at = range.end;
    }
    Ok(())
}

/// Reads until all rows are read: one call stops at the end of a page. It reads few rows at once, as the library
/// allocates as many as are requested and claimed by a header.
fn read_all<R>(
    reader: &mut R,
    rows: usize,
    mut read: impl FnMut(&mut R, usize) -> Result<(usize, usize, usize), ParquetError>,
) -> Result<(), ParquetError> {
    const AT_ONCE: usize = 1 << 16;
    let mut left = rows;
    while left > 0 {
        let (records, _, _) = read(reader, left.min(AT_ONCE))?;
        if records == 0 {
            return Err(too_short());
        }
        left -= records.min(left);
    }
    Ok(())
}
