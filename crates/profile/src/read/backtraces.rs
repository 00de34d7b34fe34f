//! Backtraces that the kernel prints: hung tasks, soft lockups, failed allocations and sysrq in its log, with any prefix, and what
//! `/proc/PID/stack` shows. A function a line, the innermost first; those behind `?` were only found on the stack.
//!
//! They say what happened, not how often.

use crate::collected::{CpuUnit, Profile};
use crate::stack::{FramePlace, StackTable};

/// A trace while it is read.
#[derive(Default)]
struct OpenTrace<'a> {
    /// The innermost first.
    functions: Vec<&'a str>,
    is_open: bool,
}

pub(super) fn read(text: &str) -> Option<Profile> {
    let mut stacks = StackTable::default();
    let mut trace = OpenTrace::default();
    let mut comm = "?".to_owned();
    for line in text.lines() {
        let begins = line.contains("Call Trace:") || line.contains("Call trace:");
        let function = function(line);
        // /proc/PID/stack has no heading.
        let is_headless = !trace.is_open && line.starts_with("[<") && function.is_some();
        if begins || is_headless {
            trace.close(&comm, &mut stacks);
            trace.is_open = true;
        }
        if let Some(name) = comm_of(line) {
            trace.close(&comm, &mut stacks);
            name.clone_into(&mut comm);
        }
        match function.filter(|_| trace.is_open) {
            Some(Some(name)) => trace.functions.push(name),
            Some(None) => {}
            None if begins
                || line.contains("<TASK>")
                || line.contains("<IRQ>")
                || line.contains("</IRQ>") => {}
            None => trace.close(&comm, &mut stacks),
        }
    }
    trace.close(&comm, &mut stacks);
    if stacks.is_empty() {
        return None;
    }
    let mut profile = Profile::default();
    profile.origin.form = "backtraces of the kernel".to_owned();
    profile.cpu = Some((CpuUnit::Backtraces, stacks));
    Some(profile)
}

impl OpenTrace<'_> {
    fn close(&mut self, comm: &str, stacks: &mut StackTable) {
        if !self.functions.is_empty() {
            let frames = self.functions.iter().rev().map(|name| (*name, FramePlace::Kernel));
            stacks.add(comm, frames, 1.0);
        }
        *self = Self::default();
    }
}

/// The function of a line: `Some(None)` where it was only found on the stack.
fn function(line: &str) -> Option<Option<&str>> {
    let mut words = line.split_whitespace();
    let mut before = "";
    let found = words.by_ref().find(|word| {
        let is_it = is_function(word);
        if !is_it {
            before = word;
        }
        is_it
    })?;
    // `RIP: 0010:get_page+0x1/0x2` is where it was interrupted, and stands again in the trace.
    if line.contains("RIP:") || line.contains("pc :") || line.contains("lr :") {
        return None;
    }
    Some((before != "?").then_some(found))
}

/// `shrink_lruvec+0x1c/0x40`, or `.shrink_lruvec+0x1c/0x40` on POWER.
fn is_function(word: &str) -> bool {
    let Some((name, offset)) = word.split_once('+') else {
        return false;
    };
    let is_hex = |text: &str| {
        let digits = text.strip_prefix("0x").unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$');
    !name.is_empty()
        && name.chars().all(is_name)
        && offset.split_once('/').is_some_and(|(at, of)| is_hex(at) && is_hex(of))
}

/// The task that a line announces: `INFO: task txg_sync:5678 blocked`, `task:kswapd0 state:D`, `PID: 7 Comm: java Not tainted`.
fn comm_of(line: &str) -> Option<&str> {
    if let Some((_, rest)) = line.split_once("INFO: task ") {
        return rest.split_once(" blocked for")?.0.rsplit_once(':').map(|(name, _)| name);
    }
    if let Some((_, rest)) = line.split_once("task:") {
        return rest.split_once(" state:").map(|(name, _)| name.trim_end());
    }
    let (_, rest) = line.split_once(" Comm: ").or_else(|| line.split_once(" comm: "))?;
    let ends = [" Not tainted", " Tainted", " Kdump", " Called"];
    ends.iter().find_map(|end| rest.split_once(end)).map(|(name, _)| name.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reason, classify};

    const LOG: &str = "\
[ 8400.1] INFO: task txg_sync:5678 blocked for more than 120 seconds.
[ 8400.2]       Tainted: P           O 3.2.0 #1
[ 8400.3] \"echo 0 > /proc/sys/kernel/hung_task_timeout_secs\" disables this message.
[ 8400.4] txg_sync        D ffff88061fc13700     0  5678      2 0x00000000
[ 8400.5] Call Trace:
[ 8400.6]  [<ffffffff8161b7a9>] schedule+0x29/0x70
[ 8400.7]  [<ffffffff8112a1f5>] ? __wake_up+0x105/0x1a0
[ 8400.8]  [<ffffffff8112a1f5>] try_to_free_pages+0x105/0x1a0
[ 8400.9]  [<ffffffffa02e5d55>] kv_alloc.isra.8+0x5/0x1a [spl]
[ 8401.0] something else
Dec  1 03:00:00 web kernel: CPU: 1 PID: 7 Comm: Web Content Not tainted 6.1.0
Dec  1 03:00:00 web kernel: RIP: 0010:clear_page_erms+0x7/0x10
Dec  1 03:00:00 web kernel: Call Trace:
Dec  1 03:00:00 web kernel:  <TASK>
Dec  1 03:00:00 web kernel:  clear_huge_page+0x7/0x10
Dec  1 03:00:00 web kernel:  do_huge_pmd_anonymous_page+0x7/0x10
Dec  1 03:00:00 web kernel:  </TASK>
";

    #[test]
    fn traces_of_logs_have_their_task_and_only_what_called() {
        let profile = read(LOG).unwrap();
        let (unit, stacks) = profile.cpu.unwrap();
        assert_eq!((unit, stacks.len()), (CpuUnit::Backtraces, 2));
        let seen: Vec<_> = stacks
            .sorted()
            .into_iter()
            .map(|(stack, _)| (stack.comm.to_string(), stack.frames.len(), classify(stack).reason))
            .collect();
        assert_eq!(
            seen,
            [
                ("Web Content".to_owned(), 2, Reason::ThpFault),
                ("txg_sync".to_owned(), 3, Reason::DirectReclaim)
            ]
        );
    }

    #[test]
    fn the_stack_of_a_process_is_a_trace() {
        let text = "[<0>] folio_wait_bit_common+0x13d/0x350\n[<0>] do_swap_page+0x86/0x9c0\n[<0>] asm_exc_page_fault+0x22/0x30\n";
        let (_, stacks) = read(text).unwrap().cpu.unwrap();
        let (stack, _) = stacks.iter().next().unwrap();
        assert_eq!((classify(stack).reason, stack.frames.len()), (Reason::SwapIn, 3));
        assert!(read("a+0x1/0x2 in prose\n1+1\n").is_none());
    }
}
