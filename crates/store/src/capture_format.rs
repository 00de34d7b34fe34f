//! A capture's lines: raw text of kernel files over time, one JSON object a line.
//!
//! The first line may be a header (`kernel`, `interval_s`, `page_size`, …); every other line is a sample: `t`, seconds
//! on the boot clock since the first sample, and `files`, kernel path → text. `names` has what people call containers and
//! pods that are new in it. A path that is absent did not exist; an
//! empty text was an empty file. Intervals are as they were: a recorder on an overloaded host is itself late.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;

use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use timeline::facts::{self, Container};
use timeline::{Facts, Stamp};
use units::{PageSize, Span, WallClock};

use crate::kept_names::{KeptName, NAMES_MAX};

/// The header; every field is optional.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct CaptureHeader {
    /// `memtide-capture/1`; absent in captures from other tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// The text of `/proc/version`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Nominal interval of samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_s: Option<f64>,
    /// Size of a base page in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_size: Option<u64>,
    /// USER_HZ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_hz: Option<u64>,
    /// CPUs online.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// Name of the host, if it was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// The cgroup in which the capture was taken, if that limits it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_cgroup: Option<String>,
    /// The signs by which a container was recognised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<Vec<String>>,
    /// Whether `/proc/meminfo` shows that container instead of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meminfo_is_own: Option<bool>,
    /// Host signals that were rounded when they were printed, with the largest difference between true and printed
    /// readings: for captures converted from text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rounded: BTreeMap<String, u64>,
}

impl CaptureHeader {
    /// Creates a header from the facts about the host that are not in kernel files.
    pub fn new(facts: &Facts, every: Span) -> Self {
        let container = facts.container.as_ref();
        Self {
            format: Some("memtide-capture/1".to_owned()),
            kernel: facts.text(facts::KERNEL_VERSION).map(str::to_owned),
            interval_s: Some(every.as_secs_f64()),
            page_size: facts.page_size.map(|page| page.bytes().get()),
            user_hz: facts.ticks_per_second,
            cpus: facts.cpus,
            hostname: facts.hostname.clone(),
            own_cgroup: facts.own_cgroup.clone(),
            container: container.map(|container| container.signs.clone()),
            meminfo_is_own: container.map(|container| container.meminfo_is_own),
            rounded: BTreeMap::new(),
        }
    }

    /// Adds the header to the facts.
    pub fn into_facts(self, facts: &mut Facts) {
        if let Some(kernel) = &self.kernel {
            facts.record(Span::ZERO, facts::KERNEL_VERSION, kernel);
        }
        facts.page_size = self.page_size.and_then(PageSize::from_bytes);
        facts.ticks_per_second = self.user_hz.filter(|hz| (1..=10_000).contains(hz));
        facts.cpus = self.cpus;
        facts.hostname = self.hostname;
        facts.own_cgroup = self.own_cgroup;
        facts.container = self.container.map(|signs| Container {
            signs,
            // Headers of other tools lack it; the signs cannot replace it.
            meminfo_is_own: self.meminfo_is_own == Some(true),
        });
    }
}

/// One sample.
#[derive(Debug, Serialize, Deserialize)]
pub struct CaptureSample {
    /// Seconds on the boot clock since the first sample.
    pub t: f64,
    /// The wall clock, nanoseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_ns: Option<i64>,
    /// Seconds on the monotonic clock, which stands still in suspend, since the first sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awake: Option<f64>,
    /// The cost of taking the sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_ms: Option<f64>,
    /// Whether the time since the previous sample is unknown: `t` then only keeps the order.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unrelated: bool,
    /// Kernel path → text. [`KERNEL_LOG`] has a kernel report of the sample's moment.
    #[serde(deserialize_with = "bounded")]
    pub files: BTreeMap<String, String>,
    /// What people call the containers and pods of cgroups that are new in this sample; they hold for all samples.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "first_names")]
    pub names: Vec<KeptName>,
}

/// At most this many files of a sample: 40,000 processes have five each.
const FILES_MAX: usize = 200_000;

/// Reads the files of a sample: a line of short paths must not take thirty times its length.
fn bounded<'de, D: Deserializer<'de>>(input: D) -> Result<BTreeMap<String, String>, D::Error> {
    struct Files;

    impl<'de> Visitor<'de> for Files {
        type Value = BTreeMap<String, String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object of paths and texts")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            // Sorted at once: captures of memtide are in order, and each insertion into a tree of thousands takes longer.
            let mut files = Vec::new();
            while let Some(file) = map.next_entry::<String, String>()? {
                files.push(file);
                if files.len() > FILES_MAX {
                    let what = format!("a sample has at most {FILES_MAX} files");
                    return Err(A::Error::custom(what));
                }
            }
            // Of two texts of one path the later counts.
            Ok(files.into_iter().collect())
        }
    }

    input.deserialize_map(Files)
}

/// Reads the first [`NAMES_MAX`] names: no host has more, and each takes several times its text.
fn first_names<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<KeptName>, D::Error> {
    struct Names;

    impl<'de> Visitor<'de> for Names {
        type Value = Vec<KeptName>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of names")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut names = Vec::new();
            while names.len() < NAMES_MAX {
                match list.next_element()? {
                    Some(name) => names.push(name),
                    None => return Ok(names),
                }
            }
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok(names)
        }
    }

    input.deserialize_seq(Names)
}

/// The kernel's log.
pub const KERNEL_LOG: &str = "/dev/kmsg";

impl CaptureSample {
    /// Creates a sample taken at `stamp`; `first` is the time of the first sample.
    pub fn new(first: Stamp, stamp: Stamp, files: BTreeMap<String, String>) -> Self {
        let awake = stamp.awake.zip(first.awake);
        Self {
            t: (stamp.boot - first.boot).as_secs_f64(),
            wall_ns: stamp.wall.map(WallClock::unix_nanos),
            awake: awake.map(|(now, then)| now.saturating_sub(then).as_secs_f64()),
            cost_ms: None,
            unrelated: false,
            files,
            names: Vec::new(),
        }
    }
}

/// Writes a capture.
#[derive(Debug)]
pub struct CaptureWriter<W> {
    output: W,
}

impl<W: Write> CaptureWriter<W> {
    /// Starts a capture with its header.
    ///
    /// # Errors
    /// Errors of the output.
    pub fn new(mut output: W, header: &CaptureHeader) -> std::io::Result<Self> {
        line(&mut output, header)?;
        Ok(Self { output })
    }

    /// Appends a sample and flushes it, so that a full disk or a crash affects no earlier sample.
    ///
    /// # Errors
    /// Errors of the output.
    pub fn sample(&mut self, sample: &CaptureSample) -> std::io::Result<()> {
        line(&mut self.output, sample)?;
        self.output.flush()
    }

    /// Returns the output, to be finished.
    pub fn into_inner(self) -> W {
        self.output
    }
}

fn line(output: &mut impl Write, value: &impl Serialize) -> std::io::Result<()> {
    serde_json::to_writer(&mut *output, value)?;
    output.write_all(b"\n")
}
