//! Parts of workloads, each a process that does one thing to memory: `memtide lab hog 1G`.
//!
//! Every part has a size and a time, and ends by itself.

mod archive;
mod fork;
mod fragment;
mod hog;
mod limited;
mod lookup;
mod map;
mod noise;
mod read;
mod share;
mod write;

pub use archive::ArchivePart;
pub use fork::ForkPart;
pub use fragment::FragmentPart;
pub use hog::{Content, Hog};
pub use limited::{LimitedEnd, is_within_limit, run_within_limit};
pub use lookup::LookupPart;
pub use map::MapPart;
pub(crate) use noise::Noise;
pub use read::ReadPart;
pub use share::SharePart;
pub use write::{WritePart, WrittenContent};

use std::time::{Duration, Instant};

use units::{Bytes, Span};

use crate::LabError;
use crate::reading::available_bytes;

/// Bytes of a page, the smallest that any kernel here has.
const PAGE: usize = 4096;

/// Checks that this host has this much available.
///
/// # Errors
/// [`LabError::BeyondAvailable`].
pub fn check_available(size: Bytes) -> Result<(), LabError> {
    match available_bytes() {
        Some(available) if available < size => Err(LabError::BeyondAvailable { size, available }),
        _ => Ok(()),
    }
}

/// The length of a mapping or a buffer.
fn len(size: Bytes) -> std::io::Result<usize> {
    usize::try_from(size.get()).map_err(std::io::Error::other)
}

/// A clock that runs out.
#[derive(Debug, Clone, Copy)]
struct Deadline(Option<Instant>);

impl Deadline {
    fn after(time: Option<Span>) -> Self {
        Self(time.map(|time| Instant::now() + time.as_duration()))
    }

    fn is_over(self) -> bool {
        self.0.is_some_and(|end| Instant::now() >= end)
    }

    /// Sleeps for a while, not beyond the end.
    fn sleep(self, while_: Duration) {
        let left = self.0.map_or(while_, |end| end.saturating_duration_since(Instant::now()));
        std::thread::sleep(while_.min(left));
    }

    /// Sleeps until the end; forever if there is none.
    fn wait(self) {
        while !self.is_over() {
            self.sleep(Duration::from_secs(1));
        }
    }
}
