//! Ctrl-C while this host is sampled: the first ends sampling and reports the samples so far; the second ends memtide.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;

/// The exit code by which shells report a program that SIGINT ended: 128 and the signal's number.
const ENDED: i32 = 128 + SIGINT;

/// Starts listening. The returned function says whether Ctrl-C was pressed. If listening fails, Ctrl-C ends memtide.
pub(crate) fn listen() -> impl Fn() -> bool {
    let pressed = Arc::new(AtomicBool::new(false));
    // In this order each Ctrl-C is checked before it sets the flag, so only the second one ends memtide.
    let _ = flag::register_conditional_shutdown(SIGINT, ENDED, Arc::clone(&pressed))
        .and_then(|_| flag::register(SIGINT, Arc::clone(&pressed)));
    move || pressed.load(Ordering::Relaxed)
}

/// As [`listen`], and also for the signals that end a program from outside: what was made is removed first.
pub(crate) fn listen_to_any() -> impl Fn() -> bool {
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGHUP] {
        let _ = flag::register(signal, Arc::clone(&ended));
    }
    let is_interrupted = listen();
    move || is_interrupted() || ended.load(Ordering::Relaxed)
}

/// As [`listen_to_any`], and also for SIGQUIT, and the second Ctrl-C is like the first: while a terminal is raw, nothing ends
/// memtide before it is set back.
pub(crate) fn listen_on_terminal() -> impl Fn() -> bool {
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGHUP, SIGINT, SIGQUIT] {
        let _ = flag::register(signal, Arc::clone(&ended));
    }
    move || ended.load(Ordering::Relaxed)
}
