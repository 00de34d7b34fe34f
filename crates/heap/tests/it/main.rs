//! The heap reader against programs that know what they allocated.

#![allow(clippy::unwrap_used, clippy::print_stderr, clippy::cast_precision_loss)]

mod busy;
mod forecast;
mod hostile;
mod image;
mod target;
mod truth;
mod versions;
