//! What an answer rests on, as figures.

use units::Bytes;

use super::{Bounds, ChainLimit, DemandKind, HeadroomLimit};

/// What the answer rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadroomBasis {
    /// The room, reduced by all limits.
    Room {
        /// At the worst moment.
        least: Bounds,
        /// For the requested share of the time.
        usual: Bounds,
        /// Whether at the worst moment it is smaller than the demand, as far as is known.
        is_lacking_at_worst: bool,
        /// Whether one sample is all there is.
        is_of_one_sample: bool,
    },
    /// Nothing: no sample has all figures.
    NoSample,
    /// Nothing: available memory is unknown.
    AvailableUnknown,
}

/// What limits headroom first.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeadroomBinding {
    Limit(HeadroomLimit),
    /// A limit of the cgroup that was asked about, or of one around it.
    Chain(ChainLimit),
    /// The host's RAM.
    Ram(Bytes),
}

/// A further remark.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeadroomRemark {
    /// A rule found that memory was short.
    Short {
        rule: &'static str,
        times: u64,
        /// The rule's text.
        text: String,
    },
    /// A cgroup within the one that was asked about was short, at a limit of its own: the rule's text.
    ShortWithin(String),
    /// The cgroup that was asked about, or one around it, fills its limit without anything added: the text of the rule.
    Fills(String),
    /// No limit around the cgroup of this name is below the host's RAM.
    NoLimitAround(String),
    /// A node that reclaims its own pages limits headroom; more RAM would not cure that. Without it there is this much.
    NodeReclaim(Bounds),
    /// The demand does not fit into a cgroup of this limit, if it is meant for that.
    SmallGroup(HeadroomLimit),
    /// It may fit or not: the usual room.
    Undecided(Bounds),
    /// So much page cache is neither free nor available, and nothing explains it.
    Residue(Bytes),
    /// The watched part of the cycle is too short.
    WatchedTooShort,
    /// A good answer of less than a whole cycle.
    NotConfirmed,
}

/// Something that adding the demand would do.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddedEffect {
    /// What is left at the worst moment is known within bounds only: [`Added::bounds`](super::Added).
    LeavesBetween,
    /// What such memory takes.
    Takes(DemandKind),
    /// So much of it, or of the cache that is there, would be dropped and read again.
    DropsCache(Bytes),
    /// It would take so much of cache that is needed.
    TakesNeededCache(Bytes),
    /// So much would be above memory.high.
    Throttled(Bytes),
    /// So much goes beyond what reclaim can take without swap; swap that is left, if that is known.
    PastCliff {
        bytes: Bytes,
        /// Free swap.
        swap_left: Option<Bytes>,
    },
}
