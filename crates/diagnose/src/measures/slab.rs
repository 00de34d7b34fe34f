//! The largest slab caches. /proc/slabinfo is readable by root only and is read more rarely than the rest.

use timeline::{
    Entity, EntitySeries, Stretch,
    signals::{SLAB_OBJECT_SIZE, SLAB_OBJECTS, SLAB_PAGES},
};
use units::{Bytes, Quantity as _};

use crate::evidence::Evidence;
use crate::finding::Affected;
use crate::trigger::Numbers;

/// One slab cache at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SlabCache {
    /// The kernel's name: `dentry`, `kmalloc-1k`.
    pub(crate) name: String,
    /// Its size in RAM.
    pub(crate) bytes: Bytes,
}

impl SlabCache {
    /// Whether the kernel counts the cache as SReclaimable (SLAB_RECLAIM_ACCOUNT). Decided by name: slabinfo does not
    /// say.
    pub(crate) fn is_reclaimable(&self) -> bool {
        const NAMES: [&str; 8] = [
            "dentry",
            "buffer_head",
            "radix_tree_node",
            "inode_cache",
            "xfs_inode",
            "ext4_extent_status",
            "jbd2_journal_head",
            "mb_cache_entry",
        ];
        NAMES.contains(&self.name.as_str())
            || self.name.ends_with("_inode_cache")
            || self.name.starts_with("kmalloc-rcl-")
    }

    /// Whether it contains names and inodes of files.
    pub(crate) fn is_of_files(&self) -> bool {
        self.name == "dentry" || self.name == "xfs_inode" || self.name.ends_with("inode_cache")
    }
}

/// Returns the size of a slab cache in RAM at sample `index`, or at its nearest earlier reading.
pub fn size(cx: &Evidence<'_>, cache: &EntitySeries, index: usize) -> Option<Bytes> {
    let pages = || {
        let pages = cx.timeline.latest_of(cache, SLAB_PAGES, index)?;
        Some(pages.to_bytes(cx.facts.page_size?))
    };
    let objects = || {
        let count = cx.timeline.latest_of(cache, SLAB_OBJECTS, index)?;
        let size = cx.timeline.latest_of(cache, SLAB_OBJECT_SIZE, index)?;
        Some(Bytes::new(size.get().saturating_mul(count.get())))
    };
    pages().or_else(objects)
}

/// Returns all caches around sample `index`, largest first; empty if slabinfo was not read.
pub(crate) fn caches(cx: &Evidence<'_>, index: usize) -> Vec<SlabCache> {
    let mut caches: Vec<SlabCache> = cx
        .timeline
        .entities(Entity::Slab)
        .filter_map(|series| {
            Some(SlabCache { name: series.key.clone(), bytes: size(cx, series, index)? })
        })
        .collect();
    caches.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
    caches
}

/// Returns the size of the caches that `is_meant` accepts, together, at each sample; `None` if there are none.
pub(crate) fn sizes(cx: &Evidence<'_>, is_meant: impl Fn(&SlabCache) -> bool) -> Option<Numbers> {
    let sum = |index| {
        let mut meant = caches(cx, index).into_iter().filter(&is_meant).peekable();
        meant.peek()?;
        Some(meant.map(|cache| cache.bytes).sum::<Bytes>().as_f64())
    };
    let sizes: Vec<Option<f64>> = (0..cx.timeline.len()).map(sum).collect();
    let is_any = sizes.iter().any(Option::is_some);
    is_any.then(|| cx.timeline.track(sizes))
}

/// Returns the cache that grew most over a stretch, and by how much; `None` if slabinfo was not read at both ends.
pub(crate) fn grown(cx: &Evidence<'_>, stretch: &Stretch) -> Option<SlabCache> {
    let before = caches(cx, stretch.first);
    // slabinfo is read more rarely: its first reading after the stretch still shows the growth in the stretch.
    let after = caches(cx, cx.timeline.len().saturating_sub(1));
    let grew = after.into_iter().filter_map(|cache| {
        let old = before.iter().find(|b| b.name == cache.name)?;
        Some(SlabCache { bytes: cache.bytes.saturating_sub(old.bytes), name: cache.name })
    });
    grew.max_by_key(|cache| cache.bytes).filter(|cache| cache.bytes > Bytes::ZERO)
}

/// Returns the largest of `caches` as those that a finding is about.
pub(crate) fn affected(caches: &[SlabCache], most: usize) -> Vec<Affected> {
    let chosen = caches.iter().filter(|c| c.bytes > Bytes::ZERO).take(most);
    chosen
        .map(|cache| Affected {
            kind: "slab cache",
            name: cache.name.clone(),
            what: cache.bytes.to_string(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_of_files_are_reclaimable_and_plain_kmalloc_is_not() {
        let cache = |name: &str| SlabCache { name: name.to_owned(), bytes: Bytes::ZERO };
        for name in ["dentry", "ext4_inode_cache", "inode_cache", "xfs_inode"] {
            assert!(cache(name).is_reclaimable(), "{name}");
            assert!(cache(name).is_of_files(), "{name}");
        }
        for name in ["ebitmap_node", "kmalloc-512", "task_struct"] {
            assert!(!cache(name).is_reclaimable(), "{name}");
        }
        assert!(cache("buffer_head").is_reclaimable() && !cache("buffer_head").is_of_files());
    }
}
