//! The directory of a trial: `plan.json`, and a file for each run. A file is whole or not there, so that a trial goes on
//! where it was interrupted, by whatever.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::plan::{PLAN_FORMAT, TrialPlan};
use crate::run::TrialRun;

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
    pub fn load_runs(&self) -> Result<Vec<TrialRun>, DirectoryError> {
        let mut all = Vec::new();
        let listed = fs::read_dir(self.runs())
            .map_err(|source| DirectoryError::NotRead { path: self.runs(), source })?;
        for entry in listed.flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                all.push(read::<TrialRun>(&path)?);
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
        write(&self.runs().join(format!("{:03}-{:02}.json", run.block, run.column)), run)
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
