//! Writes and reads columns of a Parquet file, one column in memory at a time.
//!
//! This module knows Parquet but not samples. All rows are one row group, each column chunk one page: there are few
//! rows, and Parquet has metadata for each column, row group and page.

mod pages;
mod read;
mod varints;
mod words;

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{
    Compression, Encoding, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel,
};
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion,
};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type};

use crate::files;

pub(crate) use read::{OpenedTable, RowGroup};

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnShape {
    /// A wall-clock time in nanoseconds; may be absent.
    Time,
    /// A reading; may be absent.
    Reading,
    /// A reading that is never absent.
    Always,
    /// A number below 2³¹ that is never absent.
    Ordinal,
    /// A word that is never absent.
    Word,
    /// A word that is never absent, of a small set: stored by its number, so that rows are skipped quickly.
    Name,
}

/// The values of a column; reused from column to column.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cells {
    /// The values that are present, in order.
    pub(crate) values: Vec<i64>,
    /// For each row 1 if it has a value, else 0.
    pub(crate) present: Vec<i16>,
}

impl Cells {
    /// Appends a row.
    pub(crate) fn push(&mut self, value: Option<i64>) {
        self.present.push(i16::from(value.is_some()));
        self.values.extend(value);
    }

    /// Appends rows with the same value.
    pub(crate) fn repeat(&mut self, value: i64, rows: usize) {
        self.present.extend(std::iter::repeat_n(1, rows));
        self.values.extend(std::iter::repeat_n(value, rows));
    }

    /// Appends rows without a value.
    pub(crate) fn skip(&mut self, rows: usize) {
        self.present.extend(std::iter::repeat_n(0, rows));
    }

    /// Removes all rows and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.values.clear();
        self.present.clear();
    }
}

/// Produces the number of each row.
type NumberSource<'a> = Box<dyn Fn(&mut Cells) + 'a>;
/// Produces the index of each row's word among the distinct ones.
type WordSource<'a> = Box<dyn Fn(&mut dyn FnMut(usize)) + 'a>;

/// The source of a column's values; it is called more than once.
pub(crate) enum ValueSource<'a> {
    Numbers(NumberSource<'a>),
    /// Words: the distinct ones, and the source of each row's index.
    Words(Vec<&'a str>, WordSource<'a>),
}

/// A column to be written.
pub(crate) struct ColumnChunk<'a> {
    pub(crate) name: &'a str,
    /// Its type.
    pub(crate) shape: ColumnShape,
    pub(crate) fill: ValueSource<'a>,
    /// Rows per page, if some pages are skipped when the column is read; `None`: a single page.
    page: Option<usize>,
}

impl<'a> ColumnChunk<'a> {
    /// Creates a column of numbers.
    pub(crate) fn numbers(
        name: &'a str,
        shape: ColumnShape,
        fill: impl Fn(&mut Cells) + 'a,
    ) -> Self {
        let fill = ValueSource::Numbers(Box::new(fill));
        Self { name, shape, fill, page: None }
    }

    /// Creates a column of words: `which` returns for each row the index of its word in `distinct`.
    pub(crate) fn words(
        name: &'a str,
        distinct: Vec<&'a str>,
        which: impl Fn(&mut dyn FnMut(usize)) + 'a,
    ) -> Self {
        let fill = ValueSource::Words(distinct, Box::new(which));
        let shape = ColumnShape::Word;
        Self { name, shape, fill, page: None }
    }

    /// Splits the column into pages of this many rows: pages without a requested row are not decompressed.
    pub(crate) fn in_pages_of(self, rows: usize) -> Self {
        Self { page: Some(rows), ..self }
    }

    /// Creates a column of few distinct words, stored by their numbers: rows are skipped quickly.
    pub(crate) fn names(
        name: &'a str,
        distinct: Vec<&'a str>,
        which: impl Fn(&mut dyn FnMut(usize)) + 'a,
    ) -> Self {
        let shape = ColumnShape::Name;
        Self { shape, ..Self::words(name, distinct, which) }
    }
}

/// Writes a file of one row group.
pub(crate) fn write(
    path: &Path,
    columns: &[ColumnChunk<'_>],
    metadata: Vec<(String, String)>,
) -> io::Result<()> {
    write_parquet(&files::create_draft(path)?, columns, metadata).map_err(io_error)
}

/// Returns the operating system's error inside a Parquet error, if any, so that a full disk is reported as such.
fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(wrapped) => match wrapped.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}

fn write_parquet(
    file: &File,
    columns: &[ColumnChunk<'_>],
    metadata: Vec<(String, String)>,
) -> Result<(), ParquetError> {
    let metadata = metadata.into_iter().map(|(key, value)| KeyValue::new(key, value));
    let mut properties = base(LEVEL)
        .set_created_by(format!("memtide {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(metadata.collect()));
    let mut cells = Cells::default();
    for column in columns {
        column.take(&mut cells);
        let path = ColumnPath::from(vec![column.name.to_owned()]);
        properties = match shortest(column, &cells) {
            ColumnEncoding::Dictionary => {
                properties.set_column_dictionary_enabled(path.clone(), true)
            }
            ColumnEncoding::As(encoding) => properties.set_column_encoding(path.clone(), encoding),
        };
        if let Some(rows) = column.page {
            properties = properties.set_column_data_page_row_count_limit(path.clone(), rows);
        }
        if column.shape == ColumnShape::Time {
            let chunk = EnabledStatistics::Chunk;
            properties = properties.set_column_statistics_enabled(path, chunk);
        }
    }
    put(file, columns, properties.build(), |column, out| {
        column.take(&mut cells);
        column.put(&cells, out)
    })?;
    file.sync_all()?;
    Ok(())
}

/// Writes columns to a file or to memory; `each` writes the rows of one column. Returns the number of bytes.
fn put<W: Write + Send>(
    to: W,
    columns: &[ColumnChunk<'_>],
    properties: WriterProperties,
    mut each: impl FnMut(&ColumnChunk<'_>, &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError>,
) -> Result<usize, ParquetError> {
    let mut writer = SerializedFileWriter::new(to, schema(columns)?, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for column in columns {
        let Some(mut out) = group.next_column()? else {
            break;
        };
        each(column, &mut out)?;
        out.close()?;
    }
    group.close()?;
    writer.finish()?;
    Ok(writer.bytes_written())
}

impl ColumnChunk<'_> {
    /// Replaces the content of `cells` by its rows.
    fn take(&self, cells: &mut Cells) {
        cells.clear();
        match &self.fill {
            ValueSource::Numbers(fill) => fill(cells),
            ValueSource::Words(_, which) => {
                which(&mut |at| cells.values.push(i64::try_from(at).unwrap_or(i64::MAX)));
            }
        }
    }

    /// Writes the rows in `cells`.
    fn put(&self, cells: &Cells, out: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        if let ValueSource::Words(distinct, _) = &self.fill {
            return write_words(out.typed::<ByteArrayType>(), distinct, &cells.values);
        }
        if self.shape == ColumnShape::Ordinal {
            let values = cells.values.iter().map(|n| ordinal(*n));
            let values = values.collect::<Result<Vec<i32>, _>>()?;
            out.typed::<Int32Type>().write_batch(&values, None, None)?;
            return Ok(());
        }
        let is_optional = self.shape != ColumnShape::Always;
        let present = is_optional.then_some(cells.present.as_slice());
        out.typed::<Int64Type>().write_batch(&cells.values, present, None)?;
        Ok(())
    }
}

fn ordinal(n: i64) -> Result<i32, ParquetError> {
    i32::try_from(n).map_err(|_| ParquetError::General(format!("{n} is no number of a row")))
}

fn write_words(
    out: &mut ColumnWriterImpl<'_, ByteArrayType>,
    distinct: &[&str],
    which: &[i64],
) -> Result<(), ParquetError> {
    // All words of a large table at once would be the largest object in memory.
    const AT_ONCE: usize = 4096;
    let words: Vec<ByteArray> = distinct.iter().map(|word| ByteArray::from(*word)).collect();
    for rows in which.chunks(AT_ONCE) {
        let word = |at: &i64| usize::try_from(*at).ok().and_then(|at| words.get(at).cloned());
        let batch: Vec<ByteArray> = rows.iter().filter_map(word).collect();
        out.write_batch(&batch, None, None)?;
    }
    Ok(())
}

fn schema(columns: &[ColumnChunk<'_>]) -> Result<Arc<Type>, ParquetError> {
    let field = |column: &ColumnChunk<'_>| {
        let (physical, repetition, logical) = match column.shape {
            ColumnShape::Time => (
                Physical::INT64,
                Repetition::OPTIONAL,
                Some(LogicalType::timestamp(true, TimeUnit::NANOS)),
            ),
            ColumnShape::Reading => (Physical::INT64, Repetition::OPTIONAL, None),
            ColumnShape::Always => (Physical::INT64, Repetition::REQUIRED, None),
            ColumnShape::Ordinal => (Physical::INT32, Repetition::REQUIRED, None),
            ColumnShape::Word | ColumnShape::Name => {
                (Physical::BYTE_ARRAY, Repetition::REQUIRED, Some(LogicalType::String))
            }
        };
        let field = Type::primitive_type_builder(column.name, physical);
        let field = field.with_repetition(repetition).with_logical_type(logical);
        field.build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    let schema = Type::group_type_builder("memtide").with_fields(fields);
    schema.build().map(Arc::new)
}

/// Level 19 saves another 1 to 6 % at twice the work (`cargo bench --bench bytes`); a segment is written once an hour,
/// at low priority.
const LEVEL: i32 = 15;

/// At this level the encodings of a column compare nearly as they do at [`LEVEL`]: choosing at that level saves 1 to 3
/// %, for more than twice the total work.
const TRIAL: i32 = 3;

fn base(level: i32) -> WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(level).unwrap_or_default()))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(None)
        .set_data_page_row_count_limit(usize::MAX)
        .set_data_page_size_limit(64 << 20)
        .set_dictionary_page_size_limit(1 << 20)
        .set_dictionary_enabled(false)
}

/// How a column's values are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnEncoding {
    /// By their numbers in a dictionary.
    Dictionary,
    /// In this encoding.
    As(Encoding),
}

/// Deltas suit counters, but a jump makes a whole block of them wide; plain values and dictionaries suit repeated
/// values. `BYTE_STREAM_SPLIT` would save another 3 to 8 %, but for integers only the latest readers support it:
/// `DuckDB` from 2.0 and Arrow from 16 on.
const FOR_NUMBERS: [ColumnEncoding; 3] = [
    ColumnEncoding::As(Encoding::DELTA_BINARY_PACKED),
    ColumnEncoding::As(Encoding::PLAIN),
    ColumnEncoding::Dictionary,
];

/// A dictionary suits few distinct words, plain words suit keys with few rows each.
const FOR_WORDS: [ColumnEncoding; 2] =
    [ColumnEncoding::Dictionary, ColumnEncoding::As(Encoding::PLAIN)];

/// Returns the encoding with the fewest bytes. It tries them all, as no rule by kind or unit of a signal comes close.
fn shortest(column: &ColumnChunk<'_>, cells: &Cells) -> ColumnEncoding {
    let candidates = match &column.fill {
        ValueSource::Words(..) => FOR_WORDS.as_slice(),
        ValueSource::Numbers(_) => FOR_NUMBERS.as_slice(),
    };
    let is_one = cells.values.windows(2).all(|pair| pair[0] == pair[1]);
    if is_one || column.shape == ColumnShape::Name {
        return candidates[0];
    }
    let size = |stored: &&ColumnEncoding| size(column, cells, **stored).unwrap_or(usize::MAX);
    candidates.iter().min_by_key(size).copied().unwrap_or(candidates[0])
}

/// Returns the size of a file with only this column.
fn size(
    column: &ColumnChunk<'_>,
    cells: &Cells,
    stored: ColumnEncoding,
) -> Result<usize, ParquetError> {
    let properties = match stored {
        ColumnEncoding::Dictionary => base(TRIAL).set_dictionary_enabled(true),
        ColumnEncoding::As(encoding) => base(TRIAL).set_encoding(encoding),
    };
    let only = std::slice::from_ref(column);
    put(io::sink(), only, properties.build(), |column, out| column.put(cells, out))
}

fn too_short() -> ParquetError {
    ParquetError::EOF("a column ends before its rows".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_of_in_its_own_words() {
        let column = ColumnChunk::numbers("n", ColumnShape::Ordinal, |cells| cells.push(Some(7)));
        let full = File::options().write(true).open("/dev/full").unwrap();
        let error = write_parquet(&full, &[column], Vec::new()).map_err(io_error);
        let error = error.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(error.to_string().starts_with("No space left"), "{error}");
    }

    #[test]
    fn no_byte_of_a_damaged_footer_panics() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("table.parquet");
        let push = |cells: &mut Cells| (0..300).for_each(|n| cells.push(Some(n * n)));
        let words = vec!["sda", "sdb"];
        let columns = [
            ColumnChunk::numbers("n", ColumnShape::Ordinal, push),
            ColumnChunk::words("disk", words, |out: &mut dyn FnMut(usize)| {
                (0..300).for_each(|n| out(n % 2))
            }),
        ];
        write(&path, &columns, Vec::new()).unwrap();
        let sound = std::fs::read(&path).unwrap();
        // The metadata is last; numbers in it are zigzag, so an odd byte makes one negative.
        for at in sound.len().saturating_sub(400)..sound.len() {
            for byte in [0x01, 0x7f, 0xff] {
                let mut damaged = sound.clone();
                damaged[at] = byte;
                let Ok(table) = read::OpenedTable::new(damaged) else {
                    continue;
                };
                if let Ok(part) = table.part(0) {
                    let _ = part.numbers(0, &mut Cells::default());
                    let _ = part.words(1);
                }
            }
        }
    }
}
