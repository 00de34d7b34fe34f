//! How other threads control the recorder: flags that a signal handler may set, and a bounded queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use timeline::{Absence, Event, Facts, Stamp};

/// Requests that a signal handler or another thread may make of the recorder; seen within a second.
#[derive(Debug, Clone, Default)]
pub struct Control {
    /// Ends the recording cleanly.
    pub stop: Arc<AtomicBool>,
    /// Ends the head now and seals it; the recorder clears the flag.
    pub seal: Arc<AtomicBool>,
}

impl Control {
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Whether a seal was requested since the last one; clears the request.
    pub(crate) fn takes_seal(&self) -> bool {
        self.seal.swap(false, Relaxed)
    }
}

/// A message from the housekeeper, which the recorder hands to the store between two samples.
#[derive(Debug)]
pub enum Message {
    /// Something happened.
    Event(Event),
    /// The facts of the host at a time.
    Facts(Stamp, Box<Facts>),
    /// The key of the cgroup to read with every sample.
    Follow(String),
    /// A kernel file cannot be read.
    Absent(&'static str, Absence),
}

/// How many messages may wait: at one sample a second, each sample empties the queue.
pub const INBOX: usize = 64;
