//! Sentences of the answer.

use units::{Bytes, Quantity, Ratio, in_one_unit};

use crate::cliffs::{CliffKind, JobCliff};
use crate::model::{JobFile, JobReport, JobSeen, JobVariant, VariantOrigin};
use crate::observe::{JobEnd, TouchSource};

/// Below this coverage the curve is a guess.
const COVERAGE_MIN: Ratio = Ratio::new(0.95);

/// A file that is read this many times over is read again.
const READ_AGAIN_MIN: f64 = 1.5;

/// What the job did, or would do.
pub(crate) fn headline(report: &JobReport) -> String {
    let job = report.job();
    if let Some(seen) = &report.seen {
        let io = seen.io;
        let cancelled = match io.cancelled_bytes {
            Bytes::ZERO => String::new(),
            bytes => format!(", {bytes} of it removed before it was written"),
        };
        return format!(
            "{}: {} of I/O in {} ({} read, {} made dirty{cancelled}).",
            report.name,
            io.net(),
            seen.wall_s,
            io.read_bytes,
            io.write_bytes
        );
    }
    let Some(first) = job.rows.first() else {
        return format!("{}: {} of I/O without cache.", report.name, job.curve.net_bytes_most);
    };
    let time = first.seconds.map_or_else(String::new, |time| format!(" in {}", time.as_clock()));
    let speed = match report.disk_bytes_per_s {
        Some(disk) => format!(" at {disk}"),
        None => String::new(),
    };
    format!(
        "{}: {} of I/O{time}{speed} with a cache of {}.",
        report.name,
        first.point.net(),
        first.point.cache_bytes
    )
}

/// What more cache would do.
pub(crate) fn cliffs(job: &JobVariant) -> Vec<String> {
    let curve = &job.curve;
    let mut all: Vec<String> = curve.cliffs.iter().map(cliff).collect();
    if all.is_empty() {
        let net = curve.net_bytes_most;
        let says = "More cache saves nothing: nothing is read again after it left a small cache";
        return vec![format!("{says}, and {net} of I/O is the least at any size.")];
    }
    all.push(format!(
        "{} of cache are enough for {}, the least that a cache can reach.",
        curve.enough_bytes, curve.net_bytes_least
    ));
    all
}

fn cliff(cliff: &JobCliff) -> String {
    let JobCliff { from_bytes: from, to_bytes: to, saved_bytes: saved, .. } = *cliff;
    match cliff.kind {
        CliffKind::UnwrittenFiles => format!(
            "With {to} of cache all of the job fits, and {saved} that it removes need never be \
             written."
        ),
        CliffKind::Rereads if to.as_f64() < from.as_f64() * 1.02 => format!(
            "Below {to} of cache {saved} are read from the disk again: a cliff, more or less cache \
             on either side of it makes no difference."
        ),
        CliffKind::Rereads => format!(
            "From {} of cache on the job reads up to {saved} less from the disk; more cache below \
             or above that range makes no difference.",
            in_one_unit(from, "to", to)
        ),
    }
}

/// Why the curve is no more than a guess, if it is.
pub(crate) fn doubt(report: &JobReport) -> Option<String> {
    let seen = report.seen.as_ref().filter(|seen| is_doubtful(seen))?;
    let advice = match seen.touch_source {
        TouchSource::OpenFiles => " As root all is seen by trace points: sudo memtide job.",
        TouchSource::Trace => "",
    };
    Some(format!(
        "The curve is a guess: only {} of its bytes were seen in files, and what was not seen \
         counts as read once.{advice}",
        seen.coverage
    ))
}

fn is_doubtful(seen: &JobSeen) -> bool {
    /// Of less there is nothing to answer: a program that starts reads as much.
    const ASKED_MIN: Bytes = Bytes::from_mib(4);
    seen.coverage < COVERAGE_MIN && seen.io.rchar_bytes + seen.io.wchar_bytes >= ASKED_MIN
}

/// Where the model and the kernel's account of this run differ.
fn difference(report: &JobReport, seen: &JobSeen) -> Option<String> {
    /// What is this close is the same.
    const SAME: f64 = 0.1;
    let row =
        report.job().rows.iter().find(|row| Some(row.point.cache_bytes) == seen.cache_bytes)?;
    let (model, counted) = (row.point.net(), seen.io.net());
    let off = (model.as_f64() - counted.as_f64()).abs() / counted.as_f64().max(1.0);
    let is_small = model.max(counted) < Bytes::from_mib(4);
    (off > SAME && !is_small).then(|| {
        format!("With the cache of now the model gives {model}, and the kernel counted {counted}.")
    })
}

/// Why a removed file is written although it need not be.
pub(crate) fn why_written(job: &JobVariant) -> Option<String> {
    let has_cliff = job.curve.cliffs.iter().any(|one| one.kind == CliffKind::UnwrittenFiles);
    let lived = |file: &&JobFile| file.lived_seconds.is_some() && file.written_bytes > Bytes::ZERO;
    let file = job.files.iter().filter(lived).max_by_key(|file| file.written_bytes)?;
    let lived = file.lived_seconds?;
    let large = file.written_bytes.as_f64() > job.curve.net_bytes_most.as_f64() * 0.1;
    if has_cliff || !large {
        return None;
    }
    let (name, size) = (short(&file.name), file.written_bytes);
    Some(if lived >= crate::WriteConditions::default().dirty_expire {
        format!(
            "{name} ({size}) is removed {lived} after its first write or later: it is written with \
             any cache, as the kernel writes what has been dirty for 30 s."
        )
    } else {
        format!(
            "{name} ({size}) is removed {lived} after its first write, and may be written all the \
             same: the kernel begins to write when a tenth of the cache is dirty, or at an fsync."
        )
    })
}

/// Another way to do the job, against the job with the least cache that was asked for.
pub(crate) fn other_way(report: &JobReport, other: &JobVariant) -> Option<String> {
    let job = report.job();
    let (mine, its) = (job.rows.first()?, other.rows.first()?);
    let (mine_net, its_net) = match &report.seen {
        Some(_) => (job.curve.net_bytes_most, other.curve.net_bytes_most),
        None => (mine.point.net(), its.point.net()),
    };
    let what = match other.origin {
        VariantOrigin::WithoutFile => {
            format!("{}, as a pipe between the programs", capital(&other.name))
        }
        VariantOrigin::Plan | VariantOrigin::Job => capital(&other.name),
    };
    let time = its.seconds.map_or_else(String::new, |time| format!(" in {}", time.as_clock()));
    let is_flat = other.curve.cliffs.is_empty();
    if let Some(seen) = &report.seen {
        let now = seen.io.net();
        return Some(format!(
            "{what}: {its_net} of I/O without any cache, where the job as it is has {mine_net}; \
             now it was {now}."
        ));
    }
    let size = if is_flat { "any cache".to_owned() } else { its.point.cache_bytes.to_string() };
    Some(format!("{what}: {its_net} of I/O instead of {mine_net}{time}, with {size}."))
}

/// A word at the beginning of a sentence.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// A path's last part.
pub(crate) fn short(path: &str) -> &str {
    path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(path)
}

/// What limit would keep it from pushing out others.
pub(crate) fn limit(seen: &JobSeen) -> Vec<String> {
    let limit = seen.limit;
    if limit.cache_bytes < crate::harm::WORTH_A_WORD {
        return vec![format!(
            "It needs {} of cache: there is nothing to limit.",
            limit.cache_bytes
        )];
    }
    let what = format!(
        "With {} of cache its I/O is the same as now (own memory: {})",
        limit.cache_bytes, seen.own_memory_bytes
    );
    let (high, add) = (typed(limit.memory_high_bytes), typed(limit.cache_bytes));
    vec![
        format!("{what}, so a limit costs it nothing and leaves others their cache:"),
        format!(
            "systemd-run --scope -p MemoryHigh={high} COMMAND    # with cgroup v1: MemoryMax={high}"
        ),
        format!("memtide headroom --add {add} --as cache"),
    ]
}

/// A size as options take it.
fn typed(bytes: Bytes) -> String {
    format!("{}M", bytes.get().div_ceil(1 << 20))
}

/// How far the answer can be trusted.
pub(crate) fn trust(report: &JobReport) -> Vec<String> {
    let mut all = Vec::new();
    let Some(seen) = &report.seen else { return all };
    let covered = seen.coverage;
    match seen.touch_source {
        TouchSource::Trace if seen.lost_events.get() > 0 => all.push(format!(
            "The kernel dropped {} events, which were not read in time: {covered} of them are in \
             this answer.",
            seen.lost_events
        )),
        TouchSource::Trace => {
            all.push("Seen by trace points: every read and every page made dirty.".to_owned());
        }
        TouchSource::OpenFiles => {
            let why = seen.no_trace.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
            let doubt = if is_doubtful(seen) {
                "; what went through pipes and terminals counts as not seen"
            } else {
                ""
            };
            all.push(format!(
                "Seen by open files, every 10 ms{why}: {covered} of the bytes asked for{doubt}."
            ));
        }
    }
    all.extend(crate::harm::own_limits(&seen.others));
    all.extend(difference(report, seen));
    if let Some(ahead) = seen.read_ahead_bytes.filter(|_| seen.files_at_once.get() > 1) {
        all.push(format!(
            "It reads {} files in turns. With less than {ahead} of cache what the kernel reads ahead \
             in them may be evicted before it is used and read again: the upper figures have that.",
            seen.files_at_once
        ));
    }
    if seen.has_generations {
        all.push(
            "This kernel evicts by generations (MGLRU), with which the model was not measured: take \
             the range between two figures as twice as wide, and a single one as 10 % more or less."
                .to_owned(),
        );
    }
    if seen.is_attached {
        all.push(
            "It ran before it was watched: what it did before is not in this answer, and what a \
             process did in the last hundredth of a second before its end may be missing in the sum."
                .to_owned(),
        );
    }
    if let Some(error) = report.job().curve.sampling_error {
        let share = report.job().curve.sampled_share;
        all.push(format!(
            "The curve is computed from {share} of the pages; two halves of them differ by {error} \
             of the reads at most."
        ));
    }
    if let Some(found) = seen.found_cached_bytes.filter(|bytes| *bytes > Bytes::from_mib(1)) {
        all.push(format!(
            "{found} of it were in the cache before it began; the curve begins with an empty one."
        ));
    }
    if seen.uncounted_bytes > Bytes::ZERO {
        all.push(format!(
            "{} were read by processes that nobody waited for (their parent ignores SIGCHLD): they \
             are missing in the sum.",
            seen.uncounted_bytes
        ));
    }
    if seen.unreadable_processes.get() > 0 {
        let processes = seen.unreadable_processes.named("process", "processes");
        all.push(format!("The account of {processes} of another user could not be read."));
    }
    if seen.still_running.get() > 0 && seen.end != JobEnd::GoesOn {
        let processes = seen.still_running.named("process", "processes");
        all.push(format!(
            "{processes} of it still ran when the command ended: the answer is up to then."
        ));
    }
    match seen.end {
        JobEnd::Exited(0) => {}
        JobEnd::Exited(code) => all.push(format!("The command ended with exit code {code}.")),
        JobEnd::Signalled(signal) => {
            all.push(format!("Signal {signal} ended the command: the answer is up to then."));
        }
        JobEnd::GoesOn => all.push("The job goes on: the answer is up to now.".to_owned()),
        JobEnd::Ended => {}
    }
    all
}

/// Files that were read more than once, or by several programs.
pub(crate) fn read_again(job: &JobVariant) -> Vec<&JobFile> {
    let is_again = |file: &&JobFile| {
        let is_handed_over = !file.readers.is_empty() && !file.writers.is_empty();
        file.times_read() >= READ_AGAIN_MIN || is_handed_over
    };
    job.files.iter().filter(is_again).collect()
}
