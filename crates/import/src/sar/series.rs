//! Figures of sar by time, and the snapshots made of them.
//!
//! sar prints rates: averages over the interval that ends at the time of the row. A timeline has counters. So a counter
//! starts at zero and grows by rate × interval, which gives the printed rates back. The first row after the start, a
//! restart or a gap gets a sample of zeros before it, at the start of its interval.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use timeline::{Entity, Sample, SignalId};
use units::{Span, WallClock};

use super::columns::{self, COLUMNS, ColumnIndex, SarMeaning, SarSubject};
use super::ram_total::{MemoryRow, RamTotal, RamTotalFinder};
use crate::builder::{Link, Snapshot, SnapshotTime, TimelineBuilder};
use crate::text::figure::{KIB, raw};

/// The figures of one time.
#[derive(Debug, Default)]
struct SarRecord {
    /// Start of the interval of its rates, if known.
    start: Option<i64>,
    host: Vec<(ColumnIndex, f64)>,
    disks: Vec<(u32, ColumnIndex, f64)>,
}

/// Figures by time, in seconds.
#[derive(Debug, Default)]
pub(crate) struct SarSeries {
    /// The number of CPUs, to convert their shares of time.
    pub(crate) cpus: Option<u32>,
    /// Whether times count from 1970; otherwise from an unknown midnight.
    pub(crate) is_dated: bool,
    records: BTreeMap<i64, SarRecord>,
    restarts: BTreeSet<i64>,
    disks: Vec<String>,
    disk_numbers: HashMap<String, u32>,
    groups: BTreeSet<&'static str>,
    /// Columns that were above 0 somewhere.
    nonzero: BTreeSet<ColumnIndex>,
    disk_figures: usize,
    dropped: usize,
    disks_dropped: bool,
}

impl SarSeries {
    /// As many rows as samples are used.
    const RECORDS_MAX: usize = TimelineBuilder::SNAPSHOTS_MAX;
    /// At most 5,000,000 figures of disks, 24 bytes each: a day of ten-minute samples of 10,000 disks.
    const DISK_FIGURES_MAX: usize = 5_000_000;
    /// At most 1,000 disks, more than any host has.
    const DISKS_MAX: usize = 1_000;
    /// At most 1e12 a second: no counter grows faster. sysstat prints such rates after a counter was reset.
    const PER_SECOND_MAX: f64 = 1e12;

    /// Notes the start of the interval of the rates at a time.
    pub(crate) fn start(&mut self, time: i64, start: i64) {
        if let Some(record) = self.record(time)
            && start < time
        {
            record.start.get_or_insert(start);
        }
    }

    /// Adds a figure of the host.
    pub(crate) fn host(&mut self, time: i64, column: ColumnIndex, value: f64) {
        if !(0.0..Self::PER_SECOND_MAX).contains(&value) {
            return;
        }
        let Some(record) = self.record(time) else {
            return;
        };
        // If a table was printed twice, the first is used.
        if record.host.iter().all(|(known, _)| *known != column) {
            record.host.push((column, value));
            self.groups.insert(COLUMNS[column].group);
            if value > 0.0 {
                self.nonzero.insert(column);
            }
        }
    }

    /// Adds a figure of a disk.
    pub(crate) fn disk(&mut self, time: i64, name: &str, column: ColumnIndex, value: f64) {
        if !(0.0..Self::PER_SECOND_MAX).contains(&value) || name.is_empty() || name.len() > 256 {
            return;
        }
        if self.disk_figures >= Self::DISK_FIGURES_MAX {
            self.disks_dropped = true;
            return;
        }
        let number = match self.disk_numbers.get(name) {
            Some(number) => *number,
            None if self.disks.len() >= Self::DISKS_MAX => {
                self.disks_dropped = true;
                return;
            }
            None => {
                let number = u32::try_from(self.disks.len()).unwrap_or(u32::MAX);
                self.disks.push(name.to_owned());
                self.disk_numbers.insert(name.to_owned(), number);
                number
            }
        };
        if let Some(record) = self.record(time) {
            record.disks.push((number, column, value));
            self.disk_figures += 1;
            self.groups.insert(COLUMNS[column].group);
        }
    }

    /// Adds a figure; `row` is the name of a CPU or disk.
    pub(crate) fn figure(&mut self, time: i64, row: &str, column: ColumnIndex, value: f64) {
        match COLUMNS[column].subject {
            SarSubject::Host => self.host(time, column, value),
            SarSubject::Cpus if matches!(row, "all" | "-1") => self.host(time, column, value),
            SarSubject::Cpus => {}
            SarSubject::Disk => self.disk(time, row, column, value),
        }
    }

    /// Notes a restart of the host.
    pub(crate) fn restart(&mut self, time: i64) {
        if self.restarts.len() < Self::RECORDS_MAX {
            self.restarts.insert(time);
        }
    }

    fn record(&mut self, time: i64) -> Option<&mut SarRecord> {
        if self.records.len() >= Self::RECORDS_MAX && !self.records.contains_key(&time) {
            self.dropped += 1;
            return None;
        }
        Some(self.records.entry(time).or_default())
    }

    /// Whether it has no figure.
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Human-readable: `sar (memory + paging), 144 samples, 10 min apart`.
    pub(crate) fn what(&self) -> String {
        let groups: Vec<&str> = self.groups.iter().copied().collect();
        let samples = self.records.len();
        // The report shows the text up to the first comma.
        let groups = groups.join(" + ");
        match self.median_step() {
            _ if samples == 1 => format!("sar ({groups}), 1 sample"),
            Some(step) => format!("sar ({groups}), {samples} samples, {} apart", seconds(step)),
            None => format!("sar ({groups}), {samples} samples"),
        }
    }

    /// What was left out.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.dropped > 0 {
            let most = Self::RECORDS_MAX;
            problems.push(format!("only the first {most} samples are used"));
        }
        if self.disks_dropped {
            problems.push("too many disk figures; the rest is left out".to_owned());
        }
        problems
    }

    /// The median interval between rows.
    fn median_step(&self) -> Option<i64> {
        let times = self.records.keys();
        let next_times = times.clone().skip(1);
        let mut steps: Vec<i64> = next_times.zip(times).map(|(b, a)| b - a).collect();
        if steps.is_empty() {
            let records = self.records.iter();
            steps.extend(records.filter_map(|(time, record)| Some(time - record.start?)));
        }
        stats::middle(&mut steps)
    }

    /// Emits the snapshots, in order.
    pub(crate) fn emit(&self, take: &mut dyn FnMut(Snapshot)) {
        let step_median = self.median_step();
        let total = self.total();
        let mut counting = Counting::default();
        let mut last: Option<i64> = None;
        let mut records = self.records.iter().peekable();
        while let Some((&time, record)) = records.next() {
            let mut link = self.link(last, time, record);
            if link != Link::Follows {
                counting = Counting::default();
                last = series_start(last, time, record, step_median);
                if let Some(start) = last {
                    let mut snapshot = self.snapshot(link, start, None);
                    counting.announce(record, self, &mut snapshot.sample);
                    counting.end_sample();
                    take(snapshot);
                    link = Link::Follows;
                }
            }
            let step = last.map(|last| time - last);
            let mut snapshot = self.snapshot(link, time, step);
            counting.count(record, step, self, &mut snapshot.sample);
            self.levels(record, total, &mut snapshot);
            if let Some((next, upcoming)) = records.peek()
                && self.link(Some(time), **next, upcoming) == Link::Follows
            {
                counting.announce(upcoming, self, &mut snapshot.sample);
            }
            counting.end_sample();
            take(snapshot);
            last = Some(time);
        }
    }

    fn snapshot(&self, link: Link, time: i64, step: Option<i64>) -> Snapshot {
        Snapshot { link, when: self.when(time, step), ..Snapshot::default() }
    }

    fn when(&self, time: i64, step: Option<i64>) -> SnapshotTime {
        if self.is_dated
            && let Some(nanos) = time.checked_mul(1_000_000_000)
        {
            return SnapshotTime::At(WallClock::from_unix_nanos(nanos));
        }
        match step.and_then(|step| u64::try_from(step).ok()) {
            Some(step) => SnapshotTime::After(Span::from_secs(step)),
            None => SnapshotTime::Unknown,
        }
    }

    /// How a row follows the one before it.
    fn link(&self, last: Option<i64>, time: i64, record: &SarRecord) -> Link {
        let Some(last) = last else { return Link::Apart };
        if self.restarts.range(last + 1..=time).next().is_some() {
            return Link::Reboot;
        }
        // Times are whole seconds.
        let gap = record.start.map_or(0, |start| start - last);
        if gap > 2 && gap > (time - last) / 10 {
            return Link::Apart;
        }
        Link::Follows
    }

    fn total(&self) -> Option<RamTotal> {
        let mut finder = RamTotalFinder::default();
        for record in self.records.values() {
            let find = |heading: &str| {
                record
                    .host
                    .iter()
                    .find(|(column, _)| COLUMNS[*column].heading == heading)
                    .map(|(_, value)| *value)
            };
            finder.add(MemoryRow {
                free: find("kbmemfree"),
                used: find("kbmemused"),
                share: find("%memused"),
                buffers: find("kbbuffers"),
                cached: find("kbcached"),
                slab: find("kbslab"),
            });
        }
        finder.total()
    }

    /// Whether zeros of a column mean "unknown".
    fn is_unknown(&self, column: ColumnIndex) -> bool {
        columns::is_never_zero(column) && !self.nonzero.contains(&column)
    }

    /// Sets the gauges of the host, and the sizes of RAM and swap.
    fn levels(&self, record: &SarRecord, total: Option<RamTotal>, snapshot: &mut Snapshot) {
        use timeline::signals::{MEM_TOTAL, SWAP_FREE, SWAP_TOTAL};
        let (mut free, mut used) = (None, None);
        for (column, value) in &record.host {
            match COLUMNS[*column].meaning {
                SarMeaning::Level(..) if self.is_unknown(*column) => {}
                SarMeaning::Level(id, scale) => {
                    if id == SWAP_FREE.id() {
                        free = Some(*value);
                    }
                    if let Some(raw) = raw(value * scale) {
                        snapshot.sample.host.set_raw(id, raw);
                    }
                }
                SarMeaning::SwapUsed => used = Some(*value),
                SarMeaning::MemUsedShare => {
                    let Some(total) = total else { continue };
                    let Some(bytes) = raw(total.kib * KIB) else {
                        continue;
                    };
                    snapshot.sample.host.set_raw(MEM_TOTAL.id(), bytes);
                    if let Some(error) = raw(total.error * KIB).filter(|error| *error > 0) {
                        snapshot.error_at_most.push((MEM_TOTAL.id(), error));
                    }
                }
                SarMeaning::PerSecond(..) | SarMeaning::CpuShare(_) | SarMeaning::MemUsed => {}
            }
        }
        if let (Some(free), Some(used)) = (free, used)
            && let Some(swap) = raw((free + used) * KIB)
        {
            snapshot.sample.host.set_raw(SWAP_TOTAL.id(), swap);
        }
    }
}

/// The start of the interval of the first row of a series. If unknown, a median interval before the row.
fn series_start(
    last: Option<i64>,
    time: i64,
    record: &SarRecord,
    step_median: Option<i64>,
) -> Option<i64> {
    let start = record.start.or_else(|| time.checked_sub(step_median?))?;
    // A restart happened after the last row.
    let start = last.map_or(start, |last| start.max(last + 1));
    (start < time).then_some(start)
}

/// A counter of the host, or of a disk.
type CounterKey = (Option<u32>, SignalId);

/// Sums rates up to counters.
#[derive(Debug, Default)]
struct Counting {
    sums: HashMap<CounterKey, f64>,
    /// Counters in the sample before.
    before: BTreeSet<CounterKey>,
    /// Counters in this sample.
    now: BTreeSet<CounterKey>,
}

impl Counting {
    /// Adds the rates of a row to the counters.
    fn count(
        &mut self,
        record: &SarRecord,
        step: Option<i64>,
        series: &SarSeries,
        sample: &mut Sample,
    ) {
        // Without an interval the rates cannot be placed in time.
        let Some(step) = step else { return };
        #[allow(clippy::cast_precision_loss)] // seconds between two rows
        let step = step as f64;
        for (counter, per_second) in rates(record, series.cpus) {
            if self.now.contains(&counter) {
                continue;
            }
            let sum = self.sums.entry(counter).or_default();
            *sum += per_second * step;
            let sum = *sum;
            self.put(counter, sum, series, sample);
        }
    }

    /// Sets the counters that the next row has and this one lacks: without an older reading they would have no rate. A
    /// counter in the sample before is not set, as its rate over this row is unknown.
    fn announce(&mut self, next: &SarRecord, series: &SarSeries, sample: &mut Sample) {
        for (counter, _) in rates(next, series.cpus) {
            if !self.now.contains(&counter) && !self.before.contains(&counter) {
                let sum = *self.sums.entry(counter).or_default();
                self.put(counter, sum, series, sample);
            }
        }
    }

    fn end_sample(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }

    fn put(&mut self, counter: CounterKey, sum: f64, series: &SarSeries, sample: &mut Sample) {
        let Some(raw) = raw(sum) else { return };
        self.now.insert(counter);
        let (disk, signal) = counter;
        match disk {
            None => sample.host.set_raw(signal, raw),
            Some(number) => {
                let name = usize::try_from(number).ok();
                if let Some(name) = name.and_then(|n| series.disks.get(n)) {
                    let row = sample.table_mut(Entity::Disk).entry(name);
                    row.row.set_raw(signal, raw);
                }
            }
        }
    }
}

/// The rates of a row, per second in the unit of the catalogue.
fn rates(record: &SarRecord, cpus: Option<u32>) -> impl Iterator<Item = (CounterKey, f64)> + '_ {
    let host = record.host.iter().map(|(column, value)| (None, column, value));
    let disks = record.disks.iter().map(|(disk, column, value)| (Some(*disk), column, value));
    host.chain(disks).filter_map(move |(disk, column, value)| {
        let (signal, scale) = match COLUMNS[*column].meaning {
            SarMeaning::PerSecond(signal, scale) => (signal, scale),
            // 100 ticks per second and CPU: 1 % of a CPU is a tick per second.
            SarMeaning::CpuShare(signal) => (signal, f64::from(cpus?)),
            _ => return None,
        };
        Some(((disk, signal), value * scale))
    })
}

/// `10 min`.
fn seconds(step: i64) -> String {
    Span::from_secs(u64::try_from(step).unwrap_or(0)).to_string()
}
