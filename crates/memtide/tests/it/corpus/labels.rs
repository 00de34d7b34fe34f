//! Labels are plausible: they name rules, and what they say of the host is what was read there.

use std::collections::BTreeSet;

use timeline::signals::{MEM_TOTAL, SWAP_TOTAL};

use super::{is_rule, reported_ids};
use crate::cases;

/// Rules that no real case is labelled with, and why not. They are shown by made-up hosts or by the way.
const WITHOUT_A_CASE: [(&str, &str); 32] = [
    (
        "zram-misuse",
        "in the captures with zram the pages compress well; it takes pages that do not",
    ),
    (
        "zswap-pool-full",
        "no capture has zswap, which needs a swap device behind it and a kernel that switches it \
         on",
    ),
    (
        "swap-slow-device",
        "swap thrashes in every capture with a slow swap disk; it takes little traffic and long \
         reads",
    ),
    (
        "swap-readahead-waste",
        "programs of the captures walk through their memory, or read ahead less than 1 MiB/s",
    ),
    ("tier-thrash", "no capture has memory tiers"),
    ("kswapd-stuck", "it is a fault of some kernels, and no capture has one of them"),
    ("watermark-boost", "in the captures watermarks are boosted while memory is short"),
    ("reclaim-too-proactive", "no capture has a program that writes to memory.reclaim"),
    (
        "numa-imbalance",
        "captures with two nodes spill to the other one, or zone_reclaim_mode explains the \
         shortage of one",
    ),
    ("numa-balancing-overhead", "captures with two nodes settle within a second"),
    (
        "dirty-limit-too-big",
        "the hosts have at most 2 GiB, and their dirty limit is written in less than 30 s",
    ),
    (
        "reclaim-behind-writes",
        "reclaim meets dirty pages for one second in one capture, while no task waits",
    ),
    ("fsync-storm", "programs of the captures commit 12 times a second at most"),
    (
        "compaction-stall",
        "no capture is of a host whose free memory is in small pieces while huge pages are \
         requested",
    ),
    ("kcompactd-saturated", "kcompactd uses less than a twentieth of a CPU in every capture"),
    ("kernel-stacks-large", "kernel stacks are below 1 % of RAM in every capture and paste"),
    (
        "dying-cgroups",
        "captures have no cgroup.stat; no paste of it with the memory beside it was found",
    ),
    ("pinned-memory-large", "no capture is of a host with a device that pins memory"),
    ("balloon-inflated", "the machines of the captures have no balloon device"),
    ("boot-reserved", "the captures are of small hosts without a crash kernel"),
    ("cma-reserved", "the machines of the captures have no CMA areas"),
    ("ksm-cost", "KSM is off in every capture"),
    (
        "cgroup-kmem-large",
        "anonymous memory or page cache fills the limits of the cgroups in the captures",
    ),
    ("cgroup-shmem-large", "no capture is of a cgroup with tmpfs files at its limit"),
    ("cgroup-limit-ahead", "no capture ends while a cgroup grows below its limit"),
    ("cgroup-swap-limited", "no capture is of a cgroup with a swap limit"),
    ("protection-imbalance", "no capture is of a host with protected cgroups"),
    ("process-leak", "no capture lasts for an hour and has figures of a malloc heap"),
    ("heap-fragmentation-growth", "no capture lasts for an hour and has figures of a malloc heap"),
    ("malloc-arena-bloat", "no capture has figures of a malloc heap"),
    ("allocator-churn", "no capture has a program that gives memory back at once"),
    ("runtime-heap", "no capture has figures of a runtime's heap"),
];

#[test]
fn every_label_is_a_rule() {
    for case in cases::all() {
        let Some(labels) = &case.file.labels else {
            continue;
        };
        let alternatives = labels.must_find.iter().flat_map(|ids| ids.split('|'));
        for id in alternatives.chain(labels.must_not_find.iter().map(String::as_str)) {
            assert!(is_rule(id), "{}: no rule is called {id}", case.id);
        }
        for id in labels.not_yet.keys() {
            assert!(
                labels.must_find.contains(id),
                "{}: not_yet names {id}, must_find does not",
                case.id
            );
        }
    }
}

#[test]
fn a_case_says_where_it_comes_from() {
    for case in cases::all() {
        let file = &case.file;
        let origins = [file.made.is_some(), file.origin.is_some(), file.lab.is_some()];
        let count = origins.iter().filter(|is_there| **is_there).count();
        assert_eq!(count, 1, "{}: one of [made], [origin] and [lab] is needed", case.id);
        let known =
            [&case.file.labels.as_ref().map(|_| ()), &case.file.headroom.as_ref().map(|_| ())];
        let is_decided = known.iter().any(|known| known.is_some());
        assert!(is_decided || case.is_paste(), "{}: nothing is labelled", case.id);
        if let Some(headroom) = &case.file.headroom {
            assert!(!headroom.held_until.is_empty(), "{}", case.id);
        }
        cases::named(&case.file.partner);
    }
}

/// Tests read every case many times, and a clone carries all of them.
#[test]
fn a_capture_is_small() {
    const CAPTURE_BYTES_MAX: u64 = 350_000;
    for case in cases::all() {
        let len = std::fs::metadata(&case.source).unwrap().len();
        assert!(len <= CAPTURE_BYTES_MAX, "{}: {len} bytes", case.id);
    }
}

#[test]
fn a_capture_was_made_on_the_host_that_it_names() {
    for case in cases::all().iter().filter(|case| case.is_capture()) {
        let host = case.file.host.as_ref().unwrap_or_else(|| panic!("{}: no [host]", case.id));
        let opened = &case.judged().source;
        let mib = |bytes: units::Bytes| bytes.get() >> 20;
        let samples = 0..opened.timeline.len();
        let swap = samples.filter_map(|index| opened.timeline.at(SWAP_TOTAL, index)).map(mib).max();
        let found =
            (opened.timeline.at(MEM_TOTAL, 0).map(mib), swap, opened.facts.nodes.len().max(1));
        assert_eq!(found, (Some(host.ram_mib), Some(host.swap_mib), host.nodes), "{}", case.id);
        let version = opened.facts.kernel().unwrap();
        let kernel = format!("{}.{}.", version.major, version.minor);
        assert!(host.kernel.starts_with(&kernel), "{}: {kernel} and {}", case.id, host.kernel);
    }
}

#[test]
fn rules_without_a_labelled_case_are_listed_with_the_reason() {
    let real = cases::all().iter().filter(|case| !case.is_made_up());
    let labelled: BTreeSet<&str> = real
        .flat_map(|case| case.must_find().iter().map(move |ids| (case, ids)))
        .flat_map(|(case, ids)| {
            let reported = reported_ids(case);
            ids.split('|').filter(move |id| reported.contains(id))
        })
        .collect();
    let ids = diagnose::rules::ALL.iter().map(|rule| rule.id);
    let missing: Vec<&str> = ids.filter(|id| !labelled.contains(id)).collect();
    let listed: Vec<&str> = WITHOUT_A_CASE.iter().map(|(id, _why)| *id).collect();
    assert_eq!(missing, listed, "without a case, and listed as such");
}
