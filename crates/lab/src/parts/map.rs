//! A process that needs a mapped file and data at the same time: a program with a large library.

use std::fs::File;
use std::path::PathBuf;

use units::{Bytes, Span};

use super::hog::Noise;
use super::{Deadline, PAGE};
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
    /// Windows.
    pub iterations: u32,
    /// How long at most.
    pub time: Option<Span>,
}

impl MapPart {
    /// Works; reports how many windows are done, in tenths.
    ///
    /// # Errors
    /// The operating system's.
    pub fn run(&self, mut done: impl FnMut(f64)) -> std::io::Result<()> {
        /// Reports of a window.
        const PARTS: usize = 10;
        let _ = rustix::thread::set_name(c"swapdemo");
        let deadline = Deadline::after(self.time);
        let len = |size: Bytes| usize::try_from(size.get()).map_err(std::io::Error::other);
        let (file_len, data_len) = (len(self.file_size)?, len(self.data_size)?);
        if file_len < PAGE * PARTS || data_len <= file_len {
            return Err(std::io::Error::other(
                "the data must be larger than the file, and that not empty",
            ));
        }
        let library = MappedPages::of_file(&File::open(&self.file)?, file_len)?;
        let mut data = MappedPages::shared(data_len)?;
        for at in (0..data_len).step_by(PAGE) {
            data.write(at, 1);
            if at % (1024 * PAGE) == 0 && deadline.is_over() {
                return Ok(());
            }
        }
        let mut noise = Noise::new(256);
        let pages = file_len / PAGE;
        let step = (data_len - file_len) / PAGE / self.iterations.max(1) as usize;
        for iteration in 0..self.iterations {
            for page in 0..pages {
                let random = usize::try_from(noise.next() % pages as u64).unwrap_or_default();
                std::hint::black_box(library.read(random * PAGE));
                std::hint::black_box(data.read((iteration as usize * step + page) * PAGE));
                if page % (pages / PARTS) == 0 {
                    #[allow(clippy::cast_precision_loss)] // ten
                    done(f64::from(iteration) + page as f64 / pages as f64);
                }
                if page % 64 == 0 && deadline.is_over() {
                    return Ok(());
                }
            }
        }
        done(f64::from(self.iterations));
        Ok(())
    }
}
