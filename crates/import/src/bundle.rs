//! Support bundles: a directory or an archive of saved files, as `sosreport` makes them.
//!
//! Kernel files may be saved below any directory. They are of one time, and output of tools completes that sample. Logs
//! are searched for kernel reports. Of a bundle of two hosts the first is read: files of two hosts are never mixed.

mod archive;
mod directory;
mod role;
mod sosreport;

use std::collections::HashSet;
use std::io::{BufRead, Read};

use timeline::{Sample, facts};
use units::PageSize;

pub(crate) use archive::read as read_archive;
pub(crate) use directory::read as read_directory;

use crate::builder::signals_in;
use crate::capture;
use crate::content::FileContent;
use crate::decompress::{Started, unpack};
use crate::paste::Paste;
use role::BundleRole;
use timeline::{Input, Source, SourceKind};

/// At most 200,000 files, directories and links; a large sosreport has 30,000.
const ENTRIES_MAX: usize = 200_000;
/// At most 40,000 kernel files: each costs a search for the row of its cgroup.
const KERNEL_FILES_MAX: usize = 40_000;
/// At most 16 MiB of one kernel file.
const KERNEL_FILE_BYTES_MAX: u64 = 16 << 20;
/// At most 4 MiB of the output of one tool that completes the sample.
const OUTPUT_BYTES_MAX: u64 = 4 << 20;
/// At most 64 MiB of all such outputs, which stay in memory until all kernel files are read.
const OUTPUTS_MAX: usize = 64 << 20;

/// Reads the files of a bundle.
#[derive(Default)]
struct Bundle {
    paste: Paste,
    sample: Sample,
    /// The directory above `proc` and `sys`.
    root: Option<String>,
    read: HashSet<String>,
    counts: Counts,
    outputs: Vec<(String, Vec<u8>)>,
    outputs_bytes: usize,
    is_sosreport: bool,
}

/// Files that are not listed one by one.
#[derive(Default)]
struct Counts {
    tunables: usize,
    cgroups: usize,
    processes: usize,
    too_many: usize,
    twice: usize,
    other_roots: usize,
    unreadable: usize,
    not_text: usize,
}

impl Bundle {
    /// What the file is read as; `None` if it need not be opened.
    fn role(&mut self, path: &str) -> Option<BundleRole> {
        self.is_sosreport |= sosreport::is_of_sosreport(path);
        let role = BundleRole::from_path(path, self.is_sosreport)?;
        if let BundleRole::Kernel { below, path: kernel } = &role {
            let root = self.root.get_or_insert_with(|| below.clone());
            let skipped = if root != below {
                if self.counts.other_roots == 0 {
                    self.paste.problem(format!(
                        "kernel files of several hosts or times: those below `{root}/` are read, \
                         those below `{below}/` are not"
                    ));
                }
                &mut self.counts.other_roots
            } else if self.read.len() >= KERNEL_FILES_MAX {
                &mut self.counts.too_many
            } else if !self.read.insert(kernel.clone()) {
                &mut self.counts.twice
            } else {
                return Some(role);
            };
            *skipped += 1;
            return None;
        }
        Some(role)
    }

    /// Reads a file. Its errors become problems.
    fn file(&mut self, name: &str, role: BundleRole, input: impl BufRead) {
        let read = match role {
            BundleRole::Kernel { path, .. } => self.kernel_file(name, &path, input),
            BundleRole::Output => self.output(name, input),
            BundleRole::Series | BundleRole::Log => self.text(name, &role, input),
        };
        if let Err(error) = read {
            self.unreadable(name, &error);
        }
    }

    fn unreadable(&mut self, name: &str, error: &std::io::Error) {
        self.counts.unreadable += 1;
        // A live system has many unreadable kernel files: only the first three are named.
        if self.counts.unreadable <= 3 {
            self.paste.problem(format!("{name} cannot be read: {error}"));
        }
    }

    fn kernel_file(&mut self, name: &str, path: &str, input: impl BufRead) -> std::io::Result<()> {
        let mut text = Vec::new();
        input.take(KERNEL_FILE_BYTES_MAX).read_to_end(&mut text)?;
        match self.paste.kernel_text(path, &text, &mut self.sample) {
            Ok(false) => return Ok(()),
            Ok(true) => {}
            Err(error) => self.paste.problem(format!("{name}: {error}")),
        }
        let is_tunable = facts::ALL.iter().any(|fact| fact.file == path);
        if is_tunable || path.starts_with("/sys/kernel/mm/hugepages/") {
            self.counts.tunables += 1;
        } else if path.starts_with("/sys/fs/cgroup/") {
            self.counts.cgroups += 1;
        } else if role::is_of_process(path) {
            self.counts.processes += 1;
        } else {
            self.list(name, path, &text);
        }
        Ok(())
    }

    /// Lists a kernel file with the signals that it has.
    fn list(&mut self, name: &str, path: &str, text: &[u8]) {
        let mut alone = Sample::default();
        let _ = self.paste.kernel_text(path, text, &mut alone);
        let mut signals: Vec<_> = signals_in(&alone).collect();
        signals.sort_unstable();
        signals.dedup();
        self.paste.input(Input {
            form: "kernel file",
            what: path.to_owned(),
            file: name.to_owned(),
            first_line: 1,
            last_line: memchr::memchr_iter(b'\n', text).count().max(1),
            unit: "",
            signals,
            not_understood: 0,
            other_system: "",
        });
    }

    fn output(&mut self, name: &str, mut input: impl BufRead) -> std::io::Result<()> {
        let mut text = Vec::new();
        (&mut input).take(OUTPUT_BYTES_MAX).read_to_end(&mut text)?;
        if text.len() as u64 == OUTPUT_BYTES_MAX {
            return self.text(name, &BundleRole::Series, text.as_slice().chain(input));
        }
        if self.outputs_bytes + text.len() > OUTPUTS_MAX {
            self.counts.too_many += 1;
            return Ok(());
        }
        self.outputs_bytes += text.len();
        self.outputs.push((name.to_owned(), text));
        Ok(())
    }

    /// Reads a text.
    fn text(
        &mut self,
        name: &str,
        role: &BundleRole,
        mut input: impl BufRead,
    ) -> std::io::Result<()> {
        if input.fill_buf()?.is_empty() {
            return Ok(());
        }
        let (packing, unpacked) = unpack(input)?;
        let mut started = Started::read(unpacked)?;
        match (FileContent::recognise(&started.start), role) {
            (FileContent::Text, BundleRole::Log) => {
                let mut input = started.input;
                self.paste.search(name, packing, &mut input);
            }
            (FileContent::Text, _) => {
                self.paste.read_stream(name, packing, started);
            }
            (FileContent::Sar(format), _) => match format.read(&mut started.input) {
                Ok(document) => self.paste.document(document, name),
                Err(why) => self.paste.problem(format!("{name}: {why}")),
            },
            (FileContent::Capture, _) => {
                self.paste.problem(format!("{name} is a capture: check it separately"))
            }
            (FileContent::ProcessTable, _) => {
                self.paste.problem(format!("{name} is a table of a process: read it separately"))
            }
            (FileContent::Tar, _) => {
                self.paste.problem(format!("{name} is an archive: check it separately"))
            }
            (FileContent::Other, BundleRole::Log) => self.counts.not_text += 1,
            // Pictures, programs …
            (FileContent::Other, _) => {}
        }
        Ok(())
    }

    fn finish(mut self) -> Source {
        self.note_counts();
        if self.root.is_some() {
            let page_size = capture::page_size(&self.sample);
            let facts = self.paste.facts();
            facts.page_size = facts.page_size.or(page_size);
            let sample = std::mem::take(&mut self.sample);
            self.paste.add_bundle(sample);
        }
        let mut outputs = std::mem::take(&mut self.outputs);
        // A fixed order always gives the same answer.
        outputs.sort_unstable();
        for (name, text) in outputs {
            if self.fact(&name, &text) {
                continue;
            }
            if let Err(error) = self.text(&name, &BundleRole::Series, text.as_slice()) {
                self.unreadable(&name, &error);
            }
        }
        self.paste.finish(SourceKind::Bundle)
    }

    /// Reads a fact from a file of one line. Returns whether it is one.
    fn fact(&mut self, path: &str, text: &[u8]) -> bool {
        let text = String::from_utf8_lossy(text);
        let line = text.lines().next().unwrap_or_default().trim();
        let facts = self.paste.facts();
        match path.rsplit('/').next() {
            Some("hostname") if !line.contains(' ') && line.len() < 256 => {
                facts.hostname = Some(line.to_owned());
            }
            Some("uname" | "uname_-a") => {
                let release = line.strip_prefix("Linux ").and_then(|l| l.split(' ').nth(1));
                if let Some(release) = release {
                    facts.note_release(release);
                }
                if line.contains("x86_64") {
                    facts.page_size.get_or_insert(PageSize::USUAL);
                }
            }
            _ => return false,
        }
        true
    }

    /// Lists what was counted, and what was skipped.
    fn note_counts(&mut self) {
        for (count, what) in [
            (self.counts.tunables, "tunables"),
            (self.counts.cgroups, "files of cgroups"),
            (self.counts.processes, "files of processes"),
        ] {
            if count > 0 {
                self.paste.input(Input {
                    form: "kernel file",
                    what: format!("{count} {what}"),
                    file: self.root.clone().unwrap_or_default(),
                    first_line: 1,
                    last_line: 1,
                    unit: "",
                    signals: Vec::new(),
                    not_understood: 0,
                    other_system: "",
                });
            }
        }
        for (count, what) in [
            (self.counts.too_many, "files are left out: the bundle is too large"),
            (self.counts.twice, "files occur twice: the first ones are read"),
            (self.counts.other_roots, "kernel files below other directories are not read"),
            (self.counts.unreadable.saturating_sub(3), "more files cannot be read"),
            (
                self.counts.not_text,
                "logs are not text (journal files?) and are not read: add the output of journalctl \
                 -k",
            ),
        ] {
            if count > 0 {
                self.paste.problem(format!("{count} {what}"));
            }
        }
    }
}
