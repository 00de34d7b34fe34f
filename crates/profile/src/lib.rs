//! Says which memory work of the kernel costs CPU time or keeps tasks waiting, and who started it.
//!
//! Four nouns: a **stack** ([`Stack`]) is a thread's functions, sampled here ([`LiveProfile`]) or read from another tool's file
//! ([`read_profile`]); its **reason** ([`Reason`]) is who started the work, from one table ([`REASONS`]); its **work** ([`KernelWork`])
//! is what was done; a **report** ([`ProfileReport`]) says which reasons are hot.
//!
//! ```
//! let text = "db;entry_SYSCALL_64_after_hwframe;ksys_read;filemap_read;node_reclaim;shrink_lruvec 40\ndb;[user] 60\n";
//! let profile = profile::read_profile("pasted", text.as_bytes())?;
//! let report = profile::ProfileReport::of(&profile);
//! assert_eq!(report.hot[0].reason, profile::Reason::NodeReclaim);
//! assert!(report.headline.starts_with("Node reclaim in db takes 40 % of the busy CPU"));
//! # Ok::<(), profile::ReadProfileError>(())
//! ```

mod callers;
mod cgroup_stalls;
mod cgroup_use;
mod classify;
mod collected;
mod difference;
mod episode;
mod function_name;
mod judge;
mod kernel_work;
mod limits;
mod live;
mod model;
mod output_firefox;
mod output_folded;
mod output_svg;
mod purpose;
mod read;
mod reason;
mod screen;
mod stack;
mod when;
mod words;

pub use callers::CallerBranch;
pub use cgroup_stalls::{CgroupStalls, MetLimit, MetLimitKind};
pub use cgroup_use::CgroupUse;
pub use classify::{StackClass, classify};
pub use collected::{
    BlockedHow, BlockedStacks, CpuUnit, NotMeasured, Profile, ProfileOrigin, ProfilePart,
};
pub use episode::{EpisodeKey, EpisodeKind, EpisodeTable, EpisodeTimes, TRACEPOINTS};
pub use kernel_work::{KernelWork, WORKS, WorkEntry};
pub use live::{
    LiveOptions, LiveProfile, NoLiveProfile, OffCpu, ProfileScope, USUAL_HZ, USUAL_NICE,
};
pub use model::{
    BlockedSummary, CpuSummary, EpisodeSummary, HotBy, NameShare, PROFILE_SCHEMA,
    ProfileDifference, ProfileReport, PurposeShare, ReasonDifference, ReasonRow, WorkShare,
};
pub use output_firefox::firefox;
pub use output_folded::{folded, kept_text};
pub use output_svg::flame_graph;
pub use purpose::Purpose;
pub use read::{ReadProfileError, read_profile};
pub use reason::{REASONS, Reason, ReasonEntry, ReasonGroup};
pub use screen::{MIN_SHARE, profile_screen};
pub use stack::{FramePlace, Stack, StackFrame, StackTable};
pub use when::{NoCondition, ProfileCondition, RightMoments};
