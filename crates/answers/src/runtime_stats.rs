//! What does a runtime report about its own memory, and is memory lost there or elsewhere in the process?

mod jemalloc;
mod jvm;
mod redis;
mod ruby;

use anatomy::runtime_stats::RuntimeStats;
pub use anatomy::runtime_stats::{
    FILE_SIZE_MAX as RUNTIME_STATS_SIZE_MAX, RuntimeStatsError, StatsKind,
};
use report::model::explain::ExplainReport;
use report::model::runtime_stats::{RUNTIME_STATS_SCHEMA, RuntimeStatsReport};
use units::Bytes;

/// What was read of the process from outside; all of it is optional.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessBeside {
    /// Its PID.
    pub pid: Option<u32>,
    /// Its RSS.
    pub rss: Option<Bytes>,
    /// Free memory in its malloc heap (glibc) that is resident.
    pub malloc_free: Option<Bytes>,
}

/// Returns the answer about a report that a runtime wrote, of any kind that [`RuntimeStats`] knows.
///
/// # Errors
/// [`RuntimeStatsError`] if the text is no such report; its `help` has the commands that make one.
pub fn runtime_stats(
    text: &[u8],
    process: &ProcessBeside,
) -> Result<RuntimeStatsReport, RuntimeStatsError> {
    let stats = RuntimeStats::parse(text)?;
    let report = answer(&stats, process);
    let (Some(reported), Some(read)) = (report.pid, process.pid) else {
        return Ok(report);
    };
    if reported == u64::from(read) {
        return Ok(report);
    }
    // What was read of another process must not decide what this report means.
    let mut report = answer(&stats, &ProcessBeside::default());
    report.remarks.push(format!(
        "The report is of PID {reported}, the process that was read is {read}: they were not \
         compared."
    ));
    Ok(report)
}

/// Returns what is wrong with a report beside a process that does not have its runtime: it is of another process.
pub fn other_runtime(report: &RuntimeStatsReport, process: &ExplainReport) -> Option<String> {
    let has = |name: &str| process.allocators.iter().any(|one| one.name == name);
    let (is_there, runtime) = match report.runtime {
        "ruby" => (has("Ruby"), "Ruby"),
        "jvm" => (has("Java virtual machine"), "a Java virtual machine"),
        "jemalloc" => (has("jemalloc"), "jemalloc"),
        "redis" => {
            let name = process.process.name.as_str();
            let names = ["redis", "valkey", "keydb"];
            (names.iter().any(|one| name.starts_with(one)), "a Redis server")
        }
        _ => return None,
    };
    (!is_there).then(|| {
        let (name, pid) = (&process.process.name, process.process.pid);
        format!("The report is of {runtime}, which {name} (PID {pid}) is not: it is of another process, and was not compared.")
    })
}

fn answer(stats: &RuntimeStats, process: &ProcessBeside) -> RuntimeStatsReport {
    let mut report = match stats {
        RuntimeStats::Ruby(stats) => ruby::answer(stats, process),
        RuntimeStats::Jvm(stats) => jvm::answer(stats, process),
        RuntimeStats::Jemalloc(stats) => jemalloc::answer(stats, process),
        RuntimeStats::Redis(stats) => redis::answer(stats, process),
    };
    report.rss_bytes = report.rss_bytes.or(process.rss);
    report.malloc_free_bytes = process.malloc_free;
    report
}

/// What a class means: the parts that all runtimes fill.
struct Judged {
    class: &'static str,
    is_concern: bool,
    headline: String,
}

impl Judged {
    fn fine(class: &'static str, headline: String) -> Self {
        Self { class, is_concern: false, headline }
    }

    fn concern(class: &'static str, headline: String) -> Self {
        Self { is_concern: true, ..Self::fine(class, headline) }
    }

    /// Returns a report with these parts, and nothing else yet.
    fn report(self, runtime: &'static str) -> RuntimeStatsReport {
        RuntimeStatsReport {
            schema: RUNTIME_STATS_SCHEMA,
            runtime,
            version: None,
            pid: None,
            class: self.class,
            is_concern: self.is_concern,
            headline: self.headline,
            remarks: Vec::new(),
            evidence: Vec::new(),
            not_counted: Vec::new(),
            advice: Vec::new(),
            rss_bytes: None,
            malloc_free_bytes: None,
            ruby: None,
            jvm: None,
            jemalloc: None,
            server: None,
        }
    }
}

#[cfg(test)]
mod tests;
