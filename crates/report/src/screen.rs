//! The screen that an answer is drawn on: width, colour, detail and time zone.

use jiff::tz::TimeZone;

/// Whether to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColourMode {
    /// No escape sequences at all.
    #[default]
    Plain,
    /// ANSI sequences of the 256-colour palette.
    Ansi,
}

/// How much of a report to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// What a reader needs in order to act.
    #[default]
    Brief,
    /// Also the rules that found nothing, and those that could not be evaluated.
    All,
}

/// The screen that an answer is drawn on.
#[derive(Debug, Clone)]
pub struct Screen {
    pub(crate) width: usize,
    /// Whether to colour.
    pub colour: ColourMode,
    /// How much to show.
    pub detail: Detail,
    /// The readers' time zone.
    pub zone: TimeZone,
    /// Whether lines of lists are not wrapped: in a file or a pipe each line is one record.
    pub unbroken: bool,
    /// How many rows of one kind to show; `None`: a few, as many as fit.
    pub top: Option<usize>,
}

impl Screen {
    /// At least 40 columns; with fewer, words would be cut.
    const NARROWEST: usize = 40;
    /// At most 120 columns; longer lines are hard to read.
    const WIDEST: usize = 120;

    /// A plain, brief screen in UTC with this many columns, clamped to 40 to 120.
    pub fn of_width(columns: usize) -> Self {
        Self {
            width: columns.clamp(Self::NARROWEST, Self::WIDEST),
            colour: ColourMode::default(),
            detail: Detail::default(),
            zone: TimeZone::UTC,
            unbroken: false,
            top: None,
        }
    }

    /// The same with as many columns as the terminal has: for tables, which are read across.
    #[must_use]
    pub fn with_columns(self, columns: usize) -> Self {
        Self { width: columns, ..self }
    }

    /// The same with no more columns than can be read with ease: for sentences.
    #[must_use]
    pub fn reading(&self) -> Self {
        Self { width: self.width.clamp(Self::NARROWEST, Self::WIDEST), ..self.clone() }
    }

    /// Returns its columns.
    pub const fn width(&self) -> usize {
        self.width
    }
}

impl Default for Screen {
    fn default() -> Self {
        Self::of_width(80)
    }
}
