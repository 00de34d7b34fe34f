//! A week at 1 Hz, of the same busy hour over and over: what benchmarks of long recordings read.

use std::path::Path;

use store::{Identity, Recording, keep};
use timeline::{Entity, Facts, Run, SignalId, Stamp, Timeline};
use units::{Span, WallClock};

/// How long it is.
pub(crate) const HOURS: u64 = 7 * 24;
const START: i64 = 1_790_000_000;

/// Makes it, unless it is there.
pub(crate) fn made(directory: &Path) {
    if Recording::is_at(directory) {
        return;
    }
    let host = Identity {
        id: "bench".to_owned(),
        name: "bench".to_owned(),
    };
    let tables = tables();
    for hour in 0..HOURS {
        let timeline = hour_of(hour, &tables);
        let every = Span::from_secs(1);
        keep(directory, &host, &timeline, &Facts::default(), every).unwrap();
    }
}

type Columns = Vec<(SignalId, Vec<Run>)>;
type Tables = Vec<(Entity, String, Columns)>;

/// Values that walk at random, as most of a busy host's do.
struct Walk(u64);

impl Walk {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 40
    }
}

/// Runs of a signal that is read every `every`th sample and changes in one of `rarely` reads.
fn runs(walk: &mut Walk, every: usize, rarely: u64) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut value = 1 << 30;
    for at in (0..3600).step_by(every) {
        if at > 0 && walk.next().is_multiple_of(rarely) {
            value += walk.next() % 4096;
        }
        match runs.last_mut().filter(|run| run.value == value) {
            Some(run) => run.last = at,
            None => runs.push(Run {
                first: at,
                last: at,
                value,
            }),
        }
    }
    runs
}

fn tables() -> Tables {
    let mut walk = Walk(42);
    let mut tables = Tables::new();
    for (entity, count, busy, every) in [
        (Entity::Host, 1, 200, 1),
        (Entity::Zone, 3, 12, 1),
        (Entity::Disk, 4, 9, 1),
        (Entity::Cgroup, 20, 12, 1),
        (Entity::Process, 200, 6, 10),
    ] {
        for number in 0..count {
            let signals = entity.signals().filter_map(SignalId::at).enumerate();
            let columns = signals.map(|(at, signal)| {
                let rarely = if at < busy { 1 } else { 100_000 };
                // One process in five works.
                let rarely = if entity == Entity::Process && number % 5 > 0 {
                    200
                } else {
                    rarely
                };
                (signal, runs(&mut walk, every, rarely))
            });
            tables.push((
                entity,
                format!("{}{number}", entity.name()),
                columns.collect(),
            ));
        }
    }
    tables
}

fn hour_of(hour: u64, tables: &Tables) -> Timeline {
    let mut timeline = Timeline::default();
    for second in 0..3600 {
        let boot = 1000 + hour * 3600 + second;
        let wall = (START + boot.cast_signed()) * 1_000_000_000;
        let stamp = Stamp {
            boot: Span::from_secs(boot),
            awake: Some(Span::from_secs(boot)),
            wall: Some(WallClock::from_unix_nanos(wall)),
        };
        timeline.push_bare(stamp).unwrap();
        let at = timeline.len() - 1;
        for (entity, every) in [
            (Entity::Zone, 1),
            (Entity::Disk, 1),
            (Entity::Cgroup, 1),
            (Entity::Process, 10),
        ] {
            if at % every == 0 {
                timeline.mark_read(entity, at);
            }
        }
    }
    for (entity, key, columns) in tables {
        if *entity == Entity::Host {
            for (signal, runs) in columns {
                timeline.fill_host(*signal, runs.iter().copied());
            }
            continue;
        }
        let runs = columns
            .iter()
            .flat_map(|(id, runs)| runs.iter().map(|run| (*id, *run)));
        timeline.fill(*entity, key, "", "", runs);
    }
    timeline
}
