//! What a rule is: an id, its documentation, and a function from evidence to an outcome.

use crate::evidence::Evidence;
use crate::finding::Finding;
use crate::missing::Missing;

/// What a rule is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Finds something wrong.
    Finding,
    /// Explains something that looks wrong and is not, or a limit of the source; always [`Severity::Info`](crate::Severity::Info).
    Note,
}

/// How far what a rule finds reaches, where a look follows hours of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// From its beginning to its end.
    Stretch,
    /// It is about growth: to where the level was all but at its height.
    Growth,
    /// It is about the source: that of the look is meant.
    Look,
}

/// A rule of the catalogue.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Names the pathology, never the cure; never reused.
    pub id: &'static str,
    /// memtide's version that brought it.
    pub since: &'static str,
    /// Finding or note.
    pub purpose: Purpose,
    /// Its documentation in Markdown, under five fixed headings.
    pub docs: &'static str,
    pub(crate) reach: Reach,
    pub(crate) check: fn(&Evidence<'_>) -> Result<Outcome, Missing>,
}

impl Rule {
    /// The first sentence of its documentation.
    pub fn summary(&self) -> &'static str {
        self.docs
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty() && !line.starts_with('#'))
            .unwrap_or_default()
    }
}

/// What a rule says of a source. What it could not say is its `Err`: [`Missing`].
#[derive(Debug)]
pub enum Outcome {
    /// It is there.
    Found(Box<Finding>),
    /// It is not there, and why that is certain.
    Clear(String),
}

impl From<Finding> for Outcome {
    fn from(finding: Finding) -> Self {
        Self::Found(Box::new(finding))
    }
}

/// Declares a rule's constant; the doc comment above it is its documentation everywhere.
macro_rules! declare_rule {
    (@reach) => { crate::rule::Reach::Stretch };
    (@reach $reach:ident) => { crate::rule::Reach::$reach };
    ($(#[doc = $doc:literal])* $vis:vis $name:ident = {
        id: $id:literal, since: $since:literal, purpose: $purpose:ident, $(reach: $reach:ident,)? check: $check:path $(,)?
    }) => {
        $(#[doc = $doc])*
        $vis const $name: crate::rule::Rule = crate::rule::Rule {
            id: $id,
            since: $since,
            purpose: crate::rule::Purpose::$purpose,
            docs: concat!($($doc, "\n"),*),
            reach: crate::rule::declare_rule!(@reach $($reach)?),
            check: $check,
        };
    };
}

/// `Ok(Outcome::Clear(…))` with a formatted reason.
macro_rules! clear {
    ($($text:tt)*) => { Ok(crate::rule::Outcome::Clear(format!($($text)*))) };
}

pub(crate) use {clear, declare_rule};
