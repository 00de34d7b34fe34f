//! Why a request gets no answer, as a status, a sentence, and what to do instead.

use answers::{GroupError, WhereByError};
use import::OpenError;
use timeline::with_causes;

/// Why a request gets no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unanswered {
    /// The status of HTTP.
    pub(crate) status: u16,
    /// What is wrong.
    pub(crate) text: String,
    /// What to do.
    pub(crate) help: Option<String>,
}

impl Unanswered {
    pub(crate) fn new(status: u16, text: impl Into<String>) -> Self {
        Self { status, text: text.into(), help: None }
    }

    pub(crate) fn with_help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// The question cannot be understood.
    pub(crate) fn bad(text: impl Into<String>) -> Self {
        Self::new(400, text)
    }

    /// The source has no such thing.
    pub(crate) fn absent(text: impl Into<String>) -> Self {
        Self::new(404, text)
    }

    /// There is no answer now.
    pub(crate) fn later(text: impl Into<String>) -> Self {
        Self::new(503, text)
    }

    /// What was wrong with a question that got an answer of its own, but could not be written.
    pub(crate) fn failed(text: impl Into<String>) -> Self {
        Self::new(500, text)
    }
}

impl From<OpenError> for Unanswered {
    fn from(error: OpenError) -> Self {
        let text = with_causes(&error);
        match &error {
            OpenError::OutOfRange { why, .. } => {
                Self::absent(text).with_help(answers::coverage::instead(why))
            }
            OpenError::EmptyRecording { .. } => {
                Self { help: error.help().map(Into::into), ..Self::later(text) }
            }
            _ => Self { help: error.help().map(Into::into), ..Self::later(text) },
        }
    }
}

impl From<GroupError> for Unanswered {
    fn from(error: GroupError) -> Self {
        Self { help: error.help(), ..Self::absent(error.to_string()) }
    }
}

impl From<WhereByError> for Unanswered {
    fn from(error: WhereByError) -> Self {
        Self::absent(error.to_string())
    }
}

impl From<serde_json::Error> for Unanswered {
    fn from(error: serde_json::Error) -> Self {
        Self::failed(error.to_string())
    }
}
