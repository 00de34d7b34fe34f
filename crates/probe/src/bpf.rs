//! BPF programs: [`loader`] brings one into the kernel, [`memory_limit`] says whether there is memory for that, and
//! [`tasks`] is the one program that there is.

pub(crate) mod loader;
pub(crate) mod memory_limit;
pub(crate) mod tasks;
