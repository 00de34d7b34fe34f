//! This host while a program watches it: samples of the last minutes, with what people call the containers.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use probe::{ProcessDetail, Root};
use sampler::{RECENT, WatchOptions, Watcher};
use timeline::Source;
use units::Span;

use super::{Besides, complete};

/// With every tenth sample the PSS of the largest processes is read: that takes a lock of each.
const PSS_EVERY: Option<NonZeroUsize> = NonZeroUsize::new(10);
/// Names of containers are read again as often as settings.
const NAMES_EVERY: Duration = Duration::from_secs(60);
/// Nobody watches for longer.
const FOR_EVER: Span = Span::from_hours(24 * 3_650);

/// This host, of which the last minutes are remembered.
pub struct WatchedHost {
    watcher: Watcher,
    root: Root,
    /// When names of containers were read.
    named: Option<Instant>,
}

impl WatchedHost {
    /// Opens the host's files; `window` is remembered. The first sample is due now.
    pub fn open(root: &Root, every: Span, window: Span) -> Self {
        let options = WatchOptions {
            duration: FOR_EVER,
            every,
            last: ProcessDetail::COMPLETE,
            recent: RECENT,
            window: Some(window),
            pss_every: PSS_EVERY,
        };
        Self { watcher: Watcher::open(root, options), root: root.clone(), named: None }
    }

    /// How long it is until the next sample is due; zero if it is.
    pub fn until_due(&self) -> Span {
        self.watcher.until_due()
    }

    /// Takes a sample, and forgets what is older than the window.
    pub fn take(&mut self) {
        self.watcher.take();
    }

    /// What is remembered, with the names that were read last.
    pub fn source(&mut self) -> &mut Source {
        self.watcher.source()
    }

    /// The same; reads the names again where that is a minute ago.
    pub fn named_source(&mut self) -> &mut Source {
        let source = self.watcher.source();
        if self.named.is_none_or(|then| then.elapsed() >= NAMES_EVERY) {
            self.named = Some(Instant::now());
            // Nothing is searched for, so nothing can fail.
            let _ = complete(&self.root, source, Besides::default());
        }
        source
    }
}
