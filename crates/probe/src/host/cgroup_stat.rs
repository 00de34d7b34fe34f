//! Counts of cgroups: `/sys/fs/cgroup/cgroup.stat`, of the root of the unified hierarchy (v2).
//!
//! Cgroups below it, and removed ones that still hold memory (dying). Since 4.14; later kernels add a pair of lines for
//! each controller, which are skipped. Absent on cgroup v1. Within a container these are the container's own. Cost: one
//! `pread` of 50 bytes, 1 µs.

use timeline::{Sample, signals::ROOT_CGROUP_STAT};

use crate::error::ParseError;
use crate::fields::Fields;

/// The parser; it remembers the file's layout.
#[derive(Debug)]
pub(crate) struct CgroupCounts(Fields);

impl Default for CgroupCounts {
    fn default() -> Self {
        Self(Fields::for_file(ROOT_CGROUP_STAT))
    }
}

impl CgroupCounts {
    /// Reads the text into the host's row.
    ///
    /// # Errors
    /// The first line without a number; the other lines are read.
    pub(crate) fn parse(&mut self, text: &[u8], sample: &mut Sample) -> Result<(), ParseError> {
        self.0.parse(text, &mut sample.host, |_, _| {})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile;
    use timeline::signals::{CGROUPS, CGROUPS_DYING};
    use units::Count;

    /// The layout of 6.12 and later.
    const TEXT: &[u8] = b"nr_descendants 84\nnr_subsys_cpuset 1\nnr_subsys_memory 68\n\
                          nr_dying_descendants 3021\nnr_dying_subsys_memory 3021\n";

    fn read(text: &[u8]) -> (Sample, Result<(), ParseError>) {
        let mut sample = Sample::default();
        let result = CgroupCounts::default().parse(text, &mut sample);
        (sample, result)
    }

    #[test]
    fn both_counts_are_read_whatever_lies_between_them() {
        for text in [TEXT, b"nr_descendants 84\nnr_dying_descendants 3021\n"] {
            let (sample, result) = read(text);
            result.unwrap();
            assert_eq!(sample.host.get(CGROUPS), Some(Count::new(84)));
            assert_eq!(sample.host.get(CGROUPS_DYING), Some(Count::new(3_021)));
        }
    }

    #[test]
    fn a_bad_number_costs_itself_only() {
        let (sample, result) = read(b"nr_descendants -1\nnr_dying_descendants 7\n");
        let message = "/sys/fs/cgroup/cgroup.stat, line 1: expected a number, found `-1`";
        assert_eq!(result.unwrap_err().to_string(), message);
        assert_eq!(sample.host.get(CGROUPS), None);
        assert_eq!(sample.host.get(CGROUPS_DYING), Some(Count::new(7)));
    }

    #[test]
    fn any_bytes_are_survived() {
        hostile::feed(TEXT, |text| drop(read(text)));
    }
}
