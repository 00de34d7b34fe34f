//! The only reader of `/proc` and `/sys`: one file here for each kernel interface.
//!
//! Three nouns: a **root** ([`Root`]) is where `/` is: the machine itself, a container's, a directory of saved files; a
//! **kernel file** ([`KernelFile`]) is kept open and read again and again without allocating; a **parser** turns one
//! file's text into readings of a [`Sample`](timeline::Sample), whether the text was read live or saved ([`saved`]).
//!
//! Every parser is total: any bytes give readings and, where something was wrong, an error that says which line. What
//! could be read stays read.
//!
//! ```
//! let mut sample = timeline::Sample::default();
//! probe::Meminfo::default().parse(b"MemFree:  12 kB\n", &mut sample).unwrap();
//! assert_eq!(sample.host.get(timeline::signals::MEM_FREE), Some(units::Bytes::from_kib(12)));
//! ```

#![cfg_attr(test, allow(clippy::string_slice))] // tests cut texts of their own

mod buddyinfo;
mod cgroup;
mod cgroup_v1;
mod cgroups;
mod columns;
mod container;
mod directory;
mod diskstats;
mod error;
mod fields;
mod fs_state;
mod hierarchy;
mod host;
pub mod host_facts;
mod host_file;
mod host_texts;
#[cfg(test)]
mod hostile;
mod kernel_file;
pub mod kernel_report;
pub mod kmsg;
mod ksm;
mod log_watch;
mod meminfo;
mod mounts;
mod numa;
pub mod octal;
mod pressure;
mod process;
mod process_cells;
mod process_stat;
mod processes;
mod room;
pub mod saved;
mod service;
mod shares;
mod slabinfo;
mod smaps_rollup;
mod sockstat;
mod stat;
mod swaps;
mod task_check;
mod task_iter;
mod task_program;
mod task_record;
mod task_scan;
mod tasks;
pub mod text;
mod vmstat;
mod zoneinfo;
mod zram;

pub use cgroup::CgroupFiles;
pub use cgroups::Cgroups;
pub use directory::{Sink, Walk};
pub use error::{ParseError, ReadError};
pub use host::{HostProbe, now};
pub use host_texts::HostTexts;
pub use kernel_file::{KernelFile, Root, Shape};
pub use log_watch::{LogWatch, Written};
pub use meminfo::Meminfo;
pub use pressure::{Averages, Pressure};
pub use process::ProcessFiles;
pub use processes::{Closeness, Processes};
pub use shares::{Cost, Details, DetailsError};
pub use tasks::{Task, TaskSource, Tasks, service_of};
