//! Saved files of processes and cgroups, through the one table of paths.

use probe::saved::Parsers;
use proptest::prelude::*;
use timeline::facts::{CgroupMode, Node};
use timeline::signals::{
    CGROUP_ANON, CGROUP_CURRENT, CGROUP_EVENTS_MAX, CGROUP_MAX, CGROUP_PSI_IO_SOME, PROC_OOM_ADJ,
    PROC_PSS, PROC_RSS_ANON, PROC_STIME,
};
use timeline::{Entity, EntityRow, Facts, Sample};
use units::{Bytes, Count, Limit, Micros, Ticks};

fn read(files: &[(&str, &str)]) -> (Sample, Facts) {
    let mut sample = Sample::default();
    let mut facts = Facts::default();
    let mut parsers = Parsers::default();
    for (path, text) in files {
        let known = parsers.read(path, text.as_bytes(), &mut sample, &mut facts);
        assert_eq!(known, Ok(true), "{path}");
    }
    (sample, facts)
}

fn row<'a>(sample: &'a Sample, entity: Entity, key: &str) -> &'a EntityRow {
    let rows = sample.table(entity).rows();
    let found = rows.iter().find(|row| row.key == key);
    found.unwrap_or_else(|| panic!("no {key} in {rows:?}"))
}

#[test]
fn files_of_one_process_come_in_any_order_and_share_a_row() {
    let (sample, _) = read(&[
        ("/proc/103/smaps_rollup", "0-1 ---p 0 00:00 0 [rollup]\nPss: 16317 kB\n"),
        ("/proc/43/stat", "43 (kswapd0) S 2 0 0 0 -1 2230336 0 0 0 0 0 17 0 0 20 0 1 0 89 0 0"),
        ("/proc/103/status", "Name:\tmisc\nVmPeak:\t9 kB\nRssAnon:\t15588 kB\n"),
        ("/proc/103/cgroup", "0::/system.slice/misc.service\n"),
        ("/proc/103/stat", "103 () R 1 () R 1 0 0 0 -1 0 1 0 0 0 0 5 0 0 20 0 1 0 241 4096 1"),
        ("/proc/103/oom_score_adj", "-1000\n"),
    ]);
    assert_eq!(sample.table(Entity::Process).rows().len(), 2);
    let misc = row(&sample, Entity::Process, "103@241");
    assert_eq!((&*misc.label, &*misc.group), (") R 1 (", "misc.service"));
    assert_eq!(misc.row.get(PROC_PSS), Some(Bytes::from_kib(16317)));
    assert_eq!(misc.row.get(PROC_RSS_ANON), Some(Bytes::from_kib(15588)));
    assert_eq!(misc.row.get(PROC_OOM_ADJ), Some(Count::ZERO));
    let kswapd = row(&sample, Entity::Process, "43@89");
    assert_eq!(kswapd.row.get(PROC_STIME), Some(Ticks::new(17)));
}

#[test]
fn groups_of_either_version_fill_the_same_signals() {
    let (sample, facts) = read(&[
        ("/sys/fs/cgroup/app/memory.current", "4096\n"),
        ("/sys/fs/cgroup/app/memory.max", "max\n"),
        ("/sys/fs/cgroup/app/io.pressure", "some avg10=0.00 total=12\n"),
        ("/sys/fs/cgroup/memory.stat", "anon 8192\nfile 0\n"),
    ]);
    let app = &row(&sample, Entity::Cgroup, "/app").row;
    assert_eq!(app.get(CGROUP_CURRENT), Some(Bytes::new(4096)));
    assert_eq!(app.get(CGROUP_MAX), Some(Limit::Unlimited));
    assert_eq!(app.get(CGROUP_PSI_IO_SOME), Some(Micros::new(12)));
    let root = &row(&sample, Entity::Cgroup, "/").row;
    assert_eq!(root.get(CGROUP_ANON), Some(Bytes::new(8192)));
    assert_eq!(facts.cgroup_mode, Some(CgroupMode::V2));

    let (sample, facts) = read(&[
        ("/sys/fs/cgroup/memory/app/memory.limit_in_bytes", "9223372036854771712\n"),
        ("/sys/fs/cgroup/unified/app/memory.pressure", "some avg10=0.00 total=12\n"),
        ("/sys/fs/cgroup/memory/app/memory.failcnt", "3\n"),
        ("/sys/fs/cgroup/memory/app/memory.stat", "cache 1\nrss 2\ntotal_rss 4\n"),
        ("/sys/fs/cgroup/unified/app/io.pressure", "some avg10=0.00 total=12\n"),
    ]);
    assert_eq!(sample.table(Entity::Cgroup).rows().len(), 1);
    let app = &row(&sample, Entity::Cgroup, "/app").row;
    assert_eq!(app.get(CGROUP_MAX), Some(Limit::Unlimited));
    assert_eq!(app.get(CGROUP_EVENTS_MAX), Some(Count::new(3)));
    assert_eq!(app.get(CGROUP_ANON), Some(Bytes::new(4)));
    assert_eq!(facts.cgroup_mode, Some(CgroupMode::V1), "pressure files do not tell");
}

#[test]
fn topology_and_mounts_become_facts() {
    let (_, facts) = read(&[
        ("/sys/devices/system/node/node1/distance", "21 10\n"),
        ("/sys/block/sda/queue/rotational", "1\n"),
        ("/proc/mounts", "t /mnt tmpfs rw,size=432948k 0 0\n"),
        ("/proc/version", "Linux version 6.12.1 (x) #1 SMP\n"),
        ("/proc/stat", "cpu  2 0\ncpu0 1 0\ncpu1 1 0\nctxt 5\n"),
    ]);
    let distances = vec![21, 10];
    assert_eq!(facts.nodes, [Node { id: 1, distances }]);
    assert_eq!(facts.cpus, Some(2));
    assert_eq!(facts.disks[0].rotational, Some(true));
    assert_eq!(facts.memory_mounts[0].size, Some(Bytes::from_kib(432_948)));
    assert_eq!(facts.kernel_release(), Some("6.12.1"));
}

proptest! {
    #[test]
    fn no_path_and_no_text_makes_it_panic(
        path in "(/proc/[0-9]{0,11}|/sys/fs/cgroup)(/[a-z.0-9/]{0,8}){0,3}/(stat|status|io|statm|cgroup|smaps_rollup|oom_score_adj|memory\\.(stat|max|current|events|failcnt|pressure))",
        text: Vec<u8>,
    ) {
        let mut parsers = Parsers::default();
        let mut sample = Sample::default();
        let mut facts = Facts::default();
        for _ in 0..2 {
            let _ = parsers.read(&path, &text, &mut sample, &mut facts);
            sample.clear();
        }
    }
}
