//! Records of a ring, as bytes. Any bytes are accepted: what is too short is none.

use perf_event_open_sys::bindings as sys;

/// A record of a ring.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PerfRecord<'a> {
    Sample(SampleHead, &'a [u8]),
    /// A thread has a new name.
    Comm {
        tid: u32,
        name: &'a [u8],
    },
    /// A process has a child, or a thread.
    Fork {
        pid: u32,
        parent: u32,
    },
    /// So many records found no room in the ring of this event.
    Lost {
        id: u64,
        count: u64,
    },
    /// The kernel takes fewer samples, as they took too much time.
    Throttle,
    Other,
}

/// What each sample begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SampleHead {
    /// The event's number.
    pub(super) id: u64,
    pub(super) pid: u32,
    pub(super) tid: u32,
    /// Nanoseconds on the monotonic clock.
    pub(super) time_ns: u64,
}

pub(super) fn parse(record: &[u8]) -> PerfRecord<'_> {
    let (Some(kind), Some(body)) = (u32_at(record, 0), record.get(8..)) else {
        return PerfRecord::Other;
    };
    let parsed = match kind {
        sys::PERF_RECORD_SAMPLE => sample(body),
        sys::PERF_RECORD_COMM => u32_at(body, 4).zip(body.get(8..)).map(|(tid, name)| {
            let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
            PerfRecord::Comm { tid, name: name.get(..end).unwrap_or_default() }
        }),
        sys::PERF_RECORD_FORK => u32_at(body, 0)
            .zip(u32_at(body, 4))
            .map(|(pid, parent)| PerfRecord::Fork { pid, parent }),
        sys::PERF_RECORD_LOST => {
            u64_at(body, 0).zip(u64_at(body, 8)).map(|(id, count)| PerfRecord::Lost { id, count })
        }
        sys::PERF_RECORD_THROTTLE => Some(PerfRecord::Throttle),
        _ => None,
    };
    parsed.unwrap_or(PerfRecord::Other)
}

fn sample(body: &[u8]) -> Option<PerfRecord<'_>> {
    let head = SampleHead {
        id: u64_at(body, 0)?,
        pid: u32_at(body, 8)?,
        tid: u32_at(body, 12)?,
        time_ns: u64_at(body, 16)?,
    };
    Some(PerfRecord::Sample(head, body.get(24..)?))
}

/// The call chain that a sample goes on with, the innermost first with its marks, and what follows.
pub(super) fn chain(rest: &[u8]) -> Option<(impl Iterator<Item = u64> + Clone + '_, &[u8])> {
    let count = usize::try_from(u64_at(rest, 0)?).ok()?;
    let end = count.checked_mul(8)?.checked_add(8)?;
    let addresses = rest.get(8..end)?;
    let numbers = addresses.chunks_exact(8).filter_map(|bytes| u64_at(bytes, 0));
    Some((numbers, rest.get(end..)?))
}

/// What a tracepoint recorded.
pub(super) fn raw(rest: &[u8]) -> Option<&[u8]> {
    let length = usize::try_from(u32_at(rest, 0)?).ok()?;
    rest.get(4..length.checked_add(4)?)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend([0; 2]);
        bytes.extend(u16::try_from(body.len() + 8).unwrap().to_ne_bytes());
        bytes.extend(body);
        bytes
    }

    #[test]
    fn a_sample_has_a_chain_and_what_a_tracepoint_recorded() {
        let mut body = Vec::new();
        body.extend(9_u64.to_ne_bytes());
        body.extend(7_u32.to_ne_bytes());
        body.extend(8_u32.to_ne_bytes());
        body.extend(55_u64.to_ne_bytes());
        body.extend(2_u64.to_ne_bytes());
        body.extend(1_u64.to_ne_bytes());
        body.extend(2_u64.to_ne_bytes());
        body.extend(4_u32.to_ne_bytes());
        body.extend([1, 2, 3, 4]);
        let bytes = record(sys::PERF_RECORD_SAMPLE, &body);
        let PerfRecord::Sample(head, rest) = parse(&bytes) else { panic!() };
        assert_eq!((head.id, head.pid, head.tid, head.time_ns), (9, 7, 8, 55));
        let (numbers, rest) = chain(rest).unwrap();
        assert_eq!(numbers.collect::<Vec<_>>(), [1, 2]);
        assert_eq!(raw(rest), Some(&[1, 2, 3, 4][..]));
        // A chain that is longer than its record.
        assert!(chain(&u64::MAX.to_ne_bytes()).is_none());
    }

    #[test]
    fn names_end_at_their_zero_and_short_records_are_none() {
        let mut body = vec![0; 8];
        body[4] = 3;
        body.extend(b"bash\0\0\0\0");
        let bytes = record(sys::PERF_RECORD_COMM, &body);
        assert_eq!(parse(&bytes), PerfRecord::Comm { tid: 3, name: b"bash" });
        for kind in 0..20 {
            for length in 0..20 {
                let bytes = record(kind, &vec![0xff; length]);
                let _ = parse(&bytes);
            }
        }
    }
}
