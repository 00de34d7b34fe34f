//! Why a rule could not be evaluated: which signals or facts the source lacks, and what would supply them.

use units::Span;

use timeline::{Absence, Fact, SignalDef, facts::KernelVersion};

/// What a rule asked for and did not get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Names from the catalogues of signals and facts.
    pub names: Vec<&'static str>,
    /// What would supply the missing data.
    pub need: Need,
}

/// What would make an evaluation possible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// The source has no such file; live, this kernel or its configuration lacks it.
    File(&'static str),
    /// The kernel file does not have the field: this kernel is older or newer than the field.
    Field {
        /// The kernel file.
        file: &'static str,
        /// The first kernel that has it; empty if all have it, or if this kernel is new enough, so the version is not
        /// the reason.
        since: &'static str,
    },
    /// The file exists, but this user may not read it.
    Root(&'static str),
    /// The source has no readings at all.
    Readings,
    /// Rates need two samples.
    TwoSamples,
    /// Only one interval between two samples shows it; the cause may have lasted only a moment of that interval.
    MoreSamples {
        /// How long the interval is.
        every: Span,
    },
    /// A level holds at the end of a watch that is shorter than the level has to last.
    LongerWatch {
        /// How long it has to last.
        lasts: Span,
    },
    /// It was read, but not while the other conditions of the rule held.
    SameTime,
    /// The figures are rounded, and other values within the rounding would change the rule's answer.
    FinerFigures,
    /// No malloc heap was read.
    Heaps,
    /// The page size is unknown, so pages cannot be converted to bytes.
    PageSize,
}

impl Missing {
    pub(crate) fn signal(def: &'static SignalDef, absence: Option<&Absence>) -> Self {
        let need = match absence {
            Some(Absence::PermissionDenied) => Need::Root(def.file),
            Some(_) => Need::File(def.file),
            None => Need::Field { file: def.file, since: def.since },
        };
        Self { names: vec![def.name], need }
    }

    /// Returns the same reason for a known kernel: a field that this kernel has is not missing because of the version.
    pub(crate) fn on(mut self, kernel: Option<KernelVersion>) -> Self {
        if let Need::Field { since, .. } = &mut self.need
            && kernel.zip(KernelVersion::parse(since)).is_some_and(|(is, first)| is >= first)
        {
            *since = "";
        }
        self
    }

    /// The file was not read at all.
    pub(crate) fn file(def: &'static SignalDef) -> Self {
        Self::because(vec![def.name], Need::File(def.file))
    }

    /// The signal was read, but not at the time in question.
    pub(crate) fn same_time(def: &'static SignalDef) -> Self {
        Self::because(vec![def.name], Need::SameTime)
    }

    pub(crate) fn fact(fact: Fact) -> Self {
        Self { names: vec![fact.name], need: Need::File(fact.file) }
    }

    /// A rule's own reason, with the signals it is about.
    pub fn because(names: Vec<&'static str>, need: Need) -> Self {
        Self { names, need }
    }
}

impl std::fmt::Display for Need {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(file) if file.starts_with("/proc/pressure/") => {
                write!(f, "{file} (kernel 4.20 or later; some need psi=1 at boot)")
            }
            Self::File(file) => write!(f, "{file}, which this source does not have"),
            Self::Field { file, since: "" } => {
                write!(f, "a field of {file} that this source lacks")
            }
            Self::Field { file, since } => {
                write!(f, "a field of {file} (kernel {since} or later)")
            }
            Self::Root(file) => write!(f, "root, to read {file}"),
            Self::Readings => f.write_str("readings of a host's memory; this source has none"),
            Self::TwoSamples => {
                f.write_str("two samples some seconds apart: memtide check on that host")
            }
            Self::MoreSamples { every } => write!(
                f,
                "samples more often: one interval of {every} shows it, and it may have been a \
                 moment of that"
            ),
            Self::LongerWatch { lasts } => {
                write!(f, "a watch of {lasts} or longer: it held at the end of this one")
            }
            Self::FinerFigures => f.write_str(
                "figures that are less rounded (free -k, /proc/meminfo): these could mean either",
            ),
            Self::Heaps => f.write_str("figures of malloc heaps: memtide record --explain NAME"),
            Self::SameTime => f.write_str("readings of it at the time in question"),
            Self::PageSize => {
                f.write_str("the page size (MemFree and nr_free_pages of one moment give it)")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::signals::MEM_AVAILABLE;

    #[test]
    fn a_later_kernel_is_asked_for_only_where_this_one_may_be_older() {
        let needs = |kernel: Option<&str>| {
            Missing::signal(MEM_AVAILABLE.def(), None)
                .on(kernel.and_then(KernelVersion::parse))
                .need
                .to_string()
        };
        for kernel in [None, Some("2.6.32-754")] {
            assert_eq!(needs(kernel), "a field of /proc/meminfo (kernel 3.14 or later)");
        }
        assert_eq!(
            needs(Some("6.1.0-56-cloud-amd64")),
            "a field of /proc/meminfo that this source lacks"
        );
    }
}
