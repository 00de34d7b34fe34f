//! Columns to a Parquet file and back, one column in memory at a time.
//!
//! Knows Parquet and nothing of samples. All rows of a part are one row group, each column one page: rows are few and
//! metadata of Parquet is paid per column, row group and page.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{
    Compression, Encoding, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel,
};
use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, ParquetStatisticsPolicy};
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion,
};
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::{ReadOptionsBuilder, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
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
}

/// A column's values, reused from column to column.
#[derive(Debug, Default)]
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

    fn clear(&mut self) {
        self.values.clear();
        self.present.clear();
    }
}

/// Gives the numbers of a part of the file.
type Numbers<'a> = Box<dyn Fn(usize, &mut Cells) + 'a>;
/// Gives for each row of a part of the file which of the distinct words it has.
type Which<'a> = Box<dyn Fn(usize, &mut dyn FnMut(usize)) + 'a>;

/// Where a column's values come from: called once for each part of the file.
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
}

impl<'a> Column<'a> {
    /// A column of numbers.
    pub(crate) fn numbers(
        name: &'a str,
        shape: Shape,
        fill: impl Fn(usize, &mut Cells) + 'a,
    ) -> Self {
        let fill = Fill::Numbers(Box::new(fill));
        Self { name, shape, fill }
    }

    /// A column of words.
    pub(crate) fn words(
        name: &'a str,
        distinct: Vec<&'a str>,
        which: impl Fn(usize, &mut dyn FnMut(usize)) + 'a,
    ) -> Self {
        let fill = Fill::Words(distinct, Box::new(which));
        Self {
            name,
            shape: Shape::Word,
            fill,
        }
    }
}

/// Writes a file of `parts` row groups, all with the same columns.
pub(crate) fn write(
    path: &Path,
    columns: &[Column<'_>],
    parts: usize,
    metadata: Vec<(String, String)>,
) -> Result<(), ParquetError> {
    let mut cells = Cells::default();
    let properties = properties(columns, parts, metadata, &mut cells);
    let file = File::create(path)?;
    let mut writer = SerializedFileWriter::new(&file, schema(columns)?, Arc::new(properties))?;
    for part in 0..parts {
        let mut group = writer.next_row_group()?;
        for column in columns {
            let Some(mut out) = group.next_column()? else {
                break;
            };
            match &column.fill {
                Fill::Words(distinct, which) => {
                    write_words(out.typed::<ByteArrayType>(), distinct, part, which)?;
                }
                Fill::Numbers(fill) => {
                    cells.clear();
                    fill(part, &mut cells);
                    if column.shape == Shape::Ordinal {
                        let values = cells.values.iter().map(|n| ordinal(*n));
                        let values = values.collect::<Result<Vec<i32>, _>>()?;
                        out.typed::<Int32Type>().write_batch(&values, None, None)?;
                    } else {
                        let is_optional = column.shape != Shape::Always;
                        let present = is_optional.then_some(cells.present.as_slice());
                        out.typed::<Int64Type>()
                            .write_batch(&cells.values, present, None)?;
                    }
                }
            }
            out.close()?;
        }
        group.close()?;
    }
    writer.close()?;
    file.sync_all()?;
    Ok(())
}

fn ordinal(n: i64) -> Result<i32, ParquetError> {
    i32::try_from(n).map_err(|_| ParquetError::General(format!("{n} is no number of a row")))
}

fn write_words(
    out: &mut parquet::column::writer::ColumnWriterImpl<'_, ByteArrayType>,
    distinct: &[&str],
    part: usize,
    which: &Which<'_>,
) -> Result<(), ParquetError> {
    // A word for each row of a large table at once would be the largest thing in memory.
    const AT_ONCE: usize = 4096;
    let words: Vec<ByteArray> = distinct.iter().map(|word| ByteArray::from(*word)).collect();
    let mut batch: Vec<ByteArray> = Vec::with_capacity(AT_ONCE);
    let mut result = Ok(());
    which(part, &mut |at| {
        batch.extend(words.get(at).cloned());
        if batch.len() == AT_ONCE && result.is_ok() {
            result = out.write_batch(&batch, None, None).map(|_| ());
            batch.clear();
        }
    });
    result?;
    out.write_batch(&batch, None, None)?;
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
            Shape::Word => (
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

/// Of 30 minutes of mixed load, level 9 takes 9 % less for processes than level 3, and 19 another 4 % at many times the
/// work; a segment is written once an hour, at low priority.
const LEVEL: i32 = 9;

fn compression() -> Compression {
    Compression::ZSTD(ZstdLevel::try_new(LEVEL).unwrap_or_default())
}

fn properties(
    columns: &[Column<'_>],
    parts: usize,
    metadata: Vec<(String, String)>,
    cells: &mut Cells,
) -> WriterProperties {
    let metadata = metadata
        .into_iter()
        .map(|(key, value)| KeyValue::new(key, value));
    let mut properties = base()
        .set_created_by(format!("memtide {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(metadata.collect()));
    for column in columns {
        let path = ColumnPath::from(vec![column.name.to_owned()]);
        match &column.fill {
            Fill::Words(..) => {
                properties = properties.set_column_dictionary_enabled(path, true);
            }
            Fill::Numbers(fill) => {
                cells.clear();
                (0..parts).for_each(|part| fill(part, cells));
                properties = match encoding(&cells.values) {
                    None => properties.set_column_dictionary_enabled(path.clone(), true),
                    Some(encoding) => properties.set_column_encoding(path.clone(), encoding),
                };
                if column.shape == Shape::Time {
                    let chunk = EnabledStatistics::Chunk;
                    properties = properties.set_column_statistics_enabled(path, chunk);
                }
            }
        }
    }
    properties.build()
}

fn base() -> WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_compression(compression())
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(None)
        .set_data_page_row_count_limit(usize::MAX)
        .set_data_page_size_limit(64 << 20)
        .set_dictionary_page_size_limit(1 << 20)
        .set_dictionary_enabled(false)
}

/// What stores these numbers shortest: deltas, plain bytes or, where `None`, a dictionary.
///
/// Tried for each column (`cargo bench --bench bytes`): deltas suit counters, but a jump makes a whole block of them wide,
/// and they know nothing of values that come again, as the times in a table that is sorted by entity.
fn encoding(values: &[i64]) -> Option<Encoding> {
    if values.windows(2).all(|pair| pair[0] == pair[1]) {
        return Some(Encoding::DELTA_BINARY_PACKED);
    }
    let candidates = [
        Some(Encoding::DELTA_BINARY_PACKED),
        Some(Encoding::PLAIN),
        None,
    ];
    let part = &values[..values.len().min(TRIED_ON)];
    let size = |candidate: &Option<Encoding>| size(part, *candidate).unwrap_or(usize::MAX);
    candidates.into_iter().min_by_key(size).flatten()
}

/// As many values tell which encoding wins.
const TRIED_ON: usize = 65_536;

/// How many bytes a column of these numbers takes.
fn size(values: &[i64], encoding: Option<Encoding>) -> Result<usize, ParquetError> {
    let column = Column::numbers("n", Shape::Reading, |_, _| ());
    let properties = match encoding {
        None => base().set_dictionary_enabled(true),
        Some(encoding) => base().set_encoding(encoding),
    };
    let schema = schema(std::slice::from_ref(&column))?;
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties.build()))?;
    let mut group = writer.next_row_group()?;
    let present = vec![1; values.len()];
    if let Some(mut out) = group.next_column()? {
        out.typed::<Int64Type>()
            .write_batch(values, Some(&present), None)?;
        out.close()?;
    }
    group.close()?;
    writer.finish()?;
    Ok(writer.bytes_written())
}

/// A file, read into memory and opened.
pub(crate) struct Opened {
    reader: SerializedFileReader<bytes::Bytes>,
}

/// One row group of a file.
pub(crate) struct Part<'a> {
    group: Box<dyn RowGroupReader + 'a>,
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
        let reader = SerializedFileReader::new_with_options(bytes.into(), options.build())?;
        Ok(Self { reader })
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

    /// A row group.
    pub(crate) fn part(&self, part: usize) -> Result<Part<'_>, ParquetError> {
        let group = self.reader.get_row_group(part)?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        Ok(Part { group, rows })
    }
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

    /// Reads a column of ordinals.
    pub(crate) fn ordinals(&self, column: usize, into: &mut Vec<i32>) -> Result<(), ParquetError> {
        into.clear();
        let mut reader = self.typed::<Int32Type>(column, Physical::INT32)?;
        read_all(&mut reader, self.rows, |reader, left| {
            reader.read_records(left, None, None, into)
        })
    }

    /// Reads a column of words at some rows only, which are in order.
    pub(crate) fn words_at(
        &self,
        column: usize,
        rows: &[usize],
    ) -> Result<Vec<String>, ParquetError> {
        let mut reader = self.typed::<ByteArrayType>(column, Physical::BYTE_ARRAY)?;
        let mut found = Vec::with_capacity(rows.len());
        let mut at = 0;
        let mut one = Vec::with_capacity(1);
        for row in rows {
            reader.skip_records(row - at)?;
            one.clear();
            reader.read_records(1, None, None, &mut one)?;
            at = row + 1;
            let word = one.first().ok_or_else(too_short)?;
            found.push(String::from_utf8_lossy(word.data()).into_owned());
        }
        Ok(found)
    }

    fn typed<T: DataType>(
        &self,
        column: usize,
        physical: Physical,
    ) -> Result<ColumnReaderImpl<T>, ParquetError> {
        let found = self.group.metadata().columns().get(column);
        if found.map(|found| found.column_type()) != Some(physical) {
            return Err(ParquetError::General(format!(
                "column {column} is not of type {physical}"
            )));
        }
        let reader = self.group.get_column_reader(column)?;
        Ok(get_typed_column_reader::<T>(reader))
    }
}

/// Reads until all rows are there: one call stops at the end of a page.
fn read_all<R>(
    reader: &mut R,
    rows: usize,
    mut read: impl FnMut(&mut R, usize) -> Result<(usize, usize, usize), ParquetError>,
) -> Result<(), ParquetError> {
    let mut left = rows;
    while left > 0 {
        let (records, _, _) = read(reader, left)?;
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
