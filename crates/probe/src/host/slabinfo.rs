//! Kernel object caches: `/proc/slabinfo`, version 2.1 (2.6.10 on).
//!
//! One line per cache; a cache's pages are `num_slabs` × `pagesperslab`. `active_objs` of SLUB counts free objects of
//! per-CPU slabs as active. SLUB merges caches of equal size, so a name may stand for several. Readable only by root;
//! absent on kernels built without CONFIG_SLUB_DEBUG.
//!
//! A host has 150 to 400 caches, most of them small: the 64 with the most pages become rows, whatever the size of a
//! page. Cost: seven `pread`s of 4 KiB, 165 µs, more with many NUMA nodes, under the lock that creating a cache takes:
//! not for every sample.

use timeline::{
    Entity, Sample,
    signals::{SLAB_OBJECT_SIZE, SLAB_OBJECTS, SLAB_OBJECTS_ACTIVE, SLAB_PAGES, SLABINFO},
};
use units::{Bytes, Count, Pages};

use crate::error::{First, ParseError};
use crate::text;

/// The parser; it reuses a buffer to rank caches.
#[derive(Debug, Default)]
pub(crate) struct Slabinfo {
    caches: Vec<SlabinfoRow>,
}

/// A cache, and where its name is in the text.
#[derive(Debug, Clone, Copy)]
struct SlabinfoRow {
    pages: u64,
    line: usize,
    name: (usize, usize),
    objects: u64,
    active: u64,
    object_size: u64,
}

impl Slabinfo {
    /// Caches that become rows.
    pub(crate) const ROWS_MAX: usize = 64;

    /// Reads the text into rows of the 64 largest caches, in the order of the file.
    ///
    /// # Errors
    /// The first malformed line; the other lines are read.
    pub(crate) fn parse(&mut self, text: &[u8], sample: &mut Sample) -> Result<(), ParseError> {
        let mut first = First::default();
        self.caches.clear();
        let mut start = 0;
        for (count, line) in text::lines(text) {
            let from = start;
            start += line.len() + 1;
            if line.starts_with(b"slabinfo") || line.starts_with(b"#") {
                continue;
            }
            match SlabinfoRow::read(count, from, line) {
                Some(cache) if cache.pages > 0 => self.caches.push(cache),
                Some(_) => {}
                None => first.note(|| ParseError::new(SLABINFO, count, "a cache's numbers", line)),
            }
        }
        if self.caches.len() > Self::ROWS_MAX {
            let largest_first = |cache: &SlabinfoRow| (std::cmp::Reverse(cache.pages), cache.line);
            self.caches.select_nth_unstable_by_key(Self::ROWS_MAX, largest_first);
            self.caches.truncate(Self::ROWS_MAX);
            self.caches.sort_unstable_by_key(|cache| cache.line);
        }
        for cache in &self.caches {
            let row = sample.table_mut(Entity::Slab).add();
            text::push_lossy(&mut row.key, &text[cache.name.0..cache.name.1]);
            row.row.set(SLAB_PAGES, Pages::new(cache.pages));
            row.row.set(SLAB_OBJECTS, Count::new(cache.objects));
            row.row.set(SLAB_OBJECTS_ACTIVE, Count::new(cache.active));
            row.row.set(SLAB_OBJECT_SIZE, Bytes::new(cache.object_size));
        }
        first.into_result()
    }
}

impl SlabinfoRow {
    /// Reads `NAME ACTIVE NUM SIZE PERSLAB PAGES : tunables … : slabdata ACTIVE NUM …`. The name may hold blanks, and
    /// SLAB with statistics has a further part at the end.
    fn read(line: usize, start: usize, text: &[u8]) -> Option<Self> {
        let (cache, rest) = text.split_at(memchr::memmem::find(text, b" : tunables ")?);
        let mut numbers = text::words(&rest[memchr::memmem::find(rest, b": slabdata ")?..]).skip(2);
        let _active_slabs = numbers.next();
        let slabs = text::number(numbers.next()?)?;
        let (cache, pages_per_slab) = last_number(cache)?;
        let (cache, _objects_per_slab) = last_number(cache)?;
        let (cache, object_size) = last_number(cache)?;
        let (cache, objects) = last_number(cache)?;
        let (cache, active) = last_number(cache)?;
        let name = text::trim(cache);
        let from = start + cache.iter().position(|b| !b.is_ascii_whitespace())?;
        Some(Self {
            pages: slabs.checked_mul(pages_per_slab)?,
            line,
            name: (from, from + name.len()),
            objects,
            active,
            object_size,
        })
    }
}

/// Splits off the last word of the text, as a number.
fn last_number(text: &[u8]) -> Option<(&[u8], u64)> {
    let text = text.trim_ascii_end();
    let (before, word) = text.split_at(memchr::memrchr(b' ', text)? + 1);
    Some((before, text::number(word)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile;

    const V6_1: &[u8] = include_bytes!("../../tests/kernel/6.1/slabinfo");
    const HEADING: &str = "slabinfo - version: 2.1\n# name            <active_objs> <num_objs>\n";

    fn read(text: &[u8]) -> (Sample, Result<(), ParseError>) {
        let mut sample = Sample::default();
        let result = Slabinfo::default().parse(text, &mut sample);
        (sample, result)
    }

    fn pages(sample: &Sample, key: &str) -> Option<u64> {
        let mut rows = sample.table(Entity::Slab).rows().iter();
        let row = rows.find(|row| row.key == key)?;
        row.row.get(SLAB_PAGES).map(Pages::get)
    }

    #[test]
    fn pages_are_slabs_times_pages_of_a_slab() {
        let (sample, result) = read(V6_1);
        result.unwrap();
        assert_eq!(pages(&sample, "inode_cache"), Some(859 * 2));
        assert_eq!(pages(&sample, "dentry"), Some(521));
        let rows = sample.table(Entity::Slab).rows();
        let dentry = &rows.iter().find(|row| row.key == "dentry").unwrap().row;
        assert_eq!(dentry.get(SLAB_OBJECTS_ACTIVE), Some(Count::new(10_903)));
        assert_eq!(dentry.get(SLAB_OBJECTS), Some(Count::new(10_941)));
        assert_eq!(dentry.get(SLAB_OBJECT_SIZE), Some(Bytes::new(192)));
    }

    #[test]
    fn the_largest_caches_are_kept_and_empty_ones_are_not() {
        let caches = |n: usize| -> String {
            let line = |i| format!("cache-{i} 0 {i} 8 1 2 : tunables 0 0 0 : slabdata 0 {i} 0\n");
            HEADING.to_owned() + &(0..n).map(line).collect::<String>()
        };
        let (sample, result) = read(caches(300).as_bytes());
        result.unwrap();
        assert_eq!(sample.table(Entity::Slab).rows().len(), Slabinfo::ROWS_MAX);
        assert_eq!(pages(&sample, "cache-236"), Some(472));
        assert_eq!(pages(&sample, "cache-299"), Some(598));
        assert_eq!(pages(&sample, "cache-235"), None);
        let (sample, _) = read(caches(10).as_bytes());
        assert_eq!(sample.table(Entity::Slab).rows().len(), 9, "the first has no slabs");
    }

    #[test]
    fn names_may_hold_blanks_and_lines_may_go_on() {
        let text = format!(
            "{HEADING}gfs2_glock(aspace)      0      5   1056   31    8 : tunables    0    0    0 : slabdata      0      3      0\n\
             my cache 1 2 3 4 5 : tunables 120 60 8 : slabdata 6 7 0 : globalstat 1 2 3 : cpustat 4 5\n"
        );
        let (sample, result) = read(text.as_bytes());
        result.unwrap();
        assert_eq!(pages(&sample, "gfs2_glock(aspace)"), Some(24));
        assert_eq!(pages(&sample, "my cache"), Some(35));
    }

    #[test]
    fn a_bad_line_costs_its_cache_only() {
        let text = format!(
            "{HEADING}a 1 2 3 4 -5 : tunables 0 0 0 : slabdata 6 7 0\n\
             b 1 2 3 4 9223372036854775808 : tunables 0 0 0 : slabdata 6 7 0\n\
             c 1 2 3 4 5 : tunables 0 0 0 : slabdata 6 7 0\n\
             d 1 2 3 4 5 : tunab"
        );
        let (sample, result) = read(text.as_bytes());
        let error = result.unwrap_err().to_string();
        assert!(error.starts_with("/proc/slabinfo, line 3: expected a cache's numbers"), "{error}");
        assert_eq!(pages(&sample, "c"), Some(35));
        assert_eq!(sample.table(Entity::Slab).rows().len(), 1);
    }

    #[test]
    fn any_bytes_are_survived() {
        hostile::feed(V6_1, |text| drop(read(text)));
    }
}
