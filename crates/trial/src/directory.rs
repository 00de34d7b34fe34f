//! The directory of a trial: `plan.json`, and a file for each run. A file is whole or not there, so that a trial goes on
//! where it was interrupted, by whatever.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::plan::{PLAN_FORMAT, TrialPlan};
use crate::run::TrialRun;
use crate::trial_end::TrialEnd;

/// The directory of a trial.
#[derive(Debug)]
pub struct TrialDirectory {
    path: PathBuf,
}

/// Why a directory cannot be used.
#[allow(missing_docs)] // their texts say it
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    #[error("{} has a trial already", .0.display())]
    Taken(PathBuf),
    #[error("{} has no trial", .0.display())]
    NoTrial(PathBuf),
    #[error("{} cannot be made", path.display())]
    NotMade { path: PathBuf, source: std::io::Error },
    #[error("{} cannot be read", path.display())]
    NotRead { path: PathBuf, source: std::io::Error },
    #[error("{} cannot be written", path.display())]
    NotWritten { path: PathBuf, source: std::io::Error },
    #[error("{} is damaged", path.display())]
    Damaged { path: PathBuf, source: serde_json::Error },
    #[error("{} is no plan that can be followed: {what}", path.display())]
    BadPlan { path: PathBuf, what: &'static str },
    #[error("{} is a run of another trial", .0.display())]
    Foreign(PathBuf),
    #[error("another memtide works in {}", .0.display())]
    InUse(PathBuf),
    #[error("{} was written by another memtide ({found}; this one reads {PLAN_FORMAT})", path.display())]
    OtherFormat { path: PathBuf, found: String },
}

impl DirectoryError {
    /// What to do about it.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Taken(path) => Some(format!(
                "memtide trial --resume {0}, or --show {0}; or choose another --directory",
                path.display()
            )),
            Self::NoTrial(_) => {
                Some("`memtide trial` prints the directory of each trial".to_owned())
            }
            Self::Damaged { path, .. } if path.ends_with("plan.json") => Some(
                "without its plan a trial cannot go on; its runs are kept beside it".to_owned(),
            ),
            Self::Foreign(path) => Some(format!("rm {}", path.display())),
            Self::Damaged { path, .. } => {
                Some(format!("remove it, and the run is made again: rm {}", path.display()))
            }
            _ => None,
        }
    }
}

impl TrialDirectory {
    /// Makes a directory for a plan.
    ///
    /// # Errors
    /// [`DirectoryError`] if there is a trial in it, or it cannot be written.
    pub fn create(path: &Path, plan: &TrialPlan) -> Result<Self, DirectoryError> {
        let directory = Self { path: path.to_owned() };
        if directory.plan_file().exists() {
            return Err(DirectoryError::Taken(path.to_owned()));
        }
        fs::create_dir_all(directory.runs())
            .map_err(|source| DirectoryError::NotMade { path: path.to_owned(), source })?;
        write(&directory.plan_file(), plan)?;
        Ok(directory)
    }

    /// Opens a directory with a trial.
    ///
    /// # Errors
    /// [`DirectoryError`] if there is none, or it cannot be read.
    pub fn open(path: &Path) -> Result<(Self, TrialPlan), DirectoryError> {
        let directory = Self { path: path.to_owned() };
        let file = directory.plan_file();
        if !file.exists() {
            return Err(DirectoryError::NoTrial(path.to_owned()));
        }
        let plan: TrialPlan = read(&file)?;
        if plan.format != PLAN_FORMAT {
            return Err(DirectoryError::OtherFormat { path: file, found: plan.format });
        }
        if let Some(what) = plan.fault() {
            return Err(DirectoryError::BadPlan { path: file, what });
        }
        Ok((directory, plan))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads all runs, in order of blocks and places.
    ///
    /// # Errors
    /// [`DirectoryError`] for a file that is damaged.
    pub fn load_runs(&self, plan: &TrialPlan) -> Result<Vec<TrialRun>, DirectoryError> {
        let columns = plan.columns();
        let mut all = Vec::new();
        let listed = fs::read_dir(self.runs())
            .map_err(|source| DirectoryError::NotRead { path: self.runs(), source })?;
        for entry in listed.flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                let run = read::<TrialRun>(&path)?;
                let is_own = path == self.run_file(&run)
                    && run.block < plan.blocks_max()
                    && columns.get(run.column) == Some(&run.variant)
                    && run.trial == plan.id;
                if !is_own {
                    return Err(DirectoryError::Foreign(path));
                }
                all.push(run);
            }
        }
        all.sort_by_key(|run| (run.block, run.place));
        Ok(all)
    }

    /// Keeps a run, in the place of one of the same column of its block.
    ///
    /// # Errors
    /// [`DirectoryError::NotWritten`].
    pub fn keep(&self, run: &TrialRun) -> Result<(), DirectoryError> {
        write(&self.run_file(run), run)
    }

    /// Keeps why a trial ended.
    ///
    /// # Errors
    /// [`DirectoryError::NotWritten`].
    pub(crate) fn keep_end(&self, end: TrialEnd) -> Result<(), DirectoryError> {
        write(&self.end_file(), &end)
    }

    /// Why it ended; a trial that was killed had no time to say it.
    pub(crate) fn end(&self) -> TrialEnd {
        read(&self.end_file()).unwrap_or(TrialEnd::Interrupted)
    }

    /// The trial goes on.
    pub(crate) fn forget_end(&self) {
        let _ = fs::remove_file(self.end_file());
    }

    fn end_file(&self) -> PathBuf {
        self.path.join("end.json")
    }

    fn run_file(&self, run: &TrialRun) -> PathBuf {
        self.runs().join(format!("{:03}-{:02}.json", run.block, run.column))
    }

    /// Takes the directory for this process as long as the value lives.
    ///
    /// # Errors
    /// [`DirectoryError::InUse`] if another has it.
    pub fn lock(&self) -> Result<File, DirectoryError> {
        let path = self.path.join("lock");
        let file =
            File::create(&path).map_err(|source| DirectoryError::NotWritten { path, source })?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(file),
            Err(_) => Err(DirectoryError::InUse(self.path.clone())),
        }
    }

    /// Removes it where it has no run.
    pub fn remove_if_empty(&self) {
        // A directory with anything else in it is not removed.
        if fs::remove_dir(self.runs()).is_ok() {
            self.forget_end();
            let _ = fs::remove_file(self.plan_file());
            let _ = fs::remove_file(self.path.join("lock"));
            let _ = fs::remove_dir(&self.path);
        }
    }

    fn plan_file(&self) -> PathBuf {
        self.path.join("plan.json")
    }

    fn runs(&self) -> PathBuf {
        self.path.join("runs")
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, DirectoryError> {
    let text = fs::read(path)
        .map_err(|source| DirectoryError::NotRead { path: path.to_owned(), source })?;
    serde_json::from_slice(&text)
        .map_err(|source| DirectoryError::Damaged { path: path.to_owned(), source })
}

/// Writes a file beside it and renames that.
fn write(path: &Path, value: &impl Serialize) -> Result<(), DirectoryError> {
    let failed = |source| DirectoryError::NotWritten { path: path.to_owned(), source };
    let text = serde_json::to_vec_pretty(value).map_err(|error| failed(error.into()))?;
    let whole = path.with_extension("tmp");
    fs::write(&whole, text).and_then(|()| fs::rename(&whole, path)).map_err(failed)
}
