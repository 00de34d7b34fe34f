//! Memory of the whole machine: `/proc/meminfo`.
//!
//! "kB" there are KiB; `HugePages_*` are counts. Fields come and go with kernels (some 40 to 60): unknown fields are
//! stored by name, missing ones are absent. All numbers are from one read, but per-CPU drift makes sums differ by a few
//! MiB. lxcfs shows a container's memory and passes some lines of the machine on: lines larger than all memory are those, and
//! are not used. Cost: one `pread` of 1.5 KiB, 6 µs; no lock that a task waits for.

use timeline::signals::{
    MEM_KERNEL_STACK, MEM_KRECLAIMABLE, MEM_PAGE_TABLES, MEM_PERCPU, MEM_SLAB,
    MEM_SLAB_RECLAIMABLE, MEM_SLAB_UNRECLAIMABLE, MEM_TOTAL, MEMINFO,
};
use timeline::{Gauge, Row, Sample, Signal};
use units::Bytes;

use crate::error::ParseError;
use crate::fields::Fields;

/// The parser; it remembers the file's layout.
#[derive(Debug)]
pub struct Meminfo(Fields);

impl Default for Meminfo {
    fn default() -> Self {
        Self(Fields::for_file(MEMINFO))
    }
}

impl Meminfo {
    /// Reads the text into the host's row.
    ///
    /// # Errors
    /// The first line without a number; the other lines are read.
    pub fn parse(&mut self, text: &[u8], sample: &mut Sample) -> Result<(), ParseError> {
        let Sample { host, unknown, .. } = sample;
        let parsed = self.0.parse(text, host, |field, value| unknown.keep(MEMINFO, field, value));
        if is_of_container(host) {
            host.forget(&KERNEL_TERMS.map(|term| term.id()));
        }
        parsed
    }
}

/// Kernel memory: what lxcfs may pass on from the machine.
const KERNEL_TERMS: [Signal<Gauge<Bytes>>; 7] = [
    MEM_SLAB,
    MEM_SLAB_RECLAIMABLE,
    MEM_SLAB_UNRECLAIMABLE,
    MEM_KRECLAIMABLE,
    MEM_PAGE_TABLES,
    MEM_KERNEL_STACK,
    MEM_PERCPU,
];

/// Whether kernel memory is larger than MemTotal: then MemTotal is that of a container, and the rest of its machine.
pub(crate) fn is_of_container(host: &Row) -> bool {
    let total = host.get(MEM_TOTAL).filter(|total| *total > Bytes::ZERO);
    total.is_some_and(|total| {
        let sizes = KERNEL_TERMS.into_iter().filter_map(|term| host.get(term));
        sizes.max().is_some_and(|largest| largest > total)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::signals::{HUGEPAGES_TOTAL, MEM_ACTIVE_FILE, MEM_AVAILABLE, MEM_FREE};
    use units::{Bytes, Count};

    fn parse(text: &str) -> (Sample, Result<(), ParseError>) {
        let mut sample = Sample::default();
        let result = Meminfo::default().parse(text.as_bytes(), &mut sample);
        (sample, result)
    }

    #[test]
    fn kb_are_kib_and_huge_pages_are_counts() {
        let (sample, result) =
            parse("MemFree:  12 kB\nActive(file):    3 kB\nHugePages_Total:      96\n");
        result.unwrap();
        assert_eq!(sample.host.get(MEM_FREE), Some(Bytes::from_kib(12)));
        assert_eq!(sample.host.get(MEM_ACTIVE_FILE), Some(Bytes::from_kib(3)));
        assert_eq!(sample.host.get(HUGEPAGES_TOTAL), Some(Count::new(96)));
        assert_eq!(sample.host.get(MEM_AVAILABLE), None, "missing is not zero");
    }

    #[test]
    fn lines_larger_than_all_memory_are_of_the_machine_around_a_container() {
        let (sample, _) = parse(
            "MemTotal: 524288 kB\nMemFree: 102400 kB\nSlab: 480000 kB\nPageTables: 775000 kB\n",
        );
        assert_eq!(sample.host.get(MEM_PAGE_TABLES), None);
        assert_eq!(sample.host.get(MEM_SLAB), None);
        assert_eq!(sample.host.get(MEM_FREE), Some(Bytes::from_kib(102_400)));
        let (sample, _) = parse("MemTotal: 524288 kB\nSlab: 480000 kB\nPageTables: 5000 kB\n");
        assert_eq!(sample.host.get(MEM_SLAB), Some(Bytes::from_kib(480_000)));
    }

    #[test]
    fn unknown_fields_are_kept() {
        let (sample, result) = parse("MemFree: 1 kB\nFuture: 7 kB\n");
        result.unwrap();
        let unknown: Vec<_> = sample.unknown.iter().map(|u| (u.field.as_str(), u.value)).collect();
        assert_eq!(unknown, [("Future", 7)]);
    }

    #[test]
    fn a_bad_number_costs_its_line_only() {
        let (sample, result) = parse("MemTotal: -5 kB\nMemFree: 1 kB\n");
        assert_eq!(
            result.unwrap_err().to_string(),
            "/proc/meminfo, line 1: expected a number, found `-5 kB`"
        );
        assert_eq!(sample.host.get(MEM_FREE), Some(Bytes::from_kib(1)));
        let (_, result) = parse("MemTotal: 1180591620717411303424 kB\n");
        assert!(result.is_err());
        let (_, result) = parse("MemTotal: 18446744073709551615 kB\n");
        assert!(result.unwrap_err().to_string().contains("a size below 2^64 bytes"));
    }
}
