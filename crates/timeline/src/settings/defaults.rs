//! Defaults that rules compute with: one constant each, used by the table and by rules.

use units::{Bytes, PageSize, Quantity as _, Ratio, Span};

/// `vm.swappiness` (mm/vmscan.c, `vm_swappiness`).
pub const SWAPPINESS_DEFAULT: u64 = 60;
/// `vm.watermark_scale_factor` (mm/page_alloc.c, `watermark_scale_factor`).
pub const WATERMARK_SCALE_DEFAULT: u64 = 10;
/// `vm.dirty_ratio` (mm/page-writeback.c, `vm_dirty_ratio`).
pub const DIRTY_RATIO_DEFAULT: u64 = 20;
/// `vm.dirty_background_ratio` (mm/page-writeback.c, `dirty_background_ratio`).
pub const DIRTY_BACKGROUND_RATIO_DEFAULT: u64 = 10;
/// `vm.dirty_expire_centisecs` (mm/page-writeback.c, `dirty_expire_interval`).
pub const DIRTY_EXPIRE_DEFAULT: Span = Span::from_secs(30);
/// `vm.compaction_proactiveness` (mm/compaction.c, `sysctl_compaction_proactiveness`).
pub const COMPACTION_PROACTIVENESS_DEFAULT: u64 = 20;
/// The most that `vm.admin_reserve_kbytes` is by default (mm/mmap.c, `init_admin_reserve`).
pub const ADMIN_RESERVE_MAX: Bytes = Bytes::from_mib(8);
/// `zswap.max_pool_percent` (mm/zswap.c, `zswap_max_pool_percent`).
pub const ZSWAP_MAX_POOL_DEFAULT: u64 = 20;
/// `thp.max_ptes_none` with base pages of 4 KiB: all but one of a huge page (mm/khugepaged.c, `khugepaged_init`).
pub const MAX_PTES_NONE_DEFAULT: u64 = 511;
/// Cap of the default of `vm.min_free_kbytes` without huge pages (mm/page_alloc.c, `calculate_min_free_kbytes`).
pub const MIN_FREE_MAX_KIB: u32 = 262_144;
/// Cap of khugepaged's value for it, as a share of RAM (mm/khugepaged.c, `set_recommended_min_free_kbytes`). No other
/// default of the kernel is larger.
pub const MIN_FREE_OF_HUGE_PAGES_MAX: Ratio = Ratio::from_percent(5.0);

/// The kernel's default of `vm.min_free_kbytes`: `sqrt(16 × RAM)` in kB (mm/page_alloc.c, `calculate_min_free_kbytes`),
/// raised by khugepaged to eleven huge pages for each of `zones` (2 + 3² migrate types) where huge pages are on.
pub fn default_min_free(managed: Bytes, page: PageSize, zones: u32, has_huge_pages: bool) -> Bytes {
    let root = (16.0 * managed.as_f64() / 1024.0).sqrt();
    let plain = root.clamp(128.0, f64::from(MIN_FREE_MAX_KIB)) * 1024.0;
    let blocks = 11.0 * f64::from(zones) * huge_page_of(page).as_f64();
    let huge = blocks.min(MIN_FREE_OF_HUGE_PAGES_MAX.get() * managed.as_f64());
    Bytes::from_f64(if has_huge_pages { plain.max(huge) } else { plain })
}

/// The size of a PMD huge page: 2 MiB with 4 KiB pages, 32 MiB with 16 KiB, 512 MiB with 64 KiB.
pub fn huge_page_of(page: PageSize) -> Bytes {
    let page = page.bytes().get();
    Bytes::new(page * (page / 8))
}
