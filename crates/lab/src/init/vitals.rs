//! Reports how the machine stands every second, for whoever watches.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use timeline::Row;
use timeline::signals::{
    MEM_AVAILABLE, MEM_DIRTY, MEM_TOTAL, MEM_WRITEBACK, NR_DIRTY_THRESHOLD, PSI_MEMORY_SOME,
    SWAP_FREE, SWAP_TOTAL,
};
use units::{PageSize, Quantity as _};

use crate::message::{GuestMessage, Vitals};
use crate::reading::KernelReader;

const EVERY: Duration = Duration::from_secs(1);

/// Reports into a port until the scenario has ended.
pub(super) fn report(mut port: File, has_ended: &Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    let has_ended = Arc::clone(has_ended);
    std::thread::spawn(move || {
        let mut kernel = KernelReader::open();
        let mut before = None;
        while !has_ended.load(Ordering::Relaxed) {
            let (host, now) = (&kernel.read().host, Instant::now());
            let stalled_s = host.get(PSI_MEMORY_SOME).map_or(0.0, |time| time.as_f64() / 1e6);
            let (since, was) = before.replace((now, stalled_s)).unwrap_or((now, stalled_s));
            let passed = (now - since).as_secs_f64().max(1e-3);
            if let Some(vitals) = vitals(host, (stalled_s - was) / passed) {
                GuestMessage::Vitals(vitals).send(&mut port);
            }
            std::thread::sleep(EVERY);
        }
    })
}

fn vitals(host: &Row, stalled: f64) -> Option<Vitals> {
    let swap = host.get(SWAP_TOTAL)?.as_f64();
    let dirty = host.get(MEM_DIRTY)? + host.get(MEM_WRITEBACK)?;
    let limit = host.get(NR_DIRTY_THRESHOLD)?.to_bytes(PageSize::USUAL);
    Some(Vitals {
        available: host.get(MEM_AVAILABLE)?.as_f64() / host.get(MEM_TOTAL)?.as_f64(),
        swap_used: (swap - host.get(SWAP_FREE)?.as_f64()) / swap.max(1.0),
        dirty: dirty.as_f64() / limit.as_f64().max(1.0),
        stalled,
    })
}
