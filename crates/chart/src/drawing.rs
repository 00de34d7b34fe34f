//! What a chart is: its title, unit, series and limits, and the function that computes its curves.

use diagnose::Evidence;
use diagnose::accounting::{Standing, TermKind};
use timeline::SignalId;

/// A value for each sample of a timeline, in the chart's unit; `None` where nothing was measured.
pub type Curve = Vec<Option<f64>>;

/// How series are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChartKind {
    /// Areas on top of each other, in the order of the series from the bottom.
    Stack,
    /// Lines from 0 up.
    Lines,
    /// Lines around 0: series that are negative are drawn downwards.
    Mirror,
}

/// How much room a chart takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChartSize {
    /// The whole width and a table of values at the cursor; it stands for the whole range in small, too.
    Overview,
    /// The whole width and a table of values at the cursor.
    Wide,
    /// A place among others.
    Small,
}

/// What the vertical axis measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChartUnit {
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Pages per second.
    PagesPerSecond,
    /// A part of a whole; 1 is all of it.
    Share,
    /// Milliseconds.
    Millis,
}

/// What a series is about; it has the same colour in every chart, in the terminal and on the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Free memory.
    Free,
    /// Free memory on per-CPU lists.
    Pcp,
    /// Page cache of files.
    FileCache,
    /// Page cache of block devices.
    Buffers,
    /// Kernel objects that can be reclaimed.
    SlabReclaimable,
    /// Anonymous memory of processes.
    Anon,
    /// Pages that are in RAM and in swap at once.
    SwapCache,
    /// Shared memory, tmpfs.
    Shared,
    /// Kernel objects that cannot be reclaimed.
    SlabUnreclaimable,
    /// Page tables.
    PageTables,
    /// Kernel stacks.
    KernelStacks,
    /// The kernel's per-CPU allocator.
    Percpu,
    /// vmalloc.
    Vmalloc,
    /// Huge pages of the pool.
    Hugetlb,
    /// Pools of compressed pages.
    Zram,
    /// A hypervisor's balloon.
    Balloon,
    /// What no counter explains.
    Unaccounted,
    /// Read back from swap; also what lies in swap.
    SwapIn,
    /// Written to swap.
    SwapOut,
    /// Data that waits to be written.
    Dirty,
    /// Data that is being written.
    Writeback,
    /// Some task waited.
    PsiSome,
    /// All tasks waited.
    PsiFull,
    /// The kernel's background reclaim.
    Kswapd,
    /// Reclaim by allocating tasks.
    Direct,
    /// Read from disk.
    Read,
    /// Written to disk.
    Write,
    /// A limit or a floor.
    Limit,
    /// Everything that has no series of its own.
    Others,
    /// One of several alike (processes, disks, nodes), by number.
    Nth(usize),
}

impl Colour {
    /// The colour of a term. Terms that are drawn as one area have one.
    pub const fn from_term(term: TermKind) -> Self {
        match term {
            TermKind::KernelStack => Self::KernelStacks,
            TermKind::PageTables => Self::PageTables,
            TermKind::Percpu => Self::Percpu,
            TermKind::Vmalloc | TermKind::Bounce => Self::Vmalloc,
            TermKind::Slab | TermKind::SlabUnreclaimable => Self::SlabUnreclaimable,
            TermKind::Balloon | TermKind::HwCorrupted => Self::Balloon,
            TermKind::Unaccounted => Self::Unaccounted,
            TermKind::HugetlbUsed | TermKind::HugetlbUnused => Self::Hugetlb,
            TermKind::CompressedPool => Self::Zram,
            TermKind::Shmem => Self::Shared,
            TermKind::Anon => Self::Anon,
            TermKind::SwapCache => Self::SwapCache,
            TermKind::SlabReclaimable | TermKind::KernelReclaimable => Self::SlabReclaimable,
            TermKind::Buffers => Self::Buffers,
            TermKind::FileCache => Self::FileCache,
            TermKind::Pcp => Self::Pcp,
            TermKind::Free => Self::Free,
        }
    }

    /// Its name on the page: `file_cache`; of several alike `line_1` to `line_8`, over and over.
    pub fn name(self) -> String {
        let name = match self {
            Self::Free => "free",
            Self::Pcp => "pcp",
            Self::FileCache => "file_cache",
            Self::Buffers => "buffers",
            Self::SlabReclaimable => "slab_reclaimable",
            Self::Anon => "anon",
            Self::SwapCache => "swap_cache",
            Self::Shared => "shared",
            Self::SlabUnreclaimable => "slab_unreclaimable",
            Self::PageTables => "page_tables",
            Self::KernelStacks => "kernel_stacks",
            Self::Percpu => "percpu",
            Self::Vmalloc => "vmalloc",
            Self::Hugetlb => "hugetlb",
            Self::Zram => "zram",
            Self::Balloon => "balloon",
            Self::Unaccounted => "unaccounted",
            Self::SwapIn => "swap_in",
            Self::SwapOut => "swap_out",
            Self::Dirty => "dirty",
            Self::Writeback => "writeback",
            Self::PsiSome => "psi_some",
            Self::PsiFull => "psi_full",
            Self::Kswapd => "kswapd",
            Self::Direct => "direct",
            Self::Read => "read",
            Self::Write => "write",
            Self::Limit => "limit",
            Self::Others => "others",
            Self::Nth(number) => return format!("line_{}", number % Self::LINES + 1),
        };
        name.to_owned()
    }

    /// How many colours there are for things alike.
    pub const LINES: usize = 8;

    /// Whether it is the pale one of a pair.
    pub const fn is_pale(self) -> bool {
        matches!(self, Self::SwapOut | Self::Writeback | Self::PsiSome)
    }

    /// Whether it is hatched: what no colour may stand for.
    pub const fn is_hatched(self) -> bool {
        matches!(self, Self::Unaccounted)
    }

    /// Whether it only distinguishes several of a kind.
    pub const fn is_numbered(self) -> bool {
        matches!(self, Self::Nth(_))
    }
}

/// One curve of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartSeries {
    /// `anon`; unique in its chart, never a host's text.
    pub id: String,
    /// Its name for readers; may come from the host: untrusted text.
    pub label: String,
    /// Its colour.
    pub colour: Colour,
    /// Drawn as steps that end at their sample: the rate of a counter. Levels are joined by straight lines.
    pub is_steps: bool,
    /// Drawn downwards in a mirrored chart. Its values are positive all the same.
    pub is_negative: bool,
    /// The signals that its values are: one, or what takes its place on other kernels.
    pub signals: Vec<SignalId>,
    /// Signals that this series also covers although its values are something else: a part of it, or the rest.
    pub related: Vec<SignalId>,
    /// Signals that its values are computed from, which are not shown themselves.
    pub inputs: Vec<SignalId>,
    /// The name of the cgroup that it is about; `None` of anything else.
    pub group: Option<String>,
    /// What can be done with the memory that it shows; `None` of anything else.
    pub standing: Option<Standing>,
}

impl ChartSeries {
    /// All signals that a reader finds here.
    pub fn covered(&self) -> impl Iterator<Item = SignalId> + '_ {
        self.signals.iter().chain(&self.related).copied()
    }

    /// All signals that its values may need.
    pub fn needs(&self) -> impl Iterator<Item = SignalId> + '_ {
        self.covered().chain(self.inputs.iter().copied())
    }
}

/// A line that a chart's series are measured against.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartLimit {
    /// What it is: `dirty limit`.
    pub label: String,
    /// Where.
    pub value: LimitValue,
}

/// Where a limit lies.
#[derive(Debug, Clone, PartialEq)]
pub enum LimitValue {
    /// At one value, in the chart's unit.
    Fixed(f64),
    /// Where this series lies, which is drawn as a limit and not as data.
    Moving(String),
}

/// Computes a chart's curves, one for each of its series and in their order, on the samples of any part of the source. A
/// curve is empty where that part has no data.
pub type Draw = Box<dyn Fn(&Evidence<'_>) -> Vec<Curve>>;

/// A picture: what it shows, and how to compute it.
pub struct Chart {
    /// `where`, `free`, `node-0`; the page's anchor. Never a host's text.
    pub id: String,
    /// A few words: `Waiting for memory`.
    pub title: String,
    /// One sentence: what it means when it rises, or how to read it.
    pub help: &'static str,
    /// Layout.
    pub kind: ChartKind,
    /// Unit of values.
    pub unit: ChartUnit,
    /// Its room.
    pub size: ChartSize,
    /// Whether the vertical axis is logarithmic.
    pub is_log: bool,
    /// A fixed upper end: MemTotal of a stack of all memory, 1 for shares.
    pub top: Option<f64>,
    /// Curves. A series that is a moving limit is among them.
    pub series: Vec<ChartSeries>,
    /// Lines to measure against.
    pub limits: Vec<ChartLimit>,
    /// The low and the high edge of a band, which are moving limits both.
    pub band: Option<[String; 2]>,
    /// Whether it shows changes since the first sample, and so proves no level.
    pub is_of_changes: bool,
    /// Up to this value, in the chart's unit, the chart is quiet and folded into one line.
    pub quiet_up_to: Option<f64>,
    /// Why nothing can be drawn, where the source lacks it: `not recorded: /proc/pressure (needs …)`.
    pub absent: Option<String>,
    /// Whether the host's own signals are enough to draw it.
    pub is_of_host: bool,
    /// Its curves.
    pub draw: Draw,
}

impl Chart {
    /// Whether it takes the whole width.
    pub fn is_wide(&self) -> bool {
        self.size != ChartSize::Small
    }

    /// Whether a series is drawn as a limit that others are measured against.
    pub fn is_limit(&self, series: &str) -> bool {
        let is_it = |limit: &LimitValue| matches!(limit, LimitValue::Moving(id) if id == series);
        self.limits.iter().any(|limit| is_it(&limit.value))
    }
}

impl std::fmt::Debug for Chart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chart")
            .field("id", &self.id)
            .field("title", &self.title)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use diagnose::accounting::TermKind;

    use super::Colour;

    #[test]
    fn terms_of_one_colour_are_neighbours_in_the_stack() {
        let mut areas: Vec<Colour> = TermKind::ALL
            .iter()
            .map(|term| Colour::from_term(*term))
            .collect();
        areas.dedup();
        let repeated = |(i, area): (usize, &Colour)| areas[..i].contains(area);
        assert!(!areas.iter().enumerate().any(repeated), "{areas:?}");
    }
}
