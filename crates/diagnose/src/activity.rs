//! What goes on at one moment: levels, and rates over the seconds before it, of the host, its cgroups and its processes.
//!
//! Nothing is judged here. A rate is the mean of the last seconds, so that a reader can follow it; growth is that of the last
//! minute.

mod groups;
mod host;
mod processes;
mod window;

#[cfg(test)]
mod tests;

use timeline::cgroup::ROOT;
use units::Span;

pub use groups::GroupActivity;
pub use host::HostActivity;
pub use processes::{ProcessActivity, ProcessSize};

use crate::evidence::Evidence;

/// What goes on at a sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Activity {
    /// The moment, on the timeline's clock.
    pub at: Span,
    /// Memory of the whole host.
    pub host: HostActivity,
    /// Services, containers, and cgroups that have a limit or are of neither; the largest first.
    pub groups: Vec<GroupActivity>,
    /// Processes with memory of their own, the largest first.
    pub processes: Vec<ProcessActivity>,
}

/// Returns what goes on at sample `index`, in all cgroups or in those from `group` on.
pub fn activity(cx: &Evidence<'_>, index: usize, group: Option<&str>) -> Activity {
    Activity {
        at: cx.time(index).unwrap_or_default(),
        host: host::at(cx, index),
        groups: groups::at(cx, index, group.unwrap_or(ROOT)),
        processes: processes::at(cx, index, group),
    }
}
