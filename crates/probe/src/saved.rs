//! Text of kernel files that was saved under the file's own path: captures, bundles.
//!
//! One table says which parser a path belongs to; live files go through the same parsers.

use timeline::{
    Entity, Facts, Sample, facts,
    signals::{
        CPU_PRESSURE, IO_PRESSURE, MEMORY_PRESSURE, PSI_CPU_FULL, PSI_CPU_SOME, PSI_IO_FULL,
        PSI_IO_SOME, PSI_MEMORY_FULL, PSI_MEMORY_SOME,
    },
};

use crate::cgroup::{self, CgroupFiles};
use crate::error::ParseError;
use crate::host_facts;
use crate::host_file::{HostFile, HostParsers};
use crate::pressure::Pressure;
use crate::process::{self, ProcessFiles, RowsByPid};
use crate::vmstat;

/// The pressure files of the host.
pub const PRESSURE: [Pressure; 3] = [
    Pressure {
        file: MEMORY_PRESSURE,
        some: PSI_MEMORY_SOME,
        full: PSI_MEMORY_FULL,
    },
    Pressure {
        file: IO_PRESSURE,
        some: PSI_IO_SOME,
        full: PSI_IO_FULL,
    },
    Pressure {
        file: CPU_PRESSURE,
        some: PSI_CPU_SOME,
        full: PSI_CPU_FULL,
    },
];

/// Whether `name` is a part of a field of `/proc/vmstat` that kernels before 4.8 count for each zone by itself.
pub fn is_split_by_zone(name: &str) -> bool {
    vmstat::split_by_zone(name).is_some()
}

/// All parsers, with what they remember between samples.
#[derive(Debug, Default)]
pub struct Parsers {
    host: HostParsers,
    cgroup: CgroupFiles,
    process: ProcessFiles,
    process_rows: RowsByPid,
}

impl Parsers {
    /// Reads the saved text of the kernel file `path` into `sample` or `facts`. `Ok(false)`: no parser knows this path.
    ///
    /// # Errors
    /// What was wrong with the first bad line; readings of the other lines are kept.
    pub fn read(
        &mut self,
        path: &str,
        text: &[u8],
        sample: &mut Sample,
        facts: &mut Facts,
    ) -> Result<bool, ParseError> {
        host_facts::note_cpus(path, text, facts);
        if let Some((file, instance)) = HostFile::at(path) {
            return self.host.parse(file, instance, text, sample).map(|()| true);
        }
        if let Some(fact) = facts::ALL.iter().find(|fact| fact.file == path) {
            facts.record(sample.stamp.boot, *fact, &crate::text::lossy(text));
            return Ok(true);
        }
        if let Some((pid, name)) = process::place(path) {
            let table = sample.table_mut(Entity::Process);
            let row = self.process_rows.row(pid, table);
            return self.process.parse(pid, name, text, row);
        }
        if let Some(place) = cgroup::Place::of(path, text) {
            place.note_mode(facts);
            let row = place.row(sample.table_mut(Entity::Cgroup));
            return self
                .cgroup
                .parse(place.mode, place.name, text, &mut row.row);
        }
        if host_facts::from_saved(path, text, facts) {
            return Ok(true);
        }
        Ok(false)
    }
}
