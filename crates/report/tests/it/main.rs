//! The report from outside: what people see, what programs read, and that hostile text stays text.
// These tests keep files of docs/ fresh, so they read files and the environment, which the crate itself must not.
#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)] // helpers of tests are tests
#![allow(clippy::cast_precision_loss)] // fixtures are small numbers

mod contract;
mod docs;
mod explain;
mod fixtures;
mod groups;
mod headroom;
mod heap_picture;
mod hostile;
mod html;
mod runtime_stats;
mod screens;
