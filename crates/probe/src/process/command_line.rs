//! `/proc/PID/cmdline`: the arguments of a process.

use crate::Root;

/// A process and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// The process.
    pub pid: u32,
    /// As the kernel prints them: each ends with a zero byte. A process can rewrite its own.
    pub text: Vec<u8>,
}

impl CommandLine {
    /// Returns the program and its arguments.
    pub fn words(&self) -> Vec<&[u8]> {
        let text = self.text.strip_suffix(b"\0").unwrap_or(&self.text);
        text.split(|byte| *byte == 0).collect()
    }
}

/// Returns the command lines of all processes, reading one at a time. Kernel threads, and processes that vanish or may
/// not be read, are left out.
///
/// # Errors
/// If `/proc` cannot be listed.
pub fn command_lines(root: &Root) -> std::io::Result<impl Iterator<Item = CommandLine>> {
    let pids = root.numbers("/proc").map_err(|error| error.source)?;
    Ok(pids.filter_map(|pid| {
        let text = root.read(&format!("/proc/{pid}/cmdline")).ok()?;
        (!text.is_empty()).then_some(CommandLine { pid, text })
    }))
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
        let words: Vec<&str> = ours
            .words()
            .into_iter()
            .map(|word| std::str::from_utf8(word).unwrap())
            .collect();
        assert_eq!(words, arguments);
    }

    #[test]
    fn an_empty_last_argument_is_kept() {
        let process = CommandLine {
            pid: 1,
            text: b"init\0\0".to_vec(),
        };
        assert_eq!(process.words(), [b"init".as_slice(), b""]);
    }
}
