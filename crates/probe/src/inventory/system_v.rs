//! System V shared memory: `/proc/sysvipc/shm`, a line for each segment of the reader's IPC namespace.
//!
//! `rss` and `swap` are bytes (2.6.36) and count pages of hugetlbfs for segments of SHM_HUGETLB, which are no shared
//! memory as `/proc/meminfo` counts it; the file does not say which those are. Times are seconds since 1970, PIDs those of
//! the reader's namespace, 0 outside it. `lpid` attached or detached the segment last. Columns are found by their heading.
//! Readable by every user. Cost: 10 µs, and 1 µs for each segment.

use std::collections::HashSet;

use timeline::{SharedKind, SharedMeasure, SharedObject, Stamp, SystemVSegment, UserProcess};
use units::{Bytes, WallClock};

use crate::inventory::searched::SearchedProcess;
use crate::text;

pub(super) const PATH: &str = "/proc/sysvipc/shm";

/// A segment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SystemVRow {
    id: u64,
    creator: u32,
    last_user: u32,
    attached: u64,
    /// Seconds since 1970.
    last_used: u64,
    created: u64,
    resident: Bytes,
}

/// Returns the segments. Lines of another form are skipped, and all of them if there is no column `rss`.
pub(super) fn parse(text: &[u8]) -> Vec<SystemVRow> {
    let mut lines = text::lines(text).map(|(_, line)| line);
    let heading: Vec<&[u8]> =
        lines.next().map_or_else(Vec::new, |line| text::words(line).collect());
    let column = |name: &[u8]| heading.iter().position(|word| *word == name);
    let Some(places) = ["shmid", "cpid", "lpid", "nattch", "atime", "dtime", "ctime", "rss"]
        .iter()
        .map(|name| column(name.as_bytes()))
        .collect::<Option<Vec<usize>>>()
    else {
        return Vec::new();
    };
    let row = |line: &[u8]| {
        let words: Vec<&[u8]> = text::words(line).collect();
        let numbers = places.iter().map(|place| text::number(words.get(*place)?));
        let numbers: Vec<u64> = numbers.collect::<Option<_>>()?;
        let [id, creator, last_user, attached, atime, dtime, created, rss] = numbers[..] else {
            return None;
        };
        Some(SystemVRow {
            id,
            creator: u32::try_from(creator).ok()?,
            last_user: u32::try_from(last_user).ok()?,
            attached,
            last_used: atime.max(dtime),
            created,
            resident: Bytes::new(rss),
        })
    };
    lines.filter_map(row).collect()
}

/// Returns the segments as objects; `huge` are the ids of those of SHM_HUGETLB.
pub(super) fn objects(
    rows: &[SystemVRow],
    huge: &HashSet<u64>,
    processes: &[SearchedProcess],
    now: Stamp,
) -> Vec<SharedObject> {
    let rows = rows.iter().filter(|row| !huge.contains(&row.id));
    rows.map(|row| SharedObject {
        kind: SharedKind::SystemV(SystemVSegment {
            id: row.id,
            attached: row.attached,
            creator: user(row.creator, row.created, processes, now),
            last_user: user(row.last_user, row.last_used, processes, now),
        }),
        bytes: row.resident,
        measure: SharedMeasure::InRam,
        users: row.attached,
        first_user: None,
    })
    .collect()
}

/// Returns the process with a PID at a time. One that was started later only has its PID.
fn user(pid: u32, at: u64, processes: &[SearchedProcess], now: Stamp) -> Option<UserProcess> {
    let was_there = |process: &&SearchedProcess| {
        let started = || Some(now.wall?.minus(now.boot).plus(process.started()?));
        // A clock that was set since moves the two times apart; a name is then missing.
        started().is_some_and(|started| started < seconds(at.saturating_add(1)))
    };
    let process = processes.iter().find(|process| process.pid == pid);
    let known = process.filter(was_there).map(SearchedProcess::user);
    (pid > 0).then(|| known.unwrap_or(UserProcess { pid, ..UserProcess::default() }))
}

fn seconds(since_1970: u64) -> WallClock {
    let nanos = since_1970.saturating_mul(1_000_000_000);
    WallClock::from_unix_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile;
    use units::Span;

    /// From a 6.18 host.
    const TEXT: &[u8] = b"       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap\n\
        1357000000          3   600              83886080  4711  4712      0     0     0     0     0       1100       1200       1000              83886080                     0\n\
        -559038737          4  1600                  4096     0     0      2     0     0     0     0          0          0       1000                  4096                  8192\n\
        5 -1\n";

    fn process(pid: u32, start_ticks: u64) -> SearchedProcess {
        SearchedProcess {
            pid,
            start_ticks: Some(start_ticks),
            name: format!("p{pid}"),
            ..SearchedProcess::default()
        }
    }

    fn segments(huge: &[u64]) -> Vec<SharedObject> {
        let now =
            Stamp { boot: Span::from_secs(1000), wall: Some(seconds(1900)), ..Stamp::default() };
        // Booted at 900: the creator was there before the segment, the second process came after its last use.
        let processes = [process(4711, 0), process(4712, 40_000)];
        objects(&parse(TEXT), &huge.iter().copied().collect(), &processes, now)
    }

    #[test]
    fn a_segment_has_its_resident_pages_its_creator_and_its_last_user() {
        let found = segments(&[]);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].bytes, Bytes::from_mib(80));
        let user = |pid, name: &str| {
            Some(UserProcess { pid, name: name.to_owned(), ..UserProcess::default() })
        };
        let expected = SystemVSegment {
            id: 3,
            attached: 0,
            creator: user(4711, "p4711"),
            // Another process has its PID now.
            last_user: user(4712, ""),
        };
        assert_eq!(found[0].kind, SharedKind::SystemV(expected));
        let expected = SystemVSegment { id: 4, attached: 2, ..SystemVSegment::default() };
        assert_eq!(found[1].kind, SharedKind::SystemV(expected));
    }

    #[test]
    fn segments_of_huge_pages_are_left_out() {
        assert_eq!(segments(&[3]).len(), 1);
        assert_eq!(segments(&[3, 4]).len(), 0);
    }

    #[test]
    fn any_bytes_are_survived() {
        hostile::feed(TEXT, |text| drop(parse(text)));
        assert_eq!(parse(b"key shmid\n1 2\n"), []);
    }
}
