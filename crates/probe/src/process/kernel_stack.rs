//! Which tasks wait in state D, and where: the state in `/proc/PID/task/TID/stat`, functions in `/proc/PID/task/TID/stack`, or the one
//! function in `wchan`.
//!
//! `stack` has a line `[<0>] do_swap_page+0x86/0x9c0` for each function, the innermost first, without those of the scheduler; since
//! 4.20 it needs CAP_SYS_ADMIN, and some kernels refuse it even to root for some tasks. `wchan` needs the right to attach, and is
//! `0` where it may not be read. Cost: 8 µs a thread.

use crate::kernel_file::Root;
use crate::process::stat::read;
use crate::text;

/// A task that waits in state D.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskWait {
    /// The process that it belongs to.
    pub pid: u32,
    /// The thread, as a number.
    pub tid: u32,
    /// Its name; any user may choose it.
    pub comm: String,
    /// Functions of the kernel, the outermost first; empty where they may not be read.
    pub functions: Vec<String>,
}

/// Returns the tasks that wait in state D now.
pub fn waiting_in_d(root: &Root) -> Vec<TaskWait> {
    let mut waiting = Vec::new();
    let Ok(processes) = root.numbers("/proc") else {
        return waiting;
    };
    for pid in processes {
        // Ended meanwhile.
        let Ok(threads) = root.numbers(&format!("/proc/{pid}/task")) else {
            continue;
        };
        for tid in threads {
            let directory = format!("/proc/{pid}/task/{tid}");
            let Ok(stat) = root.read(&format!("{directory}/stat")) else {
                continue;
            };
            let (identity, _) = read(&stat, |_, _| ());
            let Some(identity) = identity.filter(|identity| identity.state == Some(b'D')) else {
                continue;
            };
            waiting.push(TaskWait {
                pid,
                tid,
                comm: text::lossy(identity.name).into_owned(),
                functions: functions(root, &directory),
            });
        }
    }
    waiting
}

fn functions(root: &Root, directory: &str) -> Vec<String> {
    let stack = root.read(&format!("{directory}/stack")).unwrap_or_default();
    let functions = in_stack(&stack);
    if !functions.is_empty() {
        return functions;
    }
    let channel = root.read(&format!("{directory}/wchan")).unwrap_or_default();
    let channel = text::lossy(text::trim(&channel));
    if matches!(&*channel, "" | "0") { Vec::new() } else { vec![channel.into_owned()] }
}

/// The functions of a stack, the outermost first.
fn in_stack(stack: &[u8]) -> Vec<String> {
    let lines = text::lines(stack).map(|(_, line)| line);
    let mut functions: Vec<String> = lines
        .filter_map(|line| {
            let line = text::lossy(line);
            let (_, function) = line.split_once("] ")?;
            let name = function.split(['+', ' ']).next()?;
            // Old kernels end with `[<ffffffffffffffff>] 0xffffffffffffffff`.
            (!name.is_empty() && !name.starts_with("0x")).then(|| name.to_owned())
        })
        .collect();
    functions.reverse();
    functions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_read_from_old_and_new_kernels() {
        let new = b"[<0>] folio_wait_bit_common+0x13d/0x350\n[<0>] do_swap_page+0x86/0x9c0\n";
        assert_eq!(in_stack(new), ["do_swap_page", "folio_wait_bit_common"]);
        let old = b"[<ffffffff81127f90>] sleep_on_page+0xe/0x20\n[<ffffffff8100b072>] \
                    system_call_fastpath+0x16/0x1b\n[<ffffffffffffffff>] 0xffffffffffffffff\n";
        assert_eq!(in_stack(old), ["system_call_fastpath", "sleep_on_page"]);
        assert!(in_stack(b"\xff\xfe garbage").is_empty());
    }

    #[test]
    fn tasks_in_state_d_are_found_among_saved_files() {
        let directory = tempfile::tempdir().unwrap();
        let task = |pid: u32, name: &str, state: char| {
            let path = directory.path().join(format!("proc/{pid}/task/{pid}"));
            std::fs::create_dir_all(&path).unwrap();
            let zeros = " 0".repeat(45);
            std::fs::write(path.join("stat"), format!("{pid} ({name}) {state}{zeros}\n")).unwrap();
            path
        };
        task(7, "calm", 'S');
        let path = task(8, "a) D (b", 'D');
        std::fs::write(path.join("wchan"), "io_schedule").unwrap();
        let waiting = waiting_in_d(&Root::at(directory.path()));
        let [only] = waiting.as_slice() else { panic!("{waiting:?}") };
        assert_eq!((only.tid, only.comm.as_str()), (8, "a) D (b"));
        assert_eq!(only.functions, ["io_schedule"]);
    }
}
