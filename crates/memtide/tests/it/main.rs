//! memtide as people use it: the binary and the labelled corpus.

mod architecture;
mod bad_input;
mod cli;
mod corpus;
mod live;
mod support;
