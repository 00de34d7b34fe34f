//! A process that writes files as fast as the kernel takes them.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use units::{Bytes, Quantity as _};

use super::noise::Noise;

/// What files hold: it decides how well they compress.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WrittenContent {
    /// Noise.
    #[default]
    Random,
    /// Lines of a log: gzip makes a tenth of them.
    Log,
}

/// Writes files through the page cache.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone)]
pub struct WritePart {
    /// Where: a directory.
    pub directory: PathBuf,
    /// Size of each file.
    pub size: Bytes,
    pub files: u32,
    /// What they hold.
    pub content: WrittenContent,
    /// Whether each write waits until the disk has it.
    pub is_synced: bool,
}

/// How the names of files begin: no file of anyone else has such a name and is overwritten.
const NAME: &str = "memtide-lab-";

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
        let part = match self.content {
            WrittenContent::Random => {
                std::iter::repeat_with(|| noise.page()).take(PART / super::PAGE).flatten().collect()
            }
            WrittenContent::Log => log(&mut noise, PART),
        };
        for number in 0..self.files {
            let mut file = File::create(self.directory.join(format!("{NAME}{number}")))?;
            let begun = Instant::now();
            let mut left = self.size.get();
            while left > 0 {
                let len = left.min(PART as u64);
                let len = usize::try_from(len).unwrap_or(PART);
                file.write_all(part.get(..len).unwrap_or_default())?;
                if self.is_synced {
                    file.sync_data()?;
                }
                left -= len as u64;
            }
            each(self.size.as_f64() / begun.elapsed().as_secs_f64().max(1e-6));
        }
        Ok(())
    }
}

/// Lines of a web server's log.
fn log(noise: &mut Noise, len: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(len + 128);
    let mut second = 0_u64;
    while text.len() < len {
        second += noise.next() % 2;
        let (client, page, bytes) = (noise.below(64), noise.below(24), noise.below(16) * 64);
        let line = format!(
            "192.0.2.{client} - - [24/Nov/2026:{:02}:{:02}:{:02} +0000] \"GET /articles/page-{page} HTTP/1.1\" 200 {bytes} \"-\" \"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36\"\n",
            second / 3600 % 24,
            second / 60 % 60,
            second % 60,
        );
        text.extend_from_slice(line.as_bytes());
    }
    text.truncate(len);
    text
}
