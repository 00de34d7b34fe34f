//! What an answer is drawn on: width and colour, how much of it, and in which zone its readers live.

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
    /// What a reader needs to act.
    #[default]
    Brief,
    /// Also the rules that found nothing, and those that could not be evaluated.
    All,
}

/// What is drawn on.
#[derive(Debug, Clone)]
pub struct Screen {
    pub(crate) width: usize,
    /// Whether to colour.
    pub colour: ColourMode,
    /// How much to show.
    pub detail: Detail,
    /// The time zone of the readers.
    pub zone: TimeZone,
    /// Whether lines of lists are left as long as they are: in a file or a pipe each is one record.
    pub unbroken: bool,
}

impl Screen {
    /// Narrower than this, words would be cut.
    const NARROWEST: usize = 40;
    /// Wider than this, lines are hard to read.
    const WIDEST: usize = 120;

    /// A plain, brief screen of so many columns, held between 40 and 120, in UTC.
    pub fn of_width(columns: usize) -> Self {
        Self {
            width: columns.clamp(Self::NARROWEST, Self::WIDEST),
            colour: ColourMode::default(),
            detail: Detail::default(),
            zone: TimeZone::UTC,
            unbroken: false,
        }
    }

    /// Its columns.
    pub const fn width(&self) -> usize {
        self.width
    }
}

impl Default for Screen {
    fn default() -> Self {
        Self::of_width(80)
    }
}
