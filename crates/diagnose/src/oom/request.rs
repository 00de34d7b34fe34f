//! What an allocation requested, decoded from its GFP flags. Their bits moved between kernels, their meaning did not.

use timeline::kernel_report::Request;
use units::{Bytes, PageSize};

/// Kinds of zones, the lowest first. A request that may use one zone may use all lower ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ZoneType {
    /// The first 16 MiB; 1 GiB on some boards.
    Dma,
    /// Below 4 GiB.
    Dma32,
    /// Memory that the kernel maps permanently; below 896 MiB on 32-bit machines.
    Normal,
    /// Memory above that, on 32-bit machines.
    HighMem,
    /// Movable allocations only.
    Movable,
}

impl ZoneType {
    /// The kind of zone with this name; `None` for a zone without allocations (Device).
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "DMA" => Some(Self::Dma),
            "DMA32" => Some(Self::Dma32),
            "Normal" => Some(Self::Normal),
            "HighMem" => Some(Self::HighMem),
            "Movable" => Some(Self::Movable),
            _ => None,
        }
    }
}

/// A decoded request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked {
    /// 2^order pages.
    pub(crate) order: u32,
    /// The highest kind of zone that may serve it; lower zones may too.
    pub(crate) highest: ZoneType,
    /// Whether its pages can be moved, so that CMA may serve it.
    pub(crate) is_movable: bool,
    /// Whether it may sleep until memory was reclaimed.
    pub(crate) may_sleep: bool,
    /// Whether it may use the reserve below the `min` watermark.
    pub(crate) is_privileged: bool,
    /// Whether reclaim on its behalf may enter file systems.
    pub(crate) may_enter_fs: bool,
    /// Whether it fails early, because its caller has a fallback.
    pub(crate) has_fallback: bool,
}

// The lowest bits never moved (include/linux/gfp_types.h; before 6.0 gfp.h).
const DMA: u64 = 0x01;
const HIGHMEM: u64 = 0x02;
const DMA32: u64 = 0x04;
const MOVABLE: u64 = 0x08;
const HIGH: u64 = 0x20;
const FS: u64 = 0x80;

/// Bits that together mean "may reclaim directly and wakes kswapd", by era: since 5.1, since 4.18, since 4.11, since
/// 4.4.
const RECLAIM: [u64; 4] = [0xc00, 0x60_0000, 0x140_0000, 0x240_0000];
/// Bits that wake kswapd only, by the same eras.
const WAKES_KSWAPD: [u64; 4] = [0x800, 0x40_0000, 0x100_0000, 0x200_0000];
/// Names of flags of callers that can do without the memory, or try again (include/linux/gfp_types.h). Their bits moved.
const FALLBACK: [&str; 4] =
    ["__GFP_NORETRY", "__GFP_RETRY_MAYFAIL", "__GFP_NOMEMALLOC", "__GFP_NOWARN"];

/// Before 4.4: the bit for "may sleep".
const WAIT: u64 = 0x10;

impl Asked {
    /// Decodes a request; `None` for a kill that was requested by hand, without an allocation.
    pub(super) fn from_request(request: &Request) -> Option<Self> {
        let order = u32::try_from(request.order).ok()?;
        let mask = request.gfp_mask;
        let names: Vec<&str> = request
            .gfp_names
            .as_deref()
            .map(|names| names.split('|').map(str::trim).collect())
            .unwrap_or_default();
        let named = |wanted: &[&str]| names.iter().any(|name| wanted.contains(name));
        let starts = |wanted: &str| names.iter().any(|name| name.starts_with(wanted));
        let transhuge = starts("GFP_TRANSHUGE");
        let is_movable =
            mask & MOVABLE != 0 || transhuge || named(&["GFP_HIGHUSER_MOVABLE", "__GFP_MOVABLE"]);
        let highmem =
            mask & HIGHMEM != 0 || transhuge || starts("GFP_HIGHUSER") || named(&["__GFP_HIGHMEM"]);
        let highest = if mask & DMA != 0 || named(&["GFP_DMA", "__GFP_DMA"]) {
            ZoneType::Dma
        } else if mask & DMA32 != 0 || named(&["GFP_DMA32", "__GFP_DMA32"]) {
            ZoneType::Dma32
        } else {
            match (highmem, is_movable) {
                (true, true) => ZoneType::Movable,
                (true, false) => ZoneType::HighMem,
                (false, _) => ZoneType::Normal,
            }
        };
        Some(Self {
            order,
            highest,
            is_movable,
            may_sleep: sleeps_by_name(&names).unwrap_or_else(|| sleeps_by_mask(mask)),
            is_privileged: mask & HIGH != 0 || named(&["GFP_ATOMIC", "__GFP_HIGH"]),
            may_enter_fs: mask & FS != 0,
            has_fallback: named(&FALLBACK),
        })
    }

    /// Whether it can neither sleep nor be deferred, as requests of interrupts.
    pub(crate) fn is_atomic(&self) -> bool {
        !self.may_sleep
    }

    /// Its size; in pages where the page size is unknown.
    pub(crate) fn size(&self, page: Option<PageSize>) -> String {
        match (page, 1_u64.checked_shl(self.order)) {
            (Some(page), Some(pages)) => {
                Bytes::new(page.bytes().get().saturating_mul(pages)).to_string()
            }
            (None, Some(1)) => "one page".to_owned(),
            (None, Some(pages)) => format!("{pages} pages in a row"),
            (_, None) => "more than there can be".to_owned(),
        }
    }

    /// The kind of memory, and for whom. `charge`: the call trace where a cgroup's limit was hit.
    pub(crate) fn kind(&self, charge: Option<&[String]>) -> String {
        let charged = charge.filter(|_| self.highest == ZoneType::Normal && self.may_sleep);
        let what = match charged {
            Some(trace) => charged_page(trace),
            None => self.what(),
        };
        let how = match (self.may_sleep, self.is_privileged) {
            (true, _) if !self.may_enter_fs => ", may wait but not for file systems",
            (true, _) => ", may wait",
            (false, true) => ", may not wait, but may use the reserve (atomic)",
            (false, false) => ", may not wait",
        };
        let within = match self.highest {
            ZoneType::Dma => ", from zone DMA only",
            ZoneType::Dma32 => ", from DMA32 or below only",
            _ => "",
        };
        format!("{what}{how}{within}")
    }

    /// The kind of memory that the mask shows.
    fn what(&self) -> &'static str {
        match (self.highest, self.is_movable) {
            (ZoneType::Dma | ZoneType::Dma32, _) => "memory for a device",
            (ZoneType::Movable, _) => "memory of a program or of files",
            (ZoneType::HighMem, _) => "memory of a program",
            _ if !self.may_sleep => "kernel memory",
            _ => "kernel memory or buffers",
        }
    }
}

/// What was charged to a cgroup with GFP_KERNEL: a page fault charges pages of programs with it as the kernel does its own
/// objects (mm/memory.c, `do_anonymous_page`: `mem_cgroup_charge(folio, mm, GFP_KERNEL)`), so only the
/// call trace shows which.
fn charged_page(trace: &[String]) -> &'static str {
    // A page table is charged within a page fault, so objects of the kernel come first.
    const OF_KERNEL: [&str; 5] = [
        "obj_cgroup_charge",
        "memcg_kmem_charge",
        "memcg_charge_kmem",
        "memcg_slab",
        "charge_skmem",
    ];
    const OF_FILES: [&str; 4] =
        ["filemap_add_folio", "add_to_page_cache", "shmem_get", "shmem_add_to_page_cache"];
    const OF_PROGRAMS: [&str; 8] = [
        "do_anonymous_page",
        "do_huge_pmd_anonymous_page",
        "wp_page_copy",
        "do_wp_page",
        "do_cow_fault",
        "do_swap_page",
        "handle_mm_fault",
        "alloc_anon_folio",
    ];
    let calls = |known: &[&str]| {
        trace.iter().any(|function| known.iter().any(|known| function.contains(known)))
    };
    if calls(&OF_KERNEL) {
        "kernel memory"
    } else if calls(&OF_FILES) {
        "memory of files or tmpfs"
    } else if calls(&OF_PROGRAMS) {
        "memory of a program"
    } else {
        "memory of a program or of the kernel"
    }
}

/// Whether the flag names allow it to sleep; `None` if unknown.
fn sleeps_by_name(names: &[&str]) -> Option<bool> {
    const SLEEPS: [&str; 9] = [
        "GFP_NOFS",
        "GFP_NOIO",
        "GFP_KERNEL",
        "GFP_KERNEL_ACCOUNT",
        "GFP_USER",
        "GFP_TEMPORARY",
        "GFP_TRANSHUGE",
        "__GFP_DIRECT_RECLAIM",
        "__GFP_RECLAIM",
    ];
    const NEVER: [&str; 4] =
        ["GFP_ATOMIC", "GFP_NOWAIT", "GFP_TRANSHUGE_LIGHT", "__GFP_KSWAPD_RECLAIM"];
    if names.iter().any(|n| SLEEPS.contains(n) || n.starts_with("GFP_HIGHUSER")) {
        return Some(true);
    }
    names.iter().any(|n| NEVER.contains(n)).then_some(false)
}

/// Whether the mask allows it to sleep, on any kernel: both bits together mean this in one era only.
fn sleeps_by_mask(mask: u64) -> bool {
    if RECLAIM.iter().any(|both| mask & both == *both) {
        return true;
    }
    // Before 4.4 no bit of its own woke kswapd.
    let is_newer = WAKES_KSWAPD.iter().any(|bit| mask & bit != 0);
    !is_newer && mask & WAIT != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(gfp_mask: u64, names: Option<&str>) -> Asked {
        Asked::from_request(&Request { gfp_mask, gfp_names: names.map(str::to_owned), order: 0 })
            .unwrap()
    }

    #[test]
    fn a_page_of_a_program_is_told_on_every_kernel() {
        for mask in
            [0x201da, 0x280da, 0x24200ca, 0x14200ca, 0x6200ca, 0x100cca, 0x1100cca, 0x140dca]
        {
            let asked = asked(mask, None);
            assert!(asked.may_sleep, "{mask:#x}");
            assert!(asked.is_movable, "{mask:#x}");
            assert_eq!(asked.highest, ZoneType::Movable, "{mask:#x}");
        }
    }

    #[test]
    fn kernel_memory_may_wait_on_every_kernel() {
        for mask in
            [0xd0, 0x3000d0, 0x24000c0, 0x27080c0, 0x14000c0, 0x6000c0, 0x6040c0, 0xcc0, 0x400dc0]
        {
            let asked = asked(mask, None);
            assert!(asked.may_sleep, "{mask:#x}");
            assert_eq!(asked.highest, ZoneType::Normal, "{mask:#x}");
        }
    }

    #[test]
    fn atomic_requests_are_told_on_every_kernel() {
        for mask in [0x20, 0x4020, 0x2204020, 0x2280020, 0x1080020, 0x480020, 0xa20, 0x40820] {
            let asked = asked(mask, None);
            assert!(!asked.may_sleep, "{mask:#x}");
            assert!(asked.is_privileged, "{mask:#x}");
        }
    }

    #[test]
    fn requests_for_devices_are_confined() {
        assert_eq!(asked(0xcc1, None).highest, ZoneType::Dma);
        assert_eq!(asked(0xcc4, None).highest, ZoneType::Dma32);
        assert_eq!(asked(0, Some("GFP_KERNEL|GFP_DMA32")).highest, ZoneType::Dma32);
    }

    #[test]
    fn names_outrank_bits() {
        assert!(asked(0, Some("GFP_HIGHUSER_MOVABLE|__GFP_ZERO")).may_sleep);
        assert!(!asked(0x10, Some("GFP_NOWAIT|__GFP_NOWARN")).may_sleep);
    }

    #[test]
    fn what_a_cgroup_is_charged_with_gfp_kernel_is_in_the_call_trace() {
        let charged = |trace: &[&str]| {
            let trace: Vec<String> = trace.iter().map(|f| (*f).to_owned()).collect();
            asked(0xcc0, Some("GFP_KERNEL")).kind(Some(&trace))
        };
        let fault = ["try_charge_memcg", "charge_memcg", "__mem_cgroup_charge"];
        let of_program = [&fault[..], &["do_anonymous_page", "__handle_mm_fault"]].concat();
        assert_eq!(charged(&of_program), "memory of a program, may wait");
        let of_table = ["obj_cgroup_charge_pages", "pte_alloc_one", "__handle_mm_fault"];
        assert_eq!(charged(&of_table), "kernel memory, may wait");
        let of_file =
            [&fault[..], &["__filemap_add_folio", "do_fault", "handle_mm_fault"]].concat();
        assert_eq!(charged(&of_file), "memory of files or tmpfs, may wait");
        assert_eq!(charged(&[]), "memory of a program or of the kernel, may wait");
        // A request of the host is charged to nothing, and a mask for user pages is plain.
        assert_eq!(asked(0xcc0, None).kind(None), "kernel memory or buffers, may wait");
        let user = asked(0x140dca, None).kind(Some(&[]));
        assert_eq!(user, "memory of a program or of files, may wait");
    }

    #[test]
    fn a_kill_by_hand_asks_for_nothing() {
        let request = Request { order: -1, ..Request::default() };
        assert_eq!(Asked::from_request(&request), None);
    }
}
