use proptest::prelude::*;
use timeline::cgroup::{ContainerNames, GroupNames};
use timeline::signals::{
    CGROUP_CURRENT, CGROUP_MAX, MEM_TOTAL, NODE_FREE, NODE_TOTAL, PROC_PSS, PROC_PSS_SHMEM,
    PROC_RSS,
};
use timeline::{
    Entity::{Cgroup, Node, Process},
    Facts, Sample, SharedKind, SharedMeasure, SharedMemory, SharedObject, Timeline, UserProcess,
};
use units::{Limit, PageSize, Pages};

use super::*;

const MIB: fn(u64) -> Bytes = Bytes::from_mib;
const A: &str = "a59e4e7d3090c04c6ce5a4b7a8bc85228eb9b96ac00b1284643a8c7c11dda661";
const B: &str = "b6e375cfe46efa5cd90d095603dec2de888c28b203285819233040b5cf1212ac";

/// A host of 1,000 MiB with 100 MiB free at a second, and cgroups with these sizes.
fn sample(second: u64, groups: &[(&str, u64)]) -> Sample {
    let mut sample = Sample::at(Span::from_secs(second));
    sample.host.set(MEM_TOTAL, MIB(1000));
    sample.host.set(MEM_FREE, MIB(100));
    for (path, mib) in groups {
        let row = sample.table_mut(Cgroup).entry(path);
        row.row.set(CGROUP_CURRENT, MIB(*mib));
        row.row.set(CGROUP_MAX, Limit::Unlimited);
    }
    sample
}

fn table(samples: &[Sample], by: GroupBy, inventory: &Inventory) -> Result<OwnerTable, NoTable> {
    table_with(samples, by, inventory, GroupNames::default())
}

fn table_with(
    samples: &[Sample],
    by: GroupBy,
    inventory: &Inventory,
    names: GroupNames,
) -> Result<OwnerTable, NoTable> {
    let mut timeline = Timeline::default();
    for sample in samples {
        timeline.push(sample).unwrap();
    }
    let mut facts = Facts::default();
    facts.page_size = PageSize::from_bytes(4096);
    facts.names = names;
    by_owner(&Evidence::new(&timeline, &facts), samples.len() - 1, by, inventory)
}

fn of(samples: &[Sample], by: GroupBy) -> OwnerTable {
    table(samples, by, &Inventory::default()).unwrap()
}

/// Names and MiB of rows and rest.
fn sizes(table: &OwnerTable) -> Vec<(&str, u64)> {
    let rows = table.rows.iter().map(|row| (&*row.name, row.bytes));
    let rest = table.rest.iter().map(|row| (row.label, row.bytes));
    let all = rows.chain(rest);
    all.map(|(name, bytes)| (name, bytes.get() >> 20)).collect()
}

const NOT_CHARGED: &str =
    "charged to no cgroup below the root: the kernel, drivers, early page cache";

#[test]
fn containers_units_and_the_rest_add_up() {
    let web = format!("/system.slice/docker-{A}.scope");
    let db = format!("/docker/{B}");
    let groups = [
        ("/", 850),
        ("/system.slice", 400),
        ("/system.slice/ssh.service", 50),
        (&*web, 300),
        ("/docker", 210),
        (&db, 200),
        ("/app", 20),
    ];
    let at = [sample(0, &groups)];
    assert_eq!(
        sizes(&of(&at, GroupBy::Container)),
        [
            ("docker a59e4e7d3090", 300),
            ("docker b6e375cfe46e", 200),
            ("in cgroups of no container", 130),
            (NOT_CHARGED, 270),
            ("free", 100),
        ]
    );
    assert_eq!(
        sizes(&of(&at, GroupBy::Unit)),
        [
            ("docker a59e4e7d3090", 300),
            ("ssh.service", 50),
            ("in cgroups of no unit", 280),
            (NOT_CHARGED, 270),
            ("free", 100),
        ]
    );
    // Each cgroup without those below it.
    assert_eq!(
        sizes(&of(&at, GroupBy::Cgroup)),
        [
            (&*web, 300),
            (&db, 200),
            ("/system.slice", 50),
            ("/system.slice/ssh.service", 50),
            ("/app", 20),
            ("/docker", 10),
            (NOT_CHARGED, 270),
            ("free", 100),
        ]
    );
}

#[test]
fn a_sample_of_the_busiest_cgroups_hides_no_other() {
    let calm = format!("/docker/{A}");
    let busy = format!("/docker/{B}");
    let whole = |second| sample(second, &[("/docker", 300), (&calm, 200), (&busy, 100)]);
    let part = |second| {
        let mut sample = sample(second, &[("/docker", 300), (&busy, 100)]);
        sample.table_mut(Cgroup).set_partial();
        sample
    };
    let both = [("docker a59e4e7d3090", 200), ("docker b6e375cfe46e", 100)];
    for samples in [
        vec![whole(0), part(1)],
        vec![whole(0), part(1), whole(10), part(11), part(19)],
        // Beside thousands of a user all are read every few minutes.
        vec![whole(0), part(1), whole(10), part(11), part(160)],
    ] {
        assert_eq!(sizes(&of(&samples, GroupBy::Container))[..2], both);
    }
    // Too long ago: only the busiest are known.
    let late = [whole(0), part(1), whole(10), part(2_000)];
    assert_eq!(sizes(&of(&late, GroupBy::Container))[0], both[1]);
}

#[test]
fn what_lies_within_another_counts_once() {
    let outer = format!("/docker/{A}");
    let inner = format!("{outer}/kubelet/kubepods/podb312a30a-d345-42c8-a659-32a04d5fd529/{B}");
    let at = [sample(0, &[(&outer, 300), (&inner, 120)])];
    assert_eq!(
        sizes(&of(&at, GroupBy::Container))[..2],
        [("docker a59e4e7d3090", 180), ("container b6e375cfe46e", 120)]
    );
}

#[test]
fn a_pod_of_several_cgroups_is_one_row_with_its_class() {
    let slice = "kubepods-besteffort-pod214f3ba8_4b69_4bdb_a7d5_5ecc73f04ae9.slice:cri-containerd";
    let [a, b] = [A, B].map(|id| format!("/system.slice/containerd.service/{slice}:{id}"));
    let table = of(&[sample(0, &[(&a, 30), (&b, 40)])], GroupBy::Pod);
    let row = &table.rows[0];
    assert!(row.key.ends_with("/214f3ba8-4b69-4bdb-a7d5-5ecc73f04ae9"));
    assert_eq!((row.bytes, &*row.note), (MIB(70), "best effort"));
}

#[test]
fn rows_have_names_limits_and_growth() {
    let path = format!("/docker/{A}");
    let before = sample(0, &[(&path, 300), ("/docker", 300)]);
    let mut now = sample(60, &[(&path, 360), ("/docker", 380), ("/docker/new", 20)]);
    let limit = Limit::Bytes(MIB(400));
    now.table_mut(Cgroup).entry(&path).row.set(CGROUP_MAX, limit);
    let mut names = GroupNames::default();
    let named = ContainerNames { name: "web".to_owned(), pod: None };
    names.containers.insert(path.clone(), named);
    let containers = table_with(
        &[before.clone(), now.clone()],
        GroupBy::Container,
        &Inventory::default(),
        names,
    )
    .unwrap();
    let row = &containers.rows[0];
    assert_eq!(row.name, "web (docker a59e4e7d3090)");
    assert_eq!((row.limit, row.of_limit), (Some(MIB(400)), Some(Ratio::from_percent(90.0))));
    assert_eq!(row.growth.map(|growth| growth.to_string()).as_deref(), Some("60 MiB"));
    assert_eq!(containers.grown_for, Some(Span::from_secs(60)));
    let groups = of(&[before, now.clone()], GroupBy::Cgroup);
    let new = groups.rows.iter().find(|row| row.key == "/docker/new").unwrap();
    assert!(new.is_new && new.growth.is_none());
    // One sample shows no growth, and nothing in it is new.
    let alone = of(&[now], GroupBy::Cgroup);
    assert!(alone.grown_for.is_none() && alone.rows.iter().all(|row| !row.is_new));
}

#[test]
fn processes_and_their_users_are_by_one_measure() {
    let mut at = sample(0, &[]);
    for (key, label, rss, pss) in
        [("1@1", "db", 300, 200), ("2@1", "db", 100, 90), ("3@1", "web", 50, 40)]
    {
        let row = at.table_mut(Process).entry(key);
        row.label.push_str(label);
        row.row.set(PROC_RSS, Pages::new(rss * 256));
        row.row.set(PROC_PSS, MIB(pss));
    }
    const REST: &str = "in no process: page cache, shared memory without an owner, the kernel";
    let by_process = of(&[at.clone()], GroupBy::Process);
    assert_eq!(
        sizes(&by_process),
        [("db (1)", 200), ("db (2)", 90), ("web (3)", 40), (REST, 570), ("free", 100)]
    );
    let mut inventory = Inventory::default();
    for (process, uid) in [("1@1", 70), ("2@1", 70), ("3@1", 33)] {
        inventory.process_users.insert(process.to_owned(), uid);
    }
    let mut names = GroupNames::default();
    names.users.insert(70, "postgres".to_owned());
    let users = table_with(&[at], GroupBy::User, &inventory, names).unwrap();
    assert_eq!(sizes(&users), [("postgres", 290), ("user 33", 40), (REST, 570), ("free", 100)]);
}

#[test]
fn shared_memory_that_no_process_maps_now_is_its_owners() {
    let mut at = sample(0, &[]);
    for (key, label, pss, shared) in
        [("1@1", "postgres", 60, 50), ("2@1", "postgres", 20, 10), ("3@1", "web", 40, 0)]
    {
        let row = at.table_mut(Process).entry(key);
        row.label.push_str(label);
        row.row.set(PROC_RSS, Pages::new(pss * 256));
        row.row.set(PROC_PSS, MIB(pss));
        row.row.set(PROC_PSS_SHMEM, MIB(shared));
    }
    let owner = UserProcess { pid: 1, name: "postgres".to_owned(), ..UserProcess::default() };
    let segment = SharedObject {
        kind: SharedKind::Mapping,
        bytes: MIB(541),
        measure: SharedMeasure::InRam,
        users: 2,
        first_user: Some(owner),
    };
    let mut inventory = Inventory {
        shared: Some(SharedMemory { objects: vec![segment], ..SharedMemory::default() }),
        ..Inventory::default()
    };
    for (process, uid) in [("1@1", 70), ("2@1", 70), ("3@1", 33)] {
        inventory.process_users.insert(process.to_owned(), uid);
    }
    let by_process = table(&[at.clone()], GroupBy::Process, &inventory).unwrap();
    // Of 541 MiB, 60 are in the PSS of both already.
    assert_eq!(sizes(&by_process)[..2], [("postgres (1)", 541), ("web (3)", 40)]);
    assert!(by_process.rows[0].note.contains("481 MiB of shared memory that none maps now"));
    let by_user = table(&[at], GroupBy::User, &inventory).unwrap();
    assert_eq!(by_user.rows[0].bytes, MIB(561));
}

#[test]
fn resident_sets_above_ram_are_estimates_and_the_excess_is_a_number() {
    let mut at = sample(0, &[]);
    for key in ["1@1", "2@1", "3@1"] {
        let row = at.table_mut(Process).entry(key);
        row.row.set(PROC_RSS, Pages::new(400 * 256));
    }
    let table = of(&[at], GroupBy::Process);
    assert!(table.is_estimate);
    assert_eq!(table.exceeds, MIB(300));
    assert_eq!(table.rest.len(), 1, "only free memory: {:?}", table.rest);
}

#[test]
fn nodes_and_file_systems_in_ram() {
    let mut at = sample(0, &[]);
    for (key, free) in [("0", 60), ("1", 40)] {
        let row = at.table_mut(Node).entry(key);
        row.row.set(NODE_TOTAL, MIB(500));
        row.row.set(NODE_FREE, MIB(free));
    }
    let nodes = of(&[at.clone()], GroupBy::Node);
    assert_eq!(sizes(&nodes), [("node 1", 460), ("node 0", 440), ("free", 100)]);
    let tmpfs = SharedObject {
        kind: SharedKind::FileSystem {
            point: "/dev/shm".to_owned(),
            kind: "tmpfs".to_owned(),
            limit: MIB(500),
            seen_by: None,
        },
        bytes: MIB(250),
        measure: SharedMeasure::InRam,
        users: 0,
        first_user: None,
    };
    let inventory = Inventory {
        shared: Some(SharedMemory { objects: vec![tmpfs], ..SharedMemory::default() }),
        ..Inventory::default()
    };
    let mounts = table(&[at], GroupBy::Mount, &inventory).unwrap();
    assert_eq!(mounts.rows[0].name, "/dev/shm");
    assert_eq!(mounts.rows[0].of_limit, Some(Ratio::from_percent(50.0)));
    assert!(mounts.unknown[0].contains("Page cache of files on disks"));
}

#[test]
fn what_a_source_lacks_is_an_answer() {
    let at = [sample(0, &[])];
    let lacks = |by| match table(&at, by, &Inventory::default()) {
        Err(NoTable::NoOwners(why)) => why,
        other => panic!("{other:?}"),
    };
    assert!(lacks(GroupBy::Container).contains("no memory of cgroups"));
    assert!(lacks(GroupBy::Process).contains("no memory of processes"));
    assert!(lacks(GroupBy::Mount).contains("live host"));
    assert!(lacks(GroupBy::Node).contains("NUMA"));
    let others = of(&[sample(0, &[("/app", 40)])], GroupBy::Pod);
    assert_eq!(others.unknown, ["No cgroup is a pod."]);
    assert_eq!(sizes(&others)[0], ("in cgroups of no pod", 40));
}

/// Cgroups of up to three levels, a child never larger than its parent's share.
fn groups() -> impl Strategy<Value = Vec<(String, u64)>> {
    let names = prop_oneof![
        Just("a.service".to_owned()),
        Just("b".to_owned()),
        Just("user-7.slice".to_owned()),
        Just(A.to_owned()),
        Just("x.slice".to_owned()),
    ];
    prop::collection::vec((prop::collection::vec(names, 1..4), 0_u64..400), 0..12).prop_map(|all| {
        let path = |parts: Vec<String>| format!("/{}", parts.join("/"));
        all.into_iter().map(|(parts, mib)| (path(parts), mib)).collect()
    })
}

proptest! {
    #[test]
    fn every_table_adds_up_and_no_row_is_negative(groups in groups(), by in 0_usize..3) {
        let groups: Vec<(&str, u64)> = groups.iter().map(|(path, mib)| (&**path, *mib)).collect();
        let by = [GroupBy::Unit, GroupBy::Container, GroupBy::Cgroup][by];
        if let Ok(table) = table(&[sample(0, &groups)], by, &Inventory::default()) {
            let rows: Bytes = table.rows.iter().map(|row| row.bytes).sum();
            let rest: Bytes = table.rest.iter().map(|row| row.bytes).sum();
            prop_assert_eq!(rows + rest, table.total + table.exceeds);
        }
    }

    #[test]
    fn no_name_makes_it_panic(path in ".{0,60}") {
        let names = GroupNames::default();
        for by in [GroupBy::Unit, GroupBy::Container, GroupBy::Pod, GroupBy::User, GroupBy::Cgroup] {
            let _ = cgroups::named(&path, by, &names);
            let _ = cgroups::owner_at(&path, by);
        }
    }
}
