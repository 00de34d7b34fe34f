//! Sources for the formats' tests.

use timeline::signals::{CGROUP_CURRENT, CGROUP_MAX, MEM_FREE, PROC_RSS, PSI_MEMORY_SOME, PSWPIN};
use timeline::{Entity, Facts, Sample, Timeline};
use units::{Bytes, Limit, Micros, PageSize, Pages, Span, WallClock};

use timeline::{Source, SourceKind};

fn sample(second: u64) -> Sample {
    let mut sample = Sample::at(Span::from_secs(second));
    let nanos = 1_795_318_200_250_000_000 + i64::try_from(second).unwrap() * 1_000_000_000;
    sample.stamp.wall = Some(WallClock::from_unix_nanos(nanos));
    sample
}

fn opened(timeline: Timeline) -> Source {
    let mut facts = Facts::default();
    facts.page_size = PageSize::from_bytes(4096);
    Source::new(SourceKind::Capture, "made up".to_owned(), timeline, facts)
}

/// Three samples; cgroups are read in the first and the last.
pub(super) fn source() -> Source {
    let mut timeline = Timeline::default();
    for second in 0..3 {
        let mut sample = sample(second);
        let free = if second < 2 { 1000 } else { 3000 };
        sample.host.set(MEM_FREE, Bytes::new(free));
        sample.host.set(PSI_MEMORY_SOME, Micros::new(5));
        if second > 0 {
            sample.host.set(PSWPIN, Pages::new(5 + 2 * second));
        }
        if second != 1 {
            let row = sample.table_mut(Entity::Cgroup).entry("/db");
            row.row.set(CGROUP_CURRENT, Bytes::new(4096));
        }
        if second == 0 {
            let row = sample.table_mut(Entity::Cgroup).entry("/db");
            row.row.set(CGROUP_MAX, Limit::Unlimited);
        }
        if second == 2 {
            let row = sample.table_mut(Entity::Cgroup).entry("/web");
            row.row.set(CGROUP_CURRENT, Bytes::new(8192));
        }
        timeline.push(&sample).unwrap();
    }
    opened(timeline)
}

/// A source with a process name that would break formats.
pub(super) fn hostile_source() -> Source {
    let mut sample = sample(0);
    let row = sample.table_mut(Entity::Process).entry("42@7");
    row.label = "=a\"b,c\nd\\\u{1b}[2J\u{202e}".to_owned();
    row.row.set(PROC_RSS, Pages::new(2));
    let mut timeline = Timeline::default();
    timeline.push(&sample).unwrap();
    opened(timeline)
}

/// All readings of a table by name, sorted.
pub(super) fn numbers(source: &Source, entity: Entity) -> Vec<(String, u64)> {
    let timeline = &source.timeline;
    let mut all = Vec::new();
    for index in 0..timeline.len() {
        let sample = timeline.sample(index).unwrap();
        let mut take = |row: &timeline::Row| {
            all.extend(row.iter().map(|(id, raw)| (id.def().name.to_owned(), raw)));
        };
        match entity {
            Entity::Host => take(&sample.host),
            _ => sample.table(entity).rows().iter().for_each(|row| take(&row.row)),
        }
    }
    all.sort();
    all
}
