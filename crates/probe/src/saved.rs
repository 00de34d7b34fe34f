//! Text of kernel files that was saved under the file's own path: captures, bundles.
//!
//! One table says which parser a path belongs to; live files go through the same parsers.

use timeline::{
    Facts, Sample, facts,
    signals::{
        MEMINFO, PSI_CPU_FULL, PSI_CPU_SOME, PSI_IO_FULL, PSI_IO_SOME, PSI_MEMORY_FULL,
        PSI_MEMORY_SOME,
    },
};

use crate::error::ParseError;
use crate::meminfo::Meminfo;
use crate::pressure::Pressure;

/// The pressure files of the host.
pub const PRESSURE: [Pressure; 3] = [
    Pressure {
        file: "/proc/pressure/memory",
        some: PSI_MEMORY_SOME,
        full: PSI_MEMORY_FULL,
    },
    Pressure {
        file: "/proc/pressure/io",
        some: PSI_IO_SOME,
        full: PSI_IO_FULL,
    },
    Pressure {
        file: "/proc/pressure/cpu",
        some: PSI_CPU_SOME,
        full: PSI_CPU_FULL,
    },
];

/// All parsers, with what they remember between samples.
#[derive(Debug, Default)]
pub struct Parsers {
    meminfo: Meminfo,
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
        if let Some(pressure) = PRESSURE.iter().find(|p| p.file == path) {
            return pressure.parse(text, &mut sample.host).map(|()| true);
        }
        if let Some(fact) = facts::ALL.iter().find(|fact| fact.file == path) {
            facts.record(sample.stamp.boot, *fact, &crate::text::lossy(text));
            return Ok(true);
        }
        match path {
            MEMINFO => self.meminfo.parse(text, sample)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}
