//! Text of kernel files saved under the file's own path: captures, bundles.
//!
//! One table maps paths to parsers; live files use the same parsers.

use timeline::{Entity, Facts, Sample, facts};

use crate::cgroup::files::{self as cgroup, CgroupFiles};
use crate::error::ParseError;
use crate::host::facts as host_facts;
use crate::host::file::{HostFile, HostParsers};
use crate::host::vmstat;
use crate::process::files::{self as process, ProcessFiles, RowsByPid};

/// Whether `name` is a part of a field of `/proc/vmstat` that kernels before 4.8 count by zone.
pub fn is_split_by_zone(name: &str) -> bool {
    vmstat::split_by_zone(name).is_some()
}

/// Whether a parser reads the kernel file at this path, as [`Parsers::read`] does.
pub fn is_known(path: &str) -> bool {
    HostFile::at(path).is_some()
        || facts::ALL.iter().any(|fact| fact.file == path)
        || process::place(path).is_some()
        || cgroup::CgroupFile::from_path(path, None).is_some()
        || host_facts::SavedFact::at(path).is_some()
}

/// All parsers, and their state between samples. They are made when the first text is read: most pasted texts, and each
/// kernel report of a capture, have none of a kernel file.
#[derive(Debug, Default)]
pub struct Parsers(Option<Box<AllParsers>>);

#[derive(Debug, Default)]
struct AllParsers {
    host: HostParsers,
    cgroup: CgroupFiles,
    process: ProcessFiles,
    process_rows: RowsByPid,
}

impl Parsers {
    /// Reads the saved text of the kernel file `path` into `sample` or `facts`. `Ok(false)`: no parser knows this path.
    ///
    /// # Errors
    /// The first malformed line; readings of the other lines are valid.
    pub fn read(
        &mut self,
        path: &str,
        text: &[u8],
        sample: &mut Sample,
        facts: &mut Facts,
    ) -> Result<bool, ParseError> {
        let all = self.0.get_or_insert_default();
        // Most files of a capture are of processes.
        if let Some((pid, name)) = process::place(path) {
            let table = sample.table_mut(Entity::Process);
            let row = all.process_rows.row(pid, table);
            return all.process.parse(pid, name, text, row);
        }
        host_facts::note_cpus(path, text, facts);
        if let Some((file, instance)) = HostFile::at(path) {
            return all.host.parse(file, instance, text, sample).map(|()| true);
        }
        if let Some(fact) = facts::ALL.iter().find(|fact| fact.file == path) {
            facts.record(sample.stamp.boot, *fact, &crate::text::lossy(text));
            return Ok(true);
        }
        if let Some(place) = cgroup::CgroupFile::from_path(path, facts.cgroup_mode) {
            place.note_mode(facts);
            let row = place.row(sample.table_mut(Entity::Cgroup));
            return all.cgroup.parse(place.mode, place.name, text, &mut row.row);
        }
        if host_facts::from_saved(path, text, facts) {
            return Ok(true);
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_what_is_read() {
        for path in [
            "/proc/meminfo",
            "/proc/swaps",
            "/proc/pressure/io",
            "/proc/sys/vm/swappiness",
            "/proc/version",
            "/proc/self/mounts",
            "/proc/12/status",
            "/proc/12/smaps_rollup",
            "/proc/12/environ",
            "/proc/x/status",
            "/proc/kcore",
            "/sys/devices/system/cpu/online",
            "/sys/devices/system/node/node0/distance",
            "/sys/devices/system/node/nodex/distance",
            "/sys/devices/system/node/node0/meminfo",
            "/sys/block/sda/queue/rotational",
            "/sys/fs/cgroup/a/memory.max",
            "/sys/fs/cgroup/memory/a/memory.stat",
            "/sys/fs/cgroup/a/cgroup.procs",
            "",
        ] {
            let (mut sample, mut facts) = (Sample::default(), Facts::default());
            let read = Parsers::default().read(path, b"", &mut sample, &mut facts);
            assert_eq!(is_known(path), read != Ok(false), "{path}");
        }
    }
}
