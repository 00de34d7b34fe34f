//! One reading of a process, which may never answer: its pages, its lock and its files can each keep a reader waiting.

use anatomy::{AllocatorKind, EffectiveAllocator, MallocRanges, ProcessAnatomy, ReadOptions};
use heap::{Heap, HeapError, HeapNotRead};
use probe::{FrozenProcess, NoAnswer, Pagemap, Root, TimedRead, read_within};
use units::{PageSize, Span};

use super::{ExplainError, refused};

/// How long reading its memory may wait, stopping it included. A disk that the host has no time for takes less.
const WAIT_MAX: Span = Span::from_millis(2500);
/// A stopped process goes on where reading it waits for longer: it may be what the reader waits for.
const STOPPED_WAIT_MAX: Span = Span::from_millis(500);
/// How long reading its mappings alone may wait, after its memory or a file did not answer.
const MAPPINGS_WAIT_MAX: Span = Span::from_secs(1);

/// What was read of a process.
pub(super) struct ProcessReading {
    pub(super) heap: Result<Heap, HeapNotRead>,
    /// What the heap's reader says about malloc; `None` if it cannot say.
    pub(super) ranges: Option<MallocRanges>,
    pub(super) anatomy: ProcessAnatomy,
    /// Where calls of malloc go; `None` unless several allocators are there.
    pub(super) malloc_calls: Option<EffectiveAllocator>,
    /// For how long it was stopped; `None` if it was not.
    pub(super) stopped: Option<Span>,
}

impl ProcessReading {
    /// Reads a process; `freeze` stops it meanwhile.
    pub(super) fn take(root: &Root, pid: u32, freeze: bool) -> Result<Self, ExplainError> {
        let page = probe::host_facts::page_size().unwrap_or(PageSize::USUAL);
        let frozen = freeze.then(|| FrozenProcess::stop(root, pid));
        let frozen = frozen.transpose().map_err(|source| refused(pid, source))?;
        let elapsed = |frozen: &FrozenProcess| Span::from_secs_f64(frozen.elapsed().as_secs_f64());
        let left = WAIT_MAX.saturating_sub(frozen.as_ref().map_or(Span::ZERO, elapsed));
        let own = root.clone();
        let read = move || Self::read(&own, pid, &ReadOptions::usual(page));
        let mut reading = TimedRead::start(read).map_err(|why| silent(pid, why))?;
        let mut at_first = None;
        let mut stopped = None;
        if let Some(frozen) = frozen {
            at_first = Some(reading.within(STOPPED_WAIT_MAX.min(left)));
            stopped = Some(elapsed(&frozen));
        }
        let (result, early) = match at_first {
            Some(Ok(read)) => (Ok(read), None),
            Some(Err(why)) => (reading.within(left), Some(why)),
            None => (reading.within(left), None),
        };
        let mut read = match result {
            Ok(read) => read?,
            Err(why) => Self::by_mappings(root, pid, page, why)?,
        };
        read.anatomy.problems.extend(early.map(|why| went_on(&why)));
        read.stopped = stopped;
        Ok(read)
    }

    /// Reads all of a process: its heap first, as what malloc's structures contain is malloc's.
    fn read(root: &Root, pid: u32, options: &ReadOptions) -> Result<Self, ExplainError> {
        let pages = Pagemap::open(root, pid, options.page);
        let pages = pages.map_err(|source| refused(pid, source))?;
        let heap = heap::read_process(root, pid, options.page);
        let mut ranges = MallocRanges::of(&heap);
        let mut anatomy = divide(root, pid, ranges.as_ref(), options)?;
        let is_missing = matches!(&heap, Err(HeapNotRead::NoHeap(HeapError::NoArena)));
        if is_missing && has_only_glibc(&anatomy) {
            // Its arenas must be somewhere: damaged, or of a form that is not known.
            ranges = None;
            anatomy = divide(root, pid, None, options)?;
        }
        if pages.is_gone() {
            return Err(ExplainError::Ended(pid));
        }
        let mallocs = mallocs(&anatomy).count();
        let calls = (mallocs > 1).then(|| anatomy::effective_allocator(root, pid, options.page));
        Ok(Self { heap, ranges, malloc_calls: calls.and_then(Result::ok), anatomy, stopped: None })
    }

    /// Reads the mappings alone of a process that gave no answer.
    fn by_mappings(
        root: &Root,
        pid: u32,
        page: PageSize,
        why: NoAnswer,
    ) -> Result<Self, ExplainError> {
        let own = root.clone();
        let read = move || divide(&own, pid, None, &ReadOptions::by_mappings(page));
        let read = read_within(MAPPINGS_WAIT_MAX, read).map_err(|_| silent(pid, why.clone()))?;
        Ok(Self {
            heap: Err(HeapNotRead::NoAnswer(why)),
            ranges: None,
            anatomy: read?,
            malloc_calls: None,
            stopped: None,
        })
    }
}

fn divide(
    root: &Root,
    pid: u32,
    ranges: Option<&MallocRanges>,
    options: &ReadOptions,
) -> Result<ProcessAnatomy, ExplainError> {
    ProcessAnatomy::read(root, pid, ranges, options).map_err(|source| refused(pid, source))
}

/// Whether glibc's malloc is there, and no other that may serve the process instead.
fn has_only_glibc(anatomy: &ProcessAnatomy) -> bool {
    mallocs(anatomy).eq([AllocatorKind::Ptmalloc])
}

fn mallocs(anatomy: &ProcessAnatomy) -> impl Iterator<Item = AllocatorKind> {
    let kinds = anatomy.allocators.allocators.iter().map(|one| one.kind);
    kinds.filter(|kind| kind.is_malloc())
}

fn silent(pid: u32, why: NoAnswer) -> ExplainError {
    ExplainError::NoAnswer { pid, why }
}

/// Says that a stopped process went on before all of it was read.
fn went_on(why: &NoAnswer) -> String {
    format!("it went on before all of it was read, as its memory {why}")
}
