//! Colours and weights of text on a terminal: ANSI escape codes.

use std::borrow::Cow;

use crate::model::{Level, Severity};

/// How a piece of text stands out when there is colour.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// As the terminal writes.
    Plain,
    /// What a reader should see first.
    Strong,
    /// Labels, thresholds, asides.
    Faint,
    /// Commands to type.
    Command,
    /// Something critical.
    Critical,
    Warning,
    /// A verdict that nothing is wrong.
    Fine,
    /// A note, or a verdict that could not be given.
    Unknown,
    /// Data, in a colour of the 256-colour palette that no severity has.
    Data(u8),
    /// Data in the halves of `▌`: the left one's colour and the right one's.
    Halves(u8, u8),
}

impl From<Level> for Style {
    fn from(level: Level) -> Self {
        match level {
            Level::Ok => Self::Fine,
            Level::Warning => Self::Warning,
            Level::Critical => Self::Critical,
            Level::Unknown => Self::Unknown,
        }
    }
}

impl From<Severity> for Style {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Info => Self::Unknown,
            Severity::Warning => Self::Warning,
            Severity::Critical => Self::Critical,
        }
    }
}

impl Style {
    /// The parameters of the escape sequence that begins it (ECMA-48, SGR); `None` for plain text.
    pub(super) fn ansi_code(self) -> Option<Cow<'static, str>> {
        let code = match self {
            Self::Plain => return None,
            Self::Strong => "1",
            Self::Faint => "2",
            Self::Command => "36",
            Self::Critical => "1;31",
            Self::Warning => "1;33",
            Self::Fine => "1;32",
            Self::Unknown => "1;34",
            Self::Data(colour) => return Some(format!("38;5;{colour}").into()),
            Self::Halves(left, right) => {
                return Some(format!("38;5;{left};48;5;{right}").into());
            }
        };
        Some(code.into())
    }
}
