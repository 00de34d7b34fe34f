//! The forms of text that memtide reads, one file each. A form recognises its block by content, takes the lines that
//! belong to it and turns them into snapshots. Kernel text goes through the parsers that read live files.

use crate::block::{BlockReader, TextBlock};
use crate::text::line_scan::BlockStart;

mod android;
mod arcstat;
mod atop;
mod below;
mod btop;
mod cgroup_values;
mod collectl;
mod container_usage;
mod dommemstat;
mod dstat;
mod fetch;
mod free;
mod glances;
mod htop;
mod ipcs;
mod kernel_file;
mod kernel_log;
mod kill_notice;
mod killer_readings;
mod metrics;
mod nmon;
mod numactl;
mod numastat;
mod pcp;
mod pidstat;
mod processes;
mod ps;
mod ram_unit;
mod rate_totals;
mod recognised;
mod redis_info;
mod row_order;
mod sar_text;
mod size_unit;
mod slabtop;
mod smem;
mod swapon;
mod sysctl;
mod table;
mod timed_fields;
mod top;
mod unit_status;
pub(crate) mod unknown_layout;
mod vmstat;
mod zramctl;

/// A form of text.
#[derive(Debug)]
pub(crate) struct Form {
    /// The usual name: `free`, `/proc/meminfo`.
    pub(crate) name: &'static str,
    /// What is needed for a block to begin; [`read`](Self::read) is asked about such lines only.
    pub(crate) begins: BlockStart,
    /// Reads the block that begins at the first line. `None` if there is none; then nothing was added.
    pub(crate) read: fn(&mut BlockReader<'_>) -> Option<TextBlock>,
}

/// All forms. Those that are least likely to take the lines of another form come first.
pub(crate) const ALL: &[Form] = &[
    kernel_log::FORM,
    kill_notice::FORM,
    killer_readings::FORM,
    arcstat::FORM,
    collectl::FORM,
    container_usage::FORM,
    cgroup_values::FORM,
    ipcs::FORM,
    sar_text::FORM,
    free::FORM,
    htop::FORM,
    metrics::FORM,
    atop::FORM,
    below::FORM,
    btop::FORM,
    glances::FORM,
    unit_status::FORM,
    fetch::FORM,
    redis_info::FORM,
    dstat::FORM,
    dommemstat::FORM,
    zramctl::FORM,
    android::FORM,
    nmon::FORM,
    pcp::FORM,
    pidstat::FORM,
    numactl::FORM,
    vmstat::FORM,
    vmstat::TOTALS,
    slabtop::FORM,
    slabtop::TOTALS,
    numastat::FORM,
    swapon::FORM,
    smem::FORM,
    top::FORM,
    ps::FORM,
    timed_fields::FORM,
    kernel_file::FORM,
    sysctl::FORM,
    table::FORM,
    recognised::FORM,
];
