//! What the host does and holds, second by second: work by day, a service that leaks, and a backup each night that leaves
//! no room for the page cache; or, in a week that is well, nothing but a few stalls of seconds. All amounts are pages of 4 KiB and add up to [`TOTAL`].

use std::ops::Range;

use super::noise::Noise;

/// MemTotal of a machine of 16 GiB.
pub(crate) const TOTAL: f64 = mib(16_010.0);
/// The size of the swap area.
pub(crate) const SWAP: f64 = mib(4_096.0);
/// What the zones' marks keep free.
const FLOOR: f64 = mib(176.0);
/// The kernel does not get the page cache below this: mapped programs.
const CACHE_MIN: f64 = mib(230.0);
/// What services keep reading.
const WORKING_SET: f64 = mib(1_700.0);
/// Most that a disk gives in a second.
const DISK: f64 = mib(160.0);
/// The backup starts at 02:00 and lasts 40 minutes.
const BACKUP: Range<u64> = 7_200..9_600;
const HOUR: f64 = 3_600.0;
const DAY: u64 = 86_400;
const WEEK: f64 = 604_800.0;

pub(crate) const fn mib(mib: f64) -> f64 {
    mib * 256.0
}

/// What the host holds now, and what moved in the last second; in pages unless said otherwise.
#[derive(Debug, Clone, Default)]
pub(crate) struct Host {
    /// How busy it is, from 0 to 1.
    pub(crate) load: f64,
    /// Since when the backup runs, in seconds.
    pub(crate) backup: Option<u64>,
    /// Which night's backup it is.
    pub(crate) night: u64,
    /// Anonymous memory of all but the leak and the backup, with what lies in swap.
    pub(crate) base: f64,
    pub(crate) leak: f64,
    pub(crate) index: f64,
    pub(crate) swapped: f64,
    pub(crate) swap_cached: f64,
    pub(crate) anon: f64,
    pub(crate) shmem: f64,
    pub(crate) page_tables: f64,
    pub(crate) slab_reclaimable: f64,
    pub(crate) slab_unreclaimable: f64,
    pub(crate) stacks: f64,
    pub(crate) buffers: f64,
    pub(crate) pcp: f64,
    /// Page cache of files, without shared memory.
    pub(crate) cache: f64,
    pub(crate) free: f64,
    pub(crate) dirty: f64,
    pub(crate) writeback: f64,
    pub(crate) read: f64,
    pub(crate) written: f64,
    pub(crate) reclaimed: f64,
    pub(crate) swapped_in: f64,
    pub(crate) swapped_out: f64,
    pub(crate) refaults: f64,
    /// Shares of the second.
    pub(crate) memory_some: f64,
    pub(crate) memory_full: f64,
    pub(crate) io_some: f64,
    pub(crate) io_full: f64,
    /// How starved the page cache is, from 0 to 1.
    pub(crate) starved: f64,
    /// Seconds in which it stalls, where nothing else is wrong with it.
    stalls: Option<Vec<Range<u64>>>,
}

/// Memory of the kernel that hardly changes: per-CPU data, vmalloc with stacks, other reclaimable memory, and what no
/// counter explains.
pub(crate) const PERCPU: f64 = mib(9.0);
pub(crate) const VMALLOC: f64 = mib(72.0);
pub(crate) const OTHER_RECLAIMABLE: f64 = mib(3.0);
const UNEXPLAINED: f64 = mib(64.0);

/// Stalls of a week that is well, and how many of them begin within another.
const STALLS: usize = 20;
const OVERLAPPING: usize = 3;

/// Times of stalls: each of 5 to 60 seconds.
fn stalls(noise: &mut Noise) -> Vec<Range<u64>> {
    let mut stalls: Vec<Range<u64>> = Vec::new();
    while stalls.len() < STALLS {
        let lasts = 5 + noise.below(56);
        let start = match stalls.len() {
            other if other < OVERLAPPING * 2 && other % 2 == 1 => stalls[other - 1].start + 3,
            _ => noise.below(7 * DAY - 60),
        };
        stalls.push(start..start + lasts);
    }
    stalls
}

impl Host {
    /// One that is well but for stalls of seconds, at times of chance.
    pub(crate) fn well() -> Self {
        let stalls = Some(stalls(&mut Noise(7)));
        Self { stalls, ..Self::default() }
    }

    /// One second of the week passes, which began on a Monday at midnight.
    pub(crate) fn pass(&mut self, second: u64, noise: &mut Noise) {
        self.load = load(second) * noise.about(0.15);
        let of_day = second % DAY;
        self.night = second / DAY;
        let is_backup = self.stalls.is_none() && BACKUP.contains(&of_day);
        self.backup = is_backup.then(|| of_day - BACKUP.start);
        self.programs(second, noise);
        self.kernel(noise);
        let is_peak = noise.once_in(14_000) && self.stalls.is_none();
        self.files(is_peak, noise);
        self.make_room(noise);
        self.wait(is_peak, noise);
        let is_stalled =
            |stalls: &Vec<Range<u64>>| stalls.iter().any(|range| range.contains(&second));
        if self.stalls.as_ref().is_some_and(is_stalled) {
            self.stall(noise);
        }
    }

    /// A second in which what is needed is swapped out and in again.
    fn stall(&mut self, noise: &mut Noise) {
        let moved = mib(30.0) * noise.about(0.3);
        self.swapped_in += moved;
        self.swapped_out += moved;
        self.refaults += moved * 0.6;
        self.read = (self.read + self.refaults).min(DISK);
        self.reclaimed += moved * 1.6;
        self.starved = 0.9;
        self.memory_some = 0.6 * noise.about(0.3);
        self.memory_full = self.memory_some * 0.7;
        self.io_some = self.memory_some;
        self.io_full = self.memory_full;
    }

    fn programs(&mut self, second: u64, noise: &mut Noise) {
        let grown = second as f64 / WEEK;
        self.leak = mib(520.0 + 3_300.0 * grown) + mib(2.0) * noise.share();
        self.base = mib(6_150.0 + 820.0 * self.load) * noise.about(0.001);
        // Its index grows for eight minutes and stays; then it is gone.
        self.index = self.backup.map_or(0.0, |since| {
            mib(7_800.0) * (since as f64 / 480.0).min(1.0) * noise.about(0.002)
        });
        self.shmem = mib(190.0 + 40.0 * self.load) * noise.about(0.01);
    }

    fn kernel(&mut self, noise: &mut Noise) {
        self.page_tables = mib(38.0) * noise.about(0.02) + self.wanted() / 700.0;
        self.stacks = mib(11.0 + 2.0 * self.load) * noise.about(0.03);
        self.slab_unreclaimable = mib(235.0) * noise.about(0.01);
        let kept = mib(430.0 - 280.0 * self.starved);
        self.slab_reclaimable += (kept * noise.about(0.1) - self.slab_reclaimable) / 300.0;
        self.buffers = mib(95.0 - 70.0 * self.starved) * noise.about(0.02);
        self.pcp = mib(9.0) * noise.about(0.6);
    }

    /// What is read and written, and how much of it is read again.
    fn files(&mut self, is_peak: bool, noise: &mut Noise) {
        self.starved = (1.0 - self.cache / WORKING_SET).clamp(0.0, 1.0);
        let is_wanted = self.load.max(if self.backup.is_some() { 0.6 } else { 0.0 });
        self.refaults = (mib(95.0) * self.starved * self.starved * is_wanted) * noise.about(0.4);
        let backup = if self.backup.is_some() { mib(52.0) } else { 0.0 };
        let fresh = (backup + mib(1.4) * self.load) * noise.about(0.7);
        self.read = (fresh + self.refaults).min(DISK);
        self.refaults = self.refaults.min(self.read);
        let dirtied = mib(1.8 * self.load + backup / mib(2.0)) * noise.about(0.8);
        let peak = if is_peak { mib(420.0) } else { 0.0 };
        self.written = (self.dirty / 9.0) * noise.about(0.5);
        self.dirty = (self.dirty + dirtied - self.written).max(0.0);
        self.written += self.writeback / 2.0;
        self.writeback = self.writeback / 2.0 + self.written / 20.0;
        self.dirty += peak;
        if peak == 0.0 && self.dirty > mib(300.0) {
            self.written += self.dirty * 0.7;
            self.dirty *= 0.3;
        }
        self.cache += self.read + dirtied + peak;
    }

    /// All that programs want, in RAM or not.
    fn wanted(&self) -> f64 {
        self.base + self.leak + self.index
    }

    /// The kernel takes page cache, and where there is none left it swaps.
    fn make_room(&mut self, noise: &mut Noise) {
        let (swapped, cached) = (self.swapped, self.cache);
        let back = match self.backup {
            Some(_) => self.swapped / 4_000.0,
            None => self.swapped * self.load / 40_000.0,
        };
        self.swapped_in = back * noise.about(0.9);
        self.swapped = (self.swapped - self.swapped_in).clamp(0.0, self.wanted() * 0.5);
        self.swap_cached = (self.swapped / 60.0) * noise.about(0.1);
        self.anon = self.wanted() - self.swapped;
        let floor = FLOOR * noise.about(0.025) + noise.share() * mib(6.0);
        let room = TOTAL - self.held() - floor;
        self.cache = self.cache.min(room).max(CACHE_MIN * noise.about(0.03));
        let lacking = (self.cache - room).max(0.0).min(SWAP - self.swapped);
        self.swapped += lacking;
        self.anon -= lacking;
        self.swapped_out = (self.swapped - swapped + self.swapped_in).max(0.0);
        self.reclaimed = (cached - self.cache).max(0.0);
        self.free = TOTAL - self.held() - self.cache;
    }

    /// All of RAM but free memory and the page cache of files.
    fn held(&self) -> f64 {
        let kernel = self.page_tables + self.slab_reclaimable + self.slab_unreclaimable;
        let users = self.anon + self.shmem + self.swap_cached + self.buffers;
        kernel + users + self.pcp + PERCPU + VMALLOC + OTHER_RECLAIMABLE + UNEXPLAINED
    }

    fn wait(&mut self, is_peak: bool, noise: &mut Noise) {
        let peak = if is_peak { 0.7 } else { 0.0 };
        if is_peak {
            self.swapped_in += self.swapped.min(mib(30.0));
        }
        let reading = self.read / DISK;
        let starved = self.starved * reading;
        let some = (0.55 * starved + peak) * noise.about(0.35) + 0.0006 * self.load * noise.share();
        self.memory_some = some.clamp(0.0, 1.0);
        self.memory_full = (self.memory_some * 0.55 * noise.about(0.3)).clamp(0.0, 1.0);
        self.io_some = (0.75 * reading * noise.about(0.3) + 0.03 * self.load).clamp(0.0, 1.0);
        self.io_full = self.io_some * 0.6 * noise.about(0.2);
    }

    /// The share of CPU time that was spent waiting for disks.
    pub(crate) fn io_wait(&self) -> f64 {
        (self.io_full * 0.55).clamp(0.0, 0.7)
    }

    /// What the kernel would call available.
    pub(crate) fn available(&self) -> f64 {
        let floor = FLOOR * 0.8;
        let cache = self.cache + self.buffers;
        let slab = self.slab_reclaimable + OTHER_RECLAIMABLE;
        let kept = |pages: f64| pages - (pages / 2.0).min(floor);
        (self.free - floor + kept(cache) + kept(slab)).max(0.0)
    }
}

/// Work: little at night, much from nine to five, and less on the weekend.
fn load(second: u64) -> f64 {
    let hour = (second % DAY) as f64 / HOUR;
    let day = (-((hour - 13.5) / 4.2).powi(4)).exp();
    let evening = 0.35 * (-((hour - 20.5) / 2.0).powi(2)).exp();
    let of_week = if second / DAY >= 5 { 0.35 } else { 1.0 };
    0.06 + (0.9 * day).max(evening) * of_week
}
