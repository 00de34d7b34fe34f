//! `memtide record --seal DIR`: the recorder's child that makes segments of full head files, and gives way to everybody.

use std::path::Path;

use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(directory: &Path, output: &Output) -> anyhow::Result<Exit> {
    give_way();
    let sealed = store::seal(directory)?;
    for problem in &sealed.problems {
        output.warn(&format!("{}: {problem}", directory.display()));
    }
    // The caller has to know that it must be tried again.
    Ok(if sealed.left.is_empty() {
        Exit::Ok
    } else {
        Exit::Unknown
    })
}

/// It inherits the recorder's precedence and its protection from the OOM killer. What it does can be done again, so it is
/// the first to wait and the first to die. Both are always allowed; where not, it seals all the same.
fn give_way() {
    let _ = rustix::process::setpriority_process(None, 19);
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}
