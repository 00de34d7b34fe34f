//! Figures of sar by time, whatever form they came in, and the looks that they are.
//!
//! sar prints rates, averages over the interval that ends at the row's time. A timeline holds counters: so a counter starts
//! at zero and grows by rate times interval, and the timeline's rates are the printed ones again. The first row after the
//! start, a restart or a hole gets a sample of zeros in front of it, where its interval began.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use timeline::{Entity, Sample, SignalId};
use units::{Span, WallClock};

use super::columns::{self, COLUMNS, ColumnIndex, Meaning, Of};
use super::total::{MemoryRow, Total, TotalFinder};
use crate::figure::raw;
use crate::looks::{Link, Look, When};

/// What was printed of one time.
#[derive(Debug, Default)]
struct Record {
    /// When the interval of its rates began, where the text tells.
    start: Option<i64>,
    host: Vec<(ColumnIndex, f64)>,
    disks: Vec<(u32, ColumnIndex, f64)>,
}

/// Figures by time; times are seconds.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    /// CPUs, for their shares of time.
    pub(crate) cpus: Option<u32>,
    /// Whether times count from 1970 and not from a midnight that nobody knows.
    pub(crate) is_dated: bool,
    records: BTreeMap<i64, Record>,
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

impl Recording {
    /// As many as a timeline takes.
    const MOST_RECORDS: usize = 100_000;
    /// Figures of disks are kept up to here (24 bytes each): a day of ten-minute samples of 10,000 disks.
    const MOST_DISK_FIGURES: usize = 5_000_000;
    /// More disks than these are no host's, and slow to look up.
    const MOST_DISKS: usize = 1_000;
    /// No counter of a host rises by more in a second; sysstat prints such figures where one was reset.
    const MOST_PER_SECOND: f64 = 1e12;

    /// Notes when the interval of the rates at a time began.
    pub(crate) fn start(&mut self, time: i64, start: i64) {
        if let Some(record) = self.record(time)
            && start < time
        {
            record.start.get_or_insert(start);
        }
    }

    /// Notes a figure of the host.
    pub(crate) fn host(&mut self, time: i64, column: ColumnIndex, value: f64) {
        if !(0.0..Self::MOST_PER_SECOND).contains(&value) {
            return;
        }
        let Some(record) = self.record(time) else {
            return;
        };
        // Of two printings of one table the first stays.
        if record.host.iter().all(|(known, _)| *known != column) {
            record.host.push((column, value));
            self.groups.insert(COLUMNS[column].group);
            if value > 0.0 {
                self.nonzero.insert(column);
            }
        }
    }

    /// Notes a figure of a disk.
    pub(crate) fn disk(&mut self, time: i64, name: &str, column: ColumnIndex, value: f64) {
        if !(0.0..Self::MOST_PER_SECOND).contains(&value) || name.is_empty() || name.len() > 256 {
            return;
        }
        if self.disk_figures >= Self::MOST_DISK_FIGURES {
            self.disks_dropped = true;
            return;
        }
        let number = match self.disk_numbers.get(name) {
            Some(number) => *number,
            None if self.disks.len() >= Self::MOST_DISKS => {
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

    /// Notes a figure of whatever its column is of.
    pub(crate) fn figure(&mut self, time: i64, row: &str, column: ColumnIndex, value: f64) {
        match COLUMNS[column].of {
            Of::Host => self.host(time, column, value),
            Of::Cpus if matches!(row, "all" | "-1") => self.host(time, column, value),
            Of::Cpus => {}
            Of::Disk => self.disk(time, row, column, value),
        }
    }

    /// Notes that the machine was started anew.
    pub(crate) fn restart(&mut self, time: i64) {
        if self.restarts.len() < Self::MOST_RECORDS {
            self.restarts.insert(time);
        }
    }

    fn record(&mut self, time: i64) -> Option<&mut Record> {
        if self.records.len() >= Self::MOST_RECORDS && !self.records.contains_key(&time) {
            self.dropped += 1;
            return None;
        }
        Some(self.records.entry(time).or_default())
    }

    /// Whether nothing was read.
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// What it is, for people: `sar (memory + paging), 144 samples, 10 min apart`.
    pub(crate) fn what(&self) -> String {
        let groups: Vec<&str> = self.groups.iter().copied().collect();
        let samples = self.records.len();
        // What is above a verdict ends at the first comma: the tables stand before it.
        let groups = groups.join(" + ");
        match self.usual_step() {
            _ if samples == 1 => format!("sar ({groups}), 1 sample"),
            Some(step) => format!("sar ({groups}), {samples} samples, {} apart", seconds(step)),
            None => format!("sar ({groups}), {samples} samples"),
        }
    }

    /// What had to be left out.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.dropped > 0 {
            let most = Self::MOST_RECORDS;
            problems.push(format!("only the first {most} times are used"));
        }
        if self.disks_dropped {
            problems.push("there are too many figures of disks; the rest is left out".to_owned());
        }
        problems
    }

    /// The middle one of the steps from row to row.
    fn usual_step(&self) -> Option<i64> {
        let times = self.records.keys();
        let mut steps: Vec<i64> = times
            .clone()
            .skip(1)
            .zip(times)
            .map(|(b, a)| b - a)
            .collect();
        let own = self.records.iter();
        if steps.is_empty() {
            steps.extend(own.filter_map(|(time, record)| Some(time - record.start?)));
        }
        let middle = steps.len() / 2;
        (!steps.is_empty()).then(|| *steps.select_nth_unstable(middle).1)
    }

    /// The looks, in order.
    pub(crate) fn looks(&self, take: &mut dyn FnMut(Look)) {
        let usual = self.usual_step();
        let total = self.total();
        let mut counting = Counting::default();
        let mut last: Option<i64> = None;
        let mut records = self.records.iter().peekable();
        while let Some((&time, record)) = records.next() {
            let mut link = self.link(last, time, record);
            if link != Link::Follows {
                counting = Counting::default();
                last = start_of(last, time, record, usual);
                if let Some(start) = last {
                    let mut look = self.look(link, start, None);
                    counting.announce(record, self, &mut look.sample);
                    counting.turn();
                    take(look);
                    link = Link::Follows;
                }
            }
            let step = last.map(|last| time - last);
            let mut look = self.look(link, time, step);
            counting.count(record, step, self, &mut look.sample);
            self.levels(record, total, &mut look);
            if let Some((next, upcoming)) = records.peek()
                && self.link(Some(time), **next, upcoming) == Link::Follows
            {
                counting.announce(upcoming, self, &mut look.sample);
            }
            counting.turn();
            take(look);
            last = Some(time);
        }
    }

    fn look(&self, link: Link, time: i64, step: Option<i64>) -> Look {
        Look {
            link,
            when: self.when(time, step),
            ..Look::default()
        }
    }

    fn when(&self, time: i64, step: Option<i64>) -> When {
        if self.is_dated
            && let Some(nanos) = time.checked_mul(1_000_000_000)
        {
            return When::At(WallClock::from_unix_nanos(nanos));
        }
        match step.and_then(|step| u64::try_from(step).ok()) {
            Some(step) => When::After(Span::from_secs(step)),
            None => When::Unknown,
        }
    }

    /// How a row follows on the one before it.
    fn link(&self, last: Option<i64>, time: i64, record: &Record) -> Link {
        let Some(last) = last else { return Link::Apart };
        if self.restarts.range(last + 1..=time).next().is_some() {
            return Link::Reboot;
        }
        // Clocks are read in whole seconds.
        let hole = record.start.map_or(0, |start| start - last);
        if hole > 2 && hole > (time - last) / 10 {
            return Link::Apart;
        }
        Link::Follows
    }

    fn total(&self) -> Option<Total> {
        let mut finder = TotalFinder::default();
        for record in self.records.values() {
            let find = |heading: &str| {
                let is_it = |(column, _): &&(ColumnIndex, f64)| COLUMNS[*column].heading == heading;
                record.host.iter().find(is_it).map(|(_, value)| *value)
            };
            finder.see(MemoryRow {
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

    /// Whether a column's zeros say nothing.
    fn is_unknown(&self, column: ColumnIndex) -> bool {
        columns::is_never_zero(column) && !self.nonzero.contains(&column)
    }

    /// Levels of the host, and what follows from them.
    fn levels(&self, record: &Record, total: Option<Total>, look: &mut Look) {
        use timeline::signals::{MEM_TOTAL, SWAP_FREE, SWAP_TOTAL};
        const KIB: f64 = 1024.0;
        let (mut free, mut used) = (None, None);
        for (column, value) in &record.host {
            match COLUMNS[*column].meaning {
                Meaning::Level(..) if self.is_unknown(*column) => {}
                Meaning::Level(id, scale) => {
                    if id == SWAP_FREE.id() {
                        free = Some(*value);
                    }
                    if let Some(raw) = raw(value * scale) {
                        look.sample.host.set_raw(id, raw);
                    }
                }
                Meaning::SwapUsed => used = Some(*value),
                Meaning::MemUsedShare => {
                    let Some(total) = total else { continue };
                    let Some(bytes) = raw(total.kib * KIB) else {
                        continue;
                    };
                    look.sample.host.set_raw(MEM_TOTAL.id(), bytes);
                    if let Some(half) = raw(total.half_step * KIB).filter(|half| *half > 0) {
                        look.error_at_most.push((MEM_TOTAL.id(), half));
                    }
                }
                Meaning::PerSecond(..) | Meaning::CpuShare(_) | Meaning::MemUsed => {}
            }
        }
        let swap = free
            .zip(used)
            .and_then(|(free, used)| raw((free + used) * KIB));
        if let Some(swap) = swap {
            look.sample.host.set_raw(SWAP_TOTAL.id(), swap);
        }
    }
}

/// Where the interval of the first row of a series began; where the text does not tell, a usual interval before it.
fn start_of(last: Option<i64>, time: i64, record: &Record, usual: Option<i64>) -> Option<i64> {
    let start = record.start.or_else(|| time.checked_sub(usual?))?;
    // A machine that was restarted was so after the last row.
    let start = last.map_or(start, |last| start.max(last + 1));
    (start < time).then_some(start)
}

/// A counter: of the host, or of a disk.
type Counter = (Option<u32>, SignalId);

/// Counters in the making.
#[derive(Debug, Default)]
struct Counting {
    sums: HashMap<Counter, f64>,
    /// Those that the sample before has.
    before: BTreeSet<Counter>,
    /// Those that this sample has.
    now: BTreeSet<Counter>,
}

impl Counting {
    /// Adds a row's rates to the counters.
    fn count(
        &mut self,
        record: &Record,
        step: Option<i64>,
        recording: &Recording,
        sample: &mut Sample,
    ) {
        // Without an interval the rates cannot be placed in time.
        let Some(step) = step else { return };
        #[allow(clippy::cast_precision_loss)] // seconds between two rows
        let step = step as f64;
        for (counter, per_second) in rates(record, recording.cpus) {
            if self.now.contains(&counter) {
                continue;
            }
            let sum = self.sums.entry(counter).or_default();
            *sum += per_second * step;
            let sum = *sum;
            self.put(counter, sum, recording, sample);
        }
    }

    /// Gives the counters of the next row their reading before it: without one that row would have no rate. A counter that
    /// the sample before has is left alone: its rate over this row is not known.
    fn announce(&mut self, next: &Record, recording: &Recording, sample: &mut Sample) {
        for (counter, _) in rates(next, recording.cpus) {
            if !self.now.contains(&counter) && !self.before.contains(&counter) {
                let sum = *self.sums.entry(counter).or_default();
                self.put(counter, sum, recording, sample);
            }
        }
    }

    /// The sample is complete.
    fn turn(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }

    fn put(&mut self, counter: Counter, sum: f64, recording: &Recording, sample: &mut Sample) {
        let Some(raw) = raw(sum) else { return };
        self.now.insert(counter);
        let (disk, signal) = counter;
        match disk {
            None => sample.host.set_raw(signal, raw),
            Some(number) => {
                let name = usize::try_from(number).ok();
                if let Some(name) = name.and_then(|n| recording.disks.get(n)) {
                    let row = sample.table_mut(Entity::Disk).entry(name);
                    row.row.set_raw(signal, raw);
                }
            }
        }
    }
}

/// The rates of a row, in the catalogue's units a second.
fn rates(record: &Record, cpus: Option<u32>) -> impl Iterator<Item = (Counter, f64)> + '_ {
    let host = record
        .host
        .iter()
        .map(|(column, value)| (None, column, value));
    let disks = record.disks.iter();
    let disks = disks.map(|(disk, column, value)| (Some(*disk), column, value));
    host.chain(disks).filter_map(move |(disk, column, value)| {
        let (signal, scale) = match COLUMNS[*column].meaning {
            Meaning::PerSecond(signal, scale) => (signal, scale),
            // A hundred ticks a second on each CPU: a percent of one is a tick.
            Meaning::CpuShare(signal) => (signal, f64::from(cpus?)),
            _ => return None,
        };
        Some(((disk, signal), value * scale))
    })
}

/// A step in words.
fn seconds(step: i64) -> String {
    Span::from_secs(u64::try_from(step).unwrap_or(0)).to_string()
}
