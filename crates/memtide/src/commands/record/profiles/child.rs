//! `memtide record --take-profile`: the recorder's child that profiles the kernel once and prints what is kept of it.

use std::ops::ControlFlow;

use profile::{LiveOptions, LiveProfile, OffCpu, ProfileScope, USUAL_HZ, kept_text};
use rustix::process::{Signal, set_parent_process_death_signal, setpriority_process};
use units::Span;

use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::output::Output;

/// How long a profile takes: 1,000 samples of each busy CPU.
const LASTS: Span = Span::from_secs(10);
/// Its priority: behind the recorder and usual tasks, but not last, as who waits behind all that it measures loses records. Beside
/// ten busy tasks on a CPU it still has 3 % of it, and needs 1 %.
const NICE: i32 = 5;

pub(in super::super) fn run(output: &Output) -> Result<Exit, CommandError> {
    // The recorder's thread waits for it: where that is gone, nobody reads what it finds.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // The first to be killed: another profile can be taken.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    let _ = setpriority_process(None, NICE);
    let live = LiveProfile::open(LiveOptions {
        scope: ProfileScope::Host,
        lasts: Some(LASTS),
        hz: USUAL_HZ,
        off_cpu: OffCpu::Auto,
        nice: NICE,
    })?;
    let profile = live.run(|| None, &mut |_| ControlFlow::Continue(()))?;
    output.print(&kept_text(&profile))?;
    Ok(Exit::Ok)
}
