use crate::testing::paste;
use timeline::Entity;
use timeline::signals::*;
use units::{Bytes, Count, Micros, Pages};

#[test]
fn an_implausible_total_without_a_unit_is_not_kib() {
    use timeline::signals::{MEM_FREE, MEM_TOTAL};
    for (total, free, kib, expected) in [
        ("16384", "200", Some(200 * 1024), "unit by the size"),
        ("16694710272", "310722560", None, "paste them with their kB"),
        ("16384 kB", "200 kB", Some(200), ""),
        ("16303428", "203428", Some(203_428), ""),
        ("16303428 kB", "99203428 kB", None, "larger than MemTotal"),
    ] {
        let opened = crate::testing::paste(&format!("MemTotal: {total}\nMemFree: {free}\n"));
        let found = opened.timeline.last(MEM_FREE);
        assert_eq!(found, kib.map(units::Bytes::from_kib), "{total}");
        let problems = opened.problems.concat();
        assert_eq!(problems.is_empty(), expected.is_empty(), "{problems}");
        assert!(problems.contains(expected), "{problems}");
        let is_dropped = kib.is_none() && !expected.contains("larger");
        assert_eq!(opened.timeline.last(MEM_TOTAL).is_none(), is_dropped);
    }
}

#[test]
fn meminfo_is_read_complete_truncated_and_grepped() {
    for text in [
        "MemTotal:       16268680 kB\nMemFree:          349408 kB\nHugePages_Total:       0\n",
        "MemTotal:  16268680kB\n...\nMemFree: 349408kB\n",
        "MemTotal 16268680 MemFree 349408\n",
        "MemTotal: 16,268,680 kB\nMemFree: 349,408 kB\n",
        "/proc/meminfo:MemTotal:  16268680 kB\n/proc/meminfo:MemFree: 349408 kB\n",
        "==> /proc/meminfo <==\nMemTotal:  16268680 kB\nMemFree: 349408 kB\n",
        "| MemTotal | 16268680 kB |\n| MemFree | 349408 kB |\n",
        "\"MemTotal\": 16268680,\n\"MemFree\": 349408\n",
        "$ numbers of a host (kB)\nMemTotal 16268680 MemFree 349408\n",
    ] {
        let timeline = paste(text).timeline;
        assert_eq!(timeline.last(MEM_TOTAL), Some(Bytes::from_kib(16_268_680)), "{text}");
        assert_eq!(timeline.last(MEM_FREE), Some(Bytes::from_kib(349_408)), "{text}");
        assert_eq!((timeline.len(), timeline.rounded_signals().count()), (1, 0), "{text}");
    }
}

#[test]
fn sizes_in_other_units_are_converted_and_rounded() {
    let opened = paste("MemTotal:  15887 MB\nMemFree: 341 MB\n");
    assert_eq!(opened.timeline.last(MEM_TOTAL), Some(Bytes::from_mib(15_887)));
    assert!(opened.timeline.rounded_signals().any(|id| id == MEM_FREE.id()));
    let opened = paste("$ meminfo (MiB)\nMemTotal 15887\nMemFree 341\nHugePages_Total 3\n");
    assert_eq!(opened.timeline.last(MEM_FREE), Some(Bytes::from_mib(341)));
    assert_eq!(opened.timeline.last(HUGEPAGES_TOTAL), Some(Count::new(3)));
}

#[test]
fn the_same_file_again_is_another_sample() {
    let text = "MemTotal: 8 kB\nMemFree: 5 kB\n";
    let opened = paste(&text.repeat(3));
    assert_eq!((opened.timeline.len(), opened.timeline.segments().len()), (3, 3));
    assert_eq!(opened.origin.inputs.len(), 1);
}

#[test]
fn different_files_are_one_sample() {
    let text = "$ cat /proc/meminfo\nMemTotal: 800 kB\n$ cat /proc/vmstat\npgscan_direct 12\n\
        $ cat /proc/pressure/memory\nsome avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
    let opened = paste(text);
    assert_eq!(opened.timeline.len(), 1, "{:?}", opened.origin.inputs);
    assert_eq!(opened.timeline.last(PGSCAN_DIRECT), Some(Pages::new(12)));
    assert_eq!(opened.timeline.last(PSI_MEMORY_SOME), Some(Micros::new(7)));
}

#[test]
fn vmstat_is_recognised_by_its_names() {
    for text in ["nr_free_pages 5\npgscan_direct 12\n", "pgscan_direct_normal 12\n"] {
        let timeline = paste(text).timeline;
        assert_eq!(timeline.last(PGSCAN_DIRECT), Some(Pages::new(12)), "{text}");
    }
}

#[test]
fn common_words_and_names_of_several_files_decide_nothing() {
    for text in [
        "Active: 3\n",
        "Cached: 12\n",
        "anon 12\n",
        "sock 5\n",
        "total 123456\n",
        "Size: 8192 MB\n",
        "Size: 8 kB\nSwap: 0 kB\n",
        "memory.h\n5\n",
        "memory.current\nmemory.events\nmemory.max\n",
        "user: 5\n",
        "Uptime: 123\nThreads: 4\n",
    ] {
        let opened = paste(text);
        assert!(opened.origin.inputs.is_empty(), "{text} {:?}", opened.origin.inputs);
    }
    let opened = paste("pgfault 12\npgmajfault 3\n");
    assert!(opened.timeline.is_empty());
    assert!(opened.problems[0].contains("several kernel files"), "{:?}", opened.problems);
}

#[test]
fn pressure_without_a_name_is_memory_only_where_it_stands_alone() {
    let lines = "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=3\n";
    for text in [
        format!("It was slow:\n{lines}"),
        format!("{lines}{lines}"),
        lines.replace("total=3", "total=0"),
        lines.replace("full", "some"),
        format!("{lines}\nMemFree: 7 kB\n"),
    ] {
        let opened = paste(&text);
        assert_eq!(opened.timeline.last(PSI_MEMORY_SOME), None, "{text}");
        assert!(opened.problems[0].contains("not read"), "{text}");
    }
    let alone = paste(lines);
    assert_eq!(alone.timeline.last(PSI_MEMORY_FULL), Some(Micros::new(3)));
    assert!(alone.problems[0].contains("taken as memory"));
    let io = paste(&format!("The io pressure was:\n\n{lines}"));
    assert_eq!(io.timeline.last(PSI_IO_FULL), Some(Micros::new(3)));
    for text in [
        format!("The memory pressure was:\n{lines}"),
        format!("/proc/pressure/memory\n{lines}"),
        format!("memory:\n{lines}"),
        format!("$ memory pressure\n{lines}"),
        format!("$ cat /proc/pressure/memory\n{lines}"),
    ] {
        let timeline = paste(&text).timeline;
        assert_eq!(timeline.last(PSI_MEMORY_FULL), Some(Micros::new(3)), "{text}");
    }
    let some = |n| format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={n}\n");
    let full = |n| format!("full avg10=0.00 avg60=0.00 avg300=0.00 total={n}\n");
    let six = [some(1), full(2), some(3), full(4), some(5), full(6)].concat();
    let seven = [some(1), full(2), some(3), full(4), full(9), some(5), full(6)].concat();
    for text in [six, seven] {
        let timeline = paste(&format!("$ cat /proc/pressure/*\n{text}")).timeline;
        assert_eq!(timeline.last(PSI_CPU_SOME), Some(Micros::new(1)), "{text}");
        assert_eq!(timeline.last(PSI_IO_FULL), Some(Micros::new(4)));
        assert_eq!(timeline.last(PSI_MEMORY_SOME), Some(Micros::new(5)));
        assert_eq!(timeline.last(PSI_MEMORY_FULL), Some(Micros::new(6)));
    }
}

#[test]
fn files_of_a_cgroup_are_read_with_and_without_its_name() {
    let v2 = "anon 4096\nfile 8192\nslab_reclaimable 5\n";
    let v1 = "rss 4096\ncache 8192\nmapped_file 3\npgpgin 7\n";
    for (text, key) in [
        (v2.to_owned(), "/(pasted cgroup)"),
        (v1.to_owned(), "/(pasted cgroup)"),
        (
            format!("$ cat /sys/fs/cgroup/system.slice/x.service/memory.stat\n{v2}"),
            "/system.slice/x.service",
        ),
        (format!("$ cat /sys/fs/cgroup/memory/docker/1f/memory.stat\n{v1}"), "/docker/1f"),
    ] {
        let timeline = paste(&text).timeline;
        let series = timeline.entity(Entity::Cgroup, key).expect(key);
        assert_eq!(timeline.last_of(series, CGROUP_ANON), Some(Bytes::new(4096)), "{text}");
        assert_eq!(timeline.last_of(series, CGROUP_FILE), Some(Bytes::new(8192)));
    }
}

#[test]
fn single_numbers_of_a_cgroup_need_a_path() {
    let text = "$ grep . /sys/fs/cgroup/a/memory.*\n/sys/fs/cgroup/a/memory.current:4096\n\
        /sys/fs/cgroup/a/memory.events:low 0\n/sys/fs/cgroup/a/memory.events:oom_kill 3\n\
        /sys/fs/cgroup/a/memory.max:max\n/sys/fs/cgroup/a/memory.stat:anon 77\n\
        /sys/fs/cgroup/a/memory.numa_stat:anon N0=1\n";
    let timeline = paste(text).timeline;
    let series = timeline.entity(Entity::Cgroup, "/a").unwrap();
    assert_eq!(timeline.last_of(series, CGROUP_CURRENT), Some(Bytes::new(4096)));
    assert_eq!(timeline.last_of(series, CGROUP_EVENTS_OOM_KILL), Some(Count::new(3)));
    assert_eq!(timeline.last_of(series, CGROUP_ANON), Some(Bytes::new(77)));
    let opened = paste("$ cat memory.limit_in_bytes\n268435456\n");
    let series = opened.timeline.entity(Entity::Cgroup, "/(pasted cgroup)");
    assert!(series.is_some());
    assert!(paste("268435456\n").origin.inputs.is_empty());
    let events = paste("low 0 high 0 max 3 oom 1 oom_kill 1\n").timeline;
    let series = events.entity(Entity::Cgroup, "/(pasted cgroup)").unwrap();
    assert_eq!(events.last_of(series, CGROUP_EVENTS_MAX), Some(Count::new(3)));
}

#[test]
fn processes_are_read_from_status_and_mappings() {
    let status = "Name:\tmysqld\nUmask:\t0022\nState:\tS (sleeping)\nPid:\t103\nVmRSS:\t   16296 kB\n\
        RssAnon:\t   15588 kB\nVmSwap:\t       7 kB\nThreads:\t1\n";
    let timeline = paste(status).timeline;
    let series = timeline.entity(Entity::Process, "103@0").unwrap();
    assert_eq!(timeline.last_of(series, PROC_RSS), Some(Pages::new(4074)));
    assert_eq!(timeline.last_of(series, PROC_SWAP), Some(Bytes::from_kib(7)));
    let smaps = "00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/dbus-daemon\nSize: 328 kB\n\
        Rss: 8 kB\nPss: 6 kB\nAnonHugePages: 0 kB\nVmFlags: rd ex\n\
        00652000-00655000 rw-p 00000000 08:02 173521      [heap]\nSize: 12 kB\nRss: 4 kB\nPss: 4 kB\n";
    for text in [smaps.to_owned(), format!("$ cat /proc/0/smaps\n{smaps}")] {
        let timeline = paste(&text).timeline;
        let series = timeline.entity(Entity::Process, "0@0").unwrap();
        assert_eq!(timeline.last_of(series, PROC_PSS), Some(Bytes::from_kib(10)));
        assert_eq!(timeline.last_of(series, PROC_RSS), Some(Pages::new(3)));
        assert_eq!(timeline.last(MEM_ANON_HUGE), None, "not the host's");
    }
    let grepped = paste("VmRSS:   16296 kB\nVmSwap:  7 kB\n").timeline;
    let series = grepped.entity(Entity::Process, "0@0").unwrap();
    assert_eq!(grepped.last_of(series, PROC_SWAP), Some(Bytes::from_kib(7)));
}

#[test]
fn facts_are_read() {
    use timeline::facts::{SWAPPINESS, THP_ENABLED};
    for text in [
        "$ grep . /proc/sys/vm/swappiness /sys/kernel/mm/transparent_hugepage/enabled\n\
        /proc/sys/vm/swappiness:60\n/sys/kernel/mm/transparent_hugepage/enabled:[always] madvise never\n",
        "$ cat /proc/sys/vm/swappiness /sys/kernel/mm/transparent_hugepage/enabled\n60\n[always] madvise never\n",
    ] {
        let facts = paste(text).facts;
        assert_eq!(facts.number(SWAPPINESS), Some(60), "{text}");
        assert_eq!(facts.choice(THP_ENABLED), Some("always"));
    }
    for text in [
        "Linux version 5.15.0-91-generic (buildd@x) #101 SMP\n",
        "$ uname -a\nLinux secret 5.15.0-91-generic #101-Ubuntu SMP x86_64 GNU/Linux\n",
        "$ uname -r\n5.15.0-91-generic\n",
    ] {
        let facts = paste(text).facts;
        assert_eq!(facts.kernel_release(), Some("5.15.0-91-generic"), "{text}");
        assert!(!facts.iter().any(|(_, text)| text.contains("secret")));
    }
    let prose = paste("$ cat /proc/sys/vm/swappiness\nit is set to the default, I think.\n");
    assert!(prose.origin.inputs.is_empty());
}

#[test]
fn nodes_zones_and_disks_have_rows() {
    let text = "$ cat /sys/devices/system/node/node*/meminfo\nNode 0 MemTotal: 100 kB\nNode 0 MemFree: 50 kB\n\
        Node 1 MemTotal: 100 kB\nNode 1 MemFree: 20 kB\n";
    let timeline = paste(text).timeline;
    let series = timeline.entity(Entity::Node, "1").unwrap();
    assert_eq!(timeline.last_of(series, NODE_FREE), Some(Bytes::from_kib(20)));
    assert_eq!(timeline.len(), 1);
    let zones = "Node 0, zone   Normal\n  pages free     3840\n        min      67\n        low      83\n        high     99\n        managed  9000\n";
    let timeline = paste(&zones.repeat(2)).timeline;
    assert_eq!(timeline.len(), 2);
    assert!(timeline.entity(Entity::Zone, "0/Normal").is_some());
    let buddies = paste("Node 0, zone   Normal    216     55    189    101     84\n").timeline;
    assert!(buddies.entity(Entity::Zone, "0/Normal").is_some());
}

#[test]
fn a_bad_line_is_reported_and_skipped() {
    let opened = paste("MemTotal: 8 kB\nMemFree: -5 kB\nMemAvailable: 4 kB\n");
    assert_eq!(opened.timeline.last(MEM_AVAILABLE), Some(Bytes::from_kib(4)));
    assert!(opened.problems[0].starts_with("line 2:"), "{:?}", opened.problems);
    assert_eq!(opened.origin.inputs[0].not_understood, 1);
    let opened = paste("MemTotal: 8 kB\nMemFree: 99999999999999999999 kB\nMemAvailable: 4 kB\n");
    assert_eq!(opened.timeline.last(MEM_AVAILABLE), Some(Bytes::from_kib(4)));
    assert!(!opened.problems.is_empty());
}

#[test]
fn truncated_files_do_not_panic() {
    let text = "$ cat /proc/meminfo\nMemTotal: 8 kB\nMemFree: 5 kB\n\nNode 0, zone   Normal\n  pages free     3840\n\
        cpu  1 2 3 4 5 6 7\n/proc/vmstat:pgscan_direct 12\n==> /proc/pressure/io <==\nsome avg10=0.00 total=1\n\
        Name:\tx\nState:\tS\nPid:\t-1\nNode 0 MemTotal: 1 kB\nanon 1\nfile 2\n";
    for cut in 0..text.len() {
        paste(&text[..cut]);
        paste(&text[cut..]);
    }
    for number in ["-1", "99999999999999999999", "1e9", "٣", ""] {
        paste(&text.replace(['1', '5', '8'], number));
    }
    for (i, _) in text.lines().enumerate() {
        let rest: Vec<&str> =
            text.lines().enumerate().filter(|(j, _)| *j != i).map(|(_, l)| l).collect();
        paste(&rest.join("\n"));
    }
}

/// collectl's raw file, shortened.
#[test]
fn rows_between_two_times_of_collectl_are_one_sample() {
    let sample = |second: u32, free: u32| {
        format!(
            ">>> 13690173{second}.001 <<<\nMemTotal:       793659976 kB\nMemFree:        {free} kB\n\
             Slab:             747264 kB\n\
             Slab kmalloc-64            10240  10240     64   64    1 : tunables    0    0    0 : slabdata    160    160      0\n\
             Slab kmalloc-128            5120   5120    128   32    1 : tunables    0    0    0 : slabdata    160    160      0\n"
        )
    };
    let text = sample(60, 551_202_228) + &sample(70, 551_202_220);
    let timeline = paste(&text).timeline;
    assert_eq!((timeline.len(), timeline.duration()), (2, units::Span::from_secs(10)));
    assert_eq!(timeline.last(MEM_TOTAL), Some(Bytes::from_kib(793_659_976)));
    let caches: Vec<&str> = timeline.entities(Entity::Slab).map(|slab| slab.key.as_str()).collect();
    assert_eq!(caches, ["kmalloc-128", "kmalloc-64"]);
}
