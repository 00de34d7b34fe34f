//! Ctrl-C while this host is sampled: the first ends sampling, and the samples so far are reported; the second ends memtide.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::SIGINT;
use signal_hook::flag;

/// What a shell reports for a program that SIGINT ended: 128 and the signal's number.
const ENDED: i32 = 128 + SIGINT;

/// Listens from now on; the returned function says whether Ctrl-C was pressed. If listening fails, Ctrl-C ends memtide.
pub(crate) fn listen() -> impl Fn() -> bool {
    let pressed = Arc::new(AtomicBool::new(false));
    // In this order: the second press finds what the first has set.
    let _ = flag::register_conditional_shutdown(SIGINT, ENDED, Arc::clone(&pressed))
        .and_then(|_| flag::register(SIGINT, Arc::clone(&pressed)));
    move || pressed.load(Ordering::Relaxed)
}
