//! Disks: throughput and busy time. Partitions and loop devices never reach the timeline.

use diagnose::baselines;
use diagnose::{Evidence, Missing, Need};
use timeline::signals::{
    DISK_IO_TIME, DISK_READ_BYTES, DISK_WRITE_BYTES, DISKSTATS, PGPGIN, PGPGOUT,
};
use timeline::{Counter, Entity, EntitySeries, Signal};
use units::Bytes;

use super::builder::{ChartBuilder, curve, rate, scaled, signals};
use crate::{Chart, ChartKind, ChartUnit, Colour};

/// At most 8 disks are drawn: those with the most traffic.
const DISKS_MAX: usize = 8;
/// Seconds in the millisecond that `DISK_IO_TIME` counts.
const SECONDS: f64 = 1e-3;

/// Chart of reads and writes of the disks.
pub(super) fn throughput(cx: &Evidence<'_>) -> Chart {
    let builder = ChartBuilder::new(
        "disks",
        "Disks",
        "Read upwards, written downwards.",
        ChartKind::Mirror,
        ChartUnit::BytesPerSecond,
    )
    .quiet_up_to(baselines::DISK_TRAFFIC);
    let disks = busiest(cx);
    if disks.is_empty() {
        return whole_host(cx, builder);
    }
    let is_one = disks.len() == 1;
    let of = |number: usize, of_one| if is_one { of_one } else { Colour::Nth(number) };
    let numbered = disks.into_iter().enumerate();
    numbered
        .fold(builder.of_entities(), |builder, (n, disk)| {
            let read = rate(
                format!("read-{n}"),
                format!("{disk}: read"),
                of(n, Colour::Read),
                signals![DISK_READ_BYTES, PGPGIN],
            );
            let write = rate(
                format!("write-{n}"),
                format!("{disk}: written"),
                of(n, Colour::Write),
                signals![DISK_WRITE_BYTES, PGPGOUT],
            );
            let key = disk.clone();
            builder
                .line(cx, read, move |cx| {
                    let disk = known(cx, &disk)?;
                    Ok(curve(&cx.rate_of(disk, DISK_READ_BYTES)?))
                })
                .line(cx, write.mirrored(), move |cx| {
                    let disk = known(cx, &key)?;
                    Ok(curve(&cx.rate_of(disk, DISK_WRITE_BYTES)?))
                })
        })
        .done()
}

/// Without rows of disks: draws the kernel's counters for all disks together.
fn whole_host(cx: &Evidence<'_>, builder: ChartBuilder) -> Chart {
    builder
        .line(cx, rate("read", "read", Colour::Read, signals![PGPGIN]), |cx| {
            cx.rate(PGPGIN).map(|track| curve(&track))
        })
        .line(cx, rate("write", "written", Colour::Write, signals![PGPGOUT]).mirrored(), |cx| {
            cx.rate(PGPGOUT).map(|track| curve(&track))
        })
        .done()
}

/// Chart of the busy time of the disks.
pub(super) fn busy(cx: &Evidence<'_>) -> Chart {
    let builder = ChartBuilder::new(
        "disk_busy",
        "Disks busy",
        "Share of time with at least one request under way. At 100 % a spinning disk is full; a \
         fast one may take more.",
        ChartKind::Lines,
        ChartUnit::Share,
    )
    .of_entities()
    .top(Some(1.0))
    .quiet_up_to(baselines::DISK_BUSY);
    let disks = busiest(cx);
    if disks.is_empty() {
        return builder.lacks(cx, no_disks(cx));
    }
    let numbered = disks.into_iter().enumerate();
    numbered
        .fold(builder, |builder, (n, disk)| {
            let series =
                rate(format!("disk-{n}"), disk.clone(), Colour::Nth(n), signals![DISK_IO_TIME]);
            builder.line(cx, series, move |cx| {
                let busy = cx.rate_of(known(cx, &disk)?, DISK_IO_TIME)?;
                let shares = scaled(&busy, SECONDS).into_iter();
                // Two clocks differ slightly: no disk is busy for longer than the elapsed time.
                Ok(shares.map(|share| share.map(|s| s.min(1.0))).collect())
            })
        })
        .done()
}

/// Returns the disks with the most traffic, which keep their colour in every chart.
fn busiest(cx: &Evidence<'_>) -> Vec<String> {
    let moved = |disk: &EntitySeries, signal| increase(cx, disk, signal).unwrap_or_default();
    let mut disks: Vec<(f64, &EntitySeries)> = cx
        .timeline
        .entities(Entity::Disk)
        .map(|disk| {
            let bytes = moved(disk, DISK_READ_BYTES) + moved(disk, DISK_WRITE_BYTES);
            (bytes, disk)
        })
        .collect();
    disks.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut names = disks.into_iter().map(|(_, disk)| disk.key.clone());
    names.by_ref().take(DISKS_MAX).collect()
}

fn increase(cx: &Evidence<'_>, disk: &EntitySeries, signal: Signal<Counter<Bytes>>) -> Option<f64> {
    let rate = cx.timeline.rate_of(disk, signal)?;
    Some(rate.integral_in(&rate.whole()?))
}

fn known<'a>(cx: &Evidence<'a>, disk: &str) -> Result<&'a EntitySeries, Missing> {
    let known = cx.timeline.entity(Entity::Disk, disk);
    known.ok_or_else(|| no_disks(cx))
}

fn no_disks(cx: &Evidence<'_>) -> Missing {
    let names = vec![DISK_IO_TIME.def().name];
    match cx.timeline.absent.get(DISKSTATS) {
        Some(timeline::Absence::PermissionDenied) => Missing::because(names, Need::Root(DISKSTATS)),
        _ => Missing::because(names, Need::File(DISKSTATS)),
    }
}
