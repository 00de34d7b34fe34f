//! Parts of workloads, each a process that does one thing to memory: `memtide lab hog 1G`.
//!
//! Every part has a size and a time, and ends by itself.

mod hog;
mod map;
mod read;
mod write;

pub use hog::{Content, Hog};
pub use map::MapPart;
pub use read::ReadPart;
pub use write::WritePart;

use std::time::{Duration, Instant};

use units::Span;

/// Bytes of a page, the smallest that any kernel here has.
const PAGE: usize = 4096;

/// A clock that runs out.
#[derive(Debug, Clone, Copy)]
struct Deadline(Option<Instant>);

impl Deadline {
    fn after(time: Option<Span>) -> Self {
        Self(time.map(|time| Instant::now() + Duration::from_secs_f64(time.as_secs_f64())))
    }

    fn is_over(self) -> bool {
        self.0.is_some_and(|end| Instant::now() >= end)
    }

    /// Sleeps for a while, not beyond the end.
    fn sleep(self, while_: Duration) {
        let left = self
            .0
            .map_or(while_, |end| end.saturating_duration_since(Instant::now()));
        std::thread::sleep(while_.min(left));
    }
}
