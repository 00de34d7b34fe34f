//! A process that holds memory and touches it again and again.

use std::time::{Duration, Instant};

use units::{Bytes, Span};

use super::noise::Noise;
use super::{Deadline, PAGE, len};
use crate::sys::MappedPages;

/// Bytes of a huge page on x86.
const HUGE_PAGE: usize = 2 << 20;

/// What pages hold: it decides how well zram compresses them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Content {
    /// Zero but for one byte.
    #[default]
    Zero,
    /// Noise.
    Random,
}

/// Holds memory.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone)]
pub struct Hog {
    pub size: Bytes,
    /// Every page is written once in this time; `None`: only at first.
    pub touch: Option<Span>,
    /// How long the first write of all pages takes at least; `None`: as fast as it can.
    pub fill: Option<Span>,
    /// How long to hold it; `None`: until killed.
    pub time: Option<Span>,
    /// What pages hold.
    pub content: Content,
    /// Whether the kernel counts it as committed, as memory of malloc; else it promises it without counting.
    pub is_committed: bool,
    /// How much of each 2 MiB is used; `None`: all. What is not used is reserved only, but for huge pages.
    pub of_each_huge_page: Option<Bytes>,
    /// Whether its pages are offered to kernel samepage merging.
    pub is_mergeable: bool,
    /// Whether the kernel may evict no page of it.
    pub is_locked: bool,
}

impl Hog {
    /// Holds the memory until the time is over; reports when it has it.
    ///
    /// # Errors
    /// Where there is no address space for it.
    pub fn run(&self, has_it: impl FnOnce()) -> std::io::Result<()> {
        let _ = rustix::thread::set_name(c"hog");
        let deadline = Deadline::after(self.time);
        let mut memory = if self.is_committed {
            MappedPages::committed(len(self.size)?)?
        } else {
            MappedPages::private(len(self.size)?)?
        };
        if self.is_mergeable {
            memory.offer_to_merge()?;
        }
        let pages = self.pages()?;
        let mut noise = Noise::new(u64::from(std::process::id()));
        // Reserved pages are not there until they are written.
        paced(&pages, self.fill.unwrap_or_default(), deadline, |at| match self.content {
            Content::Zero => memory.write(at, 1),
            Content::Random => memory.fill(at, &noise.page()),
        });
        if self.is_locked {
            memory.lock()?;
        }
        has_it();
        let Some(touch) = self.touch else {
            deadline.wait();
            return Ok(());
        };
        // Written only: after a read the kernel keeps the page's place in swap, and SwapFree counts it as used.
        for round in (1..=u8::MAX).cycle() {
            paced(&pages, touch, deadline, |at| memory.write(at, round));
            if deadline.is_over() {
                break;
            }
        }
        Ok(())
    }

    fn pages(&self) -> std::io::Result<UsedPages> {
        let of_huge_page = self.of_each_huge_page.map_or(Ok(HUGE_PAGE), len)?;
        let of_huge_page = of_huge_page.clamp(PAGE, HUGE_PAGE) / PAGE;
        Ok(UsedPages {
            of_huge_page,
            count: len(self.size)? / HUGE_PAGE * of_huge_page
                + (len(self.size)? % HUGE_PAGE / PAGE).min(of_huge_page),
        })
    }
}

/// The pages that are used: this many at the start of each huge page.
#[derive(Debug, Clone, Copy)]
struct UsedPages {
    of_huge_page: usize,
    count: usize,
}

impl UsedPages {
    /// The place of a page.
    fn at(self, number: usize) -> usize {
        number / self.of_huge_page * HUGE_PAGE + number % self.of_huge_page * PAGE
    }
}

/// Visits each page, evenly over a time; whether there was time for all.
fn paced(pages: &UsedPages, time: Span, deadline: Deadline, mut visit: impl FnMut(usize)) -> bool {
    /// Pages from rest to rest.
    const BATCH: usize = 256;
    let begun = Instant::now();
    for number in 0..pages.count {
        visit(pages.at(number));
        if number % BATCH == BATCH - 1 {
            if deadline.is_over() {
                return false;
            }
            #[allow(clippy::cast_precision_loss)] // pages of one process
            let due: Duration =
                time.as_duration().mul_f64((number + 1) as f64 / pages.count as f64);
            deadline.sleep(due.saturating_sub(begun.elapsed()));
        }
    }
    deadline.sleep(time.as_duration().saturating_sub(begun.elapsed()));
    true
}
