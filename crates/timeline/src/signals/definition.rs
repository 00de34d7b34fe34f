//! What a signal is: its entity, its kind and unit as a type, and its entry in the catalogue.

use std::marker::PhantomData;

use units::Unit;

use super::{ALL, by_name};

/// What a signal describes; a sample has one row for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Entity {
    /// The whole machine.
    Host,
    /// A NUMA node; keyed by its number.
    Node,
    /// A memory zone; keyed `NODE/NAME`, for example `0/Normal`.
    Zone,
    /// A block device; keyed by its kernel name.
    Disk,
    /// A swap area; keyed by its path.
    SwapArea,
    /// A zram device; keyed by its kernel name.
    Zram,
    /// A slab cache; keyed by its name.
    Slab,
    /// A cgroup; keyed by its path below the mount, `/` for the mount itself.
    Cgroup,
    /// A process; keyed `PID@START`, START in clock ticks since boot.
    Process,
    /// All processes of a systemd unit or cgroup, else of a program; keyed by its name.
    Service,
}

impl Entity {
    /// All kinds, in the order of their declaration.
    pub const ALL: [Self; 10] = [
        Self::Host,
        Self::Node,
        Self::Zone,
        Self::Disk,
        Self::SwapArea,
        Self::Zram,
        Self::Slab,
        Self::Cgroup,
        Self::Process,
        Self::Service,
    ];

    /// The indexes of its signals in the catalogue, which are consecutive.
    pub fn signals(self) -> std::ops::Range<usize> {
        let start = ALL.partition_point(|def| def.entity < self);
        start..ALL.partition_point(|def| def.entity <= self)
    }

    /// Its name in lists: `host`, `swap area`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Node => "node",
            Self::Zone => "zone",
            Self::Disk => "disk",
            Self::SwapArea => "swap area",
            Self::Zram => "zram",
            Self::Slab => "slab cache",
            Self::Cgroup => "cgroup",
            Self::Process => "process",
            Self::Service => "service",
        }
    }
}

/// A level: may rise and fall.
#[derive(Debug, Clone, Copy)]
pub struct Gauge<U>(PhantomData<U>);

/// A total since boot, or since the entity began. It only rises, so only its rate is meaningful.
#[derive(Debug, Clone, Copy)]
pub struct Counter<U>(PhantomData<U>);

/// Whether a signal is a gauge or a counter, and its unit.
pub trait Kind {
    /// The unit of a reading.
    type Unit: Unit;
    /// Whether it is a counter.
    const IS_COUNTER: bool;
}

impl<U: Unit> Kind for Gauge<U> {
    type Unit = U;
    const IS_COUNTER: bool = false;
}

impl<U: Unit> Kind for Counter<U> {
    type Unit = U;
    const IS_COUNTER: bool = true;
}

/// A signal, as its index in the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SignalId(pub(super) u16);

impl SignalId {
    /// The catalogue's entry.
    pub fn def(self) -> &'static SignalDef {
        &ALL[usize::from(self.0)]
    }

    /// Its index in [`ALL`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Every signal, in the catalogue's order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..ALL.len()).filter_map(Self::from_index)
    }

    /// The signal with this index in [`ALL`]; `None` past the end.
    pub fn from_index(index: usize) -> Option<Self> {
        let id = u16::try_from(index).ok()?;
        (index < ALL.len()).then_some(Self(id))
    }
}

/// An entry of the catalogue with kind and unit in its type.
#[derive(Debug)]
pub struct Signal<K> {
    id: SignalId,
    kind: PhantomData<K>,
}

impl<K> Clone for Signal<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Signal<K> {}

impl<K> Signal<K> {
    pub(super) const fn new(id: u16) -> Self {
        Self { id: SignalId(id), kind: PhantomData }
    }

    /// Its id in the catalogue.
    pub const fn id(self) -> SignalId {
        self.id
    }

    /// The catalogue's entry.
    pub fn def(self) -> &'static SignalDef {
        self.id.def()
    }
}

/// Any signal, where kind and unit do not matter: in evidence and in lists.
pub trait AnySignal: Copy {
    /// The catalogue's entry.
    fn definition(self) -> &'static SignalDef;
}

impl<K> AnySignal for Signal<K> {
    fn definition(self) -> &'static SignalDef {
        self.def()
    }
}

/// The catalogue's entry for a signal.
#[allow(missing_docs)] // names say it
#[derive(Debug)]
pub struct SignalDef {
    /// Dotted name: `vm.pswpin`.
    pub name: &'static str,
    /// Whether it only ever rises.
    pub is_counter: bool,
    /// Unit of a stored reading: `bytes`, `pages`, `count`, `us`, `ticks`.
    pub unit: &'static str,
    /// The kind of entity that it describes.
    pub entity: Entity,
    /// The kernel file, or [`DERIVED`](super::files::DERIVED).
    pub file: &'static str,
    /// The field in it: a name, a column, or the formula of a derived signal.
    pub field: &'static str,
    /// The factor from the file's unit to the stored unit: 1024 for "kB", 512 for sectors, else 1.
    pub scale: u64,
    /// The kernel version that added it; empty where all kernels in use have it.
    pub since: &'static str,
    pub meaning: &'static str,
    /// The column of `sar`; empty where there is none.
    pub sar: &'static str,
    /// The metric of Performance Co-Pilot; empty where there is none.
    pub pcp: &'static str,
    /// The metric of node_exporter, including collectors that are off by default; empty where there is none. For
    /// `/proc/vmstat` only the fields that are exported by default: the collector can be configured to export every
    /// field.
    pub node_exporter: &'static str,
}

impl SignalDef {
    /// What a signal has where the catalogue leaves it out.
    pub(super) const BLANK: Self = Self {
        name: "",
        is_counter: false,
        unit: "",
        entity: Entity::Host,
        file: "",
        field: "",
        scale: 1,
        since: "",
        meaning: "",
        sar: "",
        pcp: "",
        node_exporter: "",
    };

    /// Its id in the catalogue.
    pub fn id(&self) -> Option<SignalId> {
        by_name(self.name).map(|(id, _)| id)
    }

    /// `gauge` or `counter`.
    pub const fn kind(&self) -> &'static str {
        if self.is_counter { "counter" } else { "gauge" }
    }
}
