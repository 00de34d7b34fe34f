//! What the server itself costs, in figures and in a sentence.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

use sampler::OwnCost;
use units::{Bytes, Ratio, Span};

use crate::feed::SourceFeed;

/// What this process has cost since it started to serve.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerCost {
    /// CPU time in user and kernel mode.
    pub(crate) cpu: Span,
    /// The same as a share of one CPU; `None` in the first seconds.
    pub(crate) share: Option<Ratio>,
    /// Resident memory (RSS).
    pub(crate) resident: Option<Bytes>,
}

/// A share of a shorter time says nothing.
const SHARE_AFTER_S: f64 = 10.0;

/// Measures it, in some 10 µs.
pub(crate) fn measure() -> ServerCost {
    static FILE: OnceLock<(Mutex<OwnCost>, Instant)> = OnceLock::new();
    let (file, begun) = FILE.get_or_init(|| (Mutex::new(OwnCost::open()), Instant::now()));
    let (cpu, resident) = file.lock().unwrap_or_else(PoisonError::into_inner).now();
    let lasts = begun.elapsed().as_secs_f64();
    let share = (lasts > SHARE_AFTER_S).then(|| Ratio::new(cpu.as_secs_f64() / lasts));
    ServerCost { cpu, share, resident }
}

/// Says it in sentences for the foot of the page.
pub(crate) fn says(feed: &SourceFeed) -> String {
    let cost = measure();
    let mut parts: Vec<String> = Vec::new();
    parts.extend(cost.resident.map(|resident| resident.to_string()));
    parts.extend(cost.share.map(|share| format!("{share} of one CPU")));
    let served = match (feed.recording(), feed.is_live()) {
        (Some(path), _) => format!("Served from the recording {}", path.display()),
        (None, true) => {
            "Watched and served by this server; its memory is all that it keeps".to_owned()
        }
        (None, false) => "Served as it was read once".to_owned(),
    };
    if parts.is_empty() {
        return format!("{served}.");
    }
    format!("{served}. The server takes {}.", parts.join(" and "))
}
