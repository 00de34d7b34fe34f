//! `memtide record --judge DIR`: the recorder's child that judges the recording's last minutes, at the lowest priority and
//! within limits of its own, and prints what is wrong: a line of JSON for each finding, then one about itself.

use std::path::Path;

use recorder_status::ActiveFinding;
use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use units::{Bytes, Span};

use super::super::seal::give_way;
use crate::command_error::{CommandError, ErrorContext};
use crate::exit::Exit;
use crate::output::Output;

/// A check takes some 20 ms of CPU time, and a second with thousands of cgroups.
const CPU_MAX: Span = Span::from_secs(20);
/// A check takes some 25 MiB, and the unit of the service allows 384 for all.
const DATA_MAX: Bytes = Bytes::from_mib(320);

pub(in super::super) fn run(directory: &Path, output: &Output) -> Result<Exit, CommandError> {
    // The recorder's thread waits for it: where that is gone, nobody reads what it finds.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    give_way();
    limit(Resource::Cpu, CPU_MAX.as_nanos() / 1_000_000_000);
    limit(Resource::Data, DATA_MAX.get());
    let found = answers::check_own(directory)?;
    for notice in &found {
        output.print(&one_line(notice)?)?;
    }
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    #[allow(clippy::cast_precision_loss)] // seconds
    let cpu_s = cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9;
    let end = JudgementEnd {
        cpu_s,
        host: answers::this_host::identity(&probe::Root::default()).name,
        recording: directory.display().to_string(),
    };
    output.print(&one_line(&end)?)?;
    Ok(Exit::Ok)
}

/// Limits itself. Where that fails, it is still ended in time.
fn limit(resource: Resource, most: u64) {
    let _ = setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
}

fn one_line(value: &impl Serialize) -> Result<String, CommandError> {
    let text = serde_json::to_string(value).context("cannot write a finding as JSON")?;
    Ok(text + "\n")
}

/// The last line of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JudgementEnd {
    cpu_s: f64,
    host: String,
    recording: String,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Judgement {
    /// What is wrong, the worst first.
    pub(super) findings: Vec<JudgedLine>,
    /// CPU time of the child.
    pub(super) cpu_s: f64,
    /// The host's name.
    pub(super) host: String,
    /// The recording's directory.
    pub(super) recording: String,
}

/// A finding as the child printed it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct JudgedLine {
    /// What it is known by.
    pub(super) head: ActiveFinding,
    /// All of it.
    pub(super) whole: serde_json::Value,
}

impl Judgement {
    /// Reads a complete answer.
    pub(super) fn read(text: &[u8]) -> Option<Self> {
        let mut lines: Vec<&[u8]> = text.trim_ascii_end().split(|byte| *byte == b'\n').collect();
        let JudgementEnd { cpu_s, host, recording } = serde_json::from_slice(lines.pop()?).ok()?;
        let line = |line: &&[u8]| {
            let whole = serde_json::from_slice(line).ok()?;
            Some(JudgedLine { head: serde_json::from_slice(line).ok()?, whole })
        };
        let findings = lines.iter().map(line).collect::<Option<_>>()?;
        Some(Self { findings, cpu_s, host, recording })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_its_last_line_is_none() {
        let finding = r#"{"schema":"memtide-finding/1","id":"swap-thrash","severity":"critical","fix":[{"what":"x"}]}"#;
        let end = r#"{"cpu_s":0.02,"host":"db7","recording":"/r"}"#;
        let whole = format!("{finding}\n{end}\n");
        let read = Judgement::read(whole.as_bytes()).unwrap();
        assert_eq!((read.findings.len(), read.host.as_str()), (1, "db7"));
        assert_eq!(read.findings[0].head.id, "swap-thrash");
        assert_eq!(read.findings[0].whole["fix"][0]["what"], "x");
        assert_eq!(Judgement::read(format!("{end}\n").as_bytes()).unwrap().findings, []);
        for part in ["", finding, whole.get(..whole.len() - 5).unwrap(), &format!("{finding}\n")] {
            assert_eq!(Judgement::read(part.as_bytes()), None, "{part}");
        }
    }
}
