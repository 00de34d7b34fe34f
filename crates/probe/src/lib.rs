//! The only reader of `/proc` and `/sys`: one module for each kernel interface.
//!
//! Three nouns: a **root** ([`Root`]) is where `/` is: of the machine itself, of a container, or of a directory of
//! saved files; a **kernel file** ([`KernelFile`]) stays open and is read repeatedly without allocating; a **parser**
//! turns one file's text into readings of a [`Sample`](timeline::Sample), whether the text was read live or saved
//! ([`saved`]).
//!
//! Every parser accepts any bytes: it returns the readings it finds and, if a line is malformed, an error that names
//! the line. Readings of the other lines stay valid.
//!
//! ```
//! let mut sample = timeline::Sample::default();
//! probe::Meminfo::default().parse(b"MemFree:  12 kB\n", &mut sample).unwrap();
//! assert_eq!(sample.host.get(timeline::signals::MEM_FREE), Some(units::Bytes::from_kib(12)));
//! ```

#![cfg_attr(test, allow(clippy::string_slice))] // tests cut texts of their own

mod bpf;
mod cgroup;
mod columns;
mod directory;
mod error;
mod fdinfo;
mod fields;
mod file_cache;
mod file_places;
mod file_stat;
mod free_heap;
mod host;
#[cfg(test)]
mod hostile;
pub mod inventory;
mod kallsyms;
mod kernel_file;
mod kernel_log;
mod memory_left;
mod mounts;
mod named_files;
pub mod octal;
mod path_walk;
mod pressure;
mod process;
pub mod saved;
mod search_time;
mod tasks;
pub mod text;
mod tracefs;

pub use cgroup::cpu_usage::{cpu_usage_file, parse_cpu_usage};
pub use cgroup::files::CgroupFiles;
pub use cgroup::hierarchy::{MemoryGroups, memory_cgroup_mount};
pub use cgroup::host_listing::host_cgroup_keys;
pub use cgroup::names as group_names;
pub use cgroup::own_cgroups::OwnCgroups;
pub use cgroup::walk::{Cgroups, cgroup_keys};
pub use directory::{Sink, Walk};
pub use error::{ParseError, ReadError};
pub use fdinfo::field as fdinfo_field;
pub use file_cache::FileCacheUse;
pub use free_heap::give_back_free_heap;
pub use host::facts as host_facts;
pub use host::live::{HostProbe, boot_id, children_cpu, now, process_cpu, thread_cpu};
pub use host::meminfo::Meminfo;
pub use host::pressure::PRESSURE;
pub use kallsyms::{Kallsyms, NoSymbols};
pub use kernel_file::{KernelFile, Root, Shape};
pub use kernel_log::watch::{LogWatch, Written};
pub use kernel_log::{kmsg, report as kernel_report, stored as stored_report};
pub use memory_left::{MemoryLeft, least as least_memory_left, least_in as least_memory_left_in};
pub use mounts::tmpfs_devices;
pub use named_files::{NamedCache, NamedFile};
pub use pressure::{Averages, Pressure};
pub use process::auxv::is_secure_start;
pub use process::command_line::{CommandLine, command_lines};
pub use process::environ::{MemoryVariable, memory_variables};
pub use process::files::ProcessFiles;
pub use process::frozen::FrozenProcess;
pub use process::identity::ProcessIdentity;
pub use process::kernel_stack::{TaskWait, waiting_in_d};
pub use process::limits::{ProcessLimits, SoftHard};
pub use process::mapped_file::{MapFiles, MappedFile};
pub use process::maps::{Access, MAPPINGS_MAX, Mapping, Mappings};
pub use process::memory::ProcessMemory;
pub use process::pagemap::{PageRun, Pagemap, PagesKnown};
pub use process::pss::{Details, DetailsError, PssCost};
pub use process::scan::ProcessDetail;
pub use process::sharers::{FileKey, FileUsers, SharerBudget, Sharers};
pub use process::smaps::{SmapsBlock, SmapsField, VmFlag, VmFlags, each_smaps_block, parse_smaps};
pub use process::status::StatusFacts;
pub use process::task::Task;
pub use process::thread_stack::{StackPointer, StackPointers};
pub use process::timed_read::{NoAnswer, TimedRead, read_within};
pub use tasks::{TaskSource, Tasks, service_of};
pub use timeline::with_causes;
pub use tracefs::{Tracefs, Tracepoint, cpus_online, memory_cgroup};
