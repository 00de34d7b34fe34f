//! Captures: raw text of kernel files, as `memtide convert` writes it.

use std::io::{self, Write};

use super::{Exported, Exporter, Picks};
use timeline::Source;

/// A capture, which holds whole kernel files: picks of signals do not apply.
#[derive(Debug, Clone, Copy)]
pub struct Capture;

impl Exporter for Capture {
    fn unit(&self) -> &'static str {
        "sample"
    }

    fn export(&self, source: &Source, _: &Picks, output: &mut dyn Write) -> io::Result<Exported> {
        let converted = crate::convert(source, output)?;
        Ok(Exported {
            written: converted.samples,
            left_out: converted.in_words(),
        })
    }
}
