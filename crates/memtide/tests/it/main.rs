//! memtide as people use it: the binary and the labelled corpus.
#![allow(clippy::unwrap_used)] // a test's helpers may fail as the test does

mod architecture;
mod bad_input;
mod cli;
mod corpus;
mod live;
mod pages;
mod support;
