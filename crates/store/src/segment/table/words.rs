//! Columns of words: which rows have the same one.
//!
//! The library gives each row a word of its own, with a share in the page that holds it, and rows are many and words few. Here rows
//! are compared by the numbers that they have in the dictionary, and a word is taken from the page once for all rows that it lies in.

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::errors::ParquetError;

use super::pages::Pages;
use super::too_short;

/// Calls for each word with the number of rows, one after another, that have it; the same word may come again. Ends when all `rows`
/// were there, or when it is told that no more are wanted.
pub(super) fn each_word(
    pages: &mut Pages,
    rows: usize,
    mut wants_more: impl FnMut(&[u8], usize) -> bool,
) -> Result<(), ParquetError> {
    let mut dictionary = Vec::new();
    let mut left = rows;
    while left > 0 {
        match pages.get_next_page()?.ok_or_else(too_short)? {
            Page::DictionaryPage { buf, .. } => dictionary = plain(&buf)?,
            Page::DataPage {
                buf,
                num_values,
                encoding,
                ..
            } => {
                let here = left.min(usize::try_from(num_values).unwrap_or(usize::MAX));
                let is_done = match encoding {
                    Encoding::PLAIN => plain_rows(&buf, here, &mut wants_more)?,
                    _ => numbered_rows(&buf, here, &dictionary, &mut wants_more)?,
                };
                if is_done {
                    return Ok(());
                }
                left -= here;
            }
            Page::DataPageV2 { .. } => return Err(wrong("its pages are of the second version")),
        }
    }
    Ok(())
}

fn wrong(why: &str) -> ParquetError {
    ParquetError::General(why.to_owned())
}

/// The next word of those that lie one after another, each after its length.
fn next_word<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], ParquetError> {
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(too_short)?;
    let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    let (word, rest) = rest.split_at_checked(length).ok_or_else(too_short)?;
    *bytes = rest;
    Ok(word)
}

/// The words of a dictionary.
fn plain(page: &Bytes) -> Result<Vec<Bytes>, ParquetError> {
    let mut rest: &[u8] = page;
    let mut words = Vec::new();
    while !rest.is_empty() {
        words.push(page.slice_ref(next_word(&mut rest)?));
    }
    Ok(words)
}

/// Rows of which each has its word. Gives whether no more are wanted.
fn plain_rows(
    page: &[u8],
    rows: usize,
    wants_more: &mut impl FnMut(&[u8], usize) -> bool,
) -> Result<bool, ParquetError> {
    let mut rest = page;
    let mut run: Option<(&[u8], usize)> = None;
    for _ in 0..rows {
        let word = next_word(&mut rest)?;
        match &mut run {
            Some((same, rows)) if *same == word => *rows += 1,
            _ => {
                if let Some((word, rows)) = run.replace((word, 1))
                    && !wants_more(word, rows)
                {
                    return Ok(true);
                }
            }
        }
    }
    Ok(run.is_some_and(|(word, rows)| !wants_more(word, rows)))
}

/// Rows of which each has the number of its word. Gives whether no more are wanted.
fn numbered_rows(
    page: &[u8],
    rows: usize,
    dictionary: &[Bytes],
    wants_more: &mut impl FnMut(&[u8], usize) -> bool,
) -> Result<bool, ParquetError> {
    let mut numbers = Numbers::new(page)?;
    let mut left = rows;
    while left > 0 {
        let (number, same) = numbers.next_run()?;
        let same = same.min(left);
        let word = dictionary.get(number);
        let word = word.ok_or_else(|| wrong("a word is not in its dictionary"))?;
        if !wants_more(word, same) {
            return Ok(true);
        }
        left -= same;
    }
    Ok(false)
}

/// Numbers as Parquet's hybrid of run lengths and packed bits has them, which the library does not show as such.
struct Numbers<'a> {
    bits: usize,
    rest: &'a [u8],
    /// Numbers that lie packed one after another, and how many of them were taken.
    packed: (&'a [u8], usize),
}

impl<'a> Numbers<'a> {
    /// Those of a page, which begins with their width.
    fn new(page: &'a [u8]) -> Result<Self, ParquetError> {
        let (bits, rest) = page.split_first().ok_or_else(too_short)?;
        if *bits > 32 {
            return Err(wrong("its words are numbered with more than 32 bits"));
        }
        Ok(Self {
            bits: usize::from(*bits),
            rest,
            packed: (&[], 0),
        })
    }

    /// The next number, and how often it comes one after another; at least once.
    fn next_run(&mut self) -> Result<(usize, usize), ParquetError> {
        if let Some(first) = self.peek_packed() {
            let mut same = 0;
            while self.peek_packed() == Some(first) {
                self.packed.1 += 1;
                same += 1;
            }
            return Ok((first, same));
        }
        let header = self.header()?;
        let count = usize::try_from(header >> 1).unwrap_or(usize::MAX);
        if header & 1 == 0 {
            let (number, rest) = (self.rest)
                .split_at_checked(self.bits.div_ceil(8))
                .ok_or_else(too_short)?;
            self.rest = rest;
            return match count {
                0 => Err(wrong("a run of no rows")),
                _ => Ok((little_endian(number), count)),
            };
        }
        // Groups of eight. A writer may leave out what lies behind the last row.
        let length = count.saturating_mul(self.bits).min(self.rest.len());
        let (packed, rest) = self.rest.split_at(length);
        (self.packed, self.rest) = ((packed, 0), rest);
        match self.bits {
            // Of no bits there is no end: all of them are the first word.
            0 => Ok((0, count.saturating_mul(8).max(1))),
            _ => match self.peek_packed() {
                Some(_) => self.next_run(),
                None => Err(too_short()),
            },
        }
    }

    fn peek_packed(&self) -> Option<usize> {
        let (packed, at) = self.packed;
        let (start, end) = (at * self.bits, (at + 1) * self.bits);
        if packed.is_empty() || end > packed.len() * 8 {
            return None;
        }
        let bytes = &packed[start / 8..end.div_ceil(8)];
        let shifted = little_endian(bytes) >> (start % 8);
        Some(shifted & ((1 << self.bits) - 1))
    }

    /// A number of seven bits a byte, the lowest first.
    fn header(&mut self) -> Result<u64, ParquetError> {
        let mut header = 0;
        for shift in (0..35).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or_else(too_short)?;
            self.rest = rest;
            header |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(header);
            }
        }
        Err(wrong("a run is longer than any page"))
    }
}

/// A number of at most eight bytes.
fn little_endian(bytes: &[u8]) -> usize {
    let bytes = bytes.iter().rev();
    bytes.fold(0, |number, byte| number << 8 | usize::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::table::{Column, Opened, write};
    use proptest::prelude::*;

    /// A file of one column, opened.
    fn file(words: &[String], rows: &[usize], is_name: bool) -> Opened {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("words.parquet");
        let distinct = words.iter().map(String::as_str).collect();
        let which = |out: &mut dyn FnMut(usize)| rows.iter().for_each(|row| out(*row));
        let column = match is_name {
            true => Column::names("word", distinct, which),
            false => Column::words("word", distinct, which),
        };
        write(&path, &[column], Vec::new()).unwrap();
        Opened::new(std::fs::read(path).unwrap()).unwrap()
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
        fn no_bytes_are_too_strange(page: Vec<u8>, rows in 0_usize..1_000) {
            let dictionary = vec![Bytes::from_static(b"a"); 3];
            let mut seen = 0;
            let mut count = |_: &[u8], rows: usize| {
                seen += rows;
                true
            };
            let _ = numbered_rows(&page, rows, &dictionary, &mut count);
            let _ = plain_rows(&page, rows, &mut count);
            prop_assert!(seen <= 2 * rows);
            let _ = plain(&Bytes::from(page));
        }
    }

    #[test]
    fn a_dictionary_that_became_too_large_is_followed_by_whole_words() {
        // The dictionary ends at a mebibyte.
        let words: Vec<String> = (0..40_000).map(|n| format!("{n:060}")).collect();
        let rows: Vec<usize> = (0..words.len()).collect();
        let file = file(&words, &rows, true);
        let read = file.part(0).unwrap().words(0).unwrap();
        assert!(read.iter().map(|(word, _)| word).eq(&words));
    }
}
