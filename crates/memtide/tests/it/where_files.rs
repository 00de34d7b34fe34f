//! `where --files` names the files in the page cache: this test has some open, mapped and closed, and looks for them.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::record::{is_root, lacks, skip};
use crate::support::{asked_until, json, memtide};

const MIB: u64 = 1 << 20;

/// Files of the page cache, as `where` prints them.
fn files(arguments: &[&str]) -> Vec<Value> {
    let report = json(&memtide(&[&["where", "--format", "json"], arguments].concat()));
    let branches = report["tree"]["children"].as_array().unwrap();
    let cache = branches.iter().find(|node| node["label"] == "page cache");
    let files = cache.unwrap()["children"].as_array().unwrap();
    let sum: u64 = files.iter().map(|file| file["bytes"].as_u64().unwrap()).sum();
    assert_eq!(sum, cache.unwrap()["bytes"].as_u64().unwrap());
    files.clone()
}

fn named<'a>(files: &'a [Value], path: &Path) -> Option<&'a Value> {
    files.iter().find(|file| file["label"] == path.to_str().unwrap())
}

/// A directory on the disk of the build: a tmpfs has no page cache.
fn on_disk() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// A file of some MiB, which are in the page cache.
fn written(directory: &Path, name: &str, mib: u64) -> (PathBuf, File) {
    let path = directory.join(name);
    let mut file = File::options().create_new(true).read(true).write(true).open(&path).unwrap();
    for _ in 0..mib {
        file.write_all(&[7; 1 << 20]).unwrap();
    }
    // Clean pages count as well as dirty ones.
    file.sync_all().unwrap();
    (path, file)
}

#[test]
fn open_files_are_named_with_their_pages_and_who_has_them() {
    let directory = on_disk();
    // Larger than the programs and libraries of other tests.
    let (path, _open) = written(directory.path(), "table.ibd", 160);
    let (removed, _still_open) = written(directory.path(), "spool", 150);
    std::fs::remove_file(&removed).unwrap();
    let removed = PathBuf::from(format!("{} (deleted)", removed.display()));
    let ask = || files(&["--files"]);
    let found = asked_until(ask, |files| named(files, &path).is_some());
    let own = std::process::id().to_string();
    for (path, mib) in [(&path, 160), (&removed, 150)] {
        let file = named(&found, path).unwrap_or_else(|| panic!("{path:?}: {found:#?}"));
        let bytes = file["bytes"].as_u64().unwrap();
        assert!(bytes.abs_diff(mib * MIB) * 20 <= mib * MIB, "{file}");
        assert!(file["note"].as_str().unwrap().contains(&own), "{file}");
    }
    // What nobody has open is the remainder, which says how to see it.
    let rest = found.last().unwrap();
    assert_eq!(rest["kind"], "remainder");
    assert!(rest["note"].as_str().unwrap().contains("--files-in DIR"), "{rest}");
}

#[test]
fn files_below_a_directory_are_named_although_nobody_has_them_open() {
    let directory = on_disk();
    let deep = directory.path().join("a/b");
    std::fs::create_dir_all(&deep).unwrap();
    let (path, file) = written(&deep, "old.log", 140);
    drop(file);
    std::fs::hard_link(&path, deep.join("same.log")).unwrap();
    std::os::unix::fs::symlink("/", deep.join("everything")).unwrap();
    let top = directory.path().to_str().unwrap();
    let ask = || files(&["--files-in", top]);
    let found = asked_until(ask, |files| named(files, directory.path()).is_some());
    let node = named(&found, directory.path()).unwrap_or_else(|| panic!("{found:#?}"));
    assert!(node["bytes"].as_u64().unwrap().abs_diff(140 * MIB) <= 7 * MIB, "{node}");
    // Two names of one file, and a link that leads out.
    assert_eq!(node["note"], "1 file, not open");
    let entries = node["children"].as_array().unwrap();
    assert_eq!(entries.len(), 1, "{node}");
    assert_eq!((&entries[0]["label"], &entries[0]["bytes"]), (&"a".into(), &node["bytes"]));
}

#[test]
fn a_directory_that_is_none_is_an_error_and_a_recording_has_no_files() {
    for (directory, why) in [("/nowhere", "No such file"), ("/proc/self", "no files on a disk")] {
        let answer = memtide(&["where", "--files-in", directory]);
        assert_eq!(answer.status.code(), Some(3));
        let error = String::from_utf8_lossy(&answer.stderr);
        assert!(error.contains(directory) && error.contains(why), "{error}");
    }
    let directory = on_disk();
    let path = directory.path().to_str().unwrap();
    for (typed, instead) in [
        (&["--files", "some.jsonl"][..], "`memtide where some.jsonl`"),
        (&["--files", path], "`memtide where --files-in "),
        (&["--files", "--at", "-5m"], "`memtide where --at WHEN`"),
    ] {
        let answer = memtide(&[&["where"], typed].concat());
        assert_eq!(answer.status.code(), Some(3));
        let error = String::from_utf8_lossy(&answer.stderr);
        assert!(error.contains("only known of this host") && error.contains(instead), "{error}");
    }
}

#[test]
fn as_many_files_are_named_as_were_asked_for() {
    let directory = on_disk();
    let opened: Vec<_> =
        (0..4).map(|i| written(directory.path(), &format!("file-{i}"), 1)).collect();
    let paths = |files: &[Value]| {
        let labels = files.iter().filter_map(|file| file["label"].as_str());
        labels.filter(|label| label.starts_with('/')).count()
    };
    assert_eq!(paths(&files(&["--files", "--top", "2"])), 2);
    let all = files(&["--files", "--top", "60000"]);
    for (path, _) in &opened {
        assert!(named(&all, path).is_some(), "{path:?}: {all:#?}");
    }
    // Files of one node are in the order of their sizes, and the remainder is the last.
    let sizes: Vec<u64> = all
        .iter()
        .take_while(|file| file["kind"] != "remainder")
        .map(|file| file["bytes"].as_u64().unwrap())
        .collect();
    assert!(sizes.is_sorted_by(|a, b| a >= b), "{all:#?}");
}

#[test]
fn files_with_pages_that_the_kernel_hides_are_not_called_closed() {
    const NOBODY: u32 = 65_534;
    if !is_root() {
        return skip("another user's files need root: run the tests as root");
    }
    let directory = on_disk();
    let (_, file) = written(directory.path(), "of-root", 1);
    let readable = |mode| std::fs::Permissions::from_mode(mode);
    file.set_permissions(readable(0o644)).unwrap();
    std::fs::set_permissions(directory.path(), readable(0o755)).unwrap();
    let asked = Command::new(env!("CARGO_BIN_EXE_memtide"))
        .args(["where", "--format", "json", "--files-in"])
        .arg(directory.path())
        .uid(NOBODY)
        .gid(NOBODY)
        .output();
    let Some(answer) = asked.ok().filter(|answer| answer.status.success()) else {
        return lacks("another user cannot run the program where it was built");
    };
    let report: Value = serde_json::from_slice(&answer.stdout).unwrap();
    let text = report["tree"].to_string();
    assert!(text.contains("that are not this user's: the kernel hides"), "{text}");
}

#[test]
fn what_check_answers_for_one_cgroup_is_pointed_to() {
    for kind in ["cgroup", "unit", "container", "pod"] {
        let answer = memtide(&["where", &format!("--{kind}"), "web"]);
        assert_eq!(answer.status.code(), Some(3));
        let error = String::from_utf8_lossy(&answer.stderr);
        for command in [format!("`memtide check --{kind} "), format!("`memtide where --by {kind}`")]
        {
            assert!(error.contains(&command), "{error}");
        }
    }
}
