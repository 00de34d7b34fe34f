//! Memory of a NUMA node: `/sys/devices/system/node/node*/{meminfo,numastat}`.
//!
//! Lines of meminfo are those of `/proc/meminfo` after `Node 0 `, in KiB, with `FilePages` in place of Cached and
//! Buffers; known fields that the catalogue has only for the whole machine are skipped. numastat counts pages since
//! boot, and stands still while `vm.numa_stat` is 0 (4.15). Kernels without CONFIG_NUMA have neither. Cost: two
//! `pread`s, 5 µs and 2 µs per node, which sum per-CPU counters.

use timeline::{
    Entity, Sample,
    signals::{MEMINFO, NODE_MEMINFO, NODE_NUMASTAT, field_of},
};

use crate::error::ParseError;
use crate::fields::Fields;
use crate::host::zoneinfo::keep_of;
use crate::text;

/// The parser of both files of all nodes; it remembers their layout.
#[derive(Debug)]
pub(crate) struct Numa {
    meminfo: Fields,
    numastat: Fields,
    /// The prefix of each line of meminfo.
    prefix: String,
    key: String,
}

impl Default for Numa {
    fn default() -> Self {
        let is_the_machines = |name: &str| field_of(MEMINFO).any(|(field, ..)| field == name);
        Self {
            meminfo: Fields::for_file(NODE_MEMINFO).without(is_the_machines),
            numastat: Fields::for_file(NODE_NUMASTAT),
            prefix: String::new(),
            key: String::new(),
        }
    }
}

impl Numa {
    /// Reads the meminfo of the node with this number into its row, which is keyed by the number.
    ///
    /// # Errors
    /// The first line without a number, or a text of another node; the other lines are read.
    pub(crate) fn parse_meminfo(
        &mut self,
        node: &str,
        text: &[u8],
        sample: &mut Sample,
    ) -> Result<(), ParseError> {
        let Self { prefix, key, .. } = self;
        prefix.clear();
        prefix.push_str("Node ");
        prefix.push_str(node);
        prefix.push(' ');
        key.clear();
        key.push_str(node);
        let (row, unknown) = sample.entry_and_unknown(Entity::Node, node);
        let mut keep = |field: &str, value| {
            keep_of(key, field.as_bytes(), value, NODE_MEMINFO, unknown);
        };
        let prefix = prefix.as_bytes();
        self.meminfo.parse_after(prefix, text, &mut row.row, &mut keep)?;
        if memchr::memmem::find(text, prefix).is_none() {
            let line = text::lines(text).next().map_or(&b""[..], |(_, line)| line);
            return Err(ParseError::new(NODE_MEMINFO, 1, "`Node` and its number", line));
        }
        Ok(())
    }

    /// Reads the numastat of the node with this number into its row.
    ///
    /// # Errors
    /// The first line without a number; the other lines are read.
    pub(crate) fn parse_numastat(
        &mut self,
        node: &str,
        text: &[u8],
        sample: &mut Sample,
    ) -> Result<(), ParseError> {
        let Self { numastat, key, .. } = self;
        key.clear();
        key.push_str(node);
        let (row, unknown) = sample.entry_and_unknown(Entity::Node, node);
        numastat.parse(text, &mut row.row, |field, value| {
            keep_of(key, field.as_bytes(), value, NODE_NUMASTAT, unknown);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile;
    use timeline::signals::{
        NODE_ACTIVE_FILE, NODE_ANON, NODE_FILE, NODE_FREE, NODE_HIT, NODE_LOCAL, NODE_MISS,
        NODE_OTHER, NODE_TOTAL,
    };
    use units::{Bytes, Pages};

    const NODE_1: &[u8] = include_bytes!("../../tests/kernel/6.1/node1_meminfo");
    const NODE_1_STAT: &[u8] = include_bytes!("../../tests/kernel/6.1/node1_numastat");
    const V6_18: &[u8] = include_bytes!("../../tests/kernel/6.18/node0_meminfo");

    fn meminfo(node: &str, text: &[u8]) -> (Sample, Result<(), ParseError>) {
        let mut sample = Sample::default();
        let result = Numa::default().parse_meminfo(node, text, &mut sample);
        (sample, result)
    }

    #[test]
    fn both_files_of_a_node_fill_one_row() {
        let mut sample = Sample::default();
        let mut numa = Numa::default();
        numa.parse_meminfo("1", NODE_1, &mut sample).unwrap();
        numa.parse_numastat("1", NODE_1_STAT, &mut sample).unwrap();
        let [node] = sample.table(Entity::Node).rows() else { panic!("one node") };
        assert_eq!(node.key, "1");
        for (signal, kib) in [
            (NODE_TOTAL, 483_088),
            (NODE_FREE, 437_312),
            (NODE_FILE, 3_580),
            (NODE_ANON, 4_916),
            (NODE_ACTIVE_FILE, 3_388),
        ] {
            assert_eq!(node.row.get(signal), Some(Bytes::from_kib(kib)), "{}", signal.def().name);
        }
        for (signal, pages) in
            [(NODE_HIT, 4_816), (NODE_MISS, 889), (NODE_LOCAL, 3_667), (NODE_OTHER, 2_038)]
        {
            assert_eq!(node.row.get(signal), Some(Pages::new(pages)), "{}", signal.def().name);
        }
        assert_eq!(node.row.iter().count(), 14, "nine of meminfo, five of numastat");
    }

    #[test]
    fn what_the_machine_has_too_is_not_unknown() {
        let (sample, result) = meminfo("0", V6_18);
        result.unwrap();
        let unknown: Vec<_> = sample.unknown.iter().map(|u| u.field.as_str()).collect();
        assert_eq!(unknown, ["0 MemUsed", "0 ShmemPmdMapped", "0 FilePmdMapped"]);
    }

    #[test]
    fn lines_of_another_node_are_not_this_ones() {
        let text = b"\nNode 1 MemTotal:  8 kB\nNode 12 MemFree:  4 kB\nNode 1 FilePages:  2 kB\n";
        let (sample, result) = meminfo("1", text);
        result.unwrap();
        let row = &sample.table(Entity::Node).rows()[0].row;
        assert_eq!(row.get(NODE_TOTAL), Some(Bytes::from_kib(8)));
        assert_eq!(row.get(NODE_FREE), None);
        let (_, result) = meminfo("2", text);
        assert!(result.unwrap_err().to_string().contains("expected `Node` and its number"));
    }

    #[test]
    fn a_bad_number_costs_its_line_only() {
        let (sample, result) = meminfo("0", b"Node 0 MemTotal: x kB\nNode 0 MemFree: 4 kB\n");
        let error = result.unwrap_err().to_string();
        assert!(error.ends_with("meminfo, line 1: expected a number, found `x kB`"), "{error}");
        let row = &sample.table(Entity::Node).rows()[0].row;
        assert_eq!(row.get(NODE_FREE), Some(Bytes::from_kib(4)));
    }

    #[test]
    fn any_bytes_are_survived() {
        hostile::feed(V6_18, |text| drop(meminfo("0", text)));
        hostile::feed(NODE_1_STAT, |text| {
            drop(Numa::default().parse_numastat("1", text, &mut Sample::default()));
        });
    }
}
