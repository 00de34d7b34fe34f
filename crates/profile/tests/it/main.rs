//! Tests of this crate through its public functions.

#![allow(clippy::unwrap_used)]

mod judged;
mod reasons;
mod survives;
