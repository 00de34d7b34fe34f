//! Support bundles: a directory or an archive of saved files, such as `sosreport` and people make.
//!
//! Kernel files, whatever directory they were saved below, are read as the kernel's own and are of one moment. Output of
//! tools completes that moment. Logs are searched for kernel reports, which are the past. A bundle of two hosts is read as
//! its first: their files must not become one host's.

mod archive;
mod directory;
mod role;

use std::collections::HashSet;
use std::io::{BufRead, Read};

use timeline::{Entity, Sample, facts};
use units::PageSize;

pub(crate) use archive::is_tar;
pub(crate) use archive::read as read_archive;
pub(crate) use directory::read as read_directory;

use crate::decompress::{Started, unpack};
use crate::open::{Content, read_log, read_text};
use crate::paste::Paste;
use crate::sar::Stored;
use crate::{Input, Opened, SourceKind, capture};
use role::Role;

/// Files, directories and links of a bundle that are looked at; a large sosreport has 30,000.
const MOST_ENTRIES: usize = 200_000;
/// Kernel files: finding the row of a group among all takes time for each.
const MOST_KERNEL_FILES: usize = 40_000;
/// A kernel file's text has at most this.
const LARGEST_KERNEL_FILE: u64 = 16 << 20;
/// A tool's output about one moment has at most this.
const LARGEST_MOMENT: u64 = 4 << 20;
/// What is kept of such outputs until the kernel files are known.
const MOST_MOMENTS: usize = 64 << 20;

/// A bundle in the reading.
#[derive(Default)]
struct Bundle {
    paste: Paste,
    sample: Sample,
    /// What the kernel files lie below; one host's.
    host: Option<String>,
    read: HashSet<String>,
    counts: Counts,
    moments: Vec<(String, Vec<u8>)>,
    moments_bytes: usize,
    is_sosreport: bool,
}

/// Files that are too many to be listed one by one, and what was passed over.
#[derive(Default)]
struct Counts {
    tunables: usize,
    groups: usize,
    processes: usize,
    too_many: usize,
    twice: usize,
    of_other_hosts: usize,
    unreadable: usize,
    not_text: usize,
}

impl Bundle {
    /// What the file is to a bundle; `None` is not worth opening.
    fn role(&mut self, path: &str) -> Option<Role> {
        self.is_sosreport |= role::is_of_sosreport(path);
        let role = Role::of(path, self.is_sosreport)?;
        if let Role::Kernel {
            below,
            path: kernel,
        } = &role
        {
            let host = self.host.get_or_insert_with(|| below.clone());
            let refused = if host != below {
                if self.counts.of_other_hosts == 0 {
                    self.paste.problem(format!(
                        "kernel files of several hosts or moments: those below `{host}/` are read, those below `{below}/` are not"
                    ));
                }
                &mut self.counts.of_other_hosts
            } else if self.read.len() >= MOST_KERNEL_FILES {
                &mut self.counts.too_many
            } else if !self.read.insert(kernel.clone()) {
                &mut self.counts.twice
            } else {
                return Some(role);
            };
            *refused += 1;
            return None;
        }
        Some(role)
    }

    /// Reads a file. What is wrong with it costs itself only.
    fn file(&mut self, name: &str, role: Role, input: impl BufRead) {
        let read = match role {
            Role::Kernel { path, .. } => self.kernel_file(name, &path, input),
            Role::Moment => self.moment(name, input),
            Role::Series | Role::Log => self.text(name, &role, input),
        };
        if let Err(error) = read {
            self.unreadable(name, &error);
        }
    }

    fn unreadable(&mut self, name: &str, error: &std::io::Error) {
        self.counts.unreadable += 1;
        // Some kernel files of a live system, or of a copy of one, are nobody's to read.
        if self.counts.unreadable <= 3 {
            self.paste
                .problem(format!("{name} cannot be read: {error}"));
        }
    }

    fn kernel_file(&mut self, name: &str, path: &str, input: impl BufRead) -> std::io::Result<()> {
        let mut text = Vec::new();
        input.take(LARGEST_KERNEL_FILE).read_to_end(&mut text)?;
        match self.paste.kernel_text(path, &text, &mut self.sample) {
            Ok(false) => return Ok(()),
            Ok(true) => {}
            Err(error) => self.paste.problem(format!("{name}: {error}")),
        }
        if facts::ALL.iter().any(|fact| fact.file == path) {
            self.counts.tunables += 1;
        } else if path.starts_with("/sys/fs/cgroup/") {
            self.counts.groups += 1;
        } else if role::is_of_process(path) {
            self.counts.processes += 1;
        } else {
            self.list(name, path, &text);
        }
        Ok(())
    }

    /// Lists a kernel file among what was recognised, with the signals that it alone gives.
    fn list(&mut self, name: &str, path: &str, text: &[u8]) {
        let mut alone = Sample::default();
        let _ = self.paste.kernel_text(path, text, &mut alone);
        let host = alone.host.iter();
        let rows = Entity::ALL.map(|entity| alone.table(entity).rows());
        let entities = rows
            .iter()
            .flat_map(|rows| rows.iter())
            .flat_map(|row| row.row.iter());
        let mut signals: Vec<_> = host.chain(entities).map(|(id, _)| id.def().name).collect();
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
        });
    }

    fn moment(&mut self, name: &str, mut input: impl BufRead) -> std::io::Result<()> {
        let mut text = Vec::new();
        (&mut input).take(LARGEST_MOMENT).read_to_end(&mut text)?;
        if text.len() as u64 == LARGEST_MOMENT {
            return self.text(name, &Role::Series, text.as_slice().chain(input));
        }
        if self.moments_bytes + text.len() > MOST_MOMENTS {
            self.counts.too_many += 1;
            return Ok(());
        }
        self.moments_bytes += text.len();
        self.moments.push((name.to_owned(), text));
        Ok(())
    }

    /// Reads a text that is about more than the bundle's moment.
    fn text(&mut self, name: &str, role: &Role, input: impl BufRead) -> std::io::Result<()> {
        let mut input = input;
        if input.fill_buf()?.is_empty() {
            return Ok(());
        }
        let (packing, unpacked) = unpack(input)?;
        let started = Started::read(unpacked)?;
        match (Content::of(&started.start), role) {
            (Content::Text, Role::Log) => {
                read_log(&mut self.paste, name, packing, started);
            }
            (Content::Text, _) => {
                read_text(&mut self.paste, name, packing, started);
            }
            (Content::Sar(stored), _) => self.sar(name, stored, started),
            (Content::Capture, _) => self
                .paste
                .problem(format!("{name} is a capture: check it by itself")),
            (Content::Tar, _) => self
                .paste
                .problem(format!("{name} is an archive: check it by itself")),
            (Content::Other, Role::Log) => self.counts.not_text += 1,
            // Pictures and programs, whatever they are called.
            (Content::Other, _) => {}
        }
        Ok(())
    }

    fn sar(&mut self, name: &str, stored: Stored, mut started: Started<'_>) {
        match stored.read(&mut started.input) {
            Ok(document) => self.paste.document(document, name),
            Err(why) => self.paste.problem(format!("{name}: {why}")),
        }
    }

    fn finish(mut self) -> Opened {
        self.say();
        if self.host.is_some() {
            let page_size = capture::page_size(&self.sample);
            let facts = self.paste.facts();
            facts.page_size = facts.page_size.or(page_size);
            let sample = std::mem::take(&mut self.sample);
            self.paste.bundle(sample);
        }
        let mut moments = std::mem::take(&mut self.moments);
        // Names of files do not tell an order in time; a fixed one gives the same answer always.
        moments.sort_unstable();
        for (name, text) in moments {
            if self.fact(&name, &text) {
                continue;
            }
            if let Err(error) = self.text(&name, &Role::Series, text.as_slice()) {
                self.unreadable(&name, &error);
            }
        }
        self.paste.finish(SourceKind::Bundle)
    }

    /// Takes what a file of one line says of the host.
    fn fact(&mut self, path: &str, text: &[u8]) -> bool {
        let text = String::from_utf8_lossy(text);
        let line = text.lines().next().unwrap_or_default().trim();
        let facts = self.paste.facts();
        match path.rsplit('/').next() {
            Some("hostname") if !line.contains(' ') && line.len() < 256 => {
                facts.hostname = Some(line.to_owned());
            }
            Some("uname" | "uname_-a") => {
                let release = line
                    .strip_prefix("Linux ")
                    .and_then(|l| l.split(' ').nth(1));
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

    /// Says what was counted.
    fn say(&mut self) {
        for (count, what) in [
            (self.counts.tunables, "tunables"),
            (self.counts.groups, "control groups' files"),
            (self.counts.processes, "processes' files"),
        ] {
            if count > 0 {
                self.paste.input(Input {
                    form: "kernel file",
                    what: format!("{count} {what}"),
                    file: self.host.clone().unwrap_or_default(),
                    first_line: 1,
                    last_line: 1,
                    unit: "",
                    signals: Vec::new(),
                    not_understood: 0,
                });
            }
        }
        for (count, what) in [
            (
                self.counts.too_many,
                "files are beyond what is read of a bundle",
            ),
            (
                self.counts.twice,
                "files are there twice: the first ones are read",
            ),
            (
                self.counts.of_other_hosts,
                "kernel files of other places are not read",
            ),
            (
                self.counts.unreadable.saturating_sub(3),
                "more files cannot be read",
            ),
            (
                self.counts.not_text,
                "logs are no text, as the journal's own files: add journalctl -k of them",
            ),
        ] {
            if count > 0 {
                self.paste.problem(format!("{count} {what}"));
            }
        }
    }
}
