//! Samples of this machine while a scenario is played, into a port.

use std::fs::File;
use std::io::LineWriter;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use probe::Root;
use sampler::{CaptureOptions, Secrets};
use units::Span;

/// Longer than any scenario.
const DURATION_MAX: Span = Span::from_hours(2);

/// A recording of this machine.
#[derive(Debug)]
pub(super) enum GuestRecording {
    NotBegun { port: File, every: Span },
    Running { sampler: JoinHandle<Result<u64, String>>, has_ended: Arc<AtomicBool> },
    Ended,
}

impl GuestRecording {
    pub(super) fn new(port: File, every: Span) -> Self {
        Self::NotBegun { port, every }
    }

    pub(super) fn begin(&mut self) {
        let begun = std::mem::replace(self, Self::Ended);
        *self = match begun {
            Self::NotBegun { port, every } => {
                let has_ended = Arc::new(AtomicBool::new(false));
                let ended = Arc::clone(&has_ended);
                Self::Running {
                    sampler: std::thread::spawn(move || sample(port, every, &ended)),
                    has_ended,
                }
            }
            other => other,
        };
    }

    /// Ends it; what it could not sample is an error.
    pub(super) fn end(&mut self) -> Result<(), String> {
        match std::mem::replace(self, Self::Ended) {
            Self::Running { sampler, has_ended } => {
                has_ended.store(true, Ordering::Relaxed);
                let samples = sampler.join().map_err(|_| "the sampler panicked")??;
                match samples {
                    0 | 1 => Err(format!("only {samples} samples were taken")),
                    _ => Ok(()),
                }
            }
            Self::NotBegun { .. } | Self::Ended => Err("the scenario recorded nothing".to_owned()),
        }
    }
}

/// Samples this machine into a port until it has ended; gives the number of samples.
fn sample(port: File, every: Span, has_ended: &AtomicBool) -> Result<u64, String> {
    const BUFFER: usize = 1 << 20;
    let options = CaptureOptions {
        duration: DURATION_MAX,
        every,
        secrets: Secrets::default(),
        heaps: Vec::new(),
    };
    let _ = rustix::process::nice(-20);
    // A sample is a line: what a machine that dies has sampled is here, and whoever watches sees it at once.
    let port = LineWriter::with_capacity(BUFFER, port);
    let sampled = sampler::capture(&Root::default(), &options, port, &mut |_| {
        if has_ended.load(Ordering::Relaxed) {
            std::ops::ControlFlow::Break(())
        } else {
            std::ops::ControlFlow::Continue(())
        }
    });
    match sampled {
        Ok(captured) => Ok(captured.samples),
        Err(error) => Err(format!("the machine could not be sampled: {error}")),
    }
}
