//! Block devices as rules need them: how busy a disk is, what it moves, and how long a request takes.
//!
//! Device-mapper and MD devices count the I/O of the disks below them again, so figures of several disks are compared,
//! never added.

use timeline::signals::{
    DISK_FLUSHES, DISK_IO_TIME, DISK_READ_BYTES, DISK_READ_TIME, DISK_READS, DISK_WRITE_BYTES,
    DISK_WRITE_TIME, DISK_WRITES,
};
use timeline::{Counter, Entity, EntitySeries, Signal, Stretch, Track};
use units::{BytesPerSecond, Count, Millis, Quantity as _, Ratio};

use crate::evidence::{Evidence, Missing};
use crate::finding::Affected;
use crate::trigger::Numbers;

/// A disk this busy works at what it can do; an engineering choice. Labelled captures, November 2026: 94 % and more on
/// throttled disks under load.
pub(crate) const SATURATED: Ratio = Ratio::from_percent(90.0);

/// What a disk did in a stretch.
#[derive(Debug, Clone)]
pub(crate) struct DiskLoad {
    pub(crate) name: String,
    /// The share of time for which at least one request was in flight.
    pub(crate) busy: Ratio,
    pub(crate) read: BytesPerSecond,
    pub(crate) written: BytesPerSecond,
    /// Mean time of a read, queueing included; `None` without reads.
    pub(crate) read_takes: Option<Millis>,
    /// The same for a write.
    pub(crate) write_takes: Option<Millis>,
}

impl DiskLoad {
    /// Measures a disk; `None` if it was not measured in the stretch.
    pub(crate) fn during(
        cx: &Evidence<'_>,
        disk: &EntitySeries,
        stretch: &Stretch,
    ) -> Option<Self> {
        let rate = |signal| cx.rate_of(disk, signal).ok()?.mean_in(stretch);
        let takes = |time, number| mean_time(cx, disk, (time, number), stretch);
        Some(Self {
            name: disk.key.clone(),
            busy: busy(cx, disk).ok()?.mean_in(stretch)?,
            read: rate(DISK_READ_BYTES)?,
            written: rate(DISK_WRITE_BYTES)?,
            read_takes: takes(DISK_READ_TIME, DISK_READS),
            write_takes: takes(DISK_WRITE_TIME, DISK_WRITES),
        })
    }

    /// Measures the disk that is busy for the largest share of a stretch.
    pub(crate) fn of_busiest(cx: &Evidence<'_>, stretch: &Stretch) -> Option<Self> {
        let disks = cx.timeline.entities(Entity::Disk);
        let loads = disks.filter_map(|disk| Self::during(cx, disk, stretch));
        loads.max_by(|a, b| a.busy.get().total_cmp(&b.busy.get()))
    }

    /// Formats it as what a finding is about.
    pub(crate) fn affected(&self) -> Affected {
        let Self { name, busy, read, written, .. } = self;
        let what = format!("busy {busy} of the time, {read} read, {written} written");
        Affected::new("disk", name, what)
    }
}

/// Returns the share of time for which a disk is busy.
pub(crate) fn busy(cx: &Evidence<'_>, disk: &EntitySeries) -> Result<Track<Ratio>, Missing> {
    let busy: Numbers = cx.rate_of(disk, DISK_IO_TIME)?.cast();
    // Milliseconds of I/O a second; the kernel's and the recorder's clocks differ a little.
    let whole: Numbers = cx.timeline.constant(Ratio::new(1.0));
    Ok(busy.scaled(1e-3).lower(&whole))
}

/// Returns the busy share of the busiest disk.
pub(crate) fn busiest(cx: &Evidence<'_>) -> Result<Numbers, Missing> {
    let disks = cx.timeline.entities(Entity::Disk);
    let busiest = disks.filter_map(|disk| busy(cx, disk).ok()).reduce(larger);
    busiest.ok_or_else(|| cx.lacks_signal(DISK_IO_TIME.id()))
}

/// Returns the flushes of the disk that has most of them. Kernels before 5.5 do not count flushes.
pub(crate) fn most_flushes(cx: &Evidence<'_>) -> Result<Numbers, Missing> {
    let disks = cx.timeline.entities(Entity::Disk);
    let flushes = disks.filter_map(|disk| Some(cx.rate_of(disk, DISK_FLUSHES).ok()?.cast()));
    let most = flushes.reduce(larger);
    most.ok_or_else(|| cx.lacks_signal(DISK_FLUSHES.id()))
}

/// Returns the mean time of a request at each sample, in milliseconds: absent where there was none.
pub(crate) fn time_of_each(
    cx: &Evidence<'_>,
    disk: &EntitySeries,
    (time, number): (Signal<Counter<Millis>>, Signal<Counter<Count>>),
) -> Result<Numbers, Missing> {
    let time: Numbers = cx.rate_of(disk, time)?.cast();
    Ok(time.ratio_of(&cx.rate_of(disk, number)?.cast()))
}

/// Returns the mean time of a request in a stretch; `None` if there was none.
fn mean_time(
    cx: &Evidence<'_>,
    disk: &EntitySeries,
    (time, number): (Signal<Counter<Millis>>, Signal<Counter<Count>>),
    stretch: &Stretch,
) -> Option<Millis> {
    let requests = cx.rate_of(disk, number).ok()?.integral_in(stretch);
    let time = cx.rate_of(disk, time).ok()?.integral_in(stretch);
    (requests >= 1.0).then(|| Millis::from_f64(time / requests))
}

/// The larger of two, or the one that is there.
fn larger(a: Numbers, b: Numbers) -> Numbers {
    a.zip(&b, f64::max).or_else(&a).or_else(&b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::Case;

    #[test]
    fn a_request_takes_its_share_of_the_time_of_all() {
        let case = Case::over(10)
            .counter_of(Entity::Disk, "sda", DISK_READS, 50)
            .counter_of(Entity::Disk, "sda", DISK_READ_TIME, 1_500)
            .counter_of(Entity::Disk, "sda", DISK_READ_BYTES, 4_096)
            .counter_of(Entity::Disk, "sda", DISK_WRITES, 0)
            .counter_of(Entity::Disk, "sda", DISK_WRITE_TIME, 0)
            .counter_of(Entity::Disk, "sda", DISK_WRITE_BYTES, 0)
            .counter_of(Entity::Disk, "sda", DISK_IO_TIME, 1_010);
        let load = case.with(|cx| DiskLoad::of_busiest(cx, &cx.timeline.whole().unwrap()));
        let load = load.unwrap();
        assert_eq!(load.read_takes, Some(Millis::new(30)));
        assert_eq!(load.write_takes, None);
        assert_eq!(load.busy, Ratio::new(1.0));
    }
}
