//! A bundle that was unpacked. Links are not followed, so nothing outside of it is read, and nothing twice; what is
//! neither file nor directory is not opened, so nothing waits.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use super::{Bundle, MOST_ENTRIES};
use crate::Opened;

/// Directories within directories; `/sys/fs/cgroup` of a large host has 12.
const DEEPEST: usize = 32;

/// Reads a directory.
///
/// # Errors
/// Where it cannot be listed at all.
pub(crate) fn read(root: &Path) -> std::io::Result<Opened> {
    let mut tree = Tree {
        files: Vec::new(),
        entries: 0,
        too_deep: 0,
    };
    let mut bundle = Bundle::default();
    let first = fs::read_dir(root)?;
    // `memtide check …/proc` means what `check …` does: its own name belongs to its files' paths.
    let name = root.file_name().and_then(|name| name.to_str());
    let name = name.filter(|name| ["proc", "sys"].contains(name));
    tree.list(first, name.unwrap_or_default(), 0, &mut bundle);
    tree.files.sort_unstable();
    tree.say(&mut bundle);
    bundle.is_sosreport = root.join("sos_commands").is_dir();
    for (name, path) in tree.files {
        if let Some(role) = bundle.role(&name) {
            match File::open(&path) {
                Ok(file) => bundle.file(&name, role, BufReader::with_capacity(64 << 10, file)),
                Err(error) => bundle.unreadable(&name, &error),
            }
        }
    }
    Ok(bundle.finish())
}

/// The files of a directory, by their names within it.
struct Tree {
    files: Vec<(String, PathBuf)>,
    entries: usize,
    too_deep: usize,
}

impl Tree {
    fn list(&mut self, entries: fs::ReadDir, below: &str, depth: usize, bundle: &mut Bundle) {
        for entry in entries.flatten() {
            self.entries += 1;
            if self.entries > MOST_ENTRIES {
                return;
            }
            // Names that are no text are none that memtide knows.
            let Some(name) = entry.file_name().to_str().map(|name| join(below, name)) else {
                continue;
            };
            match entry.file_type() {
                Ok(kind) if kind.is_file() => self.files.push((name, entry.path())),
                Ok(kind) if kind.is_dir() && depth == DEEPEST => self.too_deep += 1,
                Ok(kind) if kind.is_dir() => match fs::read_dir(entry.path()) {
                    Ok(entries) => self.list(entries, &name, depth + 1, bundle),
                    Err(error) => bundle.unreadable(&name, &error),
                },
                _ => {}
            }
        }
    }

    fn say(&self, bundle: &mut Bundle) {
        if self.entries > MOST_ENTRIES {
            bundle.paste.problem(format!(
                "only {MOST_ENTRIES} files and directories are looked at"
            ));
        }
        if self.too_deep > 0 {
            bundle.paste.problem(format!(
                "{} directories lie deeper than {DEEPEST} and are not read",
                self.too_deep
            ));
        }
    }
}

fn join(below: &str, name: &str) -> String {
    if below.is_empty() {
        name.to_owned()
    } else {
        format!("{below}/{name}")
    }
}
