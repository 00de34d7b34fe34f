//! Where the stacks of a process's threads are: the stack pointer in `/proc/PID/task/TID/syscall`.
//!
//! The line is `running`, or `NUMBER ARGUMENTS… SP PC` in a system call, or `-1 SP PC` where the thread waits outside of
//! one. Numbers are hexadecimal but the first. A thread that runs shows no pointer. Since 2.6.27, with
//! `CONFIG_HAVE_ARCH_TRACEHOOK`; needs the right to attach to the process. Cost: 3 µs a thread; nothing stops.

use crate::error::ReadError;
use crate::kernel_file::Root;
use crate::text;

/// Threads beyond this number are not read.
const THREADS_MAX: usize = 16_384;

/// A thread and its stack pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackPointer {
    /// The thread.
    pub tid: u32,
    /// An address in its stack.
    pub address: u64,
}

/// Stack pointers of the threads of a process that wait.
#[derive(Debug, Clone, Default)]
pub struct StackPointers {
    /// In no order.
    pub known: Vec<StackPointer>,
    /// All threads, also those that run now or may not be read.
    pub threads: usize,
}

impl StackPointers {
    /// Reads the stack pointers of a process's threads.
    ///
    /// # Errors
    /// [`ReadError`] if the threads cannot be listed: the process has ended.
    pub fn read(root: &Root, pid: u32) -> Result<Self, ReadError> {
        let tids = root.numbers(&format!("/proc/{pid}/task"))?;
        let mut pointers = Self::default();
        for tid in tids.take(THREADS_MAX) {
            pointers.threads += 1;
            let line = root.read(&format!("/proc/{pid}/task/{tid}/syscall"));
            if let Some(address) = line.ok().as_deref().and_then(stack_pointer) {
                pointers.known.push(StackPointer { tid, address });
            }
        }
        Ok(pointers)
    }
}

/// Returns the stack pointer in a line: the last number but one.
fn stack_pointer(line: &[u8]) -> Option<u64> {
    let mut last_two = [None; 2];
    for word in text::words(text::trim(line)) {
        last_two = [last_two[1], hexadecimal(word)];
    }
    let [pointer, _program_counter @ Some(_)] = last_two else {
        return None;
    };
    pointer.filter(|pointer| *pointer > 0)
}

fn hexadecimal(word: &[u8]) -> Option<u64> {
    let digits = word.strip_prefix(b"0x")?;
    let (value, length) = text::leading_hexadecimal(digits)?;
    (length == digits.len()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile;

    const TEXT: &[u8] =
        b"202 0x7ffd8a7d5a48 0x189 0x0 0x0 0x0 0xffffffff 0x7f1df05fe2c0 0x7f1df0c8dd16\n";

    #[test]
    fn the_pointer_is_the_last_number_but_one() {
        assert_eq!(stack_pointer(TEXT), Some(0x7f1d_f05f_e2c0));
        assert_eq!(stack_pointer(b"-1 0x7ffe00 0x401000\n"), Some(0x007f_fe00));
        for text in [&b"running\n"[..], b"", b"0\n", b"-1 0x0 0x0", b"-1 7 8"] {
            assert_eq!(stack_pointer(text), None);
        }
    }

    #[test]
    fn a_thread_that_waits_shows_its_stack() {
        let (stop, wait) = std::sync::mpsc::channel::<()>();
        let (send, own) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let local = 0_u8;
            send.send(&raw const local as u64).unwrap();
            let _ = wait.recv();
        });
        let local = own.recv().unwrap();
        let is_near = |one: &StackPointer| one.address.abs_diff(local) < 1 << 16;
        // The thread is about to wait.
        let found = (0..1_000_000).any(|_| {
            std::thread::yield_now();
            let pointers = StackPointers::read(&Root::default(), std::process::id()).unwrap();
            assert!(pointers.threads >= 2);
            pointers.known.iter().any(is_near)
        });
        assert!(found);
        drop(stop);
        thread.join().unwrap();
    }

    #[test]
    fn no_text_makes_it_panic() {
        hostile::feed(TEXT, |text| {
            stack_pointer(text);
        });
    }
}
