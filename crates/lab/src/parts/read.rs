//! A process that reads files again and again.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::time::Instant;

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_setaffinity};
use units::Span;

use super::Deadline;
use super::archive::files;

/// Reads a file, or all files of a directory, pass by pass.
#[derive(Debug, Clone)]
pub struct ReadPart {
    /// What is read.
    pub source: PathBuf,
    /// How often; `None`: until the time is over.
    pub passes: Option<u32>,
    /// How long at most.
    pub time: Option<Span>,
    /// Whether bytes are copied to the reader, as `read` does; else they are only made present, as `sendfile` does.
    pub is_copied: bool,
    /// Rest between two passes; `None`: none.
    pub rest: Option<Span>,
    /// The CPU that it runs on, and so its NUMA node; `None`: any.
    pub cpu: Option<u32>,
}

impl ReadPart {
    /// Reads them; gives the seconds and the bytes of each whole pass.
    ///
    /// # Errors
    /// The operating system's.
    pub fn run(&self, mut each: impl FnMut(f64, u64)) -> std::io::Result<()> {
        let _ = rustix::thread::set_name(c"reader");
        if let Some(cpu) = self.cpu {
            run_on(cpu)?;
        }
        let deadline = Deadline::after(self.time);
        let mut buffer = vec![0; 256 << 10];
        let null = File::options().write(true).open("/dev/null")?;
        let paths = files(&self.source)?;
        let mut pass = 0;
        while self.passes.is_none_or(|passes| pass < passes) {
            let begun = Instant::now();
            let mut bytes = 0_u64;
            for path in &paths {
                let mut file = File::open(path)?;
                loop {
                    let len = if self.is_copied {
                        file.read(&mut buffer)?
                    } else {
                        rustix::fs::sendfile(&null, &file, None, buffer.len())?
                    };
                    if len == 0 {
                        break;
                    }
                    bytes += len as u64;
                    if deadline.is_over() {
                        return Ok(());
                    }
                }
            }
            each(begun.elapsed().as_secs_f64(), bytes);
            if bytes == 0 {
                return Err(std::io::Error::other("there is nothing to read"));
            }
            deadline.sleep(self.rest.unwrap_or_default().as_duration());
            pass += 1;
        }
        Ok(())
    }
}

/// Lets this thread run on one CPU only.
fn run_on(cpu: u32) -> std::io::Result<()> {
    let fails = || std::io::Error::other(format!("there is no CPU {cpu} that it may use"));
    if cpu as usize >= CpuSet::MAX_CPU {
        return Err(fails());
    }
    let mut cpus = CpuSet::new();
    cpus.set(cpu as usize);
    sched_setaffinity(None, &cpus).map_err(|error| match error {
        Errno::INVAL => fails(),
        error => error.into(),
    })
}
