//! The cost of the recorder itself: CPU time, measured with each sample in some 2 µs; memory and the CPU time of
//! children now and then.

use probe::{KernelFile, Root, Shape, text};
use timeline::Row;
use timeline::signals::{RECORDER_CPU, RECORDER_RSS};
use units::{Bytes, Micros, Span};

/// The cost of this process: a recorder, a server.
#[derive(Debug)]
pub struct OwnCost {
    statm: Option<KernelFile>,
    text: Vec<u8>,
    page: u64,
    /// CPU time of ended children, in µs: a child process seals segments.
    children: u64,
    resident: Option<Bytes>,
}

impl OwnCost {
    /// Opens the file that stays open. Always of this machine: a directory of saved files does not list this process.
    pub fn open() -> Self {
        let statm = KernelFile::open(&Root::default(), "/proc/self/statm");
        Self {
            statm: statm.ok().map(|file| file.shaped(Shape::OneLine)),
            text: Vec::with_capacity(256),
            page: u64::try_from(rustix::param::page_size()).unwrap_or(4096),
            children: 0,
            resident: None,
        }
    }

    /// Returns its CPU time with that of ended children, and its resident memory.
    pub fn now(&mut self) -> (Span, Option<Bytes>) {
        let cpu = probe::process_cpu().plus(probe::children_cpu());
        (cpu, self.read_resident())
    }

    /// Reads CPU time into the host's row; if `is_whole`, also memory and the CPU time of children. Returns the last
    /// values of both.
    pub(crate) fn read(&mut self, host: &mut Row, is_whole: bool) -> (Micros, Option<Bytes>) {
        if is_whole {
            self.children = micros(probe::children_cpu());
            self.resident = self.read_resident();
            if let Some(rss) = self.resident {
                host.set(RECORDER_RSS, rss);
            }
        }
        let own = micros(probe::process_cpu());
        let cpu = Micros::new(own.saturating_add(self.children));
        host.set(RECORDER_CPU, cpu);
        (cpu, self.resident)
    }

    /// Reads resident pages, the second number of `statm`.
    fn read_resident(&mut self) -> Option<Bytes> {
        self.statm.as_ref()?.read(&mut self.text).ok()?;
        let pages = text::words(text::trim(&self.text)).nth(1)?;
        let pages = text::number(pages)?;
        Some(Bytes::new(pages.saturating_mul(self.page)))
    }
}

fn micros(span: Span) -> u64 {
    span.as_nanos() / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_only_rises_and_memory_is_that_of_a_process() {
        let mut own = OwnCost::open();
        let (mut first, mut second) = (Row::default(), Row::default());
        own.read(&mut first, true);
        // Far more than other tests of this process free meanwhile.
        let mut work = vec![0_u8; 128 << 20];
        work.iter_mut().step_by(512).for_each(|byte| *byte = 1);
        own.read(&mut second, true);
        assert!(second.get(RECORDER_CPU) > first.get(RECORDER_CPU));
        let [before, after] = [&first, &second].map(|row| row.get(RECORDER_RSS).unwrap());
        let grown = after.saturating_sub(before);
        assert!(grown > Bytes::from_mib(64), "{grown}");
        drop(work);
    }
}
