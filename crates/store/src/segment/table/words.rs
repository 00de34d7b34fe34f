//! Columns of words: which rows have the same word.
//!
//! The library returns a word for each row, each with a reference count on its page, although there are many rows and
//! few distinct words. Here rows are compared, and skipped, by their numbers in the dictionary.

use std::ops::Range;

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::errors::ParquetError;

use super::pages::Pages;
use super::too_short;

/// Returns each word that differs from the previous one, and how many rows have it.
pub(super) fn all(pages: &mut Pages, rows: usize) -> Result<Vec<(String, usize)>, ParquetError> {
    let mut found: Vec<(String, usize)> = Vec::new();
    each_page(pages, rows, |page, here| {
        let mut left = here;
        while left > 0 {
            let (word, same) = page.next_run(left)?;
            left -= same;
            match found.last_mut() {
                Some((last, before)) if last.as_bytes() == word => *before += same,
                _ => found.push((text(word), same)),
            }
        }
        Ok(())
    })?;
    Ok(found)
}

/// Returns the words of some rows, which are sorted and distinct.
pub(super) fn some(pages: &mut Pages, rows: &[usize]) -> Result<Vec<String>, ParquetError> {
    let mut found = Vec::with_capacity(rows.len());
    // Rows in previous pages.
    let mut before = 0;
    let end = rows.last().map_or(0, |last| last + 1);
    each_page(pages, end, |page, here| {
        let mut at = before;
        before += here;
        let left = &rows[found.len()..];
        for row in left.iter().take_while(|row| **row < before) {
            page.skip(row - at)?;
            found.push(text(page.next_run(1)?.0));
            at = row + 1;
        }
        Ok(())
    })?;
    Ok(found)
}

fn text(word: &[u8]) -> String {
    String::from_utf8_lossy(word).into_owned()
}

/// Calls a function for each page with its number of rows, until all rows are read.
fn each_page(
    pages: &mut Pages,
    rows: usize,
    mut each: impl FnMut(&mut WordRows<'_>, usize) -> Result<(), ParquetError>,
) -> Result<(), ParquetError> {
    let mut dictionary = WordDictionary::default();
    let mut left = rows;
    while left > 0 {
        match pages.get_next_page()?.ok_or_else(too_short)? {
            Page::DictionaryPage { buf, num_values, .. } => {
                dictionary = WordDictionary::new(buf, num_values)?
            }
            Page::DataPage { buf, num_values, encoding, .. } => {
                let here = left.min(usize::try_from(num_values).unwrap_or(usize::MAX));
                let mut page = match encoding {
                    Encoding::PLAIN => WordRows::Plain(&buf),
                    Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY => {
                        WordRows::Numbered(Hybrid::new(&buf)?, &dictionary)
                    }
                    other => return Err(wrong(format!("its words are encoded as {other}"))),
                };
                each(&mut page, here)?;
                left -= here;
            }
            Page::DataPageV2 { .. } => return Err(wrong("its pages are of the second version")),
        }
    }
    Ok(())
}

fn wrong(why: impl Into<String>) -> ParquetError {
    ParquetError::General(why.into())
}

/// Returns the next of consecutive words, each of which follows its length.
fn next_word<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], ParquetError> {
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(too_short)?;
    let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    let (word, rest) = rest.split_at_checked(length).ok_or_else(too_short)?;
    *bytes = rest;
    Ok(word)
}

/// The distinct words of a column, to which rows refer by number.
#[derive(Default)]
struct WordDictionary {
    page: Bytes,
    /// The range of each word in the page, which is shorter than [`PAGE_BYTES_MAX`](super::pages::PAGE_BYTES_MAX).
    words: Vec<Range<u32>>,
}

impl WordDictionary {
    fn new(page: Bytes, words: u32) -> Result<Self, ParquetError> {
        let length = page.len();
        let mut rest: &[u8] = &page;
        let mut ranges = Vec::new();
        for _ in 0..words {
            let word = next_word(&mut rest)?;
            let end = u32::try_from(length - rest.len()).map_err(|_| wrong("it is too long"))?;
            ranges.push(end - u32::try_from(word.len()).unwrap_or(end)..end);
        }
        Ok(Self { page, words: ranges })
    }

    fn word(&self, number: u64) -> Option<&[u8]> {
        let Range { start, end } = self.words.get(usize::try_from(number).ok()?)?.clone();
        self.page.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
    }
}

/// The remaining rows of a page.
enum WordRows<'a> {
    /// Each row has its word.
    Plain(&'a [u8]),
    /// Each row has the number of its word.
    Numbered(Hybrid<'a>, &'a WordDictionary),
}

impl<'a> WordRows<'a> {
    /// Returns the next word, and how many of the next rows have it: from one to `most`.
    fn next_run(&mut self, most: usize) -> Result<(&'a [u8], usize), ParquetError> {
        match self {
            Self::Plain(rest) => {
                let word = next_word(rest)?;
                let (mut same, mut after) = (1, *rest);
                while same < most && next_word(&mut after)? == word {
                    (same, *rest) = (same + 1, after);
                }
                Ok((word, same))
            }
            Self::Numbered(numbers, dictionary) => {
                let (number, same) = numbers.next_run(most)?;
                let word = dictionary.word(number);
                let word = word.ok_or_else(|| wrong("a word is not in its dictionary"))?;
                Ok((word, same))
            }
        }
    }

    fn skip(&mut self, rows: usize) -> Result<(), ParquetError> {
        match self {
            Self::Plain(rest) => (0..rows).try_for_each(|_| next_word(rest).map(drop)),
            Self::Numbered(numbers, _) => numbers.skip(rows),
        }
    }
}

/// Numbers in Parquet's hybrid of run lengths and packed bits, which the library does not expose.
struct Hybrid<'a> {
    /// Width of a number in bits, at most 32.
    bits: usize,
    rest: &'a [u8],
    run: WordRun<'a>,
}

/// Numbers of one encoding, and how many of them are left.
#[derive(Clone, Copy)]
enum WordRun<'a> {
    Rle { number: u64, left: usize },
    BitPacked { bytes: &'a [u8], at: usize, left: usize },
}

impl<'a> Hybrid<'a> {
    /// Opens the numbers of a page, which begins with their width.
    fn new(page: &'a [u8]) -> Result<Self, ParquetError> {
        let (bits, rest) = page.split_first().ok_or_else(too_short)?;
        if *bits > 32 {
            return Err(wrong("its words are numbered with more than 32 bits"));
        }
        Ok(Self { bits: usize::from(*bits), rest, run: WordRun::Rle { number: 0, left: 0 } })
    }

    /// Returns the next number, and how often it is repeated: from one to `most`.
    fn next_run(&mut self, most: usize) -> Result<(u64, usize), ParquetError> {
        self.refill()?;
        let (number, same) = match self.run {
            WordRun::Rle { number, left } => (number, left.min(most)),
            WordRun::BitPacked { bytes, at, left } => {
                let number = self.unpacked(bytes, at);
                let is_same = |n: &usize| self.unpacked(bytes, at + n) == number;
                let others = (1..left.min(most)).take_while(is_same);
                (number, 1 + others.count())
            }
        };
        self.skip(same)?;
        Ok((number, same))
    }

    fn skip(&mut self, rows: usize) -> Result<(), ParquetError> {
        let mut rows = rows;
        while rows > 0 {
            self.refill()?;
            let here = match &mut self.run {
                WordRun::Rle { left, .. } => {
                    let here = rows.min(*left);
                    *left -= here;
                    here
                }
                WordRun::BitPacked { at, left, .. } => {
                    let here = rows.min(*left);
                    (*at, *left) = (*at + here, *left - here);
                    here
                }
            };
            rows -= here;
        }
        Ok(())
    }

    /// Continues with the next run if nothing is left of this one.
    fn refill(&mut self) -> Result<(), ParquetError> {
        if let WordRun::Rle { left: 1.., .. } | WordRun::BitPacked { left: 1.., .. } = self.run {
            return Ok(());
        }
        let header = self.varint()?;
        let count = usize::try_from(header >> 1).unwrap_or(usize::MAX);
        self.run = match header & 1 == 0 {
            true => {
                let number = self.rest.split_at_checked(self.bits.div_ceil(8));
                let (number, rest) = number.ok_or_else(too_short)?;
                self.rest = rest;
                let number = little_endian(number);
                WordRun::Rle { number, left: count }
            }
            // At a width of zero bits, all rows have the first word.
            false if self.bits == 0 => WordRun::Rle { number: 0, left: count.saturating_mul(8) },
            false => {
                // Groups of eight. A writer may omit bytes after the last row.
                let length = count.saturating_mul(self.bits).min(self.rest.len());
                let (bytes, rest) = self.rest.split_at(length);
                self.rest = rest;
                let left = bytes.len() * 8 / self.bits;
                WordRun::BitPacked { bytes, at: 0, left }
            }
        };
        match self.run {
            WordRun::Rle { left: 0, .. } | WordRun::BitPacked { left: 0, .. } => Err(too_short()),
            _ => Ok(()),
        }
    }

    fn unpacked(&self, bytes: &[u8], at: usize) -> u64 {
        let (start, end) = (at * self.bits, (at + 1) * self.bits);
        let shifted = little_endian(&bytes[start / 8..end.div_ceil(8)]) >> (start % 8);
        shifted & ((1 << self.bits) - 1)
    }

    /// Reads a number of seven bits per byte, low bits first.
    fn varint(&mut self) -> Result<u64, ParquetError> {
        let mut number = 0;
        for shift in (0..35).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or_else(too_short)?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(wrong("a run is longer than any page"))
    }
}

/// Reads a little-endian number of at most eight bytes.
fn little_endian(bytes: &[u8]) -> u64 {
    let bytes = bytes.iter().rev();
    bytes.fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::table::{ColumnChunk, OpenedTable, write};
    use parquet::basic::Type as Physical;
    use proptest::prelude::*;

    /// A file of one column, opened.
    fn file(words: &[String], rows: &[usize], is_name: bool) -> OpenedTable {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("words.parquet");
        let distinct = words.iter().map(String::as_str).collect();
        let which = |out: &mut dyn FnMut(usize)| rows.iter().for_each(|row| out(*row));
        let column = if is_name {
            ColumnChunk::names("word", distinct, which)
        } else {
            ColumnChunk::words("word", distinct, which)
        };
        write(&path, &[column], Vec::new()).unwrap();
        OpenedTable::new(std::fs::read(path).unwrap()).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn words_are_read_as_they_were_written(
            words in prop::collection::vec("[a-z/]{0,12}", 1..40),
            runs in prop::collection::vec((0_usize..40, 1_usize..300), 1..60),
            is_name: bool,
            every in 1_usize..50,
        ) {
            let runs = runs.iter().map(|(word, rows)| (word % words.len(), *rows));
            let rows: Vec<usize> = runs.flat_map(|(word, rows)| vec![word; rows]).collect();
            let file = file(&words, &rows, is_name);
            let part = file.part(0).unwrap();
            let read = part.words(0).unwrap().into_iter();
            let read: Vec<String> = read.flat_map(|(word, rows)| vec![word; rows]).collect();
            let written: Vec<String> = rows.iter().map(|row| words[*row].clone()).collect();
            prop_assert_eq!(&read, &written);
            let some: Vec<usize> = (0..rows.len()).step_by(every).collect();
            let expected: Vec<String> = some.iter().map(|row| written[*row].clone()).collect();
            prop_assert_eq!(part.words_at(0, &some).unwrap(), expected);
        }

        #[test]
        fn no_bytes_are_too_strange(page: Vec<u8>, most in 1_usize..1_000, skip in 0_usize..100) {
            let words = b"\x01\0\0\0a\x01\0\0\0b";
            let dictionary = WordDictionary::new(Bytes::from_static(words), 2).unwrap();
            let numbered = Hybrid::new(&page).map(|numbers| WordRows::Numbered(numbers, &dictionary));
            for mut rows in numbered.into_iter().chain([WordRows::Plain(&page)]) {
                // A run may claim more rows than a test can visit.
                for _ in 0..1_000 {
                    let Ok((_, same)) = rows.next_run(most) else {
                        break;
                    };
                    prop_assert!((1..=most).contains(&same));
                    if rows.skip(skip).is_err() {
                        break;
                    }
                }
            }
            let length = u32::try_from(page.len()).unwrap();
            let _ = WordDictionary::new(Bytes::from(page), length);
        }
    }

    #[test]
    fn a_dictionary_that_became_too_large_is_followed_by_whole_words() {
        // The dictionary ends at a mebibyte.
        let words: Vec<String> = (0..40_000).map(|n| format!("{n:060}")).collect();
        let rows: Vec<usize> = (0..words.len()).collect();
        let file = file(&words, &rows, true);
        let part = file.part(0).unwrap();
        let pages = part.pages(0, Physical::BYTE_ARRAY).unwrap();
        let encodings: Vec<Encoding> = pages.map(|page| page.unwrap().encoding()).collect();
        assert!(encodings.contains(&Encoding::RLE_DICTIONARY), "{encodings:?}");
        assert_eq!(encodings.last(), Some(&Encoding::PLAIN), "{encodings:?}");
        let read = part.words(0).unwrap();
        assert!(read.iter().map(|(word, _)| word).eq(&words));
        let some: Vec<usize> = (0..words.len()).step_by(997).collect();
        let expected: Vec<&String> = some.iter().map(|row| &words[*row]).collect();
        assert!(part.words_at(0, &some).unwrap().iter().eq(expected));
    }
}
