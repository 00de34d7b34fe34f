//! Touches page by page, with numbers from zero on, as the simulations take them.

use std::collections::HashMap;

use crate::touches::{TouchKind, Touches, block_hash, is_sampled};

/// One page, touched once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageTouch {
    /// The number of the page.
    pub(crate) page: u32,
    pub(crate) step: u16,
    pub(crate) kind: TouchKind,
}

/// Which of the kept blocks to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SampleHalf {
    Both,
    First,
    Second,
}

/// A list of touches of single pages, a sample of all of them where there are too many.
#[derive(Debug)]
pub(crate) struct PageTouches {
    pub(crate) touches: Vec<PageTouch>,
    /// How many different pages there are.
    pub(crate) pages: usize,
    /// The share of all pages that is in the list.
    pub(crate) rate: f64,
}

impl PageTouches {
    /// Expands runs to at most about `touches_max` touches.
    pub(crate) fn of(touches: &Touches, touches_max: u64, half: SampleHalf) -> Self {
        let total = (touches.read() + touches.written()).get() / touches.unit().get().max(1);
        let mut halvings = touches.halvings();
        while total >> halvings > touches_max {
            halvings += 1;
        }
        let mut numbers: HashMap<(u32, u32), u32> = HashMap::new();
        // The pages of each file, as long as it is there.
        let mut of_file: HashMap<u32, Vec<(u32, u32)>> = HashMap::new();
        let mut all = Vec::new();
        let mut pages = 0_u32;
        let in_half = |file, page| match half {
            SampleHalf::Both => true,
            // A bit that the rate never uses.
            SampleHalf::First => block_hash(file, page) >> 63 == 0,
            SampleHalf::Second => block_hash(file, page) >> 63 == 1,
        };
        for run in touches.runs() {
            if run.kind == TouchKind::Removed {
                let Some(there) = of_file.get_mut(&run.file) else { continue };
                there.retain(|(page, number)| {
                    let is_gone = *page >= run.first;
                    if is_gone {
                        all.push(PageTouch { page: *number, step: run.step, kind: run.kind });
                        // A page of the same name is another page from now on.
                        numbers.remove(&(run.file, *page));
                    }
                    !is_gone
                });
                continue;
            }
            for page in run.first..run.first.saturating_add(run.pages) {
                if !is_sampled(run.file, page, halvings) || !in_half(run.file, page) {
                    continue;
                }
                let number = *numbers.entry((run.file, page)).or_insert_with(|| {
                    let number = pages;
                    pages = pages.saturating_add(1);
                    of_file.entry(run.file).or_default().push((page, number));
                    number
                });
                all.push(PageTouch { page: number, step: run.step, kind: run.kind });
            }
        }
        let share = if half == SampleHalf::Both { 1.0 } else { 0.5 };
        Self {
            touches: all,
            pages: pages as usize,
            rate: share * 0.5_f64.powi(halvings.min(1000).cast_signed()),
        }
    }
}
