//! The memory section of Redis' and Valkey's `INFO`: `used_memory_rss:2884251648`.
//!
//! Of the process its resident memory is used, of its allocator (jemalloc) the live bytes and those free in pages that it
//! keeps, of the host the RAM. Figures may have thousands separators and remarks behind them. The limit `maxmemory` is
//! Redis' own.

use timeline::Entity;
use timeline::signals::{
    MEM_TOTAL, PROC_HEAP_FREE, PROC_HEAP_FREE_RESIDENT, PROC_HEAP_LIVE, PROC_HEAP_RESIDENT,
    PROC_RSS,
};
use units::Bytes;

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::figure;
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form =
    Form { name: "Redis INFO", begins: BlockStart::with(&["used_memory"]), read };

/// Lines without a field: headings, blank ones, remarks.
const OTHERS_MAX: usize = 3;
/// At most 200 lines.
const LINES_MAX: usize = 200;
/// The start of each name in the section.
const NAMES: [&str; 12] = [
    "used_memory",
    "allocator_",
    "mem_",
    "maxmemory",
    "total_system_memory",
    "rss_overhead",
    "active_defrag",
    "lazyfree",
    "lazyfreed",
    "number_of_",
    "used_cpu",
    "startup_",
];

/// The figures of the section that are used.
#[derive(Debug, Default)]
struct RedisMemory {
    rss: Option<u64>,
    allocated: Option<u64>,
    active: Option<u64>,
    resident: Option<u64>,
    host: Option<u64>,
}

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    field(input.lines.first()?).filter(|(name, _)| name.starts_with("used_memory"))?;
    let mut found = RedisMemory::default();
    let (mut lines, mut fields) = (0, 0);
    for (at, line) in input.lines.iter().enumerate().take(LINES_MAX) {
        if let Some((name, value)) = field(line) {
            // The section of another reading.
            if name == "used_memory" && found.rss.is_some() {
                break;
            }
            let into = match name {
                "used_memory_rss" => &mut found.rss,
                "allocator_allocated" => &mut found.allocated,
                "used_memory" if found.allocated.is_none() => &mut found.allocated,
                "allocator_active" => &mut found.active,
                "allocator_resident" => &mut found.resident,
                "total_system_memory" => &mut found.host,
                _ => &mut None,
            };
            *into = whole(value).or(*into);
            fields += 1;
            lines = at + 1;
        } else if at - lines >= OTHERS_MAX {
            break;
        }
    }
    if fields < 2 || found.rss.is_none() {
        return None;
    }
    let snapshot = found.snapshot(input)?;
    input.add(snapshot);
    Some(TextBlock {
        what: "Redis INFO: memory of the server".to_owned(),
        lines,
        unit: "bytes",
        ..TextBlock::default()
    })
}

impl RedisMemory {
    fn snapshot(&self, input: &mut BlockReader<'_>) -> Option<Snapshot> {
        let mut snapshot = Snapshot::default();
        let row = snapshot.sample.table_mut(Entity::Process).add();
        row.key.push_str("0@redis");
        row.label.push_str("redis-server");
        #[allow(clippy::cast_precision_loss)] // sizes far below 2^53
        row.row.set(PROC_RSS, figure::pages(self.rss? as f64, input.facts)?);
        if let (Some(live), Some(active)) = (self.allocated, self.active) {
            let free = active.saturating_sub(live);
            row.row.set(PROC_HEAP_LIVE, Bytes::new(live));
            row.row.set(PROC_HEAP_FREE, Bytes::new(free));
            row.row.set(PROC_HEAP_FREE_RESIDENT, Bytes::new(free));
        }
        if let Some(resident) = self.resident {
            row.row.set(PROC_HEAP_RESIDENT, Bytes::new(resident));
        }
        if let Some(host) = self.host.filter(|host| *host > 0) {
            snapshot.sample.host.set(MEM_TOTAL, Bytes::new(host));
        }
        Some(snapshot)
    }
}

/// A field of the section, without a list mark.
fn field(line: &str) -> Option<(&str, &str)> {
    let line = line.trim().trim_start_matches(['-', '*', '`', ' ']);
    let (name, value) = line.split_once(':')?;
    NAMES.iter().any(|start| name.starts_with(start)).then_some((name, value.trim()))
}

/// A number of bytes: digits, perhaps with thousands separators.
fn whole(value: &str) -> Option<u64> {
    let word = value.split_whitespace().next()?;
    let digits: String = word.chars().filter(|c| *c != ',').collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use crate::testing::{paste, survives};
    use timeline::Entity;
    use timeline::signals::*;
    use units::{Bytes, Pages};

    const TEXT: &str = "# Memory\r\nused_memory:811458960\r\nused_memory_human:773.87M\r\nused_memory_rss:2884251648\r\nallocator_allocated:811600184\r\nallocator_active:1679548416\r\nallocator_resident:1722388480\r\ntotal_system_memory:16595886080\r\nmaxmemory:0\r\nmem_fragmentation_ratio:3.55\r\n";

    #[test]
    fn the_server_and_its_allocator_are_read() {
        let timeline = paste(TEXT).timeline;
        let process = timeline.entities(Entity::Process).next().unwrap();
        assert_eq!(timeline.last(MEM_TOTAL), Some(Bytes::new(16_595_886_080)));
        assert_eq!(timeline.last_of(process, PROC_RSS), Some(Pages::new(2_884_251_648 / 4096)));
        assert_eq!(
            timeline.last_of(process, PROC_HEAP_FREE),
            Some(Bytes::new(1_679_548_416 - 811_600_184))
        );
        survives(TEXT);
    }

    #[test]
    fn thousands_separators_and_remarks_are_allowed() {
        let text = "total:\n used_memory:          811,458,960\n used_memory_rss:    2,884,251,648\nbreakdown:\n  allocator_active:   1,679,548,416 (more)\n";
        let timeline = paste(text).timeline;
        let process = timeline.entities(Entity::Process).next().unwrap();
        assert_eq!(timeline.last_of(process, PROC_HEAP_LIVE), Some(Bytes::new(811_458_960)));
        assert!(paste("used_memory:12\n").origin.inputs.is_empty());
    }

    #[test]
    fn several_sections_are_a_course() {
        let later = TEXT.replace("2884251648", "2984251648");
        let text = format!("2026-11-21 10:00:00\n{TEXT}\n2026-11-21 11:00:00\n{later}");
        assert_eq!(paste(&text).timeline.len(), 2);
        assert_eq!(paste(&format!("{TEXT}{TEXT}")).origin.inputs.len(), 2);
    }
}
