//! Which malloc real programs use, and what was to be expected of a preload before they ran.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod before_the_run;
mod ignored;
mod programs;
mod seen;
