//! The readings of one entity in an hour, and the counters that go on in the next.

use timeline::signals::{DERIVED, Kind};
use timeline::{Entity, Run, Signal, SignalId};

use super::host::mib;
use super::noise::Noise;

/// All signals of an entity.
#[derive(Debug, Clone)]
pub(crate) struct Columns {
    /// The place of its first signal in the catalogue.
    first: usize,
    runs: Vec<Vec<Run>>,
    /// What was read last.
    last: Vec<u64>,
    /// How many change in every reading, and by how much at most.
    busy: usize,
    most: u64,
    /// Signals that the model does not set, once it has set the others: how lively each is.
    others: Option<Vec<(SignalId, Lively)>>,
}

/// How a signal moves that the model knows nothing of.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Lively {
    /// Changes in every reading, by up to so much.
    By(u64),
    /// Changes once in so many readings.
    Rarely(u64),
    /// Is always 0 here.
    Never,
}

/// What an ordinary host has none of: it balloons nothing, pins nothing, compresses nothing.
const NONE_OF: [&str; 18] = [
    "balloon",
    "zsw",
    "hugepages",
    "hugetlb",
    "cma",
    "corrupted",
    "bounce",
    "nfs",
    "shadow_call",
    "sec_page",
    "ksm",
    "htlb",
    "zone_reclaim",
    "drop_",
    "demote",
    "promote",
    "file_thp",
    "zspages",
];

impl Columns {
    /// Those signals of an entity that Linux 6.1 has; so many of them change in every reading, by so much at most.
    pub(crate) fn new(entity: Entity, busy: usize, most: u64) -> Self {
        let signals = entity.signals();
        Self {
            first: signals.start,
            runs: vec![Vec::new(); signals.len()],
            last: vec![0; signals.len()],
            busy,
            most,
            others: None,
        }
    }

    /// Those signals that the model has not set.
    fn others(&self) -> Vec<(SignalId, Lively)> {
        let told = self.runs.iter().filter(|runs| !runs.is_empty()).count();
        let mut left = self.busy.saturating_sub(told);
        let mut lively = |id: SignalId| {
            if NONE_OF.iter().any(|none| id.def().name.contains(none)) {
                return Lively::Never;
            }
            if left == 0 {
                return Lively::Rarely(100_000);
            }
            left -= 1;
            Lively::By(self.most)
        };
        let untold = self.runs.iter().enumerate().filter(|(_, runs)| runs.is_empty());
        let ids = untold.filter_map(|(column, _)| SignalId::from_index(self.first + column));
        let is_read = |id: &SignalId| id.def().file != DERIVED && has_linux_6_1(id.def().since);
        ids.filter(is_read).map(|id| (id, lively(id))).collect()
    }

    /// A level, or a counter's total.
    pub(crate) fn set<K: Kind>(&mut self, signal: Signal<K>, at: usize, value: u64) {
        self.put(signal.id(), at, value);
    }

    /// A level of so many pages, in bytes.
    pub(crate) fn set_bytes<K: Kind>(&mut self, signal: Signal<K>, at: usize, pages: f64) {
        self.put(signal.id(), at, whole(pages) * 4_096);
    }

    /// A counter rises.
    pub(crate) fn rise<K: Kind>(&mut self, signal: Signal<K>, at: usize, by: f64) {
        let total = self.last[signal.id().index() - self.first] + whole(by);
        self.put(signal.id(), at, total);
    }

    /// All that the model does not tell, livelier under load.
    pub(crate) fn rest(&mut self, at: usize, load: f64, noise: &mut Noise) {
        let others = self.others.take().unwrap_or_else(|| self.others());
        for (id, lively) in &others {
            let last = self.last[id.index() - self.first];
            let value = match lively {
                Lively::Never => 0,
                Lively::Rarely(times) if last > 0 && !noise.once_in(*times) => last,
                Lively::Rarely(_) => whole(mib(1.0)) + noise.below(4_096),
                Lively::By(most) if id.def().is_counter => {
                    last + noise.below(*most / 2) + whole(*most as f64 * load * noise.share())
                }
                Lively::By(most) => 4 * whole(mib(1.0)) + noise.below(*most),
            };
            self.put(*id, at, value);
        }
        self.others = Some(others);
    }

    fn put(&mut self, id: SignalId, at: usize, value: u64) {
        let column = id.index() - self.first;
        self.last[column] = value;
        let runs = &mut self.runs[column];
        match runs.last_mut().filter(|run| run.value == value) {
            Some(run) => *run = run.ending_at(at),
            None => runs.push(Run::at(at, value)),
        }
    }

    /// The runs of this hour, which are forgotten.
    pub(crate) fn drain(&mut self) -> Vec<(SignalId, Run)> {
        let mut drained = Vec::new();
        for (column, runs) in self.runs.iter_mut().enumerate() {
            let Some(id) = SignalId::from_index(self.first + column) else {
                continue;
            };
            drained.extend(runs.drain(..).map(|run| (id, run)));
        }
        drained
    }
}

/// Whole and not negative.
pub(crate) fn whole(amount: f64) -> u64 {
    amount.max(0.0) as u64
}

/// Whether a signal that came (and went) with these versions is there.
fn has_linux_6_1(since: &str) -> bool {
    if since.contains(" to ") {
        return false;
    }
    let mut numbers = since.split('.').map(|number| number.parse().unwrap_or(0u32));
    let came = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    came <= (6, 1)
}
