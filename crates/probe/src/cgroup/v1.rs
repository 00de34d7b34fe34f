//! Memory of a cgroup on a v1 hierarchy, mapped to the signals of v2 so that rules know only one form.
//!
//! Same meaning: `usage_in_bytes` (current), `max_usage_in_bytes` (peak), `limit_in_bytes` (max), `kmem.usage_in_bytes`
//! (kernel), `failcnt` (events_max: limit hits), and of `memory.stat` the `total_*` lines, which include descendants
//! as in v2 (`total_rss` is anon, `total_cache` is file, `total_swap` is swap). `oom_control` counts OOM kills (since
//! 4.13) of the cgroup itself only, unlike v2, and says whether the kernel may kill there and whether tasks wait for
//! memory: signals that v2 does not have. There is no pressure, no `high`, and no reclaim count per cgroup;
//! `pgpgin` and `pgpgout` there count charges, not I/O, and are not read. "No limit" is the largest page-aligned
//! number. Cost: 2 to 5 µs a file; `memory.stat` walks the descendants.

use timeline::{
    Row, SignalId,
    signals::{
        CGROUP_ACTIVE_ANON, CGROUP_ACTIVE_FILE, CGROUP_ANON, CGROUP_ANON_THP, CGROUP_CURRENT,
        CGROUP_EVENTS_MAX, CGROUP_EVENTS_OOM_KILL, CGROUP_FILE, CGROUP_FILE_DIRTY,
        CGROUP_FILE_MAPPED, CGROUP_FILE_WRITEBACK, CGROUP_INACTIVE_ANON, CGROUP_INACTIVE_FILE,
        CGROUP_KERNEL, CGROUP_MAX, CGROUP_MAX_WITH_SWAP, CGROUP_OOM_CONTROL,
        CGROUP_OOM_KILL_DISABLE, CGROUP_PEAK, CGROUP_PGFAULT, CGROUP_PGMAJFAULT,
        CGROUP_REFAULT_ANON, CGROUP_REFAULT_FILE, CGROUP_SHMEM, CGROUP_SWAP_CURRENT,
        CGROUP_SWAPCACHED, CGROUP_UNDER_OOM, CGROUP_UNEVICTABLE,
    },
};
use units::{Bytes, Limit};

use crate::error::{First, ParseError};
use crate::text;

/// The files that have a parser.
pub(crate) const NAMES: [&str; 7] = [
    "memory.usage_in_bytes",
    "memory.stat",
    "memory.limit_in_bytes",
    "memory.max_usage_in_bytes",
    "memory.kmem.usage_in_bytes",
    "memory.failcnt",
    "memory.oom_control",
];

const STAT: &str = "/sys/fs/cgroup/memory/**/memory.stat";
const LIMIT: &str = "/sys/fs/cgroup/memory/**/memory.limit_in_bytes";
/// The lines of `memory.oom_control`.
const OOM_CONTROL_FIELDS: [(&[u8], SignalId); 3] = [
    (b"oom_kill_disable", CGROUP_OOM_KILL_DISABLE.id()),
    (b"under_oom", CGROUP_UNDER_OOM.id()),
    (b"oom_kill", CGROUP_EVENTS_OOM_KILL.id()),
];

/// Limits from here on mean "none": the kernel writes the largest page-aligned number (0x7ffffffffffff000 with 4 KiB
/// pages, smaller with larger ones; all ones before 3.19), and no machine has 4 EiB.
const UNLIMITED: u64 = 1 << 62;

/// The line of `memory.stat` with the limit of memory and swap together: the least of the cgroup's own and those above.
/// Absent where swap is not accounted (`swapaccount=0`).
const WITH_SWAP: &[u8] = b"hierarchical_memsw_limit";

/// The lines of `memory.stat` that have a v2 counterpart, and the limit with swap.
const STAT_FIELDS: [(&[u8], SignalId); 19] = [
    (WITH_SWAP, CGROUP_MAX_WITH_SWAP.id()),
    (b"cache", CGROUP_FILE.id()),
    (b"rss", CGROUP_ANON.id()),
    (b"rss_huge", CGROUP_ANON_THP.id()),
    (b"shmem", CGROUP_SHMEM.id()),
    (b"swapcached", CGROUP_SWAPCACHED.id()),
    (b"mapped_file", CGROUP_FILE_MAPPED.id()),
    (b"dirty", CGROUP_FILE_DIRTY.id()),
    (b"writeback", CGROUP_FILE_WRITEBACK.id()),
    (b"workingset_refault_anon", CGROUP_REFAULT_ANON.id()),
    (b"workingset_refault_file", CGROUP_REFAULT_FILE.id()),
    (b"swap", CGROUP_SWAP_CURRENT.id()),
    (b"pgfault", CGROUP_PGFAULT.id()),
    (b"pgmajfault", CGROUP_PGMAJFAULT.id()),
    (b"inactive_anon", CGROUP_INACTIVE_ANON.id()),
    (b"active_anon", CGROUP_ACTIVE_ANON.id()),
    (b"inactive_file", CGROUP_INACTIVE_FILE.id()),
    (b"active_file", CGROUP_ACTIVE_FILE.id()),
    (b"unevictable", CGROUP_UNEVICTABLE.id()),
];

/// Files with one number: name, path for messages, signal. An unlimited value means that there is no limit.
const SINGLES: [(&str, &str, SignalId); 5] = [
    (
        "memory.usage_in_bytes",
        "/sys/fs/cgroup/memory/**/memory.usage_in_bytes",
        CGROUP_CURRENT.id(),
    ),
    (
        "memory.max_usage_in_bytes",
        "/sys/fs/cgroup/memory/**/memory.max_usage_in_bytes",
        CGROUP_PEAK.id(),
    ),
    (
        "memory.kmem.usage_in_bytes",
        "/sys/fs/cgroup/memory/**/memory.kmem.usage_in_bytes",
        CGROUP_KERNEL.id(),
    ),
    ("memory.failcnt", "/sys/fs/cgroup/memory/**/memory.failcnt", CGROUP_EVENTS_MAX.id()),
    ("memory.limit_in_bytes", LIMIT, CGROUP_MAX.id()),
];

/// Returns the v1 source of a signal: the file, and the field in it, which is empty if the file has only one number.
pub(crate) fn place(signal: SignalId) -> Option<(&'static str, &'static str)> {
    let single = SINGLES.iter().find(|(.., of)| *of == signal).map(|(name, ..)| (*name, ""));
    let place_in = |file, fields: &[(&'static [u8], SignalId)]| {
        let (field, _) = fields.iter().find(|(_, of)| *of == signal)?;
        Some((file, std::str::from_utf8(field).ok()?))
    };
    let in_stat = || place_in("memory.stat", &STAT_FIELDS);
    let in_oom_control = || place_in("memory.oom_control", &OOM_CONTROL_FIELDS);
    single.or_else(in_stat).or_else(in_oom_control)
}

/// Reads the text of a cgroup's file `name` into its row. `Ok(false)`: this file has no parser.
pub(crate) fn parse(name: &str, text: &[u8], row: &mut Row) -> Result<bool, ParseError> {
    match name {
        "memory.stat" => stat(text, row),
        "memory.limit_in_bytes" => limit(text, row),
        "memory.oom_control" => oom_control(text, row),
        _ => match SINGLES.iter().find(|(known, ..)| *known == name) {
            Some((_, file, signal)) => single(file, text, *signal, row),
            None => return Ok(false),
        },
    }
    .map(|()| true)
}

/// Reads a file with one number.
fn single(
    file: &'static str,
    text: &[u8],
    signal: SignalId,
    row: &mut Row,
) -> Result<(), ParseError> {
    let word = text::trim(text);
    let value = text::number(word).ok_or_else(|| ParseError::new(file, 1, "a number", word))?;
    row.set_raw(signal, value);
    Ok(())
}

fn limit(text: &[u8], row: &mut Row) -> Result<(), ParseError> {
    let word = text::trim(text);
    let bytes =
        text::number(word).ok_or_else(|| ParseError::new(LIMIT, 1, "a size in bytes", word))?;
    row.set(CGROUP_MAX, limit_of(bytes));
    Ok(())
}

fn limit_of(bytes: u64) -> Limit {
    if bytes >= UNLIMITED { Limit::Unlimited } else { Limit::Bytes(Bytes::new(bytes)) }
}

fn oom_control(text: &[u8], row: &mut Row) -> Result<(), ParseError> {
    let mut first = First::default();
    for (count, line) in text::lines(text) {
        let mut words = text::words(line);
        let name = words.next();
        let known = OOM_CONTROL_FIELDS.iter().find(|(field, _)| name == Some(field));
        let Some((_, signal)) = known else {
            continue;
        };
        match words.next().and_then(text::number) {
            Some(value) => row.set_raw(*signal, value),
            None => first.note(|| ParseError::new(CGROUP_OOM_CONTROL, count, "a number", line)),
        }
    }
    first.into_result()
}

fn stat(text: &[u8], row: &mut Row) -> Result<(), ParseError> {
    let has_totals = memchr::memmem::find(text, b"\ntotal_").is_some();
    let mut first = First::default();
    for (count, line) in text::lines(text) {
        let mut words = text::words(line);
        let Some(name) = words.next() else {
            continue;
        };
        let name = match name.strip_prefix(b"total_") {
            Some(total) => total,
            None if has_totals && name != WITH_SWAP => continue,
            None => name,
        };
        let Some((_, signal)) = STAT_FIELDS.iter().find(|(known, _)| *known == name) else {
            continue;
        };
        match words.next().and_then(text::number) {
            Some(value) if name == WITH_SWAP => row.set(CGROUP_MAX_WITH_SWAP, limit_of(value)),
            Some(value) => row.set_raw(*signal, value),
            None => first.note(|| ParseError::new(STAT, count, "a number", line)),
        }
    }
    first.into_result()
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Count, Pages};

    /// From a 6.18 host; the cgroup has one child.
    const STAT_6_18: &[u8] = b"cache 123719680\nrss 1785856\nrss_huge 0\nshmem 0\nmapped_file 0\ndirty 24576\n\
        writeback 0\nworkingset_refault_anon 0\nworkingset_refault_file 5\nswap 0\nswapcached 0\npgpgin 67388\n\
        pgpgout 38285\npgfault 76855\npgmajfault 49\ninactive_anon 1708032\nactive_anon 12288\n\
        inactive_file 91541504\nactive_file 32178176\nunevictable 0\nhierarchical_memory_limit 9223372036854771712\n\
        hierarchical_memsw_limit 9223372036854771712\ntotal_cache 223719680\ntotal_rss 2785856\ntotal_rss_huge 0\n\
        total_shmem 0\ntotal_mapped_file 0\ntotal_dirty 24576\ntotal_writeback 0\ntotal_workingset_refault_anon 0\n\
        total_workingset_refault_file 7\ntotal_swap 4096\ntotal_swapcached 0\ntotal_pgpgin 67388\n\
        total_pgpgout 38285\ntotal_pgfault 76855\ntotal_pgmajfault 50\ntotal_inactive_anon 1708032\n\
        total_active_anon 12288\ntotal_inactive_file 91541504\ntotal_active_file 32178176\ntotal_unevictable 0\n";

    fn read(name: &str, text: &[u8]) -> (Row, Result<bool, ParseError>) {
        let mut row = Row::default();
        let result = parse(name, text, &mut row);
        (row, result)
    }

    #[test]
    fn totals_are_preferred_to_the_groups_own_lines() {
        let (row, result) = read("memory.stat", STAT_6_18);
        assert_eq!(result, Ok(true));
        assert_eq!(row.get(CGROUP_FILE), Some(Bytes::new(223_719_680)));
        assert_eq!(row.get(CGROUP_ANON), Some(Bytes::new(2_785_856)));
        assert_eq!(row.get(CGROUP_SWAP_CURRENT), Some(Bytes::new(4096)));
        assert_eq!(row.get(CGROUP_REFAULT_FILE), Some(Pages::new(7)));
        assert_eq!(row.get(CGROUP_PGMAJFAULT), Some(Count::new(50)));
        assert_eq!(row.iter().count(), STAT_FIELDS.len());
    }

    #[test]
    fn the_limit_with_swap_is_read_beside_totals_and_without_them() {
        let with_swap = |text: &[u8]| read("memory.stat", text).0.get(CGROUP_MAX_WITH_SWAP);
        assert_eq!(with_swap(STAT_6_18), Some(Limit::Unlimited));
        let mib = Some(Limit::Bytes(Bytes::from_mib(64)));
        assert_eq!(with_swap(b"rss 0\nhierarchical_memsw_limit 67108864\n"), mib);
        assert_eq!(with_swap(b"hierarchical_memsw_limit 67108864\ntotal_rss 0\n"), mib);
        // Swap is not accounted.
        assert_eq!(with_swap(b"rss 0\ntotal_rss 0\n"), None);
    }

    #[test]
    fn a_stat_without_totals_is_read_as_it_is() {
        let (row, _) = read("memory.stat", b"cache 8192\nrss 4096\n");
        assert_eq!(row.get(CGROUP_FILE), Some(Bytes::new(8192)));
        assert_eq!(row.get(CGROUP_ANON), Some(Bytes::new(4096)));
    }

    #[test]
    fn the_largest_page_aligned_number_is_no_limit() {
        for (text, expected) in [
            (&b"9223372036854771712\n"[..], Limit::Unlimited),
            (b"9223372036854710272\n", Limit::Unlimited),
            (b"9223372036854775807\n", Limit::Unlimited),
            (b"18446744073709551615\n", Limit::Unlimited),
            (b"67108864\n", Limit::Bytes(Bytes::from_mib(64))),
        ] {
            let (row, _) = read("memory.limit_in_bytes", text);
            assert_eq!(row.get(CGROUP_MAX), Some(expected));
        }
    }

    #[test]
    fn the_other_files_meet_their_v2_signals() {
        let (row, _) = read("memory.usage_in_bytes", b"127344640\n");
        assert_eq!(row.get(CGROUP_CURRENT), Some(Bytes::new(127_344_640)));
        let (row, _) = read("memory.max_usage_in_bytes", b"135827456\n");
        assert_eq!(row.get(CGROUP_PEAK), Some(Bytes::new(135_827_456)));
        let (row, _) = read("memory.failcnt", b"12\n");
        assert_eq!(row.get(CGROUP_EVENTS_MAX), Some(Count::new(12)));
        // From a 6.18 host, of a cgroup that stands still.
        let text = b"oom_kill_disable 1\nunder_oom 1\noom_kill 3\n";
        let (row, _) = read("memory.oom_control", text);
        assert_eq!(row.get(CGROUP_EVENTS_OOM_KILL), Some(Count::new(3)));
        assert_eq!(row.get(CGROUP_OOM_KILL_DISABLE), Some(Count::new(1)));
        assert_eq!(row.get(CGROUP_UNDER_OOM), Some(Count::new(1)));
        // Kernels before 4.13 do not count kills: absent, not zero.
        let (row, result) = read("memory.oom_control", b"oom_kill_disable 0\nunder_oom 0\n");
        assert_eq!(result, Ok(true));
        assert_eq!(row.get(CGROUP_EVENTS_OOM_KILL), None);
        assert_eq!(row.get(CGROUP_UNDER_OOM), Some(Count::ZERO));
        let place = Some(("memory.oom_control", "under_oom"));
        assert_eq!(super::place(CGROUP_UNDER_OOM.id()), place);
    }

    #[test]
    fn a_bad_line_costs_itself_only() {
        let text = b"cache -1\nrss 1180591620717411303424\nswap 4096\npgfault";
        let (row, result) = read("memory.stat", text);
        assert_eq!(
            result.unwrap_err().to_string(),
            "/sys/fs/cgroup/memory/**/memory.stat, line 1: expected a number, found `cache -1`"
        );
        assert_eq!(row.get(CGROUP_SWAP_CURRENT), Some(Bytes::new(4096)));
        assert_eq!(row.iter().count(), 1);
    }
}
