//! A process that frees most of its heap and cannot give it back: one live object in each page keeps the page.

use units::{Bytes, Span};

use super::Deadline;

/// Fills the heap with small objects, frees all but some, and stays.
#[derive(Debug, Clone)]
pub struct FragmentPart {
    /// Objects at first.
    pub size: Bytes,
    /// One object in this many stays.
    pub keep_one_of: u32,
    /// How long it stays with them; `None`: until killed.
    pub time: Option<Span>,
}

/// Bytes of an object: a few of them make a page.
const OBJECT: usize = 200;

impl FragmentPart {
    /// Allocates and frees; reports the bytes that are live after each step.
    ///
    /// # Errors
    /// Where the size does not fit in memory.
    pub fn run(&self, mut live: impl FnMut(u64)) -> std::io::Result<()> {
        let _ = rustix::thread::set_name(c"fragment");
        let count = super::len(self.size)? / OBJECT;
        let mut objects: Vec<Option<Box<[u8; OBJECT]>>> = Vec::new();
        objects.try_reserve_exact(count).map_err(std::io::Error::other)?;
        objects.extend((0..count).map(|number| {
            #[allow(clippy::cast_possible_truncation)] // any byte but zero
            let byte = (number % 255) as u8 + 1;
            Some(Box::new([byte; OBJECT]))
        }));
        live((count * OBJECT) as u64);
        let keep = self.keep_one_of.max(1) as usize;
        for (number, object) in objects.iter_mut().enumerate() {
            if number % keep != 0 {
                *object = None;
            }
        }
        live((count.div_ceil(keep) * OBJECT) as u64);
        Deadline::after(self.time).wait();
        drop(std::hint::black_box(objects));
        Ok(())
    }
}
