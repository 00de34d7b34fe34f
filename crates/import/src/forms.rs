//! The forms of text that memtide reads, one file each. A form recognises its block by content, takes the lines that
//! belong to it and turns them into snapshots. Kernel text goes through the parsers that read live files.

use std::sync::LazyLock;

use crate::block::{BlockReader, TextBlock};
use crate::text::line_scan::{BlockStart, LineSearch};

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

/// Which forms may begin where in a text.
#[derive(Debug)]
pub(crate) struct FormPlaces {
    /// The forms with a word in each line, as bits. `None`: each form may begin anywhere.
    found: Option<Vec<u64>>,
    /// The forms that may begin where none of their words is in the line.
    others: Vec<usize>,
}

impl FormPlaces {
    /// Searches a text, once for all forms.
    pub(crate) fn of(text: &str, lines: &[&str]) -> Self {
        static SEARCH: LazyLock<Option<LineSearch>> =
            LazyLock::new(|| LineSearch::new(ALL.iter().map(|form| &form.begins)));
        let is_other = |form: &usize| {
            let begins = &ALL[*form].begins;
            begins.lines > 1 || begins.or.is_some()
        };
        Self {
            found: SEARCH.as_ref().map(|search| search.forms_of(text, lines)),
            others: (0..ALL.len()).filter(is_other).collect(),
        }
    }

    /// The forms of which a block may begin at a line, as bits by their index.
    pub(crate) fn forms_at(&self, lines: &[&str], at: usize, command: Option<&str>) -> u64 {
        let Some(found) = &self.found else {
            return u64::MAX;
        };
        let mut forms = found[at];
        for form in &self.others {
            let begins = &ALL[*form].begins;
            let mut below = found.iter().skip(at).take(begins.lines);
            let may_begin = below.any(|forms| forms & 1 << form != 0)
                || begins.or.is_some_and(|or| or(&lines[at..]));
            forms |= u64::from(may_begin) << form;
        }
        if let Some(command) = command {
            for (index, form) in ALL.iter().enumerate() {
                let words = form.begins.commands;
                let is_shown = words.iter().any(|word| command.contains(word));
                forms |= u64::from(is_shown) << index;
            }
        }
        forms
    }
}
