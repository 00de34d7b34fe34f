//! How much fits into a tmpfs: its size limits its files, however much RAM is left. No kernel file shows how full each
//! is.

use timeline::facts::MemoryMount;
use timeline::signals::MEM_SHMEM;
use units::{Bytes, Quantity, Ratio};

use super::Bounds;
use super::limit::{HeadroomLimit, LimitKind};
use super::terms::whole;
use crate::evidence::Evidence;

/// A tmpfs without `size=` may use this share of RAM (mm/shmem.c, shmem_default_max_blocks).
const SIZE_DEFAULT: Ratio = Ratio::from_percent(50.0);

/// The limit of the largest tmpfs; where none is mounted, that of one with the default size.
pub(super) fn limit(cx: &Evidence<'_>) -> HeadroomLimit {
    let default = cx.ram().ok().map(|ram| ram.share(SIZE_DEFAULT));
    let mounts = cx.facts.memory_mounts.iter().filter(|mount| mount.kind == "tmpfs");
    // `size=0` is no limit (Documentation/filesystems/tmpfs.rst): RAM alone decides.
    let size = |mount: &&MemoryMount| match mount.size.or(default) {
        Some(Bytes::ZERO) => Bytes::new(i64::MAX.unsigned_abs()),
        size => size.unwrap_or_default(),
    };
    let (name, bounds, text) = match (mounts.max_by_key(size), default) {
        (Some(mount), _) => of_mount(cx, mount, size(&mount)),
        (None, Some(default)) if !cx.facts.memory_mounts.is_empty() => (
            String::new(),
            Bounds { lower: Some(whole(default.as_f64())), likely: None, upper: i64::MAX },
            format!("no tmpfs is mounted; one without `size=` holds {default} at most"),
        ),
        _ => (
            String::new(),
            Bounds { lower: None, likely: None, upper: i64::MAX },
            "how large a tmpfs may be is unknown: /proc/mounts shows it".to_owned(),
        ),
    };
    HeadroomLimit { kind: LimitKind::Tmpfs, name, bounds, holds: true, text }
}

/// The room in one tmpfs. It may contain all shared memory or none; and a larger tmpfs may be mounted, so the room in
/// this one is no upper bound.
fn of_mount(cx: &Evidence<'_>, mount: &MemoryMount, size: Bytes) -> (String, Bounds, String) {
    let shared = cx.timeline.gauge(MEM_SHMEM).and_then(|shared| shared.max());
    let used = shared.map_or(size, |(shared, _)| shared.min(size));
    let bounds = Bounds {
        lower: Some(whole(size.saturating_sub(used).as_f64())),
        likely: None,
        upper: i64::MAX,
    };
    if mount.size == Some(Bytes::ZERO) {
        let text = format!("the tmpfs {} has no limit of its own (size=0)", mount.point);
        return (mount.point.clone(), bounds, text);
    }
    let text = format!(
        "the largest tmpfs, {}, holds {size} at most, of which up to {used} are taken; for more a \
         larger one must be mounted",
        mount.point
    );
    (mount.point.clone(), bounds, text)
}
