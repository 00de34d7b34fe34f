//! Samples a host on a beat, and hands the samples to a recording.
//!
//! Three nouns: a **recorder** ([`Recorder`]) samples until it is told to stop; its **settings** ([`Settings`]) say how
//! often and how much; its **health** ([`Health`]) is what others may know of it while it runs. It never waits for a
//! disk, for another process's lock or for another thread, and in steady state it allocates nothing.

mod pace;
mod record;

pub use record::{
    Control, Figures, Health, Housekeeper, INBOX, Kept, Message, Recorder, Settings, privilege,
    status,
};
