//! A process that holds memory and touches it again and again.

use std::time::{Duration, Instant};

use units::{Bytes, Span};

use super::{Deadline, PAGE};

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
#[derive(Debug, Clone)]
pub struct Hog {
    /// How much.
    pub size: Bytes,
    /// Every page is written once in this time; `None`: only at first.
    pub touch: Option<Span>,
    /// How long the first write of all pages takes at least; `None`: as fast as it can.
    pub fill: Option<Span>,
    /// How long to hold it; `None`: until killed.
    pub time: Option<Span>,
    /// What pages hold.
    pub content: Content,
}

impl Hog {
    /// Holds the memory until the time is over.
    ///
    /// # Errors
    /// Where there is no address space for it.
    pub fn run(&self) -> std::io::Result<()> {
        let _ = rustix::thread::set_name(c"hog");
        let deadline = Deadline::after(self.time);
        let len = usize::try_from(self.size.get()).map_err(std::io::Error::other)?;
        let mut memory = Vec::new();
        memory
            .try_reserve_exact(len)
            .map_err(std::io::Error::other)?;
        let mut noise = Noise::new(u64::from(std::process::id()));
        let mut page = vec![0; PAGE];
        page[0] = 1;
        // Reserved pages are not there until they are written.
        self.paced(len, self.fill.unwrap_or_default(), deadline, |_| {
            if self.content == Content::Random {
                page = noise.page();
            }
            memory.extend_from_slice(page.get(..PAGE.min(len - memory.len())).unwrap_or_default());
        });
        let filled = memory.len();
        while !deadline.is_over() {
            let Some(touch) = self.touch else {
                deadline.sleep(Duration::from_secs(1));
                continue;
            };
            self.paced(filled, touch, deadline, |at| {
                if let Some(byte) = memory.get_mut(at) {
                    *byte = std::hint::black_box(byte.wrapping_add(1));
                }
            });
        }
        drop(std::hint::black_box(memory));
        Ok(())
    }

    /// Visits each page, evenly over a time.
    fn paced(&self, len: usize, time: Span, deadline: Deadline, mut visit: impl FnMut(usize)) {
        /// Pages from rest to rest.
        const BATCH: usize = 256;
        let pages = len.div_ceil(PAGE);
        let begun = Instant::now();
        for page in 0..pages {
            visit(page * PAGE);
            if page % BATCH == BATCH - 1 {
                if deadline.is_over() {
                    return;
                }
                #[allow(clippy::cast_precision_loss)] // pages of one process
                let due = Duration::from_secs_f64(time.as_secs_f64())
                    .mul_f64((page + 1) as f64 / pages as f64);
                deadline.sleep(due.saturating_sub(begun.elapsed()));
            }
        }
        let rest = Duration::from_secs_f64(time.as_secs_f64()).saturating_sub(begun.elapsed());
        deadline.sleep(rest);
    }
}

/// Numbers that no compressor makes smaller: xorshift64* (Vigna, 2016).
#[derive(Debug)]
pub(super) struct Noise(u64);

impl Noise {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(super) fn page(&mut self) -> Vec<u8> {
        (0..PAGE / 8)
            .flat_map(|_| self.next().to_ne_bytes())
            .collect()
    }
}
