//! This host, live: samples taken at a steady pace for a while.

use std::time::{Duration, Instant};

use timeline::{Facts, Sample, Timeline};
use units::Span;

use crate::problems::Problems;
use crate::{Opened, SourceKind};

/// How long to watch, and how often to look.
#[derive(Debug, Clone, Copy)]
pub struct Watch {
    /// From the first sample to the last.
    pub lasts: Span,
    /// From sample to sample.
    pub every: Span,
}
