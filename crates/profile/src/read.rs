//! Reads profiles of other tools, recognised by content: `perf script`, `perf.data`, `perf report --stdio`, folded stacks,
//! bpftrace.

mod backtraces;
mod bpftrace;
mod folded;
mod perf_data;
mod perf_report;
mod perf_script;

#[cfg(test)]
pub(crate) use perf_data::KERNEL_MARK;
pub(crate) use perf_data::kernel_chain;
use thiserror::Error;

use crate::collected::Profile;

/// A profile without call chains.
const NO_CHAINS: &str =
    "No call chains (perf record without -g): shares of functions only, and few reasons.";
/// A profile of addresses.
const NO_NAMES: &str = "Most kernel addresses have no names: run perf script as root on the host that recorded \
                        it, before its next boot.";

/// Why a file is no profile.
#[derive(Debug, Error)]
pub enum ReadProfileError {
    /// Nothing that is known.
    #[error("no profile is recognised in it")]
    Unknown,
    /// A file of perf that is damaged or too new.
    #[error("perf.data cannot be read: {0}")]
    PerfData(String),
    /// It is a profile without a sample.
    #[error("it is {form} without a sample")]
    Empty {
        /// Of which form.
        form: &'static str,
    },
}

impl ReadProfileError {
    /// What to do about it.
    pub fn help(&self) -> String {
        match self {
            Self::Unknown => "it reads `perf script`, perf.data, `perf report --stdio`, folded \
                              stacks (FlameGraph, inferno), bpftrace's @[kstack, comm] and backtraces of dmesg"
                .to_owned(),
            Self::PerfData(_) => {
                "run `perf script > FILE` on the host that recorded it, and read that".to_owned()
            }
            Self::Empty { .. } => {
                "record again while the host is slow: perf record -F 99 -a -g -- sleep 30"
                    .to_owned()
            }
        }
    }
}

/// Reads a profile.
///
/// # Errors
/// If none is recognised, or none is in it.
pub fn read_profile(name: &str, content: &[u8]) -> Result<Profile, ReadProfileError> {
    let mut profile = if content.starts_with(b"PERFILE2") {
        perf_data::read(content)?
    } else {
        let text = String::from_utf8_lossy(content);
        let text = text.trim_start_matches('\u{feff}');
        let readers =
            [bpftrace::read, perf_script::read, backtraces::read, perf_report::read, folded::read];
        readers.iter().find_map(|read| read(text)).ok_or(ReadProfileError::Unknown)?
    };
    let has_some = profile.cpu.as_ref().is_some_and(|(_, stacks)| !stacks.is_empty())
        || profile.blocked.is_some()
        || profile.episodes.is_some();
    if !has_some {
        return Err(ReadProfileError::Unknown);
    }
    profile.origin.files = vec![name.to_owned()];
    Ok(profile)
}
