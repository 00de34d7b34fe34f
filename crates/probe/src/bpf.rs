//! BPF programs: [`loader`] loads one into the kernel if there is memory for it, and [`tasks`] is the only program.

pub(crate) mod loader;
pub(crate) mod tasks;
