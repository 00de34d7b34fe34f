//! After warm-up a sample costs no allocation, though processes come and go.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)] // helpers fail as the test does

use store::{HostIdentity, Writer, WriterOptions};
use timeline::signals::{MEM_FREE, PROC_MAJFLT};
use timeline::{Entity, Facts, ProcessCells, Sample, Stamp};
use units::{Bytes, Count, Span};

/// Fifty processes of which one ends and one begins in each sample, and ten groups.
fn write(writer: &mut Writer, sample: &mut Sample, slots: &mut [store::Slot], number: u64) {
    sample.stamp = Stamp { boot: Span::from_secs(number), ..Stamp::default() };
    writer.begin(sample.stamp);
    writer.rows(sample);
    writer.begin_processes();
    let mut cells = ProcessCells::default();
    cells.set(PROC_MAJFLT, Count::new(number));
    let replaced = usize::try_from(number).unwrap() % slots.len();
    slots[replaced] =
        writer.declare(1000 + number as u32 % 9000, 1_000_000, b"worker", "web.service");
    for slot in slots {
        writer.process(*slot, &cells);
    }
    writer.end();
}

#[test]
fn a_sample_allocates_nothing_though_processes_come_and_go() {
    let directory = tempfile::tempdir().unwrap();
    let identity = HostIdentity { id: "0123".to_owned(), name: "host".to_owned() };
    let mut writer =
        Writer::open(directory.path(), &identity, &Facts::default(), WriterOptions::default())
            .unwrap();
    let mut sample = Sample::default();
    sample.host.set(MEM_FREE, Bytes::new(1));
    for group in 0..10 {
        sample.table_mut(Entity::Cgroup).entry(&format!("/group{group}"));
    }
    let mut slots: Vec<_> =
        (0..50u32).map(|pid| writer.declare(pid, 1_000_000, b"worker", "web.service")).collect();
    (0..300).for_each(|number| write(&mut writer, &mut sample, &mut slots, number));
    let counted = allocation_counter::measure(|| {
        (300..900).for_each(|number| write(&mut writer, &mut sample, &mut slots, number));
    });
    writer.close().unwrap();
    assert_eq!(counted.count_total, 0, "{counted:?}");
}
