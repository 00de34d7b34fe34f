//! Charts of synthetic sources.
#![allow(clippy::field_reassign_with_default)] // Facts keeps some fields private

use diagnose::Evidence;
use timeline::signals::{
    CGROUP_ANON, CGROUP_CURRENT, CGROUP_EVENTS_MAX, CGROUP_FILE, CGROUP_MAX, DISK_IO_TIME,
    DISK_READ_BYTES, DISK_WRITE_BYTES, MEM_ANON, MEM_CACHED, MEM_FREE, MEM_PAGE_TABLES, MEM_SHMEM,
    MEM_TOTAL, NODE_ANON, NODE_FREE, NODE_TOTAL, PROC_RSS_ANON, PROC_SWAP, PSI_MEMORY_SOME, PSWPIN,
    PSWPOUT, SERVICE_RSS_ANON, SLAB_PAGES, SWAP_FREE, SWAP_TOTAL,
};
use timeline::{Entity, Facts, Sample, Timeline};
use units::{Bytes, Count, Limit, Micros, Millis, PageSize, Pages, Quantity, Span};

use super::{charts, charts_of_group, comparable_charts};
use crate::{Chart, Curve, LimitValue};

const MIB: fn(u64) -> Bytes = Bytes::from_mib;
const M: f64 = 1_048_576.0;

/// Creates a host of 1,000 MiB with samples at these seconds; `fill` gets the number of each sample.
fn source(seconds: &[u64], fill: impl Fn(u64, &mut Sample)) -> (Timeline, Facts) {
    let mut timeline = Timeline::default();
    for (number, at) in (0..).zip(seconds) {
        let mut sample = Sample::at(Span::from_secs(*at));
        sample.host.set(MEM_TOTAL, MIB(1000));
        fill(number, &mut sample);
        timeline.push(&sample).unwrap();
    }
    let mut facts = Facts::default();
    facts.page_size = PageSize::from_bytes(4096);
    (timeline, facts)
}

/// Returns the chart with this id, and its curves by their labels.
fn chart(source: &(Timeline, Facts), id: &str) -> (Chart, Vec<(String, Curve)>) {
    let cx = Evidence::new(&source.0, &source.1);
    let mut all = charts(&cx).into_iter();
    let chart = all.find(|chart| chart.id == id).unwrap();
    let curves = (chart.draw)(&cx);
    assert_eq!(curves.len(), chart.series.len());
    let labels = chart.series.iter().map(|series| series.label.clone());
    let labelled = labels.zip(curves).collect();
    (chart, labelled)
}

fn curve(source: &(Timeline, Facts), id: &str, series: &str) -> Curve {
    let (chart, curves) = chart(source, id);
    let at = chart.series.iter().position(|s| s.id == series);
    curves[at.unwrap()].1.clone()
}

fn sums(curves: &[(String, Curve)]) -> Vec<f64> {
    let samples = 0..curves[0].1.len();
    let sum = |at: usize| curves.iter().filter_map(|(_, curve)| curve[at]).sum();
    samples.map(sum).collect()
}

fn row<'a>(sample: &'a mut Sample, entity: Entity, key: &str) -> &'a mut timeline::Row {
    &mut sample.table_mut(entity).entry(key).row
}

/// Adds a process of a program.
fn process(sample: &mut Sample, key: &str, program: &str, anon: u64, swapped: u64) {
    let row = sample.table_mut(Entity::Process).entry(key);
    program.clone_into(&mut row.label);
    row.row.set(PROC_RSS_ANON, MIB(anon));
    row.row.set(PROC_SWAP, MIB(swapped));
}

#[test]
fn a_source_without_anything_has_every_chart_and_each_says_why_it_is_empty() {
    let cx = (Timeline::default(), Facts::default());
    let charts = charts(&Evidence::new(&cx.0, &cx.1));
    let ids: Vec<&str> = charts.iter().map(|chart| chart.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "where",
            "services",
            "headroom",
            "free",
            "pressure",
            "swap",
            "refaults",
            "swap_used",
            "reclaim",
            "dirty",
            "write",
            "io_wait",
            "disks",
            "disk_busy",
            "cpu",
            "growth",
            "recorder"
        ]
    );
    for chart in &charts {
        let why = chart.absent.as_deref().unwrap();
        assert!(!why.is_empty() && chart.series.is_empty(), "{}: {why}", chart.id);
    }
    let pressure = charts[4].absent.as_deref().unwrap();
    assert!(pressure.contains("/proc/pressure/memory"), "{pressure}");
}

#[test]
fn one_look_shows_levels_and_says_that_flows_need_two() {
    let once = source(&[0], |_, s| {
        s.host.set(MEM_FREE, MIB(100));
        s.host.set(PSWPIN, Pages::new(9));
    });
    assert_eq!(curve(&once, "where", "free"), [Some(100.0 * M)]);
    let swap = chart(&once, "swap").0;
    assert!(swap.absent.unwrap().contains("two samples"));
}

#[test]
fn the_stack_is_in_order_from_what_stays_to_what_is_free_and_adds_up() {
    let host = source(&[0, 1, 2], |n, s| {
        s.host.set(MEM_FREE, MIB(100 + n));
        s.host.set(MEM_ANON, MIB(400));
        s.host.set(MEM_CACHED, MIB(300));
        s.host.set(MEM_SHMEM, MIB(50));
        s.host.set(MEM_PAGE_TABLES, MIB(7));
    });
    let (chart, curves) = chart(&host, "where");
    let ids: Vec<&str> = chart.series.iter().map(|s| s.id.as_str()).collect();
    assert_eq!(ids, ["page_tables", "unaccounted", "shmem", "anon", "file_cache", "free"]);
    assert_eq!(sums(&curves), [1000.0 * M; 3]);
    assert_eq!(curves[1].1[2], Some((1000 - 102 - 400 - 300 - 7) as f64 * M));
    assert_eq!(chart.top, Some(1000.0 * M));
}

#[test]
fn drift_is_cut_from_the_largest_part_and_free_memory_stays_true() {
    let host = source(&[0], |_, s| {
        s.host.set(MEM_FREE, MIB(10));
        s.host.set(MEM_ANON, MIB(600));
        s.host.set(MEM_CACHED, MIB(400));
        s.host.set(MEM_SHMEM, MIB(0));
    });
    let (_, curves) = chart(&host, "where");
    assert_eq!(sums(&curves), [1000.0 * M]);
    assert_eq!(curve(&host, "where", "unaccounted"), [Some(0.0)]);
    assert_eq!(curve(&host, "where", "anon"), [Some(590.0 * M)]);
    assert_eq!(curve(&host, "where", "free"), [Some(10.0 * M)]);
}

#[test]
fn parts_that_exceed_memtotal_by_far_are_not_drawn() {
    let host = source(&[0], |_, s| s.host.set(MEM_ANON, MIB(1500)));
    let why = chart(&host, "where").0.absent.unwrap();
    assert!(why.starts_with("does not add up: MemTotal 1,000 MiB"), "{why}");
}

#[test]
fn rates_are_over_the_real_interval_and_a_gap_is_none_and_not_0() {
    let host = source(&[0, 1, 2, 5, 605, 606], |n, s| {
        let pages = match n {
            0..3 => n * 256,
            3 => (2 + 3) * 256,
            _ => 9_999,
        };
        s.host.set(PSWPIN, Pages::new(pages));
        s.host.set(PSWPOUT, Pages::new(5));
        s.host.set(PSI_MEMORY_SOME, Micros::new(n * 500_000));
    });
    let mib = |n: f64| Some(n * M);
    assert_eq!(curve(&host, "swap", "in"), [None, mib(1.0), mib(1.0), mib(1.0), None, mib(0.0)]);
    let pressure = curve(&host, "pressure", "some");
    assert_eq!((pressure[1], pressure[4]), (Some(0.5), None));
    let swap = chart(&host, "swap").0;
    assert!(!swap.series[0].is_negative && swap.series[1].is_negative);
}

#[test]
fn a_host_without_swap_says_so() {
    let host = source(&[0, 1], |_, s| {
        s.host.set(SWAP_TOTAL, Bytes::ZERO);
        s.host.set(SWAP_FREE, Bytes::ZERO);
    });
    assert!(chart(&host, "swap_used").0.absent.unwrap().contains("no swap"));
}

#[test]
fn few_processes_of_a_program_stand_alone_with_their_pids() {
    let host = source(&[0, 1, 2, 3], |n, s| {
        process(s, "1@1", "db", 100 + n, 10);
        if n < 2 {
            process(s, "2@1", "hog", 50, 0);
        }
        if n > 0 {
            process(s, "3@1", "hog", 20, 0);
        }
        process(s, "4@1", "kthread", 0, 0);
    });
    let (chart, curves) = chart(&host, "services");
    assert_eq!(chart.title, "Memory of processes");
    let mib = |all: [u64; 4]| all.map(|n| Some(MIB(n).as_f64())).to_vec();
    let expected = [
        ("db", mib([110, 111, 112, 113])),
        ("hog (2)", mib([50, 50, 0, 0])),
        ("hog (3)", mib([0, 20, 20, 20])),
    ];
    assert_eq!(curves, expected.map(|(name, curve)| (name.to_owned(), curve)));
    assert!(chart.help.ends_with("Names with a PID are single processes."));
    assert_eq!(chart.series[1].group.as_deref(), Some("2@1"));
}

#[test]
fn many_processes_of_a_program_are_added_up_and_so_are_all_beside_another_source() {
    let hogs = |count: u64| {
        source(&[0, 1], move |_, s| {
            process(s, "1@1", "db", 100, 0);
            for n in 0..count {
                process(s, &format!("{}@1", n + 2), "hog", 20, 0);
            }
        })
    };
    let names = |charts: Vec<Chart>| {
        let chart = charts.into_iter().find(|chart| chart.id == "services").unwrap();
        chart.series.into_iter().map(|series| series.label).collect::<Vec<_>>()
    };
    let (few, many) = (hogs(11), hogs(12));
    let all = names(charts(&Evidence::new(&few.0, &few.1)));
    assert_eq!((all.len(), all[0].as_str(), all[11].as_str()), (12, "db", "hog (9)"));
    assert_eq!(names(charts(&Evidence::new(&many.0, &many.1))), ["hog", "db"]);
    assert_eq!(names(comparable_charts(&Evidence::new(&few.0, &few.1))), ["hog", "db"]);
}

#[test]
fn processes_of_a_service_stand_alone_only_if_all_of_it_is_known() {
    let services = |known: u64| {
        source(&[0, 1], move |_, s| {
            row(s, Entity::Service, "web.service").set(SERVICE_RSS_ANON, MIB(300));
            row(s, Entity::Service, "db.service").set(SERVICE_RSS_ANON, MIB(200));
            for n in 0..known {
                let key = format!("{}@1", n + 7);
                process(s, &key, "worker", 100, 0);
                s.table_mut(Entity::Process).entry(&key).group.push_str("web.service");
            }
        })
    };
    let names = |known| {
        let (_, curves) = chart(&services(known), "services");
        assert_eq!(sums(&curves), [500.0 * M; 2]);
        curves.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(names(3), ["db.service", "worker (7)", "worker (8)", "worker (9)"]);
    assert_eq!(names(2), ["web.service", "db.service"]);
}

#[test]
fn where_processes_are_read_rarely_the_last_look_speaks_but_not_across_a_gap() {
    let host = source(&[0, 1, 2, 3, 4, 604, 605, 606], |n, s| {
        s.host.set(MEM_FREE, MIB(1));
        if [0, 3, 7].contains(&n) {
            process(s, "1@1", "db", n + 1, 0);
        }
    });
    let mib = |n: u64| Some(MIB(n).as_f64());
    let (four, none) = (mib(4), None);
    assert_eq!(
        curve(&host, "services", "owner-0"),
        [mib(1), mib(1), mib(1), four, none, none, none, mib(8)]
    );
}

#[test]
fn services_come_before_processes_and_the_small_ones_are_one_area() {
    let host = source(&[0, 1], |_, s| {
        process(s, "1@1", "db", 100, 0);
        for n in 1..=20 {
            row(s, Entity::Service, &format!("s{n:02}.service")).set(SERVICE_RSS_ANON, MIB(n));
        }
    });
    let (chart, curves) = chart(&host, "services");
    assert_eq!(chart.title, "Memory of services");
    assert_eq!(curves.len(), 13);
    assert_eq!(curves[0].0, "s20.service");
    assert_eq!(curves[12].0, "others (8)");
    assert_eq!(sums(&curves), [210.0 * M; 2]);
}

#[test]
fn nodes_have_one_scale_and_add_up() {
    let two = source(&[0, 1], |_, s| {
        for (key, total) in [("0", 600), ("1", 400)] {
            let node = row(s, Entity::Node, key);
            node.set(NODE_TOTAL, MIB(total));
            node.set(NODE_FREE, MIB(100));
            node.set(NODE_ANON, MIB(250));
        }
    });
    for (id, total) in [("node-0", 600.0), ("node-1", 400.0)] {
        let (chart, curves) = chart(&two, id);
        assert_eq!(chart.top, Some(600.0 * M));
        assert_eq!(sums(&curves), [total * M; 2]);
        assert_eq!(curves.len(), 3);
    }
    let one = source(&[0], |_, s| row(s, Entity::Node, "0").set(NODE_TOTAL, MIB(600)));
    let ids = charts(&Evidence::new(&one.0, &one.1)).into_iter().map(|c| c.id);
    assert!(!ids.collect::<Vec<_>>().contains(&"node-0".to_owned()));
}

#[test]
fn groups_are_a_stack_of_those_without_others_below_until_one_nears_its_limit() {
    let host = |held: u64| {
        source(&[0, 1], move |_, s| {
            for (key, held) in [("/", 500), ("/app", held), ("/app/a", held), ("/b", 30)] {
                let group = row(s, Entity::Cgroup, key);
                group.set(CGROUP_CURRENT, MIB(held));
                let limit = match key {
                    "/app" => Limit::Bytes(MIB(100)),
                    _ => Limit::Unlimited,
                };
                group.set(CGROUP_MAX, limit);
            }
        })
    };
    let (_, far) = chart(&host(60), "cgroups");
    let names: Vec<&str> = far.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["/app/a", "/b"]);
    let (chart, near) = chart(&host(90), "cgroups");
    let names: Vec<&str> = near.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["/app", "memory.max of /app"]);
    assert_eq!(chart.limits[0].value, LimitValue::Moving("limit-0".to_owned()));
    assert_eq!(near[1].1, [Some(100.0 * M); 2]);
}

#[test]
fn disks_that_move_most_come_first_and_keep_their_colour() {
    let host = source(&[0, 1], |n, s| {
        for (key, per_second) in [("sda", 1), ("sdb", 9)] {
            let disk = row(s, Entity::Disk, key);
            disk.set(DISK_READ_BYTES, MIB(n * per_second));
            disk.set(DISK_WRITE_BYTES, Bytes::ZERO);
            disk.set(DISK_IO_TIME, Millis::new(n * per_second * 100));
        }
    });
    let (disks, curves) = chart(&host, "disks");
    let (busy, shares) = chart(&host, "disk_busy");
    assert_eq!(curves[0], ("sdb: read".to_owned(), vec![None, Some(9.0 * M)]));
    assert_eq!(shares[0], ("sdb".to_owned(), vec![None, Some(0.9)]));
    assert_eq!(disks.series[2].colour, busy.series[1].colour);
}

#[test]
fn growth_is_the_change_since_the_first_sample_of_what_grew() {
    let growing = |seconds: &[u64]| {
        source(seconds, |n, s| {
            s.host.set(MEM_ANON, MIB(100 + 10 * n));
            s.host.set(MEM_PAGE_TABLES, MIB(9 - n));
            s.host.set(MEM_FREE, MIB(500));
            process(s, "1@1", "db", 90 + 5 * n, 0);
            row(s, Entity::Slab, "dentry").set(SLAB_PAGES, Pages::new(256 * (1 + n)));
        })
    };
    let short = chart(&growing(&[0, 1, 2]), "growth").0.absent.unwrap();
    assert!(short.contains("a minute"), "{short}");
    let (chart, curves) = chart(&growing(&[0, 60, 120]), "growth");
    let mib = |all: [u64; 3]| all.map(|n| Some(MIB(n).as_f64())).to_vec();
    let expected =
        [("anonymous", mib([0, 10, 20])), ("db", mib([0, 5, 10])), ("slab dentry", mib([0, 1, 2]))];
    assert_eq!(curves, expected.map(|(name, curve)| (name.to_owned(), curve)));
    assert!(chart.series.iter().all(|series| !series.signals.is_empty()));
}

#[test]
fn a_chart_of_the_whole_draws_a_part_with_the_same_series() {
    let host = source(&[0, 60, 120, 180], |n, s| {
        s.host.set(MEM_ANON, MIB(100 + 10 * n));
        s.host.set(MEM_FREE, MIB(500));
        s.host.set(PSWPIN, Pages::new(n * 60));
        process(s, &format!("{n}@1"), &format!("p{n}"), 5 + n, 0);
    });
    let whole = Evidence::new(&host.0, &host.1);
    let part = host.0.part(2, 4);
    let part = Evidence::new(&part, &host.1);
    for chart in charts(&whole) {
        let (all, some) = ((chart.draw)(&whole), (chart.draw)(&part));
        assert_eq!(some.len(), chart.series.len(), "{}", chart.id);
        for ((all, some), series) in all.iter().zip(&some).zip(&chart.series) {
            let place = format!("{} {}", chart.id, series.id);
            // A part's first rate needs the sample before it, which the part does not have.
            if !some.is_empty() {
                assert_eq!(all[3], some[1], "{place}");
            }
        }
    }
}

#[test]
fn a_page_about_a_cgroup_draws_it_below_its_limit_and_the_host_after_it() {
    let host = source(&[0, 1, 2], |n, s| {
        let web = row(s, Entity::Cgroup, "/web");
        web.set(CGROUP_CURRENT, MIB(50 + n));
        web.set(CGROUP_ANON, MIB(30 + n));
        web.set(CGROUP_FILE, MIB(15));
        web.set(CGROUP_MAX, Limit::Bytes(MIB(64)));
        web.set(CGROUP_EVENTS_MAX, Count::new(3 * n));
        row(s, Entity::Cgroup, "/other").set(CGROUP_CURRENT, MIB(500));
    });
    let cx = Evidence::new(&host.0, &host.1);
    let charts = charts_of_group(&cx, "/web");
    let of = |id: &str| charts.iter().find(|chart| chart.id == id).unwrap();
    let memory = of("group_memory");
    assert_eq!((charts[0].id.as_str(), memory.limits.len()), ("group_memory", 1));
    let curves = (memory.draw)(&cx);
    let at_end: Vec<_> = curves.iter().map(|curve| curve[2].map(|bytes| bytes / M)).collect();
    // What counters explain, and the rest, add up to what is charged; the last one is the limit.
    assert_eq!(at_end, [Some(5.0), Some(32.0), Some(15.0), Some(64.0)]);
    assert_eq!((of("group_limit").draw)(&cx)[0][2], Some(3.0));
    // It has no pressure, and its source does not lack it.
    assert!(charts.iter().all(|chart| chart.id != "group_pressure"));
    assert!(charts.last().unwrap().title.starts_with("Host: "));
}
