//! A bundle in a directory. Links are not followed, so nothing outside is read, and nothing twice. Only files and
//! directories are opened: a pipe would block.

use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use super::{Bundle, ENTRIES_MAX};
use crate::input_file::InputFile;
use timeline::Source;

/// At most 32 levels of directories; `/sys/fs/cgroup` of a large host has 12.
const DEEPEST: usize = 32;

/// Reads a directory.
///
/// # Errors
/// If it cannot be listed.
pub(crate) fn read(root: &Path) -> std::io::Result<Source> {
    let mut tree = FileTree::default();
    let mut bundle = Bundle::default();
    let first = fs::read_dir(root)?;
    // `memtide check …/proc` reads the same files as `memtide check …`: their paths begin with `proc`.
    let name = root
        .file_name()
        .and_then(|name| name.to_str())
        .filter(|name| ["proc", "sys"].contains(name));
    tree.list(first, name.unwrap_or_default(), 0, &mut bundle);
    tree.files.sort_unstable();
    tree.note_limits(&mut bundle);
    bundle.is_sosreport = root.join("sos_commands").is_dir();
    for (name, path) in tree.files {
        if let Some(role) = bundle.role(&name) {
            match InputFile::open_regular(&path) {
                Ok(file) => bundle.file(&name, role, BufReader::with_capacity(64 << 10, file)),
                Err(error) => bundle.unreadable(&name, &error),
            }
        }
    }
    Ok(bundle.finish())
}

/// The files of a directory, with their paths within it.
#[derive(Default)]
struct FileTree {
    files: Vec<(String, PathBuf)>,
    entries: usize,
    too_deep: usize,
}

impl FileTree {
    fn list(&mut self, entries: fs::ReadDir, below: &str, depth: usize, bundle: &mut Bundle) {
        for entry in entries.flatten() {
            self.entries += 1;
            if self.entries > ENTRIES_MAX {
                return;
            }
            // No file that memtide reads has a name that is not UTF-8.
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

    fn note_limits(&self, bundle: &mut Bundle) {
        if self.entries > ENTRIES_MAX {
            bundle.paste.problem(format!("only {ENTRIES_MAX} files and directories are read"));
        }
        if self.too_deep > 0 {
            bundle.paste.problem(format!(
                "{} directories are nested more than {DEEPEST} deep and are not read",
                self.too_deep
            ));
        }
    }
}

fn join(below: &str, name: &str) -> String {
    if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") }
}
