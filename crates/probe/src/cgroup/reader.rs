//! Reads the files of one cgroup after another, and parses them.

use std::ops::Range;

use rustix::io::Errno;
use timeline::{Entity, Row, facts::CgroupMode};
use units::Span;

use crate::cgroup::files::CgroupFiles;
use crate::cgroup::kept_files::{FileTiers, KeptFiles};
use crate::cgroup::tree::CgroupTree;
use crate::directory::{Directory, Sink, Walk};
use crate::kernel_file::Root;

/// What a pass is about.
pub(super) struct CgroupPass<'a> {
    pub(super) mount: Directory,
    pub(super) mode: CgroupMode,
    /// When it is, on the boot clock.
    pub(super) at: Span,
    pub(super) sink: Option<Sink<'a>>,
    pub(super) walk: Walk,
}

/// Reads the files of one cgroup after another.
#[derive(Debug)]
pub(super) struct CgroupReader {
    pub(super) kept: KeptFiles,
    pub(super) files: CgroupFiles,
    /// The text of the current file.
    pub(super) text: Vec<u8>,
    /// The path under which the text is passed to the sink.
    shown: String,
    /// Readings that are not, or not yet, part of a sample.
    pub(super) row: Row,
}

impl CgroupReader {
    /// From one reading of a cgroup's limits to the next, where there are many cgroups.
    const LEVELS_SECONDS: Range<u64> = 90..121;

    pub(super) fn new(root: &Root) -> Self {
        Self {
            kept: KeptFiles::new(root),
            files: CgroupFiles::default(),
            text: Vec::new(),
            shown: String::new(),
            row: Row::default(),
        }
    }

    /// Reads one of the files that are read often.
    pub(super) fn read_often(
        &mut self,
        tree: &mut CgroupTree,
        index: usize,
        file: usize,
        pass: &CgroupPass<'_>,
    ) -> Result<(), Errno> {
        let node = tree.node_mut(index);
        let at = (&pass.mount, &node.path[..], FileTiers::of(pass.mode).often[file]);
        self.kept.read(&mut node.files[file], true, at, &mut self.text)
    }

    /// Reads the files that are read rarely.
    pub(super) fn read_levels(
        &mut self,
        tree: &mut CgroupTree,
        index: usize,
        tiers: &FileTiers,
        key: &str,
        pass: &mut CgroupPass<'_>,
    ) {
        let mut row = std::mem::take(&mut self.row);
        row.clear();
        for name in tiers.rarely {
            let at = (&pass.mount, &tree.node(index).path[..], *name);
            let result = self.kept.read(&mut None, false, at, &mut self.text);
            self.parse(name, key, result, &mut row, pass);
        }
        let node = tree.node_mut(index);
        node.levels.clear();
        node.levels.extend(row.iter());
        // Not all are due in one pass.
        let seconds = Self::LEVELS_SECONDS.start
            + index as u64 % (Self::LEVELS_SECONDS.end - Self::LEVELS_SECONDS.start);
        node.levels_due = pass.at.plus(Span::from_secs(seconds));
        self.row = row;
    }

    /// Parses the text of a file, passes it to the sink, and notes what is wrong with it.
    pub(super) fn parse(
        &mut self,
        name: &str,
        key: &str,
        result: Result<(), Errno>,
        row: &mut Row,
        pass: &mut CgroupPass<'_>,
    ) {
        if let Err(errno) = result {
            pass.walk.note_errno_of(Entity::Cgroup, name, errno);
            return;
        }
        if let Some(sink) = &mut pass.sink {
            self.shown.clear();
            self.shown.push_str(mode_path(pass.mode));
            self.shown.push_str(key.trim_end_matches('/'));
            self.shown.push('/');
            self.shown.push_str(name);
            sink(&self.shown, &self.text);
        }
        pass.walk.note_parse(self.files.parse(pass.mode, name, &self.text, row));
    }
}

/// Returns the path that the catalogue uses for a version's files.
const fn mode_path(mode: CgroupMode) -> &'static str {
    match mode {
        CgroupMode::V1 => "/sys/fs/cgroup/memory",
        CgroupMode::V2 => "/sys/fs/cgroup",
    }
}
