//! Call chains while sampling: all memory is taken and locked before the first sample, as a profiler that reclaims would measure
//! itself (60 reclaims of 2.8 s in all in 12 s of a swapping host, before this table).

use crate::read::kernel_chain;
use crate::stack::{FramePlace, NAMELESS, StackTable};

/// The name of a thread, as the kernel keeps it.
pub(super) type CommBytes = [u8; 16];

/// Different chains; the worst labelled run had 1,400 in 12 s.
const CHAINS_MAX: usize = 1 << 15;
/// Addresses of all chains: 40 a chain on average. 10 MiB.
const ADDRESSES_MAX: usize = CHAINS_MAX * 40;
/// A chain holds at most so many addresses of the kernel (`kernel.perf_event_max_stack` is 127).
const CHAIN_MAX: usize = 256;

/// What chains are kept apart by, besides their addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ChainTask {
    /// The name of the thread.
    pub(super) comm: CommBytes,
    /// The process, where only some are wanted; else 0.
    pub(super) scope: u32,
    /// The number of its cgroup.
    pub(super) cgroup: u32,
}

/// A chain of a task.
#[derive(Debug, Clone, Copy, Default)]
struct ChainEntry {
    hash: u64,
    task: ChainTask,
    start: u32,
    length: u16,
    has_user: bool,
    samples: u64,
    waited_ns: u64,
}

/// Chains by number.
#[derive(Debug)]
pub(super) struct ChainTable {
    /// The number of an entry plus one; 0 is free.
    slots: Vec<u32>,
    entries: Vec<ChainEntry>,
    addresses: Vec<u64>,
    scratch: Vec<u64>,
    /// Samples for which there was no room.
    pub(super) dropped: u64,
}

impl ChainTable {
    pub(super) fn new() -> Self {
        let mut table = Self {
            slots: vec![1; CHAINS_MAX * 2],
            entries: vec![ChainEntry::default(); CHAINS_MAX],
            addresses: vec![1; ADDRESSES_MAX],
            scratch: vec![1; CHAIN_MAX],
            dropped: 0,
        };
        // All pages were written, so they are there; now they are empty.
        table.slots.fill(0);
        table.entries.clear();
        table.addresses.clear();
        table.scratch.clear();
        table
    }

    /// The number of a chain; `None` where there is no room for another.
    pub(super) fn number(
        &mut self,
        task: ChainTask,
        chain: impl Iterator<Item = u64> + Clone,
    ) -> Option<u32> {
        self.scratch.clear();
        let mut has_user = false;
        kernel_chain(
            chain,
            |address| {
                if self.scratch.len() < CHAIN_MAX {
                    self.scratch.push(address);
                }
            },
            &mut has_user,
        );
        let hash = self.hash(task, has_user);
        let mask = self.slots.len() as u64 - 1;
        #[allow(clippy::cast_possible_truncation)] // masked
        let mut at = (hash & mask) as usize;
        while let Some(number) = self.slots[at].checked_sub(1) {
            if self.is_it(number, hash, task, has_user) {
                return Some(number);
            }
            at = (at + 1) % self.slots.len();
        }
        let has_room = self.entries.len() < CHAINS_MAX
            && self.addresses.len() + self.scratch.len() <= ADDRESSES_MAX;
        let (true, Ok(start), Ok(number), Ok(length)) = (
            has_room,
            u32::try_from(self.addresses.len()),
            u32::try_from(self.entries.len()),
            u16::try_from(self.scratch.len()),
        ) else {
            self.dropped += 1;
            return None;
        };
        self.addresses.extend_from_slice(&self.scratch);
        self.entries.push(ChainEntry {
            hash,
            task,
            start,
            length,
            has_user,
            samples: 0,
            waited_ns: 0,
        });
        self.slots[at] = number + 1;
        Some(number)
    }

    /// FNV-1a over words: chains differ in few of them.
    fn hash(&self, task: ChainTask, has_user: bool) -> u64 {
        let mix =
            |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
        let names = task
            .comm
            .chunks_exact(8)
            .map(|part| part.iter().fold(0_u64, |word, byte| word << 8 | u64::from(*byte)));
        let ends = [u64::from(task.scope), u64::from(task.cgroup), u64::from(has_user)];
        let words = self.scratch.iter().copied().chain(names).chain(ends);
        let hash = words.fold(0xcbf2_9ce4_8422_2325, mix);
        hash ^ hash >> 32
    }

    fn is_it(&self, number: u32, hash: u64, task: ChainTask, has_user: bool) -> bool {
        self.entries.get(number as usize).is_some_and(|entry| {
            let same = entry.hash == hash && entry.task == task;
            same && entry.has_user == has_user && self.chain(entry) == self.scratch
        })
    }

    fn chain(&self, entry: &ChainEntry) -> &[u64] {
        let start = entry.start as usize;
        self.addresses.get(start..start + usize::from(entry.length)).unwrap_or_default()
    }

    pub(super) fn count_sample(&mut self, number: u32) {
        if let Some(entry) = self.entries.get_mut(number as usize) {
            entry.samples += 1;
        }
    }

    pub(super) fn count_wait(&mut self, number: u32, nanos: u64) {
        if let Some(entry) = self.entries.get_mut(number as usize) {
            entry.waited_ns += nanos;
        }
    }

    /// Names all chains, and splits them into what ran and what waited, in seconds. Only processes are taken that are wanted.
    pub(super) fn named<'a>(
        &self,
        name: impl Fn(u64) -> Option<&'a str>,
        cgroup: impl Fn(u32) -> Option<&'a str>,
        is_wanted: impl Fn(u32) -> bool,
    ) -> (StackTable, StackTable) {
        let (mut ran, mut waited) = (StackTable::default(), StackTable::default());
        for entry in self.entries.iter().filter(|entry| is_wanted(entry.task.scope)) {
            let end =
                entry.task.comm.iter().position(|byte| *byte == 0).unwrap_or(entry.task.comm.len());
            let comm = String::from_utf8_lossy(entry.task.comm.get(..end).unwrap_or_default());
            let comm = if comm.is_empty() { "?".into() } else { comm };
            let user = entry.has_user || entry.length == 0;
            // The innermost address comes first.
            let kernel = self
                .chain(entry)
                .iter()
                .rev()
                .map(|address| (name(*address).unwrap_or(NAMELESS), FramePlace::Kernel));
            let outer = user.then_some(("[user]", FramePlace::User)).into_iter();
            let frames = outer.chain(kernel);
            #[allow(clippy::cast_precision_loss)] // below 2^53
            {
                ran.add_in(cgroup(entry.task.cgroup), &comm, frames.clone(), entry.samples as f64);
                waited.add_in(
                    cgroup(entry.task.cgroup),
                    &comm,
                    frames,
                    entry.waited_ns as f64 / 1e9,
                );
            }
        }
        (ran, waited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::KERNEL_MARK;

    #[test]
    fn equal_chains_of_one_name_are_one() {
        let mut table = ChainTable::new();
        let mut comm = [0; 16];
        comm[..2].copy_from_slice(b"db");
        let task = ChainTask { comm, ..ChainTask::default() };
        let chain = [KERNEL_MARK, 2, 1];
        let number = table.number(task, chain.into_iter()).unwrap();
        table.count_sample(number);
        assert_eq!(table.number(task, chain.into_iter()), Some(number));
        table.count_sample(number);
        let other = table.number(task, [KERNEL_MARK, 3, 1].into_iter()).unwrap();
        assert_ne!(other, number);
        table.count_wait(other, 500_000_000);
        let name =
            |address| Some(["", "outer", "inner", "wait"][usize::try_from(address).unwrap()]);
        let (ran, waited) = table.named(name, |_| Some("/a"), |_| true);
        let (stack, count) = ran.iter().next().unwrap();
        assert_eq!((&*stack.comm, count, stack.cgroup.as_deref()), ("db", 2.0, Some("/a")));
        assert_eq!(&*stack.frames[0].name, "outer");
        assert!((waited.total() - 0.5).abs() < 1e-9);
    }

    #[test]
    fn without_room_samples_are_counted_as_dropped() {
        let mut table = ChainTable::new();
        for address in 0..CHAINS_MAX as u64 {
            assert!(
                table.number(ChainTask::default(), [KERNEL_MARK, address].into_iter()).is_some()
            );
        }
        assert!(
            table.number(ChainTask::default(), [KERNEL_MARK, u64::MAX / 2].into_iter()).is_none()
        );
        assert_eq!(table.dropped, 1);
        assert!(table.number(ChainTask::default(), [KERNEL_MARK, 5].into_iter()).is_some());
    }
}
