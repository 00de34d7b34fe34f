//! Maps of bpftrace: `@us[comm, kstack]: VALUE` and `@[kstack, comm]: COUNT`, a function a line, the innermost first.
//!
//! The name of the map says what is counted: `us`, `ns`, `ms` are waits, anything else samples.

use crate::collected::{BlockedHow, BlockedStacks, CpuUnit, Profile};
use crate::stack::{FramePlace, StackTable};

pub(super) fn read(text: &str) -> Option<Profile> {
    let (mut samples, mut waits) = (StackTable::default(), StackTable::default());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some((name, rest)) = line.strip_prefix('@').and_then(|line| line.split_once('['))
        else {
            continue;
        };
        let mut comm = rest.trim().trim_end_matches(',').trim().to_owned();
        let mut frames: Vec<String> = Vec::new();
        let mut value = closes(&comm);
        if let Some((inside, _)) = comm.clone().split_once("]: ").filter(|_| value.is_some()) {
            comm = inside.trim().to_owned();
        }
        while value.is_none() {
            let line = lines.next()?;
            value = closes(line);
            let inside = line.split("]: ").next().unwrap_or_default().trim();
            let is_function = line.starts_with(char::is_whitespace) && value.is_none();
            let part = inside.trim_start_matches(',').trim();
            if part.is_empty() || part == "]" {
                continue;
            }
            if is_function {
                frames.push(part.trim_end_matches(',').to_owned());
            } else {
                comm = part.to_owned();
            }
        }
        let (Some(value), false) = (value, frames.is_empty()) else {
            continue;
        };
        let functions = frames.iter().rev().map(|frame| (frame.as_str(), FramePlace::Kernel));
        let per_second = match name.trim() {
            "us" | "usecs" => Some(1e6),
            "ns" | "nsecs" => Some(1e9),
            "ms" => Some(1e3),
            _ => None,
        };
        let comm = if comm.is_empty() { "?" } else { &comm };
        match per_second {
            Some(per_second) => waits.add(comm, functions, value / per_second),
            None => samples.add(comm, functions, value),
        }
    }
    if samples.is_empty() && waits.is_empty() {
        return None;
    }
    let mut profile = Profile::default();
    profile.origin.form = "bpftrace".to_owned();
    profile.cpu = (!samples.is_empty()).then_some((CpuUnit::Samples, samples));
    profile.blocked =
        (!waits.is_empty()).then_some(BlockedStacks { how: BlockedHow::Traced, stacks: waits });
    Some(profile)
}

/// The value behind the end of a key.
fn closes(line: &str) -> Option<f64> {
    line.rsplit_once("]: ").and_then(|(_, value)| value.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_orders_of_the_key_are_read() {
        let text = "Attaching 2 probes...\n\n@us[sh, \n    __schedule+1560\n    schedule+35\n    \
                    do_swap_page+86\n]: 642\n@[\n    clear_page_erms+7\n    do_anonymous_page+1\n, \
                    python3]: 12\n";
        let profile = read(text).unwrap();
        let blocked = profile.blocked.unwrap().stacks;
        let (stack, seconds) = blocked.iter().next().unwrap();
        assert_eq!((&*stack.comm, stack.frames.len()), ("sh", 3));
        assert_eq!(&*stack.frames[0].name, "do_swap_page");
        assert!((seconds - 642e-6).abs() < 1e-12);
        let samples = profile.cpu.unwrap().1;
        let (stack, count) = samples.iter().next().unwrap();
        assert_eq!((&*stack.comm, count), ("python3", 12.0));
    }
}
