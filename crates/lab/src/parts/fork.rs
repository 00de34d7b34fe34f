//! A process that forks while it is written to: a database that saves its data.

use std::time::{Duration, Instant};

use units::{Bytes, BytesPerSecond, Quantity as _, Span};

use super::noise::Noise;
use super::{Deadline, PAGE, len};
use crate::sys::{Forked, MappedPages, fork};

/// Holds data, forks a child that keeps a copy for a while, and writes to random pages meanwhile: each is copied.
#[derive(Debug, Clone)]
pub struct ForkPart {
    /// The data.
    pub size: Bytes,
    /// How fast the parent writes.
    pub write: BytesPerSecond,
    /// How long the child lives.
    pub save: Span,
    /// How long the parent works after that.
    pub time: Span,
}

impl ForkPart {
    /// Works; reports the seconds that each phase took: fill, save, after.
    ///
    /// # Errors
    /// The operating system's.
    pub fn run(&self, mut phase: impl FnMut(&str, f64)) -> std::io::Result<()> {
        let _ = rustix::thread::set_name(c"store");
        let begun = Instant::now();
        let len = len(self.size)?;
        let mut data = MappedPages::private(len)?;
        for at in (0..len).step_by(PAGE) {
            data.write(at, 1);
        }
        phase("filled", begun.elapsed().as_secs_f64());
        let mut noise = Noise::new(7);
        self.writes(&mut data, &mut noise, self.time);
        let begun = Instant::now();
        let child = match fork()? {
            Forked::Child => {
                Deadline::after(Some(self.save)).wait();
                return Ok(());
            }
            Forked::Parent(child) => child,
        };
        self.writes(&mut data, &mut noise, self.save);
        let ended = rustix::process::waitpid(Some(child), rustix::process::WaitOptions::empty())?;
        if ended.is_some_and(|(_, status)| status.signaled()) {
            return Err(std::io::Error::other("the child was killed before it had saved"));
        }
        phase("saved", begun.elapsed().as_secs_f64());
        self.writes(&mut data, &mut noise, self.time);
        Ok(())
    }

    /// Writes to random pages for a time.
    fn writes(&self, data: &mut MappedPages, noise: &mut Noise, time: Span) {
        /// Writes between two sleeps.
        const BATCH: u32 = 64;
        let deadline = Deadline::after(Some(time));
        if self.write.as_f64() <= 0.0 {
            deadline.wait();
            return;
        }
        let pages = usize::try_from(self.size.get()).unwrap_or(usize::MAX) / PAGE;
        #[allow(clippy::cast_precision_loss)] // a page
        let batch = PAGE as f64 * f64::from(BATCH) / self.write.as_f64().max(1.0);
        while !deadline.is_over() {
            for _ in 0..BATCH {
                data.write(noise.below(pages) * PAGE, 2);
            }
            deadline.sleep(Duration::from_secs_f64(batch.min(1.0)));
        }
    }
}
