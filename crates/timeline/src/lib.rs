//! A host over time, as pure data: no I/O, no clock.
//!
//! Three nouns: a **signal** ([`signals`]) is one quantity, an entry of the catalogue, with kind and unit as its
//! type; a **sample** ([`Sample`]) is all readings of one time; a **timeline** ([`Timeline`]) is samples in order.
//! From a timeline come **tracks** ([`Track`]): the values of one signal, or a rate computed from them, on the
//! timeline's clock. [`Facts`] are what changes rarely.
//!
//! ```
//! use timeline::{Sample, Timeline, signals::MEM_FREE};
//! use units::{Bytes, Span};
//! let mut sample = Sample::at(Span::ZERO);
//! sample.host.set(MEM_FREE, Bytes::from_mib(12));
//! let mut timeline = Timeline::default();
//! timeline.push(&sample);
//! assert_eq!(timeline.gauge(MEM_FREE).unwrap().last(), Some(Bytes::from_mib(12)));
//! ```
//!
//! The rate of a level does not compile; that of a counter does:
//!
//! ```compile_fail,E0308
//! let timeline = timeline::Timeline::default();
//! timeline.rate(timeline::signals::MEM_FREE);
//! ```
//!
//! ```
//! let timeline = timeline::Timeline::default();
//! assert!(timeline.rate(timeline::signals::PSWPIN).is_none());
//! ```
#![warn(clippy::disallowed_methods)]

mod cells;
pub mod cgroup;
mod clock;
mod condition;
mod error_chain;
mod event;
mod events;
pub mod facts;
mod identity;
mod inventory;
pub mod kernel_report;
mod kill_notice;
mod memory_budget;
pub mod metric;
pub mod plain;
mod problems;
mod process_key;
mod repeats;
mod roll_ups;
mod sample;
pub mod settings;
pub mod signals;
mod source;
mod stretch;
#[allow(clippy::module_inception)]
mod timeline;
mod track;

pub use cells::ProcessCells;
pub use condition::Condition;
pub use error_chain::with_causes;
pub use event::{Event, EventKind};
pub use events::{
    CounterRise, Dated, DatedEvent, EventTime, Kill, LimitStep, cgroup_counter_rises, events,
    host_counter_rises, kills_since_boot, limit_steps, recent_kills,
};
pub use facts::{Fact, Facts};
pub use inventory::{
    CachedDirectory, CachedEntry, CachedFile, CachedFiles, HugePool, Inventory, PageCallSite,
    PhysicalMemory, ProcessHoldings, SharedKind, SharedMeasure, SharedMemory, SharedObject,
    SystemVSegment, UserProcess, VmallocCaller,
};
pub use kernel_report::KernelReport;
pub use kill_notice::{KillNotice, Messenger, ModuleErrors, NoticeKind};
pub use memory_budget::{LeftOut, MemoryBudget, start_of};
pub use problems::Problems;
pub use process_key::ProcessKey;
pub use roll_ups::{EntityRollUps, Minute, RollUp, RollUps};
pub use sample::{BootId, EntityRow, EntityTable, Row, Sample, Stamp, UnknownField, UnknownFields};
pub use signals::{AnySignal, Counter, Entity, Gauge, Kind, Signal, SignalDef, SignalId};
pub use source::{Input, Origin, OutOfRange, Source, SourceKind, TimePoint, TimeRange};
pub use stretch::Stretch;
pub use timeline::{
    Absence, Break, BreakKind, CLOCK_TOLERANCE, ClockStep, Downsampled, EarlierReport,
    EntitySeries, Evicted, Noticed, OutOfOrder, Reported, RoundingCase, Run, Samples, Step,
    Timeline, step,
};
pub use track::Track;
