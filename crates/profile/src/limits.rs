//! From when on something is hot, each bound with where it comes from. The runs are those of docs/decisions/0019.

/// A reason of trouble is hot from this share of the busy CPU on: on healthy hosts all of them together stay below 0.7 % (15 labelled
/// runs), in the sick ones the one that is meant has 5.5 to 54 %.
pub(crate) const HOT_SHARE: f64 = 0.05;
/// With fewer samples a share of 5 % has an interval that reaches to zero.
pub(crate) const HOT_SAMPLES_MIN: f64 = 30.0;
/// A task that waits for a tenth of the time.
pub(crate) const HOT_STALLED_TASKS: f64 = 0.1;
/// An episode of reclaim that a user notices.
pub(crate) const HOT_P99_S: f64 = 0.010;
/// Long episodes matter from this share of the time on: one of 15 ms in 12 s does not.
pub(crate) const HOT_EPISODES_OF_TIME: f64 = 0.01;
/// Short episodes matter from this share of the time on: 992 reclaims a second of 40 µs each are 3.8 % and no harm.
pub(crate) const HOT_SHORT_EPISODES_OF_TIME: f64 = 0.05;
/// Waits for files are trouble where at least this share of what is read was in memory before.
pub(crate) const REFAULT_SHARE: f64 = 0.25;
/// The same where the source does not say how much was read: `page-cache-thrash` begins at 1 MiB/s of refaults, 256 pages.
pub(crate) const REFAULT_PAGES_PER_S: f64 = 256.0;
