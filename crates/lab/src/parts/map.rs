//! A process that needs a mapped file and data at the same time: a program with a large library.

use std::fs::File;
use std::path::PathBuf;
use std::time::Instant;

use units::{Bytes, Span};

use super::hog::Content;
use super::noise::Noise;
use super::{Deadline, PAGE, len};
use crate::sys::MappedPages;

/// Writes data once, then moves a window through it, and reads pages of a mapped file all the while. The file is needed
/// always, most of the data never again: what a kernel with swap can tell apart, and one without cannot.
#[derive(Debug, Clone)]
pub struct MapPart {
    /// The mapped file: the library.
    pub file: PathBuf,
    /// Bytes of it that are used; the window has as many.
    pub file_size: Bytes,
    /// Shared data beside it, larger than the file.
    pub data_size: Bytes,
    /// What the data hold.
    pub content: Content,
    /// Windows.
    pub iterations: u32,
    /// How long at most.
    pub time: Option<Span>,
}

impl MapPart {
    /// Works; reports how many windows are done, in tenths, and the seconds since it began.
    ///
    /// # Errors
    /// The operating system's.
    pub fn run(&self, mut done: impl FnMut(f64, f64)) -> std::io::Result<()> {
        /// Reports of a window.
        const PARTS: usize = 10;
        let _ = rustix::thread::set_name(c"swapdemo");
        let (deadline, begun) = (Deadline::after(self.time), Instant::now());
        let (file_len, data_len) = (len(self.file_size)?, len(self.data_size)?);
        if file_len < PAGE * PARTS || data_len <= file_len {
            return Err(std::io::Error::other(
                "the data must be larger than the file, and that not empty",
            ));
        }
        // A page behind the end of a file ends who touches it.
        if std::fs::metadata(&self.file)?.len() < self.file_size.get() {
            return Err(std::io::Error::other("the file is shorter than what is used of it"));
        }
        let library = MappedPages::of_file(&File::open(&self.file)?, file_len)?;
        let mut data = MappedPages::shared(data_len)?;
        let mut noise = Noise::new(256);
        for at in (0..data_len).step_by(PAGE) {
            match self.content {
                Content::Zero => data.write(at, 1),
                Content::Random => data.fill(at, &noise.page()),
            }
            if at % (1024 * PAGE) == 0 && deadline.is_over() {
                return Ok(());
            }
        }
        let pages = file_len / PAGE;
        let step = (data_len - file_len) / PAGE / self.iterations.max(1) as usize;
        for iteration in 0..self.iterations {
            for page in 0..pages {
                std::hint::black_box(library.read(noise.below(pages) * PAGE));
                std::hint::black_box(data.read((iteration as usize * step + page) * PAGE));
                if page % (pages / PARTS) == 0 {
                    #[allow(clippy::cast_precision_loss)] // ten
                    done(
                        f64::from(iteration) + page as f64 / pages as f64,
                        begun.elapsed().as_secs_f64(),
                    );
                }
                if page % 64 == 0 && deadline.is_over() {
                    return Ok(());
                }
            }
        }
        done(f64::from(self.iterations), begun.elapsed().as_secs_f64());
        Ok(())
    }
}
