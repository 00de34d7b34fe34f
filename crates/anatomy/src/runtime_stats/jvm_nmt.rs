//! The JVM's native memory: what `jcmd PID VM.native_memory` prints, as `summary` or `detail`, in any scale, and as the
//! difference to a baseline.
//!
//! HotSpot's own allocations by subsystem (`memReporter.cpp`; JDK 8 to 25 differ in blanks and in what follows a size).
//! Reserved is address space, committed is memory that may be used: pages that were never touched are committed but not
//! resident. Not counted are malloc's own slack and headers, memory of libraries and of JNI code, and mapped files. The
//! scale rounds each figure down (`KB` by default), and categories below one unit are left out.

use units::{Bytes, Count, SignedBytes};

use super::{RuntimeStatsError, StatsKind, printable};

/// The command that prints the report.
pub const COMMAND: &str = "jcmd PID VM.native_memory summary";

/// The line with which a report begins.
pub(super) const TEXT_START: &str = "Native Memory Tracking:";

/// At most this many categories: JDK 25 has 30.
const CATEGORIES_MAX: usize = 256;

/// What the JVM reports about its native memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JvmStats {
    /// The process, which `jcmd` prints first.
    pub pid: Option<u64>,
    /// All categories.
    pub total: NativeSize,
    /// What comes from malloc: direct buffers, and the JVM's own structures.
    pub malloc: Option<Bytes>,
    /// The unit to which sizes are rounded: 1 byte with `scale=b`.
    pub scale: Bytes,
    /// Whether it is the difference to a baseline.
    pub is_difference: bool,
    /// Categories, in the order of the report.
    pub categories: Vec<JvmCategory>,
}

/// A subsystem of the JVM.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JvmCategory {
    /// Its name: `Java Heap`, `Thread`, `Other`.
    pub name: String,
    /// Its memory.
    pub size: NativeSize,
    /// Its malloc blocks.
    pub malloc: Option<Bytes>,
    /// Threads, in `Thread`.
    pub threads: Option<Count>,
    /// Loaded classes, in `Class`.
    pub classes: Option<Count>,
}

/// Address space and memory of the JVM, with their changes since the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NativeSize {
    /// Address space.
    pub reserved: Bytes,
    /// Memory that may be used.
    pub committed: Bytes,
    /// The change of the address space; zero without a baseline.
    pub reserved_change: SignedBytes,
    /// The change of the memory; zero without a baseline.
    pub committed_change: SignedBytes,
}

impl JvmStats {
    /// Reads the last report of a text.
    ///
    /// # Errors
    /// [`RuntimeStatsError`] if the JVM does not track its memory, or a line of sizes is malformed.
    pub fn parse(text: &[u8]) -> Result<Self, RuntimeStatsError> {
        let kind = StatsKind::Jvm;
        let Some(start) = memchr::memmem::rfind(text, TEXT_START.as_bytes()) else {
            return Err(not_tracked(text).unwrap_or(RuntimeStatsError::Missing {
                kind,
                field: "`Native Memory Tracking:`",
            }));
        };
        let mut stats = Self {
            pid: pid_before(text.get(..start).unwrap_or_default()),
            scale: Bytes::new(1),
            ..Self::default()
        };
        let mut has_total = false;
        for (number, line) in probe::text::lines(text) {
            let at = line.as_ptr().addr() - text.as_ptr().addr();
            if at < start {
                continue;
            }
            let line = line.trim_ascii();
            let wrong = |expected| RuntimeStatsError::Malformed {
                kind,
                line: number,
                expected,
                found: printable(line),
            };
            if let Some(sizes) = line.strip_prefix(b"Total:") {
                const EXPECTED: &str = "`reserved=SIZE, committed=SIZE`";
                let (size, scale) = sizes_of(sizes).ok_or_else(|| wrong(EXPECTED))?;
                (stats.total, stats.scale) = (size, scale);
                has_total = true;
            } else if line.starts_with(b"-") {
                const EXPECTED: &str = "`- NAME (reserved=SIZE, committed=SIZE)`";
                let category = category_of(line).ok_or_else(|| wrong(EXPECTED))?;
                if stats.categories.len() < CATEGORIES_MAX {
                    stats.categories.push(category);
                }
            } else if line.starts_with(b"Virtual memory map:") || line.starts_with(b"Details:") {
                break;
            } else {
                stats.read_detail(line);
            }
        }
        if !has_total {
            let field = "`Total: reserved=SIZE, committed=SIZE`";
            return Err(RuntimeStatsError::Missing { kind, field });
        }
        let sizes = stats.categories.iter().map(|category| &category.size);
        stats.is_difference = text.get(start..).is_some_and(has_change)
            || sizes.clone().any(|size| size.committed_change != SignedBytes::default());
        Ok(stats)
    }

    /// Reads what stands below the total or below a category: malloc, threads, classes. All else is skipped.
    fn read_detail(&mut self, line: &[u8]) {
        let line = line.strip_prefix(b"(").unwrap_or(line);
        let of_malloc = || {
            let text = line.strip_prefix(b"malloc")?;
            size_of(text.strip_prefix(b"=").or(text.strip_prefix(b": "))?)
        };
        let counted = |names: [&[u8]; 2]| {
            let name = names.into_iter().find(|name| line.starts_with(name))?;
            let text = line.strip_prefix(name)?.strip_prefix(b" #")?;
            probe::text::leading_number(text).map(|(count, _)| Count::new(count))
        };
        match self.categories.last_mut() {
            None => self.malloc = self.malloc.or_else(|| of_malloc().map(|(size, _)| size.now)),
            Some(category) => {
                category.malloc =
                    (category.malloc).or_else(|| of_malloc().map(|(size, _)| size.now));
                category.threads = category.threads.or_else(|| counted([b"threads", b"thread"]));
                category.classes = category.classes.or_else(|| counted([b"classes", b"class"]));
            }
        }
    }

    /// Returns the categories by committed memory, the largest first.
    pub fn by_committed(&self) -> Vec<&JvmCategory> {
        let mut order: Vec<&JvmCategory> = self.categories.iter().collect();
        order.sort_by_key(|category| std::cmp::Reverse(category.size.committed));
        order
    }

    /// Returns the category with the largest growth of committed memory since the baseline.
    pub fn fastest_growing(&self) -> Option<&JvmCategory> {
        let change = |category: &&JvmCategory| category.size.committed_change;
        (self.categories.iter())
            .max_by_key(change)
            .filter(|category| change(category) > SignedBytes::default())
    }

    /// Returns the committed memory that is in none of the categories: those behind the end of a report that was cut off.
    pub fn cut_off(&self) -> Bytes {
        /// Rounding makes each category smaller by up to a unit, and those below one are left out: JDK 25 has 30.
        const UNITS: u64 = 64;
        let shown: Bytes = self.categories.iter().map(|one| one.size.committed).sum();
        let missing = self.total.committed.saturating_sub(shown);
        if missing.get() > self.scale.get().saturating_mul(UNITS) { missing } else { Bytes::ZERO }
    }

    /// Returns the memory that malloc gave to all categories: as the report says it, or the sum of theirs.
    pub fn malloc_total(&self) -> Bytes {
        let sum = || self.categories.iter().filter_map(|one| one.malloc).sum();
        self.malloc.unwrap_or_else(sum)
    }
}

/// What the JVM prints if there is nothing to report.
pub(super) fn not_tracked(text: &[u8]) -> Option<RuntimeStatsError> {
    const ANSWERS: [(&[u8], &str); 3] = [
        (
            b"Native memory tracking is not enabled",
            "start the JVM with -XX:NativeMemoryTracking=summary; it costs 5 to 10 % of speed",
        ),
        (
            b"Native memory tracking has been shutdown",
            "start the JVM anew with -XX:NativeMemoryTracking=summary",
        ),
        (
            b"No baseline for comparison",
            "run `jcmd PID VM.native_memory baseline` first, and `summary.diff` some time later",
        ),
    ];
    let mut lines = probe::text::lines(text);
    lines.find_map(|(line, found)| {
        let begins = |(answer, _): &&(&[u8], &str)| found.starts_with(answer);
        let (_, help) = ANSWERS.iter().find(begins)?;
        Some(RuntimeStatsError::NotTracked { line, found: printable(found), help })
    })
}

/// Returns the PID of `20702:`, which `jcmd` prints above the report.
fn pid_before(text: &[u8]) -> Option<u64> {
    let last = text.trim_ascii_end().rsplit(|byte| *byte == b'\n').next()?;
    probe::text::number(last.trim_ascii().strip_suffix(b":")?)
}

/// A size with its change.
#[derive(Clone, Copy)]
struct Changed {
    now: Bytes,
    change: SignedBytes,
}

/// Reads `-   NAME (reserved=SIZE, committed=SIZE)`.
fn category_of(line: &[u8]) -> Option<JvmCategory> {
    let text = line.strip_prefix(b"-")?.trim_ascii();
    let open = memchr::memmem::rfind(text, b"(reserved=")?;
    let (name, sizes) = text.split_at(open);
    let (size, _) = sizes_of(sizes)?;
    Some(JvmCategory {
        name: probe::text::lossy(name.trim_ascii()).into_owned(),
        size,
        ..JvmCategory::default()
    })
}

/// Reads `reserved=SIZE, committed=SIZE` with their changes; also returns the scale.
fn sizes_of(text: &[u8]) -> Option<(NativeSize, Bytes)> {
    let after = |name: &[u8]| {
        let at = memchr::memmem::find(text, name)?;
        size_of(text.get(at + name.len()..)?)
    };
    let (reserved, scale) = after(b"reserved=")?;
    let (committed, _) = after(b"committed=")?;
    let size = NativeSize {
        reserved: reserved.now,
        committed: committed.now,
        reserved_change: reserved.change,
        committed_change: committed.change,
    };
    Some((size, scale))
}

/// Reads `4203KB +4003KB`: a size and its change, if there is one; also returns the scale.
fn size_of(text: &[u8]) -> Option<(Changed, Bytes)> {
    let (now, scale, length) = scaled(text)?;
    let rest = text.get(length..).unwrap_or_default();
    let change = || {
        let signed = rest.strip_prefix(b" ")?;
        let (sign, digits) = signed.split_first()?;
        let (size, _, _) = scaled(digits)?;
        let size = i64::try_from(size.get()).ok()?;
        match sign {
            b'+' => Some(SignedBytes::new(size)),
            b'-' => Some(SignedBytes::new(-size)),
            _ => None,
        }
    };
    let change = change().unwrap_or_default();
    Some((Changed { now, change }, scale))
}

/// Reads `4203KB`; also returns the scale, and the length of both.
fn scaled(text: &[u8]) -> Option<(Bytes, Bytes, usize)> {
    let (number, digits) = probe::text::leading_number(text)?;
    let unit = text.get(digits..).unwrap_or_default();
    let (scale, letters) = match unit {
        [b'K', b'B', ..] => (1 << 10, 2),
        [b'M', b'B', ..] => (1 << 20, 2),
        [b'G', b'B', ..] => (1 << 30, 2),
        _ => (1, 0),
    };
    let size = Bytes::new(number.saturating_mul(scale));
    Some((size, Bytes::new(scale), digits + letters))
}

/// Whether the line of the total has a change. A difference of zero is not printed: then there is nothing that grew.
fn has_change(report: &[u8]) -> bool {
    let mut lines = probe::text::lines(report).map(|(_, line)| line);
    let total = lines.find(|line| line.starts_with(b"Total:"));
    total.is_some_and(|line| {
        [&b" +"[..], b" -"].iter().any(|sign| memchr::memmem::find(line, sign).is_some())
    })
}
