//! How the memory of a process changes: watched for a while, or as this host's recording has it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use diagnose::Evidence;
use diagnose::growth::{self, Growth, GrowthOwnerKind, GrowthPoint, GrowthSeries, owners};
use heap::Heap;
use import::OpenOptions;
use probe::{Pagemap, ProcessFiles, ProcessIdentity, ReadError, Root, process_cpu, read_within};
use report::model::growth::GrowthEntry;
use sampler::{Progress, heap_interval};
use timeline::signals::{MEM_AVAILABLE, PROC_RSS_ANON, PROC_SWAP};
use timeline::{EntityRow, Sample, TimePoint, TimeRange};
use units::{Bytes, PageSize, Span};

use crate::recording_directory;

/// Readings of a watch, if they are no closer than [`EVERY_MIN`]: enough to be sure of a class.
const READINGS: f64 = 120.0;
/// Its size is free to read; its heap is read as seldom as that costs ([`heap_interval`]).
const EVERY_MIN: Span = Span::from_millis(500);
/// The heap of a watch is read no more often.
const HEAP_EVERY_MIN: Span = Span::from_secs(1);
/// Readings of the heap that make a watch worth it: as many as a class needs.
const READINGS_ENOUGH: f64 = 40.0;
/// The shortest watch that is suggested: in less, a warm-up, a leak and fragmentation often look alike.
pub const WATCH_MIN: Span = Span::from_mins(10);
/// How often a watch asks whether it should end.
const TICK: Duration = Duration::from_millis(100);
/// How far back the recording is read.
const RECORDED: Span = Span::from_hours(6);

/// How long one reading of a watched process may wait.
const WAIT_MAX: Span = Span::from_secs(1);
/// A process that gave no answer so often is not asked again: each time costs a thread that waits.
const SILENCES_MAX: u32 = 3;

/// A process that is read again and again.
pub(super) struct WatchedProcess {
    root: Root,
    pid: u32,
    page: PageSize,
    pages: Arc<Pagemap>,
    silences: u32,
}

impl WatchedProcess {
    pub(super) fn open(root: &Root, pid: u32) -> Result<Self, ReadError> {
        let page = probe::host_facts::page_size().unwrap_or(PageSize::USUAL);
        Ok(Self {
            root: root.clone(),
            pid,
            page,
            pages: Arc::new(Pagemap::open(root, pid, page)?),
            silences: 0,
        })
    }

    /// Whether it has ended, or started another program. One that gives no answer has not.
    pub(super) fn is_gone(&mut self) -> bool {
        let pages = Arc::clone(&self.pages);
        self.ask(move || pages.is_gone()).unwrap_or(false)
    }

    /// Reads something of it that may wait; `None` if it gives no answer.
    fn ask<T: Send + 'static>(&mut self, read: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        if self.silences >= SILENCES_MAX {
            return None;
        }
        let answer = read_within(WAIT_MAX, read).ok();
        self.silences += u32::from(answer.is_none());
        answer
    }

    /// Reads its heap; `None` without one, or where not all of it was found: then its size alone is judged.
    fn heap(&mut self) -> Option<Heap> {
        let (root, pid, page) = (self.root.clone(), self.pid, self.page);
        let heap = self.ask(move || heap::read_process(&root, pid, page).ok());
        heap.flatten().filter(Heap::is_whole)
    }

    /// Reads its size; `None` if it has ended.
    fn point(&mut self, at: Span, heap: Option<&Heap>) -> Option<GrowthPoint> {
        let pid = self.pid;
        let status = self.root.read(&format!("/proc/{pid}/status")).ok()?;
        let mut row = EntityRow::default();
        // A malformed line is an absent reading.
        let _ = ProcessFiles::default().parse(pid, "status", &status, &mut row);
        // A process that takes its PID is another one.
        (!self.is_gone()).then_some(())?;
        Some(GrowthPoint {
            at,
            total: row.row.get(PROC_RSS_ANON)? + row.row.get(PROC_SWAP).unwrap_or_default(),
            live: heap.map(|heap| Bytes::new(heap.live_bytes())),
            free: heap.map(|heap| Bytes::new(heap.free_bytes())),
        })
    }

    /// Reads it again and again. Ends early where `progress` says so, or the process ends.
    pub(super) fn watch(&mut self, lasts: Span, progress: Progress<'_>) -> GrowthSeries {
        let started = Instant::now();
        let now = || Span::from_secs_f64(started.elapsed().as_secs_f64());
        let mut series = GrowthSeries::default();
        let (mut next, mut next_heap) = (Span::ZERO, Span::ZERO);
        let every = lasts.times(1.0 / READINGS).max(EVERY_MIN);
        loop {
            while now() < next {
                if progress(now()).is_break() {
                    return series;
                }
                sleep(TICK.min(next.saturating_sub(now()).as_duration()));
            }
            let (at, cpu) = (now(), process_cpu());
            let heap = (at >= next_heap).then(|| self.heap()).flatten();
            if at >= next_heap {
                let took = process_cpu().saturating_sub(cpu);
                next_heap = at.plus(every.max(HEAP_EVERY_MIN).max(heap_interval(took)));
            }
            let Some(point) = self.point(at, heap.as_ref()) else {
                return series;
            };
            series.points.push(point);
            series.limit = available(&self.root).map(|available| available + point.total);
            next = at.plus(every);
            if next > lasts || progress(now()) == ControlFlow::Break(()) {
                return series;
            }
        }
    }
}

/// Returns for how long to watch a process of which one reading takes this much CPU time: a large heap is read less often.
pub(super) fn worth_watching(cost: Span) -> Span {
    heap_interval(cost).times(READINGS_ENOUGH).max(WATCH_MIN)
}

/// What the host could still give.
fn available(root: &Root) -> Option<Bytes> {
    let mut sample = Sample::default();
    let text = root.read("/proc/meminfo").ok()?;
    let _ = probe::Meminfo::default().parse(&text, &mut sample);
    sample.host.get(MEM_AVAILABLE)
}

/// Judges what was watched; `None` if nothing was.
pub(super) fn judge(name: &str, pid: u32, series: &GrowthSeries) -> Option<GrowthEntry> {
    (!series.points.is_empty()).then(|| GrowthEntry {
        pid: Some(pid.into()),
        ..GrowthEntry::of(GrowthOwnerKind::Process, name, series, &Growth::of(series))
    })
}

/// Judges the last hours of a process in this host's recording; `None` without a recording that has it.
pub(super) fn recorded(process: &ProcessIdentity) -> Option<GrowthEntry> {
    let key = format!("{}@{}", process.pid, process.start_ticks?);
    let directory = recording_directory::to_read()?;
    let options = OpenOptions {
        range: TimeRange { since: Some(TimePoint::BeforeEnd(RECORDED)), until: None },
        ..OpenOptions::default()
    };
    let source = import::open_part(&directory, options, &mut |_| ()).ok()?;
    let evidence = Evidence::new(&source.timeline, &source.facts);
    let owner = owners(&evidence)
        .into_iter()
        .find(|one| one.kind == GrowthOwnerKind::Process && one.entity.key == key)?;
    let growth = growth::judge(&evidence, &owner);
    Some(GrowthEntry::new(&source, &owner, &growth))
}
