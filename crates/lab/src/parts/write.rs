//! A process that writes files as fast as the kernel takes them.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use units::{Bytes, Quantity as _};

use super::hog::Noise;

/// Writes files through the page cache.
#[derive(Debug, Clone)]
pub struct WritePart {
    /// Where: a directory.
    pub directory: PathBuf,
    /// Size of each file.
    pub size: Bytes,
    /// How many.
    pub files: u32,
}

impl WritePart {
    /// Writes them; gives each its speed in bytes a second.
    ///
    /// # Errors
    /// The operating system's.
    pub fn run(&self, mut each: impl FnMut(f64)) -> std::io::Result<()> {
        /// Bytes of a write.
        const PART: usize = 1 << 20;
        let _ = rustix::thread::set_name(c"writer");
        let mut noise = Noise::new(7);
        let part: Vec<u8> = std::iter::repeat_with(|| noise.page())
            .take(PART / super::PAGE)
            .flatten()
            .collect();
        for number in 0..self.files {
            let mut file = File::create(self.directory.join(format!("file{number}")))?;
            let begun = Instant::now();
            let mut left = self.size.get();
            while left > 0 {
                let len = left.min(PART as u64);
                let len = usize::try_from(len).unwrap_or(PART);
                file.write_all(part.get(..len).unwrap_or_default())?;
                left -= len as u64;
            }
            each(self.size.as_f64() / begun.elapsed().as_secs_f64().max(1e-6));
        }
        Ok(())
    }
}
