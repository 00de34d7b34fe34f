//! What a runtime or a server reports about its own memory: Ruby's `GC.stat`, the JVM's Native Memory Tracking, jemalloc's
//! statistics, Redis's `INFO`.
//!
//! A file that it wrote, of any of these kinds; its content shows which. Other output before and after it does
//! not matter, and of several reports in a file the last one counts. Sizes become bytes here. Memory is bounded: fields are
//! read one by one, unknown ones are skipped, and lists have a limit each.

pub mod jemalloc;
pub mod jvm_nmt;
pub mod redis;
pub mod ruby;

use units::Bytes;

pub use jemalloc::{JemallocBin, JemallocStats};
pub use jvm_nmt::{JvmCategory, JvmStats, NativeSize};
pub use redis::RedisStats;
pub use ruby::{RubyPool, RubyStats};

/// A longer file is refused. A detailed JVM report of a large server has some 10 MB.
pub const FILE_SIZE_MAX: Bytes = Bytes::from_mib(64);

/// What a runtime reported.
#[derive(Debug, Clone, PartialEq)]
pub enum RuntimeStats {
    /// Ruby's object space.
    Ruby(RubyStats),
    /// The JVM's native memory.
    Jvm(JvmStats),
    /// jemalloc's statistics.
    Jemalloc(JemallocStats),
    /// The memory of a Redis server.
    Redis(RedisStats),
}

/// A kind of report, with the command that makes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatsKind {
    /// `GC.stat` as JSON.
    Ruby,
    /// `jcmd PID VM.native_memory`.
    Jvm,
    /// `malloc_stats_print`, as text or JSON.
    Jemalloc,
    /// The section `Memory` of `INFO`.
    Redis,
}

/// Why a file gives no report.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuntimeStatsError {
    /// The file is larger than [`FILE_SIZE_MAX`].
    #[error("the file has {size}; at most {FILE_SIZE_MAX} are read")]
    TooLarge { size: Bytes },
    /// It is of none of the kinds.
    #[error(
        "expected Ruby's GC.stat as JSON, the JVM's Native Memory Tracking, jemalloc's statistics \
         or Redis's INFO memory, found `{found}`"
    )]
    Unrecognised {
        /// How the file begins: printable, at most 40 characters.
        found: String,
    },
    /// The JVM says that it has nothing to report.
    #[error("{} line {line}: the JVM reports `{found}`", StatsKind::Jvm)]
    NotTracked {
        /// Counted from 1.
        line: usize,
        /// Its words.
        found: String,
        /// What to do.
        help: &'static str,
    },
    /// A value is not what it should be.
    #[error("{kind} line {line}: expected {expected}, found `{found}`")]
    Malformed {
        /// What the file was recognised as.
        kind: StatsKind,
        /// Counted from 1.
        line: usize,
        /// What should be there.
        expected: &'static str,
        /// What is there: printable, at most 40 characters.
        found: String,
    },
    /// JSON that cannot be read, or that lacks a field.
    #[error("{kind} line {line}, column {column}: {why}")]
    Json {
        /// What the file was recognised as.
        kind: StatsKind,
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
        /// What is wrong.
        why: String,
    },
    /// What the figures rest on is not in the file.
    #[error("{kind} report: expected {field}, found none")]
    Missing {
        /// What the file was recognised as.
        kind: StatsKind,
        /// What should be there.
        field: &'static str,
    },
}

impl RuntimeStats {
    /// Recognises and reads a file.
    ///
    /// # Errors
    /// [`RuntimeStatsError`] says what was expected and where; [`help`](RuntimeStatsError::help) how to make such a file.
    pub fn parse(text: &[u8]) -> Result<Self, RuntimeStatsError> {
        let size = Bytes::new(text.len() as u64);
        if size > FILE_SIZE_MAX {
            return Err(RuntimeStatsError::TooLarge { size });
        }
        match StatsKind::of(text) {
            Some(StatsKind::Ruby) => RubyStats::parse(text).map(Self::Ruby),
            Some(StatsKind::Jvm) => JvmStats::parse(text).map(Self::Jvm),
            Some(StatsKind::Jemalloc) => JemallocStats::parse(text).map(Self::Jemalloc),
            Some(StatsKind::Redis) => RedisStats::parse(text).map(Self::Redis),
            None => {
                Err(RuntimeStatsError::Unrecognised { found: printable(text.trim_ascii_start()) })
            }
        }
    }

    /// Returns which kind it is.
    pub const fn kind(&self) -> StatsKind {
        match self {
            Self::Ruby(_) => StatsKind::Ruby,
            Self::Jvm(_) => StatsKind::Jvm,
            Self::Jemalloc(_) => StatsKind::Jemalloc,
            Self::Redis(_) => StatsKind::Redis,
        }
    }
}

impl StatsKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Ruby, Self::Jvm, Self::Jemalloc, Self::Redis];

    /// Recognises a file by the words that only its kind has.
    fn of(text: &[u8]) -> Option<Self> {
        let has = |word: &str| memchr::memmem::find(text, word.as_bytes()).is_some();
        if has(jemalloc::TEXT_START) || has(jemalloc::JSON_START) {
            Some(Self::Jemalloc)
        } else if has(jvm_nmt::TEXT_START) || jvm_nmt::not_tracked(text).is_some() {
            Some(Self::Jvm)
        } else if has(ruby::FIELD) {
            Some(Self::Ruby)
        } else if has(redis::FIELD) {
            Some(Self::Redis)
        } else {
            None
        }
    }

    /// Returns how such a file is made, as a command to type.
    pub const fn command(self) -> &'static str {
        match self {
            Self::Ruby => ruby::SNIPPET,
            Self::Jvm => jvm_nmt::COMMAND,
            Self::Jemalloc => jemalloc::COMMAND,
            Self::Redis => redis::COMMAND,
        }
    }

    /// Returns where the command is typed.
    pub const fn place(self) -> &'static str {
        match self {
            Self::Ruby => "in the Ruby process (console, signal handler, rbtrace)",
            Self::Jvm => "as the JVM's user, of a JVM with -XX:NativeMemoryTracking=summary",
            Self::Jemalloc => "in the environment of the program; it prints when it ends",
            Self::Redis => "on the host of the server",
        }
    }

    /// Returns how such a file is made: where which command is typed.
    pub fn how_to_make(self) -> String {
        format!("{}: {}", self.place(), self.command())
    }
}

impl std::fmt::Display for StatsKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ruby => "GC.stat",
            Self::Jvm => "Native Memory Tracking",
            Self::Jemalloc => "jemalloc statistics",
            Self::Redis => "Redis INFO",
        })
    }
}

impl RuntimeStatsError {
    /// Returns what to do: the commands that make a file which can be read, a line each.
    pub fn help(&self) -> String {
        match self {
            Self::TooLarge { .. } => "keep the last report of the file only".to_owned(),
            Self::NotTracked { help, .. } => (*help).to_owned(),
            Self::Unrecognised { .. } => StatsKind::ALL.map(StatsKind::how_to_make).join("\n"),
            Self::Malformed { kind, .. } | Self::Json { kind, .. } | Self::Missing { kind, .. } => {
                kind.how_to_make()
            }
        }
    }
}

/// Reads the JSON value at the start of `text`, a part of `file`; what follows it is not read.
fn from_json<'a, T: serde::Deserialize<'a>>(
    kind: StatsKind,
    file: &[u8],
    text: &'a [u8],
) -> Result<T, RuntimeStatsError> {
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<T>();
    let before = file.len().saturating_sub(text.len());
    let lines = memchr::memchr_iter(b'\n', &file[..before]).count();
    match values.next() {
        Some(Ok(value)) => Ok(value),
        Some(Err(error)) => {
            let why = error.to_string();
            // The position stands in fields of its own.
            let end = why.rfind(" at line ").unwrap_or(why.len());
            Err(RuntimeStatsError::Json {
                kind,
                line: lines + error.line(),
                column: error.column(),
                why: why.get(..end).unwrap_or_default().to_owned(),
            })
        }
        None => Err(RuntimeStatsError::Missing { kind, field: "a JSON object" }),
    }
}

/// Returns at most 40 characters of the first line, with blanks for what cannot be printed.
fn printable(text: &[u8]) -> String {
    const LEN_MAX: usize = 40;
    let start = text.get(..text.len().min(4 * LEN_MAX)).unwrap_or_default();
    let line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    String::from_utf8_lossy(line).chars().take(LEN_MAX).map(plain).collect()
}

#[cfg(test)]
mod tests;
