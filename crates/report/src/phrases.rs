//! Rows and sentences that text and HTML share, before they are laid out.
//!
//! Both take their words from here, so they cannot differ.

pub(crate) mod arena_columns;
pub(crate) mod compare;
pub(crate) mod explain;
pub(crate) mod explain_faults;
pub(crate) mod explain_verdict;
pub(crate) mod group;
pub(crate) mod growth;
pub(crate) mod headroom;
pub(crate) mod heap_cells;
pub(crate) mod heap_lines;
pub(crate) mod incidents;
pub(crate) mod occurrences;
pub(crate) mod runtime_stats;
pub(crate) mod source;
pub(crate) mod verdict;

/// Printed where a value is unknown.
pub(crate) const ABSENT: &str = "–";

/// Returns the text with a capital first letter.
pub(crate) fn capital(text: &str) -> String {
    let mut rest = text.chars();
    let first = rest.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(rest).collect()
}

/// On which kernels a fix was shown to end its finding; `None` where it was not shown.
pub(crate) fn proven_on(kernels: &[&str]) -> Option<String> {
    match kernels {
        [] => None,
        kernels => Some(format!("proven in the lab: Linux {}", kernels.join(", "))),
    }
}

/// A sentence with its label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LabelledText {
    pub(crate) label: &'static str,
    pub(crate) text: String,
}

impl LabelledText {
    pub(crate) fn new(label: &'static str, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { label, text }
    }
}
