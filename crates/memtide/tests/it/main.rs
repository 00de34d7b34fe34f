//! memtide as people use it: the binary and the labelled corpus.
#![allow(clippy::unwrap_used, clippy::string_slice)] // a test's helpers may fail as the test does

mod architecture;
mod bad_input;
mod bundle;
mod cases;
mod charts;
mod check_group;
mod cli;
mod clocks;
mod compare;
mod conventions;
mod convert;
mod corpus;
mod events;
mod explain;
mod export;
mod frame;
mod growth;
mod headroom;
mod history;
mod hostile;
mod kills;
mod lab;
mod levels;
mod live;
mod pages;
mod paste;
mod record;
mod report;
mod rules;
mod support;
mod swapped;
mod synthetic;
mod where_adds_up;
mod where_by;
mod where_shared;
