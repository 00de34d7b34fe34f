//! LRU: how many other pages were touched since a page was touched last. A read is served from a cache of more pages than that.
//!
//! Mattson and others 1970: one pass gives the misses of every size. Each page's last touch is a one in a Fenwick tree over
//! time, so a distance is a difference of two prefix sums: 0.1 s for a million touches.

use crate::pages::PageTouches;
use crate::touches::TouchKind;

/// A read of a page that was touched before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reread {
    /// Different other pages touched since; in the sample.
    pub(crate) distance: u32,
    pub(crate) step: u16,
}

/// What LRU makes of the touches.
#[derive(Debug, Clone, Default)]
pub(crate) struct StackDistances {
    /// Reads of pages that were touched before, the shortest distance first.
    pub(crate) rereads: Vec<Reread>,
    /// Reads of pages that were never touched before: from the disk at any size.
    pub(crate) first_reads: u64,
    /// The same by steps.
    pub(crate) first_reads_by_step: Vec<u64>,
    /// The most pages that were in the cache at once, if nothing was ever evicted.
    pub(crate) pages_max: u64,
}

struct Fenwick(Vec<u32>);

impl Fenwick {
    fn add(&mut self, at: usize, is_more: bool) {
        let mut node = at + 1;
        while let Some(sum) = self.0.get_mut(node) {
            *sum = if is_more { *sum + 1 } else { *sum - 1 };
            node += node & node.wrapping_neg();
        }
    }

    /// How many ones there are at or before a place.
    fn up_to(&self, at: usize) -> u32 {
        let mut node = at + 1;
        let mut sum = 0;
        while node > 0 {
            sum += self.0[node];
            node &= node - 1;
        }
        sum
    }
}

impl StackDistances {
    pub(crate) fn of(list: &PageTouches) -> Self {
        let mut times = Fenwick(vec![0; list.touches.len() + 1]);
        let mut last: Vec<Option<u32>> = vec![None; list.pages];
        let mut found = Self::default();
        let mut there = 0_u64;
        for (now, touch) in list.touches.iter().enumerate() {
            let before = last[touch.page as usize];
            if let Some(before) = before {
                if touch.kind == TouchKind::Read {
                    let distance =
                        u32::try_from(there).unwrap_or(u32::MAX) - times.up_to(before as usize);
                    found.rereads.push(Reread { distance, step: touch.step });
                }
                times.add(before as usize, false);
                there -= 1;
            } else if touch.kind == TouchKind::Read {
                found.count_first_read(touch.step);
            }
            if touch.kind == TouchKind::Removed {
                last[touch.page as usize] = None;
                continue;
            }
            times.add(now, true);
            there += 1;
            found.pages_max = found.pages_max.max(there);
            last[touch.page as usize] = u32::try_from(now).ok();
        }
        found.rereads.sort_by_key(|reread| reread.distance);
        found
    }

    fn count_first_read(&mut self, step: u16) {
        let steps = &mut self.first_reads_by_step;
        steps.resize(steps.len().max(usize::from(step) + 1), 0);
        steps[usize::from(step)] += 1;
        self.first_reads += 1;
    }

    /// All reads of the sample.
    pub(crate) fn reads(&self) -> u64 {
        self.first_reads + self.rereads.len() as u64
    }

    /// The same as [`misses`](Self::misses) for each of so many steps.
    pub(crate) fn misses_by_step(&self, pages: f64, steps: usize) -> Vec<u64> {
        let mut misses = self.first_reads_by_step.clone();
        misses.resize(steps.max(misses.len()), 0);
        let hits = self.rereads.partition_point(|reread| f64::from(reread.distance) < pages);
        for reread in &self.rereads[hits..] {
            misses[usize::from(reread.step)] += 1;
        }
        misses
    }

    /// Reads from the disk with a cache of so many pages of the sample.
    pub(crate) fn misses(&self, pages: f64) -> u64 {
        let hits = self.rereads.partition_point(|reread| f64::from(reread.distance) < pages);
        self.first_reads + (self.rereads.len() - hits) as u64
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::pages::PageTouch;
    use stats::SplitMix64;

    /// Touches at random: mostly few pages, some of many, written and removed ones among them.
    pub(crate) fn random_list(seed: u64, touches: usize) -> PageTouches {
        let mut chance = SplitMix64::new(seed);
        let mut list = Vec::new();
        for _ in 0..touches {
            let range = if chance.next_u64().is_multiple_of(3) { 200 } else { 20 };
            let page = u32::try_from(chance.next_u64() % range).unwrap();
            let kind = match chance.next_u64() % 20 {
                0 => TouchKind::Removed,
                1..=6 => TouchKind::Written,
                _ => TouchKind::Read,
            };
            list.push(PageTouch { page, step: 0, kind });
        }
        PageTouches { touches: list, pages: 200, rate: 1.0 }
    }

    /// The definition: a list of pages, the last one touched in front.
    fn by_hand(list: &PageTouches, size: usize) -> u64 {
        let mut stack: Vec<u32> = Vec::new();
        let mut misses = 0;
        for touch in &list.touches {
            let place = stack.iter().position(|page| *page == touch.page);
            if touch.kind == TouchKind::Read && place.is_none() {
                misses += 1;
            }
            if let Some(place) = place {
                stack.remove(place);
            }
            if touch.kind != TouchKind::Removed {
                stack.insert(0, touch.page);
            }
            stack.truncate(size);
        }
        misses
    }

    /// A removed page leaves a hole that the definition fills with what was evicted before; the tree does not. Without removals
    /// both are the same for every size.
    #[test]
    fn misses_are_those_of_a_cache_at_every_size() {
        for seed in 0..20 {
            let mut list = random_list(seed, 600);
            list.touches.retain(|touch| touch.kind != TouchKind::Removed);
            let distances = StackDistances::of(&list);
            for size in 1..=200 {
                let misses = distances.misses(size as f64);
                assert_eq!(misses, by_hand(&list, size), "seed {seed}, {size} pages");
            }
        }
    }

    #[test]
    fn with_removals_misses_differ_little_from_those_of_a_cache() {
        for seed in 0..20 {
            let list = random_list(seed, 2000);
            let distances = StackDistances::of(&list);
            for size in [1, 5, 10, 20, 40, 80, 160, 200] {
                let (model, cache) = (distances.misses(size as f64), by_hand(&list, size));
                assert!(model.abs_diff(cache) * 20 <= cache, "{size}: {model}, {cache}");
            }
            assert_eq!(distances.misses(200.0), by_hand(&list, 200));
        }
    }

    #[test]
    fn the_most_pages_at_once_leaves_out_what_was_removed() {
        let touch = |page, kind| PageTouch { page, step: 0, kind };
        use TouchKind::{Read, Removed, Written};
        let touches = vec![
            touch(0, Written),
            touch(1, Written),
            touch(0, Removed),
            touch(2, Read),
            touch(0, Read),
        ];
        let distances = StackDistances::of(&PageTouches { touches, pages: 3, rate: 1.0 });
        assert_eq!((distances.pages_max, distances.first_reads), (3, 2));
        assert!(distances.rereads.is_empty());
    }
}
