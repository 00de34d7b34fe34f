//! The labelled cases of `corpus/`: one folder each, with a `case.toml` beside the source that memtide reads.
//!
//! Every case is opened and diagnosed once per run of the tests, when the first test asks for it.

use std::path::{Path, PathBuf};
use std::sync::{LazyLock, OnceLock};

use diagnose::{Diagnosis, Evidence, Finding};
use lab::{CaseLabels, CaseRecipe};
use serde::Deserialize;
use timeline::{Source, SourceKind};

use crate::support::root;
use crate::synthetic;

/// A `case.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CaseFile {
    /// The case that `compare` is run against.
    #[serde(default = "default_partner")]
    pub(crate) partner: String,
    /// Absent where the readings cannot decide what should be found.
    pub(crate) labels: Option<CaseLabels>,
    /// Decided by the scenario that made the case.
    pub(crate) lab: Option<CaseRecipe>,
    pub(crate) host: Option<Host>,
    pub(crate) headroom: Option<Headroom>,
    pub(crate) made: Option<Made>,
    pub(crate) origin: Option<Origin>,
}

fn default_partner() -> String {
    "healthy--idle".to_owned()
}

/// The host that a capture was made on; a test compares it with the readings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Host {
    pub(crate) kernel: String,
    pub(crate) ram_mib: u64,
    pub(crate) swap_mib: u64,
    pub(crate) nodes: usize,
}

/// How much memory could be added to a host before it hurt.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Headroom {
    /// From this second of the capture on, memory is added.
    pub(crate) add_at_s: f64,
    /// The most that was added without harm.
    pub(crate) held_bytes: f64,
    /// What harm came first.
    pub(crate) held_until: Vec<String>,
}

/// How a capture was made, well enough to make it again; for the reader only.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
pub(crate) struct Made {
    by: String,
    load: String,
    details: Option<String>,
    memory_mib: Option<u64>,
    #[serde(default)]
    settings: Vec<String>,
    #[serde(default)]
    node_distances: Vec<String>,
    #[serde(default)]
    disks: Vec<String>,
    disk_mb_per_s: Option<u64>,
    #[serde(default)]
    swap: Vec<String>,
    swap_mb_per_s: Option<u64>,
    #[serde(default)]
    mounts: Vec<String>,
    #[serde(default)]
    cgroups: Vec<String>,
    #[serde(default)]
    processes: Vec<String>,
    parameters: Option<toml::Table>,
    #[serde(default)]
    steps: Vec<String>,
    unknown: Option<String>,
}

/// Where a paste was seen, and what was found out there; for the reader only.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
pub(crate) struct Origin {
    place: String,
    kernel: Option<String>,
    ram: Option<String>,
    kind: Option<String>,
    symptom: Option<String>,
    resolution: Option<String>,
    #[serde(default)]
    findings: Vec<String>,
    #[serde(default)]
    not_findings: Vec<String>,
    confidence: Option<String>,
    note: Option<String>,
}

/// A folder of the corpus.
#[derive(Debug)]
pub(crate) struct Case {
    /// The folder's name.
    pub(crate) id: String,
    pub(crate) folder: PathBuf,
    /// What memtide reads; for a made-up host what the test reads.
    pub(crate) source: PathBuf,
    pub(crate) file: CaseFile,
    judged: OnceLock<Judged>,
}

/// A source that was read, and what the rules say of it.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) source: Source,
    pub(crate) diagnosis: Diagnosis,
}

impl Judged {
    pub(crate) fn new(source: Source) -> Self {
        let diagnosis = diagnose::diagnose(&source.timeline, &source.facts);
        Self { source, diagnosis }
    }

    pub(crate) fn evidence(&self) -> Evidence<'_> {
        Evidence::new(&self.source.timeline, &self.source.facts)
    }

    /// All findings, notes too.
    pub(crate) fn reported(&self) -> impl Iterator<Item = &Finding> {
        self.diagnosis.findings.iter().chain(&self.diagnosis.notes)
    }
}

/// What a case's source is called, and what it is.
const SOURCES: [&str; 4] = ["capture.jsonl.gz", "paste.txt", "recording", "host.txt"];

impl Case {
    fn read(folder: &Path) -> Self {
        let path = folder.join("case.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        let file =
            toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let present =
            SOURCES.map(|name| folder.join(name)).into_iter().filter(|path| path.exists());
        let [source] =
            <[PathBuf; 1]>::try_from(present.collect::<Vec<_>>()).unwrap_or_else(|found| {
                panic!("{}: one of {SOURCES:?} is needed; found {found:?}", folder.display())
            });
        Self {
            id: folder.file_name().unwrap().to_str().unwrap().to_owned(),
            folder: folder.to_owned(),
            source,
            file,
            judged: OnceLock::new(),
        }
    }

    /// Whether its readings were invented, line by line.
    pub(crate) fn is_made_up(&self) -> bool {
        self.source.ends_with("host.txt")
    }

    pub(crate) fn is_capture(&self) -> bool {
        self.source.ends_with("capture.jsonl.gz")
    }

    pub(crate) fn is_paste(&self) -> bool {
        self.source.ends_with("paste.txt")
    }

    /// Its source as an argument of memtide.
    pub(crate) fn path(&self) -> &str {
        self.source.to_str().unwrap()
    }

    /// The source and what is reported of it, read by the first test that needs it.
    pub(crate) fn judged(&self) -> &Judged {
        self.judged.get_or_init(|| Judged::new(self.open()))
    }

    /// The source, read anew, by the name of the case.
    pub(crate) fn open(&self) -> Source {
        if self.is_made_up() {
            let text = std::fs::read_to_string(&self.source).unwrap();
            let (timeline, facts) = synthetic::host(text.lines());
            return Source::new(SourceKind::Capture, &self.id, timeline, facts);
        }
        import::open(&self.source, &mut |_| ())
            .unwrap_or_else(|error| panic!("{}: {error}", self.id))
            .named(&self.id)
    }

    pub(crate) fn must_find(&self) -> &[String] {
        self.file.labels.as_ref().map_or(&[], |labels| &labels.must_find)
    }
}

/// All folders, in the order of their paths.
static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let subfolders = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut paths: Vec<_> =
            entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
        paths.sort();
        paths
    };
    let kinds = subfolders(&root().join("corpus"));
    kinds.iter().flat_map(|kind| subfolders(kind)).map(|folder| Case::read(&folder)).collect()
});

pub(crate) fn all() -> &'static [Case] {
    &CASES
}

/// Captures with labels.
pub(crate) fn captures() -> impl Iterator<Item = &'static Case> {
    CASES.iter().filter(|case| case.is_capture() && case.file.labels.is_some())
}

/// Captures of hosts to which memory was added until it hurt.
pub(crate) fn with_headroom() -> impl Iterator<Item = (&'static Case, &'static Headroom)> {
    CASES.iter().filter_map(|case| Some((case, case.file.headroom.as_ref()?)))
}

/// Texts as people paste them.
pub(crate) fn pastes() -> impl Iterator<Item = &'static Case> {
    CASES.iter().filter(|case| case.is_paste())
}

/// The case with this id.
pub(crate) fn named(id: &str) -> &'static Case {
    let case = CASES.iter().find(|case| case.id == id);
    case.unwrap_or_else(|| panic!("no case is called {id}"))
}

/// The path of the source of the case with this id.
pub(crate) fn path(id: &str) -> String {
    named(id).path().to_owned()
}

/// A capture that only one question is asked about, made in cgroups of a host of 24 GiB; it has no labels.
pub(crate) fn played(name: &str) -> String {
    format!("{}/tests/captures/{name}.jsonl.gz", env!("CARGO_MANIFEST_DIR"))
}

/// The lines of a packed capture: its header, then its samples.
pub(crate) fn lines_of(path: &str) -> Vec<String> {
    let packed = std::fs::File::open(path).unwrap();
    let lines =
        std::io::BufRead::lines(std::io::BufReader::new(flate2::read::GzDecoder::new(packed)));
    lines.map(Result::unwrap).collect()
}

/// What `check` gives for each item, with as many threads as this machine has processors.
pub(crate) fn on_each<'a, T: Sync, R: Send>(
    items: &'a [T],
    check: impl Fn(&'a T) -> R + Sync,
) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let worker = || {
        let mut results = Vec::new();
        loop {
            let index = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let Some(item) = items.get(index) else {
                return results;
            };
            results.push((index, check(item)));
        }
    };
    let mut results: Vec<(usize, R)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}
