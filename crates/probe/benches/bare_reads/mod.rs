//! The least that a sample of the host can cost: bare reads of its files.

use std::fs::File;
use std::path::Path;

use probe::HostProbe;
use rustix::io::pread;

/// The lower bound: the files that a sample reads, each read to its end and not looked at.
pub(crate) struct BareReads {
    files: Vec<BareFile>,
    buffer: Vec<u8>,
}

struct BareFile {
    file: File,
    /// Bytes to ask for: the cheapest request, as sysctl clears as many as it is asked for.
    request: usize,
}

impl BareReads {
    /// Opens the files of a probe's usual sample, which slabinfo is no part of.
    pub(crate) fn open(probe: &HostProbe) -> Self {
        let paths = probe.paths().filter(|path| !path.ends_with("slabinfo"));
        let open = |path: &Path| BareFile {
            file: File::open(path).expect("it is open in the probe, too"),
            request: if path.starts_with("/proc/sys") { 256 } else { 64 << 10 },
        };
        Self { files: paths.map(open).collect(), buffer: vec![0; 64 << 10] }
    }

    /// Returns how many files there are.
    #[allow(dead_code)] // not every user prints it
    pub(crate) fn files(&self) -> usize {
        self.files.len()
    }

    /// Reads all; returns the number of bytes.
    pub(crate) fn read(&mut self) -> u64 {
        let mut bytes = 0;
        for BareFile { file, request } in &self.files {
            let mut offset = 0;
            loop {
                match pread(file, &mut self.buffer[..*request], offset) {
                    Ok(0) | Err(_) => break,
                    Ok(got) => offset += got as u64,
                }
            }
            bytes += offset;
        }
        bytes
    }
}
