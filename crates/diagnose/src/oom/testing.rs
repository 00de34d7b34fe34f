//! Builds kernel reports for tests, figure by figure.

use timeline::kernel_report::{
    FreeBlocks, GroupLimit, GroupReport, Killed, ReportKind, ReportSlab, ReportTask, Request,
    ZoneReport,
};
use timeline::signals::{
    MEM_ACTIVE_FILE, MEM_ANON, MEM_FREE, MEM_INACTIVE_FILE, MEM_TOTAL, SWAP_FREE, SWAP_TOTAL,
};
use timeline::{Gauge, KernelReport, Signal};
use units::{Bytes, PageSize};

/// A report under construction.
#[derive(Default)]
pub(crate) struct Report(pub(crate) KernelReport);

/// A size in KiB, as the kernel prints it.
pub(crate) fn kib(n: u64) -> Bytes {
    Bytes::from_kib(n)
}

/// A task with `rss` KiB resident.
pub(crate) fn task(pid: u32, name: &str, rss: u64, oom_score_adj: i32) -> ReportTask {
    ReportTask {
        pid,
        tgid: pid,
        rss: kib(rss),
        total_vm: kib(rss),
        oom_score_adj,
        name: name.to_owned(),
        ..ReportTask::default()
    }
}

impl Report {
    /// A host of 16 GB; programs filled its RAM and 8 GB of swap; it killed the largest of two.
    pub(crate) fn of_a_host() -> Self {
        let mut report = Self::default()
            .kernel("6.1.1-arch1-1")
            .asking(0x14_0dca, 0)
            .zone("DMA", 13_312, 64, 15_360, &[0, 3191, 15_659, 15_659, 15_659])
            .zone("DMA32", 63_304, 13_760, 3_283_120, &[0, 0, 12_468, 12_468, 12_468])
            .zone("Normal", 61_900, 61_948, 12_774_792, &[0; 5])
            .host(MEM_TOTAL, 16_073_272)
            .host(MEM_FREE, 138_516)
            .host(MEM_ANON, 14_500_000)
            .host(MEM_ACTIVE_FILE, 100)
            .host(MEM_INACTIVE_FILE, 700)
            .swap(8_000_000, 84)
            .killing(20, "doxygen");
        report.0.tasks = vec![task(20, "doxygen", 9_234_324, 0), task(30, "java", 2_064_248, 0)];
        report
    }

    /// The head of a report of a kill: what shows memory is cut off.
    pub(crate) fn of_the_head() -> Self {
        Self::default().asking(0xc_2cc0, 3)
    }

    /// Adds a row to the list of unreclaimable slab caches.
    pub(crate) fn listing(mut self, name: &str, size: Bytes) -> Self {
        self.0.slabs.push(ReportSlab { name: name.to_owned(), used: size, total: size });
        self
    }

    /// A cgroup at its limit (in KiB) in which one process was killed.
    pub(crate) fn of_a_group(usage: u64, limit: u64) -> Self {
        let mut report = Self::default().asking(0x110_0cca, 0).killing(40, "worker");
        report.0.group = Some(GroupReport {
            path: "/pods/web".to_owned(),
            memory: Some(GroupLimit { usage: kib(usage), limit: kib(limit), failures: 12 }),
            stat: vec![("anon".to_owned(), kib(usage).get() / 10 * 9)],
            ..GroupReport::default()
        });
        report.0.tasks = vec![task(40, "worker", usage / 10 * 9, 0)];
        report
    }

    pub(crate) fn kernel(mut self, release: &str) -> Self {
        self.0.kernel = Some(release.to_owned());
        self.0.page_size = PageSize::from_bytes(4096);
        self
    }

    pub(crate) fn asking(mut self, gfp_mask: u64, order: i32) -> Self {
        self.0.request = Some(Request { gfp_mask, gfp_names: None, order });
        self.0.page_size = PageSize::from_bytes(4096);
        self
    }

    /// Makes it a failed allocation without a kill.
    pub(crate) fn failed(mut self) -> Self {
        self.0.kind = ReportKind::AllocationFailure;
        self.0.killed.clear();
        self
    }

    pub(crate) fn killing(mut self, pid: u32, name: &str) -> Self {
        self.0.killed = vec![Killed { pid, name: name.to_owned(), ..Killed::default() }];
        self
    }

    /// Adds a zone of node 0: free, min and managed in KiB, its reserve in pages.
    pub(crate) fn zone(
        self,
        name: &str,
        free: u64,
        min: u64,
        managed: u64,
        reserve: &[u64],
    ) -> Self {
        self.zone_of(0, name, free, min, managed, reserve)
    }

    pub(crate) fn zone_of(
        mut self,
        node: u32,
        name: &str,
        free: u64,
        min: u64,
        managed: u64,
        reserve: &[u64],
    ) -> Self {
        self.0.zones.push(ZoneReport {
            node,
            name: name.to_owned(),
            free: kib(free),
            min: kib(min),
            low: kib(min + min / 4),
            high: kib(min + min / 2),
            managed: kib(managed),
            reserve: reserve.iter().map(|pages| kib(pages * 4)).collect(),
            ..ZoneReport::default()
        });
        self
    }

    /// Sets the free blocks of the last zone.
    pub(crate) fn blocks(mut self, blocks: &[(u64, &str)]) -> Self {
        if let Some(zone) = self.0.zones.last_mut() {
            zone.blocks = blocks
                .iter()
                .map(|(count, types)| FreeBlocks { count: *count, types: (*types).to_owned() })
                .collect();
        }
        self
    }

    pub(crate) fn host(mut self, signal: Signal<Gauge<Bytes>>, n: u64) -> Self {
        self.0.host.set(signal, kib(n));
        self
    }

    pub(crate) fn swap(self, total: u64, free: u64) -> Self {
        self.host(SWAP_TOTAL, total).host(SWAP_FREE, free)
    }
}
