//! The text of a plan, checked: every size and every file is known before anything is computed.

use std::collections::HashMap;

use serde::Deserialize;
use thiserror::Error;
use units::{Bytes, BytesPerSecond, Quantity, SizeError, Span};

use crate::plan::{JobPlan, PlanVariant, PlannedRead, StepPlan};

/// Why a text is no plan.
#[derive(Debug, Error)]
pub enum PlanError {
    /// The text is no TOML of a plan; the message has the line.
    #[error("{0}")]
    Toml(Box<toml::de::Error>),
    /// There is nothing to plan.
    #[error("it has no [[step]]")]
    NoStep,
    /// A size is none.
    #[error("{place}: {source}")]
    Size {
        /// Where in the plan.
        place: String,
        /// What is wrong with it.
        source: SizeError,
    },
    /// A rate is none.
    #[error("{place}: `{text}` is no rate; write 100MB/s")]
    Rate {
        /// Where in the plan.
        place: String,
        /// As it is written.
        text: String,
    },
    /// A time is none.
    #[error("{place}: `{text}` is no number of seconds; write 30s")]
    Time {
        /// Where in the plan.
        place: String,
        /// As it is written.
        text: String,
    },
    /// What is read is written in an unknown form.
    #[error("{place}: `{text}` is not understood; write \"logs\", \"logs x3\" or \"db:2G@random\"")]
    Read {
        /// Where in the plan.
        place: String,
        /// As it is written.
        text: String,
    },
    /// A file of which no size is written.
    #[error("{place}: the size of `{file}` is not known")]
    NoSize {
        /// Where in the plan.
        place: String,
        /// The name of the file.
        file: String,
    },
    /// More is read from a file than it has.
    #[error("{place}: `{file}` has only {size}")]
    TooMuch {
        /// Where in the plan.
        place: String,
        /// The name of the file.
        file: String,
        /// What it has.
        size: Bytes,
    },
    /// A pipe leads to another step than the next.
    #[error("{place}: `pipe_to` names `{next}`, and that is not the next step")]
    Pipe {
        /// Where in the plan.
        place: String,
        /// The step that is named.
        next: String,
    },
    /// All of it together is more than there can be.
    #[error("it touches more than 1 EiB")]
    TooLarge,
}

impl PlanError {
    /// What to do about it.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::NoStep | Self::Toml(_) => Some(
                "docs/job.md lists the keys of a plan, docs/examples/backup.toml is one".to_owned(),
            ),
            Self::NoSize { file, .. } => Some(format!(
                "write it where it is made, write = [\"{file}:10G\"], or as [[file]] with name and size"
            )),
            _ => None,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanText {
    name: Option<String>,
    #[serde(default)]
    cache: Vec<String>,
    disk: Option<String>,
    dirty_background: Option<String>,
    dirty_expire: Option<String>,
    #[serde(default)]
    file: Vec<FileText>,
    #[serde(default)]
    step: Vec<StepText>,
    #[serde(default)]
    variant: Vec<VariantText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    name: String,
    size: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StepText {
    name: Option<String>,
    #[serde(default)]
    read: Vec<String>,
    #[serde(default)]
    write: Vec<String>,
    #[serde(default)]
    removes: Vec<String>,
    cpu: Option<String>,
    pipe_to: Option<String>,
    #[serde(default)]
    parallel: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct VariantText {
    name: String,
    steps: Vec<StepText>,
}

/// Files by name, with sizes.
#[derive(Default)]
struct NamedFiles {
    files: Vec<(String, Bytes)>,
    by_name: HashMap<String, usize>,
}

impl NamedFiles {
    fn set(&mut self, name: &str, size: Bytes) -> usize {
        let next = self.files.len();
        let file = *self.by_name.entry(name.to_owned()).or_insert(next);
        if file == next {
            self.files.push((name.to_owned(), size));
        } else {
            self.files[file].1 = self.files[file].1.max(size);
        }
        file
    }

    fn find(&self, name: &str, place: &str) -> Result<(usize, Bytes), PlanError> {
        match self.by_name.get(name) {
            Some(file) => Ok((*file, self.files[*file].1)),
            None => Err(PlanError::NoSize { place: place.to_owned(), file: name.to_owned() }),
        }
    }
}

pub(super) fn read(text: &str, name: &str) -> Result<JobPlan, PlanError> {
    let read: PlanText = toml::from_str(text).map_err(|error| PlanError::Toml(Box::new(error)))?;
    if read.step.is_empty() {
        return Err(PlanError::NoStep);
    }
    let mut files = NamedFiles::default();
    for file in &read.file {
        files.set(&file.name, size(&file.size, &format!("[[file]] {}", file.name))?);
    }
    let job = VariantText { name: read.name.unwrap_or_else(|| name.to_owned()), steps: read.step };
    let mut variants = Vec::new();
    for (at, variant) in [job].into_iter().chain(read.variant).enumerate() {
        if variant.steps.is_empty() {
            return Err(PlanError::NoStep);
        }
        let prefix = if at == 0 { String::new() } else { format!("variant `{}`, ", variant.name) };
        let steps = steps(variant.steps, &prefix, &mut files)?;
        variants.push(PlanVariant { name: variant.name, steps });
    }
    let background = read.dirty_background.as_deref();
    let expire = read.dirty_expire.as_deref();
    let plan = JobPlan {
        caches: read.cache.iter().map(|text| size(text, "cache")).collect::<Result<_, _>>()?,
        disk: read.disk.as_deref().map(|text| rate(text, "disk")).transpose()?,
        dirty_background: background.map(|text| size(text, "dirty_background")).transpose()?,
        dirty_expire: expire.map(|text| time(text, "dirty_expire")).transpose()?,
        files: files.files,
        variants,
    };
    let of_step = |step: &StepPlan| {
        let reads = step.reads.iter().map(|one| one.bytes.times(u64::from(one.times)));
        reads.chain(step.writes.iter().map(|(_, bytes)| *bytes)).sum::<Bytes>()
    };
    let too_large =
        plan.variants.iter().any(|one| one.steps.iter().map(of_step).sum::<Bytes>() > TOTAL_MAX);
    if too_large { Err(PlanError::TooLarge) } else { Ok(plan) }
}

/// What a plan may touch.
const TOTAL_MAX: Bytes = Bytes::from_gib(1 << 30);

fn steps(
    texts: Vec<StepText>,
    prefix: &str,
    files: &mut NamedFiles,
) -> Result<Vec<StepPlan>, PlanError> {
    let mut steps: Vec<StepPlan> = Vec::new();
    let mut piped_to: Option<String> = None;
    for (at, text) in texts.into_iter().enumerate() {
        let name = text.name.unwrap_or_else(|| format!("step {}", at + 1));
        let place = format!("{prefix}step `{name}`");
        let is_fed = match piped_to.take() {
            Some(next) if next == name => true,
            Some(next) => return Err(PlanError::Pipe { place, next }),
            None => false,
        };
        let reads = text.read.iter().map(|text| planned_read(text, &place, files));
        let reads = reads.collect::<Result<Vec<_>, _>>()?;
        let mut writes = Vec::new();
        for text in &text.write {
            let written = match text.rsplit_once(':') {
                Some((file, bytes)) => {
                    let bytes = size(bytes, &place)?;
                    (files.set(file, bytes), bytes)
                }
                None => files.find(text, &place)?,
            };
            writes.push(written);
        }
        let removes = text.removes.iter().map(|file| Ok(files.find(file, &place)?.0));
        steps.push(StepPlan {
            reads,
            writes,
            removes: removes.collect::<Result<_, PlanError>>()?,
            cpu: text.cpu.as_deref().map(|text| rate(text, &place)).transpose()?,
            is_beside: at > 0 && (text.parallel || is_fed),
            is_fed,
            name,
        });
        piped_to = text.pipe_to;
    }
    match piped_to {
        Some(next) => Err(PlanError::Pipe { place: format!("{prefix}the last step"), next }),
        None => Ok(steps),
    }
}

/// `logs`, `logs x3`, `db:2G`, `db:2G@random x2`.
fn planned_read(text: &str, place: &str, files: &NamedFiles) -> Result<PlannedRead, PlanError> {
    let wrong = || PlanError::Read { place: place.to_owned(), text: text.to_owned() };
    let (what, times) = match text.trim().rsplit_once(" x") {
        Some((what, times)) => (what.trim_end(), times.parse::<u32>().map_err(|_| wrong())?),
        None => (text.trim(), 1),
    };
    let (what, order) = what.split_once('@').map_or((what, None), |(what, how)| (what, Some(how)));
    if times == 0 || what.is_empty() || order.is_some_and(|order| order != "random") {
        return Err(wrong());
    }
    let is_random = order.is_some();
    let (name, bytes) = match what.rsplit_once(':') {
        Some((name, bytes)) => (name, Some(size(bytes, place)?)),
        None => (what, None),
    };
    let (file, whole) = files.find(name, place)?;
    if !is_random && bytes.is_some_and(|bytes| bytes > whole) {
        let (place, file) = (place.to_owned(), name.to_owned());
        return Err(PlanError::TooMuch { place, file, size: whole });
    }
    Ok(PlannedRead { file, bytes: bytes.unwrap_or(whole), times, is_random })
}

fn size(text: &str, place: &str) -> Result<Bytes, PlanError> {
    text.parse().map_err(|source| PlanError::Size { place: place.to_owned(), source })
}

/// A rate such as `100MB/s`.
fn rate(text: &str, place: &str) -> Result<BytesPerSecond, PlanError> {
    crate::disk_rate(text)
        .ok_or_else(|| PlanError::Rate { place: place.to_owned(), text: text.to_owned() })
}

/// `30s`, `5min`, or seconds alone.
fn time(text: &str, place: &str) -> Result<Span, PlanError> {
    let trimmed = text.trim();
    let (number, factor) = match trimmed.strip_suffix("min").or(trimmed.strip_suffix('m')) {
        Some(minutes) => (minutes, 60.0),
        None => (trimmed.strip_suffix('s').unwrap_or(trimmed), 1.0),
    };
    match number.trim().parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(Span::from_f64(number * factor)),
        _ => Err(PlanError::Time { place: place.to_owned(), text: text.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        read(text, "job").unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        for (text, says) in [
            ("", "it has no [[step]]"),
            (
                "[[step]]\nname = \"tar\"\nread = [\"logs\"]",
                "step `tar`: the size of `logs` is not known",
            ),
            (
                "[[step]]\nwrite = [\"a:10 potatoes\"]",
                "step `step 1`: `10 potatoes` is no size; write 500MiB, 2GiB or a number of bytes",
            ),
            ("disk = \"fast\"\n[[step]]", "disk: `fast` is no rate; write 100MB/s"),
            (
                "[[file]]\nname = \"db\"\nsize = \"1G\"\n[[step]]\nread = [\"db:2G\"]",
                "step `step 1`: `db` has only 1 GiB",
            ),
            (
                "[[file]]\nname = \"db\"\nsize = \"1G\"\n[[step]]\nread = [\"db@backwards\"]",
                "step `step 1`: `db@backwards` is not understood; write \"logs\", \"logs x3\" or \
                 \"db:2G@random\"",
            ),
            (
                "[[step]]\npipe_to = \"gzip\"",
                "the last step: `pipe_to` names `gzip`, and that is not the next step",
            ),
            (
                "[[step]]\nwrite = [\"a:15E\"]",
                "step `step 1`: `15E` is no size; write 500MiB, 2GiB or a number of bytes",
            ),
            ("[[step]]\nwrite = [\"a:15000P\"]", "it touches more than 1 EiB"),
        ] {
            assert_eq!(error(text), says);
        }
        assert!(error("[[step]]\nreads = [\"a\"]").contains("line 2"), "a line number");
    }

    #[test]
    fn times_are_seconds_or_minutes() {
        for (text, seconds) in [("30s", 30.0), ("30", 30.0), ("2min", 120.0), ("2 m", 120.0)] {
            assert_eq!(time(text, "").unwrap().as_secs_f64(), seconds);
        }
        assert!(time("soon", "").is_err());
    }
}
