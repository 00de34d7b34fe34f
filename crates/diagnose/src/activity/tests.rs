//! Levels, rates and growth at a moment, of samples made for each case.

use timeline::signals::{
    CGROUP_CURRENT, CGROUP_EVENTS_OOM_KILL, CGROUP_MAX, CGROUP_PSI_MEMORY_SOME,
    CGROUP_REFAULT_FILE, MEM_TOTAL, PROC_PSS, PROC_RSS, PROC_SWAP, PSWPIN,
};
use timeline::{Entity, Facts, Sample, Timeline};
use units::{Bytes, BytesPerSecond, Count, Limit, Micros, Pages, Ratio, SignedBytes, Span};

use super::*;
use crate::evidence::Evidence;

const SECONDS: u64 = 10;

/// A host with swap-ins of 100 pages/s and a service that re-reads 200 pages/s at its limit, a sample each second.
fn sample(second: u64) -> Sample {
    let mut sample = Sample::at(Span::from_secs(second));
    sample.host.set(MEM_TOTAL, Bytes::from_gib(1));
    sample.host.set(PSWPIN, Pages::new(1_000 + second * 100));
    let web = &mut sample.table_mut(Entity::Cgroup).entry("/system.slice/web.service").row;
    web.set(CGROUP_CURRENT, Bytes::from_mib(50 + second));
    web.set(CGROUP_MAX, Limit::Bytes(Bytes::from_mib(120)));
    web.set(CGROUP_REFAULT_FILE, Pages::new(second * 200));
    web.set(CGROUP_PSI_MEMORY_SOME, Micros::new(second * 250_000));
    web.set(CGROUP_EVENTS_OOM_KILL, Count::new(3 + second / 5));
    for path in ["/system.slice", "/system.slice/web.service/worker", "/plain"] {
        let row = &mut sample.table_mut(Entity::Cgroup).entry(path).row;
        row.set(CGROUP_CURRENT, Bytes::from_mib(60));
    }
    let process = &mut sample.table_mut(Entity::Process).entry("7@100").row;
    process.set(PROC_RSS, Pages::new((40 + second) * 256));
    process.set(PROC_SWAP, Bytes::from_mib(2));
    if second == 3 {
        process.set(PROC_PSS, Bytes::from_mib(30));
    }
    sample
}

fn timeline(seconds: std::ops::RangeInclusive<u64>) -> Timeline {
    let mut timeline = Timeline::default();
    for second in seconds {
        timeline.push(&sample(second)).expect("in order");
    }
    timeline
}

fn last(timeline: &Timeline) -> Activity {
    let facts = Facts::default();
    activity(&Evidence::new(timeline, &facts), timeline.len() - 1, None)
}

#[test]
fn rates_are_those_of_the_last_seconds_and_growth_is_what_was_seen() {
    let activity = last(&timeline(0..=SECONDS));
    assert_eq!(activity.at, Span::from_secs(SECONDS));
    assert_eq!(activity.host.swap_in, Some(BytesPerSecond::from_kib(400.0)));
    let web = activity.groups.iter().find(|group| group.path.ends_with("web.service")).unwrap();
    assert_eq!(web.name.as_deref(), Some("web.service"));
    assert_eq!(web.refault, Some(BytesPerSecond::from_kib(800.0)));
    assert_eq!(web.memory_wait, Some(Ratio::new(0.25)));
    assert_eq!(web.of_limit, Some(Ratio::new(0.5)));
    assert_eq!(web.kills, Some(Count::new(2)));
    // Ten seconds were watched: no minute is made of them.
    assert_eq!(web.growth, Some(SignedBytes::new(10 << 20)));
}

#[test]
fn a_row_is_a_unit_or_what_belongs_to_none() {
    let activity = last(&timeline(0..=SECONDS));
    let paths: Vec<&str> = activity.groups.iter().map(|group| group.path.as_str()).collect();
    assert_eq!(paths, ["/plain", "/system.slice/web.service"]);
}

#[test]
fn an_old_share_has_the_change_since_added() {
    let activity = last(&timeline(0..=SECONDS));
    let process = &activity.processes[0];
    // 30 MiB of 43 when it was read; 50 now, and 2 in swap.
    assert_eq!(process.bytes, Bytes::from_mib(39));
    assert_eq!(process.measured, ProcessSize::PssAndGrowth);
    assert_eq!(process.pss_age, Some(Span::from_secs(7)));
    let fresh = last(&timeline(0..=3));
    assert_eq!(
        (fresh.processes[0].bytes, fresh.processes[0].measured),
        (Bytes::from_mib(32), ProcessSize::Pss)
    );
    let none = last(&timeline(0..=2));
    assert_eq!(
        (none.processes[0].bytes, none.processes[0].measured),
        (Bytes::from_mib(44), ProcessSize::Rss)
    );
}

#[test]
fn no_rate_and_no_growth_crosses_a_break() {
    let mut timeline = timeline(0..=SECONDS);
    timeline.push_new_segment(&sample(SECONDS + 1));
    let activity = last(&timeline);
    assert_eq!(activity.host.swap_in, None);
    assert!(activity.groups.iter().all(|group| group.growth.is_none() && group.refault.is_none()));
    timeline.push(&sample(SECONDS + 2)).expect("in order");
    assert_eq!(last(&timeline).host.swap_in, Some(BytesPerSecond::from_kib(400.0)));
}
