//! The kernel is sampled beside the counters, in a thread of its own.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use profile::{
    LiveOptions, LiveProfile, NoLiveProfile, OffCpu, ProfileReport, ProfileScope, USUAL_HZ,
    USUAL_NICE,
};
use units::Span;

/// A profile of this host that is being taken.
pub(super) struct KernelSampling {
    sampler: JoinHandle<Result<ProfileReport, NoLiveProfile>>,
    has_ended: Arc<AtomicBool>,
}

impl KernelSampling {
    /// Starts one that lasts so long, or until it is ended.
    pub(super) fn start(lasts: Span) -> Self {
        let has_ended = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&has_ended);
        let sampler = std::thread::spawn(move || sample(lasts, &ended));
        Self { sampler, has_ended }
    }

    /// Ends it where it has not ended, and gives what it showed.
    pub(super) fn end(self) -> Result<ProfileReport, NoLiveProfile> {
        self.has_ended.store(true, Ordering::Relaxed);
        self.sampler.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn sample(lasts: Span, has_ended: &AtomicBool) -> Result<ProfileReport, NoLiveProfile> {
    let (scope, off_cpu) = (ProfileScope::Host, OffCpu::Auto);
    let (lasts, hz, nice) = (Some(lasts), USUAL_HZ, USUAL_NICE);
    let live = LiveProfile::open(LiveOptions { scope, lasts, hz, off_cpu, nice })?;
    let profile = live.run(|| None, &mut |_| {
        if has_ended.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    Ok(ProfileReport::of(&profile))
}
