//! All cgroups and their memory: passes over the whole hierarchy, and readings of the busiest ones in between.
//!
//! A pass finds the cgroups that came and went ([`super::tree`]), reads every usage, and then the other files of the
//! largest. Bounds: 2,048 cgroups become rows, 16,384 are known, eight levels deep; cgroups beyond these are counted.
//! Cgroups that vanish meanwhile are skipped. Files that are read often stay open ([`super::kept_files`]); limits, and other
//! levels that are of little use alone, are read every two minutes on a host with many cgroups, and their rows repeat the
//! last reading.
//!
//! Between two passes the busiest can be read: those that met a limit or had a kill, then those with the largest change
//! of usage. Which met a limit is found by reading that counter of some others in turn, and on v2 from the kernel, which
//! reports changes of `memory.events` to `poll`. Such a sample is partial: a cgroup without a row was not read.
//!
//! Cost, measured on 6.18 with v1: see `crates/sampler/benches/groups.rs`.

use std::cmp::Reverse;
use std::ops::Range;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use timeline::signals::{CGROUP_EVENTS_HIGH, CGROUP_EVENTS_MAX, CGROUP_EVENTS_OOM_KILL};
use timeline::{Entity, Row, Sample, facts::CgroupMode};
use units::{Count, Span};

use crate::cgroup::busiest::BusiestCgroups;
use crate::cgroup::dying::DyingCgroups;
use crate::cgroup::event_watch::EventWatch;
use crate::cgroup::files::CgroupFiles;
use crate::cgroup::hierarchy::Hierarchy;
use crate::cgroup::kept_files::{FileTiers, KeptFiles};
use crate::cgroup::tree::CgroupTree;
use crate::directory::{Directory, Sink, Walk};
use crate::kernel_file::Root;
use crate::text;

/// The hierarchy that manages memory, ready for repeated passes.
#[derive(Debug)]
pub struct Cgroups {
    root: Root,
    /// Where it is mounted; searched again now and then until found, as cgroups may be mounted late.
    mounted: Option<(CgroupMode, PathBuf)>,
    /// Passes until the next search, as a search allocates.
    search_in: u32,
    tree: CgroupTree,
    busiest: BusiestCgroups,
    events: EventWatch,
    /// On v1, where they can be counted.
    dying: Option<DyingCgroups>,
    /// The path below the mount of the cgroup that is read with every sample.
    followed: Option<Vec<u8>>,
    /// Questions which cgroups met a limit, so far.
    rounds: u64,
    /// Passes so far.
    passes: u64,
    /// The cgroups that become rows, in order.
    order: Vec<usize>,
    reader: CgroupReader,
}

/// Reads the files of one cgroup after another.
#[derive(Debug)]
struct CgroupReader {
    kept: KeptFiles,
    files: CgroupFiles,
    /// The text of the current file.
    text: Vec<u8>,
    /// The path under which the text is passed to the sink.
    shown: String,
    /// Readings that are not, or not yet, part of a sample.
    row: Row,
}

/// Returns the keys of this host's cgroups, from listings alone.
pub fn cgroup_keys(root: &Root) -> Vec<String> {
    let mount =
        Hierarchy::find(root).and_then(|found| Directory::open(&root.path(&found.point)).ok());
    let Some(mount) = mount else {
        return Vec::new();
    };
    let mut tree = CgroupTree::default();
    tree.refresh(&mount, &mut KeptFiles::new(root), &mut Walk::default());
    let keys = tree.indexes().map(|index| tree.node(index).key.clone());
    keys.collect()
}

/// What a pass is about.
struct CgroupPass<'a> {
    mount: Directory,
    mode: CgroupMode,
    /// When it is, on the boot clock.
    at: Span,
    sink: Option<Sink<'a>>,
    walk: Walk,
}

impl Cgroups {
    /// Cgroups that become rows: a large Kubernetes node has 110 pods of a few containers each.
    const REQUESTED_MAX: usize = 2_048;
    /// Cgroups in the followed one that become rows with it.
    const FOLLOWED_MAX: usize = 32;
    /// Passes between two searches for a mount.
    const SEARCH_EVERY: u32 = 60;
    /// Capacity for a cgroup's path. Cgroups change places from pass to pass as their sizes do, and a longer path in a
    /// row that had a shorter one must not be allocated; a pod's container takes 190 bytes.
    const KEY_ROOM: usize = 256;
    /// Up to this many cgroups, all files are read in each pass.
    const LEVELS_ALWAYS_MAX: usize = 128;

    /// Creates a walk over the cgroups below `root`.
    pub fn new(root: &Root) -> Self {
        Self {
            root: root.clone(),
            mounted: None,
            search_in: 0,
            tree: CgroupTree::default(),
            busiest: BusiestCgroups::default(),
            events: EventWatch::default(),
            dying: None,
            followed: None,
            rounds: 0,
            passes: 0,
            order: Vec::new(),
            reader: CgroupReader {
                kept: KeptFiles::new(root),
                files: CgroupFiles::default(),
                text: Vec::new(),
                shown: String::new(),
                row: Row::default(),
            },
        }
    }

    /// Reads the cgroups into rows of `sample`: first the mount itself, then by falling usage.
    pub fn sample(&mut self, sample: &mut Sample) -> Walk {
        self.pass(sample, None)
    }

    /// Like [`sample`](Self::sample), and passes each text that is read to `sink`. Wherever the hierarchy is mounted,
    /// files have the path that the catalogue uses: below `/sys/fs/cgroup`, those of v1 below `/sys/fs/cgroup/memory`.
    pub fn sample_showing(&mut self, sample: &mut Sample, sink: Sink<'_>) -> Walk {
        self.pass(sample, Some(sink))
    }

    /// The number of cgroups that the last pass found.
    pub fn known(&self) -> usize {
        self.tree.len()
    }

    /// Has [`sample_busiest`](Self::sample_busiest) always read the cgroup with this key, those around it, and 32 of those
    /// in it. It need not exist yet.
    pub fn follow(&mut self, key: &str) {
        self.followed = Some(key.trim_matches('/').as_bytes().to_owned());
    }

    /// Whether a cgroup is followed.
    pub fn follows(&self) -> bool {
        self.followed.is_some()
    }

    /// Reads the followed and the busiest cgroups into rows of `sample`, `busiest_max` of these, which becomes partial.
    /// Before, reads of `probes` other ones whether they met a limit; then they are busy too.
    pub fn sample_busiest(
        &mut self,
        sample: &mut Sample,
        busiest_max: usize,
        probes: usize,
    ) -> Walk {
        let mut pass = match self.begin(sample, None) {
            Ok(pass) => pass,
            Err(errno) => return Walk::absent(errno),
        };
        self.note_hits(probes, &pass);
        self.order.clear();
        let outwards = self.order_followed();
        let followed = self.order.len();
        for index in self.busiest.all().filter(|index| self.tree.has(*index)) {
            if self.order.len() < followed + busiest_max && !self.order[..followed].contains(&index)
            {
                self.order.push(index);
            }
        }
        for at in 0..self.order.len() {
            let index = self.order[at];
            if !self.row(index, at < outwards, sample, &mut pass) {
                self.busiest.remove(index);
            }
        }
        sample.table_mut(Entity::Cgroup).set_partial();
        pass.walk
    }

    /// Ranks cgroups that met a limit before all others: those that the kernel reports, then those of `probes` that are
    /// asked. A limit hit is one of those around the cgroup, too, which are read after it; and with few readings each has
    /// its turn.
    fn note_hits(&mut self, probes: usize, pass: &CgroupPass<'_>) {
        let Self { tree, busiest, reader, events, order, .. } = self;
        self.rounds += 1;
        let round = self.rounds;
        order.clear();
        events.each(|index| {
            if tree.has(index) {
                order.push(index);
            }
        });
        for index in order.iter() {
            tree.note_hit(*index, round);
        }
        // The last one comes first.
        order.sort_unstable_by_key(|index| {
            let node = tree.node(*index);
            (node.hit_below != round, Reverse(node.read_at))
        });
        for index in order.iter() {
            busiest.add_hit(*index);
        }
        let hits = FileTiers::of(pass.mode).hits;
        for index in busiest.in_turn(tree.end(), probes) {
            let is_asked = tree.has(index) && !tree.node(index).is_watched && !busiest.has(index);
            if is_asked && reader.met_limit(tree, index, hits, pass) {
                busiest.add_hit(index);
            }
        }
    }

    /// Adds the followed cgroup and those around it to the order, then those in it. Returns how many are the former.
    fn order_followed(&mut self) -> usize {
        let Some(path) = &self.followed else {
            return 0;
        };
        self.order.extend(self.tree.outwards(path));
        let outwards = self.order.len();
        let inwards = self.tree.inwards(path).take(Self::FOLLOWED_MAX);
        self.order.extend(inwards);
        outwards
    }

    fn pass(&mut self, sample: &mut Sample, sink: Option<Sink<'_>>) -> Walk {
        let mut pass = match self.begin(sample, sink) {
            Ok(pass) => pass,
            Err(errno) => return Walk::absent(errno),
        };
        self.passes += 1;
        // Twice, as a cgroup that was removed may have been made anew.
        for _ in 0..2 {
            self.tree.refresh(&pass.mount, &mut self.reader.kept, &mut pass.walk);
            if !self.read_usages(&mut pass) {
                break;
            }
        }
        if let Some(dying) = &mut self.dying
            && self.tree.left_out() == 0
        {
            dying.count(self.tree.len(), sample);
        }
        self.choose_rows(&mut pass.walk);
        for at in 0..self.order.len() {
            self.row(self.order[at], false, sample, &mut pass);
        }
        let is_first = self.passes == 1;
        self.busiest.rank(&mut self.tree, is_first);
        pass.walk
    }

    /// Opens the mount.
    fn begin<'a>(
        &mut self,
        sample: &Sample,
        sink: Option<Sink<'a>>,
    ) -> Result<CgroupPass<'a>, Errno> {
        let at = sample.stamp.boot;
        let (mode, point) = self.mounted().ok_or(Errno::NOENT)?;
        let mount = Directory::open(point)?;
        Ok(CgroupPass { mount, mode, at, sink, walk: Walk::default() })
    }

    fn mounted(&mut self) -> Option<(CgroupMode, &Path)> {
        if self.mounted.is_none() {
            if self.search_in > 0 {
                self.search_in -= 1;
                return None;
            }
            self.search_in = Self::SEARCH_EVERY;
            let found = Hierarchy::find(&self.root)?;
            let point = self.root.path(&found.point);
            if found.mode == CgroupMode::V1 {
                self.dying = DyingCgroups::open(&self.root, &point);
            }
            self.mounted = Some((found.mode, point));
        }
        let (mode, point) = self.mounted.as_ref()?;
        Some((*mode, point))
    }

    /// Reads the usage of each cgroup that this pass has not read. Returns whether one was found to be removed.
    fn read_usages(&mut self, pass: &mut CgroupPass<'_>) -> bool {
        let Self { tree, reader, events, .. } = self;
        let mut has_removed = false;
        for index in 0..tree.end() {
            if !tree.has(index) || tree.node(index).pass == self.passes {
                continue;
            }
            let node = tree.node_mut(index);
            let had_usage = node.usage.is_some();
            node.pass = self.passes;
            match reader.read_often(tree, index, 0, pass) {
                // A text that is not a number sorts last; reading the row reports it.
                Ok(()) => {
                    let usage = text::number(text::trim(&reader.text)).unwrap_or(0);
                    tree.node_mut(index).usage = Some(usage);
                    tree.node_mut(index).now.usage = usage;
                    reader.watch(tree, index, events, pass);
                }
                Err(Errno::NODEV) => {
                    tree.forget(index, &mut reader.kept);
                    has_removed = true;
                }
                Err(Errno::NOENT) if had_usage => {
                    tree.forget(index, &mut reader.kept);
                    has_removed = true;
                }
                Err(errno) => {
                    // On v2 a cgroup without the controller has no memory file, and neither have its descendants.
                    tree.node_mut(index).usage = None;
                    pass.walk.note_errno(errno);
                }
            }
        }
        has_removed
    }

    /// Chooses the cgroups that become rows: the busiest and the largest, by falling usage.
    fn choose_rows(&mut self, walk: &mut Walk) {
        let Self { tree, busiest, order, followed, .. } = self;
        let is_followed = |index: &usize| {
            let path = &tree.node(*index).path[..];
            let followed = followed.as_deref();
            followed.is_some_and(|followed| is_within(path, followed) || is_within(followed, path))
        };
        order.clear();
        order.extend(tree.indexes().filter(|index| {
            let node = tree.node(*index);
            node.depth == 0 || node.usage.is_some()
        }));
        walk.left_out += tree.left_out();
        let size = |index: &usize| {
            let node = tree.node(*index);
            (Reverse(if node.depth == 0 { u64::MAX } else { node.now.usage }), node.depth, *index)
        };
        if let Some(beyond) = order.len().checked_sub(Self::REQUESTED_MAX).filter(|n| *n > 0) {
            order.select_nth_unstable_by_key(Self::REQUESTED_MAX, |index| {
                let comes_first = busiest.has(*index) || is_followed(index);
                (Reverse(comes_first), size(index))
            });
            order.truncate(Self::REQUESTED_MAX);
            walk.left_out += beyond;
        }
        order.sort_unstable_by_key(size);
    }

    /// Reads the files of a cgroup into a row, `with_levels` those that change rarely, too. Returns whether there is one:
    /// none if the cgroup was removed.
    fn row(
        &mut self,
        index: usize,
        with_levels: bool,
        sample: &mut Sample,
        pass: &mut CgroupPass<'_>,
    ) -> bool {
        let Self { tree, reader, .. } = self;
        tree.node_mut(index).read_at = pass.at;
        let table = sample.table_mut(Entity::Cgroup);
        let entity = table.add();
        entity.key.reserve(Self::KEY_ROOM);
        entity.key.push_str(&tree.node(index).key);
        let tiers = FileTiers::of(pass.mode);
        for (file, name) in tiers.often.iter().enumerate() {
            let mut result = reader.read_often(tree, index, file, pass);
            if result == Err(Errno::NODEV) {
                // It was removed, and may have been made again since.
                tree.reopen(index, &mut reader.kept);
                result = reader.read_often(tree, index, file, pass);
            }
            reader.parse(name, &entity.key, result, &mut entity.row, pass);
        }
        let is_due = with_levels || tree.node(index).levels_due <= pass.at;
        if is_due || tree.len() <= Self::LEVELS_ALWAYS_MAX {
            reader.read_levels(tree, index, tiers, &entity.key, pass);
        }
        if entity.row.is_empty() && tree.node(index).usage.is_some() {
            table.drop_last();
            return false;
        }
        for (signal, raw) in &tree.node(index).levels {
            entity.row.set_raw(*signal, *raw);
        }
        if entity.row.is_empty() {
            table.drop_last();
            return false;
        }
        pass.walk.read += 1;
        let node = tree.node_mut(index);
        node.probed = Some(limit_hits(&entity.row));
        node.now.hits = limit_hits(&entity.row).saturating_add(kills(&entity.row));
        true
    }
}

/// Whether a cgroup is another one or lies in it.
fn is_within(path: &[u8], outer: &[u8]) -> bool {
    let below = path.strip_prefix(outer);
    below.is_some_and(|below| below.is_empty() || below.starts_with(b"/"))
}

/// Returns how often a cgroup met a limit, on v2 with its descendants.
fn limit_hits(row: &Row) -> u64 {
    let hits = [CGROUP_EVENTS_MAX, CGROUP_EVENTS_HIGH].map(|signal| row.get(signal));
    let counts = hits.into_iter().flatten().map(Count::get);
    counts.fold(0, u64::saturating_add)
}

fn kills(row: &Row) -> u64 {
    row.get(CGROUP_EVENTS_OOM_KILL).map_or(0, Count::get)
}

impl CgroupReader {
    /// From one reading of a cgroup's limits to the next, where there are many cgroups.
    const LEVELS_SECONDS: Range<u64> = 90..121;

    /// Reads one of the files that are read often.
    fn read_often(
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
    fn read_levels(
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
    fn parse(
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

    /// Has the kernel report limit hits and kills of a cgroup, where it can: the file is opened before those that are only
    /// read, as not all may stay open.
    fn watch(
        &mut self,
        tree: &mut CgroupTree,
        index: usize,
        events: &mut EventWatch,
        pass: &CgroupPass<'_>,
    ) {
        let node = tree.node(index);
        if pass.mode == CgroupMode::V1
            || node.is_watched
            || node.depth == 0
            || !self.kept.has_room()
        {
            return;
        }
        let hits = FileTiers::of(pass.mode).hits;
        let is_read = self.read_often(tree, index, hits, pass).is_ok();
        let node = tree.node_mut(index);
        if let Some(file) = node.files[hits].as_ref().filter(|_| is_read) {
            node.is_watched = events.add(file, index);
        }
    }

    /// Whether a cgroup met a limit since its last row.
    fn met_limit(
        &mut self,
        tree: &mut CgroupTree,
        index: usize,
        file: usize,
        pass: &CgroupPass<'_>,
    ) -> bool {
        if tree.node(index).usage.is_none() || self.read_often(tree, index, file, pass).is_err() {
            return false;
        }
        self.row.clear();
        let name = FileTiers::of(pass.mode).often[file];
        let parsed = self.files.parse(pass.mode, name, &self.text, &mut self.row);
        let node = tree.node_mut(index);
        let hits = limit_hits(&self.row);
        let before = node.probed.replace(hits);
        parsed.is_ok() && before.is_some_and(|before| before < hits)
    }
}

/// Returns the path that the catalogue uses for a version's files.
const fn mode_path(mode: CgroupMode) -> &'static str {
    match mode {
        CgroupMode::V1 => "/sys/fs/cgroup/memory",
        CgroupMode::V2 => "/sys/fs/cgroup",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use timeline::signals::{CGROUP_ANON, CGROUP_CURRENT, CGROUP_MAX};
    use units::{Bytes, Limit};

    fn group(at: &Path, current: u64) {
        fs::create_dir_all(at).unwrap();
        fs::write(at.join("memory.current"), format!("{current}\n")).unwrap();
        fs::write(at.join("memory.max"), "max\n").unwrap();
        fs::write(at.join("memory.stat"), format!("anon {current}\nfile 0\n")).unwrap();
    }

    /// A v2 machine: its root cgroup has no usage of its own.
    fn machine() -> (tempfile::TempDir, std::path::PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let mount = directory.path().join("sys/fs/cgroup");
        fs::create_dir_all(&mount).unwrap();
        fs::write(mount.join("cgroup.controllers"), "memory\n").unwrap();
        fs::write(mount.join("memory.stat"), "anon 5\n").unwrap();
        (directory, mount)
    }

    fn read(directory: &Path) -> (Sample, Walk) {
        let mut sample = Sample::default();
        let mut cgroups = Cgroups::new(&Root::at(directory));
        let first = cgroups.sample(&mut sample);
        sample.clear();
        let walk = cgroups.sample(&mut sample);
        assert_eq!(first, walk, "a second walk sees the same");
        (sample, walk)
    }

    fn keys(sample: &Sample) -> Vec<&str> {
        let rows = sample.table(Entity::Cgroup).rows();
        rows.iter().map(|row| row.key.as_str()).collect()
    }

    #[test]
    fn groups_come_largest_first_with_their_path_as_key() {
        let (directory, mount) = machine();
        group(&mount.join("small"), 10);
        group(&mount.join("system.slice"), 100);
        group(&mount.join("system.slice/a.service"), 60);
        group(&mount.join("system.slice/b.service"), 5);
        fs::create_dir(mount.join("no-controller")).unwrap();
        let (sample, walk) = read(directory.path());
        assert_eq!(
            keys(&sample),
            ["/", "/system.slice", "/system.slice/a.service", "/small", "/system.slice/b.service"]
        );
        assert_eq!((walk.read, walk.left_out, walk.denied), (5, 0, 0));
        let rows = sample.table(Entity::Cgroup).rows();
        assert_eq!(rows[0].row.get(CGROUP_CURRENT), None);
        assert_eq!(rows[2].row.get(CGROUP_ANON), Some(Bytes::new(60)));
        assert_eq!(rows[2].row.get(CGROUP_MAX), Some(Limit::Unlimited));
    }

    #[test]
    fn a_followed_cgroup_is_read_with_those_around_and_in_it() {
        let (directory, mount) = machine();
        for path in ["pod", "pod/web", "pod/web/worker", "pod/webby", "other"] {
            group(&mount.join(path), 10);
        }
        let mut cgroups = Cgroups::new(&Root::at(directory.path()));
        cgroups.follow("/pod/web/");
        let mut sample = Sample::default();
        let mut busiest = |cgroups: &mut Cgroups| {
            sample.clear();
            cgroups.sample_busiest(&mut sample, 0, 0);
            keys(&sample).into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(busiest(&mut cgroups), [""; 0], "none is known yet");
        cgroups.sample(&mut Sample::default());
        assert_eq!(busiest(&mut cgroups), ["/pod", "/pod/web", "/pod/web/worker"]);
        fs::remove_dir_all(mount.join("pod/web")).unwrap();
        cgroups.sample(&mut Sample::default());
        assert_eq!(busiest(&mut cgroups), ["/pod"]);
    }

    #[test]
    fn v1_groups_fill_the_same_signals() {
        let directory = tempfile::tempdir().unwrap();
        let mount = directory.path().join("sys/fs/cgroup/memory");
        for (path, usage) in [("", 100), ("docker", 40)] {
            let at = mount.join(path);
            fs::create_dir_all(&at).unwrap();
            fs::write(at.join("memory.usage_in_bytes"), format!("{usage}\n")).unwrap();
            fs::write(at.join("memory.limit_in_bytes"), "9223372036854771712\n").unwrap();
            fs::write(at.join("memory.stat"), "cache 1\nrss 2\ntotal_cache 3\ntotal_rss 4\n")
                .unwrap();
        }
        let (sample, _) = read(directory.path());
        assert_eq!(keys(&sample), ["/", "/docker"]);
        let row = &sample.table(Entity::Cgroup).rows()[1].row;
        assert_eq!(row.get(CGROUP_CURRENT), Some(Bytes::new(40)));
        assert_eq!(row.get(CGROUP_ANON), Some(Bytes::new(4)));
        assert_eq!(row.get(CGROUP_MAX), Some(Limit::Unlimited));
    }

    #[test]
    fn deep_trees_are_cut_and_counted() {
        let (directory, mount) = machine();
        let mut at = mount;
        for depth in 0..12 {
            at = at.join("d");
            group(&at, 100 - depth);
        }
        let (sample, walk) = read(directory.path());
        assert_eq!(sample.table(Entity::Cgroup).rows().len(), 1 + CgroupTree::DEPTH_MAX);
        assert_eq!(walk.left_out, 1);
    }

    #[test]
    fn wide_trees_are_cut_to_the_largest_and_counted() {
        let (directory, mount) = machine();
        let groups = Cgroups::REQUESTED_MAX as u64 + 20;
        for i in 0..groups {
            group(&mount.join(format!("g{i:04}")), 1_000 + i);
        }
        let (sample, walk) = read(directory.path());
        assert_eq!((walk.read, walk.left_out), (Cgroups::REQUESTED_MAX, 21));
        assert_eq!(keys(&sample)[1], format!("/g{:04}", groups - 1));
        assert!(!keys(&sample).contains(&"/g0000"));
    }

    /// An ordinary user may make more cgroups than become rows, deeper than those of root, and each with memory.
    #[test]
    fn five_thousand_cgroups_of_a_user_hide_no_larger_one_of_root() {
        const OF_USER: &str = "user.slice/user-1000.slice/user@1000.service";
        const OF_ROOT: &str = "system.slice/docker-1.scope";
        let (directory, mount) = machine();
        group(&mount.join("user.slice"), 20 << 20);
        for at in 0..5_000 {
            let group = mount.join(OF_USER).join(format!("docker-{at:04}.scope"));
            fs::create_dir_all(&group).unwrap();
            fs::write(group.join("memory.current"), "4096\n").unwrap();
        }
        group(&mount.join("system.slice"), 60 << 10);
        group(&mount.join(OF_ROOT), 60 << 10);
        let (sample, walk) = read(directory.path());
        let of_root = format!("/{OF_ROOT}");
        assert_eq!(keys(&sample)[..4], ["/", "/user.slice", "/system.slice", &of_root]);
        assert_eq!((walk.read, walk.left_out), (Cgroups::REQUESTED_MAX, 5_004 - 2_048));

        let mut cgroups = Cgroups::new(&Root::at(directory.path()));
        cgroups.sample(&mut Sample::default());
        group(&mount.join(OF_ROOT), 64 << 10);
        cgroups.sample(&mut Sample::default());
        let mut busiest = Sample::default();
        cgroups.sample_busiest(&mut busiest, 64, 8);
        assert_eq!(keys(&busiest), [&of_root]);
    }

    /// A cgroup without memory of its own is before those of a user that have none, as it is nearer to the mount.
    #[test]
    fn five_thousand_empty_cgroups_of_a_user_hide_no_empty_one_of_root() {
        let (directory, mount) = machine();
        for at in 0..5_000 {
            let group = mount.join(format!("user.slice/user-1000.slice/docker-{at:04}.scope"));
            fs::create_dir_all(&group).unwrap();
            fs::write(group.join("memory.current"), "0\n").unwrap();
        }
        group(&mount.join("system.slice/docker-1.scope"), 0);
        let (sample, _) = read(directory.path());
        assert!(keys(&sample).contains(&"/system.slice/docker-1.scope"));
    }

    #[test]
    fn a_group_that_vanishes_is_skipped() {
        let (directory, mount) = machine();
        group(&mount.join("ok"), 10);
        // To a walk that still lists it, a removed cgroup is a directory without files.
        fs::create_dir(mount.join("gone")).unwrap();
        let (sample, walk) = read(directory.path());
        assert_eq!(keys(&sample), ["/", "/ok"]);
        assert_eq!((walk.denied, walk.malformed), (0, None));
    }

    #[test]
    fn malformed_text_is_reported_once_and_the_rest_is_read() {
        let (directory, mount) = machine();
        group(&mount.join("web"), 10);
        fs::write(mount.join("web/memory.current"), "-5\n").unwrap();
        let (sample, walk) = read(directory.path());
        let error = walk.malformed.unwrap().to_string();
        assert!(error.contains("memory.current"), "{error}");
        let row = &sample.table(Entity::Cgroup).rows()[1].row;
        assert_eq!(row.get(CGROUP_CURRENT), None);
        assert_eq!(row.get(CGROUP_ANON), Some(Bytes::new(10)));
    }

    #[test]
    fn without_a_hierarchy_the_walk_says_so() {
        let directory = tempfile::tempdir().unwrap();
        let mut sample = Sample::default();
        let walk = Cgroups::new(&Root::at(directory.path())).sample(&mut sample);
        assert_eq!(walk.absent, Some(timeline::Absence::NotFound));
    }

    #[test]
    fn this_machine_can_be_walked() {
        let mut sample = Sample::default();
        let walk = Cgroups::new(&Root::default()).sample(&mut sample);
        if walk.absent.is_some() {
            return; // A machine without cgroups.
        }
        assert_eq!(walk.read, sample.table(Entity::Cgroup).rows().len());
        assert!(walk.malformed.is_none(), "{:?}", walk.malformed);
        assert_eq!(keys(&sample)[0], "/");
    }
}
