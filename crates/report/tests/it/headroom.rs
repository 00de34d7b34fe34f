//! What people see of `headroom`. A changed snapshot is looked at before it is accepted.

use diagnose::Evidence;
use diagnose::headroom::{Demand, DemandKind, Question, headroom};
use report::model::headroom::HeadroomReport;
use report::{Screen, text};
use timeline::facts::{KERNEL_VERSION, MGLRU};
use timeline::signals::{
    MEM_ACTIVE_FILE, MEM_AVAILABLE, MEM_CACHED, MEM_DIRTY, MEM_FREE, MEM_INACTIVE_FILE, MEM_MAPPED,
    MEM_SHMEM, MEM_TOTAL, MEM_WRITEBACK, PGPGIN, PROC_RSS, PROC_RSS_ANON, PSI_MEMORY_SOME,
    REFAULT_FILE, SWAP_FREE, SWAP_TOTAL, ZONE_BOOST, ZONE_HIGH, ZONE_LOW, ZONE_MANAGED,
};
use timeline::{Entity, Facts, Sample, Source, SourceKind, Timeline};
use units::{Bytes, Micros, PageSize, Pages, Span};

const MIB: fn(u64) -> Bytes = Bytes::from_mib;

fn drawn(samples: &[Sample], add: Option<(u64, DemandKind)>) -> String {
    let mut timeline = Timeline::default();
    for sample in samples {
        timeline.push(sample).unwrap();
    }
    let mut facts = Facts::default();
    facts.page_size = PageSize::from_bytes(4096);
    facts.record(Span::ZERO, KERNEL_VERSION, "Linux version 6.1.0-56-cloud-amd64");
    facts.record(Span::ZERO, MGLRU, "0x0000");
    let question = Question {
        add: add.map(|(mib, kind)| Demand { bytes: MIB(mib), kind }),
        cycle: Span::from_mins(1),
        ..Question::default()
    };
    let answer = headroom(&Evidence::new(&timeline, &facts), &question, None);
    let source = Source::new(SourceKind::Capture, "case.jsonl.gz", timeline, facts);
    let report = HeadroomReport::new(&source, &question, &answer);
    text::headroom(&report, &Screen::default())
}

/// A host of 1000 MiB with 400 available: 300 of files, a third of them used again, and a server of 500 MiB.
fn second(at: u64) -> Sample {
    let mut sample = Sample::at(Span::from_secs(at));
    let host = &mut sample.host;
    for (signal, mib) in [
        (MEM_TOTAL, 1000),
        (MEM_FREE, 140),
        (MEM_AVAILABLE, if at == 20 { 360 } else { 400 }),
        (MEM_CACHED, 310),
        (MEM_SHMEM, 10),
        (MEM_ACTIVE_FILE, 90),
        (MEM_INACTIVE_FILE, 210),
        (MEM_MAPPED, 10),
        (MEM_DIRTY, 8),
        (MEM_WRITEBACK, 0),
        (SWAP_TOTAL, 200),
        (SWAP_FREE, 150),
    ] {
        host.set(signal, MIB(mib));
    }
    host.set(REFAULT_FILE, Pages::new(1000));
    host.set(PGPGIN, MIB(5));
    let zone = sample.table_mut(Entity::Zone).entry("0/Normal");
    for (signal, mib) in [(ZONE_MANAGED, 1000), (ZONE_LOW, 20), (ZONE_HIGH, 24), (ZONE_BOOST, 2)] {
        zone.row.set(signal, Pages::new(mib * 256));
    }
    let process = sample.table_mut(Entity::Process).entry("7@1");
    process.label = "server".to_owned();
    process.row.set(PROC_RSS_ANON, MIB(500));
    process.row.set(PROC_RSS, Pages::new(510 * 256));
    sample
}

#[test]
fn what_fits() {
    let samples: Vec<Sample> = (0..60).map(second).collect();
    insta::assert_snapshot!(drawn(&samples, Some((100, DemandKind::Anon))));
}

#[test]
fn what_does_not_fit_because_files_are_read_again_already() {
    let samples: Vec<Sample> = (0..60)
        .map(|at| {
            let mut sample = second(at);
            sample.host.set(MEM_FREE, MIB(24));
            sample.host.set(MEM_AVAILABLE, MIB(60));
            sample.host.set(MEM_CACHED, MIB(70));
            sample.host.set(MEM_ACTIVE_FILE, MIB(20));
            sample.host.set(MEM_INACTIVE_FILE, MIB(40));
            sample.host.set(REFAULT_FILE, Pages::new(1000 + at * 3000));
            sample.host.set(PGPGIN, Bytes::from_mib(5 + at * 13));
            sample.host.set(PSI_MEMORY_SOME, Micros::new(at * 200_000));
            sample
        })
        .collect();
    insta::assert_snapshot!(drawn(&samples, Some((200, DemandKind::Cache))));
}

#[test]
fn what_one_look_leaves_open() {
    let mut sample = Sample::at(Span::ZERO);
    for (signal, mib) in [
        (MEM_TOTAL, 80_429),
        (MEM_FREE, 579),
        (MEM_AVAILABLE, 9662),
        (MEM_CACHED, 20_943),
        (MEM_SHMEM, 1028),
    ] {
        sample.host.set(signal, MIB(mib));
    }
    insta::assert_snapshot!(drawn(&[sample], Some((500, DemandKind::Tmpfs))));
}
