//! Why a command failed, in a text, and what to do about it.
//!
//! A [`CommandError`] is made only from errors that implement [`SaysWhatToDo`]: `?` on an error of a new type does not compile
//! before somebody has decided what its help is.

use std::error::Error;
use std::fmt::{self, Display};

use answers::recording_directory::NoRecording;
use answers::this_host::NotSearched;
use answers::{
    ExplainError, GroupError, NoKeptProfile, RuntimeStatsError, StatusError, WhereByError,
};
use export::UnknownSignal;
use import::OpenError;
use job::{ObserveError, PlanError, VerifyError};
use lab::LabError;
use profile::{NoLiveProfile, ReadProfileError};
use serve::{ServeError, TokenError};
use store::StoreError;
use timeline::with_causes;
use top::{FeedError, TopError};
use trial::{DirectoryError, NoRunHere, NoTrial, SettingError, TrialError};

/// An error that ends a command.
#[derive(Debug)]
pub(crate) struct CommandError {
    text: String,
    help: Option<String>,
}

/// An error that may end a command.
pub(crate) trait SaysWhatToDo: Error {
    /// What to do about it; `None` where its text leaves nothing to add.
    fn what_to_do(&self) -> Option<String>;
}

impl CommandError {
    /// A failure that this crate found itself.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), help: None }
    }

    /// The same, with what to do about it.
    pub(crate) fn with_help(self, help: String) -> Self {
        Self { help: Some(help), ..self }
    }

    /// The same failure, with what the command wanted before its text.
    pub(crate) fn context(self, wanted: impl Display) -> Self {
        Self { text: format!("{wanted}: {}", self.text), ..self }
    }

    /// What to do about it.
    pub(crate) fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }
}

impl Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<E: SaysWhatToDo> From<E> for CommandError {
    fn from(error: E) -> Self {
        Self { text: with_causes(&error), help: error.what_to_do() }
    }
}

/// Adds what the command wanted to a result; the help stays.
pub(crate) trait ErrorContext<T> {
    /// Puts a text before that of the failure.
    fn context(self, wanted: impl Display) -> Result<T, CommandError>;

    /// The same, with a text that is made only where it is needed.
    fn with_context<D: Display>(self, wanted: impl FnOnce() -> D) -> Result<T, CommandError>;
}

impl<T, E: Into<CommandError>> ErrorContext<T> for Result<T, E> {
    fn context(self, wanted: impl Display) -> Result<T, CommandError> {
        self.map_err(|error| error.into().context(wanted))
    }

    fn with_context<D: Display>(self, wanted: impl FnOnce() -> D) -> Result<T, CommandError> {
        self.map_err(|error| error.into().context(wanted()))
    }
}

impl<T> ErrorContext<T> for Option<T> {
    fn context(self, wanted: impl Display) -> Result<T, CommandError> {
        self.ok_or_else(|| CommandError::new(wanted.to_string()))
    }

    fn with_context<D: Display>(self, wanted: impl FnOnce() -> D) -> Result<T, CommandError> {
        self.ok_or_else(|| CommandError::new(wanted().to_string()))
    }
}

/// Ends the function with a failure of this text.
macro_rules! bail {
    ($($text:tt)*) => {
        return Err($crate::command_error::CommandError::new(format!($($text)*)))
    };
}
pub(crate) use bail;

/// The system says why, and what it was asked for stands before it.
impl SaysWhatToDo for std::io::Error {
    fn what_to_do(&self) -> Option<String> {
        None
    }
}

/// An answer is always JSON: nothing that a user could do.
impl SaysWhatToDo for serde_json::Error {
    fn what_to_do(&self) -> Option<String> {
        None
    }
}

impl SaysWhatToDo for OpenError {
    fn what_to_do(&self) -> Option<String> {
        match self {
            // In the time zone of the user.
            Self::OutOfRange { why, .. } => Some(answers::coverage::instead(why)),
            _ => self.help().map(Into::into),
        }
    }
}

impl SaysWhatToDo for mcp::McpError {
    fn what_to_do(&self) -> Option<String> {
        let is_protocol = matches!(self, Self::Protocol(_));
        is_protocol
            .then(|| "`memtide mcp` is started by an assistant's client, not by hand".to_owned())
    }
}

impl SaysWhatToDo for TopError {
    fn what_to_do(&self) -> Option<String> {
        match self {
            Self::Feed(FeedError::Open(error)) => error.what_to_do(),
            Self::Feed(_) | Self::Terminal(_) => None,
        }
    }
}

impl SaysWhatToDo for ServeError {
    fn what_to_do(&self) -> Option<String> {
        match self {
            Self::Source(error) => error.what_to_do(),
            _ => self.help(),
        }
    }
}

impl SaysWhatToDo for TokenError {
    fn what_to_do(&self) -> Option<String> {
        self.help()
    }
}

impl SaysWhatToDo for StoreError {
    fn what_to_do(&self) -> Option<String> {
        Some(self.help().into_owned())
    }
}

impl SaysWhatToDo for StatusError {
    fn what_to_do(&self) -> Option<String> {
        self.help().map(Into::into)
    }
}

impl SaysWhatToDo for GroupError {
    fn what_to_do(&self) -> Option<String> {
        self.help()
    }
}

impl SaysWhatToDo for ExplainError {
    fn what_to_do(&self) -> Option<String> {
        self.help()
    }
}

impl SaysWhatToDo for RuntimeStatsError {
    fn what_to_do(&self) -> Option<String> {
        Some(self.help())
    }
}

impl SaysWhatToDo for LabError {
    fn what_to_do(&self) -> Option<String> {
        self.help().map(Into::into)
    }
}

impl SaysWhatToDo for SettingError {
    fn what_to_do(&self) -> Option<String> {
        self.help().map(Into::into)
    }
}

impl SaysWhatToDo for NoTrial {
    fn what_to_do(&self) -> Option<String> {
        self.help()
    }
}

impl SaysWhatToDo for DirectoryError {
    fn what_to_do(&self) -> Option<String> {
        self.help()
    }
}

/// Read on the console of a machine only.
impl SaysWhatToDo for NoRunHere {
    fn what_to_do(&self) -> Option<String> {
        None
    }
}

impl SaysWhatToDo for TrialError {
    fn what_to_do(&self) -> Option<String> {
        self.help()
    }
}

impl SaysWhatToDo for ReadProfileError {
    fn what_to_do(&self) -> Option<String> {
        Some(self.help())
    }
}

impl SaysWhatToDo for NoKeptProfile {
    fn what_to_do(&self) -> Option<String> {
        Some(self.help())
    }
}

impl SaysWhatToDo for NoLiveProfile {
    fn what_to_do(&self) -> Option<String> {
        self.help()
    }
}

impl SaysWhatToDo for PlanError {
    fn what_to_do(&self) -> Option<String> {
        self.help()
    }
}

impl SaysWhatToDo for VerifyError {
    fn what_to_do(&self) -> Option<String> {
        self.help()
    }
}

impl SaysWhatToDo for ObserveError {
    fn what_to_do(&self) -> Option<String> {
        self.help()
    }
}

impl SaysWhatToDo for UnknownSignal {
    fn what_to_do(&self) -> Option<String> {
        Some("`memtide signals` lists them".to_owned())
    }
}

/// What is wrong with the directory is all that there is to say.
impl SaysWhatToDo for NotSearched {
    fn what_to_do(&self) -> Option<String> {
        None
    }
}

/// Its text names what the source lacks.
impl SaysWhatToDo for WhereByError {
    fn what_to_do(&self) -> Option<String> {
        None
    }
}

/// Its text says what to do.
impl SaysWhatToDo for NoRecording {
    fn what_to_do(&self) -> Option<String> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_keeps_the_help_and_names_each_cause_once() {
        let other = || StoreError::OtherFormat { path: "rec".into(), format: 9, known: 2 };
        let read: Result<(), OpenError> = Err(other().into());
        let failure = read.context("rec was not added").unwrap_err();
        assert_eq!(
            failure.to_string(),
            "rec was not added: rec was written by another memtide (format 9; this one reads \
             format 2)"
        );
        assert_eq!(failure.help(), Some(&*other().help()));
    }

    #[test]
    fn a_failure_without_help_has_none() {
        let fails = || -> Result<(), CommandError> { bail!("{} exists", "a.html") };
        let failure = fails().unwrap_err();
        assert_eq!((failure.to_string().as_str(), failure.help()), ("a.html exists", None));
        let absent: Option<()> = None;
        assert_eq!(absent.context("no home").unwrap_err().to_string(), "no home");
    }
}
