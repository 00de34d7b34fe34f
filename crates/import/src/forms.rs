//! The forms of text that memtide reads, one file each. A form recognises its block by content, takes the lines that
//! belong to it, and says what they mean; kernel text goes through the same parsers as live files.

use probe::saved::Parsers;
use timeline::Facts;
use units::WallClock;

use crate::looks::{Look, Looks};

mod fill;
mod free;
mod kernel_file;
mod kernel_log;
mod numastat;
mod order;
mod plausible;
mod processes;
mod ps;
mod sar_text;
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
    /// What people call it: `free`, `/proc/meminfo`.
    pub(crate) name: &'static str,
    /// Reads the block that begins at the first of the lines. `None`, and nothing read, where none begins there.
    pub(crate) read: fn(&mut Reading<'_>) -> Option<Block>,
}

/// All forms, the ones that are surest of their lines first.
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

/// Where a form reads, and what it adds to.
pub(crate) struct Reading<'a> {
    /// The lines from here to the end of the text.
    pub(crate) lines: &'a [&'a str],
    /// The command behind the last shell prompt, where the block follows on it: `vmstat 5`.
    pub(crate) command: Option<&'a str>,
    /// The time that stands before the block: the output of `date`, a log's stamp.
    pub(crate) wall: Option<WallClock>,
    /// The parsers of kernel text.
    pub(crate) parsers: &'a mut Parsers,
    /// What the text says of the host apart from samples.
    pub(crate) facts: &'a mut Facts,
    pub(super) form: &'static str,
    pub(super) looks: &'a mut Looks,
    pub(super) taken: usize,
    pub(super) signals: &'a mut std::collections::BTreeSet<&'static str>,
}

impl Reading<'_> {
    /// Adds what the block says of one moment.
    pub(crate) fn look(&mut self, mut look: Look) {
        use crate::looks::When;
        if let (When::Unknown, 0, Some(wall)) = (look.when, self.taken, self.wall) {
            look.when = When::At(wall);
        }
        // Of two sizes of pages one holds for all that is read; a report has its own.
        if let (Some(report), Some(page)) = (&look.report, self.facts.page_size) {
            let own = report.page_size.unwrap_or(units::PageSize::USUAL);
            look.convert_pages(own, page);
        }
        let host = look.sample.host.iter().map(|(id, _)| id);
        let tables = timeline::Entity::ALL.map(|entity| look.sample.table(entity).rows());
        let rows = tables.into_iter().flatten();
        let entities = rows.flat_map(|row| row.row.iter().map(|(id, _)| id));
        for signal in host.chain(entities) {
            self.signals.insert(signal.def().name);
        }
        self.looks.add(self.form, self.taken == 0, look);
        self.taken += 1;
    }
}

/// What a form took.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// What it is, for people: `free -m (procps 3.3.10 or later)`.
    pub(crate) what: String,
    /// How many lines belong to it, from the first on.
    pub(crate) lines: usize,
    /// The unit of its sizes: `MiB`; empty where it has none or writes it out.
    pub(crate) unit: &'static str,
    /// What was wrong in it: line within the block, from 0, and words.
    pub(crate) problems: Vec<(usize, String)>,
    /// How many of its lines were not understood.
    pub(crate) not_understood: usize,
}
