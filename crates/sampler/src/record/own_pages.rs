//! Gives back pages of this program and its libraries that were needed to start but not to sample: parsing options and
//! the kernel's types. A page that is needed again is mapped from the page cache on first access.
//!
//! Touching a page also maps its neighbours, 64 KiB at a time (`do_fault_around`, mm/memory.c), and in memory that will
//! be locked they stay: sampling needs a tenth of the program but would keep half of it. The kernel does not map
//! neighbours beyond the end of a mapping, so mappings are cut into short ones.
//!
//! Only mappings of files that are read-only and unchanged by this process (no relocated page) are given back: they
//! hold the file's own bytes, and the kernel can read those again.

use std::ops::Range;

use probe::{Root, text};
use rustix::mm::{Advice, madvise};

const SMAPS: &str = "/proc/self/smaps";

/// Pages in one piece of a cut mapping. 16 MiB of program become a thousand mappings, of 65,530 that are allowed.
const TOGETHER: usize = 4;

/// The mappings that can be given back, as far as the kernel lists them.
#[derive(Debug)]
pub(crate) struct OwnPages(Vec<Range<usize>>);

impl OwnPages {
    pub(crate) fn find() -> Self {
        let smaps = Root::default().read(SMAPS);
        Self(smaps.map_or_else(|_| Vec::new(), |smaps| unchanged(&smaps)))
    }

    pub(crate) fn give_back(&self) {
        for range in &self.0 {
            advise(range.clone(), Advice::LinuxDontNeed);
        }
    }

    /// Cuts the mappings into pieces, for memory that will be locked. Half of the pieces lose read-ahead, which costs
    /// nothing there.
    pub(crate) fn cut(&self) {
        let piece = TOGETHER * rustix::param::page_size();
        // Short mappings stay as they are: two adjacent pieces with the same flags would be merged again.
        for range in self.0.iter().filter(|range| range.len() > piece) {
            for start in range.clone().step_by(2 * piece) {
                // Different advice makes the piece a mapping of its own.
                advise(start..range.end.min(start + piece), Advice::Random);
            }
        }
    }
}

/// Advises the kernel about a range; a refusal changes nothing.
#[allow(unsafe_code)]
fn advise(range: Range<usize>, advice: Advice) {
    let at = std::ptr::with_exposed_provenance_mut(range.start);
    // SAFETY: the range is a private mapping of a file that is neither writable nor changed, so that what a later
    // access finds there is what was there before, and none of the advice given here says otherwise.
    let _ = unsafe { madvise(at, range.len(), advice) };
}

/// Returns the file mappings in the text of `smaps` that hold only the file's own bytes.
fn unchanged(smaps: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut candidate = None;
    for line in smaps.split(|byte| *byte == b'\n') {
        if let Some(amount) = line.strip_prefix(b"Anonymous:") {
            let is_none = text::words(amount).next() == Some(b"0");
            found.extend(candidate.take().filter(|_| is_none));
        } else if let Some(mapping) = mapping(line) {
            candidate = mapping;
        }
    }
    found
}

/// Whether a line begins a mapping; if that is of a file and not writable, its range.
#[allow(clippy::option_option)] // The outer `None`: the line begins no mapping; the inner: the mapping must stay.
fn mapping(line: &[u8]) -> Option<Option<Range<usize>>> {
    let mut words = text::words(line);
    let (from, to) = std::str::from_utf8(words.next()?).ok()?.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    let range = number(from)?..number(to)?;
    let rights = words.next()?;
    let inode = words.nth(2)?;
    let is_private_file = inode != b"0" && rights.ends_with(b"p");
    let is_kept = rights.starts_with(b"r") && !rights.contains(&b'w');
    Some((is_private_file && is_kept).then_some(range))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_the_files_own_is_given_back() {
        let mapping = |line: &str, anonymous: u32| {
            format!("{line}\nSize: 8 kB\nRss: 8 kB\nAnonymous:    {anonymous} kB\nVmFlags: rd mr\n")
        };
        let smaps = [
            mapping("1000-3000 r--p 00000000 fe:00 42   /usr/bin/memtide", 0),
            mapping("3000-5000 r-xp 00002000 fe:00 42   /usr/bin/memtide", 0),
            // Relocated, and made read-only after that.
            mapping("5000-6000 r--p 00004000 fe:00 42   /usr/bin/memtide", 4),
            mapping("6000-7000 rw-p 00005000 fe:00 42   /usr/bin/memtide", 0),
            mapping("7000-8000 rw-p 00000000 00:00 0    [heap]", 0),
            mapping("8000-9000 r-xp 00000000 00:00 0    [vdso]", 0),
            mapping("9000-a000 r--s 00000000 fe:00 43   /var/shared", 0),
        ]
        .concat();
        assert_eq!(unchanged(smaps.as_bytes()), [0x1000..0x3000, 0x3000..0x5000]);
        assert!(unchanged(b"x\nAnonymous: 0 kB\n\xff-\n1-2\n").is_empty());
    }

    #[test]
    fn the_program_goes_on_without_the_pages_it_gave_back() {
        OwnPages::find().give_back();
        let short = |range: &Range<usize>| range.len() <= TOGETHER * rustix::param::page_size();
        for _ in 0..2 {
            let own = OwnPages::find();
            own.cut();
            // Another test of this process may map a library at this time.
            let is_own =
                |range: &Range<usize>| own.0.iter().any(|whole| whole.contains(&range.start));
            let now = OwnPages::find().0;
            let mut pieces = now.iter().filter(|range| is_own(range));
            assert!(now.len() > 100 && pieces.all(short), "{}", now.len());
        }
        let sorted: Vec<String> = (0..9).rev().map(|n| format!("{n:03}")).collect();
        assert_eq!(sorted.len(), 9);
        OwnPages::find().give_back();
        assert_eq!(sorted.join(" "), "008 007 006 005 004 003 002 001 000");
    }
}
