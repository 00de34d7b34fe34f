//! Support bundles: a directory and an archive of this machine's own files say what they hold, and nothing hostile in them
//! is followed.

use std::fs;
use std::io::Write;
use std::path::Path;

use tar::{Builder, EntryType, Header};

use crate::support::{complaints, file, json, memtide, stderr, stdout};

/// Files of this machine, as a bundle has them; some kernels lack some.
fn saved() -> Vec<(String, Vec<u8>)> {
    [
        "/proc/meminfo",
        "/proc/vmstat",
        "/proc/zoneinfo",
        "/proc/buddyinfo",
        "/proc/swaps",
        "/proc/pressure/memory",
        "/proc/sys/vm/swappiness",
        "/sys/kernel/mm/transparent_hugepage/enabled",
    ]
    .iter()
    .filter_map(|path| Some((format!("sosreport-web{path}"), fs::read(path).ok()?)))
    .chain([
        ("sosreport-web/hostname".to_owned(), b"web\n".to_vec()),
        ("sosreport-web/etc/passwd".to_owned(), b"root:x:0:0\n".to_vec()),
    ])
    .collect()
}

fn header(name: &str, kind: EntryType, size: usize) -> Header {
    let mut header = Header::new_gnu();
    // As written, whatever it leads to: a hostile archive is not made by a careful library.
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(kind);
    header.set_size(size as u64);
    header.set_mode(0o644);
    header.set_cksum();
    header
}

fn archive(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (name, text) in files {
        builder.append(&header(name, EntryType::Regular, text.len()), text.as_slice()).unwrap();
    }
    builder.into_inner().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let options = lzma_rust2::XzOptions::with_preset(1);
    let mut writer = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

/// MemTotal in bytes, as the saved file has it.
fn mem_total(files: &[(String, Vec<u8>)]) -> u64 {
    let text = String::from_utf8(files[0].1.clone()).unwrap();
    let line = text.lines().next().unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}

fn lay_out(files: &[(String, Vec<u8>)], below: &Path) {
    for (name, text) in files {
        let path = below.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

#[test]
fn a_bundle_is_read_as_directory_and_in_every_packing() {
    let directory = tempfile::tempdir().unwrap();
    let files = saved();
    lay_out(&files, directory.path());
    let tar = archive(&files);
    let root = directory.path().to_str().unwrap().to_owned();
    let sources = [
        format!("{root}/sosreport-web"),
        file(&directory, "b.tar", &tar),
        file(&directory, "b.tar.gz", gz(&tar)),
        file(&directory, "b.tar.xz", xz(&tar)),
        file(&directory, "b.tar.zst", zstd::encode_all(tar.as_slice(), 1).unwrap()),
    ];
    for source in sources {
        let output = memtide(&["check", &source, "--format", "json"]);
        let report = json(&output);
        assert_eq!(report["source"]["kind"], "bundle", "{source}");
        assert_eq!(report["source"]["samples"], 1, "{source}");
        assert_eq!(report["source"]["problems"], serde_json::json!([]), "{source}");
        assert_eq!(report["host"]["hostname"], "web", "{source}");
        let total = report["host"]["ram_bytes"].as_u64();
        assert_eq!(total, Some(mem_total(&files)), "{source}");
        let inputs = report["source"]["inputs"].to_string();
        assert!(inputs.contains("proc/meminfo") && !inputs.contains("passwd"), "{inputs}");
    }
}

/// Two rows of `sadf -j`, of a host that swaps.
const SADF: &str = r#"{"sysstat": {"hosts": [{"nodename": "web", "release": "6.1.0-9-amd64", "statistics": [
  {"timestamp": {"date": "2026-11-21", "time": "12:10:00", "utc": 1, "interval": 600}, "swap-pages": {"pswpin": 70.0, "pswpout": 90.0}},
  {"timestamp": {"date": "2026-11-21", "time": "12:20:00", "utc": 1, "interval": 600}, "swap-pages": {"pswpin": 80.0, "pswpout": 95.0}}
]}]}}"#;

#[test]
fn sars_data_in_a_bundle_are_read_and_what_is_not_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let mut files = saved();
    let add = [
        // As sos has it, and as people have it.
        ("sosreport-web/sos_commands/sar/sadf_-j", SADF.as_bytes()),
        ("sosreport-web/sos_commands/sar/sa21.tar", b"x".as_slice()),
        ("sosreport-web/var/log/journal.1/messages", b"LPKSHHRH\0\0"),
    ];
    files.extend(add.map(|(name, text)| (name.to_owned(), text.to_vec())));
    let inner = archive(&saved());
    files.push(("sosreport-web/sos_commands/sar/sa.tar".to_owned(), inner));
    lay_out(&files, directory.path());
    let root = directory.path().join("sosreport-web");
    let plain = directory.path().join("night");
    fs::create_dir(&plain).unwrap();
    fs::write(plain.join("sa21.json"), SADF).unwrap();

    let output = memtide(&["check", root.to_str().unwrap(), "--format", "json"]);
    let report = json(&output);
    let source = &report["source"];
    assert!(source["inputs"].to_string().contains("swap"), "{source}");
    assert_eq!(source["samples"], 4, "zeros, two rows, the kernel files");
    let problems = source["problems"].to_string();
    assert!(problems.contains("is an archive"), "{problems}");
    assert!(problems.contains("1 logs are not text"), "{problems}");

    let output = memtide(&["check", plain.to_str().unwrap(), "--format", "json"]);
    assert_eq!(json(&output)["source"]["samples"], 3);
}

#[test]
fn a_cut_archive_keeps_what_was_before_the_cut() {
    let directory = tempfile::tempdir().unwrap();
    let files = saved();
    let tar = archive(&files);
    // In the middle of the second file: the first is whole, and a number of the second might be cut.
    let cut = 512 + files[0].1.len().next_multiple_of(512) + 512 + files[1].1.len() / 2;
    for (name, bytes) in [
        ("cut.tar", tar[..cut].to_vec()),
        ("cut.tar.gz", {
            let packed = gz(&tar);
            packed[..packed.len() * 9 / 10].to_vec()
        }),
    ] {
        let output = memtide(&["check", &file(&directory, name, bytes), "--format", "json"]);
        let report = json(&output);
        assert_eq!(report["host"]["ram_bytes"].as_u64(), Some(mem_total(&files)), "{name}");
        let said = report["source"]["problems"].to_string();
        assert!(said.contains("ends early"), "{name}: {said}");
        let inputs = report["source"]["inputs"].to_string();
        assert!(name != "cut.tar" || !inputs.contains("vmstat"), "{inputs}");
    }
}

#[test]
fn hostile_entries_lead_nowhere() {
    let directory = tempfile::tempdir().unwrap();
    let mut builder = Builder::new(Vec::new());
    let meminfo = b"MemTotal: 1000 kB\nMemFree: 500 kB\n";
    let other = b"MemTotal: 2000 kB\n";
    let mut put = |name: &str, kind, text: &[u8]| {
        builder.append(&header(name, kind, text.len()), text).unwrap();
    };
    put("/etc/proc/meminfo", EntryType::Regular, other);
    put("../../proc/meminfo", EntryType::Regular, other);
    put("web/proc/vmstat", EntryType::Symlink, b"");
    put("web/proc/stat", EntryType::Char, b"");
    put("web/proc/meminfo", EntryType::Regular, meminfo);
    put("web/proc/meminfo", EntryType::Regular, other);
    put("db/proc/meminfo", EntryType::Regular, other);
    put(&format!("web/{}", "x".repeat(90)), EntryType::GNULongName, &[b'y'; 200_000]);
    put("web/\u{1b}[31m", EntryType::Regular, b"free");
    let path = file(&directory, "hostile.tar", builder.into_inner().unwrap());
    let output = memtide(&["check", &path, "--format", "json"]);
    let report = json(&output);
    assert_eq!(report["host"]["ram_bytes"], 1000 * 1024);
    let said = complaints(&memtide(&["check", "--all", &path]));
    for words in [
        "2 entries have names that lead outside",
        "1 files occur twice",
        "those below `db/` are not",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!said.contains('\u{1b}'));
    assert!(!stdout(&memtide(&["check", &path, "--explain-input"])).contains('\u{1b}'));
}

#[test]
fn links_and_pipes_in_a_directory_are_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    fs::create_dir(at.join("proc")).unwrap();
    fs::write(at.join("secret"), "MemTotal: 9999 kB\n").unwrap();
    let bundle = at.join("bundle/proc");
    fs::create_dir_all(&bundle).unwrap();
    fs::write(bundle.join("meminfo"), "MemTotal: 1000 kB\nMemFree: 500 kB\n").unwrap();
    std::os::unix::fs::symlink(at.join("secret"), at.join("bundle/free")).unwrap();
    std::os::unix::fs::symlink("..", at.join("bundle/loop")).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(bundle.join("vmstat")).status();
    assert!(pipe.unwrap().success());
    let report =
        json(&memtide(&["check", at.join("bundle").to_str().unwrap(), "--format", "json"]));
    assert_eq!(report["host"]["ram_bytes"], 1000 * 1024);
    assert_eq!(report["source"]["inputs"].as_array().unwrap().len(), 1);
}

#[test]
fn a_directory_of_nothing_is_said_to_be_so() {
    let directory = tempfile::tempdir().unwrap();
    let output = memtide(&["check", directory.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3));
    let said = stderr(&output);
    assert!(said.contains("has no file that memtide reads"), "{said}");
    assert!(said.contains("help:"), "{said}");
}

#[test]
fn a_log_in_a_bundle_is_searched_for_kernel_reports_and_one_report_is_one() {
    let directory = tempfile::tempdir().unwrap();
    let report = include_str!("../../../import/benches/report.txt");
    let noise = "Nov 21 23:58:47 web sshd[7]: Accepted publickey for root\n".repeat(2_000);
    let mut files = saved();
    for name in ["var/log/messages", "sos_commands/logs/journalctl_--no-pager"] {
        let text = format!("{noise}{report}{noise}").into_bytes();
        files.push((format!("sosreport-web/{name}"), text));
    }
    lay_out(&files, directory.path());
    let answer = json(&memtide(&["check", directory.path().to_str().unwrap(), "--format", "json"]));
    assert_eq!(answer["source"]["samples"], 2, "{}", answer["source"]);
    assert!(answer["findings"].to_string().contains("oom"), "{}", answer["findings"]);
}

/// Kernel files that name owners of memory, with round figures.
const OWNERS: [(&str, &str); 10] = [
    ("proc/vmstat", "nr_free_pages 262144\n"),
    (
        "proc/meminfo",
        "MemTotal: 4194304 kB\nMemFree: 1048576 kB\nBuffers: 0 kB\nCached: 1048576 kB\nSwapTotal: 0 kB\n\
         SwapFree: 0 kB\nAnonPages: 524288 kB\nShmem: 102400 kB\nSlab: 0 kB\nSReclaimable: 0 kB\n\
         SUnreclaim: 0 kB\nKernelStack: 4096 kB\nPageTables: 4096 kB\nVmallocUsed: 40960 kB\nPercpu: 0 kB\n\
         HugePages_Total: 8\nHugePages_Free: 8\nHugepagesize: 2048 kB\nHugetlb: 1064960 kB\n",
    ),
    (
        "proc/vmallocinfo",
        "0x1-0x2 33558528 htab_map_alloc+0x2e4/0x5a0 pages=8192 vmalloc vpages N0=8192\n\
         0x2-0x3 20480 kernel_clone+0x94/0x3e0 pages=4 vmalloc N0=4\n",
    ),
    (
        "proc/allocinfo",
        "allocinfo - version: 1.0\n#     <size>  <calls> <tag info>\n\
         2621440000   640000 mm/memory.c:1054 func:folio_prealloc\n\
          419430400    51200 drivers/net/ethernet/intel/ice/ice_txrx.c:681 [ice] func:ice_alloc_mapped_page\n",
    ),
    (
        "proc/spl/kstat/zfs/arcstats",
        "13 1 0x01 123 33456 7402060102 66478716886640\nname type data\n\
         c_min 4 16777216\nsize 4 38797312\ndata_size 4 29360128\nmetadata_size 4 4194304\n",
    ),
    (
        "proc/iomem",
        "00100000-bfffffff : System RAM\n  01000000-02ffffff : Kernel code\n  a0000000-afffffff : Crash kernel\n\
         100000000-153ffffff : System RAM\n",
    ),
    (
        "proc/sysvipc/shm",
        "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap\n\
         1357000000          3   600              83886080  4711  4712      0     0     0     0     0       1100       1200       1000              83886080                     0\n",
    ),
    ("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "8\n"),
    ("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "8\n"),
    ("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "1\n"),
];

#[test]
fn where_names_the_owners_that_a_bundle_has() {
    let directory = tempfile::tempdir().unwrap();
    let mut files =
        vec![("sosreport-db/proc/version".to_owned(), b"Linux version 6.12.0 (gcc)\n".to_vec())];
    files.extend(OWNERS.map(|(name, text)| (format!("sosreport-db/{name}"), text.into())));
    lay_out(&files, directory.path());
    let root = directory.path().join("sosreport-db");
    let text = stdout(&memtide(&["where", root.to_str().unwrap()]));
    for line in [
        "4 GiB MemTotal\n319 MiB less than the 4.3 GiB of RAM: 256 MiB for a crash kernel, 32 MiB for",
        "├ shared memory                   100 MiB",
        "│ ├ System V segment 3             80 MiB          detached, made by PID 4711,",
        "│ └ not attributed                 20 MiB          memfd and shared mappings;",
        "├ huge pages                        1 GiB",
        "│ ├ pages of 1 GiB                  1 GiB",
        "│ │ └ in use                        1 GiB",
        "│ └ pages of 2 MiB                 16 MiB",
        "│   └ unused                       16 MiB",
        "│ ├ vmalloc                        36 MiB",
        "│ │ ├ htab_map_alloc               32 MiB          1 area",
        "│ │ └ not attributed                4 MiB",
        "  ├ ice_alloc_mapped_page [ice]  ≈400 MiB          51,200 allocations in",
        "  │                                                ice_txrx.c",
        "  ├ ZFS's ARC                     ≈32 MiB          shrinks to 16 MiB when",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}
