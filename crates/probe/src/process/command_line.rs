//! `/proc/PID/cmdline`: the arguments of a process, which lie in its memory. Reading them takes the lock of its address space, and
//! may wait for it: a process that does not answer has none. Cost: some 50 µs.

use crate::Root;
use crate::process::SILENT_AFTER;
use crate::process::timed_read::read_within;

/// A process and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// The process.
    pub pid: u32,
    /// As the kernel prints them: each ends with a zero byte. A process can rewrite its own.
    pub text: Vec<u8>,
}

impl CommandLine {
    /// Reads that of a process; `None` of a kernel thread, or if it ended, may not be read or does not answer.
    pub fn read(root: &Root, pid: u32) -> Option<Self> {
        let root = root.clone();
        let text = read_within(SILENT_AFTER, move || root.read(&format!("/proc/{pid}/cmdline")));
        let text = text.ok()?.ok()?;
        (!text.is_empty()).then_some(Self { pid, text })
    }

    /// Returns the program and its arguments.
    pub fn words(&self) -> Vec<&[u8]> {
        let text = self.text.strip_suffix(b"\0").unwrap_or(&self.text);
        text.split(|byte| *byte == 0).collect()
    }
}

/// Returns the command lines of all processes that have one, reading one at a time.
///
/// # Errors
/// If `/proc` cannot be listed.
pub fn command_lines(root: &Root) -> std::io::Result<impl Iterator<Item = CommandLine>> {
    let pids = root.numbers("/proc").map_err(|error| error.source)?;
    Ok(pids.filter_map(|pid| CommandLine::read(root, pid)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_found_by_its_arguments() {
        let ours = command_lines(&Root::default())
            .unwrap()
            .find(|process| process.pid == std::process::id())
            .unwrap();
        let arguments: Vec<String> = std::env::args().collect();
        let words: Vec<&str> =
            ours.words().into_iter().map(|word| std::str::from_utf8(word).unwrap()).collect();
        assert_eq!(words, arguments);
    }

    #[test]
    fn one_that_does_not_answer_is_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let process = |pid: u32| directory.path().join(format!("proc/{pid}"));
        std::fs::create_dir_all(process(7)).unwrap();
        std::fs::create_dir_all(process(8)).unwrap();
        let (fifo, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
        let silent = process(7).join("cmdline");
        rustix::fs::mknodat(rustix::fs::CWD, silent, fifo, mode, 0).unwrap();
        std::fs::write(process(8).join("cmdline"), b"a\0").unwrap();
        let all: Vec<_> = command_lines(&Root::at(directory.path())).unwrap().collect();
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].words(), [b"a"]);
    }

    #[test]
    fn an_empty_last_argument_is_kept() {
        let process = CommandLine { pid: 1, text: b"init\0\0".to_vec() };
        assert_eq!(process.words(), [b"init".as_slice(), b""]);
    }
}
