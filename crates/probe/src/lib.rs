//! The only reader of `/proc` and `/sys`: one file here for each kernel interface.
//!
//! Three nouns: a **root** ([`Root`]) is where `/` is: the machine itself, a container's, a directory of saved files; a
//! **kernel file** ([`KernelFile`]) is kept open and read again and again without allocating; a **parser** turns one
//! file's text into readings of a [`Sample`](timeline::Sample), whether the text was read live or saved ([`saved`]).
//!
//! Every parser is total: any bytes give readings and, where something was wrong, an error that says which line. What
//! could be read stays read.
//!
//! ```
//! let mut sample = timeline::Sample::default();
//! probe::Meminfo::default().parse(b"MemFree:  12 kB\n", &mut sample).unwrap();
//! assert_eq!(sample.host.get(timeline::signals::MEM_FREE), Some(units::Bytes::from_kib(12)));
//! ```

mod error;
mod fields;
mod kernel_file;
mod meminfo;
mod pressure;
pub mod saved;
pub mod text;

pub use error::{ParseError, ReadError};
pub use kernel_file::{KernelFile, Root};
pub use meminfo::Meminfo;
pub use pressure::Pressure;
