//! How the page opens: at the moment of which side, and how the times of the two align.

use units::Span;

use super::sides::Both;
use crate::html::ComparedSide;
use crate::model::{Direction, Level};

/// CursorAlignment a source that is this many times as long, a shorter one is a hairline; an engineering choice.
const FAR_LONGER: f64 = 4.0;

/// What of the two stands beside each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CursorAlignment {
    /// Their beginnings: the cursor stands as long after the one as after the other.
    Beginnings,
    /// The moments that matter, since the longer has no room for the shorter.
    Moments,
}

impl CursorAlignment {
    pub(super) fn of(both: &Both<'_>) -> Self {
        let [before, after] = spans(both);
        let is_far_longer = before.max(after) > before.min(after) * FAR_LONGER;
        if before.min(after) > 0.0 && is_far_longer {
            Self::Moments
        } else {
            Self::Beginnings
        }
    }

    /// Its word for the script.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Beginnings => "beginnings",
            Self::Moments => "moments",
        }
    }

    /// Where the cursor stands on the other side.
    pub(super) const fn says(self) -> &'static str {
        match self {
            Self::Beginnings => "The cursor stands as long after the beginning of each.",
            Self::Moments => "The cursor stands as far from the worst moment of each.",
        }
    }
}

/// Why a part of the longer one is shown; `None` where all of both is.
pub(super) fn alignment_note(both: &Both<'_>) -> Option<String> {
    let [before, after] = spans(both).map(Span::from_secs_f64);
    let shorter = before.min(after);
    (CursorAlignment::of(both) == CursorAlignment::Moments).then(|| {
        format!(
            "Before is {before} long and after {after}: the charts open with {shorter} around the worst moment of each, by \
             its own clock. Whole range shows all."
        )
    })
}

fn spans(both: &Both<'_>) -> [f64; 2] {
    both.sides().map(|(_, scene)| {
        if scene.has_charts() {
            scene.picture.span_s()
        } else {
            0.0
        }
    })
}

/// The side at whose moment the cursor opens: the worse one; of two alike what is there now, unless that is better.
pub(super) fn side(both: &Both<'_>) -> ComparedSide {
    let [before, after] =
        [&both.report.before, &both.report.after].map(|side| gravity(side.verdict));
    match (before.cmp(&after), both.report.direction) {
        (std::cmp::Ordering::Greater, _) => ComparedSide::Before,
        (std::cmp::Ordering::Equal, Direction::Better) => ComparedSide::Before,
        _ => ComparedSide::After,
    }
}

const fn gravity(level: Level) -> u8 {
    match level {
        Level::Ok | Level::Unknown => 0,
        Level::Warning => 1,
        Level::Critical => 2,
    }
}
