//! The forms of text that memtide reads, one file each. A form recognises its block by content, takes the lines that
//! belong to it and turns them into snapshots. Kernel text goes through the parsers that read live files.

use crate::block::{BlockReader, TextBlock};

mod free;
mod kernel_file;
mod kernel_log;
mod numastat;
mod plausible;
mod processes;
mod ps;
mod row_order;
mod sar_text;
mod size_unit;
mod slabtop;
mod smem;
mod swapon;
mod sysctl;
mod table;
mod top;
mod vmstat;

/// A form of text.
#[derive(Debug)]
pub(crate) struct Form {
    /// The usual name: `free`, `/proc/meminfo`.
    pub(crate) name: &'static str,
    /// Reads the block that begins at the first line. `None` if there is none; then nothing was added.
    pub(crate) read: fn(&mut BlockReader<'_>) -> Option<TextBlock>,
}

/// All forms. Those that are least likely to take the lines of another form come first.
pub(crate) const ALL: &[Form] = &[
    kernel_log::FORM,
    sar_text::FORM,
    free::FORM,
    vmstat::FORM,
    vmstat::TOTALS,
    slabtop::FORM,
    slabtop::TOTALS,
    numastat::FORM,
    swapon::FORM,
    smem::FORM,
    top::FORM,
    ps::FORM,
    kernel_file::FORM,
    sysctl::FORM,
    table::FORM,
];
