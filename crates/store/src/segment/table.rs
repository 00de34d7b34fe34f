//! Columns to a Parquet file and back, one column in memory at a time.
//!
//! Knows Parquet and nothing of samples. All rows are one row group, each column one page: rows are few and metadata of
//! Parquet is paid per column, row group and page.

mod pages;
mod words;

use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{
    Compression, Encoding, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel,
};
use parquet::column::reader::ColumnReaderImpl;
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, ParquetStatisticsPolicy};
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion,
};
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::{ReadOptionsBuilder, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type};

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A time on the wall clock, in nanoseconds; may be absent.
    Time,
    /// A reading; may be absent.
    Reading,
    /// A reading that every row has.
    Always,
    /// A number that every row has, below 2³¹.
    Ordinal,
    /// A word that every row has.
    Word,
    /// A word that every row has, one of few: stored by its number, so that rows are quickly passed over.
    Name,
}

/// A column's values, reused from column to column.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cells {
    /// Those that are there, in order.
    pub(crate) values: Vec<i64>,
    /// For each row 1 where it has a value, 0 where not.
    pub(crate) present: Vec<i16>,
}

impl Cells {
    /// Appends a row.
    pub(crate) fn push(&mut self, value: Option<i64>) {
        self.present.push(i16::from(value.is_some()));
        self.values.extend(value);
    }

    /// Appends rows that all have one value.
    pub(crate) fn repeat(&mut self, value: i64, rows: usize) {
        self.present.extend(std::iter::repeat_n(1, rows));
        self.values.extend(std::iter::repeat_n(value, rows));
    }

    /// Appends rows that have none.
    pub(crate) fn skip(&mut self, rows: usize) {
        self.present.extend(std::iter::repeat_n(0, rows));
    }

    /// Forgets all rows and keeps the room for them.
    pub(crate) fn clear(&mut self) {
        self.values.clear();
        self.present.clear();
    }
}

/// Gives a number for each row.
type Numbers<'a> = Box<dyn Fn(&mut Cells) + 'a>;
/// Gives for each row which of the distinct words it has.
type Which<'a> = Box<dyn Fn(&mut dyn FnMut(usize)) + 'a>;

/// Where a column's values come from: called more than once.
pub(crate) enum Fill<'a> {
    /// Numbers.
    Numbers(Numbers<'a>),
    /// Words: the distinct ones, and which is where.
    Words(Vec<&'a str>, Which<'a>),
}

/// A column to be written.
pub(crate) struct Column<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// What it holds.
    pub(crate) shape: Shape,
    /// Its values.
    pub(crate) fill: Fill<'a>,
    /// How many rows a page has, where some of them are passed over when it is read: all where not given.
    page: Option<usize>,
}

impl<'a> Column<'a> {
    /// A column of numbers.
    pub(crate) fn numbers(name: &'a str, shape: Shape, fill: impl Fn(&mut Cells) + 'a) -> Self {
        let fill = Fill::Numbers(Box::new(fill));
        Self {
            name,
            shape,
            fill,
            page: None,
        }
    }

    /// A column of words: `which` gives for each row its place among the distinct ones.
    pub(crate) fn words(
        name: &'a str,
        distinct: Vec<&'a str>,
        which: impl Fn(&mut dyn FnMut(usize)) + 'a,
    ) -> Self {
        let fill = Fill::Words(distinct, Box::new(which));
        let shape = Shape::Word;
        Self {
            name,
            shape,
            fill,
            page: None,
        }
    }

    /// The same in pages of so many rows: of those that hold no row that is wanted none is unpacked.
    pub(crate) fn in_pages_of(self, rows: usize) -> Self {
        Self {
            page: Some(rows),
            ..self
        }
    }

    /// A column of few words, stored by their numbers: rows are quickly passed over.
    pub(crate) fn names(
        name: &'a str,
        distinct: Vec<&'a str>,
        which: impl Fn(&mut dyn FnMut(usize)) + 'a,
    ) -> Self {
        let shape = Shape::Name;
        Self {
            shape,
            ..Self::words(name, distinct, which)
        }
    }
}

/// Writes a file of one row group.
pub(crate) fn write(
    path: &Path,
    columns: &[Column<'_>],
    metadata: Vec<(String, String)>,
) -> io::Result<()> {
    write_parquet(path, columns, metadata).map_err(io_error)
}

/// What the operating system said, where Parquet has only wrapped it: a full disk is told of in its own words.
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
    path: &Path,
    columns: &[Column<'_>],
    metadata: Vec<(String, String)>,
) -> Result<(), ParquetError> {
    let metadata = metadata
        .into_iter()
        .map(|(key, value)| KeyValue::new(key, value));
    let mut properties = base(LEVEL)
        .set_created_by(format!("memtide {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(metadata.collect()));
    let mut cells = Cells::default();
    for column in columns {
        column.take(&mut cells);
        let path = ColumnPath::from(vec![column.name.to_owned()]);
        properties = match shortest(column, &cells) {
            Stored::Dictionary => properties.set_column_dictionary_enabled(path.clone(), true),
            Stored::As(encoding) => properties.set_column_encoding(path.clone(), encoding),
        };
        if let Some(rows) = column.page {
            properties = properties.set_column_data_page_row_count_limit(path.clone(), rows);
        }
        if column.shape == Shape::Time {
            let chunk = EnabledStatistics::Chunk;
            properties = properties.set_column_statistics_enabled(path, chunk);
        }
    }
    let file = File::create(path)?;
    put(&file, columns, properties.build(), |column, out| {
        column.take(&mut cells);
        column.put(&cells, out)
    })?;
    file.sync_all()?;
    Ok(())
}

/// Writes columns to a file or to memory; `each` writes one's rows. Gives the number of bytes.
fn put<W: Write + Send>(
    to: W,
    columns: &[Column<'_>],
    properties: WriterProperties,
    mut each: impl FnMut(&Column<'_>, &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError>,
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

impl Column<'_> {
    /// Puts its rows in place of what `cells` holds.
    fn take(&self, cells: &mut Cells) {
        cells.clear();
        match &self.fill {
            Fill::Numbers(fill) => fill(cells),
            Fill::Words(_, which) => {
                which(&mut |at| cells.values.push(i64::try_from(at).unwrap_or(i64::MAX)));
            }
        }
    }

    /// Writes rows that were taken.
    fn put(&self, cells: &Cells, out: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        if let Fill::Words(distinct, _) = &self.fill {
            return write_words(out.typed::<ByteArrayType>(), distinct, &cells.values);
        }
        if self.shape == Shape::Ordinal {
            let values = cells.values.iter().map(|n| ordinal(*n));
            let values = values.collect::<Result<Vec<i32>, _>>()?;
            out.typed::<Int32Type>().write_batch(&values, None, None)?;
            return Ok(());
        }
        let is_optional = self.shape != Shape::Always;
        let present = is_optional.then_some(cells.present.as_slice());
        out.typed::<Int64Type>()
            .write_batch(&cells.values, present, None)?;
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
    // A word for each row of a large table at once would be the largest thing in memory.
    const AT_ONCE: usize = 4096;
    let words: Vec<ByteArray> = distinct.iter().map(|word| ByteArray::from(*word)).collect();
    for rows in which.chunks(AT_ONCE) {
        let word = |at: &i64| {
            usize::try_from(*at)
                .ok()
                .and_then(|at| words.get(at).cloned())
        };
        let batch: Vec<ByteArray> = rows.iter().filter_map(word).collect();
        out.write_batch(&batch, None, None)?;
    }
    Ok(())
}

fn schema(columns: &[Column<'_>]) -> Result<Arc<Type>, ParquetError> {
    let field = |column: &Column<'_>| {
        let (physical, repetition, logical) = match column.shape {
            Shape::Time => (
                Physical::INT64,
                Repetition::OPTIONAL,
                Some(LogicalType::timestamp(true, TimeUnit::NANOS)),
            ),
            Shape::Reading => (Physical::INT64, Repetition::OPTIONAL, None),
            Shape::Always => (Physical::INT64, Repetition::REQUIRED, None),
            Shape::Ordinal => (Physical::INT32, Repetition::REQUIRED, None),
            Shape::Word | Shape::Name => (
                Physical::BYTE_ARRAY,
                Repetition::REQUIRED,
                Some(LogicalType::String),
            ),
        };
        let field = Type::primitive_type_builder(column.name, physical);
        let field = field.with_repetition(repetition).with_logical_type(logical);
        field.build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    let schema = Type::group_type_builder("memtide").with_fields(fields);
    schema.build().map(Arc::new)
}

/// Level 19 takes another 1 to 6 % off at twice the work (`cargo bench --bench bytes`); a segment is written once an hour, at
/// low priority.
const LEVEL: i32 = 15;

/// At this level the encodings of a column compare nearly as they do at [`LEVEL`]: choosing at that takes 1 to 3 % less, for
/// more than twice the work of all.
const TRIAL: i32 = 3;

fn base(level: i32) -> WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_compression(Compression::ZSTD(
            ZstdLevel::try_new(level).unwrap_or_default(),
        ))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(None)
        .set_data_page_row_count_limit(usize::MAX)
        .set_data_page_size_limit(64 << 20)
        .set_dictionary_page_size_limit(1 << 20)
        .set_dictionary_enabled(false)
}

/// How a column's values are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stored {
    /// Each by its number in a dictionary.
    Dictionary,
    /// In this encoding.
    As(Encoding),
}

/// Deltas suit counters, but a jump makes a whole block of them wide; whole values and dictionaries suit what comes again
/// and again. `BYTE_STREAM_SPLIT` would take another 3 to 8 % off, but of integers only the latest readers know it: `DuckDB`
/// from 2.0 and Arrow from 16 on.
const FOR_NUMBERS: [Stored; 3] = [
    Stored::As(Encoding::DELTA_BINARY_PACKED),
    Stored::As(Encoding::PLAIN),
    Stored::Dictionary,
];

/// A dictionary suits few words, whole words suit keys of which each has few rows.
const FOR_WORDS: [Stored; 2] = [Stored::Dictionary, Stored::As(Encoding::PLAIN)];

/// What stores these values in the fewest bytes: tried, as no rule by kind or unit of a signal comes close.
fn shortest(column: &Column<'_>, cells: &Cells) -> Stored {
    let candidates = match &column.fill {
        Fill::Words(..) => FOR_WORDS.as_slice(),
        Fill::Numbers(_) => FOR_NUMBERS.as_slice(),
    };
    let is_one = cells.values.windows(2).all(|pair| pair[0] == pair[1]);
    if is_one || column.shape == Shape::Name {
        return candidates[0];
    }
    let size = |stored: &&Stored| size(column, cells, **stored).unwrap_or(usize::MAX);
    candidates
        .iter()
        .min_by_key(size)
        .copied()
        .unwrap_or(candidates[0])
}

/// How many bytes a file of this column alone takes.
fn size(column: &Column<'_>, cells: &Cells, stored: Stored) -> Result<usize, ParquetError> {
    let properties = match stored {
        Stored::Dictionary => base(TRIAL).set_dictionary_enabled(true),
        Stored::As(encoding) => base(TRIAL).set_encoding(encoding),
    };
    let only = std::slice::from_ref(column);
    put(io::sink(), only, properties.build(), |column, out| {
        column.put(cells, out)
    })
}

/// A file, read into memory and opened.
pub(crate) struct Opened {
    reader: SerializedFileReader<bytes::Bytes>,
    bytes: Arc<bytes::Bytes>,
}

/// One row group of a file.
pub(crate) struct Part<'a> {
    group: Box<dyn RowGroupReader + 'a>,
    /// Those of the file.
    bytes: &'a Arc<bytes::Bytes>,
    /// How many rows it has.
    pub(crate) rows: usize,
}

impl Opened {
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

    /// A text of its metadata.
    pub(crate) fn metadata(&self, key: &str) -> Option<&str> {
        let all = self
            .reader
            .metadata()
            .file_metadata()
            .key_value_metadata()?;
        all.iter().find(|pair| pair.key == key)?.value.as_deref()
    }

    /// Names of its columns, in order.
    pub(crate) fn columns(&self) -> Vec<String> {
        let schema = self.reader.metadata().file_metadata().schema_descr();
        let names = schema.columns().iter();
        names.map(|column| column.name().to_owned()).collect()
    }

    /// How many rows it says it has, in all row groups.
    pub(crate) fn rows(&self) -> usize {
        let groups = self.reader.metadata().row_groups().iter();
        let rows = groups.map(|group| usize::try_from(group.num_rows()).unwrap_or(0));
        rows.fold(0, usize::saturating_add)
    }

    /// A row group.
    pub(crate) fn part(&self, part: usize) -> Result<Part<'_>, ParquetError> {
        let group = self.reader.get_row_group(part)?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        if rows > Self::MOST_ROWS {
            return Err(ParquetError::General(format!(
                "{rows} rows, more than a segment has"
            )));
        }
        Ok(Part {
            group,
            rows,
            bytes: &self.bytes,
        })
    }

    /// An hour of 2,000 processes that all change every second has half as many. A column of equal values takes no bytes
    /// however long it is, so a file's size is no bound.
    const MOST_ROWS: usize = 1 << 24;
}

impl Part<'_> {
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

    /// Reads a column of readings at some rows only, which are in order and apart.
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

    /// Reads a column of ordinals at some rows only, which are in order and apart.
    pub(crate) fn ordinals_at(
        &self,
        column: usize,
        rows: &[Range<usize>],
        into: &mut Vec<i32>,
    ) -> Result<(), ParquetError> {
        into.clear();
        let mut reader = self.typed::<Int32Type>(column, Physical::INT32)?;
        each_range(&mut reader, rows, |reader, left| {
            reader.read_records(left, None, None, into)
        })
    }

    /// Reads a column of ordinals.
    pub(crate) fn ordinals(&self, column: usize, into: &mut Vec<i32>) -> Result<(), ParquetError> {
        into.clear();
        let mut reader = self.typed::<Int32Type>(column, Physical::INT32)?;
        read_all(&mut reader, self.rows, |reader, left| {
            reader.read_records(left, None, None, into)
        })
    }

    /// Reads a column of words: each that differs from the one before it, and how many rows have it.
    pub(crate) fn words(&self, column: usize) -> Result<Vec<(String, usize)>, ParquetError> {
        let mut pages = self.word_pages(column)?;
        words::all(&mut pages, self.rows)
    }

    /// Reads a column of words at some rows only, which are in order and apart.
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

    /// The pages of a column of words that every row has: with others, levels would lie before the words.
    fn word_pages(&self, column: usize) -> Result<pages::Pages, ParquetError> {
        let pages = self.pages(column, Physical::BYTE_ARRAY)?;
        let described = self.group.metadata().column(column).column_descr();
        if described.max_def_level() > 0 || described.max_rep_level() > 0 {
            return Err(ParquetError::General("its words may be missing".to_owned()));
        }
        Ok(pages)
    }

    /// The pages of a column of this type.
    fn pages(&self, column: usize, physical: Physical) -> Result<pages::Pages, ParquetError> {
        let found = self.group.metadata().columns().get(column);
        if found.map(|found| found.column_type()) != Some(physical) {
            return Err(ParquetError::General(format!(
                "column {column} is not of type {physical}"
            )));
        }
        pages::Pages::new(self.bytes, self.group.metadata().column(column), self.rows)
    }
}

/// Reads some rows of a column and passes over the others.
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

/// Reads until all rows are there: one call stops at the end of a page. Few at once, as the library makes room for as many
/// as are asked for and a header claims.
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

fn too_short() -> ParquetError {
    ParquetError::EOF("a column ends before its rows".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_of_in_its_own_words() {
        let column = Column::numbers("n", Shape::Ordinal, |cells| cells.push(Some(7)));
        let error = write(Path::new("/dev/full"), &[column], Vec::new()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(error.to_string().starts_with("No space left"), "{error}");
    }
}
