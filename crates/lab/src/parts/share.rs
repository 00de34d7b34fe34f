//! Processes that map the same memory: each has page tables of its own for it.

use units::{Bytes, Span};

use super::{Deadline, PAGE, len};
use crate::sys::{Forked, MappedPages, fork};

/// A shared segment, mapped and read by many processes: a database's buffers and its connections.
#[derive(Debug, Clone)]
pub struct SharePart {
    /// The segment.
    pub size: Bytes,
    /// How many processes.
    pub processes: u32,
    /// How long they stay; `None`: until killed.
    pub time: Option<Span>,
    /// Whether it has huge pages, which the host has reserved.
    pub is_huge: bool,
}

impl SharePart {
    /// Writes the segment once, then starts the processes; reports how many have read all of it.
    ///
    /// # Errors
    /// The operating system's.
    pub fn run(&self, mut started: impl FnMut(u32)) -> std::io::Result<()> {
        let _ = rustix::thread::set_name(c"share");
        let deadline = Deadline::after(self.time);
        let len = len(self.size)?;
        let mut segment =
            if self.is_huge { MappedPages::shared_huge(len)? } else { MappedPages::shared(len)? };
        for at in (0..len).step_by(PAGE) {
            segment.write(at, 1);
        }
        for number in 1..=self.processes {
            if fork()? == Forked::Child {
                for at in (0..len).step_by(PAGE) {
                    std::hint::black_box(segment.read(at));
                }
                deadline.wait();
                return Ok(());
            }
            started(number);
        }
        deadline.wait();
        Ok(())
    }
}
