//! The directory of a running recorder is renamed, removed, or replaced by something else: what else there is stays as it
//! is, and recording goes on.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use crate::record::{Running, is_root, skip, status, until};
use crate::support::{memtide, stderr};

/// The user who owns the directory above the recording, where this test may give it away.
const NOBODY: u32 = 65_534;

/// A directory of another user in which root records, and what lies beside the recording.
struct Scene {
    _place: tempfile::TempDir,
    recording: PathBuf,
    away: PathBuf,
    beside: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().join("home");
        let beside = place.path().join("beside");
        fs::create_dir(&home).unwrap();
        fs::create_dir_all(beside.join("empty")).unwrap();
        fs::create_dir(beside.join("etc")).unwrap();
        for name in ["passwd", "status.json", "lock", "recording.json"] {
            fs::write(beside.join("etc").join(name), format!("precious {name}")).unwrap();
        }
        if is_root() {
            std::os::unix::fs::chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        Self { recording: home.join("recording"), away: home.join("away"), beside, _place: place }
    }

    /// Makes another recording of this host beside it.
    fn record_another(&self) -> PathBuf {
        let another = self.beside.join("another");
        assert!(Running::started(&another, &[]).end().status.success());
        another
    }
}

/// Everything below a directory: paths with sizes, times of change and contents.
fn all(directory: &Path) -> BTreeMap<PathBuf, (u64, i64, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(path) = waiting.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            let entries = fs::read_dir(&path).unwrap();
            waiting.extend(entries.map(|entry| entry.unwrap().path()));
        }
        let content = if meta.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        let about = (meta.size(), meta.mtime(), meta.mtime_nsec(), content);
        found.insert(path, about);
    }
    found
}

/// Waits for more samples on the disk, of the recording that is now at `at`, and for a segment of them.
fn goes_on(running: &Running, at: &Path) {
    let written = || status(at)["recorder"]["disk"]["samples_written"].as_u64();
    let before = written();
    until("more samples on the disk", || written() > before);
    let segments = || fs::read_dir(at.join("segments")).map_or(0, Iterator::count);
    let before = segments();
    running.signal("HUP");
    until("another segment", || segments() > before);
}

fn events(at: &Path) -> String {
    let output = memtide(&["events", "--format", "json", at.to_str().unwrap()]);
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_directory_that_another_takes_the_place_of_is_recorded_into_further_and_nothing_else_is() {
    for what in ["empty", "etc", "another", "nothing", "directory"] {
        let scene = Scene::new();
        let target = scene.beside.join(what);
        if what == "another" {
            scene.record_another();
        }
        let before = all(&scene.beside);
        let running = Running::started(&scene.recording, &["--sync", "1s"]);
        fs::rename(&scene.recording, &scene.away).unwrap();
        match what {
            "nothing" => {}
            "directory" => fs::create_dir(&scene.recording).unwrap(),
            _ => symlink(&target, &scene.recording).unwrap(),
        }
        if is_root() && what != "nothing" {
            std::os::unix::fs::lchown(&scene.recording, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        goes_on(&running, &scene.away);
        let output = running.end();
        assert_eq!(output.status.code(), Some(0), "{what}");
        let says = stderr(&output);
        let place = scene.away.to_str().unwrap();
        assert!(says.contains(&format!("recording goes on in {place}")), "{says}");
        assert_eq!(all(&scene.beside), before, "{what}");
        assert_eq!(status(&scene.away)["state"], "stopped", "{what}");
        let says = events(&scene.away);
        assert!(says.contains("the recording's directory changed from"), "{says}");
        if what == "directory" {
            assert_eq!(fs::read_dir(&scene.recording).unwrap().count(), 0);
        }
    }
}

#[test]
fn a_directory_that_was_removed_is_recorded_into_again_when_it_is_made_again() {
    let scene = Scene::new();
    let before = all(&scene.beside);
    let running = Running::started(&scene.recording, &["--sync", "1s"]);
    let removed = |says: &str| {
        until(says, || {
            let _ = fs::remove_dir_all(&scene.recording);
            !scene.recording.exists()
        });
    };
    removed("the removal");
    // Links to a directory of others are not followed, however long they are there.
    for target in ["empty", "etc"] {
        symlink(scene.beside.join(target), &scene.recording).unwrap();
        std::thread::sleep(std::time::Duration::from_secs(3));
        fs::remove_file(&scene.recording).unwrap();
    }
    assert_eq!(all(&scene.beside), before);
    fs::create_dir(&scene.recording).unwrap();
    goes_on(&running, &scene.recording);
    assert_eq!(running.end().status.code(), Some(0));
    let says = events(&scene.recording);
    assert!(says.contains("the recording's directory was removed"), "{says}");
    assert_eq!(all(&scene.beside), before);
}

#[test]
fn what_another_user_can_write_to_or_leads_elsewhere_is_refused() {
    if !is_root() {
        return skip("giving a directory away needs root");
    }
    let scene = Scene::new();
    let before = all(&scene.beside);
    let give = |path: &Path| std::os::unix::fs::lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    let home = scene.recording.parent().unwrap();
    let (link, theirs, open) = (home.join("link"), home.join("theirs"), home.join("open"));
    symlink(scene.beside.join("empty"), &link).unwrap();
    fs::create_dir(&theirs).unwrap();
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    for path in [&link, &theirs] {
        give(path);
    }
    for (path, why) in [
        (&link, "is a symbolic link of"),
        (&link.join("deeper"), "is a symbolic link of"),
        (&theirs, "it belongs to"),
        (&open, "everybody can write to it"),
    ] {
        let output = memtide(&["record", "--to", path.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(3));
        let says = stderr(&output);
        assert!(says.contains(why) && says.contains("help: "), "{says}");
    }
    assert_eq!(fs::read_dir(&theirs).unwrap().count(), 0);
    assert_eq!(fs::read_dir(&open).unwrap().count(), 0);
    assert_eq!(all(&scene.beside), before);
    // A link of root's own is the administrator's choice.
    let own = home.join("own");
    symlink(scene.beside.join("empty"), &own).unwrap();
    let output = Running::started(&own, &[]).end();
    assert_eq!(output.status.code(), Some(0));
    let says = stderr(&output);
    assert!(says.contains("can write to"), "{says}");
    assert!(scene.beside.join("empty/recording.json").exists());
}
