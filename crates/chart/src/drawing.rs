//! Charts: title, unit, series and limits, and the function that computes the curves.

use diagnose::Evidence;
use diagnose::accounting::{Standing, TermKind};
use timeline::SignalId;

/// A value for each sample of a timeline, in the chart's unit; `None` where nothing was measured.
pub type Curve = Vec<Option<f64>>;

/// The layout of the series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChartKind {
    /// Areas on top of each other, in the order of the series from the bottom.
    Stack,
    /// Lines from 0 up.
    Lines,
    /// Lines around 0: negative series are drawn downwards.
    Mirror,
}

/// The size of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChartSize {
    /// The whole width, with a table of values at the cursor; a small copy of it shows the whole range.
    Overview,
    /// The whole width, with a table of values at the cursor.
    Wide,
    /// A small chart beside others.
    Small,
}

/// The unit of the vertical axis.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChartUnit {
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Pages per second.
    PagesPerSecond,
    /// Events per second.
    CountPerSecond,
    /// A share of a whole; 1 is all of it.
    Share,
    /// Milliseconds.
    Millis,
}

/// The subject of a series. It has the same colour in every chart, in the terminal and on the page.
#[allow(missing_docs)] // names say it
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
    /// Pages that are in RAM and in swap at the same time.
    SwapCache,
    /// Shared memory, tmpfs.
    Shared,
    /// Kernel objects that cannot be reclaimed.
    SlabUnreclaimable,
    PageTables,
    KernelStacks,
    /// The kernel's per-CPU allocator.
    Percpu,
    Vmalloc,
    /// Huge pages in the pool.
    Hugetlb,
    /// Pools of compressed pages.
    Zram,
    /// A hypervisor's balloon.
    Balloon,
    /// What no counter explains.
    Unaccounted,
    /// Pages read back from swap; also used swap.
    SwapIn,
    /// Pages written to swap.
    SwapOut,
    /// Data waiting to be written.
    Dirty,
    /// Data being written.
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
    /// One of several of a kind (processes, disks, nodes), by number.
    Nth(usize),
}

impl Colour {
    /// Returns the colour of a term. Terms that are drawn as one area share a colour.
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

    /// Returns its name on the page: `file_cache`; `line_1` to `line_8`, repeated, for several of a kind.
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

    /// The number of colours for several of a kind.
    pub const LINES: usize = 8;

    /// Whether it is the pale colour of a pair.
    pub const fn is_pale(self) -> bool {
        matches!(self, Self::SwapOut | Self::Writeback | Self::PsiSome)
    }

    /// Whether the area is hatched, because its memory is of no known kind.
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
    /// For example `anon`; unique in its chart, never text from the host.
    pub id: String,
    /// Its name for readers; untrusted text, as it may come from the host.
    pub label: String,
    /// Its colour.
    pub colour: Colour,
    /// Whether it is drawn as steps that end at their sample: the rate of a counter. Levels are joined by straight
    /// lines.
    pub is_steps: bool,
    /// Whether it is drawn downwards in a mirrored chart. Its values are positive all the same.
    pub is_negative: bool,
    /// The signals that it shows: one, or its substitutes on other kernels.
    pub signals: Vec<SignalId>,
    /// Signals that it also covers although its values are different: a part of it, or the rest.
    pub related: Vec<SignalId>,
    /// Signals that its values are computed from and that are not shown themselves.
    pub inputs: Vec<SignalId>,
    /// The name of the cgroup that it is about; `None` for other series.
    pub group: Option<String>,
    /// How the memory that it shows can be taken back; `None` for other series.
    pub standing: Option<Standing>,
}

impl ChartSeries {
    /// Returns all signals that a reader finds here.
    pub fn covered(&self) -> impl Iterator<Item = SignalId> + '_ {
        self.signals.iter().chain(&self.related).copied()
    }

    /// Returns all signals that its values may need.
    pub fn needs(&self) -> impl Iterator<Item = SignalId> + '_ {
        self.covered().chain(self.inputs.iter().copied())
    }
}

/// A line to compare a chart's series with.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartLimit {
    /// What it is: `dirty limit`.
    pub label: String,
    /// Its value.
    pub value: LimitValue,
}

/// The value of a limit.
#[derive(Debug, Clone, PartialEq)]
pub enum LimitValue {
    /// One value, in the chart's unit.
    Fixed(f64),
    /// The values of the series with this id, which is drawn as a limit and not as data.
    Moving(String),
}

/// Computes a chart's curves on the samples of any part of the source: one per series, in their order. A curve is empty
/// if that part has no data. Threads share it: a server draws in one and answers in another.
pub type Draw = Box<dyn Fn(&Evidence<'_>) -> Vec<Curve> + Send + Sync>;

/// A chart: what it shows, and how to compute it.
#[allow(missing_docs)] // names say it
pub struct Chart {
    /// For example `where`, `free`, `node-0`: the page's anchor. Never text from the host.
    pub id: String,
    /// A few words: `Waiting for memory`.
    pub title: String,
    /// One sentence: what it means when it rises, or how to read it.
    pub help: &'static str,
    /// Layout.
    pub kind: ChartKind,
    /// Unit of values.
    pub unit: ChartUnit,
    pub size: ChartSize,
    /// Whether the vertical axis is logarithmic.
    pub is_log: bool,
    /// A fixed upper end: MemTotal for a stack of all memory, 1 for shares.
    pub top: Option<f64>,
    /// The curves, including series that are moving limits.
    pub series: Vec<ChartSeries>,
    /// Lines to compare the series with.
    pub limits: Vec<ChartLimit>,
    /// The low and the high edge of a band; both are moving limits.
    pub band: Option<[String; 2]>,
    /// Whether it shows changes since the first sample, and therefore no levels.
    pub is_of_changes: bool,
    /// Up to this value, in the chart's unit, the chart is quiet and is folded into one line.
    pub quiet_up_to: Option<f64>,
    /// Why nothing can be drawn, if the source lacks the data: `not recorded: /proc/pressure (needs …)`.
    pub absent: Option<String>,
    /// Whether the host's own signals are enough to draw it.
    pub is_of_host: bool,
    /// Computes its curves.
    pub draw: Draw,
}

impl Chart {
    /// Whether it takes the whole width.
    pub fn is_wide(&self) -> bool {
        self.size != ChartSize::Small
    }

    /// Whether a series is drawn as a limit for other series.
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

    use super::{Chart, Colour};

    #[test]
    fn a_chart_can_leave_its_thread() {
        const fn is_shared<T: Send + Sync>() {}
        const { is_shared::<Chart>() };
    }

    #[test]
    fn terms_of_one_colour_are_neighbours_in_the_stack() {
        let mut areas: Vec<Colour> =
            TermKind::ALL.iter().map(|term| Colour::from_term(*term)).collect();
        areas.dedup();
        let repeated = |(i, area): (usize, &Colour)| areas[..i].contains(area);
        assert!(!areas.iter().enumerate().any(repeated), "{areas:?}");
    }
}
