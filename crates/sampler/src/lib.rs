//! Samples a host: one loop for watching, capturing and recording.
//!
//! Three nouns: a **sampler** ([`Sampler`]) reads the host on a beat, one sample for each call; a **watcher**
//! ([`Watcher`]) puts samples into a timeline, [`capture()`] the files' texts into a capture; a **recorder**
//! ([`Recorder`]) hands samples to a recording until it is stopped. The thread that records never waits for a disk,
//! for another process's lock or for another thread, and in steady state it allocates nothing. Apart from these,
//! [`run_in_cgroup()`] runs a command in a cgroup of its own and samples that.
//!
//! ```
//! use probe::Root;
//! use sampler::WatchOptions;
//! use std::ops::ControlFlow;
//!
//! let options = WatchOptions::one_sample(false);
//! let source = sampler::watch(&Root::default(), options, &mut |_| ControlFlow::Continue(()));
//! assert_eq!(source.timeline.len(), 1);
//! ```

mod busiest_pace;
mod capture;
mod heaps;
mod new_groups;
mod pace;
mod record;
mod run_in_cgroup;
mod sampler;
mod watch;

pub use capture::{CaptureOptions, Captured, Secrets, capture};
pub use heaps::{
    HEAP_NAMES_MAX, HEAPS_PER_NAME_MAX, HeapReading, HeapRound, each_heap, heap_interval,
    read_heaps,
};
pub use pace::{Beat, LastDone, interval_within};
pub use record::{
    ChildEnd, ChildOutcome, ChildTask, Control, Figures, Health, HeapPlan, HeapWatch, HeapsRead,
    Housekeeper, INBOX, Message, OwnChildren, OwnCost, Recorder, RecordingState, Settings,
    TasksRead, memory_lock, privilege, status,
};
pub use run_in_cgroup::{
    CgroupRun, CgroupRunError, CgroupRunOptions, CommandGroup, GroupLimits, GroupReading,
    LimitsInForce, RunEnd, RunNow, RunPeak, run_in_cgroup,
};
pub use sampler::{Progress, Rates, SampleTaken, Sampler};
pub use watch::{RECENT, WatchOptions, Watcher, watch};
