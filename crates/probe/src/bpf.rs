//! BPF programs: [`loader`] loads one into the kernel, [`memory_limit`] checks that there is memory for it, and
//! [`tasks`] is the only program.

pub(crate) mod loader;
pub(crate) mod memory_limit;
pub(crate) mod tasks;
