//! `memtide record --seal DIR`: the recorder's child that makes segments of full head files, at the lowest priority.

use std::path::Path;

use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(directory: &Path, output: &Output) -> Result<Exit, CommandError> {
    give_way();
    let sealed = store::seal(directory)?;
    for problem in &sealed.problems {
        output.warn(&format!("{}: {problem}", directory.display()));
    }
    // The exit code says that sealing must be tried again.
    Ok(if sealed.left.is_empty() { Exit::Ok } else { Exit::Unknown })
}

/// Gives up the recorder's priority and its protection from the OOM killer: what a child does can be repeated, so it is
/// the first to wait and to be killed. Both calls are always allowed; if one fails, the work goes on.
pub(super) fn give_way() {
    let _ = rustix::process::setpriority_process(None, 19);
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}
