//! What a comparison says, with its figures; `report` has the sentences.

use units::Span;

use super::{AmountChange, Cause, FactChange, FindingChange, RateChange};

/// A statement of the headline, or below it.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    /// Nothing that matters differs.
    Nothing {
        /// Whether facts differ.
        do_facts_differ: bool,
        /// Rules of findings beside the roots that are on one side only.
        others: Vec<&'static str>,
        /// Whether the sources' lengths differ too much to show a change of these.
        is_of_other_length: bool,
    },
    /// Whether it is better or worse is unknown.
    Unknown {
        /// Sides that cannot be judged.
        unjudged: Vec<SourceSide>,
        /// The finding that is in doubt.
        doubt: Option<FindingDoubt>,
    },
    /// Facts explain what changed.
    Explained(Cause, Vec<FactChange>),
    /// It is neither better nor worse.
    NoDirection,
    /// A rate of waiting or of reading again decides.
    Decides {
        rate: RateChange,
        /// Whether less was found nevertheless.
        is_mixed: bool,
    },
    /// One side uses much more memory.
    Uses(MemoryUse),
    /// Huge pages are the difference, and the setting is the same.
    HugePages {
        /// Whether there are more after.
        is_more: bool,
        /// The setting on both sides.
        setting: String,
    },
    /// How a finding changed.
    Finding(FindingChange),
    /// What differs most.
    Most(Vec<Moved>),
    /// What else differs, beside what facts explain.
    Rest(Vec<Moved>),
    /// Settings that the finding rests on are the same on both sides, as recorded.
    SameSettings(Vec<&'static str>),
    /// Why the finding happens.
    FindingCause(String),
    /// No recorded fact explains it.
    Unexplained,
    /// A statement that has nothing to do with those before.
    Independent(Box<Statement>),
}

/// Before or after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceSide {
    /// The first source.
    Before,
    /// The second one.
    After,
}

impl SourceSide {
    /// The other one.
    pub const fn other(self) -> Self {
        match self {
            Self::Before => Self::After,
            Self::After => Self::Before,
        }
    }
}

/// Why a finding on one side does not apply to the other.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindingDoubt {
    /// Id of its rule.
    pub id: &'static str,
    pub why: DoubtReason,
}

/// Why it is unknown whether a finding changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DoubtReason {
    /// Both sides have it, and one is too short to show how often it comes.
    ShortSide(Span),
    /// One side is too short to show it for certain.
    MayBeMissed {
        /// The side that has it.
        found: SourceSide,
        /// How long it lasted there; `None` for a state without a beginning.
        lasted: Option<Span>,
        /// How long that side was watched.
        watched: Span,
        /// How long the other was.
        other_watched: Span,
    },
    /// The other side could not be checked for it.
    NotChecked {
        /// The side that has it.
        found: SourceSide,
    },
}

/// One side uses much more memory than the other.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryUse {
    /// The amounts that show it.
    pub amounts: Vec<AmountChange>,
    /// Whether the side after uses more.
    pub is_more: bool,
    /// Whether tasks wait for it.
    pub waiting: UseWaiting,
}

/// Whether tasks wait for the memory that one side uses more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum UseWaiting {
    /// A side does not show it.
    Unknown,
    /// Nothing waits for it after.
    NoneAfter,
    /// Nothing waited before, when more was in use.
    NoneBefore,
    /// Tasks waited for these shares of the time, before and after.
    Shares(f64, f64),
}

/// Something that differs.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq)]
pub enum Moved {
    /// An amount of memory.
    Amount(AmountChange),
    Rate(RateChange),
}
