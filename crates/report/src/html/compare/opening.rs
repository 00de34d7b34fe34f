//! How the page opens: on which side's time the cursor is set, and how the times of both sides align.

use units::Span;

use super::sides::Both;
use crate::html::ComparedSide;
use crate::model::{Direction, Level};

/// If one source is this many times as long as the other, the shorter one would be a hairline; an engineering choice.
const FAR_LONGER: f64 = 4.0;

/// Which times of the two sources are aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CursorAlignment {
    /// Their starts: the cursor is at the same offset on both sides.
    Beginnings,
    /// Their worst moments, since on the longer one's scale the shorter one would be too narrow.
    Moments,
}

impl CursorAlignment {
    pub(super) fn of(both: &Both<'_>) -> Self {
        let [before, after] = spans(both);
        let is_far_longer = before.max(after) > before.min(after) * FAR_LONGER;
        if before.min(after) > 0.0 && is_far_longer { Self::Moments } else { Self::Beginnings }
    }

    /// The word for the script.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Beginnings => "beginnings",
            Self::Moments => "moments",
        }
    }

    /// The sentence on where the cursor is on the other side.
    pub(super) const fn says(self) -> &'static str {
        match self {
            Self::Beginnings => "Both cursors are at the same time after the beginning.",
            Self::Moments => "Both cursors are equally far from the worst moment.",
        }
    }
}

/// Returns why only a part of the longer source is shown; `None` if all of both is.
pub(super) fn alignment_note(both: &Both<'_>) -> Option<String> {
    let [before, after] = spans(both).map(Span::from_secs_f64);
    let shorter = before.min(after);
    (CursorAlignment::of(both) == CursorAlignment::Moments).then(|| {
        format!(
            "Before is {before} long and after {after}: the charts open with {shorter} around the \
             worst moment of each, by its own clock. Whole range shows all."
        )
    })
}

fn spans(both: &Both<'_>) -> [f64; 2] {
    both.sides().map(|(_, scene)| if scene.has_charts() { scene.picture.span_s() } else { 0.0 })
}

/// Returns the side that the cursor opens at, at its worst moment: the worse one; of two equal ones the second, if not
/// better.
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
