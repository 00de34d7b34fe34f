//! A fix that is carried out: its settings and limits are written, read back, and written back.
//!
//! What is written back is what the file held, not what the finding rests on, which may be older. Settings that exclude
//! each other are taken back by the one that was in effect. Nothing is left half done: where one file cannot be written,
//! those before it are written back.

use std::fmt;

use timeline::facts::chosen_word;
use timeline::settings::{AllowedValues, Setting};
use units::{Limit, PageSize};

use crate::finding::{Fix, FixChange, Lasting, SettingValue};

/// Kernel files of the machine that is changed.
pub trait FixTarget {
    /// Reads a file.
    ///
    /// # Errors
    /// The operating system's.
    fn read(&mut self, path: &str) -> std::io::Result<String>;

    /// Writes a text to a file, in one call.
    ///
    /// # Errors
    /// The operating system's.
    fn write(&mut self, path: &str, text: &str) -> std::io::Result<()>;

    /// The size of a base page: limits are shown in whole ones.
    fn page_size(&self) -> PageSize;
}

/// A fix in effect.
#[derive(Debug)]
#[must_use = "it can be taken back"]
pub struct AppliedFix {
    files: Vec<ChangedFile>,
}

/// A file that was written to.
#[derive(Debug)]
struct ChangedFile {
    path: String,
    /// Which values it takes.
    values: AllowedValues,
    /// What was written.
    text: String,
    /// The file and the text that take it back: another file's where two settings exclude each other.
    back: (String, String),
}

/// Why a fix is not in effect, or not taken back.
#[allow(missing_docs)] // names say it
#[derive(Debug)]
pub enum FixError {
    /// A part of it is a command: it is not only files.
    IsCommand(String),
    /// A setting is unknown, or does not take the value.
    Refused {
        path: String,
        /// The value.
        text: String,
    },
    /// A file could not be read or written.
    File { path: String, error: std::io::Error },
    /// The kernel took a value and shows another.
    NotHeld {
        path: String,
        /// What was written.
        wrote: String,
        /// What it shows.
        reads: String,
    },
}

impl fmt::Display for FixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IsCommand(command) => write!(f, "`{command}` is a command, no setting"),
            Self::Refused { path, text } => write!(f, "{path} does not take `{text}`"),
            Self::File { path, error } => write!(f, "{path}: {error}"),
            Self::NotHeld { path, wrote, reads } => {
                write!(f, "`{wrote}` was written to {path}, which shows `{reads}`")
            }
        }
    }
}

impl std::error::Error for FixError {}

impl AppliedFix {
    /// Writes all settings and limits of a fix that take effect now, and reads them back.
    ///
    /// # Errors
    /// [`FixError`]; then all is as before, as far as it can be written back.
    pub fn apply(fix: &Fix, target: &mut impl FixTarget) -> Result<Self, FixError> {
        let mut applied = Self { files: Vec::new() };
        let done = fix.changes.iter().try_for_each(|change| applied.add(change, target));
        match done {
            Ok(()) => Ok(applied),
            Err(error) => {
                // The first error says why.
                let _ = applied.undo(target);
                Err(error)
            }
        }
    }

    /// How many files it changed.
    pub fn files(&self) -> usize {
        self.files.len()
    }

    fn add(&mut self, change: &FixChange, target: &mut impl FixTarget) -> Result<(), FixError> {
        let (setting, path, text) = match change {
            FixChange::Setting(change) if change.lasts == Lasting::FromBoot => return Ok(()),
            FixChange::Setting(change) => {
                let SettingValue { fact, value } = &change.to;
                (Setting::of(*fact), fact.file.to_owned(), value.clone())
            }
            FixChange::Limit(change) => {
                let text = change.file.written(Limit::Bytes(change.to));
                (Setting::named(change.file.name()), change.path(), text)
            }
            FixChange::Command(command) => return Err(FixError::IsCommand(command.now.clone())),
        };
        let allows = |setting: &&Setting| setting.values_on(None).allow(&text);
        let Some(setting) = setting.filter(allows) else {
            return Err(FixError::Refused { path, text });
        };
        let back = way_back(setting, &path, target)?;
        write(target, &path, &text)?;
        let file = ChangedFile { path, values: setting.values_on(None), text, back };
        let held = file.check(target);
        self.files.push(file);
        held
    }

    /// Reads every file again.
    ///
    /// # Errors
    /// [`FixError::NotHeld`] where one shows another value than was written.
    pub fn check(&self, target: &mut impl FixTarget) -> Result<(), FixError> {
        self.files.iter().try_for_each(|file| file.check(target))
    }

    /// Writes back what the files held, the last first, and reads it back.
    ///
    /// # Errors
    /// The first [`FixError`]; the other files are written back all the same.
    pub fn undo(self, target: &mut impl FixTarget) -> Result<(), FixError> {
        let mut all = Ok(());
        for file in self.files.iter().rev() {
            all = all.and(file.undo(target));
        }
        all
    }
}

impl ChangedFile {
    fn check(&self, target: &mut impl FixTarget) -> Result<(), FixError> {
        let reads = read(target, &self.path)?;
        let is_held = self.values.holds(&self.text, &reads, target.page_size());
        if is_held { Ok(()) } else { Err(not_held(&self.path, &self.text, reads)) }
    }

    fn undo(&self, target: &mut impl FixTarget) -> Result<(), FixError> {
        let (path, before) = &self.back;
        write(target, path, before)?;
        let reads = read(target, path)?;
        let is_back = chosen(&reads) == before;
        if is_back { Ok(()) } else { Err(not_held(path, before, reads)) }
    }
}

/// Returns the file and the text that take a change of a setting back.
fn way_back(
    setting: &Setting,
    path: &str,
    target: &mut impl FixTarget,
) -> Result<(String, String), FixError> {
    let before = read(target, path)?;
    match setting.counterpart {
        // The kernel shows 0 for the one that is not in effect.
        Some(other) if before.trim() == "0" => {
            let held = read(target, other.file)?;
            Ok((other.file.to_owned(), chosen(&held).to_owned()))
        }
        _ => Ok((path.to_owned(), chosen(&before).to_owned())),
    }
}

/// The text that sets what a file shows: the chosen word of `always [madvise] never`.
fn chosen(shown: &str) -> &str {
    chosen_word(shown).unwrap_or(shown.trim())
}

fn read(target: &mut impl FixTarget, path: &str) -> Result<String, FixError> {
    target.read(path).map_err(|error| FixError::File { path: path.to_owned(), error })
}

fn write(target: &mut impl FixTarget, path: &str, text: &str) -> Result<(), FixError> {
    target.write(path, text).map_err(|error| FixError::File { path: path.to_owned(), error })
}

fn not_held(path: &str, wrote: &str, reads: String) -> FixError {
    FixError::NotHeld {
        path: path.to_owned(),
        wrote: wrote.to_owned(),
        reads: reads.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::{Error, ErrorKind};

    use super::*;
    use crate::finding::{LimitChange, LimitFile, SettingChange};
    use timeline::Fact;
    use timeline::facts::{DIRTY_BYTES, DIRTY_RATIO, SWAPPINESS, THP_DEFRAG};
    use units::Bytes;

    /// Files that behave as the kernel's: choices are shown in brackets, limits in whole pages, one of two dirty limits is 0.
    #[derive(Default)]
    struct FakeKernel {
        files: BTreeMap<String, String>,
        writes: Vec<String>,
    }

    impl FakeKernel {
        fn with(files: &[(&str, &str)]) -> Self {
            let files = files.iter().map(|(path, text)| ((*path).to_owned(), format!("{text}\n")));
            Self { files: files.collect(), writes: Vec::new() }
        }

        fn text(&self, path: &str) -> &str {
            self.files[path].trim()
        }
    }

    impl FixTarget for FakeKernel {
        fn read(&mut self, path: &str) -> std::io::Result<String> {
            self.files.get(path).cloned().ok_or_else(|| Error::from(ErrorKind::NotFound))
        }

        fn write(&mut self, path: &str, text: &str) -> std::io::Result<()> {
            let shown = match path {
                path if path == THP_DEFRAG.file => {
                    let words = ["always", "defer", "defer+madvise", "madvise", "never"];
                    words
                        .map(|word| if word == text { format!("[{word}]") } else { word.into() })
                        .join(" ")
                }
                path if path.ends_with("memory.high") => match text.parse::<u64>() {
                    Ok(bytes) => (bytes / 4096 * 4096).to_string(),
                    Err(_) => text.to_owned(),
                },
                _ => text.to_owned(),
            };
            self.writes.push(format!("{path}={text}"));
            for (one, other) in [(DIRTY_BYTES, DIRTY_RATIO), (DIRTY_RATIO, DIRTY_BYTES)] {
                if path == one.file {
                    self.files.insert(other.file.to_owned(), "0\n".to_owned());
                }
            }
            self.files.insert(path.to_owned(), format!("{shown}\n"));
            Ok(())
        }

        fn page_size(&self) -> PageSize {
            PageSize::USUAL
        }
    }

    fn set(fact: Fact, value: &str) -> FixChange {
        FixChange::Setting(SettingChange::new(fact, value))
    }

    fn fix(changes: impl Into<Vec<FixChange>>) -> Fix {
        Fix { changes: changes.into(), ..Fix::default() }
    }

    #[test]
    fn settings_are_written_read_back_and_written_back_in_reverse() {
        let always = "[always] defer defer+madvise madvise never";
        let mut kernel = FakeKernel::with(&[(SWAPPINESS.file, "1"), (THP_DEFRAG.file, always)]);
        let fix = fix([set(SWAPPINESS, "60"), set(THP_DEFRAG, "defer+madvise")]);
        let applied = AppliedFix::apply(&fix, &mut kernel).unwrap();
        assert_eq!(applied.files(), 2);
        assert_eq!(kernel.text(SWAPPINESS.file), "60");
        assert!(kernel.text(THP_DEFRAG.file).contains("[defer+madvise]"));
        applied.check(&mut kernel).unwrap();
        applied.undo(&mut kernel).unwrap();
        assert_eq!((kernel.text(SWAPPINESS.file), kernel.text(THP_DEFRAG.file)), ("1", always));
        assert!(kernel.writes[2].starts_with(THP_DEFRAG.file), "{:?}", kernel.writes);
    }

    #[test]
    fn a_setting_that_shuts_out_another_is_taken_back_by_the_other() {
        let mut kernel = FakeKernel::with(&[(DIRTY_BYTES.file, "0"), (DIRTY_RATIO.file, "20")]);
        let applied = AppliedFix::apply(&fix([set(DIRTY_BYTES, "8192")]), &mut kernel).unwrap();
        assert_eq!((kernel.text(DIRTY_BYTES.file), kernel.text(DIRTY_RATIO.file)), ("8192", "0"));
        applied.undo(&mut kernel).unwrap();
        assert_eq!((kernel.text(DIRTY_BYTES.file), kernel.text(DIRTY_RATIO.file)), ("0", "20"));
    }

    #[test]
    fn a_limit_is_read_back_in_whole_pages_and_no_limit_comes_back_as_max() {
        let high = "/sys/fs/cgroup/a/memory.high";
        let mut kernel = FakeKernel::with(&[(high, "max")]);
        let limit = FixChange::Limit(LimitChange {
            cgroup: "/a".to_owned(),
            unit: None,
            file: LimitFile::High,
            from: None,
            to: Bytes::new(1_000_000),
        });
        let applied = AppliedFix::apply(&fix([limit]), &mut kernel).unwrap();
        assert_eq!(kernel.text(high), "999424");
        applied.undo(&mut kernel).unwrap();
        assert_eq!(kernel.text(high), "max");
    }

    #[test]
    fn what_cannot_be_done_whole_is_not_done() {
        let mut kernel = FakeKernel::with(&[(SWAPPINESS.file, "1")]);
        // The second file is not there.
        let two = fix([set(SWAPPINESS, "60"), set(THP_DEFRAG, "madvise")]);
        let error = AppliedFix::apply(&two, &mut kernel).unwrap_err();
        assert!(error.to_string().starts_with(THP_DEFRAG.file), "{error}");
        assert_eq!(kernel.text(SWAPPINESS.file), "1");
        for (value, expected) in [("201", "does not take `201`"), ("a", "does not take `a`")] {
            let error = AppliedFix::apply(&fix([set(SWAPPINESS, value)]), &mut kernel).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
        let swap = Fix::swap_file("", "/swapfile", Bytes::from_mib(1));
        let error = AppliedFix::apply(&swap, &mut kernel).unwrap_err();
        assert!(matches!(error, FixError::IsCommand(_)), "{error}");
        assert_eq!(kernel.text(SWAPPINESS.file), "1");
    }
}
