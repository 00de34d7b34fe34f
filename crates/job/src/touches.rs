//! What a job touched: runs of pages read and dirtied, in order, and files with their uses. Bounded, however long the job is.
//!
//! Pages of one file that are touched one after another are one run of at most 256 KiB, so that a job of 30 GiB is 120,000 runs.
//! Beyond [`RUNS_MAX`] only a part of all blocks of pages is kept, chosen by a hash of file and block (SHARDS, Waldspurger and
//! others, FAST 2015): of a block either every touch is kept or none, so distances among what is kept are those of the whole
//! divided by the rate. Each time the room is full again the rate is halved.

use std::collections::HashMap;

use units::{Bytes, Span};

/// How many runs are kept: 20 MiB.
const RUNS_MAX: usize = 1 << 20;

/// How many files have a row; touches of further ones are kept without a name. 200,000 rows are some 30 MiB.
const FILES_MAX: usize = 200_000;

/// Runs at the end that may still become longer: a job reads some files and writes others at once.
const OPEN_RUNS_MAX: usize = 8;

/// The longest run in bytes: what is read together counts as read before what is written beside it.
const RUN_LEN_MAX: Bytes = Bytes::from_kib(256);

/// Neighbouring pages that are kept or dropped together.
const BLOCK_PAGES: u32 = 16;

/// Readers or writers of one file that are named.
const NAMED_STEPS_MAX: usize = 8;

/// What was done with pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TouchKind {
    /// Read, from the cache or from the disk.
    Read,
    /// Made dirty, to be written later.
    Written,
    /// Gone: the file was removed or cut to this length.
    Removed,
}

/// Pages of one file, touched one after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TouchedRun {
    pub(crate) file: u32,
    pub(crate) first: u32,
    pub(crate) pages: u32,
    pub(crate) step: u16,
    pub(crate) kind: TouchKind,
}

/// A file's name on this host, as the kernel knows it: device and inode.
pub type FileNumber = (u64, u64);

/// A file and what the job did with it; sizes are in units of [`Touches::unit`].
#[derive(Debug, Clone, Default)]
pub struct TouchedFile {
    /// Its device and inode; two numbers of no meaning in a plan.
    pub number: FileNumber,
    /// Its path, where that is known.
    pub name: Option<String>,
    /// The end of what was touched.
    pub end: u32,
    /// Pages read, each time counted.
    pub read: u64,
    /// Pages made dirty, each time counted.
    pub written: u64,
    /// Since the job began.
    pub first_written: Option<Span>,
    /// When it was removed, since the job began.
    pub removed: Option<Span>,
    /// Steps that read it, with pages; the first eight.
    pub readers: Vec<(u16, u64)>,
    /// Steps that wrote it, with pages; the first eight.
    pub writers: Vec<(u16, u64)>,
}

/// Everything that a job touched, as far as there is room.
#[derive(Debug, Clone)]
pub struct Touches {
    unit: Bytes,
    runs: Vec<TouchedRun>,
    runs_max: usize,
    run_len_max: u32,
    halvings: u32,
    files: Vec<TouchedFile>,
    by_number: HashMap<FileNumber, u32>,
    read: u64,
    written: u64,
}

impl Touches {
    /// Nothing yet; `unit` is the size of a page, or of a piece of a planned job.
    pub fn of_unit(unit: Bytes) -> Self {
        Self::bounded(unit, RUNS_MAX)
    }

    fn bounded(unit: Bytes, runs_max: usize) -> Self {
        let run_len_max = (RUN_LEN_MAX.get() / unit.get().max(1)).max(1);
        Self {
            unit,
            runs: Vec::new(),
            runs_max,
            run_len_max: u32::try_from(run_len_max).unwrap_or(u32::MAX),
            halvings: 0,
            files: Vec::new(),
            by_number: HashMap::new(),
            read: 0,
            written: 0,
        }
    }

    /// The size of what is touched at once.
    pub const fn unit(&self) -> Bytes {
        self.unit
    }

    /// The number of a file here; where there is no row for one more, a number that is only that of its pages.
    pub fn file(&mut self, number: FileNumber) -> u32 {
        if let Some(file) = self.by_number.get(&number) {
            return *file;
        }
        let mixed = mixed(number.0.rotate_left(32) ^ number.1);
        let row = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        if self.files.len() >= FILES_MAX {
            // The upper half belongs to files without a row.
            return u32::try_from(mixed >> 32).unwrap_or(u32::MAX) | 1 << 31;
        }
        self.files.push(TouchedFile { number, ..TouchedFile::default() });
        self.by_number.insert(number, row);
        row
    }

    /// Files that have a row.
    pub fn files(&self) -> &[TouchedFile] {
        &self.files
    }

    /// The row of a file.
    pub fn file_mut(&mut self, file: u32) -> Option<&mut TouchedFile> {
        self.files.get_mut(usize::try_from(file).ok()?)
    }

    /// Whether there were more files than rows.
    pub fn has_nameless_files(&self) -> bool {
        self.files.len() >= FILES_MAX
    }

    /// Pages read, each time counted; never sampled.
    pub fn read(&self) -> Bytes {
        self.unit.times(self.read)
    }

    /// Pages made dirty, each time counted; never sampled.
    pub fn written(&self) -> Bytes {
        self.unit.times(self.written)
    }

    /// How often the kept part was halved.
    pub(crate) const fn halvings(&self) -> u32 {
        self.halvings
    }

    /// What is kept, in order.
    pub(crate) fn runs(&self) -> &[TouchedRun] {
        &self.runs
    }

    /// Adds pages that a step read or dirtied at this time.
    pub fn touch(
        &mut self,
        kind: TouchKind,
        (file, step): (u32, u16),
        (first, pages): (u32, u32),
        at: Span,
    ) {
        if pages == 0 {
            return;
        }
        let run = TouchedRun { file, first, pages, step, kind };
        self.count(&run, at);
        if self.halvings > 0 {
            self.keep_blocks(run);
        } else {
            self.keep(run);
        }
        while self.runs.len() >= self.runs_max {
            self.halve();
        }
    }

    /// The name of a device and an inode is free for another file from now on.
    pub fn forget(&mut self, number: FileNumber) {
        self.by_number.remove(&number);
    }

    /// The file of this device and inode, if it was touched.
    pub fn find(&self, number: FileNumber) -> Option<u32> {
        self.by_number.get(&number).copied()
    }

    /// The same touches without those of some files.
    #[must_use]
    pub fn without(&self, files: &[u32]) -> Self {
        let is_left = |run: &&TouchedRun| !files.contains(&run.file);
        let mut left =
            Self { runs: self.runs.iter().filter(is_left).copied().collect(), ..self.clone() };
        for file in files {
            if let Some(row) = left.file_mut(*file).map(std::mem::take) {
                left.read = left.read.saturating_sub(row.read);
                left.written = left.written.saturating_sub(row.written);
            }
        }
        left
    }

    /// The file was removed, or cut to this many pages.
    pub fn remove(&mut self, file: u32, from: u32, at: Span) {
        if let Some(row) = self.file_mut(file).filter(|_| from == 0) {
            row.removed = Some(at);
        }
        let pages = u32::MAX - from;
        self.runs.push(TouchedRun { file, first: from, pages, step: 0, kind: TouchKind::Removed });
    }

    fn count(&mut self, run: &TouchedRun, at: Span) {
        let pages = u64::from(run.pages);
        let is_read = run.kind == TouchKind::Read;
        let total = if is_read { &mut self.read } else { &mut self.written };
        *total += pages;
        let Some(row) = self.file_mut(run.file) else { return };
        row.end = row.end.max(run.first.saturating_add(run.pages));
        let steps = if is_read {
            row.read += pages;
            &mut row.readers
        } else {
            row.written += pages;
            row.first_written.get_or_insert(at);
            row.removed = None;
            &mut row.writers
        };
        match steps.iter().position(|(step, _)| *step == run.step) {
            Some(at) => steps[at].1 += pages,
            None if steps.len() < NAMED_STEPS_MAX => steps.push((run.step, pages)),
            None => {}
        }
    }

    fn keep(&mut self, mut run: TouchedRun) {
        let tail = self.runs.len().saturating_sub(OPEN_RUNS_MAX);
        let same = |open: &&mut TouchedRun| {
            open.file == run.file && open.kind == run.kind && open.step == run.step
        };
        if let Some(open) = self.runs[tail..].iter_mut().rev().find(same)
            && open.first.checked_add(open.pages) == Some(run.first)
        {
            let room = self.run_len_max.saturating_sub(open.pages).min(run.pages);
            open.pages += room;
            run.first += room;
            run.pages -= room;
        }
        while run.pages > 0 {
            let pages = run.pages.min(self.run_len_max);
            self.runs.push(TouchedRun { pages, ..run });
            run.first = run.first.saturating_add(pages);
            run.pages -= pages;
        }
    }

    /// Keeps the parts of a run of which the block belongs to the sample.
    fn keep_blocks(&mut self, run: TouchedRun) {
        let halvings = self.halvings;
        self.runs.extend(blocks(run).filter(|block| is_sampled(block.file, block.first, halvings)));
    }

    fn halve(&mut self) {
        self.halvings += 1;
        for run in std::mem::take(&mut self.runs) {
            match run.kind {
                TouchKind::Removed => self.runs.push(run),
                TouchKind::Read | TouchKind::Written => self.keep_blocks(run),
            }
        }
        // A job that removes a million files: what their removal is for was counted with each file.
        if self.runs.len() >= self.runs_max {
            self.runs.retain(|run| run.kind != TouchKind::Removed);
        }
    }
}

/// Cuts a run at the borders of blocks.
fn blocks(run: TouchedRun) -> impl Iterator<Item = TouchedRun> {
    let end = u64::from(run.first) + u64::from(run.pages);
    let mut first = u64::from(run.first);
    std::iter::from_fn(move || {
        let border = (first / u64::from(BLOCK_PAGES) + 1) * u64::from(BLOCK_PAGES);
        let part = border.min(end).checked_sub(first).filter(|part| *part > 0)?;
        let block = TouchedRun {
            first: u32::try_from(first).ok()?,
            pages: u32::try_from(part).ok()?,
            ..run
        };
        first += part;
        Some(block)
    })
}

/// Whether the block of this page is one of every 2^halvings.
pub(crate) fn is_sampled(file: u32, page: u32, halvings: u32) -> bool {
    let mask = (1_u64 << halvings.min(63)) - 1;
    block_hash(file, page) & mask == 0
}

/// A number for the block of a page that looks random.
pub(crate) fn block_hash(file: u32, page: u32) -> u64 {
    mixed(u64::from(file) << 32 | u64::from(page / BLOCK_PAGES))
}

fn mixed(seed: u64) -> u64 {
    stats::SplitMix64::new(seed).next_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Bytes = Bytes::from_kib(4);

    fn read(touches: &mut Touches, file: u32, first: u32, pages: u32) {
        touches.touch(TouchKind::Read, (file, 0), (first, pages), Span::ZERO);
    }

    #[test]
    fn reads_one_after_another_are_one_run() {
        let mut touches = Touches::of_unit(PAGE);
        let [file, other] = [2, 3].map(|inode| touches.file((1, inode)));
        for page in 0..10 {
            read(&mut touches, file, page, 1);
            touches.touch(TouchKind::Written, (other, 0), (page, 1), Span::ZERO);
        }
        assert_eq!(touches.runs().iter().map(|run| run.pages).collect::<Vec<_>>(), [10, 10]);
        assert_eq!((touches.read(), touches.written()), (PAGE.times(10), PAGE.times(10)));
        let left = touches.without(&[other]);
        assert_eq!((left.read(), left.written()), (PAGE.times(10), Bytes::ZERO));
        assert_eq!(left.runs().len(), 1);
    }

    #[test]
    fn a_run_has_a_bound() {
        let mut touches = Touches::of_unit(PAGE);
        read(&mut touches, 0, 0, 1000);
        assert_eq!(
            touches.runs().iter().map(|run| run.pages).collect::<Vec<_>>(),
            [64; 15].into_iter().chain([40]).collect::<Vec<_>>()
        );
    }

    #[test]
    fn memory_is_bounded_and_a_block_is_kept_in_all_its_touches_or_in_none() {
        let mut touches = Touches::bounded(PAGE, 4096);
        for _ in 0..3 {
            for block in 0..20_000_u32 {
                read(&mut touches, 0, block * 64, 16);
            }
        }
        assert!(touches.runs().len() <= 4096 && touches.halvings() > 0);
        assert_eq!(touches.read(), PAGE.times(3 * 20_000 * 16));
        let mut times: HashMap<u32, u32> = HashMap::new();
        for run in touches.runs() {
            *times.entry(run.first).or_default() += 1;
        }
        assert!(times.values().all(|times| *times == 3), "{times:?}");
    }

    #[test]
    fn files_beyond_the_rows_are_touched_without_a_name() {
        let mut touches = Touches::of_unit(PAGE);
        for inode in 0..FILES_MAX as u64 + 10 {
            let file = touches.file((1, inode));
            read(&mut touches, file, 0, 1);
        }
        assert!(touches.has_nameless_files());
        assert_eq!(touches.read(), PAGE.times(FILES_MAX as u64 + 10));
    }
}
