//! The cache of ZFS (ARC): what programs can get of it, and what of it no counter of the kernel has.

use timeline::signals::{ZFS_ARC, ZFS_ARC_DATA, ZFS_ARC_METADATA, ZFS_ARC_MIN};
use units::Bytes;

use crate::evidence::Evidence;
use crate::trigger::{Reading, gauge};

/// What the ARC gives back when programs want memory: all but its minimum, where the source shows that.
pub(crate) fn reclaimable() -> Reading<Bytes> {
    let above_min = gauge(ZFS_ARC).minus(gauge(ZFS_ARC_MIN));
    above_min.or(gauge(ZFS_ARC))
}

/// The pages of the ARC at a sample, or at its nearest earlier reading. No counter of the kernel has them; its other parts are
/// slab. Where a source shows only its size, that is an upper bound.
pub(crate) fn pages(cx: &Evidence<'_>, index: usize) -> Option<Bytes> {
    let at = |signal| cx.level(signal, index);
    let size = at(ZFS_ARC)?;
    let parts = || Some(at(ZFS_ARC_DATA)? + at(ZFS_ARC_METADATA)?);
    Some(parts().map_or(size, |parts| parts.min(size)))
}

/// What the ARC keeps at a sample when programs want memory.
pub(crate) fn kept(cx: &Evidence<'_>, index: usize) -> Option<Bytes> {
    cx.level(ZFS_ARC_MIN, index)
}
