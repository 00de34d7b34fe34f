//! Memory of real programs, as smaps of a 6.18 host showed them (some mappings and fields left out), and of this test.

#![allow(clippy::unwrap_used, clippy::string_slice)]

use std::io::{Read as _, Write as _};

use anatomy::{
    Allocator, AllocatorKind, Anatomy, AnatomyInput, Certainty, MallocRange, MallocRanges,
    PartKind, PartSizes, ProcessAnatomy, ProcessPart, ReadOptions,
};
use probe::{SmapsBlock, StackPointer};
use proptest::prelude::*;
use units::{Bytes, Limit, PageSize};

const PYTHON: &[u8] = include_bytes!("smaps/python.txt");
const JAVA: &[u8] = include_bytes!("smaps/java.txt");
const NODE: &[u8] = include_bytes!("smaps/node.txt");
const RUBY: &[u8] = include_bytes!("smaps/ruby.txt");
const GO: &[u8] = include_bytes!("smaps/go.txt");
const JEMALLOC: &[u8] = include_bytes!("smaps/jemalloc.txt");

fn blocks(text: &[u8]) -> Vec<SmapsBlock> {
    let mut blocks = Vec::new();
    let malformed = probe::parse_smaps(text, &mut |block| blocks.push(block));
    assert_eq!(malformed, None);
    blocks
}

fn allocator(kind: AllocatorKind, version: &str) -> Allocator {
    Allocator { kind, version: Some(version.to_owned()), file: String::new(), evidence: Vec::new() }
}

fn sums(blocks: &[SmapsBlock]) -> PartSizes {
    let mut sum = PartSizes::default();
    for block in blocks {
        sum.add(&PartSizes::of(block));
    }
    sum
}

fn leaves(root: &ProcessPart) -> PartSizes {
    let mut sum = PartSizes::default();
    root.each_leaf(&mut |leaf| sum.add(&leaf.sizes));
    sum
}

/// Divides a text among these allocators, and checks that nothing is lost.
fn divide(text: &[u8], malloc: Option<&MallocRanges>, allocators: &[Allocator]) -> Anatomy {
    let blocks = blocks(text);
    let anatomy = Anatomy::new(&AnatomyInput {
        blocks: &blocks,
        malloc,
        allocators,
        ..AnatomyInput::default()
    });
    assert_eq!(leaves(&anatomy.root), sums(&blocks));
    assert_eq!(anatomy.root.sizes, sums(&blocks));
    anatomy
}

fn glibc() -> Allocator {
    allocator(AllocatorKind::Ptmalloc, "2.36")
}

fn share(part: Bytes, anatomy: &Anatomy) -> f64 {
    part.ratio_of(anatomy.root.sizes.rss).unwrap().get()
}

#[test]
fn javas_heap_lies_below_32_gib_and_its_arenas_are_mallocs() {
    let runtimes = [glibc(), allocator(AllocatorKind::Jvm, "17")];
    let anatomy = divide(JAVA, None, &runtimes);
    let heap = anatomy.root.find(PartKind::RuntimeHeap(AllocatorKind::Jvm)).unwrap();
    assert_eq!(heap.certainty, Certainty::Likely);
    assert!(heap.sizes.virtual_size > Bytes::from_mib(240), "-Xmx256m");
    assert!(heap.sizes.rss > Bytes::from_mib(30), "of arrays of 31 MiB");
    let arenas = anatomy.root.find(PartKind::MallocThreadArenas).unwrap();
    assert!(arenas.sizes.rss < Bytes::from_mib(2));
    let code = anatomy.root.find(PartKind::JitCode).unwrap();
    assert_eq!((code.mappings, code.certainty), (3, Certainty::Likely));
    let unknown = anatomy.root.find(PartKind::OtherAnonymous).unwrap();
    assert_eq!(unknown.certainty, Certainty::Unknown);
    assert!(unknown.parts[0].label.contains("perhaps Java"), "{unknown:?}");
}

#[test]
fn without_a_java_virtual_machine_the_same_memory_has_no_owner() {
    let anatomy = divide(JAVA, None, &[glibc()]);
    let heap = PartKind::RuntimeHeap(AllocatorKind::Jvm);
    assert_eq!(anatomy.root.find(heap), None);
    let unknown = anatomy.root.find(PartKind::OtherAnonymous).unwrap();
    assert!(unknown.sizes.rss > Bytes::from_mib(30));
    assert_eq!(unknown.parts[0].label, "owner unknown");
}

#[test]
fn most_of_a_go_program_is_its_heap() {
    let anatomy =
        divide(GO, Some(&MallocRanges::default()), &[allocator(AllocatorKind::Go, "1.26.8")]);
    let heap = anatomy.resident_of(AllocatorKind::Go);
    assert!(share(heap, &anatomy) > 0.9);
    assert_eq!(anatomy.root.find(PartKind::OtherAnonymous), None);
    assert!(anatomy.root.find(PartKind::MallocHeap).is_none());
}

#[test]
fn v8s_pages_and_rubys_pages_are_recognised_in_their_own_process_only() {
    for (text, kind, version) in
        [(NODE, AllocatorKind::V8, "Node.js 20.20.2"), (RUBY, AllocatorKind::Ruby, "3.1.2")]
    {
        let anatomy = divide(text, None, &[glibc(), allocator(kind, version)]);
        let own = anatomy.resident_of(kind);
        assert!(own > Bytes::from_kib(1024), "{kind:?}: {own}");
        let stranger = divide(text, None, &[glibc()]);
        assert_eq!(stranger.resident_of(kind), Bytes::ZERO);
    }
}

#[test]
fn rubys_transient_heap_is_not_taken_for_object_pages() {
    let ruby = [glibc(), allocator(AllocatorKind::Ruby, "3.1.2")];
    let anatomy = divide(RUBY, None, &ruby);
    let mut sizes = Vec::new();
    anatomy.root.each_leaf(&mut |leaf| {
        if leaf.label == "Ruby transient heap" {
            sizes.push((leaf.mappings, leaf.sizes.virtual_size));
        }
    });
    assert_eq!(sizes, [(1, Bytes::from_mib(32))]);
}

#[test]
fn a_preloaded_jemalloc_owns_its_extents() {
    let found = [glibc(), allocator(AllocatorKind::Jemalloc, "5.3.0")];
    let anatomy = divide(JEMALLOC, Some(&MallocRanges::default()), &found);
    let extents = anatomy.resident_of(AllocatorKind::Jemalloc);
    assert!(extents >= Bytes::from_mib(19), "{extents} of 20,000 blocks of 1,000 bytes");
    assert_eq!(anatomy.resident_of(AllocatorKind::Ptmalloc), Bytes::ZERO);
}

#[test]
fn pythons_arenas_are_certain_once_their_pools_were_read() {
    let python = [glibc(), allocator(AllocatorKind::Python, "3.11")];
    let kind = PartKind::RuntimeHeap(AllocatorKind::Python);
    let anatomy = divide(PYTHON, None, &python);
    assert_eq!(anatomy.root.find(kind).unwrap().certainty, Certainty::Likely);
    let blocks = blocks(PYTHON);
    let plain = |block: &&SmapsBlock| {
        block.mapping.name.is_empty() && block.mapping.size_bytes() >= 1 << 20
    };
    let arenas: Vec<u64> =
        blocks.iter().filter(plain).map(|block| block.mapping.range.start).collect();
    let anatomy = Anatomy::new(&AnatomyInput {
        blocks: &blocks,
        allocators: &python,
        python_arenas: Some(&arenas),
        ..AnatomyInput::default()
    });
    let part = anatomy.root.find(kind).unwrap();
    assert_eq!(part.certainty, Certainty::Certain);
    assert!(part.sizes.rss > Bytes::from_mib(10));
}

#[test]
fn rubys_pages_are_distinguished_from_jemallocs_extents_by_their_headers() {
    let found = [
        glibc(),
        allocator(AllocatorKind::Jemalloc, "5.3.0"),
        allocator(AllocatorKind::Ruby, "3.1.2"),
    ];
    let blocks = blocks(JEMALLOC);
    let of = |pages: &[u64], kind| {
        let anatomy = Anatomy::new(&AnatomyInput {
            blocks: &blocks,
            malloc: Some(&MallocRanges::default()),
            allocators: &found,
            ruby_pages: Some(pages),
            ..AnatomyInput::default()
        });
        anatomy.resident_of(kind)
    };
    assert!(of(&[], AllocatorKind::Jemalloc) >= Bytes::from_mib(19));
    assert_eq!(of(&[], AllocatorKind::Ruby), Bytes::ZERO);
    let largest = blocks.iter().max_by_key(|block| PartSizes::of(block).rss);
    let largest = largest.unwrap();
    let ruby = of(&[largest.mapping.range.start], AllocatorKind::Ruby);
    assert_eq!(ruby, PartSizes::of(largest).rss);
}

#[test]
fn what_no_allocator_owns_was_mapped_by_the_program_itself_if_nobody_else_is_there() {
    let label = |malloc: Option<&MallocRanges>, found: &[Allocator]| {
        let anatomy = divide(JEMALLOC, malloc, found);
        let unknown = anatomy.root.find(PartKind::OtherAnonymous).unwrap();
        unknown.parts[0].label.clone()
    };
    let none = MallocRanges::default();
    assert_eq!(label(Some(&none), &[glibc()]), "mapped by the program itself");
    assert_eq!(label(None, &[glibc()]), "owner unknown");
    let tcmalloc = allocator(AllocatorKind::Gperftools, "2.10");
    assert_eq!(label(Some(&none), &[glibc(), tcmalloc]), "owner unknown");
}

/// ZGC's heap of 100 MiB, of which 40 MiB are mapped twice, and a range of which a part is committed. Of OpenJDK 17, shortened.
const ZGC: &[u8] = b"\
40000000000-40006400000 rw-s 00000000 00:01 77 /memfd:java_heap (deleted)\nRss: 102400 kB\nPss: 81920 kB\n\
80000000000-80006400000 rw-s 00000000 00:01 77 /memfd:java_heap (deleted)\nRss: 40960 kB\nPss: 20480 kB\n\
7f0000000000-7f0000400000 rw-p 00000000 00:00 0 \nRss: 4096 kB\nPss: 4096 kB\n\
7f0000400000-7f0001000000 ---p 00000000 00:00 0 \nRss: 0 kB\nPss: 0 kB\n";

#[test]
fn a_heap_that_is_mapped_several_times_is_in_ram_once() {
    let found = [glibc(), allocator(AllocatorKind::Jvm, "17")];
    let anatomy = divide(ZGC, Some(&MallocRanges::default()), &found);
    let heap = anatomy.root.find(PartKind::RuntimeHeap(AllocatorKind::Jvm)).unwrap();
    assert_eq!((heap.label.as_str(), heap.certainty), ("Java heap (ZGC)", Certainty::Certain));
    assert_eq!((heap.sizes.rss, heap.once()), (Bytes::from_mib(140), Bytes::from_mib(100)));
    assert_eq!(anatomy.root.once(), Bytes::from_mib(104));
    let rest = &anatomy.root.find(PartKind::OtherAnonymous).unwrap().parts[0];
    assert_eq!(
        (rest.label.as_str(), rest.certainty),
        ("Java metaspace and tables", Certainty::Likely)
    );
}

/// The program break and two mappings, one at a multiple of 2 MiB.
const BREAK: &[u8] = b"\
600000-700000 rw-p 00000000 00:00 0 [heap]\nRss: 1024 kB\nPss: 1024 kB\n\
7f0000000000-7f0000400000 rw-p 00000000 00:00 0 \nRss: 4096 kB\nPss: 4096 kB\n\
7f0000401000-7f0000402000 rw-p 00000000 00:00 0 \nRss: 4 kB\nPss: 4 kB\n";

#[test]
fn the_program_break_is_that_of_the_malloc_that_serves_the_process() {
    let owner = |others: &[Allocator], kind| {
        let found: Vec<Allocator> = [glibc()].into_iter().chain(others.iter().cloned()).collect();
        let anatomy = divide(BREAK, Some(&MallocRanges::default()), &found);
        anatomy.resident_of(kind)
    };
    let tcmalloc = allocator(AllocatorKind::Gperftools, "2.10");
    assert_eq!(
        owner(std::slice::from_ref(&tcmalloc), AllocatorKind::Gperftools),
        Bytes::from_mib(5)
    );
    let two = [tcmalloc, allocator(AllocatorKind::Mimalloc, "2.0")];
    assert!(owner(&two, AllocatorKind::Gperftools) < Bytes::from_mib(5), "one of two may have it");
    let php = [allocator(AllocatorKind::Php, "")];
    assert_eq!(owner(&php, AllocatorKind::Php), Bytes::from_mib(4), "chunks of 2 MiB");
    let erlang = [allocator(AllocatorKind::Erlang, "")];
    assert_eq!(owner(&erlang, AllocatorKind::Erlang), Bytes::from_kib(4100), "its carriers");
}

#[test]
fn a_database_servers_memory_has_its_name() {
    let text = b"\
55aa0000000-55aa0001000 r-xp 00000000 fe:00 9 /usr/sbin/mariadbd\nRss: 4 kB\nPss: 4 kB\n\
7f0000000000-7f0010000000 rw-p 00000000 00:00 0 \nRss: 204800 kB\nPss: 204800 kB\n\
7f0020000000-7f0021000000 rw-p 00000000 00:00 0 \nRss: 16384 kB\nPss: 16384 kB\n\
7f0030000000-7f0034000000 rw-s 00000000 00:01 14 /dev/zero (deleted)\nRss: 1024 kB\nPss: 1024 kB\n";
    let blocks = blocks(text);
    let divided = |program: &'static [u8]| {
        let malloc = MallocRanges::default();
        let input = AnatomyInput {
            blocks: &blocks,
            malloc: Some(&malloc),
            allocators: &[glibc()],
            program: Some(program),
            ..AnatomyInput::default()
        };
        Anatomy::new(&input).root
    };
    let mariadb = divided(b"/usr/sbin/mariadbd");
    let pool = mariadb.find(PartKind::BufferPool).unwrap();
    assert_eq!((pool.sizes.rss, pool.certainty), (Bytes::from_mib(200), Certainty::Likely));
    let postgres = divided(b"/usr/lib/postgresql/15/bin/postgres");
    assert_eq!(postgres.find(PartKind::BufferPool), None);
    let shared = postgres.find(PartKind::SharedAnonymous).unwrap();
    assert_eq!(shared.label, "PostgreSQL shared memory");
}

/// A chunk of malloc's in the middle of a mapping that it shares, and the program break.
const SHARED: &[u8] = b"\
600000-700000 rw-p 00000000 00:00 0 [heap]\nRss: 512 kB\nPss: 256 kB\nPrivate_Dirty: 100 kB\nAnonymous: 512 kB\nSwap: 8 kB\n\
7f0000000000-7f0000400000 rw-p 00000000 00:00 0 \nRss: 4000 kB\nPss: 4000 kB\nPrivate_Dirty: 4000 kB\nAnonymous: 4000 kB\nAnonHugePages: 2048 kB\nSwap: 96 kB\n";

#[test]
fn a_mapping_that_malloc_shares_is_divided() {
    let one = |range, resident, swapped| MallocRange {
        range,
        resident: Bytes::from_kib(resident),
        swapped: Bytes::from_kib(swapped),
    };
    let ranges = MallocRanges {
        main: vec![one(0x60_0000..0x70_0000, 500, 0)],
        thread: Vec::new(),
        mmapped: vec![
            one(0x7f00_0010_0000..0x7f00_0020_0000, 1024, 0),
            one(0x7f00_0020_0000..0x7f00_0030_0000, 900, 64),
        ],
    };
    let anatomy = divide(SHARED, Some(&ranges), &[glibc()]);
    let main = anatomy.root.find(PartKind::MallocMain).unwrap();
    assert_eq!(main.sizes.rss, Bytes::from_kib(512), "the whole break is malloc's");
    let mapped = anatomy.root.find(PartKind::MallocMapped).unwrap();
    assert_eq!(mapped.sizes.rss, Bytes::from_kib(1924));
    assert_eq!(mapped.sizes.swap, Bytes::from_kib(64));
    assert_eq!(mapped.mappings, 2);
    let rest = anatomy.root.find(PartKind::OtherAnonymous).unwrap();
    assert_eq!(rest.sizes.rss, Bytes::from_kib(4000 - 1924));
    assert_eq!(rest.sizes.swap, Bytes::from_kib(32));
    let huge = rest.sizes.huge + mapped.sizes.huge;
    assert_eq!(huge, Bytes::from_kib(2048));
}

#[test]
fn shared_memory_and_hugetlbfs_are_named() {
    let text = b"\
7f1000-7f2000 rw-s 00000000 00:01 12 /memfd:ring (deleted)\nRss: 4 kB\nPss: 2 kB\n\
7f2000-7f3000 rw-s 00000000 00:01 32769 /SYSV00000000 (deleted)\nRss: 4 kB\nPss: 1 kB\n\
7f3000-7f4000 rw-s 00000000 00:01 14 /dev/zero (deleted)\nRss: 4 kB\nPss: 4 kB\n\
7f4000-7f5000 rw-s 00000000 00:19 3 /dev/shm/x\nRss: 4 kB\nPss: 4 kB\n\
7f5000-7f6000 rw-p 00000000 00:2a 3 /tmp/data\nRss: 4 kB\nPss: 4 kB\n\
7f6000-7f7000 r--s 00000000 fe:00 3 /data/base\nRss: 4 kB\nPss: 4 kB\n\
7f7000-7f8000 rw-s 00000000 00:05 9 /dev/dri/renderD128\nRss: 0 kB\nVmFlags: rd wr sh io pf \n\
600000000-600200000 rw-p 00000000 00:11 77 /anon_hugepage (deleted)\nRss: 0 kB\nPss: 0 kB\nPrivate_Hugetlb: 2048 kB\nVmFlags: rd wr ht \n\
7f9000-7fa000 rw-p 00000000 00:00 0 [anon:my pool]\nRss: 4 kB\nPss: 4 kB\n\
7fb000-7fc000 rw-p 00000000 00:00 0 [anon: Go: heap]\nRss: 4 kB\nPss: 4 kB\n";
    let blocks = blocks(text);
    let anatomy = Anatomy::new(&AnatomyInput {
        blocks: &blocks,
        tmpfs: &[(0, 0x2a)],
        ..AnatomyInput::default()
    });
    let root = &anatomy.root;
    for kind in [
        PartKind::Memfd,
        PartKind::SystemV,
        PartKind::SharedAnonymous,
        PartKind::MappedFile,
        PartKind::RuntimeHeap(AllocatorKind::Go),
    ] {
        let part = root.find(kind).unwrap();
        assert_eq!((part.sizes.rss, part.certainty), (Bytes::from_kib(4), Certainty::Certain));
    }
    let shared = root.find(PartKind::SharedMemory).unwrap();
    assert_eq!(shared.sizes.rss, Bytes::from_kib(20), "with the file of a tmpfs");
    let huge = root.find(PartKind::Hugetlb).unwrap();
    assert_eq!((huge.sizes.hugetlb, huge.sizes.rss), (Bytes::from_mib(2), Bytes::ZERO));
    assert!(root.find(PartKind::Device).is_some());
    let other = root.find(PartKind::OtherAnonymous).unwrap();
    assert_eq!(other.parts[0].label, "[anon:my pool]");
    assert_eq!(leaves(root), sums(&blocks));
}

/// Two guarded mappings of 8 MiB, one of another size, and one without a guard.
const GUARDED: &[u8] = b"\
7f0000000000-7f0000001000 ---p 00000000 00:00 0 \nRss: 0 kB\n\
7f0000001000-7f0000801000 rw-p 00000000 00:00 0 \nRss: 12 kB\n\
7f0000801000-7f0000802000 ---p 00000000 00:00 0 \nRss: 0 kB\n\
7f0000802000-7f0001002000 rw-p 00000000 00:00 0 \nRss: 20 kB\n\
7f0001100000-7f0001101000 ---p 00000000 00:00 0 \nRss: 0 kB\n\
7f0001101000-7f0001181000 rw-p 00000000 00:00 0 \nRss: 40 kB\n\
7f0002000000-7f0002800000 rw-p 00000000 00:00 0 \nRss: 80 kB\n";

#[test]
fn a_stack_has_a_stack_pointer_or_the_size_of_one_and_always_a_guard() {
    let blocks = blocks(GUARDED);
    let pointers = [
        StackPointer { tid: 7, address: 0x7f00_0080_0ff0 },
        StackPointer { tid: 8, address: 0x7f00_0200_1000 },
    ];
    let stacks = |stack_pointers, stack_limit| {
        let anatomy = Anatomy::new(&AnatomyInput {
            blocks: &blocks,
            stack_pointers,
            stack_limit,
            ..AnatomyInput::default()
        });
        let found = anatomy.root.find(PartKind::ThreadStacks).cloned();
        found.map(|part| (part.sizes.rss.get() >> 10, part.certainty))
    };
    let limit = Some(Limit::Bytes(Bytes::from_mib(8)));
    assert_eq!(stacks(&[], None), None, "a guard alone is none");
    assert_eq!(stacks(&[], limit), Some((32, Certainty::Likely)));
    assert_eq!(stacks(&pointers[..1], None), Some((32, Certainty::Likely)));
    assert_eq!(stacks(&pointers[1..], None), None, "without a guard it may be anything");
}

#[test]
fn this_process_adds_up_to_its_rss_and_its_thread_has_a_stack() {
    let (stop, wait) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || wait.recv());
    let pid = std::process::id();
    let options = ReadOptions::usual(PageSize::USUAL);
    let own = ProcessAnatomy::read(&probe::Root::default(), pid, None, &options).unwrap();
    assert_eq!(own.problems, [""; 0]);
    let rss = own.anatomy.root.sizes.rss;
    assert_eq!((own.sizes.rss, leaves(&own.anatomy.root).rss), (rss, rss));
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kib: f64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    let measured = Bytes::from_kib(1).ratio_of(rss).unwrap().get() * kib;
    // Reading allocates between the two measurements.
    assert!((0.8..1.25).contains(&measured), "{measured}");
    let kinds: Vec<_> = own.allocators.allocators.iter().map(|one| one.kind).collect();
    assert!(kinds.contains(&AllocatorKind::Ptmalloc), "{kinds:?}");
    assert!(own.anatomy.root.find(PartKind::ThreadStacks).is_some());
    assert!(own.anatomy.root.find(PartKind::Program).is_some());
    assert!(own.sizes.uss <= own.sizes.pss && own.sizes.pss <= own.sizes.rss);
    assert!(own.threads.is_some_and(|(all, known)| all >= 2 && known >= 1));
    drop(stop);
    let _ = thread.join();
}

#[test]
fn another_process_that_is_idle_adds_up_to_its_rss_within_two_percent() {
    let mut child = std::process::Command::new("cat")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // A byte that comes back shows that the program is loaded; it then waits for the next.
    child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
    let mut echo = [0];
    child.stdout.as_mut().unwrap().read_exact(&mut echo).unwrap();
    let pid = child.id();
    let options = ReadOptions::usual(PageSize::USUAL);
    let read = ProcessAnatomy::read(&probe::Root::default(), pid, None, &options);
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let rss = read.unwrap().anatomy.root.sizes.rss.get();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    // Kernels before 6.2 count a thread's last 64 pages late.
    let slack = (kib * 1024 / 50).max(64 * 4096);
    assert!(rss.abs_diff(kib * 1024) <= slack, "{rss} bytes, {kib} KiB");
}

#[test]
fn a_process_that_is_gone_is_an_error() {
    let options = ReadOptions::usual(PageSize::USUAL);
    let read = ProcessAnatomy::read(&probe::Root::default(), 0x3fff_ffff, None, &options);
    assert!(read.unwrap_err().to_string().contains("/proc/1073741823/"));
}

fn any_line() -> impl Strategy<Value = String> {
    let names = [
        "",
        "[heap]",
        "[stack]",
        "/lib/a.so",
        "/memfd:x (deleted)",
        "[anon:x]",
        "[vdso]",
        "/dev/zero (deleted)",
    ];
    let access = ["rw-p", "r-xp", "---p", "r--p", "rw-s", "rwxp"];
    let sizes = (0..1_u64 << 20, 0..1_u64 << 20, 0..1_u64 << 20, 0..1_u64 << 20);
    (
        0..4_u64,
        1..64_u64,
        prop::sample::select(names.to_vec()),
        prop::sample::select(access.to_vec()),
        0..9_u64,
        sizes,
    )
        .prop_map(|(gap, pages, name, access, inode, (rss, pss, private, swap))| {
            format!(
                "{gap} {pages} {access} {inode} Rss:{rss} Pss:{pss} Private_Dirty:{private} \
                 Swap:{swap} {name}"
            )
        })
}

/// Writes lines one behind the other as smaps, whatever their sizes.
fn as_smaps(lines: &[String]) -> String {
    let mut text = String::new();
    let mut at = 0x10_0000_u64;
    for line in lines {
        let words: Vec<&str> = line.splitn(9, ' ').collect();
        let number = |index: usize| words[index].parse::<u64>().unwrap();
        let start = at + number(0) * 4096;
        at = start + number(1) * 4096;
        text += &format!("{start:x}-{at:x} {} 0 fe:00 {} {}\n", words[2], number(3), words[8]);
        for field in &words[4..8] {
            text += &format!("{} kB\n", field.replace(':', ": "));
        }
    }
    text
}

proptest! {
    #[test]
    fn leaves_add_up_whatever_the_mappings_and_mallocs_ranges(
        lines in prop::collection::vec(any_line(), 0..40),
        ranges in prop::collection::vec((0x10_0000..0x40_0000_u64, 0..0x4_0000_u64, 0..1_u64 << 22, 0..3_u8), 0..12),
        kinds in prop::sample::subsequence(vec![
            AllocatorKind::Ptmalloc, AllocatorKind::Jemalloc, AllocatorKind::Go, AllocatorKind::Jvm, AllocatorKind::V8,
            AllocatorKind::Python, AllocatorKind::Ruby, AllocatorKind::Musl,
        ], 0..8),
        pointers in prop::collection::vec(0x10_0000..0x40_0000_u64, 0..8),
    ) {
        let text = as_smaps(&lines);
        let blocks = blocks(text.as_bytes());
        let mut malloc = MallocRanges::default();
        for (start, length, resident, region) in ranges {
            let range = MallocRange { range: start..start + length, resident: Bytes::new(resident), swapped: Bytes::new(resident / 2) };
            match region {
                0 => malloc.main.push(range),
                1 => malloc.thread.push(range),
                _ => malloc.mmapped.push(range),
            }
        }
        let allocators: Vec<_> = kinds.into_iter().map(|kind| allocator(kind, "3.3")).collect();
        let pointers: Vec<_> = pointers.into_iter().map(|address| StackPointer { tid: 1, address }).collect();
        for malloc in [None, Some(&malloc)] {
            let anatomy = Anatomy::new(&AnatomyInput {
                blocks: &blocks,
                malloc,
                allocators: &allocators,
                stack_pointers: &pointers,
                ..AnatomyInput::default()
            });
            prop_assert_eq!(leaves(&anatomy.root), sums(&blocks));
            prop_assert_eq!(anatomy.root.sizes, sums(&blocks));
        }
    }

    #[test]
    fn any_text_is_divided_without_panic(bytes: Vec<u8>, cut in 0..RUBY.len()) {
        for text in [&bytes, &RUBY[cut..]] {
            let mut blocks = Vec::new();
            probe::parse_smaps(text, &mut |block| blocks.push(block));
            let anatomy = Anatomy::new(&AnatomyInput { blocks: &blocks, ..AnatomyInput::default() });
            prop_assert_eq!(leaves(&anatomy.root), sums(&blocks));
        }
    }
}
