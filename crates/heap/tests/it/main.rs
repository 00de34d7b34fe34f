//! The heap reader against programs that know what they allocated.

mod target;
mod truth;
