//! How other threads control the recorder: flags that a signal handler may set, and a bounded queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use timeline::{Absence, Event, Facts, Stamp};

/// What a signal handler or another thread may ask of the recorder; seen within a second.
#[derive(Debug, Clone, Default)]
pub struct Control {
    /// End in good order.
    pub stop: Arc<AtomicBool>,
    /// End the head now and seal it; the recorder clears the flag.
    pub seal: Arc<AtomicBool>,
}

impl Control {
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Whether a seal was requested since it was last done.
    pub(crate) fn takes_seal(&self) -> bool {
        self.seal.swap(false, Relaxed)
    }
}

/// What the housekeeper found; the recorder hands it to the store between two samples.
#[derive(Debug)]
pub enum Message {
    /// Something happened.
    Event(Event),
    /// What is known of the host at a time.
    Facts(Stamp, Box<Facts>),
    /// A kernel file cannot be read.
    Absent(&'static str, Absence),
}

/// How many messages may wait: at one sample a second the queue is empty again after one.
pub const INBOX: usize = 64;
