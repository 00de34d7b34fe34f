//! Which lines of the kernel's source have allocated memory: `/proc/allocinfo` (6.10, `CONFIG_MEM_ALLOC_PROFILING`).
//!
//! `BYTES CALLS FILE:LINE [MODULE] func:FUNCTION`, behind a heading with the version of the format; 2.0 adds `accurate:no`
//! where the kernel could not count. A line for each call site: also for objects in slab, of which the pages are those of
//! `alloc_slab_page`, so that sums of all lines count such memory twice. Kept are call sites with memory that may be in no
//! counter of `/proc/meminfo`: they took whole pages, and not for page cache, processes, page tables or stacks, nor for
//! what memtide finds otherwise. Readable only by root. Cost: some thousand lines, once.

use std::cmp::Reverse;
use std::collections::HashMap;

use timeline::PageCallSite;
use units::{Bytes, Count};

use crate::text;

pub(super) const PATH: &str = "/proc/allocinfo";

/// The largest are kept: an answer names a few.
const SITES_MAX: usize = 16;

/// No page is smaller.
const PAGE_MIN: u64 = 4096;

/// Where pages are allocated that a counter has: of the page cache, of processes, of page tables, stacks, slab, per-CPU
/// memory, huge pages and zram; and balloons, which take their pages off MemTotal or have a counter.
const COUNTED: [&str; 10] = [
    "fs/",
    "include/",
    "kernel/fork.c",
    "kernel/events/uprobes.c",
    "virt/kvm/",
    "mm/",
    "drivers/iommu/",
    "drivers/virtio/virtio_balloon.c",
    "drivers/xen/balloon.c",
    "drivers/hv/hv_balloon.c",
];

/// Below `COUNTED`, and yet in no counter: what describes pages, and buffers of drivers.
const UNCOUNTED: [&str; 5] = [
    "mm/page_ext.c",
    "mm/sparse",
    "mm/page_frag_cache.c",
    "mm/dmapool.c",
    "drivers/iommu/dma-iommu.c",
];

/// Rings, which are searched for by process.
const SEARCHED: [&str; 2] = ["io_uring/", "net/packet/"];

/// Returns the largest call sites that may be in no counter. Lines of another form are skipped.
pub(super) fn parse(text: &[u8]) -> Vec<PageCallSite> {
    let mut sums: HashMap<[&[u8]; 3], AllocinfoLine<'_>> = HashMap::new();
    let lines = text::lines(text).filter_map(|(_, line)| line_of(line));
    for line in lines.filter(|line| line.is_of_pages() && !is_counted(line.file)) {
        sums.entry([line.file, line.module, line.function])
            .and_modify(|sum| {
                sum.bytes = sum.bytes.saturating_add(line.bytes);
                sum.calls = sum.calls.saturating_add(line.calls);
            })
            .or_insert(line);
    }
    let mut sums: Vec<AllocinfoLine<'_>> = sums.into_values().collect();
    sums.sort_by_key(|sum| (Reverse(sum.bytes), sum.file, sum.function));
    let largest = sums.iter().take(SITES_MAX);
    largest
        .map(|sum| PageCallSite {
            function: text::lossy(sum.function).into_owned(),
            module: text::lossy(sum.module).into_owned(),
            file: text::lossy(sum.file).into_owned(),
            bytes: Bytes::new(sum.bytes),
            calls: Count::new(sum.calls),
        })
        .collect()
}

/// A line of the file, or several of one function.
#[derive(Clone, Copy)]
struct AllocinfoLine<'a> {
    bytes: u64,
    calls: u64,
    /// Without its line.
    file: &'a [u8],
    module: &'a [u8],
    function: &'a [u8],
}

impl AllocinfoLine<'_> {
    /// Whether each call may have taken whole pages. Most objects of slab have other sizes.
    const fn is_of_pages(&self) -> bool {
        self.bytes > 0 && self.bytes.is_multiple_of(PAGE_MIN) && self.bytes / PAGE_MIN >= self.calls
    }
}

fn line_of(line: &[u8]) -> Option<AllocinfoLine<'_>> {
    let mut words = text::words(line);
    let bytes = text::number(words.next()?)?;
    let calls = text::number(words.next()?)?;
    let place = words.next()?;
    let file = &place[..memchr::memrchr(b':', place)?];
    let (mut module, mut function) = (&b""[..], None);
    for word in words {
        if let Some(name) = word.strip_prefix(b"func:") {
            function = Some(name);
        } else if let Some(name) = word.strip_prefix(b"[") {
            module = name.strip_suffix(b"]").unwrap_or(name);
        }
    }
    Some(AllocinfoLine {
        bytes,
        calls,
        file: file.strip_prefix(b"./").unwrap_or(file),
        module,
        function: function?,
    })
}

fn is_counted(file: &[u8]) -> bool {
    let begins = |places: &[&str]| places.iter().any(|place| file.starts_with(place.as_bytes()));
    let is_of_an_architecture = || {
        let has = |part: &[u8]| memchr::memmem::find(file, part).is_some();
        file.starts_with(b"arch/") && (has(b"/mm/") || has(b"/kvm/"))
    };
    begins(&SEARCHED) || is_of_an_architecture() || (begins(&COUNTED) && !begins(&UNCOUNTED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile;

    /// The largest lines of a server with Linux 6.15, four days after its start: an Intel 810 network card
    /// (lists.osuosl.org, intel-wired-lan, 30 June 2025).
    const NETWORK_CARD: &[u8] = b"    85216896   443838 fs/dcache.c:1681 func:__d_alloc\n\
   106156032    25917 mm/shmem.c:1854 func:shmem_alloc_folio\n\
   116850096   102861 fs/ext4/super.c:1388 [ext4] func:ext4_alloc_inode\n\
   134479872    32832 kernel/events/ring_buffer.c:811 func:perf_mmap_alloc_page\n\
   143556608     6894 mm/slub.c:2452 func:alloc_slab_page\n\
   186793984    45604 mm/memory.c:1056 func:folio_prealloc\n\
   362807296    88576 mm/percpu-vm.c:95 func:pcpu_alloc_pages\n\
   530579456   129536 mm/page_ext.c:271 func:alloc_page_ext\n\
   598237184    51309 mm/slub.c:2450 func:alloc_slab_page\n\
   838860800      400 mm/huge_memory.c:1165 func:vma_alloc_anon_folio_pmd\n\
   929083392   226827 mm/filemap.c:1978 func:__filemap_get_folio\n\
  1034657792   252602 mm/memory.c:1054 func:folio_prealloc\n\
  1262485504      602 mm/khugepaged.c:1084 func:alloc_charge_folio\n\
  1335377920   325970 mm/readahead.c:186 func:ractl_alloc_folio\n\
  2544877568   315003 drivers/net/ethernet/intel/ice/ice_txrx.c:681 [ice] func:ice_alloc_mapped_page\n";

    /// The head of version 1.0 (6.10, commit a38568a0b46d), and lines of version 2.0 (6.18, linux-mm, 16 September 2025).
    const HEADED: &[u8] = b"allocinfo - version: 1.0\n\
#     <size>  <calls> <tag info>\n\
           0        0 init/main.c:1314 func:do_initcalls\n\
         512        1 arch/x86/events/rapl.c:681 func:init_rapl_pmus\n\
allocinfo - version: 2.0\n\
           0        0 arch/x86/kernel/alternative.c:127 func:__its_alloc accurate:no\n\
       49152       48 arch/x86/kernel/cpu/mce/core.c:2709 func:mce_device_create accurate:no\n\
       32768        1 arch/x86/kernel/cpu/mce/genpool.c:132 func:mce_gen_pool_create\n";

    fn listed(text: &[u8]) -> Vec<(String, String, u64, u64)> {
        let sites = parse(text).into_iter();
        sites.map(|s| (s.function, s.module, s.bytes.get(), s.calls.get())).collect()
    }

    fn site(function: &str, module: &str, bytes: u64, calls: u64) -> (String, String, u64, u64) {
        (function.to_owned(), module.to_owned(), bytes, calls)
    }

    #[test]
    fn what_a_counter_has_is_left_out() {
        let expected = [
            site("ice_alloc_mapped_page", "ice", 2_544_877_568, 315_003),
            site("alloc_page_ext", "", 530_579_456, 129_536),
            site("perf_mmap_alloc_page", "", 134_479_872, 32_832),
        ];
        assert_eq!(listed(NETWORK_CARD), expected);
        let file = &parse(NETWORK_CARD)[0].file;
        assert_eq!(file, "drivers/net/ethernet/intel/ice/ice_txrx.c");
    }

    #[test]
    fn each_version_is_read_and_objects_smaller_than_a_page_are_left_out() {
        assert_eq!(listed(HEADED), [site("mce_gen_pool_create", "", 32_768, 1)]);
    }

    #[test]
    fn lines_of_a_function_are_one_and_the_largest_are_kept() {
        let lines: String = (0..40)
            .map(|n| format!("{} {} net/a.c:{n} func:f_{}\n", 4096 * (n + 1), n + 1, n / 2))
            .collect();
        let sites = listed(lines.as_bytes());
        assert_eq!(sites.len(), SITES_MAX);
        assert_eq!(sites[0], site("f_19", "", 4096 * 79, 79));
    }

    #[test]
    fn any_bytes_are_survived() {
        hostile::feed(NETWORK_CARD, |text| drop(parse(text)));
        hostile::feed(HEADED, |text| drop(parse(text)));
    }
}
