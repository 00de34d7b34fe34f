//! Writes a profile as folded stacks, with a first line that says what the counts are: what [`read_profile`](crate::read_profile) reads.

use std::fmt::Write;

use serde::Serialize;

use crate::collected::{CpuUnit, Profile, ProfilePart};
use crate::stack::{FramePlace, StackTable};

/// The first line.
#[derive(Debug, Serialize)]
struct WrittenHeader<'a> {
    unit: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hz: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'a str>,
    vmstat_delta: &'a std::collections::BTreeMap<String, i64>,
    settings: &'a std::collections::BTreeMap<String, String>,
}

/// Returns a part as folded stacks: samples, or microseconds of waiting. Empty where it was not measured.
pub fn folded(profile: &Profile, part: ProfilePart) -> String {
    let origin = &profile.origin;
    let Some((stacks, are_waits)) = profile.part(part) else {
        return String::new();
    };
    let is_percent = matches!(profile.cpu, Some((CpuUnit::Percent, _)));
    // Counts are whole numbers.
    let (unit, factor) = match (are_waits, is_percent) {
        (true, _) => ("us", 1e6),
        (false, true) => ("samples", 100.0),
        (false, false) => ("samples", 1.0),
    };
    let header = WrittenHeader {
        unit,
        kernel: origin.kernel.as_deref(),
        cpus: origin.cpus,
        seconds: origin.seconds,
        hz: origin.hz.filter(|_| unit == "samples"),
        event: origin.event.as_deref(),
        vmstat_delta: &profile.vmstat_delta,
        settings: &profile.settings,
    };
    let header = serde_json::to_string(&header).unwrap_or_default();
    format!("# {header}\n{}", lines(stacks, factor))
}

fn lines(stacks: &StackTable, factor: f64) -> String {
    let mut text = String::new();
    for (stack, weight) in stacks.sorted() {
        let count = (weight * factor).round();
        if count < 1.0 {
            continue;
        }
        text.push_str(&plain(&stack.comm));
        for frame in &stack.frames {
            let mark = if frame.place == FramePlace::Kernel { "_[k]" } else { "" };
            // Writing to a String cannot fail.
            let _ = write!(text, ";{}{mark}", plain(&frame.name));
        }
        let _ = writeln!(text, " {count}");
    }
    text
}

/// A name that cannot end its field or its line, nor steer a terminal: any user may choose the name of a thread.
fn plain(name: &str) -> String {
    let name = timeline::plain::escape(name);
    name.replace([';', ' '], "_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ProfileReport, read_profile};

    #[test]
    fn what_is_written_is_read_back_with_the_same_answer() {
        let mut profile = Profile::default();
        let mut stacks = StackTable::default();
        let frames = |names: &[&'static str]| {
            names.iter().map(|name| (*name, FramePlace::Kernel)).collect::<Vec<_>>()
        };
        stacks.add("a;b c\n", frames(&["do_syscall_64", "node_reclaim", "shrink_lruvec"]), 60.0);
        stacks.add("x", [("[user]", FramePlace::User)], 40.0);
        profile.cpu = Some((CpuUnit::Samples, stacks));
        profile.origin.seconds = Some(10.0);
        profile.origin.cpus = Some(2);
        profile.origin.hz = Some(99.0);
        let text = folded(&profile, ProfilePart::Cpu);
        assert!(text.contains("\na_b_c\\n;do_syscall_64_[k];node_reclaim_[k]"), "{text}");
        let read = read_profile("x", text.as_bytes()).unwrap();
        let (one, other) = (ProfileReport::of(&profile), ProfileReport::of(&read));
        assert_eq!(one.hot[0].share, other.hot[0].share);
        assert_eq!(one.cpu, other.cpu);
    }
}
